//! Angles of a scan: as files hold them, their shares in the turn, and the arc that they cover.

use std::path::Path;

use crate::error::{Error, Result, unknown};
use crate::io;

/// Fewest angles that are asked about.
const FEWEST: usize = 8;
/// Angles in degrees within a turn of radians are asked about, and angles in radians of more turns than this.
const TURNS: f64 = 8.0;

/// Unit of angles in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AngleUnit {
    /// 360 to the turn.
    Degrees,
    /// 2 π to the turn.
    Radians,
}

impl std::str::FromStr for AngleUnit {
    type Err = Error;

    /// `degrees` or `radians`, also shortened (`deg`, `rad`).
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "°" | "deg" | "degs" | "degree" | "degrees" => Ok(Self::Degrees),
            "rad" | "rads" | "radian" | "radians" => Ok(Self::Radians),
            _ => Err(unknown("theta_unit", &text, "degrees, radians")),
        }
    }
}

/// Reads angles, in degrees: a text file of one number a line, a `.npy` array, or a Matrix Market vector. Their unit is degrees unless named; angles that
/// look like radians are asked about.
///
/// # Errors
/// [`Error::File`] and [`Error::Format`] for what is no list of numbers; [`Error::NotFinite`]; [`Error::Option`] named `theta_unit` if the unit must be named.
pub fn read_angles(path: impl AsRef<Path>, unit: Option<AngleUnit>) -> Result<Vec<f64>> {
    let path = path.as_ref();
    in_degrees(io::read_numbers(path)?, unit, None, &io::short_name(path))
}

/// Angles in degrees: the unit that was named counts, then that of the file, then degrees. `what` names the angles in errors.
pub(super) fn in_degrees(
    values: Vec<f64>,
    named: Option<AngleUnit>,
    of_file: Option<&str>,
    what: &str,
) -> Result<Vec<f64>> {
    if let Some(index) = values.iter().position(|v| !v.is_finite()) {
        return Err(Error::NotFinite { what: what.into(), index });
    }
    let ask = |reason: String| Err(Error::Option { name: "theta_unit", reason: format!("{what}: {reason}") });
    let of_file = match of_file.map(str::trim).filter(|text| !text.is_empty() && named.is_none()) {
        None => None,
        Some(text) => match text.parse() {
            Ok(unit) => Some(unit),
            Err(_) => return ask(format!("the unit '{text}' is neither degrees nor radians; name one of them")),
        },
    };
    let count = values.len();
    let [least, greatest] =
        values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], v| [a.min(*v), b.max(*v)]);
    let span = greatest - least;
    let turn = 2.0 * std::f64::consts::PI;
    // The last angle of a turn may be that of the first.
    let within_a_turn = span > 0.0 && span <= 1.001 * turn;
    if named.is_none() && of_file.is_none() && count >= FEWEST && within_a_turn {
        return ask(format!("{count} angles within {span:.1} degrees: are they radians? Name degrees or radians"));
    }
    if named.is_none() && of_file == Some(AngleUnit::Radians) && count >= FEWEST && span > TURNS * turn {
        let turns = span / turn;
        return ask(format!(
            "{count} angles in radians go through {turns:.0} turns: are they degrees? Name degrees or radians"
        ));
    }
    Ok(match named.or(of_file) {
        Some(AngleUnit::Radians) => values.into_iter().map(f64::to_degrees).collect(),
        _ => values,
    })
}

/// Gaps larger than so many times the median are angles that are missing.
const MISSING: f64 = 3.0;
/// Angles nearer than this are the same, in degrees.
const SAME: f64 = 1e-9;

/// Share of each angle in the turn, in radians, and the arc that the angles cover if some are missing: its first angle and its length, in
/// degrees. Angles count within `period`.
pub(super) fn shares(angles: &[f64], period: f64) -> (Vec<f64>, Option<[f64; 2]>) {
    let within: Vec<f64> = angles.iter().map(|angle| angle.rem_euclid(period)).collect();
    let mut order: Vec<usize> = (0..within.len()).collect();
    order.sort_by(|a, b| within[*a].total_cmp(&within[*b]));
    // Angles that are the same, by number: they share what one of them would have.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for k in order {
        match groups.last_mut() {
            Some(group) if within[k] - within[group[0]] < SAME => group.push(k),
            _ => groups.push(vec![k]),
        }
    }
    // The end of the period is its beginning.
    if let [first, .., last] = &mut groups[..]
        && within[first[0]] + period - within[last[0]] < SAME
    {
        first.append(last);
        groups.pop();
    }
    let place = |g: usize| within[groups[g][0]];
    let count = groups.len();
    let behind = |g: usize| if g + 1 < count { place(g + 1) - place(g) } else { place(0) + period - place(g) };
    let gaps: Vec<f64> = (0..count).map(behind).collect();
    let mut sorted = gaps.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[(count - 1) / 2];
    let counted = |gap: f64| if gap > MISSING * median { median } else { gap };
    let mut shares = vec![0.0; angles.len()];
    for g in 0..count {
        let share = 0.5 * (counted(gaps[g]) + counted(gaps[(g + count - 1) % count]));
        for k in &groups[g] {
            shares[*k] = share.to_radians() / groups[g].len() as f64;
        }
    }
    let widest = (0..count).max_by(|a, b| gaps[*a].total_cmp(&gaps[*b])).unwrap_or(0);
    let missing = gaps[widest] > MISSING * median || count == 1;
    let arc = missing.then(|| [place((widest + 1) % count), period - gaps[widest]]);
    (shares, arc)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn angles(count: usize, from: f64, arc: f64) -> Vec<f64> {
        (0..count).map(|k| from + arc * k as f64 / count as f64).collect()
    }

    #[test]
    fn radians_are_asked_about() {
        let ask = |values: Vec<f64>, named, of_file| in_degrees(values, named, of_file, "theta");
        let radians: Vec<f64> = angles(180, 0.0, 180.0).iter().map(|v| v.to_radians()).collect();
        let error = ask(radians.clone(), None, None).expect_err("radians").to_string();
        assert!(error.contains("theta: 180 angles within 3.1 degrees: are they radians?"), "{error}");
        let degrees = ask(radians.clone(), Some(AngleUnit::Radians), None).expect("named");
        approx::assert_relative_eq!(degrees[179], 179.0, max_relative = 1e-12);
        for unit in ["rad", "radians", " Radian ", "RAD"] {
            let degrees = ask(radians.clone(), None, Some(unit)).expect("of the file");
            approx::assert_relative_eq!(degrees[179], 179.0, max_relative = 1e-12);
        }
        assert_eq!(ask(radians.clone(), Some(AngleUnit::Degrees), Some("rad")).expect("named"), radians);
        assert_eq!(ask(radians.clone(), None, Some("deg")).expect("of the file"), radians);
        // A whole turn, with its end; less is asked about too, few angles and wide ones are not.
        let turn: Vec<f64> = angles(361, 0.0, 361.0).iter().map(|v| v.to_radians()).collect();
        assert!(ask(turn, None, None).is_err());
        assert!(ask(angles(20, -0.5, 1.0), None, None).is_err());
        assert!(ask(angles(5, 0.0, 3.0), None, None).is_ok() && ask(vec![7.0; 20], None, None).is_ok());
        assert!(ask(angles(180, 0.0, 180.0), None, None).is_ok());
        let error = ask(angles(180, 0.0, 180.0), None, Some("rad")).expect_err("degrees").to_string();
        assert!(error.contains("go through 28 turns: are they degrees?"), "{error}");
        assert!(ask(radians, None, Some("mrad")).expect_err("unit").to_string().contains("'mrad'"));
        let error = ask(vec![0.0, f64::NAN], None, None).expect_err("NaN").to_string();
        assert!(error.contains("theta") && error.contains("index 1"), "{error}");
    }

    #[test]
    fn missing_angles_count_for_nothing() {
        let (whole, none) = shares(&angles(10, 0.0, 180.0), 180.0);
        assert!(none.is_none());
        approx::assert_relative_eq!(whole.iter().sum::<f64>(), std::f64::consts::PI, max_relative = 1e-14);
        let (short, arc) = shares(&angles(60, 30.0, 60.0), 180.0);
        approx::assert_relative_eq!(short.iter().sum::<f64>(), std::f64::consts::PI / 3.0, max_relative = 1e-12);
        assert_eq!(arc.map(|[from, _]| from), Some(30.0));
        let (one, arc) = shares(&[400.0], 360.0);
        assert!(one[0] > 0.0 && arc.is_some());
    }
}
