//! Kernels of solvers: scripts by launches of their own and in one launch, CG and CGNR fused.

use super::question::{Question, alike, residencies, solution};
use crate::device::Device;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::Real;
use crate::operator::{Diagonal, SharedOperator};
use crate::precond::{AinvOptions, Preconditioner};
use crate::solver::{Method, Regularization, Setup, Stopping};
use crate::sparse::{Csr, Format, gallery};
use crate::vector::Vector;

pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![
        Question::of("fused CG", fused_cg::<T>),
        Question::of("scripts", scripts::<T>),
        Question::of("scripts of least squares", least_squares::<T>),
        Question::of("fused CGNR", fused_cgnr::<T>),
        Question::of("CGNR of a flat matrix", flat_cgnr::<T>),
        Question::of("CGNR with a preconditioner", corrected_cgnr::<T>),
        Question::of("solves with bounds", bounded::<T>),
    ]
}

fn stopping(iterations: usize) -> Stopping {
    Stopping::after(iterations).with_check_every(2)
}

/// Tells if a fused kernel in one launch serves this format: one of each way to share a row is enough.
fn in_one_launch(format: Format) -> bool {
    matches!(format, Format::CsrScalar | Format::CsrAdaptive)
}

fn fused_cg<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = gallery::poisson_2d::<T>(7, 0.1)?;
    let residencies = residencies(device);
    let mut found = Vec::new();
    for format in Format::ALL.iter().copied() {
        let devices = if in_one_launch(format) { &residencies } else { &residencies[..1] };
        let ask = |device: &Device| {
            let a = Matrix::new(device, &a, format)?;
            solution(device, &a, Setup::new(Method::Cg, stopping(2)), 5)
        };
        found.extend(alike(devices, ask)?);
    }
    Ok(found)
}

/// Products of both ways with everything they are blended with, passes with statements of every kind.
fn scripts<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let poisson = gallery::poisson_2d::<T>(7, 0.1)?;
    let square = Matrix::new(device, &poisson, Format::Csr)?;
    let diagonal: SharedOperator<T> = Diagonal::new(Vector::filled(device, 49, T::from_f64(0.2))?)?.into();
    let factors: SharedOperator<T> =
        Preconditioner::Ainv(AinvOptions::sainv(0.1)).build(device, &poisson)?.operator;
    let residencies = residencies(device);
    let mut found = Vec::new();
    // One launch for all iterations does the same for many methods: some are enough.
    for (method, preconditioner, columns, in_one_launch) in [
        (Method::Cg, Some(&diagonal), 1, true),
        (Method::Cg, Some(&diagonal), 2, true),
        (Method::Cg, Some(&factors), 1, true),
        (Method::Cg, None, 3, true),
        (Method::Minres, None, 1, false),
        (Method::BiCgStab, Some(&factors), 1, true),
        (Method::Gmres { restart: 2 }, Some(&diagonal), 1, false),
        (Method::Gmres { restart: 3 }, None, 2, false),
        (Method::Stationary { omega: 0.2 }, None, 1, false),
    ] {
        let devices = if in_one_launch { &residencies } else { &residencies[..1] };
        let ask = |device: &Device| {
            let mut setup = Setup::new(method, stopping(2)).with_columns(columns);
            setup.preconditioner = preconditioner.cloned();
            solution(device, &square.on(device)?, setup, 5)
        };
        found.extend(alike(devices, ask)?);
    }
    Ok(found)
}

fn least_squares<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = Matrix::with_transpose(device, &wide::<T>()?, Format::EllpackR)?;
    let residencies = residencies(device);
    let mut found = Vec::new();
    for (method, devices) in
        [(Method::Cgls { damp: 0.5 }, &residencies[..1]), (Method::Lsmr { damp: 0.5 }, &residencies[..])]
    {
        let ask = |device: &Device| solution(device, &a.on(device)?, Setup::new(method, stopping(2)), 5);
        found.extend(alike(devices, ask)?);
    }
    Ok(found)
}

fn wide<T: Real>() -> Result<Csr<T>> {
    gallery::random::<T>(40, 30, 40 * 10, 3)
}

/// A regularization with everything in it, for an image 6 pixels wide.
fn everything() -> Regularization {
    Regularization::none()
        .with_tikhonov(0.1)
        .with_smooth(0.1)
        .with_variation(0.2)
        .with_epsilon(0.1)
        .with_lower(-0.1)
        .with_upper(0.2)
        .with_bound_weight(1.0)
        .with_width(6)
}

fn fused_cgnr<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let residencies = residencies(device);
    let mut found = Vec::new();
    for (format, devices) in [(Format::Csr, &residencies[..]), (Format::EllpackR, &residencies[..1])] {
        for regularizations in [vec![Regularization::none()], vec![everything(); 2], vec![everything(); 4]] {
            let ask = |device: &Device| {
                let a = Matrix::with_transpose(device, &wide::<T>()?, format)?;
                let setup = Setup::new(Method::Cgnr, stopping(2)).with_columns(regularizations.len());
                solution(device, &a, setup.with_regularizations(&regularizations), 10)
            };
            found.extend(alike(devices, ask)?);
        }
    }
    Ok(found)
}

/// More columns than entries: of the two vectors that are gathered, one launch forms the residual in local memory.
fn flat_cgnr<T: Real>(device: &Device) -> Result<Vec<f64>> {
    alike(&residencies(device), |device| {
        let a = Matrix::with_transpose(device, &gallery::random::<T>(40, 300, 200, 4)?, Format::CsrScalar)?;
        solution(device, &a, Setup::new(Method::Cgnr, stopping(3)), 9)
    })
}

/// Corrections beside a preconditioner: their term is a launch of its own.
fn corrected_cgnr<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = Matrix::with_transpose(device, &gallery::random::<T>(20, 30, 90, 4)?, Format::Csr)?;
    let by_norms = Diagonal::new(Vector::filled(device, 30, T::from_f64(0.4))?)?;
    let setup = Setup::new(Method::Cgnr, stopping(2)).with_regularizations(&[everything()]);
    solution(device, &a, setup.with_preconditioner(by_norms), 8)
}

/// Steps of PDHG, which has most launches of methods that keep bounds, with boundaries, corners and two columns. NNFCGLS beside it keeps
/// directions of both spaces, drops them and begins again.
fn bounded<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let exact = Regularization::none()
        .with_tikhonov(0.01)
        .with_variation(0.2)
        .with_directional(0.1)
        .with_direction([0.6, -0.8])
        .with_lower(-0.2)
        .with_upper(0.4)
        .with_width(6);
    let residencies = residencies(device);
    let few = &residencies[..residencies.len().min(2)];
    let matrix = |device: &Device| Matrix::with_transpose(device, &wide::<T>()?, Format::Csr);
    let mut found = alike(few, |device| {
        let setup = Setup::new(Method::Pdhg, stopping(2)).with_columns(2);
        solution(device, &matrix(device)?, setup.with_regularizations(&vec![exact.clone(); 2]), 10)
    })?;
    let setup = Setup::new(Method::Nnfcgls { restart: 3 }, stopping(4)).with_columns(2);
    found.extend(solution(&residencies[0], &matrix(&residencies[0])?, setup, 10)?);
    Ok(found)
}
