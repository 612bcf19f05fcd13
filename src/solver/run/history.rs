//! Norms of the iterations of a solve, in bounded memory: of a long history, every second, fourth, ... iteration is kept.

/// Iterations whose norms are all kept; beyond these the earlier half is thinned.
const KEPT: usize = 1 << 18;
/// Most norms of those that are thinned.
const THINNED: usize = 1 << 15;
/// Most norms of a report, not counting the last.
pub(crate) const REPORTED: usize = 1 << 16;

/// Squared norms of residual and gradient, iteration by iteration.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// Norms of iterations before `first` whose number is a multiple of `1 << shift`.
    old: Vec<[f64; 2]>,
    shift: u32,
    /// Norms from iteration `first` on.
    recent: Vec<[f64; 2]>,
    first: usize,
    /// The smallest residual from `begin` to before `first`, and its iteration.
    lowest: Option<(usize, f64)>,
    begin: usize,
    kept: usize,
    thinned: usize,
}

impl Default for History {
    fn default() -> Self {
        Self::with_limits(KEPT, THINNED)
    }
}

impl History {
    fn with_limits(kept: usize, thinned: usize) -> Self {
        let (old, recent) = (Vec::new(), Vec::new());
        Self { old, shift: 0, recent, first: 0, lowest: None, begin: 0, kept, thinned }
    }

    /// Number of entries that were put in.
    pub(crate) fn len(&self) -> usize {
        self.first + self.recent.len()
    }

    pub(crate) fn last(&self) -> Option<[f64; 2]> {
        self.recent.last().or(self.old.last()).copied()
    }

    /// The norms that are kept, of rising iterations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[f64; 2]> {
        self.old.iter().chain(&self.recent)
    }

    pub(crate) fn extend(&mut self, norms: impl Iterator<Item = [f64; 2]>) {
        for norms in norms {
            self.recent.push(norms);
            if self.recent.len() > self.kept {
                self.thin();
            }
        }
    }

    /// Begins a stretch, in which [`History::lowest`] searches, with the entry that comes next.
    pub(crate) fn begin(&mut self) {
        (self.begin, self.lowest) = (self.len(), None);
    }

    /// Leaves out all from entry `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.recent.truncate(len.saturating_sub(self.first));
        if len < self.first {
            self.old.truncate(len.div_ceil(1 << self.shift));
            self.first = len;
        }
    }

    /// The first entry of the stretch with the smallest finite residual, counted from its beginning, and that, squared.
    pub(crate) fn lowest(&self) -> Option<(usize, f64)> {
        lowest_of(self.lowest, self.finite(self.recent.len())).map(|(at, square)| (at - self.begin, square))
    }

    /// Finite squares of residuals of the stretch among the first `count` of `recent`, with their numbers.
    fn finite(&self, count: usize) -> impl Iterator<Item = (usize, f64)> {
        let numbered = self.recent[..count].iter().enumerate().map(|(k, norms)| (self.first + k, norms[0]));
        numbered.filter(|(at, square)| *at >= self.begin && square.is_finite())
    }

    /// Moves the earlier half of `recent` to those that are thinned.
    fn thin(&mut self) {
        let half = self.recent.len() / 2;
        self.lowest = lowest_of(self.lowest, self.finite(half));
        for (k, norms) in self.recent.drain(..half).enumerate() {
            if (self.first + k).is_multiple_of(1 << self.shift) {
                self.old.push(norms);
            }
        }
        self.first += half;
        while self.old.len() > self.thinned {
            self.shift += 1;
            let mut number = 0;
            self.old.retain(|_| {
                number += 1;
                (number - 1) % 2 == 0
            });
        }
    }

    /// Entries whose numbers are multiples of the first of what is returned, a power of two, up to `most` of them, and the last entry.
    pub(crate) fn thinned(&self, most: usize) -> (usize, Vec<[f64; 2]>) {
        let mut shift = self.shift;
        while self.len() > most << shift {
            shift += 1;
        }
        let every = 1 << shift;
        let of_old = self.old.iter().enumerate().filter(|(k, _)| (k << self.shift).is_multiple_of(every));
        let of_recent = self.recent.iter().enumerate().filter(|(k, _)| (self.first + k).is_multiple_of(every));
        let mut norms: Vec<[f64; 2]> = of_old.chain(of_recent).map(|(_, norms)| *norms).collect();
        if self.len() > 0 && !(self.len() - 1).is_multiple_of(every) {
            norms.extend(self.last());
        }
        (every, norms)
    }
}

/// The smallest, and the first of several.
fn lowest_of(held: Option<(usize, f64)>, more: impl Iterator<Item = (usize, f64)>) -> Option<(usize, f64)> {
    held.into_iter().chain(more).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Joins the histories of two runs, the second of which begins in the last iteration of the first. Each has the number of iterations
/// between two of its entries, and of all. Returns that of the joined one.
pub(crate) fn join(first: &mut Vec<f64>, of_first: [usize; 2], second: &[f64], of_second: [usize; 2]) -> usize {
    let ([one, done], [other, more]) = (of_first, of_second);
    if one.max(other) == 1 && first.len() + second.len() <= REPORTED + 1 {
        first.extend(second.iter().skip(1));
        return 1;
    }
    let mut every = one.max(other);
    while (done + more) / every > REPORTED {
        every *= 2;
    }
    let at = |history: &[f64], iteration: usize, every: usize, all: usize| {
        let place = if iteration == all { history.len().saturating_sub(1) } else { iteration / every };
        history.get(place).copied()
    };
    let norm = |first: &[f64], iteration: usize| match iteration <= done {
        true => at(first, iteration, one, done),
        false => at(second, iteration - done, other, more),
    };
    let all = done + more;
    let mut joined: Vec<f64> = (0..=all).step_by(every).filter_map(|iteration| norm(first, iteration)).collect();
    if !all.is_multiple_of(every) {
        joined.extend(norm(first, all));
    }
    *first = joined;
    every
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(range: std::ops::Range<usize>) -> impl Iterator<Item = [f64; 2]> {
        range.map(|k| [k as f64, 2.0 * k as f64])
    }

    #[test]
    fn short_histories_are_whole() {
        let mut history = History::default();
        history.extend(numbered(0..100));
        assert_eq!((history.len(), history.last()), (100, Some([99.0, 198.0])));
        assert_eq!(history.thinned(REPORTED), (1, numbered(0..100).collect()));
        history.truncate(40);
        assert_eq!((history.len(), history.last()), (40, Some([39.0, 78.0])));
        assert_eq!(History::default().thinned(8), (1, Vec::new()));
    }

    #[test]
    fn long_histories_stay_small_and_say_which_iterations_they_have() {
        for count in [17, 64, 65, 1000, 1001, 12_345] {
            let mut history = History::with_limits(16, 8);
            history.extend(numbered(0..count));
            assert!(history.iter().count() <= 16 + 8, "{count}: {history:?}");
            assert_eq!(
                (history.len(), history.last()),
                (count, Some([(count - 1) as f64, 2.0 * (count - 1) as f64]))
            );
            for most in [4, 8, 100] {
                let (every, norms) = history.thinned(most);
                assert!(every.is_power_of_two() && norms.len() <= most + 1);
                for (k, norms) in norms.iter().enumerate() {
                    assert_eq!(norms[0], (k * every).min(count - 1) as f64, "{count}");
                }
                assert_eq!(norms.last().map(|norms| norms[0]), Some((count - 1) as f64));
            }
            // Back to an iteration that is thinned out.
            history.truncate(count / 3);
            assert_eq!(history.len(), count / 3);
            assert!(history.last().is_some_and(|norms| norms[0] < (count / 3) as f64));
        }
    }

    #[test]
    fn the_lowest_of_a_stretch_is_never_lost() {
        let mut history = History::with_limits(16, 8);
        history.extend([[0.5, 0.0]; 3].into_iter());
        history.begin();
        let wave = |k: usize| if k == 77 || k == 200 { 1.0 } else { 3.0 + k as f64 };
        history.extend((0..1000).map(|k| [if k == 5 { f64::NAN } else { wave(k) }, 0.0]));
        assert_eq!(history.lowest(), Some((77, 1.0)));
        history.begin();
        assert_eq!(history.lowest(), None);
        history.extend([[4.0, 0.0], [2.0, 0.0], [f64::INFINITY, 0.0]].into_iter());
        assert_eq!(history.lowest(), Some((1, 2.0)));
    }

    #[test]
    fn joined_histories_have_one_distance() {
        let whole = |n: usize| (0..=n).map(|k| k as f64).collect::<Vec<f64>>();
        let mut first = whole(5);
        let second: Vec<f64> = (5..=12).map(f64::from).collect();
        assert_eq!(join(&mut first, [1, 5], &second, [1, 7]), 1);
        assert_eq!(first, whole(12));
        // The first has every fourth iteration of 0 to 10, and the last one.
        let mut first = vec![0.0, 4.0, 8.0, 10.0];
        let second: Vec<f64> = (10..=17).map(f64::from).collect();
        assert_eq!(join(&mut first, [4, 10], &second, [1, 7]), 4);
        assert_eq!(first, [0.0, 4.0, 8.0, 12.0, 16.0, 17.0]);
    }
}
