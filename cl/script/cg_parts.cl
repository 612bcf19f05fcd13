// Conjugate gradients in two launches per iteration (cg_product, cg_update), or in one for many iterations (cg_resident).
// This file holds what the launches share. Joined after fold.cl. Source: J. R. Shewchuk 1994 (B2) and michels-2011,
// algorithm 2; the second product of q with itself lets one pass do all updates, because
//   r' = r - alpha q   =>   r'.r' = alpha^2 q.q - r.r   (r.q = p.q = r.r / alpha in exact arithmetic).
// r.r itself is summed afresh from r in every iteration, so the estimate enters beta alone and never accumulates.
// With a diagonal M as preconditioner z = M r stands for r in the direction, and rho = r.z and q.Mq for r.r and q.q in the
// formulas:  r'.z' = alpha^2 q.Mq - r.z. The stopping test is of r.r.
//
// `sums` holds, from place `place` on, arrays of `groups` chunk sums: p.q, q.Mq and two arrays for r.r; with a diagonal two more for r.z. Only
// cg_resident uses the second array of a pair.
// `registers` and `status` are those of a script (recurrence.cl) for one column; `rho` is the register of that name. A slot is one of two copies of
// both. A launch reads a slot and writes the other, so that no group reads what another writes in the same launch. If the slot that is read says
// that the solve has stopped, a launch only copies it. Two launches for an iteration and one for many leave the same state after an
// iteration, and may be mixed within a solve.
//
// Required macro:
//   DIAGONAL    1 with a diagonal preconditioner, 0 without

// Words of the status: STOP and ITERATION of a slot, why it stopped and the iterations done; behind both slots the limits, then the words of
// global_barrier.cl.
#define MAX_ITERATIONS (2 * STATES)
#define HISTORY_MASK (2 * STATES + 1)
#define BARRIER (2 * STATES + 2)

// Verdict of the stopping test on r.r.
static int cg_verdict(acc_t rr, acc_t limit, int iteration, int most)
{
    if (!acc_finite(rr)) return NOT_FINITE;
    if (!acc_less(limit, rr)) return CONVERGED;
    return iteration >= most ? ITERATIONS_DONE : RUNNING;
}

// Verdict on r.z.
static int cg_definite(acc_t rz)
{
    if (!acc_finite(rz)) return NOT_FINITE;
    return acc_less(acc_real(0), rz) ? RUNNING : INDEFINITE_PRECONDITIONER;
}

// Tells if there is an alpha.
static int cg_curvature(acc_t pq, acc_t qq)
{
    if (!acc_finite(pq) || !acc_finite(qq)) return NOT_FINITE;
    if (acc_less(pq, acc_real(0))) return INDEFINITE;
    return acc_less(acc_real(0), pq) ? RUNNING : BREAKDOWN;
}

// beta, from the estimate above.
static acc_t cg_beta(acc_t alpha, acc_t qq, acc_t rho)
{
    const acc_t next_rho = acc_sub(acc_mul(alpha, acc_mul(alpha, qq)), rho);
    return acc_less(acc_real(0), next_rho) ? acc_div(next_rho, rho) : acc_real(0);
}
