// Statements over vectors, element by element: what passes do. Joined after common.cl.
//
// A statement is target | a << 4 | b << 8 | d << 12 | kind << 16, where target, a, b and d are numbers of vectors or NONE. NO_STATEMENT if
// there is none. The kinds 0, MULTIPLY, CLAMP and STEP, in this order:

// v[target] = k a + l b + m d, from left to right, or a b, or a within [b, d], or v[target] within [b - a, d - a]. Where numbers of vectors are
// constants, `v` lives in registers.
static void apply_statement(real_t* v, uint statement, real_t k, real_t l, real_t m)
{
    if (statement == NO_STATEMENT) return;
    const uint target = statement & 15, a = (statement >> 4) & 15, b = (statement >> 8) & 15, d = (statement >> 12) & 15;
    if (statement >> 16 == MULTIPLY) {
        v[target] = v[a] * v[b];
        return;
    }
    if (statement >> 16 == CLAMP) {
        v[target] = v[a] < v[b] ? v[b] : v[a] > v[d] ? v[d] : v[a];
        return;
    }
    if (statement >> 16 == STEP) {
        const real_t down = v[b] - v[a], up = v[d] - v[a], step = v[target];
        v[target] = step < down ? down : step > up ? up : step;
        return;
    }
    real_t value = k * v[a];
    if (b != NONE) value = value + l * v[b];
    if (d != NONE) value = value + m * v[d];
    v[target] = value;
}
