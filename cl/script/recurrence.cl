// Scalars of a solve: the short programs that src/recurrence.rs compiles, run by every group that needs their results.
// Joined before scalars.cl, step.cl, pass.cl and step_resident.cl.
//
// `registers` holds REGISTERS wide numbers for each column and `status` STATES integers (why it stopped, iterations done),
// both in two slots: a launch reads one slot, and its group 0 writes the other, so that no group reads what another
// writes in the same launch. Behind the slots of `status`: the most iterations of each column; the length of the history less 1, a mask,
// because the history is a ring of a power of two of norms; the words of the global barrier (global_barrier.cl).
//
// A block of `programs` is a header and its instructions, four words each: operation, target, two operands. The header:
// the number of sums to fold, (place, count) of each; the number of instructions; the registers of the coefficients of
// the pass that follows; where the chunk sums of its dot products go.

#define BLOCK_WORDS (HEADER + 4 * MOST_INSTRUCTIONS)
#define STATE_WORDS (COLUMNS * STATES + COLUMNS + 1) // status of all columns, then limits

// Does one instruction for column c, whose registers are `file`: its operation, its target and what its operands hold. Returns RUNNING, or the
// reason why it stops the column; does nothing for one that skips. `most` iterations are allowed; `mask` is that of the history.
static int execute(uint op, uint target, acc_t a, acc_t b, uint c, __local acc_t* file, int* done, int most, int mask,
                   __global acc_t* history)
{
    int reason = RUNNING;
    if (op == ADD) file[target] = acc_add(a, b);
    else if (op == SUB) file[target] = acc_sub(a, b);
    else if (op == MUL) file[target] = acc_mul(a, b);
    else if (op == DIV) file[target] = acc_div(a, b);
    else if (op == SQRT) file[target] = acc_sqrt(a);
    else if (op == SET) file[target] = a;
    else if (op == SET_IF_POSITIVE) {
        if (acc_less(acc_real(0), a)) file[target] = b;
    } else if (op == STOP_IF_LESS) {
        if (acc_less(a, b)) reason = target;
    } else if (op == STOP_UNLESS_LESS) {
        if (!acc_less(a, b)) reason = target;
    } else if (op == STOP_UNLESS_FINITE) {
        if (!acc_finite(a)) reason = target;
    } else if (op == STOP_AT_BUDGET) {
        if (*done >= most) reason = ITERATIONS_DONE;
    } else if (op == RECORD) {
        if (get_group_id(0) == 0) {
            __global acc_t* entry = history + 2 * ((size_t)(*done & mask) * COLUMNS + c);
            entry[0] = a;
            entry[1] = b;
        }
    } else if (op == COUNT) *done = *done + 1;
    return reason;
}

// Runs `length` instructions for column c, until one of them stops it.
// Each instruction is read while the one before runs: nothing else hides how long local memory takes.
static void interpret(__local const uint* code, uint length, uint c, __local acc_t* file, __local int* state, int most,
                      int mask, __global acc_t* history)
{
    int reason = state[0], done = state[1];
    uint4 next = vload4(0, code);
    for (uint k = 0; k < length && reason == RUNNING; ++k) {
        const uint op = next.x, target = next.y;
        const acc_t a = file[next.z];
        const acc_t b = file[next.w];
        if (k + 1 < length) next = vload4(k + 1, code);
        reason = execute(op, target, a, b, c, file, &done, most, mask, history);
        if (op == SKIP_UNLESS_POSITIVE && !acc_less(acc_real(0), a)) {
            k += target;
            if (k + 1 < length) next = vload4(k + 1, code);
        }
    }
    state[0] = reason;
    state[1] = done;
}

// Tells if any column still runs.
static int any_running(__local const int* state)
{
    int running = 0;
    for (uint c = 0; c < COLUMNS; ++c) running |= state[STATES * c] == RUNNING;
    return running;
}

// Folds the sums that a block names into the first registers: a warp each where there are warps, and a group takes them one after another
// where there are none.
static void fold_named(__local const uint* head, __global const acc_t* sums, __local acc_t* file, __local acc_t* scratch)
{
    const uint folds = head[FOLDED];
    int by_warps = WG >= WARP;
    for (uint f = 0; f < folds; ++f) by_warps &= head[FOLDED + 2 + 2 * f] <= FOLD_LANES;
    if (by_warps) {
        for (uint t = get_local_id(0) / WARP; t < folds * COLUMNS; t += WG / WARP) {
            const uint f = t / COLUMNS, c = t - f * COLUMNS, count = head[FOLDED + 2 + 2 * f];
            const acc_t sum = warp_fold_sums(sums + head[FOLDED + 1 + 2 * f] + c * count, count);
            if (get_local_id(0) % WARP == 0) file[c * REGISTERS + f] = sum;
        }
        return;
    }
    for (uint f = 0; f < folds; ++f)
        for (uint c = 0; c < COLUMNS; ++c) {
            const uint count = head[FOLDED + 2 + 2 * f];
            const acc_t sum = fold_sums(sums + head[FOLDED + 1 + 2 * f] + c * count, count, scratch);
            if (get_local_id(0) == 0) file[c * REGISTERS + f] = sum;
        }
}

// Folds the sums that a block names and runs its program for each column. `limits` are most iterations of each column, then the mask
// of the history. Returns whether any column still runs.
static int run_program(__local const uint* head, __global const acc_t* sums, __global acc_t* history, __local acc_t* file,
                       __local int* state, __local const int* limits, __local acc_t* scratch)
{
    const uint length = head[INSTRUCTIONS];
    if (length == 0) return 1;
    fold_named(head, sums, file, scratch);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint c = get_local_id(0); c < COLUMNS; c += WG)
        interpret(head + HEADER, length, c, file + c * REGISTERS, state + c * STATES, limits[c], limits[COLUMNS], history);
    barrier(CLK_LOCAL_MEM_FENCE);
    return any_running(state);
}

// Reads the slot and block `program`: registers into `file`, status and limits into `state`.
static void take_slot(uint program, uint slot, __global const uint* programs, __global const acc_t* registers,
                      __global const int* status, __local uint* block, __local acc_t* file, __local int* state)
{
    const uint item = get_local_id(0);
    __global const uint* head = programs + program;
    const uint words = HEADER + 4 * head[INSTRUCTIONS];
    __global const acc_t* held = registers + slot * COLUMNS * REGISTERS;
    __global const int* reached = status + slot * COLUMNS * STATES;
    __global const int* limits = status + 2 * COLUMNS * STATES;
    for (uint k = item; k < COLUMNS * REGISTERS; k += WG) file[k] = held[k];
    for (uint k = item; k < COLUMNS * STATES; k += WG) state[k] = reached[k];
    for (uint k = item; k < COLUMNS + 1; k += WG) state[COLUMNS * STATES + k] = limits[k];
    for (uint k = item; k < words; k += WG) block[k] = head[k];
    barrier(CLK_LOCAL_MEM_FENCE);
}

// After take_slot: runs the block, and hands the slot on. Leaves registers and status in `file` and `state`; returns whether any column
// still runs.
static int run_block(uint slot, __global const acc_t* sums, __global acc_t* registers, __global int* status,
                     __global acc_t* history, __local const uint* block, __local acc_t* file, __local int* state,
                     __local acc_t* scratch)
{
    const uint item = get_local_id(0);
    int running = any_running(state);
    if (running) running = run_program(block, sums, history, file, state, state + COLUMNS * STATES, scratch);
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
                 __global acc_t* registers, __global int* status, __global acc_t* history, __local uint* block,
                 __local acc_t* file, __local int* state, __local acc_t* scratch)
{
    take_slot(program, slot, programs, registers, status, block, file, state);
    return run_block(slot, sums, registers, status, history, block, file, state, scratch);
}
