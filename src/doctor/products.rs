//! Kernels of products: every format, packed and staged, by entries, by text, by stencil.

use super::question::{Needs, Question, noisy, numbers, product, scattered_sums, solution, unwritten};
use crate::columns::Columns;
use crate::device::Device;
use crate::error::Result;
use crate::matrix::{Combine, Matrix, Storage};
use crate::number::Real;
use crate::operator::{Boundary, Generated, SplitRows, Stencil};
use crate::solver::{Method, Setup, Stopping};
use crate::sparse::{Csr, Format, Packing, gallery};
use crate::tuning::{AccessPattern, Case, Family, Settings, SizeClass};

pub(super) fn questions<T: Real>() -> Vec<Question> {
    vec![
        Question::of("products by format", by_format::<T>),
        Question::of("products of packed entries", packed::<T>),
        Question::of("scattered sums", scattered::<T>).with_needs(Needs::Atomics),
        Question::of("products of a short vector", short_vector::<T>),
        Question::of("products of a vector in parts", vector_in_parts::<T>),
        Question::of("products divided by entries", by_entries::<T>),
        Question::of("stencils", stencils::<T>),
    ]
}

/// Rows of every class of lanes.
fn skewed<T: Real>() -> Result<Csr<T>> {
    Csr::from_rows(40, 600, |i, row| {
        let length = [3, 0, 20, 5, 520, 17][i % 6];
        row.extend((0..length).map(|k| (k, T::from_f64((f64::from(k) + i as f64).sqrt()))));
    })
}

fn by_format<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = skewed::<T>()?;
    let (x, r) = (noisy(device, a.cols(), 6)?, noisy(device, a.rows(), 7)?);
    let mut found = Vec::new();
    for format in Format::ALL {
        let matrix = Matrix::with_transpose(device, &a, *format)?;
        let (mut y, mut w) = (unwritten(device, a.rows())?, unwritten(device, a.cols())?);
        matrix.multiply(&x, &mut y)?;
        matrix.multiply_transposed(&r, &mut w)?;
        found.extend([numbers(&y)?, numbers(&w)?].concat());
        if matches!(format, Format::Csr | Format::CsrAdaptive | Format::Dia) {
            for combine in [Combine::Minus, Combine::From] {
                let mut combined = unwritten(device, a.rows())?;
                matrix.multiply_with(&x, combine, &y, &mut combined)?;
                found.extend(numbers(&combined)?);
            }
        }
    }
    Ok(found)
}

/// Few values, many in few columns, many near the diagonal, and values that 32 bits hold.
fn packed<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let near = Csr::from_rows(20, 70_000, |i, row| {
        row.extend([i, i + 1, i + 3].map(|j| (j as u32, T::from_f64(0.3 * i as f64 + j as f64))));
    })?;
    let slices = Format::Sell { sigma: 1 };
    let mut found = Vec::new();
    for (a, formats) in [
        (near.rounded_to_f32()?, &[Format::Csr, slices, Format::Coo][..]),
        (gallery::poisson_2d(9, 0.1)?, &[Format::Csr, Format::Coo, slices, Format::Hyb, Format::Dia]),
        (skewed()?, &[Format::CsrAdaptive]),
        (near, &[Format::Csr, slices]),
    ] {
        for format in formats {
            let storage = Storage::default().with_format(*format).with_packing(Packing::Always);
            found.extend(product(device, &Matrix::stored(device, &a, storage)?, 6)?);
        }
    }
    Ok(found)
}

/// In global memory, and in local memory: with so few columns that even 300 compute units have less to add up than there are entries.
fn scattered<T: Real>(device: &Device) -> Result<Vec<f64>> {
    Ok([scattered_sums::<T>(device, [40, 600, 900])?, scattered_sums::<T>(device, [1000, 3, 2000])?].concat())
}

/// A vector that each group copies to local memory.
fn short_vector<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let a = gallery::random::<T>(90, 24, 900, 4)?;
    let x = Columns::from_vector(noisy(device, 48, 6)?, 2)?;
    let mut found = Vec::new();
    for format in [Format::EllpackR, Format::Sell { sigma: 32 }] {
        let mut y = Columns::zeros(device, 90, 2)?;
        Matrix::new(device, &a, format)?.multiply_columns(&x, &mut y)?;
        found.extend(numbers(&y.into_vector())?);
    }
    Ok(found)
}

/// A vector that goes through local memory part by part, with stored entries and with those that a text makes.
fn vector_in_parts<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let (rows, cols, entries) = (21, 5000, 9);
    let twin = |i: u32, k: u32| (550 * k + 13 * i, T::from_f64(f64::from(1 + k)));
    let text = "column = 550u * k + 13u * i; value = 1 + k;";
    let made = || Generated::new(device, [rows, cols], entries, text, move |_, i, k| twin(i, k));
    let mut found = [product(device, &made()?, 6)?, product(device, &made()?.staged()?, 6)?].concat();
    let reading = Some(AccessPattern::Rows);
    let case = Case { family: Family::Product, reading, precision: T::PRECISION, size: SizeClass::Small };
    let settings = Settings { staged: Some(true), ..Settings::default() };
    let device = &device.with_settings(case, settings, "doctor")?;
    let a = Csr::from_rows(rows, cols, |i, row| row.extend((0..entries as u32).map(|k| twin(i as u32, k))))?;
    for format in [Format::EllpackR, Format::Sell { sigma: 1 }] {
        found.extend(product(device, &Matrix::new(device, &a, format)?, 6)?);
    }
    Ok(found)
}

/// Rows within pieces and parts and across them, and rows without entries.
fn by_entries<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let lengths = [0, 3, 40, 0, 1000, 2100, 0];
    let a = Csr::<T>::from_rows(lengths.len(), 2100, |i, row| {
        row.extend((0..lengths[i]).map(|k| (k, T::from_f64(f64::from(k % 7) - 3.0))));
    })?;
    product(device, &SplitRows::new(device, &a)?, 9)
}

fn stencils<T: Real>(device: &Device) -> Result<Vec<f64>> {
    let closed = [Boundary::Reflecting, Boundary::Periodic, Boundary::Zero];
    let mut found = Vec::new();
    for stencil in [
        Stencil::laplacian_2d(9, 7)?,
        Stencil::laplacian_3d(5, 3, 4)?,
        Stencil::laplacian_2d(41, 5)?.with_boundaries(closed),
    ] {
        let a = stencil.operator::<T>(device)?;
        found.extend(solution(device, &a, Setup::new(Method::Cg, Stopping::after(2)), 5)?);
    }
    Ok(found)
}
