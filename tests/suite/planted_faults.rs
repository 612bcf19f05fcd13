//! Devices that compute wrongly, imitated by folders of changed kernels: the doctor finds them, the first solve refuses to
//! believe them, and they are used no longer unless they are named.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{self, devices, program};
use residuum::{BackendKind, Device};
use serde_json::Value;

/// A program that keeps what it finds out in `cache`, with the kernels of a folder.
fn with_kernels(name: &str, cache: &Path, kernels: Option<&Path>) -> Command {
    let mut command = program(name);
    command.env("RESIDUUM_CACHE", cache).env_remove("RESIDUUM_DEVICE");
    if let Some(kernels) = kernels {
        command.env("RESIDUUM_CL_DIR", kernels);
    }
    command
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
}

fn name(device: &Device) -> String {
    device.info().index.map_or("host".into(), |(p, d)| format!("{p}:{d}"))
}

/// The doctor's findings: the names of the checks that failed.
fn examine(device: &Device, cache: &Path, kernels: Option<&Path>) -> Vec<String> {
    let output =
        with_kernels("doctor", cache, kernels).args(["--json", "--device", &name(device)]).output().unwrap();
    let value = json(&output);
    assert_eq!(output.status.code(), Some(i32::from(value["well"] == false)), "{value}");
    assert!(value["devices"][0]["copy_gbps"].as_f64().unwrap() > 0.0, "{value}");
    let checks = value["devices"][0]["checks"].as_array().unwrap();
    assert!(checks.len() > 8, "{value}");
    checks.iter().filter(|c| !c["fault"].is_null()).map(|c| c["name"].as_str().unwrap().to_string()).collect()
}

/// The device as it stands among all, and the one that would be chosen.
fn standing(device: &Device, cache: &Path, kernels: &Path) -> (Value, String) {
    let value = json(&with_kernels("devices", cache, Some(kernels)).arg("--json").output().unwrap());
    let index = name(device);
    let mine = value["devices"].as_array().unwrap().iter().find(|d| d["index"] == index.as_str()).unwrap().clone();
    (mine, value["chosen"].as_str().unwrap().into())
}

#[test]
fn devices_are_well() {
    let cache = tempfile::tempdir().unwrap();
    for device in devices() {
        assert_eq!(examine(&device, cache.path(), None), [""; 0], "{}", device.info().name);
    }
    assert!(!cache.path().join("verdicts.toml").exists(), "nothing is held against a device that is well");
}

#[test]
fn a_planted_fault_is_found_and_remembered() {
    // Each change, the precision in which a solve sees it, what the doctor says of it, and what not.
    let faults = [
        // A reduction that forgets the last step.
        (("half_held > 0; half_held /= 2", "half_held > 1; half_held /= 2"), "fp32", "reductions and barriers"),
        // 64-bit arithmetic that keeps 24 bits.
        (("return (double)a * (double)b;", "return (float)a * (float)b;"), "fp64", "conjugate gradients"),
    ];
    for (change, precision, found) in faults {
        let stands = common::kernel_texts().iter().any(|(_, text)| text.contains(change.0));
        assert!(stands, "'{}' stands in no kernel any more", change.0);
        let kernels = common::changed_kernels(|text| text.replace(change.0, change.1));
        for device in devices().iter().filter(|device| device.backend_kind() == BackendKind::OpenCl) {
            if precision == "fp64" && !device.info().fp64 {
                println!("skipped: {} has no fp64", device.info().name);
                continue;
            }
            let cache = tempfile::tempdir().unwrap();
            let solve = |kernels: Option<&Path>| {
                let mut command = with_kernels("solve", cache.path(), kernels);
                let args = ["poisson2d:48", "--method", "cg", "--precision", precision, "--device", &name(device)];
                command.args(args).output().unwrap()
            };
            // Every solve, not only the first.
            for _ in 0..2 {
                let output = solve(Some(kernels.path()));
                let text = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{}: {text}", device.info().name);
                assert!(text.contains("cannot be trusted") && text.contains("doctor"), "{text}");
            }
            let (mine, chosen) = standing(device, cache.path(), kernels.path());
            let why = mine["last_resort"].as_str().unwrap();
            assert!(why.contains("found to compute wrongly"), "{mine}");
            assert_ne!(chosen, device.info().name);
            let failed = examine(device, cache.path(), Some(kernels.path()));
            assert!(failed.iter().any(|f| f == found), "{found} on {}: {failed:?}", device.info().name);
            let (mine, _) = standing(device, cache.path(), kernels.path());
            assert!(mine["last_resort"].as_str().unwrap().contains("checks failed"), "{mine}");
            // The right kernels are not blamed.
            assert!(solve(None).status.success());
        }
    }
}
