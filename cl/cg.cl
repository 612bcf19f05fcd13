// Conjugate gradients in two launches per iteration, or in one for many iterations, for matrices stored by rows. Source:
// J. R. Shewchuk 1994 (B2) and michels-2011, algorithm 2; the second product of q with itself lets one pass do all
// updates, because
//   r' = r - alpha q   =>   r'.r' = alpha^2 q.q - r.r   (r.q = p.q = r.r / alpha in exact arithmetic).
// r.r itself is summed afresh from r in every iteration, so the estimate enters beta alone and never accumulates.
//
// `sums` holds four runs of `groups` chunk sums: p.q, q.q and twice r.r, of which only cg_resident uses the second.
// `control` and `status` hold two slots, one for each of the two kernels, so that no group reads what another writes in
// the same launch; the limits follow. Once a slot says stop, every later launch only hands it on. Between iterations
// the two ways leave the same state, and may take turns.

#define RR 0                // control of a slot: r.r, alpha, beta
#define ALPHA 1
#define BETA 2
#define SLOT 4
#define TOLERANCE (2 * SLOT)
#define STOP 0              // status of a slot: why it stopped (0: it has not), iterations done
#define ITERATION 1
#define MAX_ITERATIONS 4
#define HISTORY_MASK 5
#define MEETING 6           // see resident.cl

#define RUNNING 0
#define CONVERGED 1
#define ITERATIONS_DONE 2
#define INDEFINITE 3
#define BREAKDOWN 4
#define NOT_FINITE 5

// Lanes of one item whose elements are read before any of them is written.
#define TOGETHER (WG == 1 ? 1 : ITEM_LANES < 4 ? ITEM_LANES : 4)

// What the stopping test makes of r.r.
int cg_verdict(acc_t rr, acc_t tolerance, int iteration, int most)
{
    if (!acc_finite(rr)) return NOT_FINITE;
    if (!acc_less(tolerance, rr)) return CONVERGED;
    return iteration >= most ? ITERATIONS_DONE : RUNNING;
}

// Whether there is an alpha.
int cg_curvature(acc_t pq, acc_t qq)
{
    if (!acc_finite(pq) || !acc_finite(qq)) return NOT_FINITE;
    if (acc_less(pq, acc_real(0))) return INDEFINITE;
    return acc_less(acc_real(0), pq) ? RUNNING : BREAKDOWN;
}

// beta, from the estimate above.
acc_t cg_beta(acc_t alpha, acc_t qq, acc_t rr)
{
    const acc_t next_rr = acc_sub(acc_mul(alpha, acc_mul(alpha, qq)), rr);
    return acc_less(acc_real(0), next_rr) ? acc_div(next_rr, rr) : acc_real(0);
}

// q = A p for chunks first_chunk .. last_chunk of `groups`, with their sums of p.q and q.q. `scratch` has 2 WG places.
void cg_multiply(const matrix_t* matrix, __global const real_t* p, __global real_t* q, uint n, uint chunk, uint groups,
                 uint first_chunk, uint last_chunk, __global acc_t* sums, __local acc_t* scratch)
{
    vector_t vector;
    read_vector(&vector, p);
    result_t result;
    result.y = q;
    result.b = 0;
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    __local acc_t* run = scratch + slot * CHUNK_ITEMS;
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        if (ROWS_APART)
            for (uint g = base; g < min(base + SIDE_BY_SIDE, last_chunk); ++g)
                chunk_product(&result, matrix, &vector, g * (size_t)chunk, min((g + 1) * (size_t)chunk, (size_t)n), scratch);
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
        // Where the item that adds a row also holds its lane of the dot products, all stays in registers.
        acc_t pq[ITEM_LANES], qq[ITEM_LANES];
        for (uint j = 0; j < ITEM_LANES; ++j) pq[j] = qq[j] = acc_real(0);
        for (size_t block = first; block < last; block += LANES)
            for (uint j = 0; j < ITEM_LANES; ++j) {
                const size_t i = block + place + j * WG;
                if (i >= last) continue;
                acc_t sum[1] = {acc_real(0)};
                if (!ROWS_APART) {
                    row_add(sum, matrix, &vector, i, 0, 1);
                    q[i] = acc_to_real(sum[0]);
                }
                const real_t value = ROWS_APART ? q[i] : acc_to_real(sum[0]);
                pq[j] = acc_add(pq[j], acc_product(p[i], value));
                qq[j] = acc_add(qq[j], acc_product(value, value));
            }
        acc_t held[2];
        held[0] = item_fold(pq, ITEM_LANES);
        held[1] = item_fold(qq, ITEM_LANES);
        run_folds(held, 2, place, CHUNK_ITEMS, run);
        if (place == 0 && mine < last_chunk) {
            sums[mine] = held[0];
            sums[groups + mine] = held[1];
        }
    }
}

// The vectors at one element.
typedef struct { real_t x, r, p, q; } element_t;

void cg_element(element_t* element, __global const real_t* q, __global const real_t* x, __global const real_t* r,
                __global const real_t* p, size_t i)
{
    element->x = x[i];
    element->r = r[i];
    element->p = p[i];
    element->q = q[i];
}

// x += alpha p, r -= alpha q, p = r + beta p for chunks first_chunk .. last_chunk, with their sums of r.r. `ahead`, where
// there is one, is element `ahead_at`, read before.
void cg_advance(real_t alpha, real_t beta, __global const real_t* q, __global real_t* x, __global real_t* r,
                __global real_t* p, uint n, uint chunk, uint first_chunk, uint last_chunk, const element_t* ahead,
                size_t ahead_at, __global acc_t* rr_sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    __local acc_t* run = scratch + slot * CHUNK_ITEMS;
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
        acc_t lane[ITEM_LANES];
        for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
        for (size_t block = first; block < last; block += LANES)
            for (uint j = 0; j < ITEM_LANES; j += TOGETHER) {
                // All are read before the first is written, so that many reads are under way.
                element_t old[TOGETHER];
                for (uint k = 0; k < TOGETHER; ++k) {
                    const size_t i = block + place + (j + k) * WG;
                    if (i >= last) continue;
                    if (ahead && i == ahead_at) old[k] = *ahead;
                    else cg_element(&old[k], q, x, r, p, i);
                }
                for (uint k = 0; k < TOGETHER; ++k) {
                    const size_t i = block + place + (j + k) * WG;
                    if (i >= last) continue;
                    const real_t next = old[k].r - alpha * old[k].q;
                    x[i] = old[k].x + alpha * old[k].p;
                    r[i] = next;
                    p[i] = next + beta * old[k].p;
                    lane[j + k] = acc_add(lane[j + k], acc_product(next, next));
                }
            }
        acc_t held[1];
        held[0] = item_fold(lane, ITEM_LANES);
        run_folds(held, 1, place, CHUNK_ITEMS, run);
        if (place == 0 && mine < last_chunk) rr_sums[mine] = held[0];
    }
}

// Group 0 of cg_product: the stopping test, and r.r of this iteration into the history.
void cg_test(uint groups, __global const acc_t* sums, __global acc_t* control, __global int* status,
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
    }
    if (writer) {
        control[RR] = rr;
        status[STOP] = stop;
        status[ITERATION] = iteration;
    }
}

// q = A p with the chunk sums of p.q and q.q. Group 0 tests, group g + 1 owns the rows of chunk g.
// Bytes: the matrix, p read and q written.
__kernel GROUP
void cg_product(uint n, uint chunk, uint stride, __global const uint* restrict rows,
                __global const uint* restrict indices, __global const real_t* restrict values,
                __global const real_t* restrict p, __global real_t* q, __global acc_t* sums, __global acc_t* control,
                __global int* status, __global acc_t* history)
{
    __local acc_t scratch[2 * WG];
    const uint groups = get_num_groups(0) - 1;
    if (get_group_id(0) == 0) {
        cg_test(groups, sums, control, status, history, scratch);
        return;
    }
    if (status[2 + STOP] != RUNNING) return;
    const uint group = get_group_id(0) - 1;
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    cg_multiply(&matrix, p, q, n, chunk, groups, group, group + 1, sums, scratch);
}

// alpha = r.r / p.q, beta from the estimate above; x += alpha p, r -= alpha q, p = r + beta p, chunk sums of r.r.
// Group g owns chunks g * per_group .. (g + 1) * per_group of `groups`.
// Bytes: x, r, p, q read and x, r, p written, n real_t each.
__kernel GROUP
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
    const acc_t alpha = acc_div(rr, pq);
    const acc_t beta = cg_beta(alpha, qq, rr);
    if (writer) {
        control[SLOT + RR] = rr;
        control[SLOT + ALPHA] = alpha;
        control[SLOT + BETA] = beta;
        status[2 + STOP] = RUNNING;
        status[2 + ITERATION] = iteration + 1;
    }
    const uint first_chunk = get_group_id(0) * per_group;
    cg_advance(acc_to_real(alpha), acc_to_real(beta), q, x, r, p, n, chunk, first_chunk,
               min(first_chunk + per_group, groups), 0, 0, sums + 2 * groups, scratch);
}

// `iterations` times cg_update and cg_product in one launch, for groups that all run at once and meet twice in each.
// Every group folds every sum and so comes to the same verdict; what it reads of others was written before a meeting.
// Sums of r.r go to two places in turn, because a group may write the next ones while another still reads.
// Bytes: those of the two kernels, from a cache where they fit.
__kernel GROUP
void cg_resident(uint n, uint chunk, uint stride, uint groups, uint per_group, uint iterations,
                 __global const uint* restrict rows, __global const uint* restrict indices,
                 __global const real_t* restrict values, __global real_t* p, __global real_t* q, __global real_t* x,
                 __global real_t* r, __global acc_t* sums, __global acc_t* control, __global int* status,
                 __global acc_t* history)
{
    __local acc_t scratch[3 * WG];
    __local int verdict[1];
    __global int* meeting = status + MEETING;
    if (!all_arrive(meeting, verdict)) return;
    const int writer = get_group_id(0) == 0 && get_local_id(0) == 0;
    const uint first_chunk = get_group_id(0) * per_group;
    const uint last_chunk = min(first_chunk + per_group, groups);
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, stride);
    // The first element of this item, if it has one: others may be writing those that are not its own.
    const uint own_chunk = first_chunk + get_local_id(0) / CHUNK_ITEMS;
    const size_t own = own_chunk * (size_t)chunk + (get_local_id(0) & (CHUNK_ITEMS - 1));
    const int owns = own_chunk < last_chunk ? own < n : 0;
    // After a meeting everything comes from afar: what does not change is held here.
    const acc_t tolerance = control[TOLERANCE];
    const int most = status[MAX_ITERATIONS];
    const int mask = status[HISTORY_MASK];
    int stop = status[STOP];
    int iteration = status[ITERATION];
    acc_t rr = control[RR];
    acc_t alpha = control[SLOT + ALPHA];
    acc_t beta = control[SLOT + BETA];
    int done = 0;
    for (uint k = 0; !done; ++k) {
        // Under way while the sums are folded.
        element_t ahead;
        if (owns) cg_element(&ahead, q, x, r, p, own);
        acc_t total[3]; // p.q, q.q and r.r of the last iteration
        total[0] = held_sums(sums, groups);
        total[1] = held_sums(sums + groups, groups);
        total[2] = held_sums(sums + (2 + (k + 1) % 2) * groups, k > 0 ? groups : 0);
        run_folds(total, 3, get_local_id(0), WG, scratch);
        if (stop == RUNNING && k > 0) {
            rr = total[2];
            stop = cg_verdict(rr, tolerance, iteration, most);
            if (writer) history[iteration & mask] = rr;
        }
        done = k == iterations || stop != RUNNING;
        if (!done) {
            stop = cg_curvature(total[0], total[1]);
            done = stop != RUNNING;
        }
        if (!done) {
            alpha = acc_div(rr, total[0]);
            beta = cg_beta(alpha, total[1], rr);
            iteration = iteration + 1;
            cg_advance(acc_to_real(alpha), acc_to_real(beta), q, x, r, p, n, chunk, first_chunk, last_chunk,
                       &ahead, own, sums + (2 + k % 2) * groups, scratch);
            meet(meeting, 2 * k + 1);
            cg_multiply(&matrix, p, q, n, chunk, groups, first_chunk, last_chunk, sums, scratch);
            meet(meeting, 2 * k + 2);
        }
    }
    // Nobody reads these after the last meeting but the groups that have yet to begin, and all have begun.
    if (writer) {
        control[RR] = control[SLOT + RR] = rr;
        control[SLOT + ALPHA] = alpha;
        control[SLOT + BETA] = beta;
        status[STOP] = status[2 + STOP] = stop;
        status[ITERATION] = status[2 + ITERATION] = iteration;
    }
    depart(meeting);
}
