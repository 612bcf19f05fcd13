//! Questions: computations whose answers are known to the last bit.

use std::fmt;

use crate::columns::Columns;
use crate::device::Device;
use crate::error::Result;
use crate::matrix::{Matrix, Storage, Transposed};
use crate::number::{Precision, Real};
use crate::operator::{LinearOperator, SharedOperator};
use crate::solver::{Setup, Solver};
use crate::sparse::gallery::{self, Random};
use crate::sparse::{Csr, Format};
use crate::vector::Vector;

/// A computation whose answer must not differ between devices.
#[derive(Clone, Copy)]
pub struct Question {
    /// Name of the question.
    pub(super) name: &'static str,
    /// Meaning of a wrong answer.
    pub(super) means: &'static str,
    /// True if the size of a work-group is likely to matter: then it is asked for several.
    pub(super) sizes: bool,
    pub(super) needs: Needs,
    /// Numbers of the answer. `f64` holds numbers and sums of either precision exactly.
    pub(super) ask: fn(&Device) -> Result<Vec<f64>>,
}

/// Ability of a device without which a question is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// Numbers of 32 bits below the normal ones.
    Denormals,
    /// Atomic operations on words as long as a number.
    Atomics,
}

impl Question {
    /// A question of the battery about kernels that go by this name.
    pub(super) fn of(name: &'static str, ask: fn(&Device) -> Result<Vec<f64>>) -> Self {
        let means = "these kernels compute wrongly there, whatever else is right";
        Self { name, means, sizes: true, needs: Needs::Nothing, ask }
    }

    pub(super) fn with_needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// Name of the question, in a few words.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if `device` has the abilities that an answer in this precision needs.
    pub fn suits(&self, device: &Device, precision: Precision) -> bool {
        let info = device.info();
        match self.needs {
            Needs::Nothing => true,
            Needs::Denormals => info.denormals || precision == Precision::Double,
            Needs::Atomics => info.int64_atomics || precision == Precision::Single,
        }
    }

    /// The answer of `device`: solutions, histories, sums, one behind the other.
    ///
    /// # Errors
    /// Whatever the computation meets.
    pub fn ask(&self, device: &Device) -> Result<Vec<f64>> {
        (self.ask)(device)
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Elements of a vector of either precision.
pub(super) fn numbers<T: Real>(vector: &Vector<T>) -> Result<Vec<f64>> {
    Ok(vector.to_vec()?.iter().map(|v| v.to_f64()).collect())
}

/// `n` normally distributed numbers.
pub(super) fn noise<T: Real>(n: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..n).map(|_| T::from_f64(random.normal())).collect()
}

/// [`noise`] on a device.
pub(super) fn noisy<T: Real>(device: &Device, n: usize, seed: u64) -> Result<Vector<T>> {
    Vector::from_slice(device, &noise(n, seed))
}

/// A vector that shows which elements were not written.
pub(super) fn unwritten<T: Real>(device: &Device, n: usize) -> Result<Vector<T>> {
    Vector::filled(device, n, T::from_f64(f64::NAN))
}

/// The product of an operator and noise.
pub(super) fn product<T: Real>(device: &Device, a: &impl LinearOperator<T>, seed: u64) -> Result<Vec<f64>> {
    let mut y = unwritten(device, a.rows())?;
    a.apply(&noisy(device, a.cols(), seed)?, &mut y)?;
    numbers(&y)
}

/// `A'x` whose additions have no order, of a matrix with these rows, columns and entries. Its numbers are whole, so that any order gives
/// the same sums.
pub(super) fn scattered_sums<T: Real>(device: &Device, [rows, cols, entries]: [usize; 3]) -> Result<Vec<f64>> {
    let places = gallery::random::<T>(rows, cols, entries, 7)?;
    let whole = Csr::from_rows(rows, cols, |i, row| {
        row.extend(places.row(i).0.iter().map(|j| (*j, T::from_f64(1.0 + f64::from(*j % 3)))));
    })?;
    let storage = Storage::default().with_format(Format::CsrScalar).with_transposed(Transposed::Scatter);
    let matrix = Matrix::stored(device, &whole, storage)?;
    let x: Vec<T> = (0..rows).map(|i| T::from_f64((i % 5) as f64 - 2.0)).collect();
    let mut y = Vector::zeros(device, cols)?;
    matrix.multiply_transposed(&Vector::from_slice(device, &x)?, &mut y)?;
    numbers(&y)
}

/// Solutions for right-hand sides of noise, from 0, with the norms of the first column's iterations.
pub(super) fn solution<T: Real>(
    device: &Device,
    a: impl Into<SharedOperator<T>>,
    setup: Setup<T>,
    seed: u64,
) -> Result<Vec<f64>> {
    let (a, columns) = (a.into(), setup.columns);
    let sides: Vec<Vec<T>> = (0..columns).map(|c| noise(a.rows(), seed + c as u64)).collect();
    let sides: Vec<&[T]> = sides.iter().map(Vec::as_slice).collect();
    let (b, mut x) = (Columns::new(device, &sides)?, Columns::zeros(device, a.cols(), columns)?);
    let reports = Solver::with(a, setup)?.solve_many(&b, &mut x)?;
    let mut found = numbers(&x.into_vector())?;
    found.extend(reports[0].history.iter().chain(&reports[0].gradient_history));
    Ok(found)
}

/// Handles of `device` that do a few iterations by launches of their own, in one launch of one group, and in one of as many groups as
/// the handle allows.
///
/// A simulator gets one group at most: it does not know that groups met, and takes what they read of each other for races.
pub(super) fn residencies(device: &Device) -> Vec<Device> {
    let own = device.tuning().resident_groups;
    let most = if is_simulator(device) { own.min(1) } else { own };
    let mut numbers = vec![0, most.min(1), most];
    numbers.dedup();
    numbers.into_iter().map(|groups| device.with_resident_groups(groups)).collect()
}

fn is_simulator(device: &Device) -> bool {
    device.info().platform.contains("Oclgrind")
}

/// Handles of `device` whose sweeps are launches level by level, and one launch if the handle allows several groups.
///
/// Groups of such a launch draw tickets and need not run at once, so that a simulator can have two.
pub(super) fn sweepers(device: &Device) -> [Device; 2] {
    let groups = if is_simulator(device) { 2 } else { device.tuning().resident_groups };
    [0, groups].map(|groups| device.with_resident_groups(groups))
}

/// Asks each of `devices` and returns the first answer. An answer that differs from it comes behind it, which makes both wrong.
pub(super) fn alike(devices: &[Device], ask: impl Fn(&Device) -> Result<Vec<f64>>) -> Result<Vec<f64>> {
    let mut first: Option<Vec<f64>> = None;
    for device in devices {
        let found = ask(device)?;
        match &first {
            Some(first) if difference(&found, first).is_some() => return Ok([&first[..], &found].concat()),
            Some(_) => {}
            None => first = Some(found),
        }
    }
    Ok(first.unwrap_or_default())
}

/// Difference of two answers, if they differ.
pub(super) fn difference(found: &[f64], wanted: &[f64]) -> Option<String> {
    if found.len() != wanted.len() {
        return Some(format!("{} numbers where {} belong", found.len(), wanted.len()));
    }
    let differs = |at: &usize| found[*at].to_bits() != wanted[*at].to_bits();
    let wrong: Vec<usize> = (0..found.len()).filter(differs).collect();
    let first = *wrong.first()?;
    Some(format!(
        "{} of {} numbers are wrong; number {first} is {:e}, not {:e}",
        wrong.len(),
        found.len(),
        found[first],
        wanted[first]
    ))
}
