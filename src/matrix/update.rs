//! Other values for a stored matrix.

use std::borrow::Cow;
use std::sync::PoisonError;

use super::pattern::Pattern;
use super::{Backward, Matrix};
use crate::backend::linear::product::{NewValues, SharedMatrix};
use crate::error::{Error, Result, same_length};
use crate::number::{Real, first_not_finite};
use crate::sparse::{Csr, Layout, Packable, Places, frobenius};

/// Error of other values for entries that are computed.
fn computed() -> Error {
    let what = "the entries of this matrix are computed: there are no values to replace".into();
    Error::Structure { what, row: None }
}

impl<T: Real> Matrix<T> {
    pub(super) fn update_values_here(&self, a: &Csr<T>) -> Result<()> {
        self.check_pattern(a)?;
        self.replace_values(a.values(), || Ok(Cow::Borrowed(a)))
    }

    /// Fails unless the entries of `a` stand where those of this matrix do.
    pub(crate) fn check_pattern(&self, a: &Csr<T>) -> Result<()> {
        let Some(pattern) = &self.pattern else { return Err(computed()) };
        a.check_pattern(pattern.checksum)
    }

    /// [`Matrix::update_values`] for values that are known to belong to entries in the same places. `whole` makes the matrix of them, which the
    /// first call asks for in order to learn the places, and every call if values are packed.
    pub(crate) fn replace_values<'a>(
        &self,
        values: &[T],
        whole: impl Fn() -> Result<Cow<'a, Csr<T>>>,
    ) -> Result<()> {
        let Some(pattern) = &self.pattern else { return Err(computed()) };
        same_length("values of a matrix", self.nnz, values.len())?;
        if let Some(index) = first_not_finite(values) {
            return Err(Error::NotFinite { what: "the matrix".into(), index });
        }
        let mut places = pattern.places.lock().unwrap_or_else(PoisonError::into_inner);
        let backward = match &self.transposed {
            Backward::Copy(stored) => Some(stored),
            Backward::None | Backward::Scatter | Backward::Shifted(_) => None,
        };
        let packs = |stored: &SharedMatrix<T>| stored.entries().packs_values();
        let plain = !packs(&self.forward) && !backward.is_some_and(packs);
        if plain && places.is_none() {
            *places = pattern.places_of(&*whole()?, backward.is_some())?;
        }
        // Everything is allocated before anything is changed.
        let (forward, transposed) = match &*places {
            Some([forward, transposed]) if plain => {
                let new = |places: &Places| NewValues::Same(places.values(values));
                (new(forward), backward.map(|_| new(transposed)))
            }
            _ => {
                let a = &*whole()?;
                let forward = self.prepare_values(pattern, 0, a, &self.forward)?;
                let t = backward.map(|stored| self.prepare_values(pattern, 1, &a.transpose(), stored));
                (forward, t.transpose()?)
            }
        };
        if let (Some(stored), Some(new)) = (backward, transposed) {
            stored.replace_values(new, None)?;
        }
        let shifted = match &self.transposed {
            Backward::Shifted(stored) => Some(stored),
            _ => None,
        };
        self.forward.replace_values(forward, shifted)?;
        let mut held = self.frobenius.write().unwrap_or_else(PoisonError::into_inner);
        *held = (frobenius(values), held.1 + 1);
        Ok(())
    }

    /// The values of `a` as `stored` takes them, by another layout.
    fn prepare_values(
        &self,
        pattern: &Pattern,
        way: usize,
        a: &Csr<T>,
        stored: &SharedMatrix<T>,
    ) -> Result<NewValues<T>> {
        // Columns stay as they are, and values that were not packed stay so: solvers would have to build other programs.
        let old = stored.entries();
        let packable = if old.packs_values() { pattern.packable } else { Packable::NOTHING };
        let reader = self.device.reader();
        let layout = Layout::new(a, pattern.formats[way], pattern.offsets, packable, reader, |_| Ok(()))?;
        if old.packs_values() && layout.arrangement.entries != old {
            self.device.check_memory(0, &layout.buffers())?;
        }
        stored.prepare_values(&self.device.place(), layout)
    }
}
