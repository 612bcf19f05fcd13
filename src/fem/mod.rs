//! Finite elements for `-Laplace u = f` in three dimensions: hexahedra of any degree from 1 to 8 beside each other (`hp`), with hanging
//! nodes; and triangles of degree 1 in two.
//!
//! A [`Mesh`] is refined, a [`Space`] numbers its unknowns, a [`Poisson`] problem gives a right-hand side, and the matrix is either stored
//! ([`Space::matrix`]) or applied without being formed ([`Space::operator`]); the answer is a [`Solution`].
//!
//! ```
//! use std::f64::consts::PI;
//! use residuum::fem::{Mesh, Poisson, Space};
//! use residuum::{Device, Method, Solver, Stopping, Vector, operator::LinearOperator};
//!
//! // -Laplace u = 3 pi² u for u = sin(pi x) sin(pi y) sin(pi z) on the unit cube, in 2³ cells of degree 5.
//! let u = |x: [f64; 3]| x.iter().map(|x| (PI * x).sin()).product::<f64>();
//! let mut mesh = Mesh::boxes([2; 3], [[0.0, 1.0]; 3])?;
//! mesh.set_degree(5)?;
//! let space = Space::new(&mesh)?;
//! let load = Poisson::new(move |x| 3.0 * PI * PI * u(x)).load(&space)?;
//!
//! let device = Device::best()?;
//! let b = Vector::from_slice(&device, &load.b)?;
//! let mut x = Vector::zeros(&device, space.len())?;
//! let stopping = Stopping::for_precision::<f64>().with_rtol(1e-10);
//! assert!(Solver::new(space.operator::<f64>(&device)?.shared(), Method::Cg, stopping)?.solve(&b, &mut x)?.converged());
//!
//! let solution = load.solution(&space, &x.to_vec()?)?;
//! assert!((solution.value([0.5; 3]).unwrap() - 1.0).abs() < 1e-3);
//! # Ok::<(), residuum::Error>(())
//! ```
//!
//! # Source
//! oses-2013, sections 3.1.1 and 3.1.2, which name the spaces and no more; basis and constraints: L. Demkowicz, "Computing with
//! hp-adaptive finite elements", vol. 1, 2006, and C. Schwab, "p- and hp-finite element methods", 1998. dedecek-2013, section 2.1, for triangles.

mod assembly;
mod cells;
mod mesh;
mod operator;
mod poisson;
mod shape;
mod solution;
mod space;
mod triangles;

pub use mesh::{CellView, Mapped, Mesh, Point, hexahedron};
pub use operator::ElementOperator;
pub use poisson::{Load, Poisson};
pub use solution::{Errors, Solution};
pub use space::Space;
pub use triangles::{TriangleSystem, Triangulation};
