// Sweeps over the rows of incomplete factors: each row anew, exactly, as if those it needs were known. Joined after common.cl.
// Source: E. Chow, A. Patel, "Fine-grained parallel incomplete LU factorization", SIAM J. Sci. Comput. 37 (2015), algorithm 2, with the
// entries of a row one after another.
//
//   s = a_ik - sum over j < min(i, k) of l_ij u_jk      over the places of row i and of column k
//   LU        l_ik = s / u_kk  (k < i),   u_ik = s  (k >= i)
//   Cholesky  l_ik = s / l_kk  (k < i),   l_ii = sqrt(s),   u_jk = l_kj
//
// Required macros:
//   CHOLESKY   1: rows stand for columns, and entries above the diagonal are left alone; 0: LU
//   CLASSES    row i is of class i % CLASSES

// Rows of class `kind`, of `count`: l_ij of the row itself and other rows of earlier classes from `after`, the rest from `before`.
// Column k has its entries in rows members[columns[k]] .., at places[] of the values. Group g owns members g * span .. (g + 1) * span of
// the class; its items interleave.
// Bytes: for each entry of the row twice 4 + real_t and the index and value of its row and its column.
__kernel GROUP
void factor_sweep(uint kind, uint count, uint span, __global const uint* restrict offsets,
                  __global const uint* restrict indices, __global const uint* restrict diagonal,
                  __global const uint* restrict columns, __global const uint* restrict members,
                  __global const uint* restrict places, __global const real_t* restrict a,
                  __global const real_t* restrict before, __global real_t* after)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)count);
    for (size_t member = first + get_local_id(0); member < last; member += WG) {
        const uint i = (uint)member * CLASSES + kind;
        const uint begin = offsets[i];
        const uint behind = CHOLESKY ? diagonal[i] + 1 : offsets[i + 1];
        for (uint e = begin; e < behind; ++e) {
            const uint k = indices[e];
            const uint end = min(i, k);
            // Row i and column k both have an entry at min(i, k) or behind it: on the diagonal, or this one.
            uint mine = begin;
            uint other = columns[k];
            uint j = indices[mine];
            uint l = members[other];
            acc_t sum = acc_real(a[e]);
            while (j < end && l < end) {
                if (j == l) {
                    const uint place = CHOLESKY ? other : places[other];
                    const uint row = CHOLESKY ? k : j;
                    const real_t found = row == i || row % CLASSES < kind ? after[place] : before[place];
                    sum = acc_sub(sum, acc_product(after[mine], found));
                }
                const int step_mine = j <= l;
                const int step_other = l <= j;
                if (step_mine) j = indices[++mine];
                if (step_other) l = members[++other];
            }
            if (k < i) {
                const uint place = diagonal[k];
                sum = acc_div(sum, acc_real(k % CLASSES < kind ? after[place] : before[place]));
            } else if (CHOLESKY) {
                sum = acc_sqrt(sum);
            }
            after[e] = acc_to_real(sum);
        }
    }
}
