//! Several right-hand sides, or answers, in device memory.

use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::number::{Real, per_number};
use crate::vector::Vector;

/// Vectors of one length in the memory of one device, called columns: right-hand sides of one solve, or its answers.
/// Products read the matrix once for all of them.
///
/// The columns are interleaved: element `i` of column `c` stands at place `i * count + c` of [`Columns::as_vector`].
///
/// ```
/// use residuum::sparse::gallery;
/// use residuum::{Columns, Device, Format, Matrix, Method, Setup, Solver, Stopping};
///
/// let device = Device::best()?;
/// let matrix = Matrix::new(&device, &gallery::poisson_2d::<f64>(16, 0.0)?, Format::Auto)?;
/// let b = Columns::new(&device, &[vec![1.0; 256], vec![2.0; 256]])?;
/// let mut x = Columns::zeros(&device, 256, b.count())?;
/// let setup = Setup::new(Method::Cg, Stopping::for_precision::<f64>()).with_columns(b.count());
/// let reports = Solver::with(&matrix, setup)?.solve_many(&b, &mut x)?;
/// assert!(reports.iter().all(|report| report.converged()));
/// let answers = x.to_vecs()?;
/// assert!((answers[1][7] - 2.0 * answers[0][7]).abs() < 1e-6 * answers[1][7]);
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct Columns<T: Real> {
    vector: Vector<T>,
    count: usize,
}

per_number! {
    fn interleave<T>(columns: &[&[T]]) -> Result<Vec<T>> = interleave_here;
    fn separate<T>(data: &[T], count: usize) -> Vec<Vec<T>> = separate_here;
}

fn interleave_here<T: Real>(columns: &[&[T]]) -> Result<Vec<T>> {
    let len = columns.first().map_or(0, |column| column.len());
    for column in columns {
        same_length("columns of one length", len, column.len())?;
    }
    Ok((0..len).flat_map(|i| columns.iter().map(move |column| column[i])).collect())
}

fn separate_here<T: Real>(data: &[T], count: usize) -> Vec<Vec<T>> {
    (0..count).map(|c| data.iter().skip(c).step_by(count).copied().collect()).collect()
}

/// Fails unless there are columns.
pub(crate) fn check_count(count: usize) -> Result<()> {
    let reason = || "0 columns; 1 and more are possible".into();
    if count > 0 { Ok(()) } else { Err(Error::Option { name: "columns", reason: reason() }) }
}

impl<T: Real> Columns<T> {
    /// Copies columns to the device.
    ///
    /// # Errors
    /// [`Error::Shape`] if their lengths differ; [`Error::Option`] if there are none; as [`Vector::from_slice`].
    pub fn new(device: &Device, columns: &[impl AsRef<[T]>]) -> Result<Self> {
        check_count(columns.len())?;
        let columns: Vec<&[T]> = columns.iter().map(AsRef::as_ref).collect();
        let vector = match columns[..] {
            [column] => Vector::from_slice(device, column)?,
            _ => Vector::from_slice(device, &interleave(&columns)?)?,
        };
        Ok(Self { vector, count: columns.len() })
    }

    /// `count` columns of `len` zeros.
    ///
    /// # Errors
    /// [`Error::Option`] for a `count` of 0; as [`Vector::zeros`].
    pub fn zeros(device: &Device, len: usize, count: usize) -> Result<Self> {
        check_count(count)?;
        Ok(Self { vector: Vector::zeros(device, len.saturating_mul(count))?, count })
    }

    /// Takes a vector that holds `count` columns, interleaved.
    ///
    /// # Errors
    /// [`Error::Option`] for a `count` of 0; [`Error::Shape`] if it does not divide the length of the vector.
    pub fn from_vector(vector: Vector<T>, count: usize) -> Result<Self> {
        check_count(count)?;
        same_length("interleaved columns", vector.len() / count * count, vector.len())?;
        Ok(Self { vector, count })
    }

    /// Elements of a column.
    pub fn len(&self) -> usize {
        self.vector.len() / self.count
    }

    /// Tells if the columns have no elements.
    pub fn is_empty(&self) -> bool {
        self.vector.is_empty()
    }

    /// Number of columns.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Device of the columns.
    pub fn device(&self) -> &Device {
        self.vector.device()
    }

    /// Overwrites all elements of all columns.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, and for columns of another length; [`Error::Api`].
    pub fn write(&mut self, columns: &[impl AsRef<[T]>]) -> Result<()> {
        same_length("number of columns", self.count, columns.len())?;
        self.vector.write_columns(&columns.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.vector.fill(value)
    }

    /// Copies the columns to the host, one after another. Waits for the work queued so far.
    ///
    /// # Errors
    /// As [`Vector::to_vec`].
    pub fn to_vecs(&self) -> Result<Vec<Vec<T>>> {
        let data = self.vector.to_vec()?;
        Ok(if self.count == 1 { vec![data] } else { separate(&data, self.count) })
    }

    /// The interleaved elements, for element-wise operations on all columns at once.
    pub fn as_vector(&self) -> &Vector<T> {
        &self.vector
    }

    /// [`Columns::as_vector`], to change the elements. Exchange it for a vector of the same length alone.
    pub fn as_vector_mut(&mut self) -> &mut Vector<T> {
        &mut self.vector
    }

    /// Gives the interleaved elements away.
    pub fn into_vector(self) -> Vector<T> {
        self.vector
    }
}

impl<T: Real> Vector<T> {
    /// Overwrites the elements with several vectors of one length, interleaved as [`Columns`] are.
    ///
    /// # Errors
    /// [`Error::Shape`] unless they have the vector's length together.
    pub(crate) fn write_columns(&mut self, columns: &[&[T]]) -> Result<()> {
        match columns {
            [column] => self.write(column),
            _ => self.write(&interleave(columns)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_interleaved_and_come_back() {
        let device = Device::host();
        let mut columns = Columns::new(&device, &[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
        assert_eq!((columns.len(), columns.count(), columns.is_empty()), (2, 3, false));
        assert_eq!(columns.as_vector().to_vec().unwrap(), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        assert_eq!(columns.to_vecs().unwrap(), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        columns.write(&[[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]).unwrap();
        assert_eq!(columns.to_vecs().unwrap()[1], [9.0, 10.0]);
        assert_eq!(columns.into_vector().len(), 6);
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let device = Device::host();
        assert!(matches!(Columns::<f64>::new(&device, &[[0.0; 0]; 0]), Err(Error::Option { name: "columns", .. })));
        assert!(matches!(Columns::new(&device, &[vec![1.0], vec![1.0, 2.0]]), Err(Error::Shape { .. })));
        assert!(matches!(Columns::<f64>::zeros(&device, 4, 0), Err(Error::Option { .. })));
        assert!(matches!(Columns::<f64>::zeros(&device, usize::MAX, 2), Err(Error::Shape { .. })));
        let vector = || Vector::<f64>::zeros(&device, 5).unwrap();
        assert!(matches!(Columns::from_vector(vector(), 2), Err(Error::Shape { .. })));
        let mut five = Columns::from_vector(vector(), 5).unwrap();
        assert!(matches!(five.write(&[[0.0]; 4]), Err(Error::Shape { .. })));
        assert!(matches!(five.write(&[[0.0, 1.0]; 5]), Err(Error::Shape { .. })));
    }
}
