// Heads every program: number types, wide sums and the reduction tree of docs/numerics.md.
//
// Required macros:
//   REAL   float or double, the type of vectors and matrices; WORD, uint or ulong, is as wide
//   PAIR   0: sums are kept in double; 1: in an unevaluated pair of floats (devices without double)
//   WG     work-items of a work-group, a power of two
//   LANES  virtual lanes of a reduction chunk, a power of two up to 1024
//   COLUMNS  vectors that lie interleaved
//   ITEM_REGISTERS  limit of registers for a work-item (-cl-nv-maxrregcount), 0 for none
//   PTX    1 for NVIDIA's devices of compute capability 7 or later, where PTX for acquire, release and shuffles within a warp is used
// Optional macro:
//   LOOPS_IN_ORDER  defined if the compiler adds the terms of a loop in another order when it vectorises it
// A name in capitals that no kernel file defines is an option of the build, or a constant that comes from Rust (`constants` in src/kernels/).
// The twin of the wide sums is src/number/accumulator.rs: the two must agree operation for operation.

#pragma OPENCL FP_CONTRACT OFF
#if !PAIR
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

// Every loop, so that none is forgotten.
#ifdef LOOPS_IN_ORDER
#define for _Pragma("clang loop vectorize(disable)") for
#endif

// Attributes of a kernel. NVIDIA's compiler heeds either a group's size or a number of registers.
#if ITEM_REGISTERS
#define GROUP
#else
#define GROUP __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

// One item waits for nobody. PoCL 3.1 ends in an assertion where loops and branches around barriers are nested.
#if WG == 1
#undef barrier
#define barrier(flags) mem_fence(flags)
#endif

#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b) // after both are expanded

typedef REAL real_t;
typedef float single_t; // what values of real_t may be stored in
typedef JOINED(REAL, 2) real2_t;
typedef JOINED(REAL, 4) real4_t;
typedef WORD word_t; // an integer of the size of real_t
typedef uint index_t;

#if PAIR
typedef float2 acc_t;

static acc_t two_sum(float a, float b)
{
    const float sum = a + b;
    const float part = sum - a;
    return (acc_t)(sum, (a - (sum - part)) + (b - part));
}

static acc_t quick_two_sum(float a, float b)
{
    const float sum = a + b;
    return (acc_t)(sum, b - (sum - a));
}

static acc_t acc_real(real_t value) { return (acc_t)(value, 0.0f); }

static acc_t acc_product(real_t a, real_t b)
{
    const float high = a * b;
    return (acc_t)(high, fma(a, b, -high));
}

static acc_t acc_add(acc_t a, acc_t b)
{
    acc_t sum = two_sum(a.x, b.x);
    const acc_t tail = two_sum(a.y, b.y);
    sum = quick_two_sum(sum.x, sum.y + tail.x);
    return quick_two_sum(sum.x, sum.y + tail.y);
}

static acc_t acc_sub(acc_t a, acc_t b) { return acc_add(a, -b); }

static acc_t acc_mul(acc_t a, acc_t b)
{
    const acc_t product = acc_product(a.x, b.x);
    return quick_two_sum(product.x, product.y + (a.x * b.y + a.y * b.x));
}

static acc_t as_acc(ulong bits) { return as_float2(bits); }
static int acc_less(acc_t a, acc_t b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }
static int acc_nan(acc_t a) { return isnan(a.x); }
static int acc_finite(acc_t a) { return isfinite(a.x) && isfinite(a.y); }
static real_t acc_to_real(acc_t a) { return a.x; }
static acc_t acc_scaled(acc_t a, int exponent) { return (acc_t)(ldexp(a.x, exponent), ldexp(a.y, exponent)); }

// A reciprocal by Newton's iteration, then two corrections: native division rounds differently between devices.
static acc_t acc_div(acc_t a, acc_t b)
{
    if (b.x == 0.0f || !isfinite(b.x) || !isfinite(a.x)) return (acc_t)(NAN, 0.0f);
    const int shift = ilogb(b.x);
    const acc_t divisor = acc_scaled(b, -shift);
    const float magnitude = fabs(divisor.x);
    float reciprocal = 1.4117647f - 0.47058824f * magnitude;
    for (int i = 0; i < 4; ++i) reciprocal = fma(reciprocal, fma(-magnitude, reciprocal, 1.0f), reciprocal);
    if (divisor.x < 0.0f) reciprocal = -reciprocal;
    acc_t quotient = acc_real(a.x * reciprocal);
    for (int i = 0; i < 2; ++i) {
        const acc_t rest = acc_sub(a, acc_mul(quotient, divisor));
        quotient = acc_add(quotient, acc_real(rest.x * reciprocal));
    }
    return acc_scaled(quotient, -shift);
}

static acc_t acc_sqrt(acc_t a)
{
    if (a.x == 0.0f) return acc_real(0.0f);
    if (!isfinite(a.x) || a.x < 0.0f) return (acc_t)(NAN, 0.0f);
    const int shift = ilogb(a.x) & ~1;
    const acc_t value = acc_scaled(a, -shift);
    float inverse = 1.18f - 0.2f * value.x;
    for (int i = 0; i < 6; ++i) inverse = inverse * (1.5f - (0.5f * value.x) * (inverse * inverse));
    acc_t root = acc_real(value.x * inverse);
    for (int i = 0; i < 2; ++i) {
        const acc_t rest = acc_sub(value, acc_mul(root, root));
        root = acc_add(root, acc_real((0.5f * inverse) * rest.x));
    }
    return acc_scaled(root, shift / 2);
}
#else
typedef double acc_t;

static acc_t acc_real(real_t value) { return (double)value; }
static acc_t acc_product(real_t a, real_t b) { return (double)a * (double)b; }
static acc_t acc_add(acc_t a, acc_t b) { return a + b; }
static acc_t acc_sub(acc_t a, acc_t b) { return a - b; }
static acc_t acc_mul(acc_t a, acc_t b) { return a * b; }
static acc_t acc_div(acc_t a, acc_t b) { return b == 0.0 || !isfinite(b) ? (double)NAN : a / b; }
static acc_t acc_sqrt(acc_t a) { return isfinite(a) ? sqrt(a) : (double)NAN; }
static acc_t as_acc(ulong bits) { return as_double(bits); }
static int acc_less(acc_t a, acc_t b) { return a < b; }
static int acc_nan(acc_t a) { return isnan(a); }
static int acc_finite(acc_t a) { return isfinite(a); }
static real_t acc_to_real(acc_t a) { return (real_t)a; }
#endif

// a / b, and the square root of a, rounded alike on every device; NaN for a divisor of 0. Compilers make one in single precision, which
// devices round differently, of one in double precision that is rounded to float at once. What is added here is less than the rounding of a
// double: it keeps them from that, and no quotient or root of floats lies so close to the middle between two floats that it matters.
static real_t quotient(real_t a, real_t b)
{
    const acc_t found = acc_div(acc_real(a), acc_real(b));
#if !PAIR
    if (sizeof(real_t) < sizeof(acc_t) && isfinite(found)) return acc_to_real(found + (a - found * b) / b);
#endif
    return acc_to_real(found);
}

static real_t root(real_t a)
{
    const acc_t found = acc_sqrt(acc_real(a));
#if !PAIR
    if (sizeof(real_t) < sizeof(acc_t) && found > 0) return acc_to_real(found + (a - found * found) / (2 * found));
#endif
    return acc_to_real(found);
}
