//! Block Jacobi: the inverse of the blocks along the diagonal.
//!
//! ```text
//!   M = diag(A_11, A_22, ...)^-1,   A_kk: rows and columns k b .. (k + 1) b
//! ```
//!
//! `b` is the size of a block; the last one may be smaller. With blocks of 1 this is Jacobi's preconditioner. Number unknowns
//! that belong together, such as those of one grid point, one after another. If a partition is given, its parts are the blocks.
//!
//! Source: Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, section 4.1.1 (block relaxation).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use super::kind::{Made, Parameters, PreconditionerKind, Source, Symmetry};
use crate::backend::precond::block_jacobi::Blocks;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, check_shape, into_shared};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr, Format, Partition};
use crate::vector::Vector;
use crate::{magnitude, threads};

/// Most rows of a block of consecutive rows.
const MOST: usize = 32;
/// Most rows of a part: its inverse has the square of that many numbers.
const MOST_OF_A_PART: usize = 1024;

/// Options of [`Preconditioner::BlockJacobi`](super::Preconditioner::BlockJacobi).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockJacobiOptions {
    /// Rows of a block, 1 to 32 of consecutive ones; or of a part.
    pub block: usize,
    /// Takes the parts of a partition by METIS as blocks. The parts of a partition that is given are blocks in any case.
    pub by_graph: bool,
}

impl BlockJacobiOptions {
    setters! {
        with_block: block(usize),
        with_by_graph: by_graph(bool),
    }

    /// Blocks of so many consecutive rows.
    pub const fn consecutive(block: usize) -> Self {
        Self { block, by_graph: false }
    }

    /// Parts of the graph of the matrix, of about so many rows.
    pub const fn by_graph(block: usize) -> Self {
        Self { block, by_graph: true }
    }
}

impl PreconditionerKind for BlockJacobiOptions {
    fn name(&self) -> &'static str {
        "block-jacobi"
    }

    fn parameters(&self) -> String {
        format!("{}{}", self.block, if self.by_graph { ":metis" } else { "" })
    }

    fn grammar(&self) -> Option<[&'static str; 2]> {
        Some(["a number of rows (with :metis for parts of the graph) belongs", "3 or block-jacobi=100:metis"])
    }

    fn with_parameters(self, given: &Parameters<'_>) -> Option<Self> {
        let block = given.first()?;
        match given.second_word() {
            None | Some("metis") => Some(Self { block, by_graph: given.second_word().is_some() }),
            Some(_) => None,
        }
    }

    fn symmetry(&self) -> Symmetry {
        Symmetry::Kept
    }

    fn takes_partition(&self) -> bool {
        true
    }

    fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        (!self.by_graph).then(|| a.rows().saturating_mul(self.block))
    }

    fn bytes<T: Real>(&self, entries: usize, _rows: usize) -> u64 {
        (entries * T::PRECISION.bytes()) as u64
    }

    fn build<T: Real>(&self, from: Source<'_, T>) -> Result<Made<T>> {
        let (Self { block, by_graph }, Source { device, a, .. }) = (*self, from);
        if block == 0 || !(by_graph || from.partition.is_some()) {
            let blocks = BlockJacobi::new(device, a, block)?;
            let entries = blocks.entries();
            return Ok(Made::new(blocks, entries));
        }
        let partition = from.partition_in(a.rows().div_ceil(block).max(1))?;
        let blocks = BlockJacobi::over(device, a, &partition)?;
        let entries = blocks.entries();
        Ok(Made { partition: Some(partition), ..Made::new(blocks, entries) })
    }
}

/// The inverses of dense blocks along the diagonal of a matrix, as an operator. Every device gives the same bits. They are computed on
/// the host in `f64` by elimination with partial pivoting. [`LinearOperator::update_values`] computes it again from new values of the matrix.
///
/// # Cost
/// Held: `block n` numbers; over a partition the square of its size for each part, with columns of 4 bytes, as a stored matrix. One launch; it
/// reads them and a vector, and writes a vector.
///
/// ```
/// use residuum::precond::{BlockJacobi};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let m = BlockJacobi::new(&device, &a, 4)?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockJacobi<T: Real> {
    device: Device,
    rows: usize,
    inverses: Inverses<T>,
    entries: usize,
    /// Checksum of the places of the matrix.
    pattern: u64,
}

#[derive(Clone, Debug)]
enum Inverses<T: Real> {
    /// Held for one call, so that values may be replaced between any two.
    Consecutive(Arc<RwLock<Blocks<T>>>),
    /// Their matrix, and the partition.
    Parts(Arc<(Matrix<T>, Partition)>),
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, block: usize) -> Result<BlockJacobi<T>> = BlockJacobi::new_here;
    fn over<T>(device: &Device, a: &Csr<T>, partition: &Partition) -> Result<BlockJacobi<T>> = BlockJacobi::over_here;
    fn update_values<T>(this: &BlockJacobi<T>, a: &Csr<T>) -> Result<()> = BlockJacobi::update_values_here;
    fn apply<T>(this: &BlockJacobi<T>, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> = BlockJacobi::apply_here;
}

impl<T: Real> BlockJacobi<T> {
    /// Inverts blocks of `block` rows, 1 to 32, along the diagonal of `a`; the last block may have fewer.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for a size out of range, [`Error::Structure`] with
    /// the first row of a block that has no inverse in `T`, [`Error::Memory`].
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), block: usize) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, block)
    }

    fn new_here(device: &Device, a: &Csr<T>, block: usize) -> Result<Self> {
        let n = a.rows();
        same_length("columns of a square matrix", n, a.cols())?;
        if !(1..=MOST).contains(&block) {
            let reason = format!("{block} rows of a block; 1 to {MOST} are possible");
            return Err(Error::Option { name: "preconditioner", reason });
        }
        device.check_memory(0, &[("inverses of blocks", (block * n * T::PRECISION.bytes()) as u64)])?;
        let entries = consecutive(a, block)?;
        let blocks = Blocks { rows: n, block, entries: device.place().take(entries)? };
        let inverses = Inverses::Consecutive(Arc::new(RwLock::new(blocks)));
        Ok(Self { device: device.clone(), rows: n, inverses, entries: block * n, pattern: a.pattern() })
    }

    /// Inverts the blocks of `a` that the parts of `partition` are.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, or a partition of another number of rows, [`Error::Option`] for a part of more than
    /// 1024 rows, [`Error::Structure`] with the first row of a part that has no inverse in `T`, [`Error::Memory`].
    pub fn over(device: &Device, a: &(impl AsCsr<T> + ?Sized), partition: &Partition) -> Result<Self> {
        let a = &*a.as_csr()?;
        over(device, a, partition)
    }

    fn over_here(device: &Device, a: &Csr<T>, partition: &Partition) -> Result<Self> {
        same_length("columns of a square matrix", a.rows(), a.cols())?;
        partition.check(a)?;
        let sizes = partition.sizes_up_to(MOST_OF_A_PART)?;
        let held: usize = sizes.iter().map(|m| m * m).sum();
        device.check_memory(0, &[("inverses of blocks", (held * (4 + T::PRECISION.bytes())) as u64)])?;
        let matrix = Matrix::new(device, &over_parts(a, partition)?, Format::Auto)?;
        let inverses = Inverses::Parts(Arc::new((matrix, partition.clone())));
        Ok(Self { device: device.clone(), rows: a.rows(), inverses, entries: held, pattern: a.pattern() })
    }

    fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        a.check_pattern(self.pattern)?;
        match &self.inverses {
            Inverses::Consecutive(blocks) => {
                let block = blocks.read().unwrap_or_else(PoisonError::into_inner).block;
                let entries = consecutive(a, block)?;
                blocks.write().unwrap_or_else(PoisonError::into_inner).entries.write(&entries)
            }
            Inverses::Parts(parts) => {
                let (matrix, partition) = &**parts;
                let inverses = over_parts(a, partition)?;
                matrix.replace_values(inverses.values(), || Ok(Cow::Borrowed(&inverses)))
            }
        }
    }

    /// Entries of the inverses.
    pub fn entries(&self) -> usize {
        self.entries
    }

    fn apply_here(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        let blocks = match &self.inverses {
            Inverses::Parts(parts) => return parts.0.apply(x, z),
            // A writer that panicked left whole blocks.
            Inverses::Consecutive(blocks) => blocks.read().unwrap_or_else(PoisonError::into_inner),
        };
        check_shape((blocks.rows, blocks.rows), x, z)?;
        let (run, operations) = (self.device.run::<T>(), self.device.backend().block_jacobi::<T>());
        operations.block_jacobi(run, &blocks, x.memory(), z.memory_mut())
    }
}

/// Inverses of blocks of consecutive rows, as [`Blocks::entries`] holds them. The first fault in the order of the blocks, whichever thread meets
/// one first.
fn consecutive<T: Real>(a: &Csr<T>, block: usize) -> Result<Vec<T>> {
    let n = a.rows();
    // The rows of some blocks, and their entries: those at place k of their blocks' rows are the k-th run.
    let piece = |blocks: Range<usize>| -> Result<(Range<usize>, Vec<T>)> {
        let all = blocks.start * block..n.min(blocks.end * block);
        let mut entries = vec![T::default(); block * all.len()];
        let mut rows: Vec<u32> = Vec::with_capacity(block);
        for begin in all.clone().step_by(block) {
            let size = block.min(n - begin);
            rows.clear();
            rows.extend((begin..begin + size).map(|i| i as u32));
            let inverse = inverse_of(a, &rows)?;
            for i in 0..size {
                for k in 0..size {
                    entries[k * all.len() + begin - all.start + i] = inverse[i * size + k];
                }
            }
        }
        Ok((all, entries))
    };
    let pieces = threads::runs(n.div_ceil(block), BLOCKS_TOGETHER, piece);
    let mut entries = vec![T::default(); (block * n).max(1)];
    for made in pieces {
        let (rows, made) = made?;
        for (k, run) in made.chunks_exact(rows.len().max(1)).enumerate() {
            entries[k * n + rows.start..][..rows.len()].copy_from_slice(run);
        }
    }
    Ok(entries)
}

/// Blocks that a thread inverts one after another.
const BLOCKS_TOGETHER: usize = 64;

/// Inverses of the blocks that parts are, as a matrix. The first fault in the order of the parts.
fn over_parts<T: Real>(a: &Csr<T>, partition: &Partition) -> Result<Csr<T>> {
    let members = partition.members();
    let made = threads::map(&members[..], 1, |_, rows| inverse_of(a, rows));
    let blocks = made.into_iter().collect::<Result<Vec<_>>>()?;
    Csr::from_rows(a.rows(), a.cols(), |i, entries| {
        let part = partition.of()[i] as usize;
        let (rows, size) = (&members[part], members[part].len());
        // Members ascend.
        let at = rows.partition_point(|row| (*row as usize) < i);
        entries.extend(rows.iter().copied().zip(blocks[part][at * size..(at + 1) * size].iter().copied()));
    })
}

/// The inverse of the block of ascending `rows`, row by row.
fn inverse_of<T: Real>(a: &Csr<T>, rows: &[u32]) -> Result<Vec<T>> {
    let inverse = inverse(dense(a, rows), rows.len(), T::EPSILON).unwrap_or_default();
    let entries: Vec<T> = inverse.into_iter().map(T::from_f64).collect();
    if entries.len() == rows.len() * rows.len() && entries.iter().all(|entry| entry.is_finite()) {
        return Ok(entries);
    }
    let what = "a block without an inverse: no block Jacobi preconditioner".into();
    Err(Error::Structure { what, row: rows.first().map(|row| *row as usize) })
}

/// The block of ascending `rows` and columns, row by row.
fn dense<T: Real>(a: &Csr<T>, rows: &[u32]) -> Vec<f64> {
    let size = rows.len();
    let mut block = vec![0.0; size * size];
    for (i, row) in rows.iter().enumerate() {
        let (columns, values) = a.row(*row as usize);
        let mut at = 0;
        for (k, j) in columns.iter().enumerate() {
            while at < size && rows[at] < *j {
                at += 1;
            }
            if at == size {
                break;
            }
            if rows[at] == *j {
                block[i * size + at] = values[k].to_f64();
            }
        }
    }
    block
}

/// The inverse of a block by elimination with partial pivoting, if there is one: none if a pivot is no more than what rounding of numbers with
/// this `epsilon` leaves. Rows and columns are first scaled by powers of two, which rounds nothing, so that sizes alone decide
/// nothing: `S = R A C`, and the inverse of `A` is `C S^-1 R`.
fn inverse(mut a: Vec<f64>, size: usize, epsilon: f64) -> Option<Vec<f64>> {
    let power = |largest: f64| magnitude::scale(1.0, -libm::ilogb(largest));
    let mut factors = [vec![1.0; size], vec![1.0; size]];
    for (side, factors) in factors.iter_mut().enumerate() {
        let at = |k: usize, l: usize| if side == 0 { k * size + l } else { l * size + k };
        for (k, factor) in factors.iter_mut().enumerate() {
            let largest = (0..size).map(|l| a[at(k, l)].abs()).fold(0.0, f64::max);
            if largest == 0.0 || !largest.is_finite() {
                return None;
            }
            *factor = power(largest);
            (0..size).for_each(|l| a[at(k, l)] *= *factor);
        }
    }
    let mut inverse: Vec<f64> = (0..size * size).map(|at| f64::from(u8::from(at / size == at % size))).collect();
    for c in 0..size {
        let pivot = (c..size).max_by(|i, j| a[i * size + c].abs().total_cmp(&a[j * size + c].abs()))?;
        let value = a[pivot * size + c];
        if value.abs() <= size as f64 * epsilon {
            return None;
        }
        for j in 0..size {
            a.swap(c * size + j, pivot * size + j);
            inverse.swap(c * size + j, pivot * size + j);
        }
        for j in 0..size {
            a[c * size + j] /= value;
            inverse[c * size + j] /= value;
        }
        for i in (0..size).filter(|i| *i != c) {
            let factor = a[i * size + c];
            for j in 0..size {
                a[i * size + j] -= factor * a[c * size + j];
                inverse[i * size + j] -= factor * inverse[c * size + j];
            }
        }
    }
    let [rows, columns] = factors;
    for (at, v) in inverse.iter_mut().enumerate() {
        *v *= columns[at / size] * rows[at % size];
    }
    Some(inverse)
}

into_shared!(BlockJacobi);

impl<T: Real> LinearOperator<T> for BlockJacobi<T> {
    fn device(&self) -> &Device {
        &self.device
    }
    fn rows(&self) -> usize {
        self.rows
    }
    fn cols(&self) -> usize {
        self.rows()
    }
    fn apply(&self, x: &Vector<T>, z: &mut Vector<T>) -> Result<()> {
        apply(self, x, z)
    }
    fn bytes(&self) -> u64 {
        match &self.inverses {
            Inverses::Consecutive(_) => (self.entries * T::PRECISION.bytes()) as u64,
            Inverses::Parts(parts) => parts.0.bytes(),
        }
    }
    fn update_values(&self, a: &Csr<T>) -> Result<()> {
        update_values(self, a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Diagonal;
    use crate::solver::{Method, Setup, Solver, Stopping};
    use crate::sparse::gallery;

    fn applied(m: &dyn LinearOperator<f64>, x: &[f64]) -> Vec<f64> {
        let x = Vector::from_slice(m.device(), x).unwrap();
        let mut z = Vector::filled(m.device(), m.rows(), f64::NAN).unwrap();
        m.apply(&x, &mut z).unwrap();
        z.to_vec().unwrap()
    }

    #[test]
    fn blocks_are_inverted_as_by_hand() {
        // [[0, 2], [4, 0]] needs a pivot; the entry 9 lies outside of the blocks; the last block is the 5 alone.
        let entries = [(0, 1, 2.0), (1, 0, 4.0), (1, 2, 9.0), (2, 2, 5.0)];
        let a = Csr::from_triplets(3, 3, &entries).unwrap();
        let m = BlockJacobi::new(&Device::host(), &a, 2).unwrap();
        assert_eq!(applied(&m, &[6.0, 8.0, 10.0]), [2.0, 3.0, 2.0]);
        let whole = BlockJacobi::new(&Device::host(), &a, 3).unwrap();
        // x_2 = 2, 2 x_1 = 6, 4 x_0 = 8 - 9 x_2.
        assert_eq!(applied(&whole, &[6.0, 8.0, 10.0]), [-2.5, 3.0, 2.0]);
    }

    #[test]
    fn parts_are_inverted_wherever_their_rows_lie() {
        // Rows 0 and 2 are [[2, 1], [4, 3]], row 1 is 5; 9 and 7 lie outside of the parts.
        let entries = [(0, 0, 2.0), (0, 1, 9.0), (0, 2, 1.0), (1, 1, 5.0), (2, 0, 4.0), (2, 1, 7.0), (2, 2, 3.0)];
        let a = Csr::from_triplets(3, 3, &entries).unwrap();
        let parts = Partition::new(vec![1, 0, 1], 2).unwrap();
        let m = BlockJacobi::over(&Device::host(), &a, &parts).unwrap();
        assert_eq!(applied(&m, &[1.0, 10.0, 5.0]), [-1.0, 2.0, 3.0]);
        assert_eq!((m.entries(), m.rows(), m.launches(1)), (5, 3, 1));
        // Consecutive rows as parts.
        let a = gallery::diagonals::<f64>(60, 9, 2, 3).unwrap();
        let x: Vec<f64> = (0..60).map(|i| f64::from(i).sin()).collect();
        let parts = Partition::natural(60, 6).unwrap();
        let over = applied(&BlockJacobi::over(&Device::host(), &a, &parts).unwrap(), &x);
        let along = applied(&BlockJacobi::new(&Device::host(), &a, 10).unwrap(), &x);
        for (over, along) in over.iter().zip(&along) {
            approx::assert_relative_eq!(*over, *along, max_relative = 1e-12);
        }
    }

    #[test]
    fn blocks_of_one_are_those_of_jacobi() {
        let a = gallery::poisson_2d::<f64>(6, 0.5).unwrap();
        let x: Vec<f64> = (0..36).map(|i| f64::from(i) - 7.0).collect();
        let jacobi = Diagonal::inverse_of(&Device::host(), &a).unwrap();
        assert_eq!(applied(&BlockJacobi::new(&Device::host(), &a, 1).unwrap(), &x), applied(&jacobi, &x));
    }

    #[test]
    fn larger_blocks_take_fewer_iterations() {
        let (device, a) = (Device::host(), gallery::poisson_2d::<f64>(40, 0.0).unwrap());
        let matrix = crate::Matrix::new(&device, &a, Format::Csr).unwrap();
        let b = Vector::filled(&device, a.rows(), 1.0).unwrap();
        let iterations = |block: usize| {
            let m = BlockJacobi::new(&device, &a, block).unwrap();
            let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
            let mut x = Vector::zeros(&device, a.rows()).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            report.iterations
        };
        let found = [1, 8, 20].map(iterations);
        assert!(found[2] < found[1] && found[1] < found[0], "{found:?}");
    }

    #[test]
    fn what_has_no_inverse_is_refused() {
        let device = Device::host();
        let a = Csr::from_triplets(4, 4, &[(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (2, 3, 1.0)]).unwrap();
        assert!(matches!(BlockJacobi::new(&device, &a, 2), Err(Error::Structure { row: Some(2), .. })));
        // Singular but for rounding: 1 to 9, and the Laplacian of a path without fixed ends.
        let nine: Vec<(usize, usize, f64)> = (0..9).map(|k| (k / 3, k % 3, 1.0 + k as f64)).collect();
        let path = |i: usize, row: &mut Vec<(u32, f64)>| {
            row.extend((i.saturating_sub(1)..(i + 2).min(5)).map(|j| (j as u32, if i == j { 0.3 } else { -0.15 })));
            row.iter_mut().filter(|e| e.0 as usize == i && (i == 0 || i == 4)).for_each(|e| e.1 = 0.15);
        };
        for (block, a) in [(3, Csr::from_triplets(3, 3, &nine)), (5, Csr::from_rows(5, 5, path))] {
            assert!(matches!(
                BlockJacobi::new(&device, &a.unwrap(), block),
                Err(Error::Structure { row: Some(0), .. })
            ));
        }
        // Sizes alone decide nothing.
        let apart = [(0, 0, 1e-150), (1, 1, 1e150), (0, 1, 1.0), (2, 2, 1e-30)];
        assert!(BlockJacobi::new(&device, &Csr::from_triplets(3, 3, &apart).unwrap(), 3).is_ok());
        let tiny = Csr::from_triplets(1, 1, &[(0, 0, 1e-310)]).unwrap();
        assert!(matches!(BlockJacobi::new(&device, &tiny, 4), Err(Error::Structure { row: Some(0), .. })));
        for block in [0, 33] {
            assert!(matches!(BlockJacobi::new(&device, &a, block), Err(Error::Option { .. })));
        }
        let wide = gallery::random::<f64>(3, 4, 6, 1).unwrap();
        assert!(matches!(BlockJacobi::new(&device, &wide, 1), Err(Error::Shape { .. })));
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        assert!(BlockJacobi::new(&device, &none, 4).is_ok());
        let named: super::super::Preconditioner = "block-jacobi=3".parse().unwrap();
        assert_eq!(named, super::super::Preconditioner::BlockJacobi(BlockJacobiOptions::consecutive(3)));
        let parts = Partition::new(vec![0, 1, 0], 2).unwrap();
        assert!(matches!(BlockJacobi::over(&device, &a, &parts), Err(Error::Shape { .. })));
        let parts = Partition::new(vec![1, 0, 0, 1], 2).unwrap();
        assert!(matches!(BlockJacobi::over(&device, &a, &parts), Err(Error::Structure { row: Some(0), .. })));
        let large = Partition::new(vec![0; 1025], 1).unwrap();
        let many = gallery::diagonals::<f64>(1025, 3, 1, 1).unwrap();
        assert!(matches!(BlockJacobi::over(&device, &many, &large), Err(Error::Option { name: "partition", .. })));
    }
}
