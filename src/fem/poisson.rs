//! Poisson's equation: right-hand sides, and the values that are given on the boundary.

use std::fmt::{self, Debug};
use std::sync::Arc;

use super::assembly::transposed;
use super::cells::{CellTables, gauss_point, metric};
use super::mesh::Point;
use super::shape::{MOST_SHAPES, Table, contract, gauss, projection, shapes};
use super::space::{Entity, Face, Side, Space, closure, mode_of, side_of};
use crate::error::{Error, Result};
use crate::threads;

type Source = dyn Fn(Point) -> f64 + Send + Sync;
type Flux = dyn Fn(Point, Point) -> f64 + Send + Sync;

/// `-Laplace u = f` in the mesh, `u = g` where values are given, `du/dn = h` on the rest of the boundary.
///
/// Weak form: find `u` with `u = g` there and `int grad u . grad v = int f v + int h v ds` for all `v` of the space that are 0 there.
#[derive(Clone)]
pub struct Poisson {
    source: Arc<Source>,
    values: Option<Arc<Source>>,
    flux: Option<Arc<Flux>>,
}

impl Debug for Poisson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poisson")
            .field("values", &self.values.is_some())
            .field("flux", &self.flux.is_some())
            .finish_non_exhaustive()
    }
}

/// Right-hand side of the free coefficients, and the coefficients that are given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Load {
    /// `b`, a number for each unknown.
    pub b: Vec<f64>,
    /// Coefficients of the functions on the boundary whose values are given.
    pub(super) given: Vec<f64>,
}

/// Fails if a function of a problem gave NaN or an infinite number.
pub(super) fn check_finite(b: &[f64], given: &[f64]) -> Result<()> {
    for (what, values) in [("right-hand side of finite elements", b), ("given values of finite elements", given)] {
        if let Some(index) = values.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: what.into(), index });
        }
    }
    Ok(())
}

impl Poisson {
    /// `-Laplace u = f`, with `u = 0` where values are given and `du/dn = 0` elsewhere on the boundary.
    pub fn new(f: impl Fn(Point) -> f64 + Send + Sync + 'static) -> Self {
        Self { source: Arc::new(f), values: None, flux: None }
    }

    /// With the values `g` instead of 0 (Dirichlet).
    pub fn with_values(self, g: impl Fn(Point) -> f64 + Send + Sync + 'static) -> Self {
        Self { values: Some(Arc::new(g)), ..self }
    }

    /// With the flux `h(point, outward normal)` instead of 0 (Neumann).
    pub fn with_flux(self, h: impl Fn(Point, Point) -> f64 + Send + Sync + 'static) -> Self {
        Self { flux: Some(Arc::new(h)), ..self }
    }

    /// `f` at a point.
    pub(super) fn source(&self, point: Point) -> f64 {
        (self.source)(point)
    }

    /// `g` at a point.
    pub(super) fn value(&self, point: Point) -> f64 {
        self.values.as_ref().map_or(0.0, |values| values(point))
    }

    /// `h` at a point.
    pub(super) fn flux(&self, point: Point, normal: Point) -> f64 {
        self.flux.as_ref().map_or(0.0, |flux| flux(point, normal))
    }

    /// The right-hand side `b_i = int f phi_i + int h phi_i ds - a(u_g, phi_i)` for the functions of a space, where `u_g` has the given
    /// coefficients: values at vertices, projections in the mean on edges and then on faces.
    ///
    /// # Errors
    /// [`Error::NotFinite`] if a function gives NaN or an infinite number; [`Error::Option`] for a map whose determinant is not positive.
    ///
    /// # Cost
    /// `f` is evaluated at `(p + 3)³` points of each cell of degree `p`, in parallel.
    pub fn load(&self, space: &Space) -> Result<Load> {
        let given = match &self.values {
            Some(values) => given_coefficients(space, &**values),
            None => vec![0.0; space.given],
        };
        let lift = space.complete(&vec![0.0; space.free], &given);
        let tables = CellTables::all();
        let rules: Vec<LoadRule> = (0..MOST_SHAPES).map(|degree| LoadRule::new(degree.max(1))).collect();
        let of_cell = |_, c: usize| -> Result<Vec<f64>> {
            let cell = space.mesh.cells[c];
            let degree = usize::from(cell.degree);
            let mut load = rules[degree].load(space, c, &*self.source)?;
            let u = space.local(c, &lift);
            if u.iter().any(|u| *u != 0.0) {
                let product = tables[degree].product(&space.geometry(cell)?, &u);
                load.iter_mut().zip(product).for_each(|(load, product)| *load -= product);
            }
            Ok(load)
        };
        let mut loads = threads::try_map(0..space.mesh.cells.len(), 1, of_cell)?;
        if let Some(flux) = &self.flux {
            for face in &space.open_faces {
                let load = &mut loads[face.cell as usize];
                face_load(space, *face, &**flux).into_iter().for_each(|(k, share)| load[k] += share);
            }
        }
        let (occurrences, shares) = (space.occurrences(), transposed(space));
        let of_id = |id: usize| -> f64 {
            occurrences.of(id).iter().map(|(cell, k)| loads[*cell as usize][*k as usize]).sum()
        };
        let entry = |_, i: usize| {
            let own = of_id(i);
            if i < space.shared {
                let row = shares.row(i).iter();
                return own
                    + row.map(|(hanging, share)| share * of_id(space.free + *hanging as usize)).sum::<f64>();
            }
            own
        };
        let b = threads::numbers(0..space.free, 256, entry);
        check_finite(&b, &given)?;
        Ok(Load { b, given })
    }
}

/// Points where a source is evaluated.
struct LoadRule {
    rule: Vec<[f64; 2]>,
    shapes_back: Table,
}

impl LoadRule {
    fn new(degree: usize) -> Self {
        let rule = gauss(degree + 3);
        let shapes_back = Table::shapes(rule.iter().map(|point| point[0]), degree + 1).transposed();
        Self { rule, shapes_back }
    }

    /// `int f phi` for the shape functions of a cell.
    fn load(&self, space: &Space, c: usize, source: &Source) -> Result<Vec<f64>> {
        let cell = space.mesh.cells[c];
        let at = |q: usize| {
            let (point, weight) = gauss_point(&self.rule, q);
            let (place, slopes) = space.mesh.place_in(cell, point);
            let determinant = metric(slopes).1;
            match determinant > 0.0 {
                true => Ok(source(place) * determinant * weight),
                false => Err(space.folded(cell, determinant)),
            }
        };
        let values: Vec<f64> = (0..self.rule.len().pow(3)).map(at).collect::<Result<_>>()?;
        Ok(contract([&self.shapes_back; 3], &values))
    }
}

/// Axis across a face, and those along it.
fn face_axes(side: Side) -> [usize; 3] {
    let across = side.iter().position(|side| *side != 1).unwrap_or(0);
    [across, (across + 1) % 3, (across + 2) % 3]
}

/// `int h phi ds` over a face, for the shape functions of its cell that are not 0 there.
fn face_load(space: &Space, face: Face, flux: &Flux) -> Vec<(usize, f64)> {
    let cell = space.mesh.cells[face.cell as usize];
    let n = usize::from(cell.degree) + 1;
    let [across, a, b] = face_axes(face.side);
    let upper = face.side[across] == 2;
    let rule = gauss(n + 2);
    let mut load = vec![0.0; n * n];
    for s in &rule {
        for t in &rule {
            let mut point = [f64::from(u8::from(upper)); 3];
            (point[a], point[b]) = (s[0], t[0]);
            let (place, slopes) = space.mesh.place_in(cell, point);
            // The cross product of the tangents: normal times area.
            let (u, v) = ([0, 1, 2].map(|i| slopes[i][a]), [0, 1, 2].map(|i| slopes[i][b]));
            let normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
            let area = normal.iter().map(|n| n * n).sum::<f64>().sqrt();
            // A face that the map makes a line or a point.
            if area == 0.0 {
                continue;
            }
            let outward = normal.map(|n| if upper { n / area } else { -n / area });
            let share = flux(place, outward) * area * s[1] * t[1];
            let (of_s, of_t) = (shapes(s[0]), shapes(t[0]));
            for (k, load) in load.iter_mut().enumerate() {
                *load += share * of_s[k % n] * of_t[k / n];
            }
        }
    }
    let number = |k: usize| {
        let mut mode = [usize::from(upper); 3];
        (mode[a], mode[b]) = (k % n, k / n);
        mode[0] + n * (mode[1] + n * mode[2])
    };
    load.into_iter().enumerate().map(|(k, load)| (number(k), load)).collect()
}

impl Space {
    /// Coefficients of a cell, of all of them.
    pub(super) fn local(&self, cell: usize, all: &[f64]) -> Vec<f64> {
        self.ids(cell).iter().map(|id| all.get(*id as usize).copied().unwrap_or(0.0)).collect()
    }
}

/// Coefficients of a function on the boundary: values at vertices; on edges, larger ones first, projections in the mean of what is left; then on
/// faces.
fn given_coefficients(space: &Space, values: &Source) -> Vec<f64> {
    let along = |entity: &Entity| entity.side.iter().filter(|side| **side == 1).count();
    let level = |entity: &Entity| space.mesh.cells[entity.cell as usize].level;
    let mut order: Vec<&Entity> = space.given_entities.iter().filter(|entity| entity.count() > 0).collect();
    order.sort_by_key(|entity| (along(entity), level(entity)));
    let first = (space.free + space.hanging) as u32;
    let mut given = vec![0.0; space.given];
    let rule = gauss(MOST_SHAPES + 1);
    let projections: Vec<Table> = (0..MOST_SHAPES).map(|degree| projection(degree, &rule)).collect();
    // Entities of a kind and size do not depend on each other.
    for entities in order.chunk_by(|a, b| (along(a), level(a)) == (along(b), level(b))) {
        let given_so_far = &given;
        let found = threads::map(entities, 1, |_, entity| {
            let projection = &projections[usize::from(entity.degree)];
            of_entity(space, entity, values, given_so_far, &rule, projection)
        });
        for (entity, found) in entities.iter().zip(found) {
            let at = (entity.first - first) as usize;
            given[at..at + found.len()].copy_from_slice(&found);
        }
    }
    given
}

/// Coefficients of an entity on the boundary, of a function less what is known on the entities that bound it.
fn of_entity(
    space: &Space,
    entity: &Entity,
    values: &Source,
    given: &[f64],
    rule: &[[f64; 2]],
    projection: &Table,
) -> Vec<f64> {
    let cell = space.mesh.cells[entity.cell as usize];
    let n = usize::from(cell.degree) + 1;
    let axes: Vec<usize> = (0..3).filter(|d| entity.side[*d] == 1).collect();
    let place = |along: &[f64]| {
        let mut point = entity.side.map(|side| f64::from(side) / 2.0);
        axes.iter().zip(along).for_each(|(d, t)| point[*d] = *t);
        values(space.mesh.place_in(cell, point).0)
    };
    if axes.is_empty() {
        return vec![place(&[])];
    }
    let known = |id: u32| -> f64 {
        let of =
            |id: u32| given.get((id as usize).wrapping_sub(space.free + space.hanging)).copied().unwrap_or(0.0);
        match (id as usize).checked_sub(space.free) {
            Some(row) if row < space.hanging => {
                space.constraints.row(row).iter().map(|(id, factor)| factor * of(*id)).sum()
            }
            _ => of(id),
        }
    };
    let ids = space.ids(entity.cell as usize);
    let bounding: Vec<([usize; 3], f64)> = (0..n * n * n)
        .map(|k| (k, mode_of(k, n)))
        .filter(|(_, mode)| {
            let side = side_of(*mode);
            side != entity.side && closure(entity.side).any(|other| other == side)
        })
        .map(|(k, mode)| (mode, known(ids[k])))
        .collect();
    let phi: Vec<[f64; MOST_SHAPES]> = rule.iter().map(|point| shapes(point[0])).collect();
    let count = rule.len().pow(axes.len() as u32);
    let rest = |q: usize| {
        let at = [q % rule.len(), q / rule.len()];
        let along: Vec<f64> = (0..axes.len()).map(|d| rule[at[d]][0]).collect();
        let below: f64 = bounding
            .iter()
            .map(|(mode, c)| c * axes.iter().zip(at).map(|(d, q)| phi[q][mode[*d]]).product::<f64>())
            .sum();
        place(&along) - below
    };
    let rest: Vec<f64> = (0..count).map(rest).collect();
    let one = Table::of(1, 1, |_, _| 1.0);
    match axes.len() {
        1 => contract([projection, &one, &one], &rest),
        _ => contract([projection, projection, &one], &rest),
    }
}
