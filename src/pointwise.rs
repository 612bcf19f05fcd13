//! Operations of the user's own on vectors, element by element.

use crate::backend::linear::pointwise::{Formula, MOST};
use crate::device::Device;
use crate::error::{Error, Result, same_length};
use crate::number::{Arithmetic, Real, per_number};
use crate::vector::Vector;

/// `y_i = f(x0_i, x1_i, ...; p0, p1, ...)`: an operation of the user's own on `N` vectors, 1 to 4, with `P` parameters, 0 to 4.
///
/// The formula is given twice: as an expression of OpenCL C, which devices run, and as a function of Rust, its twin on the host back
/// end. The expression names the vectors `x0` to `x3` and the parameters `p0` to `p3`, all of the type `real_t`, which is `float` or
/// `double`. Sums, products and comparisons round alike everywhere. So do `quotient(a, b)` and `root(a)`, which the twin has as
/// [`Arithmetic::quotient`] and [`Arithmetic::root`]; `/` and `sqrt` do not in single precision. `exp`, `log` and their like differ
/// between devices in the last bits. [`Pointwise::check`] compares both.
///
/// ```
/// use residuum::{Device, Pointwise, Vector};
///
/// let device = Device::best()?;
/// let weigh = Pointwise::new(&device, "quotient(x1, root(x0 * x0 + p0))", |m, [x, v], [epsilon2]| {
///     m.quotient(v, m.root(x * x + epsilon2))
/// })?;
/// let x = Vector::from_slice(&device, &[3.0_f32, -4.0])?;
/// let mut y = Vector::zeros(&device, 2)?;
/// weigh.apply([&x, &x], [0.0], &mut y)?;
/// assert_eq!(y.to_vec()?, [1.0, -1.0]);
/// # Ok::<(), residuum::Error>(())
/// ```
///
/// # Cost
/// One launch. Bytes: each vector that the expression names read, one written.
pub struct Pointwise<T: Real, const N: usize, const P: usize> {
    device: Device,
    formula: Formula<T>,
}

per_number! {
    fn prepare<T>(device: &Device, formula: &Formula<T>) -> Result<()> = prepare_here;
    fn evaluate<T>(
        device: &Device,
        formula: &Formula<T>,
        x: [&Vector<T>; MOST],
        p: [T; MOST],
        y: &mut Vector<T>,
    ) -> Result<()> = evaluate_here;
    fn differs<T>(device: &Device, formula: &Formula<T>, x: &[Vec<T>; MOST], p: [T; MOST]) -> Result<()> = differs_here;
}

fn prepare_here<T: Real>(device: &Device, formula: &Formula<T>) -> Result<()> {
    device.backend().pointwise::<T>().prepare(device.run::<T>(), 1, formula)
}

fn evaluate_here<T: Real>(
    device: &Device,
    formula: &Formula<T>,
    x: [&Vector<T>; MOST],
    p: [T; MOST],
    y: &mut Vector<T>,
) -> Result<()> {
    let n = y.len();
    x.iter().try_for_each(|x| same_length("vectors of a formula", n, x.len()))?;
    let (run, x) = (device.run::<T>(), x.map(Vector::memory));
    device.backend().pointwise::<T>().evaluate(run, n, formula, x, p, y.memory_mut())
}

fn differs_here<T: Real>(device: &Device, formula: &Formula<T>, x: &[Vec<T>; MOST], p: [T; MOST]) -> Result<()> {
    let n = x[0].len();
    x.iter().try_for_each(|x| same_length("samples of a formula", n, x.len()))?;
    let mut on_device = Vec::with_capacity(MOST);
    for x in x {
        on_device.push(Vector::from_slice(device, x)?);
    }
    let mut y = Vector::zeros(device, n)?;
    evaluate_here(device, formula, std::array::from_fn(|k| &on_device[k]), p, &mut y)?;
    let mut of_twins = vec![T::default(); n];
    let arithmetic = Arithmetic::of(device.accumulation(T::PRECISION));
    formula.values(arithmetic, std::array::from_fn(|k| &x[k][..]), p, &mut of_twins);
    for (i, (found, of_twin)) in y.to_vec()?.into_iter().zip(of_twins).enumerate() {
        let (here, there) = (found.to_f64(), of_twin.to_f64());
        let differs = here.to_bits() != there.to_bits() && !(here.is_nan() && there.is_nan());
        if differs {
            let reason =
                format!("'{}' is {found} on the device and {of_twin} on the host at sample {i}", formula.text());
            return Err(Error::Option { name: "formula", reason });
        }
    }
    Ok(())
}

/// Tells if a text of OpenCL C is not empty and means the same on one line: without comments, directives and breaks of lines.
pub(crate) fn fits_one_line(text: &str) -> bool {
    !text.trim().is_empty() && !["//", "/*", "#", "\\"].iter().any(|word| text.contains(word))
}

/// `held`, and its last element again for the places that are not used; zeros if there is none.
fn filled<E: Copy, const M: usize>(held: [E; M], none: E) -> [E; MOST] {
    std::array::from_fn(|k| held.get(k).or(held.last()).copied().unwrap_or(none))
}

impl<T: Real, const N: usize, const P: usize> Pointwise<T, N, P> {
    /// The operation that `expression` says on devices, and `twin` on the host. Builds its kernel.
    ///
    /// # Errors
    /// [`Error::Build`] with the log of the compiler, for an expression that it does not take; [`Error::Unsupported`] for `f64` on a device
    /// without it; [`Error::Option`] for an expression that has a comment, or a directive of the preprocessor.
    pub fn new(
        device: &Device,
        expression: &str,
        twin: impl Fn(Arithmetic, [T; N], [T; P]) -> T + Send + Sync + 'static,
    ) -> Result<Self> {
        const { assert!(N >= 1 && N <= MOST && P <= MOST, "1 to 4 vectors, and up to 4 parameters") };
        device.require(T::PRECISION)?;
        if !fits_one_line(expression) {
            let reason = format!("'{expression}' is no expression, or has a comment, '#' or '\\'");
            return Err(Error::Option { name: "formula", reason });
        }
        let of_all = move |arithmetic: Arithmetic, x: [&[T]; MOST], p: [T; MOST], y: &mut [T]| {
            let p = std::array::from_fn(|k| p[k]);
            // Slices of one length, so that the loop asks for it once.
            let x: [&[T]; N] = std::array::from_fn(|k| &x[k][..y.len()]);
            for (i, y) in y.iter_mut().enumerate() {
                *y = twin(arithmetic, std::array::from_fn(|k| x[k][i]), p);
            }
        };
        let formula = Formula::new(expression.into(), Box::new(of_all));
        prepare(device, &formula)?;
        Ok(Self { device: device.clone(), formula })
    }

    /// `y_i` = the formula of all `x_i` and `p`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless all vectors are of one length; [`Error::DeviceMismatch`].
    pub fn apply(&self, x: [&Vector<T>; N], p: [T; P], y: &mut Vector<T>) -> Result<()> {
        const { assert!(N >= 1) };
        evaluate(&self.device, &self.formula, filled(x, x[0]), filled(p, T::default()), y)
    }

    /// Compares the device with the twin, bit by bit, for as many samples as each of `x` has.
    ///
    /// # Errors
    /// [`Error::Option`] with the first sample for which they differ; as [`Pointwise::apply`].
    pub fn check(&self, x: [&[T]; N], p: [T; P]) -> Result<()> {
        let x: [&[T]; MOST] = filled(x, &[]);
        differs(&self.device, &self.formula, &x.map(<[T]>::to_vec), filled(p, T::default()))
    }
}

impl<T: Real, const N: usize, const P: usize> std::fmt::Debug for Pointwise<T, N, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pointwise").field("formula", &self.formula.text()).finish_non_exhaustive()
    }
}
