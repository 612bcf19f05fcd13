// Rows of products: lanes that share one, chunks of them, and the sums over chunks. Joined after format.cl.

// Kinds whose rows are walked entry by entry, at a distance of entry_step.
#define WALKED(kind) (HAS_OFFSETS(kind) || kind == ELLPACK_R || HAS_WIDTH(kind) || HAS_SLICES(kind))

// The first entry of row i and the number of its entries, with their padding; in SLICED and SORTED i is the row's place.
static void row_extent(const matrix_t* matrix, size_t i, size_t* start, uint* length)
{
    __global const uint* rows = matrix->rows;
    const uint kind = KIND(matrix);
    if (HAS_OFFSETS(kind)) {
        const size_t base = kind == ADAPTIVE ? rows[0] : 0;
        *start = offset_at(matrix, base, i);
        *length = offset_at(matrix, base, i + 1) - *start;
    } else if (HAS_SLICES(kind)) {
        const uint slice = rows[i / SLICE];
        *start = slice * (size_t)SLICE + i % SLICE;
        *length = rows[i / SLICE + 1] - slice;
    } else {
        *start = i;
        *length = rows[kind == ELLPACK_R ? i : 0];
    }
}

static size_t entry_step(const matrix_t* matrix)
{
    const uint kind = KIND(matrix);
    return HAS_OFFSETS(kind) ? 1 : HAS_SLICES(kind) ? SLICE : matrix->stride;
}

// Adds what of row i belongs to lane `first` of `lanes`; in SLICED and SORTED i is the row's place.
static void row_add(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint first, uint lanes)
{
    if (WALKED(KIND(matrix))) {
        size_t start;
        uint length;
        row_extent(matrix, i, &start, &length);
        walk(sum, matrix, vector, i, start, entry_step(matrix), length, first, lanes);
    }
    if (IS(matrix, DIAGONALS) || IS(matrix, SHIFTED)) walk_diagonals(sum, matrix, vector, i);
    if (IS(matrix, STENCIL)) walk_stencil(sum, matrix, vector, i);
    if (IS(matrix, BLOCKS)) walk_blocks(sum, matrix, vector, i);
    if (IS(matrix, HYBRID)) walk_hybrid(sum, matrix, vector, i);
    if (IS(matrix, BANDED)) walk_banded(sum, matrix, vector, i);
    if (IS(matrix, COORDINATES)) walk_coordinates(sum, matrix, vector, i);
}

// One column of row_sum if the lanes that share a row are no neighbours, folded for all of them; `run` is the row's
// stretch of scratch.
static acc_t row_fold(acc_t held, uint place, uint width, __local acc_t* run)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    run[place] = held;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch_fold(run, place, width);
    return run[0];
}

// Row i of the product, `lanes` lanes to a row, for an item that plays lane `place` (and place + WG, ...) in row
// `slot` of those the group works on. Items without a row pass valid = 0 and take part in the barriers only.
static void row_sum(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, int valid, uint slot, uint place,
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
    if (WG > 1 ? lanes > 1 : 0) {
        const uint width = lanes < WG ? lanes : WG;
        __local acc_t* run = scratch + slot * width;
        if (BY_COLUMNS(KIND(matrix)))
            for (uint c = 0; c < COLUMNS; ++c) sum[c] = row_fold(sum[c], place, width, run);
        else
            run_folds(sum, COLUMNS, place, width, run);
    }
}

// Target of a product, and what it is combined with.
typedef struct {
    __global real_t* y;
    __global const real_t* b;
    __local const acc_t* blend; // if BLEND is not 0: a factor for each column, then those of b
    uint steps;                 // if BLEND is TOLD: the steps of this product
} result_t;

#define STEPS(result) (BLEND == TOLD ? (result)->steps : BLEND)

// y = A x, or y = b - A x if there is a b, or with BLEND y = s A x (1), y = A x + k b (2), y = s A x + k b (3), A x + b (PLUS), A x - b
// (MINUS), A x times b (TIMES), for row i. All is formed in the wide sum and rounded once.
static void store_row(const result_t* result, const acc_t* sum, size_t i)
{
    __global const real_t* b = result->b;
    for (uint c = 0; c < COLUMNS; ++c) {
        const size_t at = i * COLUMNS + c;
        acc_t value = sum[c];
        if (BLEND == 0) {
            if (b) value = acc_sub(acc_real(b[at]), value);
        } else if (BLEND == PLUS) {
            value = acc_add(value, acc_real(b[at]));
        } else if (BLEND == MINUS) {
            value = acc_sub(value, acc_real(b[at]));
        } else if (BLEND == TIMES) {
            value = acc_mul(value, acc_real(b[at]));
        } else {
            if (STEPS(result) & 1) value = acc_mul(result->blend[c], value);
            if (STEPS(result) & 2) value = acc_add(value, acc_mul(result->blend[COLUMNS + c], acc_real(b[at])));
        }
        result->y[at] = acc_to_real(value);
    }
}

// True if one item that has no neighbours adds SIDE rows side by side: where neighbours in a row lie far apart.
#define LIES_SIDE_BY_SIDE(kind) (WG == 1 ? BY_COLUMNS(kind) || HAS_SLICES(kind) || BY_DIAGONALS(kind) || kind == STENCIL : 0)

#if WG == 1
#define SIDE 16
#define SIDE_LANES (FORMAT == DENSE || OTHER_FORMAT == DENSE || THIRD_FORMAT == DENSE ? SHARING_LANES : 1)

// Adds one product, unless it is padding. Chosen, not branched to, so that a loop over rows becomes vector instructions.
static void add_chosen(acc_t* sum, real_t value, index_t column, const vector_t* vector)
{
    for (uint c = 0; c < COLUMNS; ++c) {
        const acc_t next = acc_add(sum[c], acc_product(value, vector_at(vector, column, c)));
        sum[c] = isnan(value) ? sum[c] : next;
    }
}

// Adds SIDE rows of a stencil, from `at` on: in one pass over the points if they are inner ones of one line, else one after another.
static void side_points(acc_t (*sum)[COLUMNS], const matrix_t* matrix, const vector_t* vector, size_t at)
{
    __global const uint* grid = matrix->rows;
    const uint line = (uint)at / grid[0];
    const uint x = (uint)at - line * grid[0];
    const uint z = WIDE ? line / grid[1] : 0;
    const uint y = line - z * grid[1];
    const int deep = WIDE ? z - grid[8] < grid[9] : 1;
    if (!(deep && x - grid[4] < grid[5] && x + SIDE - 1 - grid[4] < grid[5] && y - grid[6] < grid[7])) {
        for (uint l = 0; l < SIDE; ++l) walk_stencil(sum[l], matrix, vector, at + l);
        return;
    }
    const uint points = KNOWN_POINTS > 1 ? KNOWN_POINTS : grid[3];
    for (uint k = 0; k < points; ++k) {
        const real_t value = KNOWN_POINTS > 1 ? matrix->coefficient[k] : matrix->values[k];
        const uint first = (uint)at + (KNOWN_POINTS > 1 ? matrix->diagonal[k] : grid[STENCIL_HEADER + 4 * k + 3]);
        for (uint l = 0; l < SIDE; ++l)
            for (uint c = 0; c < COLUMNS; ++c)
                sum[l][c] = acc_add(sum[l][c], acc_product(value, vector_at(vector, first + l, c)));
    }
}

// SIDE rows of `list`, or from `at` on, that lie side by side, in one pass over their entries.
static void side_rows(const result_t* result, const matrix_t* matrix, const vector_t* vector, size_t at, uint lanes,
                      __global const uint* list)
{
    __global const uint* rows = matrix->rows;
    const uint kind = KIND(matrix);
    const uint shared = kind == DENSE ? lanes : 1;
    size_t start = at, step = matrix->stride;
    uint length = rows[kind == ELLPACK_R ? at : 0];
    if (kind == ELLPACK_R)
        for (uint l = 1; l < SIDE; ++l) length = max(length, rows[at + l]);
    if (HAS_SLICES(kind)) {
        start = rows[at / SLICE] * (size_t)SLICE + at % SLICE;
        step = SLICE;
        length = rows[at / SLICE + 1] - rows[at / SLICE];
    }
    acc_t lane[SIDE_LANES][SIDE][COLUMNS];
    for (uint j = 0; j < shared; ++j)
        for (uint l = 0; l < SIDE; ++l)
            for (uint c = 0; c < COLUMNS; ++c) lane[j][l][c] = acc_real(0);
    if (kind == STENCIL) {
        side_points(lane[0], matrix, vector, at);
        length = 0;
    }
    for (uint k = 0; k < length; ++k) {
        const size_t from = start + k * step;
        const uint j = k & (shared - 1);
        if (BY_DIAGONALS(kind)) {
            const uint first = (uint)at + rows[2 + k];
            const size_t whole = kind == DIAGONALS ? from : first + (length - 1 - k) * step;
            if (first + SIDE - 1 <= matrix->furthest && first <= first + SIDE - 1)
                for (uint l = 0; l < SIDE; ++l) add_chosen(lane[j][l], value_at(matrix, whole + l), first + l, vector);
            else
                for (uint l = 0; l < SIDE; ++l)
                    add_chosen(lane[j][l], diagonal_value(matrix, at + l, first + l, k, length), min(first + l, matrix->furthest), vector);
        } else {
            for (uint l = 0; l < SIDE; ++l)
                add_chosen(lane[j][l], value_at(matrix, from + l),
                           kind == DENSE ? k : column_at(matrix, from + l, at + l), vector);
        }
    }
    for (uint half_lanes = shared / 2; half_lanes > 0; half_lanes /= 2)
        for (uint j = 0; j < half_lanes; ++j)
            for (uint l = 0; l < SIDE; ++l)
                for (uint c = 0; c < COLUMNS; ++c)
                    lane[j][l][c] = acc_add(lane[j][l][c], lane[j + half_lanes][l][c]);
    for (uint l = 0; l < SIDE; ++l) store_row(result, lane[0][l], list ? list[at + l] : at + l);
}

// Loops whose turns are all written out, so that arrays that they run through stay in registers. Turns of the second kind are not
// made vectors before that, which would take them through memory.
#define UNROLLED _Pragma("unroll") for
#ifdef LOOPS_IN_ORDER
#define ONE_BY_ONE _Pragma("clang loop unroll(full)") for
#else
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable) unroll(full)") for
#endif

// Most lanes that stay in registers, and entries that are taken together of what whole rounds of all lanes leave behind.
#define FEW_LANES 32
#define PIECE 8

// Adds the upper half of twice `width` lanes to the lower one, if there are so many. A macro: in a function lanes would be in memory.
#define FOLD_LANES_TO(width) \
    if (MOST_ROW_LANES > width && lanes > width) \
        UNROLLED (uint j = 0; j < width; ++j) \
            for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_add(lane[j][c], lane[j + width][c])

// Row i, entry k in lane k % lanes, in one pass over its entries; up to FEW_LANES lanes.
static void lane_row(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint lanes)
{
    size_t start;
    uint length;
    row_extent(matrix, i, &start, &length);
    acc_t lane[MOST_ROW_LANES][COLUMNS];
    UNROLLED (uint j = 0; j < lanes; ++j)
        for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_real(0);
    uint k = 0;
    for (; k + lanes <= length; k += lanes)
        ONE_BY_ONE (uint j = 0; j < lanes; ++j) {
            const size_t at = start + k + j;
            add_term(lane[j], value_at(matrix, at), column_at(matrix, at, i), vector, 0);
        }
    UNROLLED (uint base = 0; base < lanes; base += PIECE) {
        const uint piece = lanes < PIECE ? lanes : PIECE;
        if (k + base + piece <= length) {
            ONE_BY_ONE (uint j = 0; j < piece; ++j) {
                const size_t at = start + k + base + j;
                add_term(lane[base + j], value_at(matrix, at), column_at(matrix, at, i), vector, 0);
            }
        } else {
            ONE_BY_ONE (uint j = 0; j < piece; ++j) {
                if (k + base + j >= length) break;
                const size_t at = start + k + base + j;
                add_term(lane[base + j], value_at(matrix, at), column_at(matrix, at, i), vector, 0);
            }
            break;
        }
    }
    FOLD_LANES_TO(16);
    FOLD_LANES_TO(8);
    FOLD_LANES_TO(4);
    FOLD_LANES_TO(2);
    FOLD_LANES_TO(1);
    for (uint c = 0; c < COLUMNS; ++c) sum[c] = lane[0][c];
}

// lane_row for more lanes than that.
static void long_row(acc_t* sum, const matrix_t* matrix, const vector_t* vector, size_t i, uint lanes)
{
    size_t start;
    uint length;
    row_extent(matrix, i, &start, &length);
    acc_t lane[MOST_ROW_LANES][COLUMNS];
    for (uint j = 0; j < lanes; ++j)
        for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_real(0);
    uint k = 0;
    for (; k + lanes <= length; k += lanes)
        for (uint j = 0; j < lanes; ++j) {
            const size_t at = start + k + j;
            add_term(lane[j], value_at(matrix, at), column_at(matrix, at, i), vector, 0);
        }
    for (size_t at = start + k; at < start + length; ++at)
        add_term(lane[at - start - k], value_at(matrix, at), column_at(matrix, at, i), vector, 0);
    for (uint half_lanes = lanes / 2; half_lanes > 0; half_lanes /= 2)
        for (uint j = 0; j < half_lanes; ++j)
            for (uint c = 0; c < COLUMNS; ++c) lane[j][c] = acc_add(lane[j][c], lane[j + half_lanes][c]);
    for (uint c = 0; c < COLUMNS; ++c) sum[c] = lane[0][c];
}

// Rows first .. last, `lanes` lanes to each; `list`, if there is one, names the rows.
static void product_rows(const result_t* result, const matrix_t* matrix, const vector_t* vector,
                         size_t first, size_t last, uint lanes, __global const uint* list, __local acc_t* scratch)
{
    const uint kind = KIND(matrix);
    size_t at = first;
    if (LIES_SIDE_BY_SIDE(kind))
        for (; at + SIDE <= last; at += SIDE) side_rows(result, matrix, vector, at, lanes, list);
    for (; at < last; ++at) {
        const size_t named = list ? list[at] : at;
        acc_t sum[COLUMNS];
        if (HAS_OFFSETS(kind) && lanes > 1)
            lane_row(sum, matrix, vector, named, lanes);
        else
            row_sum(sum, matrix, vector, kind == SORTED ? at : named, 1, 0, 0, lanes, scratch);
        store_row(result, sum, named);
    }
}
#else
// Rows first .. last, `lanes` lanes to each; `list`, if there is one, names the rows.
static void product_rows(const result_t* result, const matrix_t* matrix, const vector_t* vector,
                         size_t first, size_t last, uint lanes, __global const uint* list, __local acc_t* scratch)
{
    const uint at_once = WG > lanes ? WG / lanes : 1;
    const uint item = get_local_id(0);
    const int by_columns = BY_COLUMNS(KIND(matrix));
    // Both are powers of two: remainders by masks (Oclgrind 21 does not know what Clang makes of / beside %).
    const uint slot = by_columns ? item & (at_once - 1) : item / lanes;
    const uint place = by_columns ? item / at_once : item & (lanes - 1);
    for (size_t base = first; base < last; base += at_once) {
        const size_t at = base + slot;
        const int valid = at < last;
        const size_t named = valid && list ? list[at] : at;
        acc_t sum[COLUMNS];
        row_sum(sum, matrix, vector, KIND(matrix) == SORTED ? at : named, valid, slot, place, lanes, scratch);
        if (valid && place == 0) store_row(result, sum, named);
    }
}
#endif

#if WG == 1
// Rows first .. last of ADAPTIVE, one after another.
static void adaptive_product(const result_t* result, const matrix_t* matrix, const vector_t* vector,
                             size_t first, size_t last, __local acc_t* scratch)
{
    const size_t base = matrix->rows[0];
    for (size_t i = first; i < last; ++i) {
        const size_t length = offset_at(matrix, base, i + 1) - offset_at(matrix, base, i);
        acc_t sum[COLUMNS];
        if (length > MIDDLE_ROW)
            long_row(sum, matrix, vector, i, LONG_LANES);
        else if (length > SHORT_ROW)
            lane_row(sum, matrix, vector, i, MIDDLE_LANES);
        else
            row_sum(sum, matrix, vector, i, 1, 0, 0, 1, scratch);
        store_row(result, sum, i);
    }
}
#else
// Rows first .. last of ADAPTIVE that have up to SHORT_ROW entries, one lane each.
static void short_rows(const result_t* result, const matrix_t* matrix, const vector_t* vector,
                       size_t first, size_t last)
{
    const size_t base = matrix->rows[0];
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        if (offset_at(matrix, base, i + 1) - offset_at(matrix, base, i) > SHORT_ROW) continue;
        acc_t sum[COLUMNS];
        for (uint c = 0; c < COLUMNS; ++c) sum[c] = acc_real(0);
        row_add(sum, matrix, vector, i, 0, 1);
        store_row(result, sum, i);
    }
}

// One chunk of ADAPTIVE: short rows, then rows of up to MIDDLE_ROW entries by MIDDLE_LANES, then longer ones by
// LONG_LANES. Two lists name the longer ones: rows[1] + chunk is where those of a chunk start in the first,
// rows[2] + chunk in the second, as words of `rows`.
static void adaptive_product(const result_t* result, const matrix_t* matrix, const vector_t* vector,
                             size_t first, size_t last, __local acc_t* scratch)
{
    __global const uint* rows = matrix->rows;
    __global const uint* middle = rows + rows[1] + first / matrix->stride;
    __global const uint* longest = rows + rows[2] + first / matrix->stride;
    short_rows(result, matrix, vector, first, last);
    product_rows(result, matrix, vector, middle[0], middle[1], MIDDLE_LANES, rows, scratch);
    product_rows(result, matrix, vector, longest[0], longest[1], LONG_LANES, rows, scratch);
}

// All of ADAPTIVE, if no sums by chunk are wanted: groups 0 .. short_groups take short rows, the next ones a few rows of
// the first list each, the others a row of the second each.
static void spread_product(const result_t* result, const matrix_t* matrix, const vector_t* vector, uint n, uint chunk,
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
        short_rows(result, matrix, vector, group * chunk, min((group + 1) * chunk, (size_t)n));
        return;
    }
    group -= short_groups;
    if (group < middle_groups) {
        const size_t at = middle + group * at_once;
        product_rows(result, matrix, vector, at, min(at + at_once, middle_last), MIDDLE_LANES, rows, scratch);
        return;
    }
    group -= middle_groups;
    product_rows(result, matrix, vector, longest + group, longest + group + 1, LONG_LANES, rows, scratch);
}
#endif

// Rows first .. last of a product that y holds already.
static void external_product(const result_t* result, size_t first, size_t last)
{
    if (BLEND == 0 ? !result->b : 0) return;
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        acc_t sum[COLUMNS];
        for (uint c = 0; c < COLUMNS; ++c) sum[c] = acc_real(result->y[i * COLUMNS + c]);
        store_row(result, sum, i);
    }
}

// Rows first .. last of the product, whole chunks. Every item sees them when it returns.
static void chunk_product(const result_t* result, const matrix_t* matrix, const vector_t* vector,
                          size_t first, size_t last, __local acc_t* scratch)
{
    if (IS(matrix, ADAPTIVE))
        adaptive_product(result, matrix, vector, first, last, scratch);
    else if (FORMAT == EXTERNAL)
        external_product(result, first, last);
    else {
        const size_t order = (matrix->stride + SLICE - 1) / SLICE + 1;
        const int sorted = KIND(matrix) == SORTED;
        product_rows(result, matrix, vector, first, last, LANES_OF(matrix), sorted ? matrix->rows + order : 0, scratch);
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
}

// Chunks first_chunk .. last_chunk of the product: all rows at once, or if they are found by chunk one chunk after another.
static void chunks_product(const result_t* result, const matrix_t* matrix, const vector_t* vector, uint n, uint chunk,
                           uint first_chunk, uint last_chunk, __local acc_t* scratch)
{
    const uint together = IS(matrix, ADAPTIVE) ? 1 : last_chunk - first_chunk;
    for (uint g = first_chunk; g < last_chunk; g += together)
        chunk_product(result, matrix, vector, g * (size_t)chunk, min((g + together) * (size_t)chunk, (size_t)n), scratch);
}
