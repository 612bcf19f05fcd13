// Sweeps over the rows of a triangle, level by level: rows of one level need only those of earlier ones. Joined after row.cl.
// Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, sections 4.1, 11.6 and 12.4.
//
//   forward    (D / omega + L) z = x                  z_i = (x_i - sum of a_ij z_j over L) omega / a_ii
//   backward   (D / omega + U) z' = (2 / omega - 1) D z   z'_i = (2 - omega) z_i - (omega / a_ii) sum of a_ij z'_j over U
//
// Rows of the triangle lie in the order of their levels: `list` names them, `scale` holds omega / a_ii.
//
// Required macro:
//   OPERATION   0 forward, 1 backward, in place

// Levels first_level .. last_level, each from bounds[level] to bounds[level + 1] of the list: one by many groups, or
// several by one group. `keep` is 2 - omega.
// Bytes: the entries of these rows, and what they gather; x (forward) or z read, z written.
__kernel GROUP
void sweep(uint first_level, uint last_level, real_t keep, __global const uint* restrict bounds,
           __global const uint* restrict list, __global const uint* restrict offsets,
           __global const uint* restrict indices, __global const real_t* restrict values,
           __global const real_t* restrict scale, __global const real_t* restrict x, __global real_t* z)
{
    matrix_t matrix;
    open_matrix(&matrix, offsets, indices, values, 0);
    vector_t vector;
    read_vector(&vector, z);
    for (uint level = first_level; level < last_level; ++level) {
        const uint begin = bounds[level];
        const uint end = bounds[level + 1];
        const uint span = (end - begin + get_num_groups(0) - 1) / get_num_groups(0);
        const uint first = begin + get_group_id(0) * span;
        for (uint at = first + get_local_id(0); at < min(first + span, end); at += WG) {
            acc_t sum[1] = {acc_real(0)};
            row_add(sum, &matrix, &vector, at, 0, 1);
            const uint i = list[at];
            const acc_t own = acc_real(scale[at]);
            acc_t value;
            if (OPERATION == 0) value = acc_mul(acc_sub(acc_real(x[i]), sum[0]), own);
            else value = acc_sub(acc_product(keep, z[i]), acc_mul(own, sum[0]));
            z[i] = acc_to_real(value);
        }
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    }
}
