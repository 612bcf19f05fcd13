//! dedecek-2013, tables 7.1 to 7.9, under the conventions of `tests/suite/common/thesis.rs`: in fp32, times in ms.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use residuum::operator::{SharedOperator, SplitRows};
use residuum::precond::{Ainv, AinvOptions, Bainv, BainvOptions};
use residuum::sparse::Partition;
use residuum::{Csr, Device, Error, Format, Matrix, Method, Result, Setup, Solver, Stopping, Vector, io};
use serde_json::{Value, json};

use crate::printed::{self, row, rows};
use crate::thesis::{counted, system};
use crate::timing::{fastest, timed};
use crate::{Setting, attempt, missing};

pub(crate) const TABLES: &[&str] = &["7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "7.9"];

/// Collection that the matrices come from.
const SOURCE: &str = "https://sparse.tamu.edu";

/// Parts of tables 7.4 and 7.7 for matrices that have no row there.
const PARTS: [usize; 6] = [128, 256, 512, 1024, 2048, 4096];

/// Rows of a part that make sense: fewer are no use, and blocks of more are dense.
const ROWS_OF_PART: std::ops::RangeInclusive<usize> = 16..=600;

/// A matrix of the thesis, under its conventions.
struct System<'a> {
    setting: &'a Setting,
    name: &'static str,
    a: Csr<f32>,
    rhs: Vec<f32>,
}

pub(crate) fn tables(setting: &Setting) -> Result<()> {
    let names: BTreeSet<&'static str> = rows(printed::MATRICES).map(|row| row.0).collect();
    let Some(folder) = &setting.options.data else {
        let reason = format!("dedecek-2013 wants --data FOLDER with matrices of the thesis, from {SOURCE}");
        return Err(common::option("data", reason));
    };
    let (found, lacking): (Vec<_>, Vec<_>) =
        names.into_iter().map(|name| (name, file_of(folder, name))).partition(|(_, path)| path.is_some());
    for (name, path) in found.into_iter().filter_map(|(name, path)| Some((name, path?))) {
        match io::read_matrix(&path, &mut |_, _| ()).and_then(|a| system(&a)) {
            Ok((a, rhs)) => System { setting, name, a, rhs }.tables(),
            Err(error) => attempt(setting, name, Err(error)),
        }
    }
    if !lacking.is_empty() {
        let names: Vec<&str> = lacking.iter().map(|matrix| matrix.0).collect();
        missing(&format!("not in {}: {} (to be had from {SOURCE})", folder.display(), names.join(", ")));
    }
    Ok(())
}

/// File of a matrix in a folder.
fn file_of(folder: &Path, name: &str) -> Option<PathBuf> {
    ["mtx.gz", "mtx", "tar.gz", "npz"]
        .iter()
        .map(|ending| folder.join(format!("{name}.{ending}")))
        .find(|p| p.exists())
}

/// Set-up in ms, entries, iterations and ms of the solve; or why there is none.
fn cell(outcome: Result<(f64, usize, f64, usize)>) -> Value {
    match outcome {
        Ok((setup, entries, solve, iterations)) => {
            json!(format!("{setup:.1}, {entries}, {iterations} ({solve:.1})"))
        }
        Err(error) => json!(format!("none: {error}")),
    }
}

/// Error of a device that left to the host what it was asked for.
fn left_to_the_host() -> Error {
    Error::Structure { what: "the device left it to the host: RUST_LOG=info says why".into(), row: None }
}

impl System<'_> {
    /// All tables that were asked for; one that cannot be made is a row that says why.
    fn tables(&self) {
        let made: [(&str, &dyn Fn() -> Result<()>); 9] = [
            ("7.1", &|| self.sizes()),
            ("7.2", &|| self.plain()),
            ("7.3", &|| self.preconditioned()),
            ("7.4", &|| self.partitions()),
            ("7.5", &|| self.halves("7.5", printed::BAINV_AINV)),
            ("7.6", &|| self.halves("7.6", printed::BAINV_SAINV)),
            ("7.7", &|| self.parts_on_both()),
            ("7.8", &|| self.stabilised("7.8", printed::SAINV_FINE, 0.01)),
            ("7.9", &|| self.stabilised("7.9", printed::SAINV_COARSE, 0.1)),
        ];
        for (table, make) in made {
            if self.setting.wants(table) {
                attempt(self.setting, &format!("{table}, {}", self.name), make());
            }
        }
    }

    fn sizes(&self) -> Result<()> {
        let thesis = row(printed::MATRICES, self.name).unwrap_or_default().join(", ");
        self.row("7.1", json!({"dedecek_rows_entries": thesis, "rows": self.a.rows(), "entries": self.a.nnz()}));
        Ok(())
    }

    fn plain(&self) -> Result<()> {
        let Some(thesis) = row(printed::CG, self.name) else { return Ok(()) };
        let mut line = solves_of_the_thesis(&thesis);
        self.solves(&mut line, |_| Ok(None))?;
        self.row("7.2", line);
        Ok(())
    }

    fn preconditioned(&self) -> Result<()> {
        let Some(thesis) = row(printed::PCG, self.name) else { return Ok(()) };
        let mut line = solves_of_the_thesis(&thesis[1..]);
        line["dedecek_nz"] = json!(thesis[0]);
        // Null until it is known: columns keep their order.
        line["nz"] = Value::Null;
        let entries = Cell::new(0);
        self.solves(&mut line, |device| {
            let inverse = self.made(device, AinvOptions::sainv(0.1), false)?;
            entries.set(inverse.entries());
            Ok(Some(inverse.into()))
        })?;
        line["nz"] = json!(entries.get());
        self.row("7.3", line);
        Ok(())
    }

    /// Tables 7.8 and 7.9.
    fn stabilised(&self, table: &str, thesis: &'static str, drop: f64) -> Result<()> {
        let Some(thesis) = row(thesis, self.name) else { return Ok(()) };
        let mut line = json!({"dedecek_cpu": thesis[..3].join(", "), "dedecek_gpu": thesis[3..].join(", ")});
        for (place, device) in self.setting.devices() {
            line[place] = cell(self.with_sainv(device, drop, place == "device"));
        }
        self.row(table, line);
        Ok(())
    }

    fn row(&self, table: &str, cells: Value) {
        self.setting.row(&common::merged([json!({"table": table, "matrix": self.name}), cells]));
    }

    /// Milliseconds, and iterations as the thesis counts them.
    fn solve(&self, device: &Device, format: Format, inverse: Option<SharedOperator<f32>>) -> Result<(f64, usize)> {
        self.solve_with(Matrix::new(device, &self.a, format)?, inverse)
    }

    fn solve_with(
        &self,
        a: impl Into<SharedOperator<f32>>,
        inverse: Option<SharedOperator<f32>>,
    ) -> Result<(f64, usize)> {
        let a: SharedOperator<f32> = a.into();
        let device = a.device().clone();
        let b = Vector::from_slice(&device, &self.rhs)?;
        let mut setup = Setup::new(Method::Cg, Stopping::after(1001));
        if let Some(inverse) = inverse {
            setup = setup.with_preconditioner(inverse);
        }
        let mut solver = Solver::with(a, setup)?;
        let report = fastest(1, || {
            let mut x = Vector::zeros(&device, self.a.cols())?;
            solver.solve(&b, &mut x)
        })?;
        let iterations = counted(&report.history);
        // The library goes on where the true residual is still too large.
        let share = ((iterations + 1) as f64 / report.iterations.max(1) as f64).min(1.0);
        Ok((1e3 * share * report.times.solve, iterations))
    }

    /// Columns of tables 7.2 and 7.3.
    fn solves(
        &self,
        line: &mut Value,
        inverse: impl Fn(&Device) -> Result<Option<SharedOperator<f32>>>,
    ) -> Result<()> {
        for (place, device) in self.setting.devices() {
            let inverse = inverse(device)?;
            for (name, format) in [("csr", Format::Csr), ("coo", Format::Coo)] {
                let (ms, iterations) = self.solve(device, format, inverse.clone())?;
                line[format!("{place}_{name}")] = json!(format!("{ms:.1} / {iterations}"));
            }
            // The thesis's product of compressed rows (figure 5.3), without its atomic additions. It is no part of the launches of CG, as
            // those of the formats are.
            let (ms, iterations) = self.solve_with(SplitRows::new(device, &self.a)?, inverse)?;
            line[format!("{place}_split")] = json!(format!("{ms:.1} / {iterations}"));
        }
        Ok(())
    }

    /// The time at which a set-up that begins now ends.
    fn deadline(&self) -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(self.setting.options.time_limit))
    }

    /// An inverse; an error if the device that was to make it did not.
    fn made(&self, device: &Device, mut options: AinvOptions, on_device: bool) -> Result<Ainv<f32>> {
        (options.scales, options.on_device) = (false, Some(on_device));
        let made = Ainv::new(device, &self.a, options.with_deadline(self.deadline()))?;
        if on_device && !made.made_on_device() {
            return Err(left_to_the_host());
        }
        Ok(made)
    }

    /// Milliseconds of the set-up, and the inverse.
    fn ainv(&self, device: &Device, options: AinvOptions, on_device: bool) -> Result<(f64, Ainv<f32>)> {
        timed(|| self.made(device, options, on_device))
    }

    fn sainv(&self, device: &Device, drop: f64, on_device: bool) -> Result<(f64, Ainv<f32>)> {
        self.ainv(device, AinvOptions::sainv(drop), on_device)
    }

    /// Set-up, entries, solve in the chosen format, iterations.
    fn with(&self, device: &Device, (setup, inverse): (f64, Ainv<f32>)) -> Result<(f64, usize, f64, usize)> {
        let entries = inverse.entries();
        let (solve, iterations) = self.solve(device, Format::Auto, Some(inverse.into()))?;
        Ok((setup, entries, solve, iterations))
    }

    fn with_sainv(&self, device: &Device, drop: f64, on_device: bool) -> Result<(f64, usize, f64, usize)> {
        self.with(device, self.sainv(device, drop, on_device)?)
    }

    /// BAINV on the host or on the device.
    fn with_bainv(
        &self,
        device: &Device,
        partition: &Partition,
        on_device: bool,
    ) -> Result<(f64, usize, f64, usize)> {
        let mut options = BainvOptions::default();
        options.on_device = Some(on_device);
        let (setup, inverse) =
            timed(|| Bainv::new(device, &self.a, partition, options.with_deadline(self.deadline())))?;
        if on_device && !inverse.made_on_device() {
            return Err(left_to_the_host());
        }
        let entries = inverse.entries();
        let (solve, iterations) = self.solve(device, Format::Auto, Some(inverse.into()))?;
        Ok((setup, entries, solve, iterations))
    }

    /// Parts, and the rest of the row, of a table of the thesis; a few numbers of parts for a matrix that has no row.
    fn parts_of(&self, table: &'static str) -> Vec<(usize, Vec<&'static str>)> {
        let of_thesis = rows(table).filter(|row| row.0 == self.name);
        let own: Vec<_> =
            of_thesis.filter_map(|(_, cells)| Some((cells[0].parse().ok()?, cells[1..].to_vec()))).collect();
        if !own.is_empty() {
            return own;
        }
        let parts = PARTS.iter().filter(|parts| ROWS_OF_PART.contains(&(self.a.rows() / **parts)));
        parts.map(|parts| (*parts, Vec::new())).collect()
    }

    #[cfg(feature = "metis")]
    fn partition(&self, parts: usize) -> Result<Partition> {
        Partition::metis(&self.a, parts)
    }

    #[cfg(not(feature = "metis"))]
    fn partition(&self, _: usize) -> Result<Partition> {
        Err(common::option("features", "partitions are made by a build with --features metis"))
    }

    /// Table 7.4.
    fn partitions(&self) -> Result<()> {
        for (parts, thesis) in self.parts_of(printed::PARTS) {
            let (partition_ms, partition) = timed(|| self.partition(parts))?;
            let made = self.with_bainv(&self.setting.host, &partition, false);
            self.row(
                "7.4",
                json!({
                    "parts": parts, "dedecek": or_none(&thesis), "partition_ms": partition_ms, "host": cell(made),
                }),
            );
        }
        Ok(())
    }

    /// Table 7.7.
    fn parts_on_both(&self) -> Result<()> {
        for (parts, thesis) in self.parts_of(printed::BAINV) {
            let partition = self.partition(parts)?;
            let (cpu, gpu) = thesis.split_at(thesis.len().min(3));
            let mut line = json!({"parts": parts, "dedecek_cpu": or_none(cpu), "dedecek_gpu": or_none(gpu)});
            for (place, device) in self.setting.devices() {
                line[place] = cell(self.with_bainv(device, &partition, place == "device"));
            }
            self.row("7.7", line);
        }
        Ok(())
    }

    /// A row of table 7.5 or 7.6, on the host, and on the device where there is one.
    fn halves(&self, table: &str, thesis: &'static str) -> Result<()> {
        let Some(thesis) = row(thesis, self.name) else { return Ok(()) };
        let parts: usize = thesis[0].parse().map_err(|_| common::option("table", "a row is damaged"))?;
        let (partition_ms, partition) = timed(|| self.partition(parts))?;
        let (name, options) = match table {
            "7.5" => ("ainv", AinvOptions::ainv(0.01)),
            _ => ("sainv", AinvOptions::sainv(0.01)),
        };
        let mut line = json!({
            "parts": parts, "dedecek_bainv": thesis[1..4].join(", "), "partition_ms": partition_ms,
        });
        for (place, device) in self.setting.devices() {
            line[format!("{place}_bainv")] = cell(self.with_bainv(device, &partition, place == "device"));
        }
        line[format!("dedecek_{name}")] = json!(thesis[4..].join(", "));
        for (place, device) in self.setting.devices() {
            let made = self.ainv(device, options, place == "device");
            line[format!("{place}_{name}")] = cell(made.and_then(|made| self.with(device, made)));
        }
        if table == "7.5" {
            // 3.2.1: the same from factors of the matrix, which the thesis describes and does not measure.
            let host = &self.setting.host;
            let made = self.ainv(host, AinvOptions::factored(0.01), false);
            line["host_ainv_from_ldl"] = cell(made.and_then(|made| self.with(host, made)));
        }
        self.row(table, line);
        Ok(())
    }
}

fn or_none(cells: &[&str]) -> String {
    if cells.is_empty() { "no row".to_string() } else { cells.join(", ") }
}

/// Columns of the thesis in tables 7.2 and 7.3.
fn solves_of_the_thesis(cells: &[&str]) -> Value {
    let pair = |k: usize| format!("{} / {}", cells[2 * k], cells[2 * k + 1]);
    json!({"dedecek_cpu": pair(0), "dedecek_gpu_csr": pair(1), "dedecek_gpu_coo": pair(2)})
}
