//! The programs lose nothing: outputs are checked before the work, inputs and files of others are never written over, what changes
//! nothing is refused, and what looks wrong is said.

use std::process::{Output, Stdio};

use crate::common::{self, program, refused, run, words};
use residuum::imaging::{Beam, Noise, Phantom, Scanner};
use residuum::io::{matrix_market, npy, npz};
use residuum::sparse::gallery;
use residuum::{BackendKind, Csr, Precision};
use serde_json::Value;

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", words(output)))
}

/// `a.mtx`, `b.npy` (4 numbers), a scan of 20 x 16 and `notes.txt`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    matrix_market::write_matrix(&at("a.mtx"), &gallery::poisson_2d::<f64>(2, 0.0).unwrap()).unwrap();
    npz::write_matrix(&at("a.npz"), &gallery::poisson_2d::<f64>(2, 0.0).unwrap()).unwrap();
    npy::write(&at("b.npy"), &[4], &[1.0, 2.0, 3.0, 4.0f64]).unwrap();
    npy::write(&at("column.npy"), &[4, 1], &[1.0, 2.0, 3.0, 4.0f64]).unwrap();
    let scan = scan();
    npy::write(&at("s.npy"), &[20, 16], &scan).unwrap();
    std::fs::write(at("notes.txt"), "precious").unwrap();
    folder
}

fn scanner() -> Scanner {
    let angles = (0..20).map(|k| 9.0 * f64::from(k)).collect();
    Scanner { beam: Beam::Parallel, pixels: 16, pitch: 0.125, offset: 0.0, angles }
}

/// Line integrals of the plate, in the unit of the detector's pitch.
fn scan() -> Vec<f64> {
    Phantom::plate().scan(&scanner(), 2.0, Noise { photons: f64::INFINITY, gain: 0.0, seed: 1 }).unwrap().sinogram
}

const HOST: [&str; 2] = ["--device", "host"];

#[test]
fn inputs_are_never_written_over() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    #[cfg(unix)]
    std::os::unix::fs::symlink(at("a.mtx"), at("link.npy")).unwrap();
    std::fs::hard_link(at("b.npy"), at("hard.npy")).unwrap();
    let before: Vec<Vec<u8>> = ["a.mtx", "b.npy", "s.npy"].map(|name| std::fs::read(at(name)).unwrap()).into();
    let solve =
        |args: &[&str], part: &str| refused("solve", folder.path(), &[&["a.mtx"], args, &HOST].concat(), part);
    solve(&["--save", "a.mtx"], "--save: a.mtx is an input");
    solve(&["--rhs", "b.npy", "--save", "b.npy"], "is an input");
    solve(&["--rhs", "b.npy", "--save", "hard.npy"], "is an input");
    solve(&["--rhs", "b.npy", "--save", "./b.npy"], "is an input");
    #[cfg(unix)]
    solve(&["--save", "link.npy"], "is an input");
    solve(&["--plot", "x.png", "--save", "x.png"], "--save: x.png is that of --plot too");
    solve(&["--plot", "a.mtx"], "is an input");
    let reconstruct = |args: &[&str], part: &str| {
        let all = [args, &["--input", "s.npy", "--size", "8", "--iterations", "2"], &HOST].concat();
        refused("reconstruct", folder.path(), &all, part);
    };
    reconstruct(&["--save", "s.npy"], "is an input");
    reconstruct(&["--output", "x.png", "--save", "x.png"], "is that of --output too");
    reconstruct(&["--save", "reconstruction.png"], "is that of --output too");
    reconstruct(&["--output", "x.jpg"], "pictures are written as .png");
    reconstruct(&["--segment", "x.png"], "pictures are written as .npy");
    reconstruct(&["--segment", "s.npy"], "is an input");
    reconstruct(&["--save", "x.npy", "--segment", "x.npy"], "is that of --save too");
    reconstruct(&["--keep", "90"], "'90' is not two numbers of degrees");
    reconstruct(&["--keep", "0:nan"], "is not two numbers of degrees");
    reconstruct(&["--keep", "90:0"], "90 is above 0");
    reconstruct(&["--keep", "181:200"], "no angle lies from 181 to 200; the scan has those from 0 to 171");
    reconstruct(&["--classes", "3"], "it changes nothing without --segment or --truth");
    reconstruct(&["--classes", "17", "--segment", "c.npy"], "17 is not between 2 and 16");
    reconstruct(&["--truth", "s.npy"], "is no class");
    reconstruct(&["--truth", "b.npy"], "a picture has 2");
    reconstruct(&["--truth", "notes.txt"], "notes.txt");
    reconstruct(
        &["--method", "lsqr"],
        "lsqr reconstructs no images; cgnr, fista, pdhg, sirt, sart, mlem, mrnsd and nnfcgls do",
    );
    reconstruct(&["--support", "disc"], "it changes nothing for cgnr");
    reconstruct(&["--method", "pdhg", "--support", "b.npy"], "numbers for a picture of 8 x 8");
    reconstruct(&["--method", "pdhg", "--support", "none.npy"], "none.npy");
    reconstruct(&["--method", "pdhg", "--support", "s.npy", "--save", "s.npy"], "is an input");
    reconstruct(&["--method", "fista", "--regularizer", "tv=1"], "fista has no such term");
    reconstruct(&["--method", "sirt", "--regularizer", "tikhonov=1"], "sirt has no such term");
    reconstruct(&["--method", "sirt", "--omega", "2.5"], "omega");
    reconstruct(
        &["--method", "fista", "--omega", "1"],
        "--omega: it changes nothing without --method sirt or sart",
    );
    reconstruct(&["--method", "sirt", "--subsets", "4"], "--subsets: it changes nothing without --method sart");
    reconstruct(&["--method", "sart", "--subsets", "0"], "0 is not between 1 and 20");
    reconstruct(&["--method", "sart", "--subsets", "21"], "21 is not between 1 and 20");
    reconstruct(&["--method", "pdhg", "--regularizer", "smooth=1"], "pdhg has no such term");
    reconstruct(&["--regularizer", "directional=1"], "cgnr has no such term");
    reconstruct(&["--method", "pdhg", "--regularizer", "directional=1@x"], "is none of tikhonov=W");
    reconstruct(&["--weight", "auto", "--regularizer", "tikhonov=1"], "tikhonov has a weight of its own");
    reconstruct(&["--weight", "auto", "--plot", "x.jpg"], "pictures are written as .png and .svg");
    reconstruct(&["--weight", "auto", "--plot", "reconstruction.png"], "is that of --output too");
    reconstruct(&["--polynomial", "0,1e308,1e308"], "not finite");
    // Readings of something that is wider than the detector.
    npy::write(&at("ones.npy"), &[20, 16], &[1.0; 320]).unwrap();
    let inside = |args: &[&str], part: &str| {
        refused("reconstruct", folder.path(), &[args, &["--input", "ones.npy"], &HOST].concat(), part);
    };
    inside(&["--background"], "no reading lies between -0.1 and 0.1");
    inside(&["--method", "pdhg", "--support", "disc"], "no disc: too few different projections");
    let after: Vec<Vec<u8>> = ["a.mtx", "b.npy", "s.npy"].map(|name| std::fs::read(at(name)).unwrap()).into();
    assert!(before == after && !at("x.png").exists() && !at("reconstruction.png").exists());
}

/// A picture that cannot be cut into classes is saved all the same.
#[test]
fn what_fails_in_the_end_keeps_nothing_from_being_saved() {
    let folder = folder();
    let flat = ["--lower", "5", "--upper", "5", "--size", "8", "--iterations", "2", "--device", "host"];
    let cut = ["--input", "s.npy", "--save", "x.npy", "--segment", "c.npy"];
    refused(
        "reconstruct",
        folder.path(),
        &[&cut[..], &flat].concat(),
        "2 for a picture of 1 different grey values",
    );
    let at = |name: &str| folder.path().join(name);
    assert!(at("x.npy").exists() && at("reconstruction.png").exists() && !at("c.npy").exists());
}

#[test]
fn what_cannot_be_written_is_said_before_the_work() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("d")).unwrap();
    let small = ["--size", "16", "--iterations", "2", "--device", "host"];
    for (args, part) in [
        (&["--output", "d"][..], "it is a folder"),
        (&["--save", "d"], "it is a folder"),
        (&["--reference", "absent.npy", "--save", "x.npy"], "absent.npy"),
        (&["--reference", "notes.txt", "--save", "x.npy"], "notes.txt"),
        (&["--reference", "b.npy", "--save", "x.npy"], "square"),
    ] {
        refused("reconstruct", folder.path(), &[&small[..], args].concat(), part);
        assert!(!folder.path().join("reconstruction.png").exists(), "{args:?}");
    }
    // A picture that is not written does not matter.
    std::fs::create_dir(folder.path().join("reconstruction.png")).unwrap();
    let plain = ["--matrix", "a.mtx", "--rhs", "b.npy", "--save", "x.npy", "--device", "host", "--iterations", "3"];
    let output = run("reconstruct", folder.path(), &plain);
    assert!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir(folder.path().join("reconstruction.png")).unwrap();
    npy::write(&folder.path().join("nan.npy"), &[2, 2], &[1.0, f64::NAN, 0.0, 1.0]).unwrap();
    npy::write::<f64>(&folder.path().join("none.npy"), &[0, 0], &[]).unwrap();
    refused("reconstruct", folder.path(), &[&small[..], &["--reference", "nan.npy"]].concat(), "not finite");
    refused("reconstruct", folder.path(), &[&small[..], &["--reference", "none.npy"]].concat(), "at least");
    refused("solve", folder.path(), &["a.mtx", "--save", "d", "--device", "host"], "it is a folder");
    refused("tune", folder.path(), &["--plot", "d", "--budget", "0s", "--file", "t.toml"], "it is a folder");
}

/// A reader that has gone ends no work.
#[test]
fn a_closed_pipe_keeps_nothing_from_being_saved() {
    let folder = folder();
    for (name, args) in [
        ("solve", &["a.mtx", "--save", "x.npy", "--device", "host"][..]),
        ("solve", &["a.mtx", "--save", "x.npy", "--device", "host", "--json"]),
        ("reconstruct", &["--size", "16", "--iterations", "2", "--save", "x.npy", "--device", "host"]),
        ("devices", &[]),
    ] {
        let mut command = program(name);
        command.current_dir(folder.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name} {args:?}");
        let saved = folder.path().join("x.npy");
        assert!(name == "devices" || saved.exists(), "{name} {args:?}");
        let _ = std::fs::remove_file(saved);
    }
}

#[test]
fn options_that_change_nothing_are_refused() {
    let folder = folder();
    let matrix = ["--matrix", "a.mtx", "--rhs", "b.npy", "--device", "host"];
    for (args, part) in [
        (&["--output", "x.png"][..], "--output: it changes nothing"),
        (&["--arc", "90"], "--arc: it changes nothing"),
        (&["--angles", "3"], "--angles"),
        (&["--size", "3"], "--size"),
        (&["--reference", "b.npy"], "--reference"),
    ] {
        refused("reconstruct", folder.path(), &[&matrix[..], args].concat(), part);
    }
    for (args, part) in [
        (&["--arc", "90"][..], "--arc: it changes nothing for the simulated scan"),
        (&["--pitch", "2"], "--pitch"),
        (&["--input", "a.npz", "--geometry", "parallel"], "save it by np.save"),
        (&["--input", "s.npy", "--source-origin", "3", "--source-detector", "5"], "for a parallel beam"),
    ] {
        refused("reconstruct", folder.path(), &[args, &HOST].concat(), part);
    }
    for (args, part) in [
        (&["--omega", "0.5"][..], "--omega: it changes nothing for cg"),
        (&["--restart", "5"], "--restart"),
        (&["--eigenvalues", "1,2"], "--eigenvalues"),
        (&["--ordering", "rows"], "--ordering"),
        (&["--damp", "1"], "--damp"),
        // The name that a user knows.
        (&["--iterations", "4294967296"], "--iterations: 4294967296 exceeds"),
        (&["--work-group", "3"], "--work-group"),
        (&["--gradient-rtol", "1e-3"], "--gradient-rtol: it changes nothing for cg"),
        (&["--gradient-reduction", "0.5"], "--gradient-reduction: it changes nothing for cg"),
    ] {
        refused("solve", folder.path(), &[&["a.mtx", "--method", "cg"], args, &HOST].concat(), part);
    }
}

/// A row for every preconditioner that a matrix may be solved with, and the reason where there is none.
#[test]
fn preconditioners_are_compared() {
    let folder = folder();
    let lopsided = "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n1 2 1\n2 2 5\n3 1 -1\n3 3 6\n";
    std::fs::write(folder.path().join("lopsided.mtx"), lopsided).unwrap();
    for (matrix, definite) in [("poisson2d:24", true), ("lopsided.mtx", false)] {
        let method = if definite { "cg" } else { "bicgstab" };
        let args = [matrix, "--compare", "--json", "--method", method, "--rtol", "1e-6"];
        let output = run("solve", folder.path(), &[&args[..], &HOST].concat());
        assert!(output.status.success(), "{}", words(&output));
        let found = json(&output);
        let rows = found["candidates"].as_array().unwrap();
        let named = |name: &str| rows.iter().find(|row| row["preconditioner"] == name);
        assert!(named("none").is_some() && named("jacobi").is_some());
        // A definite matrix is tried with symmetric ones.
        let told = ["sainv=0.01", "ic0", "adaptive-fsai=10:2", "ilu0", "spai=1"].map(|name| named(name).is_some());
        assert_eq!(told, [definite, definite, definite, !definite, !definite]);
        let fastest = named(found["fastest"].as_str().unwrap()).unwrap();
        for row in rows {
            let told = row["stop"].is_string() || row["error"].is_string();
            assert!(
                told && (row["seconds"].is_null() || row["seconds"].as_f64() >= fastest["seconds"].as_f64()),
                "{row}"
            );
        }
        if definite {
            let iterations = |name: &str| named(name).unwrap()["iterations"].as_u64().unwrap();
            assert!(iterations("ic0") < iterations("none") && iterations("sainv=0.01") < iterations("sainv=0.1"));
        }
    }
    refused(
        "solve",
        folder.path(),
        &[&["a.mtx", "--compare", "--method", "cgne"][..], &HOST].concat(),
        "--compare",
    );
}

#[test]
fn files_are_what_they_hold() {
    let folder = folder();
    std::fs::write(folder.path().join("scan.h5"), b"\x89HDF\r\n\x1a\n and more").unwrap();
    std::fs::write(folder.path().join("scan.tif"), b"II*\0 and more").unwrap();
    std::fs::copy(folder.path().join("a.npz"), folder.path().join("a.dat")).unwrap();
    std::fs::copy(folder.path().join("s.npy"), folder.path().join("sinogram")).unwrap();
    for (file, part) in
        [("a.npz", "zip archive"), ("scan.h5", "HDF5"), ("scan.tif", "TIFF"), ("a.mtx", "Matrix Market")]
    {
        refused("reconstruct", folder.path(), &["--input", file, "--device", "host"], part);
    }
    refused("solve", folder.path(), &["scan.h5", "--device", "host"], "HDF5");
    // The letters that mark a MATLAB file, in a comment.
    let text = std::fs::read_to_string(folder.path().join("a.mtx")).unwrap();
    let (banner, rest) = text.split_once('\n').unwrap();
    let comment = format!("%{}MINIMOS", "-".repeat(126 - banner.len() - 2));
    std::fs::write(folder.path().join("marked.mtx"), format!("{banner}\n{comment}\n{rest}")).unwrap();
    assert_eq!(&std::fs::read(folder.path().join("marked.mtx")).unwrap()[126..128], b"MI");
    assert!(run("solve", folder.path(), &["marked.mtx", "--device", "host"]).status.success());
    // A pipe can be read only once: its name says what it is.
    #[cfg(unix)]
    {
        let pipe = folder.path().join("pipe.npy");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let bytes = std::fs::read(folder.path().join("b.npy")).unwrap();
        let writer = std::thread::spawn(move || std::fs::write(pipe, bytes));
        assert!(run("solve", folder.path(), &["a.mtx", "--rhs", "pipe.npy", "--device", "host"]).status.success());
        writer.join().unwrap().unwrap();
    }
    assert!(run("solve", folder.path(), &["a.dat", "--device", "host"]).status.success());
    let args = ["--input", "sinogram", "--size", "8", "--iterations", "2", "--device", "host"];
    assert!(run("reconstruct", folder.path(), &args).status.success());
}

#[test]
fn right_hand_sides_as_scipy_writes_them_and_any_name_are_taken() {
    let folder = folder();
    let solve = |name: &str| {
        let output = run("solve", folder.path(), &["a.mtx", "--rhs", name, "--save", "x.npy", "--device", "host"]);
        assert!(output.status.success(), "{}", words(&output));
        std::fs::read(folder.path().join("x.npy")).unwrap()
    };
    assert_eq!(solve("b.npy"), solve("column.npy"));
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"matrix-\xff.mtx");
        if std::fs::copy(folder.path().join("a.mtx"), folder.path().join(name)).is_err() {
            println!("skipped: this file system takes no names but UTF-8");
            return;
        }
        let output = program("solve").current_dir(folder.path()).arg(name).args(HOST).output().unwrap();
        assert!(output.status.success(), "{}", words(&output));
    }
}

#[test]
fn what_looks_wrong_is_said() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let args = |input: &'static str| {
        ["--input", input, "--pitch", "0.125", "--size", "16", "--iterations", "5", "--device", "host"]
    };
    let output = run("reconstruct", folder.path(), &args("s.npy"));
    assert!(output.status.success() && !words(&output).contains("warning"), "{}", words(&output));
    npy::write(&at("negative.npy"), &[20, 16], &scan().iter().map(|v| -v).collect::<Vec<f64>>()).unwrap();
    npy::write(&at("counts.npy"), &[20, 16], &scan().iter().map(|v| 1e4 * (-v).exp()).collect::<Vec<f64>>())
        .unwrap();
    refused("reconstruct", folder.path(), &args("counts.npy"), "look like counts");
    npy::write(&at("zero.npy"), &[20, 16], &[0.0; 320]).unwrap();
    for (input, part) in
        [("negative.npy", "negative"), ("counts.npy", "intensities"), ("zero.npy", "all readings are 0")]
    {
        let output = run("reconstruct", folder.path(), &[&args(input)[..], &["--line-integrals"]].concat());
        assert!(words(&output).contains("warning") && words(&output).contains(part), "{}", words(&output));
        let output =
            run("reconstruct", folder.path(), &[&args(input)[..], &["--line-integrals", "--json"]].concat());
        assert!(json(&output)["images"][0]["warning"].as_str().unwrap().contains(part));
    }
    let beside = ["--detector-offset", "100000"];
    refused("reconstruct", folder.path(), &[&args("s.npy")[..], &beside].concat(), "no ray meets the image");
    // A ones is 0.
    let difference = Csr::from_triplets(2, 2, &[(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 1.0)]).unwrap();
    matrix_market::write_matrix(&at("difference.mtx"), &difference).unwrap();
    let output = run("solve", folder.path(), &["difference.mtx", "--device", "host"]);
    assert!(words(&output).contains("A times ones is 0"), "{}", words(&output));
    // Small, not empty.
    let tiny = Csr::from_triplets(2, 2, &[(0, 0, 1e-200), (1, 1, 2e-200)]).unwrap();
    matrix_market::write_matrix(&at("tiny.mtx"), &tiny).unwrap();
    let output = run("solve", folder.path(), &["tiny.mtx", "--device", "host"]);
    assert!(output.status.success() && !words(&output).contains("empty"), "{}", words(&output));
    // A stationary iteration that diverges is not told to scale the matrix.
    let args = ["poisson2d:8", "--method", "stationary", "--omega", "9", "--device", "host"];
    let output = run("solve", folder.path(), &args);
    assert!(output.status.code() == Some(1) && words(&output).contains("diverges"), "{}", words(&output));
}

#[test]
fn memory_is_planned_before_it_is_taken() {
    let folder = folder();
    std::fs::write(
        folder.path().join("wide.mtx"),
        "%%MatrixMarket matrix coordinate real general\n3 4294967295 1\n1 7 1.0\n",
    )
    .unwrap();
    refused("solve", folder.path(), &["wide.mtx", "--device", "host"], "bytes, the limit is");
    let wide = ["--matrix", "wide.mtx", "--rhs", "b.npy", "--device", "host"];
    refused("reconstruct", folder.path(), &wide, "bytes, the limit is");
    for name in ["poisson2d:4294967296", "dense:4000000:4000000", "poisson3d:3000000"] {
        refused("solve", folder.path(), &[name, "--device", "host"], "");
        refused("spmv", folder.path(), &["--gallery", name, "--device", "host"], "");
    }
}

#[test]
fn files_of_others_are_not_tuning_files() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("later.toml"), "version = 9\n[[entry]]\ndevice = \"x\"\n").unwrap();
    npy::write(&at("plain.toml"), &[1], &[1.0f64]).unwrap();
    std::fs::write(at("mine.toml"), "version = 1\n").unwrap();
    for file in ["later.toml", "notes.txt", "plain.toml"] {
        let before = std::fs::read(at(file)).unwrap();
        let output = run("tune", folder.path(), &["merge", "mine.toml", "--file", file]);
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        assert!(words(&output).contains("not written over"), "{}", words(&output));
        assert_eq!(std::fs::read(at(file)).unwrap(), before);
    }
    // A plot of nothing is no fault.
    let args = ["--budget", "0s", "--file", "new.toml", "--plot", "sizes.png"];
    let output = run("tune", folder.path(), &args);
    match words(&output) {
        words if words.contains("has nothing to tune") => println!("skipped: {words}"),
        words => assert!(output.status.code() == Some(1) && words.contains("is not written"), "{words}"),
    }
    // Programs that use the file say which of its entries are ignored.
    let Some(device) =
        common::devices_in(Precision::Single).into_iter().find(|d| d.backend_kind() == BackendKind::OpenCl)
    else {
        println!("skipped: no OpenCL device");
        return;
    };
    let (p, d) = device.info().index.unwrap();
    let output = program("solve")
        .current_dir(folder.path())
        .args(["poisson2d:8", "--precision", "fp32", "--device", &format!("{p}:{d}")])
        .env("RESIDUUM_TUNE_FILE", at("later.toml"))
        .output()
        .unwrap();
    assert!(output.status.success() && words(&output).contains("version 9"), "{}", words(&output));
}

/// Building programs is no part of solving, nor of the time allowed for it.
#[test]
fn building_is_counted_once_and_apart() {
    for device in common::devices_in(Precision::Double) {
        let Some((p, d)) = device.info().index else { continue };
        let cache = tempfile::tempdir().unwrap();
        let place = format!("{p}:{d}");
        let args = ["poisson2d:40", "--device", &place, "--time-limit", "1", "--json", "--preconditioner", "none"];
        let output = program("solve")
            .args(args)
            .env("RESIDUUM_CACHE", cache.path())
            .env("POCL_CACHE_DIR", cache.path())
            .env("CUDA_CACHE_DISABLE", "1")
            .output()
            .unwrap();
        let value = json(&output);
        let seconds = |name: &str| value["seconds"][name].as_f64().unwrap();
        assert_eq!(value["stop"], "Converged", "{value}");
        assert!(seconds("solve") > 0.0, "{value}");
        assert!(seconds("compile") > seconds("verify"), "{value}");
        let sum = seconds("compile") + seconds("solve") + seconds("verify");
        assert!(sum <= seconds("total"), "{value}");
    }
}
