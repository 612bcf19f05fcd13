//! AINV from the factors of the matrix.
//!
//! ```text
//!   S A S = P' D P approximately,  P unit upper triangular, D = diag(p_0, p_1, ...)
//!
//!   for j = 0 .. n-1:                                     row j of P', for ascending i < j
//!       c_i = a_ji - sum over k < i of p_kj D_k p_ki;     p_ij = c_i / D_i, 0 if it is smaller than `drop`
//!       D_j = a_jj - sum over i < j of p_ij D_i p_ij
//!   for j = 0 .. n-1:                                     Z = P^-1, a column by those before
//!       z_j = e_j - sum over i < j of p_ij z_i;           drop entries smaller than `drop`, but not the diagonal one
//! ```
//!
//! In exact arithmetic the coefficients `p_j / p_i` of AINV are the entries of `P`. Computed from factors they need no products with the
//! matrix, and no search for columns whose product is not 0. That is less work, but columns are made one after another. Entries of `z_j` are dropped once, when all terms are added. Factors and sums are in `f64`; entries of `z` are
//! rounded to the precision of the matrix.
//!
//! If the options name a sparsity pattern, it limits `Z`, and not `P`.
//!
//! Source: dedecek-2013, 3.2.1 ("Relation to LDL' decomposition"). The rule for dropping entries of `P` is not from there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ainv_options::AinvOptions;
use super::columns::{Dropping, Z, bad_pivot, check_room};
use crate::device::Device;
use crate::error::Result;
use crate::machine;
use crate::number::Real;
use crate::precond::support::{Gathered, in_time};
use crate::sparse::Csr;

/// Coefficients of one column of `P`: `(row, value)`, ascending.
type Coefficients = Vec<(u32, f64)>;

/// `Z` by rows and its pivots, of a symmetric matrix.
pub(crate) fn on_host<T: Real>(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<Z<T>> {
    let dropping = Dropping::of(a, options)?;
    let n = a.rows();
    let mut factors = Factors {
        rows: vec![Vec::new(); n],
        pivots: Vec::with_capacity(n),
        sums: vec![0.0; n],
        there: vec![false; n],
        next: BinaryHeap::new(),
    };
    let mut columns: Vec<Vec<(u32, T)>> = Vec::with_capacity(n);
    let mut sums = Gathered::new(n);
    let (mut held, mut allowed) = (0, 2 * (a.nnz() + n));
    let (mut of_factors, mut planned) = (0, 2 * (a.nnz() + n));
    for j in 0..n {
        in_time(options.deadline, "an approximate inverse")?;
        let coefficients = factors.column(a, j, options.drop)?;
        let column = column(&columns, &coefficients, j as u32, &dropping, &mut sums);
        held += column.len();
        of_factors += coefficients.len();
        if of_factors > planned {
            planned = 2 * of_factors;
            machine::check_memory("factors of the matrix", (planned * size_of::<(u32, f64)>()) as u64)?;
        }
        factors.take(j as u32, &coefficients);
        columns.push(column);
        check_room::<T>(device, held, &mut allowed)?;
    }
    let mut rows: Vec<Vec<(u32, T)>> = vec![Vec::new(); n];
    for (j, column) in columns.into_iter().enumerate() {
        column.into_iter().for_each(|(l, value)| rows[l as usize].push((j as u32, value)));
    }
    Ok(Z { rows, pivots: factors.pivots })
}

/// `P` and `D` as far as they are made.
struct Factors {
    /// Row `i` of `P` behind its diagonal.
    rows: Vec<Coefficients>,
    pivots: Vec<f64>,
    /// `c_i` of the column at hand, as far as terms have come, and those that are there.
    sums: Vec<f64>,
    there: Vec<bool>,
    /// Places of those that are not finished.
    next: BinaryHeap<Reverse<u32>>,
}

impl Factors {
    fn add(&mut self, i: u32, term: f64) {
        let at = i as usize;
        self.sums[at] += term;
        if !self.there[at] {
            self.there[at] = true;
            self.next.push(Reverse(i));
        }
    }

    /// Column `j` of `P` above its diagonal; its pivot joins the others.
    fn column<T: Real>(&mut self, a: &Csr<T>, j: usize, drop: f64) -> Result<Coefficients> {
        let (places, values) = a.row(j);
        let mut pivot = 0.0;
        for (i, value) in places.iter().zip(values).take_while(|(i, _)| **i as usize <= j) {
            match *i as usize == j {
                true => pivot = value.to_f64(),
                false => self.add(*i, value.to_f64()),
            }
        }
        let mut found = Coefficients::new();
        // Row i of P has later places alone: a `c_i` that has been taken gets no more terms.
        while let Some(Reverse(i)) = self.next.pop() {
            let at = i as usize;
            self.there[at] = false;
            let c = std::mem::take(&mut self.sums[at]);
            let coefficient = c / self.pivots[at];
            if coefficient == 0.0 || coefficient.abs() < drop {
                continue;
            }
            pivot -= coefficient * c;
            let row = std::mem::take(&mut self.rows[at]);
            row.iter().for_each(|(l, p)| self.add(*l, -(p * c)));
            self.rows[at] = row;
            found.push((i, coefficient));
        }
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(bad_pivot(j, pivot, "take sainv, or a smaller drop"));
        }
        self.pivots.push(pivot);
        Ok(found)
    }

    /// Keeps column `j`.
    fn take(&mut self, j: u32, coefficients: &[(u32, f64)]) {
        for (i, p) in coefficients {
            self.rows[*i as usize].push((j, *p));
        }
    }
}

/// Column `j` of `Z` by ascending rows.
fn column<T: Real>(
    columns: &[Vec<(u32, T)>],
    coefficients: &[(u32, f64)],
    j: u32,
    dropping: &Dropping,
    sums: &mut Gathered,
) -> Vec<(u32, T)> {
    for (i, p) in coefficients {
        for (l, z) in &columns[*i as usize] {
            sums.add(*l, -(p * z.to_f64()));
        }
    }
    let rounded = sums.drain().map(|(l, value)| (l, T::from_f64(value)));
    let kept = rounded.filter(|(l, value)| dropping.keeps(*l, j, value.to_f64()));
    kept.chain([(j, T::from_f64(1.0))]).collect()
}
