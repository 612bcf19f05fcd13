// An operation of the user's own, element by element. Group g owns elements g * span .. (g + 1) * span; its items interleave.
//
// Required macro:
//   FORMULA  an expression of x0 to x3, p0 to p3, quotient and root, of type real_t

static real_t formula(real_t x0, real_t x1, real_t x2, real_t x3, real_t p0, real_t p1, real_t p2, real_t p3)
{
    return FORMULA;
}

// y = the formula of each element. Bytes: n real_t of each vector that it names read, n written.
__kernel GROUP
void pointwise(uint n, uint span, real_t p0, real_t p1, real_t p2, real_t p3, __global const real_t* restrict x0,
               __global const real_t* restrict x1, __global const real_t* restrict x2, __global const real_t* restrict x3,
               __global real_t* restrict y)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) y[i] = formula(x0[i], x1[i], x2[i], x3[i], p0, p1, p2, p3);
}
