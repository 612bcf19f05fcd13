// Rays are spread over an image: the product with the transposed of a scanner's matrix.
//
// Required macros:
//   STRIP    lines of a tile: image rows for steep rays, columns for flat ones
//   WIDTH    pixels of each of these lines

// Places before the first pixel of a line and behind the last: no ray that meets the tile leaves it further. What lies outside of the
// image is never read: rays of a class may share a place there.
#define RIM STRIP
#define CELLS (WIDTH + 1 + 2 * RIM)
#define TURN(t) (WG == 1 ? (t) : (t) ^ (t) >> 1)
// Lines that are read before any is written, so that no line waits for the one before. All 16 at once take so many registers that
// fewer groups run at a time (H200, 512^2: 238 us, 8 of them 232, 4 of them 236).
#define BATCH (WG == 1 || STRIP < 8 ? STRIP : 8)

// A ray at the first line of a strip, and what it adds to the pixels of a line in all.
typedef struct {
    ulong place, slope;
    real_t value;
} spread_t;

// Sums of line `line` at place `at`, counted from the rim. Lines lie side by side, so that items on different lines seldom meet in a
// bank of local memory, whatever their places.
#define CELL(at, line) ((at) * STRIP + (line))

// Adds a ray to the STRIP lines of a tile; a ray that leaves the rim does not meet the tile. Neighbouring items take the lines in
// different orders: turn t of an item is line TURN(t) ^ order. Turns follow a Gray code, so that the step to the next line is one
// addition. A single item goes from line to line.
static void add_ray(const spread_t* ray, uint order, __local real2_t* cells)
{
    const real_t whole = ray->value * RAY_ONE;
    const uint first_place = ray->place >> 32;
    const uint last_place = (ray->place + (STRIP - 1) * ray->slope) >> 32;
    if (first_place >= CELLS || last_place >= CELLS) return;
    ulong place = ray->place + order * ray->slope;
    ulong step[4];
    for (uint b = 0; b < 4; ++b) step[b] = order >> b & 1 ? -(ray->slope << b) : ray->slope << b;
    for (uint base = 0; base < STRIP; base += BATCH) {
        uint at[BATCH];
        real2_t sum[BATCH];
        for (uint k = 0; k < BATCH; ++k) {
            const uint t = base + k;
            const uint2 words = as_uint2(place);
            const real_t share = (real_t)words.x * ray->value;
            at[k] = CELL(words.y, TURN(t) ^ order);
            sum[k] = cells[at[k]] + (real2_t)(whole - share, share);
            // The bit that turns, and which way.
            const uint bit = t & 1 ? (t & 2 ? (t & 4 ? 3 : 2) : 1) : 0;
            if (WG == 1) place += ray->slope;
            else place += (t + 1) >> (bit + 1) & 1 ? -step[bit] : step[bit];
        }
        for (uint k = 0; k < BATCH; ++k) cells[at[k]] = sum[k];
    }
}

// The barrier between two classes. A group of one warp waits for that alone.
static void class_barrier(void)
{
#if PTX && WG == 32
    __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#else
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

// Sheets first_sheet .. of column `column` of A'y, in `partial`. A group has the sums of a tile of a sheet in local memory: of rays at
// the pixel left of a place, and at the right one. An item follows a ray through the tile. Rays of a class have different places.
// Bytes: the rays of a sheet for each tile that they meet; side^2 real_t for each sheet.
__kernel GROUP
void spread_rays(uint side, uint pixels, uint angles, uint first_sheet, uint columns, uint column,
                 __global const uint* restrict rays, __global const real_t* restrict weights,
                 __global const uint* restrict fans, __global const uint* restrict sheets,
                 __global const uint* restrict spans, __global const real_t* restrict y,
                 __global real_t* restrict partial)
{
    __local real2_t cells[STRIP * CELLS];
    const uint across = (side + WIDTH - 1) / WIDTH;
    const uint tiles = (side + STRIP - 1) / STRIP * across;
    const uint held = get_group_id(0) / tiles;
    const uint tile = get_group_id(0) - held * tiles;
    // Remainders are reckoned from quotients: Oclgrind 21 cannot do what Clang makes of both.
    const uint row = tile / across;
    const uint strip = row * STRIP;
    // The last strip holds lines of the one before, so that all lines are within the image.
    const uint line = min(strip, side - STRIP);
    const uint column0 = (tile - row * across) * WIDTH;
    const uint wide = min((uint)WIDTH, side - column0);
    const uint4 sheet = ((__global const uint4*)sheets)[first_sheet + held];
    const uint steep = sheet.x;
    __global const uint4* angle_fans = (__global const uint4*)fans + steep * angles;
    __global const uint* tile_spans = spans + sheet.w * (size_t)tiles + tile * (sheet.z - sheet.y);
    for (uint k = get_local_id(0); k < STRIP * CELLS; k += WG) cells[k] = (real2_t)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint count = sheet.z - sheet.y;
    uint span = tile_spans[0];
    uint4 fan = angle_fans[sheet.y];
    for (uint k = 0; k < count; ++k) {
        // Loads for the next angle are under way while this one is added.
        const uint later = min(k + 1, count - 1);
        const uint next_span = tile_spans[later];
        const uint4 next_fan = angle_fans[sheet.y + later];
        const uint angle = sheet.y + k;
        const uint end = angle * pixels + (span >> 16);
        // Another order for each angle: with one for all, NVIDIA's compiler holds every line in registers, which leaves fewer groups.
        const uint order = WG == 1 ? 0 : (get_local_id(0) ^ angle) & (STRIP - 1);
        for (uint class = 0; class < (span ? fan.z : 0); ++class) {
            uint i = angle * pixels + (span & 0xffff) + class + fan.z * get_local_id(0);
            for (; i < end; i += fan.z * WG) {
                const ulong2 words = ((__global const ulong2*)rays)[i];
                spread_t ray;
                ray.value = weights[i] * y[i * columns + column];
                ray.slope = words.y;
                ray.place = words.x + line * words.y + ((ulong)(1 + RIM - column0) << 32);
                if (!fan.w || (words.y & 1) == steep) add_ray(&ray, order, cells);
            }
            class_barrier();
        }
        span = next_span;
        fan = next_fan;
    }
    // Neighbouring items take four pixels of some image rows, or the lines of a strip, which lie side by side.
    const uint skipped = strip - line;
    __global real_t* target = partial + held * ((size_t)side * side);
    for (uint k = get_local_id(0); k < (wide + 3) / 4 * (4 * STRIP); k += WG) {
        const uint l = (steep ? k / 4 : k) & (STRIP - 1);
        const uint q = k / (4 * STRIP) * 4 + (steep ? k & 3 : k / STRIP & 3);
        if (l < skipped || q >= wide) continue;
        const size_t at = steep ? (line + l) * (size_t)side + column0 + q : (column0 + q) * (size_t)side + line + l;
        target[at] = cells[CELL(q + 1 + RIM, l)].x + cells[CELL(q + RIM, l)].y;
    }
}
