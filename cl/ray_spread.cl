// Rays are spread over an image: the product with the transposed of a scanner's matrix.
//
// Required macros:
//   STRIP    lines of a tile: image rows for steep rays, columns for flat ones
//   WIDTH    pixels of each of these lines

#define CELLS (WIDTH + 1) // places of a line: the first is the one before its first pixel

// A ray at the first line of a strip, and what it adds to the pixels of a line in all.
typedef struct {
    ulong place, slope;
    real_t value;
} spread_t;

// Adds a ray to STRIP lines of CELLS places, of which `limit` are in use. All are read before any is written, so that no line waits
// for the one before.
static void add_ray(const spread_t* ray, uint limit, __local real2_t* cells)
{
    const real_t whole = ray->value * RAY_ONE;
    ulong place = ray->place;
    uint at[STRIP];
    real2_t sum[STRIP];
    for (uint l = 0; l < STRIP; ++l) {
        const real_t share = (real_t)(uint)place * ray->value;
        at[l] = place >> 32;
        sum[l] = (real2_t)(whole - share, share);
        if (at[l] < limit) sum[l] = cells[l * CELLS + at[l]] + sum[l];
        place += ray->slope;
    }
    for (uint l = 0; l < STRIP; ++l)
        if (at[l] < limit) cells[l * CELLS + at[l]] = sum[l];
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
    for (uint angle = sheet.y; angle < sheet.z; ++angle) {
        const uint span = tile_spans[angle - sheet.y];
        if (span == 0) continue;
        const uint4 fan = angle_fans[angle];
        const uint end = angle * pixels + (span >> 16);
        for (uint class = 0; class < fan.z; ++class) {
            uint i = angle * pixels + (span & 0xffff) + class + fan.z * get_local_id(0);
            for (; i < end; i += fan.z * WG) {
                const ulong2 words = ((__global const ulong2*)rays)[i];
                if (fan.w && (words.y & 1) != steep) continue;
                spread_t ray;
                ray.value = weights[i] * y[i * columns + column];
                ray.slope = words.y;
                // Counted from the place before the first pixel.
                ray.place = words.x + line * words.y + ((ulong)(1 - column0) << 32);
                add_ray(&ray, wide + 1, cells);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
    // Neighbouring items write neighbouring pixels of an image row, or the lines of a strip that lie side by side.
    const uint skipped = strip - line;
    const uint count = STRIP - skipped;
    __global real_t* target = partial + held * ((size_t)side * side);
    for (uint k = get_local_id(0); k < count * wide; k += WG) {
        const uint across_tile = steep ? wide : count;
        const uint quotient = k / across_tile;
        const uint remainder = k - quotient * across_tile;
        const uint l = skipped + (steep ? quotient : remainder);
        const uint q = steep ? remainder : quotient;
        const size_t at = steep ? (line + l) * (size_t)side + column0 + q : (column0 + q) * (size_t)side + line + l;
        target[at] = cells[l * CELLS + q + 1].x + cells[l * CELLS + q].y;
    }
}
