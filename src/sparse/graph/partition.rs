//! Partitions: the rows of a matrix in parts.

use std::fmt::{Display, Formatter, Result as FmtResult};

use crate::error::{Error, Result, same_length};
use crate::number::Real;
use crate::sparse::{AsCsr, Csr, Permutation};

/// The part of each row of a matrix. It is input data: what is computed with a partition depends on the partition, not on how it was
/// found. [`io::read_partition`](crate::io::read_partition) and [`io::write_partition`](crate::io::write_partition) keep it in a file.
///
/// ```
/// use residuum::sparse::{Ordering, Partition, Permutation, gallery};
///
/// let a = gallery::poisson_2d::<f64>(20, 0.0)?;
/// let strips = Partition::natural(400, 4)?;
/// assert_eq!(strips.sizes(), [100; 4]);
/// // Three lines between strips of five rows of the grid, 20 neighbours each, both ways.
/// assert_eq!(strips.cut(&a)?, 3 * 20 * 2);
/// let along = Partition::along(&Permutation::of(&a, Ordering::ReverseCuthillMckee)?, 4)?;
/// assert_eq!(along.sizes(), [100; 4]);
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    of: Vec<u32>,
    parts: usize,
}

impl Partition {
    /// The partition in which row `i` lies in part `of[i]`, of `parts`. A part may be empty.
    ///
    /// # Errors
    /// [`Error::Structure`] with the first row whose part is not below `parts`.
    pub fn new(of: Vec<u32>, parts: usize) -> Result<Self> {
        match of.iter().position(|part| *part as usize >= parts) {
            None => Ok(Self { of, parts }),
            Some(row) => {
                let what = format!("part {} of a partition in {parts} parts, which count from 0", of[row]);
                Err(Error::Structure { what, row: Some(row) })
            }
        }
    }

    /// Consecutive rows in each part, numbers of rows that differ by one at most.
    ///
    /// # Errors
    /// [`Error::Option`] unless there are 1 to `rows` parts.
    pub fn natural(rows: usize, parts: usize) -> Result<Self> {
        check_parts(rows, parts)?;
        Self::new((0..rows).map(|i| (i * parts / rows) as u32).collect(), parts)
    }

    /// Rows that follow each other in an order in each part, numbers of rows that differ by one at most.
    ///
    /// # Errors
    /// As [`Partition::natural`].
    pub fn along(order: &Permutation, parts: usize) -> Result<Self> {
        Self::natural(order.order().len(), parts)?.permuted(&order.inverse())
    }

    /// Parts of about `most` rows, grown one after another. A part begins with the first row that has none, and takes neighbours of its rows
    /// breadth first, in ascending order, up to `most` rows. If it ends with less than a quarter of that, it joins the neighbouring part
    /// with the fewest rows, as long as both have at most five quarters of `most`. Small parts without a neighbour, such as rows without
    /// entries beside the diagonal, share parts with each other. Neighbours of a row are its entries; those of its column do not count.
    ///
    /// Cost: two passes over the entries.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] for parts of no rows.
    pub fn grown<T: Real>(a: &(impl AsCsr<T> + ?Sized), most: usize) -> Result<Self> {
        let a = &*a.as_csr()?;
        same_length("columns of a square matrix", a.rows(), a.cols())?;
        if most == 0 {
            return Err(Error::Option { name: "partition", reason: "parts of no rows".into() });
        }
        const NONE: u32 = u32::MAX;
        let most = most.min(a.rows());
        let mut of = vec![NONE; a.rows()];
        let (mut sizes, mut members) = (Vec::<usize>::new(), Vec::new());
        // The part that small ones without a neighbour share.
        let mut shared = NONE;
        for first in 0..a.rows() {
            if of[first] != NONE {
                continue;
            }
            let part = sizes.len() as u32;
            members.clear();
            members.push(first);
            of[first] = part;
            let mut taken = 0;
            while let Some(row) = members.get(taken).copied().filter(|_| members.len() < most) {
                taken += 1;
                for j in a.row(row).0.iter().map(|j| *j as usize) {
                    if of[j] == NONE && members.len() < most {
                        of[j] = part;
                        members.push(j);
                    }
                }
            }
            let room = |other: u32, up_to: usize| sizes[other as usize] + members.len() <= up_to;
            let others = members.iter().flat_map(|i| a.row(*i).0).map(|j| of[*j as usize]);
            let others = others.filter(|other| ![NONE, part].contains(other));
            let smallest = others.min_by_key(|other| (sizes[*other as usize], *other));
            let joins = if 4 * members.len() >= most {
                None
            } else if smallest.is_some() {
                smallest.filter(|other| room(*other, most + most / 4))
            } else {
                Some(shared).filter(|other| *other != NONE && room(*other, most))
            };
            match joins {
                Some(other) => {
                    members.iter().for_each(|i| of[*i] = other);
                    sizes[other as usize] += members.len();
                }
                None => {
                    sizes.push(members.len());
                    if smallest.is_none() && 4 * members.len() < most {
                        shared = part;
                    }
                }
            }
        }
        Self::new(of, sizes.len().max(1))
    }

    /// Parts of nearly equal size with few entries between them, by METIS (k-way, its default settings, all weights 1) on the places of
    /// `A` and `A'` off the diagonal. METIS is run twice at least, until it finds the same partition twice in a row. Another version of
    /// METIS or of the C library may find another one: keep it in a file where that matters.
    ///
    /// Source: G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput.
    /// 20 (1998); dedecek-2013, 4.3.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square, [`Error::Option`] unless there are 1 to `a.rows()` parts, or for a matrix
    /// of 2³¹ entries and more, and when METIS fails.
    #[cfg(feature = "metis")]
    pub fn metis<T: Real>(a: &(impl AsCsr<T> + ?Sized), parts: usize) -> Result<Self> {
        let a = &*a.as_csr()?;
        same_length("columns of a square matrix", a.rows(), a.cols())?;
        check_parts(a.rows(), parts)?;
        Self::new(parts_of_graph(&super::permutation::neighbours(a), parts, false)?, parts)
    }

    /// Part of each row.
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.of.len()
    }

    /// Rows of each part.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.parts];
        self.of.iter().for_each(|part| sizes[*part as usize] += 1);
        sizes
    }

    /// Rows of each part, none of which may have more than `most`.
    pub(crate) fn sizes_up_to(&self, most: usize) -> Result<Vec<usize>> {
        let sizes = self.sizes();
        match sizes.iter().enumerate().find(|(_, rows)| **rows > most) {
            None => Ok(sizes),
            Some((part, rows)) => {
                let reason = format!("part {part} has {rows} rows, of {most} at most: take more parts");
                Err(Error::Option { name: "partition", reason })
            }
        }
    }

    /// The rows of each part, ascending.
    pub fn members(&self) -> Vec<Vec<u32>> {
        let mut members: Vec<Vec<u32>> = self.sizes().into_iter().map(Vec::with_capacity).collect();
        self.of.iter().zip(0..).for_each(|(part, i)| members[*part as usize].push(i));
        members
    }

    /// The order that takes the rows part by part, those of a part in their own order.
    pub fn permutation(&self) -> Permutation {
        let mut order: Vec<u32> = (0..self.of.len() as u32).collect();
        order.sort_by_key(|i| self.of[*i as usize]);
        Permutation::of_parts(order)
    }

    /// Parts of the rows in another order: row `k` is row `order.order()[k]` of this one, as in [`Csr::permuted`].
    ///
    /// # Errors
    /// [`Error::Shape`] unless the order is as long as the partition.
    pub fn permuted(&self, order: &Permutation) -> Result<Self> {
        Ok(Self { of: order.apply(&self.of)?, parts: self.parts })
    }

    /// Entries of `a` whose row and column lie in different parts.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `a` is square with a row for each of the partition.
    pub fn cut<T: Real>(&self, a: &(impl AsCsr<T> + ?Sized)) -> Result<usize> {
        let a = &*a.as_csr()?;
        self.check(a)?;
        let between = |i: usize| a.row(i).0.iter().filter(|j| self.of[**j as usize] != self.of[i]).count();
        Ok((0..a.rows()).map(between).sum())
    }

    /// Fails unless `a` is square and has the rows of the partition.
    pub(crate) fn check<T: Real>(&self, a: &Csr<T>) -> Result<()> {
        same_length("columns of a square matrix", a.rows(), a.cols())?;
        same_length("rows of a partition", a.rows(), self.of.len())
    }
}

/// The part of each row of a graph, which has the neighbours of each: METIS, by halves of halves or k-way. It is run until it finds the
/// same parts twice in a row.
#[cfg(feature = "metis")]
pub(crate) fn parts_of_graph(graph: &[Vec<u32>], parts: usize, recursive: bool) -> Result<Vec<u32>> {
    use std::sync::{Mutex, PoisonError};
    /// METIS draws from `rand` of the C library, always from the same seed: one call at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    /// Drivers of devices draw from `rand` too, on threads of their own. A partition counts if it was found twice in a row.
    const MOST_TRIES: usize = 10;

    let bad = |reason: String| Error::Option { name: "partition", reason };
    let (mut starts, mut ends) = (vec![0i32], Vec::new());
    for row in graph {
        ends.extend(row.iter().map(|j| *j as i32));
        let end = i32::try_from(ends.len());
        starts.push(end.map_err(|_| bad("METIS counts entries in 31 bits; the matrix has more".into()))?);
    }
    let failed = |e: &dyn Display| bad(format!("METIS: {e}"));
    let find = || -> Result<Vec<i32>> {
        let mut of = vec![0i32; graph.len()];
        let graph = metis::Graph::new(1, parts as i32, &starts, &ends).map_err(|e| failed(&e))?;
        let done = if recursive { graph.part_recursive(&mut of) } else { graph.part_kway(&mut of) };
        done.map_err(|e| failed(&e))?;
        Ok(of)
    };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut of = find()?;
    for _ in 0..MOST_TRIES {
        let again = find()?;
        if again == of {
            break;
        }
        of = again;
    }
    Ok(of.into_iter().map(|part| part as u32).collect())
}

fn check_parts(rows: usize, parts: usize) -> Result<()> {
    if (1..=rows.max(1)).contains(&parts) && u32::try_from(parts).is_ok() {
        return Ok(());
    }
    Err(Error::Option {
        name: "partition",
        reason: format!("{parts} parts of {rows} rows; 1 to {rows} are possible"),
    })
}

/// Parts, and rows of the smallest and the largest.
impl Display for Partition {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let sizes = self.sizes();
        let (least, most) = (sizes.iter().min().unwrap_or(&0), sizes.iter().max().unwrap_or(&0));
        write!(f, "{} parts of {least} to {most} rows", self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::gallery;

    #[test]
    fn parts_are_checked_and_listed() {
        let parts = Partition::new(vec![1, 0, 1, 3], 4).unwrap();
        assert_eq!(parts.sizes(), [1, 2, 0, 1]);
        assert_eq!(parts.members(), [vec![1], vec![0, 2], vec![], vec![3]]);
        assert_eq!(parts.permutation().order(), [1, 0, 2, 3]);
        assert_eq!(parts.to_string(), "4 parts of 0 to 2 rows");
        assert!(matches!(Partition::new(vec![0, 2], 2), Err(Error::Structure { row: Some(1), .. })));
        for parts in [0, 4] {
            assert!(matches!(Partition::natural(3, parts), Err(Error::Option { .. })));
        }
        assert_eq!(Partition::natural(7, 3).unwrap().sizes(), [3, 2, 2]);
        assert_eq!(Partition::natural(0, 1).unwrap().rows(), 0);
        let a = gallery::poisson_2d::<f64>(3, 0.0).unwrap();
        assert!(matches!(parts.cut(&a), Err(Error::Shape { .. })));
        assert_eq!(Partition::natural(9, 1).unwrap().cut(&a).unwrap(), 0);
        assert_eq!(Partition::natural(9, 9).unwrap().cut(&a).unwrap(), a.nnz() - 9);
    }

    #[test]
    fn pieces_of_an_order_follow_it() {
        let order = Permutation::new(vec![3, 1, 0, 2]).unwrap();
        let along = Partition::along(&order, 2).unwrap();
        assert_eq!(along.of(), [1, 0, 1, 0]);
        assert_eq!(along.permuted(&order).unwrap(), Partition::natural(4, 2).unwrap());
        assert!(matches!(Partition::natural(3, 1).unwrap().permuted(&order), Err(Error::Shape { .. })));
    }

    #[test]
    fn parts_grow_breadth_first() {
        let a = gallery::poisson_2d::<f64>(20, 0.0).unwrap();
        let found = Partition::grown(&a, 25).unwrap();
        let sizes = found.sizes();
        assert_eq!(sizes.iter().sum::<usize>(), 400);
        assert!(sizes.iter().all(|size| (1..=31).contains(size)) && (14..=24).contains(&sizes.len()), "{sizes:?}");
        // Rows of a part are joined, and fewer entries are cut than between strips of a line and a quarter.
        assert!(found.cut(&a).unwrap() < Partition::natural(400, 16).unwrap().cut(&a).unwrap());
        assert_eq!(found.of()[..3], [0; 3]);
        // Rows without neighbours share parts.
        let diagonal = Csr::from_rows(30, 30, |i, row| row.push((i as u32, 1.0))).unwrap();
        assert_eq!(Partition::grown(&diagonal, 10).unwrap().sizes(), [10; 3]);
        // A hub takes no more than its part may have.
        let hub = Csr::from_rows(300, 300, |i, row| {
            let of_hub = (1..300).filter(|_| i == 0).map(|j| (j, 1.0));
            row.push((0, 1.0));
            row.extend(of_hub);
            row.extend(Some((i as u32, 2.0)).filter(|_| i > 0));
        });
        let sizes = Partition::grown(&hub.unwrap(), 40).unwrap().sizes();
        assert!(sizes.iter().all(|size| *size <= 50), "{sizes:?}");
        assert_eq!(Partition::grown(&a, usize::MAX).unwrap().parts(), 1);
        assert_eq!(Partition::grown(&Csr::<f64>::from_triplets(0, 0, &[]).unwrap(), 3).unwrap().rows(), 0);
        assert!(matches!(Partition::grown(&a, 0), Err(Error::Option { .. })));
    }

    #[cfg(feature = "metis")]
    #[test]
    fn metis_cuts_fewer_entries_than_an_order() {
        let a = gallery::poisson_2d::<f64>(64, 0.0).unwrap();
        let found = Partition::metis(&a, 16).unwrap();
        assert_eq!((found.parts(), found.rows()), (16, 4096));
        // METIS lets a part grow by 3 % unless told otherwise.
        assert!(found.sizes().iter().all(|size| (200..=264).contains(size)), "{found}");
        assert_eq!(found, Partition::metis(&a, 16).unwrap());
        let order = Permutation::of(&a, crate::sparse::Ordering::ReverseCuthillMckee).unwrap();
        let along = Partition::along(&order, 16).unwrap();
        assert!(2 * found.cut(&a).unwrap() < along.cut(&a).unwrap());
        assert_eq!(Partition::metis(&a, 1).unwrap().parts(), 1);
        assert!(matches!(Partition::metis(&a, 4097), Err(Error::Option { .. })));
        let wide = gallery::random::<f64>(3, 4, 6, 1).unwrap();
        assert!(matches!(Partition::metis(&wide, 2), Err(Error::Shape { .. })));
    }
}
