//! Systems with a singular matrix whose null space is known.

use std::sync::Arc;

use crate::backend::linear::projection::Directions;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::memory::Memory;
use crate::number::{Real, Sum, per_number};
use crate::operator::{LinearOperator, magnitude};
use crate::reduction::Chunks;
use crate::vector::Vector;

/// Largest `|A z|`, in units of `eps |A| |z|`, of a vector that counts as one of the null space.
const ROUNDING: f64 = 100.0;

/// The null space of a singular symmetric matrix: mutually orthogonal vectors `z` with `A z = 0`.
///
/// A solver that is given it ([`Setup::with_null_space`](crate::Setup::with_null_space)) solves for the part of `b` that has a
/// solution, `b - (z.b / z.z) z` for each `z`, and begins without the part of the start guess that `A` does not see, so that the
/// answer is the one orthogonal to the null space. [`Report::projected`](crate::Report::projected) says how much of `b` was left out.
///
/// # Cost
/// Held: the vectors, and a right-hand side in the solver. A solve takes four launches for each vector, which read 6 vectors and
/// write 2 (the constants: 2 read and 1 written), and one read of numbers.
///
/// Source: P. Bochev, R. B. Lehoucq, "On the finite element solution of the pure Neumann problem", SIAM Review 47(1), 2005, section 4.
///
/// ```
/// use residuum::operator::{Boundary, Stencil};
/// use residuum::{Device, Method, NullSpace, Setup, Solver, Stopping, Vector};
///
/// // A Laplacian whose boundaries reflect takes constants to 0.
/// let device = Device::best()?;
/// let reflecting = [Boundary::Reflecting, Boundary::Reflecting, Boundary::Zero];
/// let a = Stencil::laplacian_2d(16, 16)?.with_boundaries(reflecting).operator::<f64>(&device)?;
/// let mut b = vec![0.0; 256];
/// (b[0], b[255]) = (1.0, -1.0);
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_null_space(NullSpace::constants(&device, 256)?);
/// let mut x = Vector::zeros(&device, 256)?;
/// assert!(Solver::with(&a, setup)?.solve(&Vector::from_slice(&device, &b)?, &mut x)?.converged());
/// assert!(x.to_vec()?.iter().sum::<f64>().abs() < 1e-9);
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NullSpace<T: Real> {
    kind: Kind<T>,
    /// `z.z` of each vector.
    squares: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Kind<T: Real> {
    /// Ones, of so many elements.
    Constants(Device, usize),
    Vectors(Arc<[Vector<T>]>),
}

impl<T: Real> NullSpace<T> {
    /// The constants: the null space of a grid whose boundaries reflect or repeat.
    ///
    /// # Errors
    /// [`Error::Option`] for `n = 0`.
    pub fn constants(device: &Device, n: usize) -> Result<Self> {
        if n == 0 {
            return Err(Error::Option { name: "null_space", reason: "it has no element".into() });
        }
        Ok(Self { kind: Kind::Constants(device.clone(), n), squares: vec![n as f64] })
    }

    /// The space that these vectors span.
    ///
    /// # Errors
    /// [`Error::Shape`] for vectors of different lengths, [`Error::Option`] if there are none, if one is 0 or not finite, or if two are
    /// not orthogonal.
    pub fn of(vectors: Vec<Vector<T>>) -> Result<Self> {
        let bad = |reason: String| Err(Error::Option { name: "null_space", reason });
        if vectors.is_empty() {
            return bad("it has no vector".into());
        }
        let mut squares: Vec<f64> = Vec::new();
        for (k, z) in vectors.iter().enumerate() {
            same_length("vectors of a null space", vectors[0].len(), z.len())?;
            let square = z.dot(z)?;
            if !(square > 0.0 && square.is_finite()) {
                return bad(format!("the square of vector {k} is {square}"));
            }
            for (j, other) in vectors[..k].iter().enumerate() {
                let cosine = z.dot(other)? / (square * squares[j]).sqrt();
                if cosine.abs() > ROUNDING * T::EPSILON {
                    return bad(format!("vectors {j} and {k} are not orthogonal: their cosine is {cosine:.1e}"));
                }
            }
            squares.push(square);
        }
        Ok(Self { kind: Kind::Vectors(vectors.into()), squares })
    }

    /// Number of vectors.
    pub fn dimension(&self) -> usize {
        self.squares.len()
    }

    /// Fails unless `a` takes each vector to 0, as far as rounding lets it.
    pub(crate) fn check(&self, a: &dyn LinearOperator<T>) -> Result<()> {
        let norm = magnitude(a)?.to_f64();
        let ones = match &self.kind {
            Kind::Constants(device, n) => vec![Vector::filled(device, *n, T::from_f64(1.0))?],
            Kind::Vectors(_) => Vec::new(),
        };
        let vectors = match &self.kind {
            Kind::Constants(..) => &ones[..],
            Kind::Vectors(vectors) => vectors,
        };
        for (k, (z, square)) in vectors.iter().zip(&self.squares).enumerate() {
            same_length("vectors of the null space", a.cols(), z.len())?;
            let mut y = Vector::zeros(a.device(), a.rows())?;
            a.apply(z, &mut y)?;
            let (found, limit) = (y.norm2()?, ROUNDING * T::EPSILON * norm * square.sqrt());
            if found.partial_cmp(&limit).is_none_or(|order| order.is_gt()) {
                let reason = format!(
                    "|A z| of vector {k} is {found:.1e}, which rounding (at most {limit:.1e}) does not explain"
                );
                return Err(Error::Conflict { name: "null_space", reason });
            }
        }
        Ok(())
    }
}

/// A null space with what a solver needs to keep its systems out of it.
pub(super) struct Projection<T: Real> {
    space: NullSpace<T>,
    /// Right-hand side of the solve under way.
    rhs: Vector<T>,
    scratch: Scratch<T>,
}

/// Numbers that a removal works with.
struct Scratch<T: Real> {
    /// A vector of one number, for kernels that read none.
    any: Vector<T>,
    /// `1 / z.z` of each vector.
    inverse: Memory<Sum>,
    sums: Memory<Sum>,
    /// Parts taken out of the right-hand side, and of the start.
    removed: [Memory<Sum>; 2],
}

per_number! {
    fn remove<T>(
        space: &NullSpace<T>,
        scratch: &mut Scratch<T>,
        which: usize,
        x: &mut Vector<T>,
    ) -> Result<()> = remove_here;
}

/// Takes every vector of the space out of `x`.
fn remove_here<T: Real>(
    space: &NullSpace<T>,
    scratch: &mut Scratch<T>,
    which: usize,
    x: &mut Vector<T>,
) -> Result<()> {
    let Scratch { any, inverse, sums, removed } = scratch;
    let device = x.device().clone();
    let operations = device.backend().projection::<T>();
    for place in 0..space.dimension() {
        let z = match &space.kind {
            Kind::Constants(..) => None,
            Kind::Vectors(vectors) => Some(vectors[place].memory()),
        };
        let removed = &mut removed[which];
        let along = Directions { z, any: any.memory(), inverse, place, sums, removed };
        operations.remove_component(device.run::<T>(), x.len(), along, x.memory_mut())?;
    }
    Ok(())
}

impl<T: Real> Projection<T> {
    /// # Errors
    /// [`Error::Conflict`] for vectors that are not in the null space of `a`.
    pub(super) fn new(a: &dyn LinearOperator<T>, space: &NullSpace<T>) -> Result<Self> {
        space.check(a)?;
        let (device, n) = (a.device(), a.rows());
        let accumulation = device.accumulation(T::PRECISION);
        let inverse: Vec<Sum> = space.squares.iter().map(|square| Sum::of(1.0 / square, accumulation)).collect();
        let zeros = |count| device.place().filled(count, Sum::default());
        let scratch = Scratch {
            any: Vector::zeros(device, 1)?,
            inverse: device.place().upload(&inverse)?,
            sums: zeros(Chunks::of(n).count.max(1))?,
            removed: [zeros(space.dimension())?, zeros(space.dimension())?],
        };
        Ok(Self { rhs: Vector::zeros(device, n)?, scratch, space: space.clone() })
    }

    /// The right-hand side that has a solution; takes the null space out of the start `x`.
    pub(super) fn project(&mut self, b: &Vector<T>, x: &mut Vector<T>) -> Result<&Vector<T>> {
        let Self { space, rhs, scratch } = self;
        rhs.copy_from(b)?;
        remove(space, scratch, 0, rhs)?;
        remove(space, scratch, 1, x)?;
        Ok(rhs)
    }

    /// The norm of what was taken out of the right-hand side. Waits.
    pub(super) fn removed(&self) -> Result<f64> {
        let mut shares = vec![Sum::default(); self.space.dimension()];
        self.scratch.removed[0].read(0, &mut shares)?;
        let accumulation = self.rhs.device().accumulation(T::PRECISION);
        let squares =
            shares.iter().zip(&self.space.squares).map(|(s, square)| s.value(accumulation).powi(2) / square);
        Ok(squares.sum::<f64>().sqrt())
    }
}
