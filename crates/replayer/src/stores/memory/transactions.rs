//! Transactions on records, one implementation for each level of isolation.
//!
//! | level | a read sees | a write |
//! |---|---|---|
//! | serializable | what was committed when the transaction began | is refused at the commit if a record that the transaction has read or written has changed since |
//! | snapshot | the same | is refused at the commit if its record has changed since |
//! | read committed | what is committed now | happens at the commit |
//! | read uncommitted | what anyone has written | happens at once; an abort undoes it. Until the end no other transaction may write the record |
//!
//! Read uncommitted without write locks: any transaction may overwrite what another one has written. An abort then
//! puts back what the transaction has found, whatever others have written since.
//!
//! At all levels a transaction sees its own writes, and none waits for another. So lost updates exist at
//! read committed, write skew exists at snapshot, and nothing of the kind at serializable.

use std::collections::BTreeMap;
use std::ops::Bound;

use schemas::isolation::Isolation;
use schemas::vocabulary::kv::{Kv, Operation, Verb};
use schemas::workload::kv::keys::KeyPlace;

use super::connection::{State, Transaction};
use super::kv::{Ids, Records};
use super::versions::Moment;
use crate::stores::kv::{ALREADY_THERE, MISSING};
use crate::stores::{Answer, OperationError};

/// A transaction that is under way.
pub struct RecordsTransaction {
    level: Level,
    /// Its writes, in order.
    written: Vec<Operation>,
}

/// What a level needs to know of a transaction.
enum Level {
    /// Serializable, with the first and the last of the records that each read has looked at.
    Serializable(Moment, Vec<(KeyPlace, Bound<KeyPlace>)>),
    Snapshot(Moment),
    ReadCommitted,
    /// The owner of its write locks, if it has any, and what each record was that it has changed.
    ReadUncommitted(Option<u64>, BTreeMap<KeyPlace, (u64, Option<Ids>)>),
}

impl Transaction<Kv, Records> for RecordsTransaction {
    const EXIST: bool = true;

    fn begin(records: &mut Records, level: Isolation, has_write_locks: bool) -> Option<RecordsTransaction> {
        let level = match level {
            Isolation::Serializable | Isolation::StrictSerializable => {
                Level::Serializable(records.versions.watch(), Vec::new())
            }
            Isolation::Snapshot | Isolation::RepeatableRead => Level::Snapshot(records.versions.watch()),
            Isolation::ReadCommitted => Level::ReadCommitted,
            Isolation::ReadUncommitted => {
                let owner = has_write_locks.then(|| records.locks.another_owner());
                Level::ReadUncommitted(owner, BTreeMap::new())
            }
        };
        Some(RecordsTransaction { level, written: Vec::new() })
    }

    fn read(&mut self, records: &Records, read: &Operation, answer: &mut Answer) {
        let from = records.place(read.key);
        if read.verb == Verb::Read {
            if let Some(ids) = self.seen(records, from, read.key) {
                records.find(read.key, &ids, read.fields, answer);
            }
            return self.has_read(from, Bound::Included(from));
        }
        let own: BTreeMap<KeyPlace, u64> =
            self.written.iter().map(|write| (records.place(write.key), write.key)).collect();
        let (mut next, mut missing) = (Bound::Included(from), read.length);
        while missing > 0 {
            let mine = own.range((next, Bound::Unbounded)).next().map(|(place, _)| *place);
            let Some(place) = [records.next(next), records.versions.next(next), mine].into_iter().flatten().min()
            else {
                break;
            };
            let number = records.number(place).or(own.get(&place).copied()).unwrap_or_default();
            if let Some(ids) = self.seen(records, place, number) {
                answer.values.push(records.key_number(number));
                records.find(number, &ids, read.fields, answer);
                missing -= 1;
            }
            next = Bound::Excluded(place);
        }
        // A scan that has found fewer records than it asks for has seen that there are no more.
        let to = match (missing, next) {
            (0, Bound::Excluded(last)) => Bound::Included(last),
            _ => Bound::Unbounded,
        };
        self.has_read(from, to);
    }

    fn write(&mut self, records: &mut Records, write: &Operation) -> Result<(), OperationError> {
        let place = records.place(write.key);
        if let Level::ReadUncommitted(owner, before) = &mut self.level {
            if owner.is_some_and(|owner| !records.locks.take(place, owner)) {
                return Err(OperationError::Aborted("another transaction has written the record".into()));
            }
            if let Some(why) = records.refusal(write) {
                return Err(OperationError::Failed(why.into()));
            }
            before.entry(place).or_insert_with(|| (write.key, records.current(place).cloned()));
            records.write(write, false);
            return Ok(());
        }
        let exists = self.seen(records, place, write.key).is_some();
        self.has_read(place, Bound::Included(place));
        match (write.verb, exists) {
            (Verb::Insert, true) => return Err(OperationError::Failed(ALREADY_THERE.into())),
            (Verb::Update | Verb::Delete, false) => return Err(OperationError::Failed(MISSING.into())),
            _ => {}
        }
        self.written.push(*write);
        Ok(())
    }

    fn commit(self, records: &mut Records) -> Result<(), OperationError> {
        let conflict = self.conflict(records);
        let RecordsTransaction { level, written } = self;
        match level {
            Level::Serializable(began, _) | Level::Snapshot(began) => records.versions.leave(began),
            Level::ReadUncommitted(owner, _) => owner.into_iter().for_each(|owner| records.locks.release(owner)),
            Level::ReadCommitted => {}
        }
        if let Some(why) = conflict {
            return Err(OperationError::Aborted(why.into()));
        }
        records.write_all(&written);
        Ok(())
    }

    fn abort(self, records: &mut Records) {
        match self.level {
            Level::Serializable(began, _) | Level::Snapshot(began) => records.versions.leave(began),
            Level::ReadUncommitted(owner, before) => {
                for (place, (number, ids)) in before {
                    records.restore(place, number, ids);
                }
                owner.into_iter().for_each(|owner| records.locks.release(owner));
            }
            Level::ReadCommitted => {}
        }
    }
}

impl RecordsTransaction {
    /// What a record is for this transaction.
    fn seen(&self, records: &Records, place: KeyPlace, number: u64) -> Option<Ids> {
        let began = match self.level {
            Level::Serializable(began, _) | Level::Snapshot(began) => Some(began),
            Level::ReadCommitted | Level::ReadUncommitted(..) => None,
        };
        let mut ids = match began.and_then(|began| records.versions.at(place, began)) {
            Some((_, before)) => before.clone(),
            None => records.current(place).cloned(),
        };
        for write in self.written.iter().filter(|write| write.key == number) {
            records.apply(write, &mut ids);
        }
        ids
    }

    /// Only a serializable transaction must know what it has read.
    fn has_read(&mut self, from: KeyPlace, to: Bound<KeyPlace>) {
        if let Level::Serializable(_, read) = &mut self.level {
            read.push((from, to));
        }
    }

    /// Why the transaction cannot be committed, if it cannot.
    fn conflict(&self, records: &Records) -> Option<&'static str> {
        const OF_WRITES: &str = "a record that the transaction has written has changed since it began";
        const OF_READS: &str = "a record that the transaction has read has changed since it began";
        match &self.level {
            // A transaction that only reads is as if it had happened when it began.
            _ if self.written.is_empty() => None,
            Level::Serializable(began, read) => {
                let has_changed = |(from, to): &(KeyPlace, Bound<KeyPlace>)| {
                    records.versions.has_changed((Bound::Included(*from), *to), *began)
                };
                read.iter().any(has_changed).then_some(OF_READS)
            }
            Level::Snapshot(began) => {
                let has_changed = |write: &Operation| {
                    let place = records.place(write.key);
                    records.versions.has_changed(place..=place, *began)
                };
                self.written.iter().any(has_changed).then_some(OF_WRITES)
            }
            Level::ReadCommitted => {
                let mut exists: BTreeMap<u64, bool> = BTreeMap::new();
                let is_possible = |write: &Operation| {
                    let before = exists.insert(write.key, write.verb != Verb::Delete);
                    let exists = before.unwrap_or_else(|| records.current(records.place(write.key)).is_some());
                    exists != (write.verb == Verb::Insert)
                };
                let all = self.written.iter().all(is_possible);
                (!all).then_some("another transaction has inserted or deleted a record that this one has written")
            }
            Level::ReadUncommitted(..) => None,
        }
    }
}

/// Which transactions have written records and have not ended.
#[derive(Debug, Clone, Default)]
pub struct Locks {
    owners: BTreeMap<KeyPlace, u64>,
    last_owner: u64,
}

impl Locks {
    /// A number that no other transaction has.
    fn another_owner(&mut self) -> u64 {
        self.last_owner += 1;
        self.last_owner
    }

    /// Whether a transaction has a record.
    #[inline]
    pub fn is_taken(&self, place: impl FnOnce() -> KeyPlace) -> bool {
        !self.owners.is_empty() && self.owners.contains_key(&place())
    }

    /// Gives a record to a transaction, if no other one has it.
    fn take(&mut self, place: KeyPlace, owner: u64) -> bool {
        *self.owners.entry(place).or_insert(owner) == owner
    }

    fn release(&mut self, owner: u64) {
        self.owners.retain(|_, other| *other != owner);
    }
}
