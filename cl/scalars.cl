// The scalars of a method alone: a launch that runs a program (recurrence.cl). Joined after recurrence.cl. A program of its own, because compilers
// take as long for it as for a pass (pass.cl), and each script has several passes.

// Scalars alone: one group.
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
