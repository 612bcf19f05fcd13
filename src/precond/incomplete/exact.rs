//! Incomplete factors in the places of the matrix, entry after entry: IC(0) and ILU(0).

use super::BadPivot;
use crate::number::Real;
use crate::sparse::Csr;

/// IC(0): `L` takes the places of the lower triangle of `values`.
pub(super) fn cholesky<T: Real>(
    a: &Csr<T>,
    diagonal: &[usize],
    values: &mut [f64],
) -> std::result::Result<(), BadPivot> {
    let (offsets, columns) = (a.offsets(), a.indices());
    for i in 0..a.rows() {
        for at in offsets[i]..=diagonal[i] {
            let k = columns[at] as usize;
            let mut value = values[at];
            // Entries of rows i and k in the same column before k.
            let (mut mine, mut other) = (offsets[i], offsets[k]);
            while mine < at && other < diagonal[k] {
                match columns[mine].cmp(&columns[other]) {
                    std::cmp::Ordering::Less => mine += 1,
                    std::cmp::Ordering::Greater => other += 1,
                    std::cmp::Ordering::Equal => {
                        value -= values[mine] * values[other];
                        mine += 1;
                        other += 1;
                    }
                }
            }
            if k < i {
                values[at] = value / values[diagonal[k]];
            } else if value > 0.0 && value.is_finite() {
                values[at] = value.sqrt();
            } else {
                return Err((i, value));
            }
        }
    }
    Ok(())
}

/// ILU(0) in place: `L` without its unit diagonal, and `U`.
pub(super) fn lu<T: Real>(a: &Csr<T>, diagonal: &[usize], values: &mut [f64]) -> std::result::Result<(), BadPivot> {
    const NOWHERE: usize = usize::MAX;
    let (offsets, columns) = (a.offsets(), a.indices());
    let mut place = vec![NOWHERE; a.cols()];
    for i in 0..a.rows() {
        let row = offsets[i]..offsets[i + 1];
        let largest = values[row.clone()].iter().fold(0.0f64, |most, v| most.max(v.abs()));
        row.clone().for_each(|at| place[columns[at] as usize] = at);
        for at in offsets[i]..diagonal[i] {
            let k = columns[at] as usize;
            values[at] /= values[diagonal[k]];
            for other in diagonal[k] + 1..offsets[k + 1] {
                let mine = place[columns[other] as usize];
                if mine != NOWHERE {
                    values[mine] -= values[at] * values[other];
                }
            }
        }
        row.for_each(|at| place[columns[at] as usize] = NOWHERE);
        let pivot = values[diagonal[i]];
        if !(pivot.abs() > f64::EPSILON * largest && pivot.is_finite()) {
            return Err((i, pivot));
        }
    }
    Ok(())
}
