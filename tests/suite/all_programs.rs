//! The programs as a user runs them: results, `--json`, exit codes, one-line errors, nothing overwritten on failure.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{self, program};
use residuum::Precision;
use residuum::io::{matrix_market, npy, npz};
use residuum::sparse::gallery;
use serde_json::Value;

fn reconstruct(folder: &Path, args: &[&str]) -> Output {
    program("reconstruct").current_dir(folder).args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

const SMALL: [&str; 6] = ["--size", "48", "--angles", "60", "--iterations", "30"];

/// A real data file beside the project; tests that need one say so when it is not there.
fn data(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn without_arguments_there_is_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let output = reconstruct(folder.path(), &["--size", "48", "--device", "host"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for word in
        ["device", "host", "system", "cgnr", "tv=0.05", "correlation", "PSNR", "seconds", "reconstruction.png"]
    {
        assert!(text.contains(word), "no '{word}' in {text}");
    }
    let picture = std::fs::read(folder.path().join("reconstruction.png")).unwrap();
    assert_eq!(picture[..4], [0x89, b'P', b'N', b'G']);
}

#[test]
fn json_says_everything() {
    let folder = tempfile::tempdir().unwrap();
    let output = reconstruct(folder.path(), &[&SMALL[..], &["--json", "--device", "host"]].concat());
    let value = json(&output);
    for key in [
        "device",
        "backend",
        "platform",
        "regularizers",
        "rows",
        "cols",
        "nnz",
        "work_group",
        "choice",
        "why_format",
    ] {
        assert!(!value[key].is_null(), "{key} is missing: {value}");
    }
    let image = &value["images"][0];
    for key in [
        "method",
        "format",
        "precision",
        "accumulation",
        "iterations",
        "stop",
        "residual",
        "true_residual",
        "relative_residual",
        "history",
        "launches_per_iteration",
        "correlation",
        "psnr",
    ] {
        assert!(!image[key].is_null(), "{key} is missing: {value}");
    }
    for key in ["read", "build", "compile", "solve", "total"] {
        assert!(value["seconds"][key].is_number(), "seconds.{key} is missing");
    }
    assert_eq!((value["rows"].as_u64(), value["cols"].as_u64()), (Some(60 * 256), Some(48 * 48)));
    assert!(image["correlation"].as_f64().unwrap() > 0.95, "{value}");
}

#[test]
fn without_opencl_the_host_does_it_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libOpenCL.so.1"), "no library").unwrap();
    let output = program("reconstruct")
        .current_dir(folder.path())
        .args([&SMALL[..], &["--json"]].concat())
        .env("LD_LIBRARY_PATH", folder.path())
        .env_remove("OPENCL_DYLIB_PATH")
        .env_remove("RESIDUUM_DEVICE")
        .output()
        .unwrap();
    let value = json(&output);
    assert_eq!(value["backend"], "host");
    assert!(value["choice"].as_str().unwrap().contains("because"), "{value}");
}

#[test]
fn what_is_missing_is_said_in_words() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libOpenCL.so.1"), "no library").unwrap();
    let nothing = tempfile::tempdir().unwrap();
    let list = |name: &str, value: &Path, device: &str| {
        let mut command = program("devices");
        command.env(name, value).env_remove("OPENCL_DYLIB_PATH").env("RESIDUUM_DEVICE", device).output().unwrap()
    };
    let cases = [
        ("LD_LIBRARY_PATH", folder.path(), "no OpenCL library could be loaded", "ocl-icd-libopencl1"),
        ("OCL_ICD_VENDORS", nothing.path(), "the OpenCL loader found no driver", "pocl-opencl-icd"),
    ];
    for (name, value, what, help) in cases {
        let output = list(name, value, "");
        let text = String::from_utf8_lossy(&output.stdout).to_string();
        if name == "OCL_ICD_VENDORS" && !text.contains("no OpenCL device") {
            println!("skipped: the OpenCL loader of this machine does not heed OCL_ICD_VENDORS");
            continue;
        }
        assert!(output.status.success() && text.contains(what) && text.contains(help), "{text}");
        assert!(text.contains("chosen: host"), "{text}");
        // A device that is asked for is never replaced.
        let output = list(name, value, "gpu");
        let text = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.contains("RESIDUUM_DEVICE=gpu") && text.contains(what), "{text}");
    }
}

#[test]
fn saved_numbers_are_the_same_on_every_device_and_work_group() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, args: &[&str]| {
        let output = reconstruct(folder.path(), &[&SMALL[..], &["--save", name, "--json"], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(folder.path().join(name)).unwrap()
    };
    for (precision, kind) in [("fp32", Precision::Single), ("fp64", Precision::Double)] {
        let wanted = save("host.npy", &["--device", "host", "--precision", precision]);
        assert_eq!(wanted, save("again.npy", &["--device", "host", "--precision", precision]));
        for device in common::devices_in(kind).iter().filter(|d| d.info().index.is_some()) {
            let (p, d) = device.info().index.unwrap();
            let place = format!("{p}:{d}");
            for size in ["1", "32", "64", "256", "512", "1024"] {
                if let Err(error) = device.with_work_group(size.parse().unwrap()) {
                    println!("skipped: {error}");
                    continue;
                }
                let args = ["--device", &place, "--work-group", size, "--precision", precision];
                assert_eq!(wanted, save("device.npy", &args), "{} {size}", device.info().name);
            }
        }
    }
}

#[test]
fn traced_scans_give_the_same_numbers_everywhere_and_nearly_those_of_stored_ones() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, args: &[&str]| {
        let traced = ["--format", "on-the-fly", "--precision", "fp64", "--save", name, "--json"];
        let output = reconstruct(folder.path(), &[&SMALL[..], &traced, args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(json(&output)["images"][0]["format"], "on-the-fly");
        npy::read(&folder.path().join(name)).unwrap().data
    };
    let wanted = save("host.npy", &["--device", "host"]);
    for device in common::devices_in(Precision::Double).iter().filter(|d| d.info().index.is_some()) {
        let (p, d) = device.info().index.unwrap();
        let place = format!("{p}:{d}");
        assert!(wanted == save("device.npy", &["--device", &place]), "{}", device.info().name);
    }
    let stored = ["--format", "csr", "--precision", "fp64", "--device", "host", "--save", "stored.npy"];
    assert!(reconstruct(folder.path(), &[&SMALL[..], &stored].concat()).status.success());
    let stored = npy::read(&folder.path().join("stored.npy")).unwrap().data;
    let brightest = stored.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    for (traced, stored) in wanted.iter().zip(&stored) {
        assert!((traced - stored).abs() <= 1e-3 * brightest, "{traced} {stored}");
    }
}

#[test]
fn a_matrix_and_a_right_hand_side_are_solved() {
    let folder = tempfile::tempdir().unwrap();
    let a = gallery::random::<f64>(60, 24, 60 * 6, 1).unwrap();
    let truth: Vec<f64> = (0..24).map(|i| f64::from(i) / 24.0).collect();
    let b: Vec<f64> =
        (0..60).map(|i| a.row(i).0.iter().zip(a.row(i).1).map(|(j, v)| v * truth[*j as usize]).sum()).collect();
    matrix_market::write_matrix(&folder.path().join("a.mtx"), &a).unwrap();
    npz::write_matrix(&folder.path().join("a.npz"), &a).unwrap();
    npy::write(&folder.path().join("b.npy"), &[60], &b).unwrap();
    let args =
        ["--matrix", "a.mtx", "--rhs", "b.npy", "--precision", "fp64", "--rtol", "1e-9", "--iterations", "500"];
    let output = reconstruct(folder.path(), &[&args[..], &["--save", "x.npy", "--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json(&output)["images"][0]["stop"], "Converged");
    let first = std::fs::read(folder.path().join("x.npy")).unwrap();
    let from_scipy = [&["--matrix", "a.npz"], &args[2..], &["--save", "x.npy"]].concat();
    assert!(reconstruct(folder.path(), &from_scipy).status.success());
    assert_eq!(std::fs::read(folder.path().join("x.npy")).unwrap(), first);
    for (found, wanted) in npy::read(&folder.path().join("x.npy")).unwrap().data.iter().zip(&truth) {
        approx::assert_abs_diff_eq!(*found, *wanted, epsilon = 1e-6);
    }
    // Too few iterations for the tolerance: done, but not what was asked.
    let output =
        reconstruct(folder.path(), &["--matrix", "a.mtx", "--rhs", "b.npy", "--rtol", "1e-9", "--iterations", "2"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn several_sinograms_are_reconstructed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<f64> = (0..3 * 20 * 16).map(|i| f64::from(i % 7)).collect();
    npy::write(&folder.path().join("s.npy"), &[3, 20, 16], &data).unwrap();
    let args = ["--input", "s.npy", "--size", "12", "--iterations", "5", "--save", "x.npy", "--json"];
    let output = reconstruct(folder.path(), &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(npy::read(&folder.path().join("x.npy")).unwrap().shape, [3, 12, 12]);
    assert!(folder.path().join("reconstruction-3.png").exists());
    assert_eq!(json(&output)["images"].as_array().unwrap().len(), 3);
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("empty.mat"), b"").unwrap();
    std::fs::write(path("foreign.mat"), b"this is no MATLAB file, whatever its name may say").unwrap();
    npy::write(&path("nan.npy"), &[4, 4], &[f64::NAN; 16]).unwrap();
    npy::write(&path("cube.npy"), &[2, 2, 2, 2], &[0.0f64; 16]).unwrap();
    npy::write(&path("none.npy"), &[2, 0, 5], &[0.0f64; 0]).unwrap();
    npy::write(&path("b.npy"), &[7], &[1.0f64; 7]).unwrap();
    let good = std::fs::read(path("b.npy")).unwrap();
    std::fs::write(path("cut.npy"), &good[..good.len() - 5]).unwrap();
    std::fs::write(path("a.mtx"), "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 9 1.0\n").unwrap();
    matrix_market::write_matrix(&path("good.mtx"), &gallery::poisson_2d::<f64>(2, 0.0).unwrap()).unwrap();
    std::fs::write(path("kept.png"), b"precious").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["--input", "nothing.mat"], "nothing.mat"),
        (&["--input", "empty.mat"], "empty.mat"),
        (&["--input", "foreign.mat"], "foreign.mat"),
        (&["--input", "nan.npy"], "not finite"),
        (&["--input", "cube.npy"], "dimensions"),
        (&["--input", "none.npy"], "no sinogram"),
        (&["--input", "none.npy", "--field", "2"], "no sinogram"),
        (&["--input", "cut.npy"], "cut.npy"),
        (&["--matrix", "a.mtx", "--rhs", "b.npy"], "line 3"),
        (&["--matrix", "good.mtx", "--rhs", "b.npy"], "it holds 7 numbers, and the system has 4 rows"),
        (&["--device", "no-such-device"], "no-such-device"),
        (&["--work-group", "3"], "power of two"),
        (&["--regularizer", "ridge=1"], "ridge"),
        (&["--lower", "1", "--upper", "0"], "lower"),
        (&["--angles", "1000"], "angles"),
        (&["--size", "0"], "size"),
        (&["--output", "no/folder/x.png"], "folder"),
        (&["--reference", "nothing.mat"], "nothing.mat"),
    ];
    for (args, words) in cases {
        let mut all = vec!["--size", "16", "--iterations", "2"];
        if args.contains(&"--size") {
            all.clear();
        }
        if args.contains(&"--matrix") {
            // No scan, and no picture.
            all.drain(..2);
        }
        if !args.contains(&"--output") && !args.contains(&"--matrix") {
            all.extend(["--output", "kept.png"]);
        }
        let output = reconstruct(folder.path(), &[&all[..], args].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        let lines: Vec<&str> = error.lines().filter(|l| !l.ends_with("generated.")).collect();
        assert!(lines.len() == 1 && lines[0].contains(words), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
        assert_eq!(std::fs::read(path("kept.png")).unwrap(), b"precious", "{args:?} overwrote a file");
    }
}

#[test]
fn devices_lists_the_host_and_what_is_chosen() {
    let output = program("devices").arg("--json").output().unwrap();
    let value = json(&output);
    let names: Vec<&str> = value["devices"].as_array().unwrap().iter().filter_map(|d| d["kind"].as_str()).collect();
    assert!(names.contains(&"host"));
    assert!(!value["choice"].as_str().unwrap().is_empty());
    let output = program("devices").env("RESIDUUM_DEVICE", "no-such-device").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-device"));
    let output = program("devices").args(["--device", "colour=blue"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no property to ask for"));
}

#[test]
fn the_doctor_asks_about_every_kernel() {
    let output = program("doctor").args(["--all", "--device", "host", "--json"]).output().unwrap();
    assert!(output.status.success());
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = found["devices"][0]["checks"].as_array().unwrap();
    let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    let battery = residuum::doctor::battery::<f64>();
    assert!(battery.len() > 20);
    for question in battery {
        // In both precisions, and at two sizes of a work-group.
        assert_eq!(names.iter().filter(|name| **name == question.name()).count(), 4, "{}", question.name());
    }
    assert!(checks.iter().all(|check| check["fault"].is_null()), "{checks:?}");
}

#[test]
fn the_doctor_refuses_what_is_not_there() {
    let output = program("doctor").args(["--device", "no-such-device"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-device"));
}

#[test]
fn a_measured_scan_agrees_with_its_reference() {
    let (Some(scan), Some(reference)) = (data("htc2022_ta_full.mat"), data("htc2022_ta_full_recon_fbp.mat")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["--size", "128", "--angles", "90", "--bin", "2", "--iterations", "40", "--json", "--device", "host"];
    let files = ["--input", scan.to_str().unwrap(), "--reference", reference.to_str().unwrap()];
    let value = json(&reconstruct(folder.path(), &[&args[..], &files[..]].concat()));
    assert!(value["images"][0]["correlation"].as_f64().unwrap() > 0.985, "{value}");
}

#[test]
fn spmv_measures_every_format_and_marks_the_chosen_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    matrix_market::write_matrix(&path, &gallery::poisson_2d::<f64>(12, 0.0).unwrap()).unwrap();
    let args = ["--device", "host", "--json", "--transposed", "--most-padding", "100"];
    let output = program("spmv").arg(&path).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Twelve formats, two products, two precisions.
    assert_eq!(lines.len(), 48, "{text}");
    for line in &lines {
        for key in
            ["matrix", "rows", "cols", "nnz", "format", "precision", "transposed", "work_group", "microseconds"]
        {
            assert!(!line[key].is_null(), "no {key} in {line}");
        }
        for key in ["bytes", "gbps", "copy_share", "chosen", "why"] {
            assert!(!line[key].is_null(), "no {key} in {line}");
        }
        assert_eq!(line["chosen"], line["format"] == "dia", "{line}");
        assert!(line["microseconds"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn spmv_refuses_what_it_cannot_use() {
    let missing = ["--device", "host", "nowhere.mtx"];
    for args in [&missing[..], &["--gallery", "mystery:3"], &["--format", "csc"], &[], &["--device", "nowhere"]] {
        let output = program("spmv").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!words.contains("panicked") && !words.is_empty(), "{args:?}: {words}");
    }
}

#[test]
fn solvers_beside_their_matrices_follow_new_values() {
    let folder = tempfile::tempdir().unwrap();
    for device in common::devices_in(Precision::Double) {
        let name = device.info().index.map_or("host".into(), |(p, d)| format!("{p}:{d}"));
        let args = ["--size", "24", "--frames", "5", "--json", "--device", &name];
        let output = program("owned").current_dir(folder.path()).args(args).output().unwrap();
        let value = json(&output);
        assert_eq!(output.status.code(), Some(0), "{value}");
        assert_eq!((&value["converged"], &value["same_bits_as_fresh_solvers"]), (&true.into(), &true.into()));
        assert_eq!(value["iterations"].as_array().unwrap().len(), 5, "{value}");
        assert!(value["at_rest"]["hottest"].as_f64().unwrap() > 0.0, "{value}");
    }
    let refused = program("owned").args(["--device", "no such thing"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&refused.stderr).lines().count(), 1);
}

/// A penalty of a program's own makes a volume better, the same on every device.
#[test]
fn a_penalty_of_a_program_finds_a_volume() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = None;
    for device in common::devices_in(Precision::Single) {
        let name = device.info().index.map_or("host".into(), |(p, d)| format!("{p}:{d}"));
        let args = ["--size", "12", "--json", "--device", &name];
        let output = program("penalty").current_dir(folder.path()).args(args).output().unwrap();
        let value = json(&output);
        assert_eq!(output.status.code(), Some(0), "{value}");
        let [without, with] = ["without", "with"].map(|way| value[way]["relative_error"].as_f64().unwrap());
        assert!(with < 0.5 * without, "{value}");
        let found = (value["with"]["iterations"].clone(), with);
        assert_eq!(*first.get_or_insert(found.clone()), found, "{}", device.info().name);
    }
    for args in [["--weight", "-1"], ["--size", "3"], ["--device", "no such thing"]] {
        let refused = program("penalty").args(args).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
    }
}

/// The recipe for scans of a short arc, on the simulated scan: what is known of the plate makes its classes better.
#[test]
fn pictures_of_a_short_arc_gain_by_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--size", "40", "--device", "host", "--json"];
    let known = |more: &[&str]| json(&reconstruct(folder.path(), &[&args[..], more].concat()));
    let _whole = known(&["--segment", "truth.npy"]);
    let arc = ["--keep", "0:100", "--iterations", "600", "--truth", "truth.npy"];
    let number = |value: &serde_json::Value, name: &str| value["images"][0][name].as_f64().unwrap();
    let penalties = known(&arc);
    let exact =
        ["--method", "pdhg", "--upper", "1.2", "--regularizer", "tv=0.02", "--regularizer", "directional=0.02"];
    let exact = known(&[&arc[..], &exact, &["--background", "--polynomial=0,1", "--save", "x.npy"]].concat());
    assert_eq!(exact["method"], "pdhg");
    // The middle of 0, 2, ... 100 degrees.
    assert_eq!(exact["regularizers"][1], "directional=0.02@50");
    assert!(number(&exact, "relative_error") < number(&penalties, "relative_error"));
    assert!(number(&exact, "mcc") > number(&penalties, "mcc"));
    let values = npy::read(&folder.path().join("x.npy")).unwrap().data;
    assert!(values.iter().all(|v| (0.0..=f64::from(1.2f32)).contains(v)));
    // SIRT within bounds, with steps of both lengths: the longer ones are further after as many iterations.
    let sirt = |omega: &str| {
        let args =
            ["--method", "sirt", "--omega", omega, "--iterations", "60", "--upper", "1.2", "--save", "x.npy"];
        let report = known(&args);
        let values = npy::read(&folder.path().join("x.npy")).unwrap().data;
        assert!(values.iter().all(|v| (0.0..=f64::from(1.2f32)).contains(v)));
        number(&report, "relative_residual")
    };
    let [short, long] = ["0.7", "1.9"].map(sirt);
    assert!(long < 0.8 * short && long < 0.05, "{short} {long}");
    // Subsets of ten angles: further in an eighth of the iterations.
    let args = ["--method", "sart", "--iterations", "8", "--upper", "1.2", "--save", "x.npy"];
    let ordered = known(&args);
    assert_eq!(ordered["method"], "sart");
    assert!(ordered["why_format"].as_str().unwrap().starts_with("18 subsets of angles; stored"), "{ordered}");
    assert!(number(&ordered, "relative_residual") < long, "{ordered}");
    // Flexible CGLS above 0 comes further than SIRT in half of the iterations.
    let args = ["--method", "nnfcgls", "--iterations", "30", "--save", "x.npy"];
    let flexible = known(&args);
    assert_eq!(flexible["nnz"], ordered["nnz"]);
    assert!(number(&flexible, "relative_residual") < long, "{flexible}");
    assert!(npy::read(&folder.path().join("x.npy")).unwrap().data.iter().all(|v| *v >= 0.0));
    // A support of the user's own.
    let half: Vec<f64> = (0..1600).map(|i| f64::from(u8::from(i % 40 < 20))).collect();
    npy::write(&folder.path().join("half.npy"), &[40, 40], &half).unwrap();
    let left = ["--method", "fista", "--support", "half.npy", "--iterations", "5", "--save", "x.npy"];
    let _left = known(&left);
    let values = npy::read(&folder.path().join("x.npy")).unwrap().data;
    assert!(values.iter().zip(&half).all(|(v, half)| *half == 1.0 || *v == 0.0));
    assert!(values.iter().any(|v| *v > 0.0));
}

/// A weight that is chosen by what the readings say alone: better than one that is a hundred times too large or too small, and drawn.
#[test]
fn weights_are_chosen_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--size", "40", "--device", "host", "--json"];
    let run = |more: &[&str]| json(&reconstruct(folder.path(), &[&args[..], more].concat()));
    let error = |value: &serde_json::Value| value["images"][0]["relative_error"].as_f64().unwrap();
    let chosen = run(&["--weight", "auto", "--lower=-inf", "--plot", "weight.png"]);
    let weight = &chosen["images"][0]["weight"];
    assert_eq!((&chosen["weight_rule"], &weight["rule"]), (&"auto".into(), &"auto".into()));
    assert_eq!(chosen["regularizers"].as_array().unwrap().len(), 0);
    let curve = weight["curve"].as_array().unwrap();
    let least = curve.iter().map(|point| point["value"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    assert!(curve.len() == 121 && least > 0.0 && weight["noise"].as_f64().unwrap() < 0.2, "{weight}");
    let png = std::fs::read(folder.path().join("weight.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG") && chosen["written"].as_array().unwrap().len() == 2);
    // The scale of weights by name is the mean diagonal of A'A.
    let told = reconstruct(folder.path(), &["--size", "40", "--device", "host", "--weight", "l-curve"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("damp = ") && told.contains("by l-curve in iteration"), "{told}");
    for named in ["tikhonov=3", "tikhonov=0"] {
        let named = run(&["--regularizer", named, "--lower=-inf"]);
        assert!(error(&chosen) < error(&named), "{} {}", error(&chosen), error(&named));
    }
    // A level of noise that is known, and bounds that are kept.
    let bounded = run(&["--weight", "discrepancy=0.1", "--method", "fista", "--save", "x.npy"]);
    assert!(bounded["images"][0]["weight"]["stop"] == "Discrepancy", "{bounded}");
    assert!(npy::read(&folder.path().join("x.npy")).unwrap().data.iter().all(|v| *v >= 0.0));
}

/// Rules end a method before noise comes in, with a curve, and refuse what they cannot do.
#[test]
fn iterations_end_by_a_rule() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--size", "40", "--device", "host", "--precision", "fp64"];
    let plain = ["--regularizer", "none", "--lower=-inf"];
    let run = |more: &[&str]| json(&reconstruct(folder.path(), &[&args[..], &["--json"], more].concat()));
    let ncp = run(&["--method", "nnfcgls", "--stop", "ncp", "--plot", "stop.png"]);
    let (image, course) = (&ncp["images"][0], &ncp["images"][0]["rule"]);
    assert_eq!(
        (&ncp["stop_rule"], &course["rule"], &image["stop"]),
        (&"ncp".into(), &"ncp".into(), &"Semiconverged".into())
    );
    let points = course["points"].as_array().unwrap();
    let value = |point: &serde_json::Value| point["value"].as_f64().unwrap();
    let least = points.iter().map(value).fold(f64::INFINITY, f64::min);
    let best = points.iter().find(|point| point["iteration"] == course["best"]).unwrap();
    assert!(image["iterations"] == course["best"] && 0.99 * value(best) <= least, "{course}");
    assert!(std::fs::read(folder.path().join("stop.png")).unwrap().starts_with(b"\x89PNG"));
    let told =
        reconstruct(folder.path(), &[&args[..], &["--method", "sirt", "--omega", "1.9", "--stop", "ncp"]].concat());
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("ended by ncp") && told.contains("ended before noise comes in"), "{told}");
    // With the noise: near each other.
    let known = run(&[&plain[..], &["--stop", "discrepancy=0.05"]].concat());
    let monotone = run(&[&plain[..], &["--stop", "monotone-error=0.05", "--plot", "bounds.svg"]].concat());
    assert_eq!(
        (&known["images"][0]["stop"], &monotone["images"][0]["stop"]),
        (&"Converged".into(), &"Semiconverged".into())
    );
    let [of_known, of_monotone] = [&known, &monotone].map(|run| run["images"][0]["iterations"].as_u64().unwrap());
    assert!(of_known.abs_diff(of_monotone) <= 2, "{of_known} {of_monotone}");
    // A weight that was chosen before, and a rule that does not come to its end.
    assert_eq!(run(&["--weight", "auto", "--stop", "ncp", "--lower=-inf"])["weight_rule"], "auto");
    let short = reconstruct(folder.path(), &[&args[..], &["--stop", "ncp", "--iterations", "5"]].concat());
    assert_eq!(short.status.code(), Some(1));
    for (more, part) in [
        (&["--stop", "ncp=1"][..], "'ncp=1' is none of ncp"),
        (&["--stop", "discrepancy=2"], "with a NOISE between 0 and 1"),
        (&["--stop", "ncp", "--rtol", "0.1"], "cannot be used with"),
        (&["--stop", "ncp", "--method", "pdhg"], "ncp does not end pdhg; it ends cgls"),
        (&["--stop", "monotone-error=0.1"], "a misfit with nothing beside it"),
        (&["--stop", "monotone-error=0.1", "--weight", "auto", "--lower=-inf"], "leave it out, or the weight"),
        (&["--stop", "ncp", "--weight", "auto", "--plot", "x.png"], "have a curve each"),
        (&["--stop", "discrepancy=0.1", "--plot", "x.png"], "--plot: it changes nothing"),
        (&["--stop", "ncp", "--method", "fbp"], "--stop: it changes nothing for fbp"),
    ] {
        let output = reconstruct(folder.path(), &[&args[..], more].concat());
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(output.status.code() == Some(2) && error.contains(part), "{more:?}: {error}");
    }
}

#[test]
fn pictures_are_cut_into_classes_and_compared_with_a_truth() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--size", "40", "--iterations", "30", "--device", "host", "--json"];
    let cut = json(&reconstruct(folder.path(), &[&args[..], &["--segment", "plate.npy"]].concat()));
    let threshold = cut["images"][0]["thresholds"][0].as_f64().unwrap();
    assert!(threshold > 0.0 && cut["images"][0]["mcc"].is_null(), "{cut}");
    let classes = npy::read(&folder.path().join("plate.npy")).unwrap();
    let plate = classes.data.iter().filter(|class| **class == 1.0).count();
    assert!(classes.shape == [40, 40] && (300..1300).contains(&plate), "{plate} of 1600 pixels");
    // A second run cuts every pixel the same way; half of the angles show less of the plate.
    let mcc = |more: &[&str]| {
        let value = json(&reconstruct(folder.path(), &[&args[..], &["--truth", "plate.npy"], more].concat()));
        value["images"][0]["mcc"].as_f64().unwrap()
    };
    assert_eq!(mcc(&[]), 1.0);
    let half = mcc(&["--keep", "0:90"]);
    assert!(half > 0.3 && half < 0.99, "{half}");
    // The scan has an angle every two degrees from 0 to 358.
    let kept = json(&reconstruct(folder.path(), &[&args[..], &["--keep", "10:20"]].concat()));
    assert!(kept["problem"].as_str().unwrap().contains("6 angles"), "{kept}");
    let three = json(&reconstruct(folder.path(), &[&args[..], &["--segment", "c.npy", "--classes", "3"]].concat()));
    assert_eq!(three["images"][0]["thresholds"].as_array().unwrap().len(), 2);
}
