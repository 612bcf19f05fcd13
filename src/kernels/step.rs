//! The launch that methods multiply with.

use super::kernels;
use crate::recurrence::{HEADER, REGISTERS, STATES};

kernels! { "step":
    /// `y = s A x + k w` with the chunk sums of `y.y` and `y.z`.
    step_product<T>(shape: shape, rows: in_uint, indices: in_uint, values: in_real[indices.len()], x: in_real,
        w: in_real, y: out_real[shape[0]], z: in_real, programs: in_uint[shape[4] as usize + HEADER], sums: out_sum,
        registers: out_sum[2 * REGISTERS], status: out_int[2 * STATES + 2], history: out_sum[2]);
}
