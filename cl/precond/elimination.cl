// Columns of Z of an approximate inverse (AINV, SAINV): independent columns are done at once. Joined after common.cl.
// Source: dedecek-2013, algorithms 6 and 7 and chapter 6 (columns on the device, one pivot at a time).
//
// A column is open until it has been the pivot. Columns i and j meet if a row of z_j is a row of z_i, or its neighbour in A. Column i is
// ready if no open column j < i meets it. Ready columns never meet later, and change different rows. So all of them may be pivots at once, with
// the same bits as one after another.
//
// `columns` and `values` have two halves. Bit 0 of state[l] tells which half holds row l of Z; the other bits are its number of entries in open
// columns, in any order: entry k of open_entries(state[l]) at open_begin(state[l], n, l) + k. first[l] is the smallest number of these columns,
// or NONE. Sums are those of the host: over ascending rows.
//
// Required macros:
//   CAPACITY     most open entries of a row
//   STABILISED   1: v = A z_i (SAINV), 0: v = row i of A (AINV)
//   TILE_BYTES   local memory of a group that tiles and hash tables share, 16 or 32 KiB

// MOST_ROWS: entries of a column
#define MOST_COLUMNS (TILE_BYTES / 32) // columns that meet a pivot
#define MOST_PLACES (TILE_BYTES / 16)  // entries of v
#define NUMBERS (TILE_BYTES / 4)       // in local memory
#define MOST_ENTERED (3 * NUMBERS / 8) // numbers of a hash table, which takes half of the local memory
#define BATCH 64                        // rows that are changed at once
// LANES: items that share a row
// PIECE: entries of a line that are taken at once
// MOST_PIECES: of all lines
#define MOST_PRODUCTS (PIECE * MOST_PIECES)
#define BUCKETS 32                      // of a sort, a power of two
#define CELLS 8                         // that share a search for the least number of a sort

// Places of counters.
// READY: columns that are ready in this round
// FINISHED: columns that are finished
// WRITTEN: entries written
// FAILED: what went wrong, 0 if nothing did

// Reasons of a failure.
// BAD_PIVOT: a pivot that is not positive
// TOO_LONG: a column with too many entries, places or partners
#define TOO_FULL 3  // more open entries of a row than CAPACITY, or more entries than there is room for

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
    // No column was marked then.
    if (counters[FAILED]) return;
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

#define EVERYWHERE (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// Places of a hash table for so many numbers, a power of two.
static int table_size(int count)
{
    int size = 64;
    while (3 * size < 4 * count) size *= 2;
    return size;
}

static int hash(int value, int size)
{
    return ((uint)value * 2654435761u >> 15) & (size - 1);
}

// Empties a hash table.
INLINED void clear(__local int* table, int size)
{
    for (int t = get_local_id(0); t < size; t += WG) table[t] = -1;
    barrier(EVERYWHERE);
}

// Place of a number in a hash table, which takes it if it is new; -1 if the table is full of others.
INLINED int enter(volatile __local int* table, int size, int value, int* is_new)
{
    int at = hash(value, size);
    for (int tries = 0; tries < size; ++tries) {
        const int seen = atomic_cmpxchg(&table[at], -1, value);
        *is_new = seen == -1;
        if (seen == value || seen == -1) return at;
        at = (at + 1) & (size - 1);
    }
    return -1;
}

// Sorts different numbers: by buckets, and in a bucket by counting those that are less. ranks[t] is the place of list[t].
INLINED void sort(__global const int* list, int count, __global int* sorted, __global int* ranks, __local int* memory)
{
    __local int* held = memory;             // by each bucket
    __local int* placed = memory + BUCKETS; // in each bucket
    __local int* lows = memory + 2 * BUCKETS;
    __local int* highs = lows + CELLS;
    __local int* members = highs + CELLS;
    __local int* values = members + count;
    for (int t = get_local_id(0); t < 2 * BUCKETS; t += WG) held[t] = 0;
    for (int t = get_local_id(0); t < CELLS; t += WG) {
        lows[t] = NONE;
        highs[t] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = get_local_id(0); t < count; t += WG) {
        atomic_min(&lows[t % CELLS], list[t]);
        atomic_max(&highs[t % CELLS], list[t]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int low = NONE;
    int high = 0;
    for (int t = 0; t < CELLS; ++t) {
        low = min(low, lows[t]);
        high = max(high, highs[t]);
    }
    int shift = 0;
    while ((high - low) >> shift >= BUCKETS) ++shift;
    for (int t = get_local_id(0); t < count; t += WG) atomic_inc(&held[(list[t] - low) >> shift]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = get_local_id(0); t < count; t += WG) {
        const int bucket = (list[t] - low) >> shift;
        int at = atomic_inc(&placed[bucket]);
        for (int b = 0; b < bucket; ++b) at += held[b];
        members[at] = t;
        values[at] = list[t];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = get_local_id(0); t < count; t += WG) {
        const int value = values[t];
        const int bucket = (value - low) >> shift;
        int begin = 0;
        for (int b = 0; b < bucket; ++b) begin += held[b];
        int rank = begin;
        for (int k = begin; k < begin + held[bucket]; ++k) rank += values[k] < value;
        sorted[rank] = value;
        ranks[members[t]] = rank;
    }
    barrier(EVERYWHERE);
}

// Cuts lines of so many entries into pieces, in any order: 256 times a line and the number of a piece of it.
INLINED void cut(int lines, __global const int* counts, __global int* pieces, volatile __local int* piece_count)
{
    for (int t = get_local_id(0); t < lines; t += WG) {
        // A line that is too long is too many pieces.
        const int own = counts[t] > 256 * PIECE ? MOST_PIECES + 1 : (counts[t] + PIECE - 1) / PIECE;
        const int at = atomic_add(piece_count, own);
        for (int k = 0; k < own && at + k < MOST_PIECES; ++k) pieces[at + k] = t << 8 | k;
    }
    barrier(EVERYWHERE);
}

// Line of entry q of the pieces, and the place of the entry in it.
static int line_of(__global const int* pieces, uint q)
{
    return pieces[q / PIECE] >> 8;
}

static int place_in_line(__global const int* pieces, uint q)
{
    return (pieces[q / PIECE] & 255) * PIECE + q % PIECE;
}

// The columns of all pieces as a set: those that differ, in any order, at list[0 ..]; found[q] is the place there of the column of entry q
// of the pieces.
INLINED void find_columns(__local int* table, int size, __global int* list, volatile __local int* count, int most,
                          int piece_count, __global const int* pieces, __global const uint* begins,
                          __global const int* counts, __global const int* columns, __global int* found)
{
    __local int* places = table + size;
    clear(table, size);
    for (uint q = get_local_id(0); q < (uint)piece_count * PIECE; q += WG) {
        const int t = line_of(pieces, q);
        const int k = place_in_line(pieces, q);
        if (k >= counts[t]) continue;
        const int value = columns[begins[t] + k];
        int is_new;
        const int at = enter(table, size, value, &is_new);
        found[q] = at;
        if (at < 0) atomic_max(count, most + 1);
        if (at < 0 || !is_new) continue;
        const int place = atomic_inc(count);
        places[at] = place;
        if (place < most) list[place] = value;
    }
    barrier(EVERYWHERE);
    for (uint q = get_local_id(0); q < (count[0] > most ? 0 : (uint)piece_count * PIECE); q += WG) {
        const int t = line_of(pieces, q);
        const int k = place_in_line(pieces, q);
        if (k < counts[t]) found[q] = places[found[q]];
    }
    barrier(EVERYWHERE);
}

// Sums of the columns of sparse lines, each times its factor: sums[u] += factors[t] * (value of line t in column u), over ascending t.
// Line t has counts[t] entries from begins[t] on, and found[q] is the column of entry q of the pieces. Each column marks its lines by bits,
// so that every product finds its place among those of its column; an item adds up a column.
INLINED void add_lines(__global acc_t* sums, int width, int lines, __global const real_t* factors, __global const uint* begins,
                       __global const int* counts, int piece_count, __global const int* pieces, __global const int* found,
                       __global const real_t* values, __global acc_t* products, __local int* memory, __local int* total)
{
    const int most = 32 * (NUMBERS / 2 / max(width, 1)); // a word of bits for 32 lines, and a number for each word
    for (int from = 0; from < lines; from += most) {
        const int some = min(most, lines - from);
        const int words = (some + 31) / 32;
        __local uint* marks = (__local uint*)memory;
        __local int* before = memory + width * words; // products before those of a word
        for (int t = get_local_id(0); t < width * words; t += WG) marks[t] = 0;
        if (get_local_id(0) == 0) total[0] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint q = get_local_id(0); q < (uint)piece_count * PIECE; q += WG) {
            const int t = line_of(pieces, q);
            const int k = place_in_line(pieces, q);
            if (t < from || t >= from + some || k >= counts[t]) continue;
            const uint line = t - from;
            atomic_or(&marks[found[q] * words + line / 32], 1u << line % 32);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int u = get_local_id(0); u < width; u += WG) {
            int count = 0;
            for (int w = 0; w < words; ++w) {
                before[u * words + w] = count;
                count += popcount(marks[u * words + w]);
            }
            const int begin = atomic_add(total, count);
            for (int w = 0; w < words; ++w) before[u * words + w] += begin;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint q = get_local_id(0); q < (uint)piece_count * PIECE; q += WG) {
            const int t = line_of(pieces, q);
            const int k = place_in_line(pieces, q);
            if (t < from || t >= from + some || k >= counts[t]) continue;
            const uint line = t - from;
            const int word = found[q] * words + line / 32;
            const int earlier = popcount(marks[word] & ((1u << line % 32) - 1));
            products[before[word] + earlier] = acc_product(factors[t], values[begins[t] + k]);
        }
        barrier(EVERYWHERE);
        for (int u = get_local_id(0); u < width; u += WG) {
            const int last = u * words + words - 1;
            const int count = before[last] + popcount(marks[last]) - before[u * words];
            __global const acc_t* own = products + before[u * words];
            acc_t sum = sums[u];
            int k = 0;
            for (; k + 8 <= count; k += 8) {
                acc_t eight[8];
                for (int e = 0; e < 8; ++e) eight[e] = own[k + e];
                for (int e = 0; e < 8; ++e) sum = acc_add(sum, eight[e]);
            }
            for (; k < count; ++k) sum = acc_add(sum, own[k]);
            sums[u] = sum;
        }
        barrier(EVERYWHERE);
    }
}

static acc_t acc_abs(acc_t a)
{
    return acc_less(a, acc_real(0)) ? -a : a;
}

// Number beside a value in a table, or -1: it lies in the second half.
static int place_of(__local const int* table, int size, int value)
{
    int at = hash(value, size);
    while (table[at] != value) {
        if (table[at] == -1) return -1;
        at = (at + 1) & (size - 1);
    }
    return table[size + at];
}

// An entry of z_j after z_j - c z_i, and whether it is kept; as it is if c is 0, for a column that v misses.
INLINED real_t changed_value(real_t old, acc_t c, real_t z, acc_t drop, int* keep)
{
    if (!acc_less(c, acc_real(0)) && !acc_less(acc_real(0), c)) return old;
    const real_t value = acc_to_real(acc_sub(acc_real(old), acc_mul(c, acc_real(z))));
    *keep = value != 0 && !isnan(value) && !acc_less(acc_real(fabs(value)), drop);
    return value;
}

// Finishes columns: their entries, pivots, and what they change in others. A group takes column after column: from .. to of those with a
// slot, or one group columns from .. to in order, those that are finished left out.
// `integers`, `reals` and `sums` are memory of the groups: rows and values of z and v, columns and values of p.
// Bytes: for a column the rows of A of its entries and those of v, the open entries of the rows of v twice and those of its own rows
// twice; if columns come in order, 4 for each earlier one.
__kernel GROUP
void eliminate(uint n, uint from, uint to, uint in_order, uint most_written, __global const acc_t* restrict drop,
               __global const uint* restrict offsets, __global const uint* restrict indices,
               __global const real_t* restrict entries, __global const int* restrict pivot_of,
               __global const int* restrict held, __global const int* restrict members, __global int* columns,
               __global real_t* values, __global int* state, __global int* first, __global int* counters,
               __global int* row_written, __global int* column_written, __global real_t* value_written,
               __global acc_t* pivots, __global int* integers, __global real_t* reals, __global acc_t* sums)
{
    __local int memory[NUMBERS] __attribute__((aligned(8)));
    __local int kept[BATCH];
    __local int least[BATCH];
    __local int rows_found;
    __local int v_count;
    __local int p_count;
    __local int bound; // on the numbers of a set: entries of all lines
    __local int piece_count;
    __local int base;
    __local int total;
    __local int full; // not 0 once a row has more entries than CAPACITY
    const int lid = get_local_id(0);
    const size_t group = get_group_id(0);
    __global int* z_rows = integers + group * (MOST_ROWS + 5 * MOST_PLACES + (PIECE + 1) * MOST_PIECES);
    __global int* v_rows = z_rows + MOST_ROWS;
    __global int* list = v_rows + MOST_PLACES; // numbers before they are sorted
    __global int* p_columns = list;            // once v is sorted
    __global int* ranks = list + MOST_PLACES;
    __global int* counts = ranks + MOST_PLACES; // of the entries of lines
    __global int* pieces = counts + MOST_PLACES;
    __global int* found = pieces + MOST_PIECES;
    __global uint* begins = (__global uint*)(found + PIECE * MOST_PIECES); // of lines
    __global real_t* z_values = reals + group * (MOST_ROWS + MOST_PLACES);
    __global real_t* v_values = z_values + MOST_ROWS;
    __global acc_t* v_sums = sums + group * (MOST_PLACES + MOST_PRODUCTS);
    __global acc_t* p_values = v_sums; // once v is rounded
    __global acc_t* products = v_sums + MOST_PLACES;
    const uint end = in_order ? to : min(to, (uint)counters[READY]);
    // A limit that is met leaves nothing to do in what follows: counts of 0.
    int failed = in_order ? counters[FAILED] : 0;
    for (uint s = from + group; s < end && !(in_order && failed); s += get_num_groups(0)) {
        const int i = in_order ? (int)s : pivot_of[s];
        failed = 0;
        if (lid == 0) {
            rows_found = in_order ? 0 : held[s];
            v_count = p_count = bound = piece_count = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        // Rows of z_i. Column i is the first open one in all of its rows, none of which is below row i.
        if (in_order) {
            for (int l = lid; l <= i; l += WG) {
                if (first[l] != i) continue;
                const int at = atomic_inc(&rows_found);
                if (at < MOST_ROWS) list[at] = l;
            }
        } else {
            for (int t = lid; t < min(rows_found, MOST_ROWS); t += WG) list[t] = members[s * MOST_ROWS + t];
        }
        barrier(EVERYWHERE);
        const int finished = rows_found == 0;
        if (rows_found > MOST_ROWS) failed = TOO_LONG;
        const int z_count = failed ? 0 : rows_found;
        sort(list, z_count, z_rows, ranks, memory);
        for (uint q = lid; q < (uint)z_count * LANES; q += WG) {
            const int l = z_rows[q / LANES];
            const int count = open_entries(state[l]);
            const size_t begin = open_begin(state[l], n, l);
            for (int k = q % LANES; k < count; k += LANES) {
                if (columns[begin + k] == i) z_values[q / LANES] = values[begin + k];
            }
            if (q % LANES) continue;
            begins[q / LANES] = offsets[l];
            counts[q / LANES] = offsets[l + 1] - offsets[l];
            atomic_add(&bound, counts[q / LANES]);
        }
        barrier(EVERYWHERE);
        // Places of v = A z_i: the lines are rows of A.
#if STABILISED
        cut(z_count, counts, pieces, &piece_count);
        if (piece_count > MOST_PIECES) failed = TOO_LONG;
        int size = table_size(min(bound, MOST_ENTERED));
        find_columns(memory, size, list, &v_count, MOST_PLACES, failed ? 0 : piece_count, pieces, begins, counts,
                     (__global const int*)indices, found);
        int v_places = failed ? 0 : v_count;
#else
        int size = 0;
        int v_places = z_count > 0 ? (int)(offsets[i + 1] - offsets[i]) : 0;
#endif
        if (v_places > MOST_PLACES) {
            failed = TOO_LONG;
            v_places = 0;
        }
#if STABILISED
        sort(list, v_places, v_rows, ranks, memory);
        for (uint q = lid; q < (v_places > 0 ? (uint)piece_count * PIECE : 0); q += WG) {
            const int t = line_of(pieces, q);
            const int k = place_in_line(pieces, q);
            if (k < counts[t]) found[q] = ranks[found[q]];
        }
        for (int t = lid; t < v_places; t += WG) v_sums[t] = acc_real(0);
        barrier(EVERYWHERE);
        add_lines(v_sums, v_places, v_places > 0 ? z_count : 0, z_values, begins,
                  counts, piece_count, pieces, found, entries, products, memory, &total);
        for (int t = lid; t < v_places; t += WG) v_values[t] = acc_to_real(v_sums[t]);
#else
        barrier(EVERYWHERE);
        for (int t = lid; t < v_places; t += WG) {
            v_rows[t] = indices[offsets[i] + t];
            v_values[t] = entries[offsets[i] + t];
        }
#endif
        barrier(EVERYWHERE);
        // Columns of p: the lines are rows of Z.
        if (lid == 0) bound = piece_count = full = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = lid; t < v_places; t += WG) {
            const int l = v_rows[t];
            begins[t] = open_begin(state[l], n, l);
            counts[t] = open_entries(state[l]);
            atomic_add(&bound, counts[t]);
        }
        barrier(EVERYWHERE);
        cut(v_places, counts, pieces, &piece_count);
        if (piece_count > MOST_PIECES) {
            failed = TOO_LONG;
            v_places = 0;
        }
        size = table_size(min(bound, MOST_ENTERED));
        find_columns(memory, size, p_columns, &p_count, MOST_COLUMNS, v_places > 0 ? piece_count : 0, pieces, begins, counts, columns,
                     found);
        int others = v_places > 0 ? p_count : 0;
        if (others > MOST_COLUMNS) {
            failed = TOO_LONG;
            others = 0;
            v_places = 0;
        }
        for (int u = lid; u < others; u += WG) p_values[u] = acc_real(0);
        barrier(EVERYWHERE);
        add_lines(p_values, others, v_places, v_values, begins, counts,
                  piece_count, pieces, found, values, products, memory, &total);
        // A hash table of the columns of p.
        size = table_size(others);
        __local int* table = memory;
        __local int* places_of = table + size;
        clear(table, size);
        for (int u = lid; u < others; u += WG) {
            int is_new;
            places_of[enter(table, size, p_columns[u], &is_new)] = u;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int own = place_of(table, size, i);
        // Zero if v misses column i itself, which is not good.
        const acc_t pivot = own >= 0 ? p_values[own] : acc_real(0);
        const int good = acc_less(acc_real(0), pivot) && acc_finite(pivot);
        if (!failed && !finished && !good) failed = BAD_PIVOT;
        if (lid == 0) {
            base = failed ? 0 : atomic_add(&counters[WRITTEN], z_count);
            if (!finished) pivots[i] = pivot;
        }
        barrier(EVERYWHERE);
        for (int u = lid; u < others; u += WG) {
            // A column that v misses stays as it is. Nor does column i change.
            if (u == own) {
                p_values[u] = acc_real(0);
            } else if (acc_less(p_values[u], acc_real(0)) || acc_less(acc_real(0), p_values[u])) {
                p_values[u] = acc_div(p_values[u], pivot);
            }
        }
        barrier(EVERYWHERE);
        const int out = base;
        if ((uint)(out + z_count) > most_written) failed = TOO_FULL;
        const int changed = failed ? 0 : z_count;
        // z_j = z_j - c_j z_i in the rows of z_i, which no other column with a slot changes or reads. Bits mark the entries that are
        // there. The order of the entries of a row is any. An entry of z_i below `limits` surely changes nothing that is not there.
        __local uint* marks = (__local uint*)(memory + 2 * size);
        __local real_t* limits = (__local real_t*)(memory + 2 * size + others * (BATCH / 32));
        for (int u = lid; u < others; u += WG) limits[u] = acc_to_real(acc_mul(acc_div(drop[0], acc_abs(p_values[u])), acc_real(0.9999f)));
        for (int from_row = 0; from_row < changed; from_row += BATCH) {
            const int some = min(BATCH, changed - from_row);
            for (int t = lid; t < some; t += WG) {
                kept[t] = 0;
                least[t] = NONE;
            }
            for (int t = lid; t < others * (BATCH / 32); t += WG) marks[t] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint q = lid; q < (uint)some * LANES; q += WG) {
                const uint t = q / LANES;
                const int l = z_rows[from_row + t];
                const int count = open_entries(state[l]);
                const size_t begin = open_begin(state[l], n, l);
                const size_t to_begin = open_begin(state[l] ^ 1, n, l);
                for (int k = q % LANES; k < count; k += LANES) {
                    const int column = columns[begin + k];
                    real_t value = values[begin + k];
                    // The pivot's own entry is finished.
                    if (column == i) continue;
                    const int u = place_of(table, size, column);
                    int keep = 1;
                    if (u >= 0) {
                        atomic_or(&marks[u * (BATCH / 32) + t / 32], 1u << t % 32);
                        value = changed_value(value, p_values[u], z_values[from_row + t], drop[0], &keep);
                    }
                    if (!keep) continue;
                    const int at = atomic_inc(&kept[t]);
                    columns[to_begin + at] = column;
                    values[to_begin + at] = value;
                    atomic_min(&least[t], column);
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint q = lid; q < (uint)some * LANES; q += WG) {
                const uint t = q / LANES;
                const real_t z = z_values[from_row + t];
                const int l = z_rows[from_row + t];
                const size_t to_begin = open_begin(state[l] ^ 1, n, l);
                for (int u = q % LANES; u < others; u += LANES) {
                    if (fabs(z) < limits[u] || (marks[u * (BATCH / 32) + t / 32] >> t % 32 & 1)) continue;
                    int keep = 0;
                    const real_t value = changed_value(0, p_values[u], z, drop[0], &keep);
                    if (!keep) continue;
                    const int at = atomic_inc(&kept[t]);
                    if (at >= CAPACITY) continue;
                    columns[to_begin + at] = p_columns[u];
                    values[to_begin + at] = value;
                    atomic_min(&least[t], p_columns[u]);
                }
            }
            barrier(EVERYWHERE);
            for (int t = lid; t < some; t += WG) {
                const int l = z_rows[from_row + t];
                if (kept[t] > CAPACITY) atomic_or(&full, 1);
                state[l] = 2 * min(kept[t], CAPACITY) + ((state[l] & 1) ^ 1);
                first[l] = least[t];
                row_written[out + from_row + t] = l;
                column_written[out + from_row + t] = i;
                value_written[out + from_row + t] = z_values[from_row + t];
            }
            barrier(EVERYWHERE);
        }
        if (full) failed = TOO_FULL;
        // The first reason stays.
        if (lid == 0 && failed) atomic_cmpxchg(&counters[FAILED], 0, failed);
        if (lid == 0 && !failed && !finished) atomic_inc(&counters[FINISHED]);
    }
}
