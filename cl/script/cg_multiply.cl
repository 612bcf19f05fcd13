// The product of a conjugate gradient iteration. Joined after row.cl and cg_parts.cl.
//
// Required macro:
//   ROWS_TOGETHER  rows of one item whose loads are under way together, if a group has several items; a power of two

// All rows are multiplied before their dot products, which then read them from q.
#define PRODUCT_FIRST (ROWS_APART || LIES_SIDE_BY_SIDE(FORMAT))
#define BATCH (WG == 1 ? 1 : ROWS_TOGETHER)
// Lanes of an item, or more rows than that: those of one lane follow each other.
#define SPAN (ITEM_LANES > BATCH ? ITEM_LANES : BATCH)

// Adds p.q and q.Mq of a chunk to the lanes, for one item: elements that lie side by side, which compilers make vector instructions of.
static void one_item_dots(acc_t* pq, acc_t* qq, __global const real_t* m, __global const real_t* p, __global const real_t* q,
                          size_t first, uint count)
{
    for (uint block = 0; block < count; block += ITEM_LANES) {
        const size_t from = first + block;
        const uint lanes = min((uint)ITEM_LANES, count - block);
        for (uint l = 0; l < lanes; ++l) {
            const real_t value = q[from + l];
            pq[l] = acc_add(pq[l], acc_product(p[from + l], value));
            qq[l] = acc_add(qq[l], acc_product(value, DIAGONAL ? m[from + l] * value : value));
        }
    }
}

// q = A p for chunks first_chunk .. last_chunk of `groups`, with their sums of p.q and q.Mq. `scratch` has 2 WG places.
static void cg_multiply(const matrix_t* matrix, __global const real_t* m, __global const real_t* p, __global real_t* q, uint n,
                        uint chunk, uint groups, uint first_chunk, uint last_chunk, __global acc_t* sums,
                        __local acc_t* scratch)
{
    vector_t vector;
    read_vector(&vector, p);
    result_t result;
    result.y = q;
    result.b = 0;
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    __local acc_t* run = scratch + slot * CHUNK_ITEMS;
    if (PRODUCT_FIRST) chunks_product(&result, matrix, &vector, n, chunk, first_chunk, last_chunk, scratch);
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const uint count = mine < last_chunk ? min((size_t)chunk, n - first) : 0;
        // If the item that adds a row also holds its lane of the dot products, all stays in registers.
        acc_t pq[ITEM_LANES], qq[ITEM_LANES];
        for (uint j = 0; j < ITEM_LANES; ++j) pq[j] = qq[j] = acc_real(0);
        if (WG == 1 ? PRODUCT_FIRST : 0) {
            one_item_dots(pq, qq, m, p, q, first, count);
            sums[mine] = item_fold(pq, ITEM_LANES);
            sums[groups + mine] = item_fold(qq, ITEM_LANES);
            continue;
        }
        for (uint block = 0; block < count; block += SPAN * CHUNK_ITEMS)
            for (uint j = 0; j < SPAN; j += BATCH) {
                const uint begin = block + place + j * CHUNK_ITEMS;
                if (BATCH == 1 && begin >= count) continue;
                // Beyond the last row that one again, whose sum nobody takes: without a branch, loads of the next batch move up.
                uint at[BATCH];
                acc_t sum[BATCH][1];
                real_t own[BATCH], weight[BATCH];
                for (uint k = 0; k < BATCH; ++k) {
                    at[k] = (uint)first + min(begin + k * CHUNK_ITEMS, count - 1);
                    own[k] = p[at[k]];
                    if (DIAGONAL) weight[k] = m[at[k]];
                    sum[k][0] = acc_real(0);
                }
                if (!PRODUCT_FIRST) {
                    if (WALKED(FORMAT)) {
                        size_t start[BATCH];
                        uint length[BATCH];
                        for (uint k = 0; k < BATCH; ++k) row_extent(matrix, at[k], &start[k], &length[k]);
                        for (uint k = 0; k < BATCH; ++k)
                            walk(sum[k], matrix, &vector, at[k], start[k], entry_step(matrix), length[k], 0, 1);
                    } else
                        for (uint k = 0; k < BATCH; ++k) row_add(sum[k], matrix, &vector, at[k], 0, 1);
                }
                for (uint k = 0; k < BATCH; ++k) {
                    if (begin + k * CHUNK_ITEMS >= count) continue;
                    const uint lane = (j + k) & (ITEM_LANES - 1);
                    if (!PRODUCT_FIRST) q[at[k]] = acc_to_real(sum[k][0]);
                    const real_t value = PRODUCT_FIRST ? q[at[k]] : acc_to_real(sum[k][0]);
                    pq[lane] = acc_add(pq[lane], acc_product(own[k], value));
                    qq[lane] = acc_add(qq[lane], acc_product(value, DIAGONAL ? weight[k] * value : value));
                }
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
