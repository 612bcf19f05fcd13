//! Tables and figures of the papers that the crate implements, their figures beside those of a device and of its host.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[allow(dead_code)] // the program spmv has all of it
#[path = "../spmv/case.rs"]
mod case;
mod dedecek;
mod known;
mod krueger;
mod michels;
mod oses;
mod printed;
mod readings;
mod stock_koch;
#[path = "../../tests/suite/common/thesis.rs"]
mod thesis;
mod timing;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use common::table::Table;
use common::{DeviceOptions, plot, tell};
use residuum::measure::copy_bandwidth;
use residuum::{BackendKind, Device, Result};
use serde_json::{Value, json};

/// Papers with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Paper {
    /// J. Dědeček, incomplete inverse factorisation on a GPU: tables 7.1 to 7.9, for its matrices in the folder --data
    #[value(name = "dedecek-2013")]
    Dedecek,
    /// J. Krüger and R. Westermann, linear algebra operators on a GPU: section 6
    #[value(name = "krueger-westermann-2003")]
    Krueger,
    /// D. L. Michels, sparse conjugate gradients in CUDA: table 6.1, figure 4, the claims on SSOR (8.1) and on transfers, steps a second (7.2)
    #[value(name = "michels-2011")]
    Michels,
    /// J. Osés Villanueva, conjugate gradients for an hp finite-element code: the system of 5.4 for p = 1 to 8, the claim on transfers (6)
    #[value(name = "oses-2013")]
    Oses,
    /// F. Stock and A. Koch, ill-posed systems by CGNR with a regularization F: table 2, the budget of a solve, figure 3, the experiment with ILU
    #[value(name = "stock-koch-2009")]
    StockKoch,
}

impl Paper {
    /// Names of its tables, for --table.
    fn tables(self) -> &'static [&'static str] {
        match self {
            Self::Dedecek => dedecek::TABLES,
            Self::Krueger => krueger::TABLES,
            Self::Michels => michels::TABLES,
            Self::Oses => oses::TABLES,
            Self::StockKoch => stock_koch::TABLES,
        }
    }
}

/// Print the tables of a paper: its own figures beside those of a device and of the host.
///
/// Columns that begin with the name of a paper are as printed there, on the machines of its time. Exit status: 0 done, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "papers", version = common::version(), after_help = common::ENVIRONMENT)]
struct Options {
    /// Paper
    #[arg(value_enum)]
    paper: Paper,
    /// Tables, by the names that a wrong one lists (repeatable) [default: all]
    #[arg(long, value_name = "NAME")]
    table: Vec<String>,
    /// Folder of Matrix Market files (.mtx, .mtx.gz) with matrices of the paper
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Seconds that the set-up of one preconditioner may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    time_limit: u64,
    /// Draw the figure of the paper, if it has one (.png or .svg)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    json: bool,
}

/// Everything that a paper needs.
struct Setting {
    options: Options,
    device: Device,
    host: Device,
    /// GB/s of a copy on the device.
    copy: f64,
    table: Table,
}

impl Setting {
    /// Tells if a table was asked for.
    fn wants(&self, table: &str) -> bool {
        self.options.table.is_empty() || self.options.table.iter().any(|name| name == table)
    }

    fn row(&self, row: &Value) {
        match self.options.json {
            true => common::print_json(row.clone()),
            false => self.table.row(row),
        }
    }

    /// The host and the device, with the names of their columns; the host alone if that is the device.
    fn devices(&self) -> Vec<(&'static str, &Device)> {
        match self.device.backend_kind() {
            BackendKind::Host => vec![("host", &self.host)],
            _ => vec![("host", &self.host), ("device", &self.device)],
        }
    }
}

fn main() -> ExitCode {
    common::begin("papers");
    common::exit::<Options>("papers", run(Options::parse()).map(|()| true))
}

fn run(options: Options) -> Result<()> {
    let tables = options.paper.tables();
    if let Some(wrong) = options.table.iter().find(|name| !tables.contains(&name.as_str())) {
        return Err(common::option("table", format!("'{wrong}' is none of {}", tables.join(", "))));
    }
    // The figure that is drawn, and if the host alone has a line in it.
    let figure = match options.paper {
        Paper::Michels => Some((michels::FIGURE, false)),
        Paper::StockKoch => Some((stock_koch::FIGURE, true)),
        Paper::Dedecek | Paper::Krueger | Paper::Oses => None,
    };
    if let Some(path) = &options.plot {
        if figure.is_none() {
            return Err(common::option("plot", "michels-2011 and stock-koch-2009 have a figure that is drawn"));
        }
        plot::check(path)?;
        common::check_outputs(&[], &[("plot", path)])?;
    }
    let device = options.device.open::<f32>()?;
    if let Some((name, of_host)) = figure.filter(|_| options.plot.is_some()) {
        let draws = options.table.is_empty() || options.table.iter().any(|table| table == name);
        let why = match (draws, of_host || device.backend_kind() != BackendKind::Host) {
            (true, true) => None,
            (false, _) => Some("is not among the tables"),
            (true, false) => Some("wants a device that is not the host"),
        };
        if let Some(why) = why {
            return Err(common::option("plot", format!("there is nothing to draw: {name} {why}")));
        }
    }
    let copy = copy_bandwidth(&device)?;
    let table = Table::new(options.json);
    let setting = Setting { host: Device::host(), device, copy, table, options };
    setting.row(&json!({
        "device": setting.device.info().name, "driver": setting.device.info().driver, "copy_gbps": copy,
        "version": common::version(),
    }));
    match setting.options.paper {
        Paper::Dedecek => dedecek::tables(&setting),
        Paper::Krueger => krueger::tables(&setting),
        Paper::Michels => michels::tables(&setting),
        Paper::Oses => oses::tables(&setting),
        Paper::StockKoch => stock_koch::tables(&setting),
    }
}

/// A row of a table that may fail: the others are made all the same.
fn attempt(setting: &Setting, row: &str, outcome: Result<()>) {
    if let Err(error) = outcome {
        setting.row(&json!({"none": row, "why": error.to_string()}));
    }
}

/// Says on stderr what a table lacks.
fn missing(what: &str) {
    tell!("papers: {what}");
}
