//! Problems with known solutions.

use std::f64::consts::PI;

use clap::ValueEnum;
use residuum::fem::{CellView, Errors, Load, Mesh, Point, Poisson, Space, TriangleSystem, Triangulation};
use residuum::operator::{LinearOperator, SharedOperator};
use residuum::precond::Preconditioner;
use residuum::{Csr, Device, Format, Matrix, Method, Real, Report, Result, Setup, Solver, Stopping, Vector};

/// Problem with a known solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CaseKind {
    /// Unit cube, u = sin(pi x) sin(pi y) sin(pi z)
    Cube,
    /// Cube that lacks an eighth (Fichera's corner), u = r^(1/2): singular at the corner
    Fichera,
    /// L-shaped prism, u = r^(2/3) sin(2 theta / 3): singular along an edge
    LShape,
    /// Mapped cells: a quarter of a bend, u = exp(x) sin(z) + y
    Bend,
    /// Triangles in the plane: -Laplace u = 4 in the unit disc (dedecek-2013, 2.1)
    Disc,
}

impl CaseKind {
    /// Point or points where the solution is singular, as a test of cells.
    pub(crate) fn singularity(self) -> Option<fn(&CellView) -> bool> {
        match self {
            Self::Fichera => Some(|cell| cell.touches([0.0; 3])),
            Self::LShape => Some(|cell| cell.touches([0.0, 0.0, cell.middle()[2]])),
            _ => None,
        }
    }

    /// The solution and its gradient.
    fn exact(self, [x, y, z]: Point) -> (f64, Point) {
        match self {
            Self::Cube => {
                let (s, c) = ([x, y, z].map(|x| (PI * x).sin()), [x, y, z].map(|x| PI * (PI * x).cos()));
                (s[0] * s[1] * s[2], [c[0] * s[1] * s[2], s[0] * c[1] * s[2], s[0] * s[1] * c[2]])
            }
            Self::Fichera => {
                let r = (x * x + y * y + z * z).sqrt();
                (r.sqrt(), [x, y, z].map(|x| 0.5 * x / (r * r.sqrt())))
            }
            Self::LShape => {
                let (r, angle) = ((x * x + y * y).sqrt(), y.atan2(x));
                let angle = if angle < -1e-12 { angle + 2.0 * PI } else { angle };
                let (a, slope) = (2.0 / 3.0 * angle, 2.0 / 3.0 * r.powf(-1.0 / 3.0));
                // d/dr and (1/r) d/dtheta, turned into those along x and y.
                let (radial, around) = (slope * a.sin(), slope * a.cos());
                let (sin, cos) = (angle.sin(), angle.cos());
                (r.powf(2.0 / 3.0) * a.sin(), [radial * cos - around * sin, radial * sin + around * cos, 0.0])
            }
            Self::Bend => (x.exp() * z.sin() + y, [x.exp() * z.sin(), 1.0, x.exp() * z.cos()]),
            Self::Disc => (1.0 - x * x - y * y, [-2.0 * x, -2.0 * y, 0.0]),
        }
    }

    fn problem(self) -> Poisson {
        match self {
            Self::Cube => Poisson::new(move |x| 3.0 * PI * PI * self.exact(x).0),
            Self::Fichera => {
                let source = |x: Point| -0.75 * x.iter().map(|x| x * x).sum::<f64>().powf(-0.75);
                Poisson::new(source).with_values(move |x| self.exact(x).0)
            }
            Self::LShape | Self::Bend => Poisson::new(|_| 0.0).with_values(move |x| self.exact(x).0),
            Self::Disc => Poisson::new(|_| 4.0),
        }
    }
}

/// Cells or triangles, with the system of the last solve.
pub(crate) enum Shape {
    Solid { mesh: Mesh, on: Option<(Space, Load)> },
    Plane { mesh: Triangulation, on: Option<TriangleSystem> },
}

/// A problem on a mesh.
pub(crate) struct Domain {
    case: CaseKind,
    start: [usize; 2],
    pub(crate) shape: Shape,
}

/// Answer of a solve.
pub(crate) struct Solved<T: Real> {
    pub(crate) values: Vector<T>,
    pub(crate) report: Report,
}

impl Domain {
    pub(crate) fn new(case: CaseKind, cells: usize, degree: usize) -> Result<Self> {
        let start = [cells, degree];
        if case == CaseKind::Disc {
            let mesh = Triangulation::disc(cells)?;
            return Ok(Self { case, start, shape: Shape::Plane { mesh, on: None } });
        }
        let unit = [[0.0, 1.0]; 3];
        let both = [-1.0, 1.0];
        // Corners and edges are to lie between cells.
        let even = cells + cells % 2;
        let mut mesh = match case {
            CaseKind::Fichera => {
                Mesh::boxes([even; 3], [both; 3])?.keep(|cell| cell.middle().iter().any(|x| *x < 0.0))?
            }
            CaseKind::LShape => Mesh::boxes([even, even, (even / 2).max(1)], [both, both, [0.0, 1.0]])?
                .keep(|cell| cell.middle()[0] < 0.0 || cell.middle()[1] > 0.0)?,
            CaseKind::Bend => Mesh::boxes([cells, cells, 2 * cells], unit)?.mapped(|[s, t, w]| {
                let (sin, cos) = ((0.5 * PI * w).sin(), (0.5 * PI * w).cos());
                let r = 1.0 + s;
                let slopes = [[cos, 0.0, -0.5 * PI * r * sin], [0.0, 1.0, 0.0], [sin, 0.0, 0.5 * PI * r * cos]];
                ([r * cos, t, r * sin], slopes)
            }),
            _ => Mesh::boxes([cells; 3], unit)?,
        };
        mesh.set_degree(degree)?;
        Ok(Self { case, start, shape: Shape::Solid { mesh, on: None } })
    }

    pub(crate) fn begin_anew(&self) -> Result<Self> {
        Self::new(self.case, self.start[0], self.start[1])
    }

    /// Halves the cells, all of them or those at the singularity.
    pub(crate) fn halve(&mut self, graded: bool) -> Result<()> {
        match &mut self.shape {
            // Twice the rings, whose rim lies on the circle: middles of edges would not.
            Shape::Plane { mesh, .. } => *mesh = Triangulation::disc(2 * (mesh.triangles().len() / 6).isqrt())?,
            Shape::Solid { mesh, .. } => {
                let at = self.case.singularity().filter(|_| graded);
                let _ = mesh.refine(|cell| at.is_none_or(|at| at(cell)))?;
            }
        }
        Ok(())
    }

    /// Raises all degrees by one.
    pub(crate) fn raise(&mut self) -> Result<()> {
        match &mut self.shape {
            Shape::Plane { .. } => Ok(()),
            Shape::Solid { mesh, .. } => mesh.set_degrees(|cell| (cell.degree + 1).min(8)),
        }
    }

    /// Sets degrees that grow by one with every second layer away from the singularity, from `first` on.
    pub(crate) fn grade(&mut self, first: usize) -> Result<()> {
        match &mut self.shape {
            Shape::Plane { .. } => Ok(()),
            Shape::Solid { mesh, .. } => {
                let deepest = mesh.views().map(|cell| cell.level).max().unwrap_or(0);
                mesh.set_degrees(|cell| (first + (deepest - cell.level) / 2).min(8))
            }
        }
    }

    /// Cells, and the sum of their degrees.
    pub(crate) fn size(&self) -> [usize; 2] {
        match &self.shape {
            Shape::Plane { mesh, .. } => [mesh.triangles().len(); 2],
            Shape::Solid { mesh, .. } => [mesh.len(), mesh.views().map(|cell| cell.degree).sum()],
        }
    }

    /// Cells, and coefficients of hanging nodes.
    pub(crate) fn counts(&self) -> (usize, usize) {
        match &self.shape {
            Shape::Plane { mesh, .. } => (mesh.triangles().len(), 0),
            Shape::Solid { mesh, on } => (mesh.len(), on.as_ref().map_or(0, |(space, _)| space.hanging())),
        }
    }

    /// Solves on the mesh as it is.
    pub(crate) fn solve<T: Real>(
        &mut self,
        device: &Device,
        stored: bool,
        format: Format,
        preconditioner: &str,
        stopping: Stopping,
    ) -> Result<Solved<T>> {
        let problem = self.case.problem();
        let mut setup = Setup::new(Method::Cg, stopping);
        let mut store = |a: &Csr<f64>| -> Result<SharedOperator<T>> {
            let a = a.cast::<T>();
            if preconditioner != "none" {
                setup.preconditioner = Some(preconditioner.parse::<Preconditioner>()?.build(device, &a)?.operator);
            }
            Ok(Matrix::new(device, &a, format)?.into())
        };
        let (operator, b) = match &mut self.shape {
            Shape::Plane { mesh, on } => {
                let system = on.insert(mesh.system(&problem, |_| true)?);
                (store(&system.matrix)?, system.b.clone())
            }
            Shape::Solid { mesh, on } => {
                let space = Space::new(mesh)?;
                let load = problem.load(&space)?;
                let operator = if stored {
                    store(&space.matrix()?)?
                } else {
                    if preconditioner == "jacobi" {
                        setup.preconditioner = Some(space.jacobi::<T>(device)?.into());
                    }
                    space.operator::<T>(device)?.shared()
                };
                let b = load.b.clone();
                *on = Some((space, load));
                (operator, b)
            }
        };
        let b: Vec<T> = b.into_iter().map(T::from_f64).collect();
        let b = Vector::from_slice(device, &b)?;
        let mut values = Vector::zeros(device, b.len())?;
        // After Ctrl-C the frame is the answer so far.
        let report =
            Solver::with(operator, setup)?.solve_observed(&b, &mut values, &mut |_| common::interrupt::flow())?;
        Ok(Solved { values, report })
    }

    /// Distance of an answer from the known solution.
    pub(crate) fn errors(&self, x: &[f64]) -> Result<Errors> {
        match &self.shape {
            Shape::Solid { on: Some((space, load)), .. } => {
                Ok(load.solution(space, x)?.errors(|x| self.case.exact(x)))
            }
            Shape::Plane { mesh, on: Some(system) } => mesh.errors(&system.values(x)?, |x| self.case.exact(x)),
            _ => Err(common::option("frames", "nothing is solved yet")),
        }
    }
}
