// The launch of a conjugate gradient iteration that updates its vectors.

// alpha = rho / p.q, beta from the estimate above; x += alpha p, r -= alpha q, p = z + beta p, chunk sums of r.r and r.z.
// Group g owns chunks g * per_group .. (g + 1) * per_group of `groups`.
// Bytes: x, r, p, q (and the diagonal m) read and x, r, p written, n real_t each.
__kernel GROUP
void cg_update(uint n, uint chunk, uint groups, uint per_group, __global const real_t* restrict m,
               __global const real_t* restrict q, __global real_t* restrict x, __global real_t* restrict r,
               __global real_t* restrict p, __global acc_t* sums, __global acc_t* control, __global int* status)
{
    __local acc_t scratch[DOTS * WG];
    const int writer = get_group_id(0) == 0 && get_local_id(0) == 0;
    int stop = status[STOP];
    const int iteration = status[ITERATION];
    const acc_t rr = control[RR];
    const acc_t rho = control[RHO];
    acc_t pq = rho;
    acc_t qq = rho;
    if (stop == RUNNING) {
        pq = fold_sums(sums, groups, scratch);
        qq = fold_sums(sums + groups, groups, scratch);
        stop = cg_curvature(pq, qq);
    }
    if (stop != RUNNING) {
        if (writer) {
            control[SLOT + RR] = rr;
            status[2 + STOP] = stop;
            status[2 + ITERATION] = iteration;
        }
        return;
    }
    const acc_t alpha = acc_div(rho, pq);
    const acc_t beta = cg_beta(alpha, qq, rho);
    if (writer) {
        control[SLOT + RR] = rr;
        control[SLOT + ALPHA] = alpha;
        control[SLOT + BETA] = beta;
        status[2 + STOP] = RUNNING;
        status[2 + ITERATION] = iteration + 1;
    }
    const uint first_chunk = get_group_id(0) * per_group;
    cg_advance(acc_to_real(alpha), acc_to_real(beta), m, q, x, r, p, n, chunk, groups, first_chunk,
               min(first_chunk + per_group, groups), 0, 0, sums + 2 * groups, scratch);
}
