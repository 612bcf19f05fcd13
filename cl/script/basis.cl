// A block of vectors: a basis Q of up to `most` vectors of `n` rows, and what GMRES makes of it. Vector k is kept as it came;
// times scale[k] its norm is 1. The vectors lie one behind the other in one buffer or several; a launch is given one of them.
//
// `arrays` holds, for each column, arrays of most + 1 wide numbers, from FACTOR to TRIANGLE; the upper triangle of GMRES follows, column by
// column. `sums` holds the chunk sums of the dot product of each vector of the basis with the vector at hand, column by column. Behind those
// of `most` vectors are the chunk sums of the square of the vector at hand. Joined after recurrence.cl.

// SQUARE_REGISTER, DIAGONAL_REGISTER, RESIDUAL_REGISTER: registers that basis_rotate sets before its program runs: the squares of the new vector's norm, of the diagonal of the
// triangle, and of the residual's norm.

// `n` rows in `chunks` chunks of `chunk`, `per_group` of them for each group; the first `count` vectors of a buffer, which begins
// with vector `first` of at most `most`; the slot whose status is read.
typedef struct { uint n, chunk, chunks, per_group, first, count, most, slot; } shape_t;

// Vectors that are multiplied by the vector at hand together: their loads are under way at once, their folds share barriers.
#define TOGETHER (ITEM_LANES > 8 ? 1 : WG >= 1024 ? 2 : 4)
// Entries of a row of Q that are loaded at once.
#define AT_ONCE 8

// Array `name` of column c.
__global acc_t* array_of(__global acc_t* arrays, uint name, uint most, uint c)
{
    const size_t row = most + 1;
    return arrays + (c * (size_t)(TRIANGLE + most) + name) * row;
}

// Tells if any column still runs.
static int any_column_runs(__global const int* status)
{
    int running = 0;
    for (uint c = 0; c < COLUMNS; ++c) running |= status[STATES * c] == RUNNING;
    return running;
}

// The chunk sums of Q'w over chunks first_chunk .. last_chunk, for vectors first .. last of the buffer. `scratch` has
// TOGETHER * WG places.
static void store_projections(const shape_t* shape, __global const real_t* basis, __global const real_t* w, uint first_chunk,
                              uint last_chunk, uint first, uint last, __global acc_t* sums, __local acc_t* scratch)
{
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    const size_t stride = shape->n * (size_t)COLUMNS;
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + slot;
        const size_t begin = mine * (size_t)shape->chunk;
        const size_t end = mine < last_chunk ? min(begin + shape->chunk, (size_t)shape->n) : begin;
        for (uint c = 0; c < COLUMNS; ++c)
            for (uint k = first; k < last; k += TOGETHER) {
                acc_t held[TOGETHER];
                acc_t lane[TOGETHER][ITEM_LANES];
                for (uint t = 0; t < TOGETHER; ++t)
                    for (uint j = 0; j < ITEM_LANES; ++j) lane[t][j] = acc_real(0);
                for (size_t block = begin; block < end; block += LANES)
                    for (uint j = 0; j < ITEM_LANES; ++j) {
                        const size_t i = block + place + j * WG;
                        if (i >= end) continue;
                        const size_t at = i * COLUMNS + c;
                        const real_t value = w[at];
                        for (uint t = 0; t < TOGETHER; ++t)
                            if (k + t < last)
                                lane[t][j] = acc_add(lane[t][j], acc_product(basis[(k + t) * stride + at], value));
                    }
                for (uint t = 0; t < TOGETHER; ++t) held[t] = item_fold(lane[t], ITEM_LANES);
                run_folds(held, TOGETHER, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
                if (place == 0 && mine < last_chunk)
                    for (uint t = 0; t < TOGETHER; ++t)
                        if (k + t < last)
                            sums[((shape->first + k + t) * COLUMNS + c) * (size_t)shape->chunks + mine] = held[t];
            }
    }
}

// The chunk sums of Q'w. Groups share the chunks and, if these are few, the vectors: `per_part` to each of the parts, whose
// groups follow each other, `groups` to a part.
// Bytes: `count` vectors, and w for each part.
__kernel GROUP
void basis_project(shape_t shape, uint groups, uint per_part, __global const real_t* restrict basis,
                   __global const real_t* restrict w, __global const int* status, __global acc_t* sums)
{
    __local acc_t scratch[TOGETHER * WG];
    if (!any_column_runs(status + shape.slot * COLUMNS * STATES)) return;
    const uint part = get_group_id(0) / groups;
    const uint first_chunk = (get_group_id(0) - part * groups) * shape.per_group;
    store_projections(&shape, basis, w, first_chunk, min(first_chunk + shape.per_group, shape.chunks), part * per_part,
                      min((part + 1) * per_part, shape.count), sums, scratch);
}

// Folds the chunk sums of Q'w, one group for each vector and column: projection = (or, `again`, +=) scale times the sum, and
// factor = minus that, which takes it out of w.
__kernel GROUP
void basis_fold(shape_t shape, uint again, __global const int* status, __global const acc_t* sums, __global acc_t* arrays)
{
    __local acc_t scratch[WG];
    const uint k = get_group_id(0) / COLUMNS;
    const uint c = get_group_id(0) - k * COLUMNS;
    if (status[(shape.slot * COLUMNS + c) * STATES] != RUNNING) return;
    const acc_t sum = fold_sums(sums + get_group_id(0) * (size_t)shape.chunks, shape.chunks, scratch);
    if (get_local_id(0) != 0) return;
    const acc_t scale = array_of(arrays, SCALE, shape.most, c)[k];
    const acc_t part = acc_mul(scale, sum);
    __global acc_t* projection = array_of(arrays, PROJECTION, shape.most, c) + k;
    *projection = again ? acc_add(*projection, part) : part;
    array_of(arrays, FACTOR, shape.most, c)[k] = acc_sub(acc_real(0), part);
}

// Elements begin .. end of v = (fresh ? 0 : v) + sum of factor (scale q), from left to right, for the columns that run;
// vector `count` of the buffer becomes the result if `store` says so. Item `place` takes what it takes in sums.
// A factor of 0 adds nothing, whatever its vector holds. Factor and scale stay apart, since their product may be too small
// for a real_t in a system far from 1.
static void add_vectors(const shape_t* shape, uint adds, uint fresh, uint store, __global real_t* basis, __global real_t* restrict v,
                        __global const int* status, size_t begin, size_t end, uint place, __local const real_t* factor,
                        __local const real_t* scale)
{
    const size_t stride = shape->n * (size_t)COLUMNS;
    const uint count = adds ? shape->count : 0, next = shape->count;
    for (uint c = 0; c < COLUMNS; ++c) {
        if (status[STATES * c] != RUNNING) continue;
        __local const real_t* by = factor + c * MOST_VECTORS;
        __local const real_t* unit = scale + c * MOST_VECTORS;
#if WG == 1
        // One vector after the other, for the sake of vector instructions: v stays in a cache.
        if (fresh)
            for (size_t i = begin; i < end; ++i) v[i * COLUMNS + c] = 0;
        for (uint k = 0; k < count; ++k) {
            const real_t times = by[k], once = unit[k];
            if (times == 0) continue;
            __global const real_t* q = basis + k * stride;
            for (size_t i = begin; i < end; ++i) v[i * COLUMNS + c] = v[i * COLUMNS + c] + times * (once * q[i * COLUMNS + c]);
        }
        if (store)
            for (size_t i = begin; i < end; ++i) basis[next * stride + i * COLUMNS + c] = v[i * COLUMNS + c];
#else
        for (size_t i = begin + place; i < end; i += CHUNK_ITEMS) {
            const size_t at = i * COLUMNS + c;
            real_t value = fresh ? 0 : v[at];
            for (uint k = 0; k < count; k += AT_ONCE) {
                real_t q[AT_ONCE];
                for (uint t = 0; t < AT_ONCE; ++t) q[t] = k + t < count ? basis[(k + t) * stride + at] : 0;
                for (uint t = 0; t < AT_ONCE; ++t)
                    if (k + t < count && by[k + t] != 0) value = value + by[k + t] * (unit[k + t] * q[t]);
            }
            v[at] = value;
            if (store) basis[next * stride + at] = value;
        }
#endif
    }
}

// v = (fresh ? 0 : v) + sum of factor (scale q), or v as it is unless `adds`. Then, if `project` says so, the chunk sums of Q'v; if `square` does, those of
// v.v; if `store` does, vector `count` of the buffer is v.
// Bytes: `count` vectors, once more if they are projected on and no cache holds those of a chunk; v read and written.
__kernel GROUP
void basis_add(shape_t shape, uint adds, uint fresh, uint project, uint square, uint store, __global real_t* basis,
               __global real_t* restrict v, __global const int* status, __global acc_t* sums, __global acc_t* arrays)
{
    __local acc_t scratch[COLUMNS > TOGETHER ? COLUMNS * WG : TOGETHER * WG];
    __local real_t factor[COLUMNS * MOST_VECTORS], scale[COLUMNS * MOST_VECTORS];
    __global const int* running = status + shape.slot * COLUMNS * STATES;
    if (!any_column_runs(running)) return;
    for (uint c = 0; c < COLUMNS; ++c)
        for (uint k = get_local_id(0); k < shape.count; k += WG) {
            factor[c * MOST_VECTORS + k] = acc_to_real(array_of(arrays, FACTOR, shape.most, c)[shape.first + k]);
            scale[c * MOST_VECTORS + k] = acc_to_real(array_of(arrays, SCALE, shape.most, c)[shape.first + k]);
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint first_chunk = get_group_id(0) * shape.per_group;
    const uint last_chunk = min(first_chunk + shape.per_group, shape.chunks);
    for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
        const uint mine = base + get_local_id(0) / CHUNK_ITEMS;
        const size_t begin = mine * (size_t)shape.chunk;
        const size_t end = mine < last_chunk ? min(begin + shape.chunk, (size_t)shape.n) : begin;
        add_vectors(&shape, adds, fresh, store, basis, v, running, begin, end, get_local_id(0) & (CHUNK_ITEMS - 1), factor,
                    scale);
        // Sums read what their own item has written.
        const uint next = min(base + SIDE_BY_SIDE, last_chunk);
        if (project) store_projections(&shape, basis, v, base, next, 0, shape.count, sums, scratch);
        if (square)
            store_dots(v, v, shape.n, shape.chunk, shape.chunks, base, next,
                       sums + shape.most * COLUMNS * (size_t)shape.chunks, scratch);
    }
}

// The rotations of GMRES (Saad, 6.5.3) for vector `step` of the basis: column step - 1 of the triangle and the right side; or for
// step 0, and without a triangle, its norm alone, in the place of the right side.
static void rotate_column(uint step, uint triangle, uint most, uint c, __global acc_t* arrays, __local acc_t* file)
{
    const acc_t square = file[SQUARE_REGISTER];
    const acc_t norm = acc_sqrt(square);
    __global acc_t* right = array_of(arrays, RIGHT_SIDE, most, c);
    array_of(arrays, SCALE, most, c)[step] = acc_div(acc_real(1), norm);
    if (step == 0 || !triangle) {
        right[step] = norm;
        file[RESIDUAL_REGISTER] = square;
        return;
    }
    const uint last = step - 1;
    __global const acc_t* projection = array_of(arrays, PROJECTION, most, c);
    __global acc_t* cosine = array_of(arrays, COSINE, most, c);
    __global acc_t* sine = array_of(arrays, SINE, most, c);
    __global acc_t* column = array_of(arrays, TRIANGLE + last, most, c);
    acc_t above = projection[0];
    for (uint i = 0; i < last; ++i) {
        const acc_t below = projection[i + 1];
        column[i] = acc_add(acc_mul(cosine[i], above), acc_mul(sine[i], below));
        above = acc_sub(acc_mul(cosine[i], below), acc_mul(sine[i], above));
    }
    const acc_t diagonal2 = acc_add(acc_mul(above, above), square);
    const acc_t diagonal = acc_sqrt(diagonal2);
    cosine[last] = acc_div(above, diagonal);
    sine[last] = acc_div(norm, diagonal);
    column[last] = diagonal;
    const acc_t rest = acc_sub(acc_real(0), acc_mul(sine[last], right[last]));
    right[last] = acc_mul(cosine[last], right[last]);
    right[step] = rest;
    file[DIAGONAL_REGISTER] = diagonal2;
    file[RESIDUAL_REGISTER] = acc_mul(rest, rest);
}

// Folds the square of vector `step`, rotates, then runs the program of its block. One group.
__kernel GROUP
void basis_rotate(shape_t shape, uint program, uint step, uint triangle, __global const uint* restrict programs,
                  __global const acc_t* restrict script_sums, __global acc_t* registers, __global int* status,
                  __global acc_t* history, __global const acc_t* sums, __global acc_t* arrays)
{
    __local acc_t scratch[WG];
    __local acc_t file[COLUMNS * REGISTERS];
    __local int state[STATE_WORDS];
    __local uint block[BLOCK_WORDS];
    take_slot(program, shape.slot, programs, registers, status, block, file, state);
    if (any_running(state)) {
        for (uint c = 0; c < COLUMNS; ++c) {
            const size_t place = (shape.most * (size_t)COLUMNS + c) * shape.chunks;
            const acc_t sum = fold_sums(sums + place, shape.chunks, scratch);
            if (get_local_id(0) == 0) file[c * REGISTERS + SQUARE_REGISTER] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint c = get_local_id(0); c < COLUMNS; c += WG)
            if (state[STATES * c] == RUNNING) rotate_column(step, triangle, shape.most, c, arrays, file + c * REGISTERS);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    run_block(shape.slot, script_sums, registers, status, history, block, file, state, scratch);
}

// After its program: the columns whose register `dropped` is above 0 forget the first `count` vectors. One group.
__kernel GROUP
void basis_drop(shape_t shape, uint program, uint dropped, __global const uint* restrict programs,
                __global const acc_t* restrict script_sums, __global acc_t* registers, __global int* status,
                __global acc_t* history, __global acc_t* arrays)
{
    __local acc_t scratch[WG];
    __local acc_t file[COLUMNS * REGISTERS];
    __local int state[STATE_WORDS];
    __local uint block[BLOCK_WORDS];
    recur(program, shape.slot, programs, script_sums, registers, status, history, block, file, state, scratch);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (state[STATES * c] != RUNNING || !acc_less(acc_real(0), file[c * REGISTERS + dropped])) continue;
        for (uint k = get_local_id(0); k < shape.count; k += WG) {
            array_of(arrays, FACTOR, shape.most, c)[k] = acc_real(0);
            array_of(arrays, SCALE, shape.most, c)[k] = acc_real(0);
        }
    }
}

// After its program: solves the triangle for the columns that run, as many rows of it as their register `depth` says, and leaves
// the factors of the vectors; those of the vectors beyond are 0. One group.
__kernel GROUP
void basis_solve(shape_t shape, uint program, uint depth, __global const uint* restrict programs,
                 __global const acc_t* restrict script_sums, __global acc_t* registers, __global int* status,
                 __global acc_t* history, __global acc_t* arrays)
{
    __local acc_t scratch[WG];
    __local acc_t file[COLUMNS * REGISTERS];
    __local int state[STATE_WORDS];
    __local uint block[BLOCK_WORDS];
    __local acc_t right[MOST_VECTORS];
    const uint most = shape.most;
    recur(program, shape.slot, programs, script_sums, registers, status, history, block, file, state, scratch);
    for (uint c = 0; c < COLUMNS; ++c) {
        const uint rows = state[STATES * c] == RUNNING ? (uint)acc_to_real(file[c * REGISTERS + depth]) : 0;
        __global const acc_t* right_side = array_of(arrays, RIGHT_SIDE, most, c);
        __global acc_t* factor = array_of(arrays, FACTOR, most, c);
        for (uint k = get_local_id(0); k < rows; k += WG) right[k] = right_side[k];
        for (uint k = rows + get_local_id(0); k < most; k += WG) factor[k] = acc_real(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = rows; k > 0; --k) {
            __global const acc_t* column = array_of(arrays, TRIANGLE + k - 1, most, c);
            const acc_t y = acc_div(right[k - 1], column[k - 1]);
            for (uint i = get_local_id(0); i < k - 1; i += WG) right[i] = acc_sub(right[i], acc_mul(column[i], y));
            if (get_local_id(0) == 0) factor[k - 1] = y;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
