//! The format of values in the cache: a byte that names the codec, then the rows.

use std::io;

use zstd::bulk::{Compressor, Decompressor};

use crate::stores::Answer;
use crate::stores::answer::{KeptRows, NotRows, replay};

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As they are.
    Plain,
    /// Compressed.
    Zstd,
}

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Fast rather than small, since a cache must be fast.
const ZSTD_LEVEL: i32 = 1;

/// No value is larger than memcached's largest item can be.
const VALUE_BYTES_MAX: usize = 1 << 30;

/// Encodes and decodes values, one after the other. It keeps the memory that compression needs.
/// Allocating that memory for each value took longer than a round trip to memcached (48 instead
/// of 25 µs for a small profile).
pub struct Coder {
    codec: Codec,
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    /// A value that is being decompressed.
    rows: Vec<u8>,
}

impl Coder {
    /// A coder; it reads values of any codec.
    pub fn new(codec: Codec) -> io::Result<Coder> {
        let (compressor, decompressor) = (Compressor::new(ZSTD_LEVEL)?, Decompressor::new()?);
        Ok(Coder { codec, compressor, decompressor, rows: Vec::new() })
    }

    /// Encodes the rows of an answer as a value.
    pub fn encode(&mut self, rows: &KeptRows) -> Vec<u8> {
        let plain = || [&[PLAIN], rows.as_bytes()].concat();
        match self.codec {
            Codec::Plain => plain(),
            // Compression of bytes in memory fails only for want of memory.
            Codec::Zstd => self
                .compressor
                .compress(rows.as_bytes())
                .map_or_else(|_| plain(), |compressed| [&[ZSTD], compressed.as_slice()].concat()),
        }
    }

    /// Decodes a value, and adds its rows to an answer.
    pub fn decode(&mut self, value: &[u8], answer: &mut Answer) -> Result<(), NotRows> {
        match value.split_first() {
            Some((&PLAIN, rows)) => replay(rows, answer),
            Some((&ZSTD, compressed)) => {
                let bytes = Decompressor::upper_bound(compressed).unwrap_or(VALUE_BYTES_MAX).min(VALUE_BYTES_MAX);
                self.rows.clear();
                self.rows.reserve(bytes);
                self.decompressor.decompress_to_buffer(compressed, &mut self.rows).map_err(|_| NotRows)?;
                replay(&self.rows, answer)
            }
            _ => Err(NotRows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went_in_whatever_the_codec() {
        let mut answer = Answer::default();
        answer.keep_rows();
        answer.take_in(&[1, 2], &"text ".repeat(1000), &[7; 3000]);
        let rows = answer.rows().unwrap();
        let [mut plain, mut zstd] = [Codec::Plain, Codec::Zstd].map(|codec| Coder::new(codec).unwrap());
        let (long, short) = (plain.encode(rows), zstd.encode(rows));
        assert!(short.len() < long.len() / 10);
        // Each reads what the other has written, and the next value after it.
        for value in [&long, &short, &short, &long] {
            for coder in [&mut plain, &mut zstd] {
                let mut again = Answer::default();
                again.keep_rows();
                assert_eq!(coder.decode(value, &mut again), Ok(()));
                assert_eq!(again.rows(), Some(rows));
            }
        }
    }

    #[test]
    fn foreign_values_are_refused() {
        let mut coder = Coder::new(Codec::Plain).unwrap();
        for value in [&[][..], &[9, 1, 2], &[ZSTD, 1, 2, 3]] {
            assert_eq!(coder.decode(value, &mut Answer::default()), Err(NotRows), "{value:?}");
        }
    }
}
