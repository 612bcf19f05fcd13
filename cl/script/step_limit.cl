// Longest step along d before an element of `above` is 0: 1 / max(-d / above) over the elements with d < 0. The maximum is the
// same in any order. Joined after recurrence.cl.

// `n` elements in `chunks` chunks of `chunk`, `per_group` of them for each group; the slot whose status is read; where the chunk sums
// begin that hold the maximum.
typedef struct { uint n, chunk, chunks, per_group, slot, place; } shape_t;

// A NaN counts as nothing: other tests tell of it.
static acc_t larger(acc_t a, acc_t b) { return acc_less(a, b) ? b : a; }

static acc_t ratio(real_t above, real_t d)
{
    return acc_real(!(d < 0) ? 0 : above > 0 ? quotient(-d, above) : INFINITY);
}

// The largest value of the group, for all its items.
static acc_t group_largest(acc_t value, __local acc_t* scratch)
{
    const uint item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = WG / 2; step > 0; step /= 2) {
        if (item < step) scratch[item] = larger(scratch[item], scratch[item + step]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const acc_t found = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return found;
}

// The largest ratio of each group in the place of its first chunk, 0 in those of its others.
// Bytes: two vectors.
__kernel GROUP
void limit_groups(shape_t shape, __global const real_t* restrict above, __global const real_t* restrict d,
                  __global const int* status, __global acc_t* sums)
{
    __local acc_t scratch[WG];
    const uint item = get_local_id(0);
    const uint first_chunk = get_group_id(0) * shape.per_group;
    const uint last_chunk = min(first_chunk + shape.per_group, shape.chunks);
    const size_t first = first_chunk * (size_t)shape.chunk;
    const size_t last = min(last_chunk * (size_t)shape.chunk, (size_t)shape.n);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (status[(shape.slot * COLUMNS + c) * STATES] != RUNNING) continue;
        acc_t most = acc_real(0);
        for (size_t i = first + item; i < last; i += WG) {
            const size_t at = i * COLUMNS + c;
            most = larger(most, ratio(above[at], d[at]));
        }
        most = group_largest(most, scratch);
        __global acc_t* own = sums + shape.place + c * (size_t)shape.chunks;
        for (uint g = first_chunk + 1 + item; g < last_chunk; g += WG) own[g] = acc_real(0);
        if (item == 0 && first_chunk < last_chunk) own[first_chunk] = most;
    }
}

// The largest of all in the first place of each column, -1 if it is infinite: no step is short enough. The other places become 0, so that
// the fold of the next program finds it. One group.
__kernel GROUP
void limit_fold(shape_t shape, __global const int* status, __global acc_t* sums)
{
    __local acc_t scratch[WG];
    const uint item = get_local_id(0);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (status[(shape.slot * COLUMNS + c) * STATES] != RUNNING) continue;
        __global acc_t* own = sums + shape.place + c * (size_t)shape.chunks;
        acc_t most = acc_real(0);
        for (uint g = item; g < shape.chunks; g += WG) most = larger(most, own[g]);
        most = group_largest(most, scratch);
        for (uint g = 1 + item; g < shape.chunks; g += WG) own[g] = acc_real(0);
        if (item == 0 && shape.chunks > 0) own[0] = isinf(acc_to_real(most)) ? acc_real(-1) : most;
    }
}
