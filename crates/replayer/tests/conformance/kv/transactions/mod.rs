//! What every store has to do whose transactions consist of several operations.

mod anomalies;
mod answers;
mod conflicts;
mod lost;
mod replays;
mod subjects;

use replayer::stores::{Answer, OperationError};
use schemas::vocabulary::kv::{Found, FoundRecords, Verb};

use super::{operation, scan};
use subjects::AnyConnection;

/// The settings of the workload of these tests: no session runs.
const SETTINGS: [&str; 2] = ["sessions=1", "data.field_bytes=30"];

/// The fields of the records.
const ALL: u64 = 0b1111;

/// A connection, with short names for what tests do on it.
pub struct Client {
    connection: Box<dyn AnyConnection>,
    answer: Answer,
}

type Done = Result<(), OperationError>;

impl Client {
    async fn begin(&mut self) -> Done {
        self.answer.clear();
        self.connection.begin(&mut self.answer).await
    }

    async fn commit(&mut self) -> Done {
        self.answer.clear();
        self.connection.commit(&mut self.answer).await
    }

    async fn abort(&mut self) -> Done {
        self.answer.clear();
        self.connection.abort(&mut self.answer).await
    }

    /// Inserts, updates or deletes a record; `number` tells writes apart.
    async fn write(&mut self, verb: Verb, key: u64, number: u16) -> Done {
        self.answer.clear();
        self.connection.execute(&operation(verb, key, ALL, number), &mut self.answer).await
    }

    async fn update(&mut self, key: u64, number: u16) -> Done {
        self.write(Verb::Update, key, number).await
    }

    /// Whose value the record has: the number of the write, or 0 for its initial value. None if it does not
    /// exist.
    async fn read(&mut self, key: u64) -> Result<Option<u16>, OperationError> {
        self.answer.clear();
        self.connection.execute(&operation(Verb::Read, key, ALL, 0), &mut self.answer).await?;
        let found = Found::read(&self.answer.values).expect("what a read finds");
        Ok(found.map(|found| writer(&found)))
    }

    /// The keys and writers of this many records from a key on.
    async fn scan(&mut self, key: u64, length: u32) -> Result<Vec<(i64, u16)>, OperationError> {
        self.answer.clear();
        self.connection.execute(&scan(key, ALL, length), &mut self.answer).await?;
        let found = FoundRecords::new(&self.answer.values).map(|one| one.expect("a record"));
        Ok(found.map(|(key, found)| (key, writer(&found))).collect())
    }
}

/// Whose values a record has. All fields are written together.
fn writer(found: &Found) -> u16 {
    let numbers = [0, 1, 2, 3].map(|field| found.of(field));
    assert!(numbers.iter().all(|number| *number == numbers[0]), "fields of several writes: {numbers:?}");
    schemas::vocabulary::kv::WriteId::from_number(numbers[0]).map_or(0, |id| id.place().2)
}

/// Whether the store rolled back because of others.
fn is_aborted<X>(done: &Result<X, OperationError>) -> bool {
    matches!(done, Err(OperationError::Aborted(_)))
}
