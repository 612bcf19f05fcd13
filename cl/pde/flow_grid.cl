// Staggered grids: how velocities and values of cells are read between their nodes, and where the flow comes from. Joined after
// common.cl.
//
// Lengths are in units of a cell. Cell (i, j) has its middle at (i + 1/2, j + 1/2); j counts downwards, like the rows of a picture.
// u (to the right) lies on the left face of a cell, at (i, j + 1/2), and v (downwards) on its upper face, at (i + 1/2, j). The faces at
// the far rims are not stored: nothing flows through a rim, so they are 0. A node beyond a rim mirrors one inside it.
//
// Required macros:
//   OBSTACLES  1: `mask` says of each cell what is solid
//   CUBIC      1: values between nodes by cubic polynomials; 0: linear
//   MIDPOINT   1: the flow is traced back by the midpoint rule; 0: by Euler's
//   SLIP       1: flow slips along walls; 0: it sticks to them

// Bits of a cell in `mask`.
// FLUID: fluid, not solid
// LEFT_OPEN: both cells beside its left face are fluid
// UPPER_OPEN: both cells beside its upper face are fluid
// LEFT_BURIED: both cells beside its left face are solid
// UPPER_BURIED: both cells beside its upper face are solid

// PoCL calls functions that several places name, which costs more than they do.
#define INLINED static __attribute__((always_inline))

typedef struct {
    int width, height;
    real_t lid;    // velocity to the right of the wall above row 0
    real_t step;   // time step / cell
    real_t sixth;  // 1/6, rounded
} grid_t;

// A cell, and how far it is to the next one of the same item: one division instead of one for each cell.
typedef struct {
    int i, j;
    int across, down;
} cell_t;

static void open_cell(cell_t* cell, size_t c, uint width)
{
    cell->j = (uint)c / width;
    cell->i = (uint)c - (uint)cell->j * width;
    cell->down = WG / width;
    cell->across = WG - (uint)cell->down * width;
}

static void go_on(cell_t* cell, uint width)
{
    cell->i += cell->across;
    cell->j += cell->down;
    if (cell->i >= (int)width) {
        cell->i -= width;
        ++cell->j;
    }
}

// A component of the velocity: `a` counts nodes along it, `b` across.
typedef struct {
    __global const real_t* values;
    int na, nb;            // cells along and across
    uint stride_a, stride_b;
    real_t wall;           // velocity of the wall before the first node across
} component_t;

static void open_u(component_t* q, const grid_t* grid, __global const real_t* u)
{
    q->values = u;
    q->na = grid->width;
    q->nb = grid->height;
    q->stride_a = 1;
    q->stride_b = grid->width;
    q->wall = grid->lid;
}

static void open_v(component_t* q, const grid_t* grid, __global const real_t* v)
{
    q->values = v;
    q->na = grid->height;
    q->nb = grid->width;
    q->stride_a = grid->width;
    q->stride_b = 1;
    q->wall = 0;
}

// The largest integer that is not above x, which is small.
static int floored(real_t x)
{
    const int whole = (int)x;
    return x < (real_t)whole ? whole - 1 : whole;
}

// x, or the end of 0 .. last that it lies beyond; 0 for NaN.
static real_t within(real_t x, real_t last) { return x > 0 ? (x < last ? x : last) : 0; }

// Node (a, b), up to two places beyond the rims.
static real_t node(const component_t* q, int a, int b)
{
    int mirrored = 0;
    if (a < 0) {
        a = a == -1 ? 1 : 2; // Oclgrind 21 does not know what Clang makes of -a here
        mirrored = 1;
    }
    if (a > q->na) {
        a = 2 * q->na - a;
        mirrored = 1;
    }
    const int before = b < 0;
    const int beyond = before || b >= q->nb;
    if (before) b = -1 - b;
    else if (beyond) b = 2 * q->nb - 1 - b;
    const real_t found = a == q->na ? 0 : q->values[a * q->stride_a + b * q->stride_b];
    const real_t value = mirrored ? -found : found;
    if (!beyond || SLIP) return value;
    const real_t wall = before ? q->wall : 0;
    return (wall + wall) - value;
}

static real_t blend(real_t from, real_t to, real_t part) { return from + part * (to - from); }

// Value at (a, b) between four nodes.
INLINED real_t linear_at(const component_t* q, real_t a, real_t b)
{
    const int a0 = floored(a), b0 = floored(b);
    const real_t fa = a - (real_t)a0, fb = b - (real_t)b0;
    if (a0 >= 0 && b0 >= 0 && a0 + 1 < q->na && b0 + 1 < q->nb) {
        __global const real_t* at = q->values + a0 * q->stride_a + b0 * q->stride_b;
        return blend(blend(at[0], at[q->stride_a], fa), blend(at[q->stride_b], at[q->stride_a + q->stride_b], fa), fb);
    }
    return blend(blend(node(q, a0, b0), node(q, a0 + 1, b0), fa), blend(node(q, a0, b0 + 1), node(q, a0 + 1, b0 + 1), fa), fb);
}

// One item works on SIDE cells of a row at once, in loops that compilers make vector instructions of; where the flow is traced, if that is
// done in the simplest way.
#define SIDE 32
#define BY_SIDES (WG == 1 && !CUBIC && !MIDPOINT)

// Tells if SIDE cells from word c on are of one row, with neighbours on all sides.
static int is_side(const cell_t* cell, const grid_t* grid, size_t c, size_t last)
{
    const int inner = cell->i > 0 && cell->j > 0 && cell->i + SIDE < grid->width && cell->j + 1 < grid->height;
    return inner && c + SIDE <= last;
}

#if BY_SIDES
// Values at SIDE places between nodes. Tells if each has four nodes; if one has not, none is written.
static int linear_side(const component_t* q, const real_t* a, const real_t* b, real_t* found)
{
    int na[SIDE], nb[SIDE];
    real_t fa[SIDE], fb[SIDE], near[SIDE], further[SIDE], beside[SIDE], far[SIDE];
    int outside = 0;
    for (int l = 0; l < SIDE; ++l) {
        na[l] = floored(a[l]);
        nb[l] = floored(b[l]);
        fa[l] = a[l] - (real_t)na[l];
        fb[l] = b[l] - (real_t)nb[l];
        outside |= (na[l] < 0) | (nb[l] < 0) | (na[l] + 1 >= q->na) | (nb[l] + 1 >= q->nb);
    }
    if (outside) return 0;
    // Most lie side by side as well.
    const int along = q->stride_a == 1;
    int apart = 0;
    for (int l = 0; l < SIDE; ++l)
        apart |= (na[l] - na[0] - (along ? l : 0)) | (nb[l] - nb[0] - (along ? 0 : l));
    if (apart) {
        for (int l = 0; l < SIDE; ++l) {
            __global const real_t* at = q->values + na[l] * q->stride_a + nb[l] * q->stride_b;
            near[l] = at[0];
            further[l] = at[q->stride_a];
            beside[l] = at[q->stride_b];
            far[l] = at[q->stride_a + q->stride_b];
        }
    } else {
        __global const real_t* at = q->values + na[0] * q->stride_a + nb[0] * q->stride_b;
        for (int l = 0; l < SIDE; ++l) {
            near[l] = at[l];
            further[l] = at[q->stride_a + l];
            beside[l] = at[q->stride_b + l];
            far[l] = at[q->stride_a + q->stride_b + l];
        }
    }
    for (int l = 0; l < SIDE; ++l)
        found[l] = blend(blend(near[l], further[l], fa[l]), blend(beside[l], far[l], fa[l]), fb[l]);
    return 1;
}
#endif

// Weights of four nodes at -1, 0, 1, 2 for the value at f.
static void cubic_weights(real_t f, real_t sixth, real_t* w)
{
    const real_t before = f + 1, behind = f - 1, further = f - 2;
    w[0] = -(sixth * (f * behind * further));
    w[1] = (real_t)0.5f * (before * behind * further);
    w[2] = -((real_t)0.5f * (before * f * further));
    w[3] = sixth * (before * f * behind);
}

static real_t weighted(const real_t* w, const real_t* q) { return (w[0] * q[0] + w[1] * q[1]) + (w[2] * q[2] + w[3] * q[3]); }

// Value at (a, b) by cubic polynomials through sixteen nodes.
static real_t cubic_at(const component_t* q, real_t sixth, real_t a, real_t b)
{
    const int a0 = floored(a), b0 = floored(b);
    real_t wa[4], wb[4], line[4];
    cubic_weights(a - (real_t)a0, sixth, wa);
    cubic_weights(b - (real_t)b0, sixth, wb);
    const int inside = a0 >= 1 && b0 >= 1 && a0 + 2 < q->na && b0 + 2 < q->nb;
    for (int k = 0; k < 4; ++k) {
        real_t values[4];
        for (int l = 0; l < 4; ++l)
            values[l] = inside ? q->values[(a0 - 1 + l) * q->stride_a + (b0 - 1 + k) * q->stride_b]
                               : node(q, a0 - 1 + l, b0 - 1 + k);
        line[k] = weighted(wa, values);
    }
    return weighted(wb, line);
}

INLINED real_t component_at(const component_t* q, real_t sixth, real_t a, real_t b)
{
    return CUBIC ? cubic_at(q, sixth, a, b) : linear_at(q, a, b);
}

// Traces the flow at (x, y), of velocity (vx, vy), back to its place a time step ago.
INLINED void trace_back(const grid_t* grid, const component_t* u, const component_t* v, real_t vx, real_t vy, real_t* x, real_t* y)
{
    const real_t width = (real_t)grid->width, height = (real_t)grid->height;
    if (MIDPOINT) {
        const real_t half_step = (real_t)0.5f * grid->step;
        const real_t mx = within(*x - half_step * vx, width), my = within(*y - half_step * vy, height);
        vx = linear_at(u, mx, my - (real_t)0.5f);
        vy = linear_at(v, my, mx - (real_t)0.5f);
    }
    *x = within(*x - grid->step * vx, width);
    *y = within(*y - grid->step * vy, height);
}
