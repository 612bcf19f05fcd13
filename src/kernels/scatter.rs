//! Transposed products by atomic additions.

use super::kernels;

kernels! { "scatter":
    /// `y += A'x` for compressed rows.
    scatter<T> given(cols: usize)
        (n: uint, span: uint, rows: in_uint[n + 1], indices: in_uint, values: in_real[indices.len()],
        x: in_real[n], y: out_real[cols]);
    /// What each group adds to `A'x`, in local memory.
    scatter_held<T>(n: uint, cols: uint, span: uint, rows: in_uint[n + 1], indices: in_uint,
        values: in_real[indices.len()], x: in_real[n], held: out_sum[n.div_ceil(span) as usize * cols as usize]);
    /// The sum of what the groups added.
    fold_held<T>(cols: uint, count: uint, held: in_sum[count as usize * cols as usize], y: out_real[cols]);
}
