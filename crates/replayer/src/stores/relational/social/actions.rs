//! The eleven actions on a connection to a relational database.
//!
//! Every read is one statement, a write of several statements is one transaction.

use std::sync::Arc;

use schemas::social::{Action, Operation, Social};
use schemas::workload::social::Payload;
use sqlx::{Error, SqlSafeStr};

use super::super::engine::{Client, Engine, Fields};
use super::super::perform::{Attempts, Performer, Refusal};
use super::super::transaction::roll_back;
use super::statements::{Arguments, Call, ExpectedRows, Read, Statements, WriteStatement};
use crate::source::Source;
use crate::stores::{Answer, Fate};

/// A thread's connection.
pub type SocialConnection<E> = Performer<E, Actions>;

/// The actions on a data set.
pub struct Actions {
    statements: Arc<Statements>,
    payload: Payload,
    top_k: i64,
}

impl Actions {
    /// Actions on the data set of `source`.
    pub fn new(statements: Arc<Statements>, source: &Source) -> Actions {
        Actions { statements, payload: source.payload(), top_k: source.data().top_k as i64 }
    }
}

impl<E: Engine> Attempts<Social, E> for Actions {
    async fn attempt(
        &mut self,
        client: &mut E::Client,
        operation: &Operation,
        _is_inside: bool,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let comment = operation.comment.unwrap_or_default();
        let arguments = Arguments {
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
            Call::Read(read) => perform_read::<E>(client, read, &arguments, answer).await,
            Call::Write([write]) => {
                let changed = change::<E>(client, write, &arguments).await.map_err(Refusal::of::<E>)?;
                match changed {
                    _ if changed == write.rows => Ok(()),
                    0 => Err(unlike_the_trace(Fate::Refused, changed, write)),
                    // The statement is done in part and cannot be rolled back.
                    _ => Err(unlike_the_trace(Fate::Lost, changed, write)),
                }
            }
            Call::Write(statements) => transact::<E>(client, statements, &arguments).await,
        }
    }
}

async fn perform_read<E: Engine>(
    client: &mut E::Client,
    read: &Read,
    arguments: &Arguments,
    answer: &mut Answer,
) -> Result<(), Refusal> {
    let (sql, bound) = (read.statement.sql(), read.statement.bind(arguments));
    if read.rows == ExpectedRows::Any {
        let read = client.read(sql, bound.parameters(), |row| take_in(row, read, answer));
        return read.await.map_err(Refusal::of::<E>);
    }
    match client.read_one(sql, bound.parameters(), |row| take_in(row, read, answer)).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refusal::usable(Fate::Refused, "member not found".to_string())),
        Err(error) => Err(Refusal::of::<E>(error)),
    }
}

/// Adds a row to what the operation saw.
fn take_in(row: &impl Fields, read: &Read, answer: &mut Answer) -> Result<(), Error> {
    // View Profile has the most: three counts.
    let mut values = [0; 3];
    let values = &mut values[..read.values];
    for (column, value) in values.iter_mut().enumerate() {
        *value = row.integer(column)?;
    }
    let image = read.image_column.map_or(Ok(&[][..]), |column| row.bytes(column))?;
    answer.take_in(values, row.text(read.values)?, image);
    Ok(())
}

/// Executes a statement; returns the number of rows that it changed.
async fn change<E: Engine>(
    client: &mut E::Client,
    write: &WriteStatement,
    arguments: &Arguments,
) -> Result<u64, Error> {
    client.change(write.statement.sql(), write.statement.bind(arguments).parameters()).await
}

/// All statements or none.
async fn transact<E: Engine>(
    client: &mut E::Client,
    statements: &[WriteStatement],
    arguments: &Arguments,
) -> Result<(), Refusal> {
    let refusal = match perform_all::<E>(client, statements, arguments).await {
        Ok(()) => match client.run("COMMIT".into_sql_str()).await {
            Ok(()) => return Ok(()),
            Err(error) => Refusal::of::<E>(error),
        },
        // Without COMMIT, the database rolls back a transaction whose connection is lost.
        Err(refusal) if refusal.fate == Fate::Lost => Refusal { fate: Fate::Refused, ..refusal },
        Err(refusal) => refusal,
    };
    if !refusal.is_client_usable {
        return Err(refusal);
    }
    let is_client_usable = roll_back::<E>(client).await;
    Err(Refusal { is_client_usable, ..refusal })
}

async fn perform_all<E: Engine>(
    client: &mut E::Client,
    statements: &[WriteStatement],
    arguments: &Arguments,
) -> Result<(), Refusal> {
    client.run(E::DIALECT.begin.into_sql_str()).await.map_err(Refusal::of::<E>)?;
    for write in statements {
        let changed = change::<E>(client, write, arguments).await.map_err(Refusal::of::<E>)?;
        if changed != write.rows {
            return Err(unlike_the_trace(Fate::Refused, changed, write));
        }
    }
    Ok(())
}

fn unlike_the_trace(fate: Fate, changed: u64, write: &WriteStatement) -> Refusal {
    let expected = write.rows;
    let message =
        format!("expected to change {expected} rows, changed {changed}: the store's data does not match the trace");
    Refusal::usable(fate, message)
}
