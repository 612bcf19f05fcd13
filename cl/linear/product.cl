// Products of a stored matrix with one or several vectors.
//
// Required macro:
//   IN_PARTS   1 if STAGED places hold a part of a longer vector

#if STAGED > 0 && IN_PARTS
// Rows first .. last in a format that is stored by columns, an item to a row: a group copies x to local memory part by part, and the sum of a row
// goes on from one part to the next. Entries add in the order of their columns.
// Source: stock-koch-2009, LocalMemory for A x.
static void product_in_parts(const result_t* result, const matrix_t* matrix, __global const real_t* x, uint cols,
                             size_t first, size_t last, __local real_t* part)
{
    const uint together = STAGED / COLUMNS;
    const size_t step = entry_step(matrix);
    for (size_t base = first; base < last; base += WG) {
        const size_t i = base + get_local_id(0);
        size_t at = 0;
        uint left = 0;
        if (i < last) row_extent(matrix, i, &at, &left);
        acc_t sum[COLUMNS];
        for (uint c = 0; c < COLUMNS; ++c) sum[c] = acc_real(0);
        for (size_t begin = 0; begin < cols; begin += together) {
            const size_t end = min(begin + together, (size_t)cols);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint j = get_local_id(0); j < (end - begin) * COLUMNS; j += WG) part[j] = x[begin * COLUMNS + j];
            barrier(CLK_LOCAL_MEM_FENCE);
            uint done = AT_ONCE;
            while (left > 0 && done == AT_ONCE) {
                real_t value[AT_ONCE];
                index_t column[AT_ONCE];
                for (uint j = 0; j < AT_ONCE; ++j) {
                    column[j] = j < left ? column_at(matrix, at + j * step, i) : cols;
                    value[j] = j < left ? value_at(matrix, at + j * step) : 0;
                }
                // Entries before the end of the part are added. Padding ends a row.
                done = 0;
                for (uint j = 0; j < AT_ONCE; ++j) {
                    if (done < j || column[j] >= end) continue;
                    ++done;
                    if (PADDED(KIND(matrix)) && isnan(value[j])) continue;
                    for (uint c = 0; c < COLUMNS; ++c)
                        sum[c] = acc_add(sum[c], acc_product(value[j], part[(column[j] - begin) * COLUMNS + c]));
                }
                at += done * step;
                left -= done;
            }
        }
        if (i < last) store_row(result, sum, i);
    }
}
#endif

// y = A x for COLUMNS vectors. Group g owns rows g * chunk .. (g + 1) * chunk, or what spread_product
// says. If STAGED, each group first copies all of x, of `cols` elements, to local memory, or if IN_PARTS one part after another.
// Bytes: (sizeof(real_t) + 4) nnz + 4 rows for the matrix, COLUMNS (cols + rows) real_t; x once for each group if STAGED, from a cache.
__kernel GROUP
void multiply(uint n, uint chunk, uint stride, uint cols, __global const uint* restrict rows,
              __global const uint* restrict indices, __global const real_t* restrict values,
              __global const real_t* restrict x, __global real_t* restrict y)
{
    __local acc_t scratch[COLUMNS * WG];
#if STAGED > 0
    __local real_t staged[STAGED];
#endif
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    vector_t vector;
    read_vector(&vector, x);
#if STAGED > 0 && !IN_PARTS
    stage(&vector, cols, staged);
#endif
    result_t result;
    result.y = y;
    result.b = 0;
    const size_t first = get_group_id(0) * (size_t)chunk;
    const size_t last = min(first + chunk, (size_t)n);
#if STAGED > 0 && IN_PARTS
    product_in_parts(&result, &matrix, x, cols, first, last, staged);
#elif WG > 1 && FORMAT == ADAPTIVE
    spread_product(&result, &matrix, &vector, n, chunk, scratch);
#else
    chunk_product(&result, &matrix, &vector, first, last, scratch);
#endif
}
