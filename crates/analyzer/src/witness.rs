//! Witnesses: for an unpredictable read, what it should have returned, and the writes that prove
//! it.

use duckdb::types::Value;
use schemas::oplog::Outcome;
use serde::Serialize;

use crate::error::AnalyzeError;
use crate::families::AnyFamily;
use crate::family::WritePlace;
use crate::sql::Database;

/// The most writes shown for each read.
const MOST_WRITES: usize = 6;

/// An item of a read that no correct store could have returned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Offender {
    pub(crate) fragment: i64,
    /// Null if it is a closing read, which belongs to no session.
    pub(crate) session: Option<i64>,
    pub(crate) step: Option<i64>,
    pub(crate) operation: String,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// See [`schemas::sealed::UNPREDICTABLE`] for this and the following.
    pub(crate) item: String,
    pub(crate) owner: i64,
    pub(crate) element: Option<i64>,
    pub(crate) observed: i64,
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// The last writes of the item before and during the read, latest end first.
    pub(crate) writes: Vec<Witness>,
    /// How many earlier writes there are.
    pub(crate) earlier_writes: usize,
    /// Of a register: whether the write whose value was read is a write of it that began before the
    /// end of the read.
    #[serde(skip)]
    pub(crate) saw_write: bool,
}

/// A write of the item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Witness {
    pub(crate) session: i64,
    pub(crate) step: i64,
    pub(crate) operation: String,
    pub(crate) outcome: Outcome,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// By how much it changes the count; 1 for what is added or written, -1 for what is removed.
    pub(crate) change: i64,
}

/// The most wrong items ([`Family::wrongness`](crate::family::Family::wrongness)).
pub(crate) fn worst_offenders(
    database: &Database,
    family: &dyn AnyFamily,
    experiment: u32,
    most: usize,
) -> Result<Vec<Offender>, AnalyzeError> {
    let values = [Value::from(experiment), Value::from(most)];
    let sql = include_str!("sql/offenders.sql").replace("{wrongness}", family.wrongness());
    let answer = database.run(&sql, &values)?;
    let mut offenders = Vec::new();
    for row in answer.rows {
        let mut offender = Offender {
            fragment: number(&row[0])?,
            session: optional(&row[1])?,
            step: optional(&row[2])?,
            operation: name(&row[3])?.to_string(),
            start_ns: number(&row[4])?,
            end_ns: number(&row[5])?,
            item: name(&row[6])?.to_string(),
            owner: number(&row[7])?,
            element: optional(&row[8])?,
            observed: number(&row[9])?,
            low: number(&row[10])?,
            high: number(&row[11])?,
            writes: Vec::new(),
            earlier_writes: 0,
            saw_write: false,
        };
        find_writes(database, family, experiment, &mut offender)?;
        offenders.push(offender);
    }
    Ok(offenders)
}

/// How many unpredictable reads are outside the measured part, and so in no figure.
pub(crate) fn unpredictable_in_warmup(database: &Database, experiment: u32) -> Result<i64, AnalyzeError> {
    let statement = "SELECT count(DISTINCT (fragment, session, step)) FROM unpredictable WHERE experiment = ? AND (warmup OR drained) AND NOT closing";
    let answer = database.run(statement, &[Value::from(experiment)])?;
    answer.rows.first().map_or(Ok(0), |row| number(&row[0]))
}

fn find_writes(
    database: &Database,
    family: &dyn AnyFamily,
    experiment: u32,
    offender: &mut Offender,
) -> Result<(), AnalyzeError> {
    let values = [
        Value::from(experiment),
        Value::from(offender.fragment),
        Value::Text(offender.item.clone()),
        Value::from(offender.owner),
        offender.element.map_or(Value::Null, Value::from),
        Value::from(offender.end_ns),
    ];
    let writes = database.run(include_str!("sql/candidates.sql"), &values)?;
    offender.earlier_writes = writes.rows.len().saturating_sub(MOST_WRITES);
    if let Some(WritePlace { session, step, .. }) = family.writer(offender.observed) {
        let seen = (session, step);
        for row in &writes.rows {
            offender.saw_write |= (number(&row[0])?, number(&row[1])?) == seen;
        }
    }
    for row in writes.rows.iter().take(MOST_WRITES) {
        offender.writes.push(Witness {
            session: number(&row[0])?,
            step: number(&row[1])?,
            operation: name(&row[2])?.to_string(),
            outcome: if name(&row[3])? == Outcome::Ok.name() { Outcome::Ok } else { Outcome::Unknown },
            start_ns: number(&row[4])?,
            end_ns: number(&row[5])?,
            change: number(&row[6])?,
        });
    }
    Ok(())
}

fn optional(value: &Value) -> Result<Option<i64>, AnalyzeError> {
    if *value == Value::Null { Ok(None) } else { number(value).map(Some) }
}

fn number(value: &Value) -> Result<i64, AnalyzeError> {
    match value {
        Value::BigInt(n) => Ok(*n),
        Value::Int(n) => Ok(*n as i64),
        Value::SmallInt(n) => Ok(*n as i64),
        other => Err(damaged(&format!("{other:?} instead of a number"))),
    }
}

fn name(value: &Value) -> Result<&str, AnalyzeError> {
    match value {
        Value::Text(text) | Value::Enum(text) => Ok(text),
        other => Err(damaged(&format!("{other:?} instead of a name"))),
    }
}

/// The error of a sealed table with a value that the analyzer never writes.
fn damaged(found: &str) -> AnalyzeError {
    AnalyzeError::Statement(format!(
        "a sealed table has {found}; delete the run's folders operations, unpredictable and closing_reads, and analyze it again"
    ))
}
