//! Charts drawn by `plotters`, with the font in the program: not every machine has one.

use std::path::Path;

use super::Chart;
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use residuum::io::write_atomically;
use residuum::{Error, Result};

const SIZE: (u32, u32) = (960, 600);
/// Height of a title over several charts.
const HEADING: u32 = 40;
const COLOURS: [RGBColor; 16] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(23, 190, 207),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(127, 127, 127),
    RGBColor(188, 189, 34),
    RGBColor(0, 0, 0),
    RGBColor(0, 100, 0),
    RGBColor(0, 0, 139),
    RGBColor(255, 187, 120),
    RGBColor(128, 0, 0),
    RGBColor(152, 223, 138),
];

impl Chart<'_> {
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
        let (from, to) = (self.placed(left), self.placed(right).max(self.placed(left) + 1.0));
        // Names of many lines stand beside them.
        let room = if self.doubling { 0.5 * (to - from) } else { 0.0 };
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(80)
            .build_cartesian_2d(from..to + room, (low * 0.5..high * 2.0).log_scale())
            .map_err(told)?;
        let label = |v: &f64| match self.doubling {
            true if *v > to => String::new(),
            true if v.abs() > 13.5 || *v < -0.5 => format!("{:.0e}", v.exp2()),
            true => format!("{:.0}", v.exp2()),
            false => format!("{v:.0}"),
        };
        let marks = if self.doubling { ((to + room - from).round() as usize + 1).min(16) } else { 10 };
        chart
            .configure_mesh()
            .x_desc(self.across)
            .y_desc(self.up)
            .axis_desc_style(("sans-serif", 16))
            .label_style(("sans-serif", 13))
            .x_labels(marks)
            .x_label_formatter(&label)
            .y_label_formatter(&|v| format!("{v:.0e}"))
            .light_line_style(RGBColor(240, 240, 240))
            .draw()
            .map_err(told)?;
        for ((name, line), colour) in self.lines.iter().zip(COLOURS.into_iter().cycle()) {
            let points = || line.iter().filter(usable).map(|(x, y)| (self.placed(*x), *y));
            if self.doubling {
                let dots = points().map(|point| Circle::new(point, 3, colour.filled()));
                chart.draw_series(dots).map_err(told)?;
            }
            chart
                .draw_series(LineSeries::new(points(), colour.stroke_width(2)))
                .map_err(told)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(2)));
        }
        if let Some((name, level)) = self.goal.filter(|g| g.1 > 0.0) {
            let style = BLACK.mix(0.6).stroke_width(1);
            chart
                .draw_series(LineSeries::new([(self.placed(left), level), (self.placed(right), level)], style))
                .map_err(told)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        chart
            .configure_series_labels()
            .position(if self.doubling {
                SeriesLabelPosition::UpperRight
            } else {
                SeriesLabelPosition::MiddleRight
            })
            .label_font(("sans-serif", 14))
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(200, 200, 200))
            .draw()
            .map_err(told)
    }

    /// Place of `x` on the horizontal axis.
    fn placed(&self, x: f64) -> f64 {
        if self.doubling { x.max(f64::MIN_POSITIVE).log2() } else { x }
    }
}

/// See [`super::write_panels`].
pub(super) fn write_panels(path: &Path, title: &str, charts: &[Chart<'_>], across: usize) -> Result<()> {
    let failed = |reason: String| Error::File { path: path.into(), reason };
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| failed("the font of the program cannot be read".into()))?;
    let down = charts.len().div_ceil(across).max(1);
    let heading = if title.is_empty() { 0 } else { HEADING };
    let size = (SIZE.0 * across as u32, SIZE.1 * down as u32 + heading);
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")) {
        let mut text = String::new();
        draw_panels(&SVGBackend::with_string(&mut text, size).into_drawing_area(), title, charts, (down, across))
            .map_err(failed)?;
        return write_atomically(path, |file| file.write_all(text.as_bytes()));
    }
    let mut pixels = vec![0; (size.0 * size.1 * 3) as usize];
    draw_panels(&BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area(), title, charts, (down, across))
        .map_err(failed)?;
    write_atomically(path, |file| {
        let mut encoder = png::Encoder::new(file, size.0, size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
        writer.write_image_data(&pixels).map_err(std::io::Error::other)
    })
}

fn draw_panels<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    title: &str,
    charts: &[Chart<'_>],
    shape: (usize, usize),
) -> std::result::Result<(), String> {
    let told = |error: DrawingAreaErrorKind<B::ErrorType>| error.to_string();
    area.fill(&WHITE).map_err(told)?;
    let body =
        if title.is_empty() { area.clone() } else { area.titled(title, ("sans-serif", 24)).map_err(told)? };
    for (chart, panel) in charts.iter().zip(body.split_evenly(shape)) {
        chart.draw(&panel)?;
    }
    area.present().map_err(told)
}
