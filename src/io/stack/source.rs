//! A volume, whatever its pictures come from.

use std::fmt;

use crate::error::{Error, Result};

/// Most numbers that a byte of a compressed file stands for: LZW repeats up to 4096 bytes by one code.
const MOST_PACKED: u64 = 4096;

/// A volume that is read picture by picture.
pub struct Stack {
    name: String,
    shape: [usize; 3],
    source: Box<dyn Source + Send>,
    /// Remarkable facts, a line each.
    pub(super) remarks: Vec<String>,
    /// Sign that pictures are missing from among those that are there.
    pub(super) gap: Option<String>,
}

/// The shape of an array as that of a volume: pictures, rows, columns.
pub(super) fn volume(shape: &[usize]) -> Option<[usize; 3]> {
    match *shape {
        [columns] => Some([1, 1, columns]),
        [rows, columns] => Some([1, rows, columns]),
        [pictures, rows, columns] => Some([pictures, rows, columns]),
        _ => None,
    }
}

/// Source of pictures.
pub(super) trait Source {
    /// Picture `k`, row by row.
    fn picture(&mut self, k: usize) -> Result<Vec<f32>>;
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("name", &self.name).field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// A volume that was read at once.
pub(super) struct Whole {
    pub(super) data: Vec<f64>,
    pub(super) size: usize,
}

impl Source for Whole {
    fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        Ok(self.data[k * self.size..(k + 1) * self.size].iter().map(|v| *v as f32).collect())
    }
}

/// Some pictures of a volume.
#[cfg(feature = "hdf5")]
struct Chosen {
    source: Box<dyn Source + Send>,
    pictures: Vec<usize>,
}

#[cfg(feature = "hdf5")]
impl Source for Chosen {
    fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        self.source.picture(self.pictures[k])
    }
}

impl Stack {
    /// Fails on a volume without numbers, or with more of them than a file of so many bytes can hold.
    pub(super) fn checked(
        name: String,
        shape: [usize; 3],
        bytes: u64,
        source: Box<dyn Source + Send>,
    ) -> Result<Self> {
        let numbers = shape.iter().try_fold(1u64, |all, length| all.checked_mul(*length as u64));
        match numbers.filter(|numbers| *numbers <= bytes.saturating_mul(MOST_PACKED)) {
            Some(0) => Err(Error::Format { what: name, reason: format!("{shape:?} holds no numbers") }),
            None => {
                let reason = format!("{shape:?} numbers are more than {bytes} bytes can hold");
                Err(Error::Format { what: name, reason })
            }
            Some(_) => Ok(Self { name, shape, source, remarks: Vec::new(), gap: None }),
        }
    }

    /// Pictures, rows of each, numbers of a row.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Name in error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Remarks on the files, a line each: pages, gaps in their numbers.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Sign that pictures are missing from among those that are there.
    pub(crate) fn gap(&self) -> Option<&str> {
        self.gap.as_deref()
    }

    /// A volume of these pictures alone.
    #[cfg(feature = "hdf5")]
    pub(crate) fn chosen(self, pictures: Vec<usize>) -> Self {
        let [_, rows, columns] = self.shape;
        let shape = [pictures.len(), rows, columns];
        Self { shape, source: Box::new(Chosen { source: self.source, pictures }), ..self }
    }

    /// Picture `k`, row by row. Numbers of more digits are rounded.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no picture `k`, or if it is of another size than the first one; [`Error::File`] and [`Error::Format`].
    pub fn picture(&mut self, k: usize) -> Result<Vec<f32>> {
        let [pictures, rows, columns] = self.shape;
        if k >= pictures {
            return Err(Error::Shape { what: "number of a picture of a volume", expected: pictures, found: k });
        }
        let picture = self.source.picture(k)?;
        crate::error::same_length("numbers of a picture of a volume", rows * columns, picture.len())?;
        Ok(picture)
    }
}
