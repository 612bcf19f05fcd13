// The launch of a conjugate gradient iteration that multiplies.

// Group 0 of cg_product: the stopping test, and r.r of this iteration into the history; rho.
static void cg_test(uint groups, uint slot, uint rho, __global const acc_t* sums, __global acc_t* registers,
                    __global int* status, __global acc_t* history, __local acc_t* scratch)
{
    __global const int* held = status + slot * STATES;
    __global int* hand = status + (1 - slot) * STATES;
    int stop = held[STOP];
    const int iteration = held[ITERATION];
    const int writer = get_local_id(0) == 0;
    if (stop == RUNNING) {
        const acc_t rr = fold_sums(sums + 2 * groups, groups, scratch);
        stop = cg_verdict(rr, registers[slot * REGISTERS + RESIDUAL_LIMIT], iteration, status[MAX_ITERATIONS]);
        if (writer) history[2 * (iteration & status[HISTORY_MASK])] = rr;
        const acc_t rz = DIAGONAL ? fold_sums(sums + 4 * groups, groups, scratch) : rr;
        if (DIAGONAL && stop == RUNNING) stop = cg_definite(rz);
        if (writer) registers[(1 - slot) * REGISTERS + rho] = rz;
    }
    if (writer) {
        hand[STOP] = stop;
        hand[ITERATION] = iteration;
    }
}

// q = A p with the chunk sums of p.q and q.Mq. Group 0 tests, group g + 1 owns the rows of chunk g.
// Bytes: the matrix, p (and the diagonal m) read and q written.
__kernel GROUP
void cg_product(uint n, uint chunk, uint stride, uint slot, uint rho, uint place, __global const uint* restrict rows,
                __global const uint* restrict indices, __global const real_t* restrict values,
                __global const real_t* restrict m, __global const real_t* restrict p, __global real_t* q,
                __global acc_t* sums, __global acc_t* registers, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[2 * WG];
    const uint groups = get_num_groups(0) - 1;
    if (get_group_id(0) == 0) {
        cg_test(groups, slot, rho, sums + place, registers, status, history, scratch);
        return;
    }
    // After the last iteration nobody needs another product.
    if (status[slot * STATES + STOP] != RUNNING || status[slot * STATES + ITERATION] >= status[MAX_ITERATIONS]) return;
    const uint group = get_group_id(0) - 1;
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    cg_multiply(&matrix, m, p, q, n, chunk, groups, group, group + 1, sums + place, scratch);
}
