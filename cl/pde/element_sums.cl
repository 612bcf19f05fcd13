// Sums over the cells that share a coefficient, and combinations for hanging nodes.

// to[r] = parts at the places of row r, added in their order, then (COMBINED) values times factors. Group g owns rows g * span .. (g + 1) * span.
// The rows of places begin at `offsets`, those of factors at `rows`.
// Bytes: an offset and a number for each row; a place and a part for each place; a column, a factor and a value for each factor.
__kernel GROUP
void sum_elements(uint n, uint span, __global const uint* restrict offsets, __global const uint* restrict places,
                  __global const real_t* restrict parts, __global const uint* restrict rows, __global const uint* restrict columns,
                  __global const real_t* restrict factors, __global const real_t* restrict values, __global real_t* restrict to)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t r = first + get_local_id(0); r < last; r += WG) {
        acc_t sum = acc_real(0);
#if SHARED
        for (uint k = offsets[r]; k < offsets[r + 1]; ++k) sum = acc_add(sum, acc_real(parts[places[k]]));
#endif
#if COMBINED
        for (uint k = rows[r]; k < rows[r + 1]; ++k) sum = acc_add(sum, acc_product(factors[k], values[columns[k]]));
#endif
        to[r] = acc_to_real(sum);
    }
}
