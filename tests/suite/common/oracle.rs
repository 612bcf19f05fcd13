//! The test problem of IR Tools (`PRtomo` by `paralleltomo` of AIR Tools II): a head of 64 x 64 pixels under 90 angles of 91 parallel rays,
//! with noise from a generator that is easy to write down. `design/FRONTIER.md` has what the methods of IR Tools make of it.

use residuum::Csr;

/// Pixels of a side, angles, and rays of an angle.
pub(crate) const SIDE: usize = 64;
const ANGLES: usize = 90;
pub(crate) const RAYS: usize = 91;

/// Lengths of the rays within each pixel. Columns count pixels down the columns of the picture.
pub(crate) fn matrix() -> Csr<f64> {
    let half = SIDE as f64 / 2.0;
    let lines: Vec<f64> = (0..=SIDE).map(|k| k as f64 - half).collect();
    Csr::from_rows(ANGLES * RAYS, SIDE * SIDE, |row, entries| {
        let turn = (2.0 * (row / RAYS) as f64).to_radians();
        let (sin, cos) = turn.sin_cos();
        // The middle ray passes through the middle of the picture.
        let place = (row % RAYS) as f64 - (RAYS - 1) as f64 / 2.0;
        let (from, way) = ([cos * place, sin * place], [-sin, cos]);
        let within = |p: &[f64; 2]| p.iter().all(|v| (-half..=half).contains(v));
        let mut crossings: Vec<(f64, [f64; 2])> = Vec::new();
        for line in &lines {
            let t = (line - from[0]) / way[0];
            crossings.push((t, [*line, way[1] * t + from[1]]));
        }
        for line in &lines {
            let t = (line - from[1]) / way[1];
            crossings.push((t, [way[0] * t + from[0], *line]));
        }
        crossings.retain(|(_, point)| within(point));
        crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
        crossings.dedup_by(|b, a| (0..2).all(|k| (a.1[k] - b.1[k]).abs() <= 1e-10));
        for pair in crossings.windows(2) {
            let [[x, y], [u, v]] = [pair[0].1, pair[1].1];
            let [across, up] = [0.5 * (x + u) + half, 0.5 * (y + v) + half].map(f64::floor);
            if (0.0..SIDE as f64).contains(&across) && (0.0..SIDE as f64).contains(&up) {
                let column = (SIDE as f64 - up - 1.0) + across * SIDE as f64;
                entries.push((column as u32, (u - x).hypot(v - y)));
            }
        }
        entries.sort_unstable_by_key(|entry| entry.0);
    })
    .unwrap()
}

/// The head of Shepp and Logan, with the contrast of Toft, down the columns of the picture.
pub(crate) fn head() -> Vec<f64> {
    let ellipses: [[f64; 6]; 10] = [
        [1.0, 0.69, 0.92, 0.0, 0.0, 0.0],
        [-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0],
        [-0.2, 0.11, 0.31, 0.22, 0.0, -18.0],
        [-0.2, 0.16, 0.41, -0.22, 0.0, 18.0],
        [0.1, 0.21, 0.25, 0.0, 0.35, 0.0],
        [0.1, 0.046, 0.046, 0.0, 0.1, 0.0],
        [0.1, 0.046, 0.046, 0.0, -0.1, 0.0],
        [0.1, 0.046, 0.023, -0.08, -0.605, 0.0],
        [0.1, 0.023, 0.023, 0.0, -0.606, 0.0],
        [0.1, 0.023, 0.046, 0.06, -0.605, 0.0],
    ];
    let middle = (SIDE as f64 - 1.0) / 2.0;
    let value = |at: usize| {
        let (x, y) = (((at / SIDE) as f64 - middle) / middle, (middle - (at % SIDE) as f64) / middle);
        let sum: f64 = ellipses
            .iter()
            .filter(|[_, a, b, x0, y0, turn]| {
                let (sin, cos) = turn.to_radians().sin_cos();
                let (u, v) = (x - x0, y - y0);
                ((u * cos + v * sin) / a).powi(2) + ((v * cos - u * sin) / b).powi(2) <= 1.0
            })
            .map(|ellipse| ellipse[0])
            .sum();
        sum.max(0.0)
    };
    (0..SIDE * SIDE).map(value).collect()
}

/// `b` with noise of `level` times its norm.
pub(crate) fn noisy(b: &[f64], level: f64) -> Vec<f64> {
    let mut state: u64 = 1;
    let mut uniform = || {
        state = 16807 * state % 2_147_483_647;
        state as f64 / 2_147_483_647.0
    };
    let noise: Vec<f64> = b.iter().map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect();
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let factor = level * norm(b) / norm(&noise);
    b.iter().zip(&noise).map(|(b, e)| b + factor * e).collect()
}
