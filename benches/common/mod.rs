//! What every benchmark starts with: its options, its device, the copy bandwidth it is held against.

use residuum::{Device, Error, Result, measure};
use serde_json::json;

/// A benchmark's options, device and yardstick.
pub(crate) struct Setting {
    args: Vec<String>,
    pub(crate) device: Device,
    /// GB/s of a copy on the device.
    pub(crate) copy: f64,
}

impl Setting {
    /// The value after option `name`.
    fn value<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
        args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).map(String::as_str)
    }

    /// Reads `--device WORDS` and `--work-group N`, measures the copy bandwidth and prints both.
    fn new() -> Result<Self> {
        let args: Vec<String> = std::env::args().collect();
        let mut device = match Self::value(&args, "--device") {
            Some(words) => Device::select(words)?,
            None => Device::best()?,
        };
        if let Some(size) = Self::value(&args, "--work-group") {
            let bad = |_| Error::Option { name: "work-group", reason: format!("'{size}' is not a number") };
            device = device.with_work_group(size.parse().map_err(bad)?)?;
        }
        let copy = measure::copy_bandwidth(&device)?;
        println!("{}", json!({"device": device.info().name, "driver": device.info().driver, "copy_gbps": copy}));
        Ok(Self { args, device, copy })
    }

    /// Whether `--only` names this part, or none.
    pub(crate) fn wanted(&self, part: &str) -> bool {
        Self::value(&self.args, "--only").is_none_or(|only| only == part)
    }

    /// Whether option `name` was given.
    #[allow(dead_code)] // not every benchmark has one
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.args.iter().any(|a| a == name)
    }
}

/// Runs the benchmark `name`; an error is one line and exit status 2.
pub(crate) fn main(name: &str, run: impl FnOnce(&Setting) -> Result<()>) -> std::process::ExitCode {
    env_logger::init();
    match Setting::new().and_then(|setting| run(&setting)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            std::process::ExitCode::from(2)
        }
    }
}
