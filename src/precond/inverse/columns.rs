//! Columns that are orthogonal by `A`, one pivot after another: AINV and SAINV on the host.

use super::ainv_options::{AinvOptions, Orthogonalisation};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::number::Real;
use crate::precond::support::{Gathered, RowPlaces, in_time};
use crate::sparse::Csr;
use crate::threads;

/// A row of `Z`: `(column, value)`, ascending. Columns before `head` are finished.
struct Row<T> {
    entries: Vec<(u32, T)>,
    head: usize,
}

/// Products of an entry of a column with a coefficient from which on threads share the rows of an update.
const WORTH_SHARING: usize = 1 << 15;

/// `Z` by rows, and its pivots.
pub(crate) struct Z<T> {
    pub(crate) rows: Vec<Vec<(u32, T)>>,
    pub(crate) pivots: Vec<f64>,
}

/// Pivots that are good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pivots {
    /// Positive ones, as a symmetric positive definite matrix has them.
    Positive,
    /// All but those that are nearly 0.
    NotZero,
}

/// Rule of what is dropped.
pub(crate) struct Dropping {
    /// Entries below it.
    below: f64,
    /// Entries of a row in other columns than these, if there are any.
    places: Option<Vec<RowPlaces>>,
}

impl Dropping {
    pub(crate) fn of<T: Real>(a: &Csr<T>, options: AinvOptions) -> Result<Self> {
        let places = options.pattern.map(|power| RowPlaces::of_rows(a, power, options.deadline)).transpose()?;
        Ok(Self { below: options.drop, places })
    }

    #[inline]
    pub(crate) fn keeps(&self, l: u32, j: u32, value: f64) -> bool {
        value.abs() >= self.below
            && value != 0.0
            && self.places.as_ref().is_none_or(|places| places[l as usize].has(l, j))
    }
}

/// The columns one after another.
pub(crate) fn on_host<T: Real>(
    device: &Device,
    a: &Csr<T>,
    options: AinvOptions,
    pivots_wanted: Pivots,
) -> Result<Z<T>> {
    let dropping = Dropping::of(a, options)?;
    let n = a.rows();
    let mut rows: Vec<Row<T>> =
        (0..n as u32).map(|l| Row { entries: vec![(l, T::from_f64(1.0))], head: 0 }).collect();
    // Rows in which a column has an entry, or had one.
    let mut holders: Vec<Vec<u32>> = (0..n as u32).map(|j| vec![j]).collect();
    let mut pivots = vec![0.0; n];
    let (mut held, mut allowed) = (n, 2 * (a.nnz() + n));
    let (mut v, mut p) = (Gathered::new(n), Gathered::new(n));
    for i in 0..n {
        in_time(options.deadline, "an approximate inverse")?;
        let column = take_column(&mut rows, &mut holders[i], i as u32);
        match options.orthogonalisation {
            Orthogonalisation::Stabilised => {
                for (k, z) in &column {
                    let (columns, values) = a.row(*k as usize);
                    for (l, value) in columns.iter().zip(values) {
                        v.add(*l, value.to_f64() * z.to_f64());
                    }
                }
            }
            Orthogonalisation::Plain | Orthogonalisation::Factored => {
                let (columns, values) = a.row(i);
                columns.iter().zip(values).for_each(|(l, value)| v.add(*l, value.to_f64()));
            }
        }
        for (l, value) in v.drain() {
            let value = T::from_f64(value).to_f64();
            let row = &rows[l as usize];
            // Column i has left the open part of its rows.
            if let Some((j, z)) = row.entries[..row.head].last().filter(|(j, _)| *j == i as u32) {
                p.add(*j, value * z.to_f64());
            }
            row.entries[row.head..].iter().for_each(|(j, z)| p.add(*j, value * z.to_f64()));
        }
        let mut coefficients = p.drain();
        // Column i comes first, unless v misses it.
        let pivot = coefficients.next().filter(|(j, _)| *j == i as u32).map_or(0.0, |(_, pivot)| pivot);
        check_pivot(i, pivot, pivots_wanted, options.orthogonalisation)?;
        pivots[i] = pivot;
        let coefficients: Vec<(u32, f64)> =
            coefficients.filter(|(_, p)| *p != 0.0).map(|(j, p)| (j, p / pivot)).collect();
        held = held.wrapping_add_signed(update(&mut rows, &mut holders, &column, &coefficients, &dropping));
        check_room::<T>(device, held, &mut allowed)?;
    }
    Ok(Z { rows: rows.into_iter().map(|row| row.entries).collect(), pivots })
}

/// Fails if `held` entries are more than fit on the device. It looks again when there are more than `allowed`.
pub(crate) fn check_room<T: Real>(device: &Device, held: usize, allowed: &mut usize) -> Result<()> {
    if held > *allowed {
        // Twice over: the factor and its transposed.
        device.check_memory(0, &[("approximate inverse", (2 * held * (4 + T::PRECISION.bytes())) as u64)])?;
        *allowed = 2 * held;
    }
    Ok(())
}

/// Fails on a pivot that is no good.
fn check_pivot(i: usize, pivot: f64, wanted: Pivots, orthogonalisation: Orthogonalisation) -> Result<()> {
    // Rows and columns are scaled, so that a pivot at the level of rounding is as good as none.
    let good = match wanted {
        Pivots::Positive => pivot > 0.0,
        Pivots::NotZero => pivot.abs() > f64::EPSILON,
    };
    let remedy = match (wanted, orthogonalisation) {
        _ if good && pivot.is_finite() => return Ok(()),
        (Pivots::NotZero, _) => {
            let what =
                format!("pivot {pivot:e} of an approximate inverse: take a smaller drop, another order, or ilu0");
            return Err(Error::Structure { what, row: Some(i) });
        }
        (_, Orthogonalisation::Plain | Orthogonalisation::Factored) => "take sainv, or a smaller drop",
        (_, Orthogonalisation::Stabilised) => {
            "the matrix is not positive definite, or too nearly singular for its precision"
        }
    };
    Err(bad_pivot(i, pivot, remedy))
}

/// Finishes column `i`: its entries by ascending row.
fn take_column<T: Real>(rows: &mut [Row<T>], holders: &mut Vec<u32>, i: u32) -> Vec<(u32, T)> {
    let mut holders = std::mem::take(holders);
    holders.sort_unstable();
    holders.dedup();
    let mut column = Vec::with_capacity(holders.len());
    for l in holders {
        let row = &mut rows[l as usize];
        // Dropped again if it is not the first of those that are not finished.
        if let Some((_, z)) = row.entries.get(row.head).filter(|(j, _)| *j == i) {
            column.push((l, *z));
            row.head += 1;
        }
    }
    column
}

/// `z_j -= c_j z_i` for every coefficient `c_j`, with dropping. Returns by how much the number of entries grew.
fn update<T: Real>(
    rows: &mut [Row<T>],
    holders: &mut [Vec<u32>],
    column: &[(u32, T)],
    coefficients: &[(u32, f64)],
    dropping: &Dropping,
) -> isize {
    if coefficients.is_empty() {
        return 0;
    }
    let merged = |(l, z): &(u32, T)| {
        let row = &rows[*l as usize];
        let (open, z) = (&row.entries[row.head..], z.to_f64());
        let mut next = Vec::with_capacity(open.len() + coefficients.len());
        let mut at = 0;
        for (j, c) in coefficients {
            while open.get(at).is_some_and(|(there, _)| there < j) {
                next.push(open[at]);
                at += 1;
            }
            let old = open.get(at).filter(|(there, _)| there == j);
            let value = T::from_f64(old.map_or(0.0, |(_, value)| value.to_f64()) - c * z);
            at += usize::from(old.is_some());
            if dropping.keeps(*l, *j, value.to_f64()) {
                next.push((*j, value));
            }
        }
        next.extend_from_slice(&open[at..]);
        next
    };
    let new: Vec<Vec<(u32, T)>> = if column.len() * coefficients.len() < WORTH_SHARING {
        column.iter().map(merged).collect()
    } else {
        threads::map(column, 1, |_, entry| merged(entry))
    };
    let mut grown = 0;
    for ((l, _), new) in column.iter().zip(new) {
        let row = &mut rows[*l as usize];
        // Entries that were not there before.
        let mut old = row.entries[row.head..].iter().map(|(j, _)| *j).peekable();
        for (j, _) in &new {
            while old.next_if(|there| there < j).is_some() {}
            if old.next_if_eq(j).is_none() {
                holders[*j as usize].push(*l);
            }
        }
        grown += new.len() as isize - (row.entries.len() - row.head) as isize;
        row.entries.truncate(row.head);
        row.entries.extend(new);
    }
    grown
}

pub(crate) fn bad_pivot(row: usize, pivot: f64, remedy: &str) -> Error {
    let what = format!("pivot {pivot:e} of an approximate inverse is not positive: {remedy}");
    Error::Structure { what, row: Some(row) }
}

/// Factors that scale the diagonal to 1.
pub(crate) fn unit_diagonal<T: Real>(a: &Csr<T>) -> Result<Vec<f64>> {
    let diagonal = a.diagonal();
    if let Some(i) = diagonal.iter().position(|d| *d <= 0.0) {
        let what = format!("diagonal entry {:e} is not positive: no positive definite matrix", diagonal[i]);
        return Err(Error::Structure { what, row: Some(i) });
    }
    Ok(diagonal.iter().map(|d| d.sqrt().recip()).collect())
}
