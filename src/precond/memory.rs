//! Memory of preconditioners, as far as it is known before they are made.

use super::Preconditioner;
use super::fsai::MOST_PLACES;
use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::sparse::Csr;

/// Places of a stored format for each entry: those of slices are padded up to this.
const PADDING: f64 = 1.1;
/// Bytes for each row beside its entries: offsets, order of the rows, lists of long ones.
const BYTES_OF_ROW: usize = 24;

impl Preconditioner {
    /// Most entries that it has if it is made for the square matrix `a` ([`Built::entries`](super::Built::entries)): a number known from
    /// the places of the matrix and the parameters. `None` if only the set-up tells: of those that drop by value without a limit, and of parts and powers.
    ///
    /// Cost: a pass over the entries at most.
    pub fn most_entries<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        let (rows, nnz) = (a.rows(), a.nnz());
        match *self {
            Self::Jacobi => Some(rows),
            Self::BlockJacobi { block, by_graph: false } => Some(rows.saturating_mul(block)),
            Self::GaussSeidel { .. } | Self::Sor { .. } | Self::Ssor { .. } | Self::Chebyshev { .. } => Some(nnz),
            // A diagonal that is not there is made.
            Self::Ic0 { .. } | Self::Ilu0 { .. } | Self::Ic0Sweeps { .. } | Self::Ilu0Sweeps { .. } => {
                Some(nnz.saturating_add(rows))
            }
            Self::Ict { most, .. } | Self::Ilut { most, .. } => {
                // Both triangles and the diagonal.
                Some(rows.saturating_mul(2 * most.min(rows) + 1))
            }
            Self::Fsai { power: 1, .. } => Some(lower_entries(a, MOST_PLACES)),
            Self::AdaptiveFsai { places, .. } => {
                let most = places.steps.saturating_mul(places.per_step).saturating_add(1);
                Some((0..rows).map(|i| most.min(i + 1)).sum())
            }
            Self::Spai { power: 1, .. } => Some(nnz.saturating_add(rows)),
            Self::BlockJacobi { .. }
            | Self::Sainv { .. }
            | Self::Ainv { .. }
            | Self::NonsymmetricAinv { .. }
            | Self::Bainv { .. }
            | Self::Fsai { .. }
            | Self::Spai { .. } => None,
        }
    }

    /// Most bytes of a device that it takes if it is made for the square matrix `a`, its own vectors among them: what to add to those of
    /// the matrix and of a solver. `None` where [`Preconditioner::most_entries`] is.
    pub fn most_bytes<T: Real>(&self, a: &Csr<T>) -> Option<u64> {
        let entries = self.most_entries(a)?;
        let value = T::PRECISION.bytes();
        let stored = |copies: usize, vectors: usize| {
            let per_entry = PADDING * (copies * (value + 4)) as f64;
            (per_entry * entries as f64) as u64 + (a.rows() * (copies * BYTES_OF_ROW + vectors * value)) as u64
        };
        Some(match self {
            Self::Jacobi => (2 * entries * value) as u64,
            Self::BlockJacobi { .. } => (entries * value) as u64,
            // An entry of one sweep counts half; a sweep may hold nearly all of them. Rows that wait tell each other their values.
            Self::GaussSeidel { .. } | Self::Sor { .. } | Self::Ssor { .. } => stored(1, 8),
            Self::Ic0 { .. } | Self::Ilu0 { .. } | Self::Ict { .. } | Self::Ilut { .. } => stored(1, 10),
            Self::Ic0Sweeps { .. } | Self::Ilu0Sweeps { .. } => stored(2, 6),
            Self::Spai { .. } => stored(1, 0),
            Self::Chebyshev { .. } => stored(1, 3),
            _ => stored(2, 1),
        })
    }

    /// Fails before anything is made, if it cannot fit beside the matrix.
    pub(super) fn check_fits<T: Real>(&self, device: &Device, a: &Csr<T>) -> Result<()> {
        // A limit may be far above what is kept: only places of the matrix are sure to be taken.
        let sure = match self {
            Self::Ict { .. } | Self::Ilut { .. } | Self::AdaptiveFsai { .. } => None,
            _ => self.most_entries(a),
        };
        let bytes = sure.map_or(0, |entries| (entries as u64).saturating_mul(T::PRECISION.bytes() as u64));
        let held = (a.nnz() as u64).saturating_mul(T::PRECISION.bytes() as u64);
        device.check_total(held, &[(self.name(), bytes)])
    }
}

/// Entries of the lower triangle with the diagonal, at most `most` of a row.
fn lower_entries<T: Real>(a: &Csr<T>, most: usize) -> usize {
    let of_row = |i: usize| {
        let below = a.row(i).0.partition_point(|j| (*j as usize) < i);
        (below + 1).min(most)
    };
    (0..a.rows()).map(of_row).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::with_memory;
    use crate::error::Error;
    use crate::precond::Built;
    use crate::sparse::gallery;

    /// Matrices whose rows differ much in length, and in what they leave to a lower triangle.
    fn matrices() -> Vec<Csr<f64>> {
        let arrow = |n: usize, down: bool| {
            Csr::from_rows(n, n, |i, row| {
                let full = if down { n - 1 } else { 0 };
                for j in 0..n {
                    if i == j {
                        row.push((j as u32, n as f64));
                    } else if i == full || j == full {
                        row.push((j as u32, 1.0 / (2 + i + j) as f64));
                    }
                }
            })
            .unwrap()
        };
        vec![
            gallery::poisson_2d(17, 0.1).unwrap(),
            gallery::poisson_3d(7).unwrap(),
            gallery::block_poisson(6, 3).unwrap(),
            arrow(400, true),
            arrow(400, false),
            Csr::from_triplets(1, 1, &[(0, 0, 3.0)]).unwrap(),
        ]
    }

    #[test]
    fn nothing_takes_more_than_was_told() {
        let device = Device::host();
        let given = ["ict=3:0", "ilut=2:0", "adaptive-fsai=30:3", "block-jacobi=5", "spai=1", "fsai=1,f32"];
        let given = given.map(|name| name.parse::<Preconditioner>().unwrap());
        let mut told = 0;
        for which in Preconditioner::ALL.iter().chain(&given) {
            for a in matrices() {
                let Some(entries) = which.most_entries(&a) else { continue };
                let Built { operator, entries: made, .. } = which.build(&device, &a).unwrap();
                let (bytes, most) = (operator.bytes(), which.most_bytes(&a).unwrap());
                assert!(made <= entries, "{which}: {made} entries of {entries}, {} rows", a.rows());
                assert!(bytes <= most, "{which}: {bytes} bytes of {most}, {} rows", a.rows());
                // A bound that says something.
                let limited = ["ict", "ilut", "adaptive-fsai"].contains(&which.name());
                assert!(limited || a.rows() == 1 || most < 8 * bytes, "{which}: {bytes} bytes of {most}");
                told += 1;
            }
        }
        assert!(told > 60, "{told}");
        let a = &matrices()[0];
        assert_eq!("sainv=0.1".parse::<Preconditioner>().unwrap().most_entries(a), None);
        assert_eq!("fsai=2".parse::<Preconditioner>().unwrap().most_bytes(a), None);
    }

    #[test]
    fn what_cannot_fit_is_refused_before_it_is_made() {
        let a = gallery::poisson_2d::<f64>(20, 0.0).unwrap();
        let held = 8 * a.nnz() as u64;
        for name in ["ic0", "ilu0-sweeps=3:5", "fsai", "spai", "ssor", "block-jacobi=8", "chebyshev=3"] {
            let which: Preconditioner = name.parse().unwrap();
            let refused = which.build(&with_memory(Device::host(), held + 100), &a).err();
            assert!(matches!(&refused, Some(Error::Memory { .. })), "{name}: {refused:?}");
            let words = refused.map(|error| error.to_string()).unwrap_or_default();
            assert!(words.contains(which.name()), "{words}");
            assert!(which.build(&with_memory(Device::host(), 1 << 30), &a).is_ok(), "{name}");
        }
    }
}
