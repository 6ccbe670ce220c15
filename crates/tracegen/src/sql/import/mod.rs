//! Imports logs of databases: their statements as transactions of sessions, with the times of the log.
//!
//! A log is read once, from its beginning. Statements that differ in their values alone become one statement
//! with parameters. Memory is bounded by the sessions that are open and the statements that differ:
//! transactions that have ended are sorted in temporary files.

mod class;
mod error;
pub mod lexer;
mod lines;
pub mod mysql_general_log;
pub mod postgres_log;
mod report;
mod savepoints;
mod sessions;
mod spool;
mod statements;
mod syntax;
mod tally;
mod time;
mod trace_set;
mod transaction;
mod values;

pub use error::ImportError;
pub use lines::Lines;
pub use report::Report;
pub use sessions::Window;
pub use spool::Sorted;
pub use statements::{ParameterType, Statement};
pub use tally::{Place, Refused, Tally};
pub use time::{Clock, Limit, Time};
pub use trace_set::{SetOptions, write};
pub use transaction::{End, Step, Transaction};
pub use values::Value;

use sessions::Sessions;

/// What logs hold.
pub struct Imported {
    /// The statements; a transaction names them by their numbers.
    pub statements: Vec<Statement>,
    /// The transactions, by when they began.
    pub transactions: Sorted,
    /// What was taken, and what was not.
    pub report: Report,
}

impl Imported {
    /// What remains when all entries were read.
    fn of(sessions: Sessions, mut tally: Tally, entries: u64) -> Result<Imported, ImportError> {
        let (statements, transactions, taken) = sessions.finish(&mut tally)?;
        let report = Report::new(&taken, entries, statements.len() as u64, tally.refused());
        Ok(Imported { statements, transactions, report })
    }
}
