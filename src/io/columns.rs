//! Columns of numbers.

use super::npy::Array;
use crate::error::{Error, Result};
use crate::number::Real;

/// Vectors of one length, as a file holds them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileColumns<T> {
    /// The vectors.
    pub vectors: Vec<Vec<T>>,
    /// Tells if they are the rows of the file, because the columns have another length. False for one vector.
    pub by_rows: bool,
}

impl<T> FileColumns<T> {
    pub(super) fn new(vectors: Vec<Vec<T>>, by_rows: bool) -> Self {
        let by_rows = by_rows && vectors.len() > 1;
        Self { vectors, by_rows }
    }
}

impl<T: Real> FileColumns<T> {
    /// The columns of an array of `length` rows, or its rows if only those have this length; `name` is that of its file.
    ///
    /// # Errors
    /// [`Error::Format`] with the shape if neither fits, or for an array without numbers.
    pub(super) fn of_array(array: &Array, length: usize, name: &str) -> Result<Self> {
        let refuse = |reason: String| Error::Format { what: name.into(), reason };
        let (shape, data) = (&array.shape[..], &array.data);
        if data.is_empty() && length > 0 {
            return Err(refuse("it holds no numbers".into()));
        }
        let rounded = |v: &f64| T::from_f64(*v);
        match shape {
            [] | [_] if data.len() == length => Ok(Self::new(vec![data.iter().map(rounded).collect()], false)),
            _ if data.is_empty() => Ok(Self::new(vec![Vec::new()], false)),
            [rows, count] if *rows == length => {
                let column = |j: usize| data.iter().skip(j).step_by(*count).map(rounded).collect();
                Ok(Self::new((0..*count).map(column).collect(), false))
            }
            [.., last] if shape.len() > 1 && *last == length => {
                let rows = data.chunks(length).map(|row| row.iter().map(rounded).collect()).collect();
                Ok(Self::new(rows, true))
            }
            _ => Err(refuse(unfit(shape, length))),
        }
    }
}

/// Words for an array that is none of vectors of this length.
pub(super) fn unfit(shape: &[usize], length: usize) -> String {
    let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
    match shape {
        [] | [_] => format!("it holds {} numbers, and the system has {length} rows", shape.first().unwrap_or(&1)),
        _ => format!(
            "it holds {} numbers, and the system has {length} rows: right-hand sides are the columns of {length} x k numbers",
            sides.join(" x ")
        ),
    }
}
