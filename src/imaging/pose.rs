//! Source, detector and direction of the rays of one view. All code that traces rays uses them.

/// Rays of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bundle {
    /// Parallel rays.
    Parallel,
    /// Rays from a point to a flat detector.
    Flat,
    /// Rays from a point to a detector on a circle about it.
    Curved,
}

/// Source and detector of one view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pose {
    /// The source; of parallel rays, a point of the one that meets place 0 of the detector.
    pub(super) source: [f64; 2],
    /// From the source to place 0 of the detector; of parallel rays, their direction, of length 1.
    pub(super) toward: [f64; 2],
    /// Along the detector, from pixel to pixel. Places on the detector are multiples of this vector.
    pub(super) across: [f64; 2],
}

pub(super) fn length(v: [f64; 2]) -> f64 {
    (v[0] * v[0] + v[1] * v[1]).sqrt()
}

impl Pose {
    /// A pose about the origin at angle `turn` in radians: with `e = (cos, sin)` and `v = (-sin, cos)`, rays run along `v`, the source lies at
    /// `-source_origin v`, the detector runs along `e` at `source_detector` from the source. Parallel rays have distances 0 and 1.
    pub(super) fn at_angle(turn: f64, [source_origin, source_detector]: [f64; 2]) -> Self {
        let (sin, cos) = (libm::sin(turn), libm::cos(turn));
        Self {
            source: [source_origin * sin, -source_origin * cos],
            toward: [-source_detector * sin, source_detector * cos],
            across: [cos, sin],
        }
    }

    /// A point on the ray to a place on the detector, and its direction, of length 1.
    pub(super) fn ray(&self, bundle: Bundle, place: f64) -> ([f64; 2], [f64; 2]) {
        let aside = self.across.map(|part| place * part);
        let way = match bundle {
            Bundle::Parallel => {
                return ([self.source[0] + aside[0], self.source[1] + aside[1]], self.toward);
            }
            Bundle::Flat => [self.toward[0] + aside[0], self.toward[1] + aside[1]],
            Bundle::Curved => {
                // The place is the length of an arc: the middle ray turns towards `across` by its angle.
                let (radius, unit) = (length(self.toward), length(self.across));
                let angle = place * unit / radius;
                let (sin, cos) = (libm::sin(angle), libm::cos(angle));
                [0, 1].map(|k| cos * self.toward[k] + sin * radius * self.across[k] / unit)
            }
        };
        let far = length(way);
        (self.source, [way[0] / far, way[1] / far])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rays_of_a_bundle_run_from_the_source_to_the_detector() {
        for (bundle, distances) in
            [(Bundle::Parallel, [0.0, 1.0]), (Bundle::Flat, [5.0, 8.0]), (Bundle::Curved, [5.0, 8.0])]
        {
            for (turn, place) in [(0.0, 0.0), (0.3, 1.5), (2.0, -0.7), (-4.0, 2.0)] {
                let pose = Pose::at_angle(turn, distances);
                let (from, way) = pose.ray(bundle, place);
                approx::assert_abs_diff_eq!(length(way), 1.0, epsilon = 1e-15);
                // The pixel that the ray must meet.
                let (e, v) = (pose.across, [-libm::sin(turn), libm::cos(turn)]);
                let (along_e, along_v) = match bundle {
                    Bundle::Parallel => (place, 1.0),
                    Bundle::Flat => (place, 3.0),
                    Bundle::Curved => (8.0 * libm::sin(place / 8.0), 8.0 * libm::cos(place / 8.0) - 5.0),
                };
                let pixel = [0, 1].map(|k| along_e * e[k] + along_v * v[k]);
                let to = [pixel[0] - from[0], pixel[1] - from[1]];
                approx::assert_abs_diff_eq!(to[0] * way[1] - to[1] * way[0], 0.0, epsilon = 1e-13);
                assert!(to[0] * way[0] + to[1] * way[1] > 0.0);
            }
        }
    }
}
