// Conjugate gradients in two launches per iteration (cg_product, cg_update), or in one for many iterations (cg_resident).
// This file holds what the launches share. Joined after fold.cl. Source: J. R. Shewchuk 1994 (B2) and michels-2011,
// algorithm 2; the second product of q with itself lets one pass do all updates, because
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
#define BARRIER 6           // words of global_barrier.cl

#define RUNNING 0
#define CONVERGED 1
#define ITERATIONS_DONE 2
#define INDEFINITE 3
#define BREAKDOWN 4
#define NOT_FINITE 5

// Lanes of one item whose elements are read before any of them is written.
#define TOGETHER (WG == 1 ? 1 : ITEM_LANES < 4 ? ITEM_LANES : 4)

// Verdict of the stopping test on r.r.
int cg_verdict(acc_t rr, acc_t tolerance, int iteration, int most)
{
    if (!acc_finite(rr)) return NOT_FINITE;
    if (!acc_less(tolerance, rr)) return CONVERGED;
    return iteration >= most ? ITERATIONS_DONE : RUNNING;
}

// Tells if there is an alpha.
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

// x += alpha p, r -= alpha q, p = r + beta p for chunks first_chunk .. last_chunk, with their sums of r.r. `ahead`, if
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
