//! SciPy on the same matrix in the same run, if `python3` has it.

use std::process::{Command, Stdio};

use residuum::{Csr, Error, Real, Result, io};
use serde_json::Value;

use super::Setting;

/// Microseconds of `work` (see `benches/peers/scipy_peer.py`) for `a`, after printing the peer's own line; `None` without SciPy.
///
/// # Errors
/// [`Error::File`] if the matrix cannot be handed over.
pub(crate) fn scipy<T: Real>(setting: &Setting, a: &Csr<T>, work: &str) -> Result<Option<f64>> {
    let failed = |what: &str| Error::Option { name: "peer", reason: what.to_string() };
    let folder = tempfile::tempdir().map_err(|e| failed(&e.to_string()))?;
    let file = folder.path().join("matrix.npz");
    io::npz::write_matrix(&file, a)?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/scipy_peer.py");
    let run = Command::new("python3").arg(script).arg(&file).arg(work).stderr(Stdio::null()).output();
    let line =
        run.ok().filter(|run| run.status.success()).map(|run| String::from_utf8_lossy(&run.stdout).into_owned());
    let found: Option<Value> = line.and_then(|line| serde_json::from_str(&line).ok());
    match &found {
        Some(line) => setting.row(line),
        None => eprintln!("no peer: python3 with SciPy is not there"),
    }
    Ok(found.and_then(|line| line["us"].as_f64()))
}
