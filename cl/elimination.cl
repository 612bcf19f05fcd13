// Columns of Z of an approximate inverse (AINV, SAINV), as many at once as do not meet. Joined after common.cl.
// Source: dedecek-2013, algorithms 6 and 7 and chapter 6 (columns on the device, one pivot at a time).
//
//   Column i is ready if no open column j < i meets it: no row of z_j is a neighbour of a row of z_i in A, or the same row.
//   Ready columns never meet later, and what they change lies in different rows, so that all of them may be pivots at once, with
//   the same bits as one after another.
//
// Row l of Z keeps its open entries by ascending column in one of two halves: entry k of open_entries(state[l]) at
// open_begin(state[l], n, l) + k. first[l] is the first of their columns, or NONE. Sums are those of the host: over ascending rows.
//
// Required macros:
//   CAPACITY     most open entries of a row
//   STABILISED   1: v = A z_i (SAINV), 0: v = row i of A (AINV)

#define NONE 0x7fffffff
#define MOST_ROWS 256     // entries of a column
#define MOST_PLACES 1024  // entries of v
#define MOST_COLUMNS 512  // columns that meet a pivot
#define TABLE_PLACES 2048 // of a hash table; MOST_PLACES and a group's items fit
#define TILE 1024         // products of a tile, in the memory of the table
#define LANES 16          // items that share a row

// Places of counters.
#define READY 0    // columns that are ready in this round
#define FINISHED 1 // columns that are finished
#define WRITTEN 2  // entries written
#define FAILED 3   // not 0 if a limit was met, or a pivot is not positive

// Number of open entries of a row, and the place of the first of them. Shifts, because Oclgrind does not know the instruction `freeze`
// that LLVM writes where a signed number is divided and its remainder taken.
static int open_entries(int state)
{
    return state >> 1;
}

static size_t open_begin(int state, uint n, size_t l)
{
    return ((state & 1) * (size_t)n + l) * CAPACITY;
}

// Begins with the columns of the identity.
// Bytes: 20 and a value for each row.
__kernel GROUP
void begin_columns(uint n, uint span, __global int* columns, __global real_t* values, __global int* state,
                   __global int* first, __global int* blocked, __global int* slot_of)
{
    const size_t begin = get_group_id(0) * (size_t)span;
    const size_t end = min(begin + span, (size_t)n);
    for (size_t l = begin + get_local_id(0); l < end; l += WG) {
        columns[l * CAPACITY] = (int)l;
        values[l * CAPACITY] = 1;
        state[l] = 2;
        first[l] = (int)l;
        blocked[l] = 0;
        slot_of[l] = NONE;
    }
}

// Marks the open columns of rows first .. that are not ready, by the number of the round.
// Bytes: the indices of A, and for each of them 4; 4 for each open entry.
__kernel GROUP
void mark_blocked(uint n, uint span, uint round, __global const uint* restrict offsets,
                  __global const uint* restrict indices, __global const int* restrict state,
                  __global const int* restrict first, __global const int* restrict columns,
                  __global int* blocked, __global int* counters)
{
    const size_t begin = get_group_id(0) * (size_t)span;
    const size_t end = min(begin + span, (size_t)n);
    if (get_global_id(0) == 0) counters[READY] = 0;
    if (counters[FAILED]) return;
    for (size_t l = begin + get_local_id(0); l < end; l += WG) {
        const int count = open_entries(state[l]);
        if (count == 0) continue;
        int least = first[l];
        for (uint e = offsets[l]; e < offsets[l + 1]; ++e) least = min(least, first[indices[e]]);
        const size_t from = open_begin(state[l], n, l);
        for (int k = 0; k < count; ++k) {
            const int column = columns[from + k];
            if (column > least) blocked[column] = (int)round;
        }
    }
}

// Hands out a slot to each ready column, as long as there are some: those without wait for the next round.
// Bytes: 8 for each row.
__kernel GROUP
void choose_pivots(uint n, uint span, uint round, uint slots, __global const int* restrict first,
                   __global const int* restrict blocked, __global int* slot_of, __global int* pivot_of,
                   __global int* held, __global int* counters)
{
    const size_t begin = get_group_id(0) * (size_t)span;
    const size_t end = min(begin + span, (size_t)n);
    for (size_t i = begin + get_local_id(0); i < end; i += WG) {
        // An open column has its diagonal entry, and no earlier one has an entry in that row.
        if (first[i] != (int)i || blocked[i] == (int)round) continue;
        const int slot = atomic_inc(&counters[READY]);
        slot_of[i] = slot < (int)slots ? slot : NONE;
        if (slot >= (int)slots) continue;
        pivot_of[slot] = (int)i;
        held[slot] = 0;
    }
}

// Collects the rows of the columns that have a slot, in any order.
// Bytes: 8 for each row, 12 for each entry of those columns.
__kernel GROUP
void gather_rows(uint n, uint span, uint round, __global const int* restrict first,
                 __global const int* restrict blocked, __global const int* restrict slot_of, __global int* held,
                 __global int* members)
{
    const size_t begin = get_group_id(0) * (size_t)span;
    const size_t end = min(begin + span, (size_t)n);
    for (size_t l = begin + get_local_id(0); l < end; l += WG) {
        const int i = first[l];
        if (i == NONE || blocked[i] == (int)round) continue;
        const int slot = slot_of[i];
        if (slot == NONE) continue;
        const int at = atomic_inc(&held[slot]);
        if (at < MOST_ROWS) members[slot * (size_t)MOST_ROWS + at] = (int)l;
    }
}

// For functions that take local memory: PoCL 3.1 makes the local variables of a kernel arguments of it. If all calls of a function pass the
// same variable, LLVM has put the variable itself into the function by then, and the function goes on with memory that nobody else sees.
#define INLINED static __attribute__((always_inline))

// Place of `value` among `count` ascending numbers, or -1.
INLINED int place_of(__local const int* sorted, int count, int value)
{
    int low = 0;
    int high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sorted[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low < count && sorted[low] == value ? low : -1;
}

// Adds the products of each line of a tile to its sum, one after another.
INLINED void add_lines(__local acc_t* sums, int lines, __local const acc_t* tile, int width)
{
    for (int t = get_local_id(0); t < lines; t += WG) {
        acc_t sum = sums[t];
        for (int s = 0; s < width; ++s) sum = acc_add(sum, tile[t * width + s]);
        sums[t] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Adds a number to a set; a new one goes to the end of `list`, unless that is full.
INLINED void insert(__local int* table, __local int* list, volatile __local int* count, int most, int value)
{
    if (atomic_add(count, 0) > most) return;
    uint at = (uint)value * 2654435761u % TABLE_PLACES;
    for (;;) {
        const int seen = atomic_cmpxchg(&table[at], -1, value);
        if (seen == value) return;
        if (seen == -1) break;
        at = (at + 1) % TABLE_PLACES;
    }
    const int place = atomic_inc(count);
    if (place < most) list[place] = value;
}

// Sorts different numbers with the help of `table`.
INLINED void sort(__local int* list, int count, __local int* table)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = get_local_id(0); t < count; t += WG) {
        const int value = list[t];
        int rank = 0;
        for (int u = 0; u < count; ++u) rank += list[u] < value;
        table[rank] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = get_local_id(0); t < count; t += WG) list[t] = table[t];
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Empties a set.
INLINED void clear(__local int* table)
{
    for (int t = get_local_id(0); t < TABLE_PLACES; t += WG) table[t] = -1;
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Finishes the columns that have a slot: their entries, pivots, and what they change in others. A group to a slot.
// Bytes: for a column the rows of A of its entries twice, the open entries of the rows of v and those of its own rows twice.
__kernel GROUP
void eliminate(uint n, uint slots, uint most_written, __global const acc_t* restrict drop,
               __global const uint* restrict offsets, __global const uint* restrict indices,
               __global const real_t* restrict entries, __global const int* restrict pivot_of,
               __global const int* restrict held, __global const int* restrict members, __global int* columns,
               __global real_t* values, __global int* state, __global int* first, __global int* counters,
               __global int* row_written, __global int* column_written, __global real_t* value_written,
               __global acc_t* pivots)
{
    __local int z_rows[MOST_ROWS];
    __local real_t z_values[MOST_ROWS];
    __local acc_t tile[TILE];
    __local int* table = (__local int*)tile;
    __local int v_rows[MOST_PLACES];
    __local acc_t v_values[MOST_PLACES];
    __local int p_columns[MOST_COLUMNS];
    __local acc_t p_values[MOST_COLUMNS];
    __local int v_count;
    __local int p_count;
    __local int base;
    const int lid = get_local_id(0);
    const int slot = get_group_id(0);
    if (slot >= min(counters[READY], (int)slots)) return;
    const int i = pivot_of[slot];
    // A limit that is met leaves nothing to do in what follows: counts of 0.
    int failed = held[slot] > MOST_ROWS;
    const int z_count = failed ? 0 : held[slot];
    // z_i by ascending row. Column i comes first in all of its rows.
    for (int t = lid; t < z_count; t += WG) z_rows[t] = members[slot * (size_t)MOST_ROWS + t];
    if (lid == 0) v_count = p_count = 0;
    sort(z_rows, z_count, table);
    clear(table);
    for (int t = lid; t < z_count; t += WG) {
        const int l = z_rows[t];
        z_values[t] = values[open_begin(state[l], n, l)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if STABILISED
    for (uint q = lid; q < (uint)z_count * LANES; q += WG) {
        const uint row = z_rows[q / LANES];
        for (uint e = offsets[row] + q % LANES; e < offsets[row + 1]; e += LANES) {
            insert(table, v_rows, &v_count, MOST_PLACES, indices[e]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int places = v_count;
#else
    int places = (int)(offsets[i + 1] - offsets[i]);
#endif
    if (places > MOST_PLACES) {
        failed = 1;
        places = 0;
    }
#if STABILISED
    sort(v_rows, places, table);
    for (int t = lid; t < places; t += WG) v_values[t] = acc_real(0);
    // v = A z_i. Entries of z_i come in tiles, a line of products for each place of v, so that lanes share a row of A and each sum
    // runs over ascending rows. A product that is not there is 0, and adds nothing.
    const int wide_z = TILE / max(places, 1);
    for (int from = 0; from < (places > 0 ? z_count : 0); from += wide_z) {
        const int some = min(wide_z, z_count - from);
        for (int t = lid; t < places * some; t += WG) tile[t] = acc_real(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint q = lid; q < (uint)some * LANES; q += WG) {
            const int s = q / LANES;
            const uint row = z_rows[from + s];
            for (uint e = offsets[row] + q % LANES; e < offsets[row + 1]; e += LANES) {
                const int at = place_of(v_rows, places, indices[e]);
                tile[at * some + s] = acc_product(entries[e], z_values[from + s]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        add_lines(v_values, places, tile, some);
    }
    for (int t = lid; t < places; t += WG) v_values[t] = acc_real(acc_to_real(v_values[t]));
#else
    for (int t = lid; t < places; t += WG) {
        v_rows[t] = indices[offsets[i] + t];
        v_values[t] = acc_real(entries[offsets[i] + t]);
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    // p_j = <v, z_j> for all open columns of the rows of v.
    clear(table);
    for (uint q = lid; q < (uint)places * LANES; q += WG) {
        const int l = v_rows[q / LANES];
        const int count = open_entries(state[l]);
        const size_t begin = open_begin(state[l], n, l);
        for (int k = q % LANES; k < count; k += LANES) insert(table, p_columns, &p_count, MOST_COLUMNS, columns[begin + k]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int others = p_count;
    if (others > MOST_COLUMNS) {
        failed = 1;
        others = 0;
        places = 0;
    }
    sort(p_columns, others, table);
    for (int u = lid; u < others; u += WG) p_values[u] = acc_real(0);
    const int wide_v = TILE / max(others, 1);
    for (int from = 0; from < places; from += wide_v) {
        const int some = min(wide_v, places - from);
        for (int t = lid; t < others * some; t += WG) tile[t] = acc_real(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint q = lid; q < (uint)some * LANES; q += WG) {
            const int s = q / LANES;
            const int l = v_rows[from + s];
            const int count = open_entries(state[l]);
            const size_t begin = open_begin(state[l], n, l);
            for (int k = q % LANES; k < count; k += LANES) {
                const int at = place_of(p_columns, others, columns[begin + k]);
                tile[at * some + s] = acc_mul(v_values[from + s], acc_real(values[begin + k]));
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        add_lines(p_values, others, tile, some);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Zero if no column meets, which is not good.
    const acc_t pivot = others > 0 ? p_values[0] : acc_real(0);
    if (others == 0 || p_columns[0] != i || !acc_less(acc_real(0), pivot) || !acc_finite(pivot)) failed = 1;
    if (lid == 0) {
        base = failed ? 0 : atomic_add(&counters[WRITTEN], z_count);
        pivots[i] = pivot;
    }
    for (int u = 1 + lid; u < others; u += WG) {
        // A column that v misses stays as it is.
        if (acc_less(p_values[u], acc_real(0)) || acc_less(acc_real(0), p_values[u])) {
            p_values[u] = acc_div(p_values[u], pivot);
        }
    }
    // Rows that change below have been read by other items.
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const int out = base;
    if ((uint)(out + z_count) > most_written) failed = 1;
    const int changed = failed ? 0 : z_count;
    // z_j = z_j - c_j z_i in the rows of z_i, which no other column with a slot changes or reads; an item a row.
    for (int t = lid; t < changed; t += WG) {
        const int l = z_rows[t];
        const int other_side = (state[l] & 1) ^ 1;
        const int count = open_entries(state[l]);
        const size_t from = open_begin(state[l], n, l);
        const size_t to = open_begin(other_side, n, l);
        row_written[out + t] = l;
        column_written[out + t] = i;
        value_written[out + t] = z_values[t];
        int at = 1;
        int kept = 0;
        int u = 1;
        while (at < count || u < others) {
            const int own = at < count ? columns[from + at] : NONE;
            const int other = u < others ? p_columns[u] : NONE;
            int column = own;
            real_t value = 0;
            int keep = 1;
            if (own <= other) value = values[from + at++];
            if (other <= own) {
                const acc_t c = p_values[u++];
                column = other;
                // Zero for a column that v misses.
                if (acc_less(c, acc_real(0)) || acc_less(acc_real(0), c)) {
                    value = acc_to_real(acc_sub(acc_real(value), acc_mul(c, acc_real(z_values[t]))));
                    keep = value != 0 && !isnan(value) && !acc_less(acc_real(fabs(value)), drop[0]);
                } else {
                    keep = own == other;
                }
            }
            if (!keep) continue;
            if (kept == CAPACITY) {
                counters[FAILED] = 1;
                break;
            }
            columns[to + kept] = column;
            values[to + kept] = value;
            ++kept;
        }
        state[l] = 2 * kept + other_side;
        first[l] = kept > 0 ? columns[to] : NONE;
    }
    if (lid == 0 && failed) counters[FAILED] = 1;
    if (lid == 0 && !failed) atomic_inc(&counters[FINISHED]);
}
