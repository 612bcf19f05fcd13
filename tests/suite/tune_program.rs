//! `examples/tune` as a user runs it: it goes on where it ended, its file is in force, what is damaged is named.

use residuum::BackendKind;
use std::path::Path;
use std::process::Output;

use crate::common::{devices, program};
use serde_json::Value;

fn tune(file: &Path, args: &[&str]) -> Output {
    program("tune").args(args).env("RESIDUUM_TUNE_FILE", file).output().unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn what_is_found_is_kept_and_used() {
    let folder = tempfile::tempdir().unwrap();
    for (number, device) in
        devices().iter().enumerate().filter(|(_, device)| device.backend_kind() == BackendKind::OpenCl)
    {
        let file = folder.path().join(format!("{number}.toml"));
        let (platform, index) = device.info().index.unwrap();
        let name = format!("{platform}:{index}");
        let run = |budget: &str, more: &[&str]| {
            let args = ["--device", &name, "--budget", budget, "--only", "vector", "--json"];
            tune(&file, &[&args[..], more].concat())
        };
        // A budget of nothing measures nothing, and says what is left.
        let none = run("0s", &[]);
        let all = json(&none)["left"].as_u64().unwrap();
        assert!(none.status.code() == Some(1) && all >= 3, "{}", json(&none));
        let picture = folder.path().join("sizes.svg");
        // A search that the budget ends is begun anew: a busy machine needs more.
        let mut first = Value::Null;
        for seconds in [5, 30, 120] {
            let begin = std::time::Instant::now();
            first = json(&run(&format!("{seconds}s"), &["--plot", picture.to_str().unwrap()]));
            // One kernel may be built when the time is over.
            let most = 1.5 * f64::from(seconds) + 30.0;
            assert!(begin.elapsed().as_secs_f64() < most, "{seconds} s took {:?}", begin.elapsed());
            if first["measured"].as_u64() != Some(0) {
                break;
            }
        }
        let measured = first["measured"].as_u64().unwrap();
        assert!(measured >= 1 && measured + first["left"].as_u64().unwrap() == all, "{first}");
        assert_eq!(first["wrong"], Value::Array(Vec::new()), "{first}");
        let drawn = std::fs::read_to_string(&picture).unwrap();
        assert!(drawn.contains("work-items of a group") && drawn.contains(&device.info().driver), "{drawn}");
        // It goes on where it ended.
        let second = json(&run("1s", &[]));
        assert_eq!(
            second["measured"].as_u64().unwrap() + second["left"].as_u64().unwrap(),
            all - measured,
            "{second}"
        );

        // Entries of the file are in force, and change no bit: an entry of small size beside what was found.
        let text = std::fs::read_to_string(&file).unwrap();
        let first = text.split("[[entry]]").nth(1).unwrap();
        let least = device.info().least_work_group;
        let small: String = first
            .lines()
            .filter(|line| !line.starts_with("measured"))
            .map(|line| match line.split_once(" = ") {
                Some(("size", _)) => "size = \"small\"\n".to_string(),
                Some(("set", _)) => format!("set = {{ work_group = {} }}\n", least.max(4)),
                _ => format!("{line}\n"),
            })
            .collect();
        let mut kept: Vec<&str> = text.split("[[entry]]").collect();
        kept.retain(|entry| !entry.contains("size = \"small\""));
        std::fs::write(&file, format!("{}[[entry]]{small}", kept.join("[[entry]]"))).unwrap();
        let solve = |file: &Path, answer: &Path| {
            let mut command = program("solve");
            command.args([
                "poisson2d:32",
                "--method",
                "cg",
                "--json",
                "--device",
                &name,
                "--save",
                answer.to_str().unwrap(),
            ]);
            if !device.info().fp64 {
                command.args(["--precision", "fp32"]);
            }
            let value = json(&command.env("RESIDUUM_TUNE_FILE", file).output().unwrap());
            (value["tuning"].as_str().unwrap().to_string(), std::fs::read(answer).unwrap())
        };
        let (tuning, tuned) = solve(&file, &folder.path().join("a.npy"));
        let (rules, plain) = solve(Path::new("off"), &folder.path().join("b.npy"));
        assert!(tuning.contains("(file)") && !rules.contains("(file)"), "{tuning}; {rules}");
        assert!(tuned == plain, "another answer");

        // Merged with itself it agrees; what is damaged is named and left out.
        let copy = folder.path().join("copy.toml");
        std::fs::copy(&file, &copy).unwrap();
        let merged = tune(&file, &["merge", copy.to_str().unwrap()]);
        let words = String::from_utf8_lossy(&merged.stdout).to_string();
        assert!(
            merged.status.success() && words.contains("0 new entries") && words.contains("0 that differ"),
            "{words}"
        );
        std::fs::write(&copy, text.replacen("vector", "victor", 1)).unwrap();
        let shown = json(&tune(&copy, &["show", "--json"]));
        assert!(shown["ignored"][0].as_str().unwrap().contains("victor"), "{shown}");
        // The library says so too when it opens the device, and works.
        let mut solve = program("solve");
        solve.args(["poisson2d:8", "--method", "cg", "--precision", "fp32", "--device", &name]);
        let output = solve.env("RESIDUUM_TUNE_FILE", &copy).env("RUST_LOG", "warn").output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(output.status.success() && words.contains("victor"), "{words}");
        let forgotten = tune(&file, &["forget", &name]);
        assert!(forgotten.status.success(), "{}", String::from_utf8_lossy(&forgotten.stderr));
        assert_eq!(json(&tune(&file, &["show", "--json"]))["entries"], Value::Array(Vec::new()));
        assert_eq!(tune(&file, &["forget", &name]).status.code(), Some(2), "there is nothing left to forget");
    }
}

#[test]
fn bad_input_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.toml");
    for args in [
        &["--device", "no-such-device"][..],
        &["--device", "host"],
        &["--budget", "soon"],
        &["--only", "nothing", "--device", "host"],
        &["merge", "nowhere.toml"],
        &["forget", "no-such-device"],
    ] {
        let output = tune(&file, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!file.exists(), "{args:?}");
    }
}
