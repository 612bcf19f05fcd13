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
//! `S_i` are the columns that row `i` has in a power of the matrix, or those that a search finds ([`AdaptivePattern`]). `G` minimises the
//! Frobenius norm of `I - G L` over all matrices with these places. Rows do not depend on each other: threads compute them in
//! parallel. Every positive definite matrix has such a `G`. If `A` becomes `S A S` with a diagonal `S`, `M` becomes `S^-1 M S^-1`.
//!
//! Source: L. Yu. Kolotilina, A. Yu. Yeremin, "Factorized sparse approximate inverse preconditionings I", SIAM J. Matrix Anal. Appl. 14
//! (1993); Y. Saad, "Iterative methods for sparse linear systems", 2nd ed. 2003, section 10.5.

mod adaptive;
mod dense;
mod kind;
mod options;

pub use adaptive::AdaptivePattern;
pub use options::{FsaiOptions, FsaiPattern};

use std::borrow::Cow;
use std::ops::Range;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Transposed};
use crate::number::{Real, per_number};
use crate::operator::{Adjoint, LinearOperator, LinearOperatorExt, ProductOperator, SharedOperator, Structure};
use crate::precond::support::{
    check_symmetric, factor_on, in_time, largest_of_row, made_by_threads, neighbourhood_below, operator_in_field,
    rounds,
};
use crate::sparse::{AsCsr, Csr, RowBlock, pieces};
use crate::threads;
use crate::vector::Vector;
use adaptive::{MOST_PLACES, Search};
use dense::Dense;

/// The approximate inverse `G'G` of a symmetric positive definite matrix as an operator. It is applied by two
/// products. Every device gives the same bits. It is made on the host, by all threads.
/// [`LinearOperator::update_values`] computes it again from new values of the matrix, if the pattern is that of a
/// power. That fails if a row of the pattern was cut to its 256 largest entries and the new values would choose
/// others. An adaptive pattern takes no new values.
///
/// # Cost
/// Held: `G` and its transposed, and a vector; on the host 4 bytes for each entry and 8 for each row, and from the first other values on what
/// [`Matrix::update_values`] keeps. A product reads one of them each, and three vectors.
/// The set-up factors a dense matrix as large as the row for each row, with [`FsaiPattern::Adaptive`] for each step of a row.
///
/// ```
/// use residuum::precond::{Fsai, FsaiOptions};
/// use residuum::sparse::gallery;
/// use residuum::{Device, Format, Matrix, Method, Setup, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let m = Fsai::new(&device, &a, FsaiOptions::power(2))?;
/// let matrix = Matrix::new(&device, &a, Format::Auto)?;
/// let b = Vector::filled(&device, a.rows(), 1.0)?;
/// let mut x = Vector::zeros(&device, a.cols())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
/// assert!(Solver::with(&matrix, setup)?.solve(&b, &mut x)?.converged());
/// # Ok::<(), residuum::Error>(())
/// ```
pub struct Fsai<T: Real> {
    product: ProductOperator<Adjoint<Matrix<T>>, Matrix<T>, T>,
    root: SharedOperator<T>,
    g: Matrix<T>,
    options: FsaiOptions,
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
    fn new<T>(device: &Device, a: &Csr<T>, options: FsaiOptions) -> Result<Fsai<T>> = Fsai::new_here;
    fn update_values<T>(this: &Fsai<T>, a: &Csr<T>) -> Result<()> = Fsai::update_values_here;
}

impl<T: Real> Fsai<T> {
    /// Makes it for the symmetric positive definite matrix `a`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for an option out of range, [`Error::NotFinite`],
    /// [`Error::Structure`] with the row of an entry that is not symmetric or of a pivot that is not positive, or for a factor that is out of the
    /// range of the numbers that store it; [`Error::Memory`].
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: FsaiOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, options: FsaiOptions) -> Result<Self> {
        let factor = factor(device, a, options)?;
        let g = factor_on(device, &factor, options.stored_f32, Transposed::Copy)?;
        let root = g.clone().adjoint()?;
        let product = root.clone().times(g.clone())?;
        let (offsets, columns, _) = factor.into_parts();
        let places = Places { offsets, columns };
        let options = options.with_deadline(None);
        Ok(Self { product, root: root.shared(), g, options, places, pattern: a.pattern() })
    }

    fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        let Self { g, options: FsaiOptions { pattern: kind, stored_f32, .. }, places, .. } = self;
        let FsaiPattern::Power(power) = *kind else { return Err(chosen_by_values(None)) };
        a.check_pattern(self.pattern)?;
        check_symmetric(a)?;
        let values = places.values(a, power)?;
        let whole = |values| Csr::new(a.rows(), a.rows(), places.offsets.clone(), places.columns.clone(), values);
        if rounds::<T>(*stored_f32) {
            let rounded = whole(values)?.rounded_to_f32()?;
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

/// Error of other values where values choose the places.
fn chosen_by_values(row: Option<usize>) -> Error {
    Error::Structure { what: "other values choose another sparsity pattern: make a new one".into(), row }
}

/// `G` by rows.
fn factor<T: Real>(device: &Device, a: &Csr<T>, options: FsaiOptions) -> Result<Csr<T>> {
    check_symmetric(a)?;
    options.check()?;
    // A search alone asks for it.
    let diagonal = match options.pattern {
        FsaiPattern::Power(_) => Vec::new(),
        FsaiPattern::Adaptive(_) => a.diagonal(),
    };
    // Twice over: the factor and its transposed.
    made_by_threads(device, a.rows(), (ROWS_TOGETHER, 2, options.deadline), |room, rows| {
        rows_of_factor(a, &diagonal, rows, options, room)
    })
}

/// Rows that a thread makes one after another: few, so that small matrices keep many threads busy.
const ROWS_TOGETHER: usize = 128;

/// Rows of `G` that follow each other.
fn rows_of_factor<T: Real>(
    a: &Csr<T>,
    diagonal: &[f64],
    rows: Range<usize>,
    options: FsaiOptions,
    (dense, search): &mut (Dense, Search),
) -> Result<RowBlock<T>> {
    let mut made = RowBlock::default();
    for i in rows {
        in_time(options.deadline, "FSAI")?;
        let places = match options.pattern {
            FsaiPattern::Power(power) => {
                let places = places(a, i, power);
                dense.solve(a, i, &places)?;
                Cow::Owned(places)
            }
            FsaiPattern::Adaptive(wanted) => Cow::Borrowed(search.row(a, diagonal, i, wanted, dense)?),
        };
        let before = made.values.len();
        made.values.resize(before + places.len(), T::default());
        dense.round_to(i, &mut made.values[before..])?;
        made.indices.extend_from_slice(&places);
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
        let mut blocks = pieces(&mut values, starts.iter().map(|first| offsets[end(*first)] - offsets[*first]));
        let make = |_, (first, block): (&usize, &mut &mut [T])| {
            let mut room = Dense::default();
            (*first..end(*first)).try_for_each(|i| {
                let known = &columns[offsets[i]..offsets[i + 1]];
                // Values choose the places of the longest rows.
                if known.len() == MOST_PLACES && places(a, i, power) != known {
                    return Err(chosen_by_values(Some(i)));
                }
                room.solve(a, i, known)?;
                let at = offsets[i] - offsets[*first];
                room.round_to(i, &mut block[at..at + known.len()])
            })
        };
        let made = threads::map((&starts[..], &mut blocks[..]), 1, make);
        made.into_iter().collect::<Result<()>>()?;
        Ok(values)
    }
}

/// Columns of row `i` of the lower triangle of `a^power`, ascending, `i` the last.
fn places<T: Real>(a: &Csr<T>, i: usize, power: usize) -> Vec<u32> {
    let found = neighbourhood_below(a, i, power, MOST_PLACES);
    found.unwrap_or_else(|| largest_of_row(a, i, MOST_PLACES, |j| j < i))
}

operator_in_field!(Fsai.product, symmetric, update_values);

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
        let g = factor(&device(), &a, FsaiOptions::power(1)).unwrap();
        assert_eq!(g.values(), [0.5, -1.0 / 6.0, 1.0 / 3.0]);
        assert_eq!(g.indices(), [0, 0, 1]);
        // A whole matrix: one iteration of CG.
        let a = Csr::<f64>::from_rows(9, 9, |i, row| {
            row.extend((0..9).map(|j| (j as u32, if i == j { 12.0 } else { 1.0 / (i + j) as f64 })));
        });
        let a = a.unwrap();
        let matrix = Matrix::new(&device(), &a, Format::Csr).unwrap();
        let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>());
        let mut solver = Solver::with(
            &matrix,
            setup.with_preconditioner(Fsai::new(&device(), &a, FsaiOptions::power(1)).unwrap()),
        )
        .unwrap();
        let (b, mut x) = (Vector::filled(&device(), 9, 1.0).unwrap(), Vector::zeros(&device(), 9).unwrap());
        assert_eq!(solver.solve(&b, &mut x).unwrap().iterations, 1);
    }

    /// `G A G'` has a unit diagonal: what FSAI is scaled by.
    #[test]
    fn rows_are_those_of_a_minimum() {
        let a = gallery::block_poisson::<f64>(6, 3).unwrap();
        for power in [1, 2, 3] {
            let g = factor(&device(), &a, FsaiOptions::power(power)).unwrap();
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
            let setup = setup.with_preconditioner(Fsai::new(&device(), &a, FsaiOptions::power(power)).unwrap());
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
        let row = |a: &Csr<f64>| match factor(&device(), a, FsaiOptions::power(1)) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 3.0), (1, 0, 3.0), (1, 1, 1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (1, 1, -1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.25), (1, 1, 1.0)])), Some(0));
        let tiny = Csr::from_triplets(1, 1, &[(0, 0, 1e-80f64)]).unwrap().cast::<f32>();
        assert!(factor(&device(), &tiny, FsaiOptions::power(1)).is_err());
        let a = csr(&[(0, 0, 1.0), (1, 1, 1.0)]);
        for power in [0, 5] {
            assert!(matches!(factor(&device(), &a, FsaiOptions::power(power)), Err(Error::Option { .. })));
        }
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        assert_eq!(factor(&device(), &none, FsaiOptions::power(2)).unwrap().nnz(), 0);
    }

    /// Rows longer than a dense matrix may be keep their largest entries.
    #[test]
    fn long_rows_are_shortened() {
        let n = 400;
        let a = Csr::<f64>::from_rows(n, n, |i, row| match i + 1 == n {
            true => row.extend((0..n).map(|j| (j as u32, if j == i { 9.0 } else { 1e-3 * (1 + j % 300) as f64 }))),
            false => row.extend([(i as u32, 4.0), (n as u32 - 1, 1e-3 * (1 + i % 300) as f64)]),
        });
        let g = factor(&device(), &a.unwrap(), FsaiOptions::power(1)).unwrap();
        let (columns, values) = g.row(n - 1);
        assert_eq!(columns.len(), MOST_PLACES);
        assert!(columns.iter().all(|j| *j as usize == n - 1 || j % 300 >= 44 || *j >= 300), "{columns:?}");
        assert!(values[..columns.len() - 1].iter().all(|v| *v < 0.0));
    }

    fn found(a: &Csr<f64>, steps: usize, per_step: usize, tolerance: f64) -> Csr<f64> {
        factor(&device(), a, FsaiOptions::adaptive(AdaptivePattern { steps, per_step, tolerance })).unwrap()
    }

    /// Dense blocks apart: all places of a block are found, and none outside.
    #[test]
    fn a_search_finds_the_places_of_the_inverse() {
        let entry = |i: usize, j: usize| if i == j { 9.0 } else { 1.0 + ((i + j) % 7) as f64 / 8.0 };
        let a = Csr::from_rows(20, 20, |i, row| {
            row.extend((0..20).filter(|j| j % 4 == i % 4).map(|j| (j as u32, entry(i, j))))
        });
        let a = a.unwrap();
        let g = found(&a, 10, 1, 0.0);
        let wanted = factor(&device(), &a, FsaiOptions::power(1)).unwrap();
        assert_eq!(g.indices(), wanted.indices());
        // The order in which places are found is another than that of the columns.
        g.values().iter().zip(wanted.values()).for_each(|(g, w)| assert!((g - w).abs() < 1e-14, "{g} {w}"));
        // One step finds what couples most: 20 places and one more for each row that has one.
        let one = found(&a, 1, 1, 0.0);
        assert_eq!(one.nnz(), 20 + 16);
        let strongest = |i: usize| {
            (0..i).filter(|j| j % 4 == i % 4).max_by(|j, k| entry(i, *j).total_cmp(&entry(i, *k)).then(k.cmp(j)))
        };
        (4..20).for_each(|i| assert_eq!(one.row(i).0[0] as usize, strongest(i).unwrap(), "{i}"));
    }

    /// Strong couplings one way: the places that the matrix has are not those that matter.
    #[test]
    fn a_search_takes_fewer_iterations_with_as_many_entries() {
        let n = 40;
        let a = Csr::from_rows(n * n, n * n, |i, row| {
            let (x, y) = (i % n, i / n);
            let neighbours = [
                (y > 0, i.wrapping_sub(n), -0.01),
                (x > 0, i.wrapping_sub(1), -1.0),
                (true, i, 2.02),
                (x + 1 < n, i + 1, -1.0),
                (y + 1 < n, i + n, -0.01),
            ];
            row.extend(neighbours.into_iter().filter(|(there, ..)| *there).map(|(_, j, value)| (j as u32, value)));
        });
        let a = a.unwrap();
        let matrix = Matrix::new(&device(), &a, Format::Csr).unwrap();
        let solve = |options: FsaiOptions| {
            let m = Fsai::new(&device(), &a, options).unwrap();
            let entries = m.entries();
            let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_preconditioner(m);
            let (b, mut x) =
                (Vector::filled(&device(), n * n, 1.0).unwrap(), Vector::zeros(&device(), n * n).unwrap());
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            (entries, report.iterations)
        };
        let power = solve(FsaiOptions::power(2));
        let adaptive = solve(FsaiOptions::adaptive(AdaptivePattern { steps: 5, per_step: 1, tolerance: 0.0 }));
        assert!(adaptive.0 <= power.0 && 4 * adaptive.1 <= 3 * power.1, "{adaptive:?} {power:?}");
        // A share of psi that no step gains ends the search after one.
        let short = found(&a, 10, 1, 1.0);
        assert!((0..n * n).all(|i| short.row(i).0.len() <= 2));
        assert!(found(&a, 10, 1, 1e-3).nnz() < found(&a, 10, 1, 1e-6).nnz());
    }

    /// `D A D` has the factor `G D^-1`, in the same places, and to the bit if `D` has powers of 2.
    #[test]
    fn a_search_does_not_depend_on_scaling() {
        let a = gallery::block_poisson::<f64>(6, 3).unwrap();
        let scale = |i: usize| 2f64.powi((i * 7 % 23) as i32 - 11);
        let scales: Vec<f64> = (0..a.rows()).map(scale).collect();
        let (g, scaled) = (found(&a, 6, 2, 1e-3), found(&a.scaled(&scales, &scales).unwrap(), 6, 2, 1e-3));
        assert_eq!(g.indices(), scaled.indices());
        for (i, wanted) in g.values().iter().enumerate() {
            assert_eq!(scaled.values()[i] * scale(g.indices()[i] as usize), *wanted);
        }
    }

    #[test]
    fn searches_that_cannot_be_are_refused() {
        let a = gallery::poisson_2d::<f64>(4, 0.0).unwrap();
        for (steps, per_step, tolerance) in [
            (0, 1, 0.1),
            (1, 0, 0.1),
            (16, 16, 0.1),
            (usize::MAX, 2, 0.1),
            (1, 1, -0.1),
            (1, 1, 1.5),
            (1, 1, f64::NAN),
        ] {
            let options = FsaiOptions::adaptive(AdaptivePattern { steps, per_step, tolerance });
            assert!(matches!(Fsai::new(&device(), &a, options), Err(Error::Option { .. })), "{options:?}");
        }
        let m = Fsai::new(&device(), &a, FsaiOptions::adaptive(AdaptivePattern::default())).unwrap();
        assert!(matches!(m.update_values(&a), Err(Error::Structure { .. })));
    }
}
