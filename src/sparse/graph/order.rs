//! Orders of the rows and columns of a matrix.
//!
//! The places of a factorisation depend on the order of the rows: reverse Cuthill-McKee keeps neighbours close together, minimum degree
//! makes little fill, colours let rows of one colour be solved for at the same time.

use std::collections::{HashMap, hash_map};
use std::fmt::{Display, Formatter, Result as FmtResult};
use std::str::FromStr;

use super::minimum_degree::minimum_degree;
use super::permutation::{Permutation, neighbours};
use crate::error::{Error, Result, named, same_length};
use crate::number::Real;
use crate::sparse::{AsCsr, Csr};

/// A way of ordering rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ordering {
    /// Rows as they are.
    #[default]
    Natural,
    /// Reverse Cuthill-McKee, by name `rcm`: neighbours close together, so that entries lie near the diagonal. Source: A. George, J. W. H.
    /// Liu, "Computer solution of large sparse positive definite systems", 1981, 4.3.
    ReverseCuthillMckee,
    /// Approximate minimum degree, by name `amd`: little fill in factors. Source: P. R. Amestoy, T. A. Davis, I. S. Duff, "An approximate
    /// minimum degree ordering algorithm", SIAM J. Matrix Anal. Appl. 17 (1996), without its supervariables.
    MinimumDegree,
    /// Nested dissection by METIS, by name `nd`: little fill, and rows that need few others before them. It needs the feature `metis`. As for
    /// [`Partition::metis`](crate::sparse::Partition::metis), another version of METIS may find another order.
    NestedDissection,
    /// Rows of the first colour, then those of the second, ...: no two rows of one colour are joined by an entry.
    Colours,
}

impl Ordering {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Natural,
        Self::ReverseCuthillMckee,
        Self::MinimumDegree,
        #[cfg(feature = "metis")]
        Self::NestedDissection,
        Self::Colours,
    ];

    /// Name, as [`Ordering::from_str`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::ReverseCuthillMckee => "rcm",
            Self::MinimumDegree => "amd",
            Self::NestedDissection => "nd",
            Self::Colours => "colours",
        }
    }
}

impl Display for Ordering {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(self.name())
    }
}

impl FromStr for Ordering {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        named("order", name, Self::ALL, Self::name)
    }
}

impl Permutation {
    /// An order of the rows of the square matrix `a`. Only the places of its entries count, those of `A` and `A'` together.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square; [`Error::Option`] when METIS fails, or is not there.
    pub fn of<T: Real>(a: &(impl AsCsr<T> + ?Sized), ordering: Ordering) -> Result<Self> {
        let a = &*a.as_csr()?;
        same_length("columns of a square matrix", a.rows(), a.cols())?;
        let order = match ordering {
            Ordering::Natural => (0..a.rows() as u32).collect(),
            Ordering::ReverseCuthillMckee => reverse_cuthill_mckee(&neighbours(a)),
            Ordering::MinimumDegree => minimum_degree(neighbours(a), a.rows()),
            #[cfg(feature = "metis")]
            Ordering::NestedDissection => super::dissection::nested_dissection(&neighbours(a))?,
            #[cfg(not(feature = "metis"))]
            Ordering::NestedDissection => {
                let reason = "this build has no METIS (feature metis), which nested dissection needs".into();
                return Err(Error::Option { name: "order", reason });
            }
            Ordering::Colours => {
                let colours = colours(a);
                let mut order: Vec<u32> = (0..a.rows() as u32).collect();
                order.sort_by_key(|i| colours[*i as usize]);
                order
            }
        };
        Ok(Self::of_parts(order))
    }
}

/// The order of [`Ordering::ReverseCuthillMckee`] of a symmetric matrix.
pub(crate) fn of_symmetric<T: Real>(a: &Csr<T>) -> Vec<u32> {
    reverse_cuthill_mckee(&neighbours(a))
}

fn reverse_cuthill_mckee(graph: &[Vec<u32>]) -> Vec<u32> {
    let n = graph.len();
    let degree = |i: u32| graph[i as usize].len();
    let mut by_degree: Vec<u32> = (0..n as u32).collect();
    by_degree.sort_by_key(|i| degree(*i));
    let mut order = Vec::with_capacity(n);
    let mut seen = vec![false; n];
    for root in by_degree {
        if seen[root as usize] {
            continue;
        }
        let root = far_away(graph, root);
        let mut next = order.len();
        order.push(root);
        seen[root as usize] = true;
        while next < order.len() {
            let mut found: Vec<u32> =
                graph[order[next] as usize].iter().copied().filter(|j| !seen[*j as usize]).collect();
            found.sort_by_key(|j| degree(*j));
            found.iter().for_each(|j| seen[*j as usize] = true);
            order.extend(found);
            next += 1;
        }
    }
    order.reverse();
    order
}

/// A row of the last level of a breadth-first search from `root`, repeated while the levels grow in number.
fn far_away(graph: &[Vec<u32>], mut root: u32) -> u32 {
    let mut most = 0;
    for _ in 0..4 {
        let mut level = HashMap::from([(root, 0)]);
        let mut queue = vec![root];
        let mut next = 0;
        while next < queue.len() {
            let depth = level[&queue[next]] + 1;
            for j in &graph[queue[next] as usize] {
                if let hash_map::Entry::Vacant(entry) = level.entry(*j) {
                    entry.insert(depth);
                    queue.push(*j);
                }
            }
            next += 1;
        }
        let deepest = level[&queue[queue.len() - 1]];
        let ends = queue.iter().copied().filter(|i| level[i] == deepest);
        let end = ends.min_by_key(|i| graph[*i as usize].len()).unwrap_or(root);
        if deepest <= most {
            break;
        }
        (most, root) = (deepest, end);
    }
    root
}

/// A colour for each row, such that rows joined by an entry, either way, differ: the least one free, in the order of
/// the rows (first fit).
pub(crate) fn colours<T: Real>(a: &Csr<T>) -> Vec<u32> {
    let transposed = a.transpose();
    let mut colours = vec![u32::MAX; a.rows()];
    // The last row that cannot have each colour: a neighbour has it.
    let mut taken_by: Vec<usize> = Vec::new();
    for i in 0..a.rows() {
        for neighbours in [a.row(i).0, transposed.row(i).0] {
            for j in neighbours {
                let colour = colours[*j as usize];
                if colour != u32::MAX {
                    taken_by[colour as usize] = i;
                }
            }
        }
        let mut free = 0;
        while free < taken_by.len() && taken_by[free] == i {
            free += 1;
        }
        if free == taken_by.len() {
            taken_by.push(i);
        }
        colours[i] = free as u32;
    }
    colours
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sparse::gallery;

    /// Entries of the Cholesky factor of `a`, which is symmetric, row by row of the elimination.
    fn fill<T: Real>(a: &Csr<T>) -> usize {
        let n = a.rows();
        let mut columns: Vec<BTreeSet<usize>> =
            (0..n).map(|i| a.row(i).0.iter().map(|j| *j as usize).filter(|j| *j > i).collect()).collect();
        for k in 0..n {
            let below = columns[k].clone();
            if let Some(parent) = below.first() {
                columns[*parent].extend(below.iter().skip(1));
            }
        }
        n + columns.iter().map(BTreeSet::len).sum::<usize>()
    }

    fn bandwidth<T: Real>(a: &Csr<T>) -> usize {
        let apart = |i: usize| a.row(i).0.iter().map(move |j| (*j as usize).abs_diff(i));
        (0..a.rows()).flat_map(apart).max().unwrap_or(0)
    }

    /// A permutation of pseudo-random numbers.
    fn shuffled(n: usize) -> Permutation {
        let mut random = gallery::Random::new(7);
        let mut order: Vec<u32> = (0..n as u32).collect();
        (1..n).rev().for_each(|k| order.swap(k, (random.uniform() * (k + 1) as f64) as usize));
        Permutation::new(order).unwrap()
    }

    #[test]
    fn every_order_is_a_permutation_and_can_be_undone() {
        let unsymmetric = gallery::random::<f64>(90, 90, 300, 3).unwrap();
        let apart = Csr::<f64>::from_triplets(6, 6, &[(0, 0, 1.0), (2, 4, 1.0), (4, 2, 1.0)]).unwrap();
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        for a in [&gallery::poisson_2d::<f64>(9, 0.0).unwrap(), &unsymmetric, &apart, &none] {
            for ordering in Ordering::ALL {
                let order = Permutation::of(a, *ordering).unwrap();
                assert_eq!(Permutation::new(order.order().to_vec()).unwrap(), order, "{ordering}");
                let x: Vec<f64> = (0..a.rows()).map(|i| i as f64 - 3.0).collect();
                assert_eq!(order.undo(&order.apply(&x).unwrap()).unwrap(), x);
                let permuted = a.permuted(&order, &order).unwrap();
                let back = permuted.permuted(&order.inverse(), &order.inverse()).unwrap();
                assert_eq!(&back, a, "{ordering}");
                // P A P' P x = P A x, but for the order of additions.
                let product = permuted.product(&order.apply(&x).unwrap()).unwrap();
                let wanted = order.apply(&a.product(&x).unwrap()).unwrap();
                assert!(product.iter().zip(&wanted).all(|(p, w)| (p - w).abs() < 1e-12));
                assert_eq!(ordering.name().parse::<Ordering>().unwrap(), *ordering);
            }
        }
    }

    #[test]
    fn orders_do_what_they_are_for() {
        let side = 20;
        let grid = gallery::poisson_2d::<f64>(side, 0.0).unwrap();
        let shuffled = shuffled(side * side);
        let a = grid.permuted(&shuffled, &shuffled).unwrap();
        let by = |ordering| {
            let order = Permutation::of(&a, ordering).unwrap();
            a.permuted(&order, &order).unwrap()
        };
        let close = by(Ordering::ReverseCuthillMckee);
        assert!(bandwidth(&close) <= side + 1 && bandwidth(&a) > 10 * side, "{}", bandwidth(&close));
        let [amd, rcm, given] = [&by(Ordering::MinimumDegree), &close, &a].map(fill);
        // Minimum degree makes 31 n log2 n / 4 entries in theory; a band makes n side.
        assert!(amd < 3 * rcm / 4 && rcm < given, "{amd} {rcm} {given}");
        let coloured = by(Ordering::Colours);
        let colours = colours(&coloured);
        assert!(colours.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    /// A star has its centre eliminated last, so that there is no fill.
    #[test]
    fn minimum_degree_makes_no_fill_where_none_is_needed() {
        let n = 40;
        let star = Csr::<f64>::from_rows(n, n, |i, row| match i {
            0 => row.extend((0..n as u32).map(|j| (j, 1.0))),
            _ => row.extend([(0, 1.0), (i as u32, 1.0)]),
        });
        let star = star.unwrap();
        let order = Permutation::of(&star, Ordering::MinimumDegree).unwrap();
        assert_eq!(fill(&star.permuted(&order, &order).unwrap()), 2 * n - 1);
        let path = Csr::<f64>::from_rows(n, n, |i, row| {
            row.extend((i.saturating_sub(1)..(i + 2).min(n)).map(|j| (j as u32, 1.0)));
        });
        let path = path.unwrap();
        let order = Permutation::of(&path, Ordering::MinimumDegree).unwrap();
        assert_eq!(fill(&path.permuted(&order, &order).unwrap()), 2 * n - 1);
    }

    #[test]
    fn what_is_no_order_is_refused() {
        for (order, row) in [(vec![0, 1, 1], 2), (vec![0, 3, 1], 1)] {
            assert!(matches!(Permutation::new(order), Err(Error::Structure { row: Some(k), .. }) if k == row));
        }
        let wide = gallery::random::<f64>(3, 4, 6, 1).unwrap();
        assert!(matches!(Permutation::of(&wide, Ordering::Natural), Err(Error::Shape { .. })));
        let three = Permutation::new(vec![2, 0, 1]).unwrap();
        assert!(matches!(wide.permuted(&three, &three), Err(Error::Shape { .. })));
        assert!(three.apply(&[1.0]).is_err());
        assert!("nested".parse::<Ordering>().is_err());
    }

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
}
