//! From what scanners write to pictures: counts in files of other programs (h5py's files, TIFF, arrays), and damaged ones.
//!
//! `RESIDUUM_MUTATIONS=1000000` tries that many damaged files of each format (4000 otherwise), `RESIDUUM_MUTATION_SEED` others than those of
//! seed 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::program;
use residuum::Error;
use residuum::imaging::{Beam, CountFiles, Counts, Field, Geometry, Grid, Noise, Phantom, Quality, Scanner};
use residuum::io::npy;
use residuum::sparse::gallery::Random;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exchange").join(name)
}

fn read(files: &CountFiles) -> Result<Counts, Error> {
    Counts::read(files, &mut |_, _| {})
}

#[cfg(feature = "hdf5")]
fn files(name: &str) -> CountFiles {
    CountFiles { projections: data(name), ..CountFiles::default() }
}

#[cfg(feature = "hdf5")]
#[test]
fn files_of_h5py_are_read() {
    for name in ["plain.h5", "chunked.h5"] {
        let counts = read(&files(name)).unwrap();
        assert_eq!(counts.shape, [6, 3, 8]);
        for (at, count) in counts.counts.iter().enumerate() {
            let (k, i, j) = (at / 24, at / 8 % 3, at % 8);
            assert_eq!(*count, (100 + 10 * k + 100 * i + j) as f32, "{name}");
        }
        assert!(counts.flat.iter().all(|v| *v == 800.0) && counts.dark.iter().all(|v| *v == 50.0), "{name}");
        let angles = counts.angles.as_ref().unwrap();
        assert!(angles.iter().enumerate().all(|(k, angle)| (angle - 30.0 * k as f64).abs() < 1e-12), "{angles:?}");
        let one = read(&CountFiles { slices: Some(1..2), ..files(name) }).unwrap();
        assert_eq!((one.shape, one.counts[0], one.counts[8]), ([6, 1, 8], 200.0, 210.0));
        // Fields that are named count more than those of the file.
        let named = CountFiles { flat: Some(Field::Number(900.0)), dark: Some(Field::Number(0.0)), ..files(name) };
        let named = read(&named).unwrap();
        assert!(named.flat.iter().all(|v| *v == 900.0) && named.dark.iter().all(|v| *v == 0.0));
    }
    // Without angles those of the geometry count.
    let counts = read(&CountFiles { flat: Some(Field::Number(900.0)), ..files("no-white.h5") }).unwrap();
    let scans = counts.integrals(&Geometry::default()).unwrap().scans;
    assert_eq!((scans.len(), scans[0].scanner.angles[1]), (3, 30.0));
}

#[cfg(feature = "hdf5")]
#[test]
fn missing_fields_are_named() {
    for (name, words) in [
        ("no-white.h5", "no-white.h5 exchange/data: no flat field"),
        ("no-data.h5", "no data set exchange/data"),
        ("two-dimensions.h5", "frames of 3 x 8 for projections of 1 x 8"),
        ("nan.h5", "nan.h5 exchange/theta holds a value that is not finite at index 4"),
    ] {
        let error = read(&files(name)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = read(&CountFiles { flat: Some(Field::Number(0.0)), ..files("plain.h5") }).unwrap_err().to_string();
    assert!(error.contains("flat field"), "{error}");
}

/// Copies files of the test data into a folder.
#[cfg(feature = "hdf5")]
fn copied(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::copy(data(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[cfg(feature = "hdf5")]
#[test]
fn links_and_virtual_data_sets_lead_to_the_same_numbers() {
    let plain = read(&files("plain.h5")).unwrap();
    for name in ["soft.h5", "soft-group.h5", "external.h5", "virtual.h5"] {
        assert_eq!(read(&files(name)).unwrap(), plain, "{name}");
        // Names in the file are paths through links too.
        let named = CountFiles {
            data: Some("/exchange/data".into()),
            flat: Some(Field::File("exchange/data_white".into())),
            dark: Some(Field::File(format!("{}:exchange/data_dark", data("plain.h5").display()).into())),
            theta: Some("exchange/theta".into()),
            slices: Some(1..2),
            ..files(name)
        };
        let one = read(&named).unwrap();
        assert_eq!((one.shape, one.counts[8], one.flat[3], one.dark[3]), ([6, 1, 8], 210.0, 800.0, 50.0), "{name}");
    }
    // Half floats, and fields of one frame without a dimension for it.
    let half = read(&files("half.h5")).unwrap();
    assert_eq!((&half.counts, &half.flat, &half.dark), (&plain.counts, &plain.flat, &plain.dark));
    // Projections and fields in one volume.
    let tomo = CountFiles { data: Some("entry1/tomo_entry/data/data".into()), ..files("tomo.nxs") };
    let tomo = read(&tomo).unwrap();
    assert_eq!(
        (&tomo.counts, &tomo.flat, &tomo.dark, tomo.shape),
        (&plain.counts, &plain.flat, &plain.dark, plain.shape)
    );
    assert!((tomo.angles.unwrap()[5] - 150.0).abs() < 1e-12);
    // Files that a link needs are named where they are not there.
    for (name, words) in [("external.h5", "leads to the file plain.h5"), ("virtual.h5", "numbers of plain.h5")] {
        let folder = copied(&[name]);
        let lost = CountFiles { projections: folder.path().join(name), ..CountFiles::default() };
        let error = read(&lost).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} exchange/data")) && error.contains(words), "{error}");
        // A file without the data set: its numbers would be 0.
        fs::copy(data("no-data.h5"), folder.path().join("plain.h5")).unwrap();
        let error = read(&lost).unwrap_err().to_string();
        assert!(error.contains("exchange/data"), "{error}");
    }
    for (name, change, words) in [
        (
            "tomo.nxs",
            CountFiles::default(),
            "name the one to read: it holds entry1/tomo_entry/data/data (10 x 3 x 8)",
        ),
        (
            "plain.h5",
            CountFiles { data: Some("raw".into()), ..CountFiles::default() },
            "it holds exchange/data (6 x 3 x 8)",
        ),
        ("plain.h5", CountFiles { theta: Some("raw".into()), ..CountFiles::default() }, "exchange/theta (6)"),
        (
            "plain.h5",
            CountFiles { flat: Some(Field::File("white".into())), ..CountFiles::default() },
            "flat: no file and no data set white: it holds exchange/data (6 x 3 x 8), ",
        ),
        (
            "plain.h5",
            CountFiles { theta: Some("exchange/data".into()), ..CountFiles::default() },
            "expected 6, found 144",
        ),
    ] {
        let error = read(&CountFiles { projections: data(name), ..change }).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[cfg(not(all(feature = "hdf5", feature = "tiff")))]
#[test]
fn formats_that_need_a_feature_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let tiff = folder.path().join("a.tif");
    fs::write(&tiff, b"II*\0\x08\0\0\0").unwrap();
    for (path, feature, there) in
        [(data("plain.h5"), "hdf5", cfg!(feature = "hdf5")), (tiff, "tiff", cfg!(feature = "tiff"))]
    {
        let error = read(&CountFiles { projections: path, ..CountFiles::default() });
        assert!(there || error.unwrap_err().to_string().contains(&format!("--features {feature}")));
    }
}

/// Photons that reach a pixel without an object, and what it counts without a beam.
const LIGHT: f64 = 20_000.0;
const DARK: f64 = 120.0;
/// A pixel of the first slice that is dead.
const DEAD: usize = 77;

fn scanner() -> Scanner {
    let angles = (0..180).map(f64::from).collect();
    Scanner { beam: Beam::Parallel, pixels: 160, pitch: 0.018, offset: 6.3, angles }
}

/// Counts of two slices, the second half as thick, by a detector whose pixels count differently, with its fields, as `.npy` files.
fn write_counts(folder: &Path) {
    let scan = Phantom::plate().scan(&scanner(), 2.0, Noise { photons: 3e4, gain: 0.0, seed: 4 }).unwrap();
    let gain = |slice: usize, j: usize| match (slice, j) {
        (0, DEAD) => 0.0,
        _ => 1.0 + 0.1 * (((j * 37 + slice * 11) % 16) as f64 / 16.0 - 0.5),
    };
    let mut counts = Vec::new();
    for row in scan.sinogram.chunks(160) {
        for (slice, thickness) in [(0, 1.0), (1, 0.5)] {
            let count = |(j, v): (usize, &f64)| DARK + LIGHT * gain(slice, j) * (-thickness * v).exp();
            counts.extend(row.iter().enumerate().map(count));
        }
    }
    let field = |light: f64| -> Vec<f64> {
        let frame = (0..2).flat_map(|slice| (0..160).map(move |j| (slice, j)));
        frame.map(|(slice, j)| DARK + light * gain(slice, j)).collect()
    };
    npy::write(&folder.join("p.npy"), &[180, 2, 160], &counts).unwrap();
    npy::write(&folder.join("f.npy"), &[2, 2, 160], &[field(0.9 * LIGHT), field(1.1 * LIGHT)].concat()).unwrap();
    npy::write(&folder.join("d.npy"), &[2, 160], &field(0.0)).unwrap();
}

const COUNTS: [&str; 14] = [
    "--input", "p.npy", "--flat", "f.npy", "--dark", "d.npy", "--pitch", "0.018", "--field", "2", "--size", "96",
    "--device", "host",
];

fn reconstruct(folder: &Path, args: &[&str]) -> Output {
    program("reconstruct").current_dir(folder).args(COUNTS).args(args).output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text} {error}"))
}

#[test]
fn counts_become_pictures_in_one_command() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    let at = |name: &str| folder.path().join(name);
    let wanted = Phantom::plate().image(Grid { side: 96, pixel: 2.0 / 96.0 });
    let fbp = ["--method", "fbp", "--json", "--save", "x.npy", "--save-geometry", "g.toml"];
    let output = json(&reconstruct(folder.path(), &fbp));
    let axis = output["axis"].as_f64().unwrap();
    assert!((axis - scanner().axis()).abs() < 0.3 && output["axis_found"] == true, "{axis}");
    assert_eq!((&output["repaired"], &output["method"]), (&180.into(), &"fbp".into()));
    let pictures = npy::read(&at("x.npy")).unwrap();
    assert_eq!(pictures.shape, [2, 96, 96]);
    for (picture, thickness) in pictures.data.chunks(96 * 96).zip([1.0, 0.5]) {
        let full: Vec<f64> = picture.iter().map(|v| v / thickness).collect();
        let quality = Quality::of(&full, &wanted).unwrap();
        assert!(quality.correlation > 0.9, "{thickness}: {}", quality.correlation);
        let mean = |values: &[f64]| values.iter().sum::<f64>();
        assert!((mean(&full) / mean(&wanted) - 1.0).abs() < 0.01, "{thickness}");
    }
    assert!(at("reconstruction-1.png").exists() && at("reconstruction-2.png").exists());
    // The geometry that was written says all.
    let geometry = Geometry::read(at("g.toml")).unwrap().scanner(180, 160).unwrap();
    assert!((geometry.axis() - axis).abs() < 1e-9 && geometry.angles == scanner().angles);
    let again = program("reconstruct")
        .current_dir(folder.path())
        .args(COUNTS.iter().filter(|arg| **arg != "--pitch" && **arg != "0.018"))
        .args(["--method", "fbp", "--json", "--save", "y.npy", "--geometry", "g.toml"])
        .output()
        .unwrap();
    assert_eq!(json(&again)["axis_found"], false);
    assert_eq!(npy::read(&at("y.npy")).unwrap(), pictures);
    // One slice by the method of the defaults is nearer to the phantom, and starts nearer to its end from the back-projection.
    let one = ["--slices", "0:1", "--json", "--save", "z.npy", "--start-fbp", "--filter", "hann"];
    let output = json(&reconstruct(folder.path(), &[&one[..], &["--rings", "5", "--crop", "4:158"]].concat()));
    assert_eq!((&output["start"], &output["method"]), (&"hann".into(), &"cgnr".into()));
    let better = Quality::of(&npy::read(&at("z.npy")).unwrap().data, &wanted).unwrap().correlation;
    let first = Quality::of(&pictures.data[..96 * 96], &wanted).unwrap().correlation;
    assert!(better > first, "{better} {first}");
    // A pipe can be read only once.
    #[cfg(unix)]
    {
        assert!(std::process::Command::new("mkfifo").arg(at("pipe.npy")).status().unwrap().success());
        let (content, pipe) = (fs::read(at("p.npy")).unwrap(), at("pipe.npy"));
        let writer = std::thread::spawn(move || fs::write(pipe, content));
        let output = program("reconstruct")
            .current_dir(folder.path())
            .args(COUNTS.map(|arg| if arg == "p.npy" { "pipe.npy" } else { arg }))
            .args(["--method", "fbp", "--json", "--save", "piped.npy"])
            .output()
            .unwrap();
        assert_eq!(json(&output)["repaired"], 180);
        writer.join().unwrap().unwrap();
        assert_eq!(npy::read(&at("piped.npy")).unwrap(), pictures);
    }
    // A window is the same for all pictures.
    let output = json(&reconstruct(folder.path(), &["--method", "fbp", "--json", "--window=-0.5:1.5"]));
    assert_eq!(output["window"], serde_json::json!([-0.5, 1.5]));
}

/// Slices that are read and solved for a block at a time have the pictures of all at once, about the same axis.
#[test]
fn blocks_of_slices_are_the_stack() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    let at = |name: &str| folder.path().join(name);
    // Five slices of those two.
    for (name, frames) in [("p.npy", 180), ("f.npy", 2), ("d.npy", 1)] {
        let two = npy::read(&at(name)).unwrap().data;
        let five = two.chunks(320).flat_map(|frame| [1, 1, 0, 0, 1].map(|k| &frame[160 * k..160 * (k + 1)]));
        npy::write(&at(name), &[frames, 5, 160], &five.collect::<Vec<_>>().concat()).unwrap();
    }
    let run = |args: &[&str], name: &str| {
        let short = ["--iterations", "12", "--gradient-reduction", "0", "--json", "--save", name];
        let output = json(&reconstruct(folder.path(), &[args, &short].concat()));
        (npy::read(&at(name)).unwrap(), output)
    };
    let (wanted, whole) = run(&[], "whole.npy");
    assert_eq!((&wanted.shape[..], &whole["repaired"]), (&[5, 96, 96][..], &(2 * 180).into()));
    for at_once in ["1", "2", "4", "5"] {
        let (found, output) = run(&["--at-once", at_once], "blocks.npy");
        assert!(found == wanted, "{at_once} at once");
        for field in ["axis", "axis_found", "repaired", "window"] {
            assert_eq!(output[field], whole[field], "{field} with {at_once} at once");
        }
        let residuals = |output: &serde_json::Value| -> Vec<f64> {
            output["images"].as_array().unwrap().iter().map(|i| i["true_residual"].as_f64().unwrap()).collect()
        };
        assert_eq!(residuals(&output), residuals(&whole), "{at_once} at once");
    }
    let output = reconstruct(folder.path(), &["--at-once", "2", "--iterations", "2"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("slices      2 at a time") && text.contains("360 readings had no counts"), "{text}");
    for (args, part) in [
        (&["--at-once", "0"][..], "--at-once: 0 slices are none"),
        (&["--at-once", "2", "--slices", "1:6"], "--slices: 1:6 of 5 slices"),
        (&["--at-once", "2", "--method", "fista", "--support", "disc"], "the disc is one of all slices"),
    ] {
        let output = reconstruct(folder.path(), args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(part), "{args:?}: {error}");
    }
    // A slice without light is named by its number in the file.
    let mut dark = npy::read(&at("f.npy")).unwrap().data;
    dark.chunks_mut(160).skip(3).step_by(5).for_each(|slice| slice.fill(0.0));
    npy::write(&at("f.npy"), &[2, 5, 160], &dark).unwrap();
    for at_once in ["1", "2", "5"] {
        let output = reconstruct(folder.path(), &["--at-once", at_once, "--axis", "79.5"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("projection 0 of slice 3 has no readings"), "{at_once} at once: {error}");
    }
}

/// Runs that are to be done, with what they say in JSON and the correlation of the first picture with the phantom.
fn quality(folder: &Path, args: &[&str]) -> (serde_json::Value, f64) {
    let common = ["--pitch", "0.018", "--field", "2", "--size", "96", "--device", "host", "--method", "fbp"];
    let output = program("reconstruct")
        .current_dir(folder)
        .args(args)
        .args(common)
        .args(["--json", "--save", "q.npy"])
        .output()
        .unwrap();
    let said = json(&output);
    let picture = npy::read(&folder.join("q.npy")).unwrap();
    let wanted = Phantom::plate().image(Grid { side: 96, pixel: 2.0 / 96.0 });
    (said, Quality::of(&picture.data[..96 * 96], &wanted).unwrap().correlation)
}

/// The line of a run that is refused.
fn refusal(folder: &Path, args: &[&str]) -> String {
    let output = program("reconstruct").current_dir(folder).args(args).args(["--device", "host"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{args:?}: {error}");
    error
}

#[test]
fn one_slice_is_a_sinogram_and_no_angle_is_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    let at = |name: &str| folder.path().join(name);
    let counts = npy::read(&at("p.npy")).unwrap().data;
    let slice = |data: &[f64]| -> Vec<f64> { data.chunks(320).flat_map(|both| &both[..160]).copied().collect() };
    npy::write(&at("one.npy"), &[180, 160], &slice(&counts)).unwrap();
    let flat = slice(&npy::read(&at("f.npy")).unwrap().data);
    let dark = slice(&npy::read(&at("d.npy")).unwrap().data);
    npy::write(&at("f1.npy"), &[2, 160], &flat).unwrap();
    npy::write(&at("f1v.npy"), &[2, 1, 160], &flat).unwrap();
    npy::write(&at("d1.npy"), &[160], &dark).unwrap();
    let (_, whole) = quality(folder.path(), &["--input", "p.npy", "--flat", "f.npy", "--dark", "d.npy"]);
    for flat in ["f1.npy", "f1v.npy"] {
        let (said, found) = quality(folder.path(), &["--input", "one.npy", "--flat", flat, "--dark", "d1.npy"]);
        assert_eq!((said["images"].as_array().unwrap().len(), found > 0.9), (1, true), "{flat}: {found} {whole}");
        assert!(said["remarks"].to_string().contains("taken for a sinogram of 180 angles x 160 pixels"));
    }
    // The other order of a volume, and the other meaning of a picture.
    let turned: Vec<f64> =
        (0..2).flat_map(|s| counts.chunks(320).flat_map(move |k| &k[160 * s..160 * (s + 1)])).copied().collect();
    npy::write(&at("turned.npy"), &[2, 180, 160], &turned).unwrap();
    let fields = ["--flat", "f.npy", "--dark", "d.npy", "--order", "slices"];
    let (said, found) = quality(folder.path(), &[&["--input", "turned.npy"][..], &fields].concat());
    assert_eq!((said["images"].as_array().unwrap().len(), found), (2, whole));
    npy::write(&at("one-projection.npy"), &[2, 160], &counts[..320]).unwrap();
    let order = ["--input", "one-projection.npy", "--flat", "f.npy", "--order", "angles", "--axis", "80"];
    let (said, _) = quality(folder.path(), &order);
    assert!(said["problem"].as_str().unwrap().contains("1 angles x 160 pixels"), "{said}");
    // Without a flat field nobody can tell what is meant, or it shows.
    npy::write(&at("deep.npy"), &[180, 1, 160], &slice(&counts)).unwrap();
    let thick: Vec<f64> = counts.chunks(320).flat_map(|both| [both; 4].concat()).collect();
    npy::write(&at("thick.npy"), &[180, 8, 160], &thick).unwrap();
    for (name, words) in [
        (
            "p.npy",
            "--order: 180 x 2 x 160 readings: name what comes first, angles (180 angles, 2 slices) or slices (180 slices, 2 angles)",
        ),
        ("deep.npy", "--order: 180 x 1 x 160"),
        ("thick.npy", "look like counts: name --flat"),
        ("one.npy", "look like counts: name --flat"),
    ] {
        let error = refusal(folder.path(), &["--input", name]);
        assert!(error.contains(words), "{error}");
    }
    let line_integrals = ["--input", "one.npy", "--line-integrals"];
    assert_eq!(quality(folder.path(), &line_integrals).0["images"].as_array().unwrap().len(), 1);
    // Pixels x angles.
    let sinogram: Vec<f64> = slice(&counts).iter().map(|v| ((LIGHT + DARK) / v).ln().max(0.0)).collect();
    let turned: Vec<f64> = (0..160).flat_map(|j| sinogram.iter().skip(j).step_by(160)).copied().collect();
    npy::write(&at("pixels.npy"), &[160, 180], &turned).unwrap();
    let (said, _) = quality(folder.path(), &["--input", "pixels.npy"]);
    assert!(said["remarks"].to_string().contains("is the array pixels x angles?"), "{said}");
    fs::write(at("theta.txt"), (0..180).map(|k| format!("{k}\n")).collect::<String>()).unwrap();
    let error = refusal(folder.path(), &["--input", "pixels.npy", "--theta", "theta.txt"]);
    assert!(error.contains("is the array pixels x angles?"), "{error}");
    fs::write(at("z.npz"), b"PK\x03\x04").unwrap();
    let error = refusal(folder.path(), &["--input", "z.npz", "--pitch", "2"]);
    assert!(error.contains("save it by np.save"), "{error}");
}

#[test]
fn fields_and_pixels_that_are_wrong_are_left_out_and_said() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    let at = |name: &str| folder.path().join(name);
    let fields = ["--input", "p.npy", "--flat", "f.npy", "--dark", "d.npy"];
    let (clean, _) = quality(folder.path(), &fields);
    // About one axis, so that nothing else changes.
    let axis = ["--axis", &clean["axis"].to_string()];
    let quality = |args: &[&str]| quality(folder.path(), &[args, &axis].concat());
    let (clean, wanted) = quality(&fields);
    let pictures = npy::read(&at("q.npy")).unwrap();
    // The pixel without light is named.
    assert_eq!(clean["bad_pixels"], serde_json::json!([{ "slice": 0, "pixel": DEAD, "fault": "dead" }]));
    assert_eq!((&clean["remarks"], &clean["repaired"]), (&serde_json::json!([]), &180.into()));
    // One frame of four without beam.
    let (flat, dark) = (npy::read(&at("f.npy")).unwrap().data, npy::read(&at("d.npy")).unwrap().data);
    npy::write(&at("f2.npy"), &[4, 2, 160], &[&flat[..], &flat].concat()).unwrap();
    quality(&["--input", "p.npy", "--flat", "f2.npy", "--dark", "d.npy"]);
    let two = npy::read(&at("q.npy")).unwrap();
    npy::write(&at("f5.npy"), &[5, 2, 160], &[&flat[..], &dark, &flat].concat()).unwrap();
    let (said, _) = quality(&["--input", "p.npy", "--flat", "f5.npy", "--dark", "d.npy"]);
    assert_eq!(npy::read(&at("q.npy")).unwrap(), two);
    assert_eq!(
        said["remarks"][0],
        "f5.npy: 1 of 5 frames left out, frame 2 (from 0): 0.00 times the light of the others"
    );
    // A pixel with 2 counts of light, and one with far too many.
    let mut flat = flat;
    for frame in flat.chunks_mut(320) {
        frame[DEAD] = dark[DEAD] + 2.0;
        frame[160 + 40] *= 8.0;
    }
    npy::write(&at("faint.npy"), &[2, 2, 160], &flat).unwrap();
    let mut counts = npy::read(&at("p.npy")).unwrap().data;
    counts.chunks_mut(320).enumerate().for_each(|(k, both)| both[DEAD] = dark[DEAD] + (k % 4) as f64);
    npy::write(&at("faint-p.npy"), &[180, 2, 160], &counts).unwrap();
    let faint = ["--input", "faint-p.npy", "--flat", "faint.npy", "--dark", "d.npy"];
    let (said, found) = quality(&faint);
    let hot = serde_json::json!({ "slice": 1, "pixel": 40, "fault": "hot" });
    assert_eq!((&said["bad_pixels"][1], found), (&hot, wanted));
    assert_eq!(npy::read(&at("q.npy")).unwrap().data[..96 * 96], pictures.data[..96 * 96]);
    // Without a search the slice is ruined; a list mends it as well.
    let (_, ruined) = quality(&[&faint[..], &["--bad-pixels", "none"]].concat());
    assert!(ruined < wanted - 0.1, "{ruined} {wanted}");
    let (said, found) = quality(&[&faint[..], &["--bad-pixels", "none,0:77"]].concat());
    assert_eq!((&said["bad_pixels"][0]["fault"], found), (&"named".into(), wanted));
    let output = reconstruct(folder.path(), &["--method", "fbp"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 bad pixel(s) replaced from neighbours, counted from 0: 77 of slice 0 (dead)"),
        "{text}"
    );
    for (list, words) in [("160", "--bad-pixels: pixel 160 of 160"), ("x", "'x' is none of a pixel")] {
        let output = reconstruct(folder.path(), &["--bad-pixels", list]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn angles_are_text_and_radians_are_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    let at = |name: &str| folder.path().join(name);
    let fields = ["--input", "p.npy", "--flat", "f.npy", "--dark", "d.npy"];
    let (_, wanted) = quality(folder.path(), &fields);
    let lines = |scale: f64| (0..180).map(|k| format!("{}\n", f64::from(k) * scale)).collect::<String>();
    fs::write(at("degrees.txt"), lines(1.0)).unwrap();
    fs::write(at("radians.txt"), lines(1f64.to_radians())).unwrap();
    let radians: Vec<f64> = (0..180).map(|k| f64::from(k).to_radians()).collect();
    npy::write(&at("radians.npy"), &[180], &radians).unwrap();
    let (_, found) = quality(folder.path(), &[&fields[..], &["--theta", "degrees.txt"]].concat());
    assert_eq!(found, wanted);
    for name in ["radians.txt", "radians.npy"] {
        let theta = [&fields[..], &["--theta", name]].concat();
        let error = refusal(folder.path(), &theta);
        assert!(
            error.contains(&format!("--theta-unit: {name}: 180 angles within 3.1 degrees: are they radians?")),
            "{error}"
        );
        let (_, found) = quality(folder.path(), &[&theta[..], &["--theta-unit", "radians"]].concat());
        assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        let (_, smear) =
            quality(folder.path(), &[&theta[..], &["--theta-unit", "degrees", "--axis", "85.8"]].concat());
        assert!(smear < 0.7, "{smear}");
    }
    fs::write(at("words.txt"), "0\n1\nabout 2\n").unwrap();
    for (args, words) in [
        (&["--theta", "words.txt"][..], "words.txt: line 3: 2 numbers; expected one a line"),
        (&["--theta", "nowhere.txt"], "nowhere.txt"),
        (&["--theta-unit", "radians"], "--theta-unit: it changes nothing without --theta"),
        (&["--data", "exchange/data"], "--data: p.npy is no HDF5 file"),
    ] {
        let error = refusal(folder.path(), &[&fields[..], args].concat());
        assert!(error.contains(words), "{error}");
    }
}

#[cfg(feature = "tiff")]
#[test]
fn folders_whose_files_do_not_fit_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    let at = |name: &str| folder.path().join(name);
    let content = fs::read(data("imagej.tif")).unwrap();
    assert_eq!(residuum::io::Stack::open(&data("imagej.tif")).unwrap().shape(), [6, 3, 8]);
    let counts = read(&CountFiles { projections: data("imagej.tif"), ..counts_of_files(Path::new("")) }).unwrap();
    assert!(
        counts
            .counts
            .iter()
            .enumerate()
            .all(|(at, v)| *v == (100 + 10 * (at / 24) + 100 * (at / 8 % 3) + at % 8) as f32)
    );
    // Single pictures of 3 x 8: the stack without the word of its description.
    let place = content.windows(7).position(|part| part == b"images=").unwrap();
    let mut single = content;
    single[place..place + 7].copy_from_slice(b"others=");
    fs::create_dir(at("gap")).unwrap();
    for k in (0..10).filter(|k| *k != 5) {
        fs::write(at(&format!("gap/p{k}.tif")), &single).unwrap();
    }
    let flat = ["--input", "gap", "--flat", "900", "--size", "8", "--method", "fbp", "--axis", "3.5"];
    let error = refusal(folder.path(), &flat);
    assert!(error.contains("--theta: a file seems to be missing: p6.tif follows p4.tif"), "{error}");
    fs::write(at("nine.txt"), "0\n20\n40\n60\n80\n120\n140\n160\n180\n").unwrap();
    let output = program("reconstruct")
        .current_dir(folder.path())
        .args(flat)
        .args(["--theta", "nine.txt"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("note        a file seems to be missing: p6.tif follows p4.tif"), "{text}");
    #[cfg(unix)]
    {
        assert!(std::process::Command::new("mkfifo").arg(at("gap/p5.tif")).status().unwrap().success());
        let error = refusal(folder.path(), &flat);
        assert!(error.contains("p5.tif: a folder, a pipe or a device"), "{error}");
    }
}

#[cfg(feature = "tiff")]
#[test]
fn stacks_of_tiff_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    let saved = ["--method", "fbp", "--json", "--save", "x.tif", "--window", "0:1"];
    assert!(reconstruct(folder.path(), &saved).status.success());
    let mut stack = residuum::io::Stack::open(&folder.path().join("x.tif")).unwrap();
    assert_eq!(stack.shape(), [2, 96, 96]);
    assert!(reconstruct(folder.path(), &["--method", "fbp", "--json", "--save", "x.npy"]).status.success());
    let numbers = npy::read(&folder.path().join("x.npy")).unwrap().data;
    for (k, numbers) in numbers.chunks(96 * 96).enumerate() {
        for (found, wanted) in stack.picture(k).unwrap().iter().zip(numbers) {
            // The scale in the file says which values the steps of 16 bits stand for.
            let wanted = wanted.clamp(0.0, 1.0);
            assert!((f64::from(*found) - wanted).abs() <= 1.0 / 65535.0, "{found} {wanted}");
        }
    }
    // Floats are the numbers themselves.
    assert!(
        reconstruct(folder.path(), &["--method", "fbp", "--json", "--save", "y.tif", "--bits", "32"])
            .status
            .success()
    );
    let mut stack = residuum::io::Stack::open(&folder.path().join("y.tif")).unwrap();
    for (k, numbers) in numbers.chunks(96 * 96).enumerate() {
        assert!(stack.picture(k).unwrap().iter().zip(numbers).all(|(a, b)| f64::from(*a) == *b));
    }
    let error = String::from_utf8(reconstruct(folder.path(), &["--save", "y.npy", "--bits", "32"]).stderr).unwrap();
    assert!(error.contains("--bits: it changes nothing without a TIFF file to save"), "{error}");
}

#[test]
fn counts_that_cannot_be_reconstructed_are_one_line_of_words() {
    let folder = tempfile::tempdir().unwrap();
    write_counts(folder.path());
    npy::write(&folder.path().join("zeros.npy"), &[2, 160], &[0.0; 320]).unwrap();
    npy::write(&folder.path().join("theta.npy"), &[3], &[0.0, 1.0, 2.0]).unwrap();
    fs::write(folder.path().join("g.toml"), "beam = \"fan\"\npitch = 1.0\narc = 360.0\n").unwrap();
    for (args, part) in [
        (&["--slices", "1:3"][..], "--slices: 1:3 of 2 slices"),
        (&["--slices", "2"], "'2' is not two whole numbers"),
        (&["--crop", "10:161"], "--crop: 10:161 of 160 pixels"),
        (&["--crop", "10:5"], "'10:5' is not two whole numbers"),
        (&["--rings", "4"], "--rings: 4 is no odd number"),
        (&["--axis", "here"], "'here' is neither a place on the detector nor auto"),
        (&["--axis", "auto", "--arc", "90"], "--axis: angles from 0 to 89.5 do not show it"),
        (&["--window", "2:1"], "'2:1' is not two numbers in ascending order"),
        (&["--theta", "theta.npy"], "angles of the geometry against projections"),
        (&["--geometry", "cone"], "'cone' is none of parallel, fan, curved"),
        (&["--geometry", "fan"], "fan needs --source-origin and --source-detector"),
        (&["--geometry", "g.toml"], "--pitch: it changes nothing beside a file of the geometry"),
        (&["--filter", "hann"], "--filter: it changes nothing without a back-projection"),
        (&["--filter", "box"], "'box' is none of ram-lak"),
        (&["--method", "fbp", "--iterations", "5"], "--iterations: it changes nothing for fbp"),
        (&["--method", "fbp", "--weight", "auto"], "--weight: it changes nothing for fbp"),
        (&["--start-fbp", "--weight", "auto"], "the rule that chooses a weight has an answer to start from"),
        (&["--save-geometry", "x.png"], "'x.png' does not end in .toml"),
    ] {
        let output = reconstruct(folder.path(), args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(
            error.contains(part) && (error.lines().count() == 1 || error.contains("try '--help'")),
            "{args:?}: {error}"
        );
    }
    let others = |args: &[&str], part: &str| {
        let output =
            program("reconstruct").current_dir(folder.path()).args(args).args(["--device", "host"]).output();
        let output = output.unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(part), "{args:?}: {error}");
    };
    others(&["--input", "p.npy", "--flat", "zeros.npy"], "no pixel counts more than in the dark field");
    others(&["--input", "p.npy", "--flat", "theta.npy"], "frames of 1 x 3 for projections of 2 x 160");
    others(&["--input", "p.npy", "--dark", "3"], "--dark: it changes nothing for line integrals");
    others(&["--input", "p.npy", "--geometry", "g.toml"], "g.toml: missing field `source_origin`");
    others(&["--input", "p.npy", "--geometry", "g.toml", "--save-geometry", "g.toml"], "is an input");
    others(&["--flat", "3"], "--input");
    others(&["--input", ".", "--flat", "3"], "this folder holds no .tif files");
    // A fault that shows late: the geometry was known, and is not written.
    others(
        &["--input", "p.npy", "--flat", "f.npy", "--save-geometry", "late.toml", "--crop", "0:161"],
        "0:161 of 160",
    );
    assert!(["reconstruction.png", "late.toml"].iter().all(|name| !folder.path().join(name).exists()));
}

/// The tooth of TomoPy's examples, if it lies beside the project.
#[cfg(feature = "hdf5")]
#[test]
fn the_tooth_is_found_about_its_axis() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/tooth.h5");
    if !path.exists() {
        return println!("skipped: {} is not there", path.display());
    }
    let counts = read(&CountFiles { projections: path, ..CountFiles::default() }).unwrap();
    for scan in counts.integrals(&Geometry::default()).unwrap().scans {
        let axis = scan.axis().unwrap();
        println!("axis at {axis}");
        assert!((axis - 295.5).abs() <= 0.5, "{axis}");
    }
}

/// A copy of `content` with some bytes changed, cut off, doubled or left out.
fn damaged(content: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = content.to_vec();
    let mut below = |n: usize| (random.next() as usize) % n.max(1);
    for _ in 0..1 + below(4) {
        let at = below(bytes.len());
        match below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..(at + 1 + below(16)).min(bytes.len()))),
            2 => {
                let part = bytes[at..(at + 1 + below(32)).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let value = [0, 1, 0x7f, 0x80, 0xff][below(5)];
                let end = (at + 1 + below(8)).min(bytes.len());
                bytes[at..end].fill(value);
            }
            4 | 5 => bytes[at] = below(256) as u8,
            _ => bytes[at] ^= 1 << below(8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

/// Number of damaged files of each format.
fn mutations() -> usize {
    std::env::var("RESIDUUM_MUTATIONS").map_or(4000, |count| count.parse().unwrap())
}

fn seed() -> u64 {
    std::env::var("RESIDUUM_MUTATION_SEED").map_or(1, |seed| seed.parse().unwrap())
}

/// Reads damaged copies of `content`: each is counts or an error, never a panic.
fn survives(name: &str, content: &[u8], files: &dyn Fn(&Path) -> CountFiles) {
    survives_in(&tempfile::tempdir().unwrap(), name, content, files);
}

/// As [`survives`], in a folder with what the file may lead to.
fn survives_in(folder: &tempfile::TempDir, name: &str, content: &[u8], files: &dyn Fn(&Path) -> CountFiles) {
    let path = folder.path().join(name);
    let mut random = Random::new(seed());
    let (mut good, mut longest, mut panics) = (0, 0.0_f64, Vec::new());
    for k in 0..mutations() {
        fs::write(&path, damaged(content, &mut random)).unwrap();
        let clock = std::time::Instant::now();
        let files = files(&path);
        let outcome = std::panic::catch_unwind(|| {
            read(&files).and_then(|counts| counts.integrals(&Geometry::default())).is_ok()
        });
        longest = longest.max(clock.elapsed().as_secs_f64());
        let Ok(read) = outcome else {
            let kept = std::env::temp_dir().join(format!("{k}-{name}"));
            fs::copy(&path, &kept).unwrap();
            panics.push(kept.display().to_string());
            continue;
        };
        good += usize::from(read);
    }
    println!("{name}: {good} of {} damaged files are read, the longest took {longest:.3} s", mutations());
    assert!(panics.is_empty(), "{} panics: {panics:?}", panics.len());
    assert!(good > 0 && good < mutations(), "{name}: damage does nothing, or everything");
    assert!(longest < 10.0, "{name}: {longest} s");
}

fn counts_of_files(path: &Path) -> CountFiles {
    CountFiles { projections: path.into(), flat: Some(Field::Number(900.0)), ..CountFiles::default() }
}

#[cfg(feature = "hdf5")]
#[test]
fn damaged_hdf5_files_are_refused_or_read() {
    for name in ["plain.h5", "chunked.h5"] {
        survives(name, &fs::read(data(name)).unwrap(), &|path| CountFiles {
            projections: path.into(),
            ..CountFiles::default()
        });
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn damaged_hdf5_files_with_links_are_refused_or_read() {
    for name in ["soft.h5", "external.h5", "virtual.h5"] {
        survives_in(&copied(&["plain.h5"]), name, &fs::read(data(name)).unwrap(), &|path| CountFiles {
            projections: path.into(),
            ..CountFiles::default()
        });
    }
    survives("half.h5", &fs::read(data("half.h5")).unwrap(), &|path| CountFiles {
        projections: path.into(),
        ..CountFiles::default()
    });
    survives("tomo.nxs", &fs::read(data("tomo.nxs")).unwrap(), &|path| CountFiles {
        projections: path.into(),
        data: Some("entry1/tomo_entry/data/data".into()),
        ..CountFiles::default()
    });
}

#[test]
fn damaged_lists_of_angles_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("angles.txt");
    let content: String = (0..40).map(|k| format!("{}\n", 4.5 * f64::from(k))).collect();
    let mut random = Random::new(seed());
    let mut good = 0;
    for _ in 0..mutations() {
        fs::write(&path, damaged(content.as_bytes(), &mut random)).unwrap();
        good += usize::from(residuum::imaging::read_angles(&path, None).is_ok_and(|angles| angles.len() == 40));
    }
    println!("angles.txt: {good} of {} damaged files are read", mutations());
    assert!(good > 0 && good < mutations());
}

#[cfg(feature = "tiff")]
#[test]
fn damaged_tiff_files_are_refused_or_read() {
    survives("imagej.tif", &fs::read(data("imagej.tif")).unwrap(), &counts_of_files);
    let content = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stack.tif")).unwrap();
    survives("stack.tif", &content, &counts_of_files);
    let content = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/packed.tif")).unwrap();
    survives("packed.tif", &content, &counts_of_files);
}

#[test]
fn damaged_volumes_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let counts: Vec<f64> = (0..48).map(f64::from).map(|v| v + 1.0).collect();
    npy::write(&path, &[2, 3, 8], &counts).unwrap();
    survives("volume.npy", &fs::read(&path).unwrap(), &counts_of_files);
}

#[test]
fn damaged_geometries_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.toml");
    let geometry = "beam = \"fan\"\nsource_origin = 410.66\nsource_detector = 553.74\npitch = 0.2\noffset = 0.5\narc = 360.0\n";
    let vectors = "beam = \"vectors\"\nvectors = [[4.0, 0.5, -2.0, 0.0, 0.0, 0.1], [3.0, -1.5, -2.0, 0.0, 0.25, 0.1]]\nparallel = false\n";
    let mut random = Random::new(seed());
    for (text, projections) in [(geometry, 5), (vectors, 2)] {
        let mut good = 0;
        for _ in 0..mutations() {
            fs::write(&path, damaged(text.as_bytes(), &mut random)).unwrap();
            let read = || Geometry::read(&path).and_then(|geometry| geometry.scanner(projections, 8));
            good += usize::from(std::panic::catch_unwind(read).expect("no panic").is_ok());
        }
        println!("geometry.toml: {good} of {} damaged files are read", mutations());
        assert!(good > 0 && good < mutations());
    }
}
