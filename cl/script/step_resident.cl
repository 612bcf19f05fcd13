// Many iterations of a method in one launch, by groups that all run at once: the programs of recurrence.cl, the passes of pass.cl, the
// products of step.cl and the steps over an image of variation.cl. A global barrier follows each of the last three, if the next call needs it.
// Joined after row.cl, global_barrier.cl, statement.cl, dual.cl and recurrence.cl. How each product is combined is read from the list (BLEND is TOLD).
//
// Required macros:
//   COL_LANES  virtual lanes of the chunks of vectors as long as the first matrix has columns; LANES are those for its rows
//   COMPILED   1: the programs and passes of the script are part of the text, in PROGRAMS and PASSES. 0: they are read from the list.
//   IMAGE      1: there are calls over an image. If COMPILED is 1, they are part of PASSES.
//   PROGRAMS   PROGRAM_OF(call_place == P || ..., instructions) for each program, with the places P of the calls in the list that run it
//   PASSES     PASS_OF(call_place == P || ..., steps), likewise
//
// A call is a step of a method, such as a product or a pass. Iterations may do different calls: of K kinds, iteration k does the calls of kind
// k mod K. `list` holds K, the place where the calls of each kind begin, where those of the last kind end, and then the calls. A call is a
// record of CALL words, then the block of its program.

// MOST_WORDS: of a list
// WORK: scalars alone, a pass, a product, or one of two over an image
// SIZE: elements of its vectors, or rows of its matrix
// CHUNK: elements of a chunk
// OPERANDS: four bits each: of a product, matrix, x, w, z, y; over an image, p (two), q, then x and x_old, or g
// BLEND_STEPS: of a product, as in row.cl
// STRIDE: of its matrix
// WEIGHTS: over an image: its first register, as in dual.cl
// WIDTH: pixels of its rows
// STATEMENTS: MOST_STATEMENTS of a pass, each as in statement.cl; of a product one for its dot products, which nothing stores
// SUMMED: dot products, as in pass.cl: of a product y.y (or y.(w y)) and y.z; of an ascent 0 for the first, its change
// LOADED: vectors that statements and dot products read, as a mask; over an image, all that the call takes
// WRITTEN: vectors that statements write
// GOES_ON: 1: a group may begin the next call before others have done this one

// ASCENT: over an image, a step of its dual variables

// DOTS: most dot products of a call

typedef struct { __global real_t *v0, *v1, *v2, *v3, *v4, *v5, *v6, *v7, *v8, *v9, *v10, *v11, *v12; } vectors_t;

static __global real_t* vector_of(const vectors_t* v, uint k)
{
    return k == 0 ? v->v0 : k == 1 ? v->v1 : k == 2 ? v->v2 : k == 3 ? v->v3 : k == 4 ? v->v4 : k == 5 ? v->v5
         : k == 6 ? v->v6 : k == 7 ? v->v7 : k == 8 ? v->v8 : k == 9 ? v->v9 : k == 10 ? v->v10 : k == 11 ? v->v11 : v->v12;
}

// Runs of the scratch memory: dot products that are folded at once, or columns.
#define RUNS (COLUMNS > DOTS ? COLUMNS : DOTS)

// MOST_ITEM_LANES: most lanes of a chunk that an item holds.
#define MOST_LANES (LANES > COL_LANES ? LANES : COL_LANES)
#define MOST_ITEM_LANES (MOST_LANES > WG ? MOST_LANES / WG : 1)

// Vector k is loaded, or stored.
#define LOAD(k) v[k] = vectors->v##k[at];
#define STORE(k) vectors->v##k[at] = v[k];

#if COMPILED
#define STATEMENT(statement, k, l, m) \
    apply_statement(v, statement, acc_to_real(file[k]), acc_to_real(file[l]), acc_to_real(file[m]));
#define DOT(k, a, b) lane[k][j] = acc_add(lane[k][j], acc_product(v[a], v[b]));
#define ASCEND(weights, px, py, q, x, x_old) \
    lane[0][j] = acc_add(lane[0][j], ascend_at(call[SIZE], call[WIDTH], DUAL_WEIGHTS(file + weights), i, c, vectors->v##x, \
                                               vectors->v##x_old, vectors->v##px, vectors->v##py, vectors->v##q));
#define SUBTRACT(weights, px, py, q, g) \
    subtract_at(call[SIZE], call[WIDTH], DUAL_WEIGHTS(file + weights), i, c, vectors->v##px, vectors->v##py, vectors->v##q, \
                vectors->v##g);
#define PASS_OF(which, steps) if (which) { steps }

// The statements of the call that begins at place `call_place` of the list, for element i of column c of its vectors, and its dot products
// in lane j; or its step at pixel i of an image.
static void run_statements(__local const uint* call, uint call_place, const vectors_t* vectors, __local const acc_t* file,
                           const real_t* coefficient, size_t i, uint c, acc_t (*lane)[MOST_ITEM_LANES], uint j)
{
    const size_t at = i * COLUMNS + c;
    real_t v[RESIDENT_VECTORS];
    PASSES
}

#define INSTRUCTION(op, target, a, b) \
    reason = execute(op, target, file[a], file[b], c, file, &done, most, mask, history); \
    if (reason != RUNNING) break;
#define WHEN(a) if (acc_less(acc_real(0), file[a])) {
#define END }
#define PROGRAM_OF(which, instructions) if (which) do { instructions } while (0);

// Runs the program of the call that begins at place `call_place` of the list for column c, as `interpret` does.
static void run_instructions(uint call_place, uint c, __local acc_t* file, __local int* state, int most, int mask,
                             __global acc_t* history)
{
    int reason = state[0], done = state[1];
    if (reason != RUNNING) return;
    PROGRAMS
    state[0] = reason;
    state[1] = done;
}
#else
#define LOAD_IF(k) if (loaded & (1 << k)) LOAD(k)
#define STORE_IF(k) if (written & (1 << k)) STORE(k)

#if IMAGE
// The step of a call over an image at pixel i of column c.
static void run_image(__local const uint* call, const vectors_t* vectors, __local const acc_t* file, size_t i, uint c,
                      acc_t (*lane)[MOST_ITEM_LANES], uint j)
{
    const uint operands = call[OPERANDS], n = call[SIZE], width = call[WIDTH];
    const dual_weights_t weights = DUAL_WEIGHTS(file + call[WEIGHTS]);
    __global real_t* px = vector_of(vectors, operands & 15);
    __global real_t* py = vector_of(vectors, (operands >> 4) & 15);
    __global real_t* q = vector_of(vectors, (operands >> 8) & 15);
    __global real_t* first = vector_of(vectors, (operands >> 12) & 15);
    __global real_t* second = vector_of(vectors, (operands >> 16) & 15);
    if (call[WORK] == ASCENT) lane[0][j] = acc_add(lane[0][j], ascend_at(n, width, weights, i, c, first, second, px, py, q));
    else subtract_at(n, width, weights, i, c, px, py, q, first);
}
#endif

static void run_statements(__local const uint* call, uint call_place, const vectors_t* vectors, __local const acc_t* file,
                           const real_t* coefficient, size_t i, uint c, acc_t (*lane)[MOST_ITEM_LANES], uint j)
{
    const size_t at = i * COLUMNS + c;
#if IMAGE
    if (call[WORK] >= ASCENT) {
        run_image(call, vectors, file, i, c, lane, j);
        return;
    }
#endif
    const uint loaded = call[LOADED], written = call[WRITTEN], summed = call[SUMMED];
    real_t v[RESIDENT_VECTORS];
    LOAD_IF(0) LOAD_IF(1) LOAD_IF(2) LOAD_IF(3) LOAD_IF(4) LOAD_IF(5)
    LOAD_IF(6) LOAD_IF(7) LOAD_IF(8) LOAD_IF(9) LOAD_IF(10) LOAD_IF(11)
    LOAD_IF(12)
    for (uint s = 0; s < MOST_STATEMENTS; ++s)
        apply_statement(v, call[STATEMENTS + s], coefficient[3 * s], coefficient[3 * s + 1], coefficient[3 * s + 2]);
    STORE_IF(0) STORE_IF(1) STORE_IF(2) STORE_IF(3) STORE_IF(4) STORE_IF(5)
    STORE_IF(6) STORE_IF(7) STORE_IF(8) STORE_IF(9) STORE_IF(10) STORE_IF(11)
    STORE_IF(12)
    for (uint k = 0; k < DOTS; ++k) {
        const uint dot = (summed >> (8 * k)) & 255;
        if (dot != NO_DOT) lane[k][j] = acc_add(lane[k][j], acc_product(v[dot & 15], v[dot >> 4]));
    }
}
#endif

// The statements and dot products of a call, or its steps over an image, for chunks first_chunk .. last_chunk, which have `lanes` lanes.
static void run_pass(uint lanes, __local const uint* call, uint call_place, const vectors_t* vectors, uint chunks, uint first_chunk,
                     uint last_chunk, __local const acc_t* file, __local const int* state, __global acc_t* sums,
                     __local acc_t* scratch)
{
    __local const uint* head = call + CALL;
    const uint n = call[SIZE], chunk = call[CHUNK], summed = call[SUMMED];
    // Chunks side by side, as in fold.cl.
    const uint items = lanes < WG ? lanes : WG;
    const uint item_lanes = MOST_ITEM_LANES > 1 && lanes > WG ? lanes / WG : 1;
    const uint slot = get_local_id(0) / items;
    const uint place = get_local_id(0) & (items - 1);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (state[STATES * c] != RUNNING) continue;
        real_t coefficient[3 * MOST_STATEMENTS];
        for (uint k = 0; k < 3 * MOST_STATEMENTS; ++k) coefficient[k] = acc_to_real(file[c * REGISTERS + head[COEFFICIENTS + k]]);
        for (uint base = first_chunk; base < last_chunk; base += WG / items) {
            const uint mine = base + slot;
            const size_t first = mine * (size_t)chunk;
            const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
            acc_t lane[DOTS][MOST_ITEM_LANES];
            for (uint k = 0; k < DOTS; ++k)
                for (uint j = 0; j < item_lanes; ++j) lane[k][j] = acc_real(0);
            for (size_t block = first; block < last; block += lanes)
                for (uint j = 0; j < item_lanes; ++j) {
                    const size_t i = block + place + j * items;
                    if (i >= last) continue;
                    run_statements(call, call_place, vectors, file + c * REGISTERS, coefficient, i, c, lane, j);
                }
            acc_t held[DOTS];
            for (uint k = 0; k < DOTS; ++k) held[k] = item_fold(lane[k], item_lanes);
            if (summed != NO_DOTS) {
                run_folds(held, DOTS, place, items, scratch + slot * items);
                if (place == 0 && mine < last_chunk)
                    for (uint k = 0; k < DOTS; ++k)
                        if (((summed >> (8 * k)) & 255) != NO_DOT)
                            sums[head[DOT_PLACES + k] + c * (size_t)chunks + mine] = held[k];
            }
        }
    }
}

// The product of a call for chunks first_chunk .. last_chunk of its rows. Every item sees it when it returns.
static void run_product(__local const uint* call, const vectors_t* vectors, const matrix_t* matrix, uint first_chunk,
                        uint last_chunk, __local const acc_t* file, __local acc_t* blend, __local acc_t* scratch)
{
    __local const uint* head = call + CALL;
    const uint n = call[SIZE], chunk = call[CHUNK], operands = call[OPERANDS];
    for (uint k = get_local_id(0); k < 2 * COLUMNS; k += WG)
        blend[k] = file[(k < COLUMNS ? k : k - COLUMNS) * REGISTERS + head[COEFFICIENTS + (k < COLUMNS ? 0 : 1)]];
    barrier(CLK_LOCAL_MEM_FENCE);
    vector_t vector;
    read_vector(&vector, vector_of(vectors, (operands >> 4) & 15));
    result_t result;
    result.y = vector_of(vectors, (operands >> 16) & 15);
    result.b = vector_of(vectors, (operands >> 8) & 15);
    result.blend = blend;
    result.steps = call[BLEND_STEPS];
    chunks_product(&result, matrix, &vector, n, chunk, first_chunk, last_chunk, scratch);
}

// The program of a call: folds the sums that it names and runs its instructions for each column. Returns whether any column still runs.
static int run_call(__local const uint* call, uint call_place, __global const acc_t* sums, __global acc_t* history,
                    __local acc_t* file, __local int* state, __local const int* limits, __local acc_t* scratch)
{
    __local const uint* head = call + CALL;
    const uint length = head[INSTRUCTIONS];
    if (length == 0) return 1;
    fold_named(head, sums, file, scratch);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint c = get_local_id(0); c < COLUMNS; c += WG)
#if COMPILED
        run_instructions(call_place, c, file + c * REGISTERS, state + c * STATES, limits[c], limits[COLUMNS], history);
#else
        interpret(head + HEADER, length, c, file + c * REGISTERS, state + c * STATES, limits[c], limits[COLUMNS], history);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    return any_running(state);
}

// `iterations` iterations, of which the first is of kind `first`. Every group folds every sum and runs every program, and so comes to
// the same scalars. Reads and writes one slot. `done` are the iterations that were asked for when it ends, in all.
// Bytes: those of the launches that it stands for, from a cache if they fit.
__kernel GROUP
void step_resident(uint words, uint slot, uint first, uint iterations, uint done, __global const uint* restrict list,
                   __global real_t* v0, __global real_t* v1, __global real_t* v2, __global real_t* v3, __global real_t* v4,
                   __global real_t* v5, __global real_t* v6, __global real_t* v7, __global real_t* v8, __global real_t* v9,
                   __global real_t* v10, __global real_t* v11, __global real_t* v12, __global const uint* restrict rows,
                   __global const uint* restrict indices, __global const real_t* restrict values,
                   __global const uint* restrict other_rows, __global const uint* restrict other_indices,
                   __global const real_t* restrict other_values, __global const uint* restrict third_rows,
                   __global const uint* restrict third_indices, __global const real_t* restrict third_values,
                   __global acc_t* sums, __global acc_t* registers, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[RUNS * WG];
    __local acc_t file[COLUMNS * REGISTERS];
    __local acc_t blend[2 * COLUMNS];
    __local int state[COLUMNS * STATES];
    __local int limits[COLUMNS + 1];
    __local uint told[MOST_WORDS];
    __local int verdict[1];
    __global int* barrier_words = status + 2 * COLUMNS * STATES + COLUMNS + 1;
    if (was_abandoned(barrier_words)) return;
    if (!gather_groups(barrier_words, verdict)) return;
    const uint item = get_local_id(0);
    const uint group = get_group_id(0), groups = get_num_groups(0);
    __global acc_t* held = registers + slot * COLUMNS * REGISTERS;
    __global int* reached = status + slot * COLUMNS * STATES;
    for (uint k = item; k < words; k += WG) told[k] = list[k];
    for (uint k = item; k < COLUMNS * REGISTERS; k += WG) file[k] = held[k];
    for (uint k = item; k < COLUMNS * STATES; k += WG) state[k] = reached[k];
    for (uint k = item; k < COLUMNS + 1; k += WG) limits[k] = status[2 * COLUMNS * STATES + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    vectors_t vectors;
    vectors.v0 = v0;
    vectors.v1 = v1;
    vectors.v2 = v2;
    vectors.v3 = v3;
    vectors.v4 = v4;
    vectors.v5 = v5;
    vectors.v6 = v6;
    vectors.v7 = v7;
    vectors.v8 = v8;
    vectors.v9 = v9;
    vectors.v10 = v10;
    vectors.v11 = v11;
    vectors.v12 = v12;
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, 0);
    const uint kinds = told[0];
    uint kind = first;
    uint meetings = 0;
    int running = any_running(state);
    for (uint k = 0; running && k < iterations; ++k) {
        const uint end = told[2 + kind];
        for (uint at = told[1 + kind]; running && at < end; at += told[at]) {
            __local const uint* call = told + at;
            running = run_call(call, at, sums, history, file, state, limits, scratch);
            if (running && call[WORK] != SCALARS) {
                const uint chunks = (call[SIZE] + call[CHUNK] - 1) / call[CHUNK];
                const uint each = (chunks + groups - 1) / groups;
                const uint first_chunk = min(group * each, chunks);
                const uint last_chunk = min(first_chunk + each, chunks);
                if (call[WORK] == PRODUCT) {
                    const uint which = call[OPERANDS] & 15;
                    // Chosen, not branched to: Oclgrind 21 took the pointers of another branch.
                    hold_matrix(&matrix, which == 0 ? rows : which == 1 ? other_rows : third_rows,
                                which == 0 ? indices : which == 1 ? other_indices : third_indices,
                                which == 0 ? values : which == 1 ? other_values : third_values, call[STRIDE]);
                    take_kind(&matrix, which);
                    run_product(call, &vectors, &matrix, first_chunk, last_chunk, file, blend, scratch);
                }
                // Compiled: each call of run_pass has a constant number of lanes, 0.9 of the time of FISTA with 3.3 million entries on an H200. Read from
                // the list: one call for both, because PoCL 3.1 made the second of two do nothing.
                const uint lanes = min(call[CHUNK], (uint)FOLD_LANES);
                if (call[LOADED] != 0) {
#if COMPILED || COL_LANES == LANES
                    if (COL_LANES == LANES || lanes == LANES)
                        run_pass(LANES, call, at, &vectors, chunks, first_chunk, last_chunk, file, state, sums, scratch);
                    else
                        run_pass(COL_LANES, call, at, &vectors, chunks, first_chunk, last_chunk, file, state, sums, scratch);
#else
                    run_pass(lanes, call, at, &vectors, chunks, first_chunk, last_chunk, file, state, sums, scratch);
#endif
                }
                if (call[GOES_ON]) {
                    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
                } else {
                    meetings = meetings + 1;
                    global_barrier(barrier_words, meetings);
                }
            }
        }
        kind = kind + 1 == kinds ? 0 : kind + 1;
    }
    // All groups have read the slot when they have met.
    global_barrier(barrier_words, meetings + 1);
    if (group == 0) {
        for (uint k = item; k < COLUMNS * REGISTERS; k += WG) held[k] = file[k];
        for (uint k = item; k < COLUMNS * STATES; k += WG) reached[k] = state[k];
        if (item == 0) barrier_words[DONE] = done;
    }
    leave(barrier_words);
}
