//! Selections and permutations of unknowns, as operators.

use std::marker::PhantomData;
use std::sync::Arc;

use super::linear::LinearOperator;
use crate::columns::check_count;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::memory::Memory;
use crate::number::{Real, per_number};
use crate::sparse::Permutation;
use crate::vector::Vector;

/// `y_i = x_k` with `k = indices[i]`: some elements of a vector, in any order. The adjoint puts them back in their places, and 0 elsewhere.
///
/// With a selection `S` of the unknowns that are not given, `S A S'` is the matrix of these alone. With a [permutation](Selection::permutation)
/// it is the matrix in another order, without being stored again.
///
/// ```
/// use residuum::operator::{LinearOperator, LinearOperatorExt, Selection};
/// use residuum::{Csr, Device, Format, Matrix, Method, Solver, Stopping, Vector};
///
/// let device = Device::best()?;
/// let rod = Csr::from_rows(9, 9, |i, row| {
///     let near = i.saturating_sub(1)..(i + 2).min(9);
///     row.extend(near.map(|j| (j as u32, if j == i { 2.0 } else { -1.0 })));
/// })?;
/// let a = Matrix::new(&device, &rod, Format::Auto)?;
/// // The first and the last value of the rod are given: 0.
/// let free = Selection::new(&device, &[1, 2, 3, 4, 5, 6, 7], 9)?;
/// let inner = free.clone().times(a)?.times(free.clone().adjoint()?)?;
/// let (b, mut x) = (Vector::filled(&device, 7, 1.0)?, Vector::<f64>::zeros(&device, 7)?);
/// let report = Solver::new(inner.shared(), Method::Cg, Stopping::for_precision::<f64>())?.solve(&b, &mut x)?;
/// assert!(report.converged());
/// let mut whole = Vector::zeros(&device, 9)?;
/// free.apply_adjoint(&x, &mut whole)?;
/// let whole = whole.to_vec()?;
/// assert!(whole[0] == 0.0 && (whole[4] - 8.0).abs() < 1e-6);
/// # Ok::<(), residuum::Error>(())
/// ```
///
/// # Cost
/// Held: 4 bytes for each row and each column. A product is one launch; it reads and writes a number for each row, and reads 4 bytes.
#[derive(Debug)]
pub struct Selection<T: Real> {
    places: Arc<Places>,
    numbers: PhantomData<fn() -> T>,
}

impl<T: Real> Clone for Selection<T> {
    fn clone(&self) -> Self {
        Self { places: self.places.clone(), numbers: PhantomData }
    }
}

#[derive(Debug)]
struct Places {
    device: Device,
    /// Column of each row, and row of each column; [`NONE`] for a column that no row has.
    of_rows: Memory<u32>,
    of_columns: Memory<u32>,
}

/// Row of a column that none has.
const NONE: u32 = u32::MAX;

per_number! {
    fn select<T>(
        device: &Device,
        columns: usize,
        indices: &Memory<u32>,
        x: &Vector<T>,
        y: &mut Vector<T>,
    ) -> Result<()> = select_here;
}

fn select_here<T: Real>(
    device: &Device,
    columns: usize,
    indices: &Memory<u32>,
    x: &Vector<T>,
    y: &mut Vector<T>,
) -> Result<()> {
    let operations = device.backend().selection::<T>();
    operations.select(device.run::<T>(), columns, indices, x.memory(), y.memory_mut())
}

impl<T: Real> Selection<T> {
    /// Selects the elements of these indices, from 0 on, from vectors of `cols` elements.
    ///
    /// # Errors
    /// [`Error::Option`] for an index that is not below `cols`, or that stands twice; [`Error::Shape`] for 2^32 - 1 columns or more;
    /// [`Error::Memory`], [`Error::Api`].
    pub fn new(device: &Device, indices: &[u32], cols: usize) -> Result<Self> {
        if cols >= NONE as usize {
            return Err(Error::Shape {
                what: "columns of a selection, at most",
                expected: NONE as usize - 1,
                found: cols,
            });
        }
        device.check_memory(0, &[("a selection", 4 * (indices.len() + cols) as u64)])?;
        let mut of_columns = vec![NONE; cols];
        for (row, index) in indices.iter().enumerate() {
            let refuse = |why| Err(Error::Option { name: "indices", reason: format!("{index} (at {row}) {why}") });
            match of_columns.get_mut(*index as usize) {
                None => return refuse(format!("is not below {cols}")),
                Some(of) if *of != NONE => return refuse(format!("stands at {of} too")),
                Some(of) => *of = row as u32,
            }
        }
        let place = device.place();
        let places =
            Places { device: device.clone(), of_rows: place.upload(indices)?, of_columns: place.take(of_columns)? };
        Ok(Self { places: Arc::new(places), numbers: PhantomData })
    }

    /// `P` of a permutation: row `i` of `P x` is the element of `x` that stands at place `i` of the new order.
    ///
    /// # Errors
    /// As [`Selection::new`].
    pub fn permutation(device: &Device, order: &Permutation) -> Result<Self> {
        Self::new(device, order.order(), order.order().len())
    }

    fn multiply(&self, columns: usize, back: bool, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        let Places { device, of_rows, of_columns } = &*self.places;
        let [from, to] = if back { [of_columns, of_rows] } else { [of_rows, of_columns] };
        check_count(columns)?;
        same_length("vector to multiply", to.len() * columns, x.len())?;
        same_length("result of a product", from.len() * columns, y.len())?;
        select(device, columns, from, x, y)
    }
}

impl<T: Real> LinearOperator<T> for Selection<T> {
    fn device(&self) -> &Device {
        &self.places.device
    }
    fn rows(&self) -> usize {
        self.places.of_rows.len()
    }
    fn cols(&self) -> usize {
        self.places.of_columns.len()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply(1, false, x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply(1, true, x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn takes_columns(&self) -> bool {
        true
    }
    fn apply_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply(columns, false, x, y)
    }
    fn apply_adjoint_columns(&self, columns: usize, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.multiply(columns, true, x, y)
    }
    fn norm_bound(&self) -> Option<f64> {
        Some(1.0)
    }
    fn bytes(&self) -> u64 {
        4 * (self.places.of_rows.len() + self.places.of_columns.len()) as u64
    }
    fn launches(&self, _columns: usize) -> usize {
        1
    }
}
