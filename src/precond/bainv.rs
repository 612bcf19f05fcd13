//! Approximate inverses over a partition: BAINV.
//!
//! ```text
//!   M = S diag(Z_1 D_1^-1 Z_1', Z_2 D_2^-1 Z_2', ...) S = W W'     over the parts, the entries between parts dropped
//!
//!   in each part, rows in their own order, with its block of S A S:
//!   for i = 0 .. m-1:                                  Z is the identity at first
//!       p_j = <row i of the block, z_j>  for j >= i
//!       z_j = z_j - (p_j / p_i) z_i      for j > i
//! ```
//!
//! AINV without dropping is exact in each block. Blocks do not depend on each other. `S` scales the diagonal to 1. Sums run over
//! ascending rows in `f64`; entries of `z` are rounded to the precision of the matrix.
//!
//! Source: dedecek-2013, chapter 4 (blocks) and algorithm 6 (AINV).

use rayon::prelude::*;

use super::ainv::{bad_pivot, unit_diagonal};
use super::{Square, check_symmetric, product_of_matrices, square};
use crate::device::Device;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::number::{Real, per_number};
use crate::operator::{LinearOperator, SharedOperator, Structure};
use crate::sparse::{Csr, Partition};
use crate::vector::Vector;

/// Most rows of a part. A part takes the cube of its rows in operations.
const MOST_ROWS: usize = 4096;

/// The inverse of the blocks that a partition leaves of a symmetric positive definite matrix, `W W'` as an operator. Two products, with
/// no order of rows to keep. Its bits are the same everywhere. It is made on the host, a part by a thread.
///
/// # Cost
/// Held: `W` and its transposed, and a vector. A product reads one of them each, and three vectors. Set-up: for a part of `m` rows, `m^2`
/// numbers and about `m^3 / 3` additions and multiplications.
#[derive(Debug)]
pub struct Bainv<T: Real> {
    product: Square<T>,
    w: Matrix<T>,
    entries: usize,
}

per_number! {
    fn new<T>(device: &Device, a: &Csr<T>, partition: &Partition, narrow: bool) -> Result<Bainv<T>> = Bainv::new_here;
}

impl<T: Real> Bainv<T> {
    /// Makes it for the symmetric positive definite matrix `a` over `partition`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for a matrix that is not square, or a partition of another number of rows, [`Error::Option`](crate::Error::Option) for a part of more than
    /// 4096 rows, [`Error::NotFinite`](crate::Error::NotFinite), [`Error::Structure`](crate::Error::Structure) with the row of an entry that is not symmetric or of a pivot that is not
    /// positive; [`Error::Memory`](crate::Error::Memory).
    pub fn new(device: &Device, a: &Csr<T>, partition: &Partition) -> Result<Self> {
        new(device, a, partition, false)
    }

    /// [`Bainv::new`], with a factor that is rounded to `f32` in the end and stored so, for solves in `f64`: see
    /// [`Csr::rounded_to_single`].
    ///
    /// # Errors
    /// As [`Bainv::new`]; [`Error::Structure`](crate::Error::Structure) for a factor that is out of the range of `f32`.
    pub fn in_single(device: &Device, a: &Csr<T>, partition: &Partition) -> Result<Self> {
        new(device, a, partition, true)
    }

    fn new_here(device: &Device, a: &Csr<T>, partition: &Partition, single: bool) -> Result<Self> {
        let factor = factor(device, a, partition)?;
        let (w, product) = square(device, &factor, single)?;
        Ok(Self { product, w, entries: factor.nnz() })
    }

    /// The root `W` of the approximate inverse, which shares its entries: what preconditions least squares from the right, if this was made
    /// from [`Csr::normal_matrix`].
    pub fn root(&self) -> SharedOperator<T> {
        (&self.w).into()
    }

    /// Entries of `Z` with its diagonal, and of `W`.
    pub fn entries(&self) -> usize {
        self.entries
    }
}

/// `W = S Z D^-1/2` by rows.
fn factor<T: Real>(device: &Device, a: &Csr<T>, partition: &Partition) -> Result<Csr<T>> {
    partition.check(a)?;
    check_symmetric(a)?;
    let sizes = partition.sizes_up_to(MOST_ROWS)?;
    let scale = unit_diagonal(a)?;
    let a = &a.scaled(&scale, &scale)?;
    // Twice over: the factor and its transposed.
    let most: usize = sizes.iter().map(|m| m * (m + 1)).sum();
    device.check_memory(0, &[("approximate inverse", (most * (4 + T::PRECISION.bytes())) as u64)])?;
    let members = partition.members();
    let made: Vec<Result<Block<T>>> = members.par_iter().map(|rows| Block::new(a, rows, partition)).collect();
    let blocks = made.into_iter().collect::<Result<Vec<_>>>()?;
    let mut place = vec![0; a.rows()];
    for rows in &members {
        rows.iter().enumerate().for_each(|(l, row)| place[*row as usize] = l);
    }
    Csr::from_rows(a.rows(), a.cols(), |i, entries| {
        let part = partition.of()[i] as usize;
        blocks[part].row(scale[i], place[i], &members[part], entries);
    })
}

/// A part and its inverse.
struct Block<T> {
    /// Entries of `Z`, dense, row by row: what lies below the diagonal is 0.
    z: Vec<T>,
    /// Square roots of the pivots.
    roots: Vec<f64>,
}

impl<T: Real> Block<T> {
    /// The block of the ascending `rows`, which are a part.
    fn new(a: &Csr<T>, rows: &[u32], partition: &Partition) -> Result<Self> {
        let m = rows.len();
        let mut z = vec![T::default(); m * m];
        (0..m).for_each(|l| z[l * m + l] = T::from_f64(1.0));
        let mut roots = Vec::with_capacity(m);
        let mut p = vec![0.0; m];
        for (i, row) in rows.iter().enumerate() {
            let row = *row as usize;
            let (columns, values) = a.row(row);
            p[i..].fill(0.0);
            let inside = |j: &u32| partition.of()[*j as usize] == partition.of()[row];
            for (j, value) in columns.iter().zip(values).filter(|(j, _)| inside(j)) {
                let Ok(l) = rows.binary_search(j) else { continue };
                // z_j has entries in rows up to j alone.
                let value = value.to_f64();
                let first = l.max(i);
                let terms = &z[l * m + first..(l + 1) * m];
                p[first..].iter_mut().zip(terms).for_each(|(sum, z)| *sum += value * z.to_f64());
            }
            let pivot = p[i];
            if !(pivot > 0.0 && pivot.is_finite()) {
                return Err(bad_pivot(row, pivot, "the matrix is not positive definite, or too nearly singular"));
            }
            roots.push(pivot.sqrt());
            p[i + 1..].iter_mut().for_each(|p| *p /= pivot);
            for l in 0..=i {
                let own = z[l * m + i].to_f64();
                if own != 0.0 {
                    let entries = &mut z[l * m + i + 1..(l + 1) * m];
                    let update = |z: &mut T, c: &f64| *z = T::from_f64(z.to_f64() - c * own);
                    entries.iter_mut().zip(&p[i + 1..]).for_each(|(z, c)| update(z, c));
                }
            }
        }
        Ok(Self { z, roots })
    }

    /// Adds row `l` of `W` to `entries`.
    fn row(&self, scale: f64, l: usize, rows: &[u32], entries: &mut Vec<(u32, T)>) {
        let m = rows.len();
        for j in l..m {
            let z = self.z[l * m + j].to_f64();
            if z != 0.0 {
                entries.push((rows[j], T::from_f64(scale * z / self.roots[j])));
            }
        }
    }
}

product_of_matrices!(Bainv, symmetric);

#[cfg(test)]
mod tests {
    use super::super::ainv;
    use super::super::ainv::AinvOptions;
    use super::*;
    use crate::error::Error;
    use crate::sparse::gallery;

    fn device() -> Device {
        Device::host()
    }

    /// `a` without the entries between parts.
    fn masked<T: Real>(a: &Csr<T>, partition: &Partition) -> Csr<T> {
        let of = partition.of();
        let masked = Csr::from_rows(a.rows(), a.cols(), |i, row| {
            let entries = a.row(i).0.iter().copied().zip(a.row(i).1.iter().copied());
            row.extend(entries.filter(|(j, _)| of[*j as usize] == of[i]));
        });
        masked.unwrap()
    }

    fn it_is_ainv_of_the_blocks<T: Real>() {
        let scattered =
            |n: u32, parts: u32| Partition::new((0..n).map(|i| i * 7 % parts).collect(), parts as usize);
        for (a, partition) in [
            (gallery::poisson_2d::<T>(12, 0.0).unwrap(), Partition::natural(144, 5).unwrap()),
            (gallery::poisson_2d::<T>(12, 0.0).unwrap(), Partition::natural(144, 1).unwrap()),
            (gallery::block_poisson::<T>(8, 3).unwrap(), scattered(192, 4).unwrap()),
        ] {
            let found = factor(&device(), &a, &partition).unwrap();
            let wanted = ainv::factor(&device(), &masked(&a, &partition), AinvOptions::ainv(0.0)).unwrap().0;
            assert_eq!(found.indices(), wanted.indices());
            let bits = |w: &Csr<T>| w.values().iter().map(|v| v.to_f64().to_bits()).collect::<Vec<_>>();
            assert!(bits(&found) == bits(&wanted), "{partition}");
        }
    }

    #[test]
    fn it_is_ainv_of_the_blocks_bit_for_bit() {
        it_is_ainv_of_the_blocks::<f32>();
        it_is_ainv_of_the_blocks::<f64>();
    }

    #[test]
    fn faults_name_what_is_wrong() {
        let csr = |entries: &[(usize, usize, f64)]| Csr::from_triplets(2, 2, entries).unwrap();
        let one = Partition::natural(2, 1).unwrap();
        let row = |a: &Csr<f64>| match factor(&device(), a, &one) {
            Err(Error::Structure { row, .. }) => row,
            other => panic!("{other:?}"),
        };
        let indefinite = csr(&[(0, 0, 1.0), (0, 1, 3.0), (1, 0, 3.0), (1, 1, 1.0)]);
        assert_eq!(row(&indefinite), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (1, 1, -1.0)])), Some(1));
        assert_eq!(row(&csr(&[(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.25), (1, 1, 1.0)])), Some(0));
        // Apart, the entries that make it indefinite are dropped.
        assert_eq!(factor(&device(), &indefinite, &Partition::natural(2, 2).unwrap()).unwrap().nnz(), 2);
        let nan = csr(&[(0, 0, f64::NAN), (1, 1, 1.0)]);
        assert!(matches!(factor(&device(), &nan, &one), Err(Error::NotFinite { .. })));
        let three = Partition::natural(3, 1).unwrap();
        assert!(matches!(factor(&device(), &indefinite, &three), Err(Error::Shape { .. })));
        let wide = gallery::poisson_2d::<f64>(65, 0.0).unwrap();
        let all = Partition::natural(4225, 1).unwrap();
        assert!(matches!(factor(&device(), &wide, &all), Err(Error::Option { name: "partition", .. })));
        let none = Csr::<f64>::from_triplets(0, 0, &[]).unwrap();
        assert_eq!(factor(&device(), &none, &Partition::natural(0, 1).unwrap()).unwrap().nnz(), 0);
    }
}
