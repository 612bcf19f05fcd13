//! The two launches of a regularised CGNR iteration, and the one of many, for `columns` right-hand sides.
//!
//! More arguments than a kernel should have: each launch does the work of seven, and a struct of buffers cannot be
//! passed in OpenCL C 1.2.

use super::kernels;
use crate::state::HISTORY;
use crate::state::barrier;
use crate::state::cgnr::{CONTROL, STATUS};

/// Numbers of a vector of the rows of `A`, for all columns.
fn by_rows(shape: &[u32; 8], columns: usize) -> usize {
    shape[0] as usize * columns
}

/// Numbers of an image, for all columns.
fn by_cols(shape: &[u32; 8], columns: usize) -> usize {
    shape[3] as usize * columns
}

/// Chunk sums: two of rows and four of pixels for each column.
fn of_sums(shape: &[u32; 8], columns: usize) -> usize {
    columns * (2 * shape[2] as usize + 4 * shape[5] as usize)
}

/// Diffusivities, which are there where there is total variation (`edges` 2).
fn of_edges(shape: &[u32; 8], columns: usize, edges: u32) -> usize {
    if edges == 2 { by_cols(shape, columns) } else { 1 }
}

kernels! { "cgnr":
    /// `d = s + beta d`, `q = A d`.
    cgnr_forward<T> given(columns: usize, edges: u32)
        (shape: shape, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        s: in_real[by_cols(shape, columns)], d_old: in_real[by_cols(shape, columns)],
        x: in_real[by_cols(shape, columns)], phi: in_real[of_edges(shape, columns, edges)],
        d_new: out_real[by_cols(shape, columns)], q: out_real[by_rows(shape, columns)],
        sums: out_sum[of_sums(shape, columns)], control: out_sum[CONTROL * columns],
        status: out_int[STATUS * columns], history: out_sum[2 * HISTORY * columns]);
    /// `x += alpha d`, `r -= alpha q`, `s = A'r - F(x, x)`.
    cgnr_backward<T> given(columns: usize, edges: u32)
        (shape: shape, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        r: in_real[by_rows(shape, columns)], q: in_real[by_rows(shape, columns)],
        x: in_real[by_cols(shape, columns)], d: in_real[by_cols(shape, columns)],
        s: in_real[by_cols(shape, columns)], r_new: out_real[by_rows(shape, columns)],
        x_new: out_real[by_cols(shape, columns)], s_new: out_real[by_cols(shape, columns)],
        phi: out_real[of_edges(shape, columns, edges)], sums: out_sum[of_sums(shape, columns)],
        control: out_sum[CONTROL * columns], status: out_int[STATUS * columns]);
    /// `iterations` times `cgnr_backward` and `cgnr_forward`, by groups that all run at once.
    cgnr_resident<T> given(columns: usize, edges: u32)
        (shape: shape, stride: uint, rows_each: uint, cols_each: uint, iterations: uint, turn: uint,
        rows: in_uint, indices: in_uint, values: in_real[indices.len()], t_rows: in_uint, t_indices: in_uint,
        t_values: in_real[t_indices.len()], x0: out_real[by_cols(shape, columns)],
        x1: out_real[by_cols(shape, columns)], r0: out_real[by_rows(shape, columns)],
        r1: out_real[by_rows(shape, columns)], s0: out_real[by_cols(shape, columns)],
        s1: out_real[by_cols(shape, columns)], d0: out_real[by_cols(shape, columns)],
        d1: out_real[by_cols(shape, columns)], q: out_real[by_rows(shape, columns)],
        phi: out_real[of_edges(shape, columns, edges)], sums: out_sum[of_sums(shape, columns)],
        control: out_sum[CONTROL * columns], status: out_int[STATUS * columns + barrier::WORDS],
        history: out_sum[2 * HISTORY * columns]);
}
