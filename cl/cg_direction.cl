// The first direction of conjugate gradients with a diagonal preconditioner. Joined after cg_parts.cl.

// p = M r with the chunk sums of r.z, where the test after it looks for them. Group g owns chunks g * per_group ..
// (g + 1) * per_group of `groups`. Bytes: m and r read, p written.
__kernel GROUP
void cg_direction(uint n, uint chunk, uint groups, uint per_group, __global const real_t* restrict m,
                  __global const real_t* restrict r, __global real_t* p, __global acc_t* sums)
{
    __local acc_t scratch[WG];
    const uint first_chunk = get_group_id(0) * per_group;
    const uint last_chunk = min(first_chunk + per_group, groups);
    const size_t last = min(last_chunk * (size_t)chunk, (size_t)n);
    for (size_t i = first_chunk * (size_t)chunk + get_local_id(0); i < last; i += WG) p[i] = m[i] * r[i];
    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    store_dots(r, p, n, chunk, groups, first_chunk, last_chunk, sums + 4 * groups, scratch);
}
