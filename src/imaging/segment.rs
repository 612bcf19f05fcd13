//! Pictures cut into classes of pixels, and how well two cuts agree.

use std::ops::RangeInclusive;
use std::path::Path;

use super::htc;
use crate::error::{Error, Result, same_length};
use crate::io::FileKind;
use crate::io::npy;

/// Classes that every pixel of a picture falls into: 0 for the darkest.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Segmentation {
    /// Rows of pixels, the uppermost first.
    pub rows: usize,
    /// Pixels of a row.
    pub cols: usize,
    /// Thresholds in ascending order: a pixel is of class `c` if `c` of them are at most its value, to the rounding of a bin's end. Empty
    /// for one that was read.
    pub thresholds: Vec<f64>,
    /// Class of each pixel, row by row.
    pub classes: Vec<u8>,
}

/// Bins of the histogram that thresholds are chosen from.
const BINS: usize = 256;
impl Segmentation {
    /// Numbers of classes that a picture can be cut into: more are none that anybody could tell apart in so many bins.
    pub const CLASSES: RangeInclusive<usize> = 2..=16;

    /// Cuts a picture of `rows × cols` values into `classes` classes by Otsu's rule. Of all thresholds between 256 bins of equal width,
    /// from the least to the greatest value, those are taken for which the variance between the classes is the largest:
    ///
    /// ```text
    ///   sum over classes of w (m - mean)²        w: number of pixels, m: their mean, both by the bins
    /// ```
    ///
    /// A threshold that lies anywhere among empty bins lies in their middle. Found by dynamic programming: `classes · 256²` steps.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of values; [`Error::NotFinite`]; [`Error::Option`] unless `classes` is 2 to 16, and for a
    /// picture with fewer different values (by bins) than that.
    ///
    /// # Source
    /// N. Otsu, "A threshold selection method from gray-level histograms", IEEE Trans. Syst. Man Cybern. 9(1), 1979.
    pub fn otsu(values: &[f64], [rows, cols]: [usize; 2], classes: usize) -> Result<Self> {
        same_length("pixels of a picture", rows.saturating_mul(cols), values.len())?;
        if let Some(index) = values.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: "the picture".into(), index });
        }
        if !Self::CLASSES.contains(&classes) {
            let reason = format!("{classes} is not between {} and {}", Self::CLASSES.start(), Self::CLASSES.end());
            return Err(Error::Option { name: "classes", reason });
        }
        let Histogram { bins, counts } = Histogram::of(values);
        let different = counts.iter().filter(|count| **count > 0.0).count();
        if different < classes {
            let reason = format!("{classes} for a picture of {different} different grey values");
            return Err(Error::Option { name: "classes", reason });
        }
        let cuts = best_cuts(&counts, classes);
        // By bins, as the cuts were chosen: a value on the end of a bin is on either side of a rounded threshold.
        let class = |v: &f64| cuts.iter().filter(|cut| bins.of(*v) >= **cut).count() as u8;
        let classes = values.iter().map(class).collect();
        let thresholds = cuts.iter().map(|cut| bins.threshold(&counts, *cut)).collect();
        Ok(Self { rows, cols, thresholds, classes })
    }

    /// Reads a segmentation: a challenge `.mat` file (`..._seg.mat`), or a `.npy` array of two dimensions, whose numbers are classes.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Format`] for a file that holds none, or a number that is no class (0 to 255).
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let refuse = |reason: String| Error::Format { what: path.display().to_string(), reason };
        let (rows, cols, values) = match FileKind::of(path)? {
            Some(FileKind::Npy) => {
                let array = npy::read(path)?;
                match array.shape[..] {
                    [rows, cols] => (rows, cols, array.data),
                    _ => return Err(refuse(format!("{} dimensions; a picture has 2", array.shape.len()))),
                }
            }
            Some(FileKind::Mat5) | None => htc::read_picture(path)?,
            Some(other) => return Err(other.refused(path, "a segmentation (.mat or .npy)")),
        };
        let class = |value: &f64| {
            let class = *value as u8;
            match f64::from(class) == *value {
                true => Ok(class),
                false => Err(refuse(format!("{value} is no class: those are whole numbers from 0 to 255"))),
            }
        };
        let classes = values.iter().map(class).collect::<Result<_>>()?;
        Ok(Self { rows, cols, thresholds: Vec::new(), classes })
    }

    /// Correlation of Matthews with a segmentation that is taken for the truth, of pixels that are not of class 0:
    ///
    /// ```text
    ///   (tp tn - fp fn) / sqrt((tp + fp) (tp + fn) (tn + fp) (tn + fn))
    /// ```
    ///
    /// 1 for the same picture, 0 for one by chance, and 0 if one of the two has pixels of one kind alone. The score of the Helsinki
    /// Tomography Challenge 2022.
    ///
    /// # Errors
    /// [`Error::Shape`] for pictures of different sizes.
    ///
    /// # Source
    /// B. W. Matthews, "Comparison of the predicted and observed secondary structure of T4 phage lysozyme", Biochim. Biophys. Acta
    /// 405(2), 1975.
    pub fn matthews(&self, truth: &Self) -> Result<f64> {
        same_length("rows of a segmentation against the truth", truth.rows, self.rows)?;
        same_length("columns of a segmentation against the truth", truth.cols, self.cols)?;
        let mut counts = [[0.0f64; 2]; 2];
        for (found, truth) in self.classes.iter().zip(&truth.classes) {
            counts[usize::from(*found > 0)][usize::from(*truth > 0)] += 1.0;
        }
        let [[tn, fn_], [fp, tp]] = counts;
        // Products of two counts are exact, and the root of a rounded square is: 1 for the same picture.
        let scale = (((tp + fp) * (tp + fn_)) * ((tn + fp) * (tn + fn_))).sqrt();
        Ok(if scale > 0.0 { ((tp * tn - fp * fn_) / scale).clamp(-1.0, 1.0) } else { 0.0 })
    }

    /// Writes the classes as a `.npy` array of `rows × cols` bytes.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Shape`] if somebody changed their number.
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        npy::write_bytes(path.as_ref(), &[self.rows, self.cols], &self.classes)
    }
}

/// Bins of equal width from the least to the greatest value.
struct Bins {
    least: f64,
    width: f64,
}

impl Bins {
    /// Bin of a value.
    fn of(&self, value: f64) -> usize {
        // A picture of one value alone has bins of width 0, and NaN here: the first bin.
        ((value / self.width - self.least / self.width) as usize).min(BINS - 1)
    }

    /// Threshold between bins `..cut` and the others; empty ones may lie on either side.
    fn threshold(&self, counts: &[f64; BINS], cut: usize) -> f64 {
        let below = (0..cut).rev().take_while(|b| counts[*b] == 0.0).count();
        let above = (cut..BINS).take_while(|b| counts[*b] == 0.0).count();
        self.least + self.width * ((cut - below) as f64 + (below + above) as f64 / 2.0)
    }
}

/// Number of values in each bin.
struct Histogram {
    bins: Bins,
    counts: [f64; BINS],
}

impl Histogram {
    fn of(values: &[f64]) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Halves, whose difference does not overflow.
        let bins = Bins { least, width: (greatest / 2.0 - least / 2.0) / (BINS / 2) as f64 };
        let mut counts = [0.0; BINS];
        for value in values {
            counts[bins.of(*value)] += 1.0;
        }
        Self { bins, counts }
    }
}

/// Starts of the classes but the first, among the bins: those with the largest variance between classes.
///
/// The sum of `w (m - mean)²` is that of `w m²` less a constant, and `w m²` of a class is (first moment)² / count.
fn best_cuts(counts: &[f64; BINS], classes: usize) -> Vec<usize> {
    let (mut zeroth, mut first) = ([0.0; BINS + 1], [0.0; BINS + 1]);
    // Moments about the middle, so that squares stay small.
    for b in 0..BINS {
        zeroth[b + 1] = zeroth[b] + counts[b];
        first[b + 1] = first[b] + counts[b] * (b as f64 - (BINS / 2) as f64);
    }
    let share = |from: usize, to: usize| match zeroth[to] - zeroth[from] {
        0.0 => f64::NEG_INFINITY,
        count => (first[to] - first[from]).powi(2) / count,
    };
    // best[c][b]: bins ..b in c + 1 classes; start[c][b]: where the last of them starts.
    let mut best = vec![[f64::NEG_INFINITY; BINS + 1]; classes];
    let mut start = vec![[0; BINS + 1]; classes];
    for b in 1..=BINS {
        best[0][b] = share(0, b);
    }
    for c in 1..classes {
        for b in c + 1..=BINS {
            for cut in c..b {
                let found = best[c - 1][cut] + share(cut, b);
                if found > best[c][b] {
                    (best[c][b], start[c][b]) = (found, cut);
                }
            }
        }
    }
    let mut cuts = Vec::new();
    let mut end = BINS;
    for c in (1..classes).rev() {
        end = start[c][end];
        cuts.push(end);
    }
    cuts.reverse();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_grey_values_are_told_apart_in_the_middle() {
        let values = [1.0, 1.0, 3.0, 1.0, 3.0, 3.0];
        let found = Segmentation::otsu(&values, [2, 3], 2).expect("two classes");
        assert_eq!(found.classes, [0, 0, 1, 0, 1, 1]);
        assert!((found.thresholds[0] - 2.0).abs() < 0.01, "{:?}", found.thresholds);
    }

    #[test]
    fn values_on_the_end_of_a_bin_are_of_the_class_it_was_counted_in() {
        let of = |values: &[f64], classes: usize| {
            Segmentation::otsu(values, [1, values.len()], classes).expect("classes").classes
        };
        assert_eq!(of(&[0.0, 100.0, 101.0, 256.0], 4), [0, 1, 2, 3]);
        // Neighbours among the numbers.
        assert_eq!(of(&[1e16 + 2.0, 1e16 + 4.0], 2), [0, 1]);
        assert_eq!(of(&[1e16, 1e16 + 2.0], 2), [0, 1]);
    }

    /// Variance between the classes of all pairs of thresholds, tried one by one.
    #[test]
    fn thresholds_are_those_of_a_search_through_all() {
        let mut seed = 7u32;
        let mut noise = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(seed >> 8) / f64::from(1 << 24) - 0.5
        };
        let values: Vec<f64> = (0..3000).map(|i| [0.0, 1.0, 2.5][i % 3] + 1.2 * (noise() + noise())).collect();
        let found = Segmentation::otsu(&values, [50, 60], 3).expect("three classes");
        let between = |thresholds: [f64; 2]| {
            let mut sums = [[0.0; 2]; 3];
            for v in &values {
                let class = thresholds.iter().filter(|t| v > t).count();
                sums[class][0] += 1.0;
                sums[class][1] += v;
            }
            sums.iter().map(|[count, sum]| if *count > 0.0 { sum * sum / count } else { 0.0 }).sum::<f64>()
        };
        let (least, greatest) =
            values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        let edge = |k: usize| least + (greatest - least) * k as f64 / 256.0;
        let best = (1..256)
            .flat_map(|a| (a + 1..256).map(move |b| [a, b]))
            .map(|[a, b]| between([edge(a), edge(b)]))
            .fold(f64::MIN, f64::max);
        // Moments by bins and by values differ a little.
        let ours = between([found.thresholds[0], found.thresholds[1]]);
        assert!(ours > best * (1.0 - 1e-4), "{ours} against {best}");
    }

    #[test]
    fn matthews_is_the_correlation_of_two_cuts() {
        let of = |classes: &[u8]| Segmentation { rows: 1, cols: 8, thresholds: vec![], classes: classes.to_vec() };
        let truth = of(&[1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(truth.matthews(&truth).expect("same size"), 1.0);
        assert_eq!(of(&[0, 0, 0, 1, 1, 2, 1, 1]).matthews(&truth).expect("same size"), -1.0);
        assert_eq!(of(&[0; 8]).matthews(&truth).expect("same size"), 0.0);
        // tp 2, fn 1, fp 1, tn 4: (8 - 1) / sqrt(3 3 5 5).
        let found = of(&[1, 1, 0, 1, 0, 0, 0, 0]).matthews(&truth).expect("same size");
        assert!((found - 7.0 / 15.0).abs() < 1e-15, "{found}");
        let other = Segmentation { rows: 2, cols: 4, ..truth.clone() };
        assert!(matches!(other.matthews(&truth), Err(Error::Shape { .. })));
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let of = |values: &[f64], classes: usize| Segmentation::otsu(values, [1, values.len()], classes);
        assert!(matches!(of(&[1.0; 9], 2), Err(Error::Option { name: "classes", .. })));
        assert!(matches!(of(&[1.0, 2.0, 1.0], 3), Err(Error::Option { name: "classes", .. })));
        assert!(matches!(of(&[1.0, 2.0], 1), Err(Error::Option { name: "classes", .. })));
        assert!(matches!(of(&[1.0, f64::NAN], 2), Err(Error::NotFinite { index: 1, .. })));
        assert!(matches!(Segmentation::otsu(&[1.0, 2.0], [1, 3], 2), Err(Error::Shape { .. })));
        assert!(of(&[-f64::MAX, f64::MAX], 2).expect("far apart").classes == [0, 1]);
    }

    #[test]
    fn segmentations_are_read_back_as_they_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("classes.npy");
        let written = Segmentation { rows: 2, cols: 3, thresholds: vec![], classes: vec![0, 1, 2, 255, 0, 1] };
        written.write_npy(&path).expect("written");
        assert_eq!(Segmentation::read(&path).expect("read"), written);
        npy::write(&path, &[1, 2], &[0.5, 1.0]).expect("written");
        assert!(matches!(Segmentation::read(&path), Err(Error::Format { .. })));
        npy::write(&path, &[2], &[0.0, 1.0]).expect("written");
        assert!(matches!(Segmentation::read(&path), Err(Error::Format { .. })));
    }
}
