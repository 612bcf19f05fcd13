//! Reductions of whole vectors.

use super::kernels;

kernels! { "reduce":
    /// One sum (or product, ...) per chunk.
    reduce_chunks<T>(n: uint, chunk: uint, columns: uint, column: uint, x: in_real[n as usize * columns as usize],
        y: in_real[n as usize * columns as usize], sums: out_sum[n.div_ceil(chunk)]);
    /// The chunk sums folded into one.
    reduce_sums<T>(count: uint, sums: in_sum[count], result: out_sum[1]);
}
