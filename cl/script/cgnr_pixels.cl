// Parts of a CGNR iteration for pixels, where products are launches of their own. Joined after cgnr_direction.cl and cgnr_step.cl.

// Pixels' part of cgnr_forward: group 0 tests and records, the others form d_new and sum d.F(x, d).
// Bytes: s and d_old read, d_new written; phi and x read if F uses them.
__kernel GROUP
void cgnr_forward_pixels(shape_t shape, __global const real_t* restrict s, __global const real_t* restrict d_old,
                         __global const real_t* restrict x, __global const real_t* restrict phi,
                         __global real_t* restrict d_new, __global acc_t* sums, __global acc_t* registers,
                         __global int* status, __global acc_t* history)
{
    __local acc_t scratch[RUNS * WG];
    acc_t ss[COLUMNS], beta[COLUMNS], descent[COLUMNS], rr[COLUMNS];
    const int tests = get_group_id(0) == 0;
    if (!choose_direction(shape, shape.slot, sums, registers, status, tests, ss, beta, descent, rr, scratch)) return;
    if (tests) {
        test(shape, shape.slot, rr, ss, descent, registers, status, history);
        return;
    }
    vector_t direction;
    form_vector(&direction, s, d_old);
    for (uint c = 0; c < COLUMNS; ++c) direction.scale[c] = acc_to_real(beta[c]);
    const uint first = (get_group_id(0) - 1) * shape.each;
    forward_pixels(shape, first, min(first + shape.each, shape.col_groups), &direction, x, phi, d_new, registers, sums, scratch);
}

// Pixels' part of cgnr_backward, once s_new is A'r; alpha is in register `alpha`, and 0 at a start.
// Bytes: x, d, s, s_new read; x_new, s_new written; phi written if F uses it.
__kernel GROUP
void cgnr_backward_pixels(shape_t shape, uint starts, uint alpha, __global const real_t* restrict x,
                          __global const real_t* restrict d, __global const real_t* restrict s,
                          __global real_t* restrict x_new, __global real_t* s_new, __global real_t* restrict phi,
                          __global acc_t* sums, __global const acc_t* registers, __global const int* status)
{
    __local acc_t scratch[RUNS * WG];
    uint stopped = 0; // a bit for each column
    int running = 0;
    vector_t image;
    form_vector(&image, x, d);
    for (uint c = 0; c < COLUMNS; ++c) {
        const int runs = STATE_OF(status, shape.slot, c)[STOP] == RUNNING;
        running |= runs;
        stopped |= (uint)!runs << c;
        image.scale[c] = runs && !starts ? acc_to_real(FILE_OF(registers, shape.slot, c)[alpha]) : 0;
    }
    if (!running) return;
    const uint first = get_group_id(0) * shape.each;
    backward_pixels(shape, first, min(first + shape.each, shape.col_groups), &image, stopped, starts, d, s, x_new, s_new,
                    phi, registers, sums, scratch);
}
