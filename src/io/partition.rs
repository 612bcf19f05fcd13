//! Partitions as METIS's programs write them: a line for each row with the number of its part, from 0 on.

use std::io::BufRead;
use std::path::Path;

use super::{open, read_error, short_name, write_atomically};
use crate::error::{Error, Result};
use crate::sparse::Partition;

/// Reads a partition: the part of each row, a number a line, plain or compressed. There are as many parts as the largest number says.
/// Lines without a number are skipped.
///
/// # Errors
/// [`Error::File`] when it cannot be read, [`Error::Format`] with the line of what is no number from 0 to 2³² - 2.
pub fn read_partition(path: &Path) -> Result<Partition> {
    let name = short_name(path);
    let mut of: Vec<u32> = Vec::new();
    for (line, text) in open(path)?.lines().enumerate() {
        let what = || format!("{name} line {}", line + 1);
        let text = text.map_err(|e| read_error(&name, what(), &e))?;
        let word = text.trim();
        if word.is_empty() {
            continue;
        }
        let part = word.parse::<u32>().ok().filter(|part| *part < u32::MAX);
        of.push(part.ok_or_else(|| {
            let shown: String = word.chars().take(40).collect();
            Error::Format { what: what(), reason: format!("'{shown}' is no number of a part") }
        })?);
    }
    let parts = of.iter().max().map_or(1, |most| *most as usize + 1);
    Partition::new(of, parts)
}

/// Writes the part of each row, a number a line. The file appears complete or not at all.
///
/// # Errors
/// [`Error::File`] when it cannot be written.
pub fn write_partition(path: &Path, partition: &Partition) -> Result<()> {
    write_atomically(path, |out| partition.of().iter().try_for_each(|part| writeln!(out, "{part}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grid.part.3");
        let parts = Partition::new(vec![2, 0, 1, 1], 3).unwrap();
        write_partition(&path, &parts).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\n0\n1\n1\n");
        assert_eq!(read_partition(&path).unwrap(), parts);
        std::fs::write(&path, "0\n\n 1 \n").unwrap();
        assert_eq!(read_partition(&path).unwrap().of(), [0, 1]);
        for wrong in ["0\n-1\n", "0\n1.5\n", "0\nx\n", "0\n4294967295\n"] {
            std::fs::write(&path, wrong).unwrap();
            let error = read_partition(&path).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
    }
}
