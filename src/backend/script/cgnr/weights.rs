//! The correction term `F(x, v)` on the host: the twin of `cl/script/correction.cl`.

use crate::number::{Accumulator, Real, Sum, violated};
use crate::state::correction;

/// The regularisation weights of one column, and its bounds.
#[derive(Clone, Copy)]
pub(crate) struct Weights<T, A> {
    tikhonov: A,
    smooth: A,
    variation: A,
    epsilon2: A,
    in_box: A,
    bounds: [T; 2],
    edges: u32,
}

/// Places of a pixel's neighbours: images of `width` pixels a row, `n` in all, `columns` of them interleaved.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) width: usize,
    pub(crate) n: usize,
    pub(crate) columns: usize,
}

impl<T: Real, A: Accumulator<T>> Weights<T, A> {
    /// Weights of a column in the order of [`correction`].
    #[inline]
    pub(crate) fn of(words: &[Sum], edges: u32) -> Self {
        let at = |field: usize| A::from_bits(words[field].0);
        Self {
            tikhonov: at(correction::TIKHONOV),
            smooth: at(correction::SMOOTH),
            variation: at(correction::VARIATION),
            epsilon2: at(correction::EPSILON2),
            in_box: at(correction::BOX),
            bounds: [at(correction::LOWER).to_real(), at(correction::UPPER).to_real()],
            edges,
        }
    }

    /// `edge` of `cl/script/correction.cl`.
    #[inline]
    fn edge(&self, here: T, there: T, phi: T) -> A {
        let mut weight = self.smooth;
        if self.edges == 2 {
            weight = weight.add(self.variation.mul(A::from_real(phi)));
        }
        weight.mul(A::from_real(here - there))
    }

    /// `diffusivity` of `cl/script/correction.cl`; 0 if there is no total variation.
    #[inline]
    fn diffusivity(&self, here: T, right: T, down: T) -> T {
        if self.edges != 2 {
            return T::default();
        }
        let (dx, dy) = (right - here, down - here);
        let square = A::product(dx, dx).add(A::product(dy, dy)).add(self.epsilon2);
        A::from_real(T::from_f64(1.0)).div(square.sqrt()).to_real()
    }

    /// The diffusivity at element `at` of `image`.
    #[inline]
    pub(crate) fn diffusivity_at(&self, grid: Grid, at: usize, image: impl Fn(usize) -> T) -> T {
        let Grid { width, n, columns } = grid;
        let (i, here) = (at / columns, image(at));
        let right = if i % width + 1 < width { image(at + columns) } else { here };
        let down = if i + width < n { image(at + width * columns) } else { here };
        self.diffusivity(here, right, down)
    }

    /// The terms of `F(x, v)` at element `at` that its neighbours and its own size make: those of Tikhonov, smoothness and total
    /// variation. `v(at)` is an element of `v`, `phi` the diffusivities of `x`.
    #[inline]
    pub(crate) fn neighbours(&self, grid: Grid, at: usize, v: impl Fn(usize) -> T, phi: &[T]) -> A {
        let Grid { width, n, columns } = grid;
        let (i, here) = (at / columns, v(at));
        let mut sum = self.tikhonov.mul(A::from_real(here));
        if self.edges == 0 {
            return sum;
        }
        let phi_at = |at: usize| if self.edges == 2 { phi[at] } else { T::default() };
        let own = phi_at(at);
        if i % width + 1 < width {
            sum = sum.add(self.edge(here, v(at + columns), own));
        }
        if i + width < n {
            sum = sum.add(self.edge(here, v(at + width * columns), own));
        }
        if !i.is_multiple_of(width) {
            sum = sum.add(self.edge(here, v(at - columns), phi_at(at - columns)));
        }
        if i >= width {
            let up = at - width * columns;
            sum = sum.add(self.edge(here, v(up), phi_at(up)));
        }
        sum
    }

    /// The bound that `x` violates, if it does.
    #[inline]
    pub(crate) fn violated(&self, x: T) -> Option<T> {
        violated(x, self.bounds[0], self.bounds[1])
    }

    /// The term of a violated bound, `value` times its weight.
    #[inline]
    pub(crate) fn of_box(&self, value: T) -> A {
        self.in_box.mul(A::from_real(value))
    }
}
