//! Operations on records whose index is on another node of a cluster. A script touches keys of one
//! node only, so the index is read and written by commands of its own.
//!
//! A record that exists is always in the index: an insert writes the index first, and a delete removes
//! the record last. So a write of which only a half has happened leaves at most a key without a record,
//! which scans skip, or a record whose delete is of unknown fate.

use redis::Cmd;
use schemas::vocabulary::kv::Operation;

use super::INDEX;
use super::connection::{RedisConnection, see};
use super::wire::Wire;
use crate::stores::fields::places;
use crate::stores::link::Refusal;
use crate::stores::{Answer, Fate};

impl RedisConnection {
    /// Adds the key to the index, then the record. A record that is there already is in the index, too.
    pub(super) async fn insert_apart(&mut self, operation: &Operation) -> Result<u64, Refusal> {
        let shared = self.shared.clone();
        let add = redis::cmd("ZADD").arg(INDEX).arg(0).arg(&self.key).to_owned();
        self.ask::<u64>(&add, true).await?;
        self.write(&shared.scripts.insert, operation).await
    }

    /// Removes the key from the index, then the record. Returns how many records there were.
    pub(super) async fn delete_apart(&mut self) -> Result<u64, Refusal> {
        let remove = redis::cmd("ZREM").arg(INDEX).arg(&self.key).to_owned();
        let removed: u64 = self.ask(&remove, true).await?;
        let deleted = self.ask(&redis::cmd("DEL").arg(&self.key).to_owned(), true).await;
        match removed {
            0 => deleted,
            // Scans no longer find the record, whatever has become of the second command.
            _ => deleted.map_err(|refusal| Refusal { fate: Fate::Lost, ..refusal }),
        }
    }

    /// Reads keys of the index, then their records, until there are as many as the operation asks for
    /// or the index ends. Skips keys whose records are deleted meanwhile.
    pub(super) async fn scan_apart(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        let shared = self.shared.clone();
        let mut from = format!("[{}", self.key).into_bytes();
        let mut wanted = operation.length as usize;
        loop {
            let mut read = redis::cmd("ZRANGEBYLEX");
            read.arg(INDEX).arg(&from).arg("+").arg("LIMIT").arg(0).arg(wanted);
            let keys: Vec<Vec<u8>> = self.ask(&read, false).await?;
            let (asked, reads) = (wanted, self.reads(&keys, operation));
            let records: Vec<Vec<Option<Vec<u8>>>> =
                self.with(false, async |wire: &mut Wire| wire.query_all(&reads).await).await?;
            for (key, values) in keys.iter().zip(&records) {
                if values.iter().all(Option::is_none) {
                    continue;
                }
                wanted -= 1;
                shared.fields.see_key(key, answer);
                see(&shared.fields, operation, values, answer);
            }
            match keys.last() {
                Some(last) if wanted > 0 && keys.len() == asked => from = [b"(", last.as_slice()].concat(),
                _ => return Ok(()),
            }
        }
    }

    /// The commands that read the fields of an operation, of each record.
    fn reads(&self, keys: &[Vec<u8>], operation: &Operation) -> Vec<Cmd> {
        let read = |key: &Vec<u8>| {
            let mut read = redis::cmd("HMGET").arg(key).to_owned();
            for field in places(operation.fields) {
                read.arg(self.shared.fields.name(field));
            }
            read
        };
        keys.iter().map(read).collect()
    }
}
