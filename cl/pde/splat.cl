// Additions to a grid around a place: drops, dye, pushes.

// q += amount (1 - d^2 / radius^2)^2 where the node is nearer than the radius to (x, y) and `mask`, if it has words, has one of
// `bits`; nodes of cell (i, j) lie at (i + dx, j + dy). `inverse` is 1 / radius^2; `masked` is 0 without a mask. Columns
// left .. right take part. Of cells start .. end group g owns span, the g-th. Bytes: at most end - start real_t read and written.
__kernel GROUP
void splat(uint start, uint end, uint span, uint width, uint left, uint right, uint masked, uint bits, real_t x,
           real_t y, real_t dx, real_t dy, real_t inverse, real_t amount, __global const uint* restrict mask, __global real_t* restrict q)
{
    const size_t first = start + get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)end);
    for (size_t c = first + get_local_id(0); c < last; c += WG) {
        const uint j = (uint)c / width;
        const uint i = (uint)c - j * width;
        const real_t ax = ((real_t)i + dx) - x, ay = ((real_t)j + dy) - y;
        const real_t rest = (real_t)1 - inverse * (ax * ax + ay * ay);
        if (rest > 0 && i >= left && i < right && (!masked || (mask[c] & bits))) q[c] = q[c] + amount * (rest * rest);
    }
}
