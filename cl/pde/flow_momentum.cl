// The momentum of a flow, a time step further on. Joined after flow_grid.cl.

// Difference of the neighbours across a face from it: those in a wall mirror it.
static real_t across(const component_t* q, int a, int b, int bound, __global const uint* mask, uint buried)
{
    const real_t middle = node(q, a, b);
    real_t sum = 0;
    for (int side = -1; side <= 1; side += 2) {
        const int there = b + side;
        const int in_wall = OBSTACLES && there >= 0 && there < bound && (mask[a * q->stride_a + there * q->stride_b] & buried);
        const real_t value = in_wall ? (SLIP ? middle : -middle) : node(q, a, there);
        sum = side < 0 ? value - middle : sum + (value - middle);
    }
    return sum;
}

// Differences of the four neighbours of a face from it.
static real_t laplacian(const component_t* q, int a, int b, __global const uint* mask, uint buried)
{
    const real_t middle = node(q, a, b);
    return ((node(q, a - 1, b) - middle) + (node(q, a + 1, b) - middle)) + across(q, a, b, q->nb, mask, buried);
}

// laplacian of a face whose neighbours are all stored, at word c.
static real_t inner_laplacian(__global const real_t* q, size_t c, uint stride_a, uint stride_b)
{
    const real_t middle = q[c];
    return ((q[c - stride_a] - middle) + (q[c + stride_a] - middle)) + ((q[c - stride_b] - middle) + (q[c + stride_b] - middle));
}

// g = u + viscosity * (differences of the neighbours), f likewise for v; 0 on faces of walls. `viscosity` is that times the time step
// over the square of a cell. Group g owns cells g * span .. (g + 1) * span of n. Bytes: u and v read, g and f written, and the mask
// read if there is one.
__kernel GROUP
void flow_spread(uint n, uint span, uint width, uint height, real_t lid, real_t viscosity, __global const uint* restrict mask,
                 __global const real_t* restrict u, __global const real_t* restrict v, __global real_t* restrict g,
                 __global real_t* restrict f)
{
    grid_t grid;
    grid.width = width;
    grid.height = height;
    grid.lid = lid;
    component_t along, down;
    open_u(&along, &grid, u);
    open_v(&down, &grid, v);
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    cell_t cell;
    open_cell(&cell, first + get_local_id(0), width);
    for (size_t c = first + get_local_id(0); c < last; c += WG, go_on(&cell, width)) {
        const int i = cell.i, j = cell.j;
        if (WG == 1 && !OBSTACLES && is_side(&cell, &grid, c, last)) {
            for (int l = 0; l < SIDE; ++l) g[c + l] = u[c + l] + viscosity * inner_laplacian(u, c + l, 1, width);
            for (int l = 0; l < SIDE; ++l) f[c + l] = v[c + l] + viscosity * inner_laplacian(v, c + l, width, 1);
            c += SIDE - 1;
            cell.i += SIDE - 1;
            continue;
        }
        if (!OBSTACLES && i > 0 && j > 0 && i + 1 < grid.width && j + 1 < grid.height) {
            g[c] = u[c] + viscosity * inner_laplacian(u, c, 1, width);
            f[c] = v[c] + viscosity * inner_laplacian(v, c, width, 1);
            continue;
        }
        const uint bits = OBSTACLES ? mask[c] : LEFT_OPEN | UPPER_OPEN;
        g[c] = i > 0 && (bits & LEFT_OPEN) != 0 ? u[c] + viscosity * laplacian(&along, i, j, mask, LEFT_BURIED) : 0;
        f[c] = j > 0 && (bits & UPPER_OPEN) != 0 ? v[c] + viscosity * laplacian(&down, j, i, mask, UPPER_BURIED) : 0;
    }
}

#if BY_SIDES
// SIDE faces of component `own` of the flow from word c on, the first of which is node (a, b); `other` holds the other component. Tells if
// they were carried; faces whose `bit` of the mask is not set get 0.
static int carry_side(real_t step, const component_t* own, __global const real_t* other, const component_t* held,
                      __global const uint* mask, uint bit, size_t c, int a, int b, __global real_t* carried)
{
    const real_t end_a = (real_t)own->na, end_b = (real_t)own->nb, half_cell = (real_t)0.5f;
    const int along = own->stride_a == 1;
    real_t place_a[SIDE], place_b[SIDE], found[SIDE];
    for (int l = 0; l < SIDE; ++l) {
        __global const real_t* here = other + c + l;
        __global const real_t* next = here + own->stride_b;
        const real_t sum = (*(here - own->stride_a) + *here) + (*(next - own->stride_a) + *next);
        place_a[l] = within((real_t)(along ? a + l : a) - step * own->values[c + l], end_a);
        place_b[l] = within(((real_t)(along ? b : b + l) + half_cell) - step * ((real_t)0.25f * sum), end_b) - half_cell;
    }
    if (!linear_side(held, place_a, place_b, found)) return 0;
    for (int l = 0; l < SIDE; ++l) carried[c + l] = OBSTACLES && !(mask[c + l] & bit) ? 0 : found[l];
    return 1;
}
#endif

// cu = g at where the flow (u, v) comes from, cv likewise f; 0 on faces of walls. Group g owns cells g * span .. (g + 1) * span of n.
// Bytes: u, v, g and f read, cu and cv written, and the mask read if there is one.
__kernel GROUP
void flow_carry(uint n, uint span, uint width, uint height, real_t lid, real_t step, real_t sixth,
                __global const uint* restrict mask, __global const real_t* restrict u, __global const real_t* restrict v,
                __global const real_t* restrict g, __global const real_t* restrict f, __global real_t* restrict cu,
                __global real_t* restrict cv)
{
    grid_t grid;
    grid.width = width;
    grid.height = height;
    grid.lid = lid;
    grid.step = step;
    component_t along, down, along_held, down_held;
    open_u(&along, &grid, u);
    open_v(&down, &grid, v);
    open_u(&along_held, &grid, g);
    open_v(&down_held, &grid, f);
    const real_t half_cell = (real_t)0.5f, quarter = (real_t)0.25f;
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
#if BY_SIDES
    size_t single = first; // cells before this one are carried one by one
#endif
    cell_t cell;
    open_cell(&cell, first + get_local_id(0), width);
    for (size_t c = first + get_local_id(0); c < last; c += WG, go_on(&cell, width)) {
        const int i = cell.i, j = cell.j;
#if BY_SIDES
        if (c >= single && is_side(&cell, &grid, c, last)) {
            single = c + SIDE;
            if (carry_side(step, &along, v, &along_held, mask, LEFT_OPEN, c, i, j, cu) &&
                carry_side(step, &down, u, &down_held, mask, UPPER_OPEN, c, j, i, cv)) {
                c += SIDE - 1;
                cell.i += SIDE - 1;
                continue;
            }
        }
#endif
        const uint bits = OBSTACLES ? mask[c] : LEFT_OPEN | UPPER_OPEN;
        real_t there = 0;
        if (i > 0 && (bits & LEFT_OPEN) != 0) {
            real_t x = (real_t)i, y = (real_t)j + half_cell;
            const real_t below = j + 1 < grid.height ? v[c + width - 1] + v[c + width] : 0;
            const real_t sum = (v[c - 1] + v[c]) + below;
            trace_back(&grid, &along, &down, u[c], quarter * sum, &x, &y);
            there = component_at(&along_held, sixth, x, y - half_cell);
        }
        cu[c] = there;
        there = 0;
        if (j > 0 && (bits & UPPER_OPEN) != 0) {
            real_t x = (real_t)i + half_cell, y = (real_t)j;
            const real_t beside = i + 1 < grid.width ? u[c - width + 1] + u[c + 1] : 0;
            const real_t sum = (u[c - width] + u[c]) + beside;
            trace_back(&grid, &along, &down, quarter * sum, v[c], &x, &y);
            there = component_at(&down_held, sixth, y, x - half_cell);
        }
        cv[c] = there;
    }
}
