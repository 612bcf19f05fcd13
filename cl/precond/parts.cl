// Inverse factors of the parts of a symmetric positive definite matrix (BAINV), a part by a group. Joined after common.cl.
// Source: dedecek-2013, chapter 4 and algorithm 6.
//
//   for i = 0 .. m-1:                                  Z is the identity at first
//       p_j = <row i of the part, z_j>   for j >= i
//       z_j = z_j - (p_j / p_i) z_i      for j > i
//
// Rows of the matrix are numbered part by part, columns within their part. Row l of Z has the columns l to m-1, packed one row after
// another. Sums run over ascending rows in acc_t, entries of Z are rounded: the bits of the host.

#define ROW_ITEMS (WG < 32 ? WG : 32) // items that share a row

// Row l of a packed triangle of m rows: its column j is place[j].
static __global real_t* triangle_row(__global real_t* triangle, size_t l, size_t m)
{
    return triangle + l * m - l * (l + 1) / 2;
}

// Pivots go to `pivots`. `failed` becomes 1 if one is not positive.
// Bytes: for a part of m rows about m^3 / 6 entries of Z read and written, and m p entries of Z for p entries of a row of the matrix.
__kernel GROUP
void invert_parts(uint parts, __global const uint* restrict starts, __global const uint* restrict bases,
                  __global const uint* restrict offsets, __global const uint* restrict indices,
                  __global const real_t* restrict entries, __global real_t* triangles, __global acc_t* sums,
                  __global acc_t* pivots, __global int* failed)
{
    const uint item = get_local_id(0);
    for (uint part = get_group_id(0); part < parts; part += get_num_groups(0)) {
        const uint begin = starts[part];
        const uint m = starts[part + 1] - begin;
        __global real_t* triangle = triangles + bases[part];
        __global acc_t* p = sums + begin;
        for (uint l = item / ROW_ITEMS; l < m; l += WG / ROW_ITEMS) {
            __global real_t* row = triangle_row(triangle, l, m);
            for (uint j = l + item % ROW_ITEMS; j < m; j += ROW_ITEMS) row[j] = j == l ? 1 : 0;
        }
        for (uint i = 0; i < m; ++i) {
            barrier(CLK_GLOBAL_MEM_FENCE);
            for (uint j = i + item; j < m; j += WG) {
                acc_t sum = acc_real(0);
                for (uint k = offsets[begin + i]; k < offsets[begin + i + 1]; ++k) {
                    const uint l = indices[k];
                    if (l <= j) sum = acc_add(sum, acc_product(entries[k], triangle_row(triangle, l, m)[j]));
                }
                p[j] = sum;
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
            const acc_t pivot = p[i];
            const int good = acc_less(acc_real(0), pivot) && acc_finite(pivot);
            if (!good) {
                if (item == 0) failed[0] = 1;
                break;
            }
            if (item == 0) pivots[begin + i] = pivot;
            for (uint j = i + 1 + item; j < m; j += WG) p[j] = acc_div(p[j], pivot);
            barrier(CLK_GLOBAL_MEM_FENCE);
            for (uint l = item / ROW_ITEMS; l <= i; l += WG / ROW_ITEMS) {
                __global real_t* row = triangle_row(triangle, l, m);
                const real_t own = row[i];
                if (own == 0) continue;
                for (uint j = i + 1 + item % ROW_ITEMS; j < m; j += ROW_ITEMS)
                    row[j] = acc_to_real(acc_sub(acc_real(row[j]), acc_mul(p[j], acc_real(own))));
            }
        }
    }
}
