//! Levels: rows of a triangle that can be solved for at the same time.

use crate::number::Real;
use crate::sparse::Csr;

/// The level of each row: one more than the highest of the rows it needs, which are those for which `needs(i, j)` holds.
/// `order` names the rows such that what a row needs comes before it.
pub(crate) fn levels<T: Real>(
    a: &Csr<T>,
    order: impl Iterator<Item = usize>,
    needs: impl Fn(usize, usize) -> bool,
) -> Vec<u32> {
    let mut levels = vec![0u32; a.rows()];
    for i in order {
        let mut level = 0;
        for j in a.row(i).0 {
            let j = *j as usize;
            if needs(i, j) && levels[j] >= level {
                level = levels[j] + 1;
            }
        }
        levels[i] = level;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

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
