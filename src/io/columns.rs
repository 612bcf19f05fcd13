//! Columns of numbers.

/// Vectors of one length, as a file holds them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Columns<T> {
    /// The vectors.
    pub vectors: Vec<Vec<T>>,
    /// Tells if they are the rows of the file, because the columns have another length. False for one vector.
    pub by_rows: bool,
}

impl<T> Columns<T> {
    pub(super) fn new(vectors: Vec<Vec<T>>, by_rows: bool) -> Self {
        let by_rows = by_rows && vectors.len() > 1;
        Self { vectors, by_rows }
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
