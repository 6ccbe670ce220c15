//! The records of a fragment, and the sum of their balances.
//!
//! What a transaction changes in the sum follows from the log: an insert puts a balance in, an update
//! adds its amount, and a delete takes out the balance that its session has read. A transaction that did
//! not commit changes nothing. If the store has no transactions, every operation counts by itself.

use std::collections::HashMap;
use std::path::Path;

use schemas::manifest::Manifest;
use schemas::oplog::Outcome;
use schemas::vocabulary::kv::{Balances, Found, Kv, Operation, Verb};
use schemas::vocabulary::{Control, Operation as _, Vocabulary};
use schemas::workload::kv::{KvWorkload, Values, dataset};

use crate::error::DataSetError;
use crate::family::kv::items::KvItems;
use crate::join::Row;
use crate::validate::{Change, Findings, Interval, Items, Sum, Touched, UnknownId};

/// A transaction that has not ended.
#[derive(Debug, Default)]
struct Open {
    balances: Balances,
    change: Change,
    /// Whether the store runs it as a transaction.
    is_atomic: bool,
}

/// The items of a fragment.
pub struct EconomyItems {
    records: KvItems,
    open: HashMap<u64, Open>,
    sum: Sum,
    /// How many records there are before the first session, and how many were inserted before the
    /// experiment.
    records_first: u64,
    inserted_before: u64,
    /// Whether a session before the experiment has written.
    has_moved: bool,
    /// The balances that the experiment began with, by the closing read before it.
    began_with: (u64, i64),
}

impl EconomyItems {
    /// The items of a fragment of the trace set in the folder.
    pub fn read(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<EconomyItems, DataSetError> {
        let workload = KvWorkload::of(&manifest.spec)?;
        let values = Values::new(&manifest.spec, &workload.data);
        let (mut count, mut start) = (0, 0i64);
        for records in dataset::records(folder, fragment)? {
            for record in records? {
                count += 1;
                start = start.saturating_add(values.initial_balance(record));
            }
        }
        Ok(EconomyItems::new(KvItems::read(folder, manifest, fragment)?, count, start))
    }

    /// The items of so many records that have this money together.
    pub(super) fn new(records: KvItems, count: u64, start: i64) -> EconomyItems {
        EconomyItems {
            records,
            open: HashMap::new(),
            sum: Sum { start, ..Sum::default() },
            records_first: count,
            inserted_before: 0,
            has_moved: false,
            began_with: (0, 0),
        }
    }

    fn begin(&mut self, row: &Row<Operation>) {
        // None of the session is sent then.
        if row.log.outcome == Outcome::Skipped {
            return;
        }
        let is_atomic = row.log.attempts > 0;
        if row.log.try_number == 0 {
            self.sum.transactions += 1;
            self.sum.apart += u64::from(!is_atomic);
        }
        self.open.insert(row.log.session, Open { is_atomic, ..Open::default() });
    }

    /// The end of a transaction.
    fn end(&mut self, row: &Row<Operation>, control: Control) {
        let Some(Open { change, is_atomic, .. }) = self.open.remove(&row.log.session) else { return };
        match (is_atomic, control, row.log.outcome) {
            (false, ..) | (true, Control::Commit, Outcome::Ok) => self.sum.add(change),
            (true, Control::Commit, Outcome::Unknown) => self.sum.add(change.unless_lost()),
            (true, ..) => {}
        }
    }
}

impl Open {
    fn write(&mut self, operation: &Operation, outcome: Outcome) {
        let amount = match operation.verb {
            // The replayer sends no delete of a record whose balance was not read.
            Verb::Delete => -self.balances.of(operation.key).unwrap_or_default(),
            _ => operation.amount,
        };
        match outcome {
            Outcome::Ok => self.change.add(amount),
            Outcome::Unknown => self.change.may_add(amount),
            Outcome::Failed | Outcome::Skipped | Outcome::Aborted => {}
        }
    }
}

impl Items<Operation> for EconomyItems {
    fn register(&mut self, operation: &Operation, at: Interval, horizon: i64) -> Result<(), UnknownId> {
        // Times of the experiment are not below 0.
        if at.end < 0 {
            self.has_moved = true;
            self.inserted_before += u64::from(operation.verb == Verb::Insert);
        }
        self.records.register(operation, at, horizon)
    }

    fn check(
        &mut self,
        operation: &Operation,
        observed: &[i64],
        read: Interval,
        horizon: i64,
        findings: &mut Findings,
    ) -> Result<(), UnknownId> {
        self.records.check(operation, observed, read, horizon, findings)
    }

    fn history(&self, operation: &Operation, observed: &[i64], each: &mut dyn FnMut(Option<Touched>)) {
        self.records.history(operation, observed, each);
    }

    fn is_open(&self) -> bool {
        self.records.is_open()
    }

    fn begin_with(&mut self, operation: &Operation, observed: &[i64]) -> Result<(), UnknownId> {
        let balance = Found::read(observed).ok().flatten().and_then(|found| found.balance());
        self.began_with = (self.began_with.0 + 1, self.began_with.1.saturating_add(balance.unwrap_or_default()));
        self.records.begin_with(operation, observed)
    }

    fn account(&mut self, row: &Row<Operation>, observed: &[i64]) {
        match row.operation.control() {
            Some(Control::Begin) => return self.begin(row),
            Some(control) => return self.end(row, control),
            None => {}
        }
        let Some(open) = self.open.get_mut(&row.log.session) else { return };
        if row.operation.writes() {
            open.write(&row.operation, row.log.outcome);
        } else if row.log.outcome == Outcome::Ok {
            Kv::remember(&mut open.balances, &row.operation, observed);
        }
    }

    fn account_closing(&mut self, observed: &[i64]) {
        match Found::read(observed) {
            Ok(None) => {}
            Ok(Some(found)) if found.balance().is_some() => {
                self.sum.end = self.sum.end.saturating_add(found.balance().unwrap_or_default());
            }
            // A record whose balance cannot be read.
            Ok(Some(_)) | Err(_) => self.sum.is_incomplete = true,
        }
    }

    fn sum(&mut self) -> Option<Sum> {
        let (read, money) = self.began_with;
        if self.has_moved {
            self.sum.start = money;
            self.sum.is_incomplete |= read != self.records_first + self.inserted_before;
        }
        Some(std::mem::take(&mut self.sum).closed())
    }
}
