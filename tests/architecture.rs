//! Style that rots unnoticed, read from our own sources.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file below `folder`, with its text up to the tests it ends with.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_string();
            found.push((path, code));
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// Code lines, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|l| !l.trim_start().starts_with("//"))
}

#[test]
fn unsafe_code_stays_in_ocl_and_gives_its_reason() {
    let mut blocks = 0;
    for (path, text) in sources(&root().join("src")) {
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            if line.trim_start().starts_with("//") || !line.contains("unsafe {") {
                continue;
            }
            assert!(path.starts_with(root().join("src/ocl")), "unsafe in {}", path.display());
            let before = &lines[i.saturating_sub(5)..i];
            assert!(
                before.iter().any(|l| l.contains("SAFETY:")),
                "{}:{}: no SAFETY comment",
                path.display(),
                i + 1
            );
            blocks += 1;
        }
    }
    assert!(blocks > 3, "the search no longer finds the unsafe blocks there are");
}

#[test]
fn layers_point_down() {
    // A module may not name the ones after it.
    let forbidden = [
        ("src/ocl", &["crate::backend", "crate::solver", "crate::imaging", "crate::device"][..]),
        ("src/kernels", &["crate::backend", "crate::solver", "crate::imaging", "crate::device"]),
        ("src/sparse", &["crate::backend", "crate::solver", "crate::imaging", "crate::ocl", "crate::matrix"]),
        ("src/io", &["crate::backend", "crate::solver", "crate::imaging", "crate::ocl", "crate::device"]),
        ("src/backend", &["crate::solver", "crate::imaging", "crate::matrix", "crate::vector"]),
        ("src/operator", &["crate::solver", "crate::imaging", "crate::ocl", "crate::kernels"]),
        ("src/precond", &["crate::solver", "crate::imaging", "crate::ocl", "crate::kernels"]),
        ("src/solver", &["crate::imaging", "crate::ocl::Context", "crate::kernels"]),
    ];
    for (folder, words) in forbidden {
        let files = sources(&root().join(folder));
        assert!(!files.is_empty());
        for (path, text) in files {
            for word in words {
                assert!(!code(&text).any(|l| l.contains(word)), "{} names {word}", path.display());
            }
        }
    }
}

#[test]
fn only_the_runtime_layer_waits() {
    for (path, text) in sources(&root().join("src")) {
        // Readers and writers know no device (see `layers_point_down`): what they finish are files.
        let without = [root().join("src/ocl"), root().join("src/io")];
        if without.iter().any(|folder| path.starts_with(folder)) || path.ends_with("device.rs") {
            continue;
        }
        for word in [".finish()", "clFinish", "synchronize()"] {
            // Measuring is waiting.
            let allowed = path.ends_with("src/measure.rs") && word == "synchronize()";
            assert!(allowed || !code(&text).any(|l| l.contains(word)), "{} waits", path.display());
        }
    }
}

#[test]
fn no_option_that_breaks_the_numerics_contract() {
    let mut texts = sources(&root().join("src"));
    for entry in fs::read_dir(root().join("cl")).unwrap() {
        let path = entry.unwrap().path();
        texts.push((path.clone(), fs::read_to_string(path).unwrap()));
    }
    for (path, text) in texts {
        for word in ["fast-relaxed", "mad-enable", "finite-math", "unsafe-math", "mad(", "native_"] {
            // A rough number never reaches a result: the type says so.
            let rough = |l: &str| word == "native_" && l.contains("rough_t");
            assert!(!code(&text).any(|l| l.contains(word) && !rough(l)), "{word} in {}", path.display());
        }
    }
    let common = fs::read_to_string(root().join("cl/common.cl")).unwrap();
    assert!(common.contains("#pragma OPENCL FP_CONTRACT OFF"));
}
