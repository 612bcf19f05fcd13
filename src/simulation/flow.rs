//! Incompressible flow.

use std::mem::swap;

use super::bump::{Bump, Nodes};
use super::flow_setup::{FlowSetup, Interpolation, PressureStart, Splitting, Trace, Wall};
use super::obstacles::Obstacles;
use super::{cells, positive};
use crate::backend::pde::flow::{FLUID, FlowGrid, FlowStep, LEFT_BURIED, LEFT_OPEN, UPPER_BURIED, UPPER_OPEN};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::matrix::Matrix;
use crate::memory::Memory;
use crate::number::{Real, first_not_finite, per_number};
use crate::operator::{Boundary, Stencil};
use crate::solver::{Method, NullSpace, Report, Setup, Solver};
use crate::sparse::Format;
use crate::vector::Vector;

/// Incompressible flow in a closed box by the equations of Navier and Stokes. A step of `dt` on cells of side `h`:
///
/// ```text
///   e = u + dt viscosity Lap u                                     likewise for v
///   g = e(where the flow comes from) + dt f                        likewise for v
///   L p = -(outflow of each cell)                                  L: 4 in the middle, -1 for each neighbour, walls reflect
///   u = g - (p(i, j) - p(i - 1, j))                                likewise for v
///   dye = dye(where the flow comes from)
/// ```
///
/// `f` is a field of forces, none at first ([`Flow::set_force`]). The paper adds what viscosity and transport do, both of `u`:
/// `g = u(where the flow comes from) + (e - u) + dt f` ([`Splitting::Additive`]), which may grow.
///
/// `u` (to the right) lies on the left faces of cells, `v` (downwards) on the upper ones; the pressure is `p h / dt`. `L` is singular:
/// the constants are its null space, one for each part of the box that obstacles separate, and are projected out
/// ([`NullSpace`]). The start guess is the pressure before ([`PressureStart`]). What is left of the outflow after a step is the residual of the solve.
///
/// # Cost
/// Held: ten vectors and a null space beside those of the method, two more with forces, with obstacles a mask and a matrix. A step takes five
/// launches, a product and two reductions, the projection and a solve; two launches more with forces, four more if
/// [`Splitting::Additive`].
///
/// # Source
/// krueger-westermann-2003, section 6, equations 3 to 7; the grid after F. H. Harlow, J. E. Welch, Phys. Fluids 8, 1965; transport
/// after J. Stam, "Stable fluids", SIGGRAPH 1999.
#[derive(Debug)]
pub struct Flow<T: Real> {
    setup: FlowSetup,
    mask: Option<Memory<u32>>,
    filled: usize,
    solver: Solver<T>,
    matrix: Matrix<T>,
    velocity: [Vector<T>; 2],
    /// The velocity spread by viscosity, and then carried along.
    spread: [Vector<T>; 2],
    tentative: [Vector<T>; 2],
    pressure: Vector<T>,
    b: Vector<T>,
    dye: Vector<T>,
    carried: Vector<T>,
    force: Option<[Vector<T>; 2]>,
}

per_number! {
    fn set_up<T>(device: &Device, setup: FlowSetup) -> Result<Flow<T>> = Flow::new_here;
    fn on_faces<T>(this: &Flow<T>, field: &dyn Fn(f64, f64) -> [f64; 2]) -> [Vec<T>; 2] = Flow::on_faces_here;
}

/// The bits of each cell for the kernels.
fn words(obstacles: &Obstacles) -> Vec<u32> {
    let ([width, _], solid) = (obstacles.size(), obstacles.solid());
    let face = |open: u32, buried: u32, here: bool, there: bool| match (here, there) {
        (false, false) => open,
        (true, true) => buried,
        _ => 0,
    };
    let word = |c: usize| {
        let left = if c.is_multiple_of(width) { 0 } else { face(LEFT_OPEN, LEFT_BURIED, solid[c], solid[c - 1]) };
        let upper = if c < width { 0 } else { face(UPPER_OPEN, UPPER_BURIED, solid[c], solid[c - width]) };
        left | upper | if solid[c] { 0 } else { FLUID }
    };
    (0..solid.len()).map(word).collect()
}

/// A vector for each component of the fluid, 1 in its cells.
fn null_space<T: Real>(device: &Device, n: usize, components: &[Vec<usize>]) -> Result<NullSpace<T>> {
    let vectors = components.iter().map(|component| {
        let mut ones = vec![T::default(); n];
        for cell in component {
            ones[*cell] = T::from_f64(1.0);
        }
        Vector::from_slice(device, &ones)
    });
    NullSpace::of(vectors.collect::<Result<_>>()?)
}

impl<T: Real> Flow<T> {
    /// A box of fluid at rest.
    ///
    /// Free cells without free neighbours are filled, and all separate parts of the fluid but the largest eight ([`Flow::filled`]).
    ///
    /// # Errors
    /// [`Error::Option`] for numbers that cannot be, and for a step that is unstable with this viscosity; those of [`Matrix::new`] and
    /// [`Solver::new`].
    pub fn new(device: &Device, setup: FlowSetup) -> Result<Self> {
        set_up(device, setup)
    }

    fn new_here(device: &Device, mut setup: FlowSetup) -> Result<Self> {
        let n = check(&setup)?;
        let size = setup.size;
        let (matrix, space, mask, filled) = match setup.obstacles.take() {
            None => {
                let stencil = Stencil::laplacian_2d(size[0], size[1])?;
                let closed = stencil.with_boundaries([Boundary::Reflecting, Boundary::Reflecting, Boundary::Zero]);
                (closed.operator(device)?, NullSpace::constants(device, n)?, None, 0)
            }
            Some(obstacles) => {
                let (obstacles, filled, components) = obstacles.filled();
                let space = null_space(device, n, &components)?;
                let matrix =
                    Matrix::new(device, &obstacles.laplacian(0.0, 1.0, Boundary::Reflecting)?, Format::Auto)?;
                let mask = device.place().take(words(&obstacles))?;
                setup.obstacles = Some(obstacles);
                (matrix, space, Some(mask), filled)
            }
        };
        let solve = Setup::new(Method::Cg, super::last(&setup.stopping)).with_null_space(space);
        let vector = || Vector::zeros(device, n);
        Ok(Self {
            solver: Solver::with(&matrix, solve)?,
            matrix,
            mask,
            filled,
            velocity: [vector()?, vector()?],
            spread: [vector()?, vector()?],
            tentative: [vector()?, vector()?],
            pressure: vector()?,
            b: vector()?,
            dye: vector()?,
            carried: vector()?,
            force: None,
            setup,
        })
    }

    /// A step in time.
    ///
    /// # Errors
    /// Those of [`Solver::solve`]. A pressure that is not solved for to the tolerance is no error: see [`Report::stop`].
    pub fn step(&mut self) -> Result<Report> {
        let device = self.b.device().clone();
        let (operations, run) = (device.backend().flow::<T>(), device.run::<T>());
        let step = self.numbers();
        {
            let Self { setup, mask, velocity: [u, v], spread: [su, sv], tentative: [g, f], .. } = self;
            let (grid, velocity) = (grid(setup, mask), [u.memory(), v.memory()]);
            let spread = match setup.viscosity > 0.0 {
                true => {
                    operations.flow_spread(run, grid, step, velocity, [su.memory_mut(), sv.memory_mut()])?;
                    [su.memory(), sv.memory()]
                }
                false => velocity,
            };
            let carried = match setup.splitting {
                Splitting::Sequential => spread,
                Splitting::Additive => velocity,
            };
            operations.flow_carry(run, grid, step, velocity, carried, [g.memory_mut(), f.memory_mut()])?;
        }
        self.add_changes()?;
        {
            let Self { setup, mask, tentative: [g, f], b, .. } = self;
            operations.flow_divergence(run, grid(setup, mask), [g.memory(), f.memory()], b.memory_mut())?;
        }
        if self.setup.pressure_start == PressureStart::Scaled {
            self.scale_pressure()?;
        }
        let report = self.solver.solve(&self.b, &mut self.pressure)?;
        let Self { setup, mask, velocity: [u, v], tentative: [g, f], pressure: p, dye, carried, .. } = self;
        let grid = grid(setup, mask);
        let to = [u.memory_mut(), v.memory_mut()];
        operations.subtract_gradient(run, grid, p.memory(), [g.memory(), f.memory()], to)?;
        let velocity = [u.memory(), v.memory()];
        operations.flow_transport(run, grid, step, velocity, dye.memory(), carried.memory_mut())?;
        swap(dye, carried);
        Ok(report)
    }

    /// Adds what viscosity does, if transport has not carried it along, and the forces.
    fn add_changes(&mut self) -> Result<()> {
        let Self { setup, velocity, spread, tentative, force, .. } = self;
        let one = T::from_f64(1.0);
        if setup.splitting == Splitting::Additive && setup.viscosity > 0.0 {
            for ((g, e), u) in tentative.iter_mut().zip(spread).zip(velocity) {
                g.axpby(one, e, one)?;
                g.axpby(T::from_f64(-1.0), u, one)?;
            }
        }
        for (g, f) in tentative.iter_mut().zip(force.iter().flatten()) {
            g.axpby(T::from_f64(setup.step), f, one)?;
        }
        Ok(())
    }

    /// Scales the pressure of the step before to the best start guess of its direction, in the energy norm. So a solve that ends early
    /// takes energy out of the flow and never adds any: unscaled, a pressure that is not that of this step would.
    fn scale_pressure(&mut self) -> Result<()> {
        // The velocity of the step before is needed no more.
        let Self { matrix, pressure: p, b, velocity: [product, _], .. } = self;
        matrix.multiply(p, product)?;
        let (aligned, energy) = (b.dot(p)?, product.dot(p)?);
        let best = aligned / energy;
        p.scale(T::from_f64(if energy > 0.0 && best.is_finite() { best } else { 0.0 }))
    }

    fn numbers(&self) -> FlowStep<T> {
        let FlowSetup { cell, step, viscosity, wall, .. } = &self.setup;
        let lid = match wall {
            Wall::NoSlip { lid } => *lid,
            Wall::FreeSlip => 0.0,
        };
        FlowStep {
            lid: T::from_f64(lid),
            step: T::from_f64(step / cell),
            viscosity: T::from_f64(viscosity * step / (cell * cell)),
        }
    }

    /// Adds `change (1 - d² / radius²)²` to the velocity where the distance `d` from `place` is less than `radius`: a push. Place and
    /// radius are in cells from the upper left corner.
    ///
    /// # Errors
    /// [`Error::Option`] for a radius that is not positive or a number that is not finite.
    pub fn push(&mut self, place: [f64; 2], radius: f64, change: [f64; 2]) -> Result<()> {
        let Self { setup, mask, velocity: [u, v], .. } = self;
        let [along, down] = change.map(|change| Bump::new::<T>(place, radius, change));
        let (along, down) = (along?, down?);
        along.add_to(u, Nodes::LeftFaces, setup.size, mask.as_ref())?;
        down.add_to(v, Nodes::UpperFaces, setup.size, mask.as_ref())
    }

    /// Adds `amount (1 - d² / radius²)²` of dye where the distance `d` from `place` is less than `radius`, both in cells.
    ///
    /// # Errors
    /// As [`Flow::push`].
    pub fn inject(&mut self, place: [f64; 2], radius: f64, amount: f64) -> Result<()> {
        let Self { setup, mask, dye, .. } = self;
        Bump::new::<T>(place, radius, amount)?.add_to(dye, Nodes::Middles, setup.size, mask.as_ref())
    }

    /// Replaces the velocity: `u(x, y)` on left faces and `v(x, y)` on upper ones, at places in the unit of length from the upper left
    /// corner. Faces of walls stay at rest.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn set_velocity(&mut self, velocity: &dyn Fn(f64, f64) -> [f64; 2]) -> Result<()> {
        let fields = on_faces(self, velocity);
        self.velocity.iter_mut().zip(&fields).try_for_each(|(vector, field)| vector.write(field))
    }

    /// Sets the forces of every step that follows, for the unit of mass: to the right and downwards, at places as for
    /// [`Flow::set_velocity`]. `None` for none.
    ///
    /// # Errors
    /// [`Error::NotFinite`], [`Error::Api`].
    pub fn set_force(&mut self, force: Option<&dyn Fn(f64, f64) -> [f64; 2]>) -> Result<()> {
        let Some(force) = force else {
            self.force = None;
            return Ok(());
        };
        let [along, down] = on_faces(self, force);
        for field in [&along, &down] {
            if let Some(index) = first_not_finite(field) {
                return Err(Error::NotFinite { what: "the force at cells".into(), index });
            }
        }
        let device = self.b.device();
        self.force = Some([Vector::from_slice(device, &along)?, Vector::from_slice(device, &down)?]);
        Ok(())
    }

    /// A field on the faces between two cells of fluid, 0 on the others.
    fn on_faces_here(&self, field: &dyn Fn(f64, f64) -> [f64; 2]) -> [Vec<T>; 2] {
        let ([width, height], h) = (self.setup.size, self.setup.cell);
        let bits = self.setup.obstacles.as_ref().map(words);
        let mut fields = [vec![T::default(); width * height], vec![T::default(); width * height]];
        for c in 0..width * height {
            let (i, j) = (c % width, c / width);
            let bits = bits.as_ref().map_or(LEFT_OPEN | UPPER_OPEN, |bits| bits[c]);
            let (x, y) = (i as f64 * h, j as f64 * h);
            if i > 0 && bits & LEFT_OPEN != 0 {
                fields[0][c] = T::from_f64(field(x, y + h / 2.0)[0]);
            }
            if j > 0 && bits & UPPER_OPEN != 0 {
                fields[1][c] = T::from_f64(field(x + h / 2.0, y)[1]);
            }
        }
        fields
    }

    /// Greatest magnitude of the divergence, `outflow / h`, in any cell. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn divergence(&mut self) -> Result<f64> {
        let device = self.b.device().clone();
        let Self { setup, mask, velocity: [u, v], b, .. } = self;
        let operations = device.backend().flow::<T>();
        let velocity = [u.memory(), v.memory()];
        operations.flow_divergence(device.run::<T>(), grid(setup, mask), velocity, b.memory_mut())?;
        Ok(b.max()?.max(-b.min()?) / setup.cell)
    }

    /// Kinetic energy for a density of 1: half the integral of the squared velocity. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn energy(&self) -> Result<f64> {
        let [u, v] = &self.velocity;
        Ok(0.5 * self.setup.cell * self.setup.cell * (u.dot(u)? + v.dot(v)?))
    }

    /// Velocities: to the right on the left faces of the cells, downwards on the upper ones.
    pub fn velocity(&self) -> [&Vector<T>; 2] {
        [&self.velocity[0], &self.velocity[1]]
    }

    /// The pressure times `dt / h`, as the last solve left it.
    pub fn pressure(&self) -> &Vector<T> {
        &self.pressure
    }

    /// The dye.
    pub fn dye(&self) -> &Vector<T> {
        &self.dye
    }

    /// The dye, to be changed.
    pub fn dye_mut(&mut self) -> &mut Vector<T> {
        &mut self.dye
    }

    /// Brings the fluid to rest and takes the dye away.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn reset(&mut self) -> Result<()> {
        let Self { velocity: [u, v], pressure, dye, .. } = self;
        [u, v, pressure, dye].into_iter().try_for_each(|field| field.fill(T::default()))
    }

    /// Takes another time step and viscosity, for the steps that follow.
    ///
    /// # Errors
    /// As [`Flow::new`].
    pub fn set_step(&mut self, step: f64, viscosity: f64) -> Result<()> {
        let changed = FlowSetup { step, viscosity, ..self.setup.clone() };
        check(&changed)?;
        self.setup = changed;
        Ok(())
    }

    /// The set-up, with the obstacles that are in force.
    pub fn setup(&self) -> &FlowSetup {
        &self.setup
    }

    /// Number of free cells that were filled.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// The matrix of the pressure.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }
}

/// Most cells along a side: places in single precision are no finer than half a cell beyond.
const MOST_CELLS: usize = 1 << 22;

/// Fails on numbers that cannot be meant. Returns the number of cells.
fn check(setup: &FlowSetup) -> Result<usize> {
    let FlowSetup { size, cell, step, viscosity, wall, .. } = setup;
    // Nodes up to two cells beyond a boundary mirror those inside.
    let n = cells(*size, 4)?;
    if let Some(side) = size.iter().find(|side| **side > MOST_CELLS) {
        let reason = format!("{side} cells along a side are more than {MOST_CELLS}");
        return Err(Error::Option { name: "size", reason });
    }
    positive("cell", *cell)?;
    positive("step", *step)?;
    if !(*viscosity >= 0.0 && viscosity.is_finite()) {
        return Err(Error::Option {
            name: "viscosity",
            reason: format!("{viscosity} is not a number of at least 0"),
        });
    }
    let spread = viscosity * step / (cell * cell);
    if spread > 0.25 {
        let most = 0.25 * cell * cell / viscosity;
        let reason = format!("{step} is unstable with this viscosity and cell: at most {most:.3e}");
        return Err(Error::Option { name: "step", reason });
    }
    if let Wall::NoSlip { lid } = wall
        && !lid.is_finite()
    {
        return Err(Error::Option { name: "lid", reason: format!("{lid} is no velocity") });
    }
    if let Some(obstacles) = &setup.obstacles {
        same_length("width of the obstacles", size[0], obstacles.size()[0])?;
        same_length("height of the obstacles", size[1], obstacles.size()[1])?;
    }
    Ok(n)
}

fn grid<'a>(setup: &FlowSetup, mask: &'a Option<Memory<u32>>) -> FlowGrid<'a> {
    FlowGrid {
        width: setup.size[0],
        height: setup.size[1],
        mask: mask.as_ref(),
        cubic: setup.interpolation == Interpolation::Cubic,
        midpoint: setup.trace == Trace::Midpoint,
        slip: setup.wall == Wall::FreeSlip,
    }
}
