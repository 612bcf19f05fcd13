//! Kernel files: how they are declared, the texts that several of them share, and the options of all.
//!
//! Kernels are declared where they are launched, by [`kernels!`] at the top of each group of the back end.

#[cfg(test)]
pub(crate) mod check;
mod declare;
mod options;

pub(crate) use declare::{kernels, long_enough, real_argument};
pub(crate) use options::{Common, MatrixOptions, OtherMatrix, TOLD};

/// Texts without kernels, which stand before others.
pub(crate) mod texts {
    #![allow(non_upper_case_globals)] // named as the files are

    use crate::ocl::File;

    macro_rules! texts {
        ($($(#[$when:meta])* $name:ident),+ $(,)?) => {$(
            $(#[$when])*
            pub(crate) static $name: File = File {
                name: stringify!($name),
                after: &[],
                text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/cl/", stringify!($name), ".cl")),
            };
        )+};
    }
    texts!(
        common,
        fold,
        format,
        rays,
        #[cfg(feature = "simulation")]
        flow_grid,
        row,
        recurrence,
        statement,
        dual,
        global_barrier,
        cg_parts,
        cg_advance,
        cg_multiply,
        cgnr_parts,
        correction,
        cgnr_direction,
        cgnr_step,
    );
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::backend::kernel_files;
    use crate::ocl::File;

    /// Every file that a program is made of, once.
    fn files() -> Vec<&'static File> {
        let all = kernel_files().flat_map(|file| file.after.iter().copied().chain([file]));
        all.map(|file| (file.name, file)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    #[test]
    fn every_file_is_declared_once() {
        let mut declared = BTreeSet::new();
        for file in kernel_files() {
            assert!(declared.insert(file.name), "{} twice", file.name);
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cl");
        let there = std::fs::read_dir(folder).expect("the folder of kernels").map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().trim_end_matches(".cl").to_string()
        });
        let there: BTreeSet<String> = there.collect();
        let joined: BTreeSet<String> = files().iter().map(|file| file.name.to_string()).collect();
        assert_eq!(joined, there, "files of cl/ that no program needs, or that are not there");
    }

    /// Compilers build a function that is not static once more for itself: PoCL took a third longer, NVIDIA's a tenth.
    #[test]
    fn functions_that_are_no_kernels_are_static() {
        for file in files() {
            let mut before = "";
            for line in file.text.lines() {
                let function = line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains('(');
                let said = ["static ", "typedef "].iter().any(|word| line.starts_with(word));
                assert!(!function || said || before.starts_with("__kernel"), "{}.cl: {line}", file.name);
                before = line;
            }
        }
    }

    /// The constants of a kernel file that the host has too, and what they are there.
    fn twins() -> BTreeMap<(&'static str, &'static str), i64> {
        use crate::backend::fused::cgnr::{Part, Staged};
        use crate::backend::linear::product::Combine;
        use crate::backend::linear::split;
        use crate::backend::linear::vector::Reduction::{AbsoluteSum, Maximum, Minimum, Product, Sum};
        use crate::backend::pde::elements;
        use crate::backend::pde::flow;
        use crate::backend::precond::elimination;
        use crate::backend::script::{
            CLAMP, MOST_STATEMENTS, MULTIPLY, NO_DOT, NO_DOTS, NO_STATEMENT, NONE, STEP, basis, resident, variation,
        };
        use crate::backend::tomography::fbp;
        use crate::recurrence::{self as program, Op};
        use crate::reduction::LANES;
        use crate::sparse::{self, Entries, Kind};
        use crate::state::{barrier, cg, cgnr, stop};

        let mut found = BTreeMap::new();
        macro_rules! twins {
            // Modules that name their constants as the kernels do.
            ($file:literal: $($module:ident::{$($name:ident),+}),+) => {
                $($(assert!(found.insert(($file, stringify!($name)), $module::$name as i64).is_none());)+)+
            };
            ($file:literal: $($name:ident = $value:expr),+) => {
                $(assert!(found.insert(($file, stringify!($name)), $value as i64).is_none());)+
            };
        }
        twins!("fold": FOLD_LANES = LANES);
        twins!("reduce": SUM = Sum, PRODUCT = Product, MINIMUM = Minimum, MAXIMUM = Maximum, ABSOLUTE_SUM = AbsoluteSum);
        twins!("format": CSR = Kind::Csr, ELLPACK_R = Kind::EllpackR, ELLPACK = Kind::Ellpack, SLICED = Kind::Sliced,
            SORTED = Kind::Sorted, DIAGONALS = Kind::Diagonals, BLOCKS = Kind::Blocks, DENSE = Kind::Dense,
            HYBRID = Kind::Hybrid, COORDINATES = Kind::Coordinates, ADAPTIVE = Kind::Adaptive,
            STENCIL = Kind::Stencil, EXTERNAL = Kind::External, SHIFTED = Kind::Shifted, BANDED = Kind::Banded);
        twins!("format": PLAIN = Entries::Plain, SHORT = Entries::Short, NEAR = Entries::Near, CODED = Entries::Coded, SINGLE = Entries::Single);
        twins!("format": sparse::{CODE_BITS, SLICE, STENCIL_HEADER, STENCIL_TABLE, TABLE_HEADER, SHORT_ROW, MIDDLE_ROW, MIDDLE_LANES, LONG_LANES});
        twins!("ray_trace": sparse::{BLOCK});
        twins!("elimination": elimination::{MOST_ROWS, MOST_PIECES, PIECE, READY, FINISHED, WRITTEN, FAILED, BAD_PIVOT, TOO_LONG});
        twins!("elimination": NONE = i32::MAX, LANES = 16);
        twins!("recurrence": program::{REGISTERS, HEADER, MOST_INSTRUCTIONS, FOLDED, INSTRUCTIONS, COEFFICIENTS, DOT_PLACES, STATES},
            stop::{RUNNING, ITERATIONS_DONE});
        twins!("row": TOLD = super::TOLD, PLUS = Combine::Plus, MINUS = Combine::Minus, TIMES = Combine::Times);
        twins!("step_resident": resident::{MOST_WORDS, CALL, LENGTH, WORK, SIZE, CHUNK, OPERANDS, BLEND_STEPS,
            STRIDE, WEIGHTS, WIDTH, STATEMENTS, SUMMED, LOADED, WRITTEN, GOES_ON, RESIDENT_VECTORS, SCALARS, PASS, PRODUCT,
            ASCENT, SUBTRACTION});
        twins!("step_resident": DONE = crate::backend::script::DONE, NO_DOTS = NO_DOTS, DOTS = resident::DOTS);
        twins!("recurrence": ADD = Op::Add, SUB = Op::Sub, MUL = Op::Mul, DIV = Op::Div, SQRT = Op::Sqrt, SET = Op::Set,
            SET_IF_POSITIVE = Op::SetIfPositive, STOP_IF_LESS = Op::StopIfLess, STOP_UNLESS_LESS = Op::StopUnlessLess,
            STOP_UNLESS_FINITE = Op::StopUnlessFinite, STOP_AT_BUDGET = Op::StopAtBudget, RECORD = Op::Record,
            COUNT = Op::Count, SKIP_UNLESS_POSITIVE = Op::SkipUnlessPositive);
        twins!("statement": NONE = NONE, NO_STATEMENT = NO_STATEMENT, NO_DOT = NO_DOT, MULTIPLY = MULTIPLY, CLAMP = CLAMP, STEP = STEP, MOST_STATEMENTS = MOST_STATEMENTS);
        twins!("dual": variation::{STEP, LIMIT, ALONG_LIMIT, ALONG_X, ALONG_Y});
        twins!("basis": basis::{MOST_VECTORS, FACTOR, SCALE, PROJECTION, COSINE, SINE, RIGHT_SIDE, TRIANGLE});
        twins!("basis": SQUARE_REGISTER = program::VECTOR2.0, DIAGONAL_REGISTER = program::DIAGONAL2.0,
            RESIDUAL_REGISTER = program::RESIDUAL2.0);
        twins!("cg_parts": cg::{RR, ALPHA, BETA, RZ, SLOT, STOP, ITERATION, MAX_ITERATIONS, HISTORY_MASK, BARRIER},
            stop::{RUNNING, CONVERGED, ITERATIONS_DONE, INDEFINITE, BREAKDOWN, NOT_FINITE, INDEFINITE_PRECONDITIONER});
        twins!("cgnr_parts": ALL = Part::All, ROWS_ONLY = Part::Rows, PIXELS_ONLY = Part::Pixels);
        twins!("cgnr_parts": cgnr::{RR, SS, GD, BETA, LAST_GD, ALPHA, RESIDUAL_LIMIT, GRADIENT_LIMIT, GRADIENT_RATIO,
            CONTROL, STOP, ITERATION, LAST_STOP, NEXT_ITERATION, MAX_ITERATIONS,
            HISTORY_MASK, STATUS}, stop::{RUNNING, CONVERGED, ITERATIONS_DONE, INDEFINITE, BREAKDOWN, NOT_FINITE,
            GRADIENT_CONVERGED});
        twins!("correction": cgnr::{TIKHONOV, SMOOTH, VARIATION, EPSILON2, BOX, LOWER, UPPER});
        twins!("elements": elements::{NO_COEFFICIENT});
        twins!("fbp": fbp::{VIEW_WORDS, MIDDLE, RIGHT, UP, RIGHT_OFF, UP_OFF});
        twins!("split": split::{PART, PIECE});
        twins!("flow_grid": flow::{FLUID, LEFT_OPEN, UPPER_OPEN, LEFT_BURIED, UPPER_BURIED});
        twins!("cgnr_resident": NOTHING = Staged::Nothing, DIRECTION = Staged::Direction, RESIDUAL = Staged::Residual);
        twins!("global_barrier": barrier::{ABANDONED});
        found
    }

    /// Constants that the host has no use for.
    const OF_THE_DEVICE_ALONE: [(&str, &str); 19] = [
        ("basis", "AT_ONCE"),
        ("elimination", "BATCH"),
        ("elimination", "BUCKETS"),
        ("elimination", "CELLS"),
        ("elimination", "TOO_FULL"),
        ("fold", "FEW_HELD"),
        ("fold", "SHORT_FOLD"),
        ("fold", "WARP"),
        ("global_barrier", "ARRIVED"),
        ("global_barrier", "VERDICT"),
        ("global_barrier", "DEPARTED"),
        ("global_barrier", "UNDECIDED"),
        ("global_barrier", "GO"),
        ("global_barrier", "ABANDON"),
        ("global_barrier", "PATIENCE"),
        ("flow_grid", "SIDE"),
        ("row", "SIDE"),
        ("row", "FEW_LANES"),
        ("row", "PIECE"),
    ];

    /// Every `#define NAME number` of a text.
    fn numbers(text: &str) -> Vec<(&str, i64)> {
        let number = |word: &str| match word.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        text.lines()
            .filter_map(|line| {
                let mut words = line.strip_prefix("#define ")?.split_whitespace();
                Some((words.next()?, number(words.next()?)?))
            })
            .collect()
    }

    #[test]
    fn every_constant_of_the_kernels_is_that_of_the_host() {
        let mut twins = twins();
        for File { name: file, text, .. } in files() {
            for (name, value) in numbers(text) {
                match twins.remove(&(*file, name)) {
                    Some(twin) => assert_eq!(value, twin, "{name} of {file}.cl"),
                    None => {
                        assert!(OF_THE_DEVICE_ALONE.contains(&(*file, name)), "{name} of {file}.cl has no twin")
                    }
                }
            }
        }
        assert!(twins.is_empty(), "not in cl/: {twins:?}");
    }

    #[test]
    fn only_the_common_file_names_types_and_rules_of_arithmetic() {
        for File { name, text, .. } in files().into_iter().filter(|file| file.name != "common") {
            for word in ["float", "double", "#pragma OPENCL", "#pragma clang"] {
                assert!(!super::check::code(text).contains(word), "{word} in {name}.cl");
            }
        }
    }

    #[test]
    fn programs_are_joined_with_line_marks() {
        for file in kernel_files() {
            let text = file.source().expect("embedded source");
            let marks: Vec<&str> = text.lines().filter(|l| l.starts_with("#line")).collect();
            let names =
                file.after.iter().copied().chain([file]).map(|file| format!("#line 1 \"cl/{}.cl\"", file.name));
            assert_eq!(marks, names.collect::<Vec<_>>());
            assert!(text.ends_with(&format!("{}\n", file.text)));
        }
    }
}
