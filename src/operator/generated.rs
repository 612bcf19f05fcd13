//! Matrices whose entries a formula of the user's own makes whenever they are needed.

use super::linear::{LinearOperator, SharedOperator, into_shared, no_adjoint};
use crate::backend::linear::generated::Generator;
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::memory::Plans;
use crate::number::{Arithmetic, Real, per_number};
use crate::pointwise::fits_one_line;
use crate::sparse::gallery::Random;
use crate::vector::Vector;

/// A matrix that is never stored. On devices, statements of OpenCL C compute entry `k` of row `i`; `k` counts the
/// entries of the row. On the host back end a function of Rust does the same.
///
/// The statements read `i` and `k` and set `column` (all `uint`) and `value` (`real_t`, which is `float` or `double`). Columns ascend within a row. A
/// column of `cols` or more ends the row, and a `value` of NaN is left out. Entries add in the order of `k`, in the wide sum, so that products have the bits
/// of a stored matrix in the sequential formats. Sums, products and comparisons round alike everywhere; so do `quotient(a, b)` and
/// `root(a)` ([`Arithmetic`]). [`Generated::check`] compares both texts.
///
/// ```
/// use residuum::operator::{Generated, LinearOperator};
/// use residuum::{Device, Vector};
///
/// // Means of three neighbours on a ring that is cut open.
/// let device = Device::best()?;
/// let text = "column = i + k; value = quotient(1, 3);";
/// let mean = Generated::<f64>::new(&device, [8, 10], 3, text, |m, i, k| (i + k, m.quotient(1.0, 3.0)))?;
/// mean.check()?;
/// let x = Vector::from_slice(&device, &(0..10).map(f64::from).collect::<Vec<_>>())?;
/// let mut y = Vector::zeros(&device, 8)?;
/// mean.apply(&x, &mut y)?;
/// assert!(y.to_vec()?.iter().enumerate().all(|(i, y)| (y - (i as f64 + 1.0)).abs() < 1e-14));
/// # Ok::<(), residuum::Error>(())
/// ```
///
/// # Cost
/// One launch, an item to a row. Nothing is held. `x` is read once by every entry, from a cache; staged ([`Generated::staged`]) it is read once by
/// every group.
///
/// # Source
/// stock-koch-2009, variants OnTheFly, and OnTheFly with LocalMemory.
pub struct Generated<T: Real> {
    device: Device,
    generator: Generator<T>,
    adjoint: Option<SharedOperator<T>>,
}

per_number! {
    fn prepare<T>(device: &Device, generator: &Generator<T>) -> Result<()> = prepare_here;
    fn multiply<T>(device: &Device, generator: &Generator<T>, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> = multiply_here;
}

fn prepare_here<T: Real>(device: &Device, generator: &Generator<T>) -> Result<()> {
    device.backend().generated::<T>().prepare(device.run::<T>(), generator)
}

fn multiply_here<T: Real>(
    device: &Device,
    generator: &Generator<T>,
    x: &Vector<T>,
    y: &mut Vector<T>,
) -> Result<()> {
    same_length("vector of a product", generator.cols, x.len())?;
    same_length("result of a product", generator.rows, y.len())?;
    let operations = device.backend().generated::<T>();
    operations.generated_product(device.run::<T>(), generator, x.memory(), y.memory_mut())
}

/// Most rows, and columns: kernels count a little beyond them in 32 bits.
const MOST: usize = 1 << 31;

impl<T: Real> Generated<T> {
    /// The matrix of `[rows, cols]` with at most `entries` entries a row. Builds its kernel.
    ///
    /// # Errors
    /// [`Error::Build`] with the log of the compiler, for a text that it does not take; [`Error::Unsupported`] for `f64` on a device without
    /// it; [`Error::Option`] for a text that has a comment or a directive of the preprocessor, and for sizes that are 0 or more than 2^31.
    pub fn new(
        device: &Device,
        [rows, cols]: [usize; 2],
        entries: usize,
        text: &str,
        twin: impl Fn(Arithmetic, u32, u32) -> (u32, T) + Send + Sync + 'static,
    ) -> Result<Self> {
        device.require(T::PRECISION)?;
        for (name, size) in [("rows", rows), ("cols", cols), ("entries", entries)] {
            if !(1..=MOST).contains(&size) {
                return Err(Error::Option { name, reason: format!("{size} is not from 1 to {MOST}") });
            }
        }
        if !fits_one_line(text) {
            let reason = format!("'{text}' is empty, or has a comment, '#' or '\\'");
            return Err(Error::Option { name: "text", reason });
        }
        let (text, twin, plans) = (text.into(), Box::new(twin), Plans::default());
        let generator = Generator { rows, cols, entries, text, twin, staged: false, plans };
        prepare(device, &generator)?;
        Ok(Self { device: device.clone(), generator, adjoint: None })
    }

    /// Lets groups copy `x` to local memory, part by part, and go on with their rows from part to part. It pays if rows are many and
    /// read most of `x`. The bits are the same; CPUs do it without.
    ///
    /// # Errors
    /// As [`Generated::new`].
    pub fn staged(mut self) -> Result<Self> {
        (self.generator.staged, self.generator.plans) = (true, Plans::default());
        prepare(&self.device, &self.generator)?;
        Ok(self)
    }

    /// Takes this operator as the transposed, for least squares: another [`Generated`], say. See
    /// [`adjoint_error`](super::adjoint_error).
    ///
    /// # Errors
    /// [`Error::Shape`] for an operator of another shape, [`Error::DeviceMismatch`].
    pub fn with_adjoint(self, adjoint: impl Into<SharedOperator<T>>) -> Result<Self> {
        let adjoint = adjoint.into();
        same_length("rows of the transposed", self.generator.cols, adjoint.rows())?;
        same_length("columns of the transposed", self.generator.rows, adjoint.cols())?;
        if !adjoint.device().is_same(&self.device) {
            let expected = self.device.info().name.clone();
            return Err(Error::DeviceMismatch { what: "the transposed", expected });
        }
        Ok(Self { adjoint: Some(adjoint), ..self })
    }

    /// Fails if columns of the twin do not ascend, or if the device makes another product of random numbers than the twin, bit for bit.
    ///
    /// # Errors
    /// [`Error::Structure`] with the row; those of a product.
    pub fn check(&self) -> Result<()> {
        let Generator { rows, cols, entries, twin, .. } = &self.generator;
        let arithmetic = Arithmetic::of(self.device.accumulation(T::PRECISION));
        for i in 0..*rows {
            let mut last = None;
            for k in 0..*entries {
                let (column, _) = twin(arithmetic, i as u32, k as u32);
                if column as usize >= *cols {
                    break;
                }
                if last.is_some_and(|last| column <= last) {
                    let what = format!("column {column} of entry {k} is not behind that of the entry before");
                    return Err(Error::Structure { what, row: Some(i) });
                }
                last = Some(column);
            }
        }
        let mut random = Random::new(2009);
        let x: Vec<T> = (0..*cols).map(|_| T::from_f64(random.uniform() - 0.5)).collect();
        let mut y = Vector::zeros(&self.device, *rows)?;
        multiply(&self.device, &self.generator, &Vector::from_slice(&self.device, &x)?, &mut y)?;
        let host = Device::host().with_accumulation(self.device.accumulation(T::PRECISION))?;
        let mut wanted = Vector::zeros(&host, *rows)?;
        multiply(&host, &self.generator, &Vector::from_slice(&host, &x)?, &mut wanted)?;
        for (i, (found, wanted)) in y.to_vec()?.into_iter().zip(wanted.to_vec()?).enumerate() {
            if found.to_f64().to_bits() != wanted.to_f64().to_bits() {
                let what = format!("the device has {found} in a product where the twin has {wanted}");
                return Err(Error::Structure { what, row: Some(i) });
            }
        }
        Ok(())
    }
}

impl<T: Real> std::fmt::Debug for Generated<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Generator { rows, cols, entries, text, staged, .. } = &self.generator;
        f.debug_struct("Generated")
            .field("rows", rows)
            .field("cols", cols)
            .field("entries", entries)
            .field("text", text)
            .field("staged", staged)
            .finish_non_exhaustive()
    }
}

into_shared!(Generated);

impl<T: Real> LinearOperator<T> for Generated<T> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn rows(&self) -> usize {
        self.generator.rows
    }

    fn cols(&self) -> usize {
        self.generator.cols
    }

    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        multiply(&self.device, &self.generator, x, y)
    }

    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.adjoint.as_ref().ok_or_else(no_adjoint)?.apply(x, y)
    }

    fn has_adjoint(&self) -> bool {
        self.adjoint.is_some()
    }
}
