//! Systems as people give them: what is not finite, columns that hold nothing, several right-hand sides, no rows at all.

use residuum::operator::{LinearOperator, LinearOperatorExt, SharedOperator};
use residuum::precond::Preconditioner;
use residuum::sparse::gallery;
use residuum::{
    Columns, Csr, Device, Error, Format, Matrix, Method, NullSpace, Setup, Solver, Stopping, Vector, build_for,
};

fn stopping() -> Stopping {
    Stopping::for_precision::<f64>()
}

fn with_bad(n: usize, at: usize, value: f64) -> Vec<f64> {
    let mut v = vec![1.0; n];
    v[at] = value;
    v
}

fn place(outcome: Result<impl Sized, Error>, words: &str) -> usize {
    match outcome {
        Err(Error::NotFinite { what, index }) => {
            assert_eq!(what, words);
            index
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("NaN is taken"),
    }
}

/// The place of a value that is not finite is told, not that of the first element.
#[test]
fn what_is_not_finite_is_told_with_its_place() {
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(4, 0.0).unwrap();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let upload = |v: &[f64]| Vector::from_slice(&device, v).unwrap();
    for (at, value) in [(1, f64::NAN), (0, f64::INFINITY), (15, f64::NEG_INFINITY), (9, f64::NAN)] {
        let bad = upload(&with_bad(16, at, value));
        for method in
            [Method::Cg, Method::Minres, Method::Gmres { restart: 5 }, Method::Lsqr { damp: 0.0 }, Method::Cgnr]
        {
            let mut solver = Solver::new(&matrix, method, stopping()).unwrap();
            assert_eq!(
                place(solver.solve(&bad, &mut Vector::zeros(&device, 16).unwrap()), "the right-hand side"),
                at
            );
            let good = upload(&[1.0; 16]);
            assert_eq!(
                place(solver.solve(&good, &mut bad.try_clone().unwrap()), "the start guess"),
                at,
                "{method}"
            );
        }
        // Least squares with a preconditioner go another way.
        let built = build_for(Preconditioner::Jacobi, &Method::Lsmr { damp: 0.0 }, &device, &a, None).unwrap();
        let setup = Setup::new(Method::Lsmr { damp: 0.0 }, stopping()).with_preconditioner(built.operator);
        let solved = Solver::with(&matrix, setup).unwrap().solve(&bad, &mut Vector::zeros(&device, 16).unwrap());
        assert_eq!(place(solved, "the right-hand side"), at);
        let mut damped = Solver::new(&matrix, Method::Lsqr { damp: 1.0 }, stopping()).unwrap();
        assert_eq!(place(damped.set_reference(&bad), "the reference point"), at);
    }
    // Columns, each with its own index.
    let columns = [vec![1.0; 16], with_bad(16, 7, f64::NAN), with_bad(16, 3, f64::NAN)];
    let parts: Vec<&[f64]> = columns.iter().map(|column| &**column).collect();
    let b = Columns::new(&device, &parts).unwrap();
    let mut solver = Solver::with(&matrix, Setup::new(Method::Cg, stopping()).with_columns(3)).unwrap();
    let solved = solver.solve_many(&b, &mut Columns::zeros(&device, 16, 3).unwrap());
    assert_eq!(place(solved, "column 2 of the right-hand side"), 3);
    // A null space is taken out first, which would spread NaN over all places.
    let ring = Csr::<f64>::from_rows(9, 9, |i, row| {
        let mut places = [((i + 8) % 9, -1.0), (i, 2.0), ((i + 1) % 9, -1.0)];
        places.sort_unstable_by_key(|(j, _)| *j);
        row.extend(places.map(|(j, v)| (j as u32, v)));
    })
    .unwrap();
    let matrix = Matrix::new(&device, &ring, Format::Csr).unwrap();
    let setup = Setup::new(Method::Cg, stopping()).with_null_space(NullSpace::constants(&device, 9).unwrap());
    let mut solver = Solver::with(&matrix, setup).unwrap();
    let bad = upload(&with_bad(9, 4, f64::NAN));
    assert_eq!(place(solver.solve(&bad, &mut Vector::zeros(&device, 9).unwrap()), "the right-hand side"), 4);
    let good = upload(&[0.0; 9]);
    assert_eq!(place(solver.solve(&good, &mut bad.try_clone().unwrap()), "the start guess"), 4);
    // Finite numbers whose norm is not.
    let mut solver = Solver::new(&matrix, Method::Minres, stopping()).unwrap();
    let solved = solver.solve(&upload(&[1.7e308; 9]), &mut Vector::zeros(&device, 9).unwrap());
    let words = solved.unwrap_err().to_string();
    assert!(words.contains("the norm of the right-hand side"), "{words}");
}

/// A preconditioner that takes one right-hand side is named, and one after another it does what it should.
#[test]
fn what_takes_one_right_hand_side_is_named() {
    let device = Device::host();
    let a = gallery::poisson_2d::<f64>(6, 0.0).unwrap();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let columns: Vec<Vec<f64>> = (0..4).map(|c| (0..36).map(|i| f64::from((i * (c + 3)) % 7)).collect()).collect();
    let parts: Vec<&[f64]> = columns.iter().map(|column| &**column).collect();
    let b = Columns::new(&device, &parts).unwrap();
    for (name, kind) in [
        ("jacobi", None),
        ("spai", None),
        ("block-jacobi", Some("BlockJacobi")),
        ("fsai", Some("Fsai")),
        ("chebyshev", Some("Polynomial")),
        ("ic0", Some("Incomplete")),
        ("ilu0", Some("Incomplete")),
        ("sainv", Some("Ainv")),
        ("ssor", Some("Sweep")),
    ] {
        let method = if name == "spai" { Method::BiCgStab } else { Method::Cg };
        let which: Preconditioner = name.parse().unwrap();
        let operator = which.build(&device, &a).unwrap().operator;
        let setup = Setup::new(method, stopping()).with_preconditioner(operator);
        let mut one = Solver::with(&matrix, setup.clone()).unwrap();
        let mut answers = Vec::new();
        for column in &columns {
            let mut x = Vector::zeros(&device, 36).unwrap();
            assert!(
                one.solve(&Vector::from_slice(&device, column).unwrap(), &mut x).unwrap().converged(),
                "{name}"
            );
            answers.push(x.to_vec().unwrap());
        }
        match (Solver::with(&matrix, setup.with_columns(4)), kind) {
            (Ok(mut all), None) => {
                let mut x = Columns::zeros(&device, 36, 4).unwrap();
                assert!(all.solve_many(&b, &mut x).unwrap().iter().all(|report| report.converged()), "{name}");
                for (found, wanted) in x.to_vecs().unwrap().iter().zip(&answers) {
                    assert!(found.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 1e-6), "{name}");
                }
            }
            (Err(Error::Conflict { name: "columns", reason }), Some(kind)) => {
                let words = format!("4 right-hand sides at once, of which the preconditioner ({kind}) takes one");
                assert!(reason.contains(&words) && reason.contains("one after another"), "{name}: {reason}");
            }
            (other, _) => panic!("{name}: {:?}", other.map(|_| ())),
        }
    }
    // Least squares with a preconditioner, and an operator that is no matrix.
    let jacobi = Preconditioner::Jacobi.build_for_least_squares(&device, &a, None).unwrap().operator;
    let setup = Setup::new(Method::Lsqr { damp: 0.0 }, stopping()).with_preconditioner(jacobi.clone());
    let words = Solver::with(&matrix, setup.with_columns(2)).err().unwrap().to_string();
    assert!(words.contains("the preconditioner (Diagonal) takes one"), "{words}");
    let doubled: SharedOperator<f64> = matrix.clone().scaled(2.0).shared();
    let words =
        Solver::with(doubled, Setup::new(Method::Cg, stopping()).with_columns(2)).err().unwrap().to_string();
    assert!(words.contains("the operator (") && words.contains(") takes one"), "{words}");
}

/// The unknown of a column that is 0 is 0, whatever preconditions the others.
#[test]
fn unknowns_of_empty_columns_are_zero() {
    let device = Device::host();
    // Columns 3 and 7 are empty: one has no entry, the other zeros.
    let a = Csr::<f64>::from_rows(30, 10, |i, row| {
        for j in [i % 10, (i + 3) % 10, (i * i + 1) % 10] {
            if j != 3 && row.iter().all(|(k, _)| *k != j as u32) {
                let v = if j == 7 { 0.0 } else { 1.0 + ((i * 7 + j) % 5) as f64 };
                row.push((j as u32, v));
            }
        }
        row.sort_unstable_by_key(|(j, _)| *j);
    })
    .unwrap();
    let truth: Vec<f64> = (0..10).map(|j| if j == 3 || j == 7 { 0.0 } else { f64::from(j) - 4.0 }).collect();
    let b = Vector::from_slice(&device, &a.product(&truth).unwrap()).unwrap();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    let mut solved = 0;
    for method in [Method::Lsmr { damp: 0.0 }, Method::Lsqr { damp: 0.0 }, Method::Cgls { damp: 0.0 }, Method::Cgnr]
    {
        for which in Preconditioner::ALL.iter().filter(|which| which.takes_rectangles()) {
            let built = build_for(*which, &method, &device, &a, None).unwrap();
            assert_eq!(built.empty_columns, [3, 7], "{which}");
            assert!(
                built.why.contains("2 columns of the matrix are empty, the first is 3 (from 0)"),
                "{}",
                built.why
            );
            let setup = Setup::new(method, stopping()).with_preconditioner(built.operator);
            let mut x = Vector::zeros(&device, 10).unwrap();
            let report = Solver::with(&matrix, setup).unwrap().solve(&b, &mut x).unwrap();
            let x = x.to_vec().unwrap();
            assert!(report.converged(), "{method} {which}: {report}");
            assert_eq!([x[3], x[7]], [0.0; 2], "{method} {which}");
            assert!(x.iter().zip(&truth).all(|(x, y)| (x - y).abs() < 1e-5), "{method} {which}: {x:?}");
            solved += 1;
        }
    }
    assert!(solved >= 4 * 7, "{solved}");
    // A whole inverse needs all columns: the error says which is missing.
    let square = Csr::<f64>::from_triplets(3, 3, &[(0, 0, 1.0), (1, 0, 2.0), (1, 2, 1.0), (2, 2, 4.0)]).unwrap();
    for name in ["ilu0", "ilut", "spai"] {
        let which: Preconditioner = name.parse().unwrap();
        let words = which.build_for_least_squares(&device, &square, None).err().unwrap().to_string();
        assert!(words.contains("(row 1)") || words.contains("column 1"), "{name}: {words}");
    }
}

#[test]
fn systems_without_rows_or_columns_are_refused_in_words() {
    let device = Device::host();
    for (rows, cols) in [(0, 0), (0, 5), (5, 0)] {
        let a = Csr::<f64>::from_triplets(rows, cols, &[]).unwrap();
        let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
        for method in Method::ALL.iter().filter(|method| rows == cols || method.takes_rectangles()) {
            let mut x = Vector::zeros(&device, cols).unwrap();
            let b = Vector::from_slice(&device, &vec![1.0; rows]).unwrap();
            let solved = Solver::new(&matrix, *method, stopping()).and_then(|mut solver| solver.solve(&b, &mut x));
            match solved {
                // Nothing tells the unknowns, so that they are 0.
                Ok(_) => assert_eq!(x.to_vec().unwrap(), vec![0.0; cols], "{method} {rows} x {cols}"),
                Err(error) => {
                    let words = error.to_string();
                    let wanted = format!("a matrix of {rows} x {cols}: there is nothing to solve");
                    assert!(words.contains(&wanted) || !words.contains("script"), "{method}: {words}");
                    println!("{method} {rows} x {cols}: {words}");
                }
            }
        }
    }
    // b = 0 is answered by 0 at once, from any start.
    let a = gallery::poisson_2d::<f64>(3, 0.0).unwrap();
    let matrix = Matrix::with_transpose(&device, &a, Format::Csr).unwrap();
    for method in [Method::Cg, Method::Minres, Method::Gmres { restart: 4 }, Method::Lsqr { damp: 0.0 }] {
        let (b, mut x) = (Vector::zeros(&device, 9).unwrap(), Vector::zeros(&device, 9).unwrap());
        let report = Solver::new(&matrix, method, stopping()).unwrap().solve(&b, &mut x).unwrap();
        assert!(report.converged() && x.to_vec().unwrap() == [0.0; 9], "{method}: {report}");
    }
}
