//! Memory of preconditioners, as far as it is known before they are made.

use super::Preconditioner;
use super::kind::PreconditionerKind;
use super::named::with_kind;
use crate::device::Device;
use crate::error::Result;
use crate::number::Real;
use crate::sparse::{AsCsr, Csr};

impl Preconditioner {
    /// Most entries that it has if it is made for the square matrix `a` ([`Built::entries`](super::Built::entries)): a number known from
    /// the places of the matrix and the parameters. `None` if only the set-up tells: of those that drop by value without a limit, and of parts.
    /// For a power of the matrix it is a bound: what a row reaches over several others is counted for each of them, up to all columns.
    ///
    /// Cost: a pass over the entries for each power.
    ///
    /// # Errors
    /// [`Error::Structure`](crate::Error::Structure) for a matrix of `sprs` with a dimension beyond 32 bits.
    pub fn most_entries<T: Real>(&self, a: &(impl AsCsr<T> + ?Sized)) -> Result<Option<usize>> {
        Ok(self.most_entries_of(&*a.as_csr()?))
    }

    fn most_entries_of<T: Real>(&self, a: &Csr<T>) -> Option<usize> {
        with_kind!(*self, |kind| kind.most_entries(a))
    }

    /// Most bytes of a device that it takes if it is made for the square matrix `a`, its own vectors among them: what to add to those of
    /// the matrix and of a solver. `None` where [`Preconditioner::most_entries`] is.
    ///
    /// # Errors
    /// As [`Preconditioner::most_entries`].
    pub fn most_bytes<T: Real>(&self, a: &(impl AsCsr<T> + ?Sized)) -> Result<Option<u64>> {
        Ok(self.most_bytes_of(&*a.as_csr()?))
    }

    fn most_bytes_of<T: Real>(&self, a: &Csr<T>) -> Option<u64> {
        let entries = self.most_entries_of(a)?;
        Some(with_kind!(*self, |kind| kind.bytes::<T>(entries, a.rows())))
    }

    /// Fails before anything is made, if it cannot fit beside the matrix.
    pub(super) fn check_fits<T: Real>(&self, device: &Device, a: &Csr<T>) -> Result<()> {
        // A limit may be far above what is kept: only places of the matrix are sure to be taken.
        let sure = with_kind!(*self, |kind| if kind.is_sure() { kind.most_entries(a) } else { None });
        let bytes = sure.map_or(0, |entries| (entries as u64).saturating_mul(T::PRECISION.bytes() as u64));
        let held = (a.nnz() as u64).saturating_mul(T::PRECISION.bytes() as u64);
        device.check_total(held, &[(self.name(), bytes)])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::device::tests::with_memory;
    use crate::error::Error;
    use crate::precond::Built;
    use crate::precond::support::{
        bytes_of_places, check_places, neighbourhood, neighbourhood_below, neighbourhood_within, reached,
        surely_reached,
    };
    use crate::sparse::gallery;

    /// A matrix with one full row and one full column.
    fn arrow(n: usize, down: bool) -> Csr<f64> {
        Csr::from_rows(n, n, |i, row| {
            let full = if down { n - 1 } else { 0 };
            let mut put = |j: usize| row.push((j as u32, if i == j { n as f64 } else { 1.0 / (2 + i + j) as f64 }));
            match i == full {
                true => (0..n).for_each(put),
                false => {
                    let mut places = [i, full];
                    places.sort_unstable();
                    places.into_iter().for_each(&mut put);
                }
            }
        })
        .unwrap()
    }

    /// Matrices whose rows differ much in length, and in what they leave to a lower triangle.
    fn matrices() -> Vec<Csr<f64>> {
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
        let given = [
            "ict=3:0",
            "ilut=2:0",
            "adaptive-fsai=30:3",
            "block-jacobi=5",
            "spai=1",
            "fsai=1,f32",
            "fsai=2",
            "fsai=4",
            "spai=2",
            "sainv=0:1",
            "sainv=0.1:2",
            "ainv=0:3",
            "ldl-ainv=0.1:2",
            "nonsymmetric-ainv=0:1",
            "nonsymmetric-ainv=0.1:2",
        ];
        let given = given.map(|name| name.parse::<Preconditioner>().unwrap());
        let mut told = 0;
        for which in Preconditioner::ALL.iter().chain(&given) {
            for a in matrices() {
                let Some(entries) = which.most_entries(&a).unwrap() else { continue };
                let Built { operator, entries: made, .. } = which.build(&device, &a).unwrap();
                let (bytes, most) = (operator.bytes(), which.most_bytes(&a).unwrap().unwrap());
                assert!(made <= entries, "{which}: {made} entries of {entries}, {} rows", a.rows());
                assert!(bytes <= most, "{which}: {bytes} bytes of {most}, {} rows", a.rows());
                // A bound that says something; factors of FSAI by diagonals are held once, for both directions.
                let times = if which.name() == "fsai" { 12 } else { 8 };
                let of_power = which.to_string().contains(':') || which.to_string().contains("=4");
                let limited = ["ict", "ilut", "adaptive-fsai", "spai"].contains(&which.name()) || of_power;
                assert!(limited || a.rows() == 1 || most < times * bytes, "{which}: {bytes} bytes of {most}");
                told += 1;
            }
        }
        assert!(told > 100, "{told}");
        let a = &matrices()[0];
        assert_eq!("sainv=0.1".parse::<Preconditioner>().unwrap().most_entries(a).unwrap(), None);
    }

    /// Places of an arrow's square are all places, and each row is told so without being made.
    #[test]
    fn long_rows_are_known_to_the_plan() {
        for down in [true, false] {
            let a = arrow(3000, down);
            let all = 3000 * 3001 / 2;
            let entries = |name: &str| name.parse::<Preconditioner>().unwrap().most_entries(&a).unwrap().unwrap();
            assert_eq!([entries("sainv=0.1:2"), entries("nonsymmetric-ainv=0.1:2")], [all, 2 * all]);
            assert_eq!(entries("fsai=4"), (0..3000).map(|i| 256.min(i + 1)).sum::<usize>());
            assert_eq!(surely_reached(&a, 2).collect::<Vec<_>>(), vec![3000; 3000]);
            // Bits in place of numbers: a fortieth of what the columns alone would take.
            let bits = (0..3000).map(|l| bytes_of_places(3000 - l, 3000 - l)).sum::<u64>();
            assert!(bits < all as u64 / 4, "{bits}");
        }
        // Short rows reach few columns, and the bounds say so.
        let a = gallery::poisson_2d::<f64>(30, 0.0).unwrap();
        assert_eq!(reached(&a, 2).max(), Some(25));
        assert_eq!(surely_reached(&a, 2).max(), Some(5));
        assert!(check_places(&a, 2, None).is_ok());
    }

    #[test]
    fn places_are_the_same_however_they_are_found() {
        for a in matrices() {
            for (i, power) in (0..a.rows()).flat_map(|i| [1, 2, 3, 4].map(|power| (i, power))) {
                // Places by their definition.
                let mut found = vec![false; a.rows()];
                found[i] = true;
                for _ in 0..power {
                    let before: Vec<usize> = (0..a.rows()).filter(|j| found[*j]).collect();
                    before.iter().flat_map(|j| a.row(*j).0).for_each(|j| found[*j as usize] = true);
                }
                let wanted: Vec<u32> = (0..a.rows() as u32).filter(|j| found[*j as usize]).collect();
                assert_eq!(neighbourhood(&a, i, power), wanted);
                let below: Vec<u32> = wanted.iter().copied().filter(|j| *j as usize <= i).collect();
                for most in [3, 20, 256] {
                    let fits = |set: &Vec<u32>| set.len() <= most;
                    assert_eq!(neighbourhood_below(&a, i, power, most), Some(below.clone()).filter(fits));
                    assert_eq!(neighbourhood_within(&a, i, power, most), Some(wanted.clone()).filter(fits));
                }
            }
        }
    }

    /// The time that these took before was that of the square of the number of rows; and whatever they take, they look at the clock.
    #[test]
    fn set_ups_end_at_their_deadline() {
        let (device, a) = (Device::host(), arrow(400, true));
        let over = Some(Instant::now());
        for which in
            Preconditioner::ALL.iter().copied().chain(["ict=20:0", "fsai=4"].map(|name| name.parse().unwrap()))
        {
            for made in [
                which.build_until(&device, &a, None, over).err(),
                which.build_for_least_squares_until(&device, &a, None, over).err(),
            ] {
                let words = made.unwrap().to_string();
                let named =
                    words.contains(&format!("the preconditioner {which} was not made within the time limit"));
                assert!(named || words.contains("not for least squares"), "{which}: {words}");
            }
        }
        let a = arrow(30_000, true);
        for name in ["fsai=4", "spai", "nonsymmetric-ainv=0.1:2", "sainv=0.1:2", "ilut=30000:0", "ict=30000:0"] {
            let (which, clock) = (name.parse::<Preconditioner>().unwrap(), Instant::now());
            let limit = std::time::Duration::from_millis(300);
            let made = which.build_until(&device, &a, None, Some(clock + limit));
            assert!(clock.elapsed() < 20 * limit, "{name}: {:?}", clock.elapsed());
            // A machine may be fast enough.
            assert!(
                matches!(made, Ok(_) | Err(Error::OutOfTime { .. } | Error::Structure { .. })),
                "{name}: {:?}",
                made.err()
            );
        }
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
