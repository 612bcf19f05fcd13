//! Shape functions on `[0, 1]`, Gauss-Legendre points, and the matrices of one dimension that elements are made of.

/// Highest degree of an element.
pub(crate) const MOST_DEGREE: usize = 8;

/// Shape functions of the highest degree.
pub(super) const MOST_SHAPES: usize = MOST_DEGREE + 1;

/// Legendre polynomials `P_0 .. P_last` at `x`.
fn legendre(x: f64) -> [f64; MOST_SHAPES] {
    let mut p = [1.0; MOST_SHAPES];
    p[1] = x;
    for k in 2..MOST_SHAPES {
        let n = k as f64;
        p[k] = ((2.0 * n - 1.0) * x * p[k - 1] - (n - 1.0) * p[k - 2]) / n;
    }
    p
}

/// Shape functions at `t`:
///
/// ```text
///   phi_0 = 1 - t,  phi_1 = t,  phi_k = (P_k - P_(k-2)) / (2 sqrt(2k - 1))  for k >= 2, with P_k at 2t - 1
/// ```
///
/// Functions from 2 on are integrated Legendre polynomials. They are 0 at both ends, and their derivatives are orthonormal.
pub(super) fn shapes(t: f64) -> [f64; MOST_SHAPES] {
    let p = legendre(2.0 * t - 1.0);
    let mut phi = [1.0 - t; MOST_SHAPES];
    phi[1] = t;
    for k in 2..MOST_SHAPES {
        phi[k] = if t == 0.0 || t == 1.0 { 0.0 } else { (p[k] - p[k - 2]) / (2.0 * (2.0 * k as f64 - 1.0).sqrt()) };
    }
    phi
}

/// Derivatives of [`shapes`]: `phi_k' = sqrt(2k - 1) P_(k-1)`.
pub(super) fn slopes(t: f64) -> [f64; MOST_SHAPES] {
    let p = legendre(2.0 * t - 1.0);
    let mut slope = [-1.0; MOST_SHAPES];
    slope[1] = 1.0;
    for k in 2..MOST_SHAPES {
        slope[k] = (2.0 * k as f64 - 1.0).sqrt() * p[k - 1];
    }
    slope
}

/// Points and weights on `[0, 1]` that integrate polynomials of degree `2 count - 1` exactly.
///
/// Source: Newton's iteration for the zeros of the Legendre polynomial `P_count`.
pub(super) fn gauss(count: usize) -> Vec<[f64; 2]> {
    // P_count and its derivative.
    let at = |x: f64| {
        let (mut before, mut now) = (1.0, x);
        for k in 2..=count {
            let n = k as f64;
            (before, now) = (now, ((2.0 * n - 1.0) * x * now - (n - 1.0) * before) / n);
        }
        (now, count as f64 * (x * now - before) / (x * x - 1.0))
    };
    let point = |k: usize| {
        let mut x = -libm::cos(std::f64::consts::PI * (k as f64 + 0.75) / (count as f64 + 0.5));
        for _ in 0..8 {
            let (p, slope) = at(x);
            x -= p / slope;
        }
        let slope = at(x).1;
        [x, 2.0 / ((1.0 - x * x) * slope * slope)]
    };
    if count == 1 {
        return vec![[0.5, 1.0]];
    }
    // The rule is symmetric to the last bit.
    (0..count)
        .map(|k| {
            let mirrored = count - 1 - k;
            let [x, weight] = point(k.min(mirrored));
            let x = if 2 * k + 1 == count { 0.0 } else { x };
            [0.5 * (1.0 + if k > mirrored { -x } else { x }), 0.5 * weight]
        })
        .collect()
}

/// `int phi_i phi_j`. Zero unless both are below 4 and one below 2, or `|i - j|` is 0 or 2.
pub(super) fn mass(i: usize, j: usize) -> f64 {
    let (i, j) = (i.min(j), i.max(j));
    let root = |k: usize| (2.0 * k as f64 - 1.0).sqrt();
    match (i, j) {
        (0, 0) | (1, 1) => 1.0 / 3.0,
        (0, 1) => 1.0 / 6.0,
        (0 | 1, 2) => -1.0 / (4.0 * 3f64.sqrt()),
        (0, 3) => 1.0 / (12.0 * 5f64.sqrt()),
        (1, 3) => -1.0 / (12.0 * 5f64.sqrt()),
        (0 | 1, _) => 0.0,
        _ if i == j => {
            let k = i as f64;
            (1.0 / (2.0 * k + 1.0) + 1.0 / (2.0 * k - 3.0)) / (4.0 * (2.0 * k - 1.0))
        }
        _ if i + 2 == j => -1.0 / (4.0 * root(i) * root(j) * (2.0 * i as f64 + 1.0)),
        _ => 0.0,
    }
}

/// `int phi_i' phi_j'`: 1 on the diagonal, -1 between the first two, 0 elsewhere.
pub(super) fn stiffness(i: usize, j: usize) -> f64 {
    match (i, j) {
        _ if i == j => 1.0,
        (0, 1) | (1, 0) => -1.0,
        _ => 0.0,
    }
}

/// A matrix, row by row.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) values: Vec<f64>,
}

impl Table {
    pub(super) fn of(rows: usize, cols: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        Self { rows, cols, values: (0..rows * cols).map(|c| value(c / cols, c % cols)).collect() }
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.cols + j]
    }

    pub(super) fn transposed(&self) -> Self {
        Self::of(self.cols, self.rows, |i, j| self.at(j, i))
    }

    /// Values of the first `count` shape functions: a row for each point.
    pub(super) fn shapes(points: impl IntoIterator<Item = f64>, count: usize) -> Self {
        Self::sampled(points, count, shapes)
    }

    /// Derivatives of the first `count` shape functions: a row for each point.
    pub(super) fn slopes(points: impl IntoIterator<Item = f64>, count: usize) -> Self {
        Self::sampled(points, count, slopes)
    }

    fn sampled(points: impl IntoIterator<Item = f64>, count: usize, of: fn(f64) -> [f64; MOST_SHAPES]) -> Self {
        let values: Vec<f64> = points.into_iter().flat_map(|t| of(t).into_iter().take(count)).collect();
        Self { rows: values.len() / count, cols: count, values }
    }
}

/// `kron(table along the first axis, ...)` times numbers of which those of the first axis lie next to each other: one contraction for
/// each axis.
pub(super) fn contract(tables: [&Table; 3], values: &[f64]) -> Vec<f64> {
    let mut size = tables.map(|table| table.cols);
    let mut values = values.to_vec();
    for (axis, table) in tables.into_iter().enumerate() {
        let (inner, outer): (usize, usize) = (size[..axis].iter().product(), size[axis + 1..].iter().product());
        let mut next = vec![0.0; inner * table.rows * outer];
        for (o, next) in next.chunks_exact_mut(inner * table.rows).enumerate() {
            let block = &values[o * inner * table.cols..][..inner * table.cols];
            for (row, next) in next.chunks_exact_mut(inner).enumerate() {
                for (col, block) in block.chunks_exact(inner).enumerate() {
                    let factor = table.at(row, col);
                    next.iter_mut().zip(block).for_each(|(next, value)| *next += factor * value);
                }
            }
        }
        size[axis] = table.rows;
        values = next;
    }
    values
}

/// Coefficients of shape functions on the halves: `phi_k((s + half) / 2) = sum over j of table[k][j] phi_j(s)`.
pub(super) fn halves() -> [Table; 2] {
    let points = gauss(MOST_SHAPES);
    [0.0, 1.0].map(|half| {
        let coefficient = |k: usize, j: usize| match j {
            0 | 1 => shapes((half + j as f64) / 2.0)[k],
            // Slopes of the first two are constant, and so orthogonal to those of the others.
            _ if k < j => 0.0,
            _ => points.iter().map(|[s, w]| w * 0.5 * slopes((s + half) / 2.0)[k] * slopes(*s)[j]).sum(),
        };
        Table::of(MOST_SHAPES, MOST_SHAPES, coefficient)
    })
}

/// The projection of a function that is 0 at both ends onto the shape functions `2 ..= degree`, in the mean: `degree - 1` coefficients from
/// its values at `points`.
pub(super) fn projection(degree: usize, points: &[[f64; 2]]) -> Table {
    let count = degree.saturating_sub(1);
    // Cholesky's factorisation of the mass matrix of these functions, then both solves for each point.
    let mut l = vec![0.0; count * count];
    for i in 0..count {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * count + k] * l[j * count + k]).sum();
            let rest = mass(i + 2, j + 2) - dot;
            l[i * count + j] = if i == j { rest.sqrt() } else { rest / l[j * count + j] };
        }
    }
    let mut table = Table::of(count, points.len(), |_, _| 0.0);
    for (q, [t, weight]) in points.iter().enumerate() {
        let phi = shapes(*t);
        let mut c: Vec<f64> = (0..count).map(|k| weight * phi[k + 2]).collect();
        for i in 0..count {
            let dot: f64 = (0..i).map(|k| l[i * count + k] * c[k]).sum();
            c[i] = (c[i] - dot) / l[i * count + i];
        }
        for i in (0..count).rev() {
            let dot: f64 = (i + 1..count).map(|k| l[k * count + i] * c[k]).sum();
            c[i] = (c[i] - dot) / l[i * count + i];
        }
        c.into_iter().enumerate().for_each(|(i, c)| table.values[i * points.len() + q] = c);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauss_rules_integrate_polynomials_exactly() {
        for count in 1..=14 {
            let rule = gauss(count);
            for power in 0..2 * count as i32 {
                let sum: f64 = rule.iter().map(|[t, w]| w * t.powi(power)).sum();
                assert!((sum - 1.0 / f64::from(power + 1)).abs() < 1e-14, "{count} {power}: {sum}");
            }
        }
    }

    #[test]
    fn matrices_are_the_integrals_of_the_shapes() {
        let rule = gauss(MOST_SHAPES + 1);
        for i in 0..MOST_SHAPES {
            for j in 0..MOST_SHAPES {
                let integral = |of: fn(f64) -> [f64; MOST_SHAPES]| -> f64 {
                    rule.iter().map(|[t, w]| w * of(*t)[i] * of(*t)[j]).sum()
                };
                assert!((integral(shapes) - mass(i, j)).abs() < 1e-15, "{i} {j}");
                assert!((integral(slopes) - stiffness(i, j)).abs() < 1e-14, "{i} {j}");
            }
        }
    }

    #[test]
    fn halves_are_the_whole() {
        let tables = halves();
        for (half, table) in tables.iter().enumerate() {
            for s in [0.0, 0.3, 0.77, 1.0] {
                let (whole, part) = (shapes((s + half as f64) / 2.0), shapes(s));
                for k in 0..MOST_SHAPES {
                    let sum: f64 = (0..MOST_SHAPES).map(|j| table.at(k, j) * part[j]).sum();
                    assert!((sum - whole[k]).abs() < 1e-14, "{half} {s} {k}");
                }
            }
        }
    }

    #[test]
    fn projections_keep_what_they_can_express() {
        let points = gauss(MOST_SHAPES + 1);
        for degree in 2..=MOST_DEGREE {
            let table = projection(degree, &points);
            for k in 2..=degree {
                for i in 0..degree - 1 {
                    let c: f64 = points.iter().enumerate().map(|(q, [t, _])| table.at(i, q) * shapes(*t)[k]).sum();
                    assert!((c - f64::from(u8::from(i + 2 == k))).abs() < 1e-12, "{degree} {k} {i}: {c}");
                }
            }
        }
    }

    #[test]
    fn contractions_go_axis_by_axis() {
        let tables = [2, 3, 4].map(|n| Table::of(n + 1, n, |i, j| (3 * i + 5 * j) as f64 - n as f64));
        let values: Vec<f64> = (0..24).map(|c| f64::from(c * c % 17)).collect();
        let found = contract([&tables[0], &tables[1], &tables[2]], &values);
        let mut at = 0;
        for k in 0..5 {
            for j in 0..4 {
                for i in 0..3 {
                    let mut sum = 0.0;
                    for (c, value) in values.iter().enumerate() {
                        let [a, b, d] = [c % 2, c / 2 % 3, c / 6];
                        sum += tables[0].at(i, a) * tables[1].at(j, b) * tables[2].at(k, d) * value;
                    }
                    assert_eq!(found[at], sum);
                    at += 1;
                }
            }
        }
    }
}
