// The launch of a CGNR iteration that multiplies by A'.

// Groups that own pixels come first, then those that own rows of A, of which there are none at a start: r and x are there then, q is 0, and
// neither r_new nor x_new is written.
// Bytes: A' once; r, q, x, d, s read; r_new, x_new, s_new written; phi written if F uses it.
__kernel GROUP
void cgnr_backward(shape_t shape, uint starts, __global const uint* restrict rows, __global const uint* restrict indices,
                   __global const real_t* restrict values, __global const real_t* restrict r,
                   __global const real_t* restrict q, __global const real_t* restrict x,
                   __global const real_t* restrict d, __global const real_t* restrict s,
                   __global real_t* restrict r_new, __global real_t* restrict x_new, __global real_t* s_new,
                   __global real_t* restrict phi, __global acc_t* sums, __global acc_t* registers, __global int* status)
{
    __local acc_t scratch[RUNS * WG];
    const int writer = get_group_id(0) == 0 && get_local_id(0) == 0;
    uint stopped = 0; // a bit for each column
    vector_t residual, image;
    form_vector(&residual, r, q);
    form_vector(&image, x, d);
    if (!step_length(shape, shape.slot, starts, sums, registers, status, &stopped, &image, &residual, writer, scratch)) return;
    const uint group = get_group_id(0);
    if (group < shape.col_groups) {
        matrix_t transposed;
        open_matrix(&transposed, rows, indices, values, shape.stride);
        backward_product(shape, group, group + 1, &transposed, &residual, s_new, scratch);
        backward_pixels(shape, group, group + 1, &image, stopped, starts, d, s, x_new, s_new, phi, registers, sums, scratch);
    } else {
        const uint first = group - shape.col_groups;
        backward_rows(shape, first, first + 1, &residual, stopped, r_new, sums, scratch);
    }
}
