// A scanner's matrix that is never stored: rays are traced through the image as they are needed (Joseph's method, see
// src/imaging/scanner.rs), and the transposed product finds, for each pixel, the rays that cross it.
//
//   rows     side, detector pixels, angles, 0; then for each ray its slope, pixels sideways per line, and the low word of
//            its start, the place where it meets line 0; then the high word of each start. Fixed point with RAY_BITS
//            binary places. Bit 0 of the slope: 1 for a steep ray, whose lines are image rows, 0 for a flat one, whose
//            lines are image columns.
//   indices  first line of each ray inside the image in the low half, the one after its last in the high half
//   values   length of each ray within a line over 2^RAY_BITS, padded to a multiple of four; then for each angle
//            a0 a1 a2 m b0 b1 b2 w: pixel (row i, column j) is seen at detector place (a0 + a1 j + a2 i) /
//            (b0 + b1 j + b2 i); m tells which rays there are: 1 steep ones, 2 flat ones, 3 both; w widens the search
//
// Places on the lines are integers and their fractions exact, so host and devices agree on every weight.

#define RAY_HEADER 4
#define RAY_BITS 28
#define RAY_ONE (1 << RAY_BITS)
#define SLACK (rough_t)0.02      // detector pixels that the search is wider than it need be
#define ROUNDING (rough_t)4.8e-7 // and for each detector pixel, because places are rounded

int ray_slope(const matrix_t* matrix, size_t i) { return matrix->rows[RAY_HEADER + 2 * i]; }

int is_steep(const matrix_t* matrix, size_t i) { return ray_slope(matrix, i) & 1; }

// Lines first, first + lanes, ... of ray i: x = (1 - f) x[low] + f x[low + 1] on each, times the length in a line.
void walk_ray(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint first, uint lanes)
{
    const uint side = matrix->rows[0];
    const size_t rays = (size_t)matrix->rows[1] * matrix->rows[2];
    const int slope = ray_slope(matrix, i);
    const long start = (long)matrix->rows[RAY_HEADER + 2 * rays + i] << 32 | matrix->rows[RAY_HEADER + 2 * i + 1];
    const uint range = matrix->indices[i];
    const uint last = range >> 16;
    const uint along = slope & 1 ? side : 1;  // from line to line
    const uint across = slope & 1 ? 1 : side; // from pixel to pixel within a line
    acc_t total[COLUMNS];
    for (uint c = 0; c < COLUMNS; ++c) total[c] = acc_real(0);
    for (uint line = (range & 0xffff) + first; line < last; line += AT_ONCE * lanes) {
        real_t weight[AT_ONCE], next_weight[AT_ONCE];
        uint pixel[AT_ONCE];
        int has_low[AT_ONCE], has_high[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            const uint here = line + j * lanes;
            const long place = start + (long)(int)here * slope;
            const int low = place >> RAY_BITS;
            const int part = (int)place & (RAY_ONE - 1);
            weight[j] = RAY_ONE - part;
            next_weight[j] = part;
            pixel[j] = here * along + low * across;
            has_low[j] = here < last && (uint)low < side;
            has_high[j] = here < last && (uint)(low + 1) < side;
        }
        for (uint c = 0; c < COLUMNS; ++c) {
            real_t x[AT_ONCE], next[AT_ONCE];
            for (uint j = 0; j < AT_ONCE; ++j) {
                x[j] = has_low[j] ? vector_at(vector, pixel[j], c) : 0;
                next[j] = has_high[j] ? vector_at(vector, pixel[j] + across, c) : 0;
            }
            for (uint j = 0; j < AT_ONCE; ++j)
                total[c] = acc_add(total[c], acc_real(weight[j] * x[j] + next_weight[j] * next[j]));
        }
    }
    for (uint c = 0; c < COLUMNS; ++c)
        sum[c] = acc_add(sum[c], acc_mul(acc_real(matrix->values[i]), total[c]));
}

// Angles first, first + lanes, ... of a tile of `high` by `wide` pixels (up to TILE) whose first is (row, column): all
// rays that pass one of them within a pixel, those of an angle added in T. The search for them is rough and wide, the
// weight of each exact and left out if it is 0, so that no bit depends on how a device divides, nor on the shape of
// the tile. Words are enough for the distance of a ray: the search leaves none that is 8 pixels off.
void walk_pixels(acc_t (*sum)[COLUMNS], const matrix_t* matrix, const vector_t* vector, uint row, uint column, uint high,
                 uint wide, uint first, uint lanes)
{
    const uint pixels = matrix->rows[1];
    const uint angles = matrix->rows[2];
    const rough_t limit = pixels;
    const rough_t x = column, y = row;
    __global const uint2* rays = (__global const uint2*)(matrix->rows + RAY_HEADER);
    __global const real4_t* views = (__global const real4_t*)(matrix->values + ((size_t)angles * pixels + 3) / 4 * 4);
    // Loads of the next angle are under way while one is worked on.
    const uint foremost = min(first, angles - 1);
    real4_t coming_along = views[2 * foremost];
    real4_t coming_towards = views[2 * foremost + 1];
    for (uint angle = first; angle < angles; angle += lanes) {
        const real4_t along = coming_along;
        const real4_t towards = coming_towards;
        const uint next_angle = min(angle + lanes, angles - 1);
        coming_along = views[2 * next_angle];
        coming_towards = views[2 * next_angle + 1];
        const rough_t nearness =
            rough_reciprocal(fma((rough_t)towards.y, x, fma((rough_t)towards.z, y, (rough_t)towards.x)));
        const rough_t seen = fma((rough_t)along.y, x, fma((rough_t)along.z, y, (rough_t)along.x)) * nearness;
        // Distances on the detector to where its neighbours are seen, in the first order; w makes up for the second.
        const rough_t scale = nearness * (rough_t)towards.w;
        const rough_t right = fma(-seen, (rough_t)towards.y, (rough_t)along.y) * scale;
        const rough_t below = fma(-seen, (rough_t)towards.z, (rough_t)along.z) * scale;
        const rough_t reach = SLACK + ROUNDING * limit +
            (along.w == 1 ? fabs(right) : along.w == 2 ? fabs(below) : fmax(fabs(right), fabs(below)));
        const rough_t last_right = right * (rough_t)(wide - 1), last_below = below * (rough_t)(high - 1);
        const rough_t before = fmin(last_right, (rough_t)0) + fmin(last_below, (rough_t)0) - reach;
        const rough_t behind = fmax(last_right, (rough_t)0) + fmax(last_below, (rough_t)0) + reach;
        const uint from = clamp(ceil(seen + before), (rough_t)0, limit);
        const uint end = clamp(floor(seen + behind) + 1, (rough_t)0, limit);
        real_t part[TILE][COLUMNS];
        for (uint p = 0; p < high * wide; ++p)
            for (uint c = 0; c < COLUMNS; ++c) part[p][c] = 0;
        for (uint ray = angle * pixels + from; ray < angle * pixels + end; ++ray) {
            const uint2 numbers = rays[ray];
            const uint steep = numbers.x & 1;
            const uint line = steep ? row : column;
            const uint target = steep ? column : row;
            const uint distance = numbers.y + line * numbers.x - (target << RAY_BITS);
            // From a pixel to its neighbours the ray comes nearer by one pixel, or by its slope.
            const uint to_right = steep ? (uint)-RAY_ONE : numbers.x;
            const uint to_below = steep ? numbers.x : (uint)-RAY_ONE;
            for (uint c = 0; c < COLUMNS; ++c) {
                const real_t reading = matrix->values[ray] * vector_at(vector, ray, c);
                for (uint p = 0; p < high; ++p)
                    for (uint q = 0; q < wide; ++q) {
                        const int weight = RAY_ONE - (int)abs((int)(distance + p * to_below + q * to_right));
                        const real_t share = (real_t)weight * reading;
                        __private real_t* held = &part[p * wide + q][c];
                        *held = weight > 0 ? *held + share : *held;
                    }
            }
        }
        for (uint p = 0; p < high * wide; ++p)
            for (uint c = 0; c < COLUMNS; ++c) sum[p][c] = acc_add(sum[p][c], acc_real(part[p][c]));
    }
}

// Pixel i alone.
void walk_pixel(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint first, uint lanes)
{
    const uint row = i / matrix->rows[0];
    walk_pixels((acc_t(*)[COLUMNS])sum, matrix, vector, row, i - row * (size_t)matrix->rows[0], 1, 1, first, lanes);
}
