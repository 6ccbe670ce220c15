//! Witnesses: for an unpredictable read, what it should have returned and the
//! writes that say so.

use duckdb::types::Value;
use schemas::oplog::Outcome;
use schemas::social::{Action, Change, CountKind, ListKind, Operation};
use serde::Serialize;

use crate::error::AnalyzeError;
use crate::sql::Database;

/// Writes shown for each read.
const MOST_WRITES: usize = 6;

/// An item of a read that no correct store could have returned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Offender {
    pub(crate) fragment: i64,
    pub(crate) session: i64,
    pub(crate) step: i64,
    pub(crate) action: Action,
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
    /// How many earlier ones there are.
    pub(crate) earlier_writes: usize,
}

/// A write of the item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Witness {
    pub(crate) session: i64,
    pub(crate) step: i64,
    pub(crate) action: Action,
    pub(crate) outcome: Outcome,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// By how much it changes the count; for an element 1 for added, -1 for removed.
    pub(crate) change: i64,
}

/// The items that are farthest from what they should have been.
pub(crate) fn worst_offenders(
    database: &Database,
    experiment: u32,
    most: usize,
) -> Result<Vec<Offender>, AnalyzeError> {
    let values = [Value::from(experiment), Value::from(most)];
    let answer = database.run(include_str!("sql/offenders.sql"), &values)?;
    let mut offenders = Vec::new();
    for row in answer.rows {
        let mut offender = Offender {
            fragment: number(&row[0])?,
            session: number(&row[1])?,
            step: number(&row[2])?,
            action: action(&row[3])?,
            start_ns: number(&row[4])?,
            end_ns: number(&row[5])?,
            item: name(&row[6])?.to_string(),
            owner: number(&row[7])?,
            element: if row[8] == Value::Null { None } else { Some(number(&row[8])?) },
            observed: number(&row[9])?,
            low: number(&row[10])?,
            high: number(&row[11])?,
            writes: Vec::new(),
            earlier_writes: 0,
        };
        find_writes(database, experiment, &mut offender)?;
        offenders.push(offender);
    }
    Ok(offenders)
}

/// How many reads of the warm-up were unpredictable; they are in no figure.
pub(crate) fn unpredictable_in_warmup(database: &Database, experiment: u32) -> Result<i64, AnalyzeError> {
    let statement = "SELECT count(DISTINCT (fragment, session, step)) FROM unpredictable WHERE experiment = ? AND (warmup OR drained)";
    let answer = database.run(statement, &[Value::from(experiment)])?;
    answer.rows.first().map_or(Ok(0), |row| number(&row[0]))
}

fn find_writes(database: &Database, experiment: u32, offender: &mut Offender) -> Result<(), AnalyzeError> {
    let writes: Vec<&str> = Action::ALL.into_iter().filter(|a| a.is_write()).map(Action::name).collect();
    let values = [
        Value::from(experiment),
        Value::from(offender.fragment),
        Value::from(offender.owner),
        Value::from(offender.owner),
        Value::from(offender.end_ns),
        Value::Text(serde_json::Value::from(writes).to_string()),
    ];
    let candidates = database.run(include_str!("sql/candidates.sql"), &values)?;
    for row in candidates.rows {
        let action = action(&row[2])?;
        let operation = Operation {
            action,
            socialite: number(&row[3])? as u64,
            target: number(&row[4])? as u64,
            comment: if row[5] == Value::Null { None } else { Some(number(&row[5])? as u64) },
        };
        let Some(change) = operation.changes().iter().find_map(|change| effect(change, offender)) else { continue };
        if offender.writes.len() == MOST_WRITES {
            offender.earlier_writes += 1;
            continue;
        }
        let outcome = if name(&row[6])? == Outcome::Ok.name() { Outcome::Ok } else { Outcome::Unknown };
        let (session, step) = (number(&row[0])?, number(&row[1])?);
        let (start_ns, end_ns) = (number(&row[7])?, number(&row[8])?);
        offender.writes.push(Witness { session, step, action, outcome, start_ns, end_ns, change });
    }
    Ok(())
}

/// What a change does to the offender's item, if anything.
fn effect(change: Change, offender: &Offender) -> Option<i64> {
    let is_owner = |owner: u64| owner as i64 == offender.owner;
    match change {
        Change::Count { kind, owner, delta } => {
            let item = match kind {
                CountKind::FriendCount => "friend_count",
                CountKind::PendingCount => "pending_count",
            };
            (offender.item == item && is_owner(owner)).then_some(delta as i64)
        }
        Change::Element { kind, owner, element, present } => {
            let item = match kind {
                ListKind::Friends => "friends",
                ListKind::Pending => "pending",
                ListKind::Comments => "comments",
            };
            let is_it = offender.item == item && is_owner(owner) && offender.element == Some(element as i64);
            is_it.then_some(if present { 1 } else { -1 })
        }
    }
}

fn number(value: &Value) -> Result<i64, AnalyzeError> {
    match value {
        Value::BigInt(n) => Ok(*n),
        Value::Int(n) => Ok(*n as i64),
        Value::SmallInt(n) => Ok(*n as i64),
        other => Err(AnalyzeError::Statement(format!("a sealed table holds {other:?} where a number belongs"))),
    }
}

fn name(value: &Value) -> Result<&str, AnalyzeError> {
    match value {
        Value::Text(text) | Value::Enum(text) => Ok(text),
        other => Err(AnalyzeError::Statement(format!("a sealed table holds {other:?} where a name belongs"))),
    }
}

fn action(value: &Value) -> Result<Action, AnalyzeError> {
    let name = name(value)?;
    let unknown = || AnalyzeError::Statement(format!("a sealed table names the action {name:?}, which is none"));
    Action::from_name(name).ok_or_else(unknown)
}
