//! Line charts as PNG or SVG, with the font in the program: not every machine has one.

use std::path::Path;

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use residuum::io::write_atomically;
use residuum::{Error, Result};

const SIZE: (u32, u32) = (960, 600);
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
];

/// A chart with a logarithmic vertical axis.
pub(crate) struct Chart<'a> {
    pub(crate) title: String,
    pub(crate) across: &'a str,
    pub(crate) up: &'a str,
    /// Name and points of each line; points that a logarithm does not take are left out.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
    /// A level to reach, drawn across.
    pub(crate) goal: Option<(&'a str, f64)>,
}

impl Chart<'_> {
    /// Draws to `path`: SVG where it ends so, PNG otherwise.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let failed = |reason: String| Error::File { path: path.into(), reason };
        register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular())
            .map_err(|_| failed("the font of the program cannot be read".into()))?;
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")) {
            let mut text = String::new();
            self.draw(&SVGBackend::with_string(&mut text, SIZE).into_drawing_area()).map_err(failed)?;
            return write_atomically(path, |file| file.write_all(text.as_bytes()));
        }
        let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
        self.draw(&BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area()).map_err(failed)?;
        write_atomically(path, |file| {
            let mut encoder = png::Encoder::new(file, SIZE.0, SIZE.1);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
            writer.write_image_data(&pixels).map_err(std::io::Error::other)
        })
    }

    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, plotters::coord::Shift>,
    ) -> std::result::Result<(), String> {
        let told = |error: DrawingAreaErrorKind<B::ErrorType>| error.to_string();
        let usable = |p: &&(f64, f64)| p.1 > 0.0 && p.1.is_finite();
        let points = || self.lines.iter().flat_map(|line| line.1.iter().filter(usable));
        let right = points().map(|p| p.0).fold(1.0, f64::max);
        let left = points().map(|p| p.0).fold(right, f64::min);
        let levels = || points().map(|p| p.1).chain(self.goal.map(|g| g.1).filter(|g| *g > 0.0));
        let high = levels().fold(f64::MIN_POSITIVE, f64::max);
        let low = levels().fold(high, f64::min);
        let (high, low) = if high > low { (high, low) } else { (2.0 * high, 0.5 * high) };
        area.fill(&WHITE).map_err(told)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(80)
            .build_cartesian_2d(left..right, (low * 0.5..high * 2.0).log_scale())
            .map_err(told)?;
        chart
            .configure_mesh()
            .x_desc(self.across)
            .y_desc(self.up)
            .axis_desc_style(("sans-serif", 16))
            .label_style(("sans-serif", 13))
            .x_label_formatter(&|v| format!("{v:.0}"))
            .y_label_formatter(&|v| format!("{v:.0e}"))
            .light_line_style(RGBColor(240, 240, 240))
            .draw()
            .map_err(told)?;
        for ((name, line), colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            let drawn = LineSeries::new(line.iter().filter(usable).copied(), colour.stroke_width(2));
            chart
                .draw_series(drawn)
                .map_err(told)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(2)));
        }
        if let Some((name, level)) = self.goal.filter(|g| g.1 > 0.0) {
            let style = BLACK.mix(0.6).stroke_width(1);
            chart
                .draw_series(LineSeries::new([(left, level), (right, level)], style))
                .map_err(told)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        chart
            .configure_series_labels()
            .label_font(("sans-serif", 14))
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .draw()
            .map_err(told)?;
        area.present().map_err(told)
    }
}
