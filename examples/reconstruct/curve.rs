//! Pictures of how a weight was chosen, or the iteration of the answer.

use std::path::Path;

use common::plot::{Chart, write_panels};
use residuum::{ChosenWeight, Result, RuleCurve};

/// Draws the function that the rule looked at, over all weights, and the curve of residual and size, each with the weight that was chosen.
pub(crate) fn draw(path: &Path, weight: &ChosenWeight) -> Result<()> {
    // Weights far below change nothing any more.
    let least = weight.damp / 1000.0;
    let curve: Vec<_> = weight.curve.iter().filter(|point| point.damp >= least).collect();
    let values: Vec<(f64, f64)> = curve.iter().map(|point| (point.damp, point.value)).collect();
    let sizes: Vec<(f64, f64)> = curve.iter().map(|point| (point.residual, point.solution)).collect();
    // The weight itself lies between two of those that were looked at.
    let place = curve.iter().position(|point| point.damp <= weight.damp);
    let near = place.map(|place| curve[place]);
    let positive = values.iter().map(|(_, value)| *value).filter(|value| *value > 0.0);
    let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
    let mark = vec![(weight.damp, least), (weight.damp, most)];
    let corner = near.map(|point| (point.residual, point.solution));
    let bottom = sizes.iter().map(|(_, size)| *size).filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
    let corner = corner.map(|(r, size)| vec![(r, bottom), (r, size)]).unwrap_or_default();
    let charts = [
        Chart {
            title: format!("{}: damp = {:.3e}", weight.rule, weight.damp),
            across: "damp",
            up: "what the rule makes least",
            doubling: true,
            lines: vec![("curve".into(), values), ("chosen".into(), mark)],
            goal: None,
        },
        Chart {
            title: format!("iteration {}: {}", weight.iteration, weight.stop),
            across: "|b - A x|",
            up: "|x|",
            doubling: true,
            lines: vec![("all weights".into(), sizes), ("chosen".into(), corner)],
            goal: None,
        },
    ];
    write_panels(path, "Choice of the weight", &charts, 2)
}

/// Draws the values of the rule by iteration, and marks the best.
pub(crate) fn draw_course(path: &Path, course: &RuleCurve) -> Result<()> {
    let values: Vec<(f64, f64)> = course.points.iter().map(|p| (p.iteration as f64, p.value)).collect();
    let (least, most) =
        values.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), (_, v)| (least.min(*v), most.max(*v)));
    let best = course.best as f64;
    let chart = Chart {
        title: format!("{}: best in iteration {}", course.rule, course.best),
        across: "iteration",
        up: "value of the rule",
        doubling: false,
        lines: vec![("value".into(), values), ("best".into(), vec![(best, least), (best, most)])],
        goal: None,
    };
    write_panels(path, "Choice of the iteration", &[chart], 1)
}
