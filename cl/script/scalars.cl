// The launch that runs the program of a block (recurrence.cl) and nothing else. Joined after recurrence.cl.
// It has a file of its own, because compilers take as long for it as for a pass (pass.cl), and a script has several passes.

// One group.
__kernel GROUP
void step_scalars(uint program, uint slot, __global const uint* restrict programs, __global const acc_t* restrict sums,
                  __global acc_t* registers, __global int* status, __global acc_t* history)
{
    __local acc_t scratch[WG];
    __local acc_t file[COLUMNS * REGISTERS];
    __local int state[STATE_WORDS];
    __local uint block[BLOCK_WORDS];
    recur(program, slot, programs, sums, registers, status, history, block, file, state, scratch);
}
