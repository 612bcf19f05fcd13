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
    for (size_t c = first + get_local_id(0); c < last; c += WG) {
        const int j = (uint)c / width;
        const int i = (uint)c - (uint)j * width;
        if (!OBSTACLES && i > 0 && j > 0 && i + 1 < grid.width && j + 1 < grid.height) {
            g[c] = u[c] + viscosity * inner_laplacian(u, c, 1, width);
            f[c] = v[c] + viscosity * inner_laplacian(v, c, width, 1);
            continue;
        }
        const uint bits = OBSTACLES ? mask[c] : LEFT_OPEN | UPPER_OPEN;
        g[c] = i > 0 && (bits & LEFT_OPEN) ? u[c] + viscosity * laplacian(&along, i, j, mask, LEFT_BURIED) : 0;
        f[c] = j > 0 && (bits & UPPER_OPEN) ? v[c] + viscosity * laplacian(&down, j, i, mask, UPPER_BURIED) : 0;
    }
}

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
    for (size_t c = first + get_local_id(0); c < last; c += WG) {
        const int j = (uint)c / width;
        const int i = (uint)c - (uint)j * width;
        const uint bits = OBSTACLES ? mask[c] : LEFT_OPEN | UPPER_OPEN;
        real_t there = 0;
        if (i > 0 && (bits & LEFT_OPEN)) {
            real_t x = (real_t)i, y = (real_t)j + half_cell;
            const real_t sum = (v[c - 1] + v[c]) + (node(&down, j + 1, i - 1) + node(&down, j + 1, i));
            trace_back(&grid, &along, &down, u[c], quarter * sum, &x, &y);
            there = component_at(&along_held, sixth, x, y - half_cell);
        }
        cu[c] = there;
        there = 0;
        if (j > 0 && (bits & UPPER_OPEN)) {
            real_t x = (real_t)i + half_cell, y = (real_t)j;
            const real_t sum = (u[c - width] + u[c]) + (node(&along, i + 1, j - 1) + node(&along, i + 1, j));
            trace_back(&grid, &along, &down, quarter * sum, v[c], &x, &y);
            there = component_at(&down_held, sixth, y, x - half_cell);
        }
        cv[c] = there;
    }
}
