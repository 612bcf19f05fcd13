//! The launches of methods that need no matrix.
//!
//! More arguments than a kernel should have: a pass takes up to eight vectors, and a struct of buffers cannot be passed in
//! OpenCL C 1.2.

use super::kernels;
use crate::recurrence::{HEADER, REGISTERS, STATES};

kernels! { "pass":
    /// Scalars alone.
    step_scalars<T>(program: uint, slot: uint, programs: in_uint[program as usize + HEADER], sums: in_sum,
        registers: out_sum[2 * REGISTERS], status: out_int[2 * STATES + 2], history: out_sum[2]);
    /// Up to four statements and three dot products in one pass over vectors.
    step_vectors<T>(shape: shape, v0: out_real, v1: out_real, v2: out_real, v3: out_real, v4: out_real, v5: out_real,
        v6: out_real, v7: out_real, programs: in_uint[shape[4] as usize + HEADER], sums: out_sum,
        registers: out_sum[2 * REGISTERS], status: out_int[2 * STATES + 2], history: out_sum[2]);
}
