//! Line charts as PNG or SVG.

#[cfg(feature = "plot")]
mod draw;

use std::path::Path;

use residuum::Result;

use crate::check_ending;

/// A chart with a logarithmic vertical axis.
#[derive(Default)]
pub struct Chart<'a> {
    /// Line above the chart.
    pub title: String,
    /// Name of the horizontal axis.
    pub across: &'a str,
    /// Name of the vertical axis.
    pub up: &'a str,
    /// True if the horizontal axis is logarithmic too, to base 2.
    pub doubling: bool,
    /// Name and points of each line; points that a logarithm does not take are left out.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
    /// A level to reach, drawn across.
    pub goal: Option<(&'a str, f64)>,
}

impl Chart<'_> {
    /// Draws to `path`: SVG if it ends so, else PNG.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_panels(path, "", std::slice::from_ref(self), 1)
    }
}

/// Fails if a picture cannot be drawn to `path`: in a program that was built without plots, or by its ending.
pub fn check(path: &Path) -> Result<()> {
    if cfg!(feature = "plot") { check_ending("plot", path, &["png", "svg"]) } else { Err(missing()) }
}

fn missing() -> residuum::Error {
    crate::option("plot", "this program was built without plots: build it with --features plot")
}

/// Draws charts beside and below each other, `across` in a row, under a title: SVG if `path` ends so, else PNG.
pub fn write_panels(path: &Path, title: &str, charts: &[Chart<'_>], across: usize) -> Result<()> {
    #[cfg(feature = "plot")]
    return draw::write_panels(path, title, charts, across);
    #[cfg(not(feature = "plot"))]
    {
        let _ = (path, title, charts, across);
        Err(missing())
    }
}
