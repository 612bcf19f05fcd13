// Products with matrices stored by rows. Joined between common.cl and the files whose kernels multiply.
//
// Required macros:
//   FORMAT     0 CSR: rows = offsets (n + 1); 1 ELLPACK-R: rows = lengths (n), entry k of row i at k * stride + i
//   ROW_LANES  lanes that share a row: lane l adds entries l, l + ROW_LANES, ...; the lanes are folded by halving
//   COLUMNS    vectors multiplied at once; element i of vector c lies at i * COLUMNS + c
//   GATHER     1: the vector is u; 2: it is u + scale v, formed as it is read

#define CSR 0
#define ROWS_AT_ONCE (WG > ROW_LANES ? WG / ROW_LANES : 1)
#define ITEM_ROW_LANES (ROW_LANES > WG ? ROW_LANES / WG : 1)
#define SHARED_ROWS (ROW_LANES > 1 ? WG > 1 : 0) // items of a group share a row

typedef struct {
    __global const uint* rows;
    __global const uint* indices;
    __global const real_t* values;
    uint stride;
} matrix_t;

typedef struct {
    __global const real_t* u;
    __global const real_t* v;
    real_t scale[COLUMNS];
} vector_t;

real_t vector_at(const vector_t* vector, size_t i, uint c)
{
    const size_t at = i * COLUMNS + c;
    return GATHER == 1 ? vector->u[at] : vector->u[at] + vector->scale[c] * vector->v[at];
}

// Adds entries first, first + ROW_LANES, ... of row i. Four at a time, so that their loads are under way together;
// they are added one after another all the same.
void row_add(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint first)
{
    const size_t start = FORMAT == CSR ? matrix->rows[i] : i;
    const uint length = FORMAT == CSR ? matrix->rows[i + 1] - matrix->rows[i] : matrix->rows[i];
    const size_t step = FORMAT == CSR ? 1 : matrix->stride;
    __global const uint* indices = matrix->indices + start;
    __global const real_t* values = matrix->values + start;
    uint k = first;
    for (; k + 3 * ROW_LANES < length; k += 4 * ROW_LANES) {
        const size_t at[4] = {k * step, (k + ROW_LANES) * step, (k + 2 * ROW_LANES) * step, (k + 3 * ROW_LANES) * step};
        const index_t column[4] = {indices[at[0]], indices[at[1]], indices[at[2]], indices[at[3]]};
        const real_t value[4] = {values[at[0]], values[at[1]], values[at[2]], values[at[3]]};
        for (uint c = 0; c < COLUMNS; ++c) {
            const real_t x[4] = {vector_at(vector, column[0], c), vector_at(vector, column[1], c),
                                 vector_at(vector, column[2], c), vector_at(vector, column[3], c)};
            sum[c] = acc_add(sum[c], acc_product(value[0], x[0]));
            sum[c] = acc_add(sum[c], acc_product(value[1], x[1]));
            sum[c] = acc_add(sum[c], acc_product(value[2], x[2]));
            sum[c] = acc_add(sum[c], acc_product(value[3], x[3]));
        }
    }
    for (; k < length; k += ROW_LANES) {
        const index_t column = indices[k * step];
        const real_t value = values[k * step];
        for (uint c = 0; c < COLUMNS; ++c)
            sum[c] = acc_add(sum[c], acc_product(value, vector_at(vector, column, c)));
    }
}

// One column of row_sum: the lanes that share a row, folded. Valid for the item whose row lane is 0.
acc_t row_fold(acc_t held, uint place, __local acc_t* scratch)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[get_local_id(0)] = held;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch_fold(scratch, place, ROW_LANES < WG ? ROW_LANES : WG);
    return scratch[get_local_id(0)];
}

// Row i of the product, for the item whose row lane is 0; the group works on ROWS_AT_ONCE rows. Items past the last
// row pass valid = 0 and take part in the barriers only. `scratch` has WG places.
void row_sum(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, int valid, __local acc_t* scratch)
{
    const uint place = get_local_id(0) % ROW_LANES;
    acc_t lane[ITEM_ROW_LANES][COLUMNS];
    for (uint j = 0; j < ITEM_ROW_LANES; ++j) {
        for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_real(0);
        if (valid) row_add(lane[j], matrix, vector, i, place + j * WG);
    }
    for (uint half_held = ITEM_ROW_LANES / 2; half_held > 0; half_held /= 2)
        for (uint j = 0; j < half_held; ++j)
            for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_add(lane[j][c], lane[j + half_held][c]);
    for (uint c = 0; c < COLUMNS; ++c) sum[c] = lane[0][c];
    if (SHARED_ROWS) {
        sum[0] = row_fold(sum[0], place, scratch);
        if (COLUMNS > 1) sum[1 % COLUMNS] = row_fold(sum[1 % COLUMNS], place, scratch);
        if (COLUMNS > 2) sum[2 % COLUMNS] = row_fold(sum[2 % COLUMNS], place, scratch);
        if (COLUMNS > 3) sum[3 % COLUMNS] = row_fold(sum[3 % COLUMNS], place, scratch);
    }
}

// Rows first .. last of the product with a group's items: y = A x, or y = b - A x where there is a b (the difference is
// formed in the wide sum and rounded once). Every item sees the rows when it returns.
void chunk_product(__global real_t* y, __global const real_t* b, const matrix_t* matrix, const vector_t* vector,
                   size_t first, size_t last, __local acc_t* scratch)
{
    for (size_t base = first; base < last; base += ROWS_AT_ONCE) {
        const size_t i = base + get_local_id(0) / ROW_LANES;
        acc_t sum[COLUMNS];
        row_sum(sum, matrix, vector, i, i < last, scratch);
        if (i < last && get_local_id(0) % ROW_LANES == 0)
            for (uint c = 0; c < COLUMNS; ++c) {
                const size_t at = i * COLUMNS + c;
                y[at] = acc_to_real(b ? acc_sub(acc_real(b[at]), sum[c]) : sum[c]);
            }
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
}

// Columns are taken one by one in straight lines, not in a loop, wherever a barrier is involved: PoCL 3.1 gives wrong
// values to what lives across a barrier in such a loop, at work-groups of 512 and more.

// The sum of x y over rows first .. last of column c: one chunk of a reduction. Every item gets the result.
acc_t chunk_dot(__global const real_t* x, __global const real_t* y, size_t first, size_t last, uint c,
                __local acc_t* scratch)
{
    acc_t lane[ITEM_LANES];
    for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
    for (size_t block = first; block < last; block += LANES)
        for (uint j = 0; j < ITEM_LANES; ++j) {
            const uint l = get_local_id(0) + j * WG;
            const size_t i = block + l;
            if (l < LANES && i < last)
                lane[j] = acc_add(lane[j], acc_product(x[i * COLUMNS + c], y[i * COLUMNS + c]));
        }
    return group_fold(item_fold(lane, ITEM_LANES), LANES, scratch);
}

// sum[0] = the chunk sum of the squares of column c.
void store_square(__global const real_t* x, size_t first, size_t last, uint c, __global acc_t* sum,
                  __local acc_t* scratch)
{
    const acc_t square = chunk_dot(x, x, first, last, c, scratch);
    if (get_local_id(0) == 0) sum[0] = square;
}
