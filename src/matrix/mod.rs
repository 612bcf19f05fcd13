//! Sparse matrices in device memory.

mod pattern;
mod products;
mod update;

use std::sync::{Arc, PoisonError, RwLock};

use self::pattern::Pattern;
pub use crate::backend::linear::product::Combine;
use crate::backend::linear::product::{SharedMatrix, Stored};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::magnitude::Magnitude;
use crate::number::{Precision, Real, per_number};
use crate::setters::setters;
use crate::sparse::{AsCsr, Csr, Format, Kind, Layout, Offsets, Packable, Packing};
use crate::vector::Vector;

/// A sparse `rows × cols` matrix in the memory of one device, in one [`Format`], perhaps with a transposed copy. Cloning is
/// cheap and shares the memory.
///
/// ```
/// use residuum::{Csr, Device, Format, Matrix, Vector};
///
/// let device = Device::best()?;
/// let a = Csr::from_triplets(2, 3, &[(0, 0, 1.0), (0, 2, 2.0), (1, 1, 3.0)])?;
/// let matrix = Matrix::with_transpose(&device, &a, Format::Auto)?;
/// let mut y = Vector::zeros(&device, 2)?;
/// matrix.multiply(&Vector::from_slice(&device, &[1.0, 10.0, 100.0])?, &mut y)?;
/// assert_eq!(y.to_vec()?, [201.0, 30.0]);
/// let mut x = Vector::zeros(&device, 3)?;
/// matrix.multiply_transposed(&Vector::from_slice(&device, &[1.0, 10.0])?, &mut x)?;
/// assert_eq!(x.to_vec()?, [1.0, 30.0, 2.0]);
/// println!("{}: {}", matrix.format(), matrix.why());
/// # Ok::<(), residuum::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Matrix<T: Real> {
    device: Device,
    rows: usize,
    cols: usize,
    nnz: usize,
    format: Format,
    why: String,
    bytes: u64,
    read_bytes: [u64; 2],
    /// The Frobenius norm, and how often the values were replaced.
    frobenius: Arc<RwLock<(Magnitude, u64)>>,
    pattern: Option<Pattern>,
    forward: SharedMatrix<T>,
    transposed: Backward<T>,
}

/// Storage options of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Storage {
    /// The format; [`Format::Auto`] looks at the matrix.
    pub format: Format,
    /// Source of products with the transposed matrix.
    pub transposed: Transposed,
    /// Width of row offsets, in the formats that have them.
    pub offsets: Offsets,
    /// Devices where entries take fewer bytes, if that loses nothing.
    pub packing: Packing,
}

impl Storage {
    setters! {
        with_format: format(Format),
        with_transposed: transposed(Transposed),
        with_offsets: offsets(Offsets),
        with_packing: packing(Packing),
    }
}

/// Source of products `A'x`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transposed {
    /// There are none.
    #[default]
    None,
    /// A second copy of the matrix, by columns: twice the memory, the speed of `A x`, the same bits everywhere. Matrices by diagonals
    /// ([`Format::Dia`]) need no copy: diagonal `k` of `A` is diagonal `-k` of `A'`, read at a shifted place (krueger-westermann-2003, 2).
    Copy,
    /// The matrix itself, its rows spread over the result by atomic additions in `T` (stock-koch-2009, variant
    /// Backprojection): in local memory if the result fits there, else in global memory. **Not reproducible**: the last bits change from run to run. Needs a format of compressed rows,
    /// and 64-bit atomics for `f64`. [`Method::Cgnr`](crate::Method::Cgnr) does not take it.
    Scatter,
}

/// Source of products with the transposed matrix.
#[derive(Clone, Debug)]
enum Backward<T: Real> {
    None,
    Copy(SharedMatrix<T>),
    /// The values of the matrix, by diagonals.
    Shifted(SharedMatrix<T>),
    Scatter,
}

/// Product with a matrix.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// `A x`: each row adds what it needs of the vector.
    Forward,
    /// `A'x`, likewise by the rows of the transposed.
    Backward,
    /// `A'x`: each row of `A` is spread over the result.
    Scatter,
}

/// Fails unless rows of `layout` can be spread by atomic additions.
fn can_scatter<T: Real>(device: &Device, layout: &Layout<T>) -> Result<()> {
    if layout.arrangement.kind != Kind::Csr || layout.arrangement.wide {
        let reason = format!("Scatter needs csr or csr-scalar with 32-bit offsets, not {}", layout.format);
        return Err(Error::Conflict { name: "transposed", reason });
    }
    if T::PRECISION == Precision::Double && !device.info().int64_atomics {
        return Err(Error::Unsupported {
            device: device.info().name.clone(),
            needs: "64-bit atomics for f64; use f32 or Transposed::Copy".into(),
        });
    }
    Ok(())
}

per_number! {
    fn stored<T>(device: &Device, a: &Csr<T>, storage: Storage) -> Result<Matrix<T>> = Matrix::stored_here;
    fn update_values<T>(this: &Matrix<T>, a: &Csr<T>) -> Result<()> = Matrix::update_values_here;
    fn product<T>(
        this: &Matrix<T>,
        stored: &SharedMatrix<T>,
        way: Way,
        columns: usize,
        x: &Vector<T>,
        y: &mut Vector<T>,
    ) -> Result<()> = Matrix::product_here;
    fn multiply_with<T>(this: &Matrix<T>, x: &Vector<T>, op: Combine, y: &Vector<T>, result: &mut Vector<T>) -> Result<()> = Matrix::multiply_with_here;
}

impl<T: Real> Matrix<T> {
    /// Lays `a` out in `format` and copies it to the device, for products `A x`.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for NaN or infinity among the values, [`Error::Structure`] if 32-bit positions do
    /// not reach, [`Error::Unsupported`] for `f64` on a device without it, [`Error::Memory`] before anything is
    /// sent when the arrays do not fit.
    pub fn new(device: &Device, a: &(impl AsCsr<T> + ?Sized), format: Format) -> Result<Self> {
        Self::stored(device, a, Storage { format, ..Storage::default() })
    }

    /// As [`Matrix::new`], with an explicit transposed copy for products `A'x`: needed by [`Method::Cgnr`](crate::Method::Cgnr).
    ///
    /// # Errors
    /// As [`Matrix::new`].
    pub fn with_transpose(device: &Device, a: &(impl AsCsr<T> + ?Sized), format: Format) -> Result<Self> {
        Self::stored(device, a, Storage { format, transposed: Transposed::Copy, ..Storage::default() })
    }

    /// Stores `a` on the device as `storage` says.
    ///
    /// # Errors
    /// As [`Matrix::new`]; [`Error::Option`] for a parameter of a format that is out of range; [`Error::Conflict`] for
    /// [`Transposed::Scatter`] with a format that cannot do it, and for [`Format::OnTheFly`].
    pub fn stored(device: &Device, a: &(impl AsCsr<T> + ?Sized), storage: Storage) -> Result<Self> {
        let a = &*a.as_csr()?;
        stored(device, a, storage)
    }

    fn stored_here(device: &Device, a: &Csr<T>, storage: Storage) -> Result<Self> {
        if let Some(index) = a.first_not_finite() {
            return Err(Error::NotFinite { what: "the matrix".into(), index });
        }
        let fits = |bytes: u64| device.check_total(0, &[("matrix", bytes)]);
        let reader = device.reader();
        let scatter = storage.transposed == Transposed::Scatter;
        let packable = if scatter { Packable::NOTHING } else { Packable::of(storage.packing, reader) };
        let layout = |a: &Csr<T>| Layout::new(a, storage.format, storage.offsets, packable, reader, fits);
        let forward = layout(a)?;
        let shifts = storage.transposed == Transposed::Copy && forward.format == Format::Dia;
        let shifted = shifts.then(|| forward.shifted_pointers());
        let backward = match storage.transposed {
            Transposed::None | Transposed::Scatter => None,
            Transposed::Copy if shifts => None,
            Transposed::Copy => Some(layout(&a.plausible_transpose()?)?),
        };
        if scatter {
            can_scatter::<T>(device, &forward)?;
        }
        let formats = [forward.format, backward.as_ref().map_or(forward.format, |layout| layout.format)];
        let mut matrix = Self::of_layouts(device, forward, backward, a.nnz(), a.frobenius())?;
        matrix.pattern = Some(Pattern {
            checksum: a.pattern(),
            formats,
            offsets: storage.offsets,
            packable,
            places: Arc::default(),
        });
        if scatter {
            matrix.transposed = Backward::Scatter;
        }
        if let Some(pointers) = shifted {
            let place = device.place();
            let stored = Stored::shifted(&place, &matrix.forward.read(), pointers)?;
            matrix.bytes += 4 * stored.pointers.len() as u64;
            matrix.read_bytes[1] = matrix.read_bytes[0];
            matrix.why += "; transposed in the same values, read at shifted places";
            matrix.transposed = Backward::Shifted(SharedMatrix::new(stored));
        }
        Ok(matrix)
    }

    /// Sends layouts to the device, after checking that they fit.
    pub(crate) fn of_layouts(
        device: &Device,
        forward: Layout<T>,
        backward: Option<Layout<T>>,
        nnz: usize,
        frobenius: Magnitude,
    ) -> Result<Self> {
        device.require(T::PRECISION)?;
        let plan: Vec<(&str, u64)> =
            forward.buffers().into_iter().chain(backward.iter().flat_map(|b| b.buffers())).collect();
        device.check_memory(0, &plan)?;
        let mut why = forward.why.clone();
        if let Some(backward) = &backward {
            why = format!("{why}; transposed {}: {}", backward.format, backward.why);
        }
        let (rows, cols, format) = (forward.rows, forward.cols, forward.format);
        log::info!("matrix {rows} x {cols}, {nnz} entries, {format}: {why}");
        Ok(Self {
            device: device.clone(),
            rows,
            cols,
            nnz,
            format,
            why,
            bytes: plan.iter().map(|p| p.1).sum(),
            read_bytes: [forward.read_bytes(), backward.as_ref().map_or(0, Layout::read_bytes)],
            frobenius: Arc::new(RwLock::new((frobenius, 0))),
            pattern: None,
            forward: SharedMatrix::new(Stored::new(&device.place(), forward)?),
            transposed: match backward {
                Some(layout) => Backward::Copy(SharedMatrix::new(Stored::new(&device.place(), layout)?)),
                None => Backward::None,
            },
        })
    }

    /// Replaces the values by those of `a`, whose entries stand in the same places as those this matrix was made from: the next
    /// time step of a simulation. The format stays, nothing is allocated on the device (except once, if the old values were few
    /// enough to be kept in a table and the new ones are not; [`Matrix::why`] and [`Matrix::bytes`] speak of the old ones then), and every
    /// clone of this matrix and every
    /// solver that holds it sees the new values from its next launch on. Meant between solves. A solve under way cannot end in a
    /// false [`Stop::Converged`](crate::Stop::Converged), because its end is verified with the new values.
    ///
    /// # Errors
    /// [`Error::Structure`] for entries in other places, and for a matrix whose entries are computed; [`Error::NotFinite`];
    /// [`Error::Api`].
    ///
    /// # Cost
    /// The first time a layout of the numbers of the entries on the host, in `f64`, as for a new matrix; held from then on are 4 bytes on the host for each
    /// stored place that is not in the order of the entries, and those of a transposed copy. From then on a copy of the values in the order of the layout, and their way to the device. Packed values
    /// ([`Packing`]) are laid out anew each time.
    pub fn update_values(&self, a: &(impl AsCsr<T> + ?Sized)) -> Result<()> {
        let a = &*a.as_csr()?;
        update_values(self, a)
    }

    /// A handle of this matrix, in the same memory, used with the launch parameters of `device`: another handle of the device it
    /// lives on.
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`].
    pub fn on(&self, device: &Device) -> Result<Self> {
        if !self.device.is_same(device) {
            let expected = device.info().name.clone();
            return Err(Error::DeviceMismatch { what: "the matrix", expected });
        }
        Ok(Self { device: device.clone(), ..self.clone() })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries, padding not counted.
    pub fn nnz(&self) -> usize {
        self.nnz
    }

    /// The format it is stored in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Why that format and that order of sums, in words and numbers.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Bytes it takes on the device, transposed copy included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that a product must move: the arrays of the format, the vector and the result, each once.
    pub fn product_bytes(&self) -> u64 {
        self.read_bytes[0] + ((self.rows + self.cols) * T::PRECISION.bytes()) as u64
    }

    /// [`Matrix::product_bytes`] of a product with the transposed matrix.
    pub fn transposed_product_bytes(&self) -> u64 {
        let matrix = if let Backward::Scatter = self.transposed { self.read_bytes[0] } else { self.read_bytes[1] };
        matrix + ((self.rows + self.cols) * T::PRECISION.bytes()) as u64
    }

    /// The Frobenius norm, an upper bound of the 2-norm.
    pub fn frobenius_norm(&self) -> f64 {
        self.frobenius().to_f64()
    }

    /// [`Matrix::frobenius_norm`], which may be out of the range of `f64`.
    pub(crate) fn frobenius(&self) -> Magnitude {
        self.frobenius.read().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Number of times that the values were replaced.
    pub(crate) fn version(&self) -> u64 {
        self.frobenius.read().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Device of the matrix.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Tells if products with the transposed can be made.
    pub(crate) fn has_transposed(&self) -> bool {
        !matches!(self.transposed, Backward::None)
    }

    pub(crate) fn forward(&self) -> &SharedMatrix<T> {
        &self.forward
    }

    pub(crate) fn transposed(&self) -> Result<&SharedMatrix<T>> {
        match &self.transposed {
            Backward::Copy(stored) | Backward::Shifted(stored) => Ok(stored),
            Backward::None | Backward::Scatter => Err(Error::Conflict {
                name: "transpose",
                reason: "this needs a copy of A': make the matrix by Matrix::with_transpose".into(),
            }),
        }
    }
}
