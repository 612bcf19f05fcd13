//! One typed function per kernel, with the name of the kernel; each file has its twin in `cl/`.
//!
//! A kernel is declared once, in [`kernels!`]: from that come its signature (compared with the OpenCL C text by a test
//! that needs no device), the checks of buffer lengths, the arguments and the launch.

pub(crate) mod cg;
pub(crate) mod cgnr;
pub(crate) mod pass;
pub(crate) mod product;
pub(crate) mod reduce;
pub(crate) mod scatter;
pub(crate) mod step;
pub(crate) mod sweep;
pub(crate) mod vector;

/// What a kernel is called, where it stands, and what it takes: `(argument, OpenCL C type)`.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) args: &'static [(&'static str, &'static str)],
    /// Buffers whose least length is declared.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) checked: &'static [&'static str],
}

/// Declares the kernels of one file: `name<T>(argument: kind, buffer: kind[least length], ...)`. Numbers that lengths depend on and
/// kernels do not take stand before the arguments: `name<T> given(cols: usize) (...)`.
///
/// Kinds: `uint`, `real`, `shape` by value; `in_real`, `in_uint`, `in_sum` read-only buffers; `out_real`, `out_sum`,
/// `out_int` buffers that are written (and perhaps read).
macro_rules! kernels {
    ($file:literal: $($(#[$doc:meta])* $name:ident<$t:ident> $(given($($given:ident: $what:ty),+))?
        ($($arg:ident: $kind:ident $([$len:expr])?),+ $(,)?);)+) => {
        /// The kernels of this file.
        #[cfg(test)]
        pub(crate) static SIGNATURES: &[&$crate::kernels::Signature] = &[$(&signatures::$name),+];

        #[allow(non_upper_case_globals)]
        mod signatures {
            use $crate::kernels::Signature;
            $(pub(super) static $name: Signature = Signature {
                name: stringify!($name),
                file: $file,
                args: &[$((stringify!($arg), $crate::kernels::kernels!(@c $kind))),+],
                checked: &[$($($crate::kernels::kernels!(@checked $arg $len),)?)+],
            };)+
        }

        $($(#[$doc])*
        #[allow(clippy::extra_unused_type_parameters)] // a kernel without numbers still has a precision
        pub(crate) fn $name<$t: $crate::number::Real>(
            context: &$crate::ocl::Context,
            launch: $crate::ocl::Launch,
            $($($given: $what,)+)?
            $($arg: $crate::kernels::kernels!(@rust $kind $t)),+
        ) -> $crate::error::Result<()> {
            $($(
                $crate::kernels::long_enough(concat!(stringify!($name), ": ", stringify!($arg)), $len as usize, $arg.len())?;
            )?)+
            context.launch(&signatures::$name, launch, &[$($crate::kernels::kernels!(@arg $kind $arg)),+])
        })+
    };
    (@checked $arg:ident $len:expr) => { stringify!($arg) };
    (@c uint) => { "uint" };
    (@c real) => { "real_t" };
    (@c shape) => { "shape_t" };
    (@c in_uint) => { "__global const uint*" };
    (@c in_real) => { "__global const real_t*" };
    (@c in_sum) => { "__global const acc_t*" };
    (@c out_real) => { "__global real_t*" };
    (@c out_sum) => { "__global acc_t*" };
    (@c out_int) => { "__global int*" };
    (@rust uint $t:ident) => { u32 };
    (@rust real $t:ident) => { $t };
    (@rust shape $t:ident) => { &[u32; 8] };
    (@rust in_uint $t:ident) => { &$crate::ocl::Buffer<u32> };
    (@rust in_real $t:ident) => { &$crate::ocl::Buffer<$t> };
    (@rust in_sum $t:ident) => { &$crate::ocl::Buffer<$crate::number::Sum> };
    (@rust out_real $t:ident) => { &mut $crate::ocl::Buffer<$t> };
    (@rust out_sum $t:ident) => { &mut $crate::ocl::Buffer<$crate::number::Sum> };
    (@rust out_int $t:ident) => { &mut $crate::ocl::Buffer<i32> };
    (@arg uint $arg:ident) => { $crate::ocl::Arg::Uint($arg) };
    (@arg real $arg:ident) => { $crate::kernels::real_argument($arg) };
    (@arg shape $arg:ident) => { $crate::ocl::Arg::Words(*$arg) };
    (@arg $kind:ident $arg:ident) => { $arg.argument() };
}
pub(crate) use kernels;

use crate::error::{Error, Result};
use crate::number::Real;
use crate::number::sealed::Number;
use crate::ocl::Arg;

/// A number as a kernel argument.
pub(crate) fn real_argument<T: Real>(value: T) -> Arg {
    match value.number() {
        Number::Single(value) => Arg::Float(value),
        Number::Double(value) => Arg::Double(value),
    }
}

/// The check each launch makes of each buffer.
pub(crate) fn long_enough(what: &'static str, needed: usize, found: usize) -> Result<()> {
    if found < needed {
        return Err(Error::Shape { what, expected: needed, found });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ocl::{FILES, source};

    /// Every `__kernel` of a text: name to argument `(name, type)` pairs, `restrict` and spaces dropped.
    fn parse(text: &str) -> BTreeMap<String, Vec<(String, String)>> {
        let code: String = text.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join(" ");
        let mut found = BTreeMap::new();
        for part in code.split("__kernel").skip(1) {
            let part = &part[part.find("void").expect("a kernel returns void") + 4..];
            let open = part.find('(').expect("arguments");
            let close = part.find(')').expect("end of arguments");
            let args = part[open + 1..close]
                .split(',')
                .map(|arg| {
                    let arg = arg.replace("restrict", " ").replace('*', " * ");
                    let words: Vec<&str> = arg.split_whitespace().collect();
                    let (name, kind) = words.split_last().expect("a type and a name");
                    (name.to_string(), kind.join(" ").replace(" *", "*"))
                })
                .collect();
            found.insert(part[..open].trim().to_string(), args);
        }
        found
    }

    fn all() -> Vec<&'static Signature> {
        [
            vector::SIGNATURES,
            reduce::SIGNATURES,
            product::SIGNATURES,
            scatter::SIGNATURES,
            cg::SIGNATURES,
            cgnr::SIGNATURES,
            pass::SIGNATURES,
            step::SIGNATURES,
            sweep::SIGNATURES,
        ]
        .concat()
    }

    #[test]
    fn every_kernel_has_the_signature_it_is_declared_with() {
        let mut declared: BTreeMap<String, &Signature> = BTreeMap::new();
        for signature in all() {
            assert!(declared.insert(signature.name.into(), signature).is_none(), "{} twice", signature.name);
        }
        let mut kernels = 0;
        for (file, _, text) in FILES {
            for (name, args) in parse(text) {
                kernels += 1;
                let signature = declared.get(&name).unwrap_or_else(|| panic!("{name} is not declared in Rust"));
                assert_eq!(signature.file, *file, "{name}");
                let expected: Vec<(String, String)> =
                    signature.args.iter().map(|a| (a.0.into(), a.1.into())).collect();
                assert_eq!(args, expected, "{name}");
            }
        }
        assert_eq!(kernels, declared.len(), "a declared kernel is missing from cl/");
    }

    /// A launch that is given too short a buffer is refused: so each buffer of numbers says how long it must be.
    #[test]
    fn every_buffer_of_numbers_has_a_least_length() {
        for signature in all() {
            for (name, kind) in signature.args {
                // The words of a matrix are laid out by its format, which knows how many there are; the vectors of a pass are
                // checked where it is known which of them it takes.
                let by_format = kind.ends_with("const uint*");
                let of_a_pass = signature.name == "step_vectors" && name.starts_with('v') && name.len() == 2;
                if kind.ends_with('*') && !by_format && !of_a_pass {
                    assert!(signature.checked.contains(name), "{}: {name} may have any length", signature.name);
                }
            }
        }
    }

    /// The constants of a kernel file that the host has too, and what they are there.
    fn twins() -> BTreeMap<(&'static str, &'static str), i64> {
        use crate::backend::Part;
        use crate::backend::Reduction::{AbsoluteSum, Dot, Maximum, Minimum, Product, Sum};
        use crate::backend::{NO_DOT, NO_STATEMENT, NONE};
        use crate::recurrence::{self as program, Op};
        use crate::reduction::LANES;
        use crate::sparse::{self, Kind};
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
        twins!("common": FOLD_LANES = LANES);
        twins!("reduce": SUM = Sum, PRODUCT = Product, MINIMUM = Minimum, MAXIMUM = Maximum, ABSOLUTE_SUM = AbsoluteSum,
            DOT = Dot);
        twins!("format": CSR = Kind::Csr, ELLPACK_R = Kind::EllpackR, ELLPACK = Kind::Ellpack, SLICED = Kind::Sliced,
            SORTED = Kind::Sorted, DIAGONALS = Kind::Diagonals, BLOCKS = Kind::Blocks, DENSE = Kind::Dense,
            HYBRID = Kind::Hybrid, COORDINATES = Kind::Coordinates, ADAPTIVE = Kind::Adaptive, PROJECT = Kind::Project,
            BACKPROJECT = Kind::Backproject, STENCIL = Kind::Stencil, OUTSIDE = Kind::Outside);
        twins!("format": sparse::{SLICE, STENCIL_HEADER, TILE_SIDE, SHORT_ROW, MIDDLE_ROW, MIDDLE_LANES, LONG_LANES, RAY_LANES});
        twins!("ray": sparse::{RAY_HEADER, RAY_BITS});
        twins!("recurrence": program::{REGISTERS, HEADER, MOST_INSTRUCTIONS, FOLDED, INSTRUCTIONS, COEFFICIENTS, DOT_PLACES, STATES},
            stop::{RUNNING, ITERATIONS_DONE});
        twins!("recurrence": ADD = Op::Add, SUB = Op::Sub, MUL = Op::Mul, DIV = Op::Div, SQRT = Op::Sqrt, SET = Op::Set,
            SET_IF_POSITIVE = Op::SetIfPositive, STOP_IF_LESS = Op::StopIfLess, STOP_UNLESS_LESS = Op::StopUnlessLess,
            STOP_UNLESS_FINITE = Op::StopUnlessFinite, STOP_AT_BUDGET = Op::StopAtBudget, RECORD = Op::Record,
            COUNT = Op::Count);
        twins!("pass": NONE = NONE, NO_STATEMENT = NO_STATEMENT, NO_DOT = NO_DOT);
        twins!("cg": cg::{RR, ALPHA, BETA, SLOT, STOP, ITERATION, MAX_ITERATIONS, HISTORY_MASK, MEETING},
            stop::{RUNNING, CONVERGED, ITERATIONS_DONE, INDEFINITE, BREAKDOWN, NOT_FINITE});
        twins!("cgnr": ALL = Part::All, ROWS_ONLY = Part::Rows, PIXELS_ONLY = Part::Pixels);
        twins!("cgnr": cgnr::{RR, SS, GD, BETA, LAST_GD, ALPHA, RESIDUAL_LIMIT, GRADIENT_LIMIT, GRADIENT_RATIO, TIKHONOV, SMOOTH,
            VARIATION, EPSILON2, BOX, LOWER, UPPER, CONTROL, STOP, ITERATION, LAST_STOP, NEXT_ITERATION, MAX_ITERATIONS,
            HISTORY_MASK, STATUS}, stop::{RUNNING, CONVERGED, ITERATIONS_DONE, INDEFINITE, BREAKDOWN, NOT_FINITE,
            GRADIENT_CONVERGED});
        twins!("resident": barrier::{ABANDONED});
        found
    }

    /// Constants that the host has no use for.
    const OF_THE_DEVICE_ALONE: [(&str, &str); 8] = [
        ("common", "WARP"),
        ("resident", "ARRIVED"),
        ("resident", "VERDICT"),
        ("resident", "DEPARTED"),
        ("resident", "UNDECIDED"),
        ("resident", "GO"),
        ("resident", "ABANDON"),
        ("resident", "PATIENCE"),
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
        for (file, _, text) in FILES {
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
    fn only_the_common_file_names_types_and_pragmas() {
        for (file, _, text) in FILES.iter().filter(|f| f.0 != "common") {
            for word in ["float", "double", "#pragma"] {
                let code = text.lines().map(|l| l.split("//").next().unwrap_or(""));
                assert!(!code.into_iter().any(|l| l.contains(word)), "{word} in {file}.cl");
            }
        }
    }

    #[test]
    fn programs_are_joined_with_line_marks() {
        let text = source("cg").expect("embedded source");
        let marks: Vec<&str> = text.lines().filter(|l| l.starts_with("#line")).collect();
        let files =
            ["common", "format", "ray", "row", "resident", "cg"].map(|file| format!("#line 1 \"cl/{file}.cl\""));
        assert_eq!(marks, files);
    }
}
