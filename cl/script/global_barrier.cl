// The global barrier: all groups of a launch wait for each other. For kernels that run many iterations in one launch.
//
// A group that waits for another waits for ever if that one cannot start before it ends. So groups first gather: if
// some group has not come after a fixed number of polls, the launch is abandoned before anything was changed, and the host goes on without.
// OpenCL C 1.2 defines no order of memory between groups (mem_fence is one of the work-group alone, in NVIDIA's compiler too). So only devices
// whose own order is known run more than one group (src/ocl/quirks.rs). One group waits for no other and is right anywhere.

#define ARRIVED 0   // groups that came, all barriers together
#define VERDICT 1   // whether all groups run at once
#define DEPARTED 2  // groups that left
// ABANDONED: for the host
// DONE: behind these words: iterations of all launches that were not abandoned

#define UNDECIDED 0
#define GO 1
#define ABANDON 2
#define PATIENCE 65536 // polls, a large part of a microsecond each on a GPU

// The last group that leaves makes everything ready for the next launch.
static void leave(__global int* barrier_words)
{
    const int groups = get_num_groups(0);
    if (groups == 1 || get_local_id(0) != 0) return;
    if (atomic_inc(barrier_words + DEPARTED) < groups - 1) return;
    if (atomic_xchg(barrier_words + VERDICT, UNDECIDED) == ABANDON) atomic_xchg(barrier_words + ABANDONED, 1);
    atomic_xchg(barrier_words + ARRIVED, 0);
    atomic_xchg(barrier_words + DEPARTED, 0);
}

// Tells if an earlier launch was abandoned. After one none does anything: the host goes on where that one would have.
static int was_abandoned(__global const int* barrier_words)
{
    return get_num_groups(0) > 1 ? barrier_words[ABANDONED] != 0 : 0;
}

// Tells if all groups run at once. Each must ask, and leave if they do not. `verdict` has one place.
static int gather_groups(__global int* barrier_words, __local int* verdict)
{
    const int groups = get_num_groups(0);
    if (groups == 1) return 1;
    if (get_local_id(0) == 0) {
        if (atomic_inc(barrier_words + ARRIVED) == groups - 1) atomic_cmpxchg(barrier_words + VERDICT, UNDECIDED, GO);
        int polls = 0;
        while (atomic_or(barrier_words + VERDICT, 0) == UNDECIDED) {
            polls = polls + 1;
            if (polls >= PATIENCE) atomic_cmpxchg(barrier_words + VERDICT, UNDECIDED, ABANDON);
        }
        verdict[0] = atomic_or(barrier_words + VERDICT, 0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int go = verdict[0] == GO;
    if (!go) leave(barrier_words);
    return go;
}

// Adds 1, seen by others only after all that this item knows to be written.
static void add_released(__global int* counter)
{
#if PTX
    __asm__ volatile("red.release.gpu.global.add.s32 [%0], 1;" :: "l"(counter) : "memory");
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(counter);
#endif
}

// Reads; what was written before the counter became so is seen after.
static int read_acquired(__global int* counter)
{
    int value;
#if PTX
    __asm__ volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
#else
    value = *(volatile __global int*)counter;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
#endif
    return value;
}

// Waits for all groups; `round` counts barriers from 1. What any of them wrote before, all can read after.
static void global_barrier(__global int* barrier_words, uint round)
{
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    const int groups = get_num_groups(0);
    if (groups == 1) return;
    if (get_local_id(0) == 0) {
        const int all = groups * ((int)round + 1);
        add_released(barrier_words + ARRIVED);
        while (read_acquired(barrier_words + ARRIVED) < all) {}
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
}
