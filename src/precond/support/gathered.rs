//! Sparse vectors that are summed term by term.

/// A sparse vector that terms are added to in any order of its places.
pub(crate) struct Gathered {
    sums: Vec<f64>,
    there: Vec<bool>,
    places: Vec<u32>,
}

impl Gathered {
    pub(crate) fn new(n: usize) -> Self {
        Self { sums: vec![0.0; n], there: vec![false; n], places: Vec::new() }
    }

    #[inline]
    pub(crate) fn add(&mut self, place: u32, term: f64) {
        let at = place as usize;
        self.sums[at] += term;
        if !self.there[at] {
            self.there[at] = true;
            self.places.push(place);
        }
    }

    /// Entries by ascending place. It is empty when they have been taken.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, f64)> + use<'_> {
        let Self { sums, there, places } = self;
        places.sort_unstable();
        places.drain(..).map(|place| {
            there[place as usize] = false;
            (place, std::mem::take(&mut sums[place as usize]))
        })
    }
}
