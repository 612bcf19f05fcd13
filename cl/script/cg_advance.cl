// The updates of a conjugate gradient iteration. Joined after cg_parts.cl.
//
// Required macro:
//   ELEMENTS_TOGETHER  elements of one item that are read before any of them is written, if a group has several items; a
//              power of two

#define TOGETHER (WG == 1 ? 1 : ELEMENTS_TOGETHER)
// Lanes of an item, or more elements than that: those of one lane follow each other.
#define TOGETHER_SPAN (ITEM_LANES > TOGETHER ? ITEM_LANES : TOGETHER)

// The vectors at one element, and the diagonal if there is one.
typedef struct { real_t x, r, p, q, m; } element_t;

#define DOTS (1 + DIAGONAL) // r.r, r.z

static void cg_element(element_t* element, __global const real_t* m, __global const real_t* q, __global const real_t* x,
                       __global const real_t* r, __global const real_t* p, size_t i)
{
    element->x = x[i];
    element->r = r[i];
    element->p = p[i];
    element->q = q[i];
    if (DIAGONAL) element->m = m[i];
}

// x += alpha p, r -= alpha q, p = z + beta p for chunks first_chunk .. last_chunk of `groups`, with their sums of r.r, and two
// runs later those of r.z. `ahead`, if there is one, is element `ahead_at`, read before. `scratch` has DOTS * WG places.
static void cg_advance(real_t alpha, real_t beta, __global const real_t* m, __global const real_t* q, __global real_t* x,
                       __global real_t* r, __global real_t* p, uint n, uint chunk, uint groups, uint first_chunk,
                       uint last_chunk, const element_t* ahead, size_t ahead_at, __global acc_t* rr_sums,
                       __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    __local acc_t* run = scratch + slot * CHUNK_ITEMS;
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
        acc_t lane[DOTS][ITEM_LANES];
        for (uint d = 0; d < DOTS; ++d)
            for (uint j = 0; j < ITEM_LANES; ++j) lane[d][j] = acc_real(0);
        for (size_t block = first; block < last; block += TOGETHER_SPAN * CHUNK_ITEMS)
            for (uint j = 0; j < TOGETHER_SPAN; j += TOGETHER) {
                // All are read before the first is written, so that many reads are under way.
                element_t old[TOGETHER];
                for (uint k = 0; k < TOGETHER; ++k) {
                    const size_t i = block + place + (j + k) * CHUNK_ITEMS;
                    if (i >= last) continue;
                    if (ahead && i == ahead_at) old[k] = *ahead;
                    else cg_element(&old[k], m, q, x, r, p, i);
                }
                for (uint k = 0; k < TOGETHER; ++k) {
                    const size_t i = block + place + (j + k) * CHUNK_ITEMS;
                    if (i >= last) continue;
                    const real_t next = old[k].r - alpha * old[k].q;
                    x[i] = old[k].x + alpha * old[k].p;
                    r[i] = next;
                    const real_t z = DIAGONAL ? old[k].m * next : next;
                    p[i] = z + beta * old[k].p;
                    const uint l = (j + k) & (ITEM_LANES - 1);
                    lane[0][l] = acc_add(lane[0][l], acc_product(next, next));
                    if (DIAGONAL) lane[DIAGONAL][l] = acc_add(lane[DIAGONAL][l], acc_product(next, z));
                }
            }
        acc_t held[DOTS];
        for (uint d = 0; d < DOTS; ++d) held[d] = item_fold(lane[d], ITEM_LANES);
        run_folds(held, DOTS, place, CHUNK_ITEMS, run);
        if (place == 0 && mine < last_chunk)
            for (uint d = 0; d < DOTS; ++d) rr_sums[2 * d * groups + mine] = held[d];
    }
}
