// Part of a CGNR iteration up to q = A d. Joined after correction.cl.

// beta for every column, with s.s and s.d of the new direction, and r.r for the group that tests. Every item gets the results.
// False if all have stopped.
static int choose_direction(const shape_t shape, uint slot, __global const acc_t* sums, __global const acc_t* registers,
                            __global int* status, int tests, acc_t* ss, acc_t* beta, acc_t* descent, acc_t* rr,
                            __local acc_t* scratch)
{
    // Read together with the sums: the wait is for all at once.
    acc_t last_descent[COLUMNS], total[MOST_RUNS];
    int running = 0;
    for (uint c = 0; c < COLUMNS; ++c) {
        last_descent[c] = FILE_OF(registers, slot, c)[shape.descent];
        running |= STATE_OF(status, slot, c)[STOP] == RUNNING;
    }
    const runs_t of_pixels = { sums + ss_run(shape, 0), 3 * COLUMNS, shape.col_groups };
    const runs_t of_rows = { sums + rr_run(shape, 0), COLUMNS, tests ? shape.row_groups : 0 };
    partial_folds(total, of_pixels, of_rows);
    if (!running) {
        if (tests && get_local_id(0) == 0) hand_on(status, slot);
        return 0;
    }
    fold_registers(total, 3 * COLUMNS, get_local_id(0), WG, scratch);
    if (tests) fold_registers(total + 3 * COLUMNS, COLUMNS, get_local_id(0), WG, scratch);
    for (uint c = 0; c < COLUMNS; ++c) {
        // s.s, s.s_old, s.d_old and r.r.
        ss[c] = total[c];
        rr[c] = total[3 * COLUMNS + c];
        beta[c] = acc_real(0);
        // 0 at a start, and never later.
        if (acc_less(acc_real(0), last_descent[c])) beta[c] = acc_div(acc_sub(ss[c], total[COLUMNS + c]), last_descent[c]);
        if (!acc_less(acc_real(0), beta[c])) beta[c] = acc_real(0);
        descent[c] = acc_add(ss[c], acc_mul(beta[c], total[2 * COLUMNS + c]));
        if (!acc_less(acc_real(0), descent[c])) {
            beta[c] = acc_real(0);
            descent[c] = ss[c];
        }
    }
    return 1;
}

// The stopping test of column c, and its norms into the history. For one item.
static void record(const shape_t shape, uint slot, uint c, acc_t rr, acc_t ss, acc_t descent, __global acc_t* registers,
                   __global int* status, __global acc_t* history)
{
    __global const acc_t* file = FILE_OF(registers, slot, c);
    int stop = STATE_OF(status, slot, c)[STOP];
    const int iteration = STATE_OF(status, slot, c)[ITERATION];
    if (stop == RUNNING) {
        if (!acc_finite(ss) || !acc_finite(rr)) stop = NOT_FINITE;
        else if (!acc_less(file[RESIDUAL_LIMIT], rr)) stop = CONVERGED;
        else if (!acc_less(file[GRADIENT_LIMIT], ss)) stop = GRADIENT_CONVERGED;
        else if (!acc_less(acc_mul(file[GRADIENT_RATIO], rr), ss)) stop = GRADIENT_CONVERGED;
        else if (iteration >= status[LIMITS + c]) stop = ITERATIONS_DONE;
        const uint at = ((iteration & status[MASK]) * COLUMNS + c) * 2;
        history[at] = rr;
        history[at + 1] = ss;
    }
    FILE_OF(registers, 1 - slot, c)[shape.descent] = descent;
    STATE_OF(status, 1 - slot, c)[STOP] = stop;
    STATE_OF(status, 1 - slot, c)[ITERATION] = iteration;
}

// The stopping test of every column, which one group makes. An item to a column: their limits lie far apart in memory, and one item
// would wait for those of one column after another.
static void test(const shape_t shape, uint slot, const acc_t* rr, const acc_t* ss, const acc_t* descent,
                 __global acc_t* registers, __global int* status, __global acc_t* history)
{
    for (uint c = get_local_id(0); c < COLUMNS; c += WG)
        record(shape, slot, c, rr[c], ss[c], descent[c], registers, status, history);
}

// q = A d for the rows of chunks first_chunk .. last_chunk, with their sums of q.q.
static void forward_rows(const shape_t shape, uint first_chunk, uint last_chunk, const matrix_t* matrix,
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

// F(x, d) of pixel i in column c, where d is `here` and x is `x`.
static acc_t correction_along(const shape_t shape, const vector_t* direction, size_t i, uint c, real_t here, real_t x,
                              __global const real_t* phi, const weights_t* weights)
{
    acc_t sum = acc_mul(weights->tikhonov, acc_real(here));
    if (EDGES > 0) {
        const uint column = (uint)i % shape.width;
        const real_t own = EDGES == 2 ? phi[i * COLUMNS + c] : 0;
        if (column + 1 < shape.width) sum = acc_add(sum, edge(here, vector_at(direction, i + 1, c), own, weights));
        if (i + shape.width < shape.cols)
            sum = acc_add(sum, edge(here, vector_at(direction, i + shape.width, c), own, weights));
        if (column > 0)
            sum = acc_add(sum, edge(here, vector_at(direction, i - 1, c), EDGES == 2 ? phi[(i - 1) * COLUMNS + c] : 0, weights));
        if (i >= shape.width)
            sum = acc_add(sum, edge(here, vector_at(direction, i - shape.width, c),
                                    EDGES == 2 ? phi[(i - shape.width) * COLUMNS + c] : 0, weights));
    }
    int violated;
    violated_bound(x, weights, &violated);
    return violated ? acc_add(sum, acc_mul(weights->box, acc_real(here))) : sum;
}

// d = s + beta d_old for the pixels of chunks first_chunk .. last_chunk, with their sums of d.F(x, d).
static void forward_pixels(const shape_t shape, uint first_chunk, uint last_chunk, const vector_t* direction,
                           __global const real_t* x, __global const real_t* phi, __global real_t* d_new,
                           __global const acc_t* registers, __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / PIXEL_ITEMS;
    const uint place = get_local_id(0) & (PIXEL_ITEMS - 1);
    for (uint base = first_chunk; base < last_chunk; base += PIXEL_SLOTS) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)shape.col_chunk;
        const size_t last = mine < last_chunk ? min(first + shape.col_chunk, (size_t)shape.cols) : first;
        acc_t held[COLUMNS];
        for (uint c0 = 0; c0 < COLUMNS; c0 += ABREAST) {
            acc_t lane[ABREAST][PIXEL_ITEM_LANES];
            weights_t weights[ABREAST];
            for (uint k = 0; k < ABREAST; ++k) {
                read_weights(&weights[k], FILE_OF(registers, shape.slot, c0 + k) + shape.weights);
                for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) lane[k][j] = acc_real(0);
            }
            for (size_t block = first; block < last; block += PIXEL_LANES)
                for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) {
                    const size_t i = block + place + j * WG;
                    if (i >= last) continue;
                    real_t here[ABREAST], image[ABREAST];
                    for (uint k = 0; k < ABREAST; ++k) {
                        here[k] = vector_at(direction, i, c0 + k);
                        image[k] = x[i * COLUMNS + c0 + k];
                    }
                    for (uint k = 0; k < ABREAST; ++k) {
                        d_new[i * COLUMNS + c0 + k] = here[k];
                        const acc_t sum = correction_along(shape, direction, i, c0 + k, here[k], image[k], phi, &weights[k]);
                        lane[k][j] = acc_add(lane[k][j], acc_mul(acc_real(here[k]), sum));
                    }
                }
            for (uint k = 0; k < ABREAST; ++k) held[c0 + k] = item_fold(lane[k], PIXEL_ITEM_LANES);
        }
        fold_registers(held, COLUMNS, place, PIXEL_ITEMS, scratch + slot * PIXEL_ITEMS);
        if (place == 0 && mine < last_chunk)
            for (uint c = 0; c < COLUMNS; ++c) sums[df_run(shape, c) + mine] = held[c];
    }
}
