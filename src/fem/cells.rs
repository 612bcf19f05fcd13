//! Matrices of single cells.

use super::mesh::{Cell, Point};
use super::shape::{Table, contract, gauss, mass, stiffness};
use super::space::{Space, mode_of};
use crate::error::{Error, Result};
use crate::threads;

/// `|J| J^-1 J^-T` for the derivatives `J` of a map: `xx, xy, xz, yy, yz, zz`; and the determinant `|J|`.
pub(super) fn metric(j: [[f64; 3]; 3]) -> ([f64; 6], f64) {
    // Rows of the adjugate: cross products of the columns.
    let column = |d: usize| [j[0][d], j[1][d], j[2][d]];
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let rows = [cross(column(1), column(2)), cross(column(2), column(0)), cross(column(0), column(1))];
    let determinant = dot(column(0), rows[0]);
    let entry = |a: usize, b: usize| dot(rows[a], rows[b]) / determinant;
    ([entry(0, 0), entry(0, 1), entry(0, 2), entry(1, 1), entry(1, 2), entry(2, 2)], determinant)
}

/// Point `q` of a rule along all three axes, the first fastest, and its weight.
pub(super) fn gauss_point(rule: &[[f64; 2]], q: usize) -> (Point, f64) {
    let points = mode_of(q, rule.len()).map(|k| rule[k]);
    (points.map(|point| point[0]), points[0][1] * points[1][1] * points[2][1])
}

/// Geometry of a cell.
#[derive(Clone, Debug)]
pub(super) enum Geometry {
    /// Factors of the slopes along each axis.
    Box([f64; 3]),
    /// Weight times metric in each Gauss point, the first axis fastest.
    Mapped(Vec<[f64; 6]>),
}

impl Space {
    /// Geometry of a cell, with as many Gauss points along an axis as it has shape functions.
    ///
    /// # Errors
    /// [`Error::Option`] if the determinant of the map is not positive, or not finite, in one of them.
    pub(super) fn geometry(&self, cell: Cell) -> Result<Geometry> {
        if !self.mesh.is_mapped() {
            let [x, y, z] = self.mesh.sides(cell);
            return Ok(Geometry::Box([y * z / x, x * z / y, x * y / z]));
        }
        let rule = gauss(usize::from(cell.degree) + 1);
        let at = |k: usize| {
            let (point, weight) = gauss_point(&rule, k);
            let (metric, determinant) = metric(self.mesh.place_in(cell, point).1);
            match determinant > 0.0 && metric.iter().all(|entry| entry.is_finite()) {
                true => Ok(metric.map(|entry| weight * entry)),
                false => Err(self.folded(cell, determinant)),
            }
        };
        Ok(Geometry::Mapped((0..rule.len().pow(3)).map(at).collect::<Result<_>>()?))
    }

    /// The error of a cell where the map has this determinant.
    pub(super) fn folded(&self, cell: Cell, determinant: f64) -> Error {
        let middle = self.mesh.view(cell).middle();
        let reason = format!("the determinant of its derivatives is {determinant} near {middle:?}");
        Error::Option { name: "map", reason }
    }

    /// Geometry of all cells.
    ///
    /// # Errors
    /// As [`Space::geometry`].
    pub(super) fn geometries(&self) -> Result<Vec<Geometry>> {
        threads::try_map(&self.mesh.cells[..], 64, |_, cell| self.geometry(*cell))
    }
}

/// Tables of the cells of one degree.
pub(super) struct CellTables {
    points: usize,
    /// Values and slopes at the Gauss points, and the transposed of both.
    values: Table,
    slopes: Table,
    values_back: Table,
    slopes_back: Table,
}

impl CellTables {
    pub(super) fn new(degree: usize) -> Self {
        let points = degree + 1;
        let rule = gauss(points);
        let places = || rule.iter().map(|point| point[0]);
        let (values, slopes) = (Table::shapes(places(), points), Table::slopes(places(), points));
        let (values_back, slopes_back) = (values.transposed(), slopes.transposed());
        Self { points, values, slopes, values_back, slopes_back }
    }

    /// For each degree.
    pub(super) fn all() -> Vec<Self> {
        (0..=super::shape::MOST_DEGREE).map(|degree| Self::new(degree.max(1))).collect()
    }

    /// Numbers that products of a batch of such cells need.
    pub(super) fn numbers(&self, mapped: bool) -> Vec<f64> {
        match mapped {
            false => Table::of(self.points, self.points, mass).values,
            true => [&self.values, &self.slopes, &self.values_back, &self.slopes_back]
                .into_iter()
                .flat_map(|table| table.values.iter().copied())
                .collect(),
        }
    }

    /// Row `k` of the matrix of a cell: `(column, entry)` for those that are not 0.
    pub(super) fn row(&self, geometry: &Geometry, k: usize) -> Vec<(usize, f64)> {
        let n = self.points;
        let [i, j, l] = mode_of(k, n);
        match geometry {
            Geometry::Box([gx, gy, gz]) => {
                let coupled = |a: usize| (0..n).filter(move |b| mass(a, *b) != 0.0);
                let mut row = Vec::new();
                for z in coupled(l) {
                    for y in coupled(j) {
                        for x in coupled(i) {
                            let m = [mass(i, x), mass(j, y), mass(l, z)];
                            let s = [stiffness(i, x), stiffness(j, y), stiffness(l, z)];
                            let entry =
                                gx * (s[0] * m[1] * m[2]) + gy * (m[0] * s[1] * m[2]) + gz * (m[0] * m[1] * s[2]);
                            if entry != 0.0 {
                                row.push((x + n * (y + n * z), entry));
                            }
                        }
                    }
                }
                row
            }
            Geometry::Mapped(metric) => {
                // Slopes of the shape function in the Gauss points.
                let (v, s) = (&self.values, &self.slopes);
                let along = |tables: [&Table; 3]| -> Vec<f64> {
                    let at = |q: usize| {
                        let [a, b, c] = mode_of(q, n);
                        tables[0].at(a, i) * tables[1].at(b, j) * tables[2].at(c, l)
                    };
                    (0..n * n * n).map(at).collect()
                };
                self.back(metric, [along([s, v, v]), along([v, s, v]), along([v, v, s])])
                    .into_iter()
                    .enumerate()
                    .collect()
            }
        }
    }

    /// Slopes in the Gauss points, times the metric, against those of all shape functions.
    fn back(&self, metric: &[[f64; 6]], mut g: [Vec<f64>; 3]) -> Vec<f64> {
        for (q, [xx, xy, xz, yy, yz, zz]) in metric.iter().enumerate() {
            let [dx, dy, dz] = [g[0][q], g[1][q], g[2][q]];
            g[0][q] = xx * dx + xy * dy + xz * dz;
            g[1][q] = xy * dx + yy * dy + yz * dz;
            g[2][q] = xz * dx + yz * dy + zz * dz;
        }
        let (v, s) = (&self.values_back, &self.slopes_back);
        let sums = [contract([s, v, v], &g[0]), contract([v, s, v], &g[1]), contract([v, v, s], &g[2])];
        (0..metric.len()).map(|c| sums[0][c] + sums[1][c] + sums[2][c]).collect()
    }

    /// The product of the matrix of a cell with coefficients.
    pub(super) fn product(&self, geometry: &Geometry, u: &[f64]) -> Vec<f64> {
        let n = self.points;
        match geometry {
            Geometry::Box(g) => {
                let (m, s) = (Table::of(n, n, mass), Table::of(n, n, stiffness));
                let parts = [contract([&s, &m, &m], u), contract([&m, &s, &m], u), contract([&m, &m, &s], u)];
                (0..u.len()).map(|c| g[0] * parts[0][c] + g[1] * parts[1][c] + g[2] * parts[2][c]).collect()
            }
            Geometry::Mapped(metric) => {
                let (v, s) = (&self.values, &self.slopes);
                self.back(metric, [contract([s, v, v], u), contract([v, s, v], u), contract([v, v, s], u)])
            }
        }
    }

    /// The diagonal of the matrix of a cell.
    pub(super) fn diagonal(&self, geometry: &Geometry) -> Vec<f64> {
        let n = self.points;
        match geometry {
            Geometry::Box([gx, gy, gz]) => (0..n * n * n)
                .map(|k| {
                    let m = mode_of(k, n).map(|k| mass(k, k));
                    gx * (m[1] * m[2]) + gy * (m[0] * m[2]) + gz * (m[0] * m[1])
                })
                .collect(),
            Geometry::Mapped(metric) => {
                let product = |a: &Table, b: &Table| Table::of(n, n, |i, q| a.at(i, q) * b.at(i, q));
                let (v, s) = (&self.values_back, &self.slopes_back);
                let (vv, vs, ss) = (product(v, v), product(v, s), product(s, s));
                let mut sum = vec![0.0; n * n * n];
                let tables = [
                    [&ss, &vv, &vv],
                    [&vs, &vs, &vv],
                    [&vs, &vv, &vs],
                    [&vv, &ss, &vv],
                    [&vv, &vs, &vs],
                    [&vv, &vv, &ss],
                ];
                for (c, tables) in tables.into_iter().enumerate() {
                    // Mixed slopes count twice.
                    let factor = if [1, 2, 4].contains(&c) { 2.0 } else { 1.0 };
                    let entries: Vec<f64> = metric.iter().map(|metric| factor * metric[c]).collect();
                    contract(tables, &entries).into_iter().zip(&mut sum).for_each(|(part, sum)| *sum += part);
                }
                sum
            }
        }
    }
}
