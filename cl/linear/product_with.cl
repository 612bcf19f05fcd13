// Products of a stored matrix, each combined with a vector as it is stored.
//
// Required macro: BLEND, FROM, PLUS, MINUS or TIMES

// y = A x op b for COLUMNS vectors, or y = b - A x. Groups own rows as in multiply.
// Bytes: those of multiply and b once.
__kernel GROUP
void multiply_with(uint n, uint chunk, uint stride, __global const uint* restrict rows,
                   __global const uint* restrict indices, __global const real_t* restrict values,
                   __global const real_t* restrict x, __global const real_t* restrict b, __global real_t* restrict y)
{
    __local acc_t scratch[COLUMNS * WG];
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    vector_t vector;
    read_vector(&vector, x);
    result_t result;
    result.y = y;
    result.b = b;
#if WG > 1 && FORMAT == ADAPTIVE
    spread_product(&result, &matrix, &vector, n, chunk, scratch);
#else
    const size_t first = get_group_id(0) * (size_t)chunk;
    chunk_product(&result, &matrix, &vector, first, min(first + chunk, (size_t)n), scratch);
#endif
}
