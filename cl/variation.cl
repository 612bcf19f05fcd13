// Total variation by its dual variables: an image x of `width` pixels a row, differences D x to the right and downwards (0 at the
// rims), a dual pair p for each pixel, and, if ALONG is 1, a dual number q for the derivative along a direction e. Joined after
// recurrence.cl.
//
// Required macros:
//   ALONG  1: the derivative along a direction has a term of its own

// Registers of a column, from number `first` of the shape on.
#define STEP 0         // length of a step of p and q
#define LIMIT 1        // most that |p| may be: the weight of total variation
#define ALONG_LIMIT 2  // most that |q| may be
#define ALONG_X 3      // the direction e
#define ALONG_Y 4

// `n` pixels, `width` in a row, in `chunks` chunks of `chunk`, `per_group` of them for each group; the slot whose status and
// registers are read; the first register; where the chunk sums go.
typedef struct { uint n, width, chunk, chunks, per_group, slot, first, place; } shape_t;

// A step at pixel i in column c; returns the square of the change of p and q.
static acc_t ascend_at(const shape_t* shape, __global const acc_t* weights, size_t i, uint c, __global const real_t* x,
                       __global const real_t* x_old, __global real_t* px, __global real_t* py, __global real_t* q)
{
    const size_t at = i * COLUMNS + c;
    const real_t step = acc_to_real(weights[STEP]);
    const acc_t limit = weights[LIMIT];
    const real_t here = 2 * x[at] - x_old[at];
    real_t dx = 0, dy = 0;
    if (i % shape->width + 1 < shape->width) dx = 2 * x[at + COLUMNS] - x_old[at + COLUMNS] - here;
    if (i + shape->width < shape->n) {
        const size_t down = at + shape->width * (size_t)COLUMNS;
        dy = 2 * x[down] - x_old[down] - here;
    }
    const real_t last_x = px[at], last_y = py[at];
    real_t u = last_x + step * dx, v = last_y + step * dy;
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
        const real_t most = acc_to_real(weights[ALONG_LIMIT]);
        const real_t last = q[at];
        real_t w = last + step * (acc_to_real(weights[ALONG_X]) * dx + acc_to_real(weights[ALONG_Y]) * dy);
        w = w < -most ? -most : w > most ? most : w;
        q[at] = w;
        change = acc_add(change, acc_product(w - last, w - last));
    }
    return change;
}

// p and q a step up: p += step D (2 x - x_old), then into the disc of radius LIMIT; q += step e.D (2 x - x_old), then into its
// limits. Sums up the squares of their changes. Group g owns chunks g * per_group .. of `chunks`.
// Bytes: x, x_old, p and q read, p and q written.
__kernel GROUP
void variation_ascend(shape_t shape, __global const real_t* restrict x, __global const real_t* restrict x_old,
                      __global real_t* restrict px, __global real_t* restrict py, __global real_t* restrict q,
                      __global const acc_t* restrict registers, __global const int* restrict status, __global acc_t* sums)
{
    __local acc_t scratch[WG];
    const uint slot = get_local_id(0) / CHUNK_ITEMS;
    const uint place = get_local_id(0) & (CHUNK_ITEMS - 1);
    const uint first_chunk = get_group_id(0) * shape.per_group;
    const uint last_chunk = min(first_chunk + shape.per_group, shape.chunks);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (status[(shape.slot * COLUMNS + c) * STATES] != RUNNING) continue;
        __global const acc_t* weights = registers + (shape.slot * COLUMNS + c) * REGISTERS + shape.first;
        for (uint base = first_chunk; base < last_chunk; base += SIDE_BY_SIDE) {
            const uint mine = base + slot;
            const size_t first = mine * (size_t)shape.chunk;
            const size_t last = mine < last_chunk ? min(first + shape.chunk, (size_t)shape.n) : first;
            acc_t lane[ITEM_LANES];
            for (uint j = 0; j < ITEM_LANES; ++j) lane[j] = acc_real(0);
            for (size_t block = first; block < last; block += LANES) {
                const uint lanes = WG == 1 ? min((size_t)ITEM_LANES, last - block) : ITEM_LANES;
                for (uint j = 0; j < lanes; ++j) {
                    const size_t i = block + place + j * WG;
                    if (i < last) lane[j] = acc_add(lane[j], ascend_at(&shape, weights, i, c, x, x_old, px, py, q));
                }
            }
            acc_t held[1];
            held[0] = item_fold(lane, ITEM_LANES);
            run_folds(held, 1, place, CHUNK_ITEMS, scratch + slot * CHUNK_ITEMS);
            if (place == 0 && mine < last_chunk) sums[shape.place + c * (size_t)shape.chunks + mine] = held[0];
        }
    }
}

// g -= D'p + (e.D)'q.
// Bytes: p, q and g read, g written.
__kernel GROUP
void variation_subtract(shape_t shape, __global const real_t* restrict px, __global const real_t* restrict py,
                        __global const real_t* restrict q, __global real_t* restrict g,
                        __global const acc_t* restrict registers, __global const int* restrict status)
{
    const uint first_chunk = get_group_id(0) * shape.per_group;
    const size_t first = first_chunk * (size_t)shape.chunk;
    const size_t last = min((first_chunk + shape.per_group) * (size_t)shape.chunk, (size_t)shape.n);
    for (uint c = 0; c < COLUMNS; ++c) {
        if (status[(shape.slot * COLUMNS + c) * STATES] != RUNNING) continue;
        __global const acc_t* weights = registers + (shape.slot * COLUMNS + c) * REGISTERS + shape.first;
        for (size_t i = first + get_local_id(0); i < last; i += WG) {
            const size_t at = i * COLUMNS + c;
            const size_t up = at - shape.width * (size_t)COLUMNS; // of use beyond the first row alone
            const uint column = i % shape.width;
            real_t value = (column > 0 ? px[at - COLUMNS] : 0) - px[at];
            value = value + ((i >= shape.width ? py[up] : 0) - py[at]);
            if (ALONG) {
                const real_t own = q[at];
                const real_t across = (column > 0 ? q[at - COLUMNS] : 0) - (column + 1 < shape.width ? own : 0);
                const real_t along = (i >= shape.width ? q[up] : 0) - (i + shape.width < shape.n ? own : 0);
                value = value + (acc_to_real(weights[ALONG_X]) * across + acc_to_real(weights[ALONG_Y]) * along);
            }
            g[at] = g[at] - value;
        }
    }
}
