//! Refusals of terms and bounds.

use std::fmt::Display;

use crate::error::Error;
use crate::solver::method::Method;

/// The refusal of regularizations by `method`.
pub(crate) fn no_regularizations(method: impl Display) -> Error {
    Error::Conflict {
        name: "regularizations",
        reason: format!("{method} takes none; {} do", Method::names(Method::takes_regularizations)),
    }
}

/// The refusal of bounds for each unknown.
pub(crate) fn no_bounds() -> Error {
    Error::Conflict {
        name: "bounds",
        reason: format!("this method keeps none for each unknown; {} do", Method::names(Method::keeps_bounds)),
    }
}
