//! Partitions as METIS's programs write them: a line for each row with the number of its part, from 0 on.

use std::io::{BufRead, Read};
use std::path::Path;

use super::open::{MARK, open, read_error, short_name};
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::machine;
use crate::sparse::Partition;

/// Longest line taken, in bytes.
const LONGEST_LINE: u64 = 4096;

/// Reads a partition: the part of each row, a number a line, plain or compressed. There are as many parts as the largest number says.
/// Lines without a number are skipped.
///
/// # Errors
/// [`Error::File`] when it cannot be read, [`Error::Format`] with the line of what is no number from 0 on, or not below the
/// number of rows: there are no more parts than rows.
pub fn read_partition(path: &Path) -> Result<Partition> {
    let name = short_name(path);
    let mut reader = open(path)?;
    let mut of: Vec<u32> = Vec::new();
    // The largest number, and its line.
    let (mut most, mut at) = (0, 0);
    let mut text = Vec::new();
    for line in 1.. {
        let refuse = |line: u64, reason: String| Err(Error::Format { what: format!("{name} line {line}"), reason });
        text.clear();
        let read = reader.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut text);
        match read.map_err(|e| read_error(&name, format!("{name} line {line}"), &e))? {
            0 => break,
            bytes if bytes as u64 > LONGEST_LINE => {
                return refuse(line, format!("the line is longer than {LONGEST_LINE} bytes"));
            }
            _ => {}
        }
        let text = if line == 1 { text.strip_prefix(MARK).unwrap_or(&text) } else { &text[..] };
        let word = text.trim_ascii();
        if word.is_empty() {
            continue;
        }
        let part = std::str::from_utf8(word).ok().and_then(|word| word.parse::<u32>().ok());
        let Some(part) = part.filter(|part| *part < u32::MAX) else {
            let shown: String = String::from_utf8_lossy(word).chars().take(40).collect();
            return refuse(line, format!("'{shown}' is no number of a part"));
        };
        if of.len() == of.capacity() {
            // A stream without an end does not fill the memory.
            machine::check_memory("a partition", 2 * 4 * of.len() as u64)?;
        }
        if of.is_empty() || part > most {
            (most, at) = (part, line);
        }
        of.push(part);
    }
    if most as usize >= of.len().max(1) {
        let reason = format!(
            "part {most} of {} rows: there are no more parts than rows, and their numbers count from 0",
            of.len()
        );
        return Err(Error::Format { what: format!("{name} line {at}"), reason });
    }
    Partition::new(of, most as usize + 1)
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
        std::fs::write(&path, "\u{feff}0\r\n1\r\n").unwrap();
        assert_eq!(read_partition(&path).unwrap().of(), [0, 1]);
        // The largest numbers would take 34 GB in lists of the rows of each part.
        let long = format!("0\n{}", "1".repeat(1 << 20));
        for wrong in ["0\n-1\n", "0\n1.5\n", "0\nx\n", "0\n4294967295\n", "0\n4294967294\n1\n", "1\n3\n0\n", &long]
        {
            std::fs::write(&path, wrong).unwrap();
            let error = read_partition(&path).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
    }
}
