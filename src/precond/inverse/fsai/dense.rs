//! The dense matrix of a row of FSAI, factored.

use crate::error::{Error, Result};
use crate::number::Real;
use crate::sparse::Csr;

/// Room for the dense matrix of a row. Neighbouring rows often begin with the same places, and their factors with the same rows
/// and columns: these are kept.
#[derive(Default)]
pub(crate) struct Dense {
    /// `C'`, row by row: first the lower triangle of `A(S_i, S_i)`, mirrored.
    c: Vec<f64>,
    /// Numbers from one row of `C'` to the next.
    stride: usize,
    /// Places of which `c` holds the factor.
    places: Vec<u32>,
    /// Row of `G`.
    pub(crate) g: Vec<f64>,
    /// For each column from the first place on its number among the places plus one, or 0.
    numbers: Vec<u32>,
}

impl Dense {
    /// Takes the entries of the lower triangle in rows and columns `places`, in any order. Returns how many of them the factor of
    /// the last row begins with too: these rows and columns are not touched.
    fn gather<T: Real>(&mut self, a: &Csr<T>, places: &[u32]) -> usize {
        let Self { c, numbers, stride, places: before, .. } = self;
        let m = places.len();
        if m > *stride {
            *stride = m.next_power_of_two();
            c.clear();
            c.resize(*stride * *stride, 0.0);
            before.clear();
        }
        let kept = before.iter().zip(places).take_while(|(before, place)| before == place).count();
        before.truncate(kept);
        before.extend(&places[kept..]);
        c.chunks_exact_mut(*stride).take(m).for_each(|row| row[kept..m].fill(0.0));
        let (Some(first), Some(last)) = (places.iter().min(), places.iter().max()) else { return kept };
        // In ascending places the lower triangle ends with the row's own column.
        let ascending = places.is_sorted();
        let span = (last - first) as usize + 1;
        if numbers.len() < span {
            numbers.resize(span, 0);
        }
        places.iter().zip(1..).for_each(|(place, number)| numbers[(place - first) as usize] = number);
        for (k, row) in places.iter().enumerate().skip(kept) {
            let (columns, values) = a.row(*row as usize);
            let end = if ascending { row } else { last };
            for (at, j) in columns.iter().enumerate() {
                if j > end {
                    break;
                }
                // Columns before the first place wrap around to numbers that are not there, or 0.
                let number = numbers.get(j.wrapping_sub(*first) as usize).map_or(0, |number| *number as usize);
                if (1..=k + 1).contains(&number) {
                    c[(number - 1) * *stride + k] = values[at].to_f64();
                }
            }
        }
        places.iter().for_each(|place| numbers[(place - first) as usize] = 0);
        kept
    }

    /// Leaves row `i` of `G`, whose entries stand in `places`.
    pub(crate) fn solve<T: Real>(&mut self, a: &Csr<T>, i: usize, places: &[u32]) -> Result<()> {
        let kept = self.gather(a, places);
        let m = places.len();
        let Self { c, g, stride, places: held, .. } = self;
        let stride = *stride;
        // A row of C' after the other: all later ones are reduced by it, so that operations in a row do not wait for each other.
        for k in 0..m {
            let (own, later) = c[k * stride..].split_at_mut(stride);
            let own = &mut own[..m];
            if k >= kept {
                let pivot = own[k];
                if !(pivot > 0.0 && pivot.is_finite()) {
                    held.clear();
                    let row = Some(places[k] as usize);
                    let what = format!(
                        "pivot {pivot:e} of an approximate inverse (in row {i}) is not positive: the matrix is not positive definite, \
                         or too nearly singular"
                    );
                    return Err(Error::Structure { what, row });
                }
                own[k] = pivot.sqrt();
            }
            let (root, new) = (own[k], kept.max(k + 1));
            own[new..].iter_mut().for_each(|value| *value /= root);
            // Loops by number: the set-up is mostly these, and `zip` and `fold` are calls.
            for l in k + 1..m {
                let (factor, from) = (own[l], kept.max(l));
                let (row, own) = (&mut later[(l - k - 1) * stride..][from..m], &own[from..m]);
                for at in 0..row.len() {
                    row[at] -= factor * own[at];
                }
            }
        }
        // Back substitution with C'.
        g.clear();
        g.resize(m, 0.0);
        for k in (0..m).rev() {
            let row = &c[k * stride..k * stride + m];
            let mut value = if k + 1 == m { 1.0 } else { 0.0 };
            for l in k + 1..m {
                value -= row[l] * g[l];
            }
            g[k] = value / row[k];
        }
        Ok(())
    }

    /// Puts row `i` of `G` into `made`.
    pub(crate) fn round_to<T: Real>(&self, i: usize, made: &mut [T]) -> Result<()> {
        made.iter_mut().zip(&self.g).for_each(|(made, value)| *made = T::from_f64(*value));
        if made.iter().all(|value| value.is_finite()) {
            return Ok(());
        }
        let what = "an entry of an approximate inverse is too large for its precision: scale the matrix".into();
        Err(Error::Structure { what, row: Some(i) })
    }
}
