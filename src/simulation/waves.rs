//! Waves on water.

use super::bump::{Bump, Nodes};
use super::obstacles::Obstacles;
use super::{cells, positive};
use crate::backend::pde::flow::FLUID;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::matrix::Matrix;
use crate::memory::Memory;
use crate::number::{Real, per_number};
use crate::operator::{Boundary, Stencil};
use crate::setters::setters;
use crate::solver::{Method, Report, Solver, Stopping};
use crate::sparse::Format;
use crate::vector::Vector;

/// Surfaces whose mean the curvature of a step is taken of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeAverage {
    /// The new one and the one before the present: waves keep their energy (Crank and Nicolson).
    #[default]
    NewAndPrevious,
    /// The new and the present one, as the paper has it: a wave of eigenvalue `lambda` loses the factor
    /// `1 / sqrt(1 + gamma lambda / 2)` a step.
    NewAndPresent,
}

/// Set-up of [`Waves`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaveSetup {
    /// Width and height in grid points.
    pub size: [usize; 2],
    /// `gamma = c² dt² / dx²`, without a unit. Any positive number is stable.
    pub gamma: f64,
    /// [`Boundary::Zero`]: the boundary is fixed; [`Boundary::Reflecting`]: it is free; [`Boundary::Periodic`].
    pub boundary: Boundary,
    /// Discretisation of time.
    pub average: TimeAverage,
    /// Solid cells that reflect waves.
    pub obstacles: Option<Obstacles>,
    /// [`Format::OnTheFly`]: nothing is stored, if there are no obstacles; any other: the matrix in that format.
    pub format: Format,
    /// When a step is solved.
    pub stopping: Stopping,
}

impl WaveSetup {
    setters! {
        with_size: size([usize; 2]),
        with_gamma: gamma(f64),
        with_boundary: boundary(Boundary),
        with_average: average(TimeAverage),
        with_obstacles: obstacles(impl Obstacles),
        with_format: format(Format),
        with_stopping: stopping(Stopping),
    }

    /// Waves on a grid of `[width, height]` with a free boundary and without obstacles, that keep their energy, not stored, each step
    /// solved as [`Stopping::for_precision`] says.
    pub fn new<T: Real>(size: [usize; 2], gamma: f64) -> Self {
        Self {
            size,
            gamma,
            boundary: Boundary::Reflecting,
            average: TimeAverage::default(),
            obstacles: None,
            format: Format::OnTheFly,
            stopping: Stopping::for_precision::<T>(),
        }
    }
}

/// Waves `u_tt = c² (u_xx + u_yy)` by implicit steps. With the 5-point Laplacian `L` (4 in the middle, -1 for each neighbour) and
/// `A = I + (gamma / 2) L` a step solves, by conjugate gradients,
///
/// ```text
///   A w = 2 u,           u_new = w - u_before     [`TimeAverage::NewAndPrevious`]
///   A w = 3 u - u_before,  u_new = w - u          [`TimeAverage::NewAndPresent`], equation of the paper in w = u_new + u
/// ```
///
/// from the start `w` = right-hand side, which is the surface that goes on without a force.
///
/// # Cost
/// Held: four vectors beside those of the method, and the matrix if it is stored. A step takes three launches (four with
/// [`TimeAverage::NewAndPresent`]) and a solve.
///
/// # Source
/// krueger-westermann-2003, section 6 (waves); J. Crank, P. Nicolson, Proc. Camb. Phil. Soc. 43, 1947.
#[derive(Debug)]
pub struct Waves<T: Real> {
    size: [usize; 2],
    average: TimeAverage,
    matrix: Matrix<T>,
    solver: Solver<T>,
    mask: Option<Memory<u32>>,
    /// The surface, and the one a step before.
    surface: Vector<T>,
    before: Vector<T>,
    b: Vector<T>,
    w: Vector<T>,
}

per_number! {
    fn set_up<T>(device: &Device, setup: &WaveSetup, surface: &[T]) -> Result<Waves<T>> = Waves::new_here;
}

impl<T: Real> Waves<T> {
    /// Waves that begin at rest with the heights `surface`, row by row.
    ///
    /// # Errors
    /// [`Error::Option`] for a step, a size or a format that cannot be, [`Error::Shape`] for a surface or obstacles of another size; those
    /// of [`Matrix::new`] and [`Solver::new`].
    pub fn new(device: &Device, setup: &WaveSetup, surface: &[T]) -> Result<Self> {
        set_up(device, setup, surface)
    }

    fn new_here(device: &Device, setup: &WaveSetup, surface: &[T]) -> Result<Self> {
        let WaveSetup { size, gamma, boundary, average, format, .. } = *setup;
        let n = cells(size, 1)?;
        positive("gamma", gamma)?;
        same_length("heights of a surface", n, surface.len())?;
        let weight = gamma / 2.0;
        let around = [[0, -1, 0], [-1, 0, 0], [1, 0, 0], [0, 1, 0]].map(|offset| (offset, -weight));
        let points = [&[([0; 3], 1.0 + 4.0 * weight)][..], &around].concat();
        let stencil = || {
            Ok::<_, Error>(Stencil::new([size[0], size[1], 1], &points)?.with_boundaries([
                boundary,
                boundary,
                Boundary::Zero,
            ]))
        };
        let matrix = match (&setup.obstacles, format) {
            (None, Format::OnTheFly) => stencil()?.operator(device)?,
            (None, format) => Matrix::new(device, &stencil()?.to_csr()?, format)?,
            (Some(obstacles), format) => {
                for (wanted, found) in size.into_iter().zip(obstacles.size()) {
                    same_length("cells of obstacles along a side", wanted, found)?;
                }
                let format = if format == Format::OnTheFly { Format::Auto } else { format };
                Matrix::new(device, &obstacles.laplacian(1.0, weight, boundary)?, format)?
            }
        };
        let solid = |i: usize| setup.obstacles.as_ref().is_some_and(|obstacles| obstacles.solid()[i]);
        let surface: Vec<T> =
            surface.iter().enumerate().map(|(i, v)| if solid(i) { T::default() } else { *v }).collect();
        let words = setup.obstacles.as_ref().map(|obstacles| {
            obstacles.solid().iter().map(|solid| if *solid { 0 } else { FLUID }).collect::<Vec<u32>>()
        });
        Ok(Self {
            size,
            average,
            solver: Solver::new(&matrix, Method::Cg, super::last(&setup.stopping))?,
            matrix,
            mask: words.map(|words| device.place().take(words)).transpose()?,
            before: Vector::from_slice(device, &surface)?,
            surface: Vector::from_slice(device, &surface)?,
            b: Vector::zeros(device, n)?,
            w: Vector::zeros(device, n)?,
        })
    }

    /// A step in time.
    ///
    /// # Errors
    /// Those of [`Solver::solve`]. A step that is not solved to the tolerance is no error: see [`Report::stop`].
    pub fn step(&mut self) -> Result<Report> {
        let Self { solver, surface, before, b, w, .. } = self;
        let number = T::from_f64;
        match self.average {
            TimeAverage::NewAndPrevious => b.scaled_from(number(2.0), surface)?,
            TimeAverage::NewAndPresent => b.sum_of(number(3.0), surface, number(-1.0), before)?,
        }
        w.copy_from(b)?;
        let report = solver.solve(b, w)?;
        match self.average {
            TimeAverage::NewAndPrevious => before.axpby(number(1.0), w, number(-1.0))?,
            TimeAverage::NewAndPresent => before.sum_of(number(1.0), w, number(-1.0), surface)?,
        }
        std::mem::swap(surface, before);
        Ok(report)
    }

    /// Lifts the surface by `height (1 - d² / radius²)²` where the distance `d` from `(x, y)` is less than `radius`, without a velocity.
    /// Units are grid distances; point `(i, j)` lies at `(i + 1/2, j + 1/2)`.
    ///
    /// # Errors
    /// [`Error::Option`] for a radius that is not positive or a number that is not finite.
    pub fn disturb(&mut self, [x, y]: [f64; 2], radius: f64, height: f64) -> Result<()> {
        let bump = Bump::new::<T>([x, y], radius, height)?;
        for field in [&mut self.surface, &mut self.before] {
            bump.add_to(field, Nodes::Middles, self.size, self.mask.as_ref())?;
        }
        Ok(())
    }

    /// The energy that steps with [`TimeAverage::NewAndPrevious`] keep: `|u - v|² + (gamma / 2) (u'L u + v'L v)` for the surface `u` and
    /// the one before, `v`. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Api`].
    ///
    /// # Cost
    /// Two products and five reductions.
    pub fn energy(&mut self) -> Result<f64> {
        let Self { matrix, surface, before, b, w, .. } = self;
        b.sum_of(T::from_f64(1.0), surface, T::from_f64(-1.0), before)?;
        let mut energy = b.dot(b)?;
        for u in [surface, before] {
            matrix.multiply(u, w)?;
            energy += u.dot(w)? - u.dot(u)?;
        }
        Ok(energy)
    }

    /// Heights of the surface.
    pub fn surface(&self) -> &Vector<T> {
        &self.surface
    }

    /// Heights a step before, to be changed with [`Waves::surface_mut`] for waves that do not begin at rest.
    pub fn before_mut(&mut self) -> &mut Vector<T> {
        &mut self.before
    }

    /// Heights of the surface, to be changed.
    pub fn surface_mut(&mut self) -> &mut Vector<T> {
        &mut self.surface
    }

    /// The matrix of a step.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }
}
