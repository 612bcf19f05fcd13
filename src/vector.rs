//! Vectors in device memory. Their operations are those of krueger-westermann-2003, section 3.

pub use crate::backend::linear::vector::Reduction;
use crate::backend::linear::vector::{Column, Terms};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::magnitude::{self, LEAST_SQUARE, Magnitude};
use crate::memory::Memory;
use crate::number::{Accumulation, Precision, Real, per_number};

/// A vector of `len` numbers in the memory of one device.
///
/// Operations are queued and return at once; those that return a number, and [`Vector::to_vec`], wait. Reductions
/// follow the tree of the numerics contract: the same bits on every device and at every work-group size.
///
/// ```
/// use residuum::{Device, Vector};
///
/// let device = Device::best()?;
/// let x = Vector::from_slice(&device, &[3.0, 4.0])?;
/// let mut y = Vector::filled(&device, 2, 1.0)?;
/// y.axpby(2.0, &x, 1.0)?; // y = 2 x + y
/// assert_eq!(y.to_vec()?, [7.0, 9.0]);
/// assert_eq!((x.norm2()?, x.dot(&y)?), (5.0, 57.0));
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Debug)]
pub struct Vector<T: Real> {
    device: Device,
    memory: Memory<T>,
}

/// Fails for a length that kernels, which count in 32 bits, cannot have.
fn check_len(len: usize) -> Result<()> {
    match u32::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(Error::Shape { what: "length of a vector, at most", expected: u32::MAX as usize, found: len })
        }
    }
}

/// [`LEAST_SQUARE`] of sums in pairs of `f32`, whose low words lie 2^-48 below: 2^-78.
const LEAST_SQUARE_OF_PAIRS: f64 = f64::from_bits((1023 - 78) << 52);

/// Sums of squares below this may have lost digits to underflow; 0 if they never do.
pub(crate) fn least_square<T: Real>(accumulation: Accumulation) -> f64 {
    match (T::PRECISION, accumulation) {
        // Squares of `f32` neither vanish nor overflow in `f64`.
        (Precision::Single, Accumulation::Double) => 0.0,
        (Precision::Double, _) => LEAST_SQUARE,
        (_, Accumulation::Pair) => LEAST_SQUARE_OF_PAIRS,
    }
}

/// An operation on each element.
enum Update<'v, T: Real> {
    Fill(T),
    Copy(&'v Vector<T>),
    ScaledFrom(T, &'v Vector<T>),
    Scale(T),
    Sum(T, &'v Vector<T>, T),
    SumOf([T; 2], &'v Vector<T>, &'v Vector<T>),
    Product(&'v Vector<T>, &'v Vector<T>),
    Clamp(T, T),
}

per_number! {
    fn update<'v, T>(x: &mut Vector<T>, update: Update<'v, T>) -> Result<()> = update_here;
}

fn update_here<T: Real>(x: &mut Vector<T>, update: Update<'_, T>) -> Result<()> {
    let Vector { device, memory: x, .. } = x;
    let (run, operations) = (device.run::<T>(), device.backend().vector::<T>());
    match update {
        Update::Fill(value) => operations.fill(run, value, x),
        Update::Copy(y) => x.copy_from(&y.memory),
        Update::ScaledFrom(alpha, y) => operations.scale(run, alpha, &y.memory, x),
        Update::Scale(alpha) => operations.rescale(run, alpha, x),
        Update::Sum(alpha, y, beta) => operations.axpby(run, [alpha, beta], &y.memory, x),
        Update::SumOf(factors, y, z) => operations.add_scaled(run, factors, [&y.memory, &z.memory], x),
        Update::Product(y, z) => operations.multiply_elements(run, [&y.memory, &z.memory], x),
        Update::Clamp(lower, upper) => operations.clamp_elements(run, [lower, upper], x),
    }
}

per_number! {
    fn from_slice<T>(device: &Device, data: &[T]) -> Result<Vector<T>> = Vector::from_slice_here;
    fn filled<T>(device: &Device, len: usize, value: T) -> Result<Vector<T>> = Vector::filled_here;
    fn to_vec<T>(this: &Vector<T>) -> Result<Vec<T>> = Vector::to_vec_here;
    fn write<T>(this: &mut Vector<T>, data: &[T]) -> Result<()> = Vector::write_here;
    fn reduce_column<T>(
        this: &Vector<T>,
        column: Column,
        of: (Reduction, Terms),
        other: &Vector<T>,
    ) -> Result<f64> = Vector::reduce_column_here;
    fn column_norm<T>(this: &Vector<T>, column: Column) -> Result<Magnitude> = Vector::column_norm_here;
    fn scale_columns<T>(this: &mut Vector<T>, exponents: &[i32]) -> Result<()> = Vector::scale_columns_here;
}

impl<T: Real> Vector<T> {
    /// Copies `data` to the device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for `f64` on a device without it, [`Error::Memory`], [`Error::Api`].
    pub fn from_slice(device: &Device, data: &[T]) -> Result<Self> {
        from_slice(device, data)
    }

    fn from_slice_here(device: &Device, data: &[T]) -> Result<Self> {
        device.require(T::PRECISION)?;
        check_len(data.len())?;
        let memory = device.place().upload(data)?;
        Ok(Self { device: device.clone(), memory })
    }

    /// A vector of `len` zeros.
    ///
    /// # Errors
    /// As [`Vector::from_slice`].
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        Self::filled(device, len, T::default())
    }

    /// A vector of `len` times `value`.
    ///
    /// # Errors
    /// As [`Vector::from_slice`].
    pub fn filled(device: &Device, len: usize, value: T) -> Result<Self> {
        filled(device, len, value)
    }

    fn filled_here(device: &Device, len: usize, value: T) -> Result<Self> {
        device.require(T::PRECISION)?;
        check_len(len)?;
        device.check_memory(0, &[("a vector", (len * T::PRECISION.bytes()) as u64)])?;
        let memory = device.place().filled(len, value)?;
        Ok(Self { device: device.clone(), memory })
    }

    /// A vector in memory of `device`.
    pub(crate) fn on_memory(device: &Device, memory: Memory<T>) -> Result<Self> {
        device.require(T::PRECISION)?;
        check_len(memory.len())?;
        Ok(Self { device: device.clone(), memory })
    }

    pub(crate) fn memory(&self) -> &Memory<T> {
        &self.memory
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Memory<T> {
        &mut self.memory
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Tells if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Device of the vector.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Copies the elements to the host. Waits for the work queued so far.
    ///
    /// # Errors
    /// [`Error::Api`] when the transfer or earlier work failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        to_vec(self)
    }

    fn to_vec_here(&self) -> Result<Vec<T>> {
        let mut data = vec![T::default(); self.len()];
        self.memory.read(0, &mut data)?;
        Ok(data)
    }

    /// Overwrites the elements with `data`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `data` has the vector's length.
    pub fn write(&mut self, data: &[T]) -> Result<()> {
        write(self, data)
    }

    fn write_here(&mut self, data: &[T]) -> Result<()> {
        same_length("data for a vector", self.len(), data.len())?;
        self.memory.write(data)
    }

    /// A vector of its own with the same elements, on the same device.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::Api`].
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = Self::zeros(self.device(), self.len())?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// `x = y`.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DeviceMismatch`].
    pub fn copy_from(&mut self, y: &Self) -> Result<()> {
        same_length("vectors of a copy", self.len(), y.len())?;
        update(self, Update::Copy(y))
    }

    /// `x = value` everywhere.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn fill(&mut self, value: T) -> Result<()> {
        update(self, Update::Fill(value))
    }

    /// `x = alpha y`. Cost: `n` read, `n` written.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DeviceMismatch`].
    pub fn scaled_from(&mut self, alpha: T, y: &Self) -> Result<()> {
        same_length("vectors of a scaling", self.len(), y.len())?;
        update(self, Update::ScaledFrom(alpha, y))
    }

    /// `x = alpha x`. Cost: `n` read, `n` written.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn scale(&mut self, alpha: T) -> Result<()> {
        update(self, Update::Scale(alpha))
    }

    /// `x = alpha y + beta x`. Cost: `2 n` read, `n` written.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DeviceMismatch`].
    pub fn axpby(&mut self, alpha: T, y: &Self, beta: T) -> Result<()> {
        same_length("vectors of a sum", self.len(), y.len())?;
        update(self, Update::Sum(alpha, y, beta))
    }

    /// `x = alpha y + beta z`. Cost: `2 n` read, `n` written.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DeviceMismatch`].
    pub fn sum_of(&mut self, alpha: T, y: &Self, beta: T, z: &Self) -> Result<()> {
        same_length("vectors of a sum", self.len(), y.len())?;
        same_length("vectors of a sum", self.len(), z.len())?;
        update(self, Update::SumOf([alpha, beta], y, z))
    }

    /// `x_i = y_i z_i`. Cost: `2 n` read, `n` written.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DeviceMismatch`].
    pub fn product_of(&mut self, y: &Self, z: &Self) -> Result<()> {
        same_length("vectors of a pointwise product", self.len(), y.len())?;
        same_length("vectors of a pointwise product", self.len(), z.len())?;
        update(self, Update::Product(y, z))
    }

    /// `x_i = min(max(x_i, lower), upper)`. Cost: `n` read, `n` written.
    ///
    /// # Errors
    /// [`Error::Option`] unless `lower <= upper`.
    pub fn clamp(&mut self, lower: T, upper: T) -> Result<()> {
        if lower.partial_cmp(&upper).is_none_or(|order| order.is_gt()) {
            return Err(Error::Option { name: "bounds", reason: format!("{lower} is not below {upper}") });
        }
        update(self, Update::Clamp(lower, upper))
    }

    /// All elements reduced to one number, in wide arithmetic: the result is not rounded to `T`.
    ///
    /// # Errors
    /// [`Error::Api`].
    ///
    /// # Cost
    /// Two launches and a read, which waits; `size n` bytes.
    pub fn reduce(&self, reduction: Reduction) -> Result<f64> {
        reduce_column(self, Column::ALONE, (reduction, Terms::Elements), self)
    }

    /// The products `x_i y_i` of the elements of two vectors reduced to one number, in wide arithmetic: no product is rounded to `T`
    /// (`clVecReduce` of krueger-westermann-2003, 3.3).
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DeviceMismatch`].
    ///
    /// # Cost
    /// Two launches and a read, which waits; `2 size n` bytes.
    pub fn reduce_products(&self, reduction: Reduction, other: &Self) -> Result<f64> {
        same_length("vectors of a reduction", self.len(), other.len())?;
        reduce_column(self, Column::ALONE, (reduction, Terms::Products), other)
    }

    fn reduce_column_here(&self, column: Column, of: (Reduction, Terms), other: &Self) -> Result<f64> {
        let operations = self.device.backend().vector::<T>();
        operations.reduce(self.device.run::<T>(), column, of, [&self.memory, &other.memory])
    }

    /// The 2-norm of each of `columns` interleaved vectors.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub(crate) fn column_norms(&self, columns: usize) -> Result<Vec<Magnitude>> {
        (0..columns).map(|index| column_norm(self, Column { count: columns, index })).collect()
    }

    /// The 2-norm of one column. Where its square overflows or loses digits, the elements are scaled by a
    /// power of two first, on the host.
    fn column_norm_here(&self, column: Column) -> Result<Magnitude> {
        let square = reduce_column(self, column, (Reduction::Sum, Terms::Products), self)?;
        let accumulation = self.device.accumulation(T::PRECISION);
        let least = least_square::<T>(accumulation);
        if square > least && square.is_finite() || square == 0.0 && least == 0.0 {
            return Ok(Magnitude::of(square.sqrt()));
        }
        if square == 0.0 && reduce_column(self, column, (Reduction::AbsoluteSum, Terms::Elements), self)? == 0.0 {
            return Ok(Magnitude::of(0.0));
        }
        let [lowest, highest] = [Reduction::Minimum, Reduction::Maximum]
            .map(|which| reduce_column(self, column, (which, Terms::Elements), self));
        let largest = Magnitude::of(magnitude::largest([lowest?, highest?].into_iter()));
        let Some(exponent) = largest.exponent() else { return Ok(largest) };
        let scaled = |v: &T| T::from_f64(magnitude::scale(v.to_f64(), -exponent));
        let data: Vec<T> = self.to_vec()?.iter().skip(column.index).step_by(column.count).map(scaled).collect();
        let host = Device::host().with_accumulation(accumulation)?;
        let square = Vector::from_slice(&host, &data)?.dot(&Vector::from_slice(&host, &data)?)?;
        Ok(Magnitude { value: square.sqrt(), exponent })
    }

    /// Multiplies each column by a power of two, on the host: rounds only what leaves the range of `T`.
    pub(crate) fn scale_columns(&mut self, exponents: &[i32]) -> Result<()> {
        scale_columns(self, exponents)
    }

    fn scale_columns_here(&mut self, exponents: &[i32]) -> Result<()> {
        let mut data = self.to_vec()?;
        for (v, exponent) in data.iter_mut().zip(exponents.iter().cycle()) {
            *v = T::from_f64(magnitude::scale(v.to_f64(), *exponent));
        }
        self.write(&data)
    }

    /// The sum of all elements, 0 for none.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn sum(&self) -> Result<f64> {
        self.reduce(Reduction::Sum)
    }

    /// The product of all elements, 1 for none.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn product(&self) -> Result<f64> {
        self.reduce(Reduction::Product)
    }

    /// The least element, infinity for none, NaN if there is one.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn min(&self) -> Result<f64> {
        self.reduce(Reduction::Minimum)
    }

    /// The greatest element, minus infinity for none, NaN if there is one.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn max(&self) -> Result<f64> {
        self.reduce(Reduction::Maximum)
    }

    /// The sum of magnitudes, the 1-norm.
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn asum(&self) -> Result<f64> {
        self.reduce(Reduction::AbsoluteSum)
    }

    /// `x'y`, in wide arithmetic: the result is not rounded to `T`.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::DeviceMismatch`].
    pub fn dot(&self, other: &Self) -> Result<f64> {
        self.reduce_products(Reduction::Sum, other)
    }

    /// The 2-norm. Elements may be as large or small as `T` has them: if their squares do not fit, they are scaled by a power of
    /// two first (which reads the vector back).
    ///
    /// # Errors
    /// [`Error::Api`].
    pub fn norm2(&self) -> Result<f64> {
        Ok(column_norm(self, Column::ALONE)?.to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_as_long_as_kernels_can_count() {
        for (len, right) in
            [(0, true), (u32::MAX as usize, true), (u32::MAX as usize + 1, false), (usize::MAX, false)]
        {
            assert_eq!(check_len(len).is_ok(), right, "{len}");
        }
        // Before anything is allocated, on every way to a vector.
        let device = Device::host();
        assert!(matches!(Vector::<f32>::zeros(&device, 1 << 33), Err(Error::Shape { .. })));
    }
}
