//! `examples/solve` as a user runs it: answers, advice, exit codes, plots.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::program;
use residuum::Csr;
use residuum::io::{matrix_market, npy};
use serde_json::Value;

fn solve(folder: &Path, args: &[&str]) -> Output {
    program("solve").current_dir(folder).args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

/// Writes a dense matrix as a file.
fn write(path: &Path, rows: &[&[f64]]) {
    let a: Csr<f64> = Csr::from_rows(rows.len(), rows[0].len(), |i, row| {
        row.extend((0..).zip(rows[i]).filter(|(_, v)| **v != 0.0).map(|(j, v)| (j, *v)));
    })
    .unwrap();
    matrix_market::write_matrix(path, &a).unwrap();
}

#[test]
fn a_gallery_matrix_is_solved_and_plotted() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["poisson2d:40", "--device", "host", "--plot", "c.png", "--save", "x.npy"];
    let output = solve(folder.path(), &args);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text} {}", String::from_utf8_lossy(&output.stderr));
    for word in ["device", "advice", "advice      cg: symmetric", "converged after", "|x - 1|", "wrote       c.png"]
    {
        assert!(text.contains(word), "no '{word}' in {text}");
    }
    let plot = std::fs::read(folder.path().join("c.png")).unwrap();
    assert!(plot.starts_with(&[0x89, b'P', b'N', b'G']) && plot.len() > 5000);
    let x = npy::read(&folder.path().join("x.npy")).unwrap();
    assert_eq!(x.shape, [1600]);
    assert!(x.data.iter().all(|v| (v - 1.0).abs() < 1e-5));
    let output =
        solve(folder.path(), &["poisson2d:20", "--device", "host", "--plot", "c.svg", "--method", "minres"]);
    assert_eq!(output.status.code(), Some(0));
    let plot = std::fs::read_to_string(folder.path().join("c.svg")).unwrap();
    assert!(plot.contains("iteration") && plot.contains("<polyline"));
}

#[test]
fn a_preconditioner_is_chosen_by_the_matrix() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("uneven.mtx"), &[&[9.0, 1.0, 0.0], &[1.0, 2.0, 0.5], &[0.0, 0.5, 4.0]]);
    for (matrix, chosen) in [("poisson2d:9", "none"), ("uneven.mtx", "jacobi")] {
        let output = solve(folder.path(), &[matrix, "--device", "host", "--json"]);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&found["preconditioner"], found["tried"].as_array().map(Vec::len)),
            (&chosen.into(), Some(1)),
            "{found}"
        );
    }
}

#[test]
#[cfg_attr(not(feature = "metis"), ignore = "partitions need the feature metis")]
fn parts_are_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let found = |arguments: &[&str]| {
        let fixed = ["poisson2d:20", "--device", "host", "--json", "--preconditioner"];
        let output = solve(folder.path(), &[&fixed, arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let value = json(&output);
        (value["preconditioner_entries"].as_u64().unwrap(), value["iterations"].as_u64().unwrap())
    };
    let by_metis = found(&["bainv=4", "--save-partition", "four.part"]);
    let lines = fs::read_to_string(folder.path().join("four.part")).unwrap();
    assert_eq!(lines.lines().count(), 400);
    assert_eq!(found(&["bainv", "--partition", "four.part"]), by_metis);
    // Rows of the file, whatever order they are solved in: the same parts and so the same number of iterations, but for rounding.
    let (_, iterations) = found(&["bainv=4", "--partition", "four.part", "--order", "rcm"]);
    assert!(iterations.abs_diff(by_metis.1) <= 1, "{iterations} {by_metis:?}");
    for (arguments, words) in [
        (&["bainv=5", "--partition", "four.part"][..], "bainv=5, but a partition in 4 parts"),
        (&["jacobi", "--partition", "four.part"], "--partition"),
        (&["bainv", "--partition", "short.part"], "rows of a partition: expected 400, found 1"),
        (&["bainv", "--partition", "none.part"], "none.part"),
    ] {
        fs::write(folder.path().join("short.part"), "0\n").unwrap();
        let output =
            solve(folder.path(), &[&["poisson2d:20", "--device", "host", "--preconditioner"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.trim().lines().count() == 1, "{said}");
    }
}

#[test]
fn every_method_solves_what_suits_it() {
    let folder = tempfile::tempdir().unwrap();
    let skew: &[&[f64]] = &[&[4.0, 1.0, 0.0], &[-1.0, 5.0, 2.0], &[0.5, -1.0, 6.0]];
    write(&folder.path().join("skew.mtx"), skew);
    for (matrix, extra) in [
        ("poisson2d:12", &["--method", "cg", "--preconditioner", "none"][..]),
        ("poisson2d:12", &["--method", "steepest-descent"]),
        ("poisson2d:12", &["--method", "chebyshev", "--eigenvalues", "0.1,8", "--preconditioner", "none"]),
        ("poisson2d:12", &["--method", "stationary", "--precision", "fp32"]),
        ("poisson2d:12", &["--method", "stationary", "--preconditioner", "gauss-seidel"]),
        ("poisson2d:12", &["--method", "stationary", "--preconditioner", "sor", "--relaxation", "1.5"]),
        ("poisson2d:12", &["--method", "cg", "--preconditioner", "ssor", "--ordering", "rows"]),
        ("poisson2d:12", &["--scale"]),
        ("skew.mtx", &[]),
        ("skew.mtx", &["--method", "bicgstab"]),
        ("skew.mtx", &["--method", "gmres", "--restart", "2"]),
        ("skew.mtx", &["--method", "lsqr"]),
        ("random:60:20:400", &["--method", "cgls"]),
        ("random:60:20:400", &["--method", "cgnr"]),
        ("random:60:20:400", &["--method", "lsqr", "--preconditioner", "jacobi"]),
        ("random:60:20:400", &["--method", "lsmr", "--preconditioner", "fsai"]),
        ("random:60:20:400", &["--method", "cgnr", "--preconditioner", "sainv=0.01"]),
        ("random:20:60:400", &["--method", "cgne"]),
        ("random:60:20:400", &["--scale", "--precision", "fp32"]),
    ] {
        let output = solve(folder.path(), &[&[matrix, "--device", "host", "--json"], extra].concat());
        assert_eq!(output.status.code(), Some(0), "{matrix} {extra:?}: {output:?}");
        let value = json(&output);
        let residual = value["relative_residual"].as_f64().unwrap();
        assert!(residual < 2e-5, "{matrix} {extra:?}: {residual}");
        assert!(value["history"].is_array() && value["objection"].is_null(), "{value}");
        for key in ["device", "method", "preconditioner", "advice", "iterations", "stop", "why_format", "tuning"] {
            assert!(!value[key].is_null(), "{key} is missing: {value}");
        }
    }
}

/// Unknowns are those of the file, in whatever order they are solved for.
#[test]
fn an_order_leaves_the_unknowns_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder.path().join("a.mtx"),
        &[&[4.0, 0.0, 0.0, 1.0], &[0.0, 3.0, 1.0, 0.0], &[0.0, 1.0, 5.0, 2.0], &[1.0, 0.0, 2.0, 6.0]],
    );
    // A (1, 2, 3, 4).
    npy::write(&folder.path().join("b.npy"), &[4], &[8.0, 9.0, 25.0, 31.0]).unwrap();
    for order in ["natural", "rcm", "amd", "nd", "colours"] {
        let args = ["a.mtx", "--rhs", "b.npy", "--preconditioner", "ic0", "--scale", "--json", "--save", "x.npy"];
        let found = json(&solve(folder.path(), &[&args[..], &["--order", order]].concat()));
        assert_eq!((found["order"].as_str(), found["stop"].as_str()), (Some(order), Some("Converged")), "{found}");
        let x = npy::read(&folder.path().join("x.npy")).unwrap();
        assert!(
            x.data.iter().zip([1.0, 2.0, 3.0, 4.0]).all(|(x, wanted)| (x - wanted).abs() < 1e-6),
            "{order} {x:?}"
        );
    }
    assert_eq!(solve(folder.path(), &["a.mtx", "--order", "sideways"]).status.code(), Some(2));
}

#[test]
fn what_cannot_work_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let singular: &[&[f64]] = &[&[1.0, 1.0, 0.0], &[1.0, 1.0, 0.0], &[0.0, 0.0, 1.0]];
    write(&folder.path().join("singular.mtx"), singular);
    matrix_market::write_matrix(
        &folder.path().join("b.mtx"),
        &Csr::from_triplets(3, 1, &[(0, 0, 1.0), (1, 0, 2.0), (2, 0, 1.0)]).unwrap(),
    )
    .unwrap();
    let run = |extra: &[&str]| {
        let output = solve(folder.path(), &[&["singular.mtx", "--device", "host", "--json"], extra].concat());
        (output.status.code(), json(&output))
    };
    // b is not in the range: MINRES ends with the least residual, and no other method may call that converged.
    for method in ["auto", "cg", "minres", "gmres", "bicgstab"] {
        // A solve that ends well asks for no examination.
        let (code, value) = run(&["--rhs", "b.mtx", "--method", method, "--iterations", "50", "--examine"]);
        let least_squares = matches!(method, "auto" | "minres");
        assert_eq!(code, Some(if least_squares { 0 } else { 1 }), "{method}: {value}");
        assert!(!least_squares || value["stop"].as_str() == Some("LeastSquares"), "{method}: {value}");
        assert!(value["warnings"][0].as_str().unwrap().contains("numerically singular"), "{value}");
        assert!(!value["explanation"].is_null(), "{value}");
    }
    let indefinite: &[&[f64]] = &[&[1.0, 3.0], &[3.0, 1.0]];
    write(&folder.path().join("indefinite.mtx"), indefinite);
    let output = solve(folder.path(), &["indefinite.mtx", "--device", "host", "--method", "cg"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("minres: symmetric, not definite") && text.contains("cg wants a positive definite"),
        "{text}"
    );
    let output = solve(folder.path(), &["indefinite.mtx", "--device", "host"]);
    assert_eq!(output.status.code(), Some(0), "minres solves it");
}

/// A named method needs no more than a quick examination, unless the solve fails or more is asked for.
#[test]
fn a_named_method_needs_a_quick_examination() {
    let folder = tempfile::tempdir().unwrap();
    let run = |extra: &[&str]| {
        let args = [&["poisson2d:20", "--device", "host", "--json"], extra].concat();
        json(&solve(folder.path(), &args))
    };
    for (extra, known) in [
        (&["--method", "cg"][..], false),
        (&["--method", "cg", "--examine"], true),
        (&["--method", "cg", "--iterations", "3"], true),
        (&[], true),
    ] {
        let found = run(extra);
        assert_eq!(found["condition_at_least"].is_number(), known, "{found}");
        assert_eq!(found["preconditioner"].as_str(), Some("none"), "{found}");
        let seconds = found["answer_seconds"].as_f64().unwrap();
        assert!(seconds > 0.0 && seconds < found["seconds"]["total"].as_f64().unwrap(), "{found}");
    }
    // A preconditioner of its own for what is slow: a Laplacian in one direction.
    let rows = 3000;
    let a = Csr::from_rows(rows, rows, |i, row| {
        for j in i.saturating_sub(1)..(i + 2).min(rows) {
            row.push((j as u32, if i == j { 2.0 } else { -1.0 }));
        }
    });
    matrix_market::write_matrix(&folder.path().join("line.mtx"), &a.unwrap()).unwrap();
    matrix_market::write_matrix(
        &folder.path().join("b.mtx"),
        &Csr::from_rows(rows, 1, |_, row| row.push((0, 1.0))).unwrap(),
    )
    .unwrap();
    let found = json(&solve(
        folder.path(),
        &["line.mtx", "--rhs", "b.mtx", "--method", "cg", "--device", "host", "--json"],
    ));
    assert_eq!(found["stop"].as_str(), Some("Converged"), "{found}");
    assert_eq!(found["preconditioner"].as_str(), Some("adaptive-fsai=10:2"), "{found}");
    assert!(found["tried"][0].as_str().unwrap().contains("none: too slow after 150 iterations"), "{found}");
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("zero.mtx"), &[&[0.0, 1.0], &[1.0, 1.0]]);
    for (args, words) in [
        (&["nowhere.mtx"][..], "no such file"),
        (&["poisson2d:9", "--method", "magic"], "'magic' is none of"),
        (&["poisson2d:9", "--rhs", "zero.mtx"], "zero.mtx"),
        (&["poisson2d:9", "--method", "cg", "--damp", "1"], "cg has no damping"),
        (&["poisson2d:9", "--method", "stationary", "--damp", "1"], "stationary has no damping"),
        (&["poisson2d:9", "--method", "sirt"], "takes no negative entries"),
        (&["random:9:5:20", "--method", "sirt", "--omega", "2"], "omega"),
        (&["poisson2d:9", "--method", "chebyshev"], "--eigenvalues"),
        (&["poisson2d:9", "--method", "gmres", "--restart", "0"], "restart"),
        (&["poisson2d:9", "--plot", "nowhere/c.png"], "its folder does not exist"),
        (&["poisson2d:9", "--time-limit=-1"], "time-limit"),
        (&["random:9:5:20", "--method", "cg"], "square"),
        (&["zero.mtx", "--preconditioner", "jacobi"], "no Jacobi preconditioner"),
        (
            &["poisson2d:9", "--preconditioner", "sor", "--relaxation", "2"],
            "--relaxation: 2 is not above 0 and below 2",
        ),
        (&["poisson2d:9", "--preconditioner", "jacobi", "--relaxation", "1.5"], "it changes nothing"),
        (&["zero.mtx", "--preconditioner", "ssor"], "nothing to sweep with"),
        (&["poisson2d:9", "--device", "no such thing"], "no such thing"),
    ] {
        let device: &[&str] = if args.contains(&"--device") { &[] } else { &["--device", "host"] };
        let output = solve(folder.path(), &[args, device].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(words) && text.trim().lines().count() == 1, "{args:?}: {text}");
    }
}
