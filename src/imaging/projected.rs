//! Answers that were projected onto bounds: their residual, computed afresh.

use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::operator::LinearOperator;
use crate::solver::{Report, Stop, Stopping};
use crate::threads;
use crate::vector::Vector;

/// Readings that a thread subtracts at once.
const PART: usize = 1 << 14;

/// Vectors for the residual of an answer.
pub(super) struct Check<T: Real> {
    x: Vector<T>,
    ax: Vector<T>,
    /// On the host, which sums up as the device does.
    r: Vector<T>,
}

impl<T: Real> Check<T> {
    pub(super) fn new(device: &Device, [rows, cols]: [usize; 2]) -> Result<Self> {
        let host = Device::host().with_accumulation(device.accumulation(T::PRECISION))?;
        let [x, ax] = [Vector::zeros(device, cols)?, Vector::zeros(device, rows)?];
        Ok(Self { x, ax, r: Vector::zeros(&host, rows)? })
    }

    /// Computes the residual of an answer that was projected, and takes back what was said of the one before.
    pub(super) fn projected(
        &mut self,
        a: &dyn LinearOperator<T>,
        image: &[T],
        readings: &[T],
        stopping: &Stopping,
        report: &mut Report,
    ) -> Result<()> {
        self.x.write(image)?;
        a.apply(&self.x, &mut self.ax)?;
        // Subtracted here: a program for it would be one more to build before the first picture.
        let product = self.ax.to_vec()?;
        self.r.write(&threads::numbers((readings, &product[..]), PART, |_, (b, y)| *b - *y))?;
        report.true_residual = self.r.norm2()?;
        let limit = (stopping.rtol * report.rhs_norm).max(stopping.atol);
        if report.stop == Stop::Converged && report.true_residual > limit {
            report.stop = Stop::Projected;
        }
        Ok(())
    }
}
