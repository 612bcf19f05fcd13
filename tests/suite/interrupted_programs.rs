//! Ctrl-C in a long run of a program: what there is so far is saved and said, and a second one ends the program at once.
#![cfg(target_os = "linux")]

use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{self, program};
use residuum::io::npy;
use residuum::sparse::gallery;
use serde_json::Value;

/// End of a program after a signal.
struct Ended {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits until the program handles SIGINT (bit 2 of the mask of caught signals): its work has begun.
fn wait_for_work(child: &mut Child) {
    let path = format!("/proc/{}/status", child.id());
    for _ in 0..6000 {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        if mask & 2 != 0 {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before a signal was sent");
        sleep(Duration::from_millis(10));
    }
    panic!("it never handles a signal");
}

/// Starts a program, sends `signals` once its work has begun and so much time has passed, and waits for its end. Signals of one string are sent at once.
fn interrupted(name: &str, folder: &Path, args: &[&str], after: Duration, signals: &[&str]) -> Ended {
    let mut command = program(name);
    command.current_dir(folder).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        text
    });
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).unwrap();
        text
    });
    wait_for_work(&mut child);
    sleep(after);
    for signal in signals {
        signal.split(' ').for_each(|signal| send(&child, signal));
        // Longer than signals count as one.
        sleep(Duration::from_millis(400));
    }
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{name} goes on after {signals:?}");
        sleep(Duration::from_millis(10));
    }
    let status = child.wait().unwrap().code();
    Ended { status, stdout: reader.join().unwrap(), stderr: errors.join().unwrap() }
}

/// Arguments of a solve that ends by a signal alone.
const ENDLESS: &str = "poisson2d:400 --method minres --preconditioner none --rtol 1e-14 --iterations 10000000 --device host --save x.npy";

const MOMENT: Duration = Duration::from_millis(700);

/// No temporary file is left, and only these are there.
fn holds(folder: &Path, wanted: &[&str]) {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, wanted);
}

#[test]
fn a_solve_that_is_interrupted_saves_its_answer_so_far() {
    // The residual of MINRES only falls, so the answer so far is better than 0.
    let args: Vec<&str> = ENDLESS.split(' ').collect();
    let a = gallery::poisson_2d::<f64>(400, 0.0).unwrap();
    let b = a.product(&vec![1.0; a.cols()]).unwrap();
    for (more, signal) in [(&[][..], "-INT"), (&["--json"], "-TERM")] {
        let folder = tempfile::tempdir().unwrap();
        let Ended { status, stdout, stderr } =
            interrupted("solve", folder.path(), &[&args[..], more].concat(), MOMENT, &[signal]);
        assert_eq!(status, Some(1), "{stdout}{stderr}");
        assert!(
            stderr.contains("ended by Ctrl-C after") && stderr.contains("the answer so far is in x.npy"),
            "{stderr}"
        );
        if more.is_empty() {
            assert!(stdout.contains("cancelled after") && stdout.contains("wrote       x.npy"), "{stdout}");
        } else {
            let found: Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!((&found["stop"], &found["interrupted"]), (&"Cancelled".into(), &true.into()));
            assert!(found["iterations"].as_u64().unwrap() > 0);
        }
        let found = npy::read(&folder.path().join("x.npy")).unwrap();
        assert_eq!(found.shape, [160_000]);
        let ax = a.product(&found.data).unwrap();
        let norm = |r: &mut dyn Iterator<Item = f64>| r.map(|r| r * r).sum::<f64>().sqrt();
        let part = norm(&mut b.iter().zip(&ax).map(|(b, ax)| b - ax)) / norm(&mut b.iter().copied());
        assert!(part > 0.0 && part < 0.99, "{part}");
        holds(folder.path(), &["x.npy"]);
    }
}

#[test]
fn a_comparison_that_is_interrupted_tells_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    // No candidate reaches this in a moment.
    let args =
        "poisson2d:400 --method cg --compare --rtol 1e-300 --iterations 10000000 --device host --plot p.png --json";
    let args: Vec<&str> = args.split(' ').collect();
    let Ended { status, stdout, stderr } = interrupted("solve", folder.path(), &args, MOMENT, &["-INT"]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(found["interrupted"], true);
    let [tried, left] = ["candidates", "not_tried"].map(|name| found[name].as_array().unwrap());
    let last = tried.last().unwrap();
    assert!(last["stop"] == "cancelled" && last["iterations"].as_u64().unwrap() > 0, "{last}");
    assert!(left.len() > 2, "{left:?}");
    let words =
        format!("ended by Ctrl-C in candidate {} of {}; not tried: ", tried.len(), tried.len() + left.len());
    assert!(stderr.contains(&words) && stderr.contains(left[0].as_str().unwrap()), "{stderr}");
    holds(folder.path(), &["p.png"]);
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // The set-up of this preconditioner takes minutes and sees no signal.
    let args = "poisson2d:500 --method cg --preconditioner sainv=0.0001 --device host --save x.npy";
    let args: Vec<&str> = args.split(' ').collect();
    let begin = Instant::now();
    let ended = interrupted("solve", folder.path(), &args, MOMENT, &["-INT", "-TERM"]);
    assert_eq!(ended.status, Some(130), "{}{}", ended.stdout, ended.stderr);
    assert!(begin.elapsed() < Duration::from_secs(60));
    holds(folder.path(), &[]);
}

/// `timeout` signals a program and its group; that is one request.
#[test]
fn signals_at_once_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<&str> = ENDLESS.split(' ').collect();
    let ended = interrupted("solve", folder.path(), &args, MOMENT, &["-TERM -TERM -INT"]);
    assert_eq!(ended.status, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stderr.matches("Ctrl-C or SIGTERM").count(), 1, "{}", ended.stderr);
    holds(folder.path(), &["x.npy"]);
}

#[test]
fn pictures_that_are_done_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    // Five slices are two batches at least: the last ones are left out.
    let scan = vec![0.5f64; 5 * 60 * 64];
    npy::write(&folder.path().join("s.npy"), &[5, 60, 64], &scan).unwrap();
    let args = "--input s.npy --size 64 --iterations 1000000 --gradient-rtol 0 --gradient-reduction 0 --rtol 1e-30 --device host \
                --save x.npy --json";
    let args: Vec<&str> = args.split_whitespace().collect();
    let Ended { status, stdout, stderr } = interrupted("reconstruct", folder.path(), &args, MOMENT, &["-INT"]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    let count = found["images"].as_array().unwrap().len();
    assert!((1..5).contains(&count), "{count}");
    assert!(stderr.contains(&format!("ended by Ctrl-C: {count} of 5 pictures")), "{stderr}");
    let found = npy::read(&folder.path().join("x.npy")).unwrap();
    assert_eq!(found.shape, [count, 64, 64]);
    let x = found.data;
    assert!(x.iter().all(|v| v.is_finite()) && x.iter().any(|v| *v != 0.0));
    let mut wanted: Vec<String> = (1..=count).map(|k| format!("reconstruction-{k}.png")).collect();
    wanted.extend(["s.npy".into(), "x.npy".into()]);
    holds(folder.path(), &wanted.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn frames_and_films_so_far_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    for (name, more) in [("heat", ""), ("wave", ""), ("flow", "")] {
        let args = format!("--size 48 --frames 1000000 --device host --save film.png --json {more}");
        let args: Vec<&str> = args.split_whitespace().collect();
        let Ended { status, stdout, stderr } = interrupted(name, folder.path(), &args, MOMENT, &["-INT"]);
        assert_eq!(status, Some(1), "{name}: {stdout}{stderr}");
        assert!(stderr.contains("ended by Ctrl-C after"), "{stderr}");
        let found: Value = serde_json::from_str(&stdout).unwrap();
        let frames = found["frames"].as_u64().unwrap();
        assert!(frames > 0 && frames < 1_000_000, "{name}: {frames}");
        let film = BufReader::new(std::fs::File::open(folder.path().join("film.png")).unwrap());
        let mut reader = png::Decoder::new(film).read_info().unwrap();
        assert_eq!(reader.info().animation_control().map(|control| u64::from(control.num_frames)), Some(frames));
        let mut data = vec![0; reader.output_buffer_size().unwrap()];
        for _ in 0..frames {
            reader.next_frame(&mut data).unwrap();
        }
        reader.finish().unwrap();
        holds(folder.path(), &["film.png"]);
    }
    // A solve that is cut off is a frame, too.
    let args =
        "--case cube --size 8 --degree 3 --frames 1 --rtol 1e-300 --device host --vtk out.vtk --save f-%d.png";
    let args: Vec<&str> = args.split(' ').collect();
    let folder = tempfile::tempdir().unwrap();
    let Ended { status, stdout, stderr } = interrupted("fem", folder.path(), &args, MOMENT, &["-INT"]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    holds(folder.path(), &["f-0.png", "out.vtk"]);
}

#[test]
fn a_tuner_that_is_interrupted_keeps_what_it_has() {
    let device = common::devices().into_iter().find_map(|device| device.info().index);
    let Some((platform, index)) = device else {
        println!("skipped: no OpenCL device");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let device = format!("{platform}:{index}");
    let args = ["--device", &device, "--budget", "1h", "--file", "t.toml"];
    let Ended { status, stdout, stderr } = interrupted("tune", folder.path(), &args, MOMENT, &["-INT"]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("ended by Ctrl-C: ") && stdout.contains("still to be measured"), "{stdout}");
}
