//! Products with stored matrices, for `columns` interleaved vectors.

use super::kernels;

kernels! { "product":
    /// `y = A x`.
    multiply<T> given(cols: usize, columns: usize)
        (n: uint, chunk: uint, stride: uint, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        x: in_real[cols * columns], y: out_real[n as usize * columns]);
    /// `r = b - A x` with the chunk sums of `r.r`.
    residual<T> given(cols: usize, columns: usize)
        (n: uint, chunk: uint, stride: uint, place: uint, rows: in_uint, indices: in_uint,
        values: in_real[indices.len()], x: in_real[cols * columns], b: in_real[n as usize * columns],
        r: out_real[n as usize * columns], sums: out_sum[place as usize + columns * n.div_ceil(chunk) as usize]);
}
