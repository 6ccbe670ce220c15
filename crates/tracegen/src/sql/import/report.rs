//! The report of an import: what was taken, and what was not and why.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use schemas::words::plural;
use serde::Serialize;

use super::sessions::Taken;
use super::tally::Refused;

/// What an import took of its logs.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Entries of the logs.
    pub entries: u64,
    /// Sessions that executed something.
    pub sessions: u64,
    /// Transactions, with the statements without BEGIN.
    pub transactions: u64,
    /// Statements.
    pub statements: u64,
    /// Statements that failed.
    pub failed: u64,
    /// Different statements.
    pub distinct: u64,
    /// From the first statement to the last, in microseconds.
    pub span_us: u64,
    /// Entries and statements that were not taken, by reason.
    pub not_taken: Vec<Refused>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Report {
    pub(super) fn new(taken: &Taken, entries: u64, distinct: u64, not_taken: Vec<Refused>) -> Report {
        let mut notes = Vec::new();
        if taken.left_open > 0 {
            let count = plural(taken.left_open, "transaction");
            notes.push(format!("{count} had no end in the logs; the replay aborts them"));
        }
        Report {
            entries,
            sessions: taken.sessions,
            transactions: taken.transactions,
            statements: taken.statements,
            failed: taken.failed,
            distinct,
            span_us: taken.last_us.abs_diff(taken.first_us),
            not_taken,
            notes,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "taken: {} ({} different, {} failed) in {} of {}, over {:.3} s",
            plural(self.statements, "statement"),
            self.distinct,
            self.failed,
            plural(self.transactions, "transaction"),
            plural(self.sessions, "session"),
            self.span_us as f64 / 1e6
        )?;
        if self.not_taken.is_empty() {
            writeln!(f, "not taken: nothing")?;
        } else {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).set_header(["not taken", "count", "first at", "example"]);
            for refused in &self.not_taken {
                let count = refused.count.to_string();
                table.add_row([refused.reason, &count, &refused.place, &refused.example]);
            }
            if let Some(column) = table.column_mut(1) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            for line in table.lines() {
                writeln!(f, "{}", line.trim_end())?;
            }
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
