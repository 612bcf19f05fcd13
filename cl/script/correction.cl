// The correction term F(x, v) of cgnr_parts.cl, one neighbour at a time.
//
// Required macro:
//   EDGES   0 no neighbour terms, 1 smoothness, 2 smoothness and total variation

// Weights of one right-hand side.
typedef struct {
    acc_t tikhonov, smooth, variation, epsilon2, box;
    real_t lower, upper;
} weights_t;

static void read_weights(weights_t* weights, __global const acc_t* words)
{
    weights->tikhonov = words[TIKHONOV];
    if (EDGES > 0) weights->smooth = words[SMOOTH];
    if (EDGES == 2) weights->variation = words[VARIATION];
    if (EDGES == 2) weights->epsilon2 = words[EPSILON2];
    weights->box = words[BOX];
    weights->lower = acc_to_real(words[LOWER]);
    weights->upper = acc_to_real(words[UPPER]);
}

static real_t violated_bound(real_t x, const weights_t* weights, int* violated)
{
    *violated = x < weights->lower || x > weights->upper;
    return x < weights->lower ? weights->lower : weights->upper;
}

static acc_t edge(real_t here, real_t there, real_t phi, const weights_t* weights)
{
    acc_t weight = weights->smooth;
    if (EDGES == 2) weight = acc_add(weight, acc_mul(weights->variation, acc_real(phi)));
    return acc_mul(weight, acc_real(here - there));
}

static real_t diffusivity(real_t here, real_t right, real_t down, const weights_t* weights)
{
    const real_t dx = right - here;
    const real_t dy = down - here;
    const acc_t square = acc_add(acc_add(acc_product(dx, dx), acc_product(dy, dy)), weights->epsilon2);
    return acc_to_real(acc_div(acc_real(1), acc_sqrt(square)));
}
