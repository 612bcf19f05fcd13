//! Files of scans.

use std::path::Path;

use super::count_files::{CountFiles, Order};
use super::counts::Counts;
use super::geometry::{Angles, Geometry};
use super::scan::Scan;
use crate::error::{Error, Result};
use crate::io::{FileKind, npy};

impl Scan {
    /// Reads the scans of a file: of a challenge (`.mat`, [`Scan::read_htc`]), which says how it was taken, of an array
    /// (`.npy`, [`Scan::read_npy`]), or of counts with their fields (DataExchange in HDF5, [`Counts::read`]).
    ///
    /// # Errors
    /// [`Error::Format`] for a file of another kind, which it names; as the three.
    pub fn read(path: impl AsRef<Path>, geometry: &Geometry) -> Result<Vec<Self>> {
        let path = path.as_ref();
        match FileKind::of(path)? {
            Some(FileKind::Npy) => Self::read_npy(path, geometry),
            Some(FileKind::Mat5) | None => Ok(vec![Self::read_htc(path)?]),
            Some(FileKind::Hdf5) => {
                let files = CountFiles { projections: path.into(), ..CountFiles::default() };
                Ok(Counts::read(&files, &mut |_, _| {})?.integrals(geometry)?.scans)
            }
            Some(other) => Err(other.refused(path, "a scan (.mat, .h5) or a sinogram (.npy)")),
        }
    }

    /// Reads a `.npy` array of `angles × pixels` readings, or of `images × angles × pixels`: one scan for each image.
    ///
    /// # Errors
    /// As [`Scan::read_npy_in`].
    pub fn read_npy(path: impl AsRef<Path>, geometry: &Geometry) -> Result<Vec<Self>> {
        Self::read_npy_in(path, geometry, None)
    }

    /// Reads a `.npy` array of `angles × pixels` readings, or of three dimensions: `images × angles × pixels` ([`Order::Slices`], also if nothing is
    /// said), or `angles × images × pixels` ([`Order::Angles`]). There is one scan for each image.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Format`] for a file that is no such array; [`Error::NotFinite`]; [`Error::Option`] named `order` for an array whose order
    /// must be said: of many images of one angle or two, or with as many angles in `geometry` as images; as [`Scan::new`].
    pub fn read_npy_in(path: impl AsRef<Path>, geometry: &Geometry, order: Option<Order>) -> Result<Vec<Self>> {
        /// Angles of an image that are asked about.
        const FEW: usize = 2;
        let path = path.as_ref();
        let array = npy::read(path)?;
        let refuse = |reason: String| Error::Format { what: path.display().to_string(), reason };
        let (images, angles, pixels) = match (&array.shape[..], order) {
            (&[angles, pixels], None | Some(Order::Slices)) => (1, angles, pixels),
            (&[images, pixels], Some(Order::Angles)) => (images, 1, pixels),
            (&[images, angles, pixels], None | Some(Order::Slices)) => (images, angles, pixels),
            (&[angles, images, pixels], Some(Order::Angles)) => (images, angles, pixels),
            _ => {
                let found = array.shape.len();
                let reason = "a sinogram has 2 (angles x pixels) or 3 (images first)";
                return Err(refuse(format!("{found} dimensions; {reason}")));
            }
        };
        if images == 0 || array.data.is_empty() {
            return Err(refuse("the array holds no sinogram".into()));
        }
        let named = match &geometry.angles {
            Angles::List(list) => Some(list.len()),
            Angles::Arc(_) | Angles::ArcFrom { .. } => None,
        };
        let few = images > angles && angles <= FEW && named != Some(angles);
        if order.is_none() && images > 1 && (few || (named == Some(images) && images != angles)) {
            let reason = format!(
                "{images} x {angles} x {pixels} readings: name what comes first, angles ({images} angles, {angles} slices) or slices \
                 ({images} slices, {angles} angles); counts need a flat field too"
            );
            return Err(Error::Option { name: "order", reason });
        }
        if let Some(index) = array.data.iter().position(|v| !v.is_finite()) {
            let mut place: Vec<String> = Vec::new();
            let mut rest = index;
            for length in array.shape.iter().rev() {
                place.insert(0, (rest % length).to_string());
                rest /= length;
            }
            let what = format!("{} [{}]", path.display(), place.join(", "));
            return Err(Error::NotFinite { what, index });
        }
        let scanner = geometry.scanner(angles, pixels)?;
        let all = array.data;
        let of_image = |image: usize| -> Vec<f64> {
            let row = |k: usize| match order {
                Some(Order::Angles) => k * images + image,
                _ => image * angles + k,
            };
            (0..angles).flat_map(|k| &all[row(k) * pixels..][..pixels]).copied().collect()
        };
        (0..images).map(|image| Self::new(scanner.clone(), of_image(image))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Beam, Grid, Scanner};

    #[test]
    fn the_order_of_an_array_is_asked_for_where_it_is_not_clear() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        let data: Vec<f64> = (0..60).map(f64::from).collect();
        npy::write(&path, &[5, 2, 6], &data).expect("written");
        let geometry = Geometry::default();
        let error = Scan::read_npy(&path, &geometry).expect_err("two angles").to_string();
        assert!(error.contains("angles (5 angles, 2 slices) or slices (5 slices, 2 angles)"), "{error}");
        let read = |order| Scan::read_npy_in(&path, &geometry, Some(order)).expect("said");
        let slices = read(Order::Slices);
        assert_eq!((slices.len(), &slices[1].sinogram[..]), (5, &data[12..24]));
        let angles = read(Order::Angles);
        assert_eq!((angles.len(), angles[1].scanner.angles.len()), (2, 5));
        assert_eq!((angles[1].sinogram[0], angles[1].sinogram[6], angles[0].sinogram[29]), (6.0, 18.0, 53.0));
        // Angles that are named say it.
        let list = |count: usize| Geometry { angles: Angles::List(vec![1.0; count]), ..Geometry::default() };
        assert_eq!(Scan::read_npy(&path, &list(2)).expect("two angles").len(), 5);
        assert!(matches!(Scan::read_npy(&path, &list(5)), Err(Error::Option { name: "order", .. })));
        // A number that is none is found where it stands in the file.
        let mut bad = data.clone();
        bad[5 * 6 + 3] = f64::NAN;
        npy::write(&path, &[5, 2, 6], &bad).expect("written");
        for order in [Order::Angles, Order::Slices] {
            let error = Scan::read_npy_in(&path, &geometry, Some(order)).expect_err("NaN").to_string();
            assert!(error.contains("a.npy [2, 1, 3]") && error.contains("index 33"), "{error}");
        }
    }

    #[test]
    fn arrays_are_scans_with_their_geometry() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        let data: Vec<f64> = (0..24).map(f64::from).collect();
        npy::write(&path, &[2, 3, 4], &data).expect("written");
        let geometry = Geometry { angles: Angles::Arc(-360.0), pitch: 0.5, offset: 0.25, ..Geometry::default() };
        let scans = Scan::read_npy(&path, &geometry).expect("two scans");
        assert_eq!(scans.len(), 2);
        let scanner = Scanner {
            beam: Beam::Parallel,
            pixels: 4,
            pitch: 0.5,
            offset: 0.25,
            angles: vec![0.0, -120.0, -240.0],
        };
        assert_eq!((&scans[1].scanner, &scans[1].sinogram[..], scans[1].field), (&scanner, &data[12..], 2.0));
        assert_eq!(scans[0].grid(8), Grid { side: 8, pixel: 0.25 });
        assert_eq!(scans[0].clone().with_field(4.0).binned(2).expect("valid").grid(8).pixel, 0.5);
        for shape in [&[24][..], &[1, 2, 3, 4], &[0, 4]] {
            npy::write(&path, shape, &data[..shape.iter().product()]).expect("written");
            assert!(matches!(Scan::read_npy(&path, &geometry), Err(Error::Format { .. })), "{shape:?}");
        }
    }
}
