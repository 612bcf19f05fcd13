// Products with compressed rows whose entries are divided among the groups, however long rows are. Stands behind common.cl in a program.
//
// The entries are numbered from the first of the matrix. PART consecutive ones are a part, PIECE of these a piece. The sum of a row is
// made of three kinds of sums, each in ascending order: of the row's entries in one piece; of these sums over the pieces of one part; of
// those over the parts. So the matrix alone fixes the order.
//
// Source: dedecek-2013, figure 5.3. There a group adds its share of a row atomically to the result. Here it writes its share to `shared`,
// and finish_split adds the shares.

#define PIECES (PART / PIECE)
// Place of entry k in local memory. At each step all items read the k-th entry of their pieces; the gaps put these into different banks.
#define PLACE(k) ((k) + (k) / PIECE)

// y = A x for all rows that lie in one part; a group takes a part. Part t has the rows that begin there, from starts[t] on if that row begins
// there, and before starts[t + 1]; starts[t] is the row of its first entry, 0 for the first part, n behind the last. Rows without entries
// between those get 0.
// shared[2 t]: sum over part t of the row that ends there and began before; left as it is if there is none. shared[2 t + 1]: that of the row
// that goes on behind the part, likewise.
// Bytes: (sizeof(real_t) + 4) nnz + 4 rows for the matrix, sizeof(real_t) (cols + rows); 4 rows once more, from a cache.
__kernel GROUP
void split(uint n, uint nnz, __global const uint* restrict offsets, __global const uint* restrict starts,
           __global const uint* restrict indices, __global const real_t* restrict values, __global const real_t* restrict x,
           __global real_t* restrict y, __global acc_t* restrict shared)
{
    __local acc_t term[PART + PIECES];
    __local uint ending[PART + PIECES]; // number of the row that ends with an entry, from 1 at starts[part] on; 0 if none does
    __local acc_t head[PIECES];         // of each piece: sum of the row that ends there and began before
    __local acc_t tail[PIECES];         // sum of the row that goes on behind the piece
    __local uint whose[PIECES];         // number of the row of `head`; 0 if there is none
    const uint part = get_group_id(0);
    const uint begin = part * PART;
    const uint count = min((uint)PART, nnz - begin);
    const uint first = starts[part];
    const uint next = starts[part + 1];
    for (uint k = get_local_id(0); k < count; k += WG) {
        term[PLACE(k)] = acc_product(values[begin + k], x[indices[begin + k]]);
        ending[PLACE(k)] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = first + (size_t)get_local_id(0); i < next; i += WG) {
        const uint end = offsets[i + 1];
        if (offsets[i] == end) y[i] = 0;
        else ending[PLACE(end - 1 - begin)] = i - first + 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint p = get_local_id(0); p < PIECES; p += WG) {
        const uint last = min((p + 1) * PIECE, count);
        acc_t sum = acc_real(0);
        uint ended = 0;
        whose[p] = 0;
        for (uint k = p * PIECE; k < last; ++k) {
            sum = acc_add(sum, term[PLACE(k)]);
            const uint row = ending[PLACE(k)];
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
        acc_t sum = acc_real(0);
        for (uint q = low < begin ? 0 : (low - begin) / PIECE; q < p; ++q) sum = acc_add(sum, tail[q]);
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

// Rows that lie in several parts. The item of part t adds up the row that begins there and goes on behind it, if there is one; no row goes on
// behind the last part.
// Bytes of each part: 16 of `shared`, 12 of the rest.
__kernel GROUP
void finish_split(uint parts, __global const uint* restrict offsets, __global const uint* restrict starts,
                  __global const acc_t* restrict shared, __global real_t* restrict y)
{
    const uint part = get_group_id(0) * WG + get_local_id(0);
    if (part + 1 >= parts) return;
    const uint row = starts[part + 1];
    if (offsets[row] / PART != part) return;
    const uint last = (offsets[row + 1] - 1) / PART;
    acc_t sum = acc_real(0);
    for (uint t = part; t < last; ++t) sum = acc_add(sum, shared[2 * (size_t)t + 1]);
    y[row] = acc_to_real(acc_add(sum, shared[2 * (size_t)last]));
}
