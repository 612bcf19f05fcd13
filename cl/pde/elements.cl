// Products of the matrices of finite elements, which are never formed: sum factorisation, an axis at a time.
//
// A cell has POINTS shape functions along each axis (degree + 1): the two linear ones, then integrated Legendre polynomials. On a box the
// stiffness matrix of an axis is block diagonal: that of the two linear functions, and the identity for the others. The mass matrix of an axis
// has few entries.
// On a mapped cell (MAPPED) values and slopes go to POINTS Gauss points along each axis, are multiplied there by the metric, and go back.
//
// A group works on SETS * WIDE cells at once. An item takes a column of values along an axis, of WIDE cells that lie interleaved.

#define PLANE (POINTS * POINTS)
#define CELL (PLANE * POINTS)
// Rows of odd length: items that read columns meet other banks.
#define ROW (POINTS | 1)
#define BUFFERS (MAPPED ? 3 : 2)
#define PLACE(buffer, i, j, k) (((((buffer) * SETS + set) * PLANE + (k) * POINTS + (j)) * ROW + (i)) * WIDE + l)
// NO_COEFFICIENT: number of a coefficient that is 0.
#define UNROLLED _Pragma("unroll") for
#define EACH UNROLLED (uint l = 0; l < WIDE; ++l)
#define EVERY_COLUMN for (uint w = get_local_id(0); w < SETS * PLANE; w += WG)

// Shape functions that have a common integral along an axis.
#define COUPLED(o, i) ((o) < 2 || (i) < 2 ? (o) < 4 && (i) < 4 : (o) == (i) || (o) == (i) + 2 || (i) == (o) + 2)

// Numbers known to the compiler: boxes have the integrals of products of shape functions, mapped cells their values in the Gauss points,
// then their slopes there.
__constant real_t table[] = {TABLE};

// to = matrix * from, along a column. Entry (o, i) of the matrix is table[first + o * down + i * right].
static void multiply(real_t (*to)[WIDE], uint first, uint down, uint right, real_t (*from)[WIDE])
{
    UNROLLED (uint o = 0; o < POINTS; ++o) {
        EACH to[o][l] = 0;
        UNROLLED (uint i = 0; i < POINTS; ++i)
            EACH to[o][l] += table[first + o * down + i * right] * from[i][l];
    }
}
#define TO_VALUES(to, from) multiply(to, 0, POINTS, 1, from)
#define TO_SLOPES(to, from) multiply(to, PLANE, POINTS, 1, from)
#define FROM_VALUES(to, from) multiply(to, 0, 1, POINTS, from)
#define FROM_SLOPES(to, from) multiply(to, PLANE, 1, POINTS, from)

// The matrix of values of a box: entries that are 0 take no part.
static void multiply_mass(real_t (*to)[WIDE], real_t (*from)[WIDE])
{
    UNROLLED (uint o = 0; o < POINTS; ++o) {
        EACH to[o][l] = 0;
        UNROLLED (uint i = 0; i < POINTS; ++i)
            if (COUPLED(o, i)) EACH to[o][l] += table[o * POINTS + i] * from[i][l];
    }
}

// The matrix of slopes of a box.
static void multiply_stiffness(real_t (*to)[WIDE], real_t (*from)[WIDE])
{
    EACH to[0][l] = from[0][l] - from[1][l];
    EACH to[1][l] = from[1][l] - from[0][l];
    UNROLLED (uint o = 2; o < POINTS; ++o)
        EACH to[o][l] = from[o][l];
}

// parts, y = the products of `count` cells with their coefficients. `ids` below `free` are places in x; others, less `free`, are places in
// hung; NO_COEFFICIENT stands for 0. Products of shape functions inside a cell go to y, which belong to no other cell; the others to
// parts, from `start` on, in the order i, k, j (MAPPED: k, j, i), the last one fastest.
// Bytes for each cell: CELL numbers of ids; those of x, and parts or y written; a factor for each axis, or 6 CELL of the metric.
__kernel GROUP
void apply_elements(uint count, uint start, uint batches, uint free, __global const uint* restrict ids,
                    __global const real_t* restrict geometry,
                    __global const real_t* restrict x, __global const real_t* restrict hung, __global real_t* restrict parts,
                    __global real_t* restrict y)
{
    __local real_t held[BUFFERS * SETS * PLANE * ROW * WIDE];
    for (uint batch = 0; batch < batches; ++batch) {
        const size_t first = (get_group_id(0) * (size_t)batches + batch) * (SETS * WIDE);

        // Coefficients, along k.
        EVERY_COLUMN {
            const uint set = w / PLANE, t = w - set * PLANE;
            const uint j = t / POINTS, i = t - j * POINTS;
            real_t u[POINTS][WIDE], a[POINTS][WIDE], b[POINTS][WIDE];
            // All numbers before all loads: these wait for memory together.
            uint id[POINTS][WIDE];
            UNROLLED (uint k = 0; k < POINTS; ++k)
                EACH {
                    const size_t cell = first + set * WIDE + l;
                    id[k][l] = cell < count ? ids[cell * CELL + k * PLANE + t] : NO_COEFFICIENT;
                }
            UNROLLED (uint k = 0; k < POINTS; ++k)
                EACH {
                    u[k][l] = id[k][l] < free ? x[id[k][l]] : 0;
#if HANGING
                    if (id[k][l] >= free && id[k][l] != NO_COEFFICIENT) u[k][l] = hung[id[k][l] - free];
#endif
                }
#if MAPPED
            TO_VALUES(a, u);
            TO_SLOPES(b, u);
#else
            multiply_mass(a, u);
            multiply_stiffness(b, u);
#endif
            UNROLLED (uint k = 0; k < POINTS; ++k)
                EACH {
                    held[PLACE(0, i, j, k)] = a[k][l];
                    held[PLACE(1, i, j, k)] = b[k][l];
                }
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        // Along j.
        EVERY_COLUMN {
            const uint set = w / PLANE, t = w - set * PLANE;
            const uint k = t / POINTS, i = t - k * POINTS;
            real_t a[POINTS][WIDE], b[POINTS][WIDE], c[POINTS][WIDE], d[POINTS][WIDE], e[POINTS][WIDE];
            UNROLLED (uint j = 0; j < POINTS; ++j)
                EACH {
                    a[j][l] = held[PLACE(0, i, j, k)];
                    b[j][l] = held[PLACE(1, i, j, k)];
                }
#if MAPPED
            TO_VALUES(c, a);
            TO_SLOPES(d, a);
            TO_VALUES(e, b);
            UNROLLED (uint j = 0; j < POINTS; ++j)
                EACH {
                    held[PLACE(0, i, j, k)] = c[j][l];
                    held[PLACE(1, i, j, k)] = d[j][l];
                    held[PLACE(2, i, j, k)] = e[j][l];
                }
#else
            multiply_mass(c, a);
            multiply_stiffness(d, a);
            multiply_mass(e, b);
            EACH {
                const size_t cell = first + set * WIDE + l;
                const real_t gy = cell < count ? geometry[3 * cell + 1] : 0, gz = cell < count ? geometry[3 * cell + 2] : 0;
                UNROLLED (uint j = 0; j < POINTS; ++j) {
                    held[PLACE(0, i, j, k)] = c[j][l];
                    held[PLACE(1, i, j, k)] = gy * d[j][l] + gz * e[j][l];
                }
            }
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);

#if !MAPPED
        // Along i, and out.
        EVERY_COLUMN {
            const uint set = w / PLANE, t = w - set * PLANE;
            const uint k = t / POINTS, j = t - k * POINTS;
            real_t a[POINTS][WIDE], b[POINTS][WIDE], c[POINTS][WIDE], d[POINTS][WIDE];
            UNROLLED (uint i = 0; i < POINTS; ++i)
                EACH {
                    a[i][l] = held[PLACE(0, i, j, k)];
                    b[i][l] = held[PLACE(1, i, j, k)];
                }
            multiply_stiffness(c, a);
            multiply_mass(d, b);
            EACH {
                const size_t cell = first + set * WIDE + l;
                if (cell < count) {
                    const real_t gx = geometry[3 * cell];
                    // Inside, numbers follow each other.
                    const uint inside = POINTS > 2 && j > 1 && k > 1
                        ? ids[cell * CELL + CELL - 1] + 1 - (POINTS - 2) * (POINTS - 2) * (POINTS - 2) + (k - 2) * (POINTS - 2) + j - 2 : 0;
                    UNROLLED (uint i = 0; i < POINTS; ++i) {
                        const real_t value = gx * c[i][l] + d[i][l];
                        if (i > 1 && j > 1 && k > 1)
                            y[inside + (i - 2) * (POINTS - 2) * (POINTS - 2)] = value;
                        else
                            parts[start + cell * CELL + i * PLANE + t] = value;
                    }
                }
            }
        }
#else
        // Along i to the Gauss points, the metric, and back.
        EVERY_COLUMN {
            const uint set = w / PLANE, t = w - set * PLANE;
            const uint k = t / POINTS, j = t - k * POINTS;
            real_t a[POINTS][WIDE], gx[POINTS][WIDE], gy[POINTS][WIDE], gz[POINTS][WIDE];
            UNROLLED (uint i = 0; i < POINTS; ++i) EACH a[i][l] = held[PLACE(0, i, j, k)];
            TO_SLOPES(gx, a);
            UNROLLED (uint i = 0; i < POINTS; ++i) EACH a[i][l] = held[PLACE(1, i, j, k)];
            TO_VALUES(gy, a);
            UNROLLED (uint i = 0; i < POINTS; ++i) EACH a[i][l] = held[PLACE(2, i, j, k)];
            TO_VALUES(gz, a);
            EACH {
                const size_t cell = first + set * WIDE + l;
                if (cell < count) {
                    __global const real_t* metric = geometry + cell * 6 * CELL + t;
                    UNROLLED (uint i = 0; i < POINTS; ++i) {
                        const real_t xx = metric[i * PLANE], xy = metric[CELL + i * PLANE], xz = metric[2 * CELL + i * PLANE];
                        const real_t yy = metric[3 * CELL + i * PLANE], yz = metric[4 * CELL + i * PLANE], zz = metric[5 * CELL + i * PLANE];
                        const real_t dx = gx[i][l], dy = gy[i][l], dz = gz[i][l];
                        gx[i][l] = xx * dx + xy * dy + xz * dz;
                        gy[i][l] = xy * dx + yy * dy + yz * dz;
                        gz[i][l] = xz * dx + yz * dy + zz * dz;
                    }
                }
            }
            FROM_SLOPES(a, gx);
            UNROLLED (uint i = 0; i < POINTS; ++i) EACH held[PLACE(0, i, j, k)] = a[i][l];
            FROM_VALUES(a, gy);
            UNROLLED (uint i = 0; i < POINTS; ++i) EACH held[PLACE(1, i, j, k)] = a[i][l];
            FROM_VALUES(a, gz);
            UNROLLED (uint i = 0; i < POINTS; ++i) EACH held[PLACE(2, i, j, k)] = a[i][l];
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        // Along j.
        EVERY_COLUMN {
            const uint set = w / PLANE, t = w - set * PLANE;
            const uint k = t / POINTS, i = t - k * POINTS;
            real_t a[POINTS][WIDE], b[POINTS][WIDE], c[POINTS][WIDE];
            UNROLLED (uint j = 0; j < POINTS; ++j) EACH a[j][l] = held[PLACE(0, i, j, k)];
            FROM_VALUES(b, a);
            UNROLLED (uint j = 0; j < POINTS; ++j) EACH a[j][l] = held[PLACE(1, i, j, k)];
            FROM_SLOPES(c, a);
            UNROLLED (uint j = 0; j < POINTS; ++j)
                EACH {
                    held[PLACE(0, i, j, k)] = b[j][l] + c[j][l];
                    a[j][l] = held[PLACE(2, i, j, k)];
                }
            FROM_VALUES(b, a);
            UNROLLED (uint j = 0; j < POINTS; ++j) EACH held[PLACE(1, i, j, k)] = b[j][l];
        }
        barrier(CLK_LOCAL_MEM_FENCE);

        // Along k, and out.
        EVERY_COLUMN {
            const uint set = w / PLANE, t = w - set * PLANE;
            const uint j = t / POINTS, i = t - j * POINTS;
            real_t a[POINTS][WIDE], b[POINTS][WIDE], c[POINTS][WIDE];
            UNROLLED (uint k = 0; k < POINTS; ++k) EACH a[k][l] = held[PLACE(0, i, j, k)];
            FROM_VALUES(b, a);
            UNROLLED (uint k = 0; k < POINTS; ++k) EACH a[k][l] = held[PLACE(1, i, j, k)];
            FROM_SLOPES(c, a);
            EACH {
                const size_t cell = first + set * WIDE + l;
                if (cell < count) {
                    const uint inside = POINTS > 2 && i > 1 && j > 1
                        ? ids[cell * CELL + CELL - 1] + 1 - (POINTS - 2) * (POINTS - 2) * (POINTS - 2) + (j - 2) * (POINTS - 2) + i - 2 : 0;
                    UNROLLED (uint k = 0; k < POINTS; ++k) {
                        const real_t value = b[k][l] + c[k][l];
                        if (i > 1 && j > 1 && k > 1)
                            y[inside + (k - 2) * (POINTS - 2) * (POINTS - 2)] = value;
                        else
                            parts[start + cell * CELL + k * PLANE + t] = value;
                    }
                }
            }
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
