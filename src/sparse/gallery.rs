//! Test problems, shared by tests, benchmarks and documentation.

use super::Csr;
use crate::error::{Error, Result, unknown};
use crate::machine;
use crate::number::{Real, per_number};

/// The product of `sides`, if 32-bit indices reach so far.
fn cells(sides: &[usize]) -> Result<usize> {
    let product = sides.iter().try_fold(1usize, |product, side| product.checked_mul(*side));
    product.filter(|n| *n <= u32::MAX as usize).ok_or_else(|| Error::Structure {
        what: format!("a grid of {sides:?} exceeds 32-bit row and column indices"),
        row: None,
    })
}

per_number! {
    /// The 5-point Laplacian on a `side × side` grid with zero boundary: 4 on the diagonal plus `shift`, -1 for each
    /// neighbour. Symmetric positive definite for `shift >= 0`; `side²` rows, `5 side² - 4 side` entries.
    ///
    /// # Errors
    /// [`Error::Structure`] when the grid exceeds 32-bit indices.
    pub fn poisson_2d<T>(side: usize, shift: f64) -> Result<Csr<T>> = poisson_2d_here;
}

fn poisson_2d_here<T: Real>(side: usize, shift: f64) -> Result<Csr<T>> {
    let (one, diagonal) = (T::from_f64(-1.0), T::from_f64(4.0 + shift));
    let n = cells(&[side, side])?;
    Csr::from_rows(n, n, |i, row| {
        let (y, x) = (i / side, i % side);
        let mut add = |present: bool, j: usize, value: T| {
            if present {
                row.push((j as u32, value));
            }
        };
        add(y > 0, i.wrapping_sub(side), one);
        add(x > 0, i.wrapping_sub(1), one);
        add(true, i, diagonal);
        add(x + 1 < side, i + 1, one);
        add(y + 1 < side, i + side, one);
    })
}

per_number! {
    /// A seeded random `rows × cols` matrix with exactly `nnz` entries spread evenly over the rows, at random columns, with
    /// values in `(0, 1)`.
    ///
    /// # Errors
    /// [`Error::Structure`] when a dimension exceeds 32-bit indices.
    pub fn random<T>(rows: usize, cols: usize, nnz: usize, seed: u64) -> Result<Csr<T>> = random_here;
}

fn random_here<T: Real>(rows: usize, cols: usize, nnz: usize, seed: u64) -> Result<Csr<T>> {
    let before = |i: usize| (nnz as u128 * i as u128 / rows.max(1) as u128) as usize;
    Csr::from_rows(rows, cols, |i, row| {
        // Begun at a drawn number: sequences that begin at equal distances would be one sequence, a step apart in each row.
        let mut random = Random::new(Random::new(seed ^ (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).next());
        let length = (before(i + 1) - before(i)).min(cols);
        while row.len() < length {
            let column = (random.next() % cols as u64) as u32;
            if row.iter().all(|e| e.0 != column) {
                row.push((column, T::from_f64(random.uniform())));
            }
        }
        row.sort_unstable_by_key(|e| e.0);
    })
}

per_number! {
    /// The 7-point Laplacian on a `side × side × side` grid with zero boundary: 6 on the diagonal, -1 for each neighbour.
    /// `side³` rows, `7 side³ - 6 side²` entries.
    ///
    /// # Errors
    /// [`Error::Structure`] when the grid exceeds 32-bit indices.
    pub fn poisson_3d<T>(side: usize) -> Result<Csr<T>> = poisson_3d_here;
}

fn poisson_3d_here<T: Real>(side: usize) -> Result<Csr<T>> {
    let (one, diagonal) = (T::from_f64(-1.0), T::from_f64(6.0));
    let (n, plane) = (cells(&[side; 3])?, cells(&[side; 2])?);
    Csr::from_rows(n, n, |i, row| {
        let (z, y, x) = (i / plane, i / side % side, i % side);
        let lower = [(z > 0, plane), (y > 0, side), (x > 0, 1)];
        row.extend(lower.iter().filter(|n| n.0).map(|n| ((i - n.1) as u32, one)));
        row.push((i as u32, diagonal));
        let upper = [(x + 1 < side, 1), (y + 1 < side, side), (z + 1 < side, plane)];
        row.extend(upper.iter().filter(|n| n.0).map(|n| ((i + n.1) as u32, one)));
    })
}

per_number! {
    /// First differences along `axis` (0 to the right, 1 down, 2 deeper) of a `width × height × depth` image, `x` the fastest: the next
    /// value less this one, an empty row where there is none. The transposed matrix is the negative divergence.
    ///
    /// # Errors
    /// [`Error::Structure`] when the grid exceeds 32-bit indices, or there is no such axis.
    pub fn differences<T>(shape: [usize; 3], axis: usize) -> Result<Csr<T>> = differences_here;
}

fn differences_here<T: Real>(shape: [usize; 3], axis: usize) -> Result<Csr<T>> {
    let n = cells(&shape)?;
    let Some(side) = shape.get(axis).copied() else {
        return Err(Error::Structure { what: format!("{axis} is none of the axes 0, 1 and 2"), row: None });
    };
    let stride: usize = shape[..axis].iter().product();
    Csr::from_rows(n, n, |i, row| {
        if i / stride % side + 1 < side {
            row.extend([(i as u32, T::from_f64(-1.0)), ((i + stride) as u32, T::from_f64(1.0))]);
        }
    })
}

per_number! {
    /// A square matrix of `count` full diagonals spread evenly over `spread` places either side of the main one, with
    /// seeded values in `(0, 1)`: the banded matrices of krueger-westermann-2003, section 6.
    ///
    /// # Errors
    /// [`Error::Structure`] when `n` exceeds 32-bit indices.
    pub fn diagonals<T>(n: usize, count: usize, spread: usize, seed: u64) -> Result<Csr<T>> = diagonals_here;
}

fn diagonals_here<T: Real>(n: usize, count: usize, spread: usize, seed: u64) -> Result<Csr<T>> {
    for (name, value) in [("count", count), ("spread", spread)] {
        // Diagonals further out lie beyond the matrix.
        if value > u32::MAX as usize {
            let what = format!("{value} exceeds 32-bit columns ({name})");
            return Err(Error::Structure { what, row: None });
        }
    }
    let last = count.max(2) as u128 - 1;
    let offset = |d: usize| (2 * spread as u128 * d as u128 / last) as i64 - spread as i64;
    Csr::from_rows(n, n, |i, row| {
        // Begun at a drawn number: sequences that begin at equal distances would be one sequence, a step apart in each row.
        let mut random = Random::new(Random::new(seed ^ (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).next());
        for d in 0..count {
            let value = T::from_f64(random.uniform());
            let column = i as i64 + offset(d);
            if (0..n as i64).contains(&column) {
                row.push((column as u32, value));
            }
        }
        row.dedup_by_key(|e| e.0);
    })
}

per_number! {
    /// The 5-point Laplacian with every entry a full `block × block` block, as in elasticity or flow with several unknowns
    /// a node: `block side²` rows.
    ///
    /// # Errors
    /// [`Error::Structure`] when the grid exceeds 32-bit indices.
    pub fn block_poisson<T>(side: usize, block: usize) -> Result<Csr<T>> = block_poisson_here;
}

fn block_poisson_here<T: Real>(side: usize, block: usize) -> Result<Csr<T>> {
    let n = cells(&[side, side, block])?;
    let nodes = poisson_2d::<T>(side, 0.0)?;
    Csr::from_rows(n, n, |i, row| {
        let (columns, values) = nodes.row(i / block);
        for (column, value) in columns.iter().zip(values) {
            for k in 0..block {
                let weight = if k == i % block { 1.0 } else { 0.1 };
                row.push(((*column as usize * block + k) as u32, T::from_f64(weight) * *value));
            }
        }
    })
}

per_number! {
    /// A matrix by name: `poisson2d:G`, `poisson3d:G`, `blocks:G:SIZE`, `diagonals:N:COUNT:SPREAD`, `random:ROWS:COLS:NNZ`,
    /// `dense:ROWS:COLS`, or random matrices of the sizes of stock-koch-2009: `stock-koch` (3 072 × 81 545 with 854 129 entries) and
    /// `stock-koch-full` (3 000 × 320 000 with 1 800 000).
    ///
    /// # Errors
    /// [`Error::Name`] for a name that is none of these.
    pub fn by_name<T>(name: &str) -> Result<Csr<T>> = by_name_here;
}

fn by_name_here<T: Real>(name: &str) -> Result<Csr<T>> {
    let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
    let numbers: Option<Vec<usize>> =
        if rest.is_empty() { Some(Vec::new()) } else { rest.split(':').map(|n| n.parse().ok()).collect() };
    let entries = match (kind, numbers.as_deref()) {
        ("poisson2d" | "poisson3d", Some(&[side])) => {
            let dimensions = if kind == "poisson2d" { 2 } else { 3 };
            (side as u128).saturating_pow(dimensions).saturating_mul(2 * u128::from(dimensions) + 1)
        }
        ("blocks", Some(&[side, block])) => {
            (side as u128).saturating_mul(block as u128).saturating_pow(2).saturating_mul(5)
        }
        ("diagonals", Some(&[n, count, _])) => (n as u128).saturating_mul(count as u128),
        ("random", Some(&[rows, _, nnz])) => rows.max(nnz) as u128,
        ("dense", Some(&[rows, cols])) => (rows as u128).saturating_mul(cols as u128),
        _ => 0,
    };
    // Arrays of the matrix, and the parts they are joined from.
    let bytes = entries.saturating_mul(2 * (4 + T::PRECISION.bytes() as u128));
    machine::check_memory(format!("the matrix {name}"), u64::try_from(bytes).unwrap_or(u64::MAX))?;
    match (kind, numbers.as_deref()) {
        ("poisson2d", Some(&[side])) => poisson_2d(side, 0.0),
        ("blocks", Some(&[side, block])) => block_poisson(side, block),
        ("poisson3d", Some(&[side])) => poisson_3d(side),
        ("diagonals", Some(&[n, count, spread])) => diagonals(n, count, spread, 2003),
        ("random", Some(&[rows, cols, nnz])) if nnz <= rows.saturating_mul(cols) => random(rows, cols, nnz, 2009),
        ("dense", Some(&[rows, cols])) => Csr::from_rows(rows, cols, |i, row| {
            let mut random = Random::new(i as u64);
            row.extend((0..cols as u32).map(|j| (j, T::from_f64(random.uniform()))));
        }),
        ("stock-koch", Some(&[])) => random(3_072, 81_545, 854_129, 2009),
        ("stock-koch-full", Some(&[])) => random(3_000, 320_000, 1_800_000, 2009),
        _ => Err(unknown(
            "gallery",
            name,
            "poisson2d:G, poisson3d:G, blocks:G:SIZE, diagonals:N:COUNT:SPREAD, random:ROWS:COLS:NNZ, \
                 dense:ROWS:COLS, stock-koch, stock-koch-full",
        )),
    }
}

/// A small seeded generator (SplitMix64) with the same sequence on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)] // endless: an iterator would make every caller handle an end
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in the open interval (0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_rows_have_nothing_to_do_with_each_other() {
        let a = random::<f64>(200, 5000, 200 * 50, 7).expect("small");
        let rows: Vec<_> = (0..200).map(|i| a.row(i).0.iter().collect::<std::collections::BTreeSet<_>>()).collect();
        // 50 of 5000 columns: half a column in common is to be expected, and 10 in two of a million pairs.
        let common = rows.windows(2).map(|pair| pair[0].intersection(&pair[1]).count());
        assert!(common.clone().sum::<usize>() < 200 && common.max() < Some(10));
        let values: std::collections::BTreeSet<u64> = a.values().iter().map(|v| v.to_bits()).collect();
        assert_eq!(values.len(), a.nnz());
    }

    #[test]
    fn the_laplacian_is_symmetric_and_sums_to_its_boundary() {
        let a = poisson_2d::<f64>(7, 0.0).expect("small");
        assert_eq!(a.nnz(), 5 * 49 - 4 * 7);
        assert_eq!(a.transpose(), a);
        let sum: f64 = a.values().iter().sum();
        assert_eq!(sum, 4.0 * 7.0);
    }

    #[test]
    fn matrices_have_names() {
        let nnz = |name: &str| by_name::<f32>(name).map(|a| (a.rows(), a.cols(), a.nnz())).ok();
        assert_eq!(nnz("poisson2d:7"), Some((49, 49, 217)));
        assert_eq!(nnz("poisson3d:4"), Some((64, 64, 7 * 64 - 6 * 16)));
        assert_eq!(nnz("dense:3:5"), Some((3, 5, 15)));
        assert_eq!(nnz("diagonals:100:10:20").map(|n| n.0), Some(100));
        assert_eq!(nnz("random:5:6:7"), Some((5, 6, 7)));
        for foreign in ["poisson2d", "poisson2d:x", "random:2:2:5", "mystery:3", ""] {
            assert_eq!(nnz(foreign), None, "{foreign}");
        }
        let a = poisson_3d::<f64>(5).expect("small");
        assert_eq!(a.transpose(), a);
    }

    #[test]
    fn sizes_that_wrap_are_refused() {
        for name in [
            "poisson2d:4294967296",
            "poisson2d:65536",
            "poisson3d:2642246",
            "poisson3d:18446744073709551615",
            "blocks:4294967296:4",
            "blocks:3:18446744073709551615",
            "diagonals:5:18446744073709551615:3",
            "diagonals:5:3:18446744073709551615",
            "dense:4294967295:4294967295",
            "dense:18446744073709551615:2",
            "random:18446744073709551615:5:0",
        ] {
            assert!(by_name::<f64>(name).is_err(), "{name}");
        }
        for side in [1 << 16, 1 << 32] {
            assert!(poisson_2d::<f64>(side, 0.0).is_err(), "{side}");
        }
        assert!(poisson_3d::<f64>(1 << 22).is_err());
        // The largest grid with 32-bit indices is one, whatever memory it takes.
        assert_eq!(cells(&[65535, 65535]).expect("in reach"), 65535 * 65535);
    }

    #[test]
    fn random_matrices_have_the_entries_asked_for() {
        let a = random::<f32>(101, 40, 1234, 7).expect("small");
        assert_eq!((a.rows(), a.cols(), a.nnz()), (101, 40, 1234));
        assert_eq!(a, random::<f32>(101, 40, 1234, 7).expect("small"));
        assert_ne!(a, random::<f32>(101, 40, 1234, 8).expect("small"));
        assert!(a.longest_row() - a.offsets()[1] <= 1);
    }

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let mut random = Random::new(1);
        let sample: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = sample.iter().sum::<f64>() / 2e4;
        let variance = sample.iter().map(|x| x * x).sum::<f64>() / 2e4;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
