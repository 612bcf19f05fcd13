//! The two launches of a regularised CGNR iteration, and the one of many.
//!
//! More arguments than a kernel should have: each launch does the work of seven, and a struct of buffers cannot be
//! passed in OpenCL C 1.2.

use super::kernels;

kernels! { "cgnr":
    /// `d = s + beta d`, `q = A d`.
    cgnr_forward<T>(shape: shape, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        s: in_real[shape[3]], d_old: in_real[shape[3]], x: in_real[shape[3]], phi: in_real[1],
        d_new: out_real[shape[3]], q: out_real[shape[0]], sums: out_sum[2 * shape[2] + 4 * shape[5]],
        control: out_sum[16], status: out_int[6], history: out_sum[2]);
    /// `x += alpha d`, `r -= alpha q`, `s = A'r - F(x, x)`.
    cgnr_backward<T>(shape: shape, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        r: in_real[shape[0]], q: in_real[shape[0]], x: in_real[shape[3]], d: in_real[shape[3]], s: in_real[shape[3]],
        r_new: out_real[shape[0]], x_new: out_real[shape[3]], s_new: out_real[shape[3]], phi: out_real[1],
        sums: out_sum[2 * shape[2] + 4 * shape[5]], control: out_sum[16], status: out_int[6]);
    /// `iterations` times `cgnr_backward` and `cgnr_forward`, by groups that all run at once.
    cgnr_resident<T>(shape: shape, stride: uint, rows_each: uint, cols_each: uint, iterations: uint, turn: uint,
        rows: in_uint, indices: in_uint, values: in_real[indices.len()], t_rows: in_uint, t_indices: in_uint,
        t_values: in_real[t_indices.len()], x0: out_real[shape[3]], x1: out_real[shape[3]], r0: out_real[shape[0]],
        r1: out_real[shape[0]], s0: out_real[shape[3]], s1: out_real[shape[3]], d0: out_real[shape[3]],
        d1: out_real[shape[3]], q: out_real[shape[0]], phi: out_real[1], sums: out_sum[2 * shape[2] + 4 * shape[5]],
        control: out_sum[16], status: out_int[10], history: out_sum[2]);
}
