// The launch of a CGNR iteration that multiplies by A.

// Group 0 tests and records; then come groups that own rows of A, then those that own pixels.
// Bytes: A once; s and d_old read, d_new and q written; phi and x read if F uses them.
__kernel GROUP
void cgnr_forward(shape_t shape, __global const uint* restrict rows, __global const uint* restrict indices,
                  __global const real_t* restrict values, __global const real_t* restrict s,
                  __global const real_t* restrict d_old, __global const real_t* restrict x,
                  __global const real_t* restrict phi, __global real_t* restrict d_new, __global real_t* q,
                  __global acc_t* sums, __global acc_t* registers, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[RUNS * WG];
    vector_t direction;
    acc_t ss[COLUMNS], beta[COLUMNS], descent[COLUMNS], rr[COLUMNS];
    const int tests = get_group_id(0) == 0;
    if (!choose_direction(shape, shape.slot, sums, registers, status, tests, ss, beta, descent, rr, scratch)) return;
    if (tests) {
        test(shape, shape.slot, rr, ss, descent, registers, status, history);
        return;
    }
    form_vector(&direction, s, d_old);
    for (uint c = 0; c < COLUMNS; ++c) direction.scale[c] = acc_to_real(beta[c]);
    const uint group = get_group_id(0) - 1;
    if (group < shape.row_groups) {
        matrix_t matrix;
        open_matrix(&matrix, rows, indices, values, shape.stride);
        forward_rows(shape, group, group + 1, &matrix, &direction, q, sums, scratch);
    } else {
        const uint first = group - shape.row_groups;
        forward_pixels(shape, first, first + 1, &direction, x, phi, d_new, registers, sums, scratch);
    }
}
