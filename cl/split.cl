// Products with a matrix by rows whose entries are divided among the groups, however long rows are. Joined after common.cl.
//
// Entries stand in pieces of PIECE and parts of PART, counted from the first entry of the matrix. The entries of a row that lie in a
// piece add in their order, the pieces of a part in theirs, and the parts in theirs: three sums, whose order the matrix alone fixes.
//
// Source: dedecek-2013, figure 5.3, which adds atomically what groups have of one row. Here each group keeps what it has of rows that
// it shares with others, and finish_split adds that.

#define PART 1024
#define PIECE 32
#define PIECES (PART / PIECE)
#define PLACE(k) ((k) + (k) / PIECE) // items read entries of the same number of their pieces: in different banks so

// y = A x for all rows whose entries lie in one part, a group to a part. starts[t]: the row of the first entry of part t, 0 for the
// first. shared[2 t]: the sum over part t of the row that ends in it and began before it; shared[2 t + 1]: that of the row that goes on
// behind it. Rows without entries belong to the part where they stand, those at the end to the last.
// Bytes: (sizeof(real_t) + 4) nnz + 4 rows for the matrix, sizeof(real_t) (cols + rows); 4 rows once more, from a cache.
__kernel GROUP
void split(uint n, uint nnz, __global const uint* restrict offsets, __global const uint* restrict starts,
           __global const uint* restrict indices, __global const real_t* restrict values, __global const real_t* restrict x,
           __global real_t* restrict y, __global acc_t* restrict shared)
{
    __local acc_t term[PART + PIECES];
    __local uint ending[PART]; // which row ends with the entry, counted from 1 at the first of the part; 0: none
    __local acc_t head[PIECES], tail[PIECES]; // of rows that end in a piece but began before it, and that go on behind it
    __local uint whose[PIECES];               // which row has that head, counted alike; 0: none
    const uint part = get_group_id(0);
    const uint parts = get_num_groups(0);
    const uint begin = part * PART;
    const uint count = min((uint)PART, nnz - begin);
    const uint first = starts[part];
    const uint next = part + 1 < parts ? starts[part + 1] : n; // the row that goes on, or begins, behind the part
    for (uint k = get_local_id(0); k < count; k += WG) {
        term[PLACE(k)] = acc_product(values[begin + k], x[indices[begin + k]]);
        ending[k] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = first + get_local_id(0); i < n && i <= next; i += WG) {
        const uint low = offsets[i];
        const uint end = offsets[i + 1];
        if (low == end && i < next) y[i] = 0;
        if (low < end && end <= begin + count) ending[end - 1 - begin] = i - first + 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint p = get_local_id(0); p < PIECES; p += WG) {
        const uint last = min((p + 1) * PIECE, count);
        acc_t sum = acc_real(0);
        uint ended = 0;
        whose[p] = 0;
        for (uint k = p * PIECE; k < last; ++k) {
            sum = acc_add(sum, term[PLACE(k)]);
            const uint row = ending[k];
            if (row == 0) continue;
            // Only the first row that ends here can have begun before.
            if (ended == 0 && offsets[first + row - 1] < begin + p * PIECE) {
                head[p] = sum;
                whose[p] = row;
            } else {
                y[first + row - 1] = acc_to_real(sum);
            }
            ended = 1;
            sum = acc_real(0);
        }
        tail[p] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint p = get_local_id(0); p < PIECES; p += WG) {
        if (whose[p] == 0) continue;
        const uint row = first + whose[p] - 1;
        const uint low = offsets[row];
        uint q = low < begin ? 0 : (low - begin) / PIECE;
        acc_t sum = acc_real(0);
        for (; q < p; ++q) sum = acc_add(sum, tail[q]);
        sum = acc_add(sum, head[p]);
        if (low < begin) shared[2 * part] = sum;
        else y[row] = acc_to_real(sum);
    }
    if (get_local_id(0) > 0 || next == n || offsets[next] >= begin + count) return;
    const uint low = offsets[next];
    acc_t sum = acc_real(0);
    for (uint q = low < begin ? 0 : (low - begin) / PIECE; q < PIECES; ++q) sum = acc_add(sum, tail[q]);
    shared[2 * part + 1] = sum;
}

// Adds up the rows that lie in several parts: an item for each part but the last, which has the row that begins there.
// Bytes: 16 for each part of `shared`, 12 for each part of the rest.
__kernel GROUP
void finish_split(uint parts, __global const uint* restrict offsets, __global const uint* restrict starts,
                  __global const acc_t* restrict shared, __global real_t* restrict y)
{
    const uint part = get_group_id(0) * WG + get_local_id(0);
    if (part + 1 >= parts) return;
    const uint row = starts[part + 1];
    const uint low = offsets[row];
    if (low / PART != part) return;
    const uint last = (offsets[row + 1] - 1) / PART;
    acc_t sum = acc_real(0);
    for (uint t = part; t < last; ++t) sum = acc_add(sum, shared[2 * (size_t)t + 1]);
    y[row] = acc_to_real(acc_add(sum, shared[2 * (size_t)last]));
}
