//! One product measured: verified against the host, timed, and held against the copy bandwidth.

use residuum::measure::{self, Timing};
use residuum::sparse::gallery::Random;
use residuum::{Csr, Device, Error, Matrix, Real, Result, Storage, Transposed, Vector};
use serde_json::{Value, json};

/// A measured product.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) matrix: String,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    pub(crate) format: String,
    pub(crate) precision: String,
    pub(crate) transposed: bool,
    pub(crate) work_group: usize,
    pub(crate) microseconds: f64,
    pub(crate) spread: f64,
    pub(crate) bytes: u64,
    pub(crate) copy_share: f64,
    /// True if this is the format of the automatic choice.
    pub(crate) chosen: bool,
    pub(crate) why: String,
}

impl Row {
    pub(crate) fn gbps(&self) -> f64 {
        self.bytes as f64 / self.microseconds / 1e3
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "matrix": self.matrix, "rows": self.rows, "cols": self.cols, "nnz": self.nnz, "format": self.format,
            "precision": self.precision, "transposed": self.transposed, "work_group": self.work_group,
            "microseconds": self.microseconds, "spread_us": self.spread, "bytes": self.bytes, "gbps": self.gbps(),
            "copy_share": self.copy_share, "chosen": self.chosen, "why": self.why,
        })
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let product = if self.transposed { "A'y" } else { "Ax" };
        write!(
            f,
            "{:24} {:14} {:4} {:4} wg {:4} {:10.2} us {:9.1} GB/s {:6.1} % of copy{} {}",
            self.matrix,
            self.format,
            self.precision,
            product,
            self.work_group,
            self.microseconds,
            self.gbps(),
            100.0 * self.copy_share,
            if self.chosen { " *" } else { "  " },
            self.why
        )
    }
}

/// Kind of product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Forward,
    Transposed,
}

fn multiply<T: Real>(matrix: &Matrix<T>, product: Product, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
    match product {
        Product::Forward => matrix.multiply(x, y),
        Product::Transposed => matrix.multiply_transposed(x, y),
    }
}

/// Stores `a` as `storage` says, compares the product with the host's bit for bit, and times it.
pub(crate) fn measure<T: Real>(
    device: &Device,
    name: &str,
    a: &Csr<T>,
    storage: Storage,
    product: Product,
    copy_gbps: f64,
) -> Result<Row> {
    let storage =
        storage.with_transposed(if product == Product::Transposed { storage.transposed } else { Transposed::None });
    let (from, to) = match product {
        Product::Forward => (a.cols(), a.rows()),
        Product::Transposed => (a.rows(), a.cols()),
    };
    let mut random = Random::new(42);
    let data: Vec<T> = (0..from).map(|_| T::from_f64(random.uniform() - 0.5)).collect();
    let mut best: Option<(Timing, Matrix<T>)> = None;
    // Best of three: on some devices the addresses of buffers change the time of small products by a third.
    for _ in 0..3 {
        let matrix = Matrix::stored(device, a, storage)?;
        let x = Vector::from_slice(device, &data)?;
        let mut y = Vector::filled(device, to, T::from_f64(f64::NAN))?;
        multiply(&matrix, product, &x, &mut y)?;
        if best.is_none() {
            verify(device, a, storage, product, &data, &y.to_vec()?)?;
        }
        let timing = measure::time(device, || multiply(&matrix, product, &x, &mut y))?;
        if best.as_ref().is_none_or(|(least, _)| timing.microseconds < least.microseconds) {
            best = Some((timing, matrix));
        }
    }
    let Some((timing, matrix)) = best else {
        return Err(Error::Option { name: "measurement", reason: "none was made".into() });
    };
    let bytes = match product {
        Product::Forward => matrix.product_bytes(),
        Product::Transposed => matrix.transposed_product_bytes(),
    };
    Ok(Row {
        matrix: name.into(),
        rows: a.rows(),
        cols: a.cols(),
        nnz: a.nnz(),
        format: matrix.format().to_string(),
        precision: T::PRECISION.to_string(),
        transposed: product == Product::Transposed,
        work_group: device.tuning().work_group,
        microseconds: timing.microseconds,
        spread: timing.spread,
        bytes,
        copy_share: bytes as f64 / timing.microseconds / 1e3 / copy_gbps,
        chosen: false,
        why: matrix.why().into(),
    })
}

/// The host's product of the same storage must have the same bits; nearly, if additions come in no fixed order.
fn verify<T: Real>(
    device: &Device,
    a: &Csr<T>,
    storage: Storage,
    product: Product,
    x: &[T],
    found: &[T],
) -> Result<()> {
    let host = Device::host().with_accumulation(device.accumulation(T::PRECISION))?;
    let matrix = Matrix::stored(&host, a, storage)?;
    let x = Vector::from_slice(&host, x)?;
    let mut y = Vector::zeros(&host, found.len())?;
    multiply(&matrix, product, &x, &mut y)?;
    let wanted = y.to_vec()?;
    let scale = wanted.iter().map(|v| v.to_f64().abs()).fold(0.0, f64::max);
    let agree = |i: usize| match storage.transposed {
        Transposed::Scatter => (found[i].to_f64() - wanted[i].to_f64()).abs() <= 1e3 * T::EPSILON * scale,
        _ => found[i].to_f64().to_bits() == wanted[i].to_f64().to_bits(),
    };
    match (0..found.len()).find(|&i| !agree(i)) {
        None => Ok(()),
        Some(i) => Err(Error::Option {
            name: "verification",
            reason: format!(
                "{} {:?}: element {i} is {:?}, on the host {:?}",
                matrix.format(),
                product,
                found[i],
                wanted[i]
            ),
        }),
    }
}
