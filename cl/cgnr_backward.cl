// The launch of a CGNR iteration that multiplies by A'.

// Groups that own pixels come first, then those that own rows of A. An iteration of -1 starts a solve: alpha is 0, and r -= q.
// Bytes: A' once; r, q, x, d, s read; r_new, x_new, s_new written; phi written if F uses it.
__kernel GROUP
void cgnr_backward(shape_t shape, __global const uint* restrict rows, __global const uint* restrict indices,
                   __global const real_t* restrict values, __global const real_t* restrict r,
                   __global const real_t* restrict q, __global const real_t* restrict x,
                   __global const real_t* restrict d, __global const real_t* restrict s,
                   __global real_t* restrict r_new, __global real_t* restrict x_new, __global real_t* s_new,
                   __global real_t* restrict phi, __global acc_t* sums, __global acc_t* control, __global int* status)
{
    __local acc_t scratch[RUNS * WG];
    const int writer = PART(shape) != ROWS_ONLY && get_group_id(0) == 0 && get_local_id(0) == 0;
    uint stopped = 0; // a bit for each column
    vector_t residual, image;
    form_vector(&residual, r, q);
    form_vector(&image, x, d);
    if (!step_length(shape, sums, control, status, &stopped, &image, &residual, writer, scratch)) return;
    const uint pixel_turns = PART(shape) == ROWS_ONLY ? 0 : (shape.col_groups + EACH(shape) - 1) / EACH(shape);
    if (get_group_id(0) < pixel_turns) {
        const uint first = get_group_id(0) * EACH(shape);
        const uint last = min(first + EACH(shape), shape.col_groups);
        matrix_t transposed;
        open_matrix(&transposed, rows, indices, values, shape.stride);
        backward_product(shape, first, last, &transposed, &residual, s_new, scratch);
        backward_pixels(shape, first, last, &image, stopped, d, s, x_new, s_new, phi, control, sums, scratch);
    } else {
        const uint first = (get_group_id(0) - pixel_turns) * EACH(shape);
        backward_rows(shape, first, min(first + EACH(shape), shape.row_groups), &residual, stopped, r_new, sums, scratch);
    }
}
