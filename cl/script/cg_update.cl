// The launch of a conjugate gradient iteration that updates its vectors.

// alpha = rho / p.q, beta from the estimate above; x += alpha p, r -= alpha q, p = z + beta p, chunk sums of r.r and r.z.
// Group g owns chunks g * per_group .. (g + 1) * per_group of `groups`.
// Bytes: x, r, p, q (and the diagonal m) read and x, r, p written, n real_t each.
__kernel GROUP
void cg_update(uint n, uint chunk, uint groups, uint per_group, uint slot, uint rho, uint place,
               __global const real_t* restrict m, __global const real_t* restrict q, __global real_t* restrict x,
               __global real_t* restrict r, __global real_t* restrict p, __global acc_t* sums,
               __global const acc_t* registers, __global int* status)
{
    __local acc_t scratch[DOTS * WG];
    const int writer = get_group_id(0) == 0 && get_local_id(0) == 0;
    __global int* hand = status + (1 - slot) * STATES;
    int stop = status[slot * STATES + STOP];
    const int iteration = status[slot * STATES + ITERATION];
    const acc_t held = registers[slot * REGISTERS + rho];
    acc_t pq = held;
    acc_t qq = held;
    if (stop == RUNNING) {
        pq = fold_sums(sums + place, groups, scratch);
        qq = fold_sums(sums + place + groups, groups, scratch);
        stop = cg_curvature(pq, qq);
    }
    if (writer) {
        hand[STOP] = stop;
        hand[ITERATION] = stop == RUNNING ? iteration + 1 : iteration;
    }
    if (stop != RUNNING) return;
    const acc_t alpha = acc_div(held, pq);
    const acc_t beta = cg_beta(alpha, qq, held);
    const uint first_chunk = get_group_id(0) * per_group;
    cg_advance(acc_to_real(alpha), acc_to_real(beta), m, q, x, r, p, n, chunk, groups, first_chunk,
               min(first_chunk + per_group, groups), 0, 0, sums + place + 2 * groups, scratch);
}
