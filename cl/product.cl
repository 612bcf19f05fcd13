// Products of a stored matrix with one or several vectors.

// y = A x for COLUMNS vectors. Group g owns rows g * chunk .. (g + 1) * chunk, or what spread_product
// says. If STAGED, each group first copies all of x, of `cols` elements, to local memory.
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
#if STAGED > 0
    stage(&vector, cols, staged);
#endif
    result_t result;
    result.y = y;
    result.b = 0;
    const size_t first = get_group_id(0) * (size_t)chunk;
    const size_t last = min(first + chunk, (size_t)n);
#if WG > 1 && FORMAT == ADAPTIVE
    spread_product(&result, &matrix, &vector, n, chunk, scratch);
#else
    chunk_product(&result, &matrix, &vector, first, last, scratch);
#endif
}
