//! Results as they are printed: a table in Markdown, to be pasted, or lines of JSON.
#![allow(clippy::print_stdout)]

use std::cell::RefCell;

use serde_json::{Map, Value};

/// Prints rows; a new head whenever the columns change.
pub struct Table {
    json: bool,
    head: RefCell<Vec<String>>,
}

impl Table {
    /// Lines of JSON, or a table.
    pub fn new(json: bool) -> Self {
        Self { json, head: RefCell::default() }
    }

    /// Prints an object: its names are the columns.
    pub fn row(&self, result: &Value) {
        match result {
            Value::Object(fields) if !self.json => self.cells(fields),
            _ => println!("{result}"),
        }
    }

    fn cells(&self, fields: &Map<String, Value>) {
        let names: Vec<String> = fields.keys().cloned().collect();
        if *self.head.borrow() != names {
            println!("\n| {} |\n|{}", names.join(" | "), "---|".repeat(names.len()));
            self.head.replace(names);
        }
        let cells: Vec<String> = fields.values().map(cell).collect();
        println!("| {} |", cells.join(" | "));
    }
}

/// A value in few characters: four figures are more than a measurement holds.
fn cell(value: &Value) -> String {
    match (value, value.as_f64()) {
        (Value::Null, _) => "-".into(),
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), Some(float)) if number.is_f64() && float != 0.0 => {
            let places = (3 - float.abs().log10().floor() as i32).clamp(0, 9) as usize;
            if float.abs() < 1e-4 { format!("{float:.1e}") } else { format!("{float:.places$}") }
        }
        _ => value.to_string(),
    }
}

/// The first comment of a benchmark's `source`.
pub fn help(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The first option of the program that neither `help` names in its command nor `of_all` has.
pub fn unknown_option(help: &str, of_all: &[&str]) -> Option<String> {
    let ends = |c: char| !c.is_ascii_alphabetic() && c != '-';
    let command = help.split_once(" -- ").and_then(|(_, rest)| rest.split('`').next()).unwrap_or_default();
    let known = |a: &str| of_all.contains(&a) || command.split(ends).any(|word| word == a);
    std::env::args().find(|a| a.starts_with("--") && !known(a))
}

/// Prints [`help`] if the program was called with `--help`, and tells so.
pub fn helped(source: &str) -> bool {
    let asked = std::env::args().any(|arg| arg == "--help" || arg == "-h");
    if asked {
        println!("{}", help(source));
    }
    asked
}
