// Scalars of a solve: the short programs that src/recurrence.rs compiles, run by every group that needs their results.
// Joined before step.cl and pass.cl.
//
// `registers` holds REGISTERS wide numbers for each column and `status` STATES integers (why it stopped, iterations done),
// both in two slots: a launch reads one slot, and its group 0 writes the other, so that no group reads what another
// writes in the same launch. Behind the slots of `status`: most iterations of each column, the mask of the history, then the words
// of resident launches.
//
// A block of `programs` is a header and its instructions, four words each: operation, target, two operands. The header:
// the number of sums to fold, (place, count) of each; the number of instructions; the registers of the coefficients of
// the pass that follows; where the chunk sums of its dot products go.

#define REGISTERS 64
#define HEADER 32
#define MOST_INSTRUCTIONS 128
#define FOLDED 0
#define INSTRUCTIONS 9
#define COEFFICIENTS 10
#define DOT_PLACES 22
#define STATES 2
#define FOLDS 4     // most sums that a block folds

#define RUNNING 0
#define ITERATIONS_DONE 2

#define ADD 0
#define SUB 1
#define MUL 2
#define DIV 3
#define SQRT 4
#define SET 5
#define SET_IF_POSITIVE 6
#define STOP_IF_LESS 7
#define STOP_UNLESS_LESS 8
#define STOP_UNLESS_FINITE 9
#define STOP_AT_BUDGET 10
#define RECORD 11
#define COUNT 12

// Runs `length` instructions for column c, until one of them stops it. `most` iterations are allowed; `mask` is that of the history.
static void interpret(__local const uint* code, uint length, uint c, __local acc_t* file, __local int* state, int most,
                      int mask, __global acc_t* history)
{
    for (uint k = 0; k < length && state[0] == RUNNING; ++k) {
        const uint op = code[4 * k];
        const uint target = code[4 * k + 1];
        const acc_t a = file[code[4 * k + 2]];
        const acc_t b = file[code[4 * k + 3]];
        if (op == ADD) file[target] = acc_add(a, b);
        else if (op == SUB) file[target] = acc_sub(a, b);
        else if (op == MUL) file[target] = acc_mul(a, b);
        else if (op == DIV) file[target] = acc_div(a, b);
        else if (op == SQRT) file[target] = acc_sqrt(a);
        else if (op == SET) file[target] = a;
        else if (op == SET_IF_POSITIVE) {
            if (acc_less(acc_real(0), a)) file[target] = b;
        } else if (op == STOP_IF_LESS) {
            if (acc_less(a, b)) state[0] = target;
        } else if (op == STOP_UNLESS_LESS) {
            if (!acc_less(a, b)) state[0] = target;
        } else if (op == STOP_UNLESS_FINITE) {
            if (!acc_finite(a)) state[0] = target;
        } else if (op == STOP_AT_BUDGET) {
            if (state[1] >= most) state[0] = ITERATIONS_DONE;
        } else if (op == RECORD) {
            if (get_group_id(0) == 0) {
                __global acc_t* entry = history + 2 * ((size_t)(state[1] & mask) * COLUMNS + c);
                entry[0] = a;
                entry[1] = b;
            }
        } else if (op == COUNT) state[1] = state[1] + 1;
    }
}

// Tells if any column still runs.
static int any_running(__local const int* state)
{
    int running = 0;
    for (uint c = 0; c < COLUMNS; ++c) running |= state[STATES * c] == RUNNING;
    return running;
}

// Reads the slot and the instructions of block `program`: registers into `file`, status into `state`.
static void take_slot(uint program, uint slot, __global const uint* programs, __global const acc_t* registers,
                      __global const int* status, __local uint* code, __local acc_t* file, __local int* state)
{
    const uint item = get_local_id(0);
    __global const uint* head = programs + program;
    const uint length = head[INSTRUCTIONS];
    __global const acc_t* held = registers + slot * COLUMNS * REGISTERS;
    __global const int* reached = status + slot * COLUMNS * STATES;
    for (uint k = item; k < COLUMNS * REGISTERS; k += WG) file[k] = held[k];
    for (uint k = item; k < COLUMNS * STATES; k += WG) state[k] = reached[k];
    for (uint k = item; k < 4 * length; k += WG) code[k] = head[HEADER + k];
    barrier(CLK_LOCAL_MEM_FENCE);
}

// After take_slot: folds the sums that block `program` names, runs it for each column, and hands the slot on. Leaves
// registers and status in `file` and `state`; returns whether any column still runs.
static int run_block(uint program, uint slot, __global const uint* programs, __global const acc_t* sums,
                     __global acc_t* registers, __global int* status, __global acc_t* history, __local uint* code,
                     __local acc_t* file, __local int* state, __local acc_t* scratch)
{
    const uint item = get_local_id(0);
    __global const uint* head = programs + program;
    const uint length = head[INSTRUCTIONS];
    int running = any_running(state);
    if (running && length > 0) {
        const uint folds = head[FOLDED];
        for (uint f = 0; f < folds; ++f)
            for (uint c = 0; c < COLUMNS; ++c) {
                const uint count = head[FOLDED + 2 + 2 * f];
                const acc_t sum = fold_sums(sums + head[FOLDED + 1 + 2 * f] + c * count, count, scratch);
                if (item == 0) file[c * REGISTERS + f] = sum;
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        __global const int* limits = status + 2 * COLUMNS * STATES;
        for (uint c = item; c < COLUMNS; c += WG)
            interpret(code, length, c, file + c * REGISTERS, state + c * STATES, limits[c], limits[COLUMNS], history);
        barrier(CLK_LOCAL_MEM_FENCE);
        running = any_running(state);
    }
    if (get_group_id(0) == 0) {
        __global acc_t* hand = registers + (1 - slot) * COLUMNS * REGISTERS;
        __global int* done = status + (1 - slot) * COLUMNS * STATES;
        for (uint k = item; k < COLUMNS * REGISTERS; k += WG) hand[k] = file[k];
        for (uint k = item; k < COLUMNS * STATES; k += WG) done[k] = state[k];
    }
    return running;
}

// take_slot and run_block: the beginning of most launches.
static int recur(uint program, uint slot, __global const uint* programs, __global const acc_t* sums,
                 __global acc_t* registers, __global int* status, __global acc_t* history, __local uint* code,
                 __local acc_t* file, __local int* state, __local acc_t* scratch)
{
    take_slot(program, slot, programs, registers, status, code, file, state);
    return run_block(program, slot, programs, sums, registers, status, history, code, file, state, scratch);
}
