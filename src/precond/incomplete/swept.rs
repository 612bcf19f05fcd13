//! Incomplete factors in the sparsity pattern of the matrix by sweeps over their rows on the device.
//!
//! ```text
//!   IC    l_ik = (a_ik - sum of l_ij l_kj) / l_kk,  l_ii = sqrt(a_ii - sum of l_ij^2)    at first l_ik = a_ik / sqrt(a_kk)
//!   ILU   l_ik = (a_ik - sum of l_ij u_jk) / u_kk,  u_ik = a_ik - sum of l_ij u_jk       at first l_ik = a_ik / a_kk, u_ik = a_ik
//! ```
//!
//! A sweep computes every row again, its entries in order. Row `i` is of class `i` mod [`CLASSES`]. The classes are computed one after another,
//! the rows of a class at once. A row reads rows of earlier classes as this sweep has made them, and all others, those of its own class too, as
//! the sweep before has left them; two buffers hold both.
//! after as many sweeps as the longest chain of rows of which each depends on the one before. A few sweeps come close. Entries are
//! rounded to the precision of the matrix as they are made.
//!
//! Chow and Patel compute all entries at once, from those of the sweep before. Iterations of CG with factors of three sweeps:
//!
//! | factors | aft01 | apache1 |
//! |---|---|---|
//! | exact | 101 | 270 |
//! | all entries at once | 437, and only if the diagonal is doubled first | 57 % more than exact |
//! | rows at once, entries in order, one class | 127 | 268 |
//! | the same with 16 classes | 103 | 270 |
//!
//! Source: E. Chow, A. Patel, "Fine-grained parallel incomplete LU factorization", SIAM J. Sci. Comput. 37 (2015), algorithm 2 and
//! section 2.3 (the start).

use super::Factorisation;
use super::pivot::{BadPivot, largest};
use crate::backend::precond::factor_sweep::{CLASSES, Places};
use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::sparse::Csr;

/// Factors in the sparsity pattern of a matrix, which stay on the device from shift to shift.
pub(super) struct Swept<'a, T: Real> {
    device: &'a Device,
    a: &'a Csr<T>,
    kind: Factorisation,
    /// Place of each diagonal entry among all.
    diagonal: &'a [usize],
    sweeps: usize,
    places: Places<T>,
}

impl<'a, T: Real> Swept<'a, T> {
    pub(super) fn new(
        device: &'a Device,
        a: &'a Csr<T>,
        kind: Factorisation,
        diagonal: &'a [usize],
        sweeps: usize,
    ) -> Result<Self> {
        Ok(Self { device, a, kind, diagonal, sweeps, places: places(device, a, kind, diagonal)? })
    }

    /// Factors of the matrix with the entries `values`, which they replace.
    pub(super) fn factors(&mut self, values: &mut [f64]) -> Result<std::result::Result<(), BadPivot>> {
        let Self { device, a, kind, diagonal, sweeps, places } = self;
        if let Some(i) = diagonal.iter().position(|at| values[*at] == 0.0) {
            return Ok(Err((i, 0.0)));
        }
        let place = device.place();
        places.a.write(&values.iter().map(|v| T::from_f64(*v)).collect::<Vec<T>>())?;
        let mut before = place.take(start::<T>(a, *kind, diagonal, values))?;
        let mut after = place.filled(before.len(), T::default())?;
        // Entries above the diagonal of Cholesky's factor are never written.
        after.copy_from(&before)?;
        let (run, operations) = (device.run::<T>(), device.backend().factor_sweep::<T>());
        for _ in 0..*sweeps {
            for class in 0..CLASSES {
                operations.factor_sweep(run, places, class, &before, &mut after)?;
            }
            std::mem::swap(&mut before, &mut after);
        }
        let mut made = vec![T::default(); before.len()];
        before.read(0, &mut made)?;
        for i in 0..a.rows() {
            let row = a.offsets()[i]..a.offsets()[i + 1];
            let pivot = made[diagonal[i]].to_f64();
            let good = match kind {
                Factorisation::Cholesky => pivot > 0.0,
                Factorisation::Lu => pivot.abs() > T::EPSILON * largest(&values[row.clone()]),
            };
            if !good || !made[row].iter().all(|v| v.is_finite()) {
                return Ok(Err((i, pivot)));
            }
        }
        values.iter_mut().zip(&made).for_each(|(value, made)| *value = made.to_f64());
        Ok(Ok(()))
    }
}

fn places<T: Real>(device: &Device, a: &Csr<T>, kind: Factorisation, diagonal: &[usize]) -> Result<Places<T>> {
    let (entries, n) = (a.nnz() as u64, a.rows() as u64);
    let lists = if kind == Factorisation::Lu { 3 } else { 1 };
    device.check_memory(
        0,
        &[
            ("places of factors", 4 * (lists * entries + 3 * n)),
            ("values of factors", 3 * entries * T::PRECISION.bytes() as u64),
        ],
    )?;
    let place = device.place();
    let offsets: Vec<u32> = a.offsets().iter().map(|o| *o as u32).collect();
    let columns = match kind {
        Factorisation::Cholesky => None,
        Factorisation::Lu => {
            let mut starts = vec![0u32; a.cols() + 1];
            a.indices().iter().for_each(|k| starts[*k as usize + 1] += 1);
            (0..a.cols()).for_each(|k| starts[k + 1] += starts[k]);
            let mut next = starts.clone();
            let (mut members, mut at) = (vec![0u32; a.nnz()], vec![0u32; a.nnz()]);
            for i in 0..a.rows() {
                for e in a.offsets()[i]..a.offsets()[i + 1] {
                    let k = a.indices()[e] as usize;
                    let place = next[k] as usize;
                    (members[place], at[place]) = (i as u32, e as u32);
                    next[k] += 1;
                }
            }
            Some([place.take(starts)?, place.take(members)?, place.take(at)?])
        }
    };
    Ok(Places {
        offsets: place.take(offsets)?,
        indices: place.take(a.indices().to_vec())?,
        diagonal: place.take(diagonal.iter().map(|at| *at as u32).collect())?,
        columns,
        // Each shift brings its own.
        a: place.filled(a.nnz(), T::default())?,
    })
}

/// The factors before the first sweep.
fn start<T: Real>(a: &Csr<T>, kind: Factorisation, diagonal: &[usize], values: &[f64]) -> Vec<T> {
    let entry = |i: usize, e: usize| {
        let k = a.indices()[e] as usize;
        let own = values[diagonal[k]];
        match kind {
            Factorisation::Cholesky => values[e] / own.sqrt(),
            Factorisation::Lu if k < i => values[e] / own,
            Factorisation::Lu => values[e],
        }
    };
    let of_row = |i: usize| (a.offsets()[i]..a.offsets()[i + 1]).map(move |e| (i, e));
    (0..a.rows()).flat_map(of_row).map(|(i, e)| T::from_f64(entry(i, e))).collect()
}
