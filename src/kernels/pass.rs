//! The launches of methods that need no matrix, for `columns` interleaved vectors; `made` is how many sums the step knows.
//!
//! More arguments than a kernel should have: a pass takes up to eight vectors, and a struct of buffers cannot be passed in
//! OpenCL C 1.2.

use super::kernels;
use crate::recurrence::{HEADER, REGISTERS, STATES};
use crate::state::HISTORY;

kernels! { "pass":
    /// Scalars alone.
    step_scalars<T> given(columns: usize, made: usize)
        (program: uint, slot: uint, programs: in_uint[program as usize + HEADER], sums: in_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
    /// Up to four statements and three dot products in one pass over vectors.
    step_vectors<T> given(columns: usize, made: usize)
        (shape: shape, v0: out_real, v1: out_real, v2: out_real, v3: out_real, v4: out_real, v5: out_real,
        v6: out_real, v7: out_real, programs: in_uint[shape[4] as usize + HEADER], sums: out_sum[made],
        registers: out_sum[2 * columns * REGISTERS], status: out_int[2 * columns * STATES + columns + 1],
        history: out_sum[2 * HISTORY * columns]);
}
