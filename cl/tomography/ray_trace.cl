// Rays are traced through an image: the product with a scanner's matrix.

// Groups take BREADTH neighbouring rays at once, of ANGLES angles.
#define BREADTH (WG < 32 ? WG : 32)
#define ANGLES (WG / BREADTH)

// Sum of `count` lines of a ray, the first of them at `place`: BLOCK lines, or those before the first whole block or behind the last.
static real_t block_sum(__global const real2_t* image, uint last, ulong place, ulong step, uint count)
{
    real2_t pixel[BLOCK];
    real_t part[BLOCK];
    for (uint k = 0; k < BLOCK; ++k) {
        // Chosen, because a compiler that sees a word of `place` alone reckons the address in 64 bits.
        const uint at = min((uint)(place >> 32), last);
        pixel[k] = k < count ? image[at] : (real2_t)(0);
        part[k] = (uint)place;
        place += step;
    }
    real_t whole = 0, share = 0;
    for (uint k = 0; k < BLOCK; ++k) {
        whole = k < count ? whole + pixel[k].x : whole;
        share = k < count ? share + part[k] * pixel[k].y : share;
    }
    return whole + share * (1 / RAY_ONE);
}

// Column `column` of y = A x for `share` neighbouring rays of each of some angles: an item follows a ray, in blocks of lines that
// begin at multiples of BLOCK. Groups of several items take
// several angles, because the rays of neighbouring angles read the same pixels.
// Bytes: the rays, 2 side real_t of an image for each, which caches hold.
__kernel GROUP
void trace_rays(uint pixels, uint angles, uint share, uint side, uint columns, uint column,
                __global const uint* restrict rays, __global const uint* restrict lines,
                __global const real_t* restrict weights, __global const real_t* restrict images,
                __global real_t* restrict y)
{
    const uint pitch = side + 1;
    __global const real2_t* pixel = (__global const real2_t*)images;
    const uint last = 2 * side * pitch - 1;
    const uint across = (pixels + share - 1) / share;
    const uint tile = get_group_id(0) / across;
    const uint first = (get_group_id(0) - tile * across) * share;
    const uint angle = tile * ANGLES + get_local_id(0) / BREADTH;
    if (angle >= angles) return;
    for (uint k = first + (get_local_id(0) & (BREADTH - 1)); k < min(first + share, pixels); k += BREADTH) {
        const uint i = angle * pixels + k;
        const ulong2 ray = ((__global const ulong2*)rays)[i];
        const uint from = lines[i] & 0xffff;
        const uint to = lines[i] >> 16;
        // Counted from the first place of the image, so that the high word is where to read.
        const ulong step = ray.y + ((ulong)pitch << 32);
        const uint origin = 1 + (ray.y & 1 ? 0 : side * pitch);
        ulong place = ray.x + from * step + ((ulong)origin << 32);
        acc_t total = acc_real(0);
        uint line = from;
        if (from % BLOCK > 0) {
            const uint count = min(BLOCK - from % BLOCK, to - from);
            total = acc_real(block_sum(pixel, last, place, step, count));
            place += count * step;
            line += count;
        }
        for (; line + BLOCK <= to; line += BLOCK) {
            total = acc_add(total, acc_real(block_sum(pixel, last, place, step, BLOCK)));
            place += BLOCK * step;
        }
        if (line < to) total = acc_add(total, acc_real(block_sum(pixel, last, place, step, to - line)));
        y[i * columns + column] = acc_to_real(acc_mul(acc_real(weights[i] * RAY_ONE), total));
    }
}
