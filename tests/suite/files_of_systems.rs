//! Files of matrices and vectors as people have them, by the programs: archives, marks, several right-hand sides, forms of answers, limits.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Output;
use std::time::Instant;

use crate::common::program;
use flate2::Compression;
use flate2::write::GzEncoder;
use residuum::io::{self, matrix_market, npy};
use residuum::sparse::gallery;
use residuum::{Csr, Result};
use serde_json::Value;
use zip::write::{SimpleFileOptions, ZipWriter};

fn run(name: &str, folder: &Path, args: &[&str]) -> Output {
    program(name).current_dir(folder).args(args).env("RESIDUUM_DEVICE", "host").output().unwrap()
}

fn solve(folder: &Path, args: &[&str]) -> Output {
    run("solve", folder, args)
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

/// The one line of a refusal.
fn refusal(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).trim().to_string();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn arrow(n: usize) -> Csr<f64> {
    Csr::from_rows(n, n, |i, row| match i {
        0 => row.extend((0..n).map(|j| (j as u32, if j == 0 { n as f64 } else { 1.0 }))),
        _ => row.extend([(0, 1.0), (i as u32, 4.0)]),
    })
    .unwrap()
}

/// Matrix, right-hand side and answer of one system, by files.
fn files(folder: &Path) -> (String, String) {
    let matrix = "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4\n2 1 1\n2 2 3\n3 2 1\n3 3 5\n";
    let rhs = "%%MatrixMarket matrix array real general\n3 1\n6\n10\n17\n";
    fs::write(folder.join("a.mtx"), matrix).unwrap();
    fs::write(folder.join("b.mtx"), rhs).unwrap();
    (matrix.into(), rhs.into())
}

fn is_answer(folder: &Path) {
    let x = npy::read(&folder.join("x.npy")).unwrap();
    assert!(x.data.iter().zip([1.0, 2.0, 3.0]).all(|(x, wanted)| (x - wanted).abs() < 1e-6), "{x:?}");
}

#[test]
fn archives_and_marks_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (matrix, rhs) = files(folder.path());
    let files = [("nos/nos.mtx", &matrix), ("nos/nos_b.mtx", &rhs), ("nos/nos_coord.mtx", &rhs)];
    let mut tar = tar::Builder::new(Vec::new());
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content.as_bytes()).unwrap();
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    let tar = tar.into_inner().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&tar).unwrap();
    fs::write(at("nos.tar.gz"), packed.finish().unwrap()).unwrap();
    fs::write(at("any.tar"), &tar).unwrap();
    fs::write(at("download.zip"), zip.finish().unwrap().into_inner()).unwrap();
    fs::write(at("mark.mtx"), format!("\u{feff}{matrix}")).unwrap();
    fs::write(at("mark_b.mtx"), format!("\u{feff}{rhs}")).unwrap();
    for (a, b) in [
        ("nos.tar.gz", "nos.tar.gz"),
        ("any.tar", "any.tar"),
        ("download.zip", "download.zip"),
        ("mark.mtx", "mark_b.mtx"),
        ("download.zip", "b.mtx"),
    ] {
        let output = solve(folder.path(), &[a, "--rhs", b, "--save", "x.npy"]);
        assert_eq!(output.status.code(), Some(0), "{a}: {output:?}");
        is_answer(folder.path());
        let output = run("reconstruct", folder.path(), &["--matrix", a, "--rhs", b, "--save", "x.npy"]);
        assert_eq!(output.status.code(), Some(0), "{a}: {output:?}");
    }
    for (start, command) in
        [(&b"BZh91AY&SY"[..], "bunzip2 packed.mtx"), (b"\xfd7zXZ\0\0", "unxz"), (b"\x28\xb5\x2f\xfd", "unzstd")]
    {
        fs::write(at("packed.mtx"), start).unwrap();
        for args in [&["packed.mtx"][..], &["a.mtx", "--rhs", "packed.mtx"]] {
            let said = refusal(&solve(folder.path(), args));
            assert!(said.contains("unpack it") && said.contains(command), "{said}");
        }
    }
}

#[test]
fn both_triangles_of_a_symmetric_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 4\n1 1 4\n2 1 1\n1 2 1\n2 2 4\n";
    fs::write(folder.path().join("a.mtx"), text).unwrap();
    let said = refusal(&solve(folder.path(), &["a.mtx"]));
    for words in ["a.mtx line 5", "line 4", "remove one triangle", "general in place of symmetric in line 1"] {
        assert!(said.contains(words), "{said}");
    }
    // The remedy is one.
    fs::write(folder.path().join("a.mtx"), text.replace("symmetric", "general")).unwrap();
    assert_eq!(solve(folder.path(), &["a.mtx"]).status.code(), Some(0));
}

/// Each kind of file from each, the transposed, pictures, and what cannot be.
#[test]
fn matrices_and_right_hand_sides_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let a = gallery::random::<f64>(40, 70, 300, 8).unwrap();
    matrix_market::write_matrix(&at("a.mtx"), &a).unwrap();
    let convert = |args: &[&str]| run("convert", folder.path(), args);
    for [from, to] in [["a.mtx", "a.npz"], ["a.npz", "a.petsc"], ["a.petsc", "b.mtx"]] {
        let output = convert(&[from, to]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("40 x 70, 300 entries, up to ") && said.contains(to), "{said}");
        assert_eq!(io::read_matrix::<f64>(&at(to), &mut |_, _| ()).unwrap(), a, "{from} to {to}");
    }
    let found = json(&convert(&["a.npz", "t.npz", "--transpose", "--picture", "t.png", "--json"]));
    assert_eq!([&found["rows"], &found["cols"], &found["nnz"]], [70, 40, 300]);
    assert_eq!(found["written"], serde_json::json!(["t.npz", "t.png"]));
    assert_eq!(io::read_matrix::<f64>(&at("t.npz"), &mut |_, _| ()).unwrap(), a.transpose());
    let mut picture =
        png::Decoder::new(std::io::BufReader::new(fs::File::open(at("t.png")).unwrap())).read_info().unwrap();
    let mut pixels = vec![0; picture.output_buffer_size().unwrap()];
    picture.next_frame(&mut pixels).unwrap();
    // Ten pixels along each side of a place: entries, and nothing between.
    let dark = pixels.iter().filter(|pixel| **pixel < 255).count();
    assert_eq!((picture.info().width, picture.info().height, dark), (400, 700, 300 * 100));
    // A name of the gallery, in single precision.
    assert_eq!(convert(&["poisson2d:9", "p.petsc", "--precision", "fp32"]).status.code(), Some(0));
    assert_eq!(
        io::read_matrix::<f32>(&at("p.petsc"), &mut |_, _| ()).unwrap(),
        gallery::poisson_2d(9, 0.0).unwrap()
    );
    // Right-hand sides keep their shape.
    io::write_array(&at("x.npy"), &[3, 7], &(0..21).map(f64::from).collect::<Vec<_>>()).unwrap();
    assert_eq!(convert(&["x.npy", "x.txt", "--rhs"]).status.code(), Some(0));
    assert_eq!(io::read_table(&at("x.txt"), 7).unwrap(), io::read_table(&at("x.npy"), 7).unwrap());
    for to in ["x.npz", "x.mtx"] {
        assert_eq!(convert(&["x.npy", to, "--rhs"]).status.code(), Some(0));
        assert_eq!(
            io::read_columns::<f64>(&at(to), 7).unwrap(),
            io::read_columns(&at("x.npy"), 7).unwrap(),
            "{to}"
        );
    }
    for (args, reason) in [
        (&["a.mtx", "a.npy"][..], "matrices are written as .mtx, .npz, .petsc or .dat"),
        (&["x.npy", "x.petsc", "--rhs"], "numbers are written as"),
        (&["x.npy", "y.mtx"], "this is a NumPy array; expected a matrix"),
        (&["none.mtx", "y.mtx"], "no such file, nor a name of the gallery"),
        (&["a.mtx", "a.mtx"], "is an input"),
        (&["a.mtx", "a.npz", "--no-overwrite"], "exists"),
        (&["a.mtx", "--picture", "a.jpg"], "pictures are written as .png"),
    ] {
        let output = convert(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{args:?}: {error}");
        assert!(error.contains(reason), "{args:?}: {error}");
    }
    assert_eq!(io::read_matrix::<f64>(&at("a.mtx"), &mut |_, _| ()).unwrap(), a, "nothing was overwritten");
}

/// Columns, or rows if only they fit; with preconditioners that take one at a time too.
#[test]
fn several_right_hand_sides_are_solved() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let a = gallery::poisson_2d::<f64>(5, 0.3).unwrap();
    matrix_market::write_matrix(&at("a.mtx"), &a).unwrap();
    let truth: Vec<Vec<f64>> =
        (0..6).map(|c| (0..25).map(|i| f64::from((i * (c + 2)) % 9) - 3.0).collect()).collect();
    let rhs: Vec<Vec<f64>> = truth.iter().map(|x| a.product(x).unwrap()).collect();
    let check = |path: &str, count: usize, by_rows: bool| {
        let found: io::FileColumns<f64> = io::read_columns(&at(path), 25).unwrap();
        assert_eq!((found.vectors.len(), found.by_rows), (count, by_rows));
        for (x, wanted) in found.vectors.iter().zip(&truth) {
            assert!(x.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 1e-5), "{path}");
        }
    };
    io::write_columns(&at("b6.npy"), &rhs, false).unwrap();
    io::write_columns(&at("b2.mtx"), &rhs[..2], false).unwrap();
    io::write_columns(&at("b2.npz"), &rhs[..2], false).unwrap();
    io::write_columns(&at("rows.npy"), &rhs[..4], true).unwrap();
    for extra in [
        &["--preconditioner", "none"][..],
        &["--preconditioner", "jacobi"],
        &["--preconditioner", "block-jacobi=4"],
        &["--preconditioner", "fsai"],
        &["--preconditioner", "chebyshev"],
        &["--preconditioner", "ic0"],
        &["--preconditioner", "ssor", "--order", "rcm", "--scale"],
        &["--method", "lsqr", "--preconditioner", "jacobi"],
        &["--method", "gmres"],
        &[],
    ] {
        let args = ["a.mtx", "--rhs", "b6.npy", "--save", "x.npy", "--json"];
        let output = solve(folder.path(), &[&args[..], extra].concat());
        assert_eq!(output.status.code(), Some(0), "{extra:?}: {output:?}");
        let found = json(&output);
        assert_eq!(found["right_hand_sides"], 6, "{extra:?}");
        let columns = found["columns"].as_array().unwrap();
        assert_eq!(columns.len(), 6);
        for column in columns {
            assert!(
                column["converged"] == true && column["relative_residual"].as_f64().unwrap() <= 1e-8,
                "{column}"
            );
            assert!(column["iterations"].as_u64() <= found["iterations"].as_u64(), "the worst is told first");
        }
        assert_eq!(npy::read(&at("x.npy")).unwrap().shape, [25, 6]);
        check("x.npy", 6, false);
    }
    // The text has a line for each.
    let output = solve(folder.path(), &["a.mtx", "--rhs", "b2.mtx", "--save", "x.mtx", "--preconditioner", "ic0"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for words in ["result      1: converged", "            2: converged", "2 right-hand sides, one after another"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    check("x.mtx", 2, false);
    let output = solve(folder.path(), &["a.mtx", "--rhs", "b2.npz", "--save", "x.npz"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    check("x.npz", 2, false);
    let output = solve(folder.path(), &["a.mtx", "--rhs", "rows.npy", "--save", "x.npy"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("4 right-hand sides, after the first up to 4 at once")
    );
    check("x.npy", 4, true);
    // One of them has no answer within the limit, and that decides.
    let output = solve(folder.path(), &["a.mtx", "--rhs", "b6.npy", "--iterations", "2", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["columns"].as_array().unwrap().len(), 6);
    // The other program reads and writes the same.
    for (rhs, count, by_rows) in [("b6.npy", 6, false), ("rows.npy", 4, true), ("b2.mtx", 2, false)] {
        let args = ["--matrix", "a.mtx", "--rhs", rhs, "--save", "y.npy", "--rtol", "1e-9", "--precision", "fp64"];
        let output = run("reconstruct", folder.path(), &args);
        assert!(output.status.code() < Some(2), "{output:?}");
        check("y.npy", count, by_rows);
    }
    let said = refusal(&solve(folder.path(), &["a.mtx", "--rhs", "b6.npy", "--compare"]));
    assert!(said.contains("6 right-hand sides"), "{said}");
    npy::write(&at("odd.npy"), &[24, 2], &[1.0; 48]).unwrap();
    let said = refusal(&solve(folder.path(), &["a.mtx", "--rhs", "odd.npy"]));
    assert!(said.contains("odd.npy: it holds 24 x 2 numbers, and the system has 25 rows"), "{said}");
}

#[test]
fn answers_are_written_as_they_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    files(folder.path());
    for (name, start) in [
        ("x.npy", &b"\x93NUMPY"[..]),
        ("x.npz", b"PK\x03\x04"),
        ("x.mtx", b"%%MatrixMarket matrix array real general\n3 1\n"),
        ("x.txt", b""),
        ("x", b"\x93NUMPY"),
    ] {
        for (program, args) in [
            ("solve", ["a.mtx", "--rhs", "b.mtx"].as_slice()),
            ("reconstruct", &["--matrix", "a.mtx", "--rhs", "b.mtx"]),
        ] {
            let output = run(program, folder.path(), &[args, &["--save", name]].concat());
            assert!(output.status.code() < Some(2), "{program} {name}: {output:?}");
            assert!(fs::read(at(name)).unwrap().starts_with(start), "{program} {name}");
            fs::remove_file(at(name)).unwrap();
        }
    }
    for name in ["x.mat", "x.h5", "x.csv", "x.npy.gz"] {
        for (program, args) in [
            ("solve", &["a.mtx", "--save", name][..]),
            ("reconstruct", &["--matrix", "a.mtx", "--rhs", "b.mtx", "--save", name]),
            ("reconstruct", &["--save", name]),
        ] {
            let said = refusal(&run(program, folder.path(), args));
            assert!(said.contains(".npy, .npz, .mtx or .txt") && !at(name).exists(), "{said}");
        }
    }
    // Text has two dimensions: several pictures have three.
    let sinograms: Vec<f64> = (0..2 * 6 * 8).map(|k| f64::from(k % 8)).collect();
    npy::write(&at("s.npy"), &[2, 6, 8], &sinograms).unwrap();
    let args = ["--input", "s.npy", "--size", "8", "--iterations", "2", "--arc", "180", "--save", "p.mtx"];
    let said = refusal(&run("reconstruct", folder.path(), &args));
    assert!(said.contains("3 dimensions"), "{said}");
}

/// A line for each candidate as it is done, each within its time.
#[test]
fn a_comparison_tells_of_each_as_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let output = solve(folder.path(), &["poisson2d:20", "--compare"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("up to 60 s for each (--time-limit)"), "{text}");
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no '{words}' in {text}"));
    assert!(
        place("preconditioner       set-up s") < place("\njacobi") && place("\njacobi") < place("fastest: "),
        "{text}"
    );
    // A set-up that takes longer than its time ends, and the next ones follow.
    matrix_market::write_matrix(&folder.path().join("arrow.mtx"), &arrow(40_000)).unwrap();
    let clock = Instant::now();
    let output = solve(folder.path(), &["arrow.mtx", "--compare", "--method", "cg", "--time-limit", "0.05"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("up to 0.05 s for each") && text.contains("was not made within the time limit"),
        "{text}"
    );
    assert!(clock.elapsed().as_secs() < 60, "{:?}", clock.elapsed());
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("fastest: ") || last == "no candidate converged", "{text}");
}

/// Set-ups count, and end.
#[test]
fn the_time_limit_holds_for_set_ups() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    matrix_market::write_matrix(&folder.path().join("arrow.mtx"), &arrow(60_000))?;
    for which in ["nonsymmetric-ainv=0.0001:2", "sainv=0.0001:2"] {
        let clock = Instant::now();
        let args = ["arrow.mtx", "--method", "gmres", "--preconditioner", which, "--time-limit", "1"];
        let output = solve(folder.path(), &args);
        let said = refusal(&output);
        assert!(said.contains(&format!("the preconditioner {which} was not made within the time limit")), "{said}");
        assert!(clock.elapsed().as_secs() < 30, "{which}: {:?}", clock.elapsed());
    }
    Ok(())
}

#[test]
fn what_is_wrong_with_the_input_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    files(folder.path());
    for (rows, cols) in [(0, 0), (0, 4), (4, 0)] {
        matrix_market::write_matrix(&at("none.mtx"), &Csr::<f64>::from_triplets(rows, cols, &[]).unwrap()).unwrap();
        for method in ["auto", "cg", "lsqr"] {
            let said = refusal(&solve(folder.path(), &["none.mtx", "--method", method]));
            let wanted = format!("matrix: a matrix of {rows} x {cols}: there is nothing to solve");
            assert!(said.contains(&wanted), "{said}");
        }
    }
    npy::write(&at("nan.npy"), &[3], &[1.0, f64::NAN, 2.0]).unwrap();
    for method in ["auto", "lsqr"] {
        let said = refusal(&solve(folder.path(), &["a.mtx", "--rhs", "nan.npy", "--method", method]));
        assert!(
            said.contains("the right-hand side holds a value that is not finite at index 1 (from 0)"),
            "{said}"
        );
    }
    // Numbers of parts that would take 34 GB, and a stream without an end.
    fs::write(at("parts"), "0\n4294967294\n1\n").unwrap();
    let args = ["a.mtx", "--preconditioner", "block-jacobi", "--partition"];
    let said = refusal(&solve(folder.path(), &[&args[..], &["parts"]].concat()));
    assert!(said.contains("parts line 2: part 4294967294 of 3 rows"), "{said}");
    #[cfg(target_os = "linux")]
    {
        std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
        let said = refusal(&solve(folder.path(), &[&args[..], &["zero"]].concat()));
        assert!(said.contains("longer than"), "{said}");
        let args = ["--input", "s.npy", "--geometry", "zero.toml"];
        std::os::unix::fs::symlink("/dev/zero", at("zero.toml")).unwrap();
        npy::write(&at("s.npy"), &[4, 4], &[1.0; 16]).unwrap();
        let said = refusal(&run("reconstruct", folder.path(), &args));
        assert!(said.contains("has more than"), "{said}");
    }
    // A column without entries: an answer, and a word.
    let text = "%%MatrixMarket matrix coordinate real general\n4 3 4\n1 1 1\n2 3 2\n3 1 1\n4 3 1\n";
    fs::write(at("hole.mtx"), text).unwrap();
    for which in ["jacobi", "ic0", "sainv"] {
        let args = ["hole.mtx", "--method", "lsmr", "--preconditioner", which, "--save", "x.npy"];
        let output = solve(folder.path(), &args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.contains("column 1 of the matrix (from 0) is empty"), "{text}");
        let x = npy::read(&at("x.npy")).unwrap().data;
        assert!(x[1] == 0.0 && (x[0] - 1.0).abs() < 1e-6 && (x[2] - 1.0).abs() < 1e-6, "{which}: {x:?}");
    }
}
