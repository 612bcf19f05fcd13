// A scanner's matrix that is never stored: rays are traced through the image as they are needed, forwards and backwards. Products
// and the order of their sums stand in src/backend/tomography/rays/tables.rs. Joined after common.cl, before ray_image.cl, ray_trace.cl and ray_spread.cl.
//
//   rays     for each ray the place where it meets line 0, and places per line: two words each, fixed point with 32 binary
//            places. Bit 0 of the second: 1 for a steep ray, whose lines are image rows, 0 for a flat one, whose lines are
//            image columns
//   lines    first line of each ray within the image in the low half, the one after its last in the high half
//   weights  length of each ray within a line over 2^32
//   images   for each line of the image and each place in it, from the one before the first pixel on: its pixel, and how much
//            larger the next one is, 0 outside of the image; then those of the transposed image
//   fans     for the flat rays of each angle, then for the steep ones: the first, the one after the last, classes, 1 if
//            rays of the other kind are between them, or behind the last ray of the first class before them
//   sheets   for each sheet: 1 if it is of steep rays, its first angle, the one after its last, angles of those before
//   spans    for each tile of each sheet, and each angle of the sheet: the first ray that meets the tile, or one of the first
//            class before it, in the low half, the one after the last in the high half

#define RAY_ONE ((real_t)4294967296) // 2^32
