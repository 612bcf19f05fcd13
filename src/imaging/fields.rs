//! Flat and dark fields: means of their frames. Flat frames without light and dark frames with light are left out.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::io::Stack;

/// Flat frames whose light differs from that of the others by more than this share of it are left out.
const OFF: f64 = 0.5;
/// Dark frames that count more than the others by this share of the light are left out.
const LIT: f64 = 0.1;
/// Most frames that a remark names.
const MOST_NAMED: usize = 12;

/// Frames of a field.
pub(super) enum Frames {
    None,
    Number(f64),
    Volume(Stack),
}

impl Frames {
    pub(super) fn of(stack: Stack) -> Self {
        Self::Volume(stack)
    }
}

/// Frames, each of `rows × pixels`, as their stack holds them: one a picture, or of a single row one a row of the only picture.
struct Field {
    frames: Frames,
    /// Median of each frame; of a number, it.
    levels: Vec<f64>,
    by_rows: bool,
}

impl Field {
    fn new(mut frames: Frames, [rows, pixels]: [usize; 2]) -> Result<Self> {
        let stack = match &mut frames {
            Frames::None => return Ok(Self { frames, levels: Vec::new(), by_rows: false }),
            Frames::Number(number) => {
                let levels = vec![*number];
                return Ok(Self { frames, levels, by_rows: false });
            }
            Frames::Volume(stack) => stack,
        };
        let [count, there, across] = stack.shape();
        let by_rows = rows == 1 && count == 1 && across == pixels;
        if !by_rows && [there, across] != [rows, pixels] {
            let reason = format!("frames of {there} x {across} for projections of {rows} x {pixels}");
            return Err(Error::Format { what: stack.name().into(), reason });
        }
        let mut levels = Vec::new();
        for k in 0..count {
            let mut picture = stack.picture(k)?;
            let size = rows * pixels;
            levels.extend(picture.chunks_mut(size.max(1)).map(median));
        }
        Ok(Self { frames, levels, by_rows })
    }

    /// Median of the levels, or `otherwise` without frames.
    fn level(&self, otherwise: f64) -> f64 {
        middle(&self.levels).unwrap_or(otherwise)
    }

    /// The mean of the slices that are wanted, without the frames that are left out.
    fn mean(self, pixels: usize, slices: &Range<usize>, out: &[usize]) -> Result<Option<Vec<f64>>> {
        let length = slices.len() * pixels;
        let mut stack = match self.frames {
            Frames::None => return Ok(None),
            Frames::Number(number) => return Ok(Some(vec![number; length])),
            Frames::Volume(stack) => stack,
        };
        let mut sums = vec![0.0; length];
        let add = |sums: &mut Vec<f64>, frame: &[f32]| {
            sums.iter_mut().zip(frame).for_each(|(sum, v)| *sum += f64::from(*v))
        };
        let counting = |k: &usize| !out.contains(k);
        if self.by_rows {
            let picture = stack.picture(0)?;
            picture
                .chunks(pixels)
                .enumerate()
                .filter(|(k, _)| counting(k))
                .for_each(|(_, row)| add(&mut sums, row));
        } else {
            for k in (0..self.levels.len()).filter(counting) {
                let frame = stack.picture(k)?;
                add(&mut sums, &frame[slices.start * pixels..slices.end * pixels]);
            }
        }
        let count = (self.levels.len() - out.len()) as f64;
        Ok(Some(sums.into_iter().map(|sum| sum / count).collect()))
    }

    fn name(&self) -> &str {
        match &self.frames {
            Frames::Volume(stack) => stack.name(),
            Frames::None | Frames::Number(_) => "the field",
        }
    }

    /// Remark on frames that are left out, with the measure of each.
    fn remark(&self, out: &[usize], measure: impl Fn(usize) -> String, of: &str) -> Option<String> {
        let numbers = |f: &dyn Fn(usize) -> String| {
            let words: Vec<String> = out.iter().take(MOST_NAMED).map(|k| f(*k)).collect();
            format!("{}{}", words.join(", "), if out.len() > MOST_NAMED { ", ..." } else { "" })
        };
        let (name, count) = (self.name(), self.levels.len());
        let frames = if out.len() == 1 { "frame" } else { "frames" };
        let which = numbers(&|k| k.to_string());
        (!out.is_empty()).then(|| {
            format!(
                "{name}: {} of {count} frames left out, {frames} {which} (from 0): {} {of}",
                out.len(),
                numbers(&measure)
            )
        })
    }
}

/// A number with two places, without the sign of a zero.
fn hundredths(value: f64) -> String {
    format!("{:.2}", (100.0 * value).round() / 100.0 + 0.0)
}

fn median(values: &mut [f32]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return f64::NAN;
    }
    f64::from(*values.select_nth_unstable_by(middle, f32::total_cmp).1)
}

/// The median of values, the lower one of two.
fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// Means of the frames of the flat field and of the dark field, without those that do not belong there, which `remarks` names.
pub(super) fn means(
    flat: Frames,
    dark: Frames,
    size: [usize; 2],
    slices: &Range<usize>,
    remarks: &mut Vec<String>,
) -> Result<[Option<Vec<f64>>; 2]> {
    let (flat, dark) = (Field::new(flat, size)?, Field::new(dark, size)?);
    let base = dark.level(0.0);
    // Light of flat frames. Of two, the brighter one is right.
    let light: Vec<f64> = flat.levels.iter().map(|level| level - base).collect();
    let greatest = light.iter().copied().filter(|v| v.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    let usual = if light.len() == 2 { greatest } else { middle(&light).unwrap_or(f64::NAN) };
    let without = |light: f64| !(light - usual).abs().le(&(OFF * usual.abs()));
    let is_volume = |field: &Field| matches!(field.frames, Frames::Volume(_)) && field.levels.len() > 1;
    let mut out = Vec::new();
    if is_volume(&flat) && usual > 0.0 {
        if light.len() > 2 && usual < LIT * greatest {
            let reason = "most frames count hardly more than the dark field: leave those without beam out";
            return Err(Error::Format { what: flat.name().into(), reason: reason.into() });
        }
        out = (0..light.len()).filter(|k| without(light[*k])).collect();
        let share = |k: usize| hundredths(light[k] / usual);
        remarks.extend(flat.remark(&out, share, "times the light of the others"));
    }
    // Dark frames with beam. Of two, the darker one is right.
    let mut lit = Vec::new();
    let least = dark.levels.iter().copied().filter(|v| v.is_finite()).fold(f64::INFINITY, f64::min);
    let usual = if dark.levels.len() == 2 { least } else { base };
    let light = flat.level(f64::NAN) - usual;
    if is_volume(&dark) && light > 0.0 {
        lit = (0..dark.levels.len()).filter(|k| !(dark.levels[*k] - usual).abs().le(&(LIT * light))).collect();
        let share = |k: usize| hundredths((dark.levels[k] - usual) / light);
        remarks.extend(dark.remark(&lit, share, "times the light of the flat field"));
    }
    let pixels = size[1];
    Ok([flat.mean(pixels, slices, &out)?, dark.mean(pixels, slices, &lit)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::npy;

    /// Means of fields whose frames have these levels, with what was said.
    fn fields(flat: &[f64], dark: &[f64]) -> Result<([f64; 2], Vec<String>)> {
        let folder = tempfile::tempdir().expect("a folder");
        let frames = |name: &str, levels: &[f64]| {
            if levels.is_empty() {
                return Frames::None;
            }
            let path = folder.path().join(name);
            let data: Vec<f64> =
                levels.iter().flat_map(|level| (0..12).map(move |k| level + f64::from(k % 3))).collect();
            npy::write(&path, &[levels.len(), 3, 4], &data).expect("written");
            Frames::of(Stack::open(&path).expect("a volume"))
        };
        let mut remarks = Vec::new();
        let [flat, dark] = means(frames("f.npy", flat), frames("d.npy", dark), [3, 4], &(1..3), &mut remarks)?;
        let first = |field: Option<Vec<f64>>| field.map_or(0.0, |field| field[0]);
        Ok(([first(flat), first(dark)], remarks))
    }

    #[test]
    fn frames_without_beam_are_left_out() {
        let (means, remarks) = fields(&[1000.0, 1010.0, 100.0, 990.0], &[99.0, 100.0, 101.0]).expect("fields");
        assert_eq!(means, [1001.0, 101.0]);
        assert_eq!(
            remarks,
            ["f.npy: 1 of 4 frames left out, frame 2 (from 0): 0.00 times the light of the others"]
        );
        // A beam that decays, frames before and after a scan.
        let (means, remarks) = fields(&[1000.0, 1000.0, 700.0, 700.0], &[]).expect("fields");
        assert!(remarks.is_empty() && means[0] == 851.0, "{means:?} {remarks:?}");
        // The darker of two; one that is too bright.
        assert_eq!(fields(&[2.0, 800.0], &[0.0]).expect("fields").0[0], 801.0);
        assert_eq!(fields(&[500.0, 800.0, 5000.0], &[0.0]).expect("fields").1.len(), 1);
        // A dark frame with the shutter open.
        let (means, remarks) = fields(&[1000.0], &[10.0, 1000.0, 12.0]).expect("fields");
        assert_eq!((means[1], remarks.len()), (12.0, 1));
        assert_eq!(fields(&[1000.0], &[900.0, 10.0]).expect("fields").0[1], 11.0);
        // A frame of NaN, and fields where nobody can tell.
        assert_eq!(fields(&[1000.0, f64::NAN, 1000.0], &[]).expect("fields").0[0], 1001.0);
        assert!(fields(&[100.0, 1000.0, 101.0], &[100.0]).is_err_and(|e| e.to_string().contains("most frames")));
        assert!(fields(&[5.0, 5.0, 5.0], &[5.0]).expect("fields").1.is_empty());
    }
}
