//! Performs the operations of a thread on its worker's session.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use schemas::vocabulary::kv::{Kv, Operation, Verb};
use scylla::client::session::Session;
use scylla::policies::load_balancing::LoadBalancingPolicy;
use scylla::response::query_result::QueryResult;
use scylla::statement::prepared::PreparedStatement;

use super::cells::{Cell, each_row};
use super::layout::Layout;
use super::statements::{self, Levels, Order, Prepared, Texts};
use super::{Cassandra, Conditions, timestamps, words};
use crate::source::Source;
use crate::stores::fields::{Fields, NO_OPERATION_ON_A_RECORD, places};
use crate::stores::link::{Refusal, outcome};
use crate::stores::{Answer, Connection, OperationError, StoreError};

/// What the threads of a worker share.
struct Shared {
    session: Session,
    fields: Fields,
    layout: Layout,
    texts: Texts,
    levels: Levels,
    timeout: Duration,
}

/// A thread's part of its worker's session.
pub struct CassandraConnection {
    shared: Arc<Shared>,
    /// Statements that the thread's coordinator executes.
    statements: Prepared,
    coordinator: Option<Arc<dyn LoadBalancingPolicy>>,
    key: String,
    texts: Vec<String>,
    /// Whether a write may have been sent.
    may_have_changed: bool,
}

/// Connects the threads of a worker.
pub async fn connect(
    store: &Cassandra,
    session: Session,
    source: &Source,
    threads: Range<u32>,
) -> Result<Vec<CassandraConnection>, StoreError> {
    let (fields, layout) = (Fields::of(source), Layout::of(source, &store.url)?);
    let texts = Texts::of(store, source, &layout);
    let levels = Levels { read: store.read_level, write: store.write_level };
    let prepared = statements::prepare_all(levels, &session, &texts, &fields, source).await;
    let prepared = prepared.map_err(|error| store.with_advice(words::of_prepare(&error)))?;
    let coordinators = store.coordinators(&session).await?;
    let shared = Arc::new(Shared { session, fields, layout, texts, levels, timeout: store.timeout });
    let connection = |thread: u32| {
        let coordinator =
            (!coordinators.is_empty()).then(|| coordinators[thread as usize % coordinators.len()].clone());
        let mut statements = prepared.clone();
        for statement in statements.values_mut() {
            statement.set_load_balancing_policy(coordinator.clone());
        }
        let (key, texts) = (String::new(), Vec::new());
        CassandraConnection { shared: shared.clone(), statements, coordinator, key, texts, may_have_changed: false }
    };
    Ok(threads.map(connection).collect())
}

impl CassandraConnection {
    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        let done = match operation.verb {
            Verb::Begin | Verb::Commit | Verb::Abort => Err(Refusal::refused(NO_OPERATION_ON_A_RECORD)),
            Verb::Read | Verb::Scan => self.read(&shared, operation, answer).await,
            Verb::Insert | Verb::Update | Verb::Delete => self.write(&shared, operation).await,
        };
        outcome(done, operation, &self.key)
    }

    /// Reads a record, or some from a key on.
    async fn read(&mut self, shared: &Shared, operation: &Operation, answer: &mut Answer) -> Result<bool, Refusal> {
        self.prepare(shared, operation).await?;
        let mut cells: Vec<Cell<'_>> = shared.layout.fragment(operation.key).map(Cell::Int).into_iter().collect();
        cells.push(Cell::Text(&self.key));
        let is_scan = operation.verb == Verb::Scan;
        if is_scan {
            cells.push(Cell::Int(operation.length.try_into().unwrap_or(i32::MAX)));
        }
        let found = self.execute_on(shared, operation, &cells).await?;
        let rows = found.into_rows_result().map_err(Refusal::refused)?;
        let seen = each_row(&rows, |cells| {
            if is_scan {
                let key = cells.next().transpose()?.flatten();
                shared.fields.see_key(key.unwrap_or_default(), answer);
            }
            let mut broken = None;
            let values = places(operation.fields).zip(cells).map(|(field, cell)| match cell {
                Ok(value) => (field, value),
                Err(error) => {
                    broken = Some(error);
                    (field, None)
                }
            });
            shared.fields.see(values, answer);
            broken.map_or(Ok(()), Err)
        });
        seen.map(|()| true).map_err(Refusal::refused)
    }

    /// Writes a record. Returns whether it was there, or for an insert, that it was not, as far as the write
    /// asks for it.
    async fn write(&mut self, shared: &Shared, operation: &Operation) -> Result<bool, Refusal> {
        self.prepare(shared, operation).await?;
        let fields = fields_of(operation);
        let count = places(fields).count();
        self.texts.resize_with(self.texts.len().max(count), String::new);
        for (field, text) in places(fields).zip(&mut self.texts) {
            shared.fields.written(operation, field, text);
        }
        let values = self.texts[..count].iter().map(|text| Cell::Text(text));
        let row = shared.layout.fragment(operation.key).map(Cell::Int).into_iter().chain([Cell::Text(&self.key)]);
        let time = (shared.texts.order == Order::Trace).then(|| Cell::Long(timestamps::in_trace(operation.id)));
        let cells: Vec<Cell<'_>> = match operation.verb {
            Verb::Insert => row.chain(values).chain(time).collect(),
            _ => time.into_iter().chain(values).chain(row).collect(),
        };
        self.may_have_changed = true;
        let done = self.execute_on(shared, operation, &cells).await?;
        match shared.texts.conditions {
            Conditions::None => Ok(true),
            Conditions::Lwt => is_applied(done),
        }
    }

    /// Prepares a statement for fields that no session of the workload was expected to ask for.
    async fn prepare(&mut self, shared: &Shared, operation: &Operation) -> Result<(), Refusal> {
        let place = (operation.verb, fields_of(operation));
        if self.statements.contains_key(&place) {
            return Ok(());
        }
        let text = shared.texts.of_operation(place.0, place.1, &shared.fields);
        let prepared = Box::pin(statements::prepare(&shared.levels, &shared.session, text, operation.verb)).await;
        let mut statement = prepared.map_err(|error| Refusal::refused(words::of_prepare(&error)))?;
        statement.set_load_balancing_policy(self.coordinator.clone());
        self.statements.insert(place, statement);
        Ok(())
    }

    async fn execute_on(
        &self,
        shared: &Shared,
        operation: &Operation,
        cells: &[Cell<'_>],
    ) -> Result<QueryResult, Refusal> {
        let statement: Option<&PreparedStatement> = self.statements.get(&(operation.verb, fields_of(operation)));
        let statement = statement.ok_or_else(|| Refusal::refused("the statement is not prepared"))?;
        Ok(shared.session.execute_unpaged(statement, cells).await?)
    }
}

/// The fields that a statement names. A delete removes all of them, and names none.
fn fields_of(operation: &Operation) -> u64 {
    if operation.verb == Verb::Delete { 0 } else { operation.fields }
}

/// Whether a lightweight transaction has found its condition true: the first column of its answer.
pub fn is_applied(done: QueryResult) -> Result<bool, Refusal> {
    let lost = |message: String| Refusal { fate: crate::stores::Fate::Lost, message };
    let rows = done.into_rows_result().map_err(|error| lost(error.to_string()))?;
    let mut applied = None;
    each_row(&rows, |cells| {
        applied = cells.next().transpose()?.flatten().map(|byte| byte == [1]);
        Ok(())
    })
    .map_err(lost)?;
    applied.ok_or_else(|| lost("the server does not say whether it has applied the write".to_string()))
}

impl Connection<Kv> for CassandraConnection {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        self.may_have_changed = false;
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(operation, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, self.may_have_changed)))
    }
}
