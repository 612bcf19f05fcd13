//! Compressed sparse rows: the matrix every other format is made from.

use std::marker::PhantomData;
use std::ops::Range;

use super::checksum::Checksum;
use crate::error::{Error, Result, same_length};
use crate::magnitude::{self, Magnitude};
use crate::number::{self, PerNumber, Real, per_number};
use crate::{machine, threads};

/// A sparse `rows × cols` matrix in compressed sparse row form.
///
/// Row `i` holds the entries `offsets[i] .. offsets[i + 1]` of `indices` (columns) and `values`. Valid by
/// construction: offsets ascend, columns ascend strictly within a row and lie below `cols`.
///
/// ```
/// use residuum::Csr;
///
/// // Entries in any order, those of one place added up; or the three arrays.
/// let a = Csr::from_triplets(2, 2, &[(1, 0, 3.0), (0, 0, 1.0), (0, 0, 1.0), (1, 1, 4.0)])?;
/// assert_eq!(a, Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![2.0, 3.0, 4.0])?);
/// assert_eq!(a.row(1), (&[0, 1][..], &[3.0, 4.0][..]));
/// assert_eq!(a.transpose().product(&[1.0, 1.0])?, [5.0, 4.0]);
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    rows: usize,
    cols: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
    pub(super) pattern: Checksum,
}

/// Tells if a matrix of `entries` entries may have so many rows. Row offsets take memory even if nothing is stored,
/// so a short file must not ask for a long matrix: 2²² rows are free, 64 more come with every entry.
pub(crate) fn plausible_rows(rows: u64, entries: u64) -> bool {
    rows <= (1u64 << 22).saturating_add(entries.saturating_mul(64))
}

per_number! {
    fn new<T>(rows: usize, cols: usize, offsets: Vec<usize>, indices: Vec<u32>, values: Vec<T>) -> Result<Csr<T>> = Csr::new_here;
    fn first_not_finite<T>(this: &Csr<T>) -> Option<usize> = Csr::first_not_finite_here;
    fn diagonal<T>(this: &Csr<T>) -> Vec<f64> = Csr::diagonal_here;
    fn column_norms<T>(this: &Csr<T>) -> Vec<f64> = Csr::column_norms_here;
    fn product<T>(this: &Csr<T>, x: &[f64]) -> Result<Vec<f64>> = Csr::product_here;
    fn scaled<T>(this: &Csr<T>, left: &[f64], right: &[f64]) -> Result<Csr<T>> = Csr::scaled_here;
    fn transpose<T>(this: &Csr<T>) -> Csr<T> = Csr::transpose_here;
}

per_number! {
    fn to_single<T>(values: &[T]) -> Vec<f32> = rounded;
    fn to_double<T>(values: &[T]) -> Vec<f64> = rounded;
}

fn rounded<T: Real, U: Real>(values: &[T]) -> Vec<U> {
    threads::numbers(values, threads::LEAST, |_, v| U::from_f64(v.to_f64()))
}

/// Values of `T` in the other precision, or the same.
struct Cast<T>(PhantomData<T>);

impl<T: Real> PerNumber for Cast<T> {
    type Of<U: Real> = fn(&[T]) -> Vec<U>;
}

/// The largest magnitude, 0 for none.
fn largest<T: Real>(values: &[T]) -> f64 {
    let of = |range: Range<usize>| magnitude::largest(values[range].iter().map(|v| v.to_f64()));
    let both = |a, b| magnitude::largest([a, b].into_iter());
    threads::fold(values.len(), 1 << 16, of, both).unwrap_or(0.0)
}

/// The Frobenius norm of a matrix with these entries, the same for any number of threads.
pub(crate) fn frobenius<T: Real>(values: &[T]) -> Magnitude {
    let squares = |exponent| {
        let square = |v: &T| magnitude::scale(v.to_f64(), exponent).powi(2);
        let sum = |_, block: &[T]| -> f64 { block.iter().map(square).sum() };
        threads::numbers(threads::Chunks(values, 4096), 1, sum).iter().sum()
    };
    Magnitude::of_squares(|| largest(values), squares)
}

/// The row of the entry at `at`, of rows that begin at `offsets`.
pub(crate) fn row_of(offsets: &[usize], at: usize) -> usize {
    offsets.partition_point(|offset| *offset <= at) - 1
}

impl<T: Real> Csr<T> {
    /// Takes over the three arrays after checking them.
    ///
    /// # Errors
    /// [`Error::Shape`] when lengths disagree, [`Error::Structure`] when offsets fall, when columns of a row are
    /// out of range, unsorted or repeated. Values may be anything here; solvers check that they are finite.
    pub fn new(rows: usize, cols: usize, offsets: Vec<usize>, indices: Vec<u32>, values: Vec<T>) -> Result<Self> {
        new(rows, cols, offsets, indices, values)
    }

    fn new_here(rows: usize, cols: usize, offsets: Vec<usize>, indices: Vec<u32>, values: Vec<T>) -> Result<Self> {
        Self::check_dimensions(rows, cols)?;
        same_length("row offsets", rows + 1, offsets.len())?;
        same_length("values against column indices", indices.len(), values.len())?;
        if offsets[0] != 0 {
            return Err(Error::Structure { what: format!("first offset is {}, not 0", offsets[0]), row: None });
        }
        same_length("last row offset", indices.len(), offsets[rows])?;
        // Offsets first: slicing rows is safe only once they ascend.
        if let Some(row) = (0..rows).find(|&i| offsets[i] > offsets[i + 1]) {
            return Err(Error::Structure { what: "row offsets fall".into(), row: Some(row) });
        }
        let bad = threads::first(rows, 1024, |i| {
            let row = &indices[offsets[i]..offsets[i + 1]];
            row.windows(2).any(|w| w[0] >= w[1]) || row.last().is_some_and(|&c| c as usize >= cols)
        });
        if let Some(row) = bad {
            return Err(Error::Structure {
                what: format!("columns must ascend without repeats and lie below {cols}"),
                row: Some(row),
            });
        }
        Ok(Self { rows, cols, offsets, indices, values, pattern: Checksum::default() })
    }

    /// Fails unless 32-bit indices reach every row and column, and the machine holds an offset for each row.
    pub(super) fn check_dimensions(rows: usize, cols: usize) -> Result<()> {
        if cols > u32::MAX as usize || rows > u32::MAX as usize {
            let what = format!("{rows} x {cols} exceeds 32-bit row and column indices");
            return Err(Error::Structure { what, row: None });
        }
        machine::check_memory(format!("a matrix of {rows} rows"), 8 * rows as u64)
    }

    /// Bytes on the host that grow with the dimensions alone, whatever is stored, when a matrix is examined, transposed, multiplied
    /// or scaled there: some twelve numbers for each row and each column.
    pub(crate) fn host_bytes(&self) -> u64 {
        12 * 8 * (self.rows as u64 + self.cols as u64)
    }

    /// Fails if what a program does with the matrix on the host (norms of columns, a transposed copy, right-hand sides) is more than
    /// the machine's memory because of its dimensions alone. To be asked of a matrix from a file before anything else.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn check_host_memory(&self) -> Result<()> {
        machine::check_memory(format!("{} x {} numbers on the host", self.rows, self.cols), self.host_bytes())
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[inline]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    #[inline]
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Starts of the rows, and the end of the last one: `rows + 1` offsets.
    #[inline]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Column of each entry.
    #[inline]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Value of each entry.
    #[inline]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values, to be changed in place: the next time step of a simulation has the same pattern.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Row offsets, columns and values, as [`Csr::new`] takes them.
    pub fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<T>) {
        (self.offsets, self.indices, self.values)
    }

    /// A matrix with the same places and other values.
    pub(crate) fn with_values<U>(&self, values: Vec<U>) -> Result<Csr<U>> {
        same_length("values of a matrix", self.nnz(), values.len())?;
        let Self { rows, cols, offsets, indices, pattern, .. } = self;
        let (offsets, indices, pattern) = (offsets.clone(), indices.clone(), pattern.clone());
        Ok(Csr { rows: *rows, cols: *cols, offsets, indices, values, pattern })
    }

    /// Columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let range = self.offsets[i]..self.offsets[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Number of entries of the longest row.
    pub fn longest_row(&self) -> usize {
        self.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }

    /// Index of the first value that is not finite.
    pub fn first_not_finite(&self) -> Option<usize> {
        first_not_finite(self)
    }

    fn first_not_finite_here(&self) -> Option<usize> {
        number::first_not_finite(&self.values)
    }

    /// The diagonal, `min(rows, cols)` numbers, 0 if nothing is stored.
    pub fn diagonal(&self) -> Vec<f64> {
        diagonal(self)
    }

    fn diagonal_here(&self) -> Vec<f64> {
        let entry = |at: Option<usize>| at.map_or(0.0, |at| self.values[at].to_f64());
        self.diagonal_places().into_iter().map(entry).collect()
    }

    /// Place of each entry on the diagonal among all, if something is stored there.
    pub(crate) fn diagonal_places(&self) -> Vec<Option<usize>> {
        let place = |_, i: usize| self.row(i).0.binary_search(&(i as u32)).ok().map(|at| self.offsets[i] + at);
        threads::numbers(0..self.rows.min(self.cols), 1024, place)
    }

    /// The 2-norm of each column.
    pub fn column_norms(&self) -> Vec<f64> {
        column_norms(self)
    }

    fn column_norms_here(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.cols];
        let mut largest = vec![0.0f64; self.cols];
        for (j, v) in self.indices.iter().zip(&self.values) {
            let v = v.to_f64();
            squares[*j as usize] += v * v;
            largest[*j as usize] = magnitude::largest([largest[*j as usize], v].into_iter());
        }
        // Columns whose squares overflowed or vanished are summed up again, each scaled by its own largest entry.
        let exponents: Vec<i32> = squares
            .iter()
            .zip(&largest)
            .map(|(square, largest)| match Magnitude::of(*largest).exponent() {
                Some(exponent) if !magnitude::has_all_digits(*square) => -exponent,
                _ => 0,
            })
            .collect();
        if exponents.iter().any(|exponent| *exponent != 0) {
            for (square, _) in squares.iter_mut().zip(&exponents).filter(|(_, exponent)| **exponent != 0) {
                *square = 0.0;
            }
            for (j, v) in self.indices.iter().zip(&self.values) {
                let (j, v) = (*j as usize, v.to_f64());
                if exponents[j] != 0 {
                    squares[j] += magnitude::scale(v, exponents[j]).powi(2);
                }
            }
        }
        squares.iter().zip(exponents).map(|(square, exponent)| magnitude::scale(square.sqrt(), -exponent)).collect()
    }

    /// `2^exponent A`, each entry rounded once.
    pub(crate) fn times_power_of_two(&self, exponent: i32) -> Self {
        let scaled = |_, v: &T| T::from_f64(magnitude::scale(v.to_f64(), exponent));
        Self { values: threads::numbers(&self.values[..], threads::LEAST, scaled), ..self.clone() }
    }

    /// The largest magnitude among the entries, 0 for none.
    pub(crate) fn largest(&self) -> f64 {
        largest(&self.values)
    }

    /// The Frobenius norm, the same for any number of threads.
    pub(crate) fn frobenius(&self) -> Magnitude {
        frobenius(&self.values)
    }

    /// `A x`, in double precision on the host: for right-hand sides and checks, not for iterating.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a number for each column.
    pub fn product(&self, x: &[f64]) -> Result<Vec<f64>> {
        product(self, x)
    }

    fn product_here(&self, x: &[f64]) -> Result<Vec<f64>> {
        same_length("vector to multiply", self.cols, x.len())?;
        let row = |_, i: usize| {
            let (columns, values) = self.row(i);
            columns.iter().zip(values).map(|(j, v)| v.to_f64() * x[*j as usize]).sum()
        };
        Ok(threads::numbers(0..self.rows, 1024, row))
    }

    /// `diag(left) A diag(right)`, each entry rounded once from `a (left right)`: with `left = right`, symmetric if `A`
    /// is.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a factor for each row and each column.
    pub fn scaled(&self, left: &[f64], right: &[f64]) -> Result<Self> {
        scaled(self, left, right)
    }

    fn scaled_here(&self, left: &[f64], right: &[f64]) -> Result<Self> {
        same_length("factors of rows", self.rows, left.len())?;
        same_length("factors of columns", self.cols, right.len())?;
        let mut scaled = self.clone();
        for i in 0..self.rows {
            for k in self.offsets[i]..self.offsets[i + 1] {
                let factor = left[i] * right[self.indices[k] as usize];
                scaled.values[k] = T::from_f64(self.values[k].to_f64() * factor);
            }
        }
        Ok(scaled)
    }

    /// A copy in another precision, each value rounded to nearest.
    pub fn cast<U: Real>(&self) -> Csr<U> {
        Csr {
            rows: self.rows,
            cols: self.cols,
            offsets: self.offsets.clone(),
            indices: self.indices.clone(),
            values: U::pick::<Cast<T>>(to_single, to_double)(&self.values),
            pattern: self.pattern.clone(),
        }
    }

    /// The transposed matrix, `cols × rows`.
    ///
    /// Every thread owns a range of columns and visits the rows in order, so the result is the same for any number
    /// of threads. Cost: the matrix read twice, written once.
    pub fn transpose(&self) -> Self {
        transpose(self)
    }

    /// [`Csr::transpose`], unless its offsets would take memory without bound for a few entries.
    pub(crate) fn plausible_transpose(&self) -> Result<Self> {
        // Offsets of empty columns take memory too.
        if !plausible_rows(self.cols as u64, self.nnz() as u64) {
            let what = format!("{} entries are too few to transpose {} columns", self.nnz(), self.cols);
            return Err(Error::Structure { what, row: None });
        }
        Ok(self.transpose())
    }

    fn transpose_here(&self) -> Self {
        let parts = threads::count().clamp(1, self.cols.max(1));
        let bound = |part: usize| self.cols * part / parts;
        let within = |i: usize, from: usize, to: usize| {
            let (columns, _) = self.row(i);
            let start = columns.partition_point(|&c| (c as usize) < from);
            let end = start + columns[start..].partition_point(|&c| (c as usize) < to);
            (self.offsets[i] + start)..(self.offsets[i] + end)
        };
        let counts = threads::map(0..parts, 1, |_, part| {
            let (from, to) = (bound(part), bound(part + 1));
            let mut count = vec![0usize; to - from];
            for i in 0..self.rows {
                for &c in &self.indices[within(i, from, to)] {
                    count[c as usize - from] += 1;
                }
            }
            count
        });
        let mut offsets = Vec::with_capacity(self.cols + 1);
        offsets.push(0);
        let mut end = 0;
        for count in counts.iter().flatten() {
            end += count;
            offsets.push(end);
        }
        let mut indices = vec![0u32; self.nnz()];
        let mut values = vec![T::default(); self.nnz()];
        // Hand each part its own stretch of the output.
        let mut stretches = Vec::with_capacity(parts);
        let (mut rest_indices, mut rest_values) = (&mut indices[..], &mut values[..]);
        for part in 0..parts {
            let length = offsets[bound(part + 1)] - offsets[bound(part)];
            let (mine_indices, more_indices) = rest_indices.split_at_mut(length);
            let (mine_values, more_values) = rest_values.split_at_mut(length);
            stretches.push((mine_indices, mine_values));
            (rest_indices, rest_values) = (more_indices, more_values);
        }
        threads::each(&mut stretches[..], 1, |part, (out_indices, out_values)| {
            let (from, to) = (bound(part), bound(part + 1));
            let base = offsets[from];
            let mut next: Vec<usize> = offsets[from..to].iter().map(|o| o - base).collect();
            for i in 0..self.rows {
                for k in within(i, from, to) {
                    let slot = &mut next[self.indices[k] as usize - from];
                    out_indices[*slot] = i as u32;
                    out_values[*slot] = self.values[k];
                    *slot += 1;
                }
            }
        });
        Self { rows: self.cols, cols: self.rows, offsets, indices, values, pattern: Checksum::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_contradict_each_other_are_refused() {
        let new = |o: &[usize], i: &[u32]| Csr::new(2, 3, o.to_vec(), i.to_vec(), vec![1.0f64; i.len()]);
        assert!(new(&[0, 2, 3], &[0, 2, 1]).is_ok());
        assert!(matches!(new(&[0, 3], &[0, 1, 2]), Err(Error::Shape { .. })));
        assert!(matches!(new(&[0, 2, 2], &[0, 1, 2]), Err(Error::Shape { .. })));
        for (offsets, indices) in [
            (&[0, 2, 3], &[0, 3, 1]),
            (&[0, 2, 3], &[2, 0, 1]),
            (&[0, 2, 3], &[1, 1, 1]),
            (&[0, 4, 3], &[0, 1, 2]),
            (&[1, 2, 3], &[0, 1, 2]),
        ] {
            assert!(matches!(new(offsets, indices), Err(Error::Structure { .. })));
        }
    }

    #[test]
    fn triplets_are_sorted_and_summed() {
        let a = Csr::from_triplets(2, 3, &[(1, 2, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 2, 0.5)]);
        let a = a.expect("valid entries");
        assert_eq!(a.offsets(), [0, 1, 3]);
        assert_eq!(a.indices(), [1, 0, 2]);
        assert_eq!(a.values(), [2.0, 3.0, 1.5]);
        assert!(Csr::from_triplets(2, 3, &[(2, 0, 1.0)]).is_err());
    }

    #[test]
    fn transposing_twice_gives_the_matrix_back() {
        let a = Csr::from_rows(37, 11, |i, row| {
            row.extend((0..11u32).filter(|j| (i + *j as usize).is_multiple_of(3)).map(|j| (j, i as f32 + 0.5)));
        })
        .expect("valid rows");
        let t = a.transpose();
        assert_eq!((t.rows(), t.cols(), t.nnz()), (11, 37, a.nnz()));
        assert_eq!(t.row(4).0.first(), Some(&2));
        assert_eq!(t.transpose(), a);
    }

    #[test]
    fn empty_matrices_are_matrices() {
        let a = Csr::<f64>::from_rows(0, 0, |_, _| ()).expect("empty");
        assert_eq!(a.transpose(), a);
        let tall = Csr::<f64>::from_rows(5, 0, |_, _| ()).expect("no columns");
        assert_eq!((tall.transpose().rows(), tall.transpose().cols()), (0, 5));
    }
}
