//! The two launches of a conjugate gradient iteration, and the one of many.

use super::kernels;
use crate::state::HISTORY;
use crate::state::cg::{CONTROL, STATUS};

kernels! { "cg":
    /// `q = A p` with the chunk sums of `p.q` and `q.q`; group 0 tests for the end.
    cg_product<T>(n: uint, chunk: uint, stride: uint, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        p: in_real[n], q: out_real[n], sums: out_sum[4 * n.div_ceil(chunk)], control: out_sum[CONTROL],
        status: out_int[STATUS], history: out_sum[HISTORY]);
    /// `x += alpha p`, `r -= alpha q`, `p = r + beta p` with the chunk sums of `r.r`.
    cg_update<T>(n: uint, chunk: uint, groups: uint, per_group: uint, q: in_real[n], x: out_real[n], r: out_real[n],
        p: out_real[n], sums: out_sum[4 * groups], control: out_sum[CONTROL], status: out_int[STATUS]);
    /// `iterations` times `cg_update` and `cg_product`, by groups that all run at once.
    cg_resident<T>(n: uint, chunk: uint, stride: uint, groups: uint, per_group: uint, iterations: uint, rows: in_uint,
        indices: in_uint, values: in_real[indices.len()], p: out_real[n], q: out_real[n], x: out_real[n],
        r: out_real[n], sums: out_sum[4 * groups], control: out_sum[CONTROL], status: out_int[STATUS],
        history: out_sum[HISTORY]);
}
