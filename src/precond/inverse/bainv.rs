//! Approximate inverses over a partition: BAINV.
//!
//! ```text
//!   M = S diag(Z_1 D_1^-1 Z_1', Z_2 D_2^-1 Z_2', ...) S = W W'     over the parts, the entries between parts dropped
//!
//!   in each part, rows in their own order, with its block of S A S:
//!   for i = 0 .. m-1:                                  Z is the identity at first
//!       p_j = <row i of the block, z_j>  for j >= i
//!       z_j = z_j - (p_j / p_i) z_i      for j > i
//! ```
//!
//! AINV without dropping is exact in each block. Blocks do not depend on each other. `S` scales the diagonal to 1. Sums run over
//! ascending rows in `f64`; entries of `z` are rounded to the precision of the matrix.
//!
//! Source: dedecek-2013, chapter 4 (blocks) and algorithm 6 (AINV).

use std::time::Instant;

use super::columns::{bad_pivot, unit_diagonal};
use crate::backend::precond::parts::{Inverses, Parts, row_start};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, Structure};
use crate::precond::kind::{LeastSquares, Made, Parameters, PreconditionerKind, Source, Symmetry};
use crate::precond::support::{Square, check_symmetric, in_time, operator_in_field, square};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr, Partition};
use crate::threads;
use crate::vector::Vector;

/// Most rows of a part. A part takes the cube of its rows in operations.
const MOST_ROWS: usize = 4096;

/// Rows of a part if no number of parts is asked for.
const ROWS_OF_A_PART: usize = 100;

/// Name of what is made, in messages.
const OF_PARTS: &str = "an approximate inverse of parts";

/// Options of [`Bainv::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BainvOptions {
    /// Parts of the partition that [`Preconditioner::build`](crate::precond::Preconditioner::build) asks METIS for; `None` for parts of about
    /// 100 rows.
    pub parts: Option<usize>,
    /// Rounds the factor to `f32` in the end and stores it so, for solves in `f64`: see [`Csr::rounded_to_f32`].
    pub stored_f32: bool,
    /// Makes it on the device, a part by a work-group, or on the host, a part by a thread, with the same bits; `None` chooses by the
    /// kind of device and the number of rows. The host does it in any case if the device has no `f64`, or no room for all parts.
    pub on_device: Option<bool>,
    /// Time at which the set-up ends with [`Error::OutOfTime`] if it is not done. A device looks at it before it begins.
    pub deadline: Option<Instant>,
}

impl Default for BainvOptions {
    fn default() -> Self {
        Self::NEUTRAL
    }
}

impl BainvOptions {
    setters! {
        with_parts: parts(impl usize),
        with_stored_f32: stored_f32(bool),
        with_on_device: on_device(impl bool),
        with_deadline: deadline(impl Instant),
    }

    /// The default.
    pub(in crate::precond) const NEUTRAL: Self =
        Self { parts: None, stored_f32: false, on_device: None, deadline: None };
}

/// The inverse of the blocks that a partition leaves of a symmetric positive definite matrix, `W W'` as an
/// operator. It is applied by two products with stored matrices, whose rows need no order. Every device gives the
/// same bits. Parts are made by threads of the host, or by work-groups of a device ([`BainvOptions::on_device`]).
///
/// # Cost
/// Held: `W` and its transposed, and a vector. A product reads one of them each, and three vectors. Set-up: for a part of `m` rows,
/// `m (m + 1) / 2` numbers and about `m^3 / 3` additions and multiplications; on a device one launch.
///
/// ```
/// use residuum::precond::{Bainv, BainvOptions};
/// use residuum::sparse::{Partition, gallery};
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let partition = Partition::natural(a.rows(), 8)?;
/// let m = Bainv::new(&device, &a, &partition, BainvOptions::default())?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct Bainv<T: Real> {
    product: Square<T>,
    w: Matrix<T>,
    entries: usize,
    on_device: bool,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, partition: &Partition, options: BainvOptions) -> Result<Bainv<T>> = Bainv::new_here;
}

impl<T: Real> Bainv<T> {
    /// Makes it for the symmetric positive definite matrix `a` over `partition`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for a matrix that is not square, or a partition of another number of rows, [`Error::Option`](crate::Error::Option) for a part of more than
    /// 4096 rows, [`Error::NotFinite`](crate::Error::NotFinite), [`Error::Structure`](crate::Error::Structure) with the row of an entry that is not symmetric, of a pivot that is not
    /// positive, or of a factor that is out of the range of `f32`; [`Error::Memory`](crate::Error::Memory).
    pub fn new(
        device: &Device,
        a: &(impl AsCsr<T> + ?Sized),
        partition: &Partition,
        options: BainvOptions,
    ) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, partition, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, partition: &Partition, options: BainvOptions) -> Result<Self> {
        let (factor, on_device) = factor(device, a, partition, options)?;
        let (w, product) = square(device, &factor, options.stored_f32)?;
        Ok(Self { product, w, entries: factor.nnz(), on_device })
    }

    /// The root `W` of the approximate inverse, which shares its entries: what preconditions least squares from the right, if this was made
    /// from [`Csr::normal_matrix`].
    pub fn root(&self) -> SharedOperator<T> {
        (&self.w).into()
    }

    /// Entries of `Z` with its diagonal, and of `W`.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Tells if the parts were inverted on the device.
    pub fn made_on_device(&self) -> bool {
        self.on_device
    }
}

/// `W = S Z D^-1/2` by rows, and whether the device made it.
fn factor<T: Real>(
    device: &Device,
    a: &Csr<T>,
    partition: &Partition,
    BainvOptions { on_device, deadline, .. }: BainvOptions,
) -> Result<(Csr<T>, bool)> {
    partition.check(a)?;
    check_symmetric(a)?;
    let sizes = partition.sizes_up_to(MOST_ROWS)?;
    if u32::try_from(a.nnz()).is_err() {
        let reason = format!("{} entries; parts count them in 32 bits", a.nnz());
        return Err(Error::Option { name: "preconditioner", reason });
    }
    let scale = unit_diagonal(a)?;
    // Twice over: the factor and its transposed.
    let most: usize = sizes.iter().map(|m| m * (m + 1)).sum();
    device.check_memory(0, &[("approximate inverse", (most * (4 + T::PRECISION.bytes())) as u64)])?;
    let members = partition.members();
    let mut place = vec![0; a.rows()];
    for rows in &members {
        rows.iter().enumerate().for_each(|(l, row)| place[*row as usize] = l as u32);
    }
    in_time(deadline, OF_PARTS)?;
    let parts = separated(&a.scaled(&scale, &scale)?, partition, &members, &place);
    let found = match on_device {
        Some(false) => None,
        wanted => match invert_on_device(device, &parts, wanted == Some(true)) {
            // The host has more room.
            Err(Error::Memory { .. }) if wanted.is_none() => None,
            found => found?,
        },
    };
    let made_there = found.is_some();
    let Inverses { triangles, pivots } = match found {
        Some(found) => found,
        None => on_host(&parts, &members, deadline)?,
    };
    let (bases, roots) = (parts.bases(), pivots.into_iter().map(f64::sqrt).collect::<Vec<_>>());
    let factor = Csr::from_rows(a.rows(), a.cols(), |i, entries| {
        let part = partition.of()[i] as usize;
        let (rows, l) = (&members[part], place[i] as usize);
        let (m, first) = (rows.len(), parts.starts[part] as usize);
        let row = &triangles[bases[part] + row_start(m, l)..][..m - l];
        for (j, z) in (l..m).zip(row.iter().map(|z| z.to_f64())).filter(|(_, z)| *z != 0.0) {
            entries.push((rows[j], T::from_f64(scale[i] * z / roots[first + j])));
        }
    })?;
    Ok((factor, made_there))
}

/// The inverses, if the device makes them.
fn invert_on_device<T: Real>(device: &Device, parts: &Parts<T>, forced: bool) -> Result<Option<Inverses<T>>> {
    device.backend().parts::<T>().invert_parts(device.run::<T>(), parts, forced)
}

/// The entries of `a` within parts, whose rows are `members`; `place` is that of each row in its part.
fn separated<T: Real>(a: &Csr<T>, partition: &Partition, members: &[Vec<u32>], place: &[u32]) -> Parts<T> {
    let of = partition.of();
    let mut parts = Parts { starts: vec![0], offsets: vec![0], indices: Vec::new(), entries: Vec::new() };
    for (part, rows) in members.iter().enumerate() {
        for i in rows {
            let (columns, values) = a.row(*i as usize);
            let inside = columns.iter().zip(values).filter(|(j, _)| of[**j as usize] as usize == part);
            for (j, value) in inside {
                parts.indices.push(place[*j as usize]);
                parts.entries.push(*value);
            }
            parts.offsets.push(parts.indices.len() as u32);
        }
        parts.starts.push(parts.offsets.len() as u32 - 1);
    }
    parts
}

/// The inverses, a part by a thread. `members` are the rows, for errors.
fn on_host<T: Real>(parts: &Parts<T>, members: &[Vec<u32>], deadline: Option<Instant>) -> Result<Inverses<T>> {
    let bases = parts.bases();
    let mut triangles = vec![T::default(); bases.last().copied().unwrap_or(0)];
    let mut own = Vec::with_capacity(members.len());
    let mut left = &mut triangles[..];
    for (part, rows) in members.iter().enumerate() {
        let (mine, after) = left.split_at_mut(bases[part + 1] - bases[part]);
        left = after;
        own.push((part, rows, mine));
    }
    let of_part = |_, (part, rows, z): &mut (usize, &Vec<u32>, &mut [T])| invert(parts, (*part, deadline), rows, z);
    let pivots = threads::map(&mut own[..], 1, of_part);
    let pivots = pivots.into_iter().collect::<Result<Vec<_>>>()?.concat();
    Ok(Inverses { triangles, pivots })
}

/// The inverse of one part into `z`, which holds zeros; its pivots.
fn invert<T: Real>(
    parts: &Parts<T>,
    (part, deadline): (usize, Option<Instant>),
    rows: &[u32],
    z: &mut [T],
) -> Result<Vec<f64>> {
    let (m, first) = (rows.len(), parts.starts[part] as usize);
    // Row `l` from column `j >= l` on.
    let from = |l: usize, j: usize| row_start(m, l) + j - l;
    (0..m).for_each(|l| z[from(l, l)] = T::from_f64(1.0));
    let mut pivots = Vec::with_capacity(m);
    let mut p = vec![0.0; m];
    for (i, row) in rows.iter().enumerate() {
        in_time(deadline, OF_PARTS)?;
        p[i..].fill(0.0);
        for at in parts.offsets[first + i] as usize..parts.offsets[first + i + 1] as usize {
            let (l, value) = (parts.indices[at] as usize, parts.entries[at].to_f64());
            // z_j has entries in rows up to j alone.
            let j = l.max(i);
            let terms = &z[from(l, j)..][..m - j];
            p[j..].iter_mut().zip(terms).for_each(|(sum, z)| *sum += value * z.to_f64());
        }
        let pivot = p[i];
        if !(pivot > 0.0 && pivot.is_finite()) {
            let what = "the matrix is not positive definite, or too nearly singular";
            return Err(bad_pivot(*row as usize, pivot, what));
        }
        pivots.push(pivot);
        p[i + 1..].iter_mut().for_each(|p| *p /= pivot);
        for l in 0..=i {
            let own = z[from(l, i)].to_f64();
            if own != 0.0 {
                let entries = &mut z[from(l, i)..][..m - i][1..];
                let update = |z: &mut T, c: &f64| *z = T::from_f64(z.to_f64() - c * own);
                entries.iter_mut().zip(&p[i + 1..]).for_each(|(z, c)| update(z, c));
            }
        }
    }
    Ok(pivots)
}

operator_in_field!(Bainv.product, symmetric);

impl PreconditionerKind for BainvOptions {
    fn name(&self) -> &'static str {
        "bainv"
    }

    fn parameters(&self) -> String {
        self.parts.map_or(String::new(), |parts| parts.to_string())
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(["a number of parts belongs", "29"])
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        Some(self.with_parts(Some(given.only()?)))
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Definite
    }

    fn least_squares(&self) -> LeastSquares {
        LeastSquares::Any
    }

    fn in_stored_f32(self) -> Option<Self> {
        Some(self.with_stored_f32(true))
    }

    fn takes_partition(&self) -> bool {
        true
    }

    fn check_partition(&self, given: &Partition) -> Result<()> {
        match self.parts {
            Some(parts) if parts != given.parts() => {
                let reason = format!("bainv={parts}, but a partition in {} parts", given.parts());
                Err(Error::Option { name: "partition", reason })
            }
            _ => Ok(()),
        }
    }

    fn most_entries<T: Real>(&self, _a: &Csr<T>) -> Option<usize> {
        None
    }

    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let partition = self.partition(from, from.a)?;
        let inverse = Bainv::new(from.device, from.a, &partition, self.with_deadline(from.until(self.deadline)))?;
        let entries = inverse.entries();
        Ok(Made { partition: Some(partition), ..Made::new(inverse, entries) })
    }

    fn build_for_least_squares<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let normal = from.normal_matrix()?;
        let partition = self.partition(from, &normal)?;
        let inverse = Bainv::new(from.device, &normal, &partition, self.with_deadline(from.until(self.deadline)))?;
        Ok(Made { partition: Some(partition), ..Made::new(inverse.root(), inverse.entries()) })
    }
}

impl BainvOptions {
    /// The partition that is given, or one of the graph of `a`.
    fn partition<T: Real>(&self, from: Source<'_, T>, a: &Csr<T>) -> Result<Partition> {
        let source = Source { a, ..from };
        source.partition_in(self.parts.unwrap_or(a.rows().div_ceil(ROWS_OF_A_PART).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ainv;
    use super::super::ainv_options::AinvOptions;
    use super::*;
    use crate::sparse::gallery;

    fn device() -> Device {
        Device::host()
    }

    /// `a` without the entries between parts.
    fn masked<T: Real>(a: &Csr<T>, partition: &Partition) -> Csr<T> {
        let of = partition.of();
        let masked = Csr::from_rows(a.rows(), a.cols(), |i, row| {
            let entries = a.row(i).0.iter().copied().zip(a.row(i).1.iter().copied());
            row.extend(entries.filter(|(j, _)| of[*j as usize] == of[i]));
        });
        masked.unwrap()
    }

    fn it_is_ainv_of_the_blocks<T: Real>() {
        let scattered =
            |n: u32, parts: u32| Partition::new((0..n).map(|i| i * 7 % parts).collect(), parts as usize);
        for (a, partition) in [
            (gallery::poisson_2d::<T>(12, 0.0).unwrap(), Partition::natural(144, 5).unwrap()),
            (gallery::poisson_2d::<T>(12, 0.0).unwrap(), Partition::natural(144, 1).unwrap()),
            (gallery::block_poisson::<T>(8, 3).unwrap(), scattered(192, 4).unwrap()),
        ] {
            let found = factor(&device(), &a, &partition, BainvOptions::default()).unwrap().0;
            let wanted = ainv::factor(&device(), &masked(&a, &partition), AinvOptions::ainv(0.0)).unwrap().0;
            assert_eq!(found.indices(), wanted.indices());
            let bits = |w: &Csr<T>| w.values().iter().map(|v| v.to_f64().to_bits()).collect::<Vec<_>>();
            assert!(bits(&found) == bits(&wanted), "{partition}");
        }
    }

    #[test]
    fn it_is_ainv_of_the_blocks_bit_for_bit() {
        it_is_ainv_of_the_blocks::<f32>();
        it_is_ainv_of_the_blocks::<f64>();
    }

    #[test]
    fn faults_name_what_is_wrong() {
        let csr = |entries: &[(usize, usize, f64)]| Csr::from_triplets(2, 2, entries).unwrap();
        let one = Partition::natural(2, 1).unwrap();
        let row = |a: &Csr<f64>| match factor(&device(), a, &one, BainvOptions::default()) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{:?}", other.err()),
        };
        let indefinite = csr(&[(0, 0, 1.0), (0, 1, 3.0), (1, 0, 3.0), (1, 1, 1.0)]);
        assert_eq!(row(&indefinite), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (1, 1, -1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.25), (1, 1, 1.0)])), Some(0));
        // Apart, the entries that make it indefinite are dropped.
        assert_eq!(
            factor(&device(), &indefinite, &Partition::natural(2, 2).unwrap(), BainvOptions::default())
                .unwrap()
                .0
                .nnz(),
            2
        );
        let nan = csr(&[(0, 0, f64::NAN), (1, 1, 1.0)]);
        assert!(matches!(factor(&device(), &nan, &one, BainvOptions::default()), Err(Error::NotFinite { .. })));
        let three = Partition::natural(3, 1).unwrap();
        assert!(matches!(
            factor(&device(), &indefinite, &three, BainvOptions::default()),
            Err(Error::Shape { .. })
        ));
        let wide = gallery::poisson_2d::<f64>(65, 0.0).unwrap();
        let all = Partition::natural(4225, 1).unwrap();
        assert!(matches!(
            factor(&device(), &wide, &all, BainvOptions::default()),
            Err(Error::Option { name: "partition", .. })
        ));
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        assert_eq!(
            factor(&device(), &none, &Partition::natural(0, 1).unwrap(), BainvOptions::default()).unwrap().0.nnz(),
            0
        );
    }
}
