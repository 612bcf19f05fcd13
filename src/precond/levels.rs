//! Levels and colours: rows of a triangle that can be solved for at the same time.

use std::collections::BTreeSet;

use crate::number::Real;
use crate::sparse::Csr;

/// A colour for each row, such that rows joined by an entry, either way, differ: the least one free, in the order of
/// the rows (first fit).
pub(super) fn colours<T: Real>(a: &Csr<T>) -> Vec<u32> {
    let transposed = a.transpose();
    let mut colours = vec![u32::MAX; a.rows()];
    let mut taken = BTreeSet::new();
    for i in 0..a.rows() {
        taken.clear();
        let neighbours = a.row(i).0.iter().chain(transposed.row(i).0);
        taken.extend(neighbours.map(|j| colours[*j as usize]).filter(|c| *c != u32::MAX));
        // Ascending: the first gap is the least free one.
        colours[i] =
            taken.iter().zip(0..).find(|(taken, free)| *taken != free).map_or(taken.len() as u32, |(_, c)| c);
    }
    colours
}

/// The level of each row: one more than the highest of the rows it needs, which are those for which `needs(i, j)` holds.
/// `order` names the rows such that what a row needs comes before it.
pub(super) fn levels<T: Real>(
    a: &Csr<T>,
    order: impl Iterator<Item = usize>,
    needs: impl Fn(usize, usize) -> bool,
) -> Vec<u32> {
    let mut levels = vec![0; a.rows()];
    for i in order {
        let needed = a.row(i).0.iter().map(|j| *j as usize).filter(|j| needs(i, *j));
        levels[i] = needed.map(|j| levels[j] + 1).max().unwrap_or(0);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn a_grid_is_a_checkerboard() {
        let a = gallery::poisson_2d::<f64>(6, 0.0).expect("small");
        let found = colours(&a);
        for (i, colour) in found.iter().enumerate() {
            assert_eq!(*colour as usize, (i / 6 + i % 6) % 2);
        }
    }

    #[test]
    fn no_neighbours_share_a_colour() {
        // Not symmetric: an entry either way joins two rows.
        let a = gallery::random::<f32>(200, 200, 1500, 5).expect("small");
        let found = colours(&a);
        for i in 0..200 {
            for j in a.row(i).0.iter().filter(|j| **j as usize != i) {
                assert_ne!(found[i], found[*j as usize], "{i} {j}");
            }
        }
        assert!(found.iter().max().is_some_and(|most| *most < 30), "first fit takes few");
    }

    #[test]
    fn levels_follow_what_rows_need() {
        // A chain, a row that needs nothing, one that needs two.
        let entries = [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (1, 1, 1.0),
            (2, 1, 1.0),
            (2, 2, 1.0),
            (3, 3, 1.0),
            (4, 0, 1.0),
            (4, 2, 1.0),
        ];
        let a = Csr::<f64>::from_triplets(5, 5, &entries).expect("small");
        assert_eq!(levels(&a, 0..5, |i, j| j < i), [0, 1, 2, 0, 3]);
        assert_eq!(levels(&a, (0..5).rev(), |i, j| j > i), [0; 5]);
        let grid = gallery::poisson_2d::<f64>(4, 0.0).expect("small");
        let found = levels(&grid, 0..16, |i, j| j < i);
        assert!((0..16).all(|i| found[i] as usize == i / 4 + i % 4), "diagonals of the grid");
    }
}
