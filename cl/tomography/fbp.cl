// Filtered back-projection: the sum over all projections of what they hold where a pixel's ray meets the detector. Joined after common.cl.
// The filter was applied before, with all weights that depend on the ray alone.
//
//   views     VIEW_WORDS numbers for each projection: the place of the image's centre on the detector, in pixels; the change of that
//             place for one pixel of the image to the right, and for one upwards; of a fan also the change of the distance from
//             the source along the middle ray for the same two steps, over the distance of the centre
//   filtered  a row for each projection, `pixels` numbers and a 0 behind them
//
// Required macro:
//   FAN  1: rays from a point, whose places and weights go with the distance of a pixel from it

// x = the sum over `angles` projections, for an image of side * side pixels. Group g owns pixels g * share .. (g + 1) * share, an item a
// pixel. The terms are added in the wide sum, in the order of the projections.
// Bytes: angles * (pixels + 1) real_t read, angles times 2 real_t for each pixel out of caches; side^2 real_t written.
__kernel GROUP
void add_views(uint side, uint pixels, uint angles, uint share, __global const real_t* restrict views,
               __global const real_t* restrict filtered, __global real_t* restrict x)
{
    const uint n = side * side;
    const uint first = get_group_id(0) * share;
    const real_t last_place = (real_t)(pixels - 1);
    const real_t half_side = ((real_t)side - 1) * (real_t)0.5;
    for (uint p = first + get_local_id(0); p < min(first + share, n); p += WG) {
        const uint row = p / side;
        const real_t right = (real_t)(p - row * side) - half_side;
        const real_t up = half_side - (real_t)row;
        acc_t sum = acc_real(0);
        for (uint k = 0; k < angles; ++k) {
            __global const real_t* view = views + k * VIEW_WORDS;
            real_t place = right * view[RIGHT] + up * view[UP];
            real_t weight = 1;
            if (FAN) {
                const real_t distance = 1 + (right * view[RIGHT_OFF] + up * view[UP_OFF]);
                const real_t nearness = quotient(1, distance);
                place = place * nearness;
                weight = nearness * nearness;
            }
            place = place + view[MIDDLE];
            if (!(place >= 0 && place <= last_place)) continue;
            const uint left = (uint)place;
            const real_t share_of_next = place - (real_t)left;
            __global const real_t* here = filtered + k * (size_t)(pixels + 1) + left;
            const real_t value = here[0] + share_of_next * (here[1] - here[0]);
            sum = acc_add(sum, acc_real(weight * value));
        }
        x[p] = acc_to_real(sum);
    }
}
