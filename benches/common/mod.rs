//! Start of every benchmark: its options, its device, the copy bandwidth that it is compared with.

#[allow(dead_code)] // not every benchmark has one
pub(crate) mod peer;
#[allow(unreachable_pub)] // public in the library of the programs
#[path = "../../examples/common/table.rs"]
mod table;

use std::path::{Path, PathBuf};

use residuum::{Device, Error, Packing, Result, measure};
use serde_json::{Value, json};
use table::Table;

/// A benchmark's options, device and yardstick.
pub(crate) struct Setting {
    args: Vec<String>,
    pub(crate) device: Device,
    /// GB/s of a copy on the device.
    #[allow(dead_code)] // not every benchmark counts bytes
    pub(crate) copy: f64,
    table: Table,
}

impl Setting {
    /// The value after option `name`.
    fn value<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
        args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).map(String::as_str)
    }

    fn number_of(args: &[String], name: &'static str) -> Result<Option<usize>> {
        let bad = |text| Error::Option { name, reason: format!("'{text}' is not a number") };
        Self::value(args, name).map(|text| text.parse().map_err(|_| bad(text))).transpose()
    }

    /// The number after option `name`.
    #[allow(dead_code)] // not every benchmark has one
    pub(crate) fn number(&self, name: &'static str) -> Result<Option<usize>> {
        Self::number_of(&self.args, name)
    }

    /// The word after option `name`.
    #[allow(dead_code)] // not every benchmark has one
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        Self::value(&self.args, name)
    }

    /// The numbers of a list after option `name`, separated by commas.
    #[allow(dead_code)] // not every benchmark has one
    pub(crate) fn numbers(&self, name: &'static str) -> Result<Option<Vec<usize>>> {
        let bad = |text: &str| Error::Option { name, reason: format!("'{text}' is not a list of numbers") };
        let parse = |text: &str| {
            text.split(',').map(|n| n.parse()).collect::<std::result::Result<_, _>>().map_err(|_| bad(text))
        };
        Self::value(&self.args, name).map(parse).transpose()
    }

    /// Reads `--device WORDS`, `--work-group N`, `--resident N` and `--json`, measures the copy bandwidth and prints both. Fails for
    /// an option that the command in `help` does not name; `cargo bench` adds `--bench`.
    fn new(help: &str) -> Result<Self> {
        let args: Vec<String> = std::env::args().collect();
        const OF_ALL: [&str; 5] = ["--bench", "--device", "--work-group", "--resident", "--json"];
        if let Some(option) = table::unknown_option(help, &OF_ALL) {
            return Err(Error::Option { name: "option", reason: format!("there is no {option}: see --help") });
        }
        let mut device = match Self::value(&args, "--device") {
            Some(words) => Device::select(words)?,
            None => Device::best()?,
        };
        if let Some(size) = Self::number_of(&args, "--work-group")? {
            device = device.with_work_group(size)?;
        }
        if let Some(groups) = Self::number_of(&args, "--resident")? {
            device = device.with_resident_groups(groups);
        }
        let copy = measure::copy_bandwidth(&device)?;
        let table = Table::new(args.iter().any(|a| a == "--json"));
        table.row(&json!({"device": device.info().name, "driver": device.info().driver, "copy_gbps": copy}));
        Ok(Self { args, device, copy, table })
    }

    /// Packing that `--packing auto|always|never` asks for.
    #[allow(dead_code)] // not every benchmark stores a matrix
    pub(crate) fn packing(&self) -> Result<Packing> {
        self.text("--packing").map_or(Ok(Packing::Auto), str::parse)
    }

    /// Prints one result: a row of a table, or with `--json` a line of JSON.
    pub(crate) fn row(&self, result: &Value) {
        self.table.row(result);
    }

    /// Tells if `--only` names this part, or none.
    #[allow(dead_code)] // not every benchmark has parts
    pub(crate) fn wanted(&self, part: &str) -> bool {
        Self::value(&self.args, "--only").is_none_or(|only| only == part)
    }

    /// Tells if option `name` was given.
    #[allow(dead_code)] // not every benchmark has one
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.args.iter().any(|a| a == name)
    }
}

/// Runs the benchmark `name`; an error is one line and exit status 2. `--help` prints the first comment of its `source`.
pub(crate) fn main(name: &str, source: &str, run: impl FnOnce(&Setting) -> Result<()>) -> std::process::ExitCode {
    env_logger::init();
    if table::helped(source) {
        return std::process::ExitCode::SUCCESS;
    }
    match Setting::new(&table::help(source)).and_then(|setting| run(&setting)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            std::process::ExitCode::from(2)
        }
    }
}

/// Names and paths of the Matrix Market files of a folder, by name; right-hand sides left out.
#[allow(dead_code)] // not every benchmark reads files
pub(crate) fn matrix_files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |e: std::io::Error| Error::File { path: folder.into(), reason: e.to_string() };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(name) = file.strip_suffix(".mtx.gz").filter(|name| !name.contains("_rhs")) {
            found.push((name.to_owned(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}
