//! Finds the commit that the programs are built from, for `--version` and for their JSON.
//!
//! It is `RESIDUUM_COMMIT` if that is set; else that of the package (`.cargo_vcs_info.json`); else what git says of an optimised build, with
//! `-modified` if files differ from it. Other builds are not built again with every commit and name none. Nothing fails without git.

#![allow(clippy::print_stdout)] // cargo reads it

use std::path::Path;
use std::process::Command;

/// Digits of a commit that are shown.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-env-changed=RESIDUUM_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(commit) = named().or_else(packaged).or_else(checked_out) {
        println!("cargo::rustc-env=RESIDUUM_BUILT_FROM={commit}");
    }
}

fn named() -> Option<String> {
    std::env::var("RESIDUUM_COMMIT").ok().filter(|commit| !commit.is_empty() && !commit.contains(['\n', '\r']))
}

/// The commit in the file that `cargo package` adds.
fn packaged() -> Option<String> {
    let text = [".", ".."]
        .iter()
        .find_map(|folder| std::fs::read_to_string(Path::new(folder).join(".cargo_vcs_info.json")).ok())?;
    let digits = text.split("\"sha1\"").nth(1)?.split('"').nth(1)?;
    digits.get(..DIGITS).map(str::to_string)
}

fn checked_out() -> Option<String> {
    if std::env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return None;
    }
    // The repository of these sources, not one that the package was unpacked in.
    let prefix = git(&["rev-parse", "--show-prefix"])?;
    if prefix != "examples/" {
        return None;
    }
    for of_git in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", of_git]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for built in [".", "../src", "../cl", "../Cargo.toml"] {
        println!("cargo::rerun-if-changed={built}");
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let modified =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    Some(format!("{}{}", commit.get(..DIGITS)?, if modified { "-modified" } else { "" }))
}

/// Output of git, if it is there and does not fail.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}
