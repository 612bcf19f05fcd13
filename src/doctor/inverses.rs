//! Kernels of preconditioners: those that make them on a device, and those that apply them.

use super::question::{Question, alike, product, sweepers};
use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::precond::{Ainv, AinvOptions, Bainv, BainvOptions, Preconditioner, RowOrdering, SweepOptions};
use crate::sparse::{Csr, Partition, gallery};

pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![
        Question::of("approximate inverses made on a device", made::<T>),
        Question::of("sweeps in one launch", sweeps::<T>),
        Question::of("preconditioners", applied::<T>),
    ]
}

/// Columns many at once, and those of a chain in order after some rounds; the host makes them one after another.
fn made<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let chain = Csr::<T>::from_rows(68, 68, |i, row| {
        let near = i.saturating_sub(1)..(i + 2).min(68);
        row.extend(near.map(|j| (j as u32, T::from_f64(if i == j { 2.5 } else { -1.0 }))));
    })?;
    let grid = |side: usize| gallery::poisson_2d::<T>(side, 0.1);
    let mut found = Vec::new();
    for (a, mut options) in
        [(grid(5)?, AinvOptions::sainv(0.02)), (grid(3)?, AinvOptions::ainv(0.1)), (chain, AinvOptions::sainv(0.1))]
    {
        options.on_device = Some(true);
        found.extend(product(device, &Ainv::new(device, &a, options)?, 5)?);
    }
    let options = BainvOptions { on_device: Some(true), ..BainvOptions::default() };
    let strips = Bainv::new(device, &grid(7)?, &Partition::natural(49, 3)?, options)?;
    found.extend(product(device, &strips, 5)?);
    Ok(found)
}

fn by_rows() -> Preconditioner {
    Preconditioner::Sweep(SweepOptions::ssor(1.2).with_ordering(RowOrdering::Rows))
}

/// Twice, because groups draw tickets, which the last one lays back.
fn sweeps<T: Real>(device: &Device) -> Result<Vec<f64>> {
    alike(&sweepers(device), |device| {
        let sweep = by_rows().build(device, &gallery::poisson_2d::<T>(7, 0.1)?)?.operator;
        Ok([product(device, &sweep, 5)?, product(device, &sweep, 5)?].concat())
    })
}

fn applied<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = gallery::poisson_2d::<T>(7, 0.1)?;
    let mut found = Vec::new();
    for which in Preconditioner::ALL.iter().chain([&by_rows()]) {
        found.extend(product(device, &which.build(device, &a)?.operator, 5)?);
    }
    Ok(found)
}
