//! Tests of the library and of the programs, a module for each subject. One program, so that it is built once; `scripts/test.sh` runs each module
//! in a process of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

mod all_programs;
mod battery;
mod careful_programs;
mod dedecek;
mod endings;
mod fem;
mod files_of_systems;
mod given_systems;
mod gmres;
mod golden;
mod hard_systems;
mod ill_posed;
mod imaging;
mod interop;
mod interrupted_programs;
mod kernels;
mod least_squares;
mod matrices;
mod methods;
mod mutated_inputs;
mod oclgrind;
mod operators;
mod papers;
mod past_precision;
mod penalty;
mod planted_faults;
mod preconditioners;
mod program_cache;
mod programs_and_files;
mod raw_scans;
mod scaled;
mod simulation;
mod simulation_programs;
mod solve_program;
mod solvers;
mod tomography_programs;
mod tune_program;
mod window;
