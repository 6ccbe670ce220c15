//! Performs operations on a thread's connection. After a lost connection or a timeout the next
//! operation makes a new one.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind};
use schemas::vocabulary::kv::{Kv, Operation, Verb};

use super::scripts::{Script, Scripts};
use crate::stores::fields::{Fields, places};
use crate::stores::link::{Failure, Link, Refusal, outcome};
use crate::stores::{Answer, Connection, Fate, OperationError};

/// What the connections of a worker share.
pub struct Shared {
    pub(super) client: Client,
    pub(super) fields: Fields,
    pub(super) scripts: Scripts,
    pub(super) timeout: Duration,
}

/// A thread's connection.
pub struct RedisConnection {
    shared: Arc<Shared>,
    link: Link<MultiplexedConnection>,
    key: String,
    value: String,
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
        _ => Fate::Lost,
    }
}

/// An error in one line.
pub fn words(error: &RedisError) -> String {
    if error.is_connection_refusal() {
        return "cannot connect: connection refused".to_string();
    }
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => match (error.code(), error.detail()) {
            (Some("ERR"), Some(detail)) => detail.to_string(),
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (code, detail) => code.or(detail).unwrap_or("an error without a text").to_string(),
        },
        _ => error.to_string(),
    }
}

/// What a user should do about an error.
pub fn advice(error: &RedisError) -> Option<&'static str> {
    let text = error.to_string();
    match () {
        _ if error.is_connection_refusal() => Some("is the server running, and is the address right?"),
        _ if text.contains("invalid peer certificate") => {
            Some("for a certificate of your own CA, name the CA's file in the environment: SSL_CERT_FILE=FILE")
        }
        _ if text.contains("NOAUTH") => {
            Some("give user and password in the URL: redis://USER:PASSWORD@HOST:PORT/NUMBER")
        }
        _ if error.kind() == ErrorKind::AuthenticationFailed || text.contains("WRONGPASS") => {
            Some("check user and password")
        }
        _ if text.contains("index is out of range") || text.contains("switch database") => {
            Some("use a smaller number in the URL, or raise the server's setting `databases`")
        }
        _ if text.contains("OOM") => Some("raise the server's setting `maxmemory`, or use a smaller data set"),
        _ => None,
    }
}

impl RedisConnection {
    /// With what its worker's connections share.
    pub fn new(shared: Arc<Shared>, link: MultiplexedConnection) -> RedisConnection {
        RedisConnection { shared, link: Link::new(link), key: String::new(), value: String::new() }
    }

    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        let done = match operation.verb {
            Verb::Read => return outcome(self.read(operation, answer).await.map(|()| true), operation, &self.key),
            Verb::Scan => return outcome(self.scan(operation, answer).await.map(|()| true), operation, &self.key),
            Verb::Insert => self.write(&shared.scripts.insert, operation).await,
            Verb::Update => self.write(&shared.scripts.update, operation).await,
            Verb::Delete => match &shared.scripts.delete {
                Some(script) => self.call(script, &script.call(&self.key), true).await,
                None => self.ask(&redis::cmd("DEL").arg(&self.key).to_owned(), true).await,
            },
        };
        outcome(done.map(|records| records > 0), operation, &self.key)
    }

    async fn write(&mut self, script: &Script, operation: &Operation) -> Result<u64, Refusal> {
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
        let fields = &shared.fields;
        if !fields.are_all(operation.fields) {
            let mut command = redis::cmd("HMGET").arg(&self.key).to_owned();
            for field in places(operation.fields) {
                command.arg(fields.name(field));
            }
            let values: Vec<Option<Vec<u8>>> = self.ask(&command, false).await?;
            see(fields, operation, &values, answer);
            return Ok(());
        }
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = self.ask(&redis::cmd("HGETALL").arg(&self.key).to_owned(), false).await?;
        if pairs.is_empty() {
            return Ok(());
        }
        // The server returns the fields in any order.
        let mut values = vec![None; fields.names().len()];
        for (name, value) in pairs {
            if let Some(place) = fields.place(&name) {
                values[place as usize] = Some(value);
            }
        }
        fields.see((0..).zip(&values).map(|(field, value)| (field, value.as_deref())), answer);
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
        match self.send(call, writes).await {
            Err(Failure::Server(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.ask::<String>(&script.load_command(), false).await?;
                self.ask(call, writes).await
            }
            done => Ok(done?),
        }
    }

    async fn ask<X: FromRedisValue>(&mut self, command: &Cmd, writes: bool) -> Result<X, Refusal> {
        Ok(self.send(command, writes).await?)
    }

    async fn send<X: FromRedisValue>(&mut self, command: &Cmd, writes: bool) -> Result<X, Failure<RedisError>> {
        let connect = async || super::connect(&self.shared.client).await;
        let ask = async |link: &mut MultiplexedConnection| command.query_async(link).await;
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
fn see(fields: &Fields, operation: &Operation, values: &[Option<Vec<u8>>], answer: &mut Answer) {
    if values.iter().any(Option::is_some) {
        fields.see(places(operation.fields).zip(values.iter().map(Option::as_deref)), answer);
    }
}

impl Connection<Kv> for RedisConnection {
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
    fn what_the_server_refuses_did_not_happen() {
        let of_server = |kind: ServerErrorKind| RedisError::from((ErrorKind::Server(kind), "words"));
        for kind in [ServerErrorKind::ReadOnly, ServerErrorKind::BusyLoading, ServerErrorKind::ResponseError] {
            assert_eq!(fate(&of_server(kind)), Fate::Refused, "{kind:?}");
        }
        assert_eq!(fate(&RedisError::from((ErrorKind::Extension, "OOM"))), Fate::Refused);
    }

    #[test]
    fn an_unknown_certificate_is_met_with_the_name_of_the_variable() {
        let error = RedisError::from(std::io::Error::other("invalid peer certificate: UnknownIssuer"));
        assert!(advice(&error).is_some_and(|advice| advice.contains("SSL_CERT_FILE=FILE")));
    }

    #[test]
    fn what_may_have_happened_is_of_unknown_fate() {
        for kind in [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::UnexpectedEof] {
            assert_eq!(fate(&RedisError::from(std::io::Error::from(kind))), Fate::Lost);
        }
        assert_eq!(fate(&RedisError::from((ErrorKind::Parse, "words"))), Fate::Lost);
    }
}
