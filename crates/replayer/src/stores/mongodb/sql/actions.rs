//! Executes the plans of statements on a thread's connection.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, TryStreamExt};
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mongodb::error::Error;
use mongodb::raw_batch_cursor::RawBatch;
use mongodb::{ClientSession, Collection, Database};
use schemas::vocabulary::Request as _;
use schemas::vocabulary::sql::physical::{
    Aggregate, Change, Computed, Condition, Datum, Find, Group, Insert, Kind, Mapping, Plan, Remove, Table, Term,
    Update,
};
use schemas::vocabulary::sql::{Request, Rows, Sql};

use super::documents::document;
use super::expression;
use super::values::{add, filter};
use crate::stores::mongodb::retry::{Pause, Refusal};
use crate::stores::mongodb::transaction::Transaction;
use crate::stores::{Answer, Connection, Fate, OperationError};

/// All documents in one reply, as far as they fit.
const AT_ONCE: u32 = i32::MAX as u32;

/// What the connections of a worker share.
pub struct Shared {
    database: Database,
    mapping: Mapping,
    collections: Vec<Collection<RawDocumentBuf>>,
    /// Whether the order of rows counts, by statement.
    ordered: Vec<bool>,
    log_results: bool,
    timeout: Duration,
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal::refused(why)
    }
}

/// A command in the session of a transaction, or by itself.
macro_rules! sent {
    ($command:expr, $session:expr) => {{
        let command = $command;
        match $session.as_deref_mut() {
            Some(session) => command.session(session).await,
            None => command.await,
        }
    }};
}

impl Shared {
    /// For a mapping in a worker's database.
    pub(super) fn new(
        database: &Database,
        mapping: Mapping,
        ordered: Vec<bool>,
        log_results: bool,
        timeout: Duration,
    ) -> Shared {
        let collections = mapping.collections.iter().map(|collection| database.collection(&collection.name)).collect();
        Shared { database: database.clone(), mapping, collections, ordered, log_results, timeout }
    }

    fn plan(&self, statement: u32) -> Result<&Plan, Refusal> {
        match self.mapping.plans.get(statement as usize) {
            Some(Ok(plan)) => Ok(plan),
            Some(Err(why)) => Err(Refusal::refused(format!("statement {statement} {why}"))),
            None => Err(Refusal::refused(format!("statement {statement} does not exist"))),
        }
    }

    fn table(&self, collection: usize) -> &Table {
        &self.mapping.tables.0[self.mapping.collections[collection].table]
    }

    /// Executes a statement.
    async fn perform(
        &self,
        request: &Request,
        rows: &mut Rows,
        session: Option<&mut ClientSession>,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let operation = request.operation();
        let parameters: Vec<Datum> = request.values().map(Datum::of).collect();
        let is_ordered = self.ordered.get(operation.statement as usize).copied().unwrap_or_default();
        rows.begin(is_ordered, self.log_results || operation.is_kept);
        let changed = match self.plan(operation.statement)? {
            Plan::Find(find) => {
                self.find(find, &parameters, rows, session).await?;
                None
            }
            Plan::Group(group) => {
                self.group(group, &parameters, rows, session).await?;
                None
            }
            Plan::Insert(insert) => Some(self.insert(insert, &parameters, session).await?),
            Plan::Update(update) => Some(self.update(update, &parameters, session).await?),
            Plan::Remove(remove) => Some(self.remove(remove, &parameters, session).await?),
        };
        match changed {
            None => rows.finish(&mut answer.values),
            Some(changed) => answer.values.push(i64::try_from(changed).unwrap_or(i64::MAX)),
        }
        Ok(())
    }

    async fn find(
        &self,
        find: &Find,
        parameters: &[Datum],
        rows: &mut Rows,
        session: Option<&mut ClientSession>,
    ) -> Result<(), Refusal> {
        let table = self.table(find.collection);
        let Some(filter) = filter(&find.conditions, table, parameters)? else { return Ok(()) };
        let is_by_id = filter.contains_key("_id");
        let (limit, offset) = (count(&find.limit, parameters)?, count(&find.offset, parameters)?);
        if limit == Some(0) {
            return Ok(());
        }
        let mut command = self.collections[find.collection].find(filter).batch_size(AT_ONCE);
        // With a negative limit the server keeps no cursor.
        match limit {
            Some(limit) => command = command.limit(i64::try_from(limit).unwrap_or(i64::MAX)),
            None if is_by_id => command = command.limit(-1),
            None => {}
        }
        if let Some(offset) = offset {
            command = command.skip(offset);
        }
        if !find.order.is_empty() {
            let key = |(column, descends): &(usize, bool)| {
                (table.columns[*column].name.clone(), Bson::Int32(if *descends { -1 } else { 1 }))
            };
            command = command.sort(find.order.iter().map(key).collect::<Document>());
        }
        if find.columns.len() < self.mapping.collections[find.collection].columns.len() {
            let mut shape = doc! { "_id": 0 };
            shape.extend(find.columns.iter().map(|column| (table.columns[*column].name.clone(), Bson::Int32(1))));
            command = command.projection(shape);
        }
        match session {
            None => take_all(command.batch().await?, &find.columns, table, rows).await,
            Some(session) => {
                let mut batches = command.session(&mut *session).batch().await?;
                take_all(batches.stream(session), &find.columns, table, rows).await
            }
        }
    }

    async fn group(
        &self,
        group: &Group,
        parameters: &[Datum],
        rows: &mut Rows,
        session: Option<&mut ClientSession>,
    ) -> Result<(), Refusal> {
        let table = self.table(group.collection);
        let found = match filter(&group.conditions, table, parameters)? {
            None => None,
            Some(filter) => {
                let mut pipeline = vec![doc! { "$match": filter }, doc! { "$group": accumulators(group, table) }];
                pipeline.extend(rounds(group));
                let command = self.collections[group.collection].aggregate(pipeline);
                match session {
                    None => command.await?.try_next().await?,
                    Some(session) => command.session(&mut *session).await?.next(session).await.transpose()?,
                }
            }
        };
        let found = found.map(|found| RawDocumentBuf::try_from(&found)).transpose().map_err(Error::from)?;
        let value = |name: String| found.as_ref().and_then(|found| found.get(name).ok().flatten());
        for (at, Computed { aggregate, .. }) in group.aggregates.iter().enumerate() {
            let is_empty = matches!(value(format!("n{at}")), Some(RawBsonRef::Int32(0) | RawBsonRef::Int64(0)));
            let own = value(format!("a{at}"));
            match aggregate {
                Aggregate::Count | Aggregate::CountOf(_) => {
                    add(rows, own.or(Some(RawBsonRef::Int64(0))), Kind::Integer)?;
                }
                // A sum of no values is NULL.
                Aggregate::Sum(column) => add(rows, own.filter(|_| !is_empty), table.columns[*column].kind)?,
                Aggregate::Least(column) | Aggregate::Greatest(column) => add(rows, own, table.columns[*column].kind)?,
            }
        }
        rows.end_row();
        Ok(())
    }

    /// Adds rows; returns how many.
    async fn insert(
        &self,
        insert: &Insert,
        parameters: &[Datum],
        mut session: Option<&mut ClientSession>,
    ) -> Result<u64, Refusal> {
        let table = &self.mapping.tables.0[insert.table];
        let rows = insert.rows(table, parameters)?;
        for at in &insert.collections {
            let documents = rows.iter().map(|row| {
                let document = document(&self.mapping.collections[*at], table, row)?;
                RawDocumentBuf::try_from(&document).map_err(|error| error.to_string())
            });
            let documents = documents.collect::<Result<Vec<_>, String>>()?;
            match &documents[..] {
                [one] => {
                    sent!(self.collections[*at].insert_one(one), session)?;
                }
                all => {
                    sent!(self.collections[*at].insert_many(all), session)?;
                }
            }
        }
        Ok(rows.len() as u64)
    }

    /// Changes rows; returns how many it has found.
    async fn update(
        &self,
        update: &Update,
        parameters: &[Datum],
        mut session: Option<&mut ClientSession>,
    ) -> Result<u64, Refusal> {
        let mut found = None;
        for Change { collection, set } in &update.changes {
            let table = self.table(*collection);
            let Some(filter) = filter(&update.conditions, table, parameters)? else { return Ok(0) };
            let change = expression::update(set, table, parameters)?;
            let documents = &self.collections[*collection];
            let done = match update.is_of_one {
                true => sent!(documents.update_one(filter, change), session)?,
                false => sent!(documents.update_many(filter, change), session)?,
            };
            if *found.get_or_insert(done.matched_count) == 0 {
                break;
            }
        }
        Ok(found.unwrap_or(0))
    }

    /// Removes rows; returns how many.
    async fn remove(
        &self,
        remove: &Remove,
        parameters: &[Datum],
        mut session: Option<&mut ClientSession>,
    ) -> Result<u64, Refusal> {
        let mut found = None;
        for at in &remove.collections {
            let conditions: &[Condition] = &remove.conditions;
            let Some(filter) = filter(conditions, self.table(*at), parameters)? else { return Ok(0) };
            let done = match remove.is_of_one {
                true => sent!(self.collections[*at].delete_one(filter), session)?,
                false => sent!(self.collections[*at].delete_many(filter), session)?,
            };
            if *found.get_or_insert(done.deleted_count) == 0 {
                break;
            }
        }
        Ok(found.unwrap_or(0))
    }
}

/// A number of rows.
fn count(term: &Option<Term>, parameters: &[Datum]) -> Result<Option<u64>, Refusal> {
    let Some(term) = term else { return Ok(None) };
    match term.value(parameters)? {
        Datum::Null => Ok(None),
        Datum::Integer(number) if number >= 0 => Ok(Some(number as u64)),
        other => Err(Refusal::refused(format!("{other:?} is no number of rows"))),
    }
}

/// What the server computes: `aN` for each aggregate, and `nN` for the number of values that a sum has.
fn accumulators(group: &Group, table: &Table) -> Document {
    let mut all = doc! { "_id": Bson::Null };
    for (at, Computed { aggregate, .. }) in group.aggregates.iter().enumerate() {
        let field = aggregate.column().map(|column| format!("${}", table.columns[column].name)).unwrap_or_default();
        let some = doc! { "$sum": { "$cond": [{ "$gt": [&field, Bson::Null] }, 1, 0] } };
        let own = match aggregate {
            Aggregate::Count => doc! { "$sum": 1 },
            Aggregate::CountOf(_) => some,
            Aggregate::Sum(_) => {
                all.insert(format!("n{at}"), some);
                doc! { "$sum": field }
            }
            Aggregate::Least(_) => doc! { "$min": field },
            Aggregate::Greatest(_) => doc! { "$max": field },
        };
        all.insert(format!("a{at}"), own);
    }
    all
}

/// The stage that rounds what the server has computed, if something is rounded.
fn rounds(group: &Group) -> Option<Document> {
    let all = group.aggregates.iter().enumerate().filter_map(|(at, one)| {
        let digits = one.digits?;
        Some((format!("a{at}"), expression::rounded(Bson::String(format!("$a{at}")), digits)))
    });
    let fields: Document = all.collect();
    (!fields.is_empty()).then(|| doc! { "$addFields": fields })
}

async fn take_all(
    mut batches: impl Stream<Item = Result<RawBatch, Error>> + Unpin,
    columns: &[usize],
    table: &Table,
    rows: &mut Rows,
) -> Result<(), Refusal> {
    while let Some(batch) = batches.try_next().await? {
        for document in batch.doc_slices()? {
            let document = document?.as_document().ok_or_else(|| Refusal::refused("unexpected reply: no document"))?;
            take(document, columns, table, rows)?;
        }
    }
    Ok(())
}

fn take(document: &RawDocument, columns: &[usize], table: &Table, rows: &mut Rows) -> Result<(), Refusal> {
    for column in columns {
        let column = &table.columns[*column];
        add(rows, document.get(&column.name)?, column.kind)?;
    }
    rows.end_row();
    Ok(())
}

/// A thread's connection.
pub struct SqlActions {
    shared: Arc<Shared>,
    transaction: Transaction,
    rows: Rows,
}

impl SqlActions {
    /// With what its worker's connections share.
    pub(super) fn new(shared: Arc<Shared>) -> SqlActions {
        SqlActions { shared, transaction: Transaction::None, rows: Rows::default() }
    }

    /// A statement by itself. It is tried again if the server rolls it back because of others.
    async fn perform(&mut self, request: &Request, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        let writes = shared.plan(request.operation().statement).map_or(0, Plan::writes);
        let mut pause = Pause::default();
        loop {
            if writes > 1 {
                match self.perform_together(request, answer).await {
                    Err(OperationError::Aborted(message)) => {
                        let refusal = Refusal { fate: Fate::RolledBack, message };
                        pause.before_another_try(refusal, answer).await?;
                    }
                    done => return done,
                }
                continue;
            }
            match shared.perform(request, &mut self.rows, None, answer).await {
                Ok(()) => return Ok(()),
                Err(refusal) if writes == 0 => return Err(OperationError::Failed(refusal.message)),
                Err(refusal) => pause.before_another_try(refusal, answer).await?,
            }
        }
    }

    /// A statement that writes to several collections, as a transaction.
    async fn perform_together(&mut self, request: &Request, answer: &mut Answer) -> Result<(), OperationError> {
        let most = self.shared.timeout;
        let mut own = Transaction::None;
        own.begin(&self.shared.database, most).await?;
        let (mut session, _) = own.take()?;
        match self.shared.perform(request, &mut self.rows, Some(&mut session), answer).await {
            Ok(()) => {
                own.go_on(session, None);
                own.commit(most).await
            }
            Err(refusal) => {
                let error = own.refused(session, refusal, most).await;
                own.abort(most).await;
                Err(error)
            }
        }
    }

    async fn perform_inside(&mut self, request: &Request, answer: &mut Answer) -> Result<(), OperationError> {
        let (mut session, failed) = self.transaction.take()?;
        let most = self.shared.timeout;
        let done = self.shared.perform(request, &mut self.rows, Some(&mut session), answer);
        let refusal = match tokio::time::timeout(most, done).await {
            Ok(Ok(())) => {
                self.transaction.go_on(session, failed);
                return Ok(());
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => Refusal { fate: Fate::Lost, message: format!("timed out after {} ms", most.as_millis()) },
        };
        Err(self.transaction.refused(session, refusal, most).await)
    }
}

impl Connection<Sql> for SqlActions {
    async fn execute(&mut self, request: &Request, answer: &mut Answer) -> Result<(), OperationError> {
        if self.transaction.is_under_way() {
            return self.perform_inside(request, answer).await;
        }
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(request, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, request.operation().verb.writes())))
    }

    async fn begin(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.transaction.begin(&self.shared.database, self.shared.timeout).await
    }

    async fn commit(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.transaction.commit(self.shared.timeout).await
    }

    async fn abort(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.transaction.abort(self.shared.timeout).await;
        Ok(())
    }
}
