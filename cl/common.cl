// Heads every program: number types, wide sums and the reduction tree of the numerics contract.
//
// Required macros:
//   REAL   float or double, the type of vectors and matrices; WORD, uint or ulong, is as wide
//   PAIR   0: sums are kept in double; 1: in an unevaluated pair of floats (devices without double)
//   WG     work-items of a work-group, a power of two
//   LANES  virtual lanes of a reduction chunk, a power of two up to 1024
//   COLUMNS  vectors that lie interleaved
//   ITEM_REGISTERS  those that an item may take, where the build is told so; 0 where the compiler decides
//   PTX    1 for NVIDIA's devices that order memory by release and acquire and let the items of a warp read each other
// Optional macro:
//   LOOPS_IN_ORDER  defined where the compiler adds the terms of a loop in another order when it vectorises it
// The twin of the wide sums is src/accumulator.rs: the two must agree operation for operation.

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

// What heads a kernel. NVIDIA's compiler heeds either a group's size or a number of registers.
#if ITEM_REGISTERS
#define GROUP
#else
#define GROUP __attribute__((reqd_work_group_size(WG, 1, 1)))
#endif

#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b) // after both are expanded

typedef REAL real_t;
typedef JOINED(REAL, 2) real2_t;
typedef JOINED(REAL, 4) real4_t;
typedef WORD word_t; // an integer of the size of real_t
typedef uint index_t;
typedef float rough_t; // where only the order of magnitude matters, never in a result

// Half of the places at least on any device, all but the last after one step of Newton's.
rough_t rough_reciprocal(rough_t x)
{
    const rough_t rough = native_recip(x); // a rough_t
    return fma(rough, fma(-x, rough, (rough_t)1), rough);
}

#if PAIR
typedef float2 acc_t;

acc_t two_sum(float a, float b)
{
    const float sum = a + b;
    const float part = sum - a;
    return (acc_t)(sum, (a - (sum - part)) + (b - part));
}

acc_t quick_two_sum(float a, float b)
{
    const float sum = a + b;
    return (acc_t)(sum, b - (sum - a));
}

acc_t acc_real(real_t value) { return (acc_t)(value, 0.0f); }

acc_t acc_product(real_t a, real_t b)
{
    const float high = a * b;
    return (acc_t)(high, fma(a, b, -high));
}

acc_t acc_add(acc_t a, acc_t b)
{
    acc_t sum = two_sum(a.x, b.x);
    const acc_t tail = two_sum(a.y, b.y);
    sum = quick_two_sum(sum.x, sum.y + tail.x);
    return quick_two_sum(sum.x, sum.y + tail.y);
}

acc_t acc_sub(acc_t a, acc_t b) { return acc_add(a, -b); }

acc_t acc_mul(acc_t a, acc_t b)
{
    const acc_t product = acc_product(a.x, b.x);
    return quick_two_sum(product.x, product.y + (a.x * b.y + a.y * b.x));
}

acc_t as_acc(ulong bits) { return as_float2(bits); }
int acc_less(acc_t a, acc_t b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }
int acc_nan(acc_t a) { return isnan(a.x); }
int acc_finite(acc_t a) { return isfinite(a.x) && isfinite(a.y); }
real_t acc_to_real(acc_t a) { return a.x; }
acc_t acc_scaled(acc_t a, int exponent) { return (acc_t)(ldexp(a.x, exponent), ldexp(a.y, exponent)); }

// A reciprocal by Newton's iteration, then two corrections: native division rounds differently between devices.
acc_t acc_div(acc_t a, acc_t b)
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

acc_t acc_sqrt(acc_t a)
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

acc_t acc_real(real_t value) { return (double)value; }
acc_t acc_product(real_t a, real_t b) { return (double)a * (double)b; }
acc_t acc_add(acc_t a, acc_t b) { return a + b; }
acc_t acc_sub(acc_t a, acc_t b) { return a - b; }
acc_t acc_mul(acc_t a, acc_t b) { return a * b; }
acc_t acc_div(acc_t a, acc_t b) { return b == 0.0 || !isfinite(b) ? (double)NAN : a / b; }
acc_t acc_sqrt(acc_t a) { return isfinite(a) ? sqrt(a) : (double)NAN; }
acc_t as_acc(ulong bits) { return as_double(bits); }
int acc_less(acc_t a, acc_t b) { return a < b; }
int acc_nan(acc_t a) { return isnan(a); }
int acc_finite(acc_t a) { return isfinite(a); }
real_t acc_to_real(acc_t a) { return (real_t)a; }
#endif

#define ITEM_LANES (LANES > WG ? LANES / WG : 1)
#define FOLD_LANES 1024
#define FOLD_ITEM_LANES (FOLD_LANES > WG ? FOLD_LANES / WG : 1)

// One step of scratch_fold: up to three halvings, which leave `width / 8` (at least 1) sums.
void scratch_step(__local acc_t* run, uint place, uint width)
{
    const uint step = width >= 8 ? width / 8 : 1;
    if (place < step) {
        __local const acc_t* p = run + place;
        acc_t sum;
        if (width >= 8)
            sum = acc_add(acc_add(acc_add(p[0], p[4 * step]), acc_add(p[2 * step], p[6 * step])),
                          acc_add(acc_add(p[step], p[5 * step]), acc_add(p[3 * step], p[7 * step])));
        else if (width == 4)
            sum = acc_add(acc_add(p[0], p[2]), acc_add(p[1], p[3]));
        else
            sum = acc_add(p[0], p[1]);
        run[place] = sum;
    }
}

// The same step for `runs` of them, WG places apart, and a barrier. Steps, not a loop of them: PoCL 3.1 turned some kernels
// with a loop around a barrier into endless ones.
void scratch_steps(__local acc_t* run, uint runs, uint place, uint width)
{
    for (uint k = 0; k < runs; ++k) scratch_step(run + k * WG, place, width);
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Folds the `width` sums of each of `runs` by halving, s[l] += s[l + width / 2]; `place` is the item's place in a run.
// Widths and runs are constants where this is called.
void scratch_folds(__local acc_t* run, uint runs, uint place, uint width)
{
    if (width > 1) scratch_steps(run, runs, place, width);
    if (width > 8) scratch_steps(run, runs, place, width / 8);
    if (width > 64) scratch_steps(run, runs, place, width / 64);
    if (width > 512) scratch_steps(run, runs, place, width / 512);
}

void scratch_fold(__local acc_t* run, uint place, uint width) { scratch_folds(run, 1, place, width); }

// The lanes one item holds, folded: `lane[j]` is virtual lane get_local_id(0) + j * WG. Arrays are folded before the
// first barrier that follows, because PoCL 3.1 loses track of private arrays that live across one.
acc_t item_fold(acc_t* lane, uint held)
{
    for (uint half_held = held / 2; half_held > 0; half_held /= 2)
        for (uint j = 0; j < half_held; ++j) lane[j] = acc_add(lane[j], lane[j + half_held]);
    return lane[0];
}

#if PTX
#define WARP 32
// What the item `distance` further on in the warp holds, and what item `lane` of the warp does. All items of a warp ask.
acc_t from_further(acc_t held, uint distance)
{
    ulong theirs;
    __asm__ volatile("{ .reg .b32 a, b; mov.b64 {a, b}, %1; shfl.sync.down.b32 a, a, %2, 31, -1; "
                     "shfl.sync.down.b32 b, b, %2, 31, -1; mov.b64 %0, {a, b}; }"
                     : "=l"(theirs) : "l"(as_ulong(held)), "r"(distance));
    return as_acc(theirs);
}
acc_t from_lane(acc_t held, uint lane)
{
    ulong theirs;
    __asm__ volatile("{ .reg .b32 a, b; mov.b64 {a, b}, %1; shfl.sync.idx.b32 a, a, %2, 31, -1; "
                     "shfl.sync.idx.b32 b, b, %2, 31, -1; mov.b64 %0, {a, b}; }"
                     : "=l"(theirs) : "l"(as_ulong(held)), "r"(lane));
    return as_acc(theirs);
}
#else
#define WARP (2 * WG) // none
acc_t from_further(acc_t held, uint distance) { return held; }
acc_t from_lane(acc_t held, uint lane) { return held; }
#endif

// The first of `width` items of a warp gets the sum of what they hold.
acc_t warp_fold(acc_t held, uint width)
{
    for (uint half_width = width / 2; half_width > 0; half_width /= 2)
        held = acc_add(held, from_further(held, half_width));
    return held;
}

// Run k of those of run_folds, in the hands of one warp: the upper halvings between registers, the lower ones between items.
acc_t warp_folds(__local const acc_t* run, uint width)
{
    acc_t part[1024 / 32];
    const uint parts = width / WARP;
    for (uint m = 0; m < parts; ++m) part[m] = run[m * WARP + get_local_id(0) % WARP];
    return warp_fold(item_fold(part, parts), WARP);
}

// What `width` items hold side by side, `runs` numbers each, folded for all of them: `run` is their stretch of scratch,
// which has runs * WG places. All items of the group take part, each in its run. Widths and runs are constants where this
// is called.
void run_folds(acc_t* held, uint runs, uint place, uint width, __local acc_t* run)
{
    if (WG == 1) return;
    if (WG >= WARP && width <= WARP) {
        for (uint k = 0; k < runs; ++k)
            held[k] = from_lane(warp_fold(held[k], width), get_local_id(0) % WARP - place);
        return;
    }
    barrier(CLK_LOCAL_MEM_FENCE); // the last result may still be being read
    for (uint k = 0; k < runs; ++k) run[k * WG + place] = held[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (WG >= WARP) {
        // One warp folds a run, several of them at once.
        for (uint k = place / WARP; k < runs; k += width / WARP) {
            const acc_t sum = warp_folds(run + k * WG, width);
            if (place % WARP == 0) run[k * WG] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    } else {
        scratch_folds(run, runs, place, width);
    }
    for (uint k = 0; k < runs; ++k) held[k] = run[k * WG];
}

// The sum of what all items hold, out of `total` virtual lanes. Every item gets it. `scratch` has WG places.
acc_t group_fold(acc_t held, uint total, __local acc_t* scratch)
{
    if (WG == 1) return held;
    if (total >= WG) {
        run_folds(&held, 1, get_local_id(0), WG, scratch);
        return held;
    }
    barrier(CLK_LOCAL_MEM_FENCE); // the last result may still be being read
    scratch[get_local_id(0)] = held;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch_fold(scratch, get_local_id(0), total);
    return scratch[0];
}

// What an item holds of `count` chunk sums, dealt out to FOLD_LANES lanes.
acc_t held_sums(__global const acc_t* sums, uint count)
{
    acc_t lane[FOLD_ITEM_LANES];
    for (uint j = 0; j < FOLD_ITEM_LANES; ++j) {
        lane[j] = acc_real(0);
        const uint l = get_local_id(0) + j * WG;
        for (uint i = l; i < count && l < FOLD_LANES; i += FOLD_LANES) lane[j] = acc_add(lane[j], sums[i]);
    }
    return item_fold(lane, FOLD_ITEM_LANES);
}

// The same for `runs` quantities with `count` chunk sums each, one behind the other: all reads are under way together.
void hold_sums(acc_t* held, uint runs, __global const acc_t* sums, uint count)
{
    if (FOLD_ITEM_LANES > 4) {
        for (uint k = 0; k < runs; ++k) held[k] = held_sums(sums + k * count, count);
        return;
    }
    acc_t lane[12][FOLD_ITEM_LANES]; // quantities of the neediest caller
    for (uint k = 0; k < runs; ++k)
        for (uint j = 0; j < FOLD_ITEM_LANES; ++j) {
            const uint l = get_local_id(0) + j * WG;
            lane[k][j] = l < count ? sums[k * count + l] : acc_real(0);
        }
    for (uint k = 0; k < runs; ++k) {
        for (uint j = 0; j < FOLD_ITEM_LANES; ++j)
            for (uint i = get_local_id(0) + j * WG + FOLD_LANES; i < count; i += FOLD_LANES)
                lane[k][j] = acc_add(lane[k][j], sums[k * count + i]);
        held[k] = item_fold(lane[k], FOLD_ITEM_LANES);
    }
}

// The second level of a reduction: the sum of `count` chunk sums.
acc_t fold_sums(__global const acc_t* sums, uint count, __local acc_t* scratch)
{
    return group_fold(held_sums(sums, count), FOLD_LANES, scratch);
}

// A group works on SIDE_BY_SIDE chunks at once, CHUNK_ITEMS items on each.
#define CHUNK_ITEMS (LANES < WG ? LANES : WG)
#define SIDE_BY_SIDE (WG / CHUNK_ITEMS)

// sums[c * chunks + g] = the sum of x y over chunk g in column c, for chunks first_chunk .. last_chunk of `chunks`, for
// every column. `scratch` has COLUMNS * WG places.
void store_dots(__global const real_t* x, __global const real_t* y, uint n, uint chunk, uint chunks, uint first_chunk,
                uint last_chunk, __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
        acc_t held[COLUMNS];
        for (uint c = 0; c < COLUMNS; ++c) {
            acc_t lane[ITEM_LANES];
            for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
            for (size_t block = first; block < last; block += LANES)
                for (uint j = 0; j < ITEM_LANES; ++j) {
                    const size_t i = block + place + j * WG;
                    if (i < last) lane[j] = acc_add(lane[j], acc_product(x[i * COLUMNS + c], y[i * COLUMNS + c]));
                }
            held[c] = item_fold(lane, ITEM_LANES);
        }
        run_folds(held, COLUMNS, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
        if (place == 0 && mine < last_chunk)
            for (uint c = 0; c < COLUMNS; ++c) sums[c * (size_t)chunks + mine] = held[c];
    }
}
