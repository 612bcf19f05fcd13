//! Self-test of a device: its answers are compared with the host's bit by bit. Speed of copies, launches and reads.
//!
//! The host back end needs no driver and no kernels. Every result is defined to the last bit (docs/numerics.md). If
//! one bit differs, the device, its driver or a changed kernel is at fault.

use crate::backend::kernels_checksum;
use crate::device::Device;
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::matrix::{Matrix, Storage, Transposed};
use crate::measure;
use crate::number::{Precision, Real};
use crate::solver::{Method, Regularization, Setup, Solver, Stopping};
use crate::sparse::gallery::{self, Random};
use crate::sparse::{Csr, Format};
use crate::tuning::largest_power_of_two;
use crate::vector::Vector;

/// One thing that was asked of a device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// In which numbers.
    pub precision: Precision,
    /// Items of a work-group.
    pub work_group: usize,
    /// Fault of the answer, if any.
    pub fault: Option<String>,
    /// Meaning of a fault.
    pub means: &'static str,
}

/// Speed of a device: copies and answers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Speed {
    /// GB/s of a copy between two large vectors, read and written.
    pub copy: f64,
    /// Microseconds of a small launch, queued behind others.
    pub launch: f64,
    /// Microseconds until one number is back from the device.
    pub read: f64,
}

/// A question: its name, what a fault means, and how it is asked. Answers are `f64`, which hold numbers and sums of either precision
/// exactly.
struct Question {
    name: &'static str,
    means: &'static str,
    /// True if the size of a work-group is likely to matter: then it is asked for several.
    sizes: bool,
    ask: fn(&Device) -> Result<Vec<f64>>,
}

/// Asks `device` everything, in each precision it has, where work-items wait for each other at several work-group sizes;
/// `seen` gets each check when it is done. The host's answers are the right ones.
///
/// Cost: mostly building some sixty variants of kernels; memory as the largest single allocation, at most an eighth of
/// all, and 4 GiB on a GPU, 256 MiB elsewhere.
pub fn examine(device: &Device, seen: &mut dyn FnMut(&Check)) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut keep = |check: Check| {
        seen(&check);
        checks.push(check);
    };
    examine_in::<f32>(device, &mut keep);
    if device.info().fp64 {
        examine_in::<f64>(device, &mut keep);
    }
    checks
}

/// Number of checks that [`examine`] makes of `device`.
pub fn checks(device: &Device) -> usize {
    let sizes = work_groups(device).len();
    let of = |questions: &[Question]| -> usize { questions.iter().map(|q| if q.sizes { sizes } else { 1 }).sum() };
    let single = 1 + of(&questions::<f32>(device));
    if device.info().fp64 { single + 1 + of(&questions::<f64>(device)) } else { single }
}

/// Keeps what was found: a device with faults is ranked last from now on and used only when it is named, until it is found to
/// be well. It holds for this driver and the kernels of this version.
pub fn remember(device: &Device, checks: &[Check]) {
    let faults: Vec<&Check> = checks.iter().filter(|check| check.fault.is_some()).collect();
    let words = faults.first().map(|first| {
        let Check { name, precision, work_group, .. } = first;
        format!(
            "{} of {} checks failed, {name} in {precision} by {work_group} items first",
            faults.len(),
            checks.len()
        )
    });
    if let Ok(kernels) = kernels_checksum() {
        crate::verdict::remember(device.info(), &kernels, words.as_deref());
    }
}

fn examine_in<T: Real>(device: &Device, keep: &mut dyn FnMut(Check)) {
    let host = Device::host().with_accumulation(device.accumulation(T::PRECISION));
    for Question { name, means, sizes, ask } in questions::<T>(device) {
        let wanted =
            host.as_ref().map_err(ToString::to_string).and_then(|host| ask(host).map_err(|e| e.to_string()));
        let several = if sizes { work_groups(device) } else { vec![device.clone()] };
        for device in &several {
            let found = ask(device).map_err(|e| e.to_string());
            let fault = match (&found, &wanted) {
                (Ok(found), Ok(wanted)) => difference(found, wanted),
                (Err(error), _) | (_, Err(error)) => Some(error.clone()),
            };
            keep(Check { name, precision: T::PRECISION, work_group: device.tuning().work_group, fault, means });
        }
    }
    let fault = largest_allocation::<T>(device).unwrap_or_else(|error| Some(error.to_string()));
    keep(Check {
        name: "the largest allocation",
        precision: T::PRECISION,
        work_group: device.tuning().work_group,
        fault,
        means: "it promises more memory than it gives: use smaller problems than it says it can hold",
    });
}

/// The device with the work-group size it has, and with one as large as it goes.
fn work_groups(device: &Device) -> Vec<Device> {
    let own = device.tuning().work_group;
    let mut sizes = vec![own, largest_power_of_two(device.info().max_work_group.min(1024))];
    sizes.sort_unstable();
    sizes.dedup();
    sizes.iter().filter_map(|size| device.with_work_group(*size).ok()).collect()
}

/// Difference of two answers, if they differ.
fn difference(found: &[f64], wanted: &[f64]) -> Option<String> {
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

/// The elements of a vector of either precision.
fn numbers<T: Real>(vector: &Vector<T>) -> Result<Vec<f64>> {
    Ok(vector.to_vec()?.iter().map(|v| v.to_f64()).collect())
}

fn noise<T: Real>(n: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..n).map(|_| T::from_f64(random.normal())).collect()
}

const SOLVES: &str = "what solves are made of is wrong (see above), or launches do not follow each other in order, or groups of \
                      one launch do not see each other's results";

fn questions<T: Real>(device: &Device) -> Vec<Question> {
    let mut questions = vec![
        Question {
            name: "arithmetic",
            means: "it rounds or contracts where it must not: no result of it can be reproduced elsewhere",
            sizes: false,
            ask: arithmetic::<T>,
        },
        Question {
            name: "reductions and barriers",
            means: "items of a work-group do not wait for each other, or local memory is lost: no norm and no solver of it is to \
                    be trusted",
            sizes: true,
            ask: reductions::<T>,
        },
        Question {
            name: "products in every format",
            means: "gathers or the loops over a row are compiled wrongly: no product of it is to be trusted",
            sizes: false,
            ask: products::<T>,
        },
        Question {
            name: "additions by atomics",
            means: "atomic additions get lost: A'x needs a transposed copy there",
            sizes: false,
            ask: scattered::<T>,
        },
        Question { name: "conjugate gradients", means: SOLVES, sizes: true, ask: conjugate_gradients::<T> },
        Question { name: "regularised CGNR", means: SOLVES, sizes: true, ask: regularised::<T> },
    ];
    if T::PRECISION == Precision::Double && !device.info().int64_atomics {
        // 64-bit atomics are an extension of their own; without them the library refuses.
        questions.retain(|question| question.name != "additions by atomics");
    }
    questions
}

fn arithmetic<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let n = 5000;
    let (x, y) = (Vector::from_slice(device, &noise(n, 1))?, Vector::from_slice(device, &noise(n, 2))?);
    let mut sum = Vector::zeros(device, n)?;
    sum.copy_from(&y)?;
    sum.axpby(T::from_f64(0.3), &x, T::from_f64(-1.7))?;
    let mut product = Vector::filled(device, n, T::from_f64(7.0))?;
    product.product_of(&x, &y)?;
    product.clamp(T::from_f64(-0.5), T::from_f64(0.5))?;
    Ok([numbers(&sum)?, numbers(&product)?].concat())
}

fn reductions<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let mut answers = Vec::new();
    for n in [1, 31, 1025, 300_000] {
        let (x, y) = (Vector::<T>::from_slice(device, &noise(n, 3))?, Vector::from_slice(device, &noise(n, 4))?);
        answers.extend([x.sum()?, x.min()?, x.max()?, x.asum()?, x.dot(&y)?, x.norm2()?]);
    }
    Ok(answers)
}

fn products<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let mut answers = Vec::new();
    for (a, formats) in [
        (gallery::random::<T>(700, 500, 9000, 5)?, Format::ALL),
        (gallery::poisson_2d::<T>(23, 0.1)?, &[Format::Dia, Format::CsrScalar, Format::Sell { sigma: 0 }][..]),
    ] {
        let x = Vector::from_slice(device, &noise(a.cols(), 6))?;
        for format in formats {
            let matrix = Matrix::new(device, &a, *format)?;
            let mut y = Vector::filled(device, a.rows(), T::from_f64(f64::NAN))?;
            matrix.multiply(&x, &mut y)?;
            answers.extend(numbers(&y)?);
        }
    }
    Ok(answers)
}

/// Whole numbers, so that the order of additions does not matter.
fn scattered<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = gallery::random::<T>(3000, 90, 20_000, 7)?;
    let ones: Vec<(usize, usize, T)> = (0..a.rows())
        .flat_map(|i| a.row(i).0.iter().map(move |j| (i, *j as usize, T::from_f64(1.0 + f64::from(*j % 3)))))
        .collect();
    let a = Csr::from_triplets(a.rows(), a.cols(), &ones)?;
    let storage = Storage { format: Format::CsrScalar, transposed: Transposed::Scatter, ..Storage::default() };
    let matrix = Matrix::stored(device, &a, storage)?;
    let x: Vec<T> = (0..a.rows()).map(|i| T::from_f64((i % 5) as f64 - 2.0)).collect();
    let mut y = Vector::zeros(device, a.cols())?;
    matrix.multiply_transposed(&Vector::from_slice(device, &x)?, &mut y)?;
    numbers(&y)
}

fn conjugate_gradients<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = Matrix::new(device, &gallery::poisson_2d::<T>(48, 0.02)?, Format::Auto)?;
    let b = Vector::from_slice(device, &noise(a.rows(), 8))?;
    let mut x = Vector::zeros(device, a.cols())?;
    let report = Solver::new(&a, Method::Cg, Stopping::after(60))?.solve(&b, &mut x)?;
    let mut answers = numbers(&x)?;
    answers.extend(&report.history);
    Ok(answers)
}

fn regularised<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = Matrix::with_transpose(device, &gallery::random::<T>(900, 400, 6000, 9)?, Format::Auto)?;
    let b = Vector::from_slice(device, &noise(a.rows(), 10))?;
    let mut x = Vector::zeros(device, a.cols())?;
    let regularization = Regularization {
        tikhonov: 0.01,
        variation: 0.05,
        epsilon: 0.01,
        upper: 0.0,
        bound_weight: 0.5,
        width: 20,
        ..Regularization::none()
    };
    let setup = Setup::new(Method::Cgnr, Stopping::after(40)).with_regularizations(&[regularization]);
    let report = Solver::with(&a, setup)?.solve(&b, &mut x)?;
    let mut answers = numbers(&x)?;
    answers.extend(report.gradient_history);
    Ok(answers)
}

/// Fills one allocation, as large as it may be, and looks at what arrived.
fn largest_allocation<T: Real>(device: &Device) -> Result<Option<String>> {
    let info = device.info();
    // A CPU's memory is everyone's.
    let most = if info.kind == DeviceKind::Gpu { 4u64 << 30 } else { 1 << 28 };
    let bytes = match (info.largest_allocation, info.memory) {
        (0, _) | (_, 0) => 1 << 24,
        (largest, memory) => largest.min(memory / 8).min(most),
    };
    let n = bytes as usize / T::PRECISION.bytes();
    let ones = Vector::filled(device, n, T::from_f64(1.0))?;
    let (least, greatest) = (ones.min()?, ones.max()?);
    Ok((least != 1.0 || greatest != 1.0)
        .then(|| format!("{n} ones were written, and numbers from {least} to {greatest} are there")))
}

/// Measures a device.
///
/// # Errors
/// [`Error::Memory`](crate::Error::Memory) when two vectors of some size do not fit; what the device reports.
pub fn measure(device: &Device) -> Result<Speed> {
    let mut small = Vector::<f32>::zeros(device, 1)?;
    let launch = measure::time(device, || small.fill(1.0))?.microseconds;
    let read = measure::time(device, || small.to_vec().map(|_| ()))?.microseconds;
    Ok(Speed { copy: measure::copy_bandwidth(device)?, launch, read })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_well() {
        let mut seen = 0;
        let checks = examine(&Device::host(), &mut |_| seen += 1);
        assert_eq!(checks.len(), seen);
        assert_eq!(checks.len(), 20);
        assert_eq!(super::checks(&Device::host()), 20);
        for check in &checks {
            assert_eq!(check.fault, None, "{}", check.name);
        }
        for precision in [Precision::Single, Precision::Double] {
            assert!(checks.iter().any(|check| check.precision == precision && check.work_group == 1));
        }
    }

    #[test]
    fn one_wrong_bit_is_a_difference() {
        let right = [1.0, -0.0, f64::NAN];
        assert_eq!(difference(&right, &right), None);
        assert!(difference(&[1.0, 0.0, f64::NAN], &right).is_some_and(|d| d.contains("number 1 is 0e0, not -0e0")));
        let off = difference(&[1.0 + f64::EPSILON, -0.0, 1.0], &right);
        assert!(off.is_some_and(|d| d.starts_with("2 of 3 numbers are wrong; number 0")));
        assert!(difference(&right[..2], &right).is_some_and(|d| d.contains("2 numbers where 3 belong")));
    }

    #[test]
    fn speeds_are_numbers() {
        let speed = measure(&Device::host()).expect("the host copies");
        assert!(speed.copy > 0.01 && speed.launch > 0.0 && speed.read > 0.0, "{speed:?}");
    }
}
