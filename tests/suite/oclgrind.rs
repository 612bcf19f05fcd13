//! The battery in Oclgrind, which reports races, accesses out of bounds and uninitialised memory: its log must be empty.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Oclgrind as an OpenCL driver, if it is installed.
fn simulator() -> Option<PathBuf> {
    ["/usr/lib/oclgrind", "/usr/lib/x86_64-linux-gnu/oclgrind", "/usr/local/lib"]
        .iter()
        .map(|folder| PathBuf::from(folder).join("liboclgrind-rt-icd.so"))
        .find(|path| path.exists())
}

#[test]
fn oclgrind_finds_nothing() {
    let Some(icd) = simulator() else {
        assert!(
            std::env::var_os("REQUIRE_OCLGRIND").is_none(),
            "REQUIRE_OCLGRIND is set, but Oclgrind is not there"
        );
        println!("skipped: Oclgrind is not installed");
        return;
    };
    // Races and uninitialised memory in runs of their own, side by side: reports of one kind can hide the other. The second
    // takes three times as long, and is shared between two. Numbers of another kind need no other barriers: each size has those
    // that differ most, so that every size and every number is there.
    let runs = [
        ("OCLGRIND_UNINITIALIZED", "8:single 8:pairs"),
        ("OCLGRIND_UNINITIALIZED", "1:single 64:double"),
        ("OCLGRIND_DATA_RACES", "1:single 8:single 8:pairs 64:double"),
    ];
    let runs = runs.map(|(check, cases)| {
        let log = tempfile::NamedTempFile::new().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "battery::every_kernel_in_small", "--test-threads=1", "--nocapture"])
            .env(check, "1")
            .env("OCLGRIND_LOG", log.path())
            .env("OCL_ICD_VENDORS", &icd)
            .env(super::battery::CASES, cases)
            .env("RESIDUUM_TEST_DEVICES", "oclgrind")
            .env("REQUIRE_DEVICES", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        (check, log, child)
    });
    for (check, log, child) in runs {
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        let found = std::fs::read_to_string(log.path()).unwrap();
        assert!(found.is_empty(), "{check}: {}", &found[..found.len().min(3000)]);
        assert!(output.status.success(), "{check}: {words}");
    }
}
