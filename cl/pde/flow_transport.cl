// Values of cells that a flow carries along. Joined after flow_grid.cl.

// Value of cell (i, j), or of the cell at the rim that is nearest to it.
static real_t value_of(__global const real_t* q, const grid_t* grid, int i, int j)
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
    const real_t q00 = value_of(q, grid, i, j), q10 = value_of(q, grid, i + 1, j);
    const real_t q01 = value_of(q, grid, i, j + 1), q11 = value_of(q, grid, i + 1, j + 1);
    if (!CUBIC) return blend(blend(q00, q10, fx), blend(q01, q11, fx), fy);
    real_t wx[4], wy[4], line[4];
    cubic_weights(fx, grid->sixth, wx);
    cubic_weights(fy, grid->sixth, wy);
    for (int k = 0; k < 4; ++k) {
        real_t values[4];
        for (int l = 0; l < 4; ++l) values[l] = value_of(q, grid, i - 1 + l, j - 1 + k);
        line[k] = weighted(wx, values);
    }
    const real_t value = weighted(wy, line);
    const real_t low = lesser(lesser(q00, q10), lesser(q01, q11));
    const real_t high = greater(greater(q00, q10), greater(q01, q11));
    return value < low ? low : value > high ? high : value;
}

#if BY_SIDES
// SIDE cells from word c on, cell (i, j) and further on: tells if they were carried.
static int transport_side(const grid_t* grid, const component_t* cells, __global const uint* mask, __global const real_t* u,
                          __global const real_t* v, size_t c, int i, int j, __global real_t* carried)
{
    const real_t width = (real_t)grid->width, height = (real_t)grid->height, half_cell = (real_t)0.5f;
    real_t a[SIDE], b[SIDE], found[SIDE];
    for (int l = 0; l < SIDE; ++l) {
        const real_t vx = half_cell * (u[c + l] + u[c + l + 1]);
        const real_t vy = half_cell * (v[c + l] + v[c + l + grid->width]);
        a[l] = within(((real_t)(i + l) + half_cell) - grid->step * vx, width) - half_cell;
        b[l] = within(((real_t)j + half_cell) - grid->step * vy, height) - half_cell;
    }
    if (!linear_side(cells, a, b, found)) return 0;
    for (int l = 0; l < SIDE; ++l) carried[c + l] = OBSTACLES && !(mask[c + l] & FLUID) ? cells->values[c + l] : found[l];
    return 1;
}
#endif

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
#if BY_SIDES
    component_t cells;
    open_u(&cells, &grid, q);
    size_t single = first; // cells before this one are carried one by one
#endif
    cell_t cell;
    open_cell(&cell, first + get_local_id(0), width);
    for (size_t c = first + get_local_id(0); c < last; c += WG, go_on(&cell, width)) {
        const int i = cell.i, j = cell.j;
#if BY_SIDES
        if (c >= single && is_side(&cell, &grid, c, last)) {
            single = c + SIDE;
            if (transport_side(&grid, &cells, mask, u, v, c, i, j, carried)) {
                c += SIDE - 1;
                cell.i += SIDE - 1;
                continue;
            }
        }
#endif
        if (OBSTACLES && !(mask[c] & FLUID)) {
            carried[c] = q[c];
            continue;
        }
        real_t x = (real_t)i + half_cell, y = (real_t)j + half_cell;
        const real_t vx = half_cell * (u[c] + (i + 1 < grid.width ? u[c + 1] : 0));
        const real_t vy = half_cell * (v[c] + (j + 1 < grid.height ? v[c + width] : 0));
        trace_back(&grid, &along, &down, vx, vy, &x, &y);
        carried[c] = cell_at(q, &grid, x - half_cell, y - half_cell);
    }
}
