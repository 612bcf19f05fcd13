// Regularised CGNR in two launches per iteration (cgnr_forward, cgnr_backward), or in one for many iterations (cgnr_resident),
// for COLUMNS right-hand sides at once. This file holds what the launches share. Joined after row.cl.
// Source: stock-koch-2009, table 1; the derivation of alpha and beta is in src/solver/method/cgnr.rs.
//
//   minimise  |A x - b|^2 / 2 + R(x),   s = A'r - F(x, x) = -gradient,   r = b - A x
//   F(x, v) = tikhonov v + sum over neighbours of (smooth + tv phi(x)) (v - v_neighbour) + box (v - bound) if x
//             is out of bounds;   phi = 1 / sqrt(|difference of x|^2 + epsilon^2)   (lagged diffusivity)
//
// cgnr_forward:   beta;   d = s + beta d   formed as it is read;   q = A d;   sums of q.q and d.F(x, d)
// cgnr_backward:  alpha;  r -= alpha q and x += alpha d formed as they are read;   s = A'r - F(x, x);   sums of s.s,
//                 s.s_old, s.d and r.r
// A vector that other groups still read is written to a second buffer; the two change places every iteration.
//
// If products are launches of their own, cgnr_pixels.cl computes the vectors as long as an image of both kernels, and pass.cl the rest.
// cgnr_resident does many iterations in one launch, for groups that all run at once; between iterations it leaves the same
// state as the two, and they may take turns.
//
// `registers` and `status` are those of a script (recurrence.cl). A launch reads a slot and writes the other, so that no group reads what
// another writes in the same launch.
//
// Required macro:
//   PIXEL_LANES  virtual lanes of a chunk of pixels; LANES are those of a chunk of rows

typedef struct {
    uint rows, row_chunk, row_groups; // of A
    uint cols, col_chunk, col_groups;
    uint width;                       // of the image, 0 if there are no neighbour terms
    uint stride;                      // of the matrix that is multiplied by, in the formats that have one
    uint slot;                        // that the launch reads
    uint descent, weights;            // registers: s.d, and the first of those that correction.cl names
    uint place;                       // of the chunk sums
    uint each;                        // chunks of a group, in a launch without a product
} shape_t;

// Registers of column c in a slot.
#define FILE_OF(registers, slot, c) ((registers) + ((slot) * COLUMNS + (c)) * REGISTERS)
// Why column c stopped, in a slot (0: it has not), and the iterations done.
#define STATE_OF(status, slot, c) ((status) + ((slot) * COLUMNS + (c)) * STATES)
// Behind both slots: most iterations of each column, the mask of the history, the words of global_barrier.cl.
#define LIMITS (2 * COLUMNS * STATES)
#define MASK (LIMITS + COLUMNS)
#define BARRIER (MASK + 1)

// Places of the chunk sums of column c in `sums`: q.q and r.r by rows of A, the others by columns.
static uint qq_run(shape_t shape, uint c) { return shape.place + c * shape.row_groups; }
static uint rr_run(shape_t shape, uint c) { return shape.place + (COLUMNS + c) * shape.row_groups; }
static uint col_run(shape_t shape, uint quantity, uint c)
{
    return shape.place + 2 * COLUMNS * shape.row_groups + (quantity * COLUMNS + c) * shape.col_groups;
}
static uint df_run(shape_t shape, uint c) { return col_run(shape, 0, c); }
static uint ss_run(shape_t shape, uint c) { return col_run(shape, 1, c); }
static uint so_run(shape_t shape, uint c) { return col_run(shape, 2, c); }
static uint sd_run(shape_t shape, uint c) { return col_run(shape, 3, c); }
#define MOST_RUNS (4 * COLUMNS) // that are read together

// Copies the status of a slot to the other one, once every column has stopped.
static void hand_on(__global int* status, uint slot)
{
    for (uint c = 0; c < COLUMNS; ++c)
        for (uint k = 0; k < STATES; ++k) STATE_OF(status, 1 - slot, c)[k] = STATE_OF(status, slot, c)[k];
}

// Runs of chunk sums, one behind the other.
typedef struct {
    __global const acc_t* sums;
    uint runs, count; // `count` sums in each
} runs_t;

// Does partial_fold for the runs of `a`, then for those of `b`: all reads are under way together. Numbers of runs are constants
// where this is called. As a function of its own in halves of an iteration it saves a tenth of a second of NVIDIA's compiler and
// costs 10 us an iteration, because lanes are in memory then.
static void partial_folds(acc_t* held, runs_t a, runs_t b)
{
    const uint runs = a.runs + b.runs;
    if (FOLD_ITEM_LANES > 4) {
        for (uint k = 0; k < a.runs; ++k) held[k] = partial_fold(a.sums + k * a.count, a.count);
        for (uint k = 0; k < b.runs; ++k) held[a.runs + k] = partial_fold(b.sums + k * b.count, b.count);
        return;
    }
    acc_t lane[MOST_RUNS][FOLD_ITEM_LANES];
    for (uint k = 0; k < runs; ++k)
        for (uint j = 0; j < FOLD_ITEM_LANES; ++j) lane[k][j] = acc_real(0);
    // One loop, not one for each lane or run: compilers take their time with every loop. A zero more changes no bit.
    const uint longest = max(a.count, b.count);
    for (uint base = get_local_id(0); base < longest; base += FOLD_LANES)
        for (uint k = 0; k < runs; ++k)
            for (uint j = 0; j < FOLD_ITEM_LANES; ++j) {
                const uint l = base + j * WG;
                const uint count = k < a.runs ? a.count : b.count;
                __global const acc_t* sums = k < a.runs ? a.sums + k * a.count : b.sums + (k - a.runs) * b.count;
                lane[k][j] = acc_add(lane[k][j], l < count ? sums[l] : acc_real(0));
            }
    for (uint k = 0; k < runs; ++k) held[k] = item_fold(lane[k], FOLD_ITEM_LANES);
}

// CHUNK_ITEMS, ITEM_LANES and SIDE_BY_SIDE of the chunks of pixels.
#define PIXEL_ITEMS (PIXEL_LANES < WG ? PIXEL_LANES : WG)
#define PIXEL_ITEM_LANES (PIXEL_LANES > WG ? PIXEL_LANES / WG : 1)
#define PIXEL_SLOTS (WG / PIXEL_ITEMS)
// Columns of a pixel that an item takes at once: their loads are under way together. An item alone has too many lanes for that.
#define ABREAST (WG == 1 ? 1 : COLUMNS)

// Runs that are folded at once: scratch has as many times WG places.
#define RUNS (COLUMNS > 3 ? 4 : 3)

// Folds `count` numbers of every item as run_folds does, RUNS at a time.
static void fold_registers(acc_t* held, uint count, uint place, uint width, __local acc_t* run)
{
    for (uint k = 0; k < count; k += RUNS) run_folds(held + k, count - k < RUNS ? count - k : RUNS, place, width, run);
}
