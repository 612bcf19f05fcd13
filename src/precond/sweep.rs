//! Gauss-Seidel, SOR and SSOR: sweeps over the rows. Rows that do not depend on each other are computed at the same time.
//!
//! With `A = D + L + U`: the diagonal, the entries before it and the entries behind it in the order of the rows,
//!
//! ```text
//!   SOR    M = (D / omega + L)^-1                                           Gauss-Seidel: omega = 1
//!   SSOR   M = omega (2 - omega) (D + omega U)^-1 D (D + omega L)^-1        symmetric if A is
//! ```
//!
//! A [`Method::Stationary`](crate::Method::Stationary) iteration with `M` is the method of that name; SSOR preconditions
//! conjugate gradients.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, sections 4.1 and 10.2 (the operators),
//! 11.6.3 (levels), 12.4 (colours); michels-2011, whose open problem it was to do this in parallel; oses-2013.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::kind::{Made, PreconditionerKind, Source, Symmetry, stored_bytes};
use super::support::levels;
use crate::backend::precond::sweep::Triangle;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::memory::Plans;
use crate::number::{Real, first_not_finite, per_number};
use crate::operator::{LinearOperator, SharedOperator, check_shape, into_shared};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr, colours};
use crate::threads;
use crate::vector::Vector;

/// Order in which a sweep takes the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrdering {
    /// By colours, such that no two rows of one colour are joined by an entry: few launches (2 for the matrix of a grid),
    /// at the price of more iterations of SSOR than in the order of the rows; with two colours 1 is its best `omega`.
    #[default]
    Colours,
    /// The order of the rows, exactly: rows that need none of each other are taken together, level by level. As many levels
    /// as the longest chain of rows that need each other (about `2 g` on a `g x g` grid).
    Rows,
}

/// Kinds of sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SweepKind {
    /// `z = (D + L)^-1 x`.
    GaussSeidel,
    /// Successive over-relaxation: `z = (D / omega + L)^-1 x`.
    Sor,
    /// Symmetric successive over-relaxation, forwards and back: `z = omega (2 - omega) (D + omega U)^-1 D (D + omega L)^-1 x`. Symmetric
    /// positive definite if the matrix is.
    Ssor,
}

/// Options of [`Sweep::new`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SweepOptions {
    /// Operator.
    pub kind: SweepKind,
    /// Relaxation factor of SOR and SSOR, between 0 and 2; Gauss-Seidel has none.
    pub omega: f64,
    /// Order of the rows, by colours unless set.
    pub ordering: RowOrdering,
}

impl SweepOptions {
    setters! {
        with_kind: kind(SweepKind),
        with_omega: omega(f64),
        with_ordering: ordering(RowOrdering),
    }

    /// A Gauss-Seidel sweep.
    pub const fn gauss_seidel() -> Self {
        Self { kind: SweepKind::GaussSeidel, omega: 1.0, ordering: RowOrdering::Colours }
    }

    /// A sweep of successive over-relaxation.
    pub const fn sor(omega: f64) -> Self {
        Self { kind: SweepKind::Sor, omega, ordering: RowOrdering::Colours }
    }

    /// A sweep forwards and one back, symmetric, for CG.
    pub const fn ssor(omega: f64) -> Self {
        Self { kind: SweepKind::Ssor, omega, ordering: RowOrdering::Colours }
    }
}

impl PreconditionerKind for SweepOptions {
    fn name(&self) -> &'static str {
        match self.kind {
            SweepKind::GaussSeidel => "gauss-seidel",
            SweepKind::Sor => "sor",
            SweepKind::Ssor => "ssor",
        }
    }

    fn symmetry(&self) -> Symmetry {
        match self.kind {
            SweepKind::GaussSeidel | SweepKind::Sor => Symmetry::Lost,
            SweepKind::Ssor => Symmetry::Kept,
        }
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        Some(a.nnz())
    }

    /// An entry of one sweep counts half; a sweep may hold nearly all of them. Rows that wait tell each other their values.
    fn bytes<T: Real>(&self, entries: usize, rows: usize) -> u64 {
        stored_bytes::<T>([entries, rows], 1, 8)
    }

    fn build<T: Real>(&self, Source { device, a, .. }: Source<'_, T>) -> Result<Made<T>> {
        Ok(Made::new(Sweep::new(device, a, *self)?, a.nnz()))
    }
}

/// Rows of a level up to which several levels are one launch, by one group.
const NARROW: usize = 1024;

/// One triangle, its rows in the order of their levels.
#[derive(Debug)]
struct TriangularSweep<T: Real> {
    triangle: RwLock<Triangle<T>>,
    /// Places in the matrix of the entries of the triangle, and of its rows.
    sources: Vec<u32>,
    list: Vec<u32>,
    /// Levels of each launch, and rows of its widest.
    launches: Vec<(Range<usize>, usize)>,
}

/// Gauss-Seidel, SOR or SSOR as an operator: one or two sweeps over the rows of a matrix. Every device gives the same bits.
///
/// # Cost
/// Held: the entries off the diagonal once (SSOR) or those of one triangle, and 12 to 16 bytes for each row of each sweep; on the
/// host 4 bytes for each of these entries, and for each row. Takes other values ([`LinearOperator::update_values`]) without looking for
/// levels or colours again.
/// A sweep reads its entries, gathers from its result, reads and writes a vector; one launch for each wide level, one for
/// a run of narrow ones. On NVIDIA's GPUs from Volta on three levels and more are one launch, whose rows wait for the values that they
/// need; it holds two values more for each row.
///
/// ```
/// use residuum::precond::{Sweep, SweepOptions};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let m = Sweep::new(&device, &a, SweepOptions::ssor(1.2))?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sweep<T: Real> {
    device: Device,
    rows: usize,
    omega: f64,
    bytes: u64,
    /// Checksum of the places of the matrix.
    pattern: u64,
    forward: Arc<TriangularSweep<T>>,
    /// The sweep back, of SSOR.
    backward: Option<Arc<TriangularSweep<T>>>,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, options: SweepOptions) -> Result<Sweep<T>> = Sweep::new_here;
    fn update_values<T>(this: &Sweep<T>, a: &Csr<T>) -> Result<()> = Sweep::update_values_here;
}

impl<T: Real> Sweep<T> {
    /// A sweep over the rows of `a`, or two.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for `omega` outside (0, 2)
    /// or a matrix of 2³² entries and more, [`Error::Structure`] for an entry of the diagonal that is missing or too small
    /// to divide by, [`Error::Memory`].
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: SweepOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, options: SweepOptions) -> Result<Self> {
        let SweepOptions { kind, omega, ordering } = options;
        let omega = if kind == SweepKind::GaussSeidel { 1.0 } else { omega };
        let symmetric = kind == SweepKind::Ssor;
        same_length("columns of a square matrix", a.rows(), a.cols())?;
        if !(omega > 0.0 && omega < 2.0) {
            return Err(Error::Option { name: "omega", reason: format!("{omega} is not between 0 and 2") });
        }
        if u32::try_from(a.nnz()).is_err() {
            let reason = format!("{} entries; a sweep counts them in 32 bits", a.nnz());
            return Err(Error::Option { name: "preconditioner", reason });
        }
        let scale = scale_of(a.values(), &diagonal_places(a)?, omega)?;
        let place = match ordering {
            RowOrdering::Colours => colours(a),
            RowOrdering::Rows => (0..a.rows() as u32).collect(),
        };
        let size = T::PRECISION.bytes() as u64;
        let (entries, rows) = (a.nnz() as u64, a.rows() as u64);
        // Either triangle may hold nearly all entries: the plan is for the worst.
        // Two values a row for each sweep, where rows wait for each other.
        let waits = device.tuning().resident_groups > 1;
        let told = if waits { 2 * (1 + u64::from(symmetric)) * size * rows } else { 0 };
        device.check_memory(
            0,
            &[("indices of a sweep", 4 * entries), ("values of a sweep", size * entries), ("told values", told)],
        )?;
        let forward =
            TriangularSweep::new(device, a, &scale, ordering, &place, |mine, other| other < mine, 0..a.rows())?;
        let backward = match symmetric {
            false => None,
            true => {
                let order = (0..a.rows()).rev();
                Some(TriangularSweep::new(device, a, &scale, ordering, &place, |mine, other| other > mine, order)?)
            }
        };
        let sweeps = 1 + u64::from(symmetric);
        let waiting: u64 =
            [Some(&forward), backward.as_ref()].into_iter().flatten().map(|s| s.waiting_bytes()).sum();
        let bytes = (4 + size) * entries * sweeps / 2 + sweeps * rows * (8 + size) + waiting;
        let (forward, backward) = (Arc::new(forward), backward.map(Arc::new));
        Ok(Self { device: device.clone(), rows: a.rows(), omega, bytes, pattern: a.pattern(), forward, backward })
    }

    fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        self.check_pattern(a)?;
        let diagonal = diagonal_places(a)?;
        self.write(a.values(), &diagonal)
    }

    /// Queues the first sweep alone: `z = (D / omega + L)^-1 x`.
    pub(super) fn forward(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        apply(&self.forward, &self.device, None, x, z)
    }

    /// Queues the sweep back alone, if there is one, in place: `z = (2 / omega - 1) (D / omega + U)^-1 D z`. `x` is any other vector.
    pub(super) fn back(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        let keep = Some(T::from_f64(2.0 - self.omega));
        self.backward.as_ref().map_or(Ok(()), |backward| apply(backward, &self.device, keep, x, z))
    }

    /// Fails for a matrix with other places.
    pub(super) fn check_pattern(&self, a: &Csr<T>) -> Result<()> {
        a.check_pattern(self.pattern)
    }

    /// Takes other values for the same places; `diagonal` has the places of the diagonal entries.
    pub(super) fn write(&self, values: &[T], diagonal: &[usize]) -> Result<()> {
        let scale = scale_of(values, diagonal, self.omega)?;
        for sweep in [Some(&self.forward), self.backward.as_ref()].into_iter().flatten() {
            let values = threads::numbers(&sweep.sources[..], threads::LEAST, |_, at| values[*at as usize]);
            let scale = threads::numbers(&sweep.list[..], threads::LEAST, |_, i| scale[*i as usize]);
            let mut triangle = sweep.triangle.write().unwrap_or_else(PoisonError::into_inner);
            triangle.values.write(&values)?;
            triangle.scale.write(&scale)?;
        }
        Ok(())
    }
}

const NO_DIAGONAL: &str = "a diagonal entry too small to divide by, or missing: nothing to sweep with";

/// Place of each diagonal entry among all.
fn diagonal_places<T: Real>(a: &Csr<T>) -> Result<Vec<usize>> {
    let places = a.diagonal_places();
    match places.iter().position(Option::is_none) {
        None => Ok(places.into_iter().flatten().collect()),
        Some(i) => Err(Error::Structure { what: NO_DIAGONAL.into(), row: Some(i) }),
    }
}

/// `omega / d`, which rows are multiplied by.
fn scale_of<T: Real>(values: &[T], diagonal: &[usize], omega: f64) -> Result<Vec<T>> {
    let of_entry = |_, at: &usize| T::from_f64(omega / values[*at].to_f64());
    let scale = threads::numbers(diagonal, threads::LEAST, of_entry);
    first_not_finite(&scale).map_or(Ok(scale), |i| Err(Error::Structure { what: NO_DIAGONAL.into(), row: Some(i) }))
}

per_number! {
    fn apply<T>(this: &TriangularSweep<T>, device: &Device, keep: Option<T>, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> = TriangularSweep::apply_here;
}

/// Number of rows that each row needs.
fn lengths<T: Real>(a: &Csr<T>, needs: impl Fn(usize, usize) -> bool) -> Vec<u32> {
    let mut lengths = vec![0; a.rows()];
    for (i, length) in lengths.iter_mut().enumerate() {
        for j in a.row(i).0 {
            *length += u32::from(needs(i, *j as usize));
        }
    }
    lengths
}

impl<T: Real> TriangularSweep<T> {
    /// The entries of `a` that `before` says come before their row, by the places of both.
    fn new(
        device: &Device,
        a: &Csr<T>,
        scale: &[T],
        ordering: RowOrdering,
        place: &[u32],
        before: impl Fn(u32, u32) -> bool,
        order: impl Iterator<Item = usize>,
    ) -> Result<Self> {
        let needs = |i: usize, j: usize| before(place[i], place[j]);
        let level = match ordering {
            RowOrdering::Rows => levels(a, order, needs),
            // Colours are levels, in this order or the other.
            RowOrdering::Colours if before(1, 0) => place.to_vec(),
            RowOrdering::Colours => {
                let last = place.iter().copied().max().unwrap_or(0);
                place.iter().map(|colour| last - colour).collect()
            }
        };
        let count = level.iter().map(|l| *l as usize + 1).max().unwrap_or(0);
        let mut bounds = vec![0u32; count + 1];
        for l in &level {
            bounds[*l as usize + 1] += 1;
        }
        for l in 0..count {
            bounds[l + 1] += bounds[l];
        }
        let mut next = bounds.clone();
        let mut list = vec![0u32; a.rows()];
        for (i, l) in level.iter().enumerate() {
            list[next[*l as usize] as usize] = i as u32;
            next[*l as usize] += 1;
        }
        let lengths = lengths(a, needs);
        // Rows of a level by their length: loops of one length follow each other (bcsstk18 on two cores: 0.63 of the time).
        for level in bounds.windows(2) {
            list[level[0] as usize..level[1] as usize].sort_by_key(|i| lengths[*i as usize]);
        }
        let entries = lengths.iter().map(|length| *length as usize).sum();
        let (mut offsets, mut sources) = (vec![0u32], Vec::with_capacity(entries));
        let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        for i in list.iter().map(|i| *i as usize) {
            for at in a.offsets()[i]..a.offsets()[i + 1] {
                let j = a.indices()[at];
                if needs(i, j as usize) {
                    sources.push(at as u32);
                    indices.push(j);
                    values.push(a.values()[at]);
                }
            }
            offsets.push(sources.len() as u32);
        }
        let waiting = device.backend().sweep::<T>().waiting(device.run::<T>(), &bounds, &offsets)?;
        let launches = match waiting {
            Some(_) => vec![(0..count, a.rows())],
            None => launches(&bounds),
        };
        let scale: Vec<T> = list.iter().map(|i| scale[*i as usize]).collect();
        // No buffer is empty: a triangle may be.
        if indices.is_empty() {
            indices.push(0);
            values.push(T::default());
        }
        let place = device.place();
        let triangle = Triangle {
            bounds: place.take(bounds)?,
            list: place.upload(&list)?,
            offsets: place.take(offsets)?,
            indices: place.take(indices)?,
            values: place.take(values)?,
            scale: place.take(scale)?,
            plans: Plans::default(),
            waiting: waiting.map(Mutex::new),
        };
        Ok(Self { triangle: RwLock::new(triangle), sources, list, launches })
    }

    /// Bytes of what rows that wait for each other share.
    fn waiting_bytes(&self) -> u64 {
        let triangle = self.triangle.read().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = &triangle.waiting else { return 0 };
        waiting.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }

    /// Queues the sweep; `keep` is 2 - omega going back.
    fn apply_here(&self, device: &Device, keep: Option<T>, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        let (run, operations) = (device.run::<T>(), device.backend().sweep::<T>());
        let triangle = self.triangle.read().unwrap_or_else(PoisonError::into_inner);
        self.launches.iter().try_for_each(|(levels, widest)| {
            operations.sweep(run, &triangle, levels.clone(), *widest, keep, x.memory(), z.memory_mut())
        })
    }
}

/// The launches of a sweep: a wide level alone, neighbouring narrow ones together.
fn launches(bounds: &[u32]) -> Vec<(Range<usize>, usize)> {
    let mut found: Vec<(Range<usize>, usize)> = Vec::new();
    for (level, pair) in bounds.windows(2).enumerate() {
        let rows = (pair[1] - pair[0]) as usize;
        match found.last_mut() {
            Some((levels, widest)) if rows <= NARROW && *widest <= NARROW => {
                levels.end = level + 1;
                *widest = rows.max(*widest);
            }
            _ => found.push((level..level + 1, rows)),
        }
    }
    found
}

into_shared!(Sweep cloned);

impl<T: Real> LinearOperator<T> for Sweep<T> {
    fn device(&self) -> &Device {
        &self.device
    }
    fn rows(&self) -> usize {
        self.rows
    }
    fn cols(&self) -> usize {
        self.rows
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        check_shape((self.rows, self.rows), x, z)?;
        self.forward(x, z)?;
        self.back(x, z)
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        update_values(self, a)
    }
    fn launches(&self, _columns: usize) -> usize {
        self.forward.launches.len() + self.backward.as_ref().map_or(0, |b| b.launches.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_levels_share_a_launch() {
        assert_eq!(launches(&[0, 10, 20, 3000, 3010, 6000]), [(0..2, 10), (2..3, 2980), (3..4, 10), (4..5, 2990)]);
        assert_eq!(launches(&[0]), []);
    }
}
