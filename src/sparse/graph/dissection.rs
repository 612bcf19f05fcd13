//! Nested dissection: an order with little fill, whose elimination tree is wide.
//!
//! ```text
//!   order(rows):   two halves by METIS, a separator S that covers all entries between them
//!                  order(first half without S), order(second half without S), S
//! ```
//!
//! The separator is the smallest set of rows that covers the entries between the halves, which König's theorem finds from a maximum matching
//! of the rows that have such entries. Parts of a few rows are put in order by minimum degree.
//!
//! Source: A. George, "Nested dissection of a regular finite element mesh", SIAM J. Numer. Anal. 10 (1973); A. Pothen, H. D. Simon, K.-P. Liou,
//! "Partitioning sparse matrices with eigenvectors of graphs", SIAM J. Matrix Anal. Appl. 11 (1990) (separators by covers).

use std::collections::{HashMap, HashSet};

use super::matching::{NONE, maximum_matching};
use super::minimum_degree::minimum_degree;
use super::partition::parts_of_graph;
use crate::error::Result;
use crate::sparse::Csr;

/// Rows of a part that is not cut again.
const SMALL: usize = 256;

/// Work that is left: rows to be put in order, or rows in the order in which they follow.
enum Task {
    Dissect(Vec<u32>),
    Follow(Vec<u32>),
}

/// The order of the rows of a graph, which has the neighbours of each.
pub(crate) fn nested_dissection(graph: &[Vec<u32>]) -> Result<Vec<u32>> {
    let mut order = Vec::with_capacity(graph.len());
    let mut place = vec![u32::MAX; graph.len()];
    let mut tasks = vec![Task::Dissect((0..graph.len() as u32).collect())];
    while let Some(task) = tasks.pop() {
        let rows = match task {
            Task::Follow(rows) => {
                order.extend(rows);
                continue;
            }
            Task::Dissect(rows) => rows,
        };
        let part = induced(graph, &rows, &mut place);
        let cut = match rows.len() {
            0..=SMALL => None,
            _ => Some(separated(&part, &parts_of_graph(&part, 2, true)?)?),
        };
        // A dense part has no separator worth the name.
        let cut = cut.filter(|[first, second, _]| !first.is_empty() && !second.is_empty());
        let named = |rows_of: Vec<u32>| rows_of.into_iter().map(|l| rows[l as usize]).collect::<Vec<u32>>();
        match cut {
            None => order.extend(named(minimum_degree(with_outside(graph, &rows, part), rows.len()))),
            Some([first, second, separator]) => {
                tasks.push(Task::Follow(named(separator)));
                tasks.push(Task::Dissect(named(second)));
                tasks.push(Task::Dissect(named(first)));
            }
        }
    }
    Ok(order)
}

/// The graph of some rows, numbered as they stand there. `place` holds the largest number for every row, before and after.
fn induced(graph: &[Vec<u32>], rows: &[u32], place: &mut [u32]) -> Vec<Vec<u32>> {
    rows.iter().zip(0..).for_each(|(i, l)| place[*i as usize] = l);
    let inside = |i: &u32| {
        let neighbours = graph[*i as usize].iter().map(|j| place[*j as usize]);
        let mut found: Vec<u32> = neighbours.filter(|l| *l != u32::MAX).collect();
        found.sort_unstable();
        found
    };
    let part = rows.iter().map(inside).collect();
    rows.iter().for_each(|i| place[*i as usize] = u32::MAX);
    part
}

/// The graph `part` of some rows with all their other neighbours behind them, which lie in separators: they count for the degrees of the rows.
fn with_outside(graph: &[Vec<u32>], rows: &[u32], mut part: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let inside: HashSet<u32> = rows.iter().copied().collect();
    let mut outside: HashMap<u32, u32> = HashMap::new();
    for (l, i) in rows.iter().enumerate() {
        for j in graph[*i as usize].iter().filter(|j| !inside.contains(j)) {
            let place = *outside.entry(*j).or_insert(part.len() as u32);
            if place as usize == part.len() {
                part.push(Vec::new());
            }
            part[l].push(place);
            part[place as usize].push(l as u32);
        }
    }
    part
}

/// The rows of both halves that are not in the separator, and those that are; ascending.
fn separated(graph: &[Vec<u32>], halves: &[u32]) -> Result<[Vec<u32>; 3]> {
    let n = graph.len();
    // Entries from rows of the first half to rows of the second.
    let across = |i: usize| graph[i].iter().copied().filter(move |j| halves[i] == 0 && halves[*j as usize] == 1);
    let joined = Csr::from_rows(n, n, |i, row| row.extend(across(i).map(|j| (j, 1.0f32))))?;
    let row_of = maximum_matching(&joined);
    let mut matched = vec![false; n];
    row_of.iter().filter(|row| **row != NONE).for_each(|row| matched[*row] = true);
    // Rows of either half on paths that begin at an unmatched row of the first and take every second entry from the matching.
    let mut reached = vec![false; n];
    let mut queue: Vec<usize> = (0..n).filter(|i| !matched[*i] && across(*i).next().is_some()).collect();
    queue.iter().for_each(|i| reached[*i] = true);
    while let Some(i) = queue.pop() {
        for j in across(i).map(|j| j as usize) {
            if !reached[j] {
                reached[j] = true;
                let next = row_of[j];
                if next != NONE && !reached[next] {
                    reached[next] = true;
                    queue.push(next);
                }
            }
        }
    }
    let mut sets = [Vec::new(), Vec::new(), Vec::new()];
    for i in 0..n {
        let joined = if halves[i] == 0 { across(i).next().is_some() } else { row_of[i] != NONE };
        let covers = joined && (halves[i] == 0) != reached[i];
        sets[if covers { 2 } else { halves[i] as usize }].push(i as u32);
    }
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::super::permutation::neighbours;
    use super::*;
    use crate::sparse::gallery;

    /// Entries of the Cholesky factor with rows in this order.
    fn fill(graph: &[Vec<u32>], order: &[u32]) -> usize {
        let mut place = vec![0; graph.len()];
        order.iter().enumerate().for_each(|(k, i)| place[*i as usize] = k);
        let mut below: Vec<std::collections::BTreeSet<usize>> = vec![Default::default(); graph.len()];
        let mut entries = 0;
        for k in 0..graph.len() {
            let own = graph[order[k] as usize].iter().map(|j| place[*j as usize]).filter(|j| *j > k);
            let mut column = std::mem::take(&mut below[k]);
            column.extend(own);
            entries += column.len();
            // Entries of a column pass on to the first of them.
            if let Some(first) = column.pop_first() {
                below[first].extend(column);
            }
        }
        entries
    }

    #[test]
    fn separators_separate_and_fill_is_small() {
        let grid = neighbours(&gallery::poisson_2d::<f64>(40, 0.0).unwrap());
        let halves: Vec<u32> = (0..1600).map(|i| u32::from(i % 40 >= 20)).collect();
        let [first, second, separator] = separated(&grid, &halves).unwrap();
        assert_eq!((first.len() + second.len(), separator.len()), (1560, 40));
        let of = |i: u32| first.binary_search(&i).is_ok();
        assert!(second.iter().all(|i| grid[*i as usize].iter().all(|j| !of(*j))));
        let order = nested_dissection(&grid).unwrap();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().zip(0..).all(|(i, k)| *i == k) && sorted.len() == 1600);
        let natural: Vec<u32> = (0..1600).collect();
        let (dissected, degree) = (fill(&grid, &order), fill(&grid, &minimum_degree(grid.clone(), grid.len())));
        let natural = fill(&grid, &natural);
        assert!(2 * dissected < natural && 10 * dissected < 12 * degree, "{natural}, {dissected}, {degree}");
    }

    #[test]
    fn odd_graphs_are_put_in_order() {
        let none: Vec<Vec<u32>> = vec![Vec::new(); 300];
        let full: Vec<Vec<u32>> = (0..200).map(|i| (0..200).filter(|j| *j != i).collect()).collect();
        let star: Vec<Vec<u32>> = (0..300).map(|i| if i == 0 { (1..300).collect() } else { vec![0] }).collect();
        for graph in [none, full, star, Vec::new(), vec![Vec::new()]] {
            let mut order = nested_dissection(&graph).unwrap();
            order.sort_unstable();
            assert!(order.iter().zip(0..).all(|(i, k)| *i == k) && order.len() == graph.len());
        }
    }
}
