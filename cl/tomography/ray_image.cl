// Copies of images that rays are traced through, and sums of those that rays were spread over.

// Stores both numbers at once, or one by one, because Oclgrind 21 stores nothing known before the halves of a pair.
static void store_pair(__global real_t* pairs, uint at, real_t first, real_t second)
{
#if PTX
    ((__global real2_t*)pairs)[at] = (real2_t)(first, second);
#else
    pairs[2 * (size_t)at] = first;
    pairs[2 * (size_t)at + 1] = second;
#endif
}

// images = two copies of column `column` of x. Group g makes places g * share .. (g + 1) * share of each.
// Bytes: 4 side^2 real_t read, as many written.
__kernel GROUP
void copy_image(uint side, uint share, uint columns, uint column, __global const real_t* restrict x,
                __global real_t* restrict images)
{
    const uint pitch = side + 1;
    const uint n = side * pitch;
    __global real_t* transposed = images + 2 * (size_t)n;
    __global const real_t* image = x + column;
    const uint first = get_group_id(0) * share;
    for (uint p = first + get_local_id(0); p < min(first + share, n); p += WG) {
        const uint line = p / pitch;
        const uint place = p - line * pitch;
        const size_t right = (line * side + place) * (size_t)columns;
        const real_t left_one = place > 0 ? image[right - columns] : 0;
        const real_t right_one = place < side ? image[right] : 0;
        store_pair(images, p, left_one, right_one - left_one);
        // Neighbouring items read neighbouring pixels here too.
        const uint row = p / side;
        const uint line_across = p - row * side;
        const size_t below = p * (size_t)columns;
        const real_t upper_one = row > 0 ? image[below - side * columns] : 0;
        const real_t lower_one = row < side ? image[below] : 0;
        store_pair(transposed, line_across * pitch + row, upper_one, lower_one - upper_one);
    }
}

// Column `column` of x = the sum of `count` sheets: added to `sums` of those before unless they are the first, and put there
// unless they are the last. Group g owns pixels g * share .. (g + 1) * share of n.
// Bytes: count n real_t, 8 n for sums that are read or written, n real_t.
__kernel GROUP
void add_sheets(uint n, uint share, uint columns, uint column, uint count, uint are_first, uint are_last,
                __global const real_t* restrict partial, __global acc_t* restrict sums, __global real_t* restrict x)
{
    const uint first = get_group_id(0) * share;
    for (uint p = first + get_local_id(0); p < min(first + share, n); p += WG) {
        acc_t total = are_first ? acc_real(0) : sums[p];
        for (uint k = 0; k < count; ++k) total = acc_add(total, acc_real(partial[k * (size_t)n + p]));
        if (are_last) x[p * (size_t)columns + column] = acc_to_real(total);
        else sums[p] = total;
    }
}
