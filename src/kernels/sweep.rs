//! Sweeps over the rows of a triangle.

use super::kernels;

kernels! { "sweep":
    /// Levels `first_level .. last_level` of a forward or backward sweep.
    sweep<T>(first_level: uint, last_level: uint, keep: real, bounds: in_uint[last_level + 1], list: in_uint,
        offsets: in_uint[list.len() + 1], indices: in_uint, values: in_real[indices.len()], scale: in_real[list.len()],
        x: in_real[list.len()], z: out_real[list.len()]);
}
