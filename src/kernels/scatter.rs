//! Transposed products by atomic additions.

use super::kernels;

kernels! { "scatter":
    /// `y += A'x` for compressed rows.
    scatter<T>(n: uint, span: uint, rows: in_uint[n + 1], indices: in_uint, values: in_real[indices.len()],
        x: in_real[n], y: out_real);
}
