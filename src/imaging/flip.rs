//! Scans whose pixels run the other way, or whose scanner turns the other way.

use std::fmt;

use super::scan::Scan;
use super::scanner::{Beam, Scanner};
use crate::error::{Error, Result, named};

/// Part of a scan that runs the other way than its geometry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flip {
    /// Pixels of the detector: the last one comes first.
    Pixels,
    /// Angles: the scanner turns clockwise.
    Angles,
    /// Both, as if the slice were seen from its other side: the picture is mirrored, left to right.
    ///
    /// A parallel beam looks the same from either end of its rays, so that each of the other two mirrors its picture as well. Of a fan they are other
    /// scans: if one of them is right, the scan as it is and the mirrored one are wrong.
    Picture,
}

impl Flip {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pixels, Self::Angles, Self::Picture];

    /// Word for it, which [`str::parse`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pixels => "pixels",
            Self::Angles => "angles",
            Self::Picture => "picture",
        }
    }

    /// Tells if pixels are reversed.
    pub fn reverses_pixels(self) -> bool {
        self != Self::Angles
    }
}

impl fmt::Display for Flip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Flip {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        named("flip", text, &Self::ALL, Self::name)
    }
}

impl Scanner {
    /// The scanner of flipped readings. The axis is seen by the same pixel as before, which has another number if pixels are reversed.
    /// Vectors ([`Beam::Vectors`]) describe the detector as it is: [`Flip::Pixels`] leaves them, because the readings alone are
    /// reversed; [`Flip::Angles`] mirrors them at the vertical axis and reverses their steps.
    pub fn flipped(self, flip: Flip) -> Self {
        let offset = if flip.reverses_pixels() { -self.offset } else { self.offset };
        let moved = Self { offset, ..self };
        match &moved.beam {
            _ if flip == Flip::Pixels => moved,
            Beam::Vectors(vectors) => moved.with_vectors(vectors.turned()),
            _ => Self { angles: moved.angles.iter().map(|angle| -angle).collect(), ..moved },
        }
    }
}

impl Scan {
    /// A copy that is flipped, with its scanner.
    pub fn flipped(self, flip: Flip) -> Self {
        let mut flipped = Self { scanner: self.scanner.flipped(flip), ..self };
        if flip.reverses_pixels() {
            flipped.sinogram.chunks_mut(flipped.scanner.pixels).for_each(<[f64]>::reverse);
        }
        flipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imaging::{Beam, Ellipse, Noise, Phantom};

    const SILENT: Noise = Noise { photons: f64::INFINITY, gain: 0.0, seed: 0 };

    #[test]
    fn a_flipped_picture_is_mirrored_for_every_beam() {
        let (source_origin, source_detector) = (4.0, 6.0);
        let fan = Beam::Fan { source_origin, source_detector };
        let mirrored = |phantom: &Phantom| {
            let mirror = |e: &Ellipse| Ellipse { x: -e.x, turn: -e.turn, ..*e };
            Phantom { ellipses: phantom.ellipses.iter().map(mirror).collect() }
        };
        let plate = Phantom::plate();
        for beam in [Beam::Parallel, fan, Beam::Curved { source_origin, source_detector }] {
            let angles = (0..25).map(|k| 3.0 + 14.0 * f64::from(k)).collect();
            let scanner = Scanner { beam, pixels: 40, pitch: 0.09, offset: 1.3, angles };
            let scan = plate.scan(&scanner, 2.0, SILENT).expect("a scan");
            let flipped = scan.clone().flipped(Flip::Picture);
            let wanted = mirrored(&plate).scan(&flipped.scanner, 2.0, SILENT).expect("a scan");
            for (found, wanted) in flipped.sinogram.iter().zip(&wanted.sinogram) {
                approx::assert_abs_diff_eq!(found, wanted, epsilon = 1e-12);
            }
            for flip in Flip::ALL {
                assert_eq!(scan.clone().flipped(flip).flipped(flip), scan);
                assert_eq!(flip.name().parse::<Flip>().expect("own name"), flip);
            }
            assert_eq!(scan.clone().flipped(Flip::Pixels).flipped(Flip::Angles), flipped);
            assert_eq!(flipped.scanner.axis(), 39.0 - scanner.axis());
        }
        assert!(matches!("rows".parse::<Flip>(), Err(Error::Name { name: "flip", .. })));
    }
}
