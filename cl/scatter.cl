// The transposed product without a transposed matrix: rows are spread over the result by atomic additions. The
// back-projection that stock-koch-2009 had to drop for want of them. The order of additions, and with it the last bits,
// changes from run to run.

uint swap_uint(volatile __global uint* at, uint old, uint value) { return atomic_cmpxchg(at, old, value); }
#ifdef cl_khr_int64_base_atomics
ulong swap_ulong(volatile __global ulong* at, ulong old, ulong value) { return atom_cmpxchg(at, old, value); }
#endif

// OpenCL C 1.2 has no floating-point atomics: the number is replaced as the word it is stored in, until nobody else
// did so in between.
void add_atomically(volatile __global real_t* at, real_t value)
{
    volatile __global word_t* word = (volatile __global word_t*)at;
    word_t old = JOINED(swap_, WORD)(word, 0, 0); // an atomic read: it changes nothing, or 0 to 0
    for (;;) {
        const word_t next = JOINED(as_, WORD)(JOINED(as_, REAL)(old) + value);
        const word_t seen = JOINED(swap_, WORD)(word, old, next);
        if (seen == old) return;
        old = seen;
    }
}

// y += A'x for A of n compressed rows. Group g owns rows g * span .. (g + 1) * span, an item a row.
// Bytes: the matrix and x once; y read and written once for each entry.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void scatter(uint n, uint span, __global const uint* restrict rows, __global const uint* restrict indices,
             __global const real_t* restrict values, __global const real_t* restrict x, __global real_t* y)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        const real_t factor = x[i];
        for (uint k = rows[i]; k < rows[i + 1]; ++k) add_atomically(y + indices[k], values[k] * factor);
    }
}
