// Products with stored matrices, row by row. Joined between common.cl and the files whose kernels multiply.
//
// Required macros:
//   FORMAT     how the matrix is stored, one of the names below; src/sparse/layout builds the arrays
//   WIDE       1: row offsets take two words each
//   BLOCK      rows and columns of a block of BLOCKS; number of diagonals of DIAGONALS, 1 where they are many
//   ROW_LANES  lanes that share a row: lane l adds entries l, l + ROW_LANES, ...; the lanes are folded by halving
//   COLUMNS    vectors multiplied at once; element i of vector c lies at i * COLUMNS + c
//   GATHER     1: the vector is u; 2: it is u + scale v, formed as it is read
//
// Entries add in ascending column order, so all formats with one lane a row agree bit for bit. Places without an entry
// hold NaN, which no matrix holds, and are left out.

#define CSR 0          // rows: offsets (n + 1)
#define ELLPACK_R 1    // rows: lengths (n); entry k of row i at k * stride + i
#define ELLPACK 2      // rows: the longest length; entries as in ELLPACK_R, padded
#define SLICED 3       // rows: where slices of SLICE rows start, in units of SLICE; padded slice by slice
#define SORTED 4       // SLICED with rows in the order that follows the slice starts, which keeps long rows together
#define DIAGONALS 5    // rows: their number, columns of A, their offsets; values of diagonal d at d * stride + i
#define BLOCKS 6       // rows: offsets of block rows; stride: columns of A
#define DENSE 7        // rows: columns of A; value of column k at k * stride + i
#define HYBRID 8       // rows: width of the ELLPACK part, length of the tail, rows of the tail; tail behind that part
#define COORDINATES 9  // rows: rows of a chunk, where the row of each entry starts, offsets of chunks, row of each entry
#define ADAPTIVE 10    // rows: where the offsets start, two lists of longer rows (see adaptive_product); stride: chunk
#define SLICE 32
#define AT_ONCE (WG > 1 ? 8 : 1) // entries of a row whose loads are under way together
#define KNOWN_DIAGONALS (FORMAT == DIAGONALS ? BLOCK : 1)
#define SHORT_ROW 16   // longest row of ADAPTIVE that one lane adds, and longest that MIDDLE_LANES add
#define MIDDLE_ROW 512
#define MIDDLE_LANES 32
#define LONG_LANES 512

#define PACKED (FORMAT == ELLPACK || FORMAT == SLICED || FORMAT == SORTED || FORMAT == HYBRID) // padding ends a row
#define PADDED (PACKED || FORMAT == DENSE)
// Neighbouring items take neighbouring rows rather than neighbouring entries of a row.
#define BY_COLUMNS (FORMAT == DENSE || FORMAT == ELLPACK_R || FORMAT == ELLPACK)
// The item that holds a row's lane of a reduction is not the one that adds the row.
#define ROWS_APART (ROW_LANES > 1 || FORMAT == SORTED || FORMAT == ADAPTIVE)
#define MOST_ROW_LANES (FORMAT == ADAPTIVE ? LONG_LANES : ROW_LANES)
#define ITEM_ROW_LANES (MOST_ROW_LANES > WG ? MOST_ROW_LANES / WG : 1)

typedef struct {
    __global const uint* rows;
    __global const uint* indices;
    __global const real_t* values;
    uint stride;
    uint furthest;                // last column, and the diagonals where they are few
    uint diagonal[KNOWN_DIAGONALS];
} matrix_t;

matrix_t matrix_of(__global const uint* rows, __global const uint* indices, __global const real_t* values, uint stride)
{
    matrix_t matrix;
    matrix.rows = rows;
    matrix.indices = indices;
    matrix.values = values;
    matrix.stride = stride;
    if (FORMAT == DIAGONALS) {
        matrix.furthest = rows[1] - 1;
        if (BLOCK > 1)
            for (uint d = 0; d < KNOWN_DIAGONALS; ++d) matrix.diagonal[d] = rows[2 + d];
    }
    return matrix;
}

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

// Offset i of those that start at word `base` of the row pointers.
size_t offset_at(const matrix_t* matrix, size_t base, size_t i)
{
    return WIDE ? ((__global const ulong*)(matrix->rows + base))[i] : matrix->rows[base + i];
}

// Products of a row that were loaded together, added one after another. `there` tells which of them the row has;
// padding among those is left out.
void add_terms(acc_t* sum, const real_t* value, const index_t* column, const int* there, const vector_t* vector,
               int padded)
{
    for (uint c = 0; c < COLUMNS; ++c) {
        real_t x[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) x[j] = there[j] ? vector_at(vector, column[j], c) : 0;
        for (uint j = 0; j < AT_ONCE; ++j)
            if (there[j] && !(padded && isnan(value[j]))) sum[c] = acc_add(sum[c], acc_product(value[j], x[j]));
    }
}

// The same for one product that is there, if it is not padding.
void add_term(acc_t* sum, real_t value, index_t column, const vector_t* vector, int padded)
{
    if (padded && isnan(value)) return;
    for (uint c = 0; c < COLUMNS; ++c) sum[c] = acc_add(sum[c], acc_product(value, vector_at(vector, column, c)));
}

// Adds entries first, first + lanes, ... of a row whose entry k lies at start + k * step.
void walk(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t start, size_t step, uint length,
          uint first, uint lanes)
{
    __global const uint* indices = matrix->indices + start;
    __global const real_t* values = matrix->values + start;
    if (WG == 1) {
        for (uint k = first; k < length; k += lanes)
            add_term(sum, values[k * step], FORMAT == DENSE ? k : indices[k * step], vector, PADDED);
        return;
    }
    for (uint k = first; k < length; k += AT_ONCE * lanes) {
        real_t value[AT_ONCE];
        index_t column[AT_ONCE];
        int there[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            const uint entry = k + j * lanes;
            there[j] = entry < length;
            column[j] = FORMAT == DENSE ? entry : there[j] ? indices[entry * step] : 0;
            value[j] = there[j] ? values[entry * step] : 0;
        }
        add_terms(sum, value, column, there, vector, PADDED);
        if (PACKED && isnan(value[AT_ONCE - 1])) return;
    }
}

// Row i by diagonals. Padding may point outside the vector: any element will do, since it is not used.
void walk_diagonals(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    const size_t stride = matrix->stride;
    __global const real_t* values = matrix->values + i;
    if (BLOCK > 1 && WG > 1) {
        real_t value[KNOWN_DIAGONALS];
        for (uint d = 0; d < KNOWN_DIAGONALS; ++d) value[d] = values[d * stride];
        for (uint c = 0; c < COLUMNS; ++c) {
            real_t x[KNOWN_DIAGONALS];
            for (uint d = 0; d < KNOWN_DIAGONALS; ++d)
                x[d] = vector_at(vector, min((uint)i + matrix->diagonal[d], matrix->furthest), c);
            for (uint d = 0; d < KNOWN_DIAGONALS; ++d)
                if (!isnan(value[d])) sum[c] = acc_add(sum[c], acc_product(value[d], x[d]));
        }
        return;
    }
    const uint count = matrix->rows[0];
    __global const uint* diagonal = matrix->rows + 2;
    for (uint k = 0; k < count; k += AT_ONCE) {
        real_t value[AT_ONCE];
        index_t column[AT_ONCE];
        int there[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            there[j] = k + j < count;
            column[j] = there[j] ? min((uint)i + diagonal[k + j], matrix->furthest) : 0;
            value[j] = there[j] ? values[(k + j) * stride] : 0;
        }
        add_terms(sum, value, column, there, vector, 1);
    }
}

// Row i of the dense blocks of its block row.
void walk_blocks(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    const size_t first = matrix->rows[i / BLOCK];
    const uint length = (matrix->rows[i / BLOCK + 1] - first) * BLOCK;
    __global const uint* indices = matrix->indices + first;
    __global const real_t* values = matrix->values + (first * BLOCK + i % BLOCK) * BLOCK;
    for (uint k = 0; k < length; k += AT_ONCE) {
        real_t value[AT_ONCE];
        index_t column[AT_ONCE];
        int there[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            const uint entry = k + j;
            there[j] = entry < length;
            column[j] = there[j] ? indices[entry / BLOCK] * BLOCK + entry % BLOCK : 0;
            value[j] = there[j] ? values[(size_t)(entry / BLOCK) * (BLOCK * BLOCK) + entry % BLOCK] : 0;
            there[j] = there[j] && column[j] < matrix->stride;
        }
        add_terms(sum, value, column, there, vector, 1);
    }
}

// The first of entries low .. high, sorted by row, that is not above row i.
size_t find_row(__global const uint* entry_row, size_t low, size_t high, size_t i)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (entry_row[middle] < i) low = middle + 1;
        else high = middle;
    }
    return low;
}

void walk_coordinates(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    __global const uint* entry_row = matrix->rows + matrix->rows[1];
    const size_t chunk = i / matrix->rows[0];
    const size_t last = offset_at(matrix, 2, chunk + 1);
    const size_t start = find_row(entry_row, offset_at(matrix, 2, chunk), last, i);
    walk(sum, matrix, vector, start, 1, find_row(entry_row, start, last, i + 1) - start, 0, 1);
}

// The padded part of row i, and where that is full its share of the tail.
void walk_hybrid(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    const uint width = matrix->rows[0];
    const uint tail = matrix->rows[1];
    const size_t stride = matrix->stride;
    walk(sum, matrix, vector, i, stride, width, 0, 1);
    if (tail == 0 || (width > 0 && isnan(matrix->values[(width - 1) * stride + i]))) return;
    __global const uint* entry_row = matrix->rows + 2;
    const size_t start = find_row(entry_row, 0, tail, i);
    walk(sum, matrix, vector, width * stride + start, 1, find_row(entry_row, start, tail, i + 1) - start, 0, 1);
}

// Adds what of row i belongs to lane `first` of `lanes`; in SLICED and SORTED i is the row's place.
void row_add(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint first, uint lanes)
{
    __global const uint* rows = matrix->rows;
    if (FORMAT == CSR || FORMAT == ADAPTIVE) {
        const size_t base = FORMAT == ADAPTIVE ? rows[0] : 0;
        const size_t start = offset_at(matrix, base, i);
        walk(sum, matrix, vector, start, 1, offset_at(matrix, base, i + 1) - start, first, lanes);
    }
    if (FORMAT == ELLPACK_R) walk(sum, matrix, vector, i, matrix->stride, rows[i], first, lanes);
    if (FORMAT == ELLPACK || FORMAT == DENSE) walk(sum, matrix, vector, i, matrix->stride, rows[0], first, lanes);
    if (FORMAT == SLICED || FORMAT == SORTED) {
        const size_t start = rows[i / SLICE];
        walk(sum, matrix, vector, start * SLICE + i % SLICE, SLICE, rows[i / SLICE + 1] - start, first, lanes);
    }
    if (FORMAT == DIAGONALS) walk_diagonals(sum, matrix, vector, i);
    if (FORMAT == BLOCKS) walk_blocks(sum, matrix, vector, i);
    if (FORMAT == HYBRID) walk_hybrid(sum, matrix, vector, i);
    if (FORMAT == COORDINATES) walk_coordinates(sum, matrix, vector, i);
}

// One column of row_sum: the lanes that share a row, folded for all of them; `run` is the row's stretch of scratch.
acc_t row_fold(acc_t held, uint place, uint width, __local acc_t* run)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    run[place] = held;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch_fold(run, place, width);
    return run[0];
}

// Row i of the product, `lanes` lanes to a row, for an item that plays lane `place` (and place + WG, ...) in row
// `slot` of those the group works on. Items without a row pass valid = 0 and take part in the barriers only.
void row_sum(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, int valid, uint slot, uint place,
             uint lanes, __local acc_t* scratch)
{
    const uint held = lanes > WG ? lanes / WG : 1;
    acc_t lane[ITEM_ROW_LANES][COLUMNS];
    for (uint j = 0; j < held; ++j) {
        for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_real(0);
        if (valid) row_add(lane[j], matrix, vector, i, place + j * WG, lanes);
    }
    for (uint half_held = held / 2; half_held > 0; half_held /= 2)
        for (uint j = 0; j < half_held; ++j)
            for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_add(lane[j][c], lane[j + half_held][c]);
    for (uint c = 0; c < COLUMNS; ++c) sum[c] = lane[0][c];
    if (WG > 1 && lanes > 1) {
        const uint width = lanes < WG ? lanes : WG;
        __local acc_t* run = scratch + slot * width;
        sum[0] = row_fold(sum[0], place, width, run);
        if (COLUMNS > 1) sum[1 % COLUMNS] = row_fold(sum[1 % COLUMNS], place, width, run);
        if (COLUMNS > 2) sum[2 % COLUMNS] = row_fold(sum[2 % COLUMNS], place, width, run);
        if (COLUMNS > 3) sum[3 % COLUMNS] = row_fold(sum[3 % COLUMNS], place, width, run);
    }
}

// y = A x, or y = b - A x where there is a b (the difference is formed in the wide sum and rounded once), for row i.
void store_row(__global real_t* y, __global const real_t* b, const acc_t* sum, size_t i)
{
    for (uint c = 0; c < COLUMNS; ++c) {
        const size_t at = i * COLUMNS + c;
        y[at] = acc_to_real(b ? acc_sub(acc_real(b[at]), sum[c]) : sum[c]);
    }
}

// Rows first .. last, `lanes` lanes to each; `list`, where there is one, names the rows.
void product_rows(__global real_t* y, __global const real_t* b, const matrix_t* matrix, const vector_t* vector,
                  size_t first, size_t last, uint lanes, __global const uint* list, __local acc_t* scratch)
{
    const uint at_once = WG > lanes ? WG / lanes : 1;
    const uint item = get_local_id(0);
    const uint slot = BY_COLUMNS ? item % at_once : item / lanes;
    const uint place = BY_COLUMNS ? item / at_once : item % lanes;
    for (size_t base = first; base < last; base += at_once) {
        const size_t at = base + slot;
        const int valid = at < last;
        const size_t named = valid && list ? list[at] : at;
        acc_t sum[COLUMNS];
        row_sum(sum, matrix, vector, FORMAT == SORTED ? at : named, valid, slot, place, lanes, scratch);
        if (valid && place == 0) store_row(y, b, sum, named);
    }
}

// Rows first .. last of ADAPTIVE that have up to SHORT_ROW entries, one lane each.
void short_rows(__global real_t* y, __global const real_t* b, const matrix_t* matrix, const vector_t* vector,
                size_t first, size_t last)
{
    const size_t base = matrix->rows[0];
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        if (offset_at(matrix, base, i + 1) - offset_at(matrix, base, i) > SHORT_ROW) continue;
        acc_t sum[COLUMNS];
        for (uint c = 0; c < COLUMNS; ++c) sum[c] = acc_real(0);
        row_add(sum, matrix, vector, i, 0, 1);
        store_row(y, b, sum, i);
    }
}

// One chunk of ADAPTIVE: short rows, then rows of up to MIDDLE_ROW entries by MIDDLE_LANES, then longer ones by
// LONG_LANES. Two lists name the longer ones: rows[1] + chunk is where those of a chunk start in the first,
// rows[2] + chunk in the second, as words of `rows`.
void adaptive_product(__global real_t* y, __global const real_t* b, const matrix_t* matrix, const vector_t* vector,
                      size_t first, size_t last, __local acc_t* scratch)
{
    __global const uint* rows = matrix->rows;
    __global const uint* middle = rows + rows[1] + first / matrix->stride;
    __global const uint* longest = rows + rows[2] + first / matrix->stride;
    short_rows(y, b, matrix, vector, first, last);
    product_rows(y, b, matrix, vector, middle[0], middle[1], MIDDLE_LANES, rows, scratch);
    product_rows(y, b, matrix, vector, longest[0], longest[1], LONG_LANES, rows, scratch);
}

// All of ADAPTIVE, where no sums by chunk are wanted: groups 0 .. short_groups take short rows, the next ones a few
// rows of the first list each, the others a row of the second each.
void spread_product(__global real_t* y, const matrix_t* matrix, const vector_t* vector, uint n, uint chunk,
                    __local acc_t* scratch)
{
    __global const uint* rows = matrix->rows;
    const uint chunks = (n + matrix->stride - 1) / matrix->stride;
    const uint short_groups = (n + chunk - 1) / chunk;
    const uint at_once = WG > MIDDLE_LANES ? WG / MIDDLE_LANES : 1;
    const size_t middle = rows[rows[1]], middle_last = rows[rows[1] + chunks];
    const size_t longest = rows[rows[2]];
    const size_t middle_groups = (middle_last - middle + at_once - 1) / at_once;
    size_t group = get_group_id(0);
    if (group < short_groups) {
        short_rows(y, 0, matrix, vector, group * chunk, min((group + 1) * chunk, (size_t)n));
        return;
    }
    group -= short_groups;
    if (group < middle_groups) {
        const size_t at = middle + group * at_once;
        product_rows(y, 0, matrix, vector, at, min(at + at_once, middle_last), MIDDLE_LANES, rows, scratch);
        return;
    }
    group -= middle_groups;
    product_rows(y, 0, matrix, vector, longest + group, longest + group + 1, LONG_LANES, rows, scratch);
}

// Rows first .. last, one chunk, of the product. Every item sees them when it returns.
void chunk_product(__global real_t* y, __global const real_t* b, const matrix_t* matrix, const vector_t* vector,
                   size_t first, size_t last, __local acc_t* scratch)
{
    if (FORMAT == ADAPTIVE)
        adaptive_product(y, b, matrix, vector, first, last, scratch);
    else {
        const size_t order = (matrix->stride + SLICE - 1) / SLICE + 1;
        product_rows(y, b, matrix, vector, first, last, ROW_LANES, FORMAT == SORTED ? matrix->rows + order : 0, scratch);
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
