//! Every operation on every device against the host, bit for bit, at every work-group size.

use crate::common::problems::{matrices, near_the_diagonal, packed_storages, scanners, storages};
use crate::common::{self, bits, each_case, noise, overlapping, reference};
use residuum::operator::{
    Generated, LinearOperator, LinearOperatorExt, Selection, SharedOperator, SplitRows, adjoint_error,
};
use residuum::sparse::{Ordering, Permutation, gallery};
use residuum::tuning::{AccessPattern, Case, Family, Settings, SizeClass};
use residuum::{
    BackendKind, Columns, Combine, Csr, Device, Error, Format, Matrix, Method, Packing, Precision, Real, Reduction,
    Solver, Stopping, Storage, Transposed, Vector,
};

/// Lengths around lanes, chunks and levels of the reduction tree.
fn lengths() -> Vec<usize> {
    vec![0, 1, 31, 32, 33, 255, 1023, 1024, 1025, 32_768, 40_001, 1_100_003]
}

fn elementwise<T: Real>(device: &Device, n: usize) {
    let (a, b) = (noise::<T>(n, 1), noise::<T>(n, 2));
    let half = T::from_f64(0.3);
    let compute = |device: &Device| -> Vec<Vec<u64>> {
        let x = Vector::from_slice(device, &a).unwrap();
        let y = Vector::from_slice(device, &b).unwrap();
        let nan = T::from_f64(f64::NAN);
        let mut sum = Vector::from_slice(device, &b).unwrap();
        sum.axpby(half, &x, T::from_f64(-1.7)).unwrap();
        let mut scaled = Vector::filled(device, n, nan).unwrap();
        scaled.scaled_from(half, &x).unwrap();
        let mut product = Vector::filled(device, n, nan).unwrap();
        product.product_of(&x, &y).unwrap();
        let mut copy = Vector::filled(device, n, nan).unwrap();
        copy.copy_from(&y).unwrap();
        assert_eq!(bits(&y.try_clone().unwrap().to_vec().unwrap()), bits(&copy.to_vec().unwrap()));
        copy.clamp(-half, half).unwrap();
        let mut filled = Vector::filled(device, n, nan).unwrap();
        filled.fill(half).unwrap();
        [sum, scaled, product, copy, filled].iter().map(|v| bits(&v.to_vec().unwrap())).collect()
    };
    let wanted = compute(&reference::<T>(device));
    assert_eq!(compute(device), wanted, "{} {} n = {n}", device.info().name, device.tuning());
    for (i, value) in wanted[0].iter().enumerate() {
        assert_eq!(*value, (half * a[i] + T::from_f64(-1.7) * b[i]).to_f64().to_bits());
    }
}

fn reductions<T: Real>(device: &Device, n: usize) {
    let (a, b) = (noise::<T>(n, 3), noise::<T>(n, 4));
    let near_one: Vec<T> = a.iter().map(|v| T::from_f64(1.0 + 1e-3 * v.to_f64())).collect();
    let compute = |device: &Device| -> Vec<f64> {
        let x = Vector::from_slice(device, &a).unwrap();
        let y = Vector::from_slice(device, &b).unwrap();
        let z = Vector::from_slice(device, &near_one).unwrap();
        vec![
            x.sum().unwrap(),
            z.product().unwrap(),
            x.min().unwrap(),
            x.max().unwrap(),
            x.asum().unwrap(),
            x.dot(&y).unwrap(),
            x.norm2().unwrap(),
        ]
        .into_iter()
        .chain(REDUCTIONS.map(|which| x.reduce_products(which, &y).unwrap()))
        .chain([z.reduce_products(Reduction::Product, &z).unwrap()])
        .collect()
    };
    let (found, wanted) = (compute(device), compute(&reference::<T>(device)));
    assert_eq!(bits(&found), bits(&wanted), "{} {} n = {n}: {found:?}", device.info().name, device.tuning());
    // Products are reduced as a vector that holds them would be, but for their rounding.
    assert_eq!(wanted[7], wanted[5], "a sum of products is a dot product");
    let products = || a.iter().zip(&b).map(|(x, y)| x.to_f64() * y.to_f64());
    let [least, greatest, size] = [
        products().fold(f64::INFINITY, f64::min),
        products().fold(f64::NEG_INFINITY, f64::max),
        products().map(f64::abs).sum(),
    ];
    for (found, wanted) in [(wanted[9], least), (wanted[10], greatest), (wanted[11], size)] {
        assert!(found == wanted || (found - wanted).abs() <= 1e-11 * wanted.abs(), "{found} {wanted} n = {n}");
    }
    // The reference itself, against plain sums.
    let plain: f64 = a.iter().map(|v| v.to_f64()).sum();
    let scale: f64 = a.iter().map(|v| v.to_f64().abs()).sum();
    assert!((wanted[0] - plain).abs() <= 1e-11 * scale.max(1.0), "sum {} against {plain}", wanted[0]);
    assert!((wanted[4] - scale).abs() <= 1e-11 * scale.max(1.0));
    let least = a.iter().map(|v| v.to_f64()).fold(f64::INFINITY, f64::min);
    assert_eq!(wanted[2], least);
}

#[test]
fn vectors_f32() {
    each_case::<f32>(|device| lengths().into_iter().for_each(|n| elementwise::<f32>(device, n)));
}

#[test]
fn vectors_f64() {
    each_case::<f64>(|device| lengths().into_iter().for_each(|n| elementwise::<f64>(device, n)));
}

#[test]
fn reductions_f32() {
    each_case::<f32>(|device| lengths().into_iter().for_each(|n| reductions::<f32>(device, n)));
}

#[test]
fn reductions_f64() {
    each_case::<f64>(|device| lengths().into_iter().for_each(|n| reductions::<f64>(device, n)));
}

#[test]
fn a_nan_is_not_lost_in_a_reduction() {
    each_case::<f32>(|device| {
        for at in [0, 17, 4999] {
            let mut data = noise::<f32>(5000, 5);
            data[at] = f32::NAN;
            let x = Vector::from_slice(device, &data).unwrap();
            for value in [x.sum(), x.product(), x.min(), x.max(), x.asum(), x.norm2()] {
                assert!(value.unwrap().is_nan(), "{} at {at}", device.info().name);
            }
        }
    });
}

/// All reductions, in their order.
const REDUCTIONS: [Reduction; 5] =
    [Reduction::Sum, Reduction::Product, Reduction::Minimum, Reduction::Maximum, Reduction::AbsoluteSum];

fn plain_storage() -> Storage {
    Storage::default().with_format(Format::CsrScalar).with_transposed(Transposed::Copy).with_packing(Packing::Never)
}

fn products<T: Real>(device: &Device) {
    // Values that `f32` holds, in few columns and in many.
    let single = [
        ("near, single", near_the_diagonal().rounded_to_f32().unwrap()),
        ("mean 40, single", overlapping::<T>(100, 90, 4000, 3).rounded_to_f32().unwrap()),
    ];
    for (name, a) in matrices::<T>().into_iter().chain([("near", near_the_diagonal())]).chain(single) {
        let (x, z) = (noise::<T>(a.cols(), 6), noise::<T>(a.rows(), 7));
        let mut sequential = Vec::new();
        // Each way of packing, with several lanes to a row and with one.
        let packed = packed_storages().into_iter().filter(|storage| match name {
            "poisson" | "near" => true,
            "near, single" => {
                matches!(storage.format, Format::Csr | Format::Dia | Format::Hyb | Format::Sell { sigma: 32 })
            }
            "mean 40, single" => matches!(storage.format, Format::Csr | Format::Coo),
            "uneven" => matches!(storage.format, Format::CsrAdaptive | Format::Sell { sigma: 32 }),
            "mean 40" => storage.format == Format::Csr,
            _ => false,
        });
        let plain =
            if name.contains("near") || name.contains("single") { vec![plain_storage()] } else { storages(&a) };
        for storage in plain.into_iter().chain(packed) {
            let format = storage.format;
            let compute = |device: &Device| -> [Vec<u64>; 2] {
                let matrix = Matrix::stored(device, &a, storage).unwrap();
                if name.contains("single")
                    && T::PRECISION == Precision::Double
                    && storage.packing == Packing::Always
                {
                    let packs = device.backend_kind() == BackendKind::OpenCl;
                    assert_eq!(matrix.why().contains("values in 32 bits"), packs, "{}", matrix.why());
                }
                let (x, z) = (Vector::from_slice(device, &x).unwrap(), Vector::from_slice(device, &z).unwrap());
                let mut y = Vector::filled(device, a.rows(), T::from_f64(f64::NAN)).unwrap();
                let mut w = Vector::filled(device, a.cols(), T::from_f64(f64::NAN)).unwrap();
                matrix.multiply(&x, &mut y).unwrap();
                matrix.multiply_transposed(&z, &mut w).unwrap();
                [bits(&y.to_vec().unwrap()), bits(&w.to_vec().unwrap())]
            };
            let wanted = compute(&reference::<T>(device));
            assert_eq!(compute(device), wanted, "{name} {storage:?} {} {}", device.info().name, device.tuning());
            if format.sequential() {
                sequential.push((storage, wanted));
            }
        }
        for (storage, bits) in &sequential {
            assert!(*bits == sequential[0].1, "{name}: the sequential formats must agree, {storage:?} does not");
        }
        // The reference itself, against a plain double sum.
        let tolerance = if T::EPSILON > 1e-10 { 1e-5 } else { 1e-13 };
        for i in 0..a.rows() {
            let (columns, values) = a.row(i);
            let terms = || columns.iter().zip(values).map(|(j, v)| v.to_f64() * x[*j as usize].to_f64());
            let found = f64::from_bits(sequential[0].1[0][i]);
            let scale: f64 = terms().map(f64::abs).sum();
            assert!((found - terms().sum::<f64>()).abs() <= tolerance * scale, "{name} row {i}");
        }
    }
}

#[test]
fn products_f32() {
    each_case::<f32>(products::<f32>);
}

#[test]
fn products_f64() {
    each_case::<f64>(products::<f64>);
}

/// Selected elements and their way back, of one or several columns: those of the host, and the order that was asked for.
fn selections<T: Real>(device: &Device) {
    let cols = 3000;
    let every =
        Permutation::of(&gallery::random::<f64>(cols, cols, 9000, 4).unwrap(), Ordering::ReverseCuthillMckee)
            .unwrap();
    let some: Vec<u32> = every.order().iter().copied().filter(|index| index % 3 != 1).collect();
    for indices in [every.order(), &some, &some[..1], &[]] {
        for columns in 1..=4 {
            let (x, y) = (noise::<T>(cols * columns, 3), noise::<T>(indices.len() * columns, 5));
            let compute = |device: &Device| {
                let selection = Selection::<T>::new(device, indices, cols).unwrap();
                let [x, y] = [&x, &y].map(|v| Vector::from_slice(device, v).unwrap());
                let mut to = Vector::filled(device, y.len(), T::from_f64(f64::NAN)).unwrap();
                let mut back = Vector::filled(device, x.len(), T::from_f64(f64::NAN)).unwrap();
                selection.apply_columns(columns, &x, &mut to).unwrap();
                selection.apply_adjoint_columns(columns, &y, &mut back).unwrap();
                [to.to_vec().unwrap(), back.to_vec().unwrap()]
            };
            let [to, back] = compute(device);
            let mut wanted = vec![T::default(); cols * columns];
            for (k, index) in indices.iter().enumerate() {
                for c in 0..columns {
                    let at = *index as usize * columns + c;
                    assert_eq!(to[k * columns + c].to_f64().to_bits(), x[at].to_f64().to_bits());
                    wanted[at] = y[k * columns + c];
                }
            }
            assert_eq!(bits(&back), bits(&wanted), "{} {}", device.info().name, device.tuning());
        }
    }
    for (indices, reason) in [(&[0, 9][..], "9 (at 1) is not below 9"), (&[4, 1, 4], "4 (at 2) stands at 0 too")] {
        assert!(Selection::<T>::new(device, indices, 9).unwrap_err().to_string().contains(reason));
    }
}

#[test]
fn selections_f32() {
    each_case::<f32>(selections::<f32>);
}

#[test]
fn selections_f64() {
    each_case::<f64>(selections::<f64>);
}

/// A matrix in another order, stored so or between permutations.
#[test]
fn matrices_between_permutations_are_in_another_order() {
    let a = gallery::random::<f64>(120, 120, 900, 6).unwrap();
    let order = Permutation::of(&a, Ordering::MinimumDegree).unwrap();
    for device in Device::select_all("").unwrap().into_iter().filter(|device| device.info().fp64) {
        let stored = Matrix::new(&device, &a.permuted(&order, &order).unwrap(), Format::CsrScalar).unwrap();
        let permutation = Selection::permutation(&device, &order).unwrap();
        let plain = Matrix::new(&device, &a, Format::CsrScalar).unwrap();
        let between = permutation.clone().times(plain).unwrap().times(permutation.adjoint().unwrap()).unwrap();
        let x = Vector::from_slice(&device, &noise::<f64>(120, 3)).unwrap();
        let [mut found, mut wanted] = [0; 2].map(|_| Vector::zeros(&device, 120).unwrap());
        between.apply(&x, &mut found).unwrap();
        stored.apply(&x, &mut wanted).unwrap();
        // Entries of a row are added in the order of their columns: sums differ in their last digits.
        for (found, wanted) in found.to_vec().unwrap().iter().zip(wanted.to_vec().unwrap()) {
            assert!((found - wanted).abs() <= 1e-14, "{found} {wanted}");
        }
    }
}

/// `A x op y` in one launch: the bits of the host, and those of a product that is combined afterwards, but for its rounding.
fn products_with<T: Real>(device: &Device) {
    // Two matrices, and of the operations one for each format: every program takes its time to build.
    for (name, a) in matrices::<T>().into_iter().filter(|(name, _)| ["uneven", "mean 40"].contains(name)) {
        let (x, b) = (noise::<T>(a.cols(), 6), noise::<T>(a.rows(), 7));
        for (storage, op) in storages(&a)
            .into_iter()
            .zip([Combine::Plus, Combine::Minus, Combine::From, Combine::Times].into_iter().cycle())
        {
            let compute = |device: &Device| -> [Vec<T>; 2] {
                let matrix = Matrix::stored(device, &a, storage).unwrap();
                let [x, b] = [&x, &b].map(|v| Vector::from_slice(device, v).unwrap());
                let [mut y, mut plain] =
                    [0; 2].map(|_| Vector::filled(device, a.rows(), T::from_f64(f64::NAN)).unwrap());
                matrix.multiply_with(&x, op, &b, &mut y).unwrap();
                matrix.multiply(&x, &mut plain).unwrap();
                [y.to_vec().unwrap(), plain.to_vec().unwrap()]
            };
            let [found, plain] = compute(device);
            let [wanted, _] = compute(&reference::<T>(device));
            assert_eq!(
                bits(&found),
                bits(&wanted),
                "{name} {storage:?} {op:?} {} {}",
                device.info().name,
                device.tuning()
            );
            for ((found, plain), b) in found.iter().zip(&plain).zip(&b) {
                let (plain, b) = (plain.to_f64(), b.to_f64());
                let apart = match op {
                    Combine::Plus => plain + b,
                    Combine::Minus => plain - b,
                    Combine::From => b - plain,
                    Combine::Times => plain * b,
                };
                let scale = plain.abs() + b.abs();
                assert!(
                    (found.to_f64() - apart).abs() <= 2.0 * T::EPSILON * scale,
                    "{name} {op:?} {found:?} {apart}"
                );
            }
        }
    }
}

#[test]
fn products_with_f32() {
    each_case::<f32>(products_with::<f32>);
}

#[test]
fn products_with_f64() {
    each_case::<f64>(products_with::<f64>);
}

/// Products whose vector each group copies to local memory first, and the same with that switched off.
fn staged<T: Real>(device: &Device) {
    let a = gallery::random::<T>(900, 200, 9000, 5).unwrap();
    let switched_off = SizeClass::ALL.iter().fold(device.clone(), |device, size| {
        let reading = Some(AccessPattern::ShortVector);
        let case = Case { family: Family::Product, reading, precision: T::PRECISION, size: *size };
        device.with_settings(case, Settings { staged: Some(false), ..Settings::default() }, "test").unwrap()
    });
    let programs = || device.programs().built + device.programs().loaded;
    for format in [Format::Ellpack, Format::EllpackR, Format::Sell { sigma: 1 }, Format::Sell { sigma: 32 }] {
        for columns in 1..=4 {
            let x = noise::<T>(a.cols() * columns, 8);
            let compute = |device: &Device| {
                let matrix = Matrix::new(device, &a, format).unwrap();
                let y = Vector::filled(device, a.rows() * columns, T::from_f64(f64::NAN)).unwrap();
                let mut y = Columns::from_vector(y, columns).unwrap();
                let x = Columns::from_vector(Vector::from_slice(device, &x).unwrap(), columns).unwrap();
                matrix.multiply_columns(&x, &mut y).unwrap();
                bits(&y.into_vector().to_vec().unwrap())
            };
            let wanted = compute(&reference::<T>(device));
            let words = format!("{format}, {columns} columns, {} {}", device.info().name, device.tuning());
            assert_eq!(compute(device), wanted, "{words}");
            let before = programs();
            assert_eq!(compute(&switched_off), wanted, "{words}, without");
            // Groups of one item read the vector where it is.
            let many = device.tuning().work_group > 1 && device.tuning().single_items.is_none();
            let stages = device.backend_kind() == BackendKind::OpenCl && many;
            assert_eq!(programs() - before, usize::from(stages), "{words}");
        }
    }
}

#[test]
fn staged_f32() {
    each_case::<f32>(staged::<f32>);
}

#[test]
fn staged_f64() {
    each_case::<f64>(staged::<f64>);
}

/// Products whose groups copy a vector to local memory part by part: a row goes on from one part to the next.
fn staged_in_parts<T: Real>(device: &Device) {
    // Parts have 4096 or 2048 elements; rows differ in length, and some columns have no entry.
    let a = Csr::<T>::from_rows(200, 9000, |i, row| {
        let step = 31 + 7 * (i % 5);
        let columns = (i % 50..9000).step_by(step).filter(|j| !(3000..5000).contains(j) || i % 3 > 0);
        row.extend(columns.map(|j| (j as u32, T::from_f64(0.25 * ((i + j) % 11) as f64 - 1.0))));
    })
    .unwrap();
    let reading = Some(AccessPattern::Rows);
    let switched_on = SizeClass::ALL.iter().fold(device.clone(), |device, size| {
        let case = Case { family: Family::Product, reading, precision: T::PRECISION, size: *size };
        device.with_settings(case, Settings { staged: Some(true), ..Settings::default() }, "test").unwrap()
    });
    for (format, packing) in [
        (Format::Ellpack, Packing::Never),
        (Format::EllpackR, Packing::Never),
        (Format::EllpackR, Packing::Always),
        (Format::Sell { sigma: 1 }, Packing::Always),
    ] {
        for columns in [1, 3] {
            let x = Vector::from_slice(device, &noise::<T>(a.cols() * columns, 8)).unwrap();
            let x = Columns::from_vector(x, columns).unwrap();
            let storage = Storage::default().with_format(format).with_packing(packing);
            let [wanted, found] = [device, &switched_on].map(|device| {
                let matrix = Matrix::stored(device, &a, storage).unwrap();
                let y = Vector::filled(device, a.rows() * columns, T::from_f64(f64::NAN)).unwrap();
                let mut y = Columns::from_vector(y, columns).unwrap();
                matrix.multiply_columns(&x, &mut y).unwrap();
                bits(&y.into_vector().to_vec().unwrap())
            });
            assert_eq!(found, wanted, "{format}, {columns} columns, {} {}", device.info().name, device.tuning());
        }
    }
}

#[test]
fn staged_in_parts_f32() {
    each_case::<f32>(staged_in_parts::<f32>);
}

#[test]
fn staged_in_parts_f64() {
    each_case::<f64>(staged_in_parts::<f64>);
}

/// Entries that a text makes: products have the bits of the stored matrix, staged or not.
fn generated<T: Real>(device: &Device) {
    let (rows, cols, entries) = (300usize, 9000usize, 61usize);
    // A column in every stretch of 150, which some rows leave before the end, and values that are left out.
    let text = "const uint hash = (i * 61u + k) * 2654435761u;
        column = (i % 7u == 3u && k > 40u) ? 9000u : k * 147u + (hash >> 8) % 147u;
        value = hash % 13u == 0u ? NAN : (real_t)(hash % 1024u) - 500;";
    let twin = |_, i: u32, k: u32| {
        let hash = (i.wrapping_mul(61).wrapping_add(k)).wrapping_mul(2_654_435_761);
        let column = if i % 7 == 3 && k > 40 { 9000 } else { k * 147 + (hash >> 8) % 147 };
        let value = if hash.is_multiple_of(13) { f64::NAN } else { f64::from(hash % 1024) - 500.0 };
        (column, T::from_f64(value))
    };
    let stored = Csr::<T>::from_rows(rows, cols, |i, row| {
        let made = (0..entries as u32).map(|k| twin((), i as u32, k));
        row.extend(made.filter(|(j, value)| *j < 9000 && !value.is_nan()));
    })
    .unwrap();
    let x = Vector::from_slice(device, &noise::<T>(cols, 8)).unwrap();
    let product = |a: &dyn LinearOperator<T>| {
        let mut y = Vector::filled(device, rows, T::from_f64(f64::NAN)).unwrap();
        a.apply(&x, &mut y).unwrap();
        bits(&y.to_vec().unwrap())
    };
    let wanted = product(&Matrix::new(device, &stored, Format::CsrScalar).unwrap());
    let make = || Generated::new(device, [rows, cols], entries, text, move |_, i, k| twin((), i, k)).unwrap();
    for a in [make(), make().staged().unwrap()] {
        a.check().unwrap();
        assert!(product(&a) == wanted, "{a:?}, {} {}", device.info().name, device.tuning());
    }
}

#[test]
fn generated_f32() {
    each_case::<f32>(generated::<f32>);
}

#[test]
fn generated_f64() {
    each_case::<f64>(generated::<f64>);
}

/// The sums of rows in the order that `SplitRows` promises, in `f64`, from the entries alone.
fn split_sums(a: &Csr<f64>, x: &[f64]) -> Vec<u64> {
    let sum_of = |i: usize| {
        let range = a.offsets()[i]..a.offsets()[i + 1];
        let [mut row, mut part, mut piece] = [0.0; 3];
        for k in range.clone() {
            piece += a.values()[k] * x[a.indices()[k] as usize];
            if (k + 1).is_multiple_of(32) || k + 1 == range.end {
                (part, piece) = (part + piece, 0.0);
            }
            if (k + 1).is_multiple_of(1024) || k + 1 == range.end {
                (row, part) = (row + part, 0.0);
            }
        }
        row
    };
    bits(&(0..a.rows()).map(sum_of).collect::<Vec<_>>())
}

/// Rows of these numbers of entries.
fn rows_of<T: Real>(lengths: &[usize], cols: usize) -> Csr<T> {
    let values = noise::<T>(lengths.iter().sum(), 11);
    let before = |i: usize| lengths[..i].iter().sum::<usize>();
    Csr::from_rows(lengths.len(), cols, |i, row| {
        let step = (cols / lengths[i].max(1)).max(1);
        let values = &values[before(i)..][..lengths[i]];
        row.extend(values.iter().enumerate().map(|(k, value)| ((k * step) as u32, *value)));
    })
    .unwrap()
}

/// Products divided by entries: rows that end with pieces and parts or cross them, that take several parts, and rows without entries
/// wherever they may stand.
fn split_rows<T: Real>(device: &Device) {
    let ends = [0, 0, 32, 31, 33, 0, 928, 0, 1, 1023, 1024, 0, 1025, 2048, 3000, 0, 7, 5000, 64, 0, 0];
    let short: Vec<usize> = (0..3000).map(|i| (i * 7) % 5).collect();
    let cases: [&[usize]; 8] =
        [&ends, &short, &[9000], &[0, 0, 0], &[], &[1024, 1024], &[1023, 1, 1, 1023, 0, 0], &[0, 2047, 0, 1]];
    let host = Device::host().with_accumulation(device.accumulation(T::PRECISION)).unwrap();
    let product = |a: &SplitRows<T>, x: &[T], adjoint: bool| {
        let x = Vector::from_slice(a.device(), x).unwrap();
        let len = if adjoint { a.cols() } else { a.rows() };
        let mut y = Vector::filled(a.device(), len, T::from_f64(f64::NAN)).unwrap();
        if adjoint { a.apply_adjoint(&x, &mut y) } else { a.apply(&x, &mut y) }.unwrap();
        bits(&y.to_vec().unwrap())
    };
    for lengths in cases {
        let a = rows_of::<T>(lengths, 9000);
        let (x, back) = (noise::<T>(9000, 3), noise::<T>(lengths.len(), 4));
        let wanted = product(&SplitRows::new(&host, &a).unwrap(), &x, false);
        if T::PRECISION == Precision::Double {
            let exact = |v: &[T]| v.iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
            let a = Csr::new(a.rows(), a.cols(), a.offsets().to_vec(), a.indices().to_vec(), exact(a.values()));
            assert_eq!(split_sums(&a.unwrap(), &exact(&x)), wanted, "host");
        }
        let split = SplitRows::with_transpose(device, &a).unwrap();
        for _ in 0..2 {
            let found = product(&split, &x, false);
            assert!(found == wanted, "{lengths:?}, {} {}", device.info().name, device.tuning());
        }
        let wanted = product(&SplitRows::new(&host, &a.transpose()).unwrap(), &back, false);
        assert!(product(&split, &back, true) == wanted, "{lengths:?}");
        if a.nnz() > 0 {
            let bound = if T::PRECISION == Precision::Double { 1e-14 } else { 1e-6 };
            assert!(adjoint_error(&split, 5).unwrap() < bound);
        }
    }
}

/// Vectors and matrices that fit no product are errors.
#[test]
fn split_rows_refuse_what_does_not_fit() {
    for device in common::devices_in(Precision::Double) {
        let a = rows_of::<f64>(&[2, 0, 1500], 2000);
        let split = SplitRows::new(&device, &a).unwrap();
        let vector = |n: usize| Vector::<f64>::filled(&device, n, 1.0).unwrap();
        for (x, y) in [(3, 3), (2000, 2000), (1999, 3)] {
            assert!(matches!(split.apply(&vector(x), &mut vector(y)), Err(Error::Shape { .. })));
        }
        assert!(!split.has_adjoint());
        assert!(matches!(split.apply_adjoint(&vector(3), &mut vector(2000)), Err(Error::Conflict { .. })));
        let elsewhere = Device::host();
        if device.info().index.is_some() {
            let x = Vector::<f64>::filled(&elsewhere, 2000, 1.0).unwrap();
            assert!(matches!(split.apply(&x, &mut vector(3)), Err(Error::DeviceMismatch { .. })));
        }
        let infinite = Csr::from_triplets(2, 2, &[(0, 1, f64::INFINITY)]).unwrap();
        assert!(matches!(SplitRows::new(&device, &infinite), Err(Error::NotFinite { .. })));
        let wide = Csr::from_triplets(1, 1 << 31, &[(0, 5, 1.0)]).unwrap();
        assert!(matches!(SplitRows::with_transpose(&device, &wide), Err(Error::Structure { .. })));
        let none = Csr::<f64>::from_triplets(4, 0, &[]).unwrap();
        let mut y = Vector::filled(&device, 4, f64::NAN).unwrap();
        SplitRows::new(&device, &none).unwrap().apply(&vector(0), &mut y).unwrap();
        assert_eq!(y.to_vec().unwrap(), [0.0; 4]);
    }
}

/// Threads that share an operator do not get each other's shares of rows.
#[test]
fn split_rows_of_several_threads() {
    for device in common::devices_in(Precision::Double) {
        let a = rows_of::<f64>(&[5000, 3, 4000, 0, 9000], 9000);
        let split = SplitRows::new(&device, &a).unwrap();
        let product = |seed: u64| {
            let x = Vector::from_slice(&device, &noise::<f64>(9000, seed)).unwrap();
            let mut y = Vector::zeros(&device, 5).unwrap();
            split.apply(&x, &mut y).unwrap();
            bits(&y.to_vec().unwrap())
        };
        let wanted: Vec<_> = (0..4).map(product).collect();
        std::thread::scope(|scope| {
            for (seed, wanted) in (0..4).zip(&wanted) {
                let product = &product;
                scope.spawn(move || (0..20).for_each(|_| assert!(product(seed) == *wanted)));
            }
        });
    }
}

#[test]
fn split_rows_f32() {
    each_case::<f32>(split_rows::<f32>);
}

#[test]
fn split_rows_f64() {
    each_case::<f64>(split_rows::<f64>);
}

/// A column behind the last one ends a row, wherever it comes.
#[test]
fn generated_rows_end_at_a_column_that_is_not_there() {
    for device in common::devices_in(Precision::Double) {
        for (text, wanted) in [
            ("column = i + k - 1; value = 1;", [0.0, 14.0, 12.0, 9.0, 5.0]),
            ("if (k > i) continue; column = k; value = 1;", [2.0, 5.0, 9.0, 14.0, 14.0]),
            ("if (k == 1) break; column = k; value = 1;", [2.0; 5]),
        ] {
            let twin = move |_, i: u32, k: u32| match &text[..8] {
                "column =" => (i.wrapping_add(k).wrapping_sub(1), 1.0),
                "if (k > " => (if k > i { 9 } else { k }, 1.0),
                _ => (if k == 1 { 9 } else { k }, 1.0),
            };
            let make = || Generated::<f64>::new(&device, [5, 4], 4, text, twin).unwrap();
            let x = Vector::from_slice(&device, &[2.0, 3.0, 4.0, 5.0]).unwrap();
            for a in [make(), make().staged().unwrap()] {
                let mut y = Vector::zeros(&device, 5).unwrap();
                a.apply(&x, &mut y).unwrap();
                assert_eq!(y.to_vec().unwrap(), wanted, "{a:?} on {}", device.info().name);
            }
        }
    }
}

/// Texts and twins that do not belong together, or cannot be meant.
#[test]
fn generated_entries_are_checked() {
    for device in common::devices_in(Precision::Double) {
        let make = |text: &str, twin: fn(u32, u32) -> (u32, f64)| {
            Generated::<f64>::new(&device, [4, 9], 3, text, move |_, i, k| twin(i, k))
        };
        let descending = make("column = i + 2 - k; value = 1;", |i, k| (i + 2 - k, 1.0)).unwrap();
        assert!(matches!(descending.check(), Err(Error::Structure { row: Some(0), .. })));
        let right = make("column = i + k; value = 1;", |i, k| (i + k, 1.0)).unwrap();
        right.check().unwrap();
        assert!(!right.has_adjoint());
        let narrow =
            Generated::<f64>::new(&device, [9, 3], 1, "column = 0; value = 1;", |_, _, _| (0, 1.0)).unwrap();
        assert!(matches!(right.with_adjoint(narrow), Err(Error::Shape { .. })));
        if device.backend_kind() == BackendKind::OpenCl {
            let other = make("column = i + k; value = i == 2 ? 1.5 : 1;", |i, k| (i + k, 1.0)).unwrap();
            assert!(matches!(other.check(), Err(Error::Structure { row: Some(2), .. })));
            assert!(matches!(make("column = i + ; value = 1;", |_, _| (0, 1.0)), Err(Error::Build { .. })));
        }
        for text in ["", "column = 0; // value", "#define column value"] {
            assert!(matches!(make(text, |_, _| (0, 1.0)), Err(Error::Option { name: "text", .. })), "{text}");
        }
        let empty = Generated::<f64>::new(&device, [4, 0], 1, "column = 0; value = 1;", |_, _, _| (0, 1.0));
        assert!(matches!(empty, Err(Error::Option { name: "cols", .. })));
    }
}

/// Least squares by rows that are made, with the transposed made too: the bits of an operator of a stored matrix.
#[test]
fn least_squares_by_generated_rows() {
    for device in common::devices_in(Precision::Double) {
        // Row i has entries 3, 2, 1 in columns i to i + 2.
        let forward = "column = i + k; value = 3 - (real_t)k;";
        let backward = "column = i + k < 2u ? 0u : i + k - 2u; value = i + k < 2u ? NAN : 1 + (real_t)k;";
        let forward = Generated::<f64>::new(&device, [40, 42], 3, forward, |_, i, k| (i + k, 3.0 - f64::from(k)));
        let backward = Generated::<f64>::new(&device, [42, 40], 3, backward, |_, i, k| {
            (i + k).checked_sub(2).map_or((0, f64::NAN), |column| (column, 1.0 + f64::from(k)))
        });
        let a = forward.unwrap().with_adjoint(backward.unwrap()).unwrap();
        assert!(adjoint_error(&a, 3).unwrap() < 1e-14);
        let stored =
            Csr::from_rows(40, 42, |i, row| row.extend((0..3).map(|k| (i as u32 + k, 3.0 - f64::from(k)))));
        let stored = Matrix::with_transpose(&device, &stored.unwrap(), Format::CsrScalar).unwrap();
        let b = Vector::from_slice(&device, &noise::<f64>(40, 4)).unwrap();
        let solve = |a: SharedOperator<f64>| {
            let mut x = Vector::zeros(&device, 42).unwrap();
            let report = Solver::new(a, Method::Cgnr, Stopping::after(30)).unwrap().solve(&b, &mut x).unwrap();
            assert!(report.iterations > 10, "{report}");
            bits(&x.to_vec().unwrap())
        };
        assert_eq!(solve(a.shared()), solve(SharedOperator::from(&stored)));
    }
}

fn projectors<T: Real>(device: &Device) {
    for (scanner, grid) in scanners() {
        let (image, readings) = (noise::<T>(grid.pixels(), 1), noise::<T>(scanner.rays(), 2));
        let compute = |device: &Device| {
            let a = scanner.projector::<T>(device, grid).unwrap();
            let mut y = Vector::filled(device, a.rows(), T::from_f64(f64::NAN)).unwrap();
            let mut x = Vector::filled(device, a.cols(), T::from_f64(f64::NAN)).unwrap();
            a.apply(&Vector::from_slice(device, &image).unwrap(), &mut y).unwrap();
            a.apply_adjoint(&Vector::from_slice(device, &readings).unwrap(), &mut x).unwrap();
            (y.to_vec().unwrap(), x.to_vec().unwrap(), a.frobenius_norm().unwrap())
        };
        let (y, x, norm) = compute(device);
        let (wanted_y, wanted_x, _) = compute(&reference::<T>(device));
        assert_eq!(bits(&y), bits(&wanted_y), "{} {} {grid:?}", device.info().name, device.tuning());
        assert_eq!(bits(&x), bits(&wanted_x), "{} {} {grid:?} transposed", device.info().name, device.tuning());
        // <A image, readings> = <image, A' readings>.
        let dot = |a: &[T], b: &[T]| a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>();
        let length = |a: &[T]| dot(a, a).sqrt();
        let difference = (dot(&y, &readings) - dot(&image, &x)).abs();
        assert!(difference <= 8.0 * T::EPSILON * length(&y) * length(&readings), "{difference}");
        // Against the stored matrix of the same scan.
        let stored = scanner.matrix::<T>(grid).unwrap();
        let tolerance = 5e-6; // 600 lines, each slope to 2⁻²⁸
        let frobenius = stored.values().iter().map(|v| v.to_f64().powi(2)).sum::<f64>().sqrt();
        assert!((norm - frobenius).abs() <= tolerance * frobenius, "{norm} {frobenius}");
        let scale = length(&y) / (scanner.rays() as f64).sqrt();
        for i in 0..scanner.rays() {
            let (columns, values) = stored.row(i);
            let sum: f64 = columns.iter().zip(values).map(|(j, v)| v.to_f64() * image[*j as usize].to_f64()).sum();
            assert!((sum - y[i].to_f64()).abs() <= tolerance * scale * 10.0, "ray {i}: {sum} {:?}", y[i]);
        }
    }
}

#[test]
fn projectors_f32() {
    each_case::<f32>(projectors::<f32>);
}

#[test]
fn projectors_f64() {
    each_case::<f64>(projectors::<f64>);
}

/// The one product whose bits may change from run to run: compared by size. Results that fit into local memory, and one
/// that does not.
fn scattered<T: Real>(device: &Device) {
    if T::EPSILON < 1e-10 && !device.info().int64_atomics {
        println!("skipped: {} has no 64-bit atomics", device.info().name);
        return;
    }
    let storage = |transposed| Storage::default().with_format(Format::CsrScalar).with_transposed(transposed);
    for cols in [70, 1, 1025, 90_000] {
        let a = gallery::random::<T>(3000, cols, 30_000.min(3000 * cols), 4).unwrap();
        let x = noise::<T>(a.rows(), 9);
        let compute = |transposed| {
            let matrix = Matrix::stored(device, &a, storage(transposed)).unwrap();
            let mut y = Vector::filled(device, a.cols(), T::from_f64(f64::NAN)).unwrap();
            matrix.multiply_transposed(&Vector::from_slice(device, &x).unwrap(), &mut y).unwrap();
            y.to_vec().unwrap()
        };
        for (found, wanted) in compute(Transposed::Scatter).iter().zip(compute(Transposed::Copy)) {
            let difference = (found.to_f64() - wanted.to_f64()).abs();
            assert!(difference <= 3000.0 * T::EPSILON, "{found:?} {wanted:?} on {} ({cols})", device.info().name);
        }
    }
    let a = gallery::random::<T>(30, 20, 100, 4).unwrap();
    // Offsets of empty columns take memory too: few entries must not ask for much of it.
    let wide = Csr::from_triplets(1, u32::MAX as usize, &[(0, 7, T::from_f64(1.0))]).unwrap();
    assert!(matches!(Matrix::with_transpose(device, &wide, Format::Csr), Err(Error::Structure { .. })));
    let padded = Storage::default().with_format(Format::Ellpack).with_transposed(Transposed::Scatter);
    assert!(matches!(Matrix::stored(device, &a, padded), Err(Error::Conflict { .. })));
}

#[test]
fn rows_scattered_f32() {
    each_case::<f32>(scattered::<f32>);
}

#[test]
fn rows_scattered_f64() {
    each_case::<f64>(scattered::<f64>);
}
