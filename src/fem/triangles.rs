//! Piecewise linear functions on triangles in the plane.

use std::collections::HashMap;

use super::poisson::{Poisson, check_finite};
use super::solution::Errors;
use crate::error::{Error, Result, same_length};
use crate::sparse::Csr;

/// A triangulation of a part of the plane: triangles that meet in whole edges or in vertices.
///
/// ```
/// use residuum::fem::{Poisson, Triangulation};
/// use residuum::{Device, Format, Matrix, Method, Solver, Stopping, Vector};
///
/// // -Laplace u = 4 in the unit disc, u = 0 on its rim: u = 1 - r².
/// let disc = Triangulation::disc(20)?;
/// let system = disc.system(&Poisson::new(|_| 4.0), |_| true)?;
/// let device = Device::best()?;
/// let matrix = Matrix::new(&device, &system.matrix, Format::Auto)?;
/// let b = Vector::from_slice(&device, &system.b)?;
/// let mut x = Vector::zeros(&device, system.b.len())?;
/// assert!(Solver::new(&matrix, Method::Cg, Stopping::for_precision::<f64>())?.solve(&b, &mut x)?.converged());
/// let u = system.values(&x.to_vec()?)?;
/// let wrong = disc.points().iter().zip(&u).map(|([x, y], u)| (1.0 - x * x - y * y - u).abs()).fold(0.0, f64::max);
/// assert!(wrong < 0.01);
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Triangulation {
    points: Vec<[f64; 2]>,
    triangles: Vec<[u32; 3]>,
    /// Edges of one triangle, in its direction of going round.
    rim: Vec<[u32; 2]>,
}

/// Twice the area of a triangle, positive if its points go round against the clock.
fn twice_area([a, b, c]: [[f64; 2]; 3]) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// The system `A x = b` of a triangulation: unknowns are the values at the points where none are given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TriangleSystem {
    /// `A_jk = int grad phi_j . grad phi_k`.
    pub matrix: Csr<f64>,
    /// `b_j = int f phi_j + int h phi_j ds - int grad u_g . grad phi_j`.
    pub b: Vec<f64>,
    /// Unknown of each point, or none.
    unknown: Vec<Option<u32>>,
    /// Values at the points, where they are given.
    given: Vec<f64>,
}

impl TriangleSystem {
    /// Values at all points, from the unknowns.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a number for each unknown.
    pub fn values(&self, x: &[f64]) -> Result<Vec<f64>> {
        same_length("unknowns of a triangulation", self.b.len(), x.len())?;
        let value = |(unknown, given): (&Option<u32>, &f64)| unknown.map_or(*given, |k| x[k as usize]);
        Ok(self.unknown.iter().zip(&self.given).map(value).collect())
    }
}

impl Triangulation {
    /// The triangles with these corners, numbers of `points`, which go round against the clock.
    ///
    /// # Errors
    /// [`Error::Structure`] with the number of a triangle that names a point there is not, has no area or goes round with the clock, or has an
    /// edge that two others have, or that another has in the same direction.
    pub fn new(points: Vec<[f64; 2]>, triangles: Vec<[u32; 3]>) -> Result<Self> {
        let mut edges = HashMap::new();
        for (t, corners) in triangles.iter().enumerate() {
            let bad = |what: &str| Err(Error::Structure { what: format!("triangle {t} {what}"), row: Some(t) });
            if corners.iter().any(|corner| *corner as usize >= points.len()) {
                return bad("names a point that is not there");
            }
            let area = twice_area(corners.map(|corner| points[corner as usize]));
            if !(area > 0.0 && area.is_finite()) {
                return bad("does not go round against the clock, or has no area");
            }
            for k in 0..3 {
                if edges.insert([corners[k], corners[(k + 1) % 3]], t).is_some() {
                    return bad("has an edge in common with one on its own side of it");
                }
            }
        }
        let mut rim: Vec<[u32; 2]> =
            edges.keys().filter(|[a, b]| !edges.contains_key(&[*b, *a])).copied().collect();
        rim.sort_unstable();
        Ok(Self { points, triangles, rim })
    }

    /// The unit square in `2 cells²` triangles.
    ///
    /// # Errors
    /// [`Error::Option`] unless `cells` is between 1 and 2^14.
    pub fn square(cells: usize) -> Result<Self> {
        if !(1..=1 << 14).contains(&cells) {
            let reason = format!("{cells} is not between 1 and 2^14");
            return Err(Error::Option { name: "cells", reason });
        }
        let side = cells as u32 + 1;
        let at = |k: u32| f64::from(k) / cells as f64;
        let points = (0..side * side).map(|p| [at(p % side), at(p / side)]).collect();
        let squares = (0..cells as u32).flat_map(|y| (0..cells as u32).map(move |x| x + side * y));
        let triangles = squares.flat_map(|p| [[p, p + 1, p + side + 1], [p, p + side + 1, p + side]]).collect();
        Self::new(points, triangles)
    }

    /// The unit disc in `6 rings²` triangles.
    ///
    /// # Errors
    /// [`Error::Option`] unless `rings` is between 1 and 2^13.
    pub fn disc(rings: usize) -> Result<Self> {
        if !(1..=1 << 13).contains(&rings) {
            let reason = format!("{rings} is not between 1 and 2^13");
            return Err(Error::Option { name: "rings", reason });
        }
        // Ring r has 6r points; the middle has number 0.
        let first = |r: u32| if r == 0 { 0 } else { 1 + 3 * r * (r - 1) };
        let mut points = vec![[0.0; 2]];
        let mut triangles = Vec::new();
        for r in 1..=rings as u32 {
            let radius = f64::from(r) / rings as f64;
            for k in 0..6 * r {
                let angle = std::f64::consts::PI * f64::from(k) / f64::from(3 * r);
                points.push([radius * libm::cos(angle), radius * libm::sin(angle)]);
            }
            let (outer, inner) = (
                |k: u32| first(r) + k % (6 * r),
                |k: u32| match r {
                    1 => 0,
                    _ => first(r - 1) + k % (6 * (r - 1)),
                },
            );
            for sixth in 0..6 {
                for k in 0..r {
                    let (a, b) = (sixth * r + k, sixth * (r - 1) + k);
                    triangles.push([inner(b), outer(a), outer(a + 1)]);
                    if k + 1 < r {
                        triangles.push([inner(b), outer(a + 1), inner(b + 1)]);
                    }
                }
            }
        }
        Self::new(points, triangles)
    }

    /// The triangulation with each triangle cut into four by the middles of its edges.
    ///
    /// # Errors
    /// As [`Triangulation::new`].
    pub fn refined(&self) -> Result<Self> {
        let (mut points, mut middles) = (self.points.clone(), HashMap::new());
        let mut middle = |a: u32, b: u32| {
            *middles.entry([a.min(b), a.max(b)]).or_insert_with(|| {
                let [p, q] = [a, b].map(|k| self.points[k as usize]);
                points.push([0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1])]);
                points.len() as u32 - 1
            })
        };
        let mut triangles = Vec::with_capacity(4 * self.triangles.len());
        for [a, b, c] in &self.triangles {
            let (ab, bc, ca) = (middle(*a, *b), middle(*b, *c), middle(*c, *a));
            triangles.extend([[*a, ab, ca], [ab, *b, bc], [ca, bc, *c], [ab, bc, ca]]);
        }
        Self::new(points, triangles)
    }

    /// The points.
    pub fn points(&self) -> &[[f64; 2]] {
        &self.points
    }

    /// The triangles, as numbers of points.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// Distance of the piecewise linear function with these values at the points from one whose value and gradient `exact` gives, by the
    /// middles of the edges of each triangle.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a value for each point.
    pub fn errors(&self, values: &[f64], exact: impl Fn([f64; 3]) -> (f64, [f64; 3])) -> Result<Errors> {
        same_length("values of a triangulation", self.points.len(), values.len())?;
        let mut sums = [0.0; 2];
        for corners in &self.triangles {
            let p = corners.map(|k| self.points[k as usize]);
            let u = corners.map(|k| values[k as usize]);
            let twice = twice_area(p);
            let slope = |d: usize| -> f64 {
                let of = |k: usize| {
                    let (q, r) = (p[(k + 1) % 3], p[(k + 2) % 3]);
                    [q[1] - r[1], r[0] - q[0]][d]
                };
                (0..3).map(|k| u[k] * of(k)).sum::<f64>() / twice
            };
            let slopes = [slope(0), slope(1)];
            for k in 0..3 {
                let (a, b) = (k, (k + 1) % 3);
                let (wanted, gradient) = exact([0.5 * (p[a][0] + p[b][0]), 0.5 * (p[a][1] + p[b][1]), 0.0]);
                let weight = twice / 6.0;
                sums[0] += weight * ((slopes[0] - gradient[0]).powi(2) + (slopes[1] - gradient[1]).powi(2));
                sums[1] += weight * (0.5 * (u[a] + u[b]) - wanted).powi(2);
            }
        }
        Ok(Errors { energy: sums[0].sqrt(), l2: sums[1].sqrt() })
    }

    /// The system of a problem, whose functions are given points and normals with third coordinate 0. Values are given on those edges of the
    /// rim whose middle `is_given` names (Dirichlet), and the flux on the others (Neumann).
    ///
    /// Integrals over triangles and edges are those of the values at middles of edges, and at Gauss' two points.
    ///
    /// # Errors
    /// [`Error::NotFinite`] if a function gives NaN or an infinite number.
    ///
    /// # Source
    /// dedecek-2013, section 2.1; J. Alberty, C. Carstensen, S. A. Funken, "Remarks around 50 lines of Matlab", Numer. Algorithms 20 (1999).
    pub fn system(&self, problem: &Poisson, is_given: impl Fn([f64; 2]) -> bool) -> Result<TriangleSystem> {
        let point = |k: u32| self.points[k as usize];
        let along = |a: [f64; 2], b: [f64; 2], t: f64| [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])];
        let space = |[x, y]: [f64; 2]| [x, y, 0.0];
        let (mut given, mut is_unknown) = (vec![0.0; self.points.len()], vec![false; self.points.len()]);
        // Points of no triangle keep the value 0.
        self.triangles.iter().flatten().for_each(|k| is_unknown[*k as usize] = true);
        let (fixed, open): (Vec<[u32; 2]>, Vec<[u32; 2]>) =
            self.rim.iter().copied().partition(|[a, b]| is_given(along(point(*a), point(*b), 0.5)));
        for k in fixed.iter().flatten() {
            is_unknown[*k as usize] = false;
            given[*k as usize] = problem.value(space(point(*k)));
        }
        let mut next = 0;
        let unknown: Vec<Option<u32>> = is_unknown
            .into_iter()
            .map(|is| {
                next += u32::from(is);
                is.then(|| next - 1)
            })
            .collect();
        let mut b = vec![0.0; next as usize];
        let mut entries = Vec::with_capacity(9 * self.triangles.len());
        for corners in &self.triangles {
            let p = corners.map(point);
            let area = 0.5 * twice_area(p);
            // Gradients times twice the area.
            let slope = |k: usize| {
                let (q, r) = (p[(k + 1) % 3], p[(k + 2) % 3]);
                [q[1] - r[1], r[0] - q[0]]
            };
            let middles = [0, 1, 2].map(|k| problem.source(space(along(p[k], p[(k + 1) % 3], 0.5))));
            for j in 0..3 {
                let Some(row) = unknown[corners[j] as usize] else { continue };
                b[row as usize] += area / 6.0 * (middles[j] + middles[(j + 2) % 3]);
                for k in 0..3 {
                    let ([ax, ay], [bx, by]) = (slope(j), slope(k));
                    let entry = (ax * bx + ay * by) / (4.0 * area);
                    match unknown[corners[k] as usize] {
                        Some(column) => entries.push((row as usize, column as usize, entry)),
                        None => b[row as usize] -= entry * given[corners[k] as usize],
                    }
                }
            }
        }
        for [i, j] in open {
            let (p, q) = (point(i), point(j));
            let (dx, dy) = (q[0] - p[0], q[1] - p[1]);
            let length = (dx * dx + dy * dy).sqrt();
            let normal = [dy / length, -dx / length, 0.0];
            for t in [0.5 - 3f64.sqrt() / 6.0, 0.5 + 3f64.sqrt() / 6.0] {
                let share = 0.5 * length * problem.flux(space(along(p, q, t)), normal);
                for (k, part) in [(i, 1.0 - t), (j, t)] {
                    if let Some(row) = unknown[k as usize] {
                        b[row as usize] += part * share;
                    }
                }
            }
        }
        check_finite(&b, &given)?;
        let matrix = Csr::from_triplets(b.len(), b.len(), &entries)?;
        Ok(TriangleSystem { matrix, b, unknown, given })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn squares_give_the_matrix_of_differences() {
        let system = Triangulation::square(8).unwrap().system(&Poisson::new(|_| 1.0), |_| true).unwrap();
        let wanted = gallery::poisson_2d::<f64>(7, 0.0).unwrap();
        for i in 0..49 {
            // Entries across the diagonal of a square are 0.
            let row: Vec<(u32, f64)> =
                system.matrix.row(i).0.iter().copied().zip(system.matrix.row(i).1.iter().copied()).collect();
            let row: Vec<(u32, f64)> = row.into_iter().filter(|(_, entry)| entry.abs() > 1e-12).collect();
            assert_eq!(row.iter().map(|entry| entry.0).collect::<Vec<_>>(), wanted.row(i).0);
            assert!(row.iter().zip(wanted.row(i).1).all(|(a, b)| (a.1 - b).abs() < 1e-12));
        }
        assert!(system.b.iter().all(|b| (b - 1.0 / 64.0).abs() < 1e-15));
    }

    #[test]
    fn rims_are_those_of_the_domain() {
        for rings in [1, 2, 5] {
            let disc = Triangulation::disc(rings).unwrap();
            assert_eq!((disc.triangles.len(), disc.rim.len()), (6 * rings * rings, 6 * rings));
            let finer = disc.refined().unwrap();
            assert_eq!((finer.triangles.len(), finer.rim.len()), (24 * rings * rings, 12 * rings));
            let area = |t: &Triangulation| -> f64 {
                t.triangles.iter().map(|c| 0.5 * twice_area(c.map(|k| t.points[k as usize]))).sum()
            };
            assert!((area(&disc) - area(&finer)).abs() < 1e-12);
        }
    }

    #[test]
    fn what_is_no_triangulation_is_refused() {
        let points = vec![[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
        for triangles in [vec![[0, 1, 4]], vec![[0, 2, 1]], vec![[0, 1, 1]], vec![[0, 1, 2], [0, 1, 3]]] {
            assert!(Triangulation::new(points.clone(), triangles.clone()).is_err(), "{triangles:?}");
        }
        assert!(Triangulation::square(0).is_err() && Triangulation::disc(0).is_err());
        let square = Triangulation::square(3).unwrap();
        assert!(matches!(square.system(&Poisson::new(|_| f64::NAN), |_| true), Err(Error::NotFinite { .. })));
    }
}
