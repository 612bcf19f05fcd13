// Removal of a direction z from a vector x: x - (z.x / z.z) z, by two launches. Joined after fold.cl.
//
// Required macro:
//   CONSTANT  1: all elements of z are 1, and none is read

// sums[g] = the sum of chunk g of x, for chunks first_chunk .. last_chunk: store_dots with ones. `scratch` has WG places.
static void store_sums(__global const real_t* x, uint n, uint chunk, uint first_chunk, uint last_chunk, __global acc_t* sums,
                       __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
        acc_t lane[ITEM_LANES];
        for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
        for (size_t block = first; block < last; block += LANES)
            for (uint j = 0; j < ITEM_LANES; ++j) {
                const size_t i = block + place + j * WG;
                if (i < last) lane[j] = acc_add(lane[j], acc_real(x[i]));
            }
        acc_t held = item_fold(lane, ITEM_LANES);
        run_folds(&held, 1, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
        if (place == 0 && mine < last_chunk) sums[mine] = held;
    }
}

// Chunk sums of z.x. Group g owns chunks g * per_group .. (g + 1) * per_group of `groups`. Bytes: z and x read.
__kernel GROUP
void component_sums(uint n, uint chunk, uint groups, uint per_group, __global const real_t* restrict z,
                    __global const real_t* restrict x, __global acc_t* restrict sums)
{
    __local acc_t scratch[WG];
    const uint first_chunk = get_group_id(0) * per_group;
    const uint last_chunk = min(first_chunk + per_group, groups);
    if (CONSTANT) store_sums(x, n, chunk, first_chunk, last_chunk, sums, scratch);
    else store_dots(z, x, n, chunk, groups, first_chunk, last_chunk, sums, scratch);
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
        x[i] = acc_to_real(acc_sub(acc_real(x[i]), CONSTANT ? factor : acc_mul(factor, acc_real(z[i]))));
    if (get_group_id(0) == 0 && get_local_id(0) == 0) removed[place] = share;
}
