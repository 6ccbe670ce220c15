//! Performs operations on a connection to SQLite.
//!
//! A write of several statements takes the write lock first (`BEGIN IMMEDIATE`)
//! and so never deadlocks. A statement that finds the store locked past its
//! patience was not executed and is tried again.

use schemas::social::{Action, Operation};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Error, Row, Sqlite, query::Query};

use crate::source::{Payload, Source};
use crate::stores::relational::statements::{Argument, Call, Read, Rows, Statement, Statements, Step};
use crate::stores::{Answer, Connection, OperationError};

/// How often a locked store is tried again. Each time SQLite itself has waited
/// for `busy_ms`.
const ATTEMPTS_MAX: u16 = 10;

/// A thread's connection.
pub struct SqliteActions {
    client: SqliteConnection,
    statements: Statements,
    payload: Payload,
    top_k: i64,
    /// A transaction could not be taken back: whatever came next would be a part
    /// of it, and never committed.
    is_unfinished: bool,
}

/// What the parameters of an operation's statements stand for.
struct Arguments {
    me: i64,
    target: i64,
    comment: i64,
    /// Of a comment that is posted, else empty.
    body: String,
    top_k: i64,
}

impl Arguments {
    /// A statement with its parameters bound.
    fn bind<'q>(&mut self, statement: &Statement) -> Query<'q, Sqlite, SqliteArguments> {
        statement.arguments().iter().fold(sqlx::query(statement.sql()), |query, argument| match argument {
            Argument::Me => query.bind(self.me),
            Argument::Target => query.bind(self.target),
            Argument::Comment => query.bind(self.comment),
            // One statement of an operation has it, and has it once.
            Argument::Body => query.bind(std::mem::take(&mut self.body)),
            Argument::TopK => query.bind(self.top_k),
        })
    }
}

impl SqliteActions {
    /// Actions on the data set of `source`.
    pub fn new(client: SqliteConnection, statements: Statements, source: &Source) -> SqliteActions {
        SqliteActions {
            client,
            statements,
            payload: source.payload(),
            top_k: source.data().top_k as i64,
            is_unfinished: false,
        }
    }

    async fn attempt(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        if self.is_unfinished {
            take_back(&mut self.client).await.map_err(Refusal::Store)?;
            self.is_unfinished = false;
        }
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
            Call::Read(read) => {
                let query = arguments.bind(&read.statement);
                perform_read(&mut self.client, read, query, answer).await
            }
            Call::Write([step]) => {
                let changed = arguments.bind(&step.statement).execute(&mut self.client).await?.rows_affected();
                match changed {
                    _ if changed == step.rows => Ok(()),
                    0 => Err(Refusal::missing(changed, step)),
                    // It is done and cannot be taken back.
                    _ => Err(Refusal::Partly(unlike_the_trace(changed, step))),
                }
            }
            Call::Write(steps) => {
                let done = transact(&mut self.client, steps, &mut arguments).await;
                self.is_unfinished = matches!(done, Err(Refusal::Unfinished(_)));
                done
            }
        }
    }
}

async fn perform_read(
    client: &mut SqliteConnection,
    read: &Read,
    query: Query<'_, Sqlite, SqliteArguments>,
    answer: &mut Answer,
) -> Result<(), Refusal> {
    match read.rows {
        Rows::One => match query.fetch_optional(client).await? {
            Some(row) => take_in(&row, read, answer),
            None => Err(Refusal::Missing("the member is not there".to_string())),
        },
        Rows::Any => query.fetch_all(client).await?.iter().try_for_each(|row| take_in(row, read, answer)),
    }
}

/// Adds a row to what the operation saw.
fn take_in(row: &SqliteRow, read: &Read, answer: &mut Answer) -> Result<(), Refusal> {
    for column in 0..read.values {
        answer.values.push(row.try_get(column)?);
    }
    answer.payload_bytes += row.try_get::<&str, _>(read.values)?.len() as u64;
    if let Some(column) = read.image_column {
        answer.payload_bytes += row.try_get::<&[u8], _>(column)?.len() as u64;
    }
    Ok(())
}

/// All steps or none.
async fn transact(client: &mut SqliteConnection, steps: &[Step], arguments: &mut Arguments) -> Result<(), Refusal> {
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *client).await?;
    let refusal = match perform_steps(client, steps, arguments).await {
        Ok(()) => match sqlx::query("COMMIT").execute(&mut *client).await {
            Ok(_) => return Ok(()),
            Err(error) if is_busy(&error) => Refusal::Store(error),
            // Whether the commit record reached the disk, nobody knows.
            Err(error) => Refusal::Lost(error),
        },
        Err(refusal) => refusal,
    };
    match take_back(client).await {
        Ok(()) => Err(refusal),
        Err(error) => Err(Refusal::Unfinished(error)),
    }
}

/// Rolls back. After some errors SQLite has done so already and refuses to do it
/// again, which is as well.
async fn take_back(client: &mut SqliteConnection) -> Result<(), Error> {
    match sqlx::query("ROLLBACK").execute(client).await {
        Ok(_) => Ok(()),
        Err(Error::Database(error)) if error.message().contains("no transaction is active") => Ok(()),
        Err(error) => Err(error),
    }
}

async fn perform_steps(
    client: &mut SqliteConnection,
    steps: &[Step],
    arguments: &mut Arguments,
) -> Result<(), Refusal> {
    for step in steps {
        let changed = arguments.bind(&step.statement).execute(&mut *client).await?.rows_affected();
        if changed != step.rows {
            return Err(Refusal::missing(changed, step));
        }
    }
    Ok(())
}

fn unlike_the_trace(changed: u64, step: &Step) -> String {
    format!("{changed} rows changed instead of {}: the relation is not as the trace left it", step.rows)
}

/// Why an attempt did not succeed.
enum Refusal {
    /// The data is not what the operation needs.
    Missing(String),
    /// Nor is it, and a part of the write happened.
    Partly(String),
    /// SQLite refused; nothing happened.
    Store(Error),
    /// The write may have happened.
    Lost(Error),
    /// It may have, and its transaction is still open.
    Unfinished(Error),
}

impl Refusal {
    fn missing(changed: u64, step: &Step) -> Refusal {
        Refusal::Missing(unlike_the_trace(changed, step))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match &error {
            // SQLite takes a statement back that ends in an error, unless the disk
            // itself is the trouble: then the commit may have reached it.
            Error::Database(_) if !is_of(&error, &[IO_ERROR, CORRUPT]) => Refusal::Store(error),
            // Anything else is trouble on the way to or from it.
            _ => Refusal::Lost(error),
        }
    }
}

const BUSY: i64 = 5;
const LOCKED: i64 = 6;
const IO_ERROR: i64 = 10;
const CORRUPT: i64 = 11;

fn is_busy(error: &Error) -> bool {
    is_of(error, &[BUSY, LOCKED])
}

/// Whether SQLite's result code is one of these primary ones.
fn is_of(error: &Error, codes: &[i64]) -> bool {
    let code = error.as_database_error().and_then(|e| e.code()).and_then(|code| code.parse::<i64>().ok());
    // The low byte is the primary code.
    code.is_some_and(|code| codes.contains(&(code & 0xff)))
}

impl Connection for SqliteActions {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        loop {
            let refusal = match self.attempt(operation, answer).await {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            match refusal {
                Refusal::Store(error) if is_busy(&error) && answer.attempts < ATTEMPTS_MAX => {
                    answer.attempts += 1;
                    answer.values.clear();
                    answer.payload_bytes = 0;
                }
                Refusal::Store(error) => return Err(OperationError::Failed(error.to_string())),
                Refusal::Missing(message) => return Err(OperationError::Failed(message)),
                Refusal::Partly(message) => return Err(OperationError::Unknown(message)),
                Refusal::Lost(error) | Refusal::Unfinished(error) if operation.action.is_write() => {
                    return Err(OperationError::Unknown(error.to_string()));
                }
                Refusal::Lost(error) | Refusal::Unfinished(error) => {
                    return Err(OperationError::Failed(error.to_string()));
                }
            }
        }
    }
}
