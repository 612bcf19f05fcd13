//! Solid cells of a grid.

use crate::error::{Error, Result, same_length};
use crate::number::{Real, per_number};
use crate::operator::Boundary;
use crate::sparse::Csr;

/// Solid cells of a grid, through which nothing flows and which no wave passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Obstacles {
    size: [usize; 2],
    solid: Vec<bool>,
}

/// Components of fluid that a flow keeps; smaller ones are filled.
const MOST_COMPONENTS: usize = 8;

per_number! {
    fn laplacian<T>(obstacles: &Obstacles, numbers: [f64; 2], boundary: Boundary) -> Result<Csr<T>> = laplacian_here;
}

fn laplacian_here<T: Real>(obstacles: &Obstacles, [shift, weight]: [f64; 2], boundary: Boundary) -> Result<Csr<T>> {
    let n = obstacles.solid.len();
    Csr::from_rows(n, n, |i, row| {
        if obstacles.solid[i] {
            return row.push((i as u32, T::from_f64(1.0)));
        }
        let neighbours = obstacles.neighbours(i, boundary);
        let open = neighbours.iter().filter(|neighbour| match neighbour {
            Some(j) => !obstacles.solid[*j],
            None => boundary == Boundary::Zero,
        });
        row.push((i as u32, T::from_f64(shift + weight * open.count() as f64)));
        for j in neighbours.into_iter().flatten().filter(|j| !obstacles.solid[*j]) {
            // A grid that repeats after one or two cells has one neighbour on both sides.
            match row.iter_mut().find(|entry| entry.0 == j as u32) {
                Some(entry) => entry.1 = entry.1 - T::from_f64(weight),
                None => row.push((j as u32, T::from_f64(-weight))),
            }
        }
        row.sort_unstable_by_key(|entry| entry.0);
    })
}

impl Obstacles {
    /// Solid cells of a grid of `[width, height]`, row by row from the uppermost on.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a word for each cell, [`Error::Option`] if all are solid.
    pub fn new(size: [usize; 2], solid: Vec<bool>) -> Result<Self> {
        same_length("cells of a grid with obstacles", size[0].saturating_mul(size[1]), solid.len())?;
        if solid.iter().all(|solid| *solid) {
            return Err(Error::Option { name: "obstacles", reason: "no cell is left free".into() });
        }
        Ok(Self { size, solid })
    }

    /// Width and height of the grid.
    pub fn size(&self) -> [usize; 2] {
        self.size
    }

    /// The solid cells.
    pub fn solid(&self) -> &[bool] {
        &self.solid
    }

    /// Neighbours of cell `i`, `None` beyond a boundary that does not repeat.
    fn neighbours(&self, i: usize, boundary: Boundary) -> [Option<usize>; 4] {
        let [width, height] = self.size;
        let (x, y) = (i % width, i / width);
        let around = |at: usize, n: usize, up: bool| match (up, boundary) {
            (true, _) if at + 1 < n => Some(at + 1),
            (false, _) if at > 0 => Some(at - 1),
            (up, Boundary::Periodic) => Some(if up { 0 } else { n - 1 }),
            _ => None,
        };
        let row = |up| around(y, height, up).map(|y| y * width + x);
        let column = |up| around(x, width, up).map(|x| y * width + x);
        [row(false), column(false), column(true), row(true)]
    }

    /// `shift` times the identity plus `weight` times the 5-point Laplacian (4 in the middle, -1 for each neighbour) between free cells:
    /// a solid neighbour mirrors the cell itself. `boundary` says what lies beyond the grid. Rows of solid cells are those of the identity.
    ///
    /// # Errors
    /// Those of [`Csr::from_rows`].
    pub fn laplacian<T: Real>(&self, shift: f64, weight: f64, boundary: Boundary) -> Result<Csr<T>> {
        laplacian(self, [shift, weight], boundary)
    }

    /// The connected components of the free cells, largest first, as lists of cells: neighbours share a side.
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut seen = self.solid.clone();
        let mut found = Vec::new();
        for start in 0..seen.len() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut component = vec![start];
            let mut at = 0;
            while at < component.len() {
                for j in self.neighbours(component[at], Boundary::Zero).into_iter().flatten() {
                    if !std::mem::replace(&mut seen[j], true) {
                        component.push(j);
                    }
                }
                at += 1;
            }
            component.sort_unstable();
            found.push(component);
        }
        found.sort_by_key(|component: &Vec<usize>| std::cmp::Reverse(component.len()));
        found
    }

    /// Fills free cells that have no free neighbour, and all components but the largest eight. Returns the number of cells filled, and the
    /// components that are left.
    pub(super) fn filled(mut self) -> (Self, usize, Vec<Vec<usize>>) {
        let mut components = self.components();
        let kept = components.iter().take(MOST_COMPONENTS).filter(|component| component.len() > 1).count().max(1);
        let rest = components.split_off(kept);
        let mut count = 0;
        for cell in rest.into_iter().flatten() {
            self.solid[cell] = true;
            count += 1;
        }
        (self, count, components)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Stencil;

    fn of(rows: &[&str]) -> Obstacles {
        let solid = rows.iter().flat_map(|row| row.chars().map(|c| c == '#')).collect();
        Obstacles::new([rows[0].len(), rows.len()], solid).unwrap()
    }

    #[test]
    fn without_solid_cells_it_is_the_stencil() {
        for (boundary, boundaries) in [
            (Boundary::Zero, [Boundary::Zero; 3]),
            (Boundary::Reflecting, [Boundary::Reflecting, Boundary::Reflecting, Boundary::Zero]),
            (Boundary::Periodic, [Boundary::Periodic, Boundary::Periodic, Boundary::Zero]),
        ] {
            for size in [[5, 4], [2, 3], [1, 2]] {
                let obstacles = Obstacles::new(size, vec![false; size[0] * size[1]]).unwrap();
                let around = [[0, -1, 0], [-1, 0, 0], [1, 0, 0], [0, 1, 0]].map(|offset| (offset, -2.0));
                let points = [&[([0, 0, 0], 11.0)][..], &around].concat();
                let stencil = Stencil::new([size[0], size[1], 1], &points).unwrap().with_boundaries(boundaries);
                let wanted = stencil.to_csr::<f64>().unwrap();
                assert_eq!(
                    obstacles.laplacian::<f64>(3.0, 2.0, boundary).unwrap(),
                    wanted,
                    "{size:?} {boundary:?}"
                );
            }
        }
    }

    #[test]
    fn components_share_sides_and_small_ones_are_filled() {
        let obstacles = of(&["..#.#", "..#.#", "##.#.", "..#.#"]);
        let sizes: Vec<usize> = obstacles.components().iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 2, 2, 1, 1, 1]);
        let (filled, count, left) = obstacles.clone().filled();
        assert_eq!((count, left.len()), (3, 3));
        assert_eq!(filled.solid().iter().filter(|solid| !**solid).count(), 8);
        let a = obstacles.laplacian::<f64>(0.0, 1.0, Boundary::Reflecting).unwrap();
        assert_eq!(a.row(2), (&[2u32][..], &[1.0][..]), "a solid cell");
        assert_eq!(a.row(3), (&[3u32, 8][..], &[1.0, -1.0][..]), "one free neighbour");
        assert!(Obstacles::new([2, 2], vec![true; 4]).is_err() && Obstacles::new([2, 2], vec![false; 3]).is_err());
    }
}
