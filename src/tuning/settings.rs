//! Kinds of launches that are tuned apart, and their settings.

use std::fmt::{Display, Formatter, Result as FmtResult};

use serde::{Deserialize, Serialize};

use crate::number::Precision;
use crate::sparse::Kind;

/// Kernels that are tuned together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// Element by element (`cl/linear/fill.cl`, `cl/linear/vector.cl`).
    Vector,
    /// Products of finite elements whose matrix is not stored (`cl/pde/elements.cl`).
    Elements,
    /// Norms, dots and the like (`cl/linear/reduce.cl`).
    Reduce,
    /// A product alone (`cl/linear/product.cl`).
    Product,
    /// A transposed product by atomic additions (`cl/linear/scatter.cl`).
    Scatter,
    /// A transposed product of rays that are traced (`cl/tomography/ray_spread.cl`).
    Backproject,
    /// Gauss-Seidel and its like (`cl/precond/sweep.cl`).
    Sweep,
    /// Sweeps in one launch, whose rows wait for each other (`cl/precond/sweep_waiting.cl`).
    SweepWaiting,
    /// The product of a conjugate gradient iteration.
    CgProduct,
    /// The vectors of a conjugate gradient iteration.
    CgUpdate,
    /// Many of its iterations in one launch.
    CgResident,
    /// The launch of a CGNR iteration that multiplies by `A`.
    CgnrForward,
    /// The one that multiplies by `A'`.
    CgnrBackward,
    /// Many of its iterations in one launch.
    CgnrResident,
    /// A product with sums in any other method, and residuals (`cl/script/step.cl`).
    StepProduct,
    /// The vectors of any other method (`cl/script/pass.cl`).
    StepVectors,
    /// Many of its iterations in one launch.
    StepResident,
}

/// Way of reading a matrix, as far as speed depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AccessPattern {
    /// One lane adds a row.
    Rows,
    /// One lane adds a row of a format that is stored by columns, and the vector is short enough for local memory.
    ShortVector,
    /// Several lanes share a row.
    LongRows,
    /// Entries have to be found before they are read: diagonals, stencils.
    Places,
    /// Rays through an image.
    Rays,
}

/// Size class of a vector or matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeClass {
    /// Up to 65 536: less than one element for each item of a large GPU.
    Small,
    /// Up to 1 048 576: chunks of up to 1024 elements.
    Middle,
    /// More: chunks of 2048 and 4096 elements.
    Large,
}

/// Kind of launches with a tuning of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Case {
    /// Family of the kernels.
    pub family: Family,
    /// Way of reading a matrix, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<AccessPattern>,
    /// In which numbers.
    pub precision: Precision,
    /// Size class of a vector or matrix.
    pub size: SizeClass,
}

/// Launch parameters that were set; those that were not follow the rules of [`Tuning`](super::Tuning).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Work-items of a group, a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_group: Option<usize>,
    /// Groups for each compute unit, if a kernel may share out its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_per_unit: Option<usize>,
    /// Entries of a row whose loads are under way together, in kernels that multiply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<usize>,
    /// Registers an item may take, 0 if the compiler decides; for NVIDIA's compiler, in kernels that multiply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<usize>,
    /// Tells if each group copies the vector to local memory before it adds its rows, in products with a lane to a row: a short vector whole, as it
    /// does unless told otherwise, and a long one part by part, for formats that are stored by columns (stock-koch-2009, LocalMemory).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged: Option<bool>,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Vector,
        Self::Elements,
        Self::Reduce,
        Self::Product,
        Self::Scatter,
        Self::Backproject,
        Self::Sweep,
        Self::SweepWaiting,
        Self::CgProduct,
        Self::CgUpdate,
        Self::CgResident,
        Self::CgnrForward,
        Self::CgnrBackward,
        Self::CgnrResident,
        Self::StepProduct,
        Self::StepVectors,
        Self::StepResident,
    ];

    /// Tells if its kernels multiply by a matrix.
    pub fn multiplies(self) -> bool {
        use Family::{
            CgProduct, CgResident, CgnrBackward, CgnrForward, CgnrResident, Product, StepProduct, StepResident,
        };
        matches!(
            self,
            Product
                | CgProduct
                | CgResident
                | CgnrForward
                | CgnrBackward
                | CgnrResident
                | StepProduct
                | StepResident
        )
    }

    /// Tells if the number of its groups is free.
    pub fn shares(self) -> bool {
        matches!(self, Self::Vector | Self::Product | Self::Sweep | Self::CgUpdate | Self::StepVectors)
    }
}

impl AccessPattern {
    pub(crate) fn of(kind: Kind, lanes: usize) -> Self {
        match kind {
            Kind::Diagonals | Kind::Shifted | Kind::Stencil => Self::Places,
            Kind::Dense | Kind::Adaptive => Self::LongRows,
            _ if lanes > 1 => Self::LongRows,
            _ => Self::Rows,
        }
    }
}

impl SizeClass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Middle, Self::Large];

    /// The class of `n` rows or elements.
    pub fn of(n: usize) -> Self {
        match n {
            0..=65_536 => Self::Small,
            65_537..=1_048_576 => Self::Middle,
            _ => Self::Large,
        }
    }
}

/// A name as it stands in the file of tuned values: one spelling for both.
fn spelled(value: &impl Serialize) -> String {
    match toml::Value::try_from(value) {
        Ok(toml::Value::String(name)) => name,
        _ => String::new(),
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(&spelled(self))
    }
}

impl Display for AccessPattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(&spelled(self))
    }
}

impl Display for SizeClass {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(&spelled(self))
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        write!(f, "{}", self.family)?;
        if let Some(reading) = self.reading {
            write!(f, " of {reading}")?;
        }
        write!(f, ", {}, {}", self.precision, self.size)
    }
}

impl Display for Settings {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let parts = [
            self.work_group.map(|n| format!("work-group {n}")),
            self.groups_per_unit.map(|n| format!("{n} groups per unit")),
            self.loads.map(|n| format!("{n} loads")),
            self.registers.map(|n| if n == 0 { "registers free".into() } else { format!("{n} registers") }),
            self.staged.map(|staged| if staged { "vector staged".into() } else { "vector not staged".into() }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "default".into() } else { parts.join(", ") }.as_str())
    }
}
