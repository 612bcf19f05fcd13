//! Operations element by element.

use super::kernels;

kernels! { "vector":
    /// `x = value`.
    fill<T>(n: uint, span: uint, value: real, x: out_real[n]);
    /// `y = alpha x`.
    scale<T>(n: uint, span: uint, alpha: real, x: in_real[n], y: out_real[n]);
    /// `x = alpha x`.
    rescale<T>(n: uint, span: uint, alpha: real, x: out_real[n]);
    /// `y = alpha x + beta y`.
    axpby<T>(n: uint, span: uint, alpha: real, beta: real, x: in_real[n], y: out_real[n]);
    /// `z = x y`, element by element.
    multiply_elements<T>(n: uint, span: uint, x: in_real[n], y: in_real[n], z: out_real[n]);
    /// `x = min(max(x, lower), upper)`.
    clamp_elements<T>(n: uint, span: uint, lower: real, upper: real, x: out_real[n]);
}
