// Conjugate gradients in two launches per iteration, for matrices stored by rows. Source: J. R. Shewchuk 1994 (B2)
// and michels-2011, algorithm 2; the second product of q with itself lets one pass do all updates, because
//   r' = r - alpha q   =>   r'.r' = alpha^2 q.q - r.r   (r.q = p.q = r.r / alpha in exact arithmetic).
// r.r itself is summed afresh from r in every iteration, so the estimate enters beta alone and never accumulates.
//
// `sums` holds three runs of `groups` chunk sums: p.q, q.q and r.r. `control` and `status` hold two slots, one per
// kernel, so that no group reads what another writes in the same launch; the limits follow. Once a slot says stop,
// every later launch only hands it on.

#define RR 0                // control of a slot: r.r, alpha, beta
#define ALPHA 1
#define BETA 2
#define SLOT 4
#define TOLERANCE (2 * SLOT)
#define STOP 0              // status of a slot: why it stopped (0: it has not), iterations done
#define ITERATION 1
#define MAX_ITERATIONS 4
#define HISTORY_MASK 5

#define RUNNING 0
#define CONVERGED 1
#define ITERATIONS_DONE 2
#define INDEFINITE 3
#define BREAKDOWN 4
#define NOT_FINITE 5

// Group 0 of cg_product: the stopping test, and r.r of this iteration into the history.
void cg_test(uint groups, __global const acc_t* sums, __global acc_t* control, __global int* status,
             __global acc_t* history, __local acc_t* scratch)
{
    int stop = status[2 + STOP];
    const int iteration = status[2 + ITERATION];
    acc_t rr = control[SLOT + RR];
    if (stop == RUNNING) {
        rr = fold_sums(sums + 2 * groups, groups, scratch);
        if (!acc_finite(rr)) stop = NOT_FINITE;
        else if (!acc_less(control[TOLERANCE], rr)) stop = CONVERGED;
        else if (iteration >= status[MAX_ITERATIONS]) stop = ITERATIONS_DONE;
        if (get_local_id(0) == 0) history[iteration & status[HISTORY_MASK]] = rr;
    }
    if (get_local_id(0) == 0) {
        control[RR] = rr;
        status[STOP] = stop;
        status[ITERATION] = iteration;
    }
}

// q = A p with the chunk sums of p.q and q.q. Group 0 tests, group g + 1 owns the rows of chunk g.
// Bytes: the matrix, p read and q written.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void cg_product(uint n, uint chunk, uint stride, __global const uint* restrict rows,
                __global const uint* restrict indices, __global const real_t* restrict values,
                __global const real_t* restrict p, __global real_t* q, __global acc_t* sums, __global acc_t* control,
                __global int* status, __global acc_t* history)
{
    __local acc_t scratch[WG];
    const uint groups = get_num_groups(0) - 1;
    if (get_group_id(0) == 0) {
        cg_test(groups, sums, control, status, history, scratch);
        return;
    }
    if (status[2 + STOP] != RUNNING) return;
    const uint group = get_group_id(0) - 1;
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    vector_t vector;
    vector.u = p;
    const size_t first = group * (size_t)chunk;
    const size_t last = min(first + chunk, (size_t)n);
    result_t result;
    result.y = q;
    result.b = 0;
    if (ROWS_APART) chunk_product(&result, &matrix, &vector, first, last, scratch);
    // Where the item that adds a row also holds its lane of the dot products, all stays in registers.
    acc_t pq[ITEM_LANES], qq[ITEM_LANES];
    for (uint j = 0; j < ITEM_LANES; ++j) pq[j] = qq[j] = acc_real(0);
    for (size_t block = first; block < last; block += LANES)
        for (uint j = 0; j < ITEM_LANES; ++j) {
            const uint l = get_local_id(0) + j * WG;
            const size_t i = block + l;
            if (l >= LANES || i >= last) continue;
            acc_t sum[1] = {acc_real(0)};
            if (!ROWS_APART) {
                row_add(sum, &matrix, &vector, i, 0, 1);
                q[i] = acc_to_real(sum[0]);
            }
            const real_t value = ROWS_APART ? q[i] : acc_to_real(sum[0]);
            pq[j] = acc_add(pq[j], acc_product(p[i], value));
            qq[j] = acc_add(qq[j], acc_product(value, value));
        }
    const acc_t pq_held = item_fold(pq, ITEM_LANES);
    const acc_t qq_held = item_fold(qq, ITEM_LANES);
    const acc_t pq_sum = group_fold(pq_held, LANES, scratch);
    const acc_t qq_sum = group_fold(qq_held, LANES, scratch);
    if (get_local_id(0) == 0) {
        sums[group] = pq_sum;
        sums[groups + group] = qq_sum;
    }
}

// alpha = r.r / p.q, beta from the estimate above; x += alpha p, r -= alpha q, p = r + beta p, chunk sums of r.r.
// Group g owns chunks g * per_group .. (g + 1) * per_group of `groups`.
// Bytes: x, r, p, q read and x, r, p written, n real_t each.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void cg_update(uint n, uint chunk, uint groups, uint per_group, __global const real_t* restrict q,
               __global real_t* restrict x, __global real_t* restrict r, __global real_t* restrict p,
               __global acc_t* sums, __global acc_t* control, __global int* status)
{
    __local acc_t scratch[WG];
    const int writer = get_group_id(0) == 0 && get_local_id(0) == 0;
    int stop = status[STOP];
    const int iteration = status[ITERATION];
    const acc_t rr = control[RR];
    acc_t pq = rr;
    acc_t qq = rr;
    if (stop == RUNNING) {
        pq = fold_sums(sums, groups, scratch);
        qq = fold_sums(sums + groups, groups, scratch);
        if (!acc_finite(pq) || !acc_finite(qq)) stop = NOT_FINITE;
        else if (acc_less(pq, acc_real(0))) stop = INDEFINITE;
        else if (!acc_less(acc_real(0), pq)) stop = BREAKDOWN;
    }
    if (stop != RUNNING) {
        if (writer) {
            control[SLOT + RR] = rr;
            status[2 + STOP] = stop;
            status[2 + ITERATION] = iteration;
        }
        return;
    }
    const acc_t alpha_sum = acc_div(rr, pq);
    const acc_t next_rr = acc_sub(acc_mul(alpha_sum, acc_mul(alpha_sum, qq)), rr);
    const acc_t beta_sum = acc_less(acc_real(0), next_rr) ? acc_div(next_rr, rr) : acc_real(0);
    const real_t alpha = acc_to_real(alpha_sum);
    const real_t beta = acc_to_real(beta_sum);
    if (writer) {
        control[SLOT + RR] = rr;
        control[SLOT + ALPHA] = alpha_sum;
        control[SLOT + BETA] = beta_sum;
        status[2 + STOP] = RUNNING;
        status[2 + ITERATION] = iteration + 1;
    }
    const uint first_chunk = get_group_id(0) * per_group;
    const uint last_chunk = min(first_chunk + per_group, groups);
    for (uint g = first_chunk; g < last_chunk; ++g) {
        const size_t first = g * (size_t)chunk;
        const size_t last = min(first + chunk, (size_t)n);
        acc_t lane[ITEM_LANES];
        for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
        for (size_t block = first; block < last; block += LANES)
            for (uint j = 0; j < ITEM_LANES; ++j) {
                const uint l = get_local_id(0) + j * WG;
                const size_t i = block + l;
                if (l >= LANES || i >= last) continue;
                const real_t direction = p[i];
                const real_t next = r[i] - alpha * q[i];
                x[i] = x[i] + alpha * direction;
                r[i] = next;
                p[i] = next + beta * direction;
                lane[j] = acc_add(lane[j], acc_product(next, next));
            }
        const acc_t sum = group_fold(item_fold(lane, ITEM_LANES), LANES, scratch);
        if (get_local_id(0) == 0) sums[2 * groups + g] = sum;
    }
}
