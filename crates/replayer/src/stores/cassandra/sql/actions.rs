//! Executes the plans of statements on a thread's part of its worker's session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use schemas::vocabulary::Request as _;
use schemas::vocabulary::sql::physical::Datum;
use schemas::vocabulary::sql::physical::wide::{Cql, Plan, Read, WideMapping, Write};
use schemas::vocabulary::sql::{Request, Rows, Sql};
use scylla::client::session::Session;
use scylla::policies::load_balancing::LoadBalancingPolicy;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use super::super::cells::each_row;
use super::super::connection::is_applied;
use super::super::level::{Level, Use};
use super::super::{Cassandra, Conditions, words};
use super::Mapped;
use super::values::{Bind, add, bound, whole};
use crate::source::Source;
use crate::stores::link::Refusal;
use crate::stores::{Answer, Connection, Fate, OperationError, StoreError};

/// The node that coordinates the statements of a thread, if it is always the same.
type Coordinator = Arc<dyn LoadBalancingPolicy>;

/// What the threads of a worker share.
pub struct Shared {
    session: Session,
    mapping: WideMapping,
    /// Whether the order of rows counts, by statement.
    ordered: Vec<bool>,
    log_results: bool,
    conditions: Conditions,
    write_level: Level,
    timeout: Duration,
}

/// The prepared statements of a plan, by row and table.
#[derive(Clone, Default)]
pub struct Ready(Vec<Vec<PreparedStatement>>);

impl Ready {
    /// The same at a node.
    pub(super) fn at(&self, coordinator: Option<&Coordinator>) -> Ready {
        let mut own = self.clone();
        for statement in own.0.iter_mut().flatten() {
            statement.set_load_balancing_policy(coordinator.cloned());
        }
        own
    }
}

/// Prepares all statements that have a plan.
pub(super) async fn prepare(store: &Cassandra, session: &Session, mapped: &Mapped) -> Result<Vec<Ready>, StoreError> {
    let mut known: HashMap<String, PreparedStatement> = HashMap::new();
    let mut all = Vec::new();
    for plan in &mapped.mapping.plans {
        let (texts, level) = match plan {
            Err(_) => (Vec::new(), store.read_level),
            Ok(Plan::Read(read)) => (vec![vec![read.cql.text.clone()]], store.read_level),
            Ok(Plan::Write(write)) => {
                (write.rows.iter().map(|row| texts(row, write, store.conditions)).collect(), store.write_level)
            }
        };
        let mut ready = Ready::default();
        for row in texts {
            let mut prepared = Vec::new();
            for text in row {
                if !known.contains_key(&text) {
                    let made = session.prepare(text.clone()).await;
                    let mut made = made.map_err(|error| store.with_advice(words::of_prepare(&error)))?;
                    made.set_consistency(level.consistency());
                    made.set_serial_consistency(Some(store.write_level.of_conditions()));
                    known.insert(text.clone(), made);
                }
                prepared.extend(known.get(&text).cloned());
            }
            ready.0.push(prepared);
        }
        all.push(ready);
    }
    Ok(all)
}

/// The texts for a row. With conditions the one on the whole table is a lightweight transaction.
fn texts(row: &[Cql], write: &Write, conditions: Conditions) -> Vec<String> {
    let text = |(number, cql): (usize, &Cql)| match conditions {
        Conditions::Lwt if number == 0 => format!("{}{}", cql.text, write.only),
        Conditions::Lwt | Conditions::None => cql.text.clone(),
    };
    row.iter().enumerate().map(text).collect()
}

impl Shared {
    /// For a mapping, on a session.
    pub(super) fn new(store: &Cassandra, session: Session, mapped: Mapped, source: &Source) -> Shared {
        Shared {
            session,
            ordered: mapped.described.statements.iter().map(|statement| statement.ordered).collect(),
            mapping: mapped.mapping,
            log_results: source.sql().log_results,
            conditions: store.conditions,
            write_level: store.write_level,
            timeout: store.timeout,
        }
    }
}

/// A thread's part of its worker's session.
pub struct SqlConnection {
    shared: Arc<Shared>,
    ready: Vec<Ready>,
    coordinator: Option<Coordinator>,
    rows: Rows,
    /// Whether a write may have been sent.
    may_have_changed: bool,
}

/// What has been refused for the data that a statement has, before anything was sent.
fn refused(why: String) -> Refusal {
    Refusal::refused(why)
}

/// The consistency level that a trace set gives a statement, as its only custom parameter. None if it gives none. The error
/// says why it cannot be used.
pub(super) fn own_level<'a>(mut custom: impl Iterator<Item = &'a str>, plan: &Plan) -> Result<Option<Level>, String> {
    let Some(name) = custom.next() else { return Ok(None) };
    if custom.next().is_some() {
        return Err("has several custom parameters, and Cassandra takes one, a consistency level".into());
    }
    let used_for = match plan {
        Plan::Read(_) => Use::Reads,
        Plan::Write(_) => Use::Writes,
    };
    Level::named(name, used_for).map(Some).map_err(|why| format!("has a custom parameter that is no level: {why}"))
}

/// A statement at another level.
fn at_level(prepared: &PreparedStatement, level: Level) -> PreparedStatement {
    let mut own = prepared.clone();
    own.set_consistency(level.consistency());
    own
}

impl SqlConnection {
    /// With what its worker's connections share.
    pub(super) fn new(shared: Arc<Shared>, ready: Vec<Ready>, coordinator: Option<Coordinator>) -> SqlConnection {
        SqlConnection { shared, ready, coordinator, rows: Rows::default(), may_have_changed: false }
    }

    async fn perform(&mut self, request: &Request, answer: &mut Answer) -> Result<(), Refusal> {
        let operation = request.operation();
        let number = operation.statement as usize;
        let shared = self.shared.clone();
        let parameters: Vec<Datum> = request.values().map(Datum::of).collect();
        let is_ordered = shared.ordered.get(number).copied().unwrap_or_default();
        let plan = shared.mapping.plans.get(number);
        let level = match plan {
            Some(Ok(plan)) => own_level(request.custom(), plan).map_err(refused)?,
            _ => None,
        };
        match plan {
            Some(Ok(Plan::Read(read))) => {
                self.rows.begin(is_ordered, shared.log_results || operation.is_kept);
                self.read(&shared, number, read, &parameters, level).await?;
                self.rows.finish(&mut answer.values);
            }
            Some(Ok(Plan::Write(write))) => {
                let changed = self.write(&shared, number, write, &parameters, level).await?;
                answer.values.push(changed);
            }
            Some(Err(why)) => return Err(refused(format!("statement {number} {why}"))),
            None => return Err(refused(format!("statement {number} does not exist"))),
        }
        Ok(())
    }

    async fn read(
        &mut self,
        shared: &Shared,
        number: usize,
        read: &Read,
        parameters: &[Datum],
        level: Option<Level>,
    ) -> Result<(), Refusal> {
        let prepared = self.ready.get(number).and_then(|ready| ready.0.first()?.first());
        let prepared = prepared.ok_or_else(|| refused("the statement is not prepared".into()))?;
        let own = level.map(|level| at_level(prepared, level));
        let prepared = own.as_ref().unwrap_or(prepared);
        let Some(values) = bound(&read.cql, parameters).map_err(refused)? else {
            return self.nothing(read);
        };
        let found = shared.session.execute_unpaged(prepared, &values[..]).await?;
        let found = found.into_rows_result().map_err(Refusal::refused)?;
        let rows = &mut self.rows;
        let mut cells: Vec<Option<&[u8]>> = Vec::new();
        let seen = each_row(&found, |all| {
            cells.clear();
            for cell in all {
                cells.push(cell?);
            }
            for (place, one) in read.returns.iter().enumerate() {
                let is_none =
                    one.unless_none.is_some_and(|count| whole(cells.get(count).copied().flatten()) == Some(0));
                let cell = cells.get(place).copied().flatten().filter(|_| !is_none);
                add(rows, cell, one.kind)?;
            }
            rows.end_row();
            Ok(())
        });
        seen.map_err(Refusal::refused)
    }

    /// What a query returns that compares with NULL, which no row fulfils.
    fn nothing(&mut self, read: &Read) -> Result<(), Refusal> {
        if read.is_aggregate {
            for one in &read.returns {
                let zero = one.is_count.then_some(&[0; 8][..]);
                add(&mut self.rows, zero, one.kind).map_err(Refusal::refused)?;
            }
            self.rows.end_row();
        }
        Ok(())
    }

    /// Changes rows; returns how many.
    async fn write(
        &mut self,
        shared: &Shared,
        number: usize,
        write: &Write,
        parameters: &[Datum],
        level: Option<Level>,
    ) -> Result<i64, Refusal> {
        let mut ready = self.ready.get(number).cloned().unwrap_or_default();
        if let Some(level) = level {
            ready.0.iter_mut().flatten().for_each(|prepared| *prepared = at_level(prepared, level));
        }
        let mut changed = 0;
        for (row, prepared) in write.rows.iter().zip(&ready.0) {
            let mut sent: Vec<(&PreparedStatement, Vec<Bind>)> = Vec::with_capacity(row.len());
            let mut is_nowhere = false;
            for (place, (cql, prepared)) in row.iter().zip(prepared).enumerate() {
                match bound(cql, parameters).map_err(refused)? {
                    Some(values) => sent.push((prepared, values)),
                    // A row without a value for an access path is never found by it.
                    None if place > 0 => {}
                    None if write.is_insert() => return Err(refused("a column of the primary key is NULL".into())),
                    None => is_nowhere = true,
                }
            }
            if is_nowhere || sent.is_empty() {
                continue;
            }
            self.may_have_changed = true;
            if shared.conditions == Conditions::Lwt {
                let (prepared, values) = sent.remove(0);
                let done = shared.session.execute_unpaged(prepared, &values[..]).await?;
                if !is_applied(done)? {
                    match write.is_insert() {
                        true => return Err(refused("there is a row with this primary key already".into())),
                        false => continue,
                    }
                }
            }
            self.send(shared, sent, level.unwrap_or(shared.write_level)).await?;
            changed += 1;
        }
        Ok(changed)
    }

    /// Sends changes of one row, together.
    async fn send(
        &self,
        shared: &Shared,
        mut sent: Vec<(&PreparedStatement, Vec<Bind>)>,
        level: Level,
    ) -> Result<(), Refusal> {
        if sent.len() < 2 {
            if let Some((prepared, values)) = sent.pop() {
                shared.session.execute_unpaged(prepared, &values[..]).await?;
            }
            return Ok(());
        }
        let mut batch = Batch::new(BatchType::Logged);
        batch.set_consistency(level.consistency());
        batch.set_load_balancing_policy(self.coordinator.clone());
        let mut values = Vec::with_capacity(sent.len());
        for (prepared, own) in sent {
            batch.append_statement(prepared.clone());
            values.push(own);
        }
        shared.session.batch(&batch, &values).await?;
        Ok(())
    }
}

impl Connection<Sql> for SqlConnection {
    async fn execute(&mut self, request: &Request, answer: &mut Answer) -> Result<(), OperationError> {
        self.may_have_changed = false;
        let most = self.shared.timeout;
        match tokio::time::timeout(most, self.perform(request, answer)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Refusal { fate: Fate::Lost, message })) if self.may_have_changed => {
                Err(OperationError::Unknown(message))
            }
            Ok(Err(refusal)) => Err(OperationError::Failed(refusal.message)),
            Err(_) => Err(OperationError::timed_out(most, self.may_have_changed)),
        }
    }
}
