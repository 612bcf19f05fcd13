// Elements of a vector in another order. Joined after common.cl.

// y[i] = x[indices[i]] for each of some interleaved columns, 0 where the index is not below cols. Groups own elements as in vector.cl.
// Bytes: n indices, n real_t of each column written, and as many read.
__kernel GROUP
void select_elements(uint n, uint span, uint cols, uint columns, __global const uint* restrict indices,
                     __global const real_t* restrict x, __global real_t* restrict y)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        const size_t from = indices[i];
        for (uint c = 0; c < columns; ++c) y[i * columns + c] = from < cols ? x[from * columns + c] : 0;
    }
}
