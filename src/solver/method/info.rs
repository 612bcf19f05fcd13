//! Facts about a method, by which the solver treats it.

/// Facts about a method. Each method's file has its own.
pub(super) struct MethodInfo {
    pub(super) name: &'static str,
    /// The operator may be rectangular; the method multiplies by its adjoint.
    pub(super) rectangles: bool,
    pub(super) symmetry: Symmetry,
    /// Vectors hold products with the operator twice: numbers reach half as far.
    pub(super) squares: bool,
    /// It takes a preconditioner.
    pub(super) preconditioner: bool,
    /// The recurrence carries the residual, and the script says how to compute that afresh.
    pub(super) carries_residual: bool,
    /// It may stop by the norm of a gradient.
    pub(super) gradient: bool,
    /// It lowers the error in every iteration, in a norm of its own.
    pub(super) lowers_error: bool,
    /// Names of the terms that it minimises beside the misfit.
    pub(super) terms: &'static [&'static str],
    pub(super) bounds: Bounds,
    /// The operator may have negative entries.
    pub(super) negative_entries: bool,
}

/// Symmetry that a method asks of its operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symmetry {
    None,
    Symmetric,
    /// Symmetric positive definite.
    Definite,
}

/// Bounds of unknowns that a method minimises within.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    None,
    /// A violation has a weight.
    Weighed,
    /// Every iterate keeps lower bounds, 0 where none is given.
    Lower,
    /// Every iterate keeps bounds of both sides.
    Both,
}

/// A method for square systems that takes nothing.
pub(super) const SQUARE: MethodInfo = MethodInfo {
    name: "",
    rectangles: false,
    symmetry: Symmetry::None,
    squares: false,
    preconditioner: false,
    carries_residual: false,
    gradient: false,
    lowers_error: false,
    terms: &[],
    bounds: Bounds::None,
    negative_entries: true,
};

/// A method for least squares that takes nothing.
pub(super) const LEAST_SQUARES: MethodInfo =
    MethodInfo { rectangles: true, squares: true, gradient: true, ..SQUARE };
