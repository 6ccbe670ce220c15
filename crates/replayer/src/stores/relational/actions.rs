//! Performs operations on a connection to a relational database.
//!
//! Every read is one statement, a write of several statements is one
//! transaction. What the database says it rolled back is tried again; a
//! connection that broke is replaced before the next operation, which waits for
//! the server as long as an operation may take.

use std::sync::Arc;
use std::time::Duration;

use schemas::social::{Action, Operation};
use sqlx::{Error, SqlSafeStr};

use super::engine::{Arguments, Client, Engine};
use super::statements::{Call, Read, Rows, Statements, Step};
use crate::source::{Payload, Source};
use crate::stores::{Answer, Connection, Fate, OperationError};

/// How often an operation is tried that the database rolls back because of others.
const ATTEMPTS_MAX: u16 = 20;

/// How long to wait before the second attempt to connect; twice as long before
/// each further one, up to the other.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);
const RECONNECT_PAUSE_MAX: Duration = Duration::from_millis(500);

/// A thread's connection.
pub struct Actions<E: Engine> {
    engine: Arc<E>,
    /// None when it broke, and while an operation uses it: an operation that is
    /// given up takes it along, so that nobody gets the rest of its answer.
    client: Option<E::Client>,
    statements: Arc<Statements>,
    payload: Payload,
    top_k: i64,
    progress: Progress,
}

/// How far an operation got, for when it is given up.
#[derive(Debug, Default)]
struct Progress {
    /// Something may have reached the database that it has not taken back.
    is_sent: bool,
    /// Why there is no connection.
    trouble: Option<String>,
}

impl<E: Engine> Actions<E> {
    /// Actions on the data set of `source`.
    pub fn new(engine: Arc<E>, client: E::Client, statements: Arc<Statements>, source: &Source) -> Actions<E> {
        Actions {
            engine,
            client: Some(client),
            statements,
            payload: source.payload(),
            top_k: source.data().top_k as i64,
            progress: Progress::default(),
        }
    }

    /// The connection, or a new one as soon as the server can be reached again.
    async fn connected(&mut self) -> Result<E::Client, Error> {
        let mut pause = RECONNECT_PAUSE;
        loop {
            if let Some(client) = self.client.take() {
                return Ok(client);
            }
            match self.engine.connect().await {
                Ok(client) => return Ok(client),
                // Nothing would end the attempts.
                Err(error) if self.engine.timeout().is_none() => return Err(error),
                Err(error) => self.progress.trouble = Some(error.to_string()),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RECONNECT_PAUSE_MAX);
        }
    }

    /// Tries until the operation is done, refused or of unknown fate.
    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        loop {
            let mut client =
                self.connected().await.map_err(|error| OperationError::Failed(format!("no connection: {error}")))?;
            self.progress.is_sent = true;
            let refusal = match self.attempt(&mut client, operation, answer).await {
                Ok(()) => {
                    self.client = Some(client);
                    return Ok(());
                }
                Err(refusal) => refusal,
            };
            if refusal.is_client_usable {
                self.client = Some(client);
            }
            match refusal.fate {
                Fate::RolledBack if answer.attempts < ATTEMPTS_MAX => {
                    self.progress.is_sent = false;
                    answer.attempts += 1;
                    answer.clear_rows();
                }
                Fate::Lost if operation.action.is_write() => return Err(OperationError::Unknown(refusal.message)),
                Fate::RolledBack | Fate::Refused | Fate::Lost => return Err(OperationError::Failed(refusal.message)),
            }
        }
    }

    async fn attempt(&self, client: &mut E::Client, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        let comment = operation.comment.unwrap_or_default();
        let mut arguments = Arguments {
            me: operation.socialite as i64,
            target: operation.target as i64,
            comment: comment as i64,
            body: match operation.action {
                Action::PostComment => self.payload.comment(comment),
                _ => String::new(),
            },
            top_k: self.top_k,
        };
        match self.statements.of(operation) {
            Call::Read(read) => perform_read::<E>(client, read, &mut arguments, answer).await,
            Call::Write([step]) => {
                let changed = client.change(&step.statement, &mut arguments).await.map_err(Refusal::of::<E>)?;
                match changed {
                    _ if changed == step.rows => Ok(()),
                    0 => Err(Refusal::unlike_the_trace(Fate::Refused, changed, step)),
                    // It is done by half and cannot be taken back.
                    _ => Err(Refusal::unlike_the_trace(Fate::Lost, changed, step)),
                }
            }
            Call::Write(steps) => transact::<E>(client, steps, &mut arguments).await,
        }
    }
}

async fn perform_read<E: Engine>(
    client: &mut E::Client,
    read: &Read,
    arguments: &mut Arguments,
    answer: &mut Answer,
) -> Result<(), Refusal> {
    let rows = client.read(read, arguments, answer).await.map_err(Refusal::of::<E>)?;
    match read.rows {
        Rows::One if rows == 0 => Err(Refusal::usable(Fate::Refused, "the member is not there".to_string())),
        Rows::One | Rows::Any => Ok(()),
    }
}

/// All steps or none.
async fn transact<E: Engine>(client: &mut E::Client, steps: &[Step], arguments: &mut Arguments) -> Result<(), Refusal> {
    let refusal = match perform_steps::<E>(client, steps, arguments).await {
        Ok(()) => match client.run("COMMIT".into_sql_str()).await {
            Ok(()) => return Ok(()),
            Err(error) => Refusal::of::<E>(error),
        },
        // Without the word to commit, a transaction whose connection is lost is rolled back.
        Err(Refusal { fate: Fate::Lost, message, is_client_usable }) => {
            Refusal { fate: Fate::Refused, message, is_client_usable }
        }
        Err(refusal) => refusal,
    };
    if !refusal.is_client_usable {
        return Err(refusal);
    }
    match client.run("ROLLBACK".into_sql_str()).await {
        Ok(()) => Err(refusal),
        // After some errors SQLite has done so already, and refuses to do it again.
        Err(Error::Database(error)) if error.message().contains("no transaction is active") => Err(refusal),
        // Closing the connection takes it back as well.
        Err(_) => Err(Refusal { is_client_usable: false, ..refusal }),
    }
}

async fn perform_steps<E: Engine>(
    client: &mut E::Client,
    steps: &[Step],
    arguments: &mut Arguments,
) -> Result<(), Refusal> {
    client.run(E::DIALECT.begin.into_sql_str()).await.map_err(Refusal::of::<E>)?;
    for step in steps {
        let changed = client.change(&step.statement, arguments).await.map_err(Refusal::of::<E>)?;
        if changed != step.rows {
            return Err(Refusal::unlike_the_trace(Fate::Refused, changed, step));
        }
    }
    Ok(())
}

/// Why an attempt did not succeed.
struct Refusal {
    fate: Fate,
    message: String,
    /// The connection can go on with the next statement.
    is_client_usable: bool,
}

impl Refusal {
    fn of<E: Engine>(error: Error) -> Refusal {
        let fate = E::fate(&error);
        Refusal { fate, message: error.to_string(), is_client_usable: fate != Fate::Lost }
    }

    fn usable(fate: Fate, message: String) -> Refusal {
        Refusal { fate, message, is_client_usable: true }
    }

    fn unlike_the_trace(fate: Fate, changed: u64, step: &Step) -> Refusal {
        let expected = step.rows;
        let message = format!("{changed} rows changed instead of {expected}: the relation is not as the trace left it");
        Refusal::usable(fate, message)
    }
}

impl<E: Engine> Connection for Actions<E> {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        self.progress = Progress::default();
        let Some(most) = self.engine.timeout() else { return self.perform(operation, answer).await };
        match tokio::time::timeout(most, self.perform(operation, answer)).await {
            Ok(done) => done,
            Err(_) => {
                let trouble = self.progress.trouble.take().map(|trouble| format!(": {trouble}")).unwrap_or_default();
                let message = format!("no answer within {} ms{trouble}", most.as_millis());
                match operation.action.is_write() && self.progress.is_sent {
                    true => Err(OperationError::Unknown(message)),
                    false => Err(OperationError::Failed(message)),
                }
            }
        }
    }
}
