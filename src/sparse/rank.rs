//! The structural rank: the most entries of which no two share a row or a column.

use super::Csr;
use crate::real::Real;

/// The largest rank that any matrix with entries in these places can have: a maximum matching of rows and columns.
///
/// Cost: one pass where a greedy choice does, in bad cases rows × entries.
///
/// Source: I. S. Duff, "On algorithms for obtaining a maximum transversal", ACM Trans. Math. Softw. 7(3), 1981.
pub(crate) fn structural<T: Real>(a: &Csr<T>) -> usize {
    let columns_of = |i: usize| {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).filter(|(_, v)| v.to_f64() != 0.0).map(|(j, _)| *j as usize)
    };
    let mut row_of = vec![usize::MAX; a.cols()];
    let mut visited = vec![usize::MAX; a.cols()];
    // Rows that found no free column at first sight are matched by augmenting paths afterwards.
    let unmatched: Vec<usize> = (0..a.rows())
        .filter(|i| match columns_of(*i).find(|j| row_of[*j] == usize::MAX) {
            Some(j) => {
                row_of[j] = *i;
                false
            }
            None => true,
        })
        .collect();
    let mut rank = a.rows() - unmatched.len();
    for start in unmatched {
        if rank == a.cols() {
            break;
        }
        // A path of rows and the columns by which each is left; depth first.
        let mut path = vec![(start, columns_of(start).collect::<Vec<_>>(), 0)];
        while let Some((_, columns, next)) = path.last_mut() {
            if let Some(free) = columns.iter().copied().find(|j| row_of[*j] == usize::MAX) {
                // Every row of the path takes the column by which it was left, the last one the free one.
                let mut column = free;
                for k in (0..path.len()).rev() {
                    row_of[column] = path[k].0;
                    if let Some((_, columns, next)) = k.checked_sub(1).map(|k| &path[k]) {
                        column = columns[next - 1];
                    }
                }
                break;
            }
            match columns.get(*next) {
                None => {
                    path.pop();
                }
                Some(j) => {
                    *next += 1;
                    if visited[*j] != start {
                        visited[*j] = start;
                        let row = row_of[*j];
                        path.push((row, columns_of(row).collect(), 0));
                    }
                }
            }
        }
        rank += usize::from(!path.is_empty());
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery::Random;

    #[test]
    fn ranks_of_patterns() {
        let rank = |rows: usize, cols: usize, entries: &[(usize, usize)]| {
            let entries: Vec<(usize, usize, f64)> = entries.iter().map(|(i, j)| (*i, *j, 1.0)).collect();
            structural(&Csr::from_triplets(rows, cols, &entries).expect("a matrix"))
        };
        assert_eq!(rank(3, 3, &[(0, 0), (1, 0), (2, 0)]), 1);
        assert_eq!(rank(3, 4, &[(0, 1), (1, 2), (2, 3)]), 3);
        // Greedy choices have to be taken back, twice in a row.
        assert_eq!(rank(3, 3, &[(0, 0), (0, 1), (1, 0), (1, 2), (2, 0)]), 3);
        assert_eq!(rank(4, 4, &[(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 0)]), 4);
        assert_eq!(rank(4, 4, &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 3)]), 3);
    }

    #[test]
    fn a_hidden_permutation_is_found() {
        let n = 200;
        let mut random = Random::new(5);
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, random.next() as usize % (i + 1));
        }
        let mut entries: Vec<(usize, usize, f64)> = (0..n).map(|i| (i, order[i], 1.0)).collect();
        entries.extend((0..n).map(|i| (i, i / 3, 2.0)));
        let a = Csr::from_triplets(n, n, &entries).expect("a matrix");
        assert_eq!(structural(&a), n);
    }
}
