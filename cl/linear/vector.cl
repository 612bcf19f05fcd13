// Operations element by element. Group g owns elements g * span .. (g + 1) * span; its items interleave.

// y = alpha x. Bytes: n real_t read, n written.
__kernel GROUP
void scale(uint n, uint span, real_t alpha, __global const real_t* restrict x, __global real_t* restrict y)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) y[i] = alpha * x[i];
}

// x = alpha x. Bytes: n real_t read, n written.
__kernel GROUP
void rescale(uint n, uint span, real_t alpha, __global real_t* restrict x)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) x[i] = alpha * x[i];
}

// y = alpha x + beta y. Bytes: 2 n real_t read, n written.
__kernel GROUP
void axpby(uint n, uint span, real_t alpha, real_t beta, __global const real_t* restrict x, __global real_t* restrict y)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) y[i] = alpha * x[i] + beta * y[i];
}

// z = alpha x + beta y. Bytes: 2 n real_t read, n written.
__kernel GROUP
void add_scaled(uint n, uint span, real_t alpha, real_t beta, __global const real_t* restrict x,
                __global const real_t* restrict y, __global real_t* restrict z)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) z[i] = alpha * x[i] + beta * y[i];
}

// z = x y, element by element. Bytes: 2 n real_t read, n written.
__kernel GROUP
void multiply_elements(uint n, uint span, __global const real_t* restrict x, __global const real_t* restrict y,
                       __global real_t* restrict z)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) z[i] = x[i] * y[i];
}

// x = min(max(x, lower), upper), element by element; NaN stays NaN. Bytes: n real_t read, n written.
__kernel GROUP
void clamp_elements(uint n, uint span, real_t lower, real_t upper, __global real_t* restrict x)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) {
        const real_t value = x[i];
        x[i] = value < lower ? lower : value > upper ? upper : value;
    }
}
