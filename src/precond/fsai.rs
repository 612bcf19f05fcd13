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

use super::{
    check_power, check_symmetric, factor_on, largest_of_row, made_by_threads, neighbourhood, product_of_matrices,
    rounded,
};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Transposed};
use crate::number::{Real, per_number};
use crate::operator::{Adjoint, LinearOperator, ProductOperator, SharedOperator, Structure};
use crate::sparse::{Csr, RowBlock};
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
        let factor = factor(device, a, power, None)?;
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
        let factor = factor(self.g.device(), a, self.power, Some(&self.places))?;
        self.g.update_values(&*rounded(&factor, self.single)?)
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

/// `G` by rows, in places that may be known already.
fn factor<T: Real>(device: &Device, a: &Csr<T>, power: usize, known: Option<&Places>) -> Result<Csr<T>> {
    check_symmetric(a)?;
    check_power(power)?;
    // Twice over: the factor and its transposed.
    made_by_threads(device, a.rows(), (ROWS_TOGETHER, 2), |rows| rows_of_factor(a, rows, power, known))
}

/// Rows that a thread makes one after another.
const ROWS_TOGETHER: usize = 512;

/// Rows of `G` that follow each other.
fn rows_of_factor<T: Real>(
    a: &Csr<T>,
    rows: Range<usize>,
    power: usize,
    known: Option<&Places>,
) -> Result<RowBlock<T>> {
    let mut made = RowBlock::default();
    let mut dense = Dense::default();
    for i in rows {
        // Values choose the places of the longest rows.
        let known = known.map(|known| &known.columns[known.offsets[i]..known.offsets[i + 1]]);
        let places = match known.filter(|known| known.len() < MOST_PLACES) {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(places(a, i, power)),
        };
        dense.row(a, i, &places, &mut made.values)?;
        made.indices.extend_from_slice(&places);
        made.lengths.push(places.len());
    }
    Ok(made)
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

/// Room for the dense matrix of a row.
#[derive(Default)]
struct Dense {
    /// Lower triangle, row by row.
    c: Vec<f64>,
    g: Vec<f64>,
}

impl Dense {
    /// Adds the values of row `i` of `G` in `places` to `made`.
    fn row<T: Real>(&mut self, a: &Csr<T>, i: usize, places: &[u32], made: &mut Vec<T>) -> Result<()> {
        let m = places.len();
        let Self { c, g } = self;
        c.clear();
        c.resize(m * m, 0.0);
        for (k, row) in places.iter().enumerate() {
            let (columns, values) = a.row(*row as usize);
            // Both ascend.
            let mut l = 0;
            for (j, value) in columns.iter().zip(values) {
                while l <= k && places[l] < *j {
                    l += 1;
                }
                if l > k {
                    break;
                }
                if places[l] == *j {
                    c[k * m + l] = value.to_f64();
                }
            }
        }
        for k in 0..m {
            for l in 0..=k {
                let mut value = c[k * m + l];
                for j in 0..l {
                    value -= c[k * m + j] * c[l * m + j];
                }
                if l < k {
                    c[k * m + l] = value / c[l * m + l];
                } else if value > 0.0 && value.is_finite() {
                    c[k * m + l] = value.sqrt();
                } else {
                    let row = Some(places[k] as usize);
                    let what = format!(
                        "pivot {value:e} of an approximate inverse (in row {i}) is not positive: the matrix is not positive definite, \
                         or too nearly singular"
                    );
                    return Err(Error::Structure { what, row });
                }
            }
        }
        // Back substitution with C'.
        g.clear();
        g.resize(m, 0.0);
        for k in (0..m).rev() {
            let mut value = if k + 1 == m { 1.0 } else { 0.0 };
            for j in k + 1..m {
                value -= c[j * m + k] * g[j];
            }
            g[k] = value / c[k * m + k];
        }
        let before = made.len();
        made.extend(g.iter().map(|value| T::from_f64(*value)));
        if made[before..].iter().all(|value| value.is_finite()) {
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
        let g = factor(&device(), &a, 1, None).unwrap();
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
            let g = factor(&device(), &a, power, None).unwrap();
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
        let row = |a: &Csr<f64>| match factor(&device(), a, 1, None) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 3.0), (1, 0, 3.0), (1, 1, 1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (1, 1, -1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.25), (1, 1, 1.0)])), Some(0));
        let tiny = Csr::from_triplets(1, 1, &[(0, 0, 1e-80f64)]).unwrap().cast::<f32>();
        assert!(factor(&device(), &tiny, 1, None).is_err());
        let a = csr(&[(0, 0, 1.0), (1, 1, 1.0)]);
        for power in [0, 5] {
            assert!(matches!(factor(&device(), &a, power, None), Err(Error::Option { .. })));
        }
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        assert_eq!(factor(&device(), &none, 2, None).unwrap().nnz(), 0);
    }

    /// Rows longer than a dense matrix may be keep their largest entries.
    #[test]
    fn long_rows_are_shortened() {
        let n = 400;
        let a = Csr::<f64>::from_rows(n, n, |i, row| match i + 1 == n {
            true => row.extend((0..n).map(|j| (j as u32, if j == i { 9.0 } else { 1e-3 * (1 + j % 300) as f64 }))),
            false => row.extend([(i as u32, 4.0), (n as u32 - 1, 1e-3 * (1 + i % 300) as f64)]),
        });
        let g = factor(&device(), &a.unwrap(), 1, None).unwrap();
        let (columns, values) = g.row(n - 1);
        assert_eq!(columns.len(), MOST_PLACES);
        assert!(columns.iter().all(|j| *j as usize == n - 1 || j % 300 >= 44 || *j >= 300), "{columns:?}");
        assert!(values[..columns.len() - 1].iter().all(|v| *v < 0.0));
    }
}
