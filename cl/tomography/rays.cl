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
//   fans     four words for the flat rays of each angle, then four for the steep rays of each angle: the first ray, the one after the
//            last, the number of classes, and a flag. The flag is 1 if there are rays of the other kind between the last ray and
//            the first, where the first is rounded down to a multiple of the number of classes
//   sheets   for each sheet: 1 if it is of steep rays, its first angle, the one after its last, angles of those before
//   spans    a word for each tile of each sheet, and each angle of the sheet. Low half: the first ray that meets the tile, rounded
//            down to a multiple of the number of classes. High half: the one after the last

#define RAY_ONE ((real_t)4294967296) // 2^32
