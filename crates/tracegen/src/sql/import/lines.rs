//! Lines of a log file, plain or compressed with gzip or zstd.

use std::fs::File;
use std::io::{BufRead, BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use schemas::files::at;

use super::error::ImportError;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BUFFER: usize = 1 << 18;
/// PostgreSQL takes no longer statement.
const LINE_MAX: usize = 1 << 30;

/// The lines of one file.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    number: u64,
    buffer: Vec<u8>,
    /// The line was read, and is wanted once more.
    is_back: bool,
    is_whole: bool,
    /// Whether lines end with `\r\n`, as the first one does. Otherwise a `\r` belongs to its line.
    has_returns: bool,
}

impl Lines {
    /// Opens a file. Its first bytes say whether it is compressed.
    pub fn open(path: &Path) -> Result<Lines, ImportError> {
        let mut file = File::open(path).map_err(at(path))?;
        let mut first = Vec::new();
        file.by_ref().take(4).read_to_end(&mut first).map_err(at(path))?;
        let is = |magic: &[u8]| first.starts_with(magic);
        let (is_gzip, is_zstd) = (is(GZIP), is(ZSTD));
        let file: Chain<Cursor<Vec<u8>>, File> = Cursor::new(first).chain(file);
        let reader: Box<dyn BufRead> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(BufReader::new(file))))
        } else if is_zstd {
            let decoder = zstd::Decoder::new(file).map_err(at(path))?;
            Box::new(BufReader::with_capacity(BUFFER, decoder))
        } else {
            Box::new(BufReader::with_capacity(BUFFER, file))
        };
        Ok(Lines::new(path, reader))
    }

    /// The lines of a reader. `path` is for errors.
    pub fn new(path: &Path, reader: Box<dyn BufRead>) -> Lines {
        Lines {
            path: path.to_path_buf(),
            reader,
            number: 0,
            buffer: Vec::new(),
            is_back: false,
            is_whole: false,
            has_returns: false,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the line that was read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line; false at the end of the file.
    pub fn advance(&mut self) -> Result<bool, ImportError> {
        if std::mem::take(&mut self.is_back) {
            return Ok(true);
        }
        self.buffer.clear();
        let mut reader = self.reader.by_ref().take(LINE_MAX as u64);
        let count = reader.read_until(b'\n', &mut self.buffer).map_err(at(&self.path))?;
        if count == 0 {
            return Ok(false);
        }
        self.number += 1;
        self.is_whole = self.buffer.last() == Some(&b'\n');
        if count == LINE_MAX && !self.is_whole {
            return Err(ImportError::line(&self.path, self.number, "the line is longer than 1 GiB; this is no log"));
        }
        if self.is_whole {
            self.buffer.pop();
            let has_return = self.buffer.last() == Some(&b'\r');
            self.has_returns |= has_return && self.number == 1;
            if has_return && self.has_returns {
                self.buffer.pop();
            }
        }
        Ok(true)
    }

    /// The line that was read last, without its end.
    pub fn line(&self) -> &[u8] {
        &self.buffer
    }

    /// Whether the line that was read last has an end. A server ends each line.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the next call of [`Lines::advance`] reads the same line again.
    pub fn is_back(&self) -> bool {
        self.is_back
    }

    /// Reads the same line again with the next call of [`Lines::advance`].
    pub fn put_back(&mut self) {
        self.is_back = true;
    }
}
