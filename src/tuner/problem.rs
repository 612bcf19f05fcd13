//! Problems that the tuner times: for each kind of launches, work in which they decide the time.

use crate::device::Device;
use crate::device_info::DeviceKind;
use crate::error::Result;
use crate::fem::{Mesh, Space};
use crate::imaging::{Beam, Grid, Projector, Scanner};
use crate::matrix::{Matrix, Storage, Transposed};
use crate::measure;
use crate::number::Real;
use crate::operator::LinearOperator;
use crate::precond::{RowOrdering, Sweep, SweepOptions};
use crate::solver::{Method, Regularization, Report, Setup, Solver, Stopping};
use crate::sparse::gallery::{self, Random};
use crate::sparse::{Csr, Format, Packing};
use crate::tuning::{AccessPattern, Case, Family, SizeClass};
use crate::vector::Vector;

/// Elements of a vector that local memory can hold.
pub(super) const SHORT_VECTOR: usize = 1024;

/// Work done with the launch parameters of one device handle.
pub(super) trait Contestant {
    /// Microseconds of one of `calls` calls or iterations.
    fn time(&mut self, calls: usize) -> Result<f64>;
    /// The bits of the answer that the last run gave.
    fn answer(&self) -> Result<Vec<u64>>;
}

/// A function that holds a race between contestants.
pub(super) type Referee<'r, R> = dyn FnMut(&mut [Box<dyn Contestant + '_>]) -> Result<R> + 'r;

/// Work that can be done with any launch parameters.
pub(super) enum Problem<T: Real> {
    /// `y = alpha x + beta y`.
    Elements(usize),
    /// `y = A x` for finite elements whose matrix is not stored.
    Cells(Space),
    /// `x.y`, and the number back on the host.
    Dot(usize),
    /// `y = A x`.
    Product(Matrix<T>),
    /// `y = A'x` by atomic additions of whole numbers.
    Transposed(Matrix<T>),
    /// `y = A x` of a scan whose rays are traced, or `y = A'x`.
    Scan(Projector<T>, Direction),
    /// One sweep of Gauss-Seidel.
    Sweep(Csr<T>, RowOrdering),
    /// Iterations of conjugate gradients, in one launch or in two each.
    Cg(Matrix<T>, Resident),
    /// Iterations of CGNR, likewise.
    Cgnr(Matrix<T>, Resident),
    /// Iterations of MINRES, which is made of the launches that most methods share.
    Steps(Matrix<T>, Resident),
}

/// Product of a projector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// Use of resident launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resident {
    Never,
    Always,
}

fn side(size: SizeClass, device: &Device) -> usize {
    match size {
        SizeClass::Small => 128,
        SizeClass::Middle => 1024,
        // The least that fills chunks on CPUs, whose speed no longer depends on size there.
        SizeClass::Large if device.info().kind == DeviceKind::Cpu => 1536,
        SizeClass::Large => 2048,
    }
}

/// A matrix with `each` entries in each row at random places, and what it is in words.
fn random<T: Real>(
    device: &Device,
    [rows, cols]: [usize; 2],
    each: usize,
    format: Format,
) -> Result<(Matrix<T>, String)> {
    let a = gallery::random::<T>(rows, cols, each * rows, each as u64)?;
    let words = format!("random {rows} x {cols}, {each} entries a row, {format}");
    Ok((Matrix::new(device, &a, format)?, words))
}

/// A product of finite elements of degree 3, and what it is in words.
fn finite_elements<T: Real>() -> Result<(Problem<T>, String)> {
    let cells = 33;
    let mut mesh = Mesh::boxes([cells; 3], [[0.0, 1.0]; 3])?;
    mesh.set_degree(3)?;
    Ok((Problem::Cells(Space::new(&mesh)?), format!("finite elements, {cells}^3 cells of degree 3")))
}

impl<T: Real> Problem<T> {
    /// The work for a case, and what it is in words.
    pub(super) fn new(case: &Case, device: &Device) -> Result<(Self, String)> {
        let side = side(case.size, device);
        let n = side * side;
        let grid = |format: Format| -> Result<(Matrix<T>, String)> {
            let a = gallery::poisson_2d::<T>(side, 0.01)?;
            // Most matrices have more values than fit into a table.
            let storage = Storage { format, packing: Packing::Never, ..Storage::default() };
            Ok((Matrix::stored(device, &a, storage)?, format!("poisson {side} x {side}, {format}")))
        };
        let traced = |direction: Direction| -> Result<(Self, String)> {
            let pixels = side / 2;
            let angles = (0..pixels).map(|k| k as f64 * 180.0 / pixels as f64).collect();
            let scanner = Scanner { beam: Beam::Parallel, pixels, pitch: 1.5, offset: 0.0, angles };
            let words = format!("{pixels} x {pixels} parallel rays through {pixels} x {pixels} pixels");
            Ok((Self::Scan(scanner.projector(device, Grid { side: pixels, pixel: 1.0 })?, direction), words))
        };
        let stock_koch = || -> Result<(Matrix<T>, String)> {
            let a = gallery::by_name::<T>("stock-koch")?;
            let matrix = Matrix::with_transpose(device, &a, Format::Auto)?;
            let words = format!("random 3072 x 81545, 854129 entries, {}", matrix.format());
            Ok((matrix, words))
        };
        let sweep = |ordering: RowOrdering, words: &str| -> Result<(Self, String)> {
            let a = gallery::poisson_2d::<T>(side, 0.01)?;
            Ok((Self::Sweep(a, ordering), format!("Gauss-Seidel by {words}, poisson {side} x {side}")))
        };
        Ok(match case.family {
            Family::Vector => (Self::Elements(n), format!("{n} elements")),
            Family::Elements => finite_elements()?,
            Family::Reduce => (Self::Dot(n), format!("{n} elements")),
            Family::Product if case.reading == Some(AccessPattern::Rays) => traced(Direction::Forward)?,
            Family::Product => {
                let (matrix, words) = match case.reading {
                    Some(AccessPattern::Places) => grid(Format::Dia)?,
                    Some(AccessPattern::LongRows) => random(device, [n / 4; 2], 24, Format::Csr)?,
                    Some(AccessPattern::ShortVector) => {
                        random(device, [n / 2, SHORT_VECTOR], 10, Format::EllpackR)?
                    }
                    _ => grid(Format::Csr)?,
                };
                (Self::Product(matrix), words)
            }
            Family::Backproject => traced(Direction::Backward)?,
            Family::Scatter => {
                let n = n / 4;
                let a = gallery::random::<T>(n, 2048, 8 * n, 8)?;
                let ones: Vec<(usize, usize, T)> = (0..n)
                    .flat_map(|i| a.row(i).0.iter().map(move |j| (i, *j as usize, T::from_f64(f64::from(*j % 3)))))
                    .collect();
                let a = Csr::from_triplets(n, a.cols(), &ones)?;
                let storage =
                    Storage { format: Format::CsrScalar, transposed: Transposed::Scatter, ..Storage::default() };
                (
                    Self::Transposed(Matrix::stored(device, &a, storage)?),
                    format!("random {n} x 2048, 8 entries a row"),
                )
            }
            Family::Sweep => sweep(RowOrdering::Colours, "colours")?,
            Family::SweepWaiting => sweep(RowOrdering::Rows, "rows")?,
            Family::CgProduct | Family::CgUpdate | Family::CgResident => {
                let format = if case.reading == Some(AccessPattern::Places) { Format::Dia } else { Format::Csr };
                let (matrix, words) = grid(format)?;
                let resident = if case.family == Family::CgResident { Resident::Always } else { Resident::Never };
                (Self::Cg(matrix, resident), format!("iteration of cg, {words}"))
            }
            Family::CgnrForward | Family::CgnrBackward | Family::CgnrResident => {
                let (matrix, words) = stock_koch()?;
                let resident = if case.family == Family::CgnrResident { Resident::Always } else { Resident::Never };
                (Self::Cgnr(matrix, resident), format!("iteration of cgnr, {words}"))
            }
            Family::StepProduct | Family::StepVectors | Family::StepResident => {
                let (matrix, words) = grid(Format::Csr)?;
                let resident = if case.family == Family::StepResident { Resident::Always } else { Resident::Never };
                (Self::Steps(matrix, resident), format!("iteration of minres, {words}"))
            }
        })
    }

    /// Tells if a run is a solve.
    pub(super) fn iterates(&self) -> bool {
        matches!(self, Self::Cg(..) | Self::Cgnr(..) | Self::Steps(..))
    }

    /// One contestant for each of `devices`, in a race that `referee` holds. Solves do `iterations` in a run.
    pub(super) fn race<R>(&self, devices: &[Device], iterations: usize, referee: &mut Referee<'_, R>) -> Result<R> {
        match self {
            Self::Elements(n) => {
                Self::queued(devices, *n, *n, referee, |_, x, y| y.axpby(T::from_f64(0.5), x, T::from_f64(0.25)))
            }
            Self::Cells(space) => {
                let operators =
                    devices.iter().map(|device| space.operator::<T>(device)).collect::<Result<Vec<_>>>()?;
                Self::queued(devices, space.len(), space.len(), referee, |k, x, y| operators[k].apply(x, y))
            }
            // Only the dot product waits; the number goes back by a fill that is queued.
            Self::Dot(n) => Self::queued(devices, *n, 1, referee, |_, x, y| y.fill(T::from_f64(x.dot(x)?))),
            Self::Product(a) => {
                let matrices = shared(a, devices)?;
                Self::queued(devices, a.cols(), a.rows(), referee, |k, x, y| matrices[k].multiply(x, y))
            }
            Self::Transposed(a) => {
                let matrices = shared(a, devices)?;
                Self::queued(devices, a.rows(), a.cols(), referee, |k, x, y| matrices[k].multiply_transposed(x, y))
            }
            Self::Scan(a, direction) => {
                let projectors = devices.iter().map(|device| a.on(device)).collect::<Result<Vec<_>>>()?;
                match direction {
                    Direction::Forward => {
                        Self::queued(devices, a.cols(), a.rows(), referee, |k, x, y| projectors[k].apply(x, y))
                    }
                    Direction::Backward => {
                        let product = |k: usize, x: &_, y: &mut _| projectors[k].apply_adjoint(x, y);
                        Self::queued(devices, a.rows(), a.cols(), referee, product)
                    }
                }
            }
            Self::Sweep(a, ordering) => {
                let sweeps = devices
                    .iter()
                    .map(|device| Sweep::new(device, a, SweepOptions::gauss_seidel().with_ordering(*ordering)))
                    .collect::<Result<Vec<_>>>()?;
                Self::queued(devices, a.rows(), a.rows(), referee, |k, x, y| sweeps[k].apply(x, y))
            }
            Self::Cg(a, resident) => Self::solved(devices, (a, *resident), Method::Cg, iterations, referee),
            Self::Steps(a, resident) => Self::solved(devices, (a, *resident), Method::Minres, iterations, referee),
            Self::Cgnr(a, resident) => {
                let matrices = with_residency(a, devices, *resident)?;
                let scale = a.frobenius_norm().powi(2) / a.cols() as f64;
                let sign = Regularization { upper: 0.0, bound_weight: scale, ..Regularization::none() };
                let mut contestants: Vec<Box<dyn Contestant + '_>> = Vec::new();
                for matrix in &matrices {
                    let setup = Setup::new(Method::Cgnr, Stopping::after(iterations));
                    let mut solver = Solver::with(matrix, setup.with_regularizations(std::slice::from_ref(&sign)))?;
                    contestants
                        .push(Box::new(Solve::new(matrix.device(), matrix, move |b, x| solver.solve(b, x))?));
                }
                referee(&mut contestants)
            }
        }
    }

    fn solved<R>(
        devices: &[Device],
        (a, resident): (&Matrix<T>, Resident),
        method: Method,
        iterations: usize,
        referee: &mut Referee<'_, R>,
    ) -> Result<R> {
        let matrices = with_residency(a, devices, resident)?;
        let mut contestants: Vec<Box<dyn Contestant + '_>> = Vec::new();
        for matrix in &matrices {
            let mut solver = Solver::new(matrix, method, Stopping::after(iterations))?;
            contestants.push(Box::new(Solve::new(matrix.device(), matrix, move |b, x| solver.solve(b, x))?));
        }
        referee(&mut contestants)
    }

    /// Contestants that queue calls of `call`, with the number of the contestant.
    fn queued<R>(
        devices: &[Device],
        from: usize,
        to: usize,
        referee: &mut Referee<'_, R>,
        call: impl Fn(usize, &Vector<T>, &mut Vector<T>) -> Result<()>,
    ) -> Result<R> {
        let call = &call;
        // Whole numbers, so that a transposed product by atomic additions has one answer.
        let data: Vec<T> = (0..from).map(|i| T::from_f64((i % 5) as f64 - 2.0)).collect();
        let mut contestants: Vec<Box<dyn Contestant + '_>> = Vec::new();
        for (k, device) in devices.iter().enumerate() {
            let x = Vector::from_slice(device, &data)?;
            let y = Vector::filled(device, to, T::from_f64(1.0))?;
            let run = move |x: &Vector<T>, y: &mut Vector<T>| call(k, x, y);
            contestants.push(Box::new(Calls { device: device.clone(), x, y, run }));
        }
        referee(&mut contestants)
    }
}

fn shared<T: Real>(a: &Matrix<T>, devices: &[Device]) -> Result<Vec<Matrix<T>>> {
    devices.iter().map(|device| a.on(device)).collect()
}

fn with_residency<T: Real>(a: &Matrix<T>, devices: &[Device], resident: Resident) -> Result<Vec<Matrix<T>>> {
    let handle = |device: &Device| match resident {
        Resident::Never => device.with_resident_groups(0),
        Resident::Always => device.with_resident_groups(device.tuning().resident_groups),
    };
    devices.iter().map(|device| a.on(&handle(device))).collect()
}

fn bits<T: Real>(vector: &Vector<T>) -> Result<Vec<u64>> {
    Ok(vector.to_vec()?.iter().map(|v| v.to_f64().to_bits()).collect())
}

/// Calls that are queued behind each other.
struct Calls<T: Real, F> {
    device: Device,
    x: Vector<T>,
    y: Vector<T>,
    run: F,
}

impl<T: Real, F: FnMut(&Vector<T>, &mut Vector<T>) -> Result<()>> Contestant for Calls<T, F> {
    fn time(&mut self, calls: usize) -> Result<f64> {
        // Every run starts from the same numbers, so that all give the same answer.
        self.y.fill(T::from_f64(1.0))?;
        let Self { device, x, y, run } = self;
        measure::batch(device, calls, &mut || run(x, y))
    }

    fn answer(&self) -> Result<Vec<u64>> {
        bits(&self.y)
    }
}

/// Iterations of a solve.
struct Solve<T: Real, F> {
    b: Vector<T>,
    x: Vector<T>,
    history: Vec<f64>,
    run: F,
}

impl<T: Real, F: FnMut(&Vector<T>, &mut Vector<T>) -> Result<Report>> Solve<T, F> {
    fn new(device: &Device, a: &Matrix<T>, run: F) -> Result<Self> {
        let mut random = Random::new(7);
        let b: Vec<T> = (0..a.rows()).map(|_| T::from_f64(random.uniform())).collect();
        Ok(Self {
            b: Vector::from_slice(device, &b)?,
            x: Vector::zeros(device, a.cols())?,
            history: Vec::new(),
            run,
        })
    }
}

impl<T: Real, F: FnMut(&Vector<T>, &mut Vector<T>) -> Result<Report>> Contestant for Solve<T, F> {
    /// A run is a solve, whose number of iterations is fixed.
    fn time(&mut self, _: usize) -> Result<f64> {
        self.x.fill(T::default())?;
        let report = (self.run)(&self.b, &mut self.x)?;
        self.history = report.history;
        Ok(report.times.solve * 1e6 / report.iterations.max(1) as f64)
    }

    fn answer(&self) -> Result<Vec<u64>> {
        let mut bits = bits(&self.x)?;
        bits.extend(self.history.iter().map(|h| h.to_bits()));
        Ok(bits)
    }
}
