//! Files and data sets of HDF5 files with projections, flat and dark fields, and angles.

use std::path::Path;

use super::count_files::{CountFiles, Field};
use super::fields::Frames;
use crate::error::{Error, Result};
use crate::io::{FileKind, Stack};
#[cfg(feature = "hdf5")]
use crate::{
    imaging::{angles::in_degrees, count_files::refuse},
    io::{Hdf5, short_name},
};

/// Angles that a file may name.
#[cfg(feature = "hdf5")]
const MOST_ANGLES: usize = 1 << 20;

/// Volumes that counts are read from.
pub(super) struct Parts {
    pub(super) projections: Stack,
    flat: Option<Stack>,
    dark: Option<Stack>,
    pub(super) angles: Option<Vec<f64>>,
    #[cfg(feature = "hdf5")]
    file: Option<Hdf5>,
}

impl Parts {
    pub(super) fn open(files: &CountFiles) -> Result<Self> {
        let path = &files.projections;
        let kind = if path.is_dir() { None } else { FileKind::of(path)? };
        if kind == Some(FileKind::Hdf5) {
            return Self::of_hdf5(files);
        }
        for (name, place) in [("data", &files.data), ("theta", &files.theta)] {
            if place.is_some() {
                let reason = format!("{} is no HDF5 file: it holds no data sets", path.display());
                return Err(Error::Option { name, reason });
            }
        }
        Ok(Self {
            projections: Stack::open(path)?,
            flat: None,
            dark: None,
            angles: None,
            #[cfg(feature = "hdf5")]
            file: None,
        })
    }

    #[cfg(feature = "hdf5")]
    fn of_hdf5(files: &CountFiles) -> Result<Self> {
        let path = &files.projections;
        let file = Hdf5::open(path)?;
        let place = files.data.as_deref().unwrap_or("exchange/data");
        let missing = || {
            let matlab = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mat"));
            let help = if matlab { " (a MATLAB file of a challenge: save it with -v7)" } else { "" };
            let name = short_name(path);
            let reason =
                format!("{name} has no data set {place}{help}; name the one to read: {}", file.candidates(2));
            Error::Option { name: "data", reason }
        };
        let projections = file.stack(place)?.ok_or_else(missing)?;
        let pictures = projections.shape()[0];
        let mut angles = angles(&file, files, pictures)?;
        let (flat, dark) = (file.stack("exchange/data_white")?, file.stack("exchange/data_dark")?);
        match kinds(&file, pictures)? {
            None => Ok(Self { projections, flat, dark, angles, file: Some(file) }),
            Some(kinds) => {
                let chosen = |kind: usize| -> Result<Option<Stack>> {
                    let pictures = kinds[kind].clone();
                    let stack = if pictures.is_empty() { None } else { file.stack(place)? };
                    Ok(stack.map(|stack| stack.chosen(pictures)))
                };
                if let Some(angles) = angles.as_mut().filter(|angles| angles.len() == pictures) {
                    *angles = kinds[0].iter().map(|k| angles[*k]).collect();
                }
                let none = || refuse(projections.name(), "its image_key names no projection".into());
                let projections = chosen(0)?.ok_or_else(none)?;
                let (flat, dark) = (chosen(1)?, chosen(2)?);
                Ok(Self { projections, flat, dark, angles, file: Some(file) })
            }
        }
    }

    #[cfg(not(feature = "hdf5"))]
    fn of_hdf5(files: &CountFiles) -> Result<Self> {
        Err(crate::io::without(&files.projections, "an HDF5 file", "hdf5"))
    }

    /// The frames of a field: those that were named, else those of the file.
    pub(super) fn frames(&mut self, what: &'static str, named: Option<&Field>) -> Result<Frames> {
        match named {
            Some(Field::Number(number)) if number.is_finite() => Ok(Frames::Number(*number)),
            Some(Field::Number(number)) => {
                Err(Error::Option { name: what, reason: format!("{number} is no count") })
            }
            Some(Field::File(path)) => Ok(Frames::of(self.volume(what, path)?)),
            None => {
                let of_file = if what == "flat" { self.flat.take() } else { self.dark.take() };
                Ok(of_file.map_or(Frames::None, Frames::of))
            }
        }
    }

    /// A file, or a data set of the file of the projections or of another one.
    fn volume(&self, what: &'static str, path: &Path) -> Result<Stack> {
        if path.exists() {
            return Stack::open(path);
        }
        let text = path.to_string_lossy();
        #[cfg(feature = "hdf5")]
        {
            if let Some((name, place)) = text.rsplit_once(':')
                && Path::new(name).is_file()
            {
                let file = Hdf5::open(Path::new(name))?;
                let missing =
                    || Error::Option { name: what, reason: format!("no data set {place}: {}", file.candidates(2)) };
                return file.stack(place)?.ok_or_else(missing);
            }
            if let Some(file) = &self.file {
                let missing = || Error::Option {
                    name: what,
                    reason: format!("no file and no data set {text}: {}", file.candidates(2)),
                };
                return file.stack(&text)?.ok_or_else(missing);
            }
        }
        Stack::open(Path::new(&*text)).map_err(|error| match error {
            Error::File { path, reason } => {
                Error::Option { name: what, reason: format!("{}: {reason}", path.display()) }
            }
            other => other,
        })
    }
}

/// The angles of an HDF5 file in degrees, if it has some.
#[cfg(feature = "hdf5")]
fn angles(file: &Hdf5, files: &CountFiles, pictures: usize) -> Result<Option<Vec<f64>>> {
    let place = match &files.theta {
        Some(place) => Some(place.clone()),
        None if file.has("exchange/theta") => Some("exchange/theta".to_string()),
        // The name that NeXus gives them.
        None => file.named("rotation_angle", pictures),
    };
    let Some(place) = place else { return Ok(None) };
    let missing = || {
        let reason = format!("no file and no data set {place}: {}", file.candidates(1));
        Error::Option { name: "theta", reason }
    };
    let found = file.numbers(&place, MOST_ANGLES)?.ok_or_else(missing)?;
    let name = format!("{} {place}", short_name(&files.projections));
    in_degrees(found.numbers, files.theta_unit, Some(&found.units), &name).map(Some)
}

/// Numbers of the projections, flat frames and dark frames among the pictures of an HDF5 file that says so.
#[cfg(feature = "hdf5")]
fn kinds(file: &Hdf5, pictures: usize) -> Result<Option<[Vec<usize>; 3]>> {
    let keys =
        file.named("image_key", pictures).map(|place| file.numbers(&place, MOST_ANGLES)).transpose()?.flatten();
    let Some(keys) = keys.map(|found| found.numbers).filter(|keys| keys.iter().any(|key| *key != 0.0)) else {
        return Ok(None);
    };
    Ok(Some([0.0, 1.0, 2.0].map(|kind| (0..pictures).filter(|k| keys[*k] == kind).collect())))
}
