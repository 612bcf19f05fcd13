// Many iterations of a method in one launch, by groups that all run at once: the programs of recurrence.cl, the passes of pass.cl and
// the products of step.cl, with a global barrier after each pass and each product. Joined after row.cl, global_barrier.cl and
// recurrence.cl; every product tells its steps (BLEND is TOLD).
//
// `list` says what an iteration does: the number of its kinds (iteration k is of kind k modulo that), where the calls of each kind
// begin, and where those of the last end; then calls. A call is a record of CALL words, then the block of its program.

#define MOST_WORDS 2048 // of a list
#define MOST_STATEMENTS 6
#define CALL 16
#define LENGTH 0        // words of a call
#define WORK 1          // scalars alone, a pass or a product
#define SIZE 2          // elements of its vectors, or rows of its matrix
#define CHUNK 3         // elements of a chunk
#define OPERANDS 4      // of a product: matrix, x, w, z, y, four bits each
#define BLEND_STEPS 5   // of a product, as in row.cl
#define STRIDE 6        // of its matrix
#define STATEMENTS 7    // MOST_STATEMENTS of a pass, each as in pass.cl; of a product one for its dot products, which nothing stores
#define SUMMED 13       // dot products, as in pass.cl: of a product y.y (or y.(w y)) and y.z
#define LOADED 14       // vectors that statements and dot products read, as a mask
#define WRITTEN 15      // vectors that statements write
#define DONE 4          // behind the words of the barrier: `done` of the last launch that was not abandoned

#define SCALARS 0
#define PASS 1
#define PRODUCT 2

#define NONE 15
#define NO_STATEMENT 0xffffffff
#define NO_DOT 255
#define MULTIPLY 1
#define CLAMP 2
#define NO_DOTS 0xffffff
#define DOTS 3          // most dot products of a call
#define RESIDENT_VECTORS 12

typedef struct { __global real_t *v0, *v1, *v2, *v3, *v4, *v5, *v6, *v7, *v8, *v9, *v10, *v11; } vectors_t;

static __global real_t* vector_of(const vectors_t* v, uint k)
{
    return k == 0 ? v->v0 : k == 1 ? v->v1 : k == 2 ? v->v2 : k == 3 ? v->v3 : k == 4 ? v->v4 : k == 5 ? v->v5
         : k == 6 ? v->v6 : k == 7 ? v->v7 : k == 8 ? v->v8 : k == 9 ? v->v9 : k == 10 ? v->v10 : v->v11;
}

// Runs of the scratch memory: dot products that are folded at once, or columns.
#define RUNS (COLUMNS > DOTS ? COLUMNS : DOTS)

// Vector k is loaded, or stored.
#define LOAD(k) if (loaded & (1 << k)) v[k] = vectors->v##k[at]
#define STORE(k) if (written & (1 << k)) vectors->v##k[at] = v[k]

// The statements of a call in column c at place `at`, as in pass.cl, and what its dot products need in `v`.
static void run_statements(real_t* v, __local const uint* call, const vectors_t* vectors, const real_t* coefficient,
                           size_t at)
{
    const uint loaded = call[LOADED], written = call[WRITTEN];
    LOAD(0); LOAD(1); LOAD(2); LOAD(3); LOAD(4); LOAD(5); LOAD(6); LOAD(7); LOAD(8); LOAD(9); LOAD(10); LOAD(11);
    if (call[STATEMENTS] == NO_STATEMENT) return;
    for (uint s = 0; s < MOST_STATEMENTS; ++s) {
        const uint statement = call[STATEMENTS + s];
        if (statement == NO_STATEMENT) continue;
        const uint a = (statement >> 4) & 15, b = (statement >> 8) & 15, d = (statement >> 12) & 15;
        real_t value;
        if (statement >> 16 == MULTIPLY) {
            value = v[a] * v[b];
        } else if (statement >> 16 == CLAMP) {
            value = v[a] < v[b] ? v[b] : v[a] > v[d] ? v[d] : v[a];
        } else {
            value = coefficient[3 * s] * v[a];
            if (b != NONE) value = value + coefficient[3 * s + 1] * v[b];
            if (d != NONE) value = value + coefficient[3 * s + 2] * v[d];
        }
        v[statement & 15] = value;
    }
    STORE(0); STORE(1); STORE(2); STORE(3); STORE(4); STORE(5); STORE(6); STORE(7); STORE(8); STORE(9); STORE(10); STORE(11);
}

// The statements and dot products of a call for chunks first_chunk .. last_chunk.
static void run_pass(__local const uint* call, const vectors_t* vectors, uint chunks, uint first_chunk, uint last_chunk,
                     __local const acc_t* file, __local const int* state, __global acc_t* sums, __local acc_t* scratch)
{
    __local const uint* head = call + CALL;
    const uint n = call[SIZE], chunk = call[CHUNK], summed = call[SUMMED];
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (state[STATES * c] != RUNNING) continue;
        real_t coefficient[3 * MOST_STATEMENTS];
        for (uint k = 0; k < 3 * MOST_STATEMENTS; ++k) coefficient[k] = acc_to_real(file[c * REGISTERS + head[COEFFICIENTS + k]]);
        for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
            const uint mine = base + slot;
            const size_t first = mine * (size_t)chunk;
            const size_t last = mine < last_chunk ? min(first + chunk, (size_t)n) : first;
            acc_t lane[DOTS][ITEM_LANES];
            for (uint k = 0; k < DOTS; ++k)
                for (uint j = 0; j < ITEM_LANES; ++j) lane[k][j] = acc_real(0);
            for (size_t block = first; block < last; block += LANES)
                for (uint j = 0; j < ITEM_LANES; ++j) {
                    const size_t i = block + place + j * CHUNK_ITEMS;
                    if (i >= last) continue;
                    real_t v[RESIDENT_VECTORS];
                    run_statements(v, call, vectors, coefficient, i * COLUMNS + c);
                    for (uint k = 0; k < DOTS; ++k) {
                        const uint dot = (summed >> (8 * k)) & 255;
                        if (dot != NO_DOT) lane[k][j] = acc_add(lane[k][j], acc_product(v[dot & 15], v[dot >> 4]));
                    }
                }
            acc_t held[DOTS];
            for (uint k = 0; k < DOTS; ++k) held[k] = item_fold(lane[k], ITEM_LANES);
            if (summed != NO_DOTS) {
                run_folds(held, DOTS, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
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

// `iterations` iterations, of which the first is of kind `first`. Every group folds every sum and runs every program, and so comes to
// the same scalars. Reads and writes one slot. `done` are the iterations that were asked for when it ends, in all.
// Bytes: those of the launches that it stands for, from a cache if they fit.
__kernel GROUP
void step_resident(uint words, uint slot, uint first, uint iterations, uint done, __global const uint* restrict list,
                   __global real_t* v0, __global real_t* v1, __global real_t* v2, __global real_t* v3, __global real_t* v4,
                   __global real_t* v5, __global real_t* v6, __global real_t* v7, __global real_t* v8, __global real_t* v9,
                   __global real_t* v10, __global real_t* v11, __global const uint* restrict rows,
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
    // After a launch that was abandoned none does anything: the host goes on where that one would have.
    if (get_num_groups(0) > 1 ? barrier_words[ABANDONED] != 0 : 0) return;
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
            running = run_program(call + CALL, sums, history, file, state, limits, scratch);
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
                if (call[LOADED] != 0)
                    run_pass(call, &vectors, chunks, first_chunk, last_chunk, file, state, sums, scratch);
                meetings = meetings + 1;
                global_barrier(barrier_words, meetings);
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
