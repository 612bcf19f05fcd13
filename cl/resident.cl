// Meetings of all groups of a launch, for kernels that run many iterations. Joined before cg.cl.
//
// A group that waits for another waits for ever if that one cannot start before it ends. So groups first gather: where
// not all have come in a while, the launch is abandoned before anything was changed, and the host goes on without.
// OpenCL C 1.2 has no order between groups (mem_fence is one of the work-group alone, in NVIDIA's compiler too), so only
// devices whose own is known get more than one group (src/ocl/quirks.rs); one group meets nobody and is right anywhere.

#define ARRIVED 0   // groups that came, all meetings together
#define VERDICT 1   // of the gathering
#define DEPARTED 2  // groups that left
#define ABANDONED 3 // for the host

#define UNDECIDED 0
#define GO 1
#define ABANDON 2
#define PATIENCE 65536 // polls, a large part of a microsecond each on a GPU

// The last group that leaves makes everything ready for the next launch.
void depart(__global int* meeting)
{
    const int groups = get_num_groups(0);
    if (groups == 1 || get_local_id(0) != 0) return;
    if (atomic_inc(meeting + DEPARTED) < groups - 1) return;
    if (atomic_xchg(meeting + VERDICT, UNDECIDED) == ABANDON) atomic_xchg(meeting + ABANDONED, 1);
    atomic_xchg(meeting + ARRIVED, 0);
    atomic_xchg(meeting + DEPARTED, 0);
}

// Whether all groups run at once. Each must ask, and leave where they do not. `verdict` has one place.
int all_arrive(__global int* meeting, __local int* verdict)
{
    const int groups = get_num_groups(0);
    if (groups == 1) return 1;
    if (get_local_id(0) == 0) {
        if (atomic_inc(meeting + ARRIVED) == groups - 1) atomic_cmpxchg(meeting + VERDICT, UNDECIDED, GO);
        int polls = 0;
        while (atomic_or(meeting + VERDICT, 0) == UNDECIDED) {
            polls = polls + 1;
            if (polls >= PATIENCE) atomic_cmpxchg(meeting + VERDICT, UNDECIDED, ABANDON);
        }
        verdict[0] = atomic_or(meeting + VERDICT, 0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int go = verdict[0] == GO;
    if (!go) depart(meeting);
    return go;
}

// Adds 1, seen by others only after all that this item knows to be written.
void add_released(__global int* counter)
{
#if PTX
    __asm__ volatile("red.release.gpu.global.add.s32 [%0], 1;" :: "l"(counter) : "memory");
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    atomic_inc(counter);
#endif
}

// Reads; what was written before the counter became so is seen after.
int read_acquired(__global int* counter)
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

// Waits for all groups; `round` counts meetings from 1. What any of them wrote before, all can read after.
void meet(__global int* meeting, uint round)
{
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    const int groups = get_num_groups(0);
    if (groups == 1) return;
    if (get_local_id(0) == 0) {
        const int all = groups * ((int)round + 1);
        add_released(meeting + ARRIVED);
        while (read_acquired(meeting + ARRIVED) < all) {}
    }
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
}
