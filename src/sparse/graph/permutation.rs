//! Permutations of rows, and the graph of a matrix.

use crate::error::{Error, Result, same_length};
use crate::number::Real;
use crate::sparse::Csr;

/// A permutation: row `k` after it is row `order[k]` before it.
///
/// ```
/// use residuum::sparse::{Ordering, Permutation, gallery};
///
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let order = Permutation::of(&a, Ordering::ReverseCuthillMckee)?;
/// let (permuted, b) = (a.permuted(&order, &order)?, order.apply(&vec![1.0; 400])?);
/// // ... P A P' y = P b, then x = P'y:
/// let x = order.undo(&b)?;
/// assert_eq!((permuted.nnz(), x), (a.nnz(), vec![1.0; 400]));
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    order: Vec<u32>,
}

impl Permutation {
    /// The permutation that takes row `order[k]` to place `k`.
    ///
    /// # Errors
    /// [`Error::Structure`] with the first number that is too large or stands twice.
    pub fn new(order: Vec<u32>) -> Result<Self> {
        let mut seen = vec![false; order.len()];
        for (k, i) in order.iter().enumerate() {
            match seen.get_mut(*i as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    let what = format!("{i} in an order of {} rows is too large, or stands twice", order.len());
                    return Err(Error::Structure { what, row: Some(k) });
                }
            }
        }
        Ok(Self { order })
    }

    /// An order that is known to hold each row once.
    pub(crate) fn of_parts(order: Vec<u32>) -> Self {
        Self { order }
    }

    /// Row before the permutation of each row after it.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The permutation that undoes this one.
    pub fn inverse(&self) -> Self {
        let mut order = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(k, i)| order[*i as usize] = k as u32);
        Self { order }
    }

    /// `P x`: element `k` is `x[order[k]]`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a number for each row.
    pub fn apply<T: Copy>(&self, x: &[T]) -> Result<Vec<T>> {
        same_length("a vector to be permuted", self.order.len(), x.len())?;
        Ok(self.order.iter().map(|i| x[*i as usize]).collect())
    }

    /// `P'y`: what [`Permutation::apply`] made `y` of.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a number for each row.
    pub fn undo<T: Copy>(&self, y: &[T]) -> Result<Vec<T>> {
        self.inverse().apply(y)
    }
}

impl<T: Real> Csr<T> {
    /// `P A Q'`: row `k` is row `rows.order()[k]`, column `l` column `cols.order()[l]`. No number changes.
    ///
    /// # Errors
    /// [`Error::Shape`] unless both permutations are as long as the matrix has rows and columns.
    pub fn permuted(&self, rows: &Permutation, cols: &Permutation) -> Result<Self> {
        same_length("rows of a permutation", self.rows(), rows.order.len())?;
        same_length("columns of a permutation", self.cols(), cols.order.len())?;
        let places = cols.inverse().order;
        Self::from_rows(self.rows(), self.cols(), |k, entries| {
            let (columns, values) = self.row(rows.order[k] as usize);
            entries.extend(columns.iter().map(|j| places[*j as usize]).zip(values.iter().copied()));
            entries.sort_unstable_by_key(|(column, _)| *column);
        })
    }
}

/// The rows that share an entry with each row of a square matrix, either way, without itself; ascending.
pub(crate) fn neighbours<T: Real>(a: &Csr<T>) -> Vec<Vec<u32>> {
    let t = a.transpose();
    (0..a.rows())
        .map(|i| {
            let mut found: Vec<u32> = a.row(i).0.iter().chain(t.row(i).0).copied().collect();
            found.sort_unstable();
            found.dedup();
            found.retain(|j| *j as usize != i);
            found
        })
        .collect()
}
