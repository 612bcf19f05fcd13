//! Factorised sparse approximate inverses: FSAI.
//!
//! ```text
//!   A approximately L L',   G = L^-1 approximately,   M = G'G
//!
//!   for each row i, with S_i the columns of G's row, i the last of them:
//!       A(S_i, S_i) = C C'          dense Cholesky factors, in f64
//!       C' g = e                    e the last unit vector:  row i of G has g in the places S_i
//! ```
//!
//! `G` minimises the Frobenius norm of `I - G L` over all matrices with these places. Rows do not depend on each other, so that all
//! threads make them at once, and no positive definite matrix breaks down. `M` does not change with a scaling of `A` but for that.
//!
//! Source: L. Yu. Kolotilina, A. Yu. Yeremin, "Factorized sparse approximate inverse preconditionings I", SIAM J. Matrix Anal. Appl. 14
//! (1993); Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, section 10.5.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::{
    check_power, check_symmetric, factor_on, largest_of_row, made_by_threads, neighbourhood, product_of_matrices,
    rounds,
};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Transposed};
use crate::number::{Real, per_number};
use crate::operator::{Adjoint, LinearOperator, ProductOperator, SharedOperator, Structure};
use crate::sparse::{Csr, RowBlock, pieces};
use crate::vector::Vector;

/// Most places of a row: a dense factorisation takes the cube of them. Longer rows keep the largest of their entries.
const MOST_PLACES: usize = 256;

/// The approximate inverse `G'G` of a symmetric positive definite matrix as an operator, with `G` in the places of the lower triangle of a
/// power of the matrix. Two products; the same bits everywhere. It is made on the host, by all threads. It takes other
/// values ([`LinearOperator::update_values`]) without looking for places again.
///
/// # Cost
/// Held: `G` and its transposed, and a vector; on the host 4 bytes for each entry. A product reads one of them each, and three vectors.
/// The set-up factors a dense matrix as large as the row for each row.
pub struct Fsai<T: Real> {
    product: ProductOperator<Adjoint<Matrix<T>>, Matrix<T>, T>,
    root: SharedOperator<T>,
    g: Matrix<T>,
    power: usize,
    /// Values are rounded to `f32`.
    single: bool,
    places: Places,
    /// Checksum of the places of the matrix.
    pattern: u64,
}

/// Places of `G` by rows.
#[derive(Debug)]
struct Places {
    offsets: Vec<usize>,
    columns: Vec<u32>,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, power: usize, narrow: bool) -> Result<Fsai<T>> = Fsai::new_here;
    fn update_values<T>(this: &Fsai<T>, a: &Csr<T>) -> Result<()> = Fsai::update_values_here;
}

impl<T: Real> Fsai<T> {
    /// Makes it for the symmetric positive definite matrix `a`, in the places of `a^power`, `power` 1 to 4. More places take fewer
    /// iterations, and more time in each.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for a power out of range, [`Error::NotFinite`],
    /// [`Error::Structure`] with the row of an entry that is not symmetric or of a pivot that is not positive, [`Error::Memory`].
    pub fn new(device: &Device, a: &Csr<T>, power: usize) -> Result<Self> {
        new(device, a, power, false)
    }

    /// [`Fsai::new`], with a factor that is rounded to `f32` in the end and stored so, for solves in `f64`: see
    /// [`Csr::rounded_to_single`].
    ///
    /// # Errors
    /// As [`Fsai::new`]; [`Error::Structure`] for a factor that is out of the range of `f32`.
    pub fn in_single(device: &Device, a: &Csr<T>, power: usize) -> Result<Self> {
        new(device, a, power, true)
    }

    fn new_here(device: &Device, a: &Csr<T>, power: usize, single: bool) -> Result<Self> {
        let factor = factor(device, a, power)?;
        let g = factor_on(device, &factor, single, Transposed::Copy)?;
        let root = g.clone().adjoint()?;
        let product = root.clone().times(g.clone())?;
        let (offsets, columns, _) = factor.into_parts();
        Ok(Self {
            product,
            root: root.shared(),
            g,
            power,
            single,
            places: Places { offsets, columns },
            pattern: a.pattern(),
        })
    }

    fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        a.check_pattern(self.pattern)?;
        check_symmetric(a)?;
        let Self { g, power, single, places, .. } = self;
        let values = places.values(a, *power)?;
        let whole = |values| Csr::new(a.rows(), a.rows(), places.offsets.clone(), places.columns.clone(), values);
        if rounds::<T>(*single) {
            let rounded = whole(values)?.rounded_to_single()?;
            return g.replace_values(rounded.values(), || Ok(Cow::Borrowed(&rounded)));
        }
        g.replace_values(&values, || whole(values.clone()).map(Cow::Owned))
    }

    /// The root `G'` of the approximate inverse, which shares its entries: what preconditions least squares from the right, if this was
    /// made from [`Csr::normal_matrix`].
    pub fn root(&self) -> SharedOperator<T> {
        self.root.clone()
    }

    /// Entries of `G`.
    pub fn entries(&self) -> usize {
        self.places.columns.len()
    }
}

/// `G` by rows.
fn factor<T: Real>(device: &Device, a: &Csr<T>, power: usize) -> Result<Csr<T>> {
    check_symmetric(a)?;
    check_power(power)?;
    // Twice over: the factor and its transposed.
    made_by_threads(device, a.rows(), (ROWS_TOGETHER, 2), |room, rows| rows_of_factor(a, rows, power, room))
}

/// Rows that a thread makes one after another.
const ROWS_TOGETHER: usize = 512;

/// Rows of `G` that follow each other.
fn rows_of_factor<T: Real>(a: &Csr<T>, rows: Range<usize>, power: usize, room: &mut Dense) -> Result<RowBlock<T>> {
    let mut made = RowBlock::default();
    for i in rows {
        let places = places(a, i, power);
        room.solve(a, i, &places)?;
        let before = made.values.len();
        made.values.resize(before + places.len(), T::default());
        room.round_to(i, &mut made.values[before..])?;
        made.indices.extend(&places);
        made.lengths.push(places.len());
    }
    Ok(made)
}

impl Places {
    /// Values of `G` for other values of the matrix. Fails if these choose other places.
    fn values<T: Real>(&self, a: &Csr<T>, power: usize) -> Result<Vec<T>> {
        let Self { offsets, columns } = self;
        let rows = a.rows();
        let starts: Vec<usize> = (0..rows).step_by(ROWS_TOGETHER).collect();
        let end = |first: usize| rows.min(first + ROWS_TOGETHER);
        let mut values = vec![T::default(); columns.len()];
        let blocks = pieces(&mut values, starts.iter().map(|first| offsets[end(*first)] - offsets[*first]));
        let made: Vec<Result<()>> = starts
            .par_iter()
            .zip(blocks)
            .map_init(Dense::default, |room, (first, block)| {
                (*first..end(*first)).try_for_each(|i| {
                    let known = &columns[offsets[i]..offsets[i + 1]];
                    // Values choose the places of the longest rows.
                    if known.len() == MOST_PLACES && places(a, i, power) != known {
                        let what = "its largest entries stand in other places than before: make a new one".into();
                        return Err(Error::Structure { what, row: Some(i) });
                    }
                    room.solve(a, i, known)?;
                    let at = offsets[i] - offsets[*first];
                    room.round_to(i, &mut block[at..at + known.len()])
                })
            })
            .collect();
        made.into_iter().collect::<Result<()>>()?;
        Ok(values)
    }
}

/// Columns of row `i` of the lower triangle of `a^power`, ascending, `i` the last.
fn places<T: Real>(a: &Csr<T>, i: usize, power: usize) -> Vec<u32> {
    let mut found = neighbourhood(a, i, power);
    found.retain(|j| *j as usize <= i);
    if found.len() > MOST_PLACES {
        found = largest_of_row(a, i, MOST_PLACES, |j| j < i);
    }
    found
}

/// Room for the dense matrix of a row. Neighbouring rows often begin with the same places, and their factors with the same rows and columns:
/// these are kept.
#[derive(Default)]
struct Dense {
    /// `C'`, row by row: first the lower triangle of `A(S_i, S_i)`, mirrored.
    c: Vec<f64>,
    /// Numbers from one row of `C'` to the next.
    stride: usize,
    /// Places of which `c` holds the factor.
    places: Vec<u32>,
    /// Row of `G`.
    g: Vec<f64>,
    /// Number of each column from the first place on among the places, plus one; 0 for a column that is none.
    numbers: Vec<u32>,
}

impl Dense {
    /// Takes the entries of the lower triangle in rows and columns `places`. Returns how many places of the last row the factor begins with: these
    /// rows and columns are not touched.
    fn gather<T: Real>(&mut self, a: &Csr<T>, places: &[u32]) -> usize {
        let Self { c, numbers, stride, places: before, .. } = self;
        let m = places.len();
        if m > *stride {
            *stride = m.next_power_of_two();
            c.clear();
            c.resize(*stride * *stride, 0.0);
            before.clear();
        }
        let kept = before.iter().zip(places).take_while(|(before, place)| before == place).count();
        before.truncate(kept);
        before.extend(&places[kept..]);
        c.chunks_exact_mut(*stride).take(m).for_each(|row| row[kept..m].fill(0.0));
        let (Some(first), Some(last)) = (places.first(), places.last()) else { return kept };
        let span = (last - first) as usize + 1;
        if numbers.len() < span {
            numbers.resize(span, 0);
        }
        places.iter().zip(1..).for_each(|(place, number)| numbers[(place - first) as usize] = number);
        for (k, row) in places.iter().enumerate().skip(kept) {
            let (columns, values) = a.row(*row as usize);
            for (j, value) in columns.iter().zip(values) {
                if j > row {
                    break;
                }
                // Columns before the first place wrap around to numbers that are not there, or 0.
                let number = numbers.get(j.wrapping_sub(*first) as usize).map_or(0, |number| *number as usize);
                if number > 0 {
                    c[(number - 1) * *stride + k] = value.to_f64();
                }
            }
        }
        places.iter().for_each(|place| numbers[(place - first) as usize] = 0);
        kept
    }

    /// Leaves row `i` of `G`, whose entries stand in `places`.
    fn solve<T: Real>(&mut self, a: &Csr<T>, i: usize, places: &[u32]) -> Result<()> {
        let kept = self.gather(a, places);
        let m = places.len();
        let Self { c, g, stride, places: held, .. } = self;
        let stride = *stride;
        // A row of C' after the other: all later ones are reduced by it, so that operations in a row do not wait for each other.
        for k in 0..m {
            let (own, later) = c[k * stride..].split_at_mut(stride);
            let own = &mut own[..m];
            if k >= kept {
                let pivot = own[k];
                if !(pivot > 0.0 && pivot.is_finite()) {
                    held.clear();
                    let row = Some(places[k] as usize);
                    let what = format!(
                        "pivot {pivot:e} of an approximate inverse (in row {i}) is not positive: the matrix is not positive definite, \
                         or too nearly singular"
                    );
                    return Err(Error::Structure { what, row });
                }
                own[k] = pivot.sqrt();
            }
            let (root, new) = (own[k], kept.max(k + 1));
            own[new..].iter_mut().for_each(|value| *value /= root);
            for (l, row) in (k + 1..m).zip(later.chunks_exact_mut(stride)) {
                let (factor, from) = (own[l], kept.max(l));
                row[from..m].iter_mut().zip(&own[from..]).for_each(|(value, own)| *value -= factor * own);
            }
        }
        // Back substitution with C'.
        g.clear();
        g.resize(m, 0.0);
        for k in (0..m).rev() {
            let row = &c[k * stride..k * stride + m];
            let start = if k + 1 == m { 1.0 } else { 0.0 };
            let value = row[k + 1..].iter().zip(&g[k + 1..]).fold(start, |value, (c, g)| value - c * g);
            g[k] = value / row[k];
        }
        Ok(())
    }

    /// Puts row `i` of `G` into `made`.
    fn round_to<T: Real>(&self, i: usize, made: &mut [T]) -> Result<()> {
        made.iter_mut().zip(&self.g).for_each(|(made, value)| *made = T::from_f64(*value));
        if made.iter().all(|value| value.is_finite()) {
            return Ok(());
        }
        let what = "an entry of an approximate inverse is too large for its precision: scale the matrix".into();
        Err(Error::Structure { what, row: Some(i) })
    }
}

product_of_matrices!(Fsai, symmetric, update_values);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;
    use crate::{Format, Method, Setup, Solver, Stopping};

    fn device() -> Device {
        Device::host()
    }

    #[test]
    fn all_places_give_the_inverse_of_the_cholesky_factor() {
        // [[4, 2], [2, 10]] = L L' with L = [[2, 0], [1, 3]]: G = [[1/2, 0], [-1/6, 1/3]].
        let a = Csr::from_triplets(2, 2, &[(0, 0, 4.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 10.0)]).unwrap();
        let g = factor(&device(), &a, 1).unwrap();
        assert_eq!(g.values(), [0.5, -1.0 / 6.0, 1.0 / 3.0]);
        assert_eq!(g.indices(), [0, 0, 1]);
        // A whole matrix: one iteration of CG.
        let a = Csr::<f64>::from_rows(9, 9, |i, row| {
            row.extend((0..9).map(|j| (j as u32, if i == j { 12.0 } else { 1.0 / (i + j) as f64 })));
        });
        let a = a.unwrap();
        let matrix = Matrix::new(&device(), &a, Format::Csr).unwrap();
        let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>());
        let mut solver =
            Solver::with(&matrix, setup.with_preconditioner(Fsai::new(&device(), &a, 1).unwrap())).unwrap();
        let (b, mut x) = (Vector::filled(&device(), 9, 1.0).unwrap(), Vector::zeros(&device(), 9).unwrap());
        assert_eq!(solver.solve(&b, &mut x).unwrap().iterations, 1);
    }

    /// `G A G'` has a unit diagonal: what FSAI is scaled by.
    #[test]
    fn rows_are_those_of_a_minimum() {
        let a = gallery::block_poisson::<f64>(6, 3).unwrap();
        for power in [1, 2, 3] {
            let g = factor(&device(), &a, power).unwrap();
            for i in 0..a.rows() {
                let (columns, values) = g.row(i);
                // (A g)_j is 0 in all places before i: the normal equations of the row.
                let product = |j: u32| {
                    let (at, entries) = a.row(j as usize);
                    let terms = at
                        .iter()
                        .zip(entries)
                        .filter_map(|(k, v)| columns.binary_search(k).ok().map(|place| v * values[place]));
                    terms.sum::<f64>()
                };
                let energy: f64 = columns.iter().zip(values).map(|(j, g)| g * product(*j)).sum();
                assert!((energy - 1.0).abs() < 1e-12, "{energy}");
                for j in &columns[..columns.len() - 1] {
                    assert!(product(*j).abs() < 1e-12, "{i} {j}");
                }
            }
        }
    }

    #[test]
    fn more_places_take_fewer_iterations() {
        let a = gallery::poisson_2d::<f64>(50, 0.0).unwrap();
        let matrix = Matrix::new(&device(), &a, Format::Csr).unwrap();
        let b = Vector::filled(&device(), a.rows(), 1.0).unwrap();
        let iterations = |power: usize| {
            let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>());
            let setup = setup.with_preconditioner(Fsai::new(&device(), &a, power).unwrap());
            let mut x = Vector::zeros(&device(), a.rows()).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            report.iterations
        };
        let found = [1, 2, 3, 4].map(iterations);
        assert!(found.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
    }

    #[test]
    fn what_has_none_is_refused() {
        let csr = |entries: &[(usize, usize, f64)]| Csr::from_triplets(2, 2, entries).unwrap();
        let row = |a: &Csr<f64>| match factor(&device(), a, 1) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 3.0), (1, 0, 3.0), (1, 1, 1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (1, 1, -1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.25), (1, 1, 1.0)])), Some(0));
        let tiny = Csr::from_triplets(1, 1, &[(0, 0, 1e-80f64)]).unwrap().cast::<f32>();
        assert!(factor(&device(), &tiny, 1).is_err());
        let a = csr(&[(0, 0, 1.0), (1, 1, 1.0)]);
        for power in [0, 5] {
            assert!(matches!(factor(&device(), &a, power), Err(Error::Option { .. })));
        }
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        assert_eq!(factor(&device(), &none, 2).unwrap().nnz(), 0);
    }

    /// Rows longer than a dense matrix may be keep their largest entries.
    #[test]
    fn long_rows_are_shortened() {
        let n = 400;
        let a = Csr::<f64>::from_rows(n, n, |i, row| match i + 1 == n {
            true => row.extend((0..n).map(|j| (j as u32, if j == i { 9.0 } else { 1e-3 * (1 + j % 300) as f64 }))),
            false => row.extend([(i as u32, 4.0), (n as u32 - 1, 1e-3 * (1 + i % 300) as f64)]),
        });
        let g = factor(&device(), &a.unwrap(), 1).unwrap();
        let (columns, values) = g.row(n - 1);
        assert_eq!(columns.len(), MOST_PLACES);
        assert!(columns.iter().all(|j| *j as usize == n - 1 || j % 300 >= 44 || *j >= 300), "{columns:?}");
        assert!(values[..columns.len() - 1].iter().all(|v| *v < 0.0));
    }
}
