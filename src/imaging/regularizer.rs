//! Regularisers: what is wanted of an image beside fitting the readings.

use crate::error::{Error, Result, unknown};

/// A term that is wanted small beside the misfit of the readings. A weight suits scans of any size: it is multiplied by the
/// mean diagonal of `A'A`, and for total variation and derivatives along a direction also by the mean brightness.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Regularizer {
    /// Small values.
    Tikhonov(f64),
    /// Small differences between neighbours: blurs edges.
    Smooth(f64),
    /// Few edges: flat regions, sharp borders. By lagged diffusivity with CGNR, exactly with PDHG.
    TotalVariation(f64),
    /// Few changes along a direction: the absolute derivative, for PDHG. Along the detector in the middle of a short arc
    /// ([`Scanner::middle`](super::Scanner::middle)) it takes out the streaks of the angles that are missing.
    Directional {
        /// The weight.
        weight: f64,
        /// The direction in degrees, anticlockwise from the right.
        degrees: f64,
    },
}

impl std::str::FromStr for Regularizer {
    type Err = Error;

    /// `tikhonov=W`, `smooth=W`, `tv=W` or `directional=W@DEGREES`.
    fn from_str(text: &str) -> Result<Self> {
        let known = "tikhonov=W, smooth=W, tv=W, directional=W@DEGREES, none (W at least 0)";
        let bad = || unknown("regularizer", text, known);
        let (name, weight) = text.split_once('=').ok_or_else(bad)?;
        let (weight, degrees) = match weight.split_once('@') {
            Some((weight, degrees)) if name == "directional" => (weight, degrees),
            _ => (weight, ""),
        };
        let weight = weight.parse().ok().filter(|w: &f64| *w >= 0.0 && w.is_finite()).ok_or_else(bad)?;
        match name {
            "tikhonov" => Ok(Self::Tikhonov(weight)),
            "smooth" => Ok(Self::Smooth(weight)),
            "tv" => Ok(Self::TotalVariation(weight)),
            "directional" => {
                let degrees = degrees.parse().ok().filter(|d: &f64| d.is_finite()).ok_or_else(bad)?;
                Ok(Self::Directional { weight, degrees })
            }
            _ => Err(bad()),
        }
    }
}

impl std::fmt::Display for Regularizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tikhonov(weight) => write!(f, "tikhonov={weight}"),
            Self::Smooth(weight) => write!(f, "smooth={weight}"),
            Self::TotalVariation(weight) => write!(f, "tv={weight}"),
            Self::Directional { weight, degrees } => write!(f, "directional={weight}@{degrees}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regularizers_are_read_back_as_they_are_written() {
        for regularizer in [
            Regularizer::Tikhonov(0.5),
            Regularizer::Smooth(2.0),
            Regularizer::TotalVariation(0.01),
            Regularizer::Directional { weight: 0.25, degrees: -45.5 },
        ] {
            assert_eq!(regularizer.to_string().parse::<Regularizer>().expect("own text"), regularizer);
        }
        for bad in [
            "tv",
            "tv=",
            "tv=-1",
            "tv=nan",
            "ridge=1",
            "=1",
            "tv=1@3",
            "directional=1",
            "directional=1@",
            "directional=@3",
            "directional=1@inf",
        ] {
            assert!(bad.parse::<Regularizer>().is_err(), "{bad}");
        }
    }
}
