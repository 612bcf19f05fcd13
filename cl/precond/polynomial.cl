// Steps of polynomials in a stored matrix. Joined after row.cl.

// before = z + keep (z - before) + step m (b - A z), element by element in the wide sum, with w = b - A z. Group g owns rows
// g * chunk .. (g + 1) * chunk.
// Bytes: those of multiply, and b, m and z once, before twice, w twice.
__kernel GROUP
void polynomial_step(uint n, uint chunk, uint stride, real_t keep, real_t step, __global const uint* restrict rows,
                     __global const uint* restrict indices, __global const real_t* restrict values,
                     __global const real_t* restrict z, __global const real_t* restrict b, __global const real_t* restrict m,
                     __global real_t* before, __global real_t* w)
{
    __local acc_t scratch[COLUMNS * WG];
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    vector_t vector;
    read_vector(&vector, z);
    const size_t first = get_group_id(0) * (size_t)chunk;
    const size_t last = min(first + chunk, (size_t)n);
    result_t result;
    result.y = w;
    result.b = b;
    chunk_product(&result, &matrix, &vector, first, last, scratch);
    // Other items computed some of these.
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        const acc_t kept = acc_product(keep, z[i] - before[i]);
        const acc_t stepped = acc_mul(acc_product(step, m[i]), acc_real(w[i]));
        before[i] = acc_to_real(acc_add(acc_real(z[i]), acc_add(kept, stepped)));
    }
}
