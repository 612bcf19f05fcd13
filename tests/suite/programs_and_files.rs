//! Files and texts that the programs leave: no output is lost in silence, nothing is replaced that must not be, and JSON and `--version` tell
//! where they come from.

use std::process::Output;

use crate::common::{program, refused, run, words};
use residuum::io::npy;
use serde_json::Value;

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", words(output)))
}

/// A short run of every program that prints JSON.
const RUNS: [(&str, &[&str]); 11] = [
    ("solve", &["poisson2d:8", "--device", "host"]),
    ("reconstruct", &["--size", "16", "--iterations", "2", "--device", "host"]),
    ("heat", &["--size", "16", "--frames", "2", "--device", "host"]),
    ("wave", &["--size", "16", "--frames", "2", "--device", "host"]),
    ("flow", &["--size", "16", "--frames", "2", "--device", "host"]),
    ("fem", &["--frames", "1", "--device", "host"]),
    ("spmv", &["--gallery", "poisson2d:8", "--format", "csr", "--precision", "fp32", "--device", "host"]),
    ("devices", &[]),
    ("doctor", &["--device", "host"]),
    ("owned", &["--size", "16", "--device", "host"]),
    ("tune", &["show", "--file", "absent.toml"]),
];

#[test]
fn json_tells_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    for (name, args) in RUNS {
        let output = run(name, folder.path(), &[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{name}: {}", words(&output));
        let found = json(&output);
        assert_eq!(found["program"], name);
        assert_eq!(found["version"], "0.1.0", "{name}");
        assert!(
            found["commit"].is_string() || found["commit"].is_null() && found.get("commit").is_some(),
            "{name}"
        );
        let command: Vec<&str> =
            found["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert!(command[0].ends_with(name), "{command:?}");
        assert_eq!(command[1..], *[args, &["--json"]].concat(), "{name}");
        let date = found["date"].as_str().unwrap();
        let form: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000-00-00T00:00:00Z", "{name}");
        assert_eq!(found["interrupted"], false, "{name}");
    }
}

#[test]
fn versions_and_help_name_what_a_user_needs() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in RUNS.into_iter().chain([("penalty", &[][..])]) {
        let version = words(&run(name, folder.path(), &["--version"]));
        assert!(version.starts_with(&format!("{name} 0.1.0 (commit ")), "{version}");
        assert!(version.contains("features ") || version.contains("no optional features"), "{version}");
        let help = words(&run(name, folder.path(), &["--help"]));
        for variable in ["RESIDUUM_DEVICE", "RESIDUUM_TUNE_FILE", "RESIDUUM_CACHE", "RESIDUUM_CL_DIR", "RUST_LOG"] {
            assert!(help.contains(variable), "{name}: no {variable} in {help}");
        }
        let writes = help.contains("--save") || help.contains("--plot");
        assert_eq!(help.contains("--no-overwrite is given") && help.contains("Ctrl-C ends"), writes, "{help}");
    }
}

/// Steps in the log, with the time of each.
#[test]
fn logs_have_steps_and_times() {
    let folder = tempfile::tempdir().unwrap();
    for (name, args, step) in [
        ("solve", RUNS[0].1, "method: cg"),
        ("reconstruct", RUNS[1].1, "1 of 1 pictures are done"),
        ("heat", RUNS[2].1, "2 frames of"),
    ] {
        let mut command = program(name);
        let output = command.current_dir(folder.path()).args(args).env("RUST_LOG", "info").output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).to_string();
        let line = log.lines().find(|line| line.contains(step)).unwrap_or_else(|| panic!("{name}: {log}"));
        let form: String = line.chars().take(20).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert!(form.starts_with("[0000-00-00T00:00:00"), "{line}");
    }
}

/// Output that cannot be printed is an error; a reader that has gone is none (see `careful_programs`).
#[cfg(target_os = "linux")]
#[test]
fn output_on_a_full_disk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for (name, args) in RUNS {
        for more in [&["--json"][..], &[]] {
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let mut command = program(name);
            let output = command.current_dir(folder.path()).args(args).args(more).stdout(full).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr).to_string();
            assert_eq!(output.status.code(), Some(2), "{name} {more:?}: {error}");
            assert!(error.contains("could not be written to stdout: No space left"), "{name} {more:?}: {error}");
        }
    }
    // All else that is to be saved is.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["poisson2d:8", "--device", "host", "--json", "--save", "x.npy"];
    let output = program("solve").current_dir(folder.path()).args(args).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(npy::read(&folder.path().join("x.npy")).unwrap().shape, [64]);
}

#[test]
fn names_that_cannot_be_are_refused_before_the_work_and_long_ones_taken() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let solve = ["poisson2d:8", "--device", "host", "--save"];
    let (long, longer) = (format!("{}.npy", "n".repeat(251)), format!("{}.npy", "n".repeat(252)));
    refused("solve", folder.path(), &[&solve[..], &["new/"]].concat(), "new/: it ends like a folder");
    refused("solve", folder.path(), &[&solve[..], &[&longer]].concat(), "too long");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing was done");
    let output = run("solve", folder.path(), &[&solve[..], &[&long]].concat());
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(npy::read(&at(&long)).unwrap().shape, [64]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    for (name, option) in
        [("reconstruct", "--output"), ("reconstruct", "--save"), ("heat", "--save"), ("fem", "--vtk")]
    {
        refused(name, folder.path(), &["--device", "host", option, "new.png/"], "new.png/: it ends like a folder");
    }
    let frames = ["--size", "8", "--frames", "2", "--device", "host", "--save"];
    let long = format!("{}%d.png", "n".repeat(250));
    let output = run("heat", folder.path(), &[&frames[..], &[&long]].concat());
    assert!(output.status.success(), "{}", words(&output));
}

/// A file that is mounted by itself, as containers do: no other file can take its place.
#[cfg(target_os = "linux")]
#[test]
fn files_that_are_mounted_are_written_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("real.npy"), "old").unwrap();
    std::fs::write(at("mounted here.npy"), "").unwrap();
    let solve = program("solve").get_program().to_owned();
    let script = format!(
        "mount --bind real.npy 'mounted here.npy' || exit 77; '{0}' poisson2d:8 --device host --save 'mounted here.npy' || exit 1; \
         mount -o remount,bind,ro 'mounted here.npy' || exit 77; '{0}' poisson2d:8 --device host --save 'mounted here.npy'",
        solve.to_string_lossy()
    );
    let mut command = std::process::Command::new("unshare");
    let output = command.args(["-rm", "sh", "-c", &script]).current_dir(folder.path()).output();
    let Some(output) = output.ok().filter(|output| output.status.code() != Some(77)) else {
        println!("skipped: this user may mount nothing");
        return;
    };
    let said = words(&output);
    if said.contains("unshare:") {
        println!("skipped: {said}");
        return;
    }
    // The second run was refused before its work, as the file could not be written.
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("Read-only") && said.matches("result ").count() == 1, "{said}");
    assert_eq!(npy::read(&at("real.npy")).unwrap().shape, [64]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn frames_replace_no_input_and_no_other_output() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let small = ["--size", "16", "--frames", "5", "--device", "host"];
    let made = run("heat", folder.path(), &[&small[..], &["--save", "in-%d.png"]].concat());
    assert!(made.status.success(), "{}", words(&made));
    let before = std::fs::read(at("in-3.png")).unwrap();
    std::fs::hard_link(at("in-3.png"), at("other.png")).unwrap();
    for input in ["in-3.png", "./in-3.png", "other.png"] {
        for (name, option) in [("heat", "--input"), ("wave", "--obstacles"), ("flow", "--obstacles")] {
            let args = [&small[..], &[option, input, "--save", "in-%d.png"]].concat();
            refused(name, folder.path(), &args, "is the input");
            // Without a number of frames all that may come count.
            refused(
                name,
                folder.path(),
                &["--device", "host", option, input, "--save", "in-%d.png"],
                "is the input",
            );
        }
    }
    assert_eq!(std::fs::read(at("in-3.png")).unwrap(), before);
    // Frames that do not go so far leave it alone.
    let args = ["--size", "16", "--frames", "3", "--device", "host", "--input", "in-3.png", "--save", "in-%d.png"];
    assert!(run("heat", folder.path(), &args).status.success());
    assert_eq!(std::fs::read(at("in-3.png")).unwrap(), before);
    for (save, vtk) in [("v.png", "v.png"), ("v.png", "./v.png"), ("v-%d.png", "v-1.png"), ("v-%d.png", "v-0.png")]
    {
        let args = ["--frames", "2", "--device", "host", "--save", save, "--vtk", vtk];
        refused(
            "fem",
            folder.path(),
            &args,
            if save == "v.png" || vtk == "v-0.png" {
                "is that of --save too"
            } else {
                "a frame would replace v-1.png"
            },
        );
    }
    assert!(!at("v.png").exists() && !at("v-0.png").exists());
}

#[test]
fn old_results_stay_if_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["old.npy", "old.png", "old.svg", "old.vtk", "f-1.png", "old.toml", "reconstruction.png"] {
        std::fs::write(at(name), "old").unwrap();
    }
    let host = ["--device", "host", "--no-overwrite"];
    for (name, args) in [
        ("solve", &["poisson2d:8", "--save", "old.npy"][..]),
        ("solve", &["poisson2d:8", "--plot", "old.svg"]),
        ("solve", &["poisson2d:8", "--save-partition", "old.toml"]),
        ("reconstruct", &["--size", "16"]),
        ("reconstruct", &["--size", "16", "--output", "new.png", "--save", "old.npy"]),
        ("reconstruct", &["--size", "16", "--output", "new.png", "--save-geometry", "old.toml"]),
        ("reconstruct", &["--size", "16", "--output", "new.png", "--segment", "old.npy"]),
        ("heat", &["--size", "16", "--save", "old.png"]),
        ("wave", &["--size", "16", "--save", "f-%d.png"]),
        ("flow", &["--size", "16", "--frames", "2", "--save", "f-%d.png"]),
        ("fem", &["--vtk", "old.vtk"]),
        ("fem", &["--vtk", "old.vtk", "--save", "new.png"]),
        ("tune", &["--plot", "old.svg", "--file", "new.toml"]),
    ] {
        refused(name, folder.path(), &[args, &host].concat(), "exists, and --no-overwrite keeps it");
    }
    for name in ["old.npy", "old.png", "old.svg", "old.vtk", "f-1.png", "old.toml", "reconstruction.png"] {
        assert_eq!(std::fs::read(at(name)).unwrap(), b"old", "{name}");
    }
    // Frames that do not reach it, other names, and devices are taken.
    for (name, args) in [
        ("heat", &["--size", "16", "--frames", "1", "--save", "f-%d.png"][..]),
        ("solve", &["poisson2d:8", "--save", "new.npy"]),
        ("solve", &["poisson2d:8", "--save", "/dev/null"]),
    ] {
        let output = run(name, folder.path(), &[args, &host].concat());
        assert!(output.status.success(), "{name} {args:?}: {}", words(&output));
    }
}

#[test]
fn films_that_nobody_could_keep_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--size", "4096", "--frames", "100000", "--save", "film.png", "--device", "host"];
    refused("heat", folder.path(), &args, "film.png would have 100000 frames of 4096 x 4096 pixels, 1562 GiB");
    let args = ["--size", "8", "--frames", "4294967296", "--save", "film.png", "--device", "host"];
    refused("flow", folder.path(), &args, "Name fewer --frames");
    // A value for each pixel: 34 GB.
    let args = ["--pixels", "65536x32768", "--slice", "z=0.5", "--save", "film.png", "--device", "host"];
    let few = residuum::Device::host().info().memory < 34 << 30;
    if few {
        refused("fem", folder.path(), &args, "bytes, the limit is");
    } else {
        println!("skipped: this machine has the memory for large pictures");
    }
    assert!(!folder.path().join("film.png").exists());
}

/// Steps that are no solution are said, with what to change.
#[test]
fn absurd_steps_are_said() {
    let folder = tempfile::tempdir().unwrap();
    for (name, args, part) in [
        ("heat", &["--step", "1e30"][..], "change --step"),
        ("heat", &["--step", "1e30", "--backwards"], "change --step"),
        ("heat", &["--step", "1e300", "--precision", "fp64", "--backwards"], "change --step"),
        ("wave", &["--gamma", "1e30"], "change --gamma"),
        ("wave", &["--gamma", "1e30", "--damped", "--precision", "fp64"], "change --gamma"),
    ] {
        let args = [&["--size", "32", "--frames", "5", "--device", "host"], args].concat();
        let output = run(name, folder.path(), &args);
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(1), "{name} {args:?}: {}", words(&output));
        assert!(error.lines().count() == 1 && error.contains(part), "{name} {args:?}: {error}");
    }
    // A number of iterations asks for no tolerance.
    for (name, args) in
        [("heat", &["--iterations", "1"][..]), ("heat", &["--backwards"]), ("wave", &[]), ("flow", &[])]
    {
        let args = [&["--size", "32", "--frames", "5", "--device", "host"], args].concat();
        let output = run(name, folder.path(), &args);
        assert!(output.status.success() && output.stderr.is_empty(), "{name} {args:?}: {}", words(&output));
    }
}

#[test]
fn json_has_plain_words_the_geometry_and_a_history_if_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let solve =
        |args: &[&str]| json(&run("solve", folder.path(), &[args, &["--device", "host", "--json"]].concat()));
    let found = solve(&["poisson2d:8"]);
    assert_eq!(found["definiteness"], "positive definite");
    assert!(found["why_definiteness"].as_str().unwrap().contains("Cholesky"), "{found}");
    assert_eq!(found["history"].as_array().unwrap().len() as u64, found["iterations"].as_u64().unwrap() + 1);
    assert_eq!(found["history_every"], 1);
    let bare = solve(&["poisson2d:8", "--no-history"]);
    assert!(bare.get("history").is_none() && bare.get("gradient_history").is_none(), "{bare}");
    assert_eq!(bare["true_residual"], found["true_residual"]);
    let alone = run("solve", folder.path(), &["poisson2d:8", "--no-history"]);
    assert!(alone.status.code() == Some(2) && words(&alone).contains("--json"), "{}", words(&alone));
    // More iterations than a report has norms: steepest descent from 1 to 1e-9.
    let entries: String = (0..10).map(|k| format!("{0} {0} 1e-{k}\n", k + 1)).collect();
    let banner = "%%MatrixMarket matrix coordinate real general\n10 10 10\n";
    std::fs::write(folder.path().join("ten.mtx"), format!("{banner}{entries}")).unwrap();
    let args =
        "ten.mtx --method steepest-descent --preconditioner none --iterations 140000 --rtol 0 --device host --json";
    let output = run("solve", folder.path(), &args.split(' ').collect::<Vec<_>>());
    let long = json(&output);
    let (iterations, every) = (long["iterations"].as_u64().unwrap(), long["history_every"].as_u64().unwrap());
    let history = long["history"].as_array().unwrap();
    assert!(
        iterations > 100_000 && every == 4 && history.len() <= 65_537,
        "{iterations} {every} {}",
        history.len()
    );
    assert_eq!(history.len() as u64, iterations.div_ceil(every) + 1);
    let args = ["--size", "16", "--iterations", "2", "--device", "host", "--json"];
    let found = json(&run("reconstruct", folder.path(), &args));
    let geometry = &found["geometry"];
    assert_eq!(
        (&geometry["beam"], &geometry["source_origin"], &geometry["pixels"]),
        (&"fan".into(), &5.0.into(), &256.into())
    );
    assert_eq!(geometry["angles"].as_array().unwrap().len(), 180);
    assert_eq!(found["size"], serde_json::json!([16, 16]));
    let bare = json(&run("reconstruct", folder.path(), &[&args[..], &["--no-history"]].concat()));
    assert!(found["images"][0]["history"].is_array() && bare["images"][0].get("history").is_none());
}

/// Values that parse, and that no device can take.
#[test]
fn absurd_values_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let entry = |set: &str| {
        format!(
            "\n[[entry]]\ndevice = \"x\"\nplatform = \"y\"\ndriver = \"{set}\"\nfamily = \"cg-product\"\nreading = \"rows\"\n\
             precision = \"fp64\"\nsize = \"large\"\nset = {{ {set} }}\n"
        )
    };
    let sets =
        ["work_group = 3", "work_group = 1000000000", "work_group = 0", "loads = 1000000000", "registers = 7"];
    let text: String = sets.iter().map(|set| entry(set)).collect();
    std::fs::write(at("t.toml"), format!("version = 1\n{text}{}", entry("work_group = 64"))).unwrap();
    let shown = json(&run("tune", folder.path(), &["show", "--file", "t.toml", "--json"]));
    let ignored: Vec<&str> =
        shown["ignored"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(ignored.len(), sets.len(), "{shown}");
    for (k, (line, set)) in ignored.iter().zip(sets).enumerate() {
        let (name, value) = set.split_once(" = ").unwrap();
        assert!(
            line.starts_with(&format!("entry {}: {name}: ", k + 1)) && line.contains(&format!(" {value} is not ")),
            "{line}"
        );
    }
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1);
    #[cfg(unix)]
    for (name, args) in [
        ("solve", &["poisson2d:8"][..]),
        ("reconstruct", &["--size", "16"]),
        ("heat", &["--size", "16"]),
        ("spmv", &["--gallery", "poisson2d:8"]),
        ("devices", &[]),
    ] {
        use std::os::unix::ffi::OsStrExt;
        let words = std::ffi::OsStr::from_bytes(b"\xff\xfe");
        let mut command = program(name);
        let output = command.current_dir(folder.path()).args(args).env("RESIDUUM_DEVICE", words).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{name}: {error}");
        assert!(error.contains("RESIDUUM_DEVICE: \"\\xFF\\xFE\" is no UTF-8 text"), "{name}: {error}");
    }
    npy::write(&at("nan.npy"), &[16, 16], &[f64::NAN; 256]).unwrap();
    npy::write(&at("none.npy"), &[16, 16], &[0.0f64; 256]).unwrap();
    let reconstruct = |args: &[&str], part: &str| {
        refused("reconstruct", folder.path(), &[&["--size", "16", "--device", "host"], args].concat(), part);
    };
    for method in ["sirt", "sart", "mlem", "mrnsd", "nnfcgls"] {
        let part = format!("--weight: {method} has no term |x|² to weigh; cgnr, fista and pdhg have one");
        reconstruct(&["--weight", "auto", "--method", method], &part);
    }
    reconstruct(
        &["--method", "sirt", "--regularizer", "tikhonov=1"],
        "--regularizer: tikhonov: sirt has no such term",
    );
    reconstruct(&["--method", "fista", "--regularizer", "tv=1"], "--regularizer: tv: fista has no such term");
    reconstruct(&["--weight", "discrepancy=0.995"], "--weight: discrepancy=0.995 leads to");
    for method in ["cgnr", "fista", "pdhg", "sirt"] {
        reconstruct(&["--lower", "inf", "--method", method], "--lower: inf leaves no value");
        reconstruct(&["--lower", "1e39", "--method", method], "--lower: 1000000000000000");
        reconstruct(&["--lower=-inf", "--upper=-inf", "--method", method], "--upper: -inf leaves no value");
    }
    reconstruct(&["--lower", "nan"], "--lower: NaN leaves no value");
    reconstruct(&["--method", "fista", "--support", "nan.npy"], "--support: nan.npy holds NaN at pixel 0");
    reconstruct(&["--method", "fista", "--support", "none.npy"], "--support: none.npy is 0 everywhere");
}

#[test]
fn a_missing_display_is_said_alone() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["heat", "wave", "flow", "fem"] {
        for display in [None, Some(":12345")] {
            let mut command = program(name);
            command.current_dir(folder.path()).args(["--window", "--device", "host"]);
            command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET");
            command.envs(display.map(|display| ("DISPLAY", display)));
            let output = command.output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr).to_string();
            assert_eq!(output.status.code(), Some(2), "{name}: {error}");
            if error.contains("--features window") {
                println!("skipped: the programs were built without windows");
                return;
            }
            assert!(error.lines().count() == 1 && error.contains("no window can be opened here"), "{error}");
            assert!(!error.contains(".rs") && !error.contains(".cargo"), "{error}");
        }
    }
}

/// The iterate that is in the picture is named, in words that a laboratory has.
#[test]
fn rules_say_which_iterate_is_in_the_picture() {
    let folder = tempfile::tempdir().unwrap();
    let reconstruct = |args: &[&str]| {
        let all = [&["--size", "64", "--stop", "ncp", "--device", "host"], args].concat();
        words(&run("reconstruct", folder.path(), &all))
    };
    let short = reconstruct(&["--iterations", "5"]);
    assert!(short.contains("limit of iterations reached after 5 iterations"), "{short}");
    assert!(short.contains("; the answer is iteration 5, since the rule saw no end by then"), "{short}");
    let ended = reconstruct(&[]);
    assert!(ended.contains("ended before noise comes in") && ended.contains("; the answer is that one"), "{ended}");
    // The rule ends after 38 iterations, with the 24th: after 30 it likes another one than the last.
    let other = reconstruct(&["--iterations", "30"]);
    let wanted =
        "by ncp the best is iteration 24 of 29; the answer is iteration 30, since the rule saw no end by then";
    assert!(other.contains(wanted), "{other}");
    for said in [
        &short,
        &ended,
        &words(&run("solve", folder.path(), &["poisson2d:8", "--iterations", "0", "--device", "host"])),
    ] {
        for word in ["sheets", "launches", "lanes", "all iterations done"] {
            assert!(!said.contains(word), "'{word}' in {said}");
        }
    }
}
