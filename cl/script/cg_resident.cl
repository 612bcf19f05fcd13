// Many conjugate gradient iterations in one launch.

#define FOLDED (3 + DIAGONAL) // p.q, q.Mq, r.r and r.z of the last iteration

// `iterations` times cg_update and cg_product in one launch, for groups that all run at once. Each iteration has two global
// barriers. Every group folds every sum and so comes to the same verdict; what it reads of others was written before the last
// barrier. Sums of r.r and r.z go to two places in turn, because a group may write the next ones while another still reads.
// It reads and writes one slot. `asked` are the iterations that were asked for when it ends, in all.
// Bytes: those of the two kernels, from a cache if they fit.
__kernel GROUP
void cg_resident(uint n, uint chunk, uint stride, uint groups, uint per_group, uint iterations, uint asked, uint slot,
                 uint rho_at, uint place, __global const uint* restrict rows, __global const uint* restrict indices,
                 __global const real_t* restrict values, __global const real_t* restrict m, __global real_t* p,
                 __global real_t* q, __global real_t* x, __global real_t* r, __global acc_t* all_sums,
                 __global acc_t* registers, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[FOLDED * WG];
    __local int verdict[1];
    __global int* barrier_words = status + BARRIER;
    if (was_abandoned(barrier_words)) return;
    if (!gather_groups(barrier_words, verdict)) return;
    __global acc_t* sums = all_sums + place;
    __global int* held = status + slot * STATES;
    const int writer = get_group_id(0) == 0 && get_local_id(0) == 0;
    const uint first_chunk = get_group_id(0) * per_group;
    const uint last_chunk = min(first_chunk + per_group, groups);
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    // The first element of this item, if it has one: others may be writing those that are not its own.
    const uint own_chunk = first_chunk + get_local_id(0) / CHUNK_ITEMS;
    const size_t own = own_chunk * (size_t)chunk + (get_local_id(0) & (CHUNK_ITEMS - 1));
    const int owns = own_chunk < last_chunk ? own < n : 0;
    // After a global barrier caches are stale: loop constants stay in registers.
    const acc_t limit = registers[slot * REGISTERS + RESIDUAL_LIMIT];
    const int most = status[MAX_ITERATIONS];
    const int mask = status[HISTORY_MASK];
    int stop = held[STOP];
    int iteration = held[ITERATION];
    acc_t rho = registers[slot * REGISTERS + rho_at];
    int done = 0;
    for (uint k = 0; !done; ++k) {
        // Under way while the sums are folded.
        element_t ahead;
        if (owns) cg_element(&ahead, m, q, x, r, p, own);
        acc_t total[FOLDED];
        total[0] = partial_fold(sums, groups);
        total[1] = partial_fold(sums + groups, groups);
        total[2] = partial_fold(sums + (2 + (k + 1) % 2) * groups, k > 0 ? groups : 0);
        if (DIAGONAL) total[FOLDED - 1] = partial_fold(sums + (4 + (k + 1) % 2) * groups, k > 0 ? groups : 0);
        run_folds(total, FOLDED, get_local_id(0), WG, scratch);
        if (stop == RUNNING && k > 0) {
            stop = cg_verdict(total[2], limit, iteration, most);
            if (writer) history[2 * (iteration & mask)] = total[2];
            rho = total[FOLDED - 1];
            if (DIAGONAL && stop == RUNNING) stop = cg_definite(rho);
        }
        done = k == iterations || stop != RUNNING;
        if (!done) {
            stop = cg_curvature(total[0], total[1]);
            done = stop != RUNNING;
        }
        if (!done) {
            const acc_t alpha = acc_div(rho, total[0]);
            const acc_t beta = cg_beta(alpha, total[1], rho);
            iteration = iteration + 1;
            cg_advance(acc_to_real(alpha), acc_to_real(beta), m, q, x, r, p, n, chunk, groups, first_chunk, last_chunk,
                       &ahead, own, sums + (2 + k % 2) * groups, scratch);
            global_barrier(barrier_words, 2 * k + 1);
            cg_multiply(&matrix, m, p, q, n, chunk, groups, first_chunk, last_chunk, sums, scratch);
            global_barrier(barrier_words, 2 * k + 2);
        }
    }
    // Nobody reads these after the last barrier but the groups that have yet to begin, and all have begun.
    if (writer) {
        registers[slot * REGISTERS + rho_at] = rho;
        held[STOP] = stop;
        held[ITERATION] = iteration;
        barrier_words[DONE] = asked;
    }
    leave(barrier_words);
}
