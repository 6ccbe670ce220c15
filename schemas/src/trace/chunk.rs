//! Some operations of a trace, column by column.
//!
//! A replay hands chunks from the thread that reads the trace to the thread that acts. What is
//! not in a column need not move from one processor's cache to the other's.

use std::path::Path;

use arrow::array::{Array, DictionaryArray, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int8Type;

use super::{ACTOR, OPERATION, TraceRow};
use crate::table::TableError;
use crate::table::columns::{Numbers, Optional, Rare, column, unsigned};
use crate::vocabulary::{Columns, Place, Vocabulary, code_of};

/// Operations of one fragment in trace order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk<V: Vocabulary> {
    fragment: u32,
    rows: usize,
    operations: V::Columns,
    session: Numbers,
    actor: Numbers,
    // The value plus 1; 0 for none.
    after: Numbers,
    due_us: Numbers,
    // The step plus 1; 0 for none.
    txn: Rare<u16>,
    think_us: Rare<u32>,
    noops: Rare<u32>,
    step: Rare<u16>,
    kind: Rare<u8>,
}

impl<V: Vocabulary> Chunk<V> {
    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The session of an operation. Sessions never decrease from row to row.
    #[inline]
    pub fn session(&self, row: usize) -> u64 {
        self.session.get(row)
    }

    /// An operation's place in its session.
    #[inline]
    pub fn step(&self, row: usize) -> u16 {
        self.step.get(row)
    }

    /// The first row of the last session; 0 if there is none.
    pub fn start_of_last_session(&self) -> usize {
        let Some(last) = self.len().checked_sub(1) else { return 0 };
        let earlier = (0..last).rev().take_while(|row| self.session(*row) == self.session(last));
        last - earlier.count()
    }

    /// On whose behalf an operation's session runs.
    #[inline]
    pub fn actor(&self, row: usize) -> u64 {
        self.actor.get(row)
    }

    /// How long the thread waits before an operation; see [`TraceRow::think_us`].
    #[inline]
    pub fn think_us(&self, row: usize) -> u32 {
        self.think_us.get(row)
    }

    /// The session that an operation depends on.
    #[inline]
    pub fn after(&self, row: usize) -> Option<u64> {
        self.after.find(row)
    }

    /// The transaction that an operation belongs to; see [`TraceRow::txn`].
    #[inline]
    pub fn txn(&self, row: usize) -> Option<u16> {
        self.txn.get(row).checked_sub(1)
    }

    /// When an operation's session is due; see [`TraceRow::due_us`].
    #[inline]
    pub fn due_us(&self, row: usize) -> Option<u64> {
        self.due_us.find(row)
    }

    /// An operation without its envelope.
    #[inline]
    pub fn operation(&self, row: usize) -> V::Operation {
        let (session, step, actor) = (self.session(row), self.step(row), self.actor(row));
        self.operations.get(row, Place { fragment: self.fragment, session, step, actor })
    }

    /// An operation with its envelope.
    #[inline]
    pub fn row(&self, row: usize) -> TraceRow<V::Operation> {
        TraceRow {
            session: self.session(row),
            step: self.step(row),
            kind: self.kind.get(row),
            noops: self.noops.get(row),
            think_us: self.think_us(row),
            due_us: self.due_us(row),
            after: self.after(row),
            txn: self.txn(row),
            actor: self.actor(row),
            operation: self.operation(row),
        }
    }

    /// What the operations have besides their envelopes.
    #[inline]
    pub fn columns(&self) -> &V::Columns {
        &self.operations
    }

    /// The operations of the sessions that are wanted.
    pub fn only(self, is_wanted: impl Fn(u64) -> bool) -> Chunk<V> {
        let mut chunk = Chunk::<V> { fragment: self.fragment, ..Chunk::default() };
        for row in self.rows().filter(|row| is_wanted(row.session)) {
            chunk.operations.push_from(chunk.rows, &row.operation, &self.operations);
            chunk.push_envelope(&row);
        }
        chunk
    }

    /// Adds an operation's envelope, after the operation itself.
    fn push_envelope(&mut self, row: &TraceRow<V::Operation>) {
        let before = self.rows;
        self.rows += 1;
        self.session.push(before, row.session);
        self.actor.push(before, row.actor);
        self.after.push_optional(before, row.after);
        self.due_us.push_optional(before, row.due_us);
        self.txn.push(before, row.txn.map_or(0, |step| step + 1));
        self.think_us.push(before, row.think_us);
        self.noops.push(before, row.noops);
        self.step.push(before, row.step);
        self.kind.push(before, row.kind);
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = TraceRow<V::Operation>> + '_ {
        (0..self.len()).map(|row| self.row(row))
    }

    /// Moves the operations from a row on to a new chunk.
    pub fn split_off(&mut self, row: usize) -> Chunk<V> {
        // The new chunk will grow to the length of this one.
        let room = self.rows;
        self.rows = row;
        Chunk {
            fragment: self.fragment,
            rows: room - row,
            operations: self.operations.split_off(row, room),
            session: self.session.split_off(row, room),
            actor: self.actor.split_off(row, room),
            after: self.after.split_off(row, room),
            due_us: self.due_us.split_off(row, room),
            txn: self.txn.split_off(row, room),
            think_us: self.think_us.split_off(row, room),
            noops: self.noops.split_off(row, room),
            step: self.step.split_off(row, room),
            kind: self.kind.split_off(row, room),
        }
    }

    /// Adds the operations of a batch of the first fragment's table.
    #[cfg(test)]
    pub(crate) fn add(&mut self, batch: &RecordBatch, path: &Path) -> Result<(), TableError> {
        self.append(batch, path, 0, &mut Vec::new())
    }

    /// Adds the operations of a batch of a fragment's table. New names of kinds are added to
    /// `kinds`. The columns that only say how a session was drawn may be missing, and those without a
    /// value.
    pub(super) fn append(
        &mut self,
        batch: &RecordBatch,
        path: &Path,
        fragment: u32,
        kinds: &mut Vec<String>,
    ) -> Result<(), TableError> {
        self.fragment = fragment;
        let integers = |name| column::<Int64Array>(batch, name, path);
        let session = unsigned(integers("session")?, "session", path)?;
        let actor = unsigned(integers(ACTOR)?, ACTOR, path)?;
        // The reader leaves out those of these columns that have no value.
        let has = |name| batch.column_by_name(name).is_some();
        let optional = |name| if has(name) { Optional::of(integers(name)?, name, path) } else { Ok(None) };
        let (after, due_us) = (optional("after")?, optional("due_us")?);
        let txn = if has("txn") { transactions(column::<Int32Array>(batch, "txn", path)?, path)? } else { None };
        let step = unsigned(column::<Int16Array>(batch, "step", path)?, "step", path)?;
        let think_us = unsigned(column::<Int32Array>(batch, "think_us", path)?, "think_us", path)?;
        let operation = column::<DictionaryArray<Int8Type>>(batch, OPERATION, path)?;
        let codes = codes_of::<V>(operation, path)?;
        let codes = operation.keys().values().iter().map(|key| codes[(*key & i8::MAX) as usize]);
        let rows = self.rows;
        self.operations.append(rows, codes, batch, path)?;
        self.rows += batch.num_rows();
        if has("kind") {
            let kind = column::<DictionaryArray<Int8Type>>(batch, "kind", path)?;
            let places = places_of(names_of(kind, "kind", path)?, kinds, path)?;
            let place = |key: &i8| places.get(*key as usize).copied().unwrap_or_default();
            self.kind.extend(rows, kind.keys().values().iter().map(place));
        }
        if has("noops") {
            let noops = unsigned(column::<Int32Array>(batch, "noops", path)?, "noops", path)?;
            self.noops.extend(rows, noops.iter().map(|noops| *noops as u32));
        }
        for (held, column) in [(&mut self.session, session), (&mut self.actor, actor)] {
            held.extend(rows, column.iter().map(|number| *number as u64));
        }
        self.step.extend(rows, step.iter().map(|step| *step as u16));
        self.think_us.extend(rows, think_us.iter().map(|think_us| *think_us as u32));
        if let Some(txn) = txn {
            self.txn.extend(rows, txn.into_iter());
        }
        for (held, column) in [(&mut self.after, after), (&mut self.due_us, due_us)] {
            if let Some(column) = column {
                held.extend(rows, (0..batch.num_rows()).map(|row| column.following(row)));
            }
        }
        Ok(())
    }
}

impl<V: Vocabulary> FromIterator<TraceRow<V::Operation>> for Chunk<V> {
    fn from_iter<I: IntoIterator<Item = TraceRow<V::Operation>>>(rows: I) -> Chunk<V> {
        let mut chunk = Chunk::<V>::default();
        for row in rows {
            chunk.operations.push(chunk.rows, &row.operation);
            chunk.push_envelope(&row);
        }
        chunk
    }
}

/// The column of transactions: the step plus 1, or 0 for none. None if no row is in one.
fn transactions(column: &Int32Array, path: &Path) -> Result<Option<Vec<u16>>, TableError> {
    if column.null_count() == column.len() {
        return Ok(None);
    }
    let step = |(row, txn): (usize, Option<i32>)| match txn {
        None => Ok(0),
        Some(txn) if (0..i16::MAX as i32).contains(&txn) => Ok(txn as u16 + 1),
        Some(txn) => Err(TableError::new(path, format!("row {row}: txn is {txn}, which is no step of a session"))),
    };
    column.iter().enumerate().map(step).collect::<Result<_, _>>().map(Some)
}

fn names_of<'a>(array: &'a DictionaryArray<Int8Type>, name: &str, path: &Path) -> Result<&'a StringArray, TableError> {
    let names = array.values().as_any().downcast_ref::<StringArray>();
    names.ok_or_else(|| TableError::new(path, format!("column {name} is not a column of names")))
}

/// The code of each key of the column of operations.
fn codes_of<V: Vocabulary>(column: &DictionaryArray<Int8Type>, path: &Path) -> Result<[u8; 128], TableError> {
    let names = names_of(column, OPERATION, path)?;
    let known: Vec<Option<u8>> = names.iter().map(|name| name.and_then(code_of::<V>)).collect();
    let of_key = |key: i8| known.get(key as usize).copied().flatten();
    let keys = column.keys().values();
    if let Some(row) = keys.iter().position(|key| of_key(*key).is_none()) {
        let name = names.value((keys[row] as usize).min(names.len().saturating_sub(1)));
        return Err(TableError::new(path, format!("row {row}: unknown {OPERATION} {name:?}")));
    }
    let mut codes = [0; 128];
    for (code, known) in codes.iter_mut().zip(known) {
        *code = known.unwrap_or_default();
    }
    Ok(codes)
}

/// The index in `kinds` of each name of a batch; new names are added.
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
    use crate::social::{Action, Operation, Social};

    fn rows() -> impl Strategy<Value = Vec<TraceRow<Operation>>> {
        let rare = |value| prop_oneof![4 => Just(None), 1 => Just(Some(value))];
        let row = (0u16..3, rare(7u64), rare(8), rare(9), 0u32..2, 0usize..Action::ALL.len());
        let row = row.prop_map(|(step, comment, after, due_us, think_us, action)| TraceRow {
            txn: comment.map(|_| step),
            session: 5,
            step,
            kind: 0,
            noops: think_us,
            think_us,
            due_us,
            after,
            actor: 3,
            operation: Operation { action: Action::ALL[action], socialite: 3, target: after.unwrap_or(4), comment },
        });
        prop::collection::vec(row, 0..12)
    }

    fn append(chunk: &mut Chunk<Social>, rows: &[TraceRow<Operation>]) {
        let mut builder = super::super::OperationsBuilder::<Social>::new(["kind"]);
        rows.iter().for_each(|row| builder.push(row));
        chunk.append(&builder.finish(), Path::new("a.parquet"), 0, &mut Vec::new()).unwrap();
    }

    #[test]
    fn transactions_that_begin_at_no_step_are_refused() {
        let refused = |txn| transactions(&Int32Array::from(vec![None, txn]), Path::new("a.parquet"));
        assert_eq!(refused(Some(7)).unwrap(), Some(vec![0, 8]));
        assert_eq!(refused(None).unwrap(), None);
        for wrong in [-1, i16::MAX as i32] {
            let refused = refused(Some(wrong)).unwrap_err().to_string();
            assert!(refused.contains("a.parquet") && refused.contains(&format!("row 1: txn is {wrong}")), "{refused}");
        }
    }

    proptest! {
        /// Rows come back unchanged, whichever columns are empty in the first part or in a later
        /// one.
        #[test]
        fn rows_come_out_as_they_went_in(
            rows in prop::collection::vec(rows(), 3),
            at in 0usize..24,
        ) {
            let mut chunk: Chunk<Social> = rows[0].iter().copied().collect();
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
