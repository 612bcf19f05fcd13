// Block Jacobi: products with the inverses of blocks of BLOCK consecutive rows. Joined after common.cl.
//
// Required macro:
//   BLOCK   rows of a block; the last may have fewer

// z = M x. Entry k of row i of its block's inverse lies at inverses[k * n + i], so that neighbouring items read neighbours.
// Group g owns rows g * span .. (g + 1) * span; its items interleave.
// Bytes: BLOCK n real_t of inverses and n of x read, n written.
__kernel GROUP
void block_jacobi(uint n, uint span, __global const real_t* restrict inverses, __global const real_t* restrict x,
                  __global real_t* restrict z)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        const size_t begin = i - i % BLOCK;
        const uint count = (uint)min((size_t)BLOCK, n - begin);
        acc_t sum = acc_real(0);
        for (uint k = 0; k < count; ++k) {
            sum = acc_add(sum, acc_product(inverses[k * (size_t)n + i], x[begin + k]));
        }
        z[i] = acc_to_real(sum);
    }
}
