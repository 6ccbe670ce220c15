//! Some operations of a trace, column by column.
//!
//! A replay hands them from the thread that reads the trace to the one that acts: what is
//! not in a column need not go from one processor's cache to the other's.

use std::path::Path;

use arrow::array::{Array, DictionaryArray, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int8Type;

use super::{TableError, TraceRow, column};
use crate::social::{Action, Operation};

/// Operations of one fragment in trace order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    action: Vec<Action>,
    session: Numbers,
    socialite: Numbers,
    target: Numbers,
    // The number that comes after the value, 0 where there is none.
    comment: Numbers,
    after: Numbers,
    due_us: Numbers,
    think_us: Rare<u32>,
    noops: Rare<u32>,
    step: Rare<u16>,
    kind: Rare<u8>,
}

/// A column of values that mostly are 0: it ends with the last part of the trace that
/// had another one, so that it often holds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rare<T>(Vec<T>);

impl<T: Copy + Default + PartialEq> Rare<T> {
    #[inline]
    fn get(&self, row: usize) -> T {
        self.0.get(row).copied().unwrap_or_default()
    }

    /// Adds values after `rows` that are there.
    fn extend(&mut self, rows: usize, values: impl Iterator<Item = T> + Clone) {
        // Looked at without a way out, which lets the compiler take many values at once.
        let is_usual = values.clone().fold(true, |all, value| all & (value == T::default()));
        if !is_usual {
            self.0.resize(rows, T::default());
            self.0.extend(values);
        }
    }

    /// Takes out the values from a row on, with room for more of them.
    fn split_off(&mut self, row: usize, capacity: usize) -> Rare<T> {
        let Some(last) = self.0.get(row..) else { return Rare(Vec::new()) };
        let mut rest = Vec::with_capacity(capacity);
        rest.extend_from_slice(last);
        self.0.truncate(row);
        Rare(rest)
    }
}

/// A column of numbers by their halves: the upper one mostly is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Numbers {
    low: Rare<u32>,
    high: Rare<u32>,
}

impl Numbers {
    #[inline]
    fn get(&self, row: usize) -> u64 {
        self.low.get(row) as u64 | (self.high.get(row) as u64) << 32
    }

    /// Where 0 stands for none.
    #[inline]
    fn find(&self, row: usize) -> Option<u64> {
        self.get(row).checked_sub(1)
    }

    fn extend(&mut self, rows: usize, values: impl Iterator<Item = u64> + Clone) {
        self.low.extend(rows, values.clone().map(|value| value as u32));
        self.high.extend(rows, values.map(|value| (value >> 32) as u32));
    }

    fn split_off(&mut self, row: usize, capacity: usize) -> Numbers {
        Numbers { low: self.low.split_off(row, capacity), high: self.high.split_off(row, capacity) }
    }
}

impl Chunk {
    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// The session of an operation. They rise.
    #[inline]
    pub fn session(&self, row: usize) -> u64 {
        self.session.get(row)
    }

    /// An operation's place in its session.
    #[inline]
    pub fn step(&self, row: usize) -> u16 {
        self.step.get(row)
    }

    /// Where the last session begins; 0 where there is none.
    pub fn start_of_last_session(&self) -> usize {
        let Some(last) = self.len().checked_sub(1) else { return 0 };
        let earlier = (0..last).rev().take_while(|row| self.session(*row) == self.session(last));
        last - earlier.count()
    }

    /// The socialite of an operation.
    #[inline]
    pub fn socialite(&self, row: usize) -> u64 {
        self.socialite.get(row)
    }

    /// What an operation waits before; see [`TraceRow::think_us`].
    #[inline]
    pub fn think_us(&self, row: usize) -> u32 {
        self.think_us.get(row)
    }

    /// The session that an operation depends on.
    #[inline]
    pub fn after(&self, row: usize) -> Option<u64> {
        self.after.find(row)
    }

    /// When an operation's session starts; see [`TraceRow::due_us`].
    #[inline]
    pub fn due_us(&self, row: usize) -> Option<u64> {
        self.due_us.find(row)
    }

    /// What is done.
    #[inline]
    pub fn operation(&self, row: usize) -> Operation {
        Operation {
            action: self.action[row],
            socialite: self.socialite(row),
            target: self.target.get(row),
            comment: self.comment.find(row),
        }
    }

    /// An operation with its envelope.
    #[inline]
    pub fn row(&self, row: usize) -> TraceRow {
        TraceRow {
            session: self.session(row),
            step: self.step(row),
            kind: self.kind.get(row),
            noops: self.noops.get(row),
            think_us: self.think_us(row),
            due_us: self.due_us(row),
            after: self.after(row),
            operation: self.operation(row),
        }
    }

    /// All of them, in order.
    pub fn rows(&self) -> impl Iterator<Item = TraceRow> + '_ {
        (0..self.len()).map(|row| self.row(row))
    }

    /// Takes out the operations from a row on.
    pub fn split_off(&mut self, row: usize) -> Chunk {
        // What is split off grows to a chunk as long as this one.
        let room = self.len();
        let mut action = Vec::with_capacity(room);
        action.extend_from_slice(&self.action[row..]);
        self.action.truncate(row);
        Chunk {
            action,
            session: self.session.split_off(row, room),
            socialite: self.socialite.split_off(row, room),
            target: self.target.split_off(row, room),
            comment: self.comment.split_off(row, room),
            after: self.after.split_off(row, room),
            due_us: self.due_us.split_off(row, room),
            think_us: self.think_us.split_off(row, room),
            noops: self.noops.split_off(row, room),
            step: self.step.split_off(row, room),
            kind: self.kind.split_off(row, room),
        }
    }

    /// Adds the operations of a batch of the operations table. `kinds` has the names
    /// met so far; new ones are added. Columns that only say how a session was drawn
    /// may be missing.
    pub(super) fn append(
        &mut self,
        batch: &RecordBatch,
        path: &Path,
        kinds: &mut Vec<String>,
    ) -> Result<(), TableError> {
        let integers = |name| column::<Int64Array>(batch, name, path);
        let session = unsigned(integers("session")?, "session", path)?;
        let socialite = unsigned(integers("socialite")?, "socialite", path)?;
        let target = unsigned(integers("target")?, "target", path)?;
        let comment = Optional::of(integers("comment")?, "comment", path)?;
        let after = Optional::of(integers("after")?, "after", path)?;
        let due_us = Optional::of(integers("due_us")?, "due_us", path)?;
        let step = column::<Int16Array>(batch, "step", path)?.values();
        let think_us = column::<Int32Array>(batch, "think_us", path)?.values();
        let action = column::<DictionaryArray<Int8Type>>(batch, "action", path)?;
        let actions = actions_of(action, path)?;
        let rows = self.len();
        if batch.column_by_name("kind").is_some() {
            let kind = column::<DictionaryArray<Int8Type>>(batch, "kind", path)?;
            let places = places_of(names_of(kind, "kind", path)?, kinds, path)?;
            let place = |key: &i8| places.get(*key as usize).copied().unwrap_or_default();
            self.kind.extend(rows, kind.keys().values().iter().map(place));
        }
        if batch.column_by_name("noops").is_some() {
            let noops = column::<Int32Array>(batch, "noops", path)?.values();
            self.noops.extend(rows, noops.iter().map(|noops| (*noops).max(0) as u32));
        }
        for (held, column) in
            [(&mut self.session, session), (&mut self.socialite, socialite), (&mut self.target, target)]
        {
            held.extend(rows, column.iter().map(|number| *number as u64));
        }
        self.action.extend(action.keys().values().iter().map(|key| actions[(*key & i8::MAX) as usize]));
        self.step.extend(rows, step.iter().map(|step| *step as u16));
        self.think_us.extend(rows, think_us.iter().map(|think_us| *think_us as u32));
        for (held, column) in [(&mut self.comment, comment), (&mut self.after, after), (&mut self.due_us, due_us)] {
            if let Some(column) = column {
                held.extend(rows, (0..batch.num_rows()).map(|row| column.following(row)));
            }
        }
        Ok(())
    }
}

impl FromIterator<TraceRow> for Chunk {
    fn from_iter<I: IntoIterator<Item = TraceRow>>(rows: I) -> Chunk {
        use std::iter::once;
        let following = |value: Option<u64>| once(value.map_or(0, |value| value + 1));
        let mut chunk = Chunk::default();
        for row in rows {
            let before = chunk.len();
            chunk.action.push(row.operation.action);
            chunk.session.extend(before, once(row.session));
            chunk.socialite.extend(before, once(row.operation.socialite));
            chunk.target.extend(before, once(row.operation.target));
            chunk.comment.extend(before, following(row.operation.comment));
            chunk.after.extend(before, following(row.after));
            chunk.due_us.extend(before, following(row.due_us));
            chunk.think_us.extend(before, once(row.think_us));
            chunk.noops.extend(before, once(row.noops));
            chunk.step.extend(before, once(row.step));
            chunk.kind.extend(before, once(row.kind));
        }
        chunk
    }
}

/// The values of a column of numbers from 0 on.
fn unsigned<'a>(array: &'a Int64Array, name: &str, path: &Path) -> Result<&'a [i64], TableError> {
    // One pass without a branch for all of them; only a damaged file needs a second look.
    if array.values().iter().fold(0, |all, value| all | value) < 0
        && let Some(row) = (0..array.len()).find(|&row| array.is_valid(row) && array.value(row) < 0)
    {
        let value = array.value(row);
        return Err(TableError::new(path, format!("row {row}: {name} is {value}, below 0")));
    }
    Ok(array.values())
}

/// A column of numbers from 0 on, some of which are missing.
struct Optional<'a>(&'a Int64Array);

impl<'a> Optional<'a> {
    /// None where all are missing.
    fn of(array: &'a Int64Array, name: &str, path: &Path) -> Result<Option<Optional<'a>>, TableError> {
        if array.null_count() == array.len() {
            return Ok(None);
        }
        unsigned(array, name, path)?;
        Ok(Some(Optional(array)))
    }

    /// The number after the value, 0 where it is missing.
    #[inline]
    fn following(&self, row: usize) -> u64 {
        if self.0.is_valid(row) { self.0.value(row) as u64 + 1 } else { 0 }
    }
}

fn names_of<'a>(array: &'a DictionaryArray<Int8Type>, name: &str, path: &Path) -> Result<&'a StringArray, TableError> {
    let names = array.values().as_any().downcast_ref::<StringArray>();
    names.ok_or_else(|| TableError::new(path, format!("column {name} does not hold names")))
}

/// The action of each key that a column has.
fn actions_of(column: &DictionaryArray<Int8Type>, path: &Path) -> Result<[Action; 128], TableError> {
    let names = names_of(column, "action", path)?;
    let known: Vec<Option<Action>> = names.iter().map(|name| name.and_then(Action::from_name)).collect();
    let of_key = |key: i8| known.get(key as usize).copied().flatten();
    let keys = column.keys().values();
    if let Some(row) = keys.iter().position(|key| of_key(*key).is_none()) {
        let name = names.value((keys[row] as usize).min(names.len().saturating_sub(1)));
        return Err(TableError::new(path, format!("row {row}: action {name:?} is not one of this format")));
    }
    let mut actions = [Action::ViewProfile; 128];
    for (action, known) in actions.iter_mut().zip(known) {
        *action = known.unwrap_or(*action);
    }
    Ok(actions)
}

/// Where each name of a batch stands in `kinds`; new ones are added.
fn places_of(names: &StringArray, kinds: &mut Vec<String>, path: &Path) -> Result<Vec<u8>, TableError> {
    let place = |name: Option<&str>| {
        let name = name.unwrap_or_default();
        let place = kinds.iter().position(|known| known == name).unwrap_or_else(|| {
            kinds.push(name.to_string());
            kinds.len() - 1
        });
        // The column's keys are signed.
        i8::try_from(place)
            .map(|place| place as u8)
            .map_err(|_| TableError::new(path, "has more than 128 kinds of sessions"))
    };
    names.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<TraceRow>> {
        let rare = |value| prop_oneof![4 => Just(None), 1 => Just(Some(value))];
        let row = (0u16..3, rare(7u64), rare(8), rare(9), 0u32..2, 0usize..Action::ALL.len());
        let row = row.prop_map(|(step, comment, after, due_us, think_us, action)| TraceRow {
            session: 5,
            step,
            kind: 0,
            noops: think_us,
            think_us,
            due_us,
            after,
            operation: Operation { action: Action::ALL[action], socialite: 3, target: after.unwrap_or(4), comment },
        });
        prop::collection::vec(row, 0..12)
    }

    fn append(chunk: &mut Chunk, rows: &[TraceRow]) {
        let mut builder = super::super::OperationsBuilder::new(["kind"]);
        rows.iter().for_each(|row| builder.push(row));
        chunk.append(&builder.finish(), Path::new("a.parquet"), &mut Vec::new()).unwrap();
    }

    proptest! {
        /// Whatever is usual in the first part of it, or in a later one.
        #[test]
        fn rows_come_out_as_they_went_in(
            rows in prop::collection::vec(rows(), 3),
            at in 0usize..24,
        ) {
            let mut chunk: Chunk = rows[0].iter().copied().collect();
            append(&mut chunk, &rows[1]);
            let all = rows[..2].concat();
            prop_assert_eq!(chunk.rows().collect::<Vec<_>>(), all.clone());
            let at = at.min(all.len());
            let mut rest = chunk.split_off(at);
            prop_assert_eq!(chunk.rows().collect::<Vec<_>>(), &all[..at]);
            append(&mut rest, &rows[2]);
            prop_assert_eq!(rest.rows().collect::<Vec<_>>(), [&all[at..], &rows[2]].concat());
        }
    }
}
