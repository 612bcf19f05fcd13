// The product of a conjugate gradient iteration. Joined after row.cl and cg_parts.cl.

// q = A p for chunks first_chunk .. last_chunk of `groups`, with their sums of p.q and q.q. `scratch` has 2 WG places.
void cg_multiply(const matrix_t* matrix, __global const real_t* p, __global real_t* q, uint n, uint chunk, uint groups,
                 uint first_chunk, uint last_chunk, __global acc_t* sums, __local acc_t* scratch)
{
    vector_t vector;
    read_vector(&vector, p);
    result_t result;
    result.y = q;
    result.b = 0;
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    __local acc_t* run = scratch + slot * CHUNK_ITEMS;
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        if (ROWS_APART)
            for (uint g = base; g < min(base + SIDE_BY_SIDE, last_chunk); ++g)
                chunk_product(&result, matrix, &vector, g * (size_t)chunk, min((g + 1) * (size_t)chunk, (size_t)n), scratch);
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
        // If the item that adds a row also holds its lane of the dot products, all stays in registers.
        acc_t pq[ITEM_LANES], qq[ITEM_LANES];
        for (uint j = 0; j < ITEM_LANES; ++j) pq[j] = qq[j] = acc_real(0);
        for (size_t block = first; block < last; block += LANES)
            for (uint j = 0; j < ITEM_LANES; ++j) {
                const size_t i = block + place + j * WG;
                if (i >= last) continue;
                acc_t sum[1] = {acc_real(0)};
                if (!ROWS_APART) {
                    row_add(sum, matrix, &vector, i, 0, 1);
                    q[i] = acc_to_real(sum[0]);
                }
                const real_t value = ROWS_APART ? q[i] : acc_to_real(sum[0]);
                pq[j] = acc_add(pq[j], acc_product(p[i], value));
                qq[j] = acc_add(qq[j], acc_product(value, value));
            }
        acc_t held[2];
        held[0] = item_fold(pq, ITEM_LANES);
        held[1] = item_fold(qq, ITEM_LANES);
        run_folds(held, 2, place, CHUNK_ITEMS, run);
        if (place == 0 && mine < last_chunk) {
            sums[mine] = held[0];
            sums[groups + mine] = held[1];
        }
    }
}
