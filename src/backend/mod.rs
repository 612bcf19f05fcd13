//! What an algorithm may do: one vocabulary, two back ends.
//!
//! [`Host`] is the reference; [`OpenCl`] forwards to the kernels. Both follow the numerics contract, so that for
//! every word of the vocabulary they give the same bits. Solvers are written against [`Vocabulary`] and meet a back
//! end only through [`on_backend!`].

mod host;
mod host_rays;
mod host_rows;
mod host_step;
mod opencl;
mod witness;

pub(crate) use host::{Host, MOST_COLUMNS};
pub(crate) use opencl::OpenCl;
#[cfg(test)]
pub(crate) use opencl::{NO_DOT, NO_STATEMENT, NONE};

use std::ops::Range;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::{Accumulation, Element, Real, Sum};
use crate::ocl::Buffer;
use crate::sparse::{Arrangement, Kind, Layout};
use crate::tuning::Tuning;

/// Memory of either back end, as [`Vector`](crate::Vector) and [`Matrix`](crate::Matrix) hold it.
#[derive(Debug)]
pub(crate) enum Memory<E> {
    Host(Vec<E>),
    OpenCl(Buffer<E>),
}

/// Runs `$body` with `$backend` bound to the back end of `$device`: the one dispatch between the two.
macro_rules! on_backend {
    ($device:expr, $backend:ident => $body:expr) => {
        match $device.backend() {
            $crate::device::Backend::Host($backend) => $body,
            $crate::device::Backend::OpenCl($backend) => $body,
        }
    };
}
pub(crate) use on_backend;

/// How kernels are to run: what changes bits (the accumulation) and what does not (the tuning).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) accumulation: Accumulation,
    pub(crate) tuning: &'a Tuning,
}

impl<'a> Run<'a> {
    pub(crate) fn of<T: Real>(device: &'a Device) -> Self {
        Self { accumulation: device.accumulation(T::PRECISION), tuning: device.tuning() }
    }
}

/// A reduction of a whole vector (krueger-westermann-2003, 4.3), `OPERATION` in `cl/reduce.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Product,
    Minimum,
    Maximum,
    AbsoluteSum,
    Dot,
}

/// A matrix in the memory of one back end, in any format.
#[derive(Debug)]
pub(crate) struct Stored<B: Vocabulary, T: Real> {
    pub(crate) arrangement: Arrangement,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
    pub(crate) longer: [usize; 2],
    pub(crate) longest: usize,
    pub(crate) pointers: B::Buffer<u32>,
    pub(crate) indices: B::Buffer<u32>,
    pub(crate) values: B::Buffer<T>,
}

impl<B: Vocabulary, T: Real> Stored<B, T> {
    pub(crate) fn new(backend: &B, layout: Layout<T>) -> Result<Self> {
        Ok(Self {
            arrangement: layout.arrangement,
            rows: layout.rows,
            cols: layout.cols,
            stride: layout.stride,
            longer: layout.longer,
            longest: layout.longest,
            pointers: backend.take(layout.pointers)?,
            indices: backend.take(layout.indices)?,
            values: backend.take(layout.values)?,
        })
    }
}

impl<B: Vocabulary, T: Real> Stored<B, T> {
    /// What stands for a `rows × cols` operator whose products are made by others: the fused words then find them in
    /// their result.
    pub(crate) fn outside(backend: &B, rows: usize, cols: usize) -> Result<Self> {
        Ok(Self {
            arrangement: Arrangement { kind: Kind::Outside, lanes: 1, block: 1, wide: false },
            rows,
            cols,
            stride: rows,
            longer: [0; 2],
            longest: 0,
            pointers: backend.filled(1, 0)?,
            indices: backend.filled(1, 0)?,
            values: backend.filled(1, T::default())?,
        })
    }
}

/// What of an iteration a word does: all, or the part before or after a product that is made by others, `PART` in
/// `cl/cgnr.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    Rows,
    Pixels,
}

/// A stored matrix of either back end, as [`Matrix`](crate::Matrix) holds it.
#[derive(Debug)]
pub(crate) enum AnyStored<T: Real> {
    Host(Stored<Host, T>),
    OpenCl(Stored<OpenCl, T>),
}

/// The vectors of a conjugate gradient solve.
#[derive(Debug)]
pub(crate) struct CgVectors<'v, B: Vocabulary, T: Real> {
    pub(crate) x: &'v mut B::Buffer<T>,
    pub(crate) r: &'v mut B::Buffer<T>,
    pub(crate) p: &'v mut B::Buffer<T>,
    pub(crate) q: &'v mut B::Buffer<T>,
}

/// The vectors of a CGNR solve. Pairs change places every iteration.
#[derive(Debug)]
pub(crate) struct CgnrVectors<'v, B: Vocabulary, T: Real> {
    pub(crate) x: [&'v mut B::Buffer<T>; 2],
    pub(crate) r: [&'v mut B::Buffer<T>; 2],
    pub(crate) s: [&'v mut B::Buffer<T>; 2],
    pub(crate) d: [&'v mut B::Buffer<T>; 2],
    pub(crate) q: &'v mut B::Buffer<T>,
    pub(crate) phi: &'v mut B::Buffer<T>,
}

impl<B: Vocabulary, T: Real> CgnrVectors<'_, B, T> {
    /// The same, for one word of several.
    fn again(&mut self) -> CgnrVectors<'_, B, T> {
        let Self { x: [x0, x1], r: [r0, r1], s: [s0, s1], d: [d0, d1], q, phi } = self;
        CgnrVectors { x: [x0, x1], r: [r0, r1], s: [s0, s1], d: [d0, d1], q, phi }
    }
}

/// Scalars and sums of a solve by CG or CGNR; the layouts are those of `cl/cg.cl` and `cl/cgnr.cl` (see `state/`).
#[derive(Debug)]
pub(crate) struct SolveState<B: Vocabulary> {
    pub(crate) sums: B::Buffer<Sum>,
    pub(crate) control: B::Buffer<Sum>,
    pub(crate) status: B::Buffer<i32>,
    pub(crate) history: B::Buffer<Sum>,
}

impl<B: Vocabulary> SolveState<B> {
    /// With so many places, all zero.
    pub(crate) fn zeros(backend: &B, [sums, control, status, history]: [usize; 4]) -> Result<Self> {
        Ok(Self {
            sums: backend.filled(sums, Sum::default())?,
            control: backend.filled(control, Sum::default())?,
            status: backend.filled(status, 0)?,
            history: backend.filled(history, Sum::default())?,
        })
    }
}

/// Programs, scalars and sums of a solve whose steps are data; the layout is that of `cl/recurrence.cl`.
#[derive(Debug)]
pub(crate) struct StepState<B: Vocabulary> {
    pub(crate) programs: B::Buffer<u32>,
    pub(crate) sums: B::Buffer<Sum>,
    pub(crate) registers: B::Buffer<Sum>,
    pub(crate) status: B::Buffer<i32>,
    pub(crate) history: B::Buffer<Sum>,
}

/// A triangle of a matrix, its rows by levels (`cl/sweep.cl`).
#[derive(Debug)]
pub(crate) struct Triangle<'v, B: Vocabulary, T: Real> {
    pub(crate) bounds: &'v B::Buffer<u32>,
    pub(crate) list: &'v B::Buffer<u32>,
    pub(crate) offsets: &'v B::Buffer<u32>,
    pub(crate) indices: &'v B::Buffer<u32>,
    pub(crate) values: &'v B::Buffer<T>,
    pub(crate) scale: &'v B::Buffer<T>,
}

/// A launch of a step: which block of the programs it runs, from which slot, for how many columns; and how many chunk sums the
/// plan has in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepCall {
    pub(crate) block: u32,
    pub(crate) slot: u32,
    pub(crate) columns: usize,
    pub(crate) sums: usize,
}

/// How a product of a step is combined with another vector, and what is summed up: macros of `cl/step.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blend {
    pub(crate) scaled: bool,
    pub(crate) shifted: bool,
    /// Whether `y.y` and `y.z` are wanted.
    pub(crate) dots: [bool; 2],
}

/// Vectors that a pass can take.
pub(crate) const PASS_VECTORS: usize = 8;

/// One statement of a pass: `target = k a + l b + m d`, or `a b` element by element; numbers of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Combine { target: u8, terms: [Option<u8>; 3] },
    Multiply { target: u8, factors: [u8; 2] },
}

/// What a pass over vectors does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    /// Up to four, done in order for each element.
    pub(crate) statements: Vec<Statement>,
    /// Up to three dot products of what they leave behind.
    pub(crate) dots: Vec<[u8; 2]>,
}

impl Pass {
    /// Masks of the vectors that are read and that are written.
    pub(crate) fn touched(&self) -> [u32; 2] {
        let mut masks = [0; 2];
        for statement in &self.statements {
            let (target, read) = match statement {
                Statement::Combine { target, terms } => (target, terms.iter().flatten().fold(0, |m, v| m | 1 << v)),
                Statement::Multiply { target, factors } => (target, 1 << factors[0] | 1 << factors[1]),
            };
            // What was written before is at hand.
            masks[0] |= read & !masks[1];
            masks[1] |= 1 << target;
        }
        masks
    }
}

/// What of a CGNR solve is fixed while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CgnrShape {
    /// Right-hand sides at once.
    pub(crate) columns: usize,
    /// Pixels of an image row; 0 without neighbour terms.
    pub(crate) width: usize,
    /// 0 no neighbour terms, 1 smoothness, 2 smoothness and total variation.
    pub(crate) edges: u32,
    /// Which part of the work a word does.
    pub(crate) part: Part,
}

/// The operations of every back end. Each is one line of mathematics; shapes are those of the kernel of the same name.
pub(crate) trait Vocabulary: Sized + 'static {
    type Buffer<E: Element>: Send + std::fmt::Debug;

    /// The buffer of this back end in `memory`, if it is one.
    fn buffer<'a, E: Element>(&self, memory: &'a Memory<E>) -> Option<&'a Self::Buffer<E>>;
    fn buffer_mut<'a, E: Element>(&self, memory: &'a mut Memory<E>) -> Option<&'a mut Self::Buffer<E>>;
    fn memory<E: Element>(buffer: Self::Buffer<E>) -> Memory<E>;
    fn stored<'a, T: Real>(&self, any: &'a AnyStored<T>) -> Option<&'a Stored<Self, T>>;
    fn any<T: Real>(stored: Stored<Self, T>) -> AnyStored<T>;

    fn upload<E: Element>(&self, data: &[E]) -> Result<Self::Buffer<E>>;
    /// [`Self::upload`] of data that nobody else needs: the host keeps the vector itself.
    fn take<E: Element>(&self, data: Vec<E>) -> Result<Self::Buffer<E>>;
    fn filled<E: Element>(&self, len: usize, value: E) -> Result<Self::Buffer<E>>;
    fn write<E: Element>(&self, buffer: &mut Self::Buffer<E>, data: &[E]) -> Result<()>;
    /// Waits for what was queued, then copies elements `offset ..` out.
    fn read<E: Element>(&self, buffer: &Self::Buffer<E>, offset: usize, data: &mut [E]) -> Result<()>;
    /// [`Self::read`] of two whole buffers, waiting once.
    fn read_both<E: Element, F: Element>(
        &self,
        one: (&Self::Buffer<E>, &mut [E]),
        other: (&Self::Buffer<F>, &mut [F]),
    ) -> Result<()> {
        self.read(one.0, 0, one.1)?;
        self.read(other.0, 0, other.1)
    }
    fn copy<E: Element>(&self, source: &Self::Buffer<E>, target: &mut Self::Buffer<E>) -> Result<()>;

    /// `x = value`.
    fn fill<T: Real>(&self, run: Run<'_>, n: usize, value: T, x: &mut Self::Buffer<T>) -> Result<()>;
    /// `y = alpha x`.
    fn scale<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        alpha: T,
        x: &Self::Buffer<T>,
        y: &mut Self::Buffer<T>,
    ) -> Result<()>;
    /// `x = alpha x`.
    fn rescale<T: Real>(&self, run: Run<'_>, n: usize, alpha: T, x: &mut Self::Buffer<T>) -> Result<()>;
    /// `y = alpha x + beta y`.
    fn axpby<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        alpha: T,
        beta: T,
        x: &Self::Buffer<T>,
        y: &mut Self::Buffer<T>,
    ) -> Result<()>;
    /// `z = x y`, element by element.
    fn multiply_elements<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        x: &Self::Buffer<T>,
        y: &Self::Buffer<T>,
        z: &mut Self::Buffer<T>,
    ) -> Result<()>;
    /// `x = min(max(x, lower), upper)`, element by element.
    fn clamp_elements<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        lower: T,
        upper: T,
        x: &mut Self::Buffer<T>,
    ) -> Result<()>;
    /// A reduction of column `column[1]`, of `n` elements, of the `column[0]` interleaved ones of `x` (and `y` for
    /// [`Reduction::Dot`]). Waits for the device.
    fn reduce<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        column: [usize; 2],
        reduction: Reduction,
        x: &Self::Buffer<T>,
        y: &Self::Buffer<T>,
    ) -> Result<f64>;

    /// `y = A x` for `columns` interleaved vectors.
    fn multiply<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        x: &Self::Buffer<T>,
        y: &mut Self::Buffer<T>,
    ) -> Result<()>;
    /// `y = A'x` for compressed rows with 32-bit offsets, by additions in no fixed order on a device, in row order on
    /// the host.
    fn scatter<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        x: &Self::Buffer<T>,
        y: &mut Self::Buffer<T>,
    ) -> Result<()>;
    /// `r = b - A x` with the chunk sums of `r.r` in `sums[place + c * chunks + g]`.
    fn residual<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        columns: usize,
        x: &Self::Buffer<T>,
        b: &Self::Buffer<T>,
        r: &mut Self::Buffer<T>,
        sums: &mut Self::Buffer<Sum>,
        place: usize,
    ) -> Result<()>;

    /// Levels of a sweep over a triangle, of which the widest has `widest` rows: forwards from `x`, or back, in place, with
    /// the share `keep` of what is there.
    fn sweep<T: Real>(
        &self,
        run: Run<'_>,
        levels: Range<usize>,
        widest: usize,
        keep: Option<T>,
        triangle: &Triangle<'_, Self, T>,
        x: &Self::Buffer<T>,
        z: &mut Self::Buffer<T>,
    ) -> Result<()>;

    /// `q = A p` with `p.q` and `q.q`; the stopping test of this iteration.
    fn cg_product<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        p: &Self::Buffer<T>,
        q: &mut Self::Buffer<T>,
        state: &mut SolveState<Self>,
    ) -> Result<()>;
    /// `alpha`, `beta`; `x += alpha p`, `r -= alpha q`, `p = r + beta p` with `r.r`.
    fn cg_update<T: Real>(
        &self,
        run: Run<'_>,
        n: usize,
        q: &Self::Buffer<T>,
        x: &mut Self::Buffer<T>,
        r: &mut Self::Buffer<T>,
        p: &mut Self::Buffer<T>,
        state: &mut SolveState<Self>,
    ) -> Result<()>;

    /// Whether [`Self::cg_resident`] takes one launch for many iterations, and gains by it.
    fn cg_stays_resident<T: Real>(&self, _: Run<'_>, _: &Stored<Self, T>) -> bool {
        false
    }
    /// [`Self::cg_update`] and [`Self::cg_product`], `iterations` times. Where that is one launch, it may come to have been
    /// abandoned before it did anything, of which `state.status` tells.
    fn cg_resident<T: Real>(
        &self,
        run: Run<'_>,
        a: &Stored<Self, T>,
        iterations: usize,
        vectors: CgVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        let CgVectors { x, r, p, q } = vectors;
        (0..iterations).try_for_each(|_| {
            self.cg_update(run, a.rows, q, x, r, p, state)?;
            self.cg_product(run, a, p, q, state)
        })
    }

    /// `beta`; `d' = s + beta d`, `q = A d'` with `q.q` and `d'.F(x, d')`, where `d = d[turn]`, `d' = d[1 - turn]`.
    fn cgnr_forward<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<Self, T>,
        turn: usize,
        vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()>;
    /// `alpha`; `x' = x + alpha d'`, `r' = r - alpha q`, `s' = A'r' - F(x', x')` with their sums; `at` is A transposed.
    fn cgnr_backward<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        at: &Stored<Self, T>,
        turn: usize,
        vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()>;

    /// Whether [`Self::cgnr_resident`] takes one launch for many iterations, and gains by it.
    fn cgnr_stays_resident<T: Real>(&self, _: Run<'_>, _: &Stored<Self, T>, _: &Stored<Self, T>) -> bool {
        false
    }
    /// [`Self::cgnr_backward`] and [`Self::cgnr_forward`] for the iterations `turns`, whose numbers tell the turns of the
    /// vectors. As with [`Self::cg_resident`], one launch may come to have been abandoned.
    fn cgnr_resident<T: Real>(
        &self,
        run: Run<'_>,
        shape: CgnrShape,
        a: &Stored<Self, T>,
        at: &Stored<Self, T>,
        turns: Range<usize>,
        mut vectors: CgnrVectors<'_, Self, T>,
        state: &mut SolveState<Self>,
    ) -> Result<()> {
        turns.into_iter().try_for_each(|turn| {
            self.cgnr_backward(run, shape, at, turn % 2, vectors.again(), state)?;
            self.cgnr_forward(run, shape, a, (turn + 1) % 2, vectors.again(), state)
        })
    }

    /// The program of a block alone.
    fn step_scalars<T: Real>(&self, run: Run<'_>, call: StepCall, state: &mut StepState<Self>) -> Result<()>;
    /// The program, then `y = s A x + k w` with `y.y` and `y.z`.
    fn step_product<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        a: &Stored<Self, T>,
        blend: Blend,
        vectors: [&Self::Buffer<T>; 3],
        y: &mut Self::Buffer<T>,
        state: &mut StepState<Self>,
    ) -> Result<()>;
    /// The program, then the statements of `pass` for vectors of `n` rows.
    fn step_vectors<T: Real>(
        &self,
        run: Run<'_>,
        call: StepCall,
        n: usize,
        pass: &Pass,
        vectors: [&mut Self::Buffer<T>; PASS_VECTORS],
        state: &mut StepState<Self>,
    ) -> Result<()>;
}

/// The error of mixing devices, as every operation on several objects reports it.
pub(crate) fn stray(what: &'static str, device: &Device) -> Error {
    Error::DeviceMismatch { what, expected: device.info().name.clone() }
}
