// Residuals of a stored matrix, for one or several vectors.

// r = b - A x for COLUMNS vectors, with the chunk sums of r.r: sums[place + c * groups + g].
// Bytes: those of multiply and b once.
__kernel GROUP
void residual(uint n, uint chunk, uint stride, uint place, __global const uint* restrict rows,
              __global const uint* restrict indices, __global const real_t* restrict values,
              __global const real_t* restrict x, __global const real_t* restrict b, __global real_t* r,
              __global acc_t* restrict sums)
{
    __local acc_t scratch[COLUMNS * WG];
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    vector_t vector;
    read_vector(&vector, x);
    const size_t first = get_group_id(0) * (size_t)chunk;
    const size_t last = min(first + chunk, (size_t)n);
    result_t result;
    result.y = r;
    result.b = b;
    chunk_product(&result, &matrix, &vector, first, last, scratch);
    const uint group = get_group_id(0);
    store_dots(r, r, n, chunk, get_num_groups(0), group, group + 1, sums + place, scratch);
}
