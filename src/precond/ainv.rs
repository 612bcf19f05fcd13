//! Approximate inverses in factors: AINV and SAINV.
//!
//! ```text
//!   Z' S A S Z = D approximately,  M = S Z D^-1 Z' S = W W',   Z unit upper triangular, D = diag(p_0, p_1, ...)
//!
//!   for i = 0 .. n-1:                                  the columns of Z are those of the identity at first
//!       v = A z_i  (SAINV),  row i of A  (AINV);       p_j = <v, z_j>  for j >= i
//!       z_j = z_j - (p_j / p_i) z_i                    for j > i with p_j != 0
//!       drop the entries of z_j that this changed and that are smaller than `drop`, but not the diagonal one
//! ```
//!
//! Entries may also be dropped by their places: all but those in the places of a power of `A`.
//!
//! `S` scales the diagonal to 1. Z is kept by rows: row l is changed by a multiple of the sparse vector of all `p_j / p_i`. Sums
//! run over ascending rows in `f64`; entries of `v` and `z` are rounded to the precision of the matrix. A column made alone, update by
//! update, has the same bits.
//!
//! A third way makes the same columns from factors of the matrix (`factored.rs`).
//!
//! Source: dedecek-2013, algorithms 6 (AINV) and 7 (SAINV), and 6.2 (rows and the outer product); M. Benzi, J. K. Cullum, M. Tůma,
//! "Robust approximate inverse preconditioning for the conjugate gradient method", SIAM J. Sci. Comput. 22 (2000), whose SAINV
//! does not break down: `p_i = z_i' A z_i`.

use std::time::Instant;

use super::gathered::Gathered;
use super::places::RowPlaces;
use super::{Square, check_symmetric, factored, in_time, product_of_matrices, square};
use crate::backend::elimination::{self, Columns, Problem};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, Structure};
use crate::sparse::{AsCsr, Csr};
use crate::threads;
use crate::vector::Vector;

/// Vectors that those of an approximate inverse are made orthogonal to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Orthogonalisation {
    /// SAINV: against `A z_i`. Pivots of a positive definite matrix are positive whatever is dropped.
    #[default]
    Stabilised,
    /// AINV: against row `i` of `A`. Less work, but pivots may lose their sign, which is an error.
    Plain,
    /// AINV from incomplete factors `P' D P` of the matrix, whose coefficients AINV has in exact arithmetic: the least work, on the host, and pivots
    /// that may lose their sign.
    Factored,
}

/// Options of [`Ainv::new`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AinvOptions {
    /// SAINV or AINV.
    pub orthogonalisation: Orthogonalisation,
    /// Entries of `Z` below it are dropped, 0.1 unless set. 0 drops nothing: `M` is the inverse, nearly dense.
    pub drop: f64,
    /// Power of the matrix in whose places `Z` may have entries: the others are dropped as soon as they come up, whatever their size. `None`
    /// for any place. With it the host makes the columns.
    pub places: Option<usize>,
    /// Rounds the factor to `f32` in the end and stores it so, for solves in `f64`: see [`Csr::rounded_to_single`].
    pub single: bool,
    /// Scales the diagonal of the matrix to 1 first, as it is unless set. Without that `drop` is for the entries of the matrix as it is.
    pub scales: bool,
    /// Makes it on the device, many columns at once, or on the host, with the same bits; `None` chooses by the kind of device and the number
    /// of rows. The host does it in any case if a column is too long for the device, and says so in the log; with `places`, and from factors, it always does.
    pub on_device: Option<bool>,
    /// Time at which the set-up ends with [`Error::OutOfTime`] if it is not done. A device looks at it before it begins.
    pub deadline: Option<Instant>,
}

impl Default for AinvOptions {
    fn default() -> Self {
        Self {
            orthogonalisation: Orthogonalisation::Stabilised,
            drop: 0.1,
            places: None,
            single: false,
            scales: true,
            on_device: None,
            deadline: None,
        }
    }
}

impl AinvOptions {
    /// SAINV that drops entries below `drop`.
    pub fn sainv(drop: f64) -> Self {
        Self { drop, ..Self::default() }
    }

    /// AINV that drops entries below `drop`.
    pub fn ainv(drop: f64) -> Self {
        Self { orthogonalisation: Orthogonalisation::Plain, drop, ..Self::default() }
    }

    /// AINV from factors of the matrix, both without entries below `drop`.
    pub fn factored(drop: f64) -> Self {
        Self { orthogonalisation: Orthogonalisation::Factored, drop, ..Self::default() }
    }

    /// A copy that drops by place as well: see [`AinvOptions::places`].
    pub fn with_places(self, power: Option<usize>) -> Self {
        Self { places: power, ..self }
    }

    /// A copy whose factor is rounded to `f32`: half the bytes or less in products, and still a fixed, symmetric operator.
    pub fn with_single(self, single: bool) -> Self {
        Self { single, ..self }
    }

    /// A copy whose set-up ends at a time.
    pub fn with_deadline(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    pub(super) fn check(self) -> Result<()> {
        let Self { drop, places, .. } = self;
        if !(drop >= 0.0 && drop.is_finite()) {
            return Err(Error::Option { name: "drop", reason: format!("{drop} is not a number from 0 on") });
        }
        match places.filter(|power| !(1..=MOST_POWER).contains(power)) {
            None => Ok(()),
            Some(power) => {
                let reason =
                    format!("places of the matrix to the power of {power}; 1 to {MOST_POWER} are possible");
                Err(Error::Option { name: "places", reason })
            }
        }
    }
}

/// Highest power of the matrix whose places may be kept.
const MOST_POWER: usize = 8;

/// The approximate inverse `W W'` of a symmetric positive definite matrix as an operator, for [`Setup::preconditioner`](crate::Setup). Two
/// products, with no order of rows to keep: as parallel as a matrix. Its bits are the same everywhere. It is made on the host, by all
/// threads where there is work for them (from factors by one), or on the device ([`AinvOptions::on_device`]).
///
/// # Cost
/// Held: `W` and its transposed, and a vector. A product reads one of them each, and three vectors.
#[derive(Debug)]
pub struct Ainv<T: Real> {
    product: Square<T>,
    w: Matrix<T>,
    entries: usize,
    on_device: bool,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<Ainv<T>> = Ainv::new_here;
}

impl<T: Real> Ainv<T> {
    /// Makes it for the symmetric positive definite matrix `a`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for a `drop` that is negative or no number or places of a
    /// power out of range, [`Error::Structure`] for a matrix that is not symmetric, an entry of the diagonal that is not positive, and a pivot that is not positive, with
    /// its row; [`Error::Memory`] as soon as the factor is larger than the device.
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), options: AinvOptions) -> Result<Self> {
        let a = &*a.as_csr()?;
        new(device, a, options)
    }

    fn new_here(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<Self> {
        let (factor, on_device) = factor(device, a, options)?;
        let (w, product) = square(device, &factor, options.single)?;
        Ok(Self { product, w, entries: factor.nnz(), on_device })
    }

    /// The root `W` of the approximate inverse, which shares its entries: what preconditions least squares from the right, if this was made
    /// from [`Csr::normal_matrix`].
    pub fn root(&self) -> SharedOperator<T> {
        (&self.w).into()
    }

    /// Entries of `Z` with its diagonal, and of `W`.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Tells if the device made it; the bits are the same.
    pub fn made_on_device(&self) -> bool {
        self.on_device
    }
}

/// A row of `Z`: `(column, value)`, ascending. Columns before `head` are finished.
struct Row<T> {
    entries: Vec<(u32, T)>,
    head: usize,
}

/// Products of an entry of a column with a coefficient from which on threads share the rows of an update.
const WORTH_SHARING: usize = 1 << 15;

/// `W = S Z D^-1/2` by rows, and if the device made it.
pub(super) fn factor<T: Real>(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<(Csr<T>, bool)> {
    let n = a.rows();
    check_symmetric(a)?;
    options.check()?;
    let scale = if options.scales { unit_diagonal(a)? } else { vec![1.0; n] };
    let scaled;
    let a = if options.scales {
        scaled = a.scaled(&scale, &scale)?;
        &scaled
    } else {
        a
    };
    let found = on_device(device, a, options)?;
    let by_device = found.is_some();
    let z = match (found, options.orthogonalisation) {
        (Some(found), _) => found,
        (None, Orthogonalisation::Factored) => factored::on_host(device, a, options)?,
        (None, _) => on_host(device, a, options, Pivots::Positive)?,
    };
    let roots: Vec<f64> = z.pivots.iter().map(|pivot| pivot.sqrt()).collect();
    let w = Csr::from_rows(n, n, |l, entries| {
        let scaled = |(j, z): &(u32, T)| (*j, T::from_f64(scale[l] * z.to_f64() / roots[*j as usize]));
        entries.extend(z.rows[l].iter().map(scaled));
    })?;
    Ok((w, by_device))
}

/// `Z` by rows, and its pivots.
pub(super) struct Z<T> {
    pub(super) rows: Vec<Vec<(u32, T)>>,
    pub(super) pivots: Vec<f64>,
}

/// Pivots that are good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pivots {
    /// Positive ones, as a symmetric positive definite matrix has them.
    Positive,
    /// All but those that are nearly 0.
    NotZero,
}

/// Rule of what is dropped.
pub(super) struct Dropping {
    /// Entries below it.
    below: f64,
    /// Entries of a row in other columns than these, if there are any.
    places: Option<Vec<RowPlaces>>,
}

impl Dropping {
    pub(super) fn of<T: Real>(a: &Csr<T>, options: AinvOptions) -> Result<Self> {
        let places = options.places.map(|power| RowPlaces::of_rows(a, power, options.deadline)).transpose()?;
        Ok(Self { below: options.drop, places })
    }

    pub(super) fn keeps(&self, l: u32, j: u32, value: f64) -> bool {
        value.abs() >= self.below
            && value != 0.0
            && self.places.as_ref().is_none_or(|places| places[l as usize].has(l, j))
    }
}

/// The columns that the device finds, many at once, if it does.
fn on_device<T: Real>(device: &Device, a: &Csr<T>, options: AinvOptions) -> Result<Option<Z<T>>> {
    let by_order = options.orthogonalisation == Orthogonalisation::Factored;
    if options.on_device == Some(false) || options.places.is_some() || by_order {
        return Ok(None);
    }
    in_time(options.deadline, "an approximate inverse")?;
    let stabilised = options.orthogonalisation == Orthogonalisation::Stabilised;
    let forced = options.on_device == Some(true);
    let problem = Problem { a, stabilised, drop: options.drop, forced };
    let found = elimination::on::<T>(device.backend()).columns(device.run::<T>(), &problem)?;
    Ok(found.map(|columns| by_rows(a.rows(), columns)))
}

/// Entries by rows: each thread collects some of the rows.
fn by_rows<T: Real>(n: usize, found: Columns<T>) -> Z<T> {
    let Columns { rows: row_of, columns, values, pivots } = found;
    let stretch = n.div_ceil(threads::count()).max(1);
    let mut rows: Vec<Vec<(u32, T)>> = vec![Vec::new(); n];
    threads::each(threads::ChunksMut(&mut rows, stretch), 1, |k, rows| {
        let begin = k * stretch;
        for ((l, j), value) in row_of.iter().zip(&columns).zip(&values) {
            if let Some(row) = (*l as usize).checked_sub(begin).and_then(|l| rows.get_mut(l)) {
                row.push((*j as u32, *value));
            }
        }
    });
    Z { rows, pivots }
}

/// The columns one after another.
pub(super) fn on_host<T: Real>(
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
pub(super) fn check_room<T: Real>(device: &Device, held: usize, allowed: &mut usize) -> Result<()> {
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

pub(super) fn bad_pivot(row: usize, pivot: f64, remedy: &str) -> Error {
    let what = format!("pivot {pivot:e} of an approximate inverse is not positive: {remedy}");
    Error::Structure { what, row: Some(row) }
}

/// Factors that scale the diagonal to 1.
pub(super) fn unit_diagonal<T: Real>(a: &Csr<T>) -> Result<Vec<f64>> {
    let diagonal = a.diagonal();
    if let Some(i) = diagonal.iter().position(|d| *d <= 0.0) {
        let what = format!("diagonal entry {:e} is not positive: no positive definite matrix", diagonal[i]);
        return Err(Error::Structure { what, row: Some(i) });
    }
    Ok(diagonal.iter().map(|d| d.sqrt().recip()).collect())
}

product_of_matrices!(Ainv, symmetric);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precond::places::neighbourhood;
    use crate::sparse::gallery;
    use crate::{Format, Matrix, Method, Setup, Solver, Stopping};

    fn device() -> Device {
        Device::host()
    }

    /// A symmetric matrix of about `2 per_row` random entries a row with a diagonal that outweighs them.
    fn definite<T: Real>(n: usize, per_row: usize, seed: u64) -> Csr<T> {
        let mut random = gallery::Random::new(seed);
        let mut entries: Vec<(usize, usize, T)> = Vec::new();
        let mut sums = vec![0.1; n];
        for i in 0..n {
            for _ in 0..per_row {
                let (j, value) = ((random.uniform() * n as f64) as usize, random.uniform() - 0.6);
                if i != j {
                    entries.extend([(i, j, T::from_f64(value)), (j, i, T::from_f64(value))]);
                    [i, j].into_iter().for_each(|k| sums[k] += value.abs());
                }
            }
        }
        entries.extend(sums.iter().enumerate().map(|(i, sum)| (i, i, T::from_f64(*sum))));
        Csr::from_triplets(n, n, &entries).unwrap()
    }

    /// Columns of `Z` and pivots by the left-looking algorithm of the thesis, one column after another.
    fn textbook<T: Real>(a: &Csr<T>, options: AinvOptions) -> (Vec<Vec<T>>, Vec<f64>) {
        let n = a.rows();
        let (mut z, mut v, mut pivots): (Vec<Vec<T>>, Vec<Vec<f64>>, Vec<f64>) = Default::default();
        let dot = |v: &[f64], z: &[T]| {
            let terms = v.iter().zip(z).filter(|(v, z)| **v != 0.0 && z.to_f64() != 0.0);
            terms.fold(0.0, |sum, (v, z)| sum + v * z.to_f64())
        };
        for j in 0..n {
            let mut column = vec![T::default(); n];
            column[j] = T::from_f64(1.0);
            for i in 0..j {
                let s = dot(&v[i], &column);
                if s == 0.0 {
                    continue;
                }
                let c = s / pivots[i];
                for (l, entry) in column.iter_mut().enumerate() {
                    let old = entry.to_f64();
                    if z[i][l].to_f64() != 0.0 {
                        *entry = T::from_f64(old - c * z[i][l].to_f64());
                        let elsewhere =
                            options.places.is_some_and(|power| !neighbourhood(a, l, power).contains(&(j as u32)));
                        if (elsewhere || entry.to_f64().abs() < options.drop) && l != j {
                            *entry = T::default();
                        }
                    }
                }
            }
            let mut against = vec![0.0; n];
            match options.orthogonalisation {
                Orthogonalisation::Plain | Orthogonalisation::Factored => {
                    a.row(j).0.iter().zip(a.row(j).1).for_each(|(l, value)| against[*l as usize] = value.to_f64());
                }
                Orthogonalisation::Stabilised => {
                    for (k, z) in column.iter().enumerate().filter(|(_, z)| z.to_f64() != 0.0) {
                        for (l, value) in a.row(k).0.iter().zip(a.row(k).1) {
                            against[*l as usize] += value.to_f64() * z.to_f64();
                        }
                    }
                    against.iter_mut().for_each(|v| *v = T::from_f64(*v).to_f64());
                }
            }
            pivots.push(dot(&against, &column));
            z.push(column);
            v.push(against);
        }
        (z, pivots)
    }

    fn columns_are_those_of_the_textbook<T: Real>() {
        let matrices = [gallery::poisson_2d::<T>(9, 0.0).unwrap(), definite(120, 6, 3), definite(90, 20, 5)];
        for a in matrices {
            for options in [
                AinvOptions::sainv(0.1),
                AinvOptions::sainv(0.0),
                AinvOptions::ainv(0.05),
                AinvOptions { scales: false, ..AinvOptions::sainv(0.02) },
                AinvOptions::sainv(0.0).with_places(Some(1)),
                AinvOptions::sainv(0.02).with_places(Some(2)),
                AinvOptions::ainv(0.0).with_places(Some(1)),
            ] {
                let (w, _) = factor(&device(), &a, options).unwrap();
                let scale = if options.scales { unit_diagonal(&a).unwrap() } else { vec![1.0; a.rows()] };
                let (z, pivots) =
                    textbook(&if options.scales { a.scaled(&scale, &scale).unwrap() } else { a.clone() }, options);
                let mut found = vec![vec![T::default(); a.rows()]; a.rows()];
                for l in 0..a.rows() {
                    w.row(l).0.iter().zip(w.row(l).1).for_each(|(j, value)| found[*j as usize][l] = *value);
                }
                for (j, (found, z)) in found.iter().zip(&z).enumerate() {
                    for (l, (found, z)) in found.iter().zip(z).enumerate() {
                        let wanted = T::from_f64(scale[l] * z.to_f64() / pivots[j].sqrt());
                        assert_eq!(
                            found.to_f64().to_bits(),
                            wanted.to_f64().to_bits(),
                            "{options:?}: entry {l} {j}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn columns_are_those_of_the_textbook_bit_for_bit() {
        columns_are_those_of_the_textbook::<f32>();
        columns_are_those_of_the_textbook::<f64>();
    }

    #[test]
    fn without_dropping_it_is_the_inverse() {
        // A = [[2, 1], [1, 2]]: S = 1 / sqrt 2, Z = [[1, -1/2], [0, 1]], D = (1, 3/4).
        let a = Csr::<f64>::from_triplets(2, 2, &[(0, 0, 2.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 2.0)]).unwrap();
        let (w, _) = factor(&device(), &a, AinvOptions::sainv(0.0)).unwrap();
        let root = 0.75f64.sqrt();
        let s = 0.5f64.sqrt();
        for (found, wanted) in w.values().iter().zip([s, -0.5 * s / root, s / root]) {
            approx::assert_relative_eq!(*found, wanted, max_relative = 1e-15);
        }
        let a = definite::<f64>(60, 5, 1);
        let inverse = Ainv::new(&device(), &a, AinvOptions::ainv(0.0)).unwrap();
        let x: Vec<f64> = (0..60).map(|k| f64::from(k % 7) - 2.5).collect();
        let ax = Vector::from_slice(&device(), &a.product(&x).unwrap()).unwrap();
        let mut found = Vector::zeros(&device(), 60).unwrap();
        inverse.apply(&ax, &mut found).unwrap();
        for (found, wanted) in found.to_vec().unwrap().iter().zip(&x) {
            approx::assert_relative_eq!(*found, *wanted, epsilon = 1e-9);
        }
    }

    /// From factors: `Z` and pivots of AINV without dropping; with it, a factor of about its size that preconditions as well.
    #[test]
    fn factors_of_the_matrix_give_the_same_columns() {
        for a in [gallery::poisson_2d::<f64>(9, 0.0).unwrap(), definite(90, 8, 5)] {
            let [(wanted, _), (found, _)] = [AinvOptions::ainv(0.0), AinvOptions::factored(0.0)]
                .map(|options| factor(&device(), &a, options).unwrap());
            let n = a.rows();
            let dense = |w: &Csr<f64>| {
                let mut dense = vec![0.0; n * n];
                for l in 0..n {
                    w.row(l).0.iter().zip(w.row(l).1).for_each(|(j, v)| dense[l * n + *j as usize] = *v);
                }
                dense
            };
            let largest = wanted.values().iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            for (found, wanted) in dense(&found).iter().zip(dense(&wanted)) {
                approx::assert_abs_diff_eq!(*found, wanted, epsilon = 1e-13 * largest);
            }
        }
        let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
        let solved = |options: AinvOptions| {
            let inverse = Ainv::new(&device(), &a, options).unwrap();
            let entries = inverse.entries();
            let stopping = Stopping { rtol: 1e-8, ..Stopping::for_precision::<f64>() };
            let setup = Setup::new(Method::Cg, stopping).with_preconditioner(inverse);
            let matrix = Matrix::new(&device(), &a, Format::Auto).unwrap();
            let mut x = Vector::zeros(&device(), 1600).unwrap();
            let b = Vector::filled(&device(), 1600, 1.0).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            (entries as f64, report.iterations as f64)
        };
        for drop in [0.1, 0.02] {
            let (plain, factored) = (solved(AinvOptions::ainv(drop)), solved(AinvOptions::factored(drop)));
            println!("drop {drop}: {plain:?} {factored:?}");
            assert!((0.5..1.5).contains(&(factored.0 / plain.0)), "entries at {drop}: {plain:?} {factored:?}");
            assert!(factored.1 < 1.3 * plain.1, "iterations at {drop}: {plain:?} {factored:?}");
        }
    }

    #[test]
    fn conjugate_gradients_take_fewer_iterations() {
        let a = gallery::poisson_2d::<f64>(40, 0.0).unwrap();
        let iterations = |drop: f64| {
            let stopping = Stopping { rtol: 1e-8, ..Stopping::for_precision::<f64>() };
            let mut setup = Setup::new(Method::Cg, stopping);
            if drop < 1.0 {
                setup = setup.with_preconditioner(Ainv::new(&device(), &a, AinvOptions::sainv(drop)).unwrap());
            }
            let matrix = Matrix::new(&device(), &a, Format::Auto).unwrap();
            let b = Vector::filled(&device(), 1600, 1.0).unwrap();
            let mut x = Vector::zeros(&device(), 1600).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.converged(), "{report}");
            report.iterations
        };
        let [none, coarse, fine] = [1.0, 0.1, 0.01].map(iterations);
        assert!(coarse < none && 2 * fine < coarse, "{none} {coarse} {fine}");
    }

    #[test]
    fn matrices_that_have_none_are_refused_with_the_row() {
        let entries = |d: f64, off: f64| vec![(0, 0, 1.0), (0, 1, off), (1, 0, off), (1, 1, d)];
        let make = |entries: &[(usize, usize, f64)], options| {
            factor(&device(), &Csr::<f64>::from_triplets(2, 2, entries).unwrap(), options).err()
        };
        for options in [AinvOptions::sainv(0.0), AinvOptions::ainv(0.0), AinvOptions::factored(0.0)] {
            let row = |entries: &[(usize, usize, f64)]| match make(entries, options) {
                Some(Error::Structure { row, .. }) => row,
                other => panic!("{other:?}"),
            };
            assert_eq!(row(&entries(1.0, 2.0)), Some(1), "indefinite");
            assert_eq!(row(&entries(-1.0, 0.5)), Some(1), "a negative diagonal");
            assert_eq!(row(&entries(0.0, 0.5)), Some(1), "a zero");
            assert_eq!(row(&[(0, 0, 1.0), (1, 0, 0.5), (1, 1, 1.0)]), Some(0), "not symmetric");
            assert!(matches!(make(&entries(f64::NAN, 0.5), options), Some(Error::NotFinite { .. })));
        }
        assert!(matches!(make(&entries(2.0, 1.0), AinvOptions::sainv(-0.5)), Some(Error::Option { .. })));
        let nowhere = AinvOptions::sainv(0.1).with_places(Some(0));
        assert!(matches!(make(&entries(2.0, 1.0), nowhere), Some(Error::Option { name: "places", .. })));
        assert!(make(&entries(2.0, 1.0), AinvOptions::sainv(0.5)).is_none());
    }
}
