//! Sparsity patterns of powers of a matrix: row `i` of the `k`-th has the columns that a path of up to `k` entries leads to from `i`.

use std::time::Instant;

use super::set_up::in_time;
use crate::error::Result;
use crate::number::Real;
use crate::sparse::Csr;
use crate::{machine, threads};

/// Columns of row `i` of `a^power`, as far as its places go, and `i`; ascending.
pub(crate) fn neighbourhood<T: Real>(a: &Csr<T>, i: usize, power: usize) -> Vec<u32> {
    let mut found = vec![i as u32];
    let mut newest = found.clone();
    for _ in 0..power {
        let mut next: Vec<u32> = newest.iter().flat_map(|j| a.row(*j as usize).0).copied().collect();
        only_new(&mut next, &found);
        merge(&mut found, &next);
        // A long row reaches all columns: higher powers have no others.
        if next.is_empty() || found.len() == a.cols() {
            break;
        }
        newest = next;
    }
    found
}

/// The [`neighbourhood`], if it has at most `most` columns.
pub(crate) fn neighbourhood_within<T: Real>(a: &Csr<T>, i: usize, power: usize, most: usize) -> Option<Vec<u32>> {
    neighbourhood_up_to(a, i, power, (a.cols(), most))
}

/// Columns of the [`neighbourhood`] up to `i`, if there are at most `most` of them.
pub(crate) fn neighbourhood_below<T: Real>(a: &Csr<T>, i: usize, power: usize, most: usize) -> Option<Vec<u32>> {
    neighbourhood_up_to(a, i, power, (i, most))
}

/// Columns of the [`neighbourhood`] up to `last`, if there are at most `most` of them. The search is left as soon as there are more: a long row
/// that many others meet does not take the time of its length for each of them.
fn neighbourhood_up_to<T: Real>(
    a: &Csr<T>,
    i: usize,
    power: usize,
    (last, most): (usize, usize),
) -> Option<Vec<u32>> {
    let below = |set: &[u32]| set.partition_point(|j| *j as usize <= last);
    let mut found = vec![i as u32];
    let mut newest = found.clone();
    for _ in 0..power {
        let (mut next, mut limit): (Vec<u32>, usize) = (Vec::new(), 4 * most);
        for part in newest.iter().flat_map(|j| a.row(*j as usize).0.chunks(most)) {
            next.extend_from_slice(part);
            if next.len() >= limit {
                only_new(&mut next, &found);
                if below(&found) + below(&next) > most {
                    return None;
                }
                limit = (4 * most).max(2 * next.len());
            }
        }
        only_new(&mut next, &found);
        if below(&found) + below(&next) > most {
            return None;
        }
        merge(&mut found, &next);
        if next.is_empty() || found.len() == a.cols() {
            break;
        }
        newest = next;
    }
    found.truncate(below(&found));
    Some(found)
}

/// Sorts `next`, and takes out what is there twice or in `found`. Stable sorts are fast on rows that follow each other, each ascending.
fn only_new(next: &mut Vec<u32>, found: &[u32]) {
    next.sort();
    next.dedup();
    next.retain(|j| found.binary_search(j).is_err());
}

fn merge(found: &mut Vec<u32>, next: &[u32]) {
    found.extend(next);
    found.sort();
}

/// Columns from the diagonal on in which a row may have entries.
pub(crate) enum RowPlaces {
    /// Ascending columns.
    Few(Vec<u32>),
    /// A bit for each column from the diagonal on, where these take less.
    Many(Vec<u64>),
}

impl RowPlaces {
    /// Places of all rows of `a^power`, if they fit the memory that is free.
    pub(crate) fn of_rows<T: Real>(a: &Csr<T>, power: usize, deadline: Option<Instant>) -> Result<Vec<Self>> {
        check_places(a, power, deadline)?;
        let of_row = |_, l: usize| {
            in_time(deadline, "an approximate inverse")?;
            let mut found = neighbourhood(a, l, power);
            found.drain(..found.partition_point(|j| (*j as usize) < l));
            found.shrink_to_fit();
            Ok(Self::new(found, l, a.rows()))
        };
        threads::try_map(0..a.rows(), 1, of_row)
    }

    /// Columns `found`, ascending, of row `l` of `n`.
    fn new(found: Vec<u32>, l: usize, n: usize) -> Self {
        let words = (n - l).div_ceil(64);
        if found.len() <= 2 * words {
            return Self::Few(found);
        }
        let mut bits = vec![0u64; words];
        found.iter().map(|j| *j as usize - l).for_each(|at| bits[at / 64] |= 1 << (at % 64));
        Self::Many(bits)
    }

    /// Tells if column `j` of row `l` is one of them.
    #[inline]
    pub(crate) fn has(&self, l: u32, j: u32) -> bool {
        match self {
            Self::Few(columns) => columns.binary_search(&j).is_ok(),
            Self::Many(bits) => {
                let at = (j - l) as usize;
                bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
            }
        }
    }
}

/// Most bytes that the places of a row take, of `entries` from the diagonal on, with `behind` columns from there.
pub(crate) fn bytes_of_places(entries: u64, behind: u64) -> u64 {
    (4 * entries).min(8 * behind.div_ceil(64)) + size_of::<RowPlaces>() as u64
}

pub(crate) fn sum(counts: impl Iterator<Item = usize>) -> usize {
    counts.fold(0, usize::saturating_add)
}

/// A bound of the columns that each row of `a^power` reaches, its own among them.
pub(crate) fn reached<T: Real>(a: &Csr<T>, power: usize) -> impl Iterator<Item = usize> {
    let mut found = vec![1usize; a.rows()];
    for _ in 0..power {
        let next = |i: usize| {
            let columns = a.row(i).0;
            // A row reaches its own column without an entry on the diagonal too.
            let own = usize::from(columns.binary_search(&(i as u32)).is_err());
            sum(columns.iter().map(|j| found[*j as usize])).saturating_add(own).min(a.cols())
        };
        found = threads::numbers(0..a.rows(), 1024, |_, i| next(i));
    }
    found.into_iter()
}

/// Columns that each row of `a^power` reaches for sure: those of the longest of the rows that it meets.
pub(crate) fn surely_reached<T: Real>(a: &Csr<T>, power: usize) -> impl Iterator<Item = usize> {
    let mut found = vec![1usize; a.rows()];
    for step in 0..power {
        let next = |i: usize| match step {
            0 => a.row(i).0.len(),
            _ => a.row(i).0.iter().map(|j| found[*j as usize]).max().unwrap_or(1),
        };
        found = threads::numbers(0..a.rows(), 1024, |_, i| next(i));
    }
    found.into_iter()
}

/// Fails if the places of `a^power` from the diagonal on do not fit the memory that is free. What is sure to be there is refused at once, and
/// what is sure to fit is not counted.
pub(crate) fn check_places<T: Real>(a: &Csr<T>, power: usize, deadline: Option<Instant>) -> Result<()> {
    let n = a.cols();
    let what = || format!("the places of the matrix to the power of {power}");
    let bytes = |counts: &mut dyn Iterator<Item = usize>| {
        counts
            .enumerate()
            .map(|(l, count)| bytes_of_places(count as u64, (n - l) as u64))
            .fold(0, u64::saturating_add)
    };
    // Columns before the diagonal do not count: all of them may be among those that a row reaches.
    let least = bytes(&mut surely_reached(a, power).enumerate().map(|(l, count)| count.saturating_sub(l)));
    machine::check_memory(what(), least)?;
    if machine::check_memory(what(), bytes(&mut reached(a, power).enumerate().map(|(l, count)| count.min(n - l))))
        .is_ok()
    {
        return Ok(());
    }
    let count = |_, l: usize| {
        in_time(deadline, "an approximate inverse")?;
        let found = neighbourhood(a, l, power);
        Ok(found.len() - found.partition_point(|j| (*j as usize) < l))
    };
    let counts = threads::try_map(0..a.rows(), 1, count)?;
    machine::check_memory(what(), bytes(&mut counts.into_iter()))
}
