//! Options of the program `reconstruct`, and what they mean.

use std::path::{Path, PathBuf};

use clap::Parser;
use common::{
    DeviceOptions, HistoryOption, Overwriting, Precision, check_ending, check_outputs, option, refuse_unused,
};
use residuum::imaging::{
    AngleUnit, BadPixels, Field, Filter, Flip, Image, Order, Reconstruction, Region, Regularizer, Scanner,
    Segmentation, Window,
};
use residuum::io::FileKind;
use residuum::{Format, Method, Real, Result, StopRule, WeightRule, io};

use crate::geometry::InputKind;

/// Way to a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// By filtered back-projection alone.
    Fbp,
    Iterate(Method),
}

/// Takes the name of a method, or fbp.
fn way(name: &str) -> Result<Way> {
    Ok(if name == "fbp" { Way::Fbp } else { Way::Iterate(name.parse()?) })
}

/// Rule that ends the iterations of an ill-posed problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    Ncp,
    Discrepancy(f64),
    MonotoneError(f64),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ncp => f.write_str("ncp"),
            Self::Discrepancy(noise) => write!(f, "discrepancy={noise}"),
            Self::MonotoneError(noise) => write!(f, "monotone-error={noise}"),
        }
    }
}

/// Takes the name of a rule, with the noise for those that need it.
fn ending(text: &str) -> Result<Ending> {
    let noise = |text: &str| text.parse().ok().filter(|noise| *noise > 0.0 && *noise < 1.0);
    let named = match text.split_once('=') {
        None => (text == "ncp").then_some(Ending::Ncp),
        Some(("discrepancy", level)) => noise(level).map(Ending::Discrepancy),
        Some(("monotone-error", level)) => noise(level).map(Ending::MonotoneError),
        Some(_) => None,
    };
    let known = "ncp, discrepancy=NOISE and monotone-error=NOISE, with a NOISE between 0 and 1";
    named.ok_or_else(|| option("stop", format!("'{text}' is none of {known}")))
}

/// Two numbers with a colon between them.
pub(crate) fn pair<N: std::str::FromStr>(text: &str) -> Option<(N, N)> {
    let (first, last) = text.split_once(':')?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

/// Reconstruct an image from sensor data by regularised least squares.
///
/// Without input: a simulated fan-beam scan with noise and gain errors. Exit status: 0 done, 1 not converged (a
/// tolerance was asked for and not met, or the iteration broke down), 2 bad input.
///
/// Coordinates: x runs to the right of the picture and y upwards; row 0 of the picture is the uppermost. At angle t,
/// anticlockwise, the detector runs along (cos t, sin t) with its pixels in that order, and rays along (-sin t, cos t):
/// at angle 0 the source is below the picture, rays run upwards, and pixel 0 sees the left edge. A picture that comes out
/// mirrored was seen from the other side: give --flip picture. If a fan makes arcs or a smear instead of edges, its scanner may turn
/// the other way: give --flip angles.
#[derive(Debug, Parser)]
#[command(name = "reconstruct", version = common::version(), after_help = common::help_of_work())]
pub(crate) struct Options {
    /// Scan: a Helsinki Tomography Challenge 2022 .mat file; a .npy sinogram of line integrals, -log(I / I0) (angles x
    /// pixels, or images x angles x pixels for several images at once); or counts: HDF5 (.h5, .nxs, in a build with
    /// --features hdf5), with --flat also a .npy volume (angles x slices x pixels, or angles x pixels of one slice), a TIFF file or a folder of TIFF
    /// files, one a projection (--features tiff; a single picture is the sinogram of one slice)
    #[arg(long, value_name = "FILE", conflicts_with = "matrix")]
    pub(crate) input: Option<PathBuf>,
    /// System matrix, Matrix Market (.mtx, .mtx.gz, or in a .tar.gz, .tar or .zip) or SciPy's (.npz)
    #[arg(long, value_name = "FILE", requires = "rhs")]
    pub(crate) matrix: Option<PathBuf>,
    /// Right-hand sides for --matrix: Matrix Market, .npy, or .npz with one array: n numbers, n x k (a column each), or k x n if only that fits
    #[arg(long, value_name = "FILE", requires = "matrix")]
    pub(crate) rhs: Option<PathBuf>,
    /// Image row length for --matrix, if the unknowns are an image
    #[arg(long, value_name = "PIXELS", requires = "matrix")]
    pub(crate) width: Option<usize>,

    /// Projections in an HDF5 file: the path of their data set [default: exchange/data]
    #[arg(long, value_name = "PATH", requires = "input")]
    pub(crate) data: Option<String>,
    /// Order of an array of three dimensions, or of the pictures of a stack: angles first (a picture is a projection), or slices first
    /// (a picture is a sinogram) [default: angles for counts, but slices for a single picture; slices for line integrals]
    #[arg(long, value_name = "angles|slices", requires = "input")]
    pub(crate) order: Option<Order>,
    /// The readings of a .npy array are line integrals, although they look like counts
    #[arg(long, requires = "input", conflicts_with = "flat")]
    pub(crate) line_integrals: bool,
    /// Flat field of counts, what the detector counts without an object: a volume of frames, a number, or the path of a data set in the HDF5 file
    /// of --input or another one (FILE.h5:PATH). Frames whose light is far from that of the others are left out, and named
    #[arg(long, value_name = "FILE|COUNT|PATH", requires = "input")]
    pub(crate) flat: Option<Field>,
    /// Dark field of counts, what it counts without a beam: as --flat [default: 0]
    #[arg(long, value_name = "FILE|COUNT|PATH", requires = "input")]
    pub(crate) dark: Option<Field>,
    /// Slices of counts, from the first to before the last, from 0 [default: all]
    #[arg(long, value_name = "FIRST:LAST", requires = "input")]
    pub(crate) slices: Option<String>,
    /// Slices of counts that are read and solved for before the next ones are read [default: as many as half of this machine's memory takes]
    #[arg(long, value_name = "COUNT", requires = "input")]
    pub(crate) at_once: Option<usize>,

    /// Pixels of the detector that do not count, from 0: 77, 90-93, or 5:77 for slice 5 alone, with commas between them. Those of counts that the flat
    /// field shows to be dead or hot are found, unless none is in the list
    #[arg(long, value_name = "LIST", requires = "input")]
    pub(crate) bad_pixels: Option<BadPixels>,

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
    /// Take out rings: the readings of each pixel, sorted, get the median of this many neighbouring pixels (odd)
    #[arg(long, value_name = "PIXELS")]
    pub(crate) rings: Option<usize>,
    /// Keep the detector's pixels from the first to before the last, from 0 [default: all]
    #[arg(long, value_name = "FIRST:LAST")]
    pub(crate) crop: Option<String>,
    /// Average this many neighbouring detector pixels into one [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(crate) bin: Option<usize>,

    /// Beam of a scan whose file does not say it: parallel, fan (a flat detector), curved (a detector on a circle about the source), or a file
    /// of the whole geometry (.toml, as --save-geometry writes it; it may name source and detector of each view) [default: parallel]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) geometry: Option<String>,
    /// Angles: this many degrees, evenly divided, anticlockwise from --start; negative for clockwise [default: those of the file, else 180 of a
    /// parallel beam]
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true)]
    pub(crate) arc: Option<f64>,
    /// First angle of --arc, which turns the picture [default: 0]
    #[arg(long, value_name = "DEGREES", allow_hyphen_values = true, requires = "arc")]
    pub(crate) start: Option<f64>,
    /// Angle of each projection: a text of one number a line, .npy or Matrix Market; or the path of a data set in the HDF5 file of --input
    #[arg(long, value_name = "FILE|PATH", conflicts_with = "arc")]
    pub(crate) theta: Option<PathBuf>,
    /// Unit of these angles, or of those of an HDF5 file [default: that of the file, else degrees; asked for if they look like radians]
    #[arg(long, value_name = "degrees|radians")]
    pub(crate) theta_unit: Option<AngleUnit>,
    /// Reverse the pixels of the detector, or the sense of the angles, or both (picture), which mirrors the picture of any beam, left to right.
    /// Of a fan the other two make another scan: angles is for a scanner that turns clockwise. --axis and --detector-offset count the
    /// pixels of the file
    #[arg(long, value_name = "pixels|angles|picture")]
    pub(crate) flip: Option<Flip>,
    /// Distance between detector pixels [default: 1]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) pitch: Option<f64>,
    /// Shift of the detector's middle in pixels [default: 0]
    #[arg(long, value_name = "PIXELS", allow_hyphen_values = true, conflicts_with = "axis")]
    pub(crate) detector_offset: Option<f64>,
    /// Place on the detector that the rotation axis is seen at, in pixels from the middle of the first one (the middle of the detector is
    /// (pixels - 1) / 2), or auto: searched for in the readings [default: auto for counts of half a turn or more, else by --detector-offset]
    #[arg(long, value_name = "PIXELS|auto", allow_hyphen_values = true)]
    pub(crate) axis: Option<String>,
    /// Distance from source to rotation centre, for --geometry fan and curved
    #[arg(long, value_name = "LENGTH")]
    pub(crate) source_origin: Option<f64>,
    /// Distance from source to detector, for --geometry fan and curved
    #[arg(long, value_name = "LENGTH")]
    pub(crate) source_detector: Option<f64>,
    /// Write the geometry of the scan as it was read, with its angles and the axis that was found (.toml)
    #[arg(long, value_name = "FILE")]
    pub(crate) save_geometry: Option<PathBuf>,
    /// Side length of the imaged square, about the axis; all of the object should lie in it [default: what the detector sees]
    #[arg(long, value_name = "LENGTH")]
    pub(crate) field: Option<f64>,
    /// Cut this rectangle out of the picture after the solve, in the unit of the pitch, to the right and upwards from the axis. --size counts the pixels of
    /// the whole picture
    #[arg(long, value_name = "X0:X1,Y0:Y1", allow_hyphen_values = true)]
    pub(crate) roi: Option<Region>,

    /// Precision of vectors and matrix
    #[arg(long, value_enum, default_value_t = Precision::Fp32)]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) on: DeviceOptions,
    /// Storage of the matrix: auto, on-the-fly (scans: rays are traced as they are needed), or one of csr, csr-scalar,
    /// csr-adaptive, ellpack, ellpack-r, sell, hyb, dia, bsr, dense, coo
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: Format,

    /// cgnr (bounds by a penalty), fista, sirt, sart or pdhg (bounds kept exactly; pdhg: total variation itself, not a smooth stand-in), nnfcgls or
    /// mrnsd (no pixel below 0 or --lower), mlem (the likelihood of counts, no pixel below 0), or fbp: filtered back-projection alone, in one step
    #[arg(long, value_name = "NAME", default_value = "cgnr", value_parser = way)]
    pub(crate) method: Way,
    /// Length of the steps of sirt and sart, above 0 and below 2 [default: 1]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) omega: Option<f64>,
    /// Subsets of the angles, or of the rows of --matrix, that sart takes a step after: as many as angles is SART as it was first described
    /// [default: one for 10 angles; for --matrix 1, which is sirt]
    #[arg(long, value_name = "COUNT")]
    pub(crate) subsets: Option<usize>,
    /// Start from the filtered back-projection instead of 0
    #[arg(long)]
    pub(crate) start_fbp: bool,
    /// Window of the filter of back-projection, from sharp to smooth: ram-lak, shepp-logan, cosine, hamming or hann [default: ram-lak]
    #[arg(long, value_name = "NAME")]
    pub(crate) filter: Option<Filter>,
    /// tikhonov=W, smooth=W (cgnr), tv=W (not fista), directional=W[@DEGREES] (pdhg: changes along the detector in the middle of the
    /// scan, or along a direction anticlockwise from the right), or none; can be given several times [default: tv=0.05, none for fista,
    /// sirt, sart, mlem, nnfcgls and mrnsd]
    #[arg(long, value_name = "NAME=W")]
    pub(crate) regularizer: Vec<String>,
    /// Choose the weight of |x|² for each image by a rule: auto (the least estimated error, for an unknown level of noise), wgcv, gcv,
    /// modified-gcv, l-curve, or with the noise as a part of |b| discrepancy=NOISE, upre=NOISE. There is no other regularizer then
    /// unless one is named
    #[arg(long, value_name = "RULE")]
    pub(crate) weight: Option<WeightRule>,
    /// End where later iterates would take up noise: ncp (the residual is most like white noise along the angles; for an unknown level of noise),
    /// or with the noise as a part of |b| discrepancy=NOISE (as --rtol 1.01 NOISE), monotone-error=NOISE (for cgnr with --regularizer none --lower=-inf).
    /// Exit status 1 if that is not reached
    #[arg(long, value_name = "RULE", value_parser = ending, conflicts_with = "rtol")]
    pub(crate) stop: Option<Ending>,
    /// Draw what the rule saw: of --weight the curve over all weights, and that of residual and size, of --stop its values by iteration (.png or
    /// .svg; of the first image)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Least value of a pixel [default: 0 for scans, none for --matrix]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) lower: Option<f64>,
    /// Greatest value of a pixel [default: none]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) upper: Option<f64>,
    /// Pixels that may hold something, all others are 0: disc (the one whose shadow the scan shows; of several scans all), or a .npy array of --size rows
    /// that is not 0 there; for all methods but cgnr and fbp
    #[arg(long, value_name = "disc|FILE")]
    pub(crate) support: Option<String>,
    /// Most iterations [default: 100, for sart 10, ten times as many with --stop; for pdhg 1000, or 2000 if angles of the scan are missing]
    #[arg(long, value_name = "COUNT")]
    pub(crate) iterations: Option<usize>,
    /// Stop when |b - Ax| <= RTOL |b|; exit status 1 if that is not reached
    #[arg(long)]
    pub(crate) rtol: Option<f64>,
    /// Stop when the gradient is at most GRADIENT_RTOL |A| |r|: a minimum [default: 1e-6 in fp32, 1e-11 in fp64; 0 for never]
    #[arg(long)]
    pub(crate) gradient_rtol: Option<f64>,
    /// ... or when it has fallen to this part of its first value [default: without --rtol 1e-4 for cgnr and 1e-3 for pdhg, 50 times as much from a
    /// back-projection, if no angles of the scan are missing: pictures only gain noise from there; else 0]
    #[arg(long)]
    pub(crate) gradient_reduction: Option<f64>,

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
    #[arg(long, value_name = "FILE", conflicts_with = "roi")]
    pub(crate) truth: Option<PathBuf>,
    /// Picture to write, as PNG [default: reconstruction.png]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Values that pictures show, black to white, the same for all of them [default: from the 0.5th to the 99.5th percentile of all]
    #[arg(long, value_name = "LOW:HIGH", allow_hyphen_values = true)]
    pub(crate) window: Option<String>,
    /// Also save the images as numbers (.npy, .npz; one picture, and answers of --matrix, also as .mtx or .txt), or as the pictures of one TIFF
    /// file (.tif, --features tiff; see --bits)
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Bits of a pixel of a TIFF file: 16 (0 to 65535 is the window; the file says so in ImageJ's words) or 32 (floats, the values themselves)
    #[arg(long, value_name = "16|32", default_value = "16", value_parser = ["16", "32"])]
    pub(crate) bits: String,
    #[command(flatten)]
    pub(crate) overwriting: Overwriting,
    /// Print one JSON object on stdout instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) history: HistoryOption,
}

impl Options {
    /// Set-up of a reconstruction, without a support; `picture` tells if the unknowns are an image.
    pub(crate) fn how<T: Real>(&self, picture: bool, scanner: Option<&Scanner>) -> Result<Reconstruction> {
        let default = scanner.map_or_else(Reconstruction::of_scans::<T>, Reconstruction::of_scanner::<T>);
        // Before the scanner is known any direction will do.
        let middle = scanner.map(Scanner::middle).or_else(|| self.matrix.is_none().then_some(0.0));
        // A text that is bad for another reason is quoted as it was typed.
        let parsed = |text: &String| match (text.starts_with("directional=") && !text.contains('@'), middle) {
            (true, Some(middle)) => format!("{text}@{middle}").parse::<Regularizer>().or_else(|_| text.parse()),
            _ => text.parse(),
        };
        let named = self.regularizer.iter().filter(|text| *text != "none").map(parsed);
        let named = named.collect::<Result<Vec<_>>>()?;
        // The negative values of a back-projection are part of what it shows.
        let free = self.matrix.is_some() || self.method == Way::Fbp;
        let lower = self.lower.unwrap_or(if free { f64::NEG_INFINITY } else { default.lower });
        let upper = self.upper.unwrap_or(default.upper);
        for (name, bound, wrong) in [("lower", lower, f64::INFINITY), ("upper", upper, f64::NEG_INFINITY)] {
            let there = T::from_f64(bound).to_f64();
            if bound.is_nan() || there == wrong {
                let reason = format!("{bound} leaves no value that a pixel can have in {}", T::PRECISION);
                return Err(option(name, reason));
            }
        }
        if lower.partial_cmp(&upper).is_none_or(|order| order.is_gt()) {
            return Err(option("lower", format!("{lower} is not below upper = {upper}")));
        }
        // The gradient of a back-projection is small at first, and that of PDHG counts steps of dual variables too.
        let slack = if self.start_fbp { 50.0 } else { 1.0 };
        let reduction = match (self.method, self.rtol.is_some() || self.stop.is_some()) {
            (Way::Iterate(Method::Cgnr), false) => slack * default.stopping.gradient_reduction,
            (Way::Iterate(Method::Pdhg), false) => 10.0 * slack * default.stopping.gradient_reduction,
            _ => 0.0,
        };
        let (limit, rule) = match self.stop {
            None => (None, None),
            Some(Ending::Discrepancy(noise)) => (Some(1.01 * noise), None),
            Some(Ending::MonotoneError(noise)) => (None, Some(StopRule::MonotoneError { noise })),
            Some(Ending::Ncp) if self.matrix.is_some() => {
                return Err(option("stop", "ncp needs a scan: --matrix says nothing of its angles"));
            }
            Some(Ending::Ncp) => (None, scanner.map(Scanner::ncp)),
        };
        let stopping = default.stopping.clone();
        let stopping = stopping
            .with_rtol(self.rtol.or(limit).unwrap_or(default.stopping.rtol))
            .with_rule(rule)
            .with_max_iterations(self.most_iterations(scanner))
            .with_gradient_rtol(self.gradient_rtol.unwrap_or(default.stopping.gradient_rtol))
            .with_gradient_reduction(self.gradient_reduction.unwrap_or(reduction));
        let method = match self.method {
            Way::Fbp => Method::Cgnr,
            Way::Iterate(Method::Sirt { omega }) => Method::Sirt { omega: self.omega.unwrap_or(omega) },
            Way::Iterate(Method::Sart { omega }) => Method::Sart { omega: self.omega.unwrap_or(omega) },
            Way::Iterate(method) => method,
        };
        let terms =
            self.method != Way::Fbp && matches!(method, Method::Cgnr | Method::Pdhg) && self.weight.is_none();
        let regularizers = match (self.regularizer.is_empty(), picture) {
            (true, true) if terms => default.regularizers.clone(),
            _ => named,
        };
        let fbp = self.start_fbp || self.method == Way::Fbp;
        Ok(default
            .with_method(method)
            .with_regularizers(regularizers)
            .with_weight(self.weight)
            .with_start(fbp.then(|| self.filter.unwrap_or_default()))
            .with_lower(lower)
            .with_upper(upper)
            .with_stopping(stopping))
    }

    /// Tells if images are saved as TIFF.
    pub(crate) fn saves_tiff(&self) -> bool {
        let ending = self.save.as_deref().and_then(Path::extension);
        ending.is_some_and(|ending| ["tif", "tiff"].iter().any(|known| ending.eq_ignore_ascii_case(known)))
    }

    /// Tells if the scan is in an HDF5 file.
    pub(crate) fn reads_hdf5(&self) -> bool {
        let is_hdf5 = |path: &PathBuf| matches!(FileKind::of(path), Ok(Some(FileKind::Hdf5)));
        self.input.as_ref().is_some_and(|path| path.is_file() && is_hdf5(path))
    }

    /// Path of the angles within an HDF5 file, if that is what the option names.
    pub(crate) fn theta_place(&self) -> Option<String> {
        let theta = self.theta.as_ref().filter(|theta| !theta.exists() && self.reads_hdf5())?;
        Some(theta.to_string_lossy().into_owned())
    }

    /// Tells if steps are taken after subsets.
    pub(crate) fn takes_subsets(&self) -> bool {
        matches!(self.method, Way::Iterate(Method::Sart { .. }))
    }

    /// Iterations at most. PDHG takes 200 to 500 to a picture of all angles, and gains for longer where some are missing.
    pub(crate) fn most_iterations(&self, scanner: Option<&Scanner>) -> usize {
        let longer = if self.stop.is_some() { 10 } else { 1 };
        let most = match self.method {
            Way::Fbp => return 0,
            Way::Iterate(Method::Sart { .. }) => 10 * longer,
            Way::Iterate(Method::Pdhg) if scanner.is_some_and(|scanner| !scanner.sees_all()) => 2000,
            Way::Iterate(Method::Pdhg) => 1000,
            Way::Iterate(_) => 100 * longer,
        };
        self.iterations.unwrap_or(most)
    }

    /// Values that pictures show.
    pub(crate) fn window<T: Real>(&self, images: &[Image<T>]) -> Result<Window> {
        let Some(text) = &self.window else { return Ok(Window::of(images)) };
        match pair::<f64>(text) {
            Some((low, high)) if low < high && (high - low).is_finite() => Ok(Window { low, high }),
            _ => Err(option("window", format!("'{text}' is not two numbers in ascending order, such as 0:1.5"))),
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
            ("rings", self.rings.is_some()),
            ("crop", self.crop.is_some()),
            ("axis", self.axis.is_some()),
            ("save-geometry", self.save_geometry.is_some()),
            ("start-fbp", self.start_fbp),
            ("field", self.field.is_some()),
            ("roi", self.roi.is_some()),
            ("flip", self.flip.is_some()),
            ("reference", self.reference.is_some()),
        ];
        let of_sinograms = [&[("geometry", self.geometry.is_some())][..], &self.of_geometry()].concat();
        let of_counts = [
            ("flat", self.flat.is_some()),
            ("dark", self.dark.is_some()),
            ("slices", self.slices.is_some()),
            ("at-once", self.at_once.is_some()),
            ("data", self.data.is_some()),
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
        self.slices()?;
        if self.at_once == Some(0) {
            return Err(option("at-once", "0 slices are none"));
        }
        self.crop()?;
        self.axis()?;
        self.window::<f32>(&[])?;
        match (self.method, self.start_fbp) {
            (Way::Fbp, _) => {
                let of_iterations = [
                    ("start-fbp", self.start_fbp),
                    ("iterations", self.iterations.is_some()),
                    ("regularizer", !self.regularizer.is_empty()),
                    ("weight", self.weight.is_some()),
                    ("rtol", self.rtol.is_some()),
                    ("stop", self.stop.is_some()),
                    ("gradient-rtol", self.gradient_rtol.is_some()),
                    ("gradient-reduction", self.gradient_reduction.is_some()),
                ];
                refuse_unused("for fbp, which does not iterate", &of_iterations)?;
                if self.matrix.is_some() {
                    return Err(option("method", "fbp needs a scan: --matrix says nothing of its rays"));
                }
            }
            (_, false) => refuse_unused("without a back-projection", &[("filter", self.filter.is_some())])?,
            (_, true) => {}
        }
        if !matches!(self.method, Way::Iterate(Method::Sirt { .. } | Method::Sart { .. })) {
            refuse_unused("without --method sirt or sart", &[("omega", self.omega.is_some())])?;
        }
        if !self.takes_subsets() {
            refuse_unused("without --method sart", &[("subsets", self.subsets.is_some())])?;
        }
        if matches!(self.method, Way::Fbp | Way::Iterate(Method::Cgnr)) {
            refuse_unused(
                "for cgnr, whose bounds are a penalty; see --method",
                &[("support", self.support.is_some())],
            )?;
        }
        if let Some(classes) = self.classes.filter(|classes| !Segmentation::CLASSES.contains(classes)) {
            let (least, most) = Segmentation::CLASSES.into_inner();
            return Err(option("classes", format!("{classes} is not between {least} and {most}")));
        }
        let of_stop = matches!(self.stop, Some(Ending::Ncp | Ending::MonotoneError(_)));
        match (self.weight.is_some(), of_stop) {
            (false, false) => refuse_unused(
                "without --weight, or --stop ncp or monotone-error",
                &[("plot", self.plot.is_some())],
            )?,
            (true, true) if self.plot.is_some() => {
                return Err(option("plot", "--weight and --stop have a curve each: leave one of them out"));
            }
            _ => {}
        }
        if self.segment.is_none() && self.truth.is_none() {
            refuse_unused("without --segment or --truth", &[("classes", self.classes.is_some())])?;
        }
        match &self.input {
            None => {
                refuse_unused("for the simulated scan, which knows its scanner", &of_sinograms)?;
                refuse_unused("for the simulated scan, which has no counts", &of_counts)?;
            }
            Some(path) => {
                let kind = self.kind(path)?;
                if kind == InputKind::Scan {
                    let why =
                        "for this scan, whose file says how it was taken; it is for .npy sinograms and counts";
                    refuse_unused(why, &of_sinograms)?;
                }
                if kind == InputKind::Scan {
                    refuse_unused("for this scan", &[("order", self.order.is_some())])?;
                }
                if kind != InputKind::Sinograms {
                    refuse_unused("for files of this kind", &[("line-integrals", self.line_integrals)])?;
                }
                let of_file = kind == InputKind::Counts && self.reads_hdf5();
                if self.theta.is_none() && !of_file {
                    refuse_unused("without --theta", &[("theta-unit", self.theta_unit.is_some())])?;
                }
                if kind != InputKind::Counts {
                    refuse_unused("for line integrals; it is for counts, which need --flat", &of_counts[1..])?;
                    refuse_unused("for this scan, which holds line integrals", &of_counts[..1])?;
                }
            }
        }
        if !self.saves_tiff() {
            refuse_unused("without a TIFF file to save", &[("bits", self.bits != "16")])?;
        }
        if self.saves_tiff() && !cfg!(feature = "tiff") {
            return Err(option("save", "TIFF needs a build with --features tiff"));
        }
        if let Some(path) = self.save_geometry.as_ref().filter(|path| path.extension().is_none_or(|e| e != "toml"))
        {
            return Err(option("save-geometry", format!("'{}' does not end in .toml", path.display())));
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
        let fields = [&self.flat, &self.dark].into_iter().flatten().filter_map(|field| match field {
            Field::File(path) => Some(&**path),
            Field::Number(_) => None,
        });
        let others = support.into_iter().chain(self.geometry_file()).chain(self.theta.as_deref()).chain(fields);
        let inputs: Vec<&Path> = inputs.into_iter().flatten().map(|path| &**path).chain(others).collect();
        let dimensions = if pictures.len() > 1 { 3 } else { 2 };
        let pictures = pictures.iter().map(|path| ("output", &**path));
        let numbers = [
            ("save", self.save.as_deref()),
            ("save-geometry", self.save_geometry.as_deref()),
            ("segment", self.segment.as_deref()),
            ("plot", self.plot.as_deref()),
        ];
        let outputs: Vec<(&'static str, &Path)> =
            pictures.chain(numbers.into_iter().filter_map(|(name, path)| Some((name, path?)))).collect();
        check_outputs(&inputs, &outputs)?;
        if let Some(path) = self.save.as_ref().filter(|_| !self.saves_tiff()) {
            io::ArrayForm::of(path).map_err(|error| option("save", format!("{error}; pictures also as .tif")))?;
            io::ArrayForm::check(path, dimensions)?;
        }
        self.overwriting.check(&outputs)
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
