// Matrices: how each format is stored, and how the entries of one row are found and added. Joined before row.cl.
//
// Required macros:
//   FORMAT     how the matrix is stored, one of the names below; src/sparse/formats builds the arrays
//   WIDE       1: row offsets take two words each; the grid of STENCIL has three dimensions
//   BLOCK      rows and columns of a block of BLOCKS; number of diagonals of DIAGONALS, of points of STENCIL, 1 if
//              they are many
//   ROW_LANES  lanes that share a row: lane l adds entries l, l + ROW_LANES, ...; the lanes are folded by halving
//   COLUMNS    vectors multiplied at once; element i of vector c lies at i * COLUMNS + c
//   ENTRIES    how the entries of compressed and padded formats are stored: PLAIN, SHORT, NEAR or CODED (below), with SINGLE or without
//   OTHER_FORMAT, OTHER_LANES, OTHER_ENTRIES, THIRD_FORMAT, THIRD_LANES, THIRD_ENTRIES  those of a second and of a third matrix
//              that the same program multiplies by; those of the first if there is none
//   LOADS      entries of a row whose loads are under way together, if a group has several items
//   GATHER     the vector that is multiplied. 1: u. 2: u + scale v, computed while it is read; u alone if the pointer v is null. EXTERNAL
//              always has a v
//   STAGED     places of local memory for a vector that many rows of a group read, 0 for none
//
// Entries add in ascending column order, so all formats with one lane a row agree bit for bit. Places without an entry
// hold NaN, which no matrix holds, and are left out.

// CSR: rows: offsets (n + 1)
// ELLPACK_R: rows: lengths (n); entry k of row i at k * stride + i
// ELLPACK: rows: the longest length; entries as in ELLPACK_R, padded
// SLICED: rows: where slices of SLICE rows start, in units of SLICE; padded slice by slice
// SORTED: SLICED with rows in the order that follows the slice starts, which keeps long rows together
// DIAGONALS: rows: their number, columns of A, their offsets; values of diagonal d at d * stride + i
// BLOCKS: rows: offsets of block rows; stride: columns of A
// DENSE: rows: columns of A; value of column k at k * stride + i
// HYBRID: rows: width of the ELLPACK part, length of the tail, rows of the tail; tail behind that part
// COORDINATES: rows: rows of a chunk, where the row of each entry starts, offsets of chunks, row of each entry
// ADAPTIVE: rows: where the offsets start, two lists of longer rows (see adaptive_product); stride: chunk
// STENCIL: rows: the grid (see walk_stencil), then dx, dy, dz and distance of each point, table of the rims; values: coefficients
// EXTERNAL: nothing: an operator has computed the product, and the result already holds it
// SHIFTED: the transposed of DIAGONALS in the same values; rows: the number of diagonals, columns of A', their offsets
// BANDED: rows: width, entries beside the windows, where the window of each row starts, offsets of those entries (n + 1); value k
//     of row i at k * stride + i, those entries behind; indices: their columns
// PLAIN: column in a word of `indices`, value in `values`
// SHORT: column in 16 bits
// NEAR: column minus place of the row in 16 bits; the place is the row, or in SORTED where it lies
// CODED: column in the upper bits of a word, the value's place in the table `values` in the lower CODE_BITS;
//     DIAGONALS: that place alone, in 8 bits
// SINGLE: added to PLAIN, SHORT or NEAR: values in 32 bits, which hold them exactly
#define AT_ONCE (WG == 1 ? 1 : LOADS)
#define KNOWN_POINTS (FORMAT == STENCIL ? BLOCK : 1)
#define BY_DIAGONALS(kind) (kind == DIAGONALS || kind == SHIFTED)
#define KNOWN_DIAGONALS (BY_DIAGONALS(FORMAT) ? BLOCK : KNOWN_POINTS)
// STENCIL_TABLE: word of the grid that says where the table of rows at the rims starts, 0 for none
#define UNROLL_DIAGONALS (BLOCK > 1 ? WG > 1 : 0)
#define ALL_ARE(a, b, c) (a == b ? a == c : 0)
// Kind of a matrix, and the lanes that share a row of it: constants if a program knows one kind alone.
#define KIND(matrix) (ALL_ARE(FORMAT, OTHER_FORMAT, THIRD_FORMAT) ? FORMAT : (matrix)->kind)
// Tells if a matrix is of a kind that only the first can be.
#define IS(matrix, first) (FORMAT == first ? KIND(matrix) == first : 0)
#define LANES_OF(matrix) (ALL_ARE(ROW_LANES, OTHER_LANES, THIRD_LANES) ? ROW_LANES : (matrix)->lanes)
#define ENTRIES_OF(matrix) (ALL_ARE(ENTRIES, OTHER_ENTRIES, THIRD_ENTRIES) ? ENTRIES : (matrix)->entries)
#define HAS_OFFSETS(kind) (kind == CSR ? 1 : kind == ADAPTIVE)
#define HAS_WIDTH(kind) (kind == ELLPACK ? 1 : kind == DENSE)
#define HAS_SLICES(kind) (kind == SLICED ? 1 : kind == SORTED)
// SHORT_ROW and MIDDLE_ROW: longest rows of ADAPTIVE that one lane adds, and that MIDDLE_LANES add; LONG_LANES add others

#define ENDS_IN_PADDING(kind) (kind == ELLPACK || kind == SLICED || kind == SORTED || kind == HYBRID) // padding ends a row
#define PADDED(kind) (ENDS_IN_PADDING(kind) || kind == DENSE)
// Neighbouring items take neighbouring rows rather than neighbouring entries of a row.
#define BY_COLUMNS(kind) (kind == DENSE || kind == ELLPACK_R || kind == ELLPACK)
// The item that holds a row's lane of a reduction is not the one that adds the row.
#define ROWS_APART (ROW_LANES > 1 || FORMAT == SORTED || FORMAT == ADAPTIVE || FORMAT == EXTERNAL)
#define MORE_LANES(a, b) (a > b ? a : b)
#define SHARING_LANES MORE_LANES(MORE_LANES(ROW_LANES, OTHER_LANES), THIRD_LANES)
#define MOST_ROW_LANES (FORMAT == ADAPTIVE ? LONG_LANES : SHARING_LANES)
#define ITEM_ROW_LANES (MOST_ROW_LANES > WG ? MOST_ROW_LANES / WG : 1)

typedef struct {
    __global const uint* rows;
    __global const uint* indices;
    __global const real_t* values;
    uint stride;
    uint kind, lanes, entries;
    uint furthest;                // last column of DIAGONALS
    uint diagonal[KNOWN_DIAGONALS];  // if they are few, and the points of a STENCIL with their coefficients
    real_t coefficient[KNOWN_POINTS];
} matrix_t;

// Filled in place: Oclgrind 21 does not know what Clang makes of functions that return a struct.
static void hold_matrix(matrix_t* matrix, __global const uint* rows, __global const uint* indices,
                        __global const real_t* values, uint stride)
{
    matrix->rows = rows;
    matrix->indices = indices;
    matrix->values = values;
    matrix->stride = stride;
}

static void open_matrix(matrix_t* matrix, __global const uint* rows, __global const uint* indices,
                        __global const real_t* values, uint stride)
{
    hold_matrix(matrix, rows, indices, values, stride);
    matrix->kind = FORMAT;
    matrix->lanes = ROW_LANES;
    matrix->entries = ENTRIES;
    if (BY_DIAGONALS(FORMAT)) {
        matrix->furthest = rows[1] - 1;
        if (BLOCK > 1)
            for (uint d = 0; d < KNOWN_DIAGONALS; ++d) matrix->diagonal[d] = rows[2 + d];
    }
    if (KNOWN_POINTS > 1)
        for (uint k = 0; k < KNOWN_POINTS; ++k) {
            matrix->diagonal[k] = rows[STENCIL_HEADER + 4 * k + 3];
            matrix->coefficient[k] = values[k];
        }
}

// The other matrix, of a kind that needs nothing more.
static void open_other(matrix_t* matrix, __global const uint* rows, __global const uint* indices,
                       __global const real_t* values, uint stride)
{
    hold_matrix(matrix, rows, indices, values, stride);
    matrix->kind = OTHER_FORMAT;
    matrix->lanes = OTHER_LANES;
    matrix->entries = OTHER_ENTRIES;
}

// Takes on the kind of matrix `which` of the three: what the first alone has stays.
static void take_kind(matrix_t* matrix, uint which)
{
    matrix->kind = which == 0 ? FORMAT : which == 1 ? OTHER_FORMAT : THIRD_FORMAT;
    matrix->lanes = which == 0 ? ROW_LANES : which == 1 ? OTHER_LANES : THIRD_LANES;
    matrix->entries = which == 0 ? ENTRIES : which == 1 ? OTHER_ENTRIES : THIRD_ENTRIES;
}

typedef struct {
    __global const real_t* u;
    __global const real_t* v;
    __local const real_t* staged; // all of it, where it was formed beforehand
    real_t scale[COLUMNS];
} vector_t;

// The vector is u alone.
static void read_vector(vector_t* vector, __global const real_t* u)
{
    vector->u = u;
    vector->v = 0;
    vector->staged = 0;
}

// The vector is u + scale v.
static void form_vector(vector_t* vector, __global const real_t* u, __global const real_t* v)
{
    vector->u = u;
    vector->v = v;
    vector->staged = 0;
}

// True if there is a second part.
#define HAS_SECOND(vector) (GATHER == 1 ? 0 : FORMAT == EXTERNAL ? 1 : (vector)->v != 0)

static real_t vector_at(const vector_t* vector, size_t i, uint c)
{
    const size_t at = i * COLUMNS + c;
    if (STAGED > 0 ? vector->staged != 0 : 0) return vector->staged[at];
    if (!HAS_SECOND(vector)) return vector->u[at];
    return vector->u[at] + vector->scale[c] * vector->v[at];
}

// True if all columns of an element are one load.
#define READ_WHOLE (COLUMNS == 2 ? 1 : COLUMNS == 4)

// Element i of all columns. They lie side by side: two or four are read at once.
static void columns_read(__global const real_t* u, size_t i, real_t* x)
{
    if (COLUMNS == 2) vstore2(((__global const real2_t*)u)[i], 0, x);
    else if (COLUMNS == 4) vstore4(((__global const real4_t*)u)[i], 0, x);
    else
        for (uint c = 0; c < COLUMNS; ++c) x[c] = u[i * COLUMNS + c];
}

static void columns_at(const vector_t* vector, size_t i, real_t* x)
{
    if (STAGED > 0 ? vector->staged != 0 : 0) {
        for (uint c = 0; c < COLUMNS; ++c) x[c] = vector->staged[i * COLUMNS + c];
        return;
    }
    columns_read(vector->u, i, x);
    if (!HAS_SECOND(vector)) return;
    real_t v[COLUMNS];
    columns_read(vector->v, i, v);
    for (uint c = 0; c < COLUMNS; ++c) x[c] = x[c] + vector->scale[c] * v[c];
}

// Forms all `count` elements of a vector in `places`, for rows that read more than that.
static void stage(vector_t* vector, uint count, __local real_t* places)
{
    for (uint i = get_local_id(0); i < count; i += WG)
        for (uint c = 0; c < COLUMNS; ++c) places[i * COLUMNS + c] = vector_at(vector, i, c);
    barrier(CLK_LOCAL_MEM_FENCE);
    vector->staged = places;
}

// Offset i of those that start at word `base` of the row pointers.
static size_t offset_at(const matrix_t* matrix, size_t base, size_t i)
{
    return WIDE ? ((__global const ulong*)(matrix->rows + base))[i] : matrix->rows[base + i];
}

// Column of the entry at `at`, of a row at `place`.
static index_t column_at(const matrix_t* matrix, size_t at, size_t place)
{
    const uint entries = ENTRIES_OF(matrix) & (SINGLE - 1);
    if (entries == SHORT) return ((__global const ushort*)matrix->indices)[at];
    if (entries == NEAR) return (uint)place + ((__global const short*)matrix->indices)[at];
    return entries == CODED ? matrix->indices[at] >> CODE_BITS : matrix->indices[at];
}

static real_t value_at(const matrix_t* matrix, size_t at)
{
    if (ENTRIES_OF(matrix) & SINGLE) return ((__global const single_t*)matrix->values)[at];
    if (ENTRIES_OF(matrix) != CODED) return matrix->values[at];
    if (BY_DIAGONALS(FORMAT)) return matrix->values[((__global const uchar*)matrix->indices)[at]];
    return matrix->values[matrix->indices[at] & ((1 << CODE_BITS) - 1)];
}

// Products of a row that were loaded together, added one after another. `there` tells which of them the row has;
// padding among those is left out.
static void add_terms(acc_t* sum, const real_t* value, const index_t* column, const int* there, const vector_t* vector,
                      int padded)
{
    real_t x[AT_ONCE][COLUMNS];
    if (READ_WHOLE) {
        for (uint j = 0; j < AT_ONCE; ++j)
            if (there[j]) columns_at(vector, column[j], x[j]);
    }
    for (uint c = 0; c < COLUMNS; ++c) {
        // Chosen, not branched to: on an H200 a branch here takes a quarter more registers, and 10 % of the speed.
        if (!READ_WHOLE)
            for (uint j = 0; j < AT_ONCE; ++j) x[j][c] = there[j] ? vector_at(vector, column[j], c) : 0;
        for (uint j = 0; j < AT_ONCE; ++j)
            if (there[j] && !(padded && isnan(value[j]))) sum[c] = acc_add(sum[c], acc_product(value[j], x[j][c]));
    }
}

// Adds one product, if it is not padding.
static void add_term(acc_t* sum, real_t value, index_t column, const vector_t* vector, int padded)
{
    if (padded && isnan(value)) return;
    for (uint c = 0; c < COLUMNS; ++c) sum[c] = acc_add(sum[c], acc_product(value, vector_at(vector, column, c)));
}

// Adds entries first, first + lanes, ... of a row at `place` whose entry k lies at start + k * step.
static void walk(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t place, size_t start, size_t step,
                 uint length, uint first, uint lanes)
{
    const uint kind = KIND(matrix);
    if (WG == 1) {
        for (uint k = first; k < length; k += lanes) {
            const size_t at = start + k * step;
            add_term(sum, value_at(matrix, at), kind == DENSE ? k : column_at(matrix, at, place), vector, PADDED(kind));
        }
        return;
    }
    for (uint k = first; k < length; k += AT_ONCE * lanes) {
        real_t value[AT_ONCE];
        index_t column[AT_ONCE];
        int there[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            const uint entry = k + j * lanes;
            const size_t at = start + entry * step;
            there[j] = entry < length;
            column[j] = kind == DENSE ? entry : there[j] ? column_at(matrix, at, place) : 0;
            value[j] = there[j] ? value_at(matrix, at) : 0;
        }
        add_terms(sum, value, column, there, vector, PADDED(kind));
        if (ENDS_IN_PADDING(kind) && isnan(value[AT_ONCE - 1])) return;
    }
}

// Tells if values that do not count are left out of the sum, rather than chosen to be NaN: items alone (side_rows of row.cl) ask for NaN.
#define LEAVES_OUT (PTX ? WG > 1 : 0)

// Tells if the transposed has no such column: what was loaded in its place does not count.
static int is_behind(const matrix_t* matrix, uint column)
{
    return KIND(matrix) == DIAGONALS ? 0 : column > matrix->furthest;
}

// Value of row i on diagonal d of `count`, which lies in this column. Diagonal d of the transposed is diagonal count - 1 - d of the matrix,
// which holds that value in row `column`. The load is unconditional, so that those of all diagonals are under way together.
static real_t diagonal_value(const matrix_t* matrix, size_t i, uint column, uint d, uint count)
{
    const size_t stride = matrix->stride;
    if (KIND(matrix) == DIAGONALS) return value_at(matrix, i + d * stride);
    const real_t value = value_at(matrix, min(column, matrix->furthest) + (count - 1 - d) * stride);
    return !LEAVES_OUT && is_behind(matrix, column) ? (real_t)NAN : value;
}

// Tells if a value is left out of the sum although it is no NaN. On an H200 products took 1.25 times as long with NaN chosen for it. PoCL 3.1
// wants it chosen: its compiler loads what is left out of a sum from places that are not there.
#define IS_LEFT_OUT(matrix, column) (LEAVES_OUT ? is_behind(matrix, column) : 0)

// Row i by diagonals. Padding may point outside the vector: any element will do, since it is not used. Values and elements are
// loaded together: apart, the transposed took 1.24 times as long on an H200.
static void walk_diagonals(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    if (UNROLL_DIAGONALS) {
        uint column[KNOWN_DIAGONALS];
        real_t value[KNOWN_DIAGONALS], x[KNOWN_DIAGONALS];
        for (uint d = 0; d < KNOWN_DIAGONALS; ++d) {
            column[d] = (uint)i + matrix->diagonal[d];
            value[d] = diagonal_value(matrix, i, column[d], d, KNOWN_DIAGONALS);
            x[d] = vector_at(vector, min(column[d], matrix->furthest), 0);
        }
        for (uint c = 0; c < COLUMNS; ++c) {
            if (c > 0)
                for (uint d = 0; d < KNOWN_DIAGONALS; ++d)
                    x[d] = vector_at(vector, min(column[d], matrix->furthest), c);
            for (uint d = 0; d < KNOWN_DIAGONALS; ++d)
                if (!IS_LEFT_OUT(matrix, column[d]) && !isnan(value[d]))
                    sum[c] = acc_add(sum[c], acc_product(value[d], x[d]));
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
            const uint exact = there[j] ? (uint)i + diagonal[k + j] : 0;
            column[j] = min(exact, matrix->furthest);
            value[j] = there[j] ? diagonal_value(matrix, i, exact, k + j, count) : 0;
            there[j] = IS_LEFT_OUT(matrix, exact) ? 0 : there[j];
        }
        add_terms(sum, value, column, there, vector, 1);
    }
}

// Tells if the neighbour at this offset is there. Coordinates below 0 are large numbers here.
static uint on_grid(__global const uint* grid, uint4 offset, uint x, uint y, uint z)
{
    return x + offset.x < grid[0] && y + offset.y < grid[1] && z + offset.z < grid[2];
}

// Kind of a coordinate: those below `before` and behind the inner ones each have their own, the inner ones share one; `shared` is how
// many fewer kinds than inner ones that makes.
static uint rim_kind(uint at, uint before, uint inside, uint shared)
{
    if (at < before) return at;
    return at - before < inside ? before : at - shared;
}

// Row i of a stencil with rims, by the table behind word grid[STENCIL_TABLE]. It begins with the kinds of x and y and what the inner
// points of x, y and z share, and then has for each kind of point (those of x fastest) the distances of its entries. Their coefficients
// lie behind those of the points and one more. NaN ends a row.
static void walk_rim(acc_t* sum, const matrix_t* matrix, const vector_t* vector, uint i, uint x, uint y, uint z)
{
    __global const uint* grid = matrix->rows;
    __global const uint* table = grid + grid[STENCIL_TABLE];
    uint kind = rim_kind(y, grid[6], grid[7], table[3]);
    if (WIDE) kind += rim_kind(z, grid[8], grid[9], table[4]) * table[1];
    kind = kind * table[0] + rim_kind(x, grid[4], grid[5], table[2]);
    const uint points = grid[3];
    __global const uint* distance = table + TABLE_HEADER + (size_t)kind * points;
    __global const real_t* coefficient = matrix->values + points + 1 + (size_t)kind * points;
    if (KNOWN_POINTS > 1) {
        real_t value[KNOWN_POINTS];
        uint column[KNOWN_POINTS];
        for (uint k = 0; k < KNOWN_POINTS; ++k) {
            value[k] = coefficient[k];
            column[k] = i + distance[k];
        }
        for (uint k = 0; k < KNOWN_POINTS; ++k) add_term(sum, value[k], column[k], vector, 1);
        return;
    }
    for (uint k = 0; k < points; ++k) add_term(sum, coefficient[k], i + distance[k], vector, 1);
}

// Row i by the points of a stencil, those that lie on the grid. The first words of the grid: width, height, depth, number
// of points; then for each dimension the first coordinate that has all neighbours, and how many have.
static void walk_stencil(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    __global const uint* grid = matrix->rows;
    const uint line = (uint)i / grid[0];
    const uint x = (uint)i - line * grid[0];
    const uint z = WIDE ? line / grid[1] : 0;
    const uint y = line - z * grid[1];
    const int deep = WIDE ? z - grid[8] < grid[9] : 1;
    const int inside = deep && x - grid[4] < grid[5] && y - grid[6] < grid[7];
    if (!inside && grid[STENCIL_TABLE]) {
        walk_rim(sum, matrix, vector, (uint)i, x, y, z);
        return;
    }
    __global const uint4* points = (__global const uint4*)(grid + STENCIL_HEADER);
    if (KNOWN_POINTS > 1) {
        uint there = inside ? (1 << KNOWN_POINTS) - 1 : 0;
        if (!inside)
            for (uint k = 0; k < KNOWN_POINTS; ++k) there |= on_grid(grid, points[k], x, y, z) << k;
        for (uint c = 0; c < COLUMNS; ++c) {
            real_t neighbour[KNOWN_POINTS];
            for (uint k = 0; k < KNOWN_POINTS; ++k)
                neighbour[k] = vector_at(vector, there >> k & 1 ? (uint)i + matrix->diagonal[k] : (uint)i, c);
            for (uint k = 0; k < KNOWN_POINTS; ++k)
                if (there >> k & 1) sum[c] = acc_add(sum[c], acc_product(matrix->coefficient[k], neighbour[k]));
        }
        return;
    }
    for (uint k = 0; k < grid[3]; ++k)
        if (on_grid(grid, points[k], x, y, z))
            add_term(sum, matrix->values[k], (uint)i + points[k].w, vector, 0);
}

// Row i of the dense blocks of its block row.
static void walk_blocks(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    const size_t block_row = i / BLOCK;
    const size_t first = matrix->rows[block_row];
    const uint length = (matrix->rows[block_row + 1] - first) * BLOCK;
    __global const uint* indices = matrix->indices + first;
    __global const real_t* values = matrix->values + (first * BLOCK + (i - block_row * BLOCK)) * BLOCK;
    for (uint k = 0; k < length; k += AT_ONCE) {
        real_t value[AT_ONCE];
        index_t column[AT_ONCE];
        int there[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            const uint entry = k + j;
            const uint block = entry / BLOCK;
            const uint within = entry - block * BLOCK;
            there[j] = entry < length;
            column[j] = there[j] ? indices[block] * BLOCK + within : 0;
            value[j] = there[j] ? values[(size_t)block * (BLOCK * BLOCK) + within] : 0;
            there[j] = there[j] && column[j] < matrix->stride;
        }
        add_terms(sum, value, column, there, vector, 1);
    }
}

// The first of entries low .. high, sorted by row, that is not above row i.
static size_t find_row(__global const uint* entry_row, size_t low, size_t high, size_t i)
{
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (entry_row[middle] < i) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void walk_coordinates(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    __global const uint* entry_row = matrix->rows + matrix->rows[1];
    const size_t chunk = i / matrix->rows[0];
    const size_t last = offset_at(matrix, 2, chunk + 1);
    const size_t start = find_row(entry_row, offset_at(matrix, 2, chunk), last, i);
    walk(sum, matrix, vector, i, start, 1, find_row(entry_row, start, last, i + 1) - start, 0, 1);
}

// The padded part of row i, and if that is full its share of the tail.
static void walk_hybrid(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    const uint width = matrix->rows[0];
    const uint tail = matrix->rows[1];
    const size_t stride = matrix->stride;
    walk(sum, matrix, vector, i, i, stride, width, 0, 1);
    if (tail == 0 || (width > 0 && isnan(value_at(matrix, (width - 1) * stride + i)))) return;
    __global const uint* entry_row = matrix->rows + 2;
    const size_t start = find_row(entry_row, 0, tail, i);
    walk(sum, matrix, vector, i, width * stride + start, 1, find_row(entry_row, start, tail, i + 1) - start, 0, 1);
}

// Row i of windows of consecutive columns: what lies before its window, the window, and what lies behind.
static void walk_banded(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i)
{
    const uint width = matrix->rows[0];
    const uint tail = matrix->rows[1];
    const size_t stride = matrix->stride;
    const uint first = matrix->rows[2 + i];
    __global const uint* offsets = matrix->rows + 2 + stride;
    __global const real_t* beside = matrix->values + width * stride;
    uint at = tail > 0 ? offsets[i] : 0;
    const uint end = tail > 0 ? offsets[i + 1] : 0;
    for (; at < end && matrix->indices[at] < first; ++at) add_term(sum, beside[at], matrix->indices[at], vector, 0);
    for (uint k = 0; k < width; k += AT_ONCE) {
        real_t value[AT_ONCE];
        index_t column[AT_ONCE];
        int there[AT_ONCE];
        for (uint j = 0; j < AT_ONCE; ++j) {
            there[j] = k + j < width;
            column[j] = there[j] ? first + k + j : 0;
            value[j] = there[j] ? matrix->values[(k + j) * stride + i] : 0;
        }
        add_terms(sum, value, column, there, vector, 1);
    }
    for (; at < end; ++at) add_term(sum, beside[at], matrix->indices[at], vector, 0);
}
