//! The program `reconstruct` on scans whose geometry is unusual, or is not what it is told: half acquisitions, objects wider than the detector, mirrored fans,
//! angles that nobody names, parts of pictures.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::program;
use residuum::imaging::{Beam, Ellipse, Geometry, Grid, Noise, Phantom, Scan, Scanner, Vectors};
use residuum::io::npy;
use serde_json::Value;

const QUIET: Noise = Noise { photons: 1e6, gain: 0.0, seed: 4 };

fn reconstruct(folder: &Path, args: &[&str]) -> Output {
    let host = ["--device", "host"];
    program("reconstruct").current_dir(folder).args(host).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

/// The line of a text that begins with a word.
fn line<'t>(text: &'t str, word: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("no {word} in {text}"))
}

fn turn(count: usize, arc: f64) -> Vec<f64> {
    (0..count).map(|k| arc * k as f64 / count as f64).collect()
}

fn parallel(pixels: usize, pitch: f64, offset: f64, angles: Vec<f64>) -> Scanner {
    Scanner { beam: Beam::Parallel, pixels, pitch, offset, angles }
}

/// Writes the readings of the plate.
fn write(folder: &Path, scanner: &Scanner) -> Scan {
    let scan = Phantom::plate().scan(scanner, 2.0, QUIET).unwrap();
    npy::write(&folder.join("scan.npy"), &[scanner.angles.len(), scanner.pixels], &scan.sinogram).unwrap();
    scan
}

#[test]
fn a_half_acquisition_makes_the_picture_of_a_full_detector() {
    let folder = tempfile::tempdir().unwrap();
    // The axis is seen by pixel 15 of 90, and the long side reaches 1.2.
    write(folder.path(), &parallel(90, 0.016, 29.5, turn(240, 360.0)));
    // The plate in a field of 2.384.
    let smaller = |e: &Ellipse| Ellipse { x: e.x / 1.192, y: e.y / 1.192, a: e.a / 1.192, b: e.b / 1.192, ..*e };
    let scaled = Phantom { ellipses: Phantom::plate().ellipses.iter().map(smaller).collect() };
    let truth = scaled.image(Grid { side: 128, pixel: 2.384 / 128.0 });
    npy::write(&folder.path().join("truth.npy"), &[128, 128], &truth).unwrap();
    let args = "--input scan.npy --arc 360 --axis 15 --pitch 0.016 --size 128 --reference truth.npy --json";
    let args: Vec<&str> = args.split(' ').collect();
    for more in [&["--method", "fbp"][..], &["--start-fbp", "--iterations", "0"]] {
        let value = json(&reconstruct(folder.path(), &[&args[..], more].concat()));
        let error = value["images"][0]["relative_error"].as_f64().unwrap();
        assert!(error < 0.13, "{error}");
        let wide = value["picture"]["pixel"].as_f64().unwrap() * 128.0;
        assert!((wide - 2.384).abs() < 1e-9, "{wide}");
        assert!(value["problem"].as_str().unwrap().contains("the long side"), "{value}");
        assert_eq!(value["images"][0]["warnings"], serde_json::json!([]));
    }
}

#[test]
fn an_object_wider_than_the_detector_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &parallel(64, 0.02, 0.0, turn(60, 180.0)));
    let of = |more: &[&str]| {
        let args = ["--input", "scan.npy", "--arc", "180", "--pitch", "0.02", "--size", "64", "--json"];
        json(&reconstruct(folder.path(), &[&args[..], more].concat()))["images"][0]["warning"].to_string()
    };
    for more in [&["--method", "fbp"][..], &["--iterations", "3"], &["--method", "fbp", "--field", "1.8"]] {
        let warning = of(more);
        assert!(
            warning.contains("reaches beyond the detector") && warning.contains("needs a picture 2.0"),
            "{warning}"
        );
        assert!(warning.contains("--field"), "{warning}");
    }
    // The picture has room for it.
    assert_eq!(of(&["--field", "1.8"]), "null");
}

#[test]
fn a_fan_that_turns_the_other_way_is_noticed_and_flipped() {
    let folder = tempfile::tempdir().unwrap();
    let beam = Beam::Fan { source_origin: 5.0, source_detector: 8.0 };
    let scanner = Scanner { beam, ..parallel(96, 0.035, 1.5, turn(90, 360.0)) };
    write(folder.path(), &scanner);
    let of = |more: &[&str]| -> (Vec<f64>, Value) {
        let args = "--input scan.npy --geometry fan --source-origin 5 --source-detector 8 --pitch 0.035 --field 2 --size 48 --axis 46 --json --save x.npy";
        let args: Vec<&str> = args.split(' ').chain(more.iter().copied()).collect();
        let value = json(&reconstruct(folder.path(), &args));
        (npy::read(&folder.path().join("x.npy")).unwrap().data, value["images"][0]["warning"].clone())
    };
    let (right, none) = of(&["--arc", "360"]);
    assert_eq!(none, Value::Null);
    let (_, warning) = of(&["--arc=-360"]);
    assert!(warning.as_str().unwrap().contains("--flip angles"), "{warning}");
    let (found, none) = of(&["--arc=-360", "--flip", "angles"]);
    assert_eq!((found, none), (right.clone(), Value::Null));
    // Mirrored, left to right, about the same axis.
    for args in [&["--arc", "360", "--flip", "picture"][..], &["--arc=-360", "--flip", "pixels"]] {
        let (found, none) = of(args);
        assert_eq!(none, Value::Null);
        let (mut difference, mut square) = (0.0, 0.0);
        for (found, right) in found.chunks(48).zip(right.chunks(48)) {
            for (found, right) in found.iter().rev().zip(right) {
                difference += (found - right) * (found - right);
                square += right * right;
            }
        }
        assert!(difference < 1e-3 * square, "{args:?}: {difference} {square}");
    }
    // The geometry that is written is that of the file.
    let args = "--input scan.npy --geometry fan --source-origin 5 --source-detector 8 --pitch 0.035 --arc 360 --axis 46 --flip picture --method fbp --size 16 --save-geometry g.toml";
    let said = text(&reconstruct(folder.path(), &args.split(' ').collect::<Vec<_>>()));
    assert!(line(&said, "axis").contains("pixel 46.00"), "{said}");
    let written = Geometry::read(folder.path().join("g.toml")).unwrap().scanner(90, 96).unwrap();
    assert_eq!((written.axis(), written.angles[1]), (46.0, 4.0));
}

#[test]
fn angles_are_said_and_those_of_a_fan_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &parallel(32, 0.07, 0.0, turn(30, 180.0)));
    let of = |more: &[&str]| {
        let args = ["--input", "scan.npy", "--method", "fbp", "--size", "16"];
        reconstruct(folder.path(), &[&args[..], more].concat())
    };
    for (args, words) in [
        (&[][..], "30, 0 to 174 degrees by steps of 6; assumed, half a turn"),
        (&["--arc", "180"], "30, 0 to 174 degrees by steps of 6"),
        (&["--arc=-60", "--start", "90"], "30, 90 to 32 degrees by steps of -2; they cover 60 of the 180 degrees"),
        (&["--arc", "180", "--keep", "0:0"], "1, at 0 degrees"),
    ] {
        let said = text(&of(args));
        let line = line(&said, "angles");
        assert!(line.contains(words) && (args.is_empty() || !line.contains("assumed")), "{line}");
    }
    let said = json(&of(&["--json"]));
    assert_eq!(said["angles"]["assumed"], Value::Bool(true));
    assert_eq!((said["angles"]["count"].as_u64(), said["angles"]["last"].as_f64()), (Some(30), Some(174.0)));
    let fan = ["--geometry", "fan", "--source-origin", "5", "--source-detector", "8", "--pitch", "0.07"];
    let refused = of(&fan);
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), words.lines().count()), (Some(2), 1), "{words}");
    assert!(words.contains("the angles of this fan are not given: --arc 360"), "{words}");
    let said = text(&of(&[&fan[..], &["--arc", "180"]].concat()));
    assert!(line(&said, "angles").contains("they cover 180 of the 1"), "{said}");
    let refused = of(&["--start", "3"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_part_of_a_picture_is_cut_after_the_solve() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &parallel(64, 2.0 / 64.0, 0.0, turn(60, 180.0)));
    let args = "--input scan.npy --arc 180 --pitch 0.03125 --save x.npy --iterations 20";
    let of = |more: &str| {
        let args: Vec<&str> = args.split(' ').chain(more.split(' ')).collect();
        let value = json(&reconstruct(folder.path(), &[&args[..], &["--json"]].concat()));
        (npy::read(&folder.path().join("x.npy")).unwrap(), value)
    };
    let (whole, _) = of("--size 64");
    let (part, value) = of("--size 64 --roi=-0.5:0.25,0.125:0.5");
    assert_eq!(part.shape, [12, 24]);
    for i in 0..12 {
        assert_eq!(part.data[24 * i..][..24], whole.data[64 * (16 + i) + 16..][..24]);
    }
    assert_eq!(value["picture"]["centre"], serde_json::json!([-0.125, 0.3125]));
    assert_eq!(value["images"][0]["warning"], Value::Null);
    // A field within the object spoils the picture.
    let (_, value) = of("--size 32 --field 0.8");
    let warning = value["images"][0]["warning"].as_str().unwrap();
    assert!(warning.contains("larger than the picture") && warning.contains("--roi"), "{warning}");
    let refused = reconstruct(
        folder.path(),
        &"--input scan.npy --pitch 0.03125 --roi 0:3,0:1".split(' ').collect::<Vec<_>>(),
    );
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("--roi: x from 0 to 3 is not within the picture, -1 to 1"), "{words}");
}

/// PDHG by its defaults comes as near to the object as CGNR does, and says so if it had too few iterations.
#[test]
fn pdhg_by_its_defaults_reaches_what_cgnr_does() {
    let folder = tempfile::tempdir().unwrap();
    let of = |more: &[&str]| {
        let args = ["--size", "48", "--bin", "4", "--angles", "60", "--json"];
        let value = json(&reconstruct(folder.path(), &[&args[..], more].concat()));
        (value["images"][0]["relative_error"].as_f64().unwrap(), value)
    };
    let (cgnr, _) = of(&[]);
    let (pdhg, value) = of(&["--method", "pdhg"]);
    assert!(pdhg < 1.1 * cgnr, "{pdhg} {cgnr}");
    assert_eq!(
        (&value["images"][0]["not_converged"], &value["images"][0]["stop"]),
        (&Value::Null, &"LeastSquares".into())
    );
    let (_, value) = of(&["--method", "pdhg", "--iterations", "30"]);
    assert!(value["images"][0]["not_converged"].as_f64().unwrap() > 1e-3);
    let said = text(&reconstruct(
        folder.path(),
        &["--size", "48", "--bin", "4", "--method", "pdhg", "--iterations", "30"],
    ));
    assert!(said.contains("not yet converged: the gradient has fallen to"), "{said}");
}

/// A source on an ellipse, and a detector that shakes: the readings are reconstructed by their vectors, and not as those of a plain fan.
#[test]
fn views_by_vectors_are_reconstructed() {
    let folder = tempfile::tempdir().unwrap();
    let view = |k: usize| {
        let (sin, cos) = (4.0 * k as f64).to_radians().sin_cos();
        let shake = 0.1 * (k as f64 * 1.7).sin();
        [5.0 * sin, -6.0 * cos, -3.0 * sin + shake * cos, 3.0 * cos + shake * sin, 0.035 * cos, 0.035 * sin]
    };
    let rows: Vec<[f64; 6]> = (0..90).map(view).collect();
    write(folder.path(), &Scanner::of_vectors(Vectors::from_sources(rows.clone()).unwrap(), 96).unwrap());
    let truth = Phantom::plate().image(Grid { side: 64, pixel: 2.0 / 64.0 });
    npy::write(&folder.path().join("truth.npy"), &[64, 64], &truth).unwrap();
    npy::write(&folder.path().join("poses.npy"), &[90, 6], &rows.concat()).unwrap();
    fs::write(folder.path().join("g.toml"), "beam = \"vectors\"\nvectors = \"poses.npy\"\n").unwrap();
    let run = |more: &str| {
        let args = format!("--input scan.npy --field 2 --size 64 --reference truth.npy --json {more}");
        reconstruct(folder.path(), &args.split_whitespace().collect::<Vec<_>>())
    };
    let found = json(&run("--geometry g.toml --save-geometry all.toml"));
    let error = found["images"][0]["relative_error"].as_f64().unwrap();
    assert!(error < 0.16, "{error}");
    assert_eq!(found["geometry"]["beam"], "vectors");
    let fan = json(&run("--geometry fan --source-origin 5.5 --source-detector 8.5 --pitch 0.035 --arc 360"));
    let of_fan = fan["images"][0]["relative_error"].as_f64().unwrap();
    assert!(of_fan > 2.0 * error, "{error} {of_fan}");
    // The geometry that was written holds the numbers themselves.
    let again = json(&run("--geometry all.toml"));
    assert_eq!(again["images"][0]["relative_error"], found["images"][0]["relative_error"]);
    for (more, words) in [
        ("--method fbp", "--method: views by vectors have no common axis"),
        ("--axis auto", "--axis: views by vectors have no common axis"),
        ("--axis 40", "--axis: views by vectors have no common axis"),
        ("--angles 91", "--angles: 91 is not between 1 and 90"),
    ] {
        let output = run(&format!("--geometry g.toml {more}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{more}: {said}");
    }
}
