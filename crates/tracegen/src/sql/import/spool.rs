//! Sorts transactions by when they began, with bounded memory: sorted runs go to a temporary file each, and are
//! merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use schemas::files::{FileError, at};

use super::transaction::Transaction;

/// Bytes of transactions that are held in memory.
pub const MEMORY: usize = 64 << 20;
const BUFFER: usize = 1 << 16;

/// What orders transactions: when they began, their session, and how many of it were before.
type Key = (i64, u64, u64);

/// Takes transactions in any order.
pub struct Spool {
    folder: PathBuf,
    memory: usize,
    bytes: Vec<u8>,
    index: Vec<(Key, usize)>,
    runs: Vec<File>,
    count: u64,
}

impl Spool {
    /// A spool with temporary files in this folder and at most so many bytes in memory.
    pub fn new(folder: &Path, memory: usize) -> Spool {
        Spool { folder: folder.to_path_buf(), memory, bytes: Vec::new(), index: Vec::new(), runs: Vec::new(), count: 0 }
    }

    /// Adds a transaction.
    pub fn push(&mut self, transaction: &Transaction) -> Result<(), FileError> {
        self.index.push(((transaction.begin_us, transaction.session, self.count), self.bytes.len()));
        self.count += 1;
        let length = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        transaction.encode(&mut self.bytes);
        // A transaction with more bytes has more than 4 GiB of parameters, and the lines of a log have not.
        let own = (self.bytes.len() - length - 4) as u32;
        self.bytes[length..length + 4].copy_from_slice(&own.to_le_bytes());
        if self.bytes.len() + self.index.len() * size_of::<(Key, usize)>() > self.memory {
            self.spill()
        } else {
            Ok(())
        }
    }

    fn record(&self, at: usize) -> &[u8] {
        let mut length = [0; 4];
        length.copy_from_slice(&self.bytes[at..at + 4]);
        &self.bytes[at..at + 4 + u32::from_le_bytes(length) as usize]
    }

    /// Writes what is in memory, sorted, to a file.
    fn spill(&mut self) -> Result<(), FileError> {
        let folder = self.folder.clone();
        let mut write = || -> io::Result<File> {
            let mut file = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(&self.folder)?);
            self.index.sort_unstable();
            for ((.., sequence), place) in &self.index {
                file.write_all(&sequence.to_le_bytes())?;
                file.write_all(self.record(*place))?;
            }
            let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(file)
        };
        let run = write().map_err(at(&folder))?;
        self.runs.push(run);
        self.bytes.clear();
        self.index.clear();
        Ok(())
    }

    /// All transactions, by when they began. `numbers` are the new numbers of the statements, by the old ones.
    pub fn finish(mut self, numbers: Vec<u32>) -> Result<Sorted, FileError> {
        // Without any run nothing is written.
        if !self.runs.is_empty() {
            self.spill()?;
        }
        self.index.sort_unstable_by(|a, b| b.cmp(a));
        let readers = self.runs.drain(..).map(|file| BufReader::with_capacity(BUFFER, file)).collect();
        let mut sorted = Sorted { spool: self, numbers, readers, heap: BinaryHeap::new(), heads: Vec::new() };
        for run in 0..sorted.readers.len() {
            sorted.heads.push(None);
            sorted.fill(run)?;
        }
        Ok(sorted)
    }
}

/// The transactions, by when they began.
pub struct Sorted {
    spool: Spool,
    numbers: Vec<u32>,
    readers: Vec<BufReader<File>>,
    /// The next transaction of each run.
    heads: Vec<Option<Transaction>>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
}

impl Sorted {
    /// The next transaction; None after the last one.
    pub fn next_transaction(&mut self) -> Result<Option<Transaction>, FileError> {
        if self.readers.is_empty() {
            let Some((_, place)) = self.spool.index.pop() else { return Ok(None) };
            return self.decode(&self.spool.record(place)[4..]).map(Some);
        }
        let Some(Reverse((_, run))) = self.heap.pop() else { return Ok(None) };
        let next = self.heads[run].take();
        self.fill(run)?;
        Ok(next)
    }

    /// Reads the next transaction of a run.
    fn fill(&mut self, run: usize) -> Result<(), FileError> {
        let failed = |e| at(&self.spool.folder)(e);
        let reader = &mut self.readers[run];
        let mut first = [0; 12];
        match reader.read_exact(&mut first) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other.map_err(failed)?,
        }
        let (mut sequence, mut length) = ([0; 8], [0; 4]);
        sequence.copy_from_slice(&first[..8]);
        length.copy_from_slice(&first[8..]);
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        reader.read_exact(&mut bytes).map_err(|e| at(&self.spool.folder)(e))?;
        let transaction = self.decode(&bytes)?;
        let key = (transaction.begin_us, transaction.session, u64::from_le_bytes(sequence));
        self.heads[run] = Some(transaction);
        self.heap.push(Reverse((key, run)));
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Transaction, FileError> {
        let damaged =
            || at(&self.spool.folder)(io::Error::new(io::ErrorKind::InvalidData, "a temporary file is damaged"));
        let mut transaction = Transaction::decode(bytes).ok_or_else(damaged)?;
        for step in &mut transaction.steps {
            step.statement = *self.numbers.get(step.statement as usize).ok_or_else(damaged)?;
        }
        Ok(transaction)
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::{Value, encode};
    use super::*;

    #[test]
    fn transactions_come_out_by_their_begin_whatever_fits_into_memory() {
        let begins: Vec<i64> = (0..1_000).map(|i| (i * 7_919) % 1_009).collect();
        let mut expected = begins.clone();
        expected.sort();
        for memory in [500, 5_000, 1 << 20] {
            let mut spool = Spool::new(&std::env::temp_dir(), memory);
            for begin_us in &begins {
                let mut one = Transaction::new(3, *begin_us);
                let text = begin_us.to_string();
                one.push(*begin_us, Some(5), false, |bytes| {
                    encode(Value::Unknown(&text), bytes);
                    Ok::<u32, ()>(9)
                })
                .unwrap();
                spool.push(&one).unwrap();
            }
            let mut sorted = spool.finish((1..11).collect()).unwrap();
            let mut found = Vec::new();
            while let Some(one) = sorted.next_transaction().unwrap() {
                assert_eq!(one.parameters(0).collect::<Vec<_>>(), [Value::Unknown(&one.begin_us.to_string())]);
                assert_eq!((one.steps[0].statement, one.steps[0].took_us, one.session), (10, Some(5), 3));
                found.push(one.begin_us);
            }
            assert_eq!(found, expected, "{memory} bytes of memory");
        }
    }
}
