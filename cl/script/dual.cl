// Dual variables of the total variation of an image, pixel by pixel: what launches over an image do. Joined after common.cl.
//
// An image x has `width` pixels a row. Its differences D x go to the right and downwards and are 0 at the rims. Each pixel has a dual pair p
// and, if ALONG is 1, a dual number q for the derivative along a direction e.
//
// Required macros:
//   ALONG  1: the derivative along a direction has a term of its own

// Registers of a column, from the first of an image on.
// ASCENT_STEP: length of a step of p and q
// LIMIT: most that |p| may be: the weight of total variation
// ALONG_LIMIT: most that |q| may be
// ALONG_X: the direction e

// Numbers in those registers.
typedef struct { acc_t limit; real_t step, along_limit, along_x, along_y; } dual_weights_t;

static dual_weights_t dual_weights(acc_t step, acc_t limit, acc_t along_limit, acc_t along_x, acc_t along_y)
{
    dual_weights_t weights;
    weights.limit = limit;
    weights.step = acc_to_real(step);
    weights.along_limit = acc_to_real(along_limit);
    weights.along_x = acc_to_real(along_x);
    weights.along_y = acc_to_real(along_y);
    return weights;
}

// The weights of a column whose registers are `held`, in either memory.
#define DUAL_WEIGHTS(held) dual_weights((held)[ASCENT_STEP], (held)[LIMIT], (held)[ALONG_LIMIT], (held)[ALONG_X], (held)[ALONG_Y])

// p and q of pixel i of `n` in column c a step up: p += step D (2 x - x_old), then into the disc of radius `limit`;
// q += step e.D (2 x - x_old), then into its limits. Returns the square of their change.
static acc_t ascend_at(uint n, uint width, dual_weights_t weights, size_t i, uint c, __global const real_t* x,
                       __global const real_t* x_old, __global real_t* px, __global real_t* py, __global real_t* q)
{
    const size_t at = i * COLUMNS + c;
    const acc_t limit = weights.limit;
    const int has_right = (uint)i % width + 1 < width, has_below = i + width < n;
    // Loads that wait for no condition are under way together. At the rims they read pixel i.
    const size_t right = has_right ? at + COLUMNS : at;
    const size_t below = has_below ? at + width * (size_t)COLUMNS : at;
    const real_t here = 2 * x[at] - x_old[at];
    const real_t to_right = 2 * x[right] - x_old[right] - here;
    const real_t downwards = 2 * x[below] - x_old[below] - here;
    const real_t last_x = px[at], last_y = py[at];
    const real_t dx = has_right ? to_right : 0, dy = has_below ? downwards : 0;
    real_t u = last_x + weights.step * dx, v = last_y + weights.step * dy;
    const acc_t square = acc_add(acc_product(u, u), acc_product(v, v));
    if (acc_less(acc_mul(limit, limit), square)) {
        const acc_t factor = acc_div(limit, acc_sqrt(square));
        u = acc_to_real(acc_mul(factor, acc_real(u)));
        v = acc_to_real(acc_mul(factor, acc_real(v)));
    }
    px[at] = u;
    py[at] = v;
    acc_t change = acc_add(acc_product(u - last_x, u - last_x), acc_product(v - last_y, v - last_y));
    if (ALONG) {
        const real_t most = weights.along_limit;
        const real_t last = q[at];
        real_t w = last + weights.step * (weights.along_x * dx + weights.along_y * dy);
        w = w < -most ? -most : w > most ? most : w;
        q[at] = w;
        change = acc_add(change, acc_product(w - last, w - last));
    }
    return change;
}

// g -= D'p + (e.D)'q at pixel i of `n` in column c.
static void subtract_at(uint n, uint width, dual_weights_t weights, size_t i, uint c, __global const real_t* px,
                        __global const real_t* py, __global const real_t* q, __global real_t* g)
{
    const size_t at = i * COLUMNS + c;
    const uint column = (uint)i % width;
    const int has_left = column > 0, has_right = column + 1 < width, has_above = i >= width, has_below = i + width < n;
    const size_t left = has_left ? at - COLUMNS : at;
    const size_t above = has_above ? at - width * (size_t)COLUMNS : at;
    const real_t from_left = px[left], from_above = py[above];
    real_t value = (has_left ? from_left : 0) - px[at];
    value = value + ((has_above ? from_above : 0) - py[at]);
    if (ALONG) {
        const real_t own = q[at], q_left = q[left], q_above = q[above];
        const real_t across = (has_left ? q_left : 0) - (has_right ? own : 0);
        const real_t along = (has_above ? q_above : 0) - (has_below ? own : 0);
        value = value + (weights.along_x * across + weights.along_y * along);
    }
    g[at] = g[at] - value;
}
