// Fills a vector: apart from vector.cl, because every program fills vectors, and few need the rest.

// x = value. Group g owns elements g * span .. (g + 1) * span. Bytes: n real_t written. A kernel, because Oclgrind takes what
// clEnqueueFillBuffer wrote for uninitialised.
__kernel GROUP
void fill(uint n, uint span, real_t value, __global real_t* restrict x)
{
    const size_t first = get_group_id(0) * (size_t)span;
    const size_t last = min(first + span, (size_t)n);
    for (size_t i = first + get_local_id(0); i < last; i += WG) x[i] = value;
}
