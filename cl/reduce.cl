// Reductions of whole vectors, in the tree that depends on the length alone (ARCHITECTURE.md, numerics): a group
// takes a chunk, its lanes add elements l, l + LANES, ..., and the lanes fold by halving.
//
// Required macro: OPERATION, one of the names below.

#ifndef OPERATION
#error OPERATION names the reduction
#endif
#define SUM 0
#define PRODUCT 1
#define MINIMUM 2
#define MAXIMUM 3
#define ABSOLUTE_SUM 4
#define DOT 5

acc_t identity(void)
{
    return OPERATION == PRODUCT ? acc_real(1) : OPERATION == MINIMUM ? acc_real(INFINITY)
           : OPERATION == MAXIMUM ? acc_real(-INFINITY) : acc_real(0);
}

acc_t combine(acc_t a, acc_t b)
{
    if (OPERATION == PRODUCT) return acc_mul(a, b);
    // The comparisons are written so that a NaN on either side wins.
    if (OPERATION == MINIMUM) return acc_less(a, b) || acc_nan(a) ? a : b;
    if (OPERATION == MAXIMUM) return acc_less(b, a) || acc_nan(a) ? a : b;
    return acc_add(a, b);
}

acc_t fold(acc_t* lane, uint held, uint total, __local acc_t* scratch)
{
    for (uint half_held = held / 2; half_held > 0; half_held /= 2)
        for (uint j = 0; j < half_held; ++j) lane[j] = combine(lane[j], lane[j + half_held]);
    const uint l = get_local_id(0);
    scratch[l] = lane[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = (total < WG ? total : WG) / 2; step > 0; step /= 2) {
        if (l < step) scratch[l] = combine(scratch[l], scratch[l + step]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scratch[0];
}

// sums[g] = reduction of chunk g of x, or of x y for DOT (other operations are given x twice). Element i is that of column
// `column` of `columns` interleaved ones.
// Bytes: n real_t read, 2 n for DOT.
__kernel GROUP
void reduce_chunks(uint n, uint chunk, uint columns, uint column, __global const real_t* x, __global const real_t* y,
                   __global acc_t* restrict sums)
{
    __local acc_t scratch[WG];
    const size_t first = get_group_id(0) * (size_t)chunk;
    const size_t last = min(first + chunk, (size_t)n);
    acc_t lane[ITEM_LANES];
    for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = identity();
    for (size_t block = first; block < last; block += LANES)
        for (uint j = 0; j < ITEM_LANES; ++j) {
            const uint l = get_local_id(0) + j * WG;
            const size_t i = block + l;
            if (l >= LANES || i >= last) continue;
            const size_t at = i * columns + column;
            const real_t value = x[at];
            lane[j] = combine(lane[j], OPERATION == DOT ? acc_product(value, y[at])
                                       : acc_real(OPERATION == ABSOLUTE_SUM ? fabs(value) : value));
        }
    const acc_t sum = fold(lane, ITEM_LANES, LANES, scratch);
    if (get_local_id(0) == 0) sums[get_group_id(0)] = sum;
}

// result[0] = reduction of `count` chunk sums. One group.
__kernel GROUP
void reduce_sums(uint count, __global const acc_t* restrict sums, __global acc_t* restrict result)
{
    __local acc_t scratch[WG];
    acc_t lane[FOLD_ITEM_LANES];
    for (uint j = 0; j < FOLD_ITEM_LANES; ++j) {
        lane[j] = identity();
        const uint l = get_local_id(0) + j * WG;
        for (uint i = l; i < count && l < FOLD_LANES; i += FOLD_LANES) lane[j] = combine(lane[j], sums[i]);
    }
    const acc_t sum = fold(lane, FOLD_ITEM_LANES, FOLD_LANES, scratch);
    if (get_local_id(0) == 0) result[0] = sum;
}
