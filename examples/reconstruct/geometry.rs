//! Options of the scan: its file, its scanner, and the readings that are used.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use common::{option, refuse_unused};
use residuum::Result;
use residuum::imaging::{Angles, Beam, Geometry, read_angles};
use residuum::io::FileKind;

use crate::options::{Options, pair};

/// Files of scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// Line integrals with the scanner.
    Scan,
    /// Line integrals alone.
    Sinograms,
    /// Counts of the detector.
    Counts,
}

/// A range of whole numbers, such as 10:20.
fn range(name: &'static str, text: Option<&String>) -> Result<Option<Range<usize>>> {
    let Some(text) = text else { return Ok(None) };
    match pair(text) {
        Some((first, last)) if first < last => Ok(Some(first..last)),
        _ => Err(option(name, format!("'{text}' is not two whole numbers in ascending order, such as 10:20"))),
    }
}

impl Options {
    /// Content of the file of the scan.
    pub(crate) fn kind(&self, path: &Path) -> Result<InputKind> {
        if path.is_dir() {
            return Ok(InputKind::Counts);
        }
        Ok(match FileKind::of(path)? {
            Some(FileKind::Hdf5 | FileKind::Tiff) => InputKind::Counts,
            Some(FileKind::Npy) if self.flat.is_some() => InputKind::Counts,
            Some(FileKind::Npy) => InputKind::Sinograms,
            Some(FileKind::Mat5) | None => InputKind::Scan,
            Some(other) => {
                return Err(
                    other.refused(path, "a scan (.mat, .h5), a sinogram (.npy) or pictures of counts (.tif)")
                );
            }
        })
    }

    /// Options of the geometry that stand in a file of it.
    pub(crate) fn of_geometry(&self) -> [(&'static str, bool); 7] {
        [
            ("arc", self.arc.is_some()),
            ("start", self.start.is_some()),
            ("theta", self.theta.is_some()),
            ("pitch", self.pitch.is_some()),
            ("detector-offset", self.detector_offset.is_some()),
            ("source-origin", self.source_origin.is_some()),
            ("source-detector", self.source_detector.is_some()),
        ]
    }

    /// Tells if the options name the angles.
    pub(crate) fn names_angles(&self) -> bool {
        let listed = self.theta.is_some() && self.theta_place().is_none();
        self.arc.is_some() || listed || self.geometry_file().is_some()
    }

    /// The file of the geometry, if there is one.
    pub(crate) fn geometry_file(&self) -> Option<&Path> {
        self.geometry.as_deref().map(Path::new).filter(|path| path.extension().is_some_and(|e| e == "toml"))
    }

    /// The scanner of readings that do not say it.
    pub(crate) fn geometry(&self) -> Result<Geometry> {
        if let Some(path) = self.geometry_file() {
            refuse_unused("beside a file of the geometry", &self.of_geometry())?;
            refuse_unused("beside a file of the geometry", &[("theta-unit", self.theta_unit.is_some())])?;
            return Geometry::read(path);
        }
        let distances = match (self.source_origin, self.source_detector) {
            (Some(source_origin), Some(source_detector)) => Some((source_origin, source_detector)),
            _ => None,
        };
        let beam = match (self.geometry.as_deref().unwrap_or("parallel"), distances) {
            ("parallel", _) => {
                refuse_unused("for a parallel beam", &self.of_geometry()[5..])?;
                Beam::Parallel
            }
            ("fan", Some((source_origin, source_detector))) => Beam::Fan { source_origin, source_detector },
            ("curved", Some((source_origin, source_detector))) => Beam::Curved { source_origin, source_detector },
            (name @ ("fan" | "curved"), None) => {
                return Err(option("geometry", format!("{name} needs --source-origin and --source-detector")));
            }
            (other, _) => {
                let reason = format!("'{other}' is none of parallel, fan, curved, or a file that ends in .toml");
                return Err(option("geometry", reason));
            }
        };
        let default = Geometry::default();
        let angles = match (&self.theta, self.arc) {
            (Some(_), _) if self.theta_place().is_some() => default.angles,
            (Some(path), _) => Angles::List(read_angles(path, self.theta_unit)?),
            (None, Some(arc)) => self.start.map_or(Angles::Arc(arc), |start| Angles::ArcFrom { start, arc }),
            (None, None) => default.angles,
        };
        Ok(Geometry {
            beam,
            angles,
            pitch: self.pitch.unwrap_or(default.pitch),
            offset: self.detector_offset.unwrap_or(default.offset),
        })
    }

    /// Slices of counts that are read, if not all are.
    pub(crate) fn slices(&self) -> Result<Option<Range<usize>>> {
        range("slices", self.slices.as_ref())
    }

    /// Pixels of the detector that are kept, if not all are.
    pub(crate) fn crop(&self) -> Result<Option<Range<usize>>> {
        range("crop", self.crop.as_ref())
    }

    /// The place of the axis, if it was given as a number.
    pub(crate) fn axis(&self) -> Result<Option<f64>> {
        let Some(text) = self.axis.as_ref().filter(|text| *text != "auto") else { return Ok(None) };
        let place = text.parse().ok().filter(|place: &f64| place.is_finite());
        let reason = || option("axis", format!("'{text}' is neither a place on the detector nor auto"));
        place.ok_or_else(reason).map(Some)
    }

    /// Degrees of the scan that are kept, if not all are.
    pub(crate) fn kept(&self) -> Result<Option<RangeInclusive<f64>>> {
        let Some(text) = &self.keep else { return Ok(None) };
        match pair::<f64>(text).filter(|(from, to)| from.is_finite() && to.is_finite()) {
            Some((from, to)) if from <= to => Ok(Some(from..=to)),
            Some((from, to)) => Err(option("keep", format!("{from} is above {to}"))),
            None => Err(option("keep", format!("'{text}' is not two numbers of degrees, such as 0:90"))),
        }
    }
}
