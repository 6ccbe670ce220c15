//! What a session keeps of the results of its statements, for the parameters of its later ones.
//!
//! The trace says which results are kept. They are in the log too, so that a parameter that was a result
//! can be found there.

use super::{Answered, Pick, ResultOf, Type, Value};

/// The rows of a result.
type Kept = Vec<Vec<Option<String>>>;

/// The results that are kept of a session. There are few, so a search from one to the next is fast.
#[derive(Debug, Clone, Default)]
pub struct Results(Vec<(u16, Kept)>);

/// Why an operation is not sent.
const NO_RESULT: &str = "a parameter is a result of an earlier step, and that step has returned none";
const NO_COLUMN: &str = "a parameter is a column of a result, and the result has no such column";
const OTHER_TYPE: &str = "a parameter is a column of a result, and its value is not of the parameter's type";

impl Results {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Keeps the rows that a step has returned.
    pub(super) fn keep(&mut self, step: u16, observed: &[i64]) {
        self.0.retain(|(known, _)| *known != step);
        let rows = Answered::read(observed).and_then(|answered| answered.kept);
        self.0.extend(rows.map(|rows| (step, rows)));
    }

    /// The value of a parameter. A result without the row has the value NULL, as a subquery does in SQL: the
    /// statement is sent, and a condition on the value holds for no row.
    pub fn value(&self, result: ResultOf) -> Result<Value<'_>, &'static str> {
        let (_, rows) = self.0.iter().find(|(step, _)| *step == result.step).ok_or(NO_RESULT)?;
        let row = match result.pick {
            Pick::First => rows.first(),
            Pick::Middle => rows.get(rows.len().saturating_sub(1) / 2),
            Pick::Last => rows.last(),
            Pick::Nth(number) => rows.get(number as usize),
        };
        let Some(row) = row else { return Ok(Value::Null) };
        let value = row.get(result.column as usize).ok_or(NO_COLUMN)?;
        let Some(text) = value.as_deref() else { return Ok(Value::Null) };
        let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
        match result.kind {
            Type::Integer => text.parse().map(Value::Integer).map_err(|_| OTHER_TYPE),
            Type::Float => text.parse().map(Value::Float).map_err(|_| OTHER_TYPE),
            Type::Decimal if is_number() => Ok(Value::Decimal(text)),
            Type::Timestamp => Ok(Value::Timestamp(text)),
            Type::Date => Ok(Value::Date(text)),
            Type::Unknown => Ok(Value::Unknown(text)),
            Type::Text => Ok(Value::Text(text)),
            Type::Decimal | Type::Bytes => Err(OTHER_TYPE),
        }
    }
}
