// Removal of a direction z from a vector x: x - (z.x / z.z) z, by two launches. Joined after fold.cl.

// Chunk sums of z.x. Group g owns chunks g * per_group .. (g + 1) * per_group of `groups`. Bytes: z and x read.
__kernel GROUP
void component_sums(uint n, uint chunk, uint groups, uint per_group, __global const real_t* restrict z,
                    __global const real_t* restrict x, __global acc_t* restrict sums)
{
    __local acc_t scratch[WG];
    const uint first_chunk = get_group_id(0) * per_group;
    const uint last_chunk = min(first_chunk + per_group, groups);
    store_dots(z, x, n, chunk, groups, first_chunk, last_chunk, sums, scratch);
}

// x -= (s inverse) z with the sum s of the chunk sums, formed in the wide sum and rounded once; removed[place] = s. Every group
// folds the chunk sums for itself. Bytes: z read, x read and written.
__kernel GROUP
void remove_component(uint n, uint chunk, uint groups, uint per_group, uint place, __global const acc_t* restrict inverse,
                      __global const acc_t* restrict sums, __global const real_t* restrict z, __global real_t* restrict x,
                      __global acc_t* restrict removed)
{
    __local acc_t scratch[WG];
    const acc_t share = fold_sums(sums, groups, scratch);
    const acc_t factor = acc_mul(share, inverse[place]);
    const uint first_chunk = get_group_id(0) * per_group;
    const uint last_chunk = min(first_chunk + per_group, groups);
    const size_t last = min(last_chunk * (size_t)chunk, (size_t)n);
    for (size_t i = first_chunk * (size_t)chunk + get_local_id(0); i < last; i += WG)
        x[i] = acc_to_real(acc_sub(acc_real(x[i]), acc_mul(factor, acc_real(z[i]))));
    if (get_group_id(0) == 0 && get_local_id(0) == 0) removed[place] = share;
}
