//! Maximum matchings of the rows and columns of a matrix: a largest set of entries of which no two share a row or a column.

use crate::number::Real;
use crate::sparse::Csr;

/// No row.
pub(crate) const NONE: usize = usize::MAX;

/// The largest rank that any matrix with entries in these places can have: the size of a maximum matching.
pub(crate) fn structural_rank<T: Real>(a: &Csr<T>) -> usize {
    maximum_matching(a).iter().filter(|row| **row != NONE).count()
}

/// The row that each column is matched with, or [`NONE`], in a maximum matching. Entries that are 0 do not count.
///
/// Cost: entries × sqrt(rows) at most, a few passes as a rule.
///
/// Source: J. E. Hopcroft, R. M. Karp, "An n^5/2 algorithm for maximum matchings in bipartite graphs", SIAM J. Comput.
/// 2(4), 1973.
pub(crate) fn maximum_matching<T: Real>(a: &Csr<T>) -> Vec<usize> {
    let rows = a.rows();
    // Entry k of a row, if it is not 0: its column.
    let column = |i: usize, k: usize| {
        let (columns, values) = a.row(i);
        (values[k].to_f64() != 0.0).then(|| columns[k] as usize)
    };
    let length = |i: usize| a.row(i).0.len();
    let mut row_of = vec![NONE; a.cols()];
    let mut matched = vec![false; rows];
    loop {
        // Number of rows that an alternating path from an unmatched one passes through.
        let mut level: Vec<usize> = matched.iter().map(|m| if *m { NONE } else { 0 }).collect();
        let mut queue: Vec<usize> = (0..rows).filter(|i| !matched[*i]).collect();
        let mut at = 0;
        let mut open = false;
        while at < queue.len() {
            let i = queue[at];
            at += 1;
            for j in (0..length(i)).filter_map(|k| column(i, k)) {
                let next = row_of[j];
                if next == NONE {
                    open = true;
                } else if level[next] == NONE {
                    level[next] = level[i] + 1;
                    queue.push(next);
                }
            }
        }
        if !open {
            return row_of;
        }
        // Paths along the levels that share no row, each to a free column.
        let mut looked = vec![0; rows];
        for start in (0..rows).filter(|i| level[*i] == 0) {
            let mut path = vec![start];
            while let Some(&i) = path.last() {
                let Some(j) = (looked[i] < length(i)).then(|| column(i, looked[i])) else {
                    path.pop();
                    if let Some(&before) = path.last() {
                        looked[before] += 1;
                    }
                    continue;
                };
                match j.map(|j| row_of[j]) {
                    Some(NONE) => {
                        for i in &path {
                            if let Some(j) = column(*i, looked[*i]) {
                                row_of[j] = *i;
                            }
                            // It belongs to this path now.
                            looked[*i] = length(*i);
                        }
                        matched[start] = true;
                        break;
                    }
                    Some(next) if level[next] == level[i] + 1 && looked[next] < length(next) => path.push(next),
                    _ => looked[i] += 1,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery::Random;

    #[test]
    fn ranks_of_patterns() {
        let rank = |rows: usize, cols: usize, entries: &[(usize, usize)]| {
            let entries: Vec<(usize, usize, f64)> = entries.iter().map(|(i, j)| (*i, *j, 1.0)).collect();
            structural_rank(&Csr::from_triplets(rows, cols, &entries).expect("a matrix"))
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
        assert_eq!(structural_rank(&a), n);
    }
}
