// Products with a matrix whose entries a user's text makes. Joined after common.cl.
//
// Required macros:
//   ENTRY   statements that set `column` and `value` of entry k of row i
//   STAGED  elements of the vector that a group holds in local memory at once, 0 for none
//
// Source: stock-koch-2009, OnTheFly, and OnTheFly & LocalMemory.

#define TOGETHER (WG == 1 ? 1 : 8) // entries that are made, and whose elements of x are read, at once

// Entries first .. first + TOGETHER of a row. Those behind the last one get a column that is not there.
static void make_entries(uint row, uint first, uint entries, uint cols, uint* columns, real_t* values)
{
    for (uint j = 0; j < TOGETHER; ++j) {
        const uint i = row;
        const uint k = first + j;
        uint column = cols;
        real_t value = 0;
        if (k < entries)
            do { // so that `break` and `continue` of the text leave it, and the row ends
                ENTRY
            } while (0);
        columns[j] = column;
        values[j] = value;
    }
}

// y = A x for the rows of group g, g * span .. (g + 1) * span, an item to a row. Entries add one after another. If STAGED, a group copies x
// to local memory part by part, and the sum of a row goes on from one part to the next.
// Bytes: real_t of y written, of x read by every entry (from a cache), or once by every group and WG rows.
__kernel GROUP
void generated(uint n, uint span, uint cols, uint entries, __global const real_t* restrict x, __global real_t* restrict y)
{
#if STAGED > 0
    __local real_t part[STAGED];
#endif
    const uint first = get_group_id(0) * span;
    const uint last = min(first + span, n);
    for (uint base = first; base < last; base += WG) {
        const uint i = base + get_local_id(0);
        acc_t sum = acc_real(0);
        uint columns[TOGETHER];
        real_t values[TOGETHER];
        uint k = i < last ? 0 : entries;
#if STAGED > 0
        make_entries(i, k, entries, cols, columns, values);
        for (uint begin = 0; begin < cols; begin += STAGED) {
            const uint end = min(begin + STAGED, cols);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint j = begin + get_local_id(0); j < end; j += WG) part[j - begin] = x[j];
            barrier(CLK_LOCAL_MEM_FENCE);
            // Columns ascend: what lies in this part comes before the rest.
            while (k < entries) {
                uint done = 0;
                for (uint j = 0; j < TOGETHER; ++j) {
                    const uint column = columns[j];
                    if (done < j || column >= end) continue;
                    if (column >= begin && !isnan(values[j])) sum = acc_add(sum, acc_product(values[j], part[column - begin]));
                    ++done;
                }
                if (done < TOGETHER) break;
                k += TOGETHER;
                make_entries(i, k, entries, cols, columns, values);
            }
        }
#else
        for (; k < entries; k += TOGETHER) {
            real_t element[TOGETHER];
            make_entries(i, k, entries, cols, columns, values);
            for (uint j = 0; j < TOGETHER; ++j) element[j] = x[min(columns[j], cols - 1)];
            // A column that is not there ends the row.
            uint done = 0;
            for (uint j = 0; j < TOGETHER; ++j) {
                if (done < j || columns[j] >= cols) continue;
                if (!isnan(values[j])) sum = acc_add(sum, acc_product(values[j], element[j]));
                ++done;
            }
            if (done < TOGETHER) break;
        }
#endif
        if (i < last) y[i] = acc_to_real(sum);
    }
}
