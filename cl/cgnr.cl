// Regularised CGNR in two launches per iteration, for matrices stored by rows and COLUMNS right-hand sides at once.
// Source: stock-koch-2009, table 1; the derivation of alpha and beta is in src/solver/cgnr.rs.
//
//   minimise  |A x - b|^2 / 2 + R(x),   s = A'r - F(x, x) = -gradient,   r = b - A x
//   F(x, v) = tikhonov v + sum over neighbours of (smooth + tv phi(x)) (v - v_neighbour) + box (v - bound) where x
//             is out of bounds;   phi = 1 / sqrt(|difference of x|^2 + epsilon^2)   (lagged diffusivity)
//
// cgnr_forward:   beta;   d = s + beta d   formed as it is read;   q = A d;   sums of q.q and d.F(x, d)
// cgnr_backward:  alpha;  r -= alpha q and x += alpha d formed as they are read;   s = A'r - F(x, x);   sums of s.s,
//                 s.s_old, s.d and r.r
// What other groups still read is written to a second buffer, and the two change places every iteration.
//
// Where products are made by others (FORMAT OUTSIDE) each kernel is launched twice, once for each PART, with the product
// in between: pixels, then q = A d, then rows; rows, then s = A'r, then pixels.
//
// cgnr_resident does many iterations in one launch, for groups that all run at once; between iterations it leaves the same
// state as the two, and they may take turns.
//
// Required macros:
//   EDGES   0 no neighbour terms, 1 smoothness, 2 smoothness and total variation
//   PIXEL_LANES  virtual lanes of a chunk of pixels; LANES are those of a chunk of rows
//   PART    0 all of an iteration's work, 1 what belongs to rows of A, 2 what belongs to pixels

#define ALL 0
#define ROWS_ONLY 1
#define PIXELS_ONLY 2

typedef struct {
    uint rows, row_chunk, row_groups; // of A
    uint cols, col_chunk, col_groups;
    uint width;                       // of the image, 0 if there are no neighbour terms
    uint stride;                      // of the matrix that is multiplied by, in the formats that have one
} shape_t;

#define RR 0           // written by cgnr_forward: r.r, s.s, s.d, beta
#define SS 1
#define GD 2
#define BETA 3
#define LAST_GD 4      // written by cgnr_backward: s.d, alpha
#define ALPHA 5
#define RESIDUAL_LIMIT 6
#define GRADIENT_LIMIT 7
#define GRADIENT_RATIO 8
#define TIKHONOV 9
#define SMOOTH 10
#define VARIATION 11
#define EPSILON2 12
#define BOX 13
#define LOWER 14
#define UPPER 15
#define CONTROL 16
#define STOP 0         // written by cgnr_forward
#define ITERATION 1
#define LAST_STOP 2    // written by cgnr_backward
#define NEXT_ITERATION 3
#define MAX_ITERATIONS 4
#define HISTORY_MASK 5
#define STATUS 6       // behind those of all columns lies the meeting of cgnr_resident (resident.cl)

#define RUNNING 0
#define CONVERGED 1
#define ITERATIONS_DONE 2
#define INDEFINITE 3
#define BREAKDOWN 4
#define NOT_FINITE 5
#define GRADIENT_CONVERGED 6

// Where the chunk sums of column c lie in `sums`: q.q and r.r by rows of A, the others by columns.
uint qq_run(shape_t shape, uint c) { return c * shape.row_groups; }
uint rr_run(shape_t shape, uint c) { return (COLUMNS + c) * shape.row_groups; }
uint col_run(shape_t shape, uint quantity, uint c)
{
    return 2 * COLUMNS * shape.row_groups + (quantity * COLUMNS + c) * shape.col_groups;
}
uint df_run(shape_t shape, uint c) { return col_run(shape, 0, c); }
uint ss_run(shape_t shape, uint c) { return col_run(shape, 1, c); }
uint so_run(shape_t shape, uint c) { return col_run(shape, 2, c); }
uint sd_run(shape_t shape, uint c) { return col_run(shape, 3, c); }

int all_stopped(__global const int* status, uint which)
{
    for (uint c = 0; c < COLUMNS; ++c)
        if (status[c * STATUS + which] == RUNNING) return 0;
    return 1;
}

// Copies one kernel's slot of the status to the other's, where every column has stopped.
void hand_on(__global int* status, uint from, uint to)
{
    for (uint c = 0; c < COLUMNS; ++c) {
        status[c * STATUS + to] = status[c * STATUS + from];
        status[c * STATUS + to + 1] = status[c * STATUS + from + 1];
    }
}

// As CHUNK_ITEMS and ITEM_LANES, for pixels.
#define PIXEL_ITEMS (PIXEL_LANES < WG ? PIXEL_LANES : WG)
#define PIXEL_ITEM_LANES (PIXEL_LANES > WG ? PIXEL_LANES / WG : 1)

// Runs that are folded at once: scratch has as many times WG places.
#define RUNS (COLUMNS > 3 ? 4 : 3)

// Folds `count` numbers that every item holds, RUNS at a time.
void fold_held(acc_t* held, uint count, __local acc_t* scratch)
{
    for (uint k = 0; k < count; k += RUNS)
        run_folds(held + k, count - k < RUNS ? count - k : RUNS, get_local_id(0), WG, scratch);
}

// beta for every column, with s.s and s.d of the new direction. Every item gets the results. False where all have stopped.
int choose_direction(const shape_t shape, __global const acc_t* sums, __global const acc_t* control,
                     __global const int* status, acc_t* ss, acc_t* beta, acc_t* gd, __local acc_t* scratch)
{
    // Read together with the sums: the wait is for all at once.
    acc_t last_gd[COLUMNS], total[3 * COLUMNS];
    int iteration[COLUMNS], running = 0;
    for (uint c = 0; c < COLUMNS; ++c) {
        last_gd[c] = control[c * CONTROL + LAST_GD];
        iteration[c] = status[c * STATUS + NEXT_ITERATION];
        running |= status[c * STATUS + LAST_STOP] == RUNNING;
    }
    hold_sums(total, 3 * COLUMNS, sums + ss_run(shape, 0), shape.col_groups);
    if (!running) return 0;
    fold_held(total, 3 * COLUMNS, scratch);
    for (uint c = 0; c < COLUMNS; ++c) {
        // s.s, s.s_old and s.d_old.
        ss[c] = total[c];
        beta[c] = acc_real(0);
        if (iteration[c] > 0) beta[c] = acc_div(acc_sub(ss[c], total[COLUMNS + c]), last_gd[c]);
        if (!acc_less(acc_real(0), beta[c])) beta[c] = acc_real(0);
        gd[c] = acc_add(ss[c], acc_mul(beta[c], total[2 * COLUMNS + c]));
        if (!acc_less(acc_real(0), gd[c])) {
            beta[c] = acc_real(0);
            gd[c] = ss[c];
        }
    }
    return 1;
}

// The stopping test of column c, and its norms into the history. For one item.
void record(uint c, acc_t rr, acc_t ss, acc_t gd, acc_t beta, __global acc_t* control, __global int* status,
            __global acc_t* history)
{
    __global acc_t* mine = control + c * CONTROL;
    int stop = status[c * STATUS + LAST_STOP];
    const int iteration = status[c * STATUS + NEXT_ITERATION];
    if (stop == RUNNING) {
        if (!acc_finite(ss) || !acc_finite(rr)) stop = NOT_FINITE;
        else if (!acc_less(mine[RESIDUAL_LIMIT], rr)) stop = CONVERGED;
        else if (!acc_less(mine[GRADIENT_LIMIT], ss)) stop = GRADIENT_CONVERGED;
        else if (!acc_less(acc_mul(mine[GRADIENT_RATIO], rr), ss)) stop = GRADIENT_CONVERGED;
        else if (iteration >= status[c * STATUS + MAX_ITERATIONS]) stop = ITERATIONS_DONE;
        const uint at = ((iteration & status[c * STATUS + HISTORY_MASK]) * COLUMNS + c) * 2;
        history[at] = rr;
        history[at + 1] = ss;
    }
    mine[RR] = rr;
    mine[SS] = ss;
    mine[GD] = gd;
    mine[BETA] = beta;
    status[c * STATUS + STOP] = stop;
    status[c * STATUS + ITERATION] = iteration;
}

// The stopping test of every column, which one group makes.
void test(const shape_t shape, const acc_t* ss, const acc_t* gd, const acc_t* beta, __global const acc_t* sums,
          __global acc_t* control, __global int* status, __global acc_t* history, __local acc_t* scratch)
{
    acc_t rr[COLUMNS];
    hold_sums(rr, COLUMNS, sums + rr_run(shape, 0), shape.row_groups);
    fold_held(rr, COLUMNS, scratch);
    if (get_local_id(0) == 0)
        for (uint c = 0; c < COLUMNS; ++c) record(c, rr[c], ss[c], gd[c], beta[c], control, status, history);
}

real_t violated_bound(real_t x, __global const acc_t* weights, int* violated)
{
    const real_t lower = acc_to_real(weights[LOWER]);
    const real_t upper = acc_to_real(weights[UPPER]);
    *violated = x < lower || x > upper;
    return x < lower ? lower : upper;
}

acc_t edge(real_t here, real_t there, real_t phi, __global const acc_t* weights)
{
    acc_t weight = weights[SMOOTH];
    if (EDGES == 2) weight = acc_add(weight, acc_mul(weights[VARIATION], acc_real(phi)));
    return acc_mul(weight, acc_real(here - there));
}

real_t diffusivity(real_t here, real_t right, real_t down, __global const acc_t* weights)
{
    const real_t dx = right - here;
    const real_t dy = down - here;
    const acc_t square = acc_add(acc_add(acc_product(dx, dx), acc_product(dy, dy)), weights[EPSILON2]);
    return acc_to_real(acc_div(acc_real(1), acc_sqrt(square)));
}

// q = A d for the rows of chunks first_chunk .. last_chunk, with their sums of q.q.
void forward_rows(const shape_t shape, uint first_chunk, uint last_chunk, const matrix_t* matrix,
                  const vector_t* direction, __global real_t* q, __global acc_t* sums, __local acc_t* scratch)
{
    const size_t first = first_chunk * (size_t)shape.row_chunk;
    const size_t last = min(last_chunk * (size_t)shape.row_chunk, (size_t)shape.rows);
    result_t result;
    result.y = q;
    result.b = 0;
    chunk_product(&result, matrix, direction, first, last, scratch);
    store_dots(q, q, shape.rows, shape.row_chunk, shape.row_groups, first_chunk, last_chunk, sums + qq_run(shape, 0),
               scratch);
}

// d = s + beta d_old for the pixels of chunks first_chunk .. last_chunk, with their sums of d.F(x, d). Columns of a chunk lie
// side by side in the group, like chunks: a chunk alone keeps few items busy.
void forward_pixels(const shape_t shape, uint first_chunk, uint last_chunk, const vector_t* direction,
                    __global const real_t* x, __global const real_t* phi, __global real_t* d_new,
                    __global const acc_t* control, __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / PIXEL_ITEMS;
    const uint place = get_local_id(0) & (PIXEL_ITEMS - 1);
    for (uint base = first_chunk * COLUMNS; base < last_chunk * COLUMNS; base += WG / PIXEL_ITEMS) {
        const uint mine = (base + slot) / COLUMNS;
        const uint c = base + slot - mine * COLUMNS;
        __global const acc_t* weights = control + c * CONTROL;
        const size_t first = mine * (size_t)shape.col_chunk;
        const size_t last = mine < last_chunk ? min(first + shape.col_chunk, (size_t)shape.cols) : first;
        acc_t lane[PIXEL_ITEM_LANES];
        for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) lane[j] = acc_real(0);
        for (size_t block = first; block < last; block += PIXEL_LANES)
            for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) {
                const size_t i = block + place + j * WG;
                if (i >= last) continue;
                const real_t here = vector_at(direction, i, c);
                d_new[i * COLUMNS + c] = here;
                acc_t sum = acc_mul(weights[TIKHONOV], acc_real(here));
                if (EDGES > 0) {
                    const uint column = i % shape.width;
                    const real_t own = EDGES == 2 ? phi[i * COLUMNS + c] : 0;
                    if (column + 1 < shape.width)
                        sum = acc_add(sum, edge(here, vector_at(direction, i + 1, c), own, weights));
                    if (i + shape.width < shape.cols)
                        sum = acc_add(sum, edge(here, vector_at(direction, i + shape.width, c), own, weights));
                    if (column > 0)
                        sum = acc_add(sum, edge(here, vector_at(direction, i - 1, c),
                                                EDGES == 2 ? phi[(i - 1) * COLUMNS + c] : 0, weights));
                    if (i >= shape.width)
                        sum = acc_add(sum, edge(here, vector_at(direction, i - shape.width, c),
                                                EDGES == 2 ? phi[(i - shape.width) * COLUMNS + c] : 0, weights));
                }
                int violated;
                violated_bound(x[i * COLUMNS + c], weights, &violated);
                if (violated) sum = acc_add(sum, acc_mul(weights[BOX], acc_real(here)));
                lane[j] = acc_add(lane[j], acc_mul(acc_real(here), sum));
            }
        acc_t held[1];
        held[0] = item_fold(lane, PIXEL_ITEM_LANES);
        run_folds(held, 1, place, PIXEL_ITEMS, scratch + slot * PIXEL_ITEMS);
        if (place == 0 && mine < last_chunk) sums[df_run(shape, c) + mine] = held[0];
    }
}

// Group 0 tests and records (not where PART is ROWS_ONLY); then come groups that own rows of A, then those that own pixels.
// Bytes: A once; s and d_old read, d_new and q written; phi and x read where F uses them.
__kernel GROUP
void cgnr_forward(shape_t shape, __global const uint* restrict rows, __global const uint* restrict indices,
                  __global const real_t* restrict values, __global const real_t* restrict s,
                  __global const real_t* restrict d_old, __global const real_t* restrict x,
                  __global const real_t* restrict phi, __global real_t* restrict d_new, __global real_t* q,
                  __global acc_t* sums, __global acc_t* control, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[RUNS * WG];
    vector_t direction;
    if (PART == ROWS_ONLY) {
        if (all_stopped(status, LAST_STOP)) return;
        read_vector(&direction, s); // the product is there already
    } else {
        acc_t ss[COLUMNS], beta[COLUMNS], gd[COLUMNS];
        if (!choose_direction(shape, sums, control, status, ss, beta, gd, scratch)) {
            if (get_group_id(0) == 0 && get_local_id(0) == 0) hand_on(status, LAST_STOP, STOP);
            return;
        }
        if (get_group_id(0) == 0) {
            test(shape, ss, gd, beta, sums, control, status, history, scratch);
            return;
        }
        form_vector(&direction, s, d_old);
        for (uint c = 0; c < COLUMNS; ++c) direction.scale[c] = acc_to_real(beta[c]);
    }
    // Rows, then pixels, whichever of them this launch does.
    const uint group = get_group_id(0) + (PART == PIXELS_ONLY ? shape.row_groups : 0) - (PART == ROWS_ONLY ? 0 : 1);
    if (group < shape.row_groups) {
        matrix_t matrix;
        open_matrix(&matrix, rows, indices, values, shape.stride);
        forward_rows(shape, group, group + 1, &matrix, &direction, q, sums, scratch);
    } else {
        const uint pixels = group - shape.row_groups;
        forward_pixels(shape, pixels, pixels + 1, &direction, x, phi, d_new, control, sums, scratch);
    }
}

// x_new = x + alpha d, phi of it, s_new less F(x_new, x_new) for the pixels of chunks first_chunk .. last_chunk, with their
// sums. Column c stays as it is where bit c of `stopped` is set.
void backward_pixels(const shape_t shape, uint first_chunk, uint last_chunk, const vector_t* image, uint stopped,
                     __global const real_t* d, __global const real_t* s, __global real_t* x_new,
                     __global real_t* s_new, __global real_t* phi, __global const acc_t* control,
                     __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / PIXEL_ITEMS;
    const uint place = get_local_id(0) & (PIXEL_ITEMS - 1);
    for (uint base = first_chunk * COLUMNS; base < last_chunk * COLUMNS; base += WG / PIXEL_ITEMS) {
        const uint mine = (base + slot) / COLUMNS;
        const uint c = base + slot - mine * COLUMNS;
        __global const acc_t* weights = control + c * CONTROL;
        const size_t first = mine * (size_t)shape.col_chunk;
        const size_t last = mine < last_chunk ? min(first + shape.col_chunk, (size_t)shape.cols) : first;
        acc_t ss[PIXEL_ITEM_LANES], so[PIXEL_ITEM_LANES], sd[PIXEL_ITEM_LANES];
        for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) ss[j] = so[j] = sd[j] = acc_real(0);
        for (size_t block = first; block < last; block += PIXEL_LANES)
            for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) {
                const size_t i = block + place + j * WG;
                if (i >= last) continue;
                const size_t at = i * COLUMNS + c;
                const real_t here = vector_at(image, i, c);
                // x + 0 d would lose the sign of a zero: a stopped column keeps its bits.
                x_new[at] = stopped >> c & 1 ? image->u[at] : here;
                acc_t sum = acc_mul(weights[TIKHONOV], acc_real(here));
                if (EDGES > 0) {
                    const uint column = i % shape.width;
                    const int has_right = column + 1 < shape.width;
                    const int has_down = i + shape.width < shape.cols;
                    const real_t right = has_right ? vector_at(image, i + 1, c) : here;
                    const real_t down = has_down ? vector_at(image, i + shape.width, c) : here;
                    const real_t own = EDGES == 2 ? diffusivity(here, right, down, weights) : 0;
                    if (EDGES == 2) phi[at] = own;
                    if (has_right) sum = acc_add(sum, edge(here, right, own, weights));
                    if (has_down) sum = acc_add(sum, edge(here, down, own, weights));
                    if (column > 0) {
                        const real_t left = vector_at(image, i - 1, c);
                        const real_t below = EDGES == 2 && has_down ? vector_at(image, i - 1 + shape.width, c) : left;
                        const real_t theirs = EDGES == 2 ? diffusivity(left, here, below, weights) : 0;
                        sum = acc_add(sum, edge(here, left, theirs, weights));
                    }
                    if (i >= shape.width) {
                        const real_t up = vector_at(image, i - shape.width, c);
                        const real_t beside = EDGES == 2 && has_right ? vector_at(image, i - shape.width + 1, c) : up;
                        const real_t theirs = EDGES == 2 ? diffusivity(up, beside, here, weights) : 0;
                        sum = acc_add(sum, edge(here, up, theirs, weights));
                    }
                }
                int violated;
                const real_t bound = violated_bound(here, weights, &violated);
                if (violated) sum = acc_add(sum, acc_mul(weights[BOX], acc_real(here - bound)));
                const real_t next = acc_to_real(acc_sub(acc_real(s_new[at]), sum));
                s_new[at] = next;
                ss[j] = acc_add(ss[j], acc_product(next, next));
                so[j] = acc_add(so[j], acc_product(next, s[at]));
                sd[j] = acc_add(sd[j], acc_product(next, d[at]));
            }
        acc_t held[3];
        held[0] = item_fold(ss, PIXEL_ITEM_LANES);
        held[1] = item_fold(so, PIXEL_ITEM_LANES);
        held[2] = item_fold(sd, PIXEL_ITEM_LANES);
        run_folds(held, 3, place, PIXEL_ITEMS, scratch + slot * PIXEL_ITEMS);
        if (place == 0 && mine < last_chunk) {
            sums[ss_run(shape, c) + mine] = held[0];
            sums[so_run(shape, c) + mine] = held[1];
            sums[sd_run(shape, c) + mine] = held[2];
        }
    }
}

// r_new = r - alpha q for the rows of chunks first_chunk .. last_chunk, with their sums of r.r.
void backward_rows(const shape_t shape, uint first_chunk, uint last_chunk, const vector_t* residual, uint stopped,
                   __global real_t* r_new, __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)shape.row_chunk;
        const size_t last = mine < last_chunk ? min(first + shape.row_chunk, (size_t)shape.rows) : first;
        acc_t held[COLUMNS];
        for (uint c = 0; c < COLUMNS; ++c) {
            acc_t lane[ITEM_LANES];
            for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
            for (size_t block = first; block < last; block += LANES)
                for (uint j = 0; j < ITEM_LANES; ++j) {
                    const size_t i = block + place + j * WG;
                    if (i >= last) continue;
                    const size_t at = i * COLUMNS + c;
                    const real_t next = stopped >> c & 1 ? residual->u[at] : vector_at(residual, i, c);
                    r_new[at] = next;
                    lane[j] = acc_add(lane[j], acc_product(next, next));
                }
            held[c] = item_fold(lane, ITEM_LANES);
        }
        run_folds(held, COLUMNS, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
        if (place == 0 && mine < last_chunk)
            for (uint c = 0; c < COLUMNS; ++c) sums[rr_run(shape, c) + mine] = held[c];
    }
}

// alpha of every column, its stop, and what the next launch needs of both. False where all have stopped.
int step_length(const shape_t shape, __global const acc_t* sums, __global acc_t* control, __global int* status,
                uint* stopped, vector_t* image, vector_t* residual, int writer, __local acc_t* scratch)
{
    // Read together with the sums: the wait is for all at once.
    acc_t gd[COLUMNS], total[2 * COLUMNS];
    int stop[COLUMNS], iteration[COLUMNS], running = 0;
    for (uint c = 0; c < COLUMNS; ++c) {
        gd[c] = control[c * CONTROL + GD];
        stop[c] = status[c * STATUS + STOP];
        iteration[c] = status[c * STATUS + ITERATION];
        running |= stop[c] == RUNNING;
    }
    hold_sums(total, COLUMNS, sums + qq_run(shape, 0), shape.row_groups);
    hold_sums(total + COLUMNS, COLUMNS, sums + df_run(shape, 0), shape.col_groups);
    if (!running) {
        if (writer) hand_on(status, STOP, LAST_STOP);
        return 0;
    }
    fold_held(total, 2 * COLUMNS, scratch);
    for (uint c = 0; c < COLUMNS; ++c) {
        const acc_t curvature = acc_add(total[c], total[COLUMNS + c]);
        acc_t alpha = acc_real(0);
        if (stop[c] == RUNNING && iteration[c] >= 0) {
            if (!acc_finite(curvature)) stop[c] = NOT_FINITE;
            else if (acc_less(curvature, acc_real(0))) stop[c] = INDEFINITE;
            else if (!acc_less(acc_real(0), curvature)) stop[c] = BREAKDOWN;
            else alpha = acc_div(gd[c], curvature);
            if (stop[c] == RUNNING && !acc_finite(alpha)) stop[c] = NOT_FINITE;
        }
        *stopped |= (uint)(stop[c] != RUNNING) << c;
        image->scale[c] = stop[c] == RUNNING ? acc_to_real(alpha) : 0;
        residual->scale[c] = -image->scale[c];
        if (writer) {
            control[c * CONTROL + LAST_GD] = gd[c];
            control[c * CONTROL + ALPHA] = alpha;
            status[c * STATUS + LAST_STOP] = stop[c];
            status[c * STATUS + NEXT_ITERATION] = stop[c] == RUNNING ? iteration[c] + 1 : iteration[c];
        }
    }
    return 1;
}

// s_new = A'r for the pixels of chunks first_chunk .. last_chunk.
void backward_product(const shape_t shape, uint first_chunk, uint last_chunk, const matrix_t* transposed,
                      const vector_t* residual, __global real_t* s_new, __local acc_t* scratch)
{
    const size_t first = first_chunk * (size_t)shape.col_chunk;
    const size_t last = min(last_chunk * (size_t)shape.col_chunk, (size_t)shape.cols);
    result_t result;
    result.y = s_new;
    result.b = 0;
    chunk_product(&result, transposed, residual, first, last, scratch);
}

// Groups that own pixels come first, then those that own rows of A. An iteration of -1 starts a solve: alpha is 0.
// Bytes: A' once; r, q, x, d, s read; r_new, x_new, s_new written; phi written where F uses it.
__kernel GROUP
void cgnr_backward(shape_t shape, __global const uint* restrict rows, __global const uint* restrict indices,
                   __global const real_t* restrict values, __global const real_t* restrict r,
                   __global const real_t* restrict q, __global const real_t* restrict x,
                   __global const real_t* restrict d, __global const real_t* restrict s,
                   __global real_t* restrict r_new, __global real_t* restrict x_new, __global real_t* s_new,
                   __global real_t* restrict phi, __global acc_t* sums, __global acc_t* control, __global int* status)
{
    __local acc_t scratch[RUNS * WG];
    const int writer = PART != ROWS_ONLY && get_group_id(0) == 0 && get_local_id(0) == 0;
    uint stopped = 0; // a bit for each column
    vector_t residual, image;
    form_vector(&residual, r, q);
    form_vector(&image, x, d);
    if (!step_length(shape, sums, control, status, &stopped, &image, &residual, writer, scratch)) return;
    const uint group = get_group_id(0) + (PART == ROWS_ONLY ? shape.col_groups : 0);
    if (group < shape.col_groups) {
        matrix_t transposed;
        open_matrix(&transposed, rows, indices, values, shape.stride);
        backward_product(shape, group, group + 1, &transposed, &residual, s_new, scratch);
        backward_pixels(shape, group, group + 1, &image, stopped, d, s, x_new, s_new, phi, control, sums, scratch);
    } else {
        const uint own = group - shape.col_groups;
        backward_rows(shape, own, own + 1, &residual, stopped, r_new, sums, scratch);
    }
}

// Meetings of an iteration: where the direction finds no room in local memory, it is formed before rows read it.
#define MEETINGS (STAGED > 0 ? 3 : 4)

// Buffers that change places: the one of turn `turn`.
#define OF_TURN(buffer, turn) ((turn) ? buffer##1 : buffer##0)

// `iterations` times cgnr_backward and cgnr_forward in one launch, the first with `turn`, for groups that all run at once
// and meet three or four times in each: r is formed before it is gathered, which costs a meeting and saves reading q as
// often as r, and so is d where it finds no room in local memory. Each group owns chunks of rows and of pixels, the last
// one tests; what a group reads of others was written before a meeting. `stride` is that of A transposed.
// Bytes: those of the two kernels less one gathered vector, from a cache where they fit.
__kernel GROUP
void cgnr_resident(shape_t shape, uint stride, uint rows_each, uint cols_each, uint iterations, uint turn,
                   __global const uint* restrict rows, __global const uint* restrict indices,
                   __global const real_t* restrict values, __global const uint* restrict t_rows,
                   __global const uint* restrict t_indices, __global const real_t* restrict t_values,
                   __global real_t* x0, __global real_t* x1, __global real_t* r0, __global real_t* r1,
                   __global real_t* s0, __global real_t* s1, __global real_t* d0, __global real_t* d1,
                   __global real_t* q, __global real_t* phi, __global acc_t* sums, __global acc_t* control,
                   __global int* status, __global acc_t* history)
{
    __local acc_t scratch[RUNS * WG];
    __local real_t staged[STAGED > 0 ? STAGED : 1];
    __local int verdict[1];
    __global int* meeting = status + COLUMNS * STATUS;
    if (!all_arrive(meeting, verdict)) return;
    const uint group = get_group_id(0);
    const int tests = group == get_num_groups(0) - 1;
    const int writer = tests ? get_local_id(0) == 0 : 0;
    const uint first_row = min(group * rows_each, shape.row_groups);
    const uint last_row = min(first_row + rows_each, shape.row_groups);
    const uint first_pixel = min(group * cols_each, shape.col_groups);
    const uint last_pixel = min(first_pixel + cols_each, shape.col_groups);
    // Going forward, groups without rows take the pixels while others multiply, if there are any such groups.
    const uint with_rows = (shape.row_groups + rows_each - 1) / rows_each;
    const uint idle = STAGED > 0 ? get_num_groups(0) - with_rows : 0;
    const uint share = idle > 0 ? (shape.col_groups + idle - 1) / idle : cols_each;
    const uint forward_first = idle == 0 ? first_pixel : group < with_rows ? 0 : min((group - with_rows) * share, shape.col_groups);
    const uint forward_last = idle > 0 && group < with_rows ? 0 : min(forward_first + share, shape.col_groups);
    matrix_t matrix, transposed;
    open_matrix(&matrix, rows, indices, values, shape.stride);
    open_other(&transposed, t_rows, t_indices, t_values, stride);
    int done = iterations == 0;
    for (uint k = 0; !done; ++k) {
        const uint now = (turn + k) & 1;
        const uint next = 1 - now;
        uint stopped = 0; // a bit for each column
        vector_t residual, image, direction;
        form_vector(&residual, OF_TURN(r, now), q);
        form_vector(&image, OF_TURN(x, now), OF_TURN(d, next));
        done = !step_length(shape, sums, control, status, &stopped, &image, &residual, writer, scratch);
        if (!done) {
            backward_rows(shape, first_row, last_row, &residual, stopped, OF_TURN(r, next), sums, scratch);
            meet(meeting, MEETINGS * k + 1);
            read_vector(&residual, OF_TURN(r, next));
            backward_product(shape, first_pixel, last_pixel, &transposed, &residual, OF_TURN(s, next), scratch);
            backward_pixels(shape, first_pixel, last_pixel, &image, stopped, OF_TURN(d, next), OF_TURN(s, now),
                            OF_TURN(x, next), OF_TURN(s, next), phi, control, sums, scratch);
            meet(meeting, MEETINGS * k + 2);
            acc_t ss[COLUMNS], beta[COLUMNS], gd[COLUMNS];
            done = !choose_direction(shape, sums, control, status, ss, beta, gd, scratch);
            if (done && writer) hand_on(status, LAST_STOP, STOP);
            for (uint c = 0; c < COLUMNS; ++c) direction.scale[c] = done ? 0 : acc_to_real(beta[c]);
            if (tests && !done) test(shape, ss, gd, beta, sums, control, status, history, scratch);
        }
        if (!done) {
            form_vector(&direction, OF_TURN(s, next), OF_TURN(d, next));
            if (STAGED > 0) stage(&direction, shape.cols, staged);
            forward_pixels(shape, forward_first, forward_last, &direction, OF_TURN(x, next), phi, OF_TURN(d, now),
                           control, sums, scratch);
            if (STAGED == 0) {
                meet(meeting, MEETINGS * k + 3);
                read_vector(&direction, OF_TURN(d, now));
            }
            forward_rows(shape, first_row, last_row, &matrix, &direction, q, sums, scratch);
            meet(meeting, MEETINGS * k + MEETINGS);
            done = k + 1 == iterations;
        }
    }
    depart(meeting);
}
