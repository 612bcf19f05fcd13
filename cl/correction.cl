// The correction term F(x, v) of cgnr_parts.cl, one neighbour at a time. `weights` are those of one right-hand side.
//
// Required macro:
//   EDGES   0 no neighbour terms, 1 smoothness, 2 smoothness and total variation

static real_t violated_bound(real_t x, __global const acc_t* weights, int* violated)
{
    const real_t lower = acc_to_real(weights[LOWER]);
    const real_t upper = acc_to_real(weights[UPPER]);
    *violated = x < lower || x > upper;
    return x < lower ? lower : upper;
}

static acc_t edge(real_t here, real_t there, real_t phi, __global const acc_t* weights)
{
    acc_t weight = weights[SMOOTH];
    if (EDGES == 2) weight = acc_add(weight, acc_mul(weights[VARIATION], acc_real(phi)));
    return acc_mul(weight, acc_real(here - there));
}

static real_t diffusivity(real_t here, real_t right, real_t down, __global const acc_t* weights)
{
    const real_t dx = right - here;
    const real_t dy = down - here;
    const acc_t square = acc_add(acc_add(acc_product(dx, dx), acc_product(dy, dy)), weights[EPSILON2]);
    return acc_to_real(acc_div(acc_real(1), acc_sqrt(square)));
}
