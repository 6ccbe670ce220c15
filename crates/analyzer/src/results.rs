//! `encore analyze compare --results`: what the statements of two runs of one trace set returned, operation by
//! operation.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use duckdb::types::Value;
use schemas::run::{RunDocument, RunFolder};
use schemas::verdict::Verdict;
use schemas::vocabulary::Vocabulary;
use schemas::vocabulary::sql::{Answered, Sql};
use schemas::words::{plural, thousands};
use serde::Serialize;

use crate::error::AnalyzeError;
use crate::sql::{Database, literal_pattern, quoted};
use crate::tables::new_table;
use crate::verify::verify;

/// So many differences are shown.
const SHOWN: usize = 10;

/// A run, and the experiment of it that is compared.
pub(crate) struct Side {
    pub(crate) name: String,
    pub(crate) run: RunFolder,
    pub(crate) document: RunDocument,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) experiment: u32,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Results {
    /// Operations that both runs have.
    compared: u64,
    /// Operations of which both runs returned the same.
    equal: u64,
    /// Operations that only one run has, since the other was shorter or longer.
    only_one: u64,
    /// By statement, those with differences.
    by_statement: Vec<OfStatement>,
    /// The first differences.
    first: Vec<Difference>,
}

/// The differences of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct OfStatement {
    statement: u64,
    text: String,
    compared: u64,
    /// One run has an error where the other has none.
    outcomes: u64,
    /// Numbers of rows differ.
    rows: u64,
    /// The numbers of rows are equal, and the rows differ.
    contents: u64,
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Difference {
    fragment: u64,
    session: u64,
    step: u64,
    statement: u64,
    first: String,
    second: String,
}

impl Results {
    /// Whether both runs returned the same. A statement that one of them alone ran is a difference, and nothing compared
    /// is no answer.
    pub(crate) fn are_equal(&self) -> bool {
        self.equal == self.compared && self.only_one == 0 && self.compared > 0
    }

    /// Compares two runs.
    pub(crate) fn of(first: &Side, second: &Side) -> Result<Results, AnalyzeError> {
        let (a, b) = (&first.document, &second.document);
        if a.spec.family()?.vocabulary() != Sql::NAME || a.spec.workload_id() != b.spec.workload_id() {
            return Err(AnalyzeError::NoResults { first: first.name.clone(), second: second.name.clone() });
        }
        // Both are the analyzer's own statements, so the database may read both folders.
        let database = Database::unlocked(&first.run, &first.verdicts, None)?;
        verify(&second.run, &second.verdicts)?;
        let files = second.run.root().join(format!("operations/experiment={}", second.experiment));
        let definitions = include_str!("results.sql")
            .replace("{first}", &first.experiment.to_string())
            .replace("{second}", &quoted(&pattern(files)));
        database.execute(&definitions)?;
        let texts = texts(&a.trace);
        let text = |statement: u64| texts.get(statement as usize).cloned().unwrap_or_default();
        let totals = numbers(&database, "SELECT compared, equal, only_one FROM totals")?;
        let [compared, equal, only_one] = totals.first().map_or([0; 3], |row| [row[0], row[1], row[2]]);
        let by_statement = numbers(&database, "FROM by_statement WHERE outcomes + rows + contents > 0 ORDER BY ALL")?;
        let by_statement = by_statement.iter().map(|row| OfStatement {
            statement: row[0],
            text: text(row[0]),
            compared: row[1],
            outcomes: row[2],
            rows: row[3],
            contents: row[4],
        });
        Ok(Results { compared, equal, only_one, by_statement: by_statement.collect(), first: differences(&database)? })
    }

    /// The differences as text.
    pub(crate) fn text(&self, first: &Side, second: &Side) -> String {
        let mut out = format!(
            "{} and {}: {} compared, {} returned the same",
            first.name,
            second.name,
            plural(self.compared, "statement"),
            thousands(self.equal)
        );
        // Writing to a text cannot fail.
        let _ = match self.only_one {
            0 => writeln!(out),
            only => writeln!(out, "; {} ran in one of the runs only", thousands(only)),
        };
        if self.by_statement.is_empty() {
            return out;
        }
        let mut table =
            new_table(&["statement", "compared", "other outcome", "other row count", "other rows", "text"], 5);
        for one in &self.by_statement {
            let short: String = one.text.chars().take(60).collect();
            let numbers = [one.statement, one.compared, one.outcomes, one.rows, one.contents].map(thousands);
            table.add_row(numbers.into_iter().chain([short]));
        }
        let _ = writeln!(out, "\n{}\n\nthe first differences:", table.trim_fmt());
        for one in &self.first {
            let Difference { fragment, session, step, statement, first, second } = one;
            let _ = writeln!(
                out,
                "  fragment {fragment} session {session} step {step} (statement {statement}): {first}; {second}"
            );
        }
        out
    }
}

/// The sealed tables of an experiment, as a pattern of DuckDB.
fn pattern(folder: PathBuf) -> String {
    format!("{}/*/*.parquet", literal_pattern(&folder))
}

/// The statements of a trace set. It may be elsewhere by now.
pub(crate) fn texts(trace: &Path) -> Vec<String> {
    let statements = schemas::vocabulary::sql::read_statements(trace).unwrap_or_default();
    statements.into_iter().map(|statement| statement.text).collect()
}

/// Rows of numbers.
fn numbers(database: &Database, statement: &str) -> Result<Vec<Vec<u64>>, AnalyzeError> {
    let rows = database.run(statement, &[])?.rows;
    Ok(rows.iter().map(|row| row.iter().map(number).collect()).collect())
}

fn number(value: &Value) -> u64 {
    match value {
        Value::BigInt(number) => *number as u64,
        Value::Int(number) => *number as u64,
        Value::SmallInt(number) => *number as u64,
        Value::HugeInt(number) => *number as u64,
        _ => 0,
    }
}

fn differences(database: &Database) -> Result<Vec<Difference>, AnalyzeError> {
    let rows = database.run(
        &format!(
            "SELECT fragment, session, step, statement, a_outcome, a_observed, b_outcome, b_observed, operation \
             FROM compared WHERE differs ORDER BY fragment, session, step LIMIT {SHOWN}"
        ),
        &[],
    )?;
    let difference = |row: &Vec<Value>| Difference {
        fragment: number(&row[0]),
        session: number(&row[1]),
        step: number(&row[2]),
        statement: number(&row[3]),
        first: said(&row[4], &row[5], &row[8]),
        second: said(&row[6], &row[7], &row[8]),
    };
    Ok(rows.rows.iter().map(difference).collect())
}

/// What a run says of an operation.
fn said(outcome: &Value, observed: &Value, operation: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Text(text) | Value::Enum(text) => text.clone(),
        _ => String::new(),
    };
    let (outcome, operation) = (text(outcome), text(operation));
    if outcome != "ok" {
        return outcome;
    }
    let observed: Vec<i64> = match observed {
        Value::List(items) => items.iter().map(|item| number(item) as i64).collect(),
        _ => Vec::new(),
    };
    match (operation.as_str(), Answered::read(&observed)) {
        ("update", _) => format!("changed {}", plural(observed.first().map_or(0, |rows| *rows as u64), "row")),
        (_, Some(answer)) => {
            let rows = plural(answer.rows as u64, "row");
            let kept = answer.kept.and_then(|kept| kept.into_iter().next()).map(|row| {
                let values = row.into_iter().map(|value| value.unwrap_or("NULL".into())).collect::<Vec<_>>();
                format!(" ({})", values.join(", "))
            });
            format!("{rows}, hash {:016x}{}", answer.hash, kept.unwrap_or_default())
        }
        _ => "nothing".to_string(),
    }
}
