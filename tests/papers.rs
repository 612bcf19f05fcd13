//! Examples that the papers print with their numbers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::devices_in;
use residuum::{Csr, Format, Matrix, Method, Real, Setup, Solver, Stopping, Vector};

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
