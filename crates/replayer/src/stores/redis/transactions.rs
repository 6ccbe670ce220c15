//! Transactions of several operations, by WATCH, MULTI and EXEC.
//!
//! What a transaction looks at, it watches first. What it writes, it keeps until the commit, which sends all
//! writes between MULTI and EXEC. The server refuses EXEC if a watched key has changed: then the transaction has
//! not happened. So transactions that are committed are serializable. One that will be refused may have read
//! records of different states.
//!
//! Nothing is retried, and the connection is never replaced, since another one watches nothing.

use std::collections::BTreeSet;

use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, ServerErrorKind, Value};
use schemas::vocabulary::kv::{Operation, Verb};

use super::INDEX;
use super::connection::{RedisConnection, see};
use super::scripts::Index;
use super::wire::Wire;
use super::words::words;
use crate::stores::fields::{exists, is_missing, places};
use crate::stores::link::{Failure, Refusal};
use crate::stores::{Answer, Fate, OperationError};

/// Where the transaction of a thread stands.
#[derive(Default)]
pub enum Transaction {
    /// There is none: each operation is by itself.
    #[default]
    None,
    /// It is open.
    Open(Open),
    /// Its connection is gone, and all that it watches.
    Lost(String),
}

/// A transaction that is open.
#[derive(Default)]
pub struct Open {
    /// Its writes, in order; none of them is sent yet.
    written: Vec<Operation>,
    /// Whether the server watches keys for it.
    is_watching: bool,
    /// Why it must not be committed: an operation of it has failed.
    failed: Option<String>,
}

/// The values of some fields of a record.
type Values = Vec<Option<Vec<u8>>>;

/// What an operation finds that follows one that was given up midway.
const GIVEN_UP: &str = "an earlier operation of the transaction did not end";

impl Transaction {
    /// Whether operations belong to a transaction.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        !matches!(self, Transaction::None)
    }
}

impl RedisConnection {
    /// Begins a transaction. The server hears of it with the first operation.
    pub(super) fn begin_one(&mut self) -> Result<(), OperationError> {
        if matches!(self.transaction, Transaction::Open(_)) {
            return Err(OperationError::Failed("a transaction is under way already".to_string()));
        }
        self.transaction = Transaction::Open(Open::default());
        Ok(())
    }

    /// Performs an operation in the transaction that is under way.
    pub(super) async fn execute_inside(
        &mut self,
        operation: &Operation,
        answer: &mut Answer,
    ) -> Result<(), OperationError> {
        // If this is given up midway, the connection goes with it.
        let mut open = match std::mem::replace(&mut self.transaction, Transaction::Lost(GIVEN_UP.to_string())) {
            Transaction::Open(open) => open,
            Transaction::None => return Err(OperationError::Failed(GIVEN_UP.to_string())),
            Transaction::Lost(why) => {
                self.transaction = Transaction::Lost(why.clone());
                let why = format!("not sent, since an operation of the transaction failed before: {why}");
                return Err(OperationError::Failed(why));
            }
        };
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform_inside(&mut open, operation, answer)).await;
        let refusal = match done {
            Ok(Ok(done)) => {
                if let Err(error) = &done {
                    open.failed.get_or_insert_with(|| error.clone().into_message());
                }
                self.transaction = Transaction::Open(open);
                return done;
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => Refusal { fate: Fate::Lost, message: format!("timed out after {} ms", most.as_millis()) },
        };
        self.transaction = match refusal.fate {
            Fate::Lost => Transaction::Lost(refusal.message.clone()),
            Fate::Refused | Fate::RolledBack => {
                open.failed.get_or_insert_with(|| refusal.message.clone());
                Transaction::Open(open)
            }
        };
        Err(OperationError::Failed(refusal.message))
    }

    /// The inner result is that of an operation whose precondition has been looked at.
    async fn perform_inside(
        &mut self,
        open: &mut Open,
        operation: &Operation,
        answer: &mut Answer,
    ) -> Result<Result<(), OperationError>, Refusal> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        match operation.verb {
            Verb::Read => {
                let found = self.watch_and_read(open, operation, std::slice::from_ref(&self.key.clone())).await?;
                for mut values in found {
                    self.overlay(open, &self.key.clone(), operation, &mut values);
                    see(&shared.fields, operation, &values, answer);
                }
                Ok(Ok(()))
            }
            Verb::Scan => self.scan_inside(open, operation, answer).await.map(Ok),
            _ => {
                let is_there = match open.written.iter().rev().find(|write| write.key == operation.key) {
                    Some(write) => write.verb != Verb::Delete,
                    None => {
                        open.is_watching = true;
                        let mut both = redis::pipe();
                        both.cmd("WATCH").arg(&self.key).cmd("EXISTS").arg(&self.key);
                        let [_, there] = self.ask_all(&both, false).await?;
                        u64::from_redis_value(there)? > 0
                    }
                };
                match (operation.verb, is_there) {
                    (Verb::Insert, true) => return Ok(Err(exists(&self.key))),
                    (Verb::Update | Verb::Delete, false) => return Ok(Err(is_missing(&self.key))),
                    _ => open.written.push(*operation),
                }
                Ok(Ok(()))
            }
        }
    }

    /// Watches some records, then reads the fields of an operation.
    async fn watch_and_read(
        &mut self,
        open: &mut Open,
        operation: &Operation,
        keys: &[String],
    ) -> Result<Vec<Values>, Refusal> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        open.is_watching = true;
        let mut all = redis::pipe();
        all.cmd("WATCH").arg(keys);
        for key in keys {
            all.cmd("HMGET").arg(key);
            for field in places(operation.fields) {
                all.arg(self.shared.fields.name(field));
            }
        }
        let answers = self.ask_pipeline(&all, false).await?;
        let values = answers.into_iter().skip(1).map(|values| Ok(Values::from_redis_value(values?)?));
        values.collect()
    }

    /// Reads records from a key on. It watches the index of keys, so no record appears or vanishes in between.
    async fn scan_inside(
        &mut self,
        open: &mut Open,
        operation: &Operation,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let shared = self.shared.clone();
        let from = self.key.clone();
        let mut own = BTreeSet::new();
        for write in &open.written {
            shared.fields.key(write, &mut self.key);
            own.insert(self.key.clone());
        }
        // Records that this transaction deletes are still in the index.
        let asked = operation.length as usize + own.len();
        open.is_watching = true;
        let mut both = redis::pipe();
        both.cmd("WATCH").arg(INDEX);
        both.cmd("ZRANGEBYLEX").arg(INDEX).arg(format!("[{from}")).arg("+").arg("LIMIT").arg(0).arg(asked);
        let [_, found] = self.ask_all(&both, false).await?;
        let found = Vec::<String>::from_redis_value(found)?;
        let records = self.watch_and_read(open, operation, &found).await?;
        // Behind the last key that was found there may be others, unless there were fewer than asked for.
        let last = found.last().filter(|_| found.len() == asked).cloned();
        own.retain(|key| *key >= from && last.as_ref().is_none_or(|last| key <= last) && !found.contains(key));
        let missing = own.into_iter().map(|key| (key, vec![None; operation.fields.count_ones() as usize]));
        let mut all: Vec<(String, Values)> = found.into_iter().zip(records).chain(missing).collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut wanted = operation.length;
        for (key, mut values) in all {
            self.overlay(open, &key, operation, &mut values);
            if wanted > 0 && values.iter().any(Option::is_some) {
                shared.fields.see_key(key.as_bytes(), answer);
                see(&shared.fields, operation, &values, answer);
                wanted -= 1;
            }
        }
        Ok(())
    }

    /// Does to the fields of a record what the transaction has written.
    fn overlay(&self, open: &Open, key: &str, operation: &Operation, values: &mut Values) {
        let (mut own_key, mut text) = (String::new(), String::new());
        for write in &open.written {
            self.shared.fields.key(write, &mut own_key);
            if own_key != key {
                continue;
            }
            for (field, value) in places(operation.fields).zip(values.iter_mut()) {
                if write.verb == Verb::Delete {
                    *value = None;
                } else if write.fields >> field & 1 == 1 {
                    self.shared.fields.written(write, field, &mut text);
                    *value = Some(text.clone().into_bytes());
                }
            }
        }
    }

    /// Commits the transaction that is under way.
    pub(super) async fn commit_it(&mut self) -> Result<(), OperationError> {
        let open = match std::mem::take(&mut self.transaction) {
            Transaction::Open(open) => open,
            Transaction::None => return Err(OperationError::Failed("no transaction is under way".to_string())),
            Transaction::Lost(why) => return Err(OperationError::Failed(why)),
        };
        if let Some(why) = &open.failed {
            let why = format!("rolled back, since an operation of it failed: {why}");
            self.unwatch(&open).await;
            return Err(OperationError::Failed(why));
        }
        if !open.is_watching {
            return Ok(());
        }
        self.link.begin();
        let most = self.shared.timeout;
        let commands = self.commands(&open);
        let writes = !open.written.is_empty();
        match tokio::time::timeout(most, self.ask_pipeline(&commands, writes)).await {
            Ok(Ok(mut answers)) => {
                executed(answers.pop())?;
                if !writes || self.shared.wait.is_none() {
                    return Ok(());
                }
                let waited = tokio::time::timeout(most, self.await_replicas()).await;
                let waited = waited.map_err(|_| OperationError::timed_out(most, true))?;
                waited.map_err(|refusal| OperationError::Unknown(refusal.message))
            }
            Ok(Err(refusal)) if refusal.fate == Fate::Lost && writes => Err(OperationError::Unknown(refusal.message)),
            Ok(Err(refusal)) => Err(OperationError::Failed(refusal.message)),
            Err(_) => Err(OperationError::timed_out(most, self.link.may_have_changed())),
        }
    }

    /// All writes of a transaction, between MULTI and EXEC.
    fn commands(&mut self, open: &Open) -> Pipeline {
        let shared = self.shared.clone();
        let has_index = shared.index == Index::InScripts;
        let mut all = redis::pipe();
        all.cmd("MULTI");
        let (mut key, mut value) = (String::new(), String::new());
        for write in &open.written {
            shared.fields.key(write, &mut key);
            if write.verb == Verb::Delete {
                all.cmd("DEL").arg(&key);
                if has_index {
                    all.cmd("ZREM").arg(INDEX).arg(&key);
                }
                continue;
            }
            let mut set = Cmd::new();
            set.arg("HSET").arg(&key);
            for field in places(write.fields) {
                shared.fields.written(write, field, &mut value);
                set.arg(shared.fields.name(field)).arg(&value);
            }
            all.add_command(set);
            if has_index && write.verb == Verb::Insert {
                all.cmd("ZADD").arg(INDEX).arg(0).arg(&key);
            }
            if let Some(seconds) = shared.ttl {
                all.cmd("EXPIRE").arg(&key).arg(seconds);
            }
        }
        all.cmd("EXEC");
        all
    }

    /// Aborts the transaction that is under way. That always succeeds: nothing of it is in the store.
    pub(super) async fn abort_it(&mut self) {
        if let Transaction::Open(open) = std::mem::take(&mut self.transaction) {
            self.unwatch(&open).await;
        }
    }

    async fn unwatch(&mut self, open: &Open) {
        if open.is_watching {
            let mut unwatch = redis::pipe();
            unwatch.cmd("UNWATCH");
            // A connection that does not answer is closed, and watches nothing.
            let _ = tokio::time::timeout(self.shared.timeout, self.ask_pipeline(&unwatch, false)).await;
        }
    }

    /// Sends commands in one piece, and returns all answers; an error if one of them is.
    async fn ask_all<const N: usize>(&mut self, commands: &Pipeline, writes: bool) -> Result<[Value; N], Refusal> {
        let answers = self.ask_pipeline(commands, writes).await?;
        let answers: Vec<Value> = answers.into_iter().collect::<RedisResult<_>>()?;
        answers.try_into().map_err(|_| Refusal { fate: Fate::Lost, message: "unexpected reply".to_string() })
    }

    async fn ask_pipeline(&mut self, commands: &Pipeline, writes: bool) -> Result<Vec<RedisResult<Value>>, Refusal> {
        let asked: Result<_, Failure<RedisError>> =
            self.with(writes, async |wire: &mut Wire| wire.query_pipeline(commands).await).await;
        Ok(asked?)
    }
}

/// What the answer to EXEC says of the transaction.
fn executed(answer: Option<RedisResult<Value>>) -> Result<(), OperationError> {
    match answer {
        Some(Ok(Value::Nil)) => {
            Err(OperationError::Aborted("a record that the transaction has looked at has changed since".to_string()))
        }
        Some(Ok(Value::Array(answers))) => match answers.into_iter().find_map(|one| one.extract_error().err()) {
            None => Ok(()),
            // Redis performs the other commands all the same.
            Some(error) => Err(OperationError::Unknown(format!("a part of it was refused: {}", words(&error)))),
        },
        // One of the commands was refused before, so the server performs none.
        Some(Err(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::ExecAbort) => {
            Err(OperationError::Failed(words(&error)))
        }
        Some(Err(error)) => Err(OperationError::Unknown(words(&error))),
        Some(Ok(_)) | None => Err(OperationError::Unknown("unexpected reply to EXEC".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_exec_says_what_happened() {
        let is = |answer| executed(Some(Ok(answer)));
        assert_eq!(is(Value::Array(vec![Value::Int(1), Value::Okay])), Ok(()));
        assert!(matches!(is(Value::Nil), Err(OperationError::Aborted(_))));
        assert!(matches!(is(Value::Okay), Err(OperationError::Unknown(_))));
        let refused = RedisError::from((ErrorKind::Server(ServerErrorKind::ExecAbort), "words"));
        assert!(matches!(executed(Some(Err(refused))), Err(OperationError::Failed(_))));
        let broken = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(matches!(executed(Some(Err(broken))), Err(OperationError::Unknown(_))));
        assert!(matches!(executed(None), Err(OperationError::Unknown(_))));
    }
}
