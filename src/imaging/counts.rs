//! Counts of a detector, and the line integrals that they mean.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::geometry::Geometry;
use super::scan::Scan;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::io::{FileKind, Stack, Watch};

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
}

/// A flat or dark field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// One number for every pixel.
    Number(f64),
    /// A volume of frames, each `slices × pixels`, as [`Stack::open`] reads it.
    File(PathBuf),
}

impl std::str::FromStr for Field {
    type Err = std::convert::Infallible;

    /// A number, else a path.
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::File(text.into()), Self::Number))
    }
}

/// Files of counts, and which of their slices are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountFiles {
    /// Projections, each `slices × pixels`: a volume ([`Stack::open`]), or a DataExchange file, which has its own fields and angles.
    pub projections: PathBuf,
    /// Flat field. A DataExchange file needs none, but this one counts.
    pub flat: Option<Field>,
    /// Dark field, 0 without one.
    pub dark: Option<Field>,
    /// Slices that are read, from 0; all if none are named.
    pub slices: Option<Range<usize>>,
}

/// Line integrals of counts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Integrals {
    /// A scan for each slice.
    pub scans: Vec<Scan>,
    /// Readings without counts, which were interpolated between their neighbours on the detector.
    pub repaired: usize,
}

fn refuse(what: &str, reason: String) -> Error {
    Error::Format { what: what.into(), reason }
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
        Ok(Self { shape, counts, flat, dark, angles, first: 0 })
    }

    /// Reads counts, all at once ([`CountReader`] reads a part at a time). `watch` sees the number of projections read.
    ///
    /// A DataExchange file (HDF5) has them at `exchange/data`, `exchange/data_white`, `exchange/data_dark` and `exchange/theta` (degrees, or
    /// radians if its attribute `units` says so).
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Format`] for what cannot be read, for missing fields, which they name, and for slices that are not
    /// there; [`Error::Memory`] if they do not fit this machine; as [`Counts::new`].
    pub fn read(files: &CountFiles, watch: &mut Watch<'_>) -> Result<Self> {
        let mut reader = CountReader::open(files)?;
        reader.read(0..reader.shape()[1], watch)
    }

    /// Scans of all slices: `-log((I - D) / (F - D))` of counts `I`, flat field `F` and dark field `D`. Readings without a logarithm (dead pixels, where
    /// the flat field counts no more than the dark one, and rays that nothing comes through) are interpolated linearly between their neighbours
    /// on the detector. Angles of `geometry` count only if these counts have none.
    ///
    /// # Errors
    /// [`Error::Format`] for a projection without a single reading; as [`Geometry::scanner`] and [`Scan::new`].
    pub fn integrals(&self, geometry: &Geometry) -> Result<Integrals> {
        let [projections, slices, pixels] = self.shape;
        let scanner = match &self.angles {
            Some(angles) => geometry.clone().with_list(angles.clone()).scanner(projections, pixels)?,
            None => geometry.scanner(projections, pixels)?,
        };
        let slice = |slice: usize| -> Result<(Scan, usize)> {
            let field = slice * pixels..(slice + 1) * pixels;
            let (flat, dark) = (&self.flat[field.clone()], &self.dark[field]);
            let mut sinogram = vec![0.0; projections * pixels];
            let mut repaired = 0;
            for (k, row) in sinogram.chunks_mut(pixels).enumerate() {
                let counts = &self.counts[(k * slices + slice) * pixels..][..pixels];
                for (j, reading) in row.iter_mut().enumerate() {
                    let passed = (f64::from(counts[j]) - dark[j]) / (flat[j] - dark[j]);
                    let alive = flat[j] - dark[j] > 0.0 && passed > 0.0;
                    *reading = if alive { -libm::log(passed) } else { f64::NAN };
                }
                let nothing = || format!("projection {k} of slice {} has no readings", self.first + slice);
                repaired += repair(row).ok_or_else(|| refuse("counts", nothing()))?;
            }
            Ok((Scan::new(scanner.clone(), sinogram)?, repaired))
        };
        let slices: Vec<(Scan, usize)> = (0..slices).into_par_iter().map(slice).collect::<Result<_>>()?;
        let repaired = slices.iter().map(|(_, repaired)| repaired).sum();
        Ok(Integrals { scans: slices.into_iter().map(|(scan, _)| scan).collect(), repaired })
    }
}

/// Puts numbers between their neighbours where there are none, those of the nearest neighbour at the ends; says how many. None if there is no
/// number at all.
fn repair(row: &mut [f64]) -> Option<usize> {
    let good: Vec<usize> = (0..row.len()).filter(|j| row[*j].is_finite()).collect();
    let (first, last) = (*good.first()?, *good.last()?);
    let [begin, end] = [row[first], row[last]];
    row[..first].fill(begin);
    row[last + 1..].fill(end);
    for pair in good.windows(2) {
        let (left, right) = (pair[0], pair[1]);
        let step = (row[right] - row[left]) / (right - left) as f64;
        for j in left + 1..right {
            row[j] = row[left] + step * (j - left) as f64;
        }
    }
    Some(row.len() - good.len())
}

/// Volumes that counts are read from.
struct Parts {
    projections: Stack,
    flat: Option<Stack>,
    dark: Option<Stack>,
    angles: Option<Vec<f64>>,
}

impl Parts {
    fn open(path: &Path) -> Result<Self> {
        let kind = if path.is_dir() { None } else { FileKind::of(path)? };
        match kind {
            Some(FileKind::Hdf5) => Self::of_exchange(path),
            _ => Ok(Self { projections: Stack::open(path)?, flat: None, dark: None, angles: None }),
        }
    }

    #[cfg(feature = "hdf5")]
    fn of_exchange(path: &Path) -> Result<Self> {
        /// Angles that a file may name.
        const MOST_ANGLES: usize = 1 << 20;
        let file = crate::io::Hdf5::open(path)?;
        let projections = file.stack("exchange/data")?.ok_or_else(|| {
            refuse(
                &crate::io::short_name(path),
                "no data set exchange/data: expected a DataExchange file (of MATLAB's, those of -v7)".into(),
            )
        })?;
        let angles = file.numbers("exchange/theta", MOST_ANGLES)?.map(|(angles, units)| {
            let radians = units.to_ascii_lowercase().starts_with("rad");
            angles.into_iter().map(|v| if radians { v.to_degrees() } else { v }).collect()
        });
        Ok(Self {
            projections,
            flat: file.stack("exchange/data_white")?,
            dark: file.stack("exchange/data_dark")?,
            angles,
        })
    }

    #[cfg(not(feature = "hdf5"))]
    fn of_exchange(path: &Path) -> Result<Self> {
        Err(crate::io::without(path, "an HDF5 file", "hdf5"))
    }
}

/// Counts of files that stay open, whose slices are read a part at a time. Each part reads all projections once more, but `.npy` volumes that are
/// compressed, or whose first index runs fastest, are held from the start.
#[derive(Debug)]
pub struct CountReader {
    projections: Stack,
    /// Slices that are wanted.
    wanted: Range<usize>,
    /// Fields of these slices.
    flat: Vec<f64>,
    dark: Vec<f64>,
    angles: Option<Vec<f64>>,
}

impl CountReader {
    /// Opens the files, and reads the fields.
    ///
    /// # Errors
    /// As [`Counts::read`].
    pub fn open(files: &CountFiles) -> Result<Self> {
        let mut parts = Parts::open(&files.projections)?;
        let [_, rows, pixels] = parts.projections.shape();
        let wanted = files.slices.clone().unwrap_or(0..rows);
        check_slices(&wanted, rows)?;
        // A frame as it is read and decoded, sums and means.
        let fields = bytes([1, rows, pixels], 12).saturating_add(bytes([1, wanted.len(), pixels], 32));
        Device::host().check_memory(0, &[("a projection and its fields", fields)])?;
        let size = [rows, pixels];
        let flat = mean("flat", files.flat.as_ref(), parts.flat.take(), size, &wanted)?;
        let flat = flat.ok_or_else(|| {
            refuse(parts.projections.name(), "no flat field, which counts need: name a file or a number".into())
        })?;
        let dark = mean("dark", files.dark.as_ref(), parts.dark.take(), size, &wanted)?;
        let dark = dark.unwrap_or_else(|| vec![0.0; wanted.len() * pixels]);
        check_fields(&flat, &dark)?;
        Ok(Self { projections: parts.projections, wanted, flat, dark, angles: parts.angles })
    }

    /// Projections, slices that are wanted, and pixels.
    pub fn shape(&self) -> [usize; 3] {
        let [projections, _, pixels] = self.projections.shape();
        [projections, self.wanted.len(), pixels]
    }

    /// Tells if the files name the angles of the projections.
    pub fn has_angles(&self) -> bool {
        self.angles.is_some()
    }

    /// Reads some of the slices that are wanted, counted from the first of them. `watch` sees the number of projections read.
    ///
    /// # Errors
    /// As [`Counts::read`].
    pub fn read(&mut self, slices: Range<usize>, watch: &mut Watch<'_>) -> Result<Counts> {
        let [projections, _, pixels] = self.projections.shape();
        check_slices(&slices, self.wanted.len())?;
        let counts = bytes([projections, slices.len(), pixels], 12);
        Device::host().check_memory(0, &[("counts and line integrals", counts)])?;
        let (first, places) = (self.wanted.start + slices.start, slices.start * pixels..slices.end * pixels);
        let mut counts = Vec::new();
        for k in 0..projections {
            let picture = self.projections.picture(k)?;
            counts.extend_from_slice(&picture[first * pixels..(first + slices.len()) * pixels]);
            watch(k as u64 + 1, projections as u64);
        }
        if let Some(angles) = &self.angles {
            same_length("angles against projections", projections, angles.len())?;
        }
        let shape = [projections, slices.len(), pixels];
        let (flat, dark) = (self.flat[places.clone()].to_vec(), self.dark[places].to_vec());
        Ok(Counts { shape, counts, flat, dark, angles: self.angles.clone(), first })
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

/// Mean of the frames of a field, of the slices that are wanted: the one that was named, else the one of the file. None if there is neither.
fn mean(
    what: &'static str,
    named: Option<&Field>,
    of_file: Option<Stack>,
    [rows, pixels]: [usize; 2],
    slices: &Range<usize>,
) -> Result<Option<Vec<f64>>> {
    let mut frames = match named {
        Some(Field::Number(number)) if number.is_finite() => return Ok(Some(vec![*number; slices.len() * pixels])),
        Some(Field::Number(number)) => {
            return Err(Error::Option { name: what, reason: format!("{number} is no count") });
        }
        Some(Field::File(path)) => Stack::open(path)?,
        None => match of_file {
            Some(frames) => frames,
            None => return Ok(None),
        },
    };
    let [count, there, across] = frames.shape();
    if [there, across] != [rows, pixels] {
        let reason = format!("frames of {there} x {across} for projections of {rows} x {pixels}");
        return Err(refuse(frames.name(), reason));
    }
    let mut sums = vec![0.0; slices.len() * pixels];
    for k in 0..count {
        let frame = frames.picture(k)?;
        let wanted = &frame[slices.start * pixels..slices.end * pixels];
        sums.iter_mut().zip(wanted).for_each(|(sum, v)| *sum += f64::from(*v));
    }
    Ok(Some(sums.into_iter().map(|sum| sum / count as f64).collect()))
}

#[cfg(test)]
mod tests {
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
        let Integrals { scans, repaired } = counts.integrals(&Geometry::default()).expect("integrals");
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
