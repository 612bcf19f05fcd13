// Divergence of a flow, and what a pressure takes away from it. Joined after flow_grid.cl.

// b = -(outflow of each cell): the right-hand side of the pressure. 0 in solid cells. Group g owns cells g * span .. (g + 1) * span.
// Bytes: u and v read, b written, and the mask read if there is one.
__kernel GROUP
void flow_divergence(uint n, uint span, uint width, uint height, __global const uint* restrict mask,
                     __global const real_t* restrict u, __global const real_t* restrict v, __global real_t* restrict b)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    cell_t cell;
    open_cell(&cell, first + get_local_id(0), width);
    for (size_t c = first + get_local_id(0); c < last; c += WG, go_on(&cell, width)) {
        const uint i = cell.i, j = cell.j;
        const real_t right = i + 1 < width ? u[c + 1] : 0;
        const real_t lower = j + 1 < height ? v[c + width] : 0;
        const int fluid = OBSTACLES ? (mask[c] & FLUID) != 0 : 1;
        b[c] = fluid ? -((right - u[c]) + (lower - v[c])) : 0;
    }
}

// u = g - (difference of the pressure over the face), v likewise; 0 on faces of walls.
// Bytes: g, f and p read, u and v written, and the mask read if there is one.
__kernel GROUP
void subtract_gradient(uint n, uint span, uint width, __global const uint* restrict mask, __global const real_t* restrict g,
                       __global const real_t* restrict f, __global const real_t* restrict p, __global real_t* restrict u,
                       __global real_t* restrict v)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    cell_t cell;
    open_cell(&cell, first + get_local_id(0), width);
    for (size_t c = first + get_local_id(0); c < last; c += WG, go_on(&cell, width)) {
        const uint i = cell.i, j = cell.j;
        const uint bits = OBSTACLES ? mask[c] : LEFT_OPEN | UPPER_OPEN;
        u[c] = i > 0 && (bits & LEFT_OPEN) != 0 ? g[c] - (p[c] - p[c - 1]) : 0;
        v[c] = j > 0 && (bits & UPPER_OPEN) != 0 ? f[c] - (p[c] - p[c - width]) : 0;
    }
}
