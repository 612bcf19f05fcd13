//! Counts of a detector, and the line integrals that they mean.

use std::ops::Range;

use super::bad_pixels::{BadPixel, BadPixels, repair};
use super::count_files::{CountFiles, Order, refuse};
use super::fields::means;
use super::geometry::{Angles, Geometry};
use super::parts::Parts;
use super::scan::Scan;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::io::{Stack, Watch};
use crate::threads;

/// Counts of a detector: projections of one or several slices, with what it counts without an object (the flat field) and without a beam (the
/// dark field).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// Angles, slices, pixels.
    pub shape: [usize; 3],
    /// Counts, angle by angle, slice by slice.
    pub counts: Vec<f32>,
    /// Flat field, slice by slice: the mean of its frames.
    pub flat: Vec<f64>,
    /// Dark field, slice by slice: the mean of its frames.
    pub dark: Vec<f64>,
    /// Angles in degrees, if the file says them.
    pub angles: Option<Vec<f64>>,
    /// Number of the first slice in the file.
    pub first: usize,
    /// Pixels that do not count, beside those that are found.
    pub bad_pixels: BadPixels,
    /// Sign that projections are missing from among those that are there, as a gap in the numbers of files does. Then angles that an arc divides evenly
    /// would be wrong, and [`Counts::integrals`] asks for a list of them.
    pub gap: Option<String>,
}

/// Line integrals of counts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Integrals {
    /// A scan for each slice.
    pub scans: Vec<Scan>,
    /// Readings without counts, which were interpolated between their neighbours on the detector.
    pub repaired: usize,
    /// Pixels that do not count in any projection of a slice, slice by slice.
    pub bad_pixels: Vec<BadPixel>,
}

impl Counts {
    /// Counts of `shape` angles, slices and pixels, with the fields of the slices.
    ///
    /// # Errors
    /// [`Error::Shape`] for arrays of other lengths; [`Error::Format`] for a flat field that nowhere counts more than the dark one.
    pub fn new(
        shape: [usize; 3],
        counts: Vec<f32>,
        [flat, dark]: [Vec<f64>; 2],
        angles: Option<Vec<f64>>,
    ) -> Result<Self> {
        let [projections, slices, pixels] = shape;
        let places = slices.checked_mul(pixels).and_then(|n| Some((n, n.checked_mul(projections)?)));
        let Some((field, all)) = places else {
            return Err(refuse("counts", format!("{shape:?} is too large")));
        };
        same_length("counts against angles times slices times pixels", all, counts.len())?;
        same_length("flat field against slices times pixels", field, flat.len())?;
        same_length("dark field against slices times pixels", field, dark.len())?;
        if let Some(angles) = &angles {
            same_length("angles against projections", projections, angles.len())?;
        }
        if all == 0 {
            return Err(refuse("counts", format!("{shape:?} holds no numbers")));
        }
        check_fields(&flat, &dark)?;
        Ok(Self { shape, counts, flat, dark, angles, first: 0, bad_pixels: BadPixels::default(), gap: None })
    }

    /// Reads counts, all at once ([`CountReader`] reads a part at a time). `watch` sees the number of projections read.
    ///
    /// A DataExchange file (HDF5) has them at `exchange/data`, `exchange/data_white`, `exchange/data_dark` and `exchange/theta` (degrees, or
    /// radians if its attribute `units` says so). A NeXus file has angles named `rotation_angle`, one for each picture; where it has numbers named
    /// `image_key` too, these tell projections (0), flat frames (1) and dark frames (2) apart.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Format`] for what cannot be read, for missing fields, which they name, and for slices that are not
    /// there; [`Error::Memory`] if they do not fit this machine; as [`Counts::new`].
    pub fn read(files: &CountFiles, watch: &mut Watch<'_>) -> Result<Self> {
        let mut reader = CountReader::open(files)?;
        reader.read(0..reader.shape()[1], watch)
    }

    /// Scans of all slices: `-log((I - D) / (F - D))` of counts `I`, flat field `F` and dark field `D`. Readings without a logarithm (bad pixels,
    /// see [`BadPixels`], and rays that nothing comes through) are interpolated linearly between their neighbours on the detector. Angles of
    /// `geometry` count only if these counts have none; views by vectors count in any case.
    ///
    /// # Errors
    /// [`Error::Format`] for a projection without a single reading; [`Error::Option`] named `theta` for an arc that is divided although projections are
    /// missing; as [`Geometry::scanner`] and [`Scan::new`].
    pub fn integrals(&self, geometry: &Geometry) -> Result<Integrals> {
        let [projections, slices, pixels] = self.shape;
        if let (Some(gap), None, Angles::Arc(_) | Angles::ArcFrom { .. }) =
            (&self.gap, &self.angles, &geometry.angles)
        {
            let reason =
                format!("{gap}: angles that divide an arc evenly would be wrong; name the angle of each picture");
            return Err(Error::Option { name: "theta", reason });
        }
        let scanner = match &self.angles {
            Some(angles) => geometry.clone().with_list(angles.clone()).scanner(projections, pixels)?,
            None => geometry.scanner(projections, pixels)?,
        };
        self.bad_pixels.check(pixels)?;
        let slice = |_, slice: usize| -> Result<(Scan, usize, Vec<BadPixel>)> {
            let field = slice * pixels..(slice + 1) * pixels;
            let (flat, dark) = (&self.flat[field.clone()], &self.dark[field]);
            let light: Vec<f64> = flat.iter().zip(dark).map(|(flat, dark)| flat - dark).collect();
            let bad = self.bad_pixels.of_slice(self.first + slice, &light);
            let mut alive = vec![true; pixels];
            bad.iter().for_each(|bad| alive[bad.pixel] = false);
            let mut sinogram = vec![0.0; projections * pixels];
            let mut repaired = 0;
            for (k, row) in sinogram.chunks_mut(pixels).enumerate() {
                let counts = &self.counts[(k * slices + slice) * pixels..][..pixels];
                for (j, reading) in row.iter_mut().enumerate() {
                    let passed = (f64::from(counts[j]) - dark[j]) / (flat[j] - dark[j]);
                    *reading = if alive[j] && passed > 0.0 { -libm::log(passed) } else { f64::NAN };
                }
                let nothing = || format!("projection {k} of slice {} has no readings", self.first + slice);
                repaired += repair(row).ok_or_else(|| refuse("counts", nothing()))?;
            }
            Ok((Scan::new(scanner.clone(), sinogram)?, repaired, bad))
        };
        let slices = threads::try_map(0..slices, 1, slice)?;
        let mut all = Integrals { scans: Vec::with_capacity(slices.len()), repaired: 0, bad_pixels: Vec::new() };
        for (scan, repaired, bad) in slices {
            all.scans.push(scan);
            all.repaired += repaired;
            all.bad_pixels.extend(bad);
        }
        Ok(all)
    }
}

/// Counts of files that stay open, whose slices are read a part at a time. Each part reads all projections once more, but `.npy` volumes that are
/// compressed, or whose first index runs fastest, are held from the start.
#[derive(Debug)]
pub struct CountReader {
    pictures: Stack,
    order: Order,
    /// Slices that are wanted.
    wanted: Range<usize>,
    /// Fields of these slices.
    flat: Vec<f64>,
    dark: Vec<f64>,
    angles: Option<Vec<f64>>,
    bad_pixels: BadPixels,
    remarks: Vec<String>,
}

impl CountReader {
    /// Opens the files, and reads the fields.
    ///
    /// # Errors
    /// As [`Counts::read`].
    pub fn open(files: &CountFiles) -> Result<Self> {
        let mut parts = Parts::open(files)?;
        let [count, height, pixels] = parts.projections.shape();
        if count == 1 && height == 1 {
            let reason =
                format!("a row of {pixels} numbers: expected angles x pixels, or angles x slices x pixels");
            return Err(refuse(parts.projections.name(), reason));
        }
        let order = files.order.unwrap_or(if count == 1 { Order::Slices } else { Order::Angles });
        let (projections, rows) = match order {
            Order::Angles => (count, height),
            Order::Slices => (height, count),
        };
        let mut remarks = parts.projections.remarks().to_vec();
        if count == 1 && files.order.is_none() {
            remarks
                .push(format!("the single picture is taken for a sinogram of {height} angles x {pixels} pixels"));
        }
        let wanted = files.slices.clone().unwrap_or(0..rows);
        check_slices(&wanted, rows)?;
        // A frame as it is read and decoded, sums and means.
        let fields = bytes([1, rows, pixels], 20).saturating_add(bytes([1, wanted.len(), pixels], 32));
        let fields = fields.saturating_add(bytes([1, height, pixels], 12));
        Device::host().check_memory(0, &[("a projection and its fields", fields)])?;
        if let Some(angles) = &parts.angles {
            same_length("angles of the file against projections", projections, angles.len())?;
        }
        let size = [rows, pixels];
        let flat = parts.frames("flat", files.flat.as_ref())?;
        let dark = parts.frames("dark", files.dark.as_ref())?;
        let [flat, dark] = means(flat, dark, size, &wanted, &mut remarks)?;
        let flat = flat.ok_or_else(|| {
            refuse(
                parts.projections.name(),
                "no flat field, which counts need: name a file, a data set or a number".into(),
            )
        })?;
        let dark = dark.unwrap_or_else(|| vec![0.0; wanted.len() * pixels]);
        check_fields(&flat, &dark)?;
        files.bad_pixels.check(pixels)?;
        let (angles, bad_pixels) = (parts.angles, files.bad_pixels.clone());
        Ok(Self { pictures: parts.projections, order, wanted, flat, dark, angles, bad_pixels, remarks })
    }

    /// Projections, slices that are wanted, and pixels.
    pub fn shape(&self) -> [usize; 3] {
        let [count, height, pixels] = self.pictures.shape();
        let projections = if self.order == Order::Angles { count } else { height };
        [projections, self.wanted.len(), pixels]
    }

    /// Remarks on the files that a user should know, a line each: frames that were left out, gaps in the numbers of files, the meaning of a
    /// single picture.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Tells if the files name the angles of the projections.
    pub fn has_angles(&self) -> bool {
        self.angles.is_some()
    }

    /// Reads some of the slices that are wanted, counted from the first of them. `watch` sees the number of pictures read.
    ///
    /// # Errors
    /// As [`Counts::read`].
    pub fn read(&mut self, slices: Range<usize>, watch: &mut Watch<'_>) -> Result<Counts> {
        let [projections, _, pixels] = self.shape();
        check_slices(&slices, self.wanted.len())?;
        let counts = bytes([projections, slices.len(), pixels], 12);
        Device::host().check_memory(0, &[("counts and line integrals", counts)])?;
        let (first, places) = (self.wanted.start + slices.start, slices.start * pixels..slices.end * pixels);
        let mut counts = Vec::new();
        match self.order {
            Order::Angles => {
                for k in 0..projections {
                    let picture = self.pictures.picture(k)?;
                    counts.extend_from_slice(&picture[first * pixels..(first + slices.len()) * pixels]);
                    watch(k as u64 + 1, projections as u64);
                }
            }
            Order::Slices => {
                counts.resize(projections * slices.len() * pixels, 0.0);
                for slice in 0..slices.len() {
                    let sinogram = self.pictures.picture(first + slice)?;
                    for (k, row) in sinogram.chunks(pixels).enumerate() {
                        counts[(k * slices.len() + slice) * pixels..][..pixels].copy_from_slice(row);
                    }
                    watch(slice as u64 + 1, slices.len() as u64);
                }
            }
        }
        let shape = [projections, slices.len(), pixels];
        let (flat, dark) = (self.flat[places.clone()].to_vec(), self.dark[places].to_vec());
        let gap = self.pictures.gap().filter(|_| self.order == Order::Angles).map(String::from);
        Ok(Counts {
            shape,
            counts,
            flat,
            dark,
            angles: self.angles.clone(),
            first,
            bad_pixels: self.bad_pixels.clone(),
            gap,
        })
    }
}

/// Bytes of so many numbers of a size.
fn bytes(numbers: [usize; 3], size: u64) -> u64 {
    numbers.iter().fold(size, |all, length| all.saturating_mul(*length as u64))
}

/// Fails on slices that are not there.
fn check_slices(slices: &Range<usize>, rows: usize) -> Result<()> {
    if slices.is_empty() || slices.end > rows {
        let reason = format!("{}:{} of {rows} slices", slices.start, slices.end);
        return Err(Error::Option { name: "slices", reason });
    }
    Ok(())
}

/// Fails on a flat field that nowhere counts more than the dark one.
fn check_fields(flat: &[f64], dark: &[f64]) -> Result<()> {
    if flat.iter().zip(dark).any(|(flat, dark)| flat - dark > 0.0) {
        return Ok(());
    }
    let reason = "no pixel counts more than in the dark field: are the two exchanged, or empty?";
    Err(refuse("the flat field", reason.into()))
}

#[cfg(test)]
mod tests {
    use super::super::count_files::Field;
    use super::*;
    use crate::io::npy;

    #[test]
    fn readings_are_logarithms_between_the_two_fields() {
        // Two angles, two slices, four pixels; the second pixel of the first slice is dead, the first one of the second reads nothing once.
        let [flat, dark] = [vec![1010.0, 10.0, 1010.0, 1010.0, 510.0, 510.0, 510.0, 510.0], vec![10.0; 8]];
        let passed = |share: f32, flat: f32| 10.0 + share * (flat - 10.0);
        let slice = |shares: [f32; 4], flat: f32| shares.map(|share| passed(share, flat));
        let counts = [
            slice([0.5, 0.3, 0.25, 1.0], 1010.0),
            slice([0.0, 0.5, 0.5, 0.125], 510.0),
            slice([0.5, 7.0, 0.125, 1.0], 1010.0),
            slice([1.0, 0.5, 0.25, 0.25], 510.0),
        ]
        .concat();
        let counts = Counts::new([2, 2, 4], counts, [flat, dark], Some(vec![0.0, 45.0])).expect("counts");
        let Integrals { scans, repaired, .. } = counts.integrals(&Geometry::default()).expect("integrals");
        assert_eq!((scans.len(), repaired), (2, 3));
        assert_eq!(scans[1].scanner.angles, [0.0, 45.0]);
        let two = std::f64::consts::LN_2;
        for (scan, wanted) in
            scans.iter().zip([[1.0, 1.5, 2.0, 0.0, 1.0, 2.0, 3.0, 0.0], [1.0, 1.0, 1.0, 3.0, 0.0, 1.0, 2.0, 2.0]])
        {
            for (found, wanted) in scan.sinogram.iter().zip(wanted) {
                approx::assert_abs_diff_eq!(found / two, wanted, epsilon = 1e-6);
            }
        }
    }

    #[test]
    fn counts_that_mean_nothing_are_refused() {
        let new = |flat: f64, dark: f64, counts: Vec<f32>| {
            Counts::new([1, 1, 3], counts, [vec![flat; 3], vec![dark; 3]], None)
        };
        let text = |error: Error| error.to_string();
        assert!(text(new(0.0, 0.0, vec![1.0; 3]).expect_err("no light")).contains("flat field"));
        assert!(new(5.0, 9.0, vec![1.0; 3]).is_err());
        assert!(matches!(new(9.0, 0.0, vec![1.0; 4]), Err(Error::Shape { .. })));
        let dead = new(9.0, 0.0, vec![0.0; 3]).expect("counts");
        assert!(text(dead.integrals(&Geometry::default()).expect_err("none")).contains("projection 0 of slice 0"));
        assert!(Counts::new([0, 1, 3], vec![], [vec![1.0; 3], vec![0.0; 3]], None).is_err());
        assert!(Counts::new([usize::MAX, 2, 3], vec![], [vec![], vec![]], None).is_err());
    }

    #[test]
    fn counts_are_read_with_their_fields() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        let data: Vec<f64> = (0..24).map(|k| 20.0 + f64::from(k)).collect();
        npy::write(&file("p.npy"), &[2, 3, 4], &data).expect("written");
        let frames: Vec<f64> = [[100.0; 12], [102.0; 12]].concat();
        npy::write(&file("f.npy"), &[2, 3, 4], &frames).expect("written");
        let files = CountFiles {
            projections: file("p.npy"),
            flat: Some(Field::File(file("f.npy"))),
            dark: Some(Field::Number(1.0)),
            slices: Some(1..3),
            ..CountFiles::default()
        };
        let mut seen = Vec::new();
        let counts = Counts::read(&files, &mut |done, of| seen.push((done, of))).expect("counts");
        assert_eq!((counts.shape, &seen[..]), ([2, 2, 4], &[(1, 2), (2, 2)][..]));
        assert_eq!((counts.counts[0], counts.counts[8], counts.flat[3], counts.dark[7]), (24.0, 36.0, 101.0, 1.0));
        let read = |files: CountFiles| Counts::read(&files, &mut |_, _| {}).expect_err("not as wanted");
        for slices in [2..2, 2..4, 5..7] {
            let error = read(CountFiles { slices: Some(slices), ..files.clone() });
            assert!(matches!(error, Error::Option { name: "slices", .. }));
        }
        let error = read(CountFiles { flat: None, ..files.clone() });
        assert!(error.to_string().contains("no flat field"), "{error}");
        npy::write(&file("d.npy"), &[4, 3], &data[..12]).expect("written");
        let error = read(CountFiles { dark: Some(Field::File(file("d.npy"))), ..files.clone() });
        assert!(error.to_string().contains("4 x 3"), "{error}");
        let error = read(CountFiles { flat: Some(Field::Number(f64::NAN)), ..files });
        assert!(matches!(error, Error::Option { name: "flat", .. }));
    }
}
