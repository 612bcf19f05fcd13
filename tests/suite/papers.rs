//! Examples that the papers print with their numbers.

use crate::common::{bits, devices_in, noise, program};
use residuum::sparse::gallery;
use residuum::{Csr, Format, Matrix, Method, Packing, Real, Setup, Solver, Stopping, Storage, Transposed, Vector};

/// michels-2011, figure 1: conjugate gradients for `[[2, -1], [-1, 2]] x = (8, -1)` go from 0 by (3.56164384, -0.44520548) to (5, 2). The first step is
/// 65/146 of the first residual.
fn conjugate_gradients_of_michels<T: Real>() {
    let number = T::from_f64;
    let entries = [(0, 0, 2.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 2.0)].map(|(i, j, v)| (i, j, number(v)));
    let a = Csr::from_triplets(2, 2, &entries).unwrap();
    for device in devices_in(T::PRECISION) {
        for format in [Format::Csr, Format::Ellpack, Format::Dia] {
            let matrix = Matrix::new(&device, &a, format).unwrap();
            let b = Vector::from_slice(&device, &[number(8.0), number(-1.0)]).unwrap();
            for (iterations, wanted) in [(1, [8.0 * 65.0 / 146.0, -65.0 / 146.0]), (2, [5.0, 2.0])] {
                let mut x = Vector::zeros(&device, 2).unwrap();
                let setup = Setup::new(Method::Cg, Stopping::after(iterations));
                let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
                assert_eq!(report.iterations, iterations, "{report}");
                for (found, wanted) in x.to_vec().unwrap().iter().zip(wanted) {
                    let found = found.to_f64();
                    assert!(
                        (found - wanted).abs() <= 8.0 * T::EPSILON * wanted.abs(),
                        "{found} {wanted}: {report}"
                    );
                }
            }
        }
    }
    // The figure as it is printed.
    approx::assert_abs_diff_eq!(8.0 * 65.0 / 146.0, 3.561_643_84, epsilon = 5e-9);
    approx::assert_abs_diff_eq!(-65.0 / 146.0, -0.445_205_48, epsilon = 5e-9);
}

#[test]
fn conjugate_gradients_of_michels_f32() {
    conjugate_gradients_of_michels::<f32>();
}

#[test]
fn conjugate_gradients_of_michels_f64() {
    conjugate_gradients_of_michels::<f64>();
}

/// krueger-westermann-2003, section 2: the transposed of a matrix by diagonals is read at shifted places, and nothing is copied. Products with it, and
/// least squares by it, have the bits of a copy.
fn transposed_diagonals<T: Real>() {
    let square = gallery::diagonals::<T>(500, 10, 40, 3).unwrap();
    // A tall and a wide one, with places of diagonals that no entry takes.
    let tall = Csr::from_rows(90, 60, |i, row| {
        let near = [i.checked_sub(25), i.checked_sub(1), Some(i), Some(i + 7)].into_iter().flatten();
        let there = near.filter(|j| *j < 60 && (i + j) % 11 > 0);
        row.extend(there.map(|j| (j as u32, T::from_f64(1.0 + ((3 * i + j) % 17) as f64))));
    })
    .unwrap();
    let wide = tall.transpose();
    for device in devices_in(T::PRECISION) {
        for (name, a) in [("square", &square), ("tall", &tall), ("wide", &wide)] {
            let alone = Matrix::new(&device, a, Format::Dia).unwrap();
            let both = Matrix::with_transpose(&device, a, Format::Dia).unwrap();
            let copied = Matrix::with_transpose(&device, a, Format::CsrScalar).unwrap();
            // The offsets of the diagonals are 4 bytes each.
            assert!(both.bytes() <= alone.bytes() + 4 * 16, "{name}: {} {}", both.bytes(), alone.bytes());
            let y = Vector::from_slice(&device, &noise::<T>(a.rows(), 9)).unwrap();
            let products = [&both, &copied].map(|matrix| {
                let mut x = Vector::filled(&device, a.cols(), T::from_f64(f64::NAN)).unwrap();
                matrix.multiply_transposed(&y, &mut x).unwrap();
                bits(&x.to_vec().unwrap())
            });
            assert!(products[0] == products[1], "{name} on {} {}", device.info().name, device.tuning());
            // An item alone runs other loops.
            if let Ok(alone) = device.with_work_group(1) {
                let mut x = Vector::filled(&alone, a.cols(), T::from_f64(f64::NAN)).unwrap();
                both.on(&alone).unwrap().multiply_transposed(&y, &mut x).unwrap();
                assert!(
                    bits(&x.to_vec().unwrap()) == products[1],
                    "{name} on {} {}",
                    device.info().name,
                    alone.tuning()
                );
            }
            let damp = 0.0;
            for method in [Method::Cgnr, Method::Cgls { damp }, Method::Lsqr { damp }, Method::Lsmr { damp }] {
                let answers = [&both, &copied].map(|matrix| {
                    let mut x = Vector::zeros(&device, a.cols()).unwrap();
                    let setup = Setup::new(method, Stopping::after(12));
                    let report = Solver::with(matrix, setup).unwrap().solve(&y, &mut x).unwrap();
                    assert!(report.iterations > 0, "{report}");
                    bits(&x.to_vec().unwrap())
                });
                assert!(answers[0] == answers[1], "{name}, {method} on {}", device.info().name);
            }
            // Other values reach the transposed too, packed or not.
            let mut other = a.clone();
            other
                .values_mut()
                .iter_mut()
                .enumerate()
                .for_each(|(k, v)| *v = T::from_f64(f64::from(1 + k as u32 % 5)));
            for packing in [Packing::Never, Packing::Always] {
                let storage = Storage::default()
                    .with_format(Format::Dia)
                    .with_transposed(Transposed::Copy)
                    .with_packing(packing);
                let changed = Matrix::stored(&device, &other, storage).unwrap();
                let made = Matrix::with_transpose(&device, a, Format::CsrScalar).unwrap();
                for (next, words) in [(a, "the first values"), (&other, "other values")] {
                    changed.update_values(next).unwrap();
                    made.update_values(next).unwrap();
                    let products = [&changed, &made].map(|matrix| {
                        let mut x = Vector::zeros(&device, a.cols()).unwrap();
                        matrix.multiply_transposed(&y, &mut x).unwrap();
                        bits(&x.to_vec().unwrap())
                    });
                    assert!(products[0] == products[1], "{name}, {words}, {packing:?} on {}", device.info().name);
                }
            }
        }
    }
}

#[test]
fn transposed_diagonals_f32() {
    transposed_diagonals::<f32>();
}

#[test]
fn transposed_diagonals_f64() {
    transposed_diagonals::<f64>();
}

/// Rows of JSON of the program `papers`, and what it says on stderr.
fn printed(args: &[&str]) -> (Vec<serde_json::Value>, String) {
    let output = program("papers").args(args).args(["--json", "--device", "host"]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {words}");
    let text = String::from_utf8_lossy(&output.stdout);
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), words)
}

/// A matrix of the thesis that lies in a folder gives all of its rows by its name alone, and those that do not are named.
#[test]
#[cfg_attr(not(feature = "metis"), ignore = "partitions need the feature metis")]
fn tables_of_a_thesis_are_made_for_what_a_folder_holds() {
    let folder = tempfile::tempdir().unwrap();
    // The name is what counts, not the size.
    let a = gallery::poisson_2d::<f64>(24, 0.1).unwrap();
    residuum::io::matrix_market::write_matrix(&folder.path().join("Kuu.mtx"), &a).unwrap();
    let data = folder.path().to_str().unwrap();
    let (rows, words) = printed(&["dedecek-2013", "--data", data]);
    let of =
        |table: &str| rows.iter().find(|row| row["table"] == table).unwrap_or_else(|| panic!("{table}: {rows:?}"));
    assert_eq!(of("7.1")["entries"], a.nnz());
    for table in ["7.2", "7.3"] {
        assert!(of(table)["host_csr"].as_str().unwrap().contains(" / "), "{table}");
    }
    assert_eq!(of("7.2")["dedecek_cpu"], "140 / 325");
    assert_eq!(of("7.3")["dedecek_nz"], "62325");
    for (table, ours, thesis) in [
        ("7.5", "host_ainv", "dedecek_ainv"),
        ("7.5", "host_ainv_from_ldl", "dedecek_ainv"),
        ("7.5", "host_bainv", "dedecek_bainv"),
        ("7.6", "host_sainv", "dedecek_sainv"),
        ("7.8", "host", "dedecek_gpu"),
        ("7.9", "host", "dedecek_cpu"),
    ] {
        for column in [ours, thesis] {
            assert!(of(table)[column].as_str().unwrap().contains(", "), "{table} {column}: {}", of(table));
        }
    }
    // No row of Kuu is printed in 7.4 and 7.7, and 576 rows are too few for 128 parts.
    assert!(rows.iter().all(|row| row["table"] != "7.4" && row["table"] != "7.7"), "{rows:?}");
    assert!(words.contains("bcsstk15") && !words.contains("Kuu"), "{words}");
    // One table alone.
    let (rows, _) = printed(&["dedecek-2013", "--data", data, "--table", "7.6"]);
    assert_eq!(rows.iter().filter(|row| row["table"].is_string()).count(), 1, "{rows:?}");
}

#[test]
fn tables_that_cannot_be_are_refused_or_named() {
    for (args, words) in [
        (&["dedecek-2013"][..], "--data"),
        (&["michels-2011", "--table", "7.6"], "6.1, figure-4"),
        (&["krueger-westermann-2003", "--plot", "figure.png"], "plot"),
        (&["oses-2013", "--table", "6.1"], "5.4, transfer"),
        (&["stock-koch-2009", "--table", "2", "--plot", "figure.png"], "figure-3"),
    ] {
        let output = program("papers").args(args).args(["--device", "host"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{args:?}: {said}");
    }
    let (rows, words) = printed(&["michels-2011", "--table", "figure-4"]);
    assert!(rows.len() == 1 && words.contains("the host has no groups"), "{words}");
}
