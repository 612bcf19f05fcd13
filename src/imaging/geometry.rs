//! Geometry of a scanner beside its readings, for programs and in files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::angles::in_degrees;
use super::scanner::{Beam, Scanner};
use super::vectors::Vectors;
use crate::error::{Error, Result, same_length};
use crate::files::{file_error, read_text, write_atomically};

/// Most bytes of a file: angles alone take room, some 10 bytes each.
const LARGEST_FILE: u64 = 1 << 24;

/// A scanner, as far as an array of readings does not say it.
///
/// ```
/// use residuum::imaging::{Angles, Beam, Geometry};
///
/// let beam = Beam::Fan { source_origin: 410.66, source_detector: 553.74 };
/// let geometry = Geometry { beam, angles: Angles::Arc(360.0), pitch: 0.2, offset: 0.0 };
/// let scanner = geometry.scanner(721, 560)?;
/// assert_eq!((scanner.rays(), scanner.angles[720]), (721 * 560, 360.0 * 720.0 / 721.0));
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Course of the rays.
    pub beam: Beam,
    /// Angles of the projections.
    pub angles: Angles,
    /// Distance between pixel centres on the detector.
    pub pitch: f64,
    /// Shift of the detector's middle along the detector, in pixels.
    pub offset: f64,
}

/// Angles of projections, in degrees anticlockwise.
#[derive(Clone, Debug, PartialEq)]
pub enum Angles {
    /// Degrees that the angles divide evenly, from 0; negative for clockwise.
    Arc(f64),
    /// Degrees that the angles divide evenly, from another angle than 0.
    ArcFrom {
        /// The first angle.
        start: f64,
        /// Degrees that the angles divide evenly.
        arc: f64,
    },
    /// Each of them.
    List(Vec<f64>),
}

impl Default for Geometry {
    /// A parallel beam over 180 degrees, with pixels of length 1.
    fn default() -> Self {
        Self { beam: Beam::Parallel, angles: Angles::Arc(180.0), pitch: 1.0, offset: 0.0 }
    }
}

/// A geometry as files hold it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    beam: String,
    source_origin: Option<f64>,
    source_detector: Option<f64>,
    pitch: Option<f64>,
    #[serde(default)]
    offset: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<f64>,
    arc: Option<f64>,
    angles: Option<Vec<f64>>,
    angle_unit: Option<String>,
    vectors: Option<Rows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel: Option<bool>,
}

/// Vectors of views in a file: their numbers, or another file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Rows {
    Numbers(Vec<Vec<f64>>),
    File(String),
}

impl Geometry {
    /// The geometry of a scanner, with all its angles.
    pub fn of(scanner: &Scanner) -> Self {
        let Scanner { beam, pitch, offset, angles, .. } = scanner.clone();
        Self { beam, angles: Angles::List(angles), pitch, offset }
    }

    /// A copy with these angles.
    pub(super) fn with_list(self, angles: Vec<f64>) -> Self {
        Self { angles: Angles::List(angles), ..self }
    }

    /// The scanner of so many projections and pixels.
    ///
    /// # Errors
    /// [`Error::Shape`] for a list of another number of angles; as [`Scanner::validate`].
    pub fn scanner(&self, projections: usize, pixels: usize) -> Result<Scanner> {
        if let Beam::Vectors(vectors) = &self.beam {
            same_length("views of the geometry against projections", projections, vectors.rows().len())?;
            let scanner = Scanner::of_vectors(vectors.clone(), pixels)?;
            let scanner = Scanner { pitch: self.pitch, offset: self.offset, ..scanner };
            scanner.validate()?;
            return Ok(scanner);
        }
        let angles = match &self.angles {
            Angles::Arc(arc) => (0..projections).map(|k| arc * k as f64 / projections as f64).collect(),
            Angles::List(angles) if angles.len() != projections && angles.len() == pixels => {
                let reason = format!(
                    "{pixels} angles for {projections} x {pixels} readings: is the array pixels x angles? Transpose it"
                );
                return Err(Error::Format { what: "angles of the geometry".into(), reason });
            }
            Angles::ArcFrom { start, arc } => {
                (0..projections).map(|k| start + arc * k as f64 / projections as f64).collect()
            }
            Angles::List(angles) => {
                same_length("angles of the geometry against projections", projections, angles.len())?;
                angles.clone()
            }
        };
        let scanner = Scanner { beam: self.beam.clone(), pixels, pitch: self.pitch, offset: self.offset, angles };
        scanner.validate()?;
        Ok(scanner)
    }

    /// Reads a TOML file:
    ///
    /// ```toml
    /// beam = "fan"               # parallel, fan (a flat detector) or curved
    /// source_origin = 410.66     # of fan and curved: distances from the source
    /// source_detector = 553.74
    /// pitch = 0.2                # between pixel centres on the detector, in the same unit
    /// offset = 0.0               # of the detector's middle along the detector, in pixels; 0 without it
    /// arc = 360.0                # degrees that the angles divide evenly; from start = 0.0, or:
    /// # angles = [0.0, 0.5, 1.0]
    /// # angle_unit = "degrees"   # of these angles, or "radians"; asked for if they look like radians
    /// ```
    ///
    /// With `beam = "vectors"` six numbers stand for each view, see [`Vectors`]:
    ///
    /// ```toml
    /// beam = "vectors"
    /// vectors = "poses.csv"      # a text or an array of NumPy, beside this file; or the numbers: [[4.0, 0.0, -2.0, 0.0, 0.0, 0.1], ...]
    /// parallel = false           # true: the first two numbers are a direction; false without it
    /// pitch = 1.0                # steps of the vectors from pixel to pixel: 1 without it, more if pixels were binned
    /// offset = 0.0               # of the detectors' middles, in pixels; 0 without it
    /// ```
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Format`] for text that is no such file, with the line or the field that is missing.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = read_text(path, LARGEST_FILE).map_err(|e| file_error(path, &e))?;
        let refuse = |reason: String| Error::Format { what: path.display().to_string(), reason };
        let text: Text = toml::from_str(&text).map_err(|e| {
            let line = e.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let line = line.map_or_else(String::new, |line| format!("line {line}: "));
            refuse(format!("{line}{}", e.message()))
        })?;
        if text.beam == "vectors" {
            return of_vectors(path, text);
        }
        if text.vectors.is_some() || text.parallel.is_some() {
            return Err(refuse(format!(
                "`vectors` and `parallel` go with beam = \"vectors\", not with {}",
                text.beam
            )));
        }
        let pitch = text.pitch.ok_or_else(|| refuse("missing field `pitch`".into()))?;
        let beam = match (&*text.beam, text.source_origin, text.source_detector) {
            ("parallel", None, None) => Beam::Parallel,
            ("parallel", ..) => return Err(refuse("a parallel beam has no source at a distance".into())),
            ("fan", Some(source_origin), Some(source_detector)) => Beam::Fan { source_origin, source_detector },
            ("curved", Some(source_origin), Some(source_detector)) => {
                Beam::Curved { source_origin, source_detector }
            }
            ("fan" | "curved", None, _) => return Err(refuse("missing field `source_origin`".into())),
            ("fan" | "curved", _, None) => return Err(refuse("missing field `source_detector`".into())),
            (other, ..) => return Err(refuse(format!("beam '{other}' is none of parallel, fan, curved, vectors"))),
        };
        if text.arc.is_some() && text.angle_unit.is_some() {
            return Err(refuse("`arc` is in degrees: `angle_unit` is that of `angles`".into()));
        }
        let angles = match (text.arc, text.angles) {
            (Some(arc), None) => text.start.map_or(Angles::Arc(arc), |start| Angles::ArcFrom { start, arc }),
            (None, Some(_)) if text.start.is_some() => return Err(refuse("`start` goes with `arc`".into())),
            (None, Some(angles)) => {
                let unit = text.angle_unit.as_deref();
                Angles::List(in_degrees(angles, None, unit, &format!("{} angles", path.display()))?)
            }
            (None, None) => return Err(refuse("missing field `arc`, or `angles`".into())),
            (Some(_), Some(_)) => return Err(refuse("`arc` and `angles`: one of them".into())),
        };
        Ok(Self { beam, angles, pitch, offset: text.offset })
    }

    /// Writes a file that [`Geometry::read`] reads back, bit for bit.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Format`] for numbers that are none.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let distances = self.beam.distances();
        let vectors = if let Beam::Vectors(vectors) = &self.beam { Some(vectors) } else { None };
        let (start, arc, angles) = match &self.angles {
            // They follow from the vectors.
            _ if vectors.is_some() => (None, None, None),
            Angles::Arc(arc) => (None, Some(*arc), None),
            Angles::ArcFrom { start, arc } => (Some(*start), Some(*arc), None),
            Angles::List(angles) => (None, None, Some(angles.clone())),
        };
        let text = Text {
            beam: self.beam.to_string(),
            source_origin: distances.map(|distances| distances[0]),
            source_detector: distances.map(|distances| distances[1]),
            pitch: Some(self.pitch),
            offset: self.offset,
            start,
            arc,
            // Few angles may look like radians.
            angle_unit: angles.is_some().then(|| "degrees".into()),
            angles,
            vectors: vectors.map(|vectors| Rows::Numbers(vectors.rows().iter().map(|row| row.to_vec()).collect())),
            parallel: vectors.map(Vectors::are_parallel),
        };
        let refuse =
            |e: toml::ser::Error| Error::Format { what: path.display().to_string(), reason: e.to_string() };
        let text = toml::to_string(&text).map_err(refuse)?;
        write_atomically(path, |file| std::io::Write::write_all(file, text.as_bytes()))
    }
}

/// The geometry of a file whose views are named by vectors.
fn of_vectors(path: &Path, text: Text) -> Result<Geometry> {
    let refuse = |reason: &str| Error::Format { what: path.display().to_string(), reason: reason.into() };
    let others = [
        ("source_origin", text.source_origin.is_some()),
        ("source_detector", text.source_detector.is_some()),
        ("start", text.start.is_some()),
        ("arc", text.arc.is_some()),
        ("angles", text.angles.is_some()),
        ("angle_unit", text.angle_unit.is_some()),
    ];
    if let Some((name, _)) = others.iter().find(|(_, given)| *given) {
        return Err(refuse(&format!("`{name}` does not go with beam = \"vectors\"")));
    }
    let are_parallel = text.parallel.unwrap_or(false);
    let vectors = match text.vectors {
        None => return Err(refuse("missing field `vectors`")),
        Some(Rows::Numbers(rows)) => {
            let row = |(k, row): (usize, &Vec<f64>)| {
                let six = <[f64; 6]>::try_from(&row[..]);
                six.map_err(|_| refuse(&format!("view {k} of `vectors` has {} numbers, not 6", row.len())))
            };
            Vectors::new(are_parallel, rows.iter().enumerate().map(row).collect::<Result<_>>()?)?
        }
        // Beside this file, unless it is a whole path.
        Some(Rows::File(name)) => Vectors::read(path.with_file_name(name), are_parallel)?,
    };
    let angles = Angles::List(vectors.angles());
    Ok(Geometry { beam: Beam::Vectors(vectors), angles, pitch: text.pitch.unwrap_or(1.0), offset: text.offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_an_end_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("g.toml");
        let text = "\u{feff}beam = \"parallel\"\npitch = 0.5\narc = 180.0\n";
        std::fs::write(&path, text).expect("written");
        assert_eq!(Geometry::read(&path).expect("a mark is left out").pitch, 0.5);
        std::fs::write(&path, vec![b'#'; LARGEST_FILE as usize + 1]).expect("written");
        let words = Geometry::read(&path).expect_err("too large").to_string();
        assert!(words.contains("has more than"), "{words}");
        #[cfg(target_os = "linux")]
        {
            let link = folder.path().join("zero.toml");
            std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
            let words = Geometry::read(&link).expect_err("endless").to_string();
            assert!(words.contains("has more than"), "{words}");
        }
    }

    #[test]
    fn geometries_are_read_back_as_they_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("g.toml");
        let (source_origin, source_detector) = (410.66, 553.74);
        for geometry in [
            Geometry::default(),
            Geometry {
                beam: Beam::Fan { source_origin, source_detector },
                angles: Angles::Arc(-360.0),
                pitch: 0.2,
                offset: 0.1 + 0.2,
            },
            Geometry { angles: Angles::ArcFrom { start: -90.0, arc: 180.5 }, ..Geometry::default() },
            Geometry {
                beam: Beam::Curved { source_origin, source_detector },
                angles: Angles::List(vec![0.0, 1.0 / 3.0, 7.0]),
                pitch: 1e-3,
                offset: -5.5,
            },
        ] {
            geometry.write(&path).expect("written");
            assert_eq!(Geometry::read(&path).expect("read back"), geometry);
            let scanner = geometry.scanner(3, 5).expect("a scanner");
            assert_eq!(Geometry::of(&scanner).scanner(3, 5).expect("a scanner"), scanner);
        }
    }

    #[test]
    fn files_that_say_too_little_or_too_much_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("g.toml");
        for (text, words) in [
            ("", "missing field `beam`"),
            ("beam = \"parallel\"\narc = 180", "missing field `pitch`"),
            ("beam = \"parallel\"\npitch = 1", "missing field `arc`"),
            ("beam = \"parallel\"\npitch = 1\narc = 1\nangles = []", "one of them"),
            ("beam = \"parallel\"\npitch = 1\narc = 180\nsource_origin = 3", "no source"),
            ("beam = \"fan\"\npitch = 1\narc = 180\nsource_origin = 3", "missing field `source_detector`"),
            ("beam = \"curved\"\npitch = 1\narc = 180", "missing field `source_origin`"),
            ("beam = \"parallel\"\npitch = 1\nstart = 3\nangles = []", "`start` goes with `arc`"),
            ("beam = \"cone\"\npitch = 1\narc = 180", "'cone' is none of"),
            ("beam = \"parallel\"\npitch = 1\nark = 180", "line 3: unknown field `ark`"),
            ("beam = \"parallel\"\npitch = \"1\"", "line 2"),
            ("beam = ", "line 1"),
        ] {
            std::fs::write(&path, text).expect("written");
            let error = Geometry::read(&path).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(matches!(Geometry::read(folder.path().join("absent")), Err(Error::File { .. })));
        let list = Geometry { angles: Angles::List(vec![0.0]), ..Geometry::default() };
        assert!(matches!(list.scanner(2, 5), Err(Error::Shape { .. })));
        let error = list.scanner(7, 1).expect_err("one angle").to_string();
        assert!(error.contains("is the array pixels x angles?"), "{error}");
        let radians: Vec<String> = (0..20).map(|k| format!("{}", 0.1 * f64::from(k))).collect();
        let text = format!("beam = \"parallel\"\npitch = 1\nangles = [{}]", radians.join(", "));
        std::fs::write(&path, &text).expect("written");
        let error = Geometry::read(&path).expect_err("radians").to_string();
        assert!(error.contains("20 angles within 1.9 degrees: are they radians?"), "{error}");
        std::fs::write(&path, format!("{text}\nangle_unit = \"radians\"")).expect("written");
        let Angles::List(angles) = Geometry::read(&path).expect("read").angles else { panic!("no list") };
        approx::assert_relative_eq!(angles[19], 1.9_f64.to_degrees(), max_relative = 1e-12);
        let thin = Geometry { pitch: 0.0, ..Geometry::default() };
        assert!(matches!(thin.scanner(2, 5), Err(Error::Option { name: "pitch", .. })));
    }
}
