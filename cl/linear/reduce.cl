// Reductions of whole vectors, in the tree that depends on the length alone (ARCHITECTURE.md, numerics): a group
// takes a chunk, its `lanes` lanes add elements l, l + lanes, ..., and fold by halving.
//
// Required macro: TERMS, what is reduced: the elements of a vector (0), their products with those of another, which are added (1), or such
// products by any operation (2). The argument `operation` says which one.

static acc_t identity(uint operation)
{
    return operation == PRODUCT ? acc_real(1) : operation == MINIMUM ? acc_real(INFINITY)
           : operation == MAXIMUM ? acc_real(-INFINITY) : acc_real(0);
}

static acc_t combine(uint operation, acc_t a, acc_t b)
{
    if (operation == PRODUCT) return acc_mul(a, b);
    // The comparisons are written so that a NaN on either side wins.
    if (operation == MINIMUM) return acc_less(a, b) || acc_nan(a) ? a : b;
    if (operation == MAXIMUM) return acc_less(b, a) || acc_nan(a) ? a : b;
    return acc_add(a, b);
}

// The number that an element adds; `other` counts in products alone.
static acc_t term(uint operation, real_t value, real_t other)
{
    if (TERMS == 0) return acc_real(operation == ABSOLUTE_SUM ? fabs(value) : value);
    const acc_t product = acc_product(value, other);
    return operation == ABSOLUTE_SUM && acc_less(product, acc_real(0)) ? acc_sub(acc_real(0), product) : product;
}

static acc_t fold(uint operation, acc_t* lane, uint held, uint total, __local acc_t* scratch)
{
    for (uint half_held = held / 2; half_held > 0; half_held /= 2)
        for (uint j = 0; j < half_held; ++j) lane[j] = combine(operation, lane[j], lane[j + half_held]);
    const uint l = get_local_id(0);
    scratch[l] = lane[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = (total < WG ? total : WG) / 2; step > 0; step /= 2) {
        if (l < step) scratch[l] = combine(operation, scratch[l], scratch[l + step]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scratch[0];
}

// sums[g] = reduction of chunk g of x, or of x y (if TERMS is 0, x is given twice). Element i is that of column
// `column` of `columns` interleaved ones. The number of lanes is an argument, so that vectors of all lengths share a program.
// Bytes: n real_t read, 2 n for products.
__kernel GROUP
void reduce_chunks(uint operation, uint n, uint chunk, uint columns, uint column, uint lanes,
                   __global const real_t* x, __global const real_t* y, __global acc_t* restrict sums)
{
    __local acc_t scratch[WG];
    const uint which = TERMS == 1 ? SUM : operation;
    const size_t first = get_group_id(0) * (size_t)chunk;
    const size_t last = min(first + chunk, (size_t)n);
    acc_t lane[FOLD_ITEM_LANES];
    // On GPUs a constant, so that lanes are kept in registers; lanes too many hold the identity, which changes no bit.
    const uint held = WG == 1 ? lanes : FOLD_ITEM_LANES;
    for (uint j = 0; j < held; ++j) lane[j] = identity(which);
    // One item: elements that lie side by side, which compilers make vector instructions of.
    const int alone = WG == 1 && columns == 1;
    for (size_t block = first; alone && block < last; block += lanes) {
        const uint count = min((size_t)lanes, last - block);
        for (uint l = 0; l < count; ++l)
            lane[l] = combine(which, lane[l], term(which, x[block + l], y[block + l]));
    }
    for (size_t block = first; !alone && block < last; block += lanes)
        for (uint j = 0; j < held; ++j) {
            const uint l = get_local_id(0) + j * WG;
            const size_t i = block + l;
            if (l >= lanes || i >= last) continue;
            const size_t at = i * columns + column;
            lane[j] = combine(which, lane[j], term(which, x[at], y[at]));
        }
    const acc_t sum = fold(which, lane, held, lanes, scratch);
    if (get_local_id(0) == 0) sums[get_group_id(0)] = sum;
}

// result[0] = reduction of `count` chunk sums. One group.
__kernel GROUP
void reduce_sums(uint operation, uint count, __global const acc_t* restrict sums, __global acc_t* restrict result)
{
    __local acc_t scratch[WG];
    const uint which = TERMS == 1 ? SUM : operation;
    acc_t lane[FOLD_ITEM_LANES];
    const uint held = FOLDED_LANES(count);
    for (uint j = 0; j < held; ++j) {
        lane[j] = identity(which);
        const uint l = get_local_id(0) + j * WG;
        for (uint i = l; i < count && l < FOLD_LANES; i += FOLD_LANES) lane[j] = combine(which, lane[j], sums[i]);
    }
    const acc_t sum = fold(which, lane, held, FOLD_LANES, scratch);
    if (get_local_id(0) == 0) result[0] = sum;
}
