//! The launch that methods multiply with, for `columns` interleaved vectors.

use super::kernels;
use crate::recurrence::{HEADER, REGISTERS, STATES};
use crate::state::HISTORY;

kernels! { "step":
    /// `y = s A x + k w` with the chunk sums of `y.y` and `y.z`; `added` and `multiplied` tell whether there is a `w` and a `z`, and
    /// `made` how many sums the step knows.
    step_product<T> given(cols: usize, columns: usize, added: bool, multiplied: bool, made: usize)
        (shape: shape, rows: in_uint, indices: in_uint, values: in_real[indices.len()], x: in_real[cols * columns],
        w: in_real[if added { shape[0] as usize * columns } else { 0 }], y: out_real[shape[0] as usize * columns],
        z: in_real[if multiplied { shape[0] as usize * columns } else { 0 }],
        programs: in_uint[shape[4] as usize + HEADER], sums: out_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
}
