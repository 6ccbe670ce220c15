//! The five operations on a connection to a relational database: each is one statement.

use std::sync::Arc;

use schemas::vocabulary::kv::{ABSENT, FIELDS_MAX, Found, Kv, Operation, Verb};
use sqlx::Error;

use super::super::engine::{Client, Engine, Fields, Parameter};
use super::super::perform::{Attempts, Refusal};
use super::fields_of;
use super::statements::Statements;
use crate::stores::fields::NO_OPERATION_ON_A_RECORD;
use crate::stores::kv::{ALREADY_THERE, KvData, MISSING};
use crate::stores::{Answer, Fate};

/// The number of a key that is not one of the data set's.
const FOREIGN: i64 = -1;

/// The operations on a data set.
pub struct Actions {
    statements: Arc<Statements>,
    data: Arc<KvData>,
    /// Whether the reads of a transaction lock what they read.
    has_locking_reads: bool,
    /// The key and the values of the operation, which are made in place.
    key: String,
    values: Vec<String>,
}

impl Actions {
    /// Operations on records.
    pub fn new(statements: Arc<Statements>, data: Arc<KvData>, has_locking_reads: bool) -> Actions {
        let values = vec![String::new(); data.data.fields as usize];
        Actions { statements, data, has_locking_reads, key: String::new(), values }
    }

    /// Makes the values that a write writes.
    fn make_values(&mut self, write: &Operation) {
        for (field, text) in fields_of(write.fields).zip(&mut self.values) {
            text.clear();
            self.data.values.written(write.id, write.amount, field, text);
        }
    }
}

impl<E: Engine> Attempts<Kv, E> for Actions {
    fn begin(&self) -> &'static str {
        // Where there are no locks of rows, the transaction locks as a whole.
        match self.has_locking_reads && E::DIALECT.for_update.is_empty() {
            true => E::DIALECT.begin,
            false => E::DIALECT.begin_lazily,
        }
    }

    async fn attempt(
        &mut self,
        client: &mut E::Client,
        operation: &Operation,
        is_inside: bool,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        self.data.keys.write(self.data.keys.number(operation.key), &mut self.key);
        if matches!(operation.verb, Verb::Insert | Verb::Update) {
            self.make_values(operation);
        }
        let (data, statements, fields) = (&*self.data, &*self.statements, operation.fields);
        let keys = [Parameter::Text(&self.key)];
        let [key] = keys;
        let count = fields.count_ones() as usize;
        let done = match operation.verb {
            Verb::Read => {
                let read = match is_inside && self.has_locking_reads {
                    true => statements.locking_read(fields),
                    false => statements.read(fields),
                };
                let found = client.read_one(read, &keys, |row| find(data, row, 0, fields, answer));
                return found.await.map(|_| ()).map_err(Refusal::of::<E>);
            }
            Verb::Scan => {
                let parameters = [key, Parameter::Integer(operation.length as i64)];
                let read = client.read(statements.scan(fields), &parameters, |row| {
                    let key = std::str::from_utf8(row.octets(0)?).ok().and_then(|key| data.keys.parse(key));
                    answer.values.push(key.map_or(FOREIGN, |number| number as i64));
                    find(data, row, 1, fields, answer)
                });
                return read.await.map_err(Refusal::of::<E>);
            }
            Verb::Insert => {
                let mut parameters = [key; FIELDS_MAX as usize + 1];
                bind(&mut parameters[1..], &self.values);
                client.change(statements.insert(), &parameters[..=count]).await
            }
            Verb::Update => {
                let mut parameters = [key; FIELDS_MAX as usize + 1];
                bind(&mut parameters[..count], &self.values);
                client.change(statements.update(fields), &parameters[..=count]).await
            }
            Verb::Delete => client.change(statements.delete(), &keys).await,
            Verb::Begin | Verb::Commit | Verb::Abort => {
                return Err(Refusal::usable(Fate::Refused, NO_OPERATION_ON_A_RECORD.to_string()));
            }
        };
        match done {
            Ok(0) => Err(Refusal::usable(Fate::Refused, MISSING.to_string())),
            Ok(_) => Ok(()),
            Err(error) if error.as_database_error().is_some_and(|error| error.is_unique_violation()) => {
                Err(Refusal { message: ALREADY_THERE.to_string(), ..Refusal::of::<E>(error) })
            }
            Err(error) => Err(Refusal::of::<E>(error)),
        }
    }
}

fn bind<'a>(parameters: &mut [Parameter<'a>], values: &'a [String]) {
    for (parameter, value) in parameters.iter_mut().zip(values) {
        *parameter = Parameter::Text(value);
    }
}

/// Adds to the answer the fields of a record, which begin at some column of the row.
fn find(data: &KvData, row: &impl Fields, first: usize, fields: u64, answer: &mut Answer) -> Result<(), Error> {
    let Answer { values, payload_bytes, .. } = answer;
    let mut unreadable = None;
    let numbers = fields_of(fields).zip(first..).map(|(field, column)| {
        let value = row.octets_or_null(column).unwrap_or_else(|error| {
            unreadable = Some(error);
            None
        });
        *payload_bytes += value.map_or(0, |value| value.len() as u64);
        (field, value.map_or(ABSENT.into(), |value| data.values.seen(field, value)))
    });
    Found::push(values, numbers);
    unreadable.map_or(Ok(()), Err)
}
