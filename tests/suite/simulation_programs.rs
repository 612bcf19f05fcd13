//! `examples/heat`, `wave`, `flow` and `fem` as a user runs them: files, hashes, known answers, exit codes.

use std::io::BufReader;
use std::path::Path;

use crate::common::{self, run};
use serde_json::Value;

fn json(name: &str, folder: &Path, args: &[&str]) -> Value {
    let output = run(name, folder, &[args, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{name} {args:?}: {text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Frames and size of a picture.
fn frames(path: &Path) -> (u32, [u32; 2]) {
    let reader = png::Decoder::new(BufReader::new(std::fs::File::open(path).unwrap())).read_info().unwrap();
    let info = reader.info();
    (info.animation_control().map_or(1, |control| control.num_frames), [info.width, info.height])
}

#[test]
fn simulations_have_one_hash_on_every_device_and_save_what_they_show() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["heat", "wave", "flow"] {
        let common = ["--size", "40x30", "--frames", "12"];
        let film = json(
            name,
            folder.path(),
            &[&common[..], &["--device", "host", "--save", "film.png", "--every", "4"]].concat(),
        );
        assert_eq!(frames(&folder.path().join("film.png")), (3, [40, 30]), "{name}");
        assert_eq!(film["frames"], 12);
        assert!(
            film["frames_per_second"].as_f64().unwrap() > 0.0
                && film["iterations_per_frame"].as_f64().unwrap() > 0.5
        );
        for device in common::devices() {
            let index =
                device.info().index.map_or("host".into(), |(platform, device)| format!("{platform}:{device}"));
            for size in ["32", "256"] {
                let args = [&common[..], &["--device", &index, "--work-group", size]].concat();
                let found = json(name, folder.path(), if index == "host" { &args[..6] } else { &args });
                assert_eq!(found["hash"], film["hash"], "{name} on {}", device.info().name);
            }
        }
        let files =
            json(name, folder.path(), &[&common[..], &["--device", "host", "--save", "f-%03d.png"]].concat());
        assert_eq!(files["hash"], film["hash"], "{name}");
        for k in 0..12 {
            let path = folder.path().join(format!("f-{k:03}.png"));
            assert_eq!(frames(&path), (1, [40, 30]));
            std::fs::remove_file(path).unwrap();
        }
        let double =
            json(name, folder.path(), &[&common[..], &["--device", "host", "--precision", "fp64"]].concat());
        assert_ne!(double["hash"], film["hash"], "{name}");
    }
}

#[test]
fn pictures_are_read_and_obstacles_with_them() {
    let folder = tempfile::tempdir().unwrap();
    // Frames of one program are pictures for the others.
    let args = ["--size", "48", "--frames", "1", "--device", "host", "--save", "emblem.png"];
    let emblem = json("heat", folder.path(), &args);
    let read = json("heat", folder.path(), &["--input", "emblem.png", "--frames", "3", "--device", "host"]);
    assert_eq!((&read["width"], &read["height"]), (&emblem["width"], &emblem["height"]));
    let small = json(
        "heat",
        folder.path(),
        &["--input", "emblem.png", "--size", "20x10", "--frames", "3", "--device", "host"],
    );
    assert_eq!((small["width"].as_u64(), small["height"].as_u64()), (Some(20), Some(10)));
    let insulated = [
        "--boundary",
        "insulated",
        "--frames",
        "20",
        "--precision",
        "fp64",
        "--rtol",
        "1e-13",
        "--device",
        "host",
        "--size",
        "30",
    ];
    let kept = json("heat", folder.path(), &insulated);
    let part = kept["heat"].as_f64().unwrap() / kept["heat_at_first"].as_f64().unwrap();
    assert!((part - 1.0).abs() < 1e-12, "{part}");
    let there = json("heat", folder.path(), &["--backwards", "--frames", "2", "--device", "host", "--size", "30"]);
    assert_eq!(there["iterations_per_frame"], 0.0);
    for name in ["wave", "flow"] {
        let free = json(name, folder.path(), &["--size", "48", "--frames", "5", "--device", "host"]);
        let args = ["--size", "48", "--frames", "5", "--device", "host", "--obstacles", "emblem.png"];
        let blocked = json(name, folder.path(), &args);
        assert_ne!(free["hash"], blocked["hash"], "{name}");
        assert_ne!(blocked["format"], "on-the-fly", "{name}");
    }
}

#[test]
fn flows_with_known_answers_are_compared_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let vortex = [
        "--case",
        "taylor-green",
        "--size",
        "64",
        "--time",
        "0.2",
        "--rtol",
        "1e-8",
        "--precision",
        "fp64",
        "--device",
        "host",
    ];
    let found = json("flow", folder.path(), &vortex);
    assert!(found["vortex_error"].as_f64().unwrap() < 3e-3, "{found}");
    let cavity = ["--case", "cavity", "--size", "64", "--time", "16", "--precision", "fp64", "--device", "host"];
    let found = json("flow", folder.path(), &cavity);
    let worst =
        found["ghia_differences"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).fold(0.0, f64::max);
    assert!(worst < 0.01, "{found}");
    // Far from the end the cavity is not the one of the tables, and the program says so.
    let early =
        run("flow", folder.path(), &["--case", "cavity", "--size", "32", "--frames", "5", "--device", "host"]);
    assert_eq!(early.status.code(), Some(1));
    // Nor does a step converge in no time.
    let args = ["--size", "64", "--frames", "2", "--rtol", "1e-30", "--device", "host"];
    assert_eq!(run("wave", folder.path(), &args).status.code(), Some(1));
}

#[test]
fn finite_elements_have_one_hash_and_fall_in_error() {
    let folder = tempfile::tempdir().unwrap();
    for case in ["cube", "fichera", "l-shape", "bend", "disc"] {
        let common = ["--case", case, "--frames", "3", "--pixels", "60x40"];
        let on_host = [&common[..], &["--device", "host", "--save", "film.png", "--vtk", "out.vtk"]].concat();
        let found = json("fem", folder.path(), &on_host);
        assert_eq!(frames(&folder.path().join("film.png")), (3, [60, 40]), "{case}");
        let steps = found["steps"].as_array().unwrap();
        let errors: Vec<f64> = steps.iter().map(|step| step["energy_error"].as_f64().unwrap()).collect();
        assert!(errors.len() == 3 && errors.windows(2).all(|e| e[1] < 0.72 * e[0]), "{case}: {errors:?}");
        let vtk = std::fs::read(folder.path().join("out.vtk")).unwrap();
        let count = |word: &str| -> usize {
            let at = vtk.windows(word.len()).position(|part| part == word.as_bytes()).expect(word) + word.len();
            let digits = vtk[at..].iter().take_while(|c| c.is_ascii_digit());
            digits.fold(0, |n, c| 10 * n + usize::from(c - b'0'))
        };
        // All arrays are as long as the file says: the last one ends it.
        let values = b"LOOKUP_TABLE default\n";
        let at = vtk.windows(values.len()).position(|part| part == values).unwrap() + values.len();
        assert_eq!(vtk.len() - at, 8 * count("POINT_DATA "), "{case}");
        assert_eq!(count("CELLS "), count("CELL_TYPES "));
        for device in common::devices() {
            let index =
                device.info().index.map_or("host".into(), |(platform, device)| format!("{platform}:{device}"));
            let found_there = json("fem", folder.path(), &[&common[..], &["--device", &index]].concat());
            assert_eq!(found_there["hash"], found["hash"], "{case} on {}", device.info().name);
        }
    }
    // Stored or not, the answer is the same up to the tolerance; a slice is a picture too.
    let both = ["matrix-free", "stored"].map(|operator| {
        let args =
            ["--operator", operator, "--frames", "3", "--device", "host", "--slice", "z=0.1", "--save", "s.png"];
        json("fem", folder.path(), &args)["steps"][2]["energy_error"].as_f64().unwrap()
    });
    assert!((both[0] / both[1] - 1.0).abs() < 1e-8, "{both:?}");
    let args = ["--frames", "2", "--rtol", "1e-30", "--device", "host"];
    assert_eq!(run("fem", folder.path(), &args).status.code(), Some(1));
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text.png"), "no picture").unwrap();
    let cases: [(&str, &[&str], &str); 37] = [
        ("heat", &["--input", "text.png"], "no picture"),
        ("heat", &["--input", "none.png"], "none.png"),
        ("heat", &["--step", "0"], "--step"),
        ("heat", &["--step", "-1"], "--step"),
        ("heat", &["--step", "nan"], "--step"),
        ("heat", &["--size", "0"], "--size"),
        ("heat", &["--size", "70000"], "--size"),
        ("heat", &["--size", "65536x65536"], "2^31"),
        ("heat", &["--size", "46000x46000", "--precision", "fp64"], "the limit is"),
        ("heat", &["--save", "film.gif"], "--save"),
        ("heat", &["--save", "frame-%s.png"], "--save"),
        ("heat", &["--save", "none/film.png"], "none"),
        ("heat", &["--backwards", "--rtol", "1e-5"], "--backwards"),
        ("wave", &["--gamma", "nan"], "--gamma"),
        ("wave", &["--gamma", "0"], "--gamma"),
        ("wave", &["--obstacles", "text.png"], "no picture"),
        ("flow", &["--dt", "0"], "step"),
        ("flow", &["--dt", "nan"], "step"),
        ("flow", &["--dt", "5"], "unstable"),
        ("flow", &["--reynolds", "0"], "--reynolds"),
        ("flow", &["--size", "3"], "smaller than 4 x 4"),
        ("flow", &["--case", "cavity", "--size", "40x30"], "square"),
        ("flow", &["--case", "cavity", "--slip"], "--slip"),
        ("fem", &["--size", "0"], "--size"),
        ("fem", &["--size", "4x3"], "--size"),
        ("fem", &["--size", "2000", "--case", "cube"], "2^29"),
        ("fem", &["--degree", "9"], "--degree"),
        ("fem", &["--degree", "0"], "--degree"),
        ("fem", &["--refine", "p", "--frames", "8"], "--frames"),
        ("fem", &["--case", "cube", "--refine", "hp"], "--refine"),
        ("fem", &["--case", "disc", "--degree", "2"], "--degree"),
        ("fem", &["--slice", "z=nan"], "--slice"),
        ("fem", &["--format", "csr"], "--format"),
        ("fem", &["--preconditioner", "ssor"], "--preconditioner"),
        ("fem", &["--operator", "stored", "--preconditioner", "magic"], "magic"),
        ("fem", &["--vtk", "none/out.vtk"], "none"),
        ("fem", &["--save", "film.gif"], "--save"),
    ];
    for (name, args, wanted) in cases {
        let args = [args, &["--device", "host"][..]].concat();
        let output = run(name, folder.path(), &args);
        let words = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{name} {args:?}: {words}");
        assert!(words.contains(wanted), "{name} {args:?}: no '{wanted}' in {words}");
        assert!(words.trim().lines().count() == 1 || words.contains("--help"), "{words}");
        assert!(output.stdout.is_empty());
    }
}
