// Many CGNR iterations in one launch.
//
// Required macro:
//   STAGED_VECTOR  the vector that local memory holds, DIRECTION, RESIDUAL, or 0 for nothing: the one that fits and is gathered often

// Buffers that change places: the one of `parity`.
#define BY_PARITY(buffer, parity) ((parity) ? buffer##1 : buffer##0)

// `iterations` times cgnr_backward and cgnr_forward in one launch, the first with `parity`, for groups that all run at once.
// Each iteration has three or four global barriers: r and d are formed before they are gathered, which costs a barrier each and
// saves reading two vectors for every entry, unless each group forms all of one of them in its local memory. Each group owns
// chunks of rows and of pixels, the last one tests; what a group reads of others was written before the last barrier. `stride`
// is that of A transposed. It reads and writes one slot; between the two halves of an iteration the other one has the scalars. `asked` are the
// iterations that were asked for when it ends, in all.
// Bytes: those of the two kernels less one gathered vector, from a cache if they fit.
__kernel GROUP
void cgnr_resident(shape_t shape, uint stride, uint rows_each, uint cols_each, uint iterations, uint asked,
                   uint parity, __global const uint* restrict rows, __global const uint* restrict indices,
                   __global const real_t* restrict values, __global const uint* restrict t_rows,
                   __global const uint* restrict t_indices, __global const real_t* restrict t_values,
                   __global real_t* x0, __global real_t* x1, __global real_t* r0, __global real_t* r1,
                   __global real_t* s0, __global real_t* s1, __global real_t* d0, __global real_t* d1,
                   __global real_t* q, __global real_t* phi, __global acc_t* sums, __global acc_t* registers,
                   __global int* status, __global acc_t* history)
{
    __local acc_t scratch[RUNS * WG];
    __local real_t staged[STAGED > 0 ? STAGED : 1];
    __local int verdict[1];
    __global int* barrier_words = status + BARRIER;
    if (was_abandoned(barrier_words)) return;
    if (!gather_groups(barrier_words, verdict)) return;
    const uint group = get_group_id(0);
    const int tests = group == get_num_groups(0) - 1;
    const int writer = tests ? get_local_id(0) == 0 : 0;
    const uint first_row = min(group * rows_each, shape.row_groups);
    const uint last_row = min(first_row + rows_each, shape.row_groups);
    const uint first_pixel = min(group * cols_each, shape.col_groups);
    const uint last_pixel = min(first_pixel + cols_each, shape.col_groups);
    // Going forward, groups without rows take the pixels while others multiply, if there are any such groups.
    const uint with_rows = (shape.row_groups + rows_each - 1) / rows_each;
    const uint idle = STAGED_VECTOR == DIRECTION ? get_num_groups(0) - with_rows : 0;
    const uint share = idle > 0 ? (shape.col_groups + idle - 1) / idle : cols_each;
    const uint forward_first = idle == 0 ? first_pixel : group < with_rows ? 0 : min((group - with_rows) * share, shape.col_groups);
    const uint forward_last = idle > 0 && group < with_rows ? 0 : min(forward_first + share, shape.col_groups);
    matrix_t matrix, transposed;
    open_matrix(&matrix, rows, indices, values, shape.stride);
    open_other(&transposed, t_rows, t_indices, t_values, stride);
    int done = iterations == 0;
    uint meetings = 0;
    for (uint k = 0; !done; ++k) {
        const uint now = (parity + k) & 1;
        const uint next = 1 - now;
        uint stopped = 0; // a bit for each column
        vector_t residual, image, direction;
        form_vector(&residual, BY_PARITY(r, now), q);
        form_vector(&image, BY_PARITY(x, now), BY_PARITY(d, next));
        done = !step_length(shape, shape.slot, 0, sums, registers, status, &stopped, &image, &residual, writer, scratch);
        if (!done) {
            if (STAGED_VECTOR == RESIDUAL) stage(&residual, shape.rows, staged);
            backward_rows(shape, first_row, last_row, &residual, stopped, BY_PARITY(r, next), sums, scratch);
            if (STAGED_VECTOR != RESIDUAL) {
                global_barrier(barrier_words, ++meetings);
                read_vector(&residual, BY_PARITY(r, next));
            }
            backward_product(shape, first_pixel, last_pixel, &transposed, &residual, BY_PARITY(s, next), scratch);
            backward_pixels(shape, first_pixel, last_pixel, &image, stopped, 0, BY_PARITY(d, next), BY_PARITY(s, now),
                            BY_PARITY(x, next), BY_PARITY(s, next), phi, registers, sums, scratch);
            global_barrier(barrier_words, ++meetings);
            acc_t ss[COLUMNS], beta[COLUMNS], descent[COLUMNS], rr[COLUMNS];
            done = !choose_direction(shape, 1 - shape.slot, sums, registers, status, tests, ss, beta, descent, rr, scratch);
            for (uint c = 0; c < COLUMNS; ++c) direction.scale[c] = done ? 0 : acc_to_real(beta[c]);
            if (tests && !done) test(shape, 1 - shape.slot, rr, ss, descent, registers, status, history);
        }
        if (!done) {
            form_vector(&direction, BY_PARITY(s, next), BY_PARITY(d, next));
            if (STAGED_VECTOR == DIRECTION) stage(&direction, shape.cols, staged);
            forward_pixels(shape, forward_first, forward_last, &direction, BY_PARITY(x, next), phi, BY_PARITY(d, now),
                           registers, sums, scratch);
            if (STAGED_VECTOR != DIRECTION) {
                global_barrier(barrier_words, ++meetings);
                read_vector(&direction, BY_PARITY(d, now));
            }
            forward_rows(shape, first_row, last_row, &matrix, &direction, q, sums, scratch);
            global_barrier(barrier_words, ++meetings);
            done = k + 1 == iterations;
        }
    }
    if (writer) barrier_words[DONE] = asked;
    leave(barrier_words);
}
