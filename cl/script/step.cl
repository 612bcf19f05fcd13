// The launch that a method multiplies with: a product with a blend. It first runs the program of its block (recurrence.cl),
// and does nothing more once every column has stopped. Joined after the files of products.
//
// Required macros:
//   BLEND        1 the product is scaled, 2 a vector is added to it (see store_row)
//   DOTS         1: y.y, 2: y.z, 4: y.(w y), in the place of y.y, are summed up

// `n` rows in chunks of `chunk`; stride of the matrix; block and slot of the program (recurrence.cl).
typedef struct { uint n, chunk, stride, program, slot; } shape_t;

// y = s A x + k w for COLUMNS vectors (s and k if BLEND asks for them), with the chunk sums of y.y (or y.(w y)) and y.z. Group g
// owns the rows of chunk g. Bytes: those of multiply, w and z.
__kernel GROUP
void step_product(shape_t shape, __global const uint* restrict rows, __global const uint* restrict indices,
                  __global const real_t* restrict values, __global const real_t* x, __global const real_t* w,
                  __global real_t* y, __global const real_t* z, __global const uint* restrict programs,
                  __global acc_t* sums, __global acc_t* registers, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[COLUMNS * WG];
    __local acc_t file[COLUMNS * REGISTERS];
    __local int state[STATE_WORDS];
    __local uint block[BLOCK_WORDS];
    __local acc_t blend[2 * COLUMNS];
    if (!recur(shape.program, shape.slot, programs, sums, registers, status, history, block, file, state, scratch)) return;
    __local const uint* head = block;
    for (uint k = get_local_id(0); k < 2 * COLUMNS; k += WG)
        blend[k] = file[(k < COLUMNS ? k : k - COLUMNS) * REGISTERS + head[COEFFICIENTS + (k < COLUMNS ? 0 : 1)]];
    barrier(CLK_LOCAL_MEM_FENCE);
    matrix_t matrix;
    open_matrix(&matrix, rows, indices, values, shape.stride);
    vector_t vector;
    read_vector(&vector, x);
    result_t result;
    result.y = y;
    result.b = BLEND > 1 ? w : 0;
    result.blend = blend;
    const uint group = get_group_id(0);
    const uint groups = get_num_groups(0);
    const size_t first = group * (size_t)shape.chunk;
    const size_t last = min(first + shape.chunk, (size_t)shape.n);
    chunk_product(&result, &matrix, &vector, first, last, scratch);
    if (DOTS & 1)
        store_dots(y, y, shape.n, shape.chunk, groups, group, group + 1, sums + head[DOT_PLACES], scratch);
    if (DOTS & 4)
        store_weighted_dots(y, w, y, shape.n, shape.chunk, groups, group, group + 1, sums + head[DOT_PLACES], scratch);
    if (DOTS & 2)
        store_dots(y, z, shape.n, shape.chunk, groups, group, group + 1, sums + head[DOT_PLACES + 1], scratch);
}
