// Part of a CGNR iteration up to s = A'r - F(x, x). Joined after correction.cl.

// F(x, x) of pixel i in column c, whose value is `here`. Its phi is written.
static acc_t correction_here(const shape_t shape, const vector_t* image, size_t i, uint c, real_t here,
                             __global real_t* phi, const weights_t* weights)
{
    acc_t sum = acc_mul(weights->tikhonov, acc_real(here));
    if (EDGES > 0) {
        const uint column = (uint)i % shape.width;
        const int has_right = column + 1 < shape.width;
        const int has_down = i + shape.width < shape.cols;
        const real_t right = has_right ? vector_at(image, i + 1, c) : here;
        const real_t down = has_down ? vector_at(image, i + shape.width, c) : here;
        const real_t own = EDGES == 2 ? diffusivity(here, right, down, weights) : 0;
        if (EDGES == 2) phi[i * COLUMNS + c] = own;
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
    return violated ? acc_add(sum, acc_mul(weights->box, acc_real(here - bound))) : sum;
}

// x_new = x + alpha d, phi of it, s_new less F(x_new, x_new) for the pixels of chunks first_chunk .. last_chunk, with their
// sums. Column c of x stays as it is if bit c of `stopped` is set, and x_new is not written at a start.
static void backward_pixels(const shape_t shape, uint first_chunk, uint last_chunk, const vector_t* image, uint stopped,
                            uint starts, __global const real_t* d, __global const real_t* s, __global real_t* x_new,
                            __global real_t* s_new, __global real_t* phi, __global const acc_t* registers,
                            __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / PIXEL_ITEMS;
    const uint place = get_local_id(0) & (PIXEL_ITEMS - 1);
    for (uint base = first_chunk; base < last_chunk; base += PIXEL_SLOTS) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)shape.col_chunk;
        const size_t last = mine < last_chunk ? min(first + shape.col_chunk, (size_t)shape.cols) : first;
        acc_t held[3 * COLUMNS]; // s.s, s.s_old and s.d
        for (uint c0 = 0; c0 < COLUMNS; c0 += ABREAST) {
            acc_t ss[ABREAST][PIXEL_ITEM_LANES], so[ABREAST][PIXEL_ITEM_LANES], sd[ABREAST][PIXEL_ITEM_LANES];
            weights_t weights[ABREAST];
            for (uint k = 0; k < ABREAST; ++k) {
                read_weights(&weights[k], FILE_OF(registers, shape.slot, c0 + k) + shape.weights);
                for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) ss[k][j] = so[k][j] = sd[k][j] = acc_real(0);
            }
            for (size_t block = first; block < last; block += PIXEL_LANES)
                for (uint j = 0; j < PIXEL_ITEM_LANES; ++j) {
                    const size_t i = block + place + j * WG;
                    if (i >= last) continue;
                    // Elements of all columns are loaded before any is written: a compiler does not know that these vectors are not the same.
                    real_t here[ABREAST], product[ABREAST], last_s[ABREAST], last_d[ABREAST];
                    for (uint k = 0; k < ABREAST; ++k) {
                        const size_t at = i * COLUMNS + c0 + k;
                        here[k] = vector_at(image, i, c0 + k);
                        product[k] = s_new[at];
                        last_s[k] = s[at];
                        last_d[k] = d[at];
                    }
                    for (uint k = 0; k < ABREAST; ++k) {
                        const size_t at = i * COLUMNS + c0 + k;
                        // x + 0 d would lose the sign of a zero: a stopped column keeps its bits.
                        if (!starts) x_new[at] = stopped >> (c0 + k) & 1 ? image->u[at] : here[k];
                        const acc_t correction = correction_here(shape, image, i, c0 + k, here[k], phi, &weights[k]);
                        const real_t next = acc_to_real(acc_sub(acc_real(product[k]), correction));
                        s_new[at] = next;
                        ss[k][j] = acc_add(ss[k][j], acc_product(next, next));
                        so[k][j] = acc_add(so[k][j], acc_product(next, last_s[k]));
                        sd[k][j] = acc_add(sd[k][j], acc_product(next, last_d[k]));
                    }
                }
            for (uint k = 0; k < ABREAST; ++k) {
                held[c0 + k] = item_fold(ss[k], PIXEL_ITEM_LANES);
                held[COLUMNS + c0 + k] = item_fold(so[k], PIXEL_ITEM_LANES);
                held[2 * COLUMNS + c0 + k] = item_fold(sd[k], PIXEL_ITEM_LANES);
            }
        }
        fold_registers(held, 3 * COLUMNS, place, PIXEL_ITEMS, scratch + slot * PIXEL_ITEMS);
        if (place == 0 && mine < last_chunk)
            for (uint k = 0; k < 3 * COLUMNS; ++k) sums[ss_run(shape, 0) + k * shape.col_groups + mine] = held[k];
    }
}

// r_new = r - alpha q for the rows of chunks first_chunk .. last_chunk, with their sums of r.r.
static void backward_rows(const shape_t shape, uint first_chunk, uint last_chunk, const vector_t* residual, uint stopped,
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

// alpha of every column, its stop, and what the next launch needs of both. A start has no alpha: 0 stands for it, and no iteration is done.
// False if all have stopped.
static int step_length(const shape_t shape, uint slot, uint starts, __global const acc_t* sums, __global acc_t* registers,
                       __global int* status, uint* stopped, vector_t* image, vector_t* residual, int writer,
                       __local acc_t* scratch)
{
    // Read together with the sums: the wait is for all at once.
    acc_t descent[COLUMNS], total[2 * COLUMNS];
    int stop[COLUMNS], iteration[COLUMNS], running = 0;
    for (uint c = 0; c < COLUMNS; ++c) {
        descent[c] = FILE_OF(registers, slot, c)[shape.descent];
        stop[c] = STATE_OF(status, slot, c)[STOP];
        iteration[c] = STATE_OF(status, slot, c)[ITERATION];
        running |= stop[c] == RUNNING;
    }
    const runs_t qq = { sums + qq_run(shape, 0), COLUMNS, shape.row_groups };
    const runs_t df = { sums + df_run(shape, 0), COLUMNS, shape.col_groups };
    partial_folds(total, qq, df);
    if (!running) {
        if (writer) hand_on(status, slot);
        return 0;
    }
    fold_registers(total, 2 * COLUMNS, get_local_id(0), WG, scratch);
    for (uint c = 0; c < COLUMNS; ++c) {
        const acc_t curvature = acc_add(total[c], total[COLUMNS + c]);
        acc_t alpha = acc_real(0);
        if (stop[c] == RUNNING && !starts) {
            if (!acc_finite(curvature)) stop[c] = NOT_FINITE;
            else if (acc_less(curvature, acc_real(0))) stop[c] = INDEFINITE;
            else if (!acc_less(acc_real(0), curvature)) stop[c] = BREAKDOWN;
            else alpha = acc_div(descent[c], curvature);
            if (stop[c] == RUNNING && !acc_finite(alpha)) stop[c] = NOT_FINITE;
        }
        *stopped |= (uint)(stop[c] != RUNNING) << c;
        image->scale[c] = stop[c] == RUNNING ? acc_to_real(alpha) : 0;
        residual->scale[c] = -image->scale[c];
        if (writer) {
            FILE_OF(registers, 1 - slot, c)[shape.descent] = descent[c];
            STATE_OF(status, 1 - slot, c)[STOP] = stop[c];
            STATE_OF(status, 1 - slot, c)[ITERATION] = stop[c] == RUNNING && !starts ? iteration[c] + 1 : iteration[c];
        }
    }
    return 1;
}

// s_new = A'r for the pixels of chunks first_chunk .. last_chunk.
static void backward_product(const shape_t shape, uint first_chunk, uint last_chunk, const matrix_t* transposed,
                             const vector_t* residual, __global real_t* s_new, __local acc_t* scratch)
{
    const size_t first = first_chunk * (size_t)shape.col_chunk;
    const size_t last = min(last_chunk * (size_t)shape.col_chunk, (size_t)shape.cols);
    result_t result;
    result.y = s_new;
    result.b = 0;
    chunk_product(&result, transposed, residual, first, last, scratch);
}
