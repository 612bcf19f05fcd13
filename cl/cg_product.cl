// The launch of a conjugate gradient iteration that multiplies.

// Group 0 of cg_product: the stopping test, and r.r of this iteration into the history; r.z.
static void cg_test(uint groups, __global const acc_t* sums, __global acc_t* control, __global int* status,
                    __global acc_t* history, __local acc_t* scratch)
{
    int stop = status[2 + STOP];
    const int iteration = status[2 + ITERATION];
    const int writer = get_local_id(0) == 0;
    acc_t rr = control[SLOT + RR];
    if (stop == RUNNING) {
        rr = fold_sums(sums + 2 * groups, groups, scratch);
        stop = cg_verdict(rr, control[TOLERANCE], iteration, status[MAX_ITERATIONS]);
        if (writer) history[iteration & status[HISTORY_MASK]] = rr;
        if (DIAGONAL) {
            const acc_t rz = fold_sums(sums + 4 * groups, groups, scratch);
            if (stop == RUNNING) stop = cg_definite(rz);
            if (writer) control[RZ] = rz;
        }
    }
    if (writer) {
        control[RR] = rr;
        status[STOP] = stop;
        status[ITERATION] = iteration;
    }
}

// q = A p with the chunk sums of p.q and q.Mq. Group 0 tests, group g + 1 owns the rows of chunk g.
// Bytes: the matrix, p (and the diagonal m) read and q written.
__kernel GROUP
void cg_product(uint n, uint chunk, uint stride, __global const uint* restrict rows,
                __global const uint* restrict indices, __global const real_t* restrict values,
                __global const real_t* restrict m, __global const real_t* restrict p, __global real_t* q,
                __global acc_t* sums, __global acc_t* control, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[2 * WG];
    const uint groups = get_num_groups(0) - 1;
    if (get_group_id(0) == 0) {
        cg_test(groups, sums, control, status, history, scratch);
        return;
    }
    // After the last iteration nobody needs another product.
    if (status[2 + STOP] != RUNNING || status[2 + ITERATION] >= status[MAX_ITERATIONS]) return;
    const uint group = get_group_id(0) - 1;
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    cg_multiply(&matrix, m, p, q, n, chunk, groups, group, group + 1, sums, scratch);
}
