// A scanner's matrix that is never stored: rays are traced through the image as they are needed (Joseph's method, see
// src/imaging/scanner.rs), and the transposed product finds, for each pixel, the rays that cross it.
//
//   rows     side, detector pixels, angles, 0; then for each ray two 64-bit numbers in fixed point with 32 binary
//            places: where the ray meets line 0 of the image, and its slope, pixels sideways per line. Bit 0 of the
//            slope: 1 for a steep ray, whose lines are image rows, 0 for a flat one, whose lines are image columns.
//   indices  first line of each ray inside the image in the low half, the one after its last in the high half
//   values   length of each ray within a line, padded to a multiple of four; then for each angle a0 a1 a2 m b0 b1 b2 0:
//            pixel (row i, column j) is seen at detector place (a0 + a1 j + a2 i) / (b0 + b1 j + b2 i), and m tells which
//            rays there are: 1 steep ones, 2 flat ones, 3 both
//
// Places on the lines are integers and their fractions exact, so host and devices agree on every weight.

#define RAY_HEADER 4
#define RAYS_AT_ONCE (WG > 1 ? 4 : 1) // rays of a pixel whose loads are under way together
#define SLACK (rough_t)0.02 // detector pixels that the search is wider than it need be

long ray_number(const matrix_t* matrix, size_t i, uint which)
{
    return ((__global const long*)(matrix->rows + RAY_HEADER))[2 * i + which];
}

int is_steep(const matrix_t* matrix, size_t i) { return ray_number(matrix, i, 1) & 1; }

// The fraction of a place, as a weight.
real_t fraction(long place)
{
    return sizeof(real_t) == 4 ? (real_t)((uint)place >> 8) / (real_t)(1 << 24) : (real_t)(uint)place / (real_t)4294967296.0;
}

// Lines first, first + lanes, ... of ray i: x = (1 - f) x[low] + f x[low + 1] on each, times the length in a line.
void walk_ray(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint first, uint lanes)
{
    const uint side = matrix->rows[0];
    const long start = ray_number(matrix, i, 0);
    const long slope = ray_number(matrix, i, 1);
    const uint range = matrix->indices[i];
    const uint last = range >> 16;
    const size_t along = slope & 1 ? side : 1;  // from line to line
    const size_t across = slope & 1 ? 1 : side; // from pixel to pixel within a line
    acc_t total[COLUMNS];
    for (uint c = 0; c < COLUMNS; ++c) total[c] = acc_real(0);
    for (uint line = (range & 0xffff) + first; line < last; line += AT_ONCE * lanes) {
        real_t part[AT_ONCE];
        size_t pixel[AT_ONCE];
        int has_low[AT_ONCE], has_high[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            const uint here = line + j * lanes;
            const long place = start + here * slope;
            const int low = place >> 32;
            part[j] = fraction(place);
            pixel[j] = here * along + low * (long)across;
            has_low[j] = here < last && low >= 0 && low < (int)side;
            has_high[j] = here < last && low >= -1 && low < (int)side - 1;
        }
        for (uint c = 0; c < COLUMNS; ++c) {
            real_t x[AT_ONCE], next[AT_ONCE];
            for (uint j = 0; j < AT_ONCE; ++j) {
                x[j] = has_low[j] ? vector_at(vector, pixel[j], c) : 0;
                next[j] = has_high[j] ? vector_at(vector, pixel[j] + across, c) : 0;
            }
            for (uint j = 0; j < AT_ONCE; ++j)
                total[c] = acc_add(total[c], acc_real((1 - part[j]) * x[j] + part[j] * next[j]));
        }
    }
    for (uint c = 0; c < COLUMNS; ++c)
        sum[c] = acc_add(sum[c], acc_mul(acc_real(matrix->values[i]), total[c]));
}

// Angles first, first + lanes, ... of pixel i: all rays that pass within one pixel of it on its line. The search for
// them is rough and wide, the test of each exact, so that no bit depends on how a device divides.
void walk_pixel(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint first, uint lanes)
{
    const uint side = matrix->rows[0];
    const uint pixels = matrix->rows[1];
    const uint angles = matrix->rows[2];
    const int row = i / side;
    const int column = i - row * (size_t)side;
    const rough_t limit = pixels;
    __global const long2* rays = (__global const long2*)(matrix->rows + RAY_HEADER);
    __global const real4_t* views = (__global const real4_t*)(matrix->values + ((size_t)angles * pixels + 3) / 4 * 4);
    for (uint angle = first; angle < angles; angle += lanes) {
        const real4_t along = views[2 * angle];
        const real4_t towards = views[2 * angle + 1];
        const rough_t nearness =
            native_recip((rough_t)towards.x + (rough_t)towards.y * column + (rough_t)towards.z * row);
        const rough_t seen = ((rough_t)along.x + (rough_t)along.y * column + (rough_t)along.z * row) * nearness;
        // How far its neighbours are seen from there, in the first order, and more than the second order beyond it.
        const rough_t right = (rough_t)along.y - seen * (rough_t)towards.y;
        const rough_t below = (rough_t)along.z - seen * (rough_t)towards.z;
        const rough_t aside = fabs(right * nearness) * (1 + 2 * fabs((rough_t)towards.y * nearness));
        const rough_t under = fabs(below * nearness) * (1 + 2 * fabs((rough_t)towards.z * nearness));
        const rough_t wide = along.w == 1 ? aside : along.w == 2 ? under : fmax(aside, under);
        const int from = clamp(ceil(seen - wide - SLACK), (rough_t)0, limit);
        const int end = clamp(floor(seen + wide + SLACK) + 1, (rough_t)0, limit);
        for (int k = from; k < end; k += RAYS_AT_ONCE) {
            long2 numbers[RAYS_AT_ONCE];
            real_t length[RAYS_AT_ONCE], weight[RAYS_AT_ONCE];
            const size_t ray = (size_t)angle * pixels + k;
            for (int j = 0; j < RAYS_AT_ONCE; ++j) {
                numbers[j] = k + j < end ? rays[ray + j] : (long2)(0, 0);
                length[j] = k + j < end ? matrix->values[ray + j] : 0;
            }
            for (int j = 0; j < RAYS_AT_ONCE; ++j) {
                const int line = numbers[j].y & 1 ? row : column;
                const int target = numbers[j].y & 1 ? column : row;
                const long place = numbers[j].x + line * numbers[j].y;
                const int nearest = place >> 32;
                const real_t part = fraction(place);
                weight[j] = nearest == target ? 1 - part : nearest == target - 1 ? part : 0;
                if (k + j >= end) weight[j] = 0;
            }
            for (uint c = 0; c < COLUMNS; ++c) {
                real_t reading[RAYS_AT_ONCE];
                for (int j = 0; j < RAYS_AT_ONCE; ++j)
                    reading[j] = k + j < end ? vector_at(vector, ray + j, c) : 0;
                for (int j = 0; j < RAYS_AT_ONCE; ++j)
                    if (weight[j] != 0) sum[c] = acc_add(sum[c], acc_real(weight[j] * (length[j] * reading[j])));
            }
        }
    }
}
