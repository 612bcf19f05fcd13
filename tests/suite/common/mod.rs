//! Helpers of every suite that runs over devices.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

pub(crate) mod oracle;
pub(crate) mod penalty;
pub(crate) mod problems;
pub(crate) mod thesis;

use std::path::{Path, PathBuf};
use std::process::Output;

use residuum::operator::{LinearOperator, SharedOperator};
use residuum::sparse::gallery;
use residuum::{
    Accumulation, BackendKind, Csr, Device, Method, Precision, Real, Regularization, Result, Setup, Solver,
    Stopping, Vector,
};

/// Texts of all files of kernels, by their paths in `cl/`.
pub(crate) fn kernel_texts() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cl");
    let mut found = Vec::new();
    for room in std::fs::read_dir(&folder).unwrap() {
        for file in std::fs::read_dir(room.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path.strip_prefix(&folder).unwrap().to_path_buf(), text));
        }
    }
    found
}

/// A folder for `RESIDUUM_CL_DIR`, with all kernels as `change` makes them.
pub(crate) fn changed_kernels(change: impl Fn(&str) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in kernel_texts() {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, change(&text)).unwrap();
    }
    folder
}

/// Every device under test: the host, and every OpenCL device of the machine but those that are a last resort and not
/// named by `RESIDUUM_TEST_DEVICES` (a filter; `oclgrind` picks the simulator).
///
/// `REQUIRE_DEVICES=n` turns fewer than `n` OpenCL devices into a failure, so that green is never empty.
pub(crate) fn devices() -> Vec<Device> {
    let wanted = std::env::var("RESIDUUM_TEST_DEVICES").unwrap_or_default();
    let filter: residuum::DeviceFilter = wanted.parse().expect("a filter");
    let mut devices = vec![Device::host()];
    for candidate in Device::candidates() {
        let info = candidate.info;
        let Some((platform, device)) = info.index else { continue };
        if wanted.is_empty() && info.last_resort.is_some() {
            println!("skipped: {} ({}): {}", info.name, info.platform, candidate.standing);
            continue;
        }
        if filter.matches(&info) {
            devices.push(Device::select(&format!("{platform}:{device}")).expect("an enumerated device opens"));
        }
    }
    let required: usize = std::env::var("REQUIRE_DEVICES").map_or(0, |n| n.parse().expect("a number"));
    assert!(
        devices.len() > required,
        "REQUIRE_DEVICES={required}, found {}: {:?}",
        devices.len() - 1,
        Device::opencl_missing()
    );
    devices
}

/// Regularised CGNR with a column for each regularization.
pub(crate) fn cgnr<T: Real>(
    operator: impl Into<SharedOperator<T>>,
    regularizations: &[Regularization],
    stopping: Stopping,
) -> Result<Solver<T>> {
    let setup = Setup::new(Method::Cgnr, stopping).with_columns(regularizations.len());
    Solver::with(operator, setup.with_regularizations(regularizations))
}

/// An operator that hides what it is made of: what a user's own looks like to a solver.
pub(crate) struct Opaque<T: Real>(pub(crate) SharedOperator<T>);

impl<T: Real> LinearOperator<T> for Opaque<T> {
    fn device(&self) -> &Device {
        self.0.device()
    }
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn cols(&self) -> usize {
        self.0.cols()
    }
    fn apply(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.0.apply(x, y)
    }
    fn apply_adjoint(&self, x: &Vector<T>, y: &mut Vector<T>) -> Result<()> {
        self.0.apply_adjoint(x, y)
    }
    fn has_adjoint(&self) -> bool {
        true
    }
    fn norm_bound(&self) -> Option<f64> {
        self.0.norm_bound()
    }
    fn launches(&self, columns: usize) -> usize {
        self.0.launches(columns)
    }
}

/// Devices under test that compute in `precision`.
pub(crate) fn devices_in(precision: Precision) -> Vec<Device> {
    let able = |device: &Device| match device.require(precision) {
        Ok(()) => true,
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    };
    devices().into_iter().filter(able).collect()
}

/// Work-group sizes to try on a device: its default and those that a user might ask for, or only those that
/// `RESIDUUM_TEST_WORK_GROUPS` lists (if a driver takes seconds to build a program, sizes can be shared out).
pub(crate) fn work_groups(device: &Device) -> Vec<Device> {
    let (mut all, sizes) = match std::env::var("RESIDUUM_TEST_WORK_GROUPS") {
        Ok(list) => (Vec::new(), list.split(',').map(|n| n.trim().parse().expect("a size")).collect()),
        Err(_) => (vec![device.clone()], vec![1, 32, 1024]),
    };
    for size in sizes {
        match device.with_work_group(size) {
            Ok(device) => all.push(device),
            Err(error) => println!("skipped: {error}"),
        }
    }
    all
}

/// The numbers of resident groups worth trying on `device`, of which the first is 0.
pub(crate) fn residencies<'a>(device: &Device, groups: &'a [usize]) -> &'a [usize] {
    if device.info().resident_groups > 0 {
        return groups;
    }
    // The host launches nothing.
    if device.backend_kind() == BackendKind::OpenCl {
        println!("skipped: many iterations in one launch, which {} does not do", device.info().name);
    }
    &groups[..1]
}

/// Every device at every work-group size, in every way of keeping sums that `T` has.
pub(crate) fn each_case<T: Real>(mut case: impl FnMut(&Device)) {
    for device in devices_in(T::PRECISION) {
        for device in work_groups(&device) {
            for accumulation in [Accumulation::Double, Accumulation::Pair] {
                if T::PRECISION == Precision::Double && accumulation == Accumulation::Pair {
                    continue;
                }
                match device.with_accumulation(accumulation) {
                    Ok(device) => {
                        println!("{} {} {} {accumulation}", device.info().name, device.tuning(), T::PRECISION);
                        case(&device);
                    }
                    Err(error) => println!("skipped: {error}"),
                }
            }
        }
    }
}

/// The host that keeps sums as `device` does: the reference for its bits.
pub(crate) fn reference<T: Real>(device: &Device) -> Device {
    Device::host().with_accumulation(device.accumulation(T::PRECISION)).expect("the host keeps sums in any way")
}

/// The 2-norm.
pub(crate) fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

/// Relative distance of `x` from `wanted`.
pub(crate) fn distance<T: Real>(x: &[T], wanted: &[f64]) -> f64 {
    norm(x.iter().zip(wanted).map(|(x, w)| x.to_f64() - w)) / norm(wanted.iter().copied())
}

/// The bits of numbers of either precision (`f64` holds an `f32` exactly).
pub(crate) fn bits<T: Real>(values: &[T]) -> Vec<u64> {
    values.iter().map(|v| v.to_f64().to_bits()).collect()
}

/// Seeded numbers in (-1, 1).
pub(crate) fn noise<T: Real>(n: usize, seed: u64) -> Vec<T> {
    let mut random = gallery::Random::new(seed);
    (0..n).map(|_| T::from_f64(2.0 * random.uniform() - 1.0)).collect()
}

/// A seeded matrix with `nnz` entries, as many in every row, whose rows have most columns and values in common with the next: the
/// golden file was made with it, before `gallery::random` drew each row afresh.
pub(crate) fn overlapping<T: Real>(rows: usize, cols: usize, nnz: usize, seed: u64) -> Csr<T> {
    let found = Csr::from_rows(rows, cols, |i, row| {
        let mut random = gallery::Random::new(seed ^ (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let length = ((i + 1) * nnz / rows - i * nnz / rows).min(cols);
        while row.len() < length {
            let column = (random.next() % cols as u64) as u32;
            if row.iter().all(|entry| entry.0 != column) {
                row.push((column, T::from_f64(random.uniform())));
            }
        }
        row.sort_unstable_by_key(|entry| entry.0);
    });
    found.unwrap()
}

/// Runs `test`, with its path from the root of the suite, in a process of its own, where other tests do not count among its allocations, unless
/// this is that process.
pub(crate) fn ran_alone(test: &str) -> bool {
    const ALONE: &str = "RESIDUUM_ALLOCATION_TEST";
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let program = std::env::current_exe().expect("a test has a path");
    let (_, test) = test.split_once("::").expect("a path");
    let status =
        std::process::Command::new(program).args(["--exact", test, "--test-threads=1"]).env(ALONE, "1").status();
    assert!(status.expect("a test runs").success(), "{test}");
    true
}

/// A program of `examples/`, built beside this test.
pub(crate) fn program(name: &str) -> std::process::Command {
    let deps = std::env::current_exe().expect("a test has a path");
    let path = deps.ancestors().nth(2).expect("two folders up").join("examples").join(name);
    assert!(path.exists(), "{} is not built: run cargo build --examples", path.display());
    let mut command = std::process::Command::new(path);
    command.env_remove("RUST_LOG");
    command
}

/// Runs a program in a folder.
pub(crate) fn run(name: &str, folder: &Path, args: &[&str]) -> Output {
    program(name).current_dir(folder).args(args).output().unwrap()
}

/// Text of both streams.
pub(crate) fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Fails unless a program ends with status 2 and one line on stderr that says `part`.
pub(crate) fn refused(name: &str, folder: &Path, args: &[&str], part: &str) {
    let output = run(name, folder, args);
    assert_eq!(output.status.code(), Some(2), "{name} {args:?}: {}", words(&output));
    let error = String::from_utf8_lossy(&output.stderr);
    // Compilers of OpenCL speak of warnings there.
    let lines: Vec<&str> = error.lines().filter(|line| !line.ends_with("generated.")).collect();
    assert!(lines.len() == 1 && lines[0].contains(part), "{name} {args:?}: no '{part}' in {error}");
}
