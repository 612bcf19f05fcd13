//! Kernel files without kernels, which are put before others, and the Rust constants that they use.
#![allow(non_upper_case_globals)] // named as the files are

use super::constants::constants;
use crate::ocl::File;
use crate::recurrence::{self, Op};
use crate::reduction::LANES;
use crate::sparse::{self, Entries, Kind};
#[cfg(feature = "simulation")]
use crate::state::flow;
use crate::state::{barrier, blend, correction, dual, statement, stop};

/// The file `cl/ROOM/NAME.cl`, which stands after other texts, and the numbers of the host that it uses.
macro_rules! kernel_file {
    ($room:ident/$name:ident, after $after:expr, $constants:expr) => {
        $crate::ocl::File {
            name: concat!(stringify!($room), "/", stringify!($name)),
            after: $after,
            constants: $constants,
            text: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/cl/",
                stringify!($room),
                "/",
                stringify!($name),
                ".cl"
            )),
        }
    };
}
pub(crate) use kernel_file;

macro_rules! texts {
    ($($(#[$when:meta])* $room:ident/$name:ident $([$($constants:tt)*])?),+ $(,)?) => {$(
        $(#[$when])*
        pub(crate) static $name: File = kernel_file!($room/$name, after &[], constants!($($($constants)*)?));
    )+};
}
texts!(
    common/common,
    common/fold[FOLD_LANES = LANES],
    linear/format[
        CSR = Kind::Csr,
        ELLPACK_R = Kind::EllpackR,
        ELLPACK = Kind::Ellpack,
        SLICED = Kind::Sliced,
        SORTED = Kind::Sorted,
        DIAGONALS = Kind::Diagonals,
        BLOCKS = Kind::Blocks,
        DENSE = Kind::Dense,
        HYBRID = Kind::Hybrid,
        COORDINATES = Kind::Coordinates,
        ADAPTIVE = Kind::Adaptive,
        STENCIL = Kind::Stencil,
        EXTERNAL = Kind::External,
        SHIFTED = Kind::Shifted,
        BANDED = Kind::Banded,
        SHORT = Entries::Short,
        NEAR = Entries::Near,
        CODED = Entries::Coded,
        SINGLE = Entries::Single,
        sparse::{CODE_BITS, SLICE, STENCIL_HEADER, STENCIL_TABLE, TABLE_HEADER},
        sparse::{SHORT_ROW, MIDDLE_ROW, MIDDLE_LANES, LONG_LANES},
    ],
    tomography/rays,
    #[cfg(feature = "simulation")]
    pde/flow_grid[flow::{FLUID, LEFT_OPEN, UPPER_OPEN, LEFT_BURIED, UPPER_BURIED}],
    linear/row[blend::{TOLD, PLUS, MINUS, TIMES}],
    script/recurrence[
        recurrence::{REGISTERS, HEADER, MOST_INSTRUCTIONS, FOLDED, INSTRUCTIONS, COEFFICIENTS, DOT_PLACES, STATES},
        stop::{RUNNING, ITERATIONS_DONE},
        ADD = Op::Add,
        SUB = Op::Sub,
        MUL = Op::Mul,
        DIV = Op::Div,
        SQRT = Op::Sqrt,
        SET = Op::Set,
        SET_IF_POSITIVE = Op::SetIfPositive,
        STOP_IF_LESS = Op::StopIfLess,
        STOP_UNLESS_LESS = Op::StopUnlessLess,
        STOP_UNLESS_FINITE = Op::StopUnlessFinite,
        STOP_AT_BUDGET = Op::StopAtBudget,
        RECORD = Op::Record,
        COUNT = Op::Count,
        SKIP_UNLESS_POSITIVE = Op::SkipUnlessPositive,
    ],
    script/statement[statement::{MOST_STATEMENTS, NONE, NO_STATEMENT, NO_DOT, MULTIPLY, CLAMP, STEP}],
    script/dual[dual::{ASCENT_STEP, LIMIT, ALONG_LIMIT, ALONG_X, ALONG_Y}],
    script/global_barrier[barrier::{ABANDONED, DONE}],
    script/cg_parts[
        recurrence::{REGISTERS, STATES, STOP, ITERATION},
        RESIDUAL_LIMIT = recurrence::RESIDUAL_LIMIT.0,
        stop::{RUNNING, CONVERGED, ITERATIONS_DONE, INDEFINITE, BREAKDOWN, NOT_FINITE, INDEFINITE_PRECONDITIONER},
    ],
    script/cg_advance,
    script/cg_multiply,
    script/cgnr_parts[
        recurrence::{REGISTERS, STATES, STOP, ITERATION},
        RESIDUAL_LIMIT = recurrence::RESIDUAL_LIMIT.0,
        GRADIENT_LIMIT = recurrence::GRADIENT_LIMIT.0,
        GRADIENT_RATIO = recurrence::GRADIENT_RATIO.0,
        stop::{RUNNING, CONVERGED, ITERATIONS_DONE, INDEFINITE, BREAKDOWN, NOT_FINITE, GRADIENT_CONVERGED},
    ],
    script/correction[correction::{TIKHONOV, SMOOTH, VARIATION, EPSILON2, BOX, LOWER, UPPER}],
    script/cgnr_direction,
    script/cgnr_step,
);
