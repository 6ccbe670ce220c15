//! One thread's operations: from the cache where it can answer, else from the
//! database.

use std::time::Duration;

use schemas::social::Operation;

use super::Consistency;
use super::cache::{CacheConnection, Fill, Look};
use super::keys::Item;
use crate::stores::answer::{NotRows, Rows};
use crate::stores::relational::actions::Actions;
use crate::stores::relational::engine::Engine;
use crate::stores::{Answer, Connection, OperationError};

/// How the cache is used.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// How it is kept from telling what is no longer true.
    pub consistency: Consistency,
    /// How long a value stays, in seconds; 0 for ever.
    pub ttl_s: u32,
    /// How values are written.
    pub codec: Codec,
    /// How long a reader waits between the database and the fill.
    pub fill_delay: Duration,
}

/// How values are written: a byte that says how, then the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As they are.
    Plain,
    /// Compressed.
    Zstd,
}

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Fast rather than small, as a cache wants it.
const ZSTD_LEVEL: i32 = 1;

/// No value is larger than memcached's largest item can be.
const VALUE_BYTES_MAX: usize = 1 << 30;

impl Codec {
    fn encode(self, rows: &Rows) -> Vec<u8> {
        let plain = || [&[PLAIN], rows.as_bytes()].concat();
        match self {
            Codec::Plain => plain(),
            // Compression of bytes in memory fails for want of memory alone.
            Codec::Zstd => zstd::bulk::compress(rows.as_bytes(), ZSTD_LEVEL)
                .map_or_else(|_| plain(), |compressed| [&[ZSTD], compressed.as_slice()].concat()),
        }
    }

    /// Whatever the codec: the value itself says how it was written.
    fn decode(value: &[u8]) -> Result<Rows, NotRows> {
        match value.split_first() {
            Some((&PLAIN, rows)) => Ok(Rows::from_bytes(rows.to_vec())),
            Some((&ZSTD, compressed)) => {
                let bytes = zstd::bulk::Decompressor::upper_bound(compressed).unwrap_or(VALUE_BYTES_MAX);
                let rows = zstd::bulk::decompress(compressed, bytes.min(VALUE_BYTES_MAX)).map_err(|_| NotRows)?;
                Ok(Rows::from_bytes(rows))
            }
            _ => Err(NotRows),
        }
    }
}

/// A thread's way to the cache and the database behind it.
pub struct CasqlConnection<E: Engine> {
    database: Actions<E>,
    cache: CacheConnection,
    protocol: Protocol,
}

impl<E: Engine> CasqlConnection<E> {
    /// From its two connections.
    pub fn new(database: Actions<E>, cache: CacheConnection, protocol: Protocol) -> CasqlConnection<E> {
        CasqlConnection { database, cache, protocol }
    }

    async fn read(&mut self, item: Item, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let lease = self.protocol.consistency == Consistency::Lease;
        let fill = match self.cache.look(&item, lease).await {
            Look::Hit(value) => match Codec::decode(&value).and_then(|rows| rows.replay(answer)) {
                Ok(()) => return Ok(()),
                Err(NotRows) => {
                    answer.clear_rows();
                    Fill::No
                }
            },
            Look::Miss(fill) => fill,
        };
        if fill == Fill::No {
            return self.database.execute(operation, answer).await;
        }
        answer.keep_rows();
        self.database.execute(operation, answer).await?;
        if !self.protocol.fill_delay.is_zero() {
            tokio::time::sleep(self.protocol.fill_delay).await;
        }
        if let Some(rows) = answer.rows() {
            self.cache.fill(&item, self.protocol.codec.encode(rows), fill, self.protocol.ttl_s).await;
        }
        Ok(())
    }

    async fn write(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let done = self.database.execute(operation, answer).await;
        let may_have_happened = !matches!(done, Err(OperationError::Failed(_)));
        if may_have_happened && self.protocol.consistency != Consistency::Ttl {
            self.cache.invalidate(&Item::changed_by(operation)).await;
        }
        done
    }
}

impl<E: Engine> Connection for CasqlConnection<E> {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        match Item::read_by(operation) {
            Some(item) => self.read(item, operation, answer).await,
            None => self.write(operation, answer).await,
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
        let [plain, compressed] = [Codec::Plain, Codec::Zstd].map(|codec| codec.encode(rows));
        assert_eq!(Codec::decode(&plain), Ok(rows.clone()));
        assert_eq!(Codec::decode(&compressed), Ok(rows.clone()));
        assert!(compressed.len() < plain.len() / 10);
    }

    #[test]
    fn foreign_values_are_refused() {
        for value in [&[][..], &[9, 1, 2], &[ZSTD, 1, 2, 3]] {
            assert_eq!(Codec::decode(value), Err(NotRows), "{value:?}");
        }
    }
}
