// The correction term of CGNR by itself, for one image. Joined after correction.cl.

// Diffusivity of pixel i of x, 0 without total variation.
static real_t diffusivity_at(uint n, uint width, __global const real_t* x, uint i, const weights_t* weights)
{
    if (EDGES < 2) return 0;
    const real_t here = x[i];
    const real_t right = i % width + 1 < width ? x[i + 1] : here;
    const real_t down = i + width < n ? x[i + width] : here;
    return diffusivity(here, right, down, weights);
}

// out = F(x, v). If `own` is not 0, v is x, and the bound is taken from a pixel that violates it. Group g owns pixels g * span ..
// (g + 1) * span; its items interleave.
// Bytes: n real_t of x and of v read, n written; neighbours come from a cache.
__kernel GROUP
void cgnr_correction(uint n, uint span, uint width, uint own, __global const acc_t* restrict weights,
                     __global const real_t* restrict x, __global const real_t* restrict v, __global real_t* restrict out)
{
    weights_t held;
    read_weights(&held, weights);
    const uint first = get_group_id(0) * span;
    const uint last = min(first + span, n);
    for (uint i = first + get_local_id(0); i < last; i += WG) {
        const real_t here = v[i];
        acc_t sum = acc_mul(held.tikhonov, acc_real(here));
        if (EDGES > 0) {
            const uint column = i % width;
            const real_t phi = diffusivity_at(n, width, x, i, &held);
            if (column + 1 < width) sum = acc_add(sum, edge(here, v[i + 1], phi, &held));
            if (i + width < n) sum = acc_add(sum, edge(here, v[i + width], phi, &held));
            if (column > 0) sum = acc_add(sum, edge(here, v[i - 1], diffusivity_at(n, width, x, i - 1, &held), &held));
            if (i >= width)
                sum = acc_add(sum, edge(here, v[i - width], diffusivity_at(n, width, x, i - width, &held), &held));
        }
        int violated;
        const real_t bound = violated_bound(x[i], &held, &violated);
        if (violated) sum = acc_add(sum, acc_mul(held.box, acc_real(own ? here - bound : here)));
        out[i] = acc_to_real(sum);
    }
}
