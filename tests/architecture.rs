//! Style that rots unnoticed, read from our own sources.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
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

/// The nodes of `src/`, a folder or a file each, from the lowest level up. A node may import those of lower levels alone.
const LEVELS: [&[&str]; 15] = [
    &["allocations", "device_info", "error", "magnitude", "reduction", "state"],
    &["files", "machine", "number"],
    &["recurrence", "sparse"],
    &["io", "ocl"],
    &["filter", "kernels"],
    &["tuning", "verdict"],
    &["backend"],
    &["device"],
    &["vector"],
    &["matrix", "measure"],
    &["operator"],
    &["interop", "precond", "solver"],
    &["examine", "imaging"],
    &["doctor"],
    &["tuner"],
];

/// Imports that do not go down. This list may only become shorter.
const BREACHES: [(&str, &str); 2] = [("ocl", "kernels"), ("backend", "device")];

/// Nodes whose names only these may know, beside what the levels allow.
const RUNTIME: [(&str, &[&str]); 1] = [("kernels", &["backend", "ocl"])];

/// The path of a source file below `src/`, as modules: `solver/mod.rs` is `solver`, `solver/cg.rs` is `solver`, `cg`.
fn module(path: &Path) -> Vec<String> {
    let below = path.strip_prefix(root().join("src")).unwrap().with_extension("");
    let mut parts: Vec<String> = below.iter().map(|part| part.to_str().unwrap().to_string()).collect();
    parts.pop_if(|last| matches!(last.as_str(), "mod" | "lib"));
    parts
}

/// The names that a path, or a group of paths in braces, begins with.
fn beginnings(path: &str) -> Vec<String> {
    let name =
        |part: &str| part.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut depth = 0;
    let outermost = group.chars().map_while(|c| {
        let before = depth;
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        (depth >= 0).then_some(if before == 0 { c } else { ' ' })
    });
    outermost.collect::<String>().split(',').map(name).collect()
}

/// The first name of every path in `text` that starts at the root of the crate: by `crate::`, or by as many `super::` as the
/// module is deep. In a module within a file that is the file itself, so that names which are no node do not count.
fn imports(module: &[String], text: &str) -> BTreeSet<String> {
    let text: String = code(text).map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for start in ["crate::".to_string(), "super::".repeat(module.len())] {
        for (at, _) in text.match_indices(&start) {
            let before = text[..at].chars().next_back();
            // A part of another name, or of a longer chain of `super::`, which is found by itself.
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$' || c == ':') {
                continue;
            }
            let names = beginnings(&text[at + start.len()..]).into_iter();
            found.extend(names.filter(|name| start == "crate::" || level(name).is_some()));
        }
    }
    found.remove("");
    found
}

fn level(node: &str) -> Option<usize> {
    LEVELS.iter().position(|nodes| nodes.contains(&node))
}

/// What is wrong with the imports of one file, and the breaches that it makes.
fn judge(module: &[String], text: &str) -> (Vec<String>, Vec<(String, String)>) {
    // The root names every module.
    let Some(node) = module.first() else { return Default::default() };
    let (mut wrong, mut breaches) = (Vec::new(), Vec::new());
    let Some(here) = level(node) else { return (vec![format!("{node} has no level")], breaches) };
    for other in imports(module, text).into_iter().filter(|other| other != node) {
        match level(&other) {
            None => wrong.push(format!("{} names crate::{other}, which is no module", module.join("/"))),
            Some(there) if there < here => {}
            Some(_) if BREACHES.contains(&(node, &other)) => breaches.push((node.clone(), other.clone())),
            Some(_) => wrong.push(format!("{} must not import {other}", module.join("/"))),
        }
        let alone = RUNTIME.iter().find(|(runtime, _)| *runtime == other);
        if alone.is_some_and(|(_, nodes)| !nodes.contains(&node.as_str())) {
            wrong.push(format!("{} must not know {other}", module.join("/")));
        }
    }
    (wrong, breaches)
}

#[test]
fn imports_go_down() {
    let (mut wrong, mut breaches, mut nodes) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (path, text) in sources(&root().join("src")) {
        let module = module(&path);
        let (more, here) = judge(&module, &text);
        wrong.extend(more);
        breaches.extend(here);
        nodes.extend(module.into_iter().next());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let listed = LEVELS.concat().into_iter().map(String::from).collect::<BTreeSet<_>>();
    assert_eq!(listed, nodes, "LEVELS has a node that is not there");
    for (from, to) in BREACHES {
        assert!(
            breaches.contains(&(from.into(), to.into())),
            "{from} no longer imports {to}: take it off the list"
        );
    }
}

#[test]
fn imports_that_go_up_are_found() {
    let wrong = |path: &str, text: &str| judge(&module(&root().join("src").join(path)), text).0.len();
    assert_eq!(wrong("ocl/context.rs", "use crate::error::Result;\nuse crate::number::Real;"), 0);
    assert_eq!(wrong("ocl/context.rs", "use crate::solver::Stop;"), 1);
    assert_eq!(wrong("ocl/context.rs", "// crate::solver\nuse super::buffer::Buffer;"), 0);
    assert_eq!(wrong("ocl/context.rs", "use super::super::solver::Stop;"), 1);
    assert_eq!(wrong("ocl/mod.rs", "let stop = super::solver::Stop::Converged;"), 1);
    assert_eq!(
        wrong("vector.rs", "use crate::{\n    error::{Error, matrix},\n    matrix::Matrix,\n    solver,\n};"),
        2
    );
    // Of one level.
    assert_eq!(wrong("precond/sweep.rs", "use crate::solver::Solver;"), 1);
    assert_eq!(wrong("solver/cg.rs", "use crate::kernels::cg;"), 1);
    assert_eq!(wrong("new.rs", ""), 1);
    assert_eq!(wrong("solver/cg.rs", "use crate::Real;"), 1);
}

#[test]
fn only_the_runtime_layer_waits() {
    for (path, text) in sources(&root().join("src")) {
        // Readers and writers know no device (see `LEVELS`): what they finish are files.
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
