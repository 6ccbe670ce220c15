//! The statements of operations on a connection to a relational database.

use std::sync::Arc;

use schemas::vocabulary::Request as _;
use schemas::vocabulary::sql::{Request, Rows, Sql};

use super::super::engine::{Canonical, Client, Engine};
use super::super::perform::{Attempts, Refusal};
use super::statements::Statements;
use crate::stores::{Answer, Fate};

/// The operations of a trace set.
pub struct Actions {
    statements: Arc<Statements>,
    /// Whether the rows that statements return are logged.
    log_results: bool,
    /// Whether a transaction has the write lock of the whole database from its beginning, where there are no
    /// locks of rows.
    has_locking_reads: bool,
    rows: Rows,
}

impl Actions {
    /// Operations on the tables of a trace set.
    pub fn new(statements: Arc<Statements>, log_results: bool, has_locking_reads: bool) -> Actions {
        Actions { statements, log_results, has_locking_reads, rows: Rows::default() }
    }
}

impl<E: Engine> Attempts<Sql, E> for Actions {
    fn begin(&self) -> &'static str {
        match self.has_locking_reads && E::DIALECT.for_update.is_empty() {
            true => E::DIALECT.begin,
            false => E::DIALECT.begin_lazily,
        }
    }

    async fn attempt(
        &mut self,
        client: &mut E::Client,
        request: &Request,
        _is_inside: bool,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let operation = request.operation();
        let Some(statement) = self.statements.get(operation.statement) else {
            let message = format!("statement {} does not exist", operation.statement);
            return Err(Refusal::usable(Fate::Refused, message));
        };
        let rows = &mut self.rows;
        rows.begin(statement.is_ordered, self.log_results || operation.is_kept);
        let text = statement.text.clone();
        let mut take = |row: &<E::Client as Client>::Row| {
            row.add_to(rows)?;
            rows.end_row();
            Ok(())
        };
        let done = client.statement(text, &statement.parameters, request.parameters(), &mut take).await;
        let changed = done.map_err(Refusal::of::<E>)?;
        let changed = if statement.is_upsert_of_a_row { changed.min(1) } else { changed };
        match operation.verb.reads() {
            true => self.rows.finish(&mut answer.values),
            false => answer.values.push(i64::try_from(changed).unwrap_or(i64::MAX)),
        }
        Ok(())
    }
}
