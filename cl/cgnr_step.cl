// Part of a CGNR iteration up to s = A'r - F(x, x). Joined after correction.cl.

// x_new = x + alpha d, phi of it, s_new less F(x_new, x_new) for the pixels of chunks first_chunk .. last_chunk, with their
// sums. Column c of x stays as it is if bit c of `stopped` is set, and x_new is not written at a start.
static void backward_pixels(const shape_t shape, uint first_chunk, uint last_chunk, const vector_t* image, uint stopped,
                            uint starts, __global const real_t* d, __global const real_t* s, __global real_t* x_new,
                            __global real_t* s_new, __global real_t* phi, __global const acc_t* registers,
                            __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / PIXEL_ITEMS;
    const uint place = get_local_id(0) & (PIXEL_ITEMS - 1);
    for (uint base = first_chunk * COLUMNS; base < last_chunk * COLUMNS; base += WG / PIXEL_ITEMS) {
        const uint mine = (base + slot) / COLUMNS;
        const uint c = base + slot - mine * COLUMNS;
        __global const acc_t* weights = FILE_OF(registers, shape.slot, c) + shape.weights;
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
                if (!starts) x_new[at] = stopped >> c & 1 ? image->u[at] : here;
                acc_t sum = acc_mul(weights[TIKHONOV], acc_real(here));
                if (EDGES > 0) {
                    const uint column = (uint)i % shape.width;
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
    fold_registers(total, 2 * COLUMNS, scratch);
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
