// Sweeps over the rows of a triangle, all levels in one launch: a row waits for the values of the rows that it needs, not for a level.
// Joined after common.cl. Formulas as in cl/precond/sweep.cl, with the same bits.
// Source: W. Liu, A. Li, J. Hogg, I. S. Duff, B. Vinter, "A synchronization-free algorithm for parallel sparse triangular solves", 2016.
//
// A portion is a set of rows of one level. Portions are numbered in the order of the levels. A group takes the next number from an atomic
// counter, its ticket, and solves that portion; then it takes the next ticket. A portion needs portions with lower numbers alone. So the
// lowest portion that is not done never waits, and the launch ends whether or not all groups run at once.
//
// `told` holds two arrays of n results, which successive launches use by turns. A word with all bits set means that the result is not there
// yet. Any other word is the result, so that no other flag is needed. Each launch clears the array and the ticket counter of the next one.
// Words of this size are read and written whole; nothing else passes between groups, so that no order between two words is needed.
//
// Required macros:
//   OPERATION   0 forward, 1 backward, in place
//   AHEAD       values of a row that are asked for together

// Atomics of OpenCL C 1.2. PTX has loads and stores that are faster and as safe.
static uint read_uint(volatile __global uint* at) { return atomic_add(at, 0); }
static void write_uint(volatile __global uint* at, uint value) { atomic_xchg(at, value); }
#ifdef cl_khr_int64_base_atomics
static ulong read_ulong(volatile __global ulong* at) { return atom_add(at, 0); }
static void write_ulong(volatile __global ulong* at, ulong value) { atom_xchg(at, value); }
#endif

static word_t word_of(real_t value) { return JOINED(as_, WORD)(value); }
static real_t value_of(word_t word) { return JOINED(as_, REAL)(word); }

// Reads the word of a value that another group may write.
static word_t read_told(__global word_t* told)
{
#if PTX
    if (sizeof(word_t) == 8) {
        ulong word;
        __asm__ volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(told) : "memory");
        return (word_t)word;
    }
    uint word;
    __asm__ volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(told) : "memory");
    return word;
#else
    return JOINED(read_, WORD)(told);
#endif
}

// Tells the others a value. A NaN must not look like none.
static void tell(__global word_t* told, real_t value)
{
    const word_t word = isnan(value) ? word_of(NAN) : word_of(value);
#if PTX
    if (sizeof(word_t) == 8) __asm__ volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(told), "l"((ulong)word) : "memory");
    else __asm__ volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(told), "r"((uint)word) : "memory");
#else
    JOINED(write_, WORD)(told, word);
#endif
}

// Portion p has the rows starts[p] to starts[p + 1] of the list, at most one for each item; `turn` is 0 or 1, `keep` is 2 - omega.
// Bytes: those of cl/precond/sweep.cl, and two values a row.
__kernel GROUP
void sweep_waiting(uint n, uint portions, uint turn, real_t keep, __global const uint* restrict starts,
                   __global const uint* restrict list, __global const uint* restrict offsets,
                   __global const uint* restrict indices, __global const real_t* restrict values,
                   __global const real_t* restrict scale, __global const real_t* restrict x, __global real_t* z,
                   __global int* told, __global int* tickets)
{
    __local uint drawn[1];
    __global word_t* now = (__global word_t*)told + (turn ? (size_t)n : 0);
    __global word_t* next = (__global word_t*)told + (turn ? 0 : (size_t)n);
    const word_t none = ~(word_t)0;
    if (get_global_id(0) == 0) tickets[1 - turn] = 0;
    for (;;) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) == 0) drawn[0] = atomic_inc(tickets + turn);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint portion = drawn[0];
        if (portion >= portions) break;
        const uint at = starts[portion] + get_local_id(0);
        if (at < starts[portion + 1]) {
            // All that can be read before the others are done.
            const uint i = list[at];
            const acc_t own = acc_real(scale[at]);
            const real_t given = OPERATION == 0 ? x[i] : z[i];
            const uint end = offsets[at + 1];
            acc_t sum = acc_real(0);
            for (uint begin = offsets[at]; begin < end; begin += AHEAD) {
                uint place[AHEAD];
                real_t entry[AHEAD];
                word_t found[AHEAD];
                for (uint k = 0; k < AHEAD; ++k) {
                    const int there = begin + k < end;
                    place[k] = there ? indices[begin + k] : 0;
                    entry[k] = there ? values[begin + k] : 0;
                    found[k] = there ? none : 0;
                }
                int missing = 1;
                while (missing) {
                    missing = 0;
                    for (uint k = 0; k < AHEAD; ++k) {
                        if (found[k] == none) found[k] = read_told(now + place[k]);
                    }
                    for (uint k = 0; k < AHEAD; ++k) missing |= found[k] == none;
                }
                for (uint k = 0; k < AHEAD; ++k) {
                    if (begin + k < end) sum = acc_add(sum, acc_product(entry[k], value_of(found[k])));
                }
            }
            acc_t value;
            if (OPERATION == 0) value = acc_mul(acc_sub(acc_real(given), sum), own);
            else value = acc_sub(acc_product(keep, given), acc_mul(own, sum));
            const real_t result = acc_to_real(value);
            tell(now + i, result);
            z[i] = result;
            next[i] = none;
        }
    }
}
