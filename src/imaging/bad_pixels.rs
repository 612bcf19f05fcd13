//! Defective pixels of a detector: dead and hot ones that flat fields show, and those that the user names.

use std::str::FromStr;

use crate::error::{Error, Result};

/// Pixels with less of the usual light than this are dead.
const DEAD: f64 = 0.02;
/// Pixels with less of the light of their neighbours than this are dead.
const DIM: f64 = 0.1;
/// Pixels with more than so many times the light of their neighbours, and the usual one, are hot.
const HOT: f64 = 3.0;
/// Neighbours on either side.
const NEAR: usize = 10;
/// Pixels that a list may name.
const MOST_NAMED: usize = 1 << 20;

/// A pixel that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPixel {
    /// Slice, by its number in the file.
    pub slice: usize,
    /// Pixel on the detector.
    pub pixel: usize,
    /// Why it does not count.
    pub fault: Fault,
}

/// Fault of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It counts too little of the light.
    Dead,
    /// It counts too much.
    Hot,
    /// It was named.
    Named,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dead => "dead",
            Self::Hot => "hot",
            Self::Named => "named",
        })
    }
}

/// Pixels whose readings are replaced by those of their neighbours. By themselves those whose light (flat field without dark field) is below 0.02
/// of the usual one of the slice, or below 0.1 of that of their neighbours, are dead, and those of more than 3 times as much hot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPixels {
    /// Pixels that are named, in all slices or in one.
    pub named: Vec<(Option<usize>, usize)>,
    /// Tells if others are looked for. Pixels without light never count.
    pub search: bool,
}

impl Default for BadPixels {
    fn default() -> Self {
        Self { named: Vec::new(), search: true }
    }
}

impl FromStr for BadPixels {
    type Err = Error;

    /// Pixels with commas between them, from 0: `77`, all from 90 to 93 `90-93`, of slice 5 alone `5:77`; `none` for no search.
    fn from_str(text: &str) -> Result<Self> {
        let mut pixels = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if word == "none" {
                pixels.search = false;
                continue;
            }
            let bad = || {
                let reason =
                    format!("'{word}' is none of a pixel (77), pixels (90-93), a pixel of a slice (5:77) and none");
                Error::Option { name: "bad_pixels", reason }
            };
            let number = |text: &str| text.trim().parse::<usize>().map_err(|_| bad());
            let (slice, range) = match word.split_once(':') {
                Some((slice, range)) => (Some(number(slice)?), range),
                None => (None, word),
            };
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(range)?, number(range)?),
            };
            if first > last || last - first >= MOST_NAMED - pixels.named.len() {
                return Err(bad());
            }
            pixels.named.extend((first..=last).map(|pixel| (slice, pixel)));
        }
        Ok(pixels)
    }
}

impl BadPixels {
    /// Fails on pixels that are not there.
    pub(super) fn check(&self, pixels: usize) -> Result<()> {
        match self.named.iter().find(|(_, pixel)| *pixel >= pixels) {
            Some((_, pixel)) => {
                let reason = format!("pixel {pixel} of {pixels}, which are counted from 0");
                Err(Error::Option { name: "bad_pixels", reason })
            }
            None => Ok(()),
        }
    }

    /// Tells if a pixel of a slice is named.
    pub(super) fn names(&self, slice: usize, pixel: usize) -> bool {
        self.named.iter().any(|(of, named)| *named == pixel && of.is_none_or(|of| of == slice))
    }

    /// Bad pixels of a slice whose pixels have so much light.
    pub(super) fn of_slice(&self, slice: usize, light: &[f64]) -> Vec<BadPixel> {
        let mut faults = vec![None; light.len()];
        for (j, light) in light.iter().enumerate() {
            if light.is_nan() || *light <= 0.0 {
                faults[j] = Some(Fault::Dead);
            }
        }
        if self.search {
            search(light, &mut faults);
        }
        for (of, pixel) in &self.named {
            if of.is_none_or(|of| of == slice) && *pixel < light.len() {
                faults[*pixel] = Some(Fault::Named);
            }
        }
        let bad = |(pixel, fault): (usize, &Option<Fault>)| fault.map(|fault| BadPixel { slice, pixel, fault });
        faults.iter().enumerate().filter_map(bad).collect()
    }
}

/// Finds the pixels with too little light, or too much.
fn search(light: &[f64], faults: &mut [Option<Fault>]) {
    // A beam narrower than the detector leaves most pixels dark: the usual light is that of the others.
    let bright = quantile(light.to_vec(), 0.9);
    let usual = quantile(light.iter().copied().filter(|v| *v > 0.1 * bright).collect(), 0.5);
    if !usual.is_finite() || usual <= 0.0 {
        return;
    }
    for (j, fault) in faults.iter_mut().enumerate().filter(|(_, fault)| fault.is_none()) {
        let near = |k: &usize| k.abs_diff(j) <= NEAR && *k != j;
        let (from, to) = (j.saturating_sub(NEAR), (j + NEAR + 1).min(light.len()));
        let around = quantile((from..to).filter(near).map(|k| light[k]).collect(), 0.5);
        let v = light[j];
        *fault = if v < DEAD * usual || v < DIM * around {
            Some(Fault::Dead)
        } else if !v.is_finite() || (v > HOT * around && v > HOT * usual) {
            Some(Fault::Hot)
        } else {
            None
        };
    }
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.retain(|v| v.is_finite());
    if values.is_empty() {
        return f64::NAN;
    }
    let k = ((values.len() - 1) as f64 * share) as usize;
    *values.select_nth_unstable_by(k, f64::total_cmp).1
}

/// Puts numbers between their neighbours where there are none, those of the nearest neighbour at the ends; says how many. None if there is no
/// number at all.
pub(super) fn repair(row: &mut [f64]) -> Option<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(light: &[f64]) -> Vec<(usize, Fault)> {
        BadPixels::default().of_slice(4, light).iter().map(|bad| (bad.pixel, bad.fault)).collect()
    }

    #[test]
    fn pixels_with_too_little_or_too_much_light_are_found() {
        let mut light: Vec<f64> = (0..200).map(|j| 20_000.0 * (1.0 + 0.1 * (f64::from(j) * 0.7).sin())).collect();
        assert!(found(&light).is_empty());
        for (pixel, v) in [(0, 2.0), (50, 2.0), (51, -3.0), (120, 1500.0), (160, 90_000.0), (199, f64::NAN)] {
            light[pixel] = v;
        }
        let dead = [(0, Fault::Dead), (50, Fault::Dead), (51, Fault::Dead), (120, Fault::Dead)];
        assert_eq!(found(&light), [&dead[..], &[(160, Fault::Hot), (199, Fault::Dead)]].concat());
        // Pixels without light are dead even if nobody looks for others.
        let unseen = BadPixels { search: false, ..BadPixels::default() }.of_slice(4, &light);
        assert_eq!(unseen.iter().map(|bad| bad.pixel).collect::<Vec<_>>(), [51, 199]);
    }

    #[test]
    fn a_beam_that_is_not_even_is_no_fault() {
        // Round, with a tenth of the light at the ends.
        let round: Vec<f64> =
            (0..300).map(|j| 1e4 * (-2.3 * ((f64::from(j) - 150.0) / 150.0).powi(2)).exp()).collect();
        assert!(found(&round).is_empty());
        // Narrow: the rest of the detector is dark, and none of the bright pixels is hot.
        let narrow: Vec<f64> = (0..300).map(|j| if (100..160).contains(&j) { 2e4 } else { 3.0 }).collect();
        assert!(found(&narrow).iter().all(|(pixel, fault)| *fault == Fault::Dead && !(100..160).contains(pixel)));
        assert_eq!(found(&narrow).len(), 240);
        assert!(found(&[1.0, 2.0, 3.0]).is_empty() && found(&[5.0]).is_empty() && found(&[]).is_empty());
    }

    #[test]
    fn lists_are_read() {
        let pixels: BadPixels = "77, 90-92,5:3,none".parse().expect("a list");
        assert_eq!(pixels.named, [(None, 77), (None, 90), (None, 91), (None, 92), (Some(5), 3)]);
        assert!(!pixels.search && pixels.names(5, 3) && !pixels.names(4, 3) && pixels.names(0, 91));
        for text in ["x", "3-", "5-3", "1:2:3", "-1", "0-99999999999"] {
            assert!(matches!(text.parse::<BadPixels>(), Err(Error::Option { name: "bad_pixels", .. })), "{text}");
        }
        assert!("".parse::<BadPixels>().expect("none") == BadPixels::default());
        assert!(pixels.check(93).is_ok() && pixels.check(92).is_err());
        let bad = pixels.of_slice(5, &[1.0; 93]);
        assert_eq!(bad.iter().map(|bad| bad.pixel).collect::<Vec<_>>(), [3, 77, 90, 91, 92]);
        assert!(bad.iter().all(|bad| bad.fault == Fault::Named));
    }
}
