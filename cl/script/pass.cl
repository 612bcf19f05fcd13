// A pass over vectors: the launch of a method that needs no matrix. It first runs the program of its block (recurrence.cl), and does nothing more
// once every column has stopped. Joined after statement.cl and recurrence.cl.
//
// Required macros:
//   STATEMENT_k  for k from 0 to 5: a statement (statement.cl), or NO_STATEMENT
//   TOUCHED      vectors that are read, as a mask, and those that are written << 8
//   DOTS         dot products of what the pass leaves behind: a | b << 4, eight bits each, 255 for none

// `n` elements in `chunks` chunks of `chunk`, `per_group` of them for each group; block and slot of the program (recurrence.cl).
typedef struct { uint n, chunk, chunks, per_group, program, slot; } shape_t;

#define READ(k) ((TOUCHED >> (k)) & 1)
#define WRITTEN(k) ((TOUCHED >> (8 + (k))) & 1)

// Vector k of a pass; k is a constant where this is called.
__global real_t* vector_of(uint k, __global real_t* v0, __global real_t* v1, __global real_t* v2, __global real_t* v3,
                           __global real_t* v4, __global real_t* v5, __global real_t* v6, __global real_t* v7)
{
    return k == 0 ? v0 : k == 1 ? v1 : k == 2 ? v2 : k == 3 ? v3 : k == 4 ? v4 : k == 5 ? v5 : k == 6 ? v6 : v7;
}

// Up to six statements and three dot products in one pass. Group g owns chunks g * per_group .. of `chunks`.
// Bytes: each vector that is read or written once.
__kernel GROUP
void step_vectors(shape_t shape, __global real_t* restrict v0, __global real_t* restrict v1,
                  __global real_t* restrict v2, __global real_t* restrict v3, __global real_t* restrict v4,
                  __global real_t* restrict v5, __global real_t* restrict v6, __global real_t* restrict v7,
                  __global const uint* restrict programs, __global acc_t* sums, __global acc_t* registers,
                  __global int* status, __global acc_t* history)
{
    __local acc_t scratch[COLUMNS * WG];
    __local acc_t file[COLUMNS * REGISTERS];
    __local int state[STATE_WORDS];
    __local uint block[BLOCK_WORDS];
    if (!recur(shape.program, shape.slot, programs, sums, registers, status, history, block, file, state, scratch)) return;
    __local const uint* head = block;
    const uint chunks = shape.chunks;
    const uint first_chunk = get_group_id(0) * shape.per_group;
    const uint last_chunk = min(first_chunk + shape.per_group, chunks);
    // Chunks side by side: as many as have work for all items.
    for (uint g = first_chunk; g < last_chunk; g += SIDE_BY_SIDE) {
        const uint end = min(g + SIDE_BY_SIDE, last_chunk);
        const size_t first = g * (size_t)shape.chunk;
        const size_t last = min(end * (size_t)shape.chunk, (size_t)shape.n);
        for (uint c = 0; c < COLUMNS; ++c) {
            if (state[STATES * c] != RUNNING) continue;
            real_t coefficient[3 * MOST_STATEMENTS];
            for (uint k = 0; k < 3 * MOST_STATEMENTS; ++k)
                coefficient[k] = acc_to_real(file[c * REGISTERS + head[COEFFICIENTS + k]]);
            for (size_t i = first + get_local_id(0); i < last; i += WG) {
                const size_t at = i * COLUMNS + c;
                real_t v[8];
                if (READ(0)) v[0] = v0[at];
                if (READ(1)) v[1] = v1[at];
                if (READ(2)) v[2] = v2[at];
                if (READ(3)) v[3] = v3[at];
                if (READ(4)) v[4] = v4[at];
                if (READ(5)) v[5] = v5[at];
                if (READ(6)) v[6] = v6[at];
                if (READ(7)) v[7] = v7[at];
                apply_statement(v, STATEMENT_0, coefficient[0], coefficient[1], coefficient[2]);
                apply_statement(v, STATEMENT_1, coefficient[3], coefficient[4], coefficient[5]);
                apply_statement(v, STATEMENT_2, coefficient[6], coefficient[7], coefficient[8]);
                apply_statement(v, STATEMENT_3, coefficient[9], coefficient[10], coefficient[11]);
                apply_statement(v, STATEMENT_4, coefficient[12], coefficient[13], coefficient[14]);
                apply_statement(v, STATEMENT_5, coefficient[15], coefficient[16], coefficient[17]);
                if (WRITTEN(0)) v0[at] = v[0];
                if (WRITTEN(1)) v1[at] = v[1];
                if (WRITTEN(2)) v2[at] = v[2];
                if (WRITTEN(3)) v3[at] = v[3];
                if (WRITTEN(4)) v4[at] = v[4];
                if (WRITTEN(5)) v5[at] = v[5];
                if (WRITTEN(6)) v6[at] = v[6];
                if (WRITTEN(7)) v7[at] = v[7];
            }
        }
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
        if ((DOTS & 255) != NO_DOT)
            store_dots(vector_of(DOTS & 15, v0, v1, v2, v3, v4, v5, v6, v7),
                       vector_of((DOTS >> 4) & 15, v0, v1, v2, v3, v4, v5, v6, v7), shape.n, shape.chunk, chunks, g,
                       end, sums + head[DOT_PLACES], scratch);
        if (((DOTS >> 8) & 255) != NO_DOT)
            store_dots(vector_of((DOTS >> 8) & 15, v0, v1, v2, v3, v4, v5, v6, v7),
                       vector_of((DOTS >> 12) & 15, v0, v1, v2, v3, v4, v5, v6, v7), shape.n, shape.chunk, chunks, g,
                       end, sums + head[DOT_PLACES + 1], scratch);
        if (((DOTS >> 16) & 255) != NO_DOT)
            store_dots(vector_of((DOTS >> 16) & 15, v0, v1, v2, v3, v4, v5, v6, v7),
                       vector_of((DOTS >> 20) & 15, v0, v1, v2, v3, v4, v5, v6, v7), shape.n, shape.chunk, chunks, g,
                       end, sums + head[DOT_PLACES + 2], scratch);
    }
}
