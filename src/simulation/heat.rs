//! Heat flow on a picture.

use super::bump::{Bump, Nodes};
use super::{cells, positive};
use crate::device::Device;
use crate::error::{Result, same_length};
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{Boundary, Stencil};
use crate::setters::setters;
use crate::solver::{Method, Report, Solver, Stopping};
use crate::sparse::Format;
use crate::vector::Vector;

/// Set-up of [`Heat`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeatSetup {
    /// Width and height in grid points.
    pub size: [usize; 2],
    /// `s = conductivity * dt / dx²`, without a unit. Any positive number is stable.
    pub step: f64,
    /// [`Boundary::Zero`]: cold beyond the boundary, heat is lost; [`Boundary::Reflecting`]: insulated; [`Boundary::Periodic`].
    pub boundary: Boundary,
    /// [`Format::OnTheFly`]: nothing is stored; any other: the matrix in that format.
    pub format: Format,
    /// When a step is solved.
    pub stopping: Stopping,
}

impl HeatSetup {
    setters! {
        with_size: size([usize; 2]),
        with_step: step(f64),
        with_boundary: boundary(Boundary),
        with_format: format(Format),
        with_stopping: stopping(Stopping),
    }

    /// Steps of `step` on a grid of `[width, height]` that loses heat at its boundary, not stored, each solved as
    /// [`Stopping::for_precision`] says.
    pub fn new<T: Real>(size: [usize; 2], step: f64) -> Self {
        Self {
            size,
            step,
            boundary: Boundary::Zero,
            format: Format::OnTheFly,
            stopping: Stopping::for_precision::<T>(),
        }
    }
}

/// Heat flow `du/dt = u_xx + u_yy` by backward Euler's steps: `A u' = u` with
///
/// ```text
///   (A u)(x, y) = (1 + 4 s) u(x, y) - s (u(x - 1, y) + u(x + 1, y) + u(x, y - 1) + u(x, y + 1))
/// ```
///
/// solved by conjugate gradients from the picture before. A step backwards in time is one product, `u = A u'`: noise grows by up to
/// `1 + 8 s` in each.
///
/// # Cost
/// Held: three vectors beside those of the method, and the matrix if it is stored. A step copies a vector and solves.
///
/// # Source
/// michels-2011, section 7 (with `s = -tau`).
#[derive(Debug)]
pub struct Heat<T: Real> {
    size: [usize; 2],
    matrix: Matrix<T>,
    solver: Solver<T>,
    temperature: Vector<T>,
    before: Vector<T>,
}

per_number! {
    fn set_up<T>(device: &Device, setup: &HeatSetup, picture: &[T]) -> Result<Heat<T>> = Heat::new_here;
}

impl<T: Real> Heat<T> {
    /// Heat that flows from the temperatures `picture`, row by row.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for a step or size that cannot be, [`Error::Shape`](crate::Error::Shape) for a picture of another size; those of [`Matrix::new`] and
    /// [`Solver::new`].
    pub fn new(device: &Device, setup: &HeatSetup, picture: &[T]) -> Result<Self> {
        set_up(device, setup, picture)
    }

    fn new_here(device: &Device, setup: &HeatSetup, picture: &[T]) -> Result<Self> {
        let HeatSetup { size, step, boundary, format, .. } = *setup;
        let n = cells(size, 1)?;
        positive("step", step)?;
        same_length("temperatures", n, picture.len())?;
        let around = [[0, -1, 0], [-1, 0, 0], [1, 0, 0], [0, 1, 0]].map(|offset| (offset, -step));
        let points = [&[([0; 3], 1.0 + 4.0 * step)][..], &around].concat();
        let stencil =
            Stencil::new([size[0], size[1], 1], &points)?.with_boundaries([boundary, boundary, Boundary::Zero]);
        let matrix = match format {
            Format::OnTheFly => stencil.operator(device)?,
            format => Matrix::new(device, &stencil.to_csr()?, format)?,
        };
        Ok(Self {
            size,
            solver: Solver::new(&matrix, Method::Cg, super::last(&setup.stopping))?,
            matrix,
            temperature: Vector::from_slice(device, picture)?,
            before: Vector::zeros(device, n)?,
        })
    }

    /// A step forwards in time.
    ///
    /// # Errors
    /// Those of [`Solver::solve`]. A step that is not solved to the tolerance is no error: see [`Report::stop`].
    pub fn step(&mut self) -> Result<Report> {
        let Self { solver, temperature, before, .. } = self;
        before.copy_from(temperature)?;
        solver.solve(before, temperature)
    }

    /// A step backwards in time: the picture of which a step makes this one.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api).
    pub fn step_back(&mut self) -> Result<()> {
        let Self { matrix, temperature, before, .. } = self;
        matrix.multiply(temperature, before)?;
        std::mem::swap(temperature, before);
        Ok(())
    }

    /// Adds `amount (1 - d² / radius²)²` to the temperature where the distance `d` from `(x, y)` is less than `radius`. Units are grid
    /// distances; point `(i, j)` lies at `(i + 1/2, j + 1/2)`.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for a radius that is not positive or a number that is not finite.
    pub fn warm(&mut self, place: [f64; 2], radius: f64, amount: f64) -> Result<()> {
        let bump = Bump::new::<T>(place, radius, amount)?;
        bump.add_to(&mut self.temperature, Nodes::Middles, self.size, None)
    }

    /// The temperatures.
    pub fn temperature(&self) -> &Vector<T> {
        &self.temperature
    }

    /// The temperatures, to be changed.
    pub fn temperature_mut(&mut self) -> &mut Vector<T> {
        &mut self.temperature
    }

    /// The matrix of a step.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }
}
