//! Finds a process whose rows are not adjacent, with bounded memory.
//!
//! Processes that are numbers ascend, so the last one is enough to know. Of names a temporary file has the sum and the
//! row. It is read once for each part of the sums that fits into memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// Sums in memory at once, of 24 bytes each.
const PART: u64 = 2 << 20;

const RECORD: usize = 24;

/// The processes that were seen.
pub(super) struct Seen {
    /// The last one, if processes are numbers.
    last: Option<u64>,
    file: Option<BufWriter<File>>,
    count: u64,
    part: u64,
}

/// A process that begins again, or whose number does not ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descends {
    /// The number before.
    pub(super) last: u64,
}

impl Seen {
    pub(super) fn new() -> Seen {
        Seen::with_part(PART)
    }

    fn with_part(part: u64) -> Seen {
        Seen { last: None, file: None, count: 0, part }
    }

    /// Adds a process that begins in a row. The first one decides whether processes are numbers or names.
    pub(super) fn add(&mut self, process: &str, row: u64) -> io::Result<Result<(), Descends>> {
        let number = process.parse::<u64>().ok();
        match (number, self.last) {
            (Some(number), None) if self.file.is_none() => {
                self.last = Some(number);
                return Ok(Ok(()));
            }
            (number, Some(last)) => {
                let ascends = number.filter(|number| *number > last);
                self.last = ascends.or(self.last);
                return Ok(ascends.map(drop).ok_or(Descends { last }));
            }
            (_, None) => {}
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        file.write_all(&sum(process))?;
        file.write_all(&row.to_le_bytes())?;
        self.count += 1;
        Ok(Ok(()))
    }

    /// The first row in which a process begins again; None if no process does.
    pub(super) fn repeated(self) -> io::Result<Option<u64>> {
        let Some(file) = self.file else { return Ok(None) };
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let parts = self.count.div_ceil(self.part);
        let mut first: Option<u64> = None;
        for part in 0..parts {
            file.rewind()?;
            let mut reader = BufReader::with_capacity(1 << 16, &file);
            let mut sums = Vec::new();
            for _ in 0..self.count {
                let mut record = [0; RECORD];
                reader.read_exact(&mut record)?;
                let (mut sum, mut low, mut row) = ([0; 16], [0; 8], [0; 8]);
                sum.copy_from_slice(&record[..16]);
                low.copy_from_slice(&record[..8]);
                row.copy_from_slice(&record[16..]);
                if u64::from_le_bytes(low) % parts == part {
                    sums.push((sum, u64::from_le_bytes(row)));
                }
            }
            sums.sort_unstable();
            let again = sums.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1);
            first = first.into_iter().chain(again).min();
        }
        Ok(first)
    }
}

fn sum(process: &str) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&blake3::hash(process.as_bytes()).as_bytes()[..16]);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(processes: &[&str]) -> Option<u64> {
        let mut seen = Seen::with_part(3);
        for (row, process) in (0..).zip(processes) {
            assert_eq!(seen.add(process, row).unwrap(), Ok(()), "{process}");
        }
        seen.repeated().unwrap()
    }

    #[test]
    fn a_name_that_comes_again_is_found_whatever_fits_into_memory() {
        let names: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(repeated(&names), None);
        names.extend(["p17", "p3", "p17", "4"]);
        assert_eq!(repeated(&names), Some(50));
    }

    #[test]
    fn numbers_ascend() {
        assert_eq!(repeated(&["1", "3", "17"]), None);
        let mut seen = Seen::new();
        for (process, expect) in [("7", Ok(())), ("9", Ok(())), ("8", Err(9)), ("9", Err(9)), ("a", Err(9))] {
            assert_eq!(seen.add(process, 0).unwrap().map_err(|descends| descends.last), expect, "{process}");
        }
    }
}
