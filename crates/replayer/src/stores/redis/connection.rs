//! Performs operations on a thread's connection. After a lost connection or a timeout the next
//! operation makes a new one.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};
use schemas::vocabulary::kv::{Kv, Operation, Verb};

use super::replica::Wait;
use super::scripts::{Index, Script, Scripts};
use super::transactions::Transaction;
use super::wire::{Connector, Wire};
use super::words::words;
use crate::stores::fields::{Fields, NO_OPERATION_ON_A_RECORD, places};
use crate::stores::link::{Failure, Link, Refusal, outcome};
use crate::stores::{Answer, Connection, Fate, OperationError};

/// What the connections of a worker share.
pub struct Shared {
    pub(super) connector: Connector,
    /// Of the replica for reads outside of transactions.
    pub(super) reader: Option<Connector>,
    /// Which replicas a write waits for.
    pub(super) wait: Option<Wait>,
    pub(super) fields: Fields,
    pub(super) index: Index,
    pub(super) scripts: Scripts,
    pub(super) timeout: Duration,
    /// For how many seconds a record stays.
    pub(super) ttl: Option<u32>,
}

/// A thread's connection.
pub struct RedisConnection {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Link<Wire>,
    /// To the replica, if there is one.
    reader: Option<Link<Wire>>,
    pub(super) key: String,
    value: String,
    pub(super) transaction: Transaction,
}

impl From<RedisError> for Refusal {
    fn from(error: RedisError) -> Refusal {
        Refusal { fate: fate(&error), message: words(&error) }
    }
}

impl From<redis::ParsingError> for Refusal {
    fn from(error: redis::ParsingError) -> Refusal {
        RedisError::from(error).into()
    }
}

/// What became of the command that an error ended.
fn fate(error: &RedisError) -> Fate {
    match error.kind() {
        // The server has answered: it checks a command, and its memory and disk, before it runs it.
        ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::AuthenticationFailed => Fate::Refused,
        // No node of the cluster was sent the command.
        ErrorKind::ClusterConnectionNotFound => Fate::Refused,
        _ => Fate::Lost,
    }
}

impl RedisConnection {
    /// With what its worker's connections share.
    pub fn new(shared: Arc<Shared>, link: Wire, reader: Option<Wire>) -> RedisConnection {
        RedisConnection {
            shared,
            link: Link::new(link),
            reader: reader.map(Link::new),
            key: String::new(),
            value: String::new(),
            transaction: Transaction::None,
        }
    }

    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        let done = match (operation.verb, shared.index) {
            (Verb::Read, _) => return outcome(self.read(operation, answer).await.map(|()| true), operation, &self.key),
            (Verb::Update, _) => self.write(&shared.scripts.update, operation).await,
            // In boxes, so that operations on a server by itself need no room for them.
            (Verb::Scan, Index::Apart) => {
                let seen = Box::pin(self.scan_apart(operation, answer)).await;
                return outcome(seen.map(|()| true), operation, &self.key);
            }
            (Verb::Insert, Index::Apart) => Box::pin(self.insert_apart(operation)).await,
            (Verb::Delete, Index::Apart) => Box::pin(self.delete_apart()).await,
            (Verb::Scan, _) => return outcome(self.scan(operation, answer).await.map(|()| true), operation, &self.key),
            (Verb::Insert, _) => self.write(&shared.scripts.insert, operation).await,
            (Verb::Begin | Verb::Commit | Verb::Abort, _) => Err(Refusal::refused(NO_OPERATION_ON_A_RECORD)),
            (Verb::Delete, _) => match &shared.scripts.delete {
                Some(script) => self.call(script, &script.call(&self.key), true).await,
                None => self.ask(&redis::cmd("DEL").arg(&self.key).to_owned(), true).await,
            },
        };
        let done = match done {
            Ok(1..) if shared.wait.is_some() => self.await_replicas().await.map(|()| true),
            done => done.map(|records| records > 0),
        };
        outcome(done, operation, &self.key)
    }

    /// Waits until enough replicas have the write that was just done. If they have not, it may be lost later.
    pub(super) async fn await_replicas(&mut self) -> Result<(), Refusal> {
        let Some(wait) = self.shared.wait else { return Ok(()) };
        let lost = |message: String| Refusal { fate: Fate::Lost, message };
        let there: u32 = self.ask(&wait.command(), true).await.map_err(|refusal| lost(refusal.message))?;
        if there >= wait.replicas {
            return Ok(());
        }
        Err(lost(format!("written, but {there} of {} replicas had it within {} ms", wait.replicas, wait.most_ms)))
    }

    pub(super) async fn write(&mut self, script: &Script, operation: &Operation) -> Result<u64, Refusal> {
        let shared = self.shared.clone();
        let mut command = script.call(&self.key);
        for field in places(operation.fields) {
            shared.fields.written(operation, field, &mut self.value);
            command.arg(shared.fields.name(field)).arg(&self.value);
        }
        self.call(script, &command, true).await
    }

    async fn read(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        let shared = self.shared.clone();
        // Not HGETALL, even for all fields: its answer repeats their names, and comes in any order.
        let mut command = redis::cmd("HMGET");
        command.arg(&self.key);
        for field in places(operation.fields) {
            command.arg(shared.fields.name(field));
        }
        let values: Vec<Option<Vec<u8>>> = self.look(&command).await?;
        see(&shared.fields, operation, &values, answer);
        Ok(())
    }

    async fn scan(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        let shared = self.shared.clone();
        let mut command = shared.scripts.scan.call(&self.key);
        command.arg(operation.length);
        for field in places(operation.fields) {
            command.arg(shared.fields.name(field));
        }
        let found: Vec<redis::Value> = self.call(&shared.scripts.scan, &command, false).await?;
        let mut found = found.into_iter();
        while let (Some(key), Some(values)) = (found.next(), found.next()) {
            let key = Vec::<u8>::from_redis_value(key)?;
            let values = Vec::<Option<Vec<u8>>>::from_redis_value(values)?;
            if values.iter().any(Option::is_some) {
                shared.fields.see_key(&key, answer);
                see(&shared.fields, operation, &values, answer);
            }
        }
        Ok(())
    }

    /// Sends the call of a script. A server that has restarted has forgotten the script.
    async fn call<X: FromRedisValue>(&mut self, script: &Script, call: &Cmd, writes: bool) -> Result<X, Refusal> {
        let sent = if writes { self.send(call, true).await } else { self.look(call).await };
        match sent {
            Err(Failure::Server(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let load = script.load_command();
                if writes {
                    self.ask::<String>(&load, false).await?;
                    self.ask(call, true).await
                } else {
                    self.look::<String>(&load).await?;
                    Ok(self.look(call).await?)
                }
            }
            done => Ok(done?),
        }
    }

    /// Sends a command that changes no record, to the replica if there is one.
    async fn look<X: FromRedisValue>(&mut self, command: &Cmd) -> Result<X, Failure<RedisError>> {
        let (Some(reader), Some(connector)) = (&mut self.reader, &self.shared.reader) else {
            return self.send(command, false).await;
        };
        let ask = async |wire: &mut Wire| wire.query(command).await;
        reader.send(false, async || connector.connect().await, ask, |error| fate(error) == Fate::Refused).await
    }

    pub(super) async fn ask<X: FromRedisValue>(&mut self, command: &Cmd, writes: bool) -> Result<X, Refusal> {
        Ok(self.send(command, writes).await?)
    }

    async fn send<X: FromRedisValue>(&mut self, command: &Cmd, writes: bool) -> Result<X, Failure<RedisError>> {
        self.with(writes, async |wire: &mut Wire| wire.query(command).await).await
    }

    /// Sends commands on the connection, which is made if there is none.
    pub(super) async fn with<X>(
        &mut self,
        writes: bool,
        ask: impl AsyncFnOnce(&mut Wire) -> RedisResult<X>,
    ) -> Result<X, Failure<RedisError>> {
        let connect = async || self.shared.connector.connect().await;
        self.link.send(writes, connect, ask, |error| fate(error) == Fate::Refused).await
    }
}

impl From<Failure<RedisError>> for Refusal {
    fn from(failure: Failure<RedisError>) -> Refusal {
        match failure {
            Failure::Connect(error) => Refusal::refused(words(&error)),
            Failure::Server(error) => error.into(),
        }
    }
}

/// Adds the values of an operation's fields to an answer. Without any value there is no such record.
pub(super) fn see(fields: &Fields, operation: &Operation, values: &[Option<Vec<u8>>], answer: &mut Answer) {
    if values.iter().any(Option::is_some) {
        fields.see(places(operation.fields).zip(values.iter().map(Option::as_deref)), answer);
    }
}

impl Connection<Kv> for RedisConnection {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        if self.transaction.is_under_way() {
            // In a box, so that operations by themselves need no room for it.
            return Box::pin(self.execute_inside(operation, answer)).await;
        }
        self.link.begin();
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(operation, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, self.link.may_have_changed())))
    }

    async fn begin(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.begin_one()
    }

    async fn commit(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.commit_it().await
    }

    async fn abort(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.abort_it().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_refuses_did_not_happen() {
        let of_server = |kind: ServerErrorKind| RedisError::from((ErrorKind::Server(kind), "words"));
        for kind in [ServerErrorKind::ReadOnly, ServerErrorKind::BusyLoading, ServerErrorKind::ResponseError] {
            assert_eq!(fate(&of_server(kind)), Fate::Refused, "{kind:?}");
        }
        assert_eq!(fate(&RedisError::from((ErrorKind::Extension, "OOM"))), Fate::Refused);
    }

    #[test]
    fn what_may_have_happened_is_of_unknown_fate() {
        for kind in [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::UnexpectedEof] {
            assert_eq!(fate(&RedisError::from(std::io::Error::from(kind))), Fate::Lost);
        }
        assert_eq!(fate(&RedisError::from((ErrorKind::Parse, "words"))), Fate::Lost);
    }
}
