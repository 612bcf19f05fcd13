// Launches over an image, for its total variation by dual variables. Joined after recurrence.cl and dual.cl.

// `n` pixels, `width` in a row, in `chunks` chunks of `chunk`, `per_group` of them for each group; the slot whose status and
// registers are read; the first register; where the chunk sums go.
typedef struct { uint n, width, chunk, chunks, per_group, slot, first, place; } shape_t;

// p and q a step up: p += step D (2 x - x_old), then into the disc of radius LIMIT; q += step e.D (2 x - x_old), then into its
// limits. Sums up the squares of their changes. Group g owns chunks g * per_group .. of `chunks`.
// Bytes: x, x_old, p and q read, p and q written.
__kernel GROUP
void variation_ascend(shape_t shape, __global const real_t* restrict x, __global const real_t* restrict x_old,
                      __global real_t* restrict px, __global real_t* restrict py, __global real_t* restrict q,
                      __global const acc_t* restrict registers, __global const int* restrict status, __global acc_t* sums)
{
    __local acc_t scratch[WG];
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    const uint first_chunk = get_group_id(0) * shape.per_group;
    const uint last_chunk = min(first_chunk + shape.per_group, shape.chunks);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (status[(shape.slot * COLUMNS + c) * STATES] != RUNNING) continue;
        const dual_weights_t weights = DUAL_WEIGHTS(registers + (shape.slot * COLUMNS + c) * REGISTERS + shape.first);
        for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
            const uint mine = base + slot;
            const size_t first = mine * (size_t)shape.chunk;
            const size_t last = mine < last_chunk ? min(first + shape.chunk, (size_t)shape.n) : first;
            acc_t lane[ITEM_LANES];
            for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
            for (size_t block = first; block < last; block += LANES) {
                const uint lanes = WG == 1 ? min((size_t)ITEM_LANES, last - block) : ITEM_LANES;
                for (uint j = 0; j < lanes; ++j) {
                    const size_t i = block + place + j * WG;
                    if (i >= last) continue;
                    lane[j] = acc_add(lane[j], ascend_at(shape.n, shape.width, weights, i, c, x, x_old, px, py, q));
                }
            }
            acc_t held[1];
            held[0] = item_fold(lane, ITEM_LANES);
            run_folds(held, 1, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
            if (place == 0 && mine < last_chunk) sums[shape.place + c * (size_t)shape.chunks + mine] = held[0];
        }
    }
}

// g -= D'p + (e.D)'q.
// Bytes: p, q and g read, g written.
__kernel GROUP
void variation_subtract(shape_t shape, __global const real_t* restrict px, __global const real_t* restrict py,
                        __global const real_t* restrict q, __global real_t* restrict g,
                        __global const acc_t* restrict registers, __global const int* restrict status)
{
    const uint first_chunk = get_group_id(0) * shape.per_group;
    const size_t first = first_chunk * (size_t)shape.chunk;
    const size_t last = min((first_chunk + shape.per_group) * (size_t)shape.chunk, (size_t)shape.n);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (status[(shape.slot * COLUMNS + c) * STATES] != RUNNING) continue;
        const dual_weights_t weights = DUAL_WEIGHTS(registers + (shape.slot * COLUMNS + c) * REGISTERS + shape.first);
        for (size_t i = first + get_local_id(0); i < last; i += WG)
            subtract_at(shape.n, shape.width, weights, i, c, px, py, q, g);
    }
}
