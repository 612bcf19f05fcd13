// The transposed product without a transposed matrix: rows are spread over the result by atomic additions. The
// back-projection that stock-koch-2009 had to drop for want of them. The order of additions, and with it the last bits,
// changes from run to run.
//
// If the result fits into local memory, each group adds up one of its own there, as that paper proposed, and fold_partial_results
// adds those of all groups; otherwise all add to the one result in global memory.
//
// Required macro: LOCAL_PLACES, places for the result in local memory.

#define FOLDING_LANES (WG < 8 ? 1 : 8) // items that share an element in fold_partial_results

static uint swap_uint(volatile __global uint* at, uint old, uint value) { return atomic_cmpxchg(at, old, value); }
static uint swap_local_uint(volatile __local uint* at, uint old, uint value) { return atomic_cmpxchg(at, old, value); }
#ifdef cl_khr_int64_base_atomics
static ulong swap_ulong(volatile __global ulong* at, ulong old, ulong value) { return atom_cmpxchg(at, old, value); }
static ulong swap_local_ulong(volatile __local ulong* at, ulong old, ulong value) { return atom_cmpxchg(at, old, value); }
#endif

// OpenCL C 1.2 has no floating-point atomics: the number is replaced as the word it is stored in, until nobody else
// did so in between.
static void add_atomically(volatile __global real_t* at, real_t value)
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
__kernel GROUP
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

// Adds atomically in local memory.
static void add_locally(volatile __local word_t* word, real_t value)
{
    word_t old = JOINED(swap_local_, WORD)(word, 0, 0);
    for (;;) {
        const word_t next = JOINED(as_, WORD)(JOINED(as_, REAL)(old) + value);
        const word_t seen = JOINED(swap_local_, WORD)(word, old, next);
        if (seen == old) return;
        old = seen;
    }
}

// partial[g * cols + j] = what rows g * span .. (g + 1) * span of A add to element j of A'x.
// Bytes: the matrix and x once, groups * cols acc_t written.
__kernel GROUP
void scatter_local(uint n, uint cols, uint span, __global const uint* restrict rows, __global const uint* restrict indices,
                  __global const real_t* restrict values, __global const real_t* restrict x, __global acc_t* restrict partial)
{
    __local word_t result[LOCAL_PLACES];
    for (uint j = get_local_id(0); j < cols; j += WG) result[j] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        const real_t factor = x[i];
        for (uint k = rows[i]; k < rows[i + 1]; ++k) add_locally(result + indices[k], values[k] * factor);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Added to 0, or Clang stores half of a pair before the other, which Oclgrind 21 takes for an uninitialised value.
    for (uint j = get_local_id(0); j < cols; j += WG)
        partial[get_group_id(0) * (size_t)cols + j] = acc_add(acc_real(0), acc_real(JOINED(as_, REAL)(result[j])));
}

// y[j] = the sum of partial[g * cols + j] over `count` groups g.
// Bytes: count * cols acc_t read, cols real_t written.
__kernel GROUP
void fold_partial_results(uint cols, uint count, __global const acc_t* restrict partial, __global real_t* restrict y)
{
    __local acc_t scratch[WG];
    const uint at_once = WG / FOLDING_LANES;
    const uint lane = get_local_id(0) / at_once;
    const uint j = get_group_id(0) * at_once + (get_local_id(0) & (at_once - 1)); // (a power of two)
    acc_t sum = acc_real(0);
    if (j < cols)
        for (uint g = lane; g < count; g += FOLDING_LANES) sum = acc_add(sum, partial[g * (size_t)cols + j]);
    scratch[get_local_id(0)] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane > 0 || j >= cols) return;
    for (uint l = 1; l < FOLDING_LANES; ++l) sum = acc_add(sum, scratch[l * at_once + get_local_id(0)]);
    y[j] = acc_to_real(sum);
}
