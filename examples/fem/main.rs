//! Finite elements of any degree on a mesh that is refined frame by frame.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod case;
mod view;
mod vtk;

use std::path::PathBuf;
use std::process::ExitCode;

use case::{CaseKind, Domain};
use clap::{Parser, ValueEnum};
use common::simulate::picture::Picture;
use common::simulate::{Change, Drag, ShowOptions, Simulation, parse_size, vector_bits};
use common::{Precision, option, refuse_unused};
use residuum::fem::Errors;
use residuum::{Device, Format, Real, Report, Result, Stopping, Vector};
use serde_json::{Value, json};
use view::View;

/// Rule by which a frame refines the mesh of the frame before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Refinement {
    /// Halve every cell
    H,
    /// Halve the cells at the singularity
    Graded,
    /// Raise every degree by one
    P,
    /// Halve the cells at the singularity, and raise the degree by one with every second layer away from it
    Hp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OperatorKind {
    /// Apply the matrix cell by cell, store none of it
    MatrixFree,
    /// Assemble the matrix and store it
    Stored,
}

/// Solve -Laplace u = f by finite elements of degree 1 to 8 on hexahedra with hanging nodes, and refine (oses-2013, section 3.1).
///
/// Every frame solves on a finer mesh and is compared with the known solution. With --window the mouse turns the picture. Exit status: 0 done, 1 a
/// solve did not converge, 2 bad input.
#[derive(Debug, Parser)]
#[command(name = "fem", version = common::version(), after_help = common::help_of_work())]
#[command(mut_arg("size", |arg| arg.value_name("N").help("Cells along each side of the coarsest mesh (rings of triangles in the disc) [default: 2; disc: 4]")))]
#[command(mut_arg("frames", |arg| arg.help("Meshes, each finer than the one before [default: 5; with --window until it is closed]")))]
#[command(mut_arg("precision", |arg| arg.default_value("fp64")))]
struct Options {
    /// Problem
    #[arg(long, value_enum, default_value_t = CaseKind::Fichera)]
    case: CaseKind,
    /// Refinement from frame to frame [default: hp at a singularity, else p; disc: h]
    #[arg(long, value_enum)]
    refine: Option<Refinement>,
    /// Degree of the first mesh, 1 to 8 [default: 2]
    #[arg(long, value_name = "P")]
    degree: Option<usize>,
    /// Operator of the solve
    #[arg(long, value_enum, default_value_t = OperatorKind::MatrixFree)]
    operator: OperatorKind,
    /// Format of a stored matrix
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    format: Format,
    /// Preconditioner: none, jacobi; for a stored matrix any that `solve` knows [default: jacobi]
    #[arg(long, value_name = "NAME", default_value = "jacobi")]
    preconditioner: String,
    /// Show the whole surface: else an eighth of what is solid is cut away
    #[arg(long)]
    whole: bool,
    /// Show the values in the plane x, y or z = POSITION of the lattice instead, as z=0.5
    #[arg(long, value_name = "AXIS=POSITION", value_parser = view::parse_slice)]
    slice: Option<(usize, f64)>,
    /// Size of the picture: a number for a square, or WIDTHxHEIGHT
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "480")]
    pixels: [usize; 2],
    /// Write the last mesh and its values for ParaView
    #[arg(long, value_name = "FILE.vtk")]
    vtk: Option<PathBuf>,
    #[command(flatten)]
    show: ShowOptions,
}

fn main() -> ExitCode {
    common::begin("fem");
    let options = Options::parse();
    let outcome = match options.show.precision {
        Precision::Fp32 => simulate::<f32>(options),
        Precision::Fp64 => simulate::<f64>(options),
    };
    common::exit::<Options>("fem", outcome)
}

fn simulate<T: Real>(mut options: Options) -> Result<bool> {
    let vtk = options.vtk.as_deref().map(|path| ("vtk", path));
    options.show.check(None, vtk.as_slice())?;
    if !options.show.window {
        // Degrees end at 8.
        let left = match options.refinement() {
            Refinement::P => 9usize.saturating_sub(options.degree.unwrap_or(2)).max(1),
            _ => 5,
        };
        let _ = options.show.frames.get_or_insert(left.min(5));
    }
    let vtk = options.vtk.clone();
    let mut program = Program::<T>::new(options)?;
    let show = program.options.show.clone();
    let done = show.run(&mut program, "fem", "the mouse turns the picture; up refines by p, down by h")?;
    if let (Some(path), Some(answer)) = (&vtk, &program.answer) {
        vtk::write(path, &program.domain, &answer.x)?;
    }
    Ok(done)
}

impl Options {
    /// The rule that is asked for, or the one that suits the problem.
    fn refinement(&self) -> Refinement {
        self.refine.unwrap_or(match self.case {
            CaseKind::Disc => Refinement::H,
            CaseKind::Fichera | CaseKind::LShape => Refinement::Hp,
            CaseKind::Cube | CaseKind::Bend => Refinement::P,
        })
    }
}

/// Unknowns from which on a mesh in a window is refined no more: mouse and keys wait for a solve, which takes a second and more on a busy
/// machine beyond this.
const MOST_IN_A_WINDOW: usize = 2_000;

/// Answer on a mesh.
struct Answer<T: Real> {
    values: Vector<T>,
    x: Vec<f64>,
}

/// Meshes that grow finer.
struct Program<T: Real> {
    options: Options,
    refine: Refinement,
    device: Device,
    domain: Domain,
    frame: usize,
    answer: Option<Answer<T>>,
    steps: Vec<Value>,
    last: Option<(usize, Errors)>,
    view: View,
}

impl<T: Real> Program<T> {
    fn new(options: Options) -> Result<Self> {
        let case = options.case;
        let disc = case == CaseKind::Disc;
        let refine = options.refinement();
        if disc {
            refuse_unused(
                "for triangles, which have degree 1",
                &[("degree", options.degree.is_some()), ("slice", options.slice.is_some())],
            )?;
            if refine != Refinement::H {
                return Err(option("refine", "triangles are refined by h"));
            }
        }
        let graded = matches!(refine, Refinement::Graded | Refinement::Hp);
        if graded && case.singularity().is_none() && !disc {
            return Err(option("refine", format!("{case:?} has no singularity: h or p")));
        }
        let stored = disc || options.operator == OperatorKind::Stored;
        if !stored && options.format != Format::Auto {
            return Err(option("format", "only a stored matrix has one"));
        }
        if !stored && !matches!(&*options.preconditioner, "none" | "jacobi") {
            return Err(option("preconditioner", "without a stored matrix: none or jacobi"));
        }
        let [cells, other] = options.show.size.unwrap_or(if disc { [4; 2] } else { [2; 2] });
        if cells != other {
            return Err(option("size", "it is one number, the cells along each side"));
        }
        let (first, frames) = (options.degree.unwrap_or(2), options.show.frames.unwrap_or(0));
        if refine == Refinement::P && first.saturating_add(frames) > 9 {
            return Err(option(
                "frames",
                format!("degree {first} can be raised {} times", 8usize.saturating_sub(first)),
            ));
        }
        // A value or a depth for each pixel, and the picture twice.
        let pixels = (options.pixels[0] * options.pixels[1]) as u64;
        if options.show.save.is_some() || options.show.window {
            Device::host().check_memory(0, &[("values of the pixels", 16 * pixels), ("pictures", 2 * pixels)])?;
        }
        let device = options.show.on.open::<T>()?;
        let domain = Domain::new(case, cells, options.degree.unwrap_or(2))?;
        let view = View::new(options.pixels, !options.whole);
        Ok(Self { options, refine, device, domain, frame: 0, answer: None, steps: Vec::new(), last: None, view })
    }

    fn refine(&mut self) -> Result<()> {
        match self.refine {
            Refinement::H => self.domain.halve(false),
            Refinement::Graded => self.domain.halve(true),
            Refinement::P => self.domain.raise(),
            Refinement::Hp => {
                self.domain.halve(true)?;
                self.domain.grade(self.options.degree.unwrap_or(2))
            }
        }
    }
}

impl<T: Real> Simulation for Program<T> {
    fn step(&mut self) -> Result<Option<Report>> {
        // A window goes on without end, a mesh does not.
        if self.options.show.window && self.last.is_some_and(|(unknowns, _)| unknowns > MOST_IN_A_WINDOW) {
            return Ok(None);
        }
        if self.frame > 0 {
            let before = self.domain.size();
            match self.refine() {
                // The finest mesh stays in its window.
                Err(_) if self.options.show.window => return Ok(None),
                outcome => outcome?,
            }
            if self.options.show.window && self.domain.size() == before {
                return Ok(None);
            }
        }
        self.frame += 1;
        // The solution is far closer to the exact one than this.
        let stopping = match (self.options.show.iterations, self.options.show.rtol) {
            (None, None) => Stopping::for_precision::<T>().with_rtol(if T::EPSILON < 1e-10 { 1e-10 } else { 1e-6 }),
            _ => self.options.show.stopping::<T>(None),
        };
        let stored = self.options.operator == OperatorKind::Stored;
        let solved = self.domain.solve::<T>(
            &self.device,
            stored,
            self.options.format,
            &self.options.preconditioner,
            stopping,
        )?;
        let x: Vec<f64> = solved.values.to_vec()?.into_iter().map(Real::to_f64).collect();
        let errors = self.domain.errors(&x)?;
        let (cells, hanging) = self.domain.counts();
        self.steps.push(json!({
            "unknowns": x.len(), "cells": cells, "hanging": hanging, "iterations": solved.report.iterations,
            "energy_error": errors.energy, "l2_error": errors.l2, "relative_residual": solved.report.relative_residual(),
        }));
        self.last = Some((x.len(), errors));
        self.answer = Some(Answer { values: solved.values, x });
        Ok(Some(solved.report))
    }

    fn draw(&self, picture: &mut Picture) -> Result<()> {
        match &self.answer {
            Some(answer) => self.view.draw(&self.domain, &answer.x, self.options.slice, picture),
            None => Ok(()),
        }
    }

    fn bits(&self) -> Result<Vec<u64>> {
        self.answer.as_ref().map_or(Ok(Vec::new()), |answer| Ok(vector_bits(&answer.values)?.collect()))
    }

    fn reset(&mut self) -> Result<()> {
        self.domain = self.domain.begin_anew()?;
        (self.frame, self.answer, self.last) = (0, None, None);
        self.steps.clear();
        Ok(())
    }

    fn drag(&mut self, drag: Drag) -> Result<()> {
        self.view.turn(drag.moved);
        Ok(())
    }

    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Colours => self.view.next_colours(),
            Change::Other(_) => self.view.cuts = !self.view.cuts,
            Change::Step(_) if self.options.case == CaseKind::Disc => {}
            Change::Step(up) => self.refine = if up { Refinement::P } else { Refinement::H },
        }
        Ok(())
    }

    fn parameters(&self) -> String {
        self.last.map_or(String::new(), |(unknowns, errors)| {
            format!("{unknowns} unknowns, energy error {:.2e}, {:?}", errors.energy, self.refine)
        })
    }

    fn results(&mut self) -> Result<(Option<String>, Value, bool)> {
        let mut words = String::from("unknowns    cells  hanging  iterations  energy error  L2 error");
        for step in &self.steps {
            let number = |name: &str| step[name].as_u64().unwrap_or(0);
            words += &format!(
                "\n{:8} {:8} {:8} {:11} {:13.3e} {:9.2e}",
                number("unknowns"),
                number("cells"),
                number("hanging"),
                number("iterations"),
                step["energy_error"].as_f64().unwrap_or(f64::NAN),
                step["l2_error"].as_f64().unwrap_or(f64::NAN)
            );
        }
        Ok((Some(words), json!({ "steps": self.steps, "preconditioner": self.options.preconditioner }), false))
    }

    fn has_tolerance(&self) -> bool {
        true
    }

    fn remedy(&self) -> &'static str {
        "--rtol to a larger one"
    }

    fn delay(&self) -> u16 {
        800
    }

    fn size(&self) -> [usize; 2] {
        self.options.pixels
    }

    fn device(&self) -> Device {
        self.device.clone()
    }
}
