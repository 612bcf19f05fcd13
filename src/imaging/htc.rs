//! Files of the Helsinki Tomography Challenge 2022: fan-beam scans and reference pictures in MATLAB v5 structs.

use std::path::Path;

use super::scan::Scan;
use super::scanner::{Beam, Grid, Scanner};
use crate::error::{Error, Result};
use crate::io::mat5::{self, Value};

/// Pixels of a reference picture's side; its pixels have the length of a detector pixel seen at the origin.
const REFERENCE_SIDE: usize = 512;

fn missing(path: &Path, what: &str) -> Error {
    Error::Format {
        what: path.display().to_string(),
        reason: format!(
            "{what}; expected a scan of the Helsinki Tomography Challenge 2022 (CtDataFull, CtDataLimited)"
        ),
    }
}

impl Scan {
    /// Reads a scan of the Helsinki Tomography Challenge 2022 (`.mat`), whose field is that of the reference pictures, in mm.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Format`] for a file that is no such scan, [`Error::Shape`] when its geometry does
    /// not match its data, [`Error::NotFinite`].
    pub fn read_htc(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let variables = mat5::read(path)?;
        let data = variables
            .iter()
            .map(|(_, value)| value)
            .find(|value| value.field("sinogram").is_some())
            .ok_or_else(|| missing(path, "no variable has a field 'sinogram'"))?;
        let (rows, pixels, sinogram) = data
            .field("sinogram")
            .and_then(Value::matrix)
            .ok_or_else(|| missing(path, "the sinogram is no matrix"))?;
        let parameters = data.field("parameters").ok_or_else(|| missing(path, "no field 'parameters'"))?;
        let number = |name: &str| {
            parameters
                .field(name)
                .and_then(Value::scalar)
                .ok_or_else(|| missing(path, &format!("no number parameters.{name}")))
        };
        let (_, _, angles) = parameters
            .field("angles")
            .and_then(Value::matrix)
            .ok_or_else(|| missing(path, "no array parameters.angles"))?;
        if angles.len() != rows {
            return Err(Error::Shape {
                what: "angles against rows of the sinogram",
                expected: rows,
                found: angles.len(),
            });
        }
        let (source_origin, source_detector) = (number("distanceSourceOrigin")?, number("distanceSourceDetector")?);
        let pitch = number("pixelSizePost")?;
        let scanner =
            Scanner { beam: Beam::Fan { source_origin, source_detector }, pixels, pitch, offset: 0.0, angles };
        let effective = pitch * source_origin / source_detector;
        Ok(Self::new(scanner, sinogram)?.with_field(REFERENCE_SIDE as f64 * effective))
    }
}

/// Reads the picture of a file of the challenge: rows, columns, pixels.
pub(super) fn read_picture(path: &Path) -> Result<(usize, usize, Vec<f64>)> {
    let variables = mat5::read(path)?;
    variables.iter().find_map(|(_, value)| value.matrix()).ok_or_else(|| missing(path, "no picture"))
}

/// Reads a reference picture of the challenge at the side of `grid`, in attenuation per unit of length (the files hold it per
/// pixel).
pub(super) fn read_reference(path: &Path, grid: Grid) -> Result<Vec<f64>> {
    let (rows, cols, image) = read_picture(path)?;
    if rows != cols || rows == 0 {
        return Err(missing(path, &format!("the picture is {rows} x {cols}, not square")));
    }
    if let Some(index) = image.iter().position(|v| !v.is_finite()) {
        return Err(Error::NotFinite { what: format!("{}", path.display()), index });
    }
    let length = grid.pixel * grid.side as f64 / rows as f64;
    let per_length: Vec<f64> = image.iter().map(|v| v / length).collect();
    super::resample(&per_length, rows, grid.side)
}
