// The launch of a CGNR iteration that multiplies by A.

// Group 0 tests and records (not if the part is ROWS_ONLY); then come groups that own rows of A, then those that own pixels.
// Bytes: A once; s and d_old read, d_new and q written; phi and x read if F uses them.
__kernel GROUP
void cgnr_forward(shape_t shape, __global const uint* restrict rows, __global const uint* restrict indices,
                  __global const real_t* restrict values, __global const real_t* restrict s,
                  __global const real_t* restrict d_old, __global const real_t* restrict x,
                  __global const real_t* restrict phi, __global real_t* restrict d_new, __global real_t* q,
                  __global acc_t* sums, __global acc_t* control, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[RUNS * WG];
    vector_t direction;
    if (PART(shape) == ROWS_ONLY) {
        if (all_stopped(status, LAST_STOP)) return;
        read_vector(&direction, s); // the product is there already
    } else {
        acc_t ss[COLUMNS], beta[COLUMNS], gd[COLUMNS], rr[COLUMNS];
        const int tests = get_group_id(0) == 0;
        if (!choose_direction(shape, sums, control, status, tests, ss, beta, gd, rr, scratch)) {
            if (tests && get_local_id(0) == 0) hand_on(status, LAST_STOP, STOP);
            return;
        }
        if (tests) {
            test(rr, ss, gd, beta, control, status, history);
            return;
        }
        form_vector(&direction, s, d_old);
        for (uint c = 0; c < COLUMNS; ++c) direction.scale[c] = acc_to_real(beta[c]);
    }
    // Rows, then pixels, whichever of them this launch does.
    const uint row_turns = PART(shape) == PIXELS_ONLY ? 0 : (shape.row_groups + EACH(shape) - 1) / EACH(shape);
    const uint turn = get_group_id(0) - (PART(shape) == ROWS_ONLY ? 0 : 1);
    if (turn < row_turns) {
        const uint first = turn * EACH(shape);
        matrix_t matrix;
        open_matrix(&matrix, rows, indices, values, shape.stride);
        forward_rows(shape, first, min(first + EACH(shape), shape.row_groups), &matrix, &direction, q, sums, scratch);
    } else {
        const uint first = (turn - row_turns) * EACH(shape);
        forward_pixels(shape, first, min(first + EACH(shape), shape.col_groups), &direction, x, phi, d_new, control, sums, scratch);
    }
}
