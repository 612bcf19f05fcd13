//! Built programs on disk: found again, safe with many processes at once, rebuilt when damaged, never stale.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{self, devices, program};
use residuum::{BackendKind, Device};

/// Multiplies a small matrix on `device` in a process of its own that keeps its programs in `folder`, compares every bit with
/// the host's, and says on stderr what it built and loaded.
fn multiply(device: &Device, folder: &Path) -> Command {
    let (platform, number) = device.info().index.unwrap();
    let mut command = program("spmv");
    command
        .args(["--gallery", "poisson2d:16", "--format", "csr", "--precision", "fp32", "--json"])
        .args(["--device", &format!("{platform}:{number}")])
        .env("RESIDUUM_CACHE", folder)
        // Tests the cache, even on a driver that is better off without.
        .env("RESIDUUM_CACHE_ALL", "1")
        .env("RUST_LOG", "residuum=debug")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Programs built and loaded by a process that succeeded.
fn counts(output: &std::process::Output) -> [usize; 2] {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    ["] built cl/", "] loaded cl/"].map(|words| text.matches(words).count())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// The OpenCL devices; all but simulators can keep programs, if they must.
fn keeping() -> Vec<Device> {
    let keeps =
        |device: &Device| device.backend_kind() == BackendKind::OpenCl && device.info().last_resort.is_none();
    devices().into_iter().filter(keeps).collect()
}

#[test]
fn sixteen_processes_start_on_an_empty_cache() {
    for device in keeping() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<_> = (0..16).map(|_| multiply(&device, folder.path()).spawn().unwrap()).collect();
        let mut needed = 0;
        for process in all {
            let [built, loaded] = counts(&process.wait_with_output().unwrap());
            needed = built + loaded;
            assert!(needed > 0);
        }
        let files = entries(&folder.path().join("programs"));
        assert_eq!(files.len(), needed, "one entry for each program and no leftovers: {files:?}");
        // Whole entries, or the next process would not take them.
        assert_eq!(counts(&multiply(&device, folder.path()).output().unwrap()), [0, needed]);
    }
}

#[test]
fn a_damaged_entry_is_built_anew() {
    for device in keeping() {
        let folder = tempfile::tempdir().unwrap();
        let [needed, _] = counts(&multiply(&device, folder.path()).output().unwrap());
        for file in entries(&folder.path().join("programs")) {
            let mut bytes = fs::read(&file).unwrap();
            let end = bytes.len() - 100;
            bytes[end] ^= 0x10;
            fs::write(&file, bytes).unwrap();
        }
        let output = multiply(&device, folder.path()).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains("a damaged entry; it is built anew"));
        assert_eq!(counts(&output), [needed, 0]);
        assert_eq!(counts(&multiply(&device, folder.path()).output().unwrap()), [0, needed]);
    }
}

#[test]
fn a_changed_kernel_is_never_served_stale() {
    for device in keeping() {
        let (cache, kernels) = (tempfile::tempdir().unwrap(), common::changed_kernels(str::to_owned));
        let from_folder = || {
            let mut command = multiply(&device, cache.path());
            command.env("RESIDUUM_CL_DIR", kernels.path());
            command.output().unwrap()
        };
        let [needed, _] = counts(&from_folder());
        // One text, from the folder and from the program, is one program.
        assert_eq!(counts(&multiply(&device, cache.path()).output().unwrap()), [0, needed]);
        let path = kernels.path().join("linear/row.cl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("result->y[at] =", "result->y[0 * at] =", 1)).unwrap();
        assert_ne!(fs::read_to_string(&path).unwrap(), text);
        let output = from_folder();
        assert_eq!(output.status.code(), Some(1), "every row is written to the first place: {output:?}");
        fs::write(&path, &text).unwrap();
        assert_eq!(counts(&from_folder()), [0, needed]);
    }
}

#[test]
fn it_can_be_switched_off() {
    for device in keeping() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let output = multiply(&device, folder.path()).env("RESIDUUM_CACHE", "off").output().unwrap();
            assert!(counts(&output)[0] > 0 && counts(&output)[1] == 0);
        }
        assert!(entries(&folder.path().join("programs")).is_empty());
    }
}
