//! Performs operations on a thread's connection. After a lost connection or a timeout the next
//! operation makes a new one.

use std::sync::Arc;
use std::time::Duration;

use memcache::exp::{
    AsyncMetaConnection, DeleteOptions, Error, GetOptions, MetaCommand, MetaCommandResult, ReturnCode, SetMode,
    SetOptions, build_delete, build_get, build_set, parse_meta_result,
};
use schemas::vocabulary::kv::{Kv, Operation, Verb};

use super::record::{self, Record};
use crate::stores::fields::{Fields, NO_OPERATION_ON_A_RECORD};
use crate::stores::link::{Failure, Link, Refusal, outcome};
use crate::stores::{Answer, Connection, Fate, OperationError};

/// What the connections of a worker share.
pub struct Shared {
    pub(super) address: String,
    pub(super) fields: Fields,
    pub(super) ttl: Option<u32>,
    pub(super) timeout: Duration,
}

/// A thread's connection.
pub struct MemcachedConnection {
    shared: Arc<Shared>,
    link: Link<AsyncMetaConnection>,
    /// The key of the record, and that of its item.
    key: String,
    item_key: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { fate: fate(&error), message: error.to_string() }
    }
}

/// What became of the command that an error ended.
fn fate(error: &Error) -> Fate {
    match error {
        Error::Rejected(_) | Error::Usage(_) => Fate::Refused,
        // A server that cannot store a value removes the item, so that nothing stale stays.
        _ => Fate::Lost,
    }
}

impl MemcachedConnection {
    /// With what its worker's connections share.
    pub fn new(shared: Arc<Shared>, link: AsyncMetaConnection) -> MemcachedConnection {
        let (key, item_key) = Default::default();
        MemcachedConnection { shared, link: Link::new(link), key, item_key }
    }

    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        record::item_key(&self.key, &mut self.item_key);
        let done = match operation.verb {
            Verb::Read => self.read(operation, answer).await.map(|()| true),
            Verb::Insert => self.store(operation, SetMode::Add).await,
            Verb::Update if shared.fields.are_all(operation.fields) => self.store(operation, SetMode::Replace).await,
            Verb::Update => self.update(operation, answer).await,
            Verb::Delete => self.delete().await,
            Verb::Begin | Verb::Commit | Verb::Abort => Err(Refusal::refused(NO_OPERATION_ON_A_RECORD)),
            Verb::Scan => Err(Refusal::refused("memcached has no scans")),
        };
        outcome(done, operation, &self.key)
    }

    async fn read(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        let shared = self.shared.clone();
        let command = build_get(&self.item_key, &GetOptions::default())?;
        let Some(item) = self.send(&command, false).await?.value else { return Ok(()) };
        let record = Record::parse(&item).map_err(Refusal::refused)?;
        shared.fields.see(record.values(operation.fields, &shared.fields), answer);
        Ok(())
    }

    /// Stores a whole record. Returns false if the mode does not allow that.
    async fn store(&mut self, operation: &Operation, mode: SetMode) -> Result<bool, Refusal> {
        let fields = &self.shared.fields;
        let item = record::whole(fields, |field, text| fields.written(operation, field, text));
        let command = build_set(&self.item_key, item, &set_options(mode, self.shared.ttl))?;
        Ok(self.send(&command, true).await?.rc == ReturnCode::Hd)
    }

    /// Replaces some fields, if the record has not changed since it was read; else once more.
    async fn update(&mut self, operation: &Operation, answer: &mut Answer) -> Result<bool, Refusal> {
        let shared = self.shared.clone();
        let look = {
            let mut options = GetOptions::default();
            options.return_cas = true;
            build_get(&self.item_key, &options)?
        };
        loop {
            let found = self.send(&look, false).await?;
            let (Some(item), Some(cas)) = (found.value, found.cas) else { return Ok(false) };
            let mut record = Record::parse(&item).map_err(Refusal::refused)?;
            record.write(operation, &shared.fields);
            let mut options = set_options(SetMode::Set, shared.ttl);
            options.compare_cas = Some(cas);
            let command = build_set(&self.item_key, record.item(), &options)?;
            match self.send(&command, true).await?.rc {
                ReturnCode::Ex => {
                    // Another write came between, so this one has not happened.
                    self.link.begin();
                    answer.attempts = answer.attempts.saturating_add(1);
                }
                code => return Ok(code == ReturnCode::Hd),
            }
        }
    }

    async fn delete(&mut self) -> Result<bool, Refusal> {
        let command = build_delete(&self.item_key, &DeleteOptions::default())?;
        Ok(self.send(&command, true).await?.rc == ReturnCode::Hd)
    }

    async fn send(&mut self, command: &MetaCommand, writes: bool) -> Result<MetaCommandResult, Refusal> {
        let connect = async || AsyncMetaConnection::connect(self.shared.address.as_str()).await;
        let ask = async |link: &mut AsyncMetaConnection| link.execute(command).await;
        let is_whole = |error: &Error| matches!(error, Error::Server(_) | Error::Rejected(_));
        match self.link.send(writes, connect, ask, is_whole).await {
            Ok(answer) => Ok(parse_meta_result(answer)?),
            Err(Failure::Connect(error)) => Err(Refusal::refused(format!("cannot connect: {error}"))),
            Err(Failure::Server(error)) => Err(error.into()),
        }
    }
}

/// How an item is stored.
pub fn set_options(mode: SetMode, ttl: Option<u32>) -> SetOptions {
    let mut options = SetOptions::default();
    (options.mode, options.ttl) = (mode, ttl);
    options
}

impl Connection<Kv> for MemcachedConnection {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        self.link.begin();
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(operation, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, self.link.may_have_changed())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_rejects_did_not_happen() {
        assert_eq!(fate(&Error::Rejected("bad data chunk".into())), Fate::Refused);
        for error in [Error::Server("out of memory".into()), Error::Io(std::io::ErrorKind::TimedOut.into())] {
            assert_eq!(fate(&error), Fate::Lost);
        }
    }
}
