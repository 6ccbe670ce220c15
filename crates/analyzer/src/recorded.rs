//! `encore analyze compare --recorded`: a replay beside the log that its trace set was imported from. By statement: how
//! long it took then and now, and how often it failed.

use std::fmt;

use duckdb::types::Value;
use schemas::vocabulary::Vocabulary;
use schemas::vocabulary::sql::Sql;
use schemas::words::{plural, thousands};
use schemas::workload::sql::recorded::RECORDED;
use serde::Serialize;

use crate::error::AnalyzeError;
use crate::results::{Side, texts};
use crate::sql::{Database, literal_pattern, quoted};
use crate::tables::new_table;

/// So many statements are shown; `--json` has all.
const SHOWN: usize = 20;

/// A replay beside the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Comparison {
    /// Statements that were executed.
    statements: u64,
    /// Those that failed in the log alone or in the replay alone.
    other_outcome: u64,
    /// Statements of the log that the replay did not execute: it ended before, or they needed the result of one that
    /// failed.
    not_executed: u64,
    /// By statement: those with such executions first, then the most frequent.
    by_statement: Vec<OfStatement>,
}

/// The executions of a statement. Times are in microseconds; a log may have none.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OfStatement {
    statement: u64,
    text: String,
    executed: u64,
    recorded_failed: u64,
    replayed_failed: u64,
    other_outcome: u64,
    recorded_p50_us: Option<u64>,
    replayed_p50_us: Option<u64>,
    recorded_p99_us: Option<u64>,
    replayed_p99_us: Option<u64>,
}

impl Comparison {
    /// Whether each statement of the log was executed, and ended as it did there.
    pub(crate) fn is_equal(&self) -> bool {
        self.other_outcome == 0 && self.not_executed == 0 && self.statements > 0
    }

    /// Compares a run with the log.
    pub(crate) fn of(side: &Side) -> Result<Comparison, AnalyzeError> {
        let trace = &side.document.trace;
        let folder = trace.join(RECORDED);
        if side.document.spec.family()?.vocabulary() != Sql::NAME || !folder.is_dir() {
            let why = match trace.is_dir() {
                true => format!("{} was not imported from the log of a database", trace.display()),
                false => format!("its trace set is not at {} any more; put it there", trace.display()),
            };
            return Err(AnalyzeError::NoRecord { why: format!("{}: {why}", side.name) });
        }
        // These are the analyzer's own statements, so the database may read both folders.
        let database = Database::unlocked(&side.run, &side.verdicts, None)?;
        let files = format!("{}/*.parquet", literal_pattern(&folder));
        let definitions = include_str!("recorded.sql")
            .replace("{experiment}", &side.experiment.to_string())
            .replace("{files}", &quoted(&files));
        database.execute(&definitions)?;
        let texts = texts(trace);
        let rows = database.run("FROM beside_log_by_statement", &[])?.rows;
        let by_statement: Vec<OfStatement> = rows.iter().map(|row| OfStatement::read(row, &texts)).collect();
        let in_log = database.run("SELECT count(*)::BIGINT FROM recorded", &[])?.rows;
        let in_log = in_log.first().map_or(0, |row| number(row, 0).unwrap_or_default());
        let statements = by_statement.iter().map(|one| one.executed).sum();
        Ok(Comparison {
            statements,
            not_executed: in_log.saturating_sub(statements),
            other_outcome: by_statement.iter().map(|one| one.other_outcome).sum(),
            by_statement,
        })
    }
}

/// A number of a row; None for NULL.
fn number(row: &[Value], column: usize) -> Option<u64> {
    match row.get(column) {
        Some(Value::BigInt(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

impl OfStatement {
    fn read(row: &[Value], texts: &[String]) -> OfStatement {
        let number = |column: usize| number(row, column);
        let count = |column: usize| number(column).unwrap_or_default();
        OfStatement {
            statement: count(0),
            text: texts.get(count(0) as usize).cloned().unwrap_or_default(),
            executed: count(1),
            recorded_failed: count(2),
            replayed_failed: count(3),
            other_outcome: count(4),
            recorded_p50_us: number(5),
            replayed_p50_us: number(6),
            recorded_p99_us: number(7),
            replayed_p99_us: number(8),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} executed, {} of the log not executed; {} failed in the log or in the replay alone\n",
            plural(self.statements, "statement"),
            thousands(self.not_executed),
            thousands(self.other_outcome)
        )?;
        let columns = [
            "statement",
            "executed",
            "failed in the log",
            "failed now",
            "p50 µs in the log",
            "now",
            "p99 µs in the log",
            "now",
            "text",
        ];
        let mut table = new_table(&columns, 8);
        let us = |number: Option<u64>| number.map_or("-".to_string(), thousands);
        for one in self.by_statement.iter().take(SHOWN) {
            let counts = [one.statement, one.executed, one.recorded_failed, one.replayed_failed].map(thousands);
            let times = [one.recorded_p50_us, one.replayed_p50_us, one.recorded_p99_us, one.replayed_p99_us].map(us);
            let short: String = one.text.chars().take(60).collect();
            table.add_row(counts.into_iter().chain(times).chain([short]));
        }
        writeln!(f, "{}", table.trim_fmt())?;
        match self.by_statement.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "\nand {}; --json has all", plural(more as u64, "more statement")),
        }
    }
}
