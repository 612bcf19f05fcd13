//! Shares of the angles of a scan in the turn, and the arc that they cover.

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
