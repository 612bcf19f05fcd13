// The reduction tree of docs/numerics.md: folds of lanes, chunk sums, and their second level. Joined after common.cl.

#define ITEM_LANES (LANES > WG ? LANES / WG : 1)
#define FOLD_ITEM_LANES (FOLD_LANES > WG ? FOLD_LANES / WG : 1)

// One step of scratch_fold: up to three halvings, which leave `width / 8` (at least 1) sums.
static void scratch_step(__local acc_t* run, uint place, uint width)
{
    const uint step = width >= 8 ? width / 8 : 1;
    if (place < step) {
        __local const acc_t* p = run + place;
        acc_t sum;
        if (width >= 8)
            sum = acc_add(acc_add(acc_add(p[0], p[4 * step]), acc_add(p[2 * step], p[6 * step])),
                          acc_add(acc_add(p[step], p[5 * step]), acc_add(p[3 * step], p[7 * step])));
        else if (width == 4)
            sum = acc_add(acc_add(p[0], p[2]), acc_add(p[1], p[3]));
        else
            sum = acc_add(p[0], p[1]);
        run[place] = sum;
    }
}

// Does scratch_step for `runs` of them, WG places apart, then a barrier. Steps, not a loop of them: PoCL 3.1 turned some kernels
// with a loop around a barrier into endless ones.
static void scratch_steps(__local acc_t* run, uint runs, uint place, uint width)
{
    for (uint k = 0; k < runs; ++k) scratch_step(run + k * WG, place, width);
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Folds the `width` sums of each of `runs` by halving, s[l] += s[l + width / 2]; `place` is the item's place in a run.
// Widths and runs are constants where this is called.
static void scratch_folds(__local acc_t* run, uint runs, uint place, uint width)
{
    if (width > 1) scratch_steps(run, runs, place, width);
    if (width > 8) scratch_steps(run, runs, place, width / 8);
    if (width > 64) scratch_steps(run, runs, place, width / 64);
    if (width > 512) scratch_steps(run, runs, place, width / 512);
}

static void scratch_fold(__local acc_t* run, uint place, uint width) { scratch_folds(run, 1, place, width); }

// The lanes one item holds, folded: `lane[j]` is virtual lane get_local_id(0) + j * WG. Arrays are folded before the
// first barrier that follows, because PoCL 3.1 loses track of private arrays that live across one.
static acc_t item_fold(acc_t* lane, uint held)
{
    for (uint half_held = held / 2; half_held > 0; half_held /= 2)
        for (uint j = 0; j < half_held; ++j) lane[j] = acc_add(lane[j], lane[j + half_held]);
    return lane[0];
}

#if PTX
#define WARP 32
// Reads `held` of the item `distance` further on in the warp; or of item `lane` of the warp. All items of a warp take part.
static acc_t from_further(acc_t held, uint distance)
{
    ulong theirs;
    __asm__ volatile("{ .reg .b32 a, b; mov.b64 {a, b}, %1; shfl.sync.down.b32 a, a, %2, 31, -1; "
                     "shfl.sync.down.b32 b, b, %2, 31, -1; mov.b64 %0, {a, b}; }"
                     : "=l"(theirs) : "l"(as_ulong(held)), "r"(distance));
    return as_acc(theirs);
}
static acc_t from_lane(acc_t held, uint lane)
{
    ulong theirs;
    __asm__ volatile("{ .reg .b32 a, b; mov.b64 {a, b}, %1; shfl.sync.idx.b32 a, a, %2, 31, -1; "
                     "shfl.sync.idx.b32 b, b, %2, 31, -1; mov.b64 %0, {a, b}; }"
                     : "=l"(theirs) : "l"(as_ulong(held)), "r"(lane));
    return as_acc(theirs);
}
#else
#define WARP (2 * WG) // none
static acc_t from_further(acc_t held, uint distance) { return held; }
static acc_t from_lane(acc_t held, uint lane) { return held; }
#endif

// The first of `width` items of a warp gets the sum of what they hold.
static acc_t warp_fold(acc_t held, uint width)
{
    for (uint half_width = width / 2; half_width > 0; half_width /= 2)
        held = acc_add(held, from_further(held, half_width));
    return held;
}

// Run k of those of run_folds, in the hands of one warp: the upper halvings between registers, the lower ones between items.
static acc_t warp_folds(__local const acc_t* run, uint width)
{
    acc_t part[1024 / 32];
    const uint parts = width / WARP;
    for (uint m = 0; m < parts; ++m) part[m] = run[m * WARP + get_local_id(0) % WARP];
    return warp_fold(item_fold(part, parts), WARP);
}

// Folds the numbers of `width` neighbouring items, `runs` numbers each; all of these items get the sums. `run` is their
// stretch of scratch, which has runs * WG places. All items of the group take part, each in its run. Widths and runs are
// constants where this is called.
static void run_folds(acc_t* held, uint runs, uint place, uint width, __local acc_t* run)
{
    if (WG == 1) return;
    if (WG >= WARP && width <= WARP) {
        for (uint k = 0; k < runs; ++k)
            held[k] = from_lane(warp_fold(held[k], width), get_local_id(0) % WARP - place);
        return;
    }
    barrier(CLK_LOCAL_MEM_FENCE); // the last result may still be being read
    for (uint k = 0; k < runs; ++k) run[k * WG + place] = held[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (WG >= WARP) {
        // One warp folds a run, several of them at once.
        for (uint k = place / WARP; k < runs; k += width / WARP) {
            const acc_t sum = warp_folds(run + k * WG, width);
            if (place % WARP == 0) run[k * WG] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    } else {
        scratch_folds(run, runs, place, width);
    }
    for (uint k = 0; k < runs; ++k) held[k] = run[k * WG];
}

// The sum of what all items hold, out of `total` virtual lanes. Every item gets it. `scratch` has WG places.
static acc_t group_fold(acc_t held, uint total, __local acc_t* scratch)
{
    if (WG == 1) return held;
    if (total >= WG) {
        run_folds(&held, 1, get_local_id(0), WG, scratch);
        return held;
    }
    barrier(CLK_LOCAL_MEM_FENCE); // the last result may still be being read
    scratch[get_local_id(0)] = held;
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch_fold(scratch, get_local_id(0), total);
    return scratch[0];
}

// Chunk sums that a short fold takes, and the lanes of one item in it.
#define SHORT_FOLD 64
#define SHORT_ITEM_LANES (SHORT_FOLD > WG ? SHORT_FOLD / WG : 1)
// Lanes of one item that take part in a fold of `count` chunk sums: those beyond hold zeros, which change no bit, because
// every lane that holds a sum has been added to a zero.
#define FOLDED_LANES(count) (FOLD_ITEM_LANES > 4 && count <= SHORT_FOLD ? SHORT_ITEM_LANES : FOLD_ITEM_LANES)

// This item's partial fold of `count` chunk sums in FOLD_LANES lanes.
static acc_t partial_fold(__global const acc_t* sums, uint count)
{
    acc_t lane[FOLD_ITEM_LANES];
    const uint held = FOLDED_LANES(count);
    for (uint j = 0; j < held; ++j) {
        lane[j] = acc_real(0);
        const uint l = get_local_id(0) + j * WG;
        for (uint i = l; i < count && l < FOLD_LANES; i += FOLD_LANES) lane[j] = acc_add(lane[j], sums[i]);
    }
    return item_fold(lane, held);
}

// The second level of a reduction: the sum of `count` chunk sums.
static acc_t fold_sums(__global const acc_t* sums, uint count, __local acc_t* scratch)
{
    return group_fold(partial_fold(sums, count), FOLD_LANES, scratch);
}

// Lanes that an item of warp_fold_sums holds at a time, half or a quarter of them: products set FEW_HELD, because registers beyond those that
// a product needs itself cost it groups.
#ifndef FEW_HELD
#define FEW_HELD 0
#endif
#define HELD_LANES (FEW_HELD ? FOLD_LANES / 128 : FOLD_LANES / 64)
#define HELD_PARTS (FEW_HELD ? 4 : 2)

// Sum of up to FOLD_LANES chunk sums, folded as by fold_sums but by one warp, whose first item gets it. Items hold 32 lanes each, one sum in a
// lane: part k has every lane whose number in an item is k more than a multiple of HELD_PARTS.
static acc_t warp_fold_sums(__global const acc_t* sums, uint count)
{
    acc_t total = acc_real(0);
#if FEW_HELD
#pragma unroll 1
#endif
    for (uint half_index = 0; half_index < 2; ++half_index) {
        acc_t half_sum = acc_real(0);
#if FEW_HELD
#pragma unroll 1
#endif
        for (uint k = half_index; k < HELD_PARTS; k += 2) {
            acc_t lane[HELD_LANES];
            for (uint j = 0; j < HELD_LANES; ++j) {
                const uint l = (HELD_PARTS * j + k) * WARP + get_local_id(0) % WARP;
                lane[j] = l < count ? acc_add(acc_real(0), sums[l]) : acc_real(0);
            }
            const acc_t part = item_fold(lane, HELD_LANES);
            half_sum = k < 2 ? part : acc_add(half_sum, part);
        }
        total = half_index == 0 ? half_sum : acc_add(total, half_sum);
    }
    return warp_fold(total, WARP);
}

// A group works on SIDE_BY_SIDE chunks at once, CHUNK_ITEMS items on each.
#define CHUNK_ITEMS (LANES < WG ? LANES : WG)
#define SIDE_BY_SIDE (WG / CHUNK_ITEMS)

// sums[c * chunks + g] = the sum of x (w y) over chunk g in column c, or of x y if `w` is 0, for chunks first_chunk .. last_chunk
// of `chunks`, for every column. `scratch` has COLUMNS * WG places.
static void store_weighted_dots(__global const real_t* x, __global const real_t* w, __global const real_t* y, uint n,
                                uint chunk, uint chunks, uint first_chunk, uint last_chunk, __global acc_t* sums,
                                __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t first = mine * (size_t)chunk;
        const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
        acc_t held[COLUMNS];
        for (uint c = 0; c < COLUMNS; ++c) {
            acc_t lane[ITEM_LANES];
            for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
            for (size_t block = first; block < last; block += LANES) {
                // One item: as many as there are, which compilers make vector instructions of.
                const uint lanes = WG == 1 ? min((size_t)ITEM_LANES, last - block) : ITEM_LANES;
                for (uint j = 0; j < lanes; ++j) {
                    const size_t i = block + place + j * WG;
                    if (WG > 1 && i >= last) continue;
                    const size_t at = i * COLUMNS + c;
                    lane[j] = acc_add(lane[j], acc_product(x[at], w ? w[at] * y[at] : y[at]));
                }
            }
            held[c] = item_fold(lane, ITEM_LANES);
        }
        run_folds(held, COLUMNS, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
        if (place == 0 && mine < last_chunk)
            for (uint c = 0; c < COLUMNS; ++c) sums[c * (size_t)chunks + mine] = held[c];
    }
}

// sums[c * chunks + g] = the sum of x y.
static void store_dots(__global const real_t* x, __global const real_t* y, uint n, uint chunk, uint chunks, uint first_chunk,
                       uint last_chunk, __global acc_t* sums, __local acc_t* scratch)
{
    store_weighted_dots(x, 0, y, n, chunk, chunks, first_chunk, last_chunk, sums, scratch);
}
