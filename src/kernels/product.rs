//! Products with stored matrices.

use super::kernels;

kernels! { "product":
    /// `y = A x`.
    multiply<T>(n: uint, chunk: uint, stride: uint, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        x: in_real, y: out_real[n]);
    /// `r = b - A x` with the chunk sums of `r.r`.
    residual<T>(n: uint, chunk: uint, stride: uint, place: uint, rows: in_uint, indices: in_uint, values: in_real[indices.len()],
        x: in_real, b: in_real[n], r: out_real[n], sums: out_sum[place + n.div_ceil(chunk)]);
}
