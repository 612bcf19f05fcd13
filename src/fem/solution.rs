//! Functions of a space: values, energy, distance from a known solution.

use std::sync::OnceLock;

use super::cells::{CellTables, gauss_point, metric};
use super::mesh::{Finder, Point};
use super::poisson::Load;
use super::shape::{MOST_SHAPES, Table, contract, gauss, shapes};
use super::space::Space;
use crate::error::{Result, same_length};
use crate::threads;

/// Distance of a function from another.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Errors {
    /// `sqrt(int |grad u_h - grad u|²)`.
    pub energy: f64,
    /// `sqrt(int (u_h - u)²)`.
    pub l2: f64,
}

/// A function of a [`Space`]: its coefficients, those that hang and those that are given among them.
#[derive(Debug)]
pub struct Solution<'s> {
    space: &'s Space,
    all: Vec<f64>,
    /// Made when a point is looked for.
    finder: OnceLock<Finder<'s>>,
}

impl Load {
    /// The function with the unknowns `x`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) unless there is a number for each unknown, and the load is that of the space.
    pub fn solution<'s>(&self, space: &'s Space, x: &[f64]) -> Result<Solution<'s>> {
        same_length("unknowns of finite elements", space.free, x.len())?;
        same_length("given coefficients of finite elements", space.given, self.given.len())?;
        Ok(Solution { space, all: space.complete(x, &self.given), finder: OnceLock::new() })
    }
}

impl Solution<'_> {
    /// The value at a point of the lattice, before the map; none outside of the mesh.
    pub fn value(&self, point: Point) -> Option<f64> {
        let finder = self.finder.get_or_init(|| self.space.mesh.finder());
        let (cell, t) = finder.locate(point)?;
        Some(self.value_in(cell, t))
    }

    /// The value at the point of cell `cell` (in the order of [`Mesh::views`](super::Mesh::views)) whose coordinates are `t` in `[0, 1]`.
    ///
    /// # Panics
    /// Like a slice, if there is no such cell.
    pub fn value_in(&self, cell: usize, t: Point) -> f64 {
        let ids = self.space.ids(cell);
        let n = usize::from(self.space.mesh.cells[cell].degree) + 1;
        let phi = t.map(shapes);
        let of = |id: u32| self.all.get(id as usize).copied().unwrap_or(0.0);
        let row = |j: usize, k: usize| -> f64 {
            let ids = &ids[n * (j + n * k)..][..n];
            ids.iter().zip(&phi[0]).map(|(id, phi)| of(*id) * phi).sum()
        };
        let plane = |k: usize| -> f64 { (0..n).map(|j| row(j, k) * phi[1][j]).sum() };
        (0..n).map(|k| plane(k) * phi[2][k]).sum()
    }

    /// Place in space of that point.
    ///
    /// # Panics
    /// Like a slice, if there is no such cell.
    pub fn place_in(&self, cell: usize, t: Point) -> Point {
        let mesh = &self.space.mesh;
        mesh.place_in(mesh.cells[cell], t).0
    }

    /// `a(u_h, u_h) = int |grad u_h|²`.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for a map whose determinant is not positive.
    pub fn energy(&self) -> Result<f64> {
        let tables = CellTables::all();
        let of_cell = |_, c: usize| -> Result<f64> {
            let cell = self.space.mesh.cells[c];
            let u = self.space.local(c, &self.all);
            let product = tables[usize::from(cell.degree)].product(&self.space.geometry(cell)?, &u);
            Ok(u.iter().zip(product).map(|(u, p)| u * p).sum())
        };
        let parts = threads::try_map(0..self.space.mesh.cells.len(), 1, of_cell)?;
        Ok(parts.into_iter().sum())
    }

    /// Distance from a function whose value and gradient `exact` gives, by Gauss' rule with `p + 4` points along each axis of a cell of degree
    /// `p`.
    pub fn errors(&self, exact: impl Fn(Point) -> (f64, Point) + Sync) -> Errors {
        let tables: Vec<(Vec<[f64; 2]>, Table, Table)> = (0..MOST_SHAPES)
            .map(|degree| {
                let rule = gauss(degree.max(1) + 4);
                let places = || rule.iter().map(|point| point[0]);
                let (values, slopes) = (Table::shapes(places(), degree + 1), Table::slopes(places(), degree + 1));
                (rule, values, slopes)
            })
            .collect();
        let of_cell = |_, c: usize| {
            let cell = self.space.mesh.cells[c];
            let (rule, v, s) = &tables[usize::from(cell.degree)];
            let u = self.space.local(c, &self.all);
            let value = contract([v, v, v], &u);
            let g = [contract([s, v, v], &u), contract([v, s, v], &u), contract([v, v, s], &u)];
            let mut sums = [0.0; 2];
            for (q, value) in value.iter().enumerate() {
                let (point, weight) = gauss_point(rule, q);
                let (place, j) = self.space.mesh.place_in(cell, point);
                let (wanted, gradient) = exact(place);
                // Slopes of the exact function along the axes of the cell, so that the metric measures the difference.
                let d = [0, 1, 2].map(|d| g[d][q] - (0..3).map(|i| j[i][d] * gradient[i]).sum::<f64>());
                let (m, determinant) = metric(j);
                let square = d[0] * (m[0] * d[0] + 2.0 * (m[1] * d[1] + m[2] * d[2]))
                    + d[1] * (m[3] * d[1] + 2.0 * m[4] * d[2])
                    + m[5] * d[2] * d[2];
                sums[0] += weight * square;
                sums[1] += weight * determinant * (value - wanted).powi(2);
            }
            sums
        };
        let parts = threads::numbers(0..self.space.mesh.cells.len(), 1, of_cell);
        let [energy, l2] = [0, 1].map(|k| parts.iter().map(|part| part[k]).sum::<f64>().sqrt());
        Errors { energy, l2 }
    }
}
