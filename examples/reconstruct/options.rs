//! Options of the program `reconstruct`, and what they mean.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};
use common::{DeviceOptions, Precision, check_ending, check_outputs, option, refuse_unused};
use residuum::imaging::{Beam, Geometry, Reconstruction, Regularizer, Segmentation};
use residuum::io::FileKind;
use residuum::{Format, Method, Real, Result, Stopping, WeightRule};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BeamKind {
    Fan,
    Parallel,
}

/// Reconstruct an image from sensor data by regularised least squares.
///
/// Without input: a simulated fan-beam scan with noise and gain errors. Exit status: 0 done, 1 not converged (a
/// tolerance was asked for and not met, or the iteration broke down), 2 bad input.
///
/// Coordinates: x runs to the right of the picture and y upwards; row 0 of the picture is the uppermost. At angle t,
/// anticlockwise, the detector runs along (cos t, sin t) with its pixels in that order, and rays along (-sin t, cos t):
/// at angle 0 the source is below the picture, rays run upwards, and pixel 0 sees the left edge. An array that comes out
/// mirrored was taken with the other sense of rotation: give a negative --arc.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    /// Scan: a Helsinki Tomography Challenge 2022 .mat file, or a .npy sinogram of line integrals, -log(I / I0) (angles x
    /// pixels, or images x angles x pixels for several images at once)
    #[arg(long, value_name = "FILE", conflicts_with = "matrix")]
    pub(crate) input: Option<PathBuf>,
    /// System matrix, Matrix Market (.mtx or .mtx.gz) or SciPy's (.npz)
    #[arg(long, value_name = "FILE", requires = "rhs")]
    pub(crate) matrix: Option<PathBuf>,
    /// Right-hand side for --matrix: Matrix Market or .npy (rows, or images x rows)
    #[arg(long, value_name = "FILE", requires = "matrix")]
    pub(crate) rhs: Option<PathBuf>,
    /// Image row length for --matrix, if the unknowns are an image
    #[arg(long, value_name = "PIXELS", requires = "matrix")]
    pub(crate) width: Option<usize>,

    /// Side of the image in pixels [default: 128 simulated, 256 otherwise]
    #[arg(long, value_name = "PIXELS")]
    pub(crate) size: Option<usize>,
    /// Keep the angles from the first to the second of these degrees of the scan, as 0:90 [default: all]
    #[arg(long, value_name = "FROM:TO", allow_hyphen_values = true)]
    pub(crate) keep: Option<String>,
    /// Use this many of the angles, evenly spaced [default: all]
    #[arg(long, value_name = "COUNT")]
    pub(crate) angles: Option<usize>,
    /// Take the background out: the reading near 0 that most rays have
    #[arg(long)]
    pub(crate) background: bool,
    /// Correct beam hardening: each reading p becomes C0 + C1 p + C2 p² + ...
    #[arg(long, value_name = "C0,C1,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) polynomial: Vec<f64>,
    /// Average this many neighbouring detector pixels into one [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(crate) bin: Option<usize>,

    /// Beam of a .npy sinogram [default: parallel]
    #[arg(long, value_enum)]
    pub(crate) geometry: Option<BeamKind>,
    /// Angles of a .npy sinogram: this many degrees, evenly divided, anticlockwise from 0; negative for clockwise [default: 180]
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    pub(crate) arc: Option<f64>,
    /// Distance between detector pixels of a .npy sinogram [default: 1]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) pitch: Option<f64>,
    /// Shift of the detector's middle in pixels, for a .npy sinogram [default: 0]
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true)]
    pub(crate) detector_offset: Option<f64>,
    /// Distance from source to rotation centre, for --geometry fan
    #[arg(long, value_name = "LENGTH", required_if_eq("geometry", "fan"))]
    pub(crate) source_origin: Option<f64>,
    /// Distance from source to detector, for --geometry fan
    #[arg(long, value_name = "LENGTH", required_if_eq("geometry", "fan"))]
    pub(crate) source_detector: Option<f64>,
    /// Side length of the imaged square [default: what the detector sees]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) field: Option<f64>,

    /// Precision of vectors and matrix
    #[arg(long, value_enum, default_value_t = Precision::Fp32)]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) on: DeviceOptions,
    /// Storage of the matrix: auto, on-the-fly (scans: rays are traced as they are needed), or one of csr, csr-scalar,
    /// csr-adaptive, ellpack, ellpack-r, sell, hyb, dia, bsr, dense, coo
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: Format,

    /// cgnr (bounds by a penalty), fista or pdhg (bounds kept exactly; pdhg: total variation itself, not a smooth stand-in)
    #[arg(long, value_name = "NAME", default_value = "cgnr")]
    pub(crate) method: Method,
    /// tikhonov=W, smooth=W (cgnr), tv=W (not fista), directional=W[@DEGREES] (pdhg: changes along the detector in the middle of the
    /// scan, or along a direction anticlockwise from the right), or none; can be given several times [default: tv=0.05, none for fista]
    #[arg(long, value_name = "NAME=W")]
    pub(crate) regularizer: Vec<String>,
    /// Choose the weight of |x|² for each image by a rule: auto (the least estimated error, for an unknown level of noise), wgcv, gcv,
    /// modified-gcv, l-curve, or with the noise as a part of |b| discrepancy=NOISE, upre=NOISE. There is no other regularizer then
    /// unless one is named
    #[arg(long, value_name = "RULE")]
    pub(crate) weight: Option<WeightRule>,
    /// Draw what the rule saw: the curve over all weights, and that of residual and size (.png or .svg; of the first image)
    #[arg(long, value_name = "FILE", requires = "weight")]
    pub(crate) plot: Option<PathBuf>,
    /// Least value of a pixel [default: 0 for scans, none for --matrix]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) lower: Option<f64>,
    /// Greatest value of a pixel [default: none]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) upper: Option<f64>,
    /// Pixels that may hold something, all others are 0: disc (the one whose shadow the scan shows; of several scans all), or a .npy array of --size rows
    /// that is not 0 there; for fista and pdhg
    #[arg(long, value_name = "disc|FILE")]
    pub(crate) support: Option<String>,
    /// Most iterations
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) iterations: usize,
    /// Stop when |b - Ax| <= RTOL |b|; exit status 1 if that is not reached
    #[arg(long)]
    pub(crate) rtol: Option<f64>,
    /// Stop when the gradient is at most GRADIENT_RTOL |A| |r|: a minimum [default: 1e-6 in fp32, 1e-11 in fp64; 0 for never]
    #[arg(long)]
    pub(crate) gradient_rtol: Option<f64>,
    /// ... or when it has fallen to this part of its first value
    #[arg(long, default_value_t = 0.0)]
    pub(crate) gradient_reduction: f64,

    /// Reference picture of the same field (a challenge .mat file or a square .npy): prints correlation and PSNR
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Cut the picture into classes by Otsu's rule and save them (.npy, bytes; 0 is the darkest)
    #[arg(long, value_name = "FILE")]
    pub(crate) segment: Option<PathBuf>,
    /// Number of classes for --segment and --truth [default: 2]
    #[arg(long, value_name = "COUNT")]
    pub(crate) classes: Option<usize>,
    /// True classes of the pixels (a challenge _seg.mat file or a .npy of --size rows): prints the correlation of Matthews
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
    /// Picture to write, as PNG [default: reconstruction.png]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also save the image as numbers (.npy)
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl Options {
    /// Set-up of a reconstruction, without a support; `picture` tells if the unknowns are an image, `middle` is the direction of the
    /// detector in the middle of the scan.
    pub(crate) fn how<T: Real>(&self, picture: bool, middle: Option<f64>) -> Result<Reconstruction> {
        let default = Reconstruction::of_scans::<T>();
        // A text that is bad for another reason is quoted as it was typed.
        let parsed = |text: &String| match (text.starts_with("directional=") && !text.contains('@'), middle) {
            (true, Some(middle)) => format!("{text}@{middle}").parse::<Regularizer>().or_else(|_| text.parse()),
            _ => text.parse(),
        };
        let named = self.regularizer.iter().filter(|text| *text != "none").map(parsed);
        let named = named.collect::<Result<Vec<_>>>()?;
        let lower = self.lower.unwrap_or(if self.matrix.is_some() { f64::NEG_INFINITY } else { default.lower });
        let upper = self.upper.unwrap_or(default.upper);
        if lower.partial_cmp(&upper).is_none_or(|order| order.is_gt()) {
            return Err(option("lower", format!("{lower} is not below upper = {upper}")));
        }
        let stopping = Stopping {
            rtol: self.rtol.unwrap_or(default.stopping.rtol),
            max_iterations: self.iterations,
            gradient_rtol: self.gradient_rtol.unwrap_or(default.stopping.gradient_rtol),
            gradient_reduction: self.gradient_reduction,
            ..default.stopping
        };
        let regularizers = match (self.regularizer.is_empty(), picture) {
            (true, true) if self.method != Method::Fista && self.weight.is_none() => default.regularizers,
            _ => named,
        };
        Ok(Reconstruction {
            method: self.method,
            regularizers,
            weight: self.weight,
            lower,
            upper,
            support: None,
            stopping,
        })
    }

    /// The scanner of a `.npy` sinogram.
    pub(crate) fn geometry(&self) -> Result<Geometry> {
        let beam = match (self.geometry, self.source_origin, self.source_detector) {
            (None | Some(BeamKind::Parallel), _, _) => Beam::Parallel,
            (Some(BeamKind::Fan), Some(source_origin), Some(source_detector)) => {
                Beam::Fan { source_origin, source_detector }
            }
            _ => return Err(option("geometry", "a fan needs --source-origin and --source-detector")),
        };
        let default = Geometry::default();
        Ok(Geometry {
            beam,
            arc: self.arc.unwrap_or(default.arc),
            pitch: self.pitch.unwrap_or(default.pitch),
            offset: self.detector_offset.unwrap_or(default.offset),
        })
    }

    /// Degrees of the scan that are kept, if not all are.
    pub(crate) fn kept(&self) -> Result<Option<RangeInclusive<f64>>> {
        let Some(text) = &self.keep else { return Ok(None) };
        let number = |text: &str| text.trim().parse().ok().filter(|degrees: &f64| degrees.is_finite());
        match text.split_once(':').map(|(from, to)| (number(from), number(to))) {
            Some((Some(from), Some(to))) if from <= to => Ok(Some(from..=to)),
            Some((Some(from), Some(to))) => Err(option("keep", format!("{from} is above {to}"))),
            _ => Err(option("keep", format!("'{text}' is not two numbers of degrees, such as 0:90"))),
        }
    }

    /// Fails on options that would change nothing, and on outputs that could not be written.
    pub(crate) fn check(&self) -> Result<()> {
        let of_scans = [
            ("size", self.size.is_some()),
            ("keep", self.keep.is_some()),
            ("angles", self.angles.is_some()),
            ("background", self.background),
            ("polynomial", !self.polynomial.is_empty()),
            ("support", self.support.is_some()),
            ("bin", self.bin.is_some()),
            ("field", self.field.is_some()),
            ("reference", self.reference.is_some()),
        ];
        let of_sinograms = [
            ("geometry", self.geometry.is_some()),
            ("arc", self.arc.is_some()),
            ("pitch", self.pitch.is_some()),
            ("detector-offset", self.detector_offset.is_some()),
            ("source-origin", self.source_origin.is_some()),
            ("source-detector", self.source_detector.is_some()),
        ];
        if self.matrix.is_some() {
            refuse_unused("with --matrix: there is no scan", &[&of_scans[..], &of_sinograms].concat())?;
            let of_pictures = [
                ("output", self.output.is_some()),
                ("segment", self.segment.is_some()),
                ("truth", self.truth.is_some()),
            ];
            let of_pictures = of_pictures.map(|(name, given)| (name, given && self.width.is_none()));
            refuse_unused("with --matrix unless --width says that the unknowns are a picture", &of_pictures)?;
        }
        self.kept()?;
        if self.method == Method::Cgnr {
            refuse_unused(
                "for cgnr, whose bounds are a penalty; see --method",
                &[("support", self.support.is_some())],
            )?;
        }
        if let Some(classes) = self.classes.filter(|classes| !Segmentation::CLASSES.contains(classes)) {
            let (least, most) = Segmentation::CLASSES.into_inner();
            return Err(option("classes", format!("{classes} is not between {least} and {most}")));
        }
        if self.segment.is_none() && self.truth.is_none() {
            refuse_unused("without --segment or --truth", &[("classes", self.classes.is_some())])?;
        }
        match &self.input {
            None => refuse_unused("for the simulated scan, which knows its scanner", &of_sinograms)?,
            Some(path) if FileKind::of(path)? != Some(FileKind::Npy) => {
                refuse_unused(
                    "for this scan, whose file says how it was taken; it is for .npy sinograms",
                    &of_sinograms,
                )?;
            }
            Some(_) if self.geometry.unwrap_or(BeamKind::Parallel) == BeamKind::Parallel => {
                refuse_unused("for a parallel beam", &of_sinograms[4..])?;
            }
            Some(_) => {}
        }
        check_ending("output", &self.picture(), &["png"])?;
        if let Some(path) = &self.plot {
            common::plot::check(path)?;
        }
        if let Some(path) = &self.segment {
            check_ending("segment", path, &["npy"])?;
        }
        // Pictures of several images have names of their own, known once the input is read.
        let written = self.output.is_some() || self.matrix.is_none();
        self.check_files(written.then(|| self.picture()).as_slice())
    }

    /// Fails on outputs that are inputs, or cannot be written.
    pub(crate) fn check_files(&self, pictures: &[PathBuf]) -> Result<()> {
        let inputs = [&self.input, &self.matrix, &self.rhs, &self.reference, &self.truth];
        let support = self.support.as_deref().filter(|support| *support != "disc").map(Path::new);
        let inputs: Vec<&Path> = inputs.into_iter().flatten().map(|path| &**path).chain(support).collect();
        let pictures = pictures.iter().map(|path| ("output", &**path));
        let numbers =
            [("save", self.save.as_deref()), ("segment", self.segment.as_deref()), ("plot", self.plot.as_deref())];
        let outputs: Vec<(&'static str, &Path)> =
            pictures.chain(numbers.into_iter().filter_map(|(name, path)| Some((name, path?)))).collect();
        check_outputs(&inputs, &outputs)
    }

    /// Path of the picture.
    pub(crate) fn picture(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| "reconstruction.png".into())
    }

    /// Paths of `count` pictures: `name.png`, or `name-1.png`, `name-2.png`, ...
    pub(crate) fn pictures(&self, count: usize) -> Vec<PathBuf> {
        let path = self.picture();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let ending = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
        match count {
            1 => vec![path],
            _ => (1..=count).map(|c| path.with_file_name(format!("{stem}-{c}{ending}"))).collect(),
        }
    }
}
