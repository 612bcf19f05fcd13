// Values of cells that a flow carries along. Joined after flow_grid.cl.

// Value of cell (i, j), or of the cell at the rim that is nearest to it.
static real_t cell(__global const real_t* q, const grid_t* grid, int i, int j)
{
    const int x = i < 0 ? 0 : i >= grid->width ? grid->width - 1 : i;
    const int y = j < 0 ? 0 : j >= grid->height ? grid->height - 1 : j;
    return q[y * grid->width + x];
}

static real_t lesser(real_t a, real_t b) { return b < a ? b : a; }
static real_t greater(real_t a, real_t b) { return a < b ? b : a; }

// Value at (x, y), in places of cells. Cubic ones stay within the four cells around.
static real_t cell_at(__global const real_t* q, const grid_t* grid, real_t x, real_t y)
{
    const int i = floored(x), j = floored(y);
    const real_t fx = x - (real_t)i, fy = y - (real_t)j;
    const real_t q00 = cell(q, grid, i, j), q10 = cell(q, grid, i + 1, j);
    const real_t q01 = cell(q, grid, i, j + 1), q11 = cell(q, grid, i + 1, j + 1);
    if (!CUBIC) return blend(blend(q00, q10, fx), blend(q01, q11, fx), fy);
    real_t wx[4], wy[4], line[4];
    cubic_weights(fx, grid->sixth, wx);
    cubic_weights(fy, grid->sixth, wy);
    for (int k = 0; k < 4; ++k) {
        real_t values[4];
        for (int l = 0; l < 4; ++l) values[l] = cell(q, grid, i - 1 + l, j - 1 + k);
        line[k] = weighted(wx, values);
    }
    const real_t value = weighted(wy, line);
    const real_t low = lesser(lesser(q00, q10), lesser(q01, q11));
    const real_t high = greater(greater(q00, q10), greater(q01, q11));
    return value < low ? low : value > high ? high : value;
}

// carried = q at where the flow comes from; solid cells keep their values. Group g owns cells g * span .. (g + 1) * span.
// Bytes: u, v and q read, carried written, and the mask read if there is one.
__kernel GROUP
void flow_transport(uint n, uint span, uint width, uint height, real_t lid, real_t step, real_t sixth,
                    __global const uint* restrict mask, __global const real_t* restrict u, __global const real_t* restrict v,
                    __global const real_t* restrict q, __global real_t* restrict carried)
{
    grid_t grid;
    grid.width = width;
    grid.height = height;
    grid.lid = lid;
    grid.step = step;
    grid.sixth = sixth;
    component_t along, down;
    open_u(&along, &grid, u);
    open_v(&down, &grid, v);
    const real_t half_cell = (real_t)0.5f;
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t c = first + get_local_id(0); c < last; c += WG) {
        const int j = (uint)c / width;
        const int i = (uint)c - (uint)j * width;
        if (OBSTACLES && !(mask[c] & FLUID)) {
            carried[c] = q[c];
            continue;
        }
        real_t x = (real_t)i + half_cell, y = (real_t)j + half_cell;
        const real_t vx = half_cell * (u[c] + node(&along, i + 1, j));
        const real_t vy = half_cell * (v[c] + node(&down, j + 1, i));
        trace_back(&grid, &along, &down, vx, vy, &x, &y);
        carried[c] = cell_at(q, &grid, x - half_cell, y - half_cell);
    }
}
