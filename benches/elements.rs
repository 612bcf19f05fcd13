//! Finite elements: products that form no matrix beside those of the stored one, and large systems whose matrix is not stored.
//!
//! `cargo bench --bench elements -- [--device WORDS] [--only products|mapped|large] [--unknowns N] [--json]`
//!
//! `products` (boxes) and `mapped`: time and memory of a product over the degree, at about `--unknowns` unknowns (40 000), in fp64. Bytes are those
//! of the formula at `ElementOperator`, with `x` read once, and those that the stored matrix holds with `x` and `y` once.
//! `large`: `b = A x_sol` with `--unknowns` unknowns (10^6), without the matrix. The system of oses-2013: the program `papers`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;
#[path = "../examples/papers/known.rs"]
mod known;

use std::time::Instant;

use common::Setting;
use known::{solution, solve};
use residuum::fem::{Mapped, Mesh, Point, Space, hexahedron};
use residuum::operator::LinearOperator;
use residuum::{Format, Matrix, Result, Vector, measure};
use serde_json::json;

const UNIT: [[f64; 2]; 3] = [[0.0, 1.0]; 3];

fn main() -> std::process::ExitCode {
    common::main("elements", include_str!("elements.rs"), run)
}

fn run(setting: &Setting) -> Result<()> {
    let asked = setting.number("--unknowns")?;
    let unknowns = |otherwise: usize| asked.unwrap_or(otherwise);
    for (name, mapped) in [("products", false), ("mapped", true)] {
        if setting.wanted(name) {
            products(setting, unknowns(40_000), mapped)?;
        }
    }
    if setting.wanted("large") {
        large(setting, unknowns(1_000_000))?;
    }
    Ok(())
}

/// A hexahedron with faces that are not plane.
fn skew() -> impl Fn(Point) -> Mapped + Send + Sync + 'static {
    hexahedron([
        [0.0, 0.0, 0.0],
        [1.0, 0.1, -0.1],
        [0.1, 1.2, 0.1],
        [1.1, 1.0, 0.2],
        [0.1, -0.1, 0.9],
        [1.0, 0.2, 1.0],
        [0.0, 1.0, 1.3],
        [1.2, 1.1, 1.1],
    ])
}

/// The unit cube with about so many unknowns of this degree.
fn cube(unknowns: usize, degree: usize, mapped: bool) -> Result<Space> {
    let along = (unknowns as f64).cbrt() + 1.0;
    let cells = ((along / degree as f64).round() as usize).max(1);
    let mut mesh = Mesh::boxes([cells; 3], UNIT)?;
    mesh.set_degree(degree)?;
    Space::new(&if mapped { mesh.mapped(skew()) } else { mesh })
}

fn products(setting: &Setting, unknowns: usize, mapped: bool) -> Result<()> {
    let device = &setting.device;
    for degree in 1..=8 {
        let space = cube(unknowns, degree, mapped)?;
        let clock = Instant::now();
        let operator = space.operator::<f64>(device)?;
        let set_up = clock.elapsed().as_secs_f64();
        let x = Vector::<f64>::filled(device, space.len(), 1.0)?;
        let mut y = Vector::zeros(device, space.len())?;
        let us = measure::time(device, || operator.apply(&x, &mut y))?.microseconds;
        let share = |bytes: u64, us: f64| bytes as f64 / us / 1e3 / setting.copy;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut row = json!({
            "cells": if mapped { "mapped" } else { "boxes" }, "p": degree, "unknowns": space.len(), "us": us,
            "MB": operator.product_bytes() as f64 / 1e6, "of copy": share(operator.product_bytes(), us), "MiB": mib(operator.bytes()),
            "set-up s": set_up, "format": "too large", "stored us": null, "stored of copy": null, "stored MiB": null, "assembly s": null,
            "stored / not": null,
        });
        // Dense cells couple (2p + 1)^3 functions; boxes far fewer.
        let entries = space.len() as f64 * ((2 * degree + 1) as f64).powi(3) * if mapped { 0.6 } else { 0.2 };
        if entries < 5e8 {
            let clock = Instant::now();
            let matrix = Matrix::new(device, &space.matrix()?, Format::Auto)?;
            let assembly = clock.elapsed().as_secs_f64();
            let stored = measure::time(device, || matrix.multiply(&x, &mut y))?.microseconds;
            row["format"] = json!(matrix.format().to_string());
            row["stored us"] = json!(stored);
            row["stored of copy"] = json!(share(matrix.bytes() + 16 * space.len() as u64, stored));
            row["stored MiB"] = json!(mib(matrix.bytes()));
            row["assembly s"] = json!(assembly);
            row["stored / not"] = json!(stored / us);
        }
        setting.row(&row);
    }
    Ok(())
}

/// Large systems whose matrix is not stored.
fn large(setting: &Setting, unknowns: usize) -> Result<()> {
    let device = &setting.device;
    for degree in [1, 2, 4, 6, 8] {
        let clock = Instant::now();
        let space = cube(unknowns, degree, false)?;
        let operator = space.operator::<f64>(device)?;
        let jacobi = space.jacobi::<f64>(device)?;
        let (set_up, held) = (clock.elapsed().as_secs_f64(), operator.bytes());
        let found = solve(operator.shared(), Some(jacobi.into()), &solution(space.len()), 1e-6)?;
        setting.row(&json!({
            "p": degree, "unknowns": space.len(), "set-up s": set_up, "iterations": found.report.iterations,
            "stop": format!("{:?}", found.report.stop), "solve s": found.seconds,
            "us / iteration": found.seconds * 1e6 / found.report.iterations.max(1) as f64, "MiB": held as f64 / f64::from(1 << 20),
            "distance": found.distance,
        }));
    }
    Ok(())
}
