//! Sparsity pattern that FSAI finds row by row: the places that reduce `psi` most.
//!
//! ```text
//!   psi(g) = g'A g  with g_i = 1
//!
//!   S = {i}
//!   in each step:
//!       solve A(S, S) for the row g that makes psi least
//!       add the columns j < i with the largest (A g)_j^2 / a_jj
//! ```
//!
//! At its minimum `psi` is the square of the last pivot of `A(S, S)`. `(A g)_j^2 / a_jj` is the fall of `psi` if `g_j` alone is changed.
//!
//! Source: C. Janna, M. Ferronato, "Adaptive pattern research for block FSAI preconditioning", SIAM J. Sci. Comput. 33 (2011), which takes
//! the largest gradients of a matrix that is scaled to a unit diagonal: the same choice.

use super::dense::Dense;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::setters::setters;
use crate::sparse::Csr;

/// Most places of a row: a dense factorisation takes the cube of them. Longer rows keep the largest of their entries.
pub(crate) const MOST_PLACES: usize = 256;

/// Limits of the search for the places of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdaptivePattern {
    /// Most steps of a row.
    pub steps: usize,
    /// Most entries that a step adds; 1 to 255 in all steps together.
    pub per_step: usize,
    /// Share of its first value that `psi` must fall by in a step, or the row is done; 0 to 1.
    pub tolerance: f64,
}

impl Default for AdaptivePattern {
    fn default() -> Self {
        Self::NEUTRAL
    }
}

impl AdaptivePattern {
    setters! {
        with_steps: steps(usize),
        with_per_step: per_step(usize),
        with_tolerance: tolerance(f64),
    }

    /// The default.
    pub(crate) const NEUTRAL: Self = Self { steps: 10, per_step: 2, tolerance: 1e-2 };

    pub(crate) fn check(self) -> Result<()> {
        let Self { steps, per_step, tolerance } = self;
        let most = MOST_PLACES - 1;
        let reason = if !(0.0..=1.0).contains(&tolerance) {
            format!("tolerance {tolerance}; 0 to 1 are possible")
        } else if steps == 0 || per_step == 0 || steps.saturating_mul(per_step) > most {
            format!("{steps} steps of {per_step} entries; 1 to {most} entries in all are possible")
        } else {
            return Ok(());
        };
        Err(Error::Option { name: "preconditioner", reason })
    }
}

/// Room for the search.
#[derive(Default)]
pub(crate) struct Search {
    /// Places in the order in which they were found, the row's own last: all factors before it are kept from step to step.
    places: Vec<u32>,
    /// The places that were found, ascending.
    ascending: Vec<u32>,
    /// The row of `G` in that order.
    row: Vec<f64>,
    /// `A g`, 0 where nothing was added.
    product: Vec<f64>,
    /// Columns where something was added.
    touched: Vec<u32>,
    /// The largest gains with their columns.
    best: Vec<(f64, u32)>,
}

impl Search {
    /// Finds the places of row `i`, ascending, and leaves the row in `dense`. `diagonal` is that of the matrix.
    pub(crate) fn row<T: Real>(
        &mut self,
        a: &Csr<T>,
        diagonal: &[f64],
        i: usize,
        wanted: AdaptivePattern,
        dense: &mut Dense,
    ) -> Result<&[u32]> {
        self.places.clear();
        self.places.push(i as u32);
        dense.solve(a, i, &self.places)?;
        let (first, mut before) = (diagonal[i], diagonal[i]);
        for _ in 0..wanted.steps {
            if !self.add(a, diagonal, i, wanted.per_step, &dense.g) {
                break;
            }
            dense.solve(a, i, &self.places)?;
            // The last number of the row is 1 / sqrt(psi).
            let psi = dense.g.last().map_or(0.0, |last| 1.0 / (last * last));
            if before - psi <= wanted.tolerance * first {
                break;
            }
            before = psi;
        }
        let Self { places, ascending, row, .. } = self;
        ascending.clone_from(places);
        ascending.sort_unstable();
        row.clear();
        row.resize(places.len(), 0.0);
        for (place, value) in places.iter().zip(&dense.g) {
            row[ascending.partition_point(|j| j < place)] = *value;
        }
        dense.g.clone_from(row);
        Ok(ascending)
    }

    /// Adds the places that bring most to those of the row `g`; tells if there were any.
    fn add<T: Real>(&mut self, a: &Csr<T>, diagonal: &[f64], i: usize, most: usize, g: &[f64]) -> bool {
        let Self { places, product, touched, best, .. } = self;
        if product.len() < i {
            product.resize(i, 0.0);
        }
        for (k, g) in places.iter().zip(g) {
            let (columns, values) = a.row(*k as usize);
            for (j, value) in columns.iter().zip(values).take_while(|(j, _)| (**j as usize) < i) {
                let sum = &mut product[*j as usize];
                if *sum == 0.0 {
                    touched.push(*j);
                }
                *sum += g * value.to_f64();
            }
        }
        // Nothing is gained where a place is already; nor where a column comes a second time.
        places.iter().filter(|k| (**k as usize) < i).for_each(|k| product[*k as usize] = 0.0);
        best.clear();
        for j in touched.drain(..) {
            let sum = std::mem::take(&mut product[j as usize]);
            let gain = sum * sum / diagonal[j as usize];
            // The first column of equal gains.
            let at = best.partition_point(|(other, k)| *other > gain || (*other == gain && *k < j));
            if gain > 0.0 && at < most {
                best.truncate(most - 1);
                best.insert(at, (gain, j));
            }
        }
        best.sort_unstable_by_key(|(_, j)| *j);
        let own = places.pop();
        places.extend(best.iter().map(|(_, j)| *j).chain(own));
        !best.is_empty()
    }
}
