//! Regularisers: what is wanted of an image beside fitting the readings.

use crate::error::{Error, Result};

/// A term that is wanted small beside the misfit of the readings. A weight suits scans of any size: it is multiplied by the
/// mean diagonal of `A'A`, and for total variation also by the mean brightness.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Regularizer {
    /// Small values.
    Tikhonov(f64),
    /// Small differences between neighbours: blurs edges.
    Smooth(f64),
    /// Few edges: flat regions, sharp borders (total variation by lagged diffusivity).
    TotalVariation(f64),
}

impl std::str::FromStr for Regularizer {
    type Err = Error;

    /// `tikhonov=W`, `smooth=W` or `tv=W`.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::Option {
            name: "regularizer",
            reason: format!("'{text}' is none of tikhonov=W, smooth=W, tv=W, none (W at least 0)"),
        };
        let (name, weight) = text.split_once('=').ok_or_else(bad)?;
        let weight = weight.parse().ok().filter(|w: &f64| *w >= 0.0 && w.is_finite()).ok_or_else(bad)?;
        match name {
            "tikhonov" => Ok(Self::Tikhonov(weight)),
            "smooth" => Ok(Self::Smooth(weight)),
            "tv" => Ok(Self::TotalVariation(weight)),
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regularizers_are_read_back_as_they_are_written() {
        for regularizer in [Regularizer::Tikhonov(0.5), Regularizer::Smooth(2.0), Regularizer::TotalVariation(0.01)]
        {
            assert_eq!(regularizer.to_string().parse::<Regularizer>().expect("own text"), regularizer);
        }
        for bad in ["tv", "tv=", "tv=-1", "tv=nan", "ridge=1", "=1"] {
            assert!(bad.parse::<Regularizer>().is_err(), "{bad}");
        }
    }
}
