//! The items of a fragment during an experiment: the fields of every record, and whether it exists.

use std::collections::HashMap;
use std::path::Path;

use schemas::manifest::Manifest;
use schemas::vocabulary::kv::{ABSENT, FIELDS_MAX, Found, FoundRecords, Operation, UNVERIFIABLE, Verb};
use schemas::workload::kv::keys::{KeyPlace, KeyRange};
use schemas::workload::kv::{Keys, KvStatistics, KvWorkload, dataset};

use super::names;
use super::scans::Order;
use crate::error::DataSetError;
use crate::validate::register::{EXISTENCE, Registers, places};
use crate::validate::{
    Act, Findings, Interval, Item, ItemRead, Items, RegisterWrite, SHAPE, Touch, Touched, UnknownId, Violation, touched,
};

/// The bit of [`EXISTENCE`].
const EXISTENCE_BIT: u64 = 1 << EXISTENCE;

/// The items of a fragment. A record takes memory once it is written.
pub struct KvItems {
    keys: Keys,
    /// All fields of a record, a bit each.
    fields: u64,
    /// The number of the first record of the data set, and how many there are in all fragments.
    first: u64,
    initial: u64,
    range: KeyRange,
    /// Whether writes of a record may have run at the same time, so that the sessions before the
    /// experiment leave one of several states.
    may_race: bool,
    /// Whether a store may have rolled back what the sessions before the experiment wrote.
    may_be_undone: bool,
    records: HashMap<u64, Registers>,
    /// None if no session scans.
    order: Option<Order>,
}

impl KvItems {
    /// The items of a fragment of the trace set in the folder.
    pub fn read(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<KvItems, DataSetError> {
        let workload = KvWorkload::of(&manifest.spec)?;
        let statistics: KvStatistics = manifest.statistics_of::<KvWorkload>().map_err(|e| {
            let path = folder.join(schemas::manifest::FILE_NAME);
            schemas::table::TableError::new(&path, format!("statistics: {e}"))
        })?;
        let range = statistics.range(&Keys::new(&workload.data), fragment);
        let scans = manifest.spec.kinds().iter().any(|(kind, _)| *kind == Verb::Scan.name());
        let mut items = KvItems::new(&workload, range);
        items.may_race = !workload.leaves_one_state(&manifest.spec);
        items.may_be_undone = workload.transactions.is_some();
        if scans {
            let mut initial = Vec::new();
            for records in dataset::records(folder, fragment)? {
                for record in records? {
                    initial.push(items.index(record).map_err(|source| DataSetError::Row {
                        table: folder.join(dataset::relative_path(fragment)).display().to_string(),
                        row: initial.len(),
                        source,
                    })?);
                }
            }
            items.order = Some(Order::new(initial));
        }
        Ok(items)
    }

    /// The items of the records with these keys, for a workload without scans whose writes do not
    /// race.
    pub fn new(workload: &KvWorkload, range: KeyRange) -> KvItems {
        let data = &workload.data;
        KvItems {
            keys: Keys::new(data),
            fields: (1 << data.fields.min(FIELDS_MAX)) - 1,
            first: data.first_record,
            initial: data.records,
            range,
            may_race: false,
            may_be_undone: false,
            records: HashMap::new(),
            order: None,
        }
    }

    /// The same, where writes may race.
    #[cfg(test)]
    pub(super) fn racing(self) -> KvItems {
        KvItems { may_race: true, ..self }
    }

    /// The same, where a store may have rolled earlier writes back.
    #[cfg(test)]
    pub(super) fn undoable(self) -> KvItems {
        KvItems { may_be_undone: true, ..self }
    }

    /// The same, with scans. The records of the fragment's data set are in the order of their keys.
    #[cfg(test)]
    pub(super) fn scanned(self, records: &[u64]) -> KvItems {
        let initial = records.iter().map(|record| self.index(*record).unwrap()).collect();
        KvItems { order: Some(Order::new(initial)), ..self }
    }

    /// A record of the data set, counted from the first one.
    fn index(&self, record: u64) -> Result<u32, UnknownId> {
        let index = record.checked_sub(self.first).filter(|index| *index < self.initial);
        index.and_then(|index| u32::try_from(index).ok()).ok_or(UnknownId { what: "record", id: record })
    }

    /// The place of a record's key, which must be in the fragment.
    fn place(&self, record: u64) -> Result<KeyPlace, UnknownId> {
        let place = self.keys.place(self.keys.number(record));
        if self.range.contains(place) { Ok(place) } else { Err(UnknownId { what: "record", id: record }) }
    }

    /// Checks what was read of a record: these fields, or that it does not exist. Returns whether
    /// nothing is wrong.
    fn check_record(
        &self,
        record: u64,
        fields: u64,
        found: Option<Found<'_>>,
        read: Interval,
        violations: &mut Vec<Violation>,
    ) -> bool {
        let (is_initial, registers) = (self.index(record).is_ok(), self.records.get(&record));
        let violations_before = violations.len();
        let exists = i64::from(found.is_some());
        let initially = i64::from(is_initial);
        let may_exist = match registers {
            Some(registers) => registers.may_return(Some(initially), EXISTENCE, read, exists),
            None => exists == initially,
        };
        if !may_exist {
            let (low, high) = (1 - exists, 1 - exists);
            let (item, owner) = (names::EXISTENCE, record);
            violations.push(Violation { item, owner, element: None, observed: exists, low, high });
        }
        let Some(found) = found else { return violations.len() == violations_before };
        if registers.is_none() && is_initial && found.mask() == 0 {
            return violations.len() == violations_before;
        }
        // A record that is not of the data set never had initial values.
        let initial = is_initial.then_some(0);
        for field in places(fields) {
            let observed = found.of(field);
            let may_be = match registers {
                Some(registers) => registers.may_return(initial, field, read, observed),
                None => initial == Some(observed),
            };
            if !may_be && observed != UNVERIFIABLE {
                let newest = registers.and_then(|registers| registers.newest_before(field, read.start));
                let newest = newest.map_or(0, |write| write.value);
                let (item, element) = (names::FIELD, Some(field as i64));
                violations.push(Violation { item, owner: record, element, observed, low: newest, high: newest });
            }
        }
        violations.len() == violations_before
    }

    fn check_read(&self, operation: &Operation, observed: &[i64], read: Interval, findings: &mut Findings) {
        let Operation { key, fields, .. } = *operation;
        let found = match Found::read(observed) {
            Ok(found) if found.is_none_or(|found| found.mask() & !fields == 0) => found,
            _ => return findings.violations.push(shape(operation, observed, 1)),
        };
        let is_fresh = self.check_record(key, fields, found, read, &mut findings.violations);
        let last_end = match self.records.get(&key) {
            Some(registers) => registers.last_end_before(fields | EXISTENCE_BIT, read.start),
            None => i64::MIN,
        };
        findings.items.extend(ItemRead::after(last_end, read.start, is_fresh));
    }

    /// Checks each record that a scan returned, and finds the records that it should have returned.
    fn check_scan(
        &self,
        operation: &Operation,
        observed: &[i64],
        read: Interval,
        findings: &mut Findings,
    ) -> Result<(), UnknownId> {
        let Operation { key, fields, length, .. } = *operation;
        let violations = &mut findings.violations;
        let start = self.place(key)?;
        let Some(returned) = self.returned(operation, start, observed) else {
            violations.push(shape(operation, observed, length as i64));
            return Ok(());
        };
        let Some(order) = &self.order else { return Ok(()) };
        // Which records are missing is known up to the last one that was returned, or to the end if
        // fewer were returned than asked for. A scan returns `length` of them at most.
        let is_short = returned < length as u64;
        let mut missing_most = if is_short { length as u64 - returned } else { length as u64 };
        let mut walk = order.from(&self.keys, self.first, start).peekable();
        let check_missing = |record: u64, missing_most: &mut u64, violations: &mut Vec<Violation>| {
            let is_missing = !self.check_record(record, 0, None, read, violations);
            *missing_most -= u64::from(is_missing);
        };
        for (number, found) in FoundRecords::new(observed).flatten() {
            let place = self.keys.place(number as u64);
            while missing_most > 0
                && let Some((_, record)) = walk.next_if(|(next, _)| *next < place)
            {
                check_missing(record, &mut missing_most, violations);
            }
            if !self.range.contains(place) {
                break;
            }
            if walk.peek().is_some_and(|(next, _)| *next < place) {
                walk = order.from(&self.keys, self.first, place).peekable();
            }
            match walk.next_if(|(next, _)| *next == place) {
                Some((_, record)) => {
                    self.check_record(record, fields, Some(found), read, violations);
                }
                // No record has this key, so the number in the key stands for it.
                None => {
                    let (item, owner) = (names::EXISTENCE, number as u64);
                    violations.push(Violation { item, owner, element: None, observed: 1, low: 0, high: 0 });
                }
            }
        }
        while is_short
            && missing_most > 0
            && let Some((_, record)) = walk.next()
        {
            check_missing(record, &mut missing_most, violations);
        }
        Ok(())
    }

    /// How many records a scan returned; None unless they have the shape of an answer: their keys
    /// ascend from the first one, they have no field that was not asked for, and they are not too
    /// many.
    fn returned(&self, operation: &Operation, start: KeyPlace, observed: &[i64]) -> Option<u64> {
        let (mut records, mut last) = (0, None);
        for record in FoundRecords::new(observed) {
            let (number, found) = record.ok()?;
            let place = self.keys.place(u64::try_from(number).ok()?);
            if place < start || last.is_some_and(|last| place <= last) || found.mask() & !operation.fields != 0 {
                return None;
            }
            last = Some(place);
            records += 1;
        }
        (records <= operation.length as u64).then_some(records)
    }
}

/// An answer that is not one about so many records. `low` and `high` say how many values one has.
fn shape(operation: &Operation, observed: &[i64], records: i64) -> Violation {
    // The mask, a value for each field, and in front of each record of a scan the number in its key.
    let values = i64::from(operation.verb == Verb::Scan) + 1 + i64::from(operation.fields.count_ones());
    Violation {
        item: SHAPE,
        owner: operation.key,
        element: None,
        observed: observed.len() as i64,
        low: 0,
        high: records * values,
    }
}

impl KvItems {
    /// The version that a read of a field saw; None if that is not known.
    fn version(&self, key: u64, found: Option<Found<'_>>, field: u32) -> Option<i64> {
        let is_initial = self.index(key).is_ok();
        match found.map(|found| found.of(field)) {
            // A record that is not of the data set is absent before its insert, and after its delete.
            None => is_initial.then_some(touched::DELETED),
            Some(0) => is_initial.then_some(touched::INITIAL),
            Some(UNVERIFIABLE | ABSENT) => None,
            Some(id) => Some(id),
        }
    }
}

impl Items<Operation> for KvItems {
    /// The fields of records; a delete leaves all of them without a value. Scans are left out: which
    /// records they should have seen is not a matter of items.
    fn history(&self, operation: &Operation, observed: &[i64], each: &mut dyn FnMut(Option<Touched>)) {
        let Operation { key, fields, .. } = *operation;
        let (act, version, fields) = match operation.verb {
            Verb::Insert => (Act::Insert, operation.id.number(), fields),
            Verb::Update => (Act::Write, operation.id.number(), fields),
            Verb::Delete => (Act::Delete, touched::DELETED, self.fields),
            Verb::Read => {
                let Ok(found) = Found::read(observed) else { return };
                for field in places(fields) {
                    let version = self.version(key, found, field);
                    let item = Item::new(key, field);
                    each(version.map(|version| Touched { item, act: Act::Read, version }));
                }
                return;
            }
            Verb::Scan | Verb::Begin | Verb::Commit | Verb::Abort => return,
        };
        for field in places(fields) {
            each(Some(Touched { item: Item::new(key, field), act, version }));
        }
    }

    /// The fields of records. Scans are left out, as in [`KvItems::history`].
    fn registers(&self, operation: &Operation, observed: &[i64], end: i64, each: &mut dyn FnMut(Item, Touch)) {
        let Operation { verb, key, fields, id, .. } = *operation;
        let (touch, fields) = match verb {
            Verb::Insert | Verb::Update => (Touch::Wrote(id.number()), fields),
            Verb::Delete => (Touch::Removed(id.number()), self.fields),
            Verb::Read => match Found::read(observed) {
                Ok(Some(found)) => {
                    for field in places(fields) {
                        let number = found.of(field);
                        each(Item::new(key, field), Touch::Saw((number >= 0).then_some(number)));
                    }
                    return;
                }
                Ok(None) => {
                    let may_be_gone = self.records.get(&key).is_some_and(|registers| registers.may_be_gone(end));
                    let is_unborn = self.index(key).is_err() && !may_be_gone;
                    (Touch::Missed(is_unborn.then_some(0)), fields)
                }
                Err(_) => return,
            },
            Verb::Scan | Verb::Begin | Verb::Commit | Verb::Abort => return,
        };
        places(fields).for_each(|field| each(Item::new(key, field), touch));
    }

    fn register(&mut self, operation: &Operation, at: Interval, horizon: i64) -> Result<(), UnknownId> {
        let Operation { verb, key, fields, id, .. } = *operation;
        let place = self.place(key)?;
        let is_delete = verb == Verb::Delete;
        let value = if is_delete { 0 } else { id.number() };
        let changes_existence = verb != Verb::Update;
        if changes_existence && let Some(order) = &mut self.order {
            order.add(place, key);
        }
        let fields = if is_delete { 0 } else { fields };
        let exists_initially = self.index(key).is_ok();
        let registers = self.records.entry(key).or_default();
        // Times of the experiment are not below 0.
        if self.may_race && at.end < 0 {
            // What was updated existed.
            registers.register_earlier(fields | EXISTENCE_BIT, value);
            if self.may_be_undone {
                registers.may_be_initial(fields | EXISTENCE_BIT, exists_initially);
            }
        } else {
            let places = fields | if changes_existence { EXISTENCE_BIT } else { 0 };
            registers.register(RegisterWrite { at, places, value }, horizon);
        }
        Ok(())
    }

    fn check(
        &mut self,
        operation: &Operation,
        observed: &[i64],
        read: Interval,
        _horizon: i64,
        findings: &mut Findings,
    ) -> Result<(), UnknownId> {
        if operation.verb == Verb::Scan {
            return self.check_scan(operation, observed, read, findings);
        }
        self.place(operation.key)?;
        self.check_read(operation, observed, read, findings);
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.may_race
    }

    fn begin_with(&mut self, operation: &Operation, observed: &[i64]) -> Result<(), UnknownId> {
        self.place(operation.key)?;
        let Some(registers) = self.records.get_mut(&operation.key) else { return Ok(()) };
        let Ok(found) = Found::read(observed) else { return Ok(()) };
        registers.began_with(EXISTENCE, i64::from(found.is_some()));
        if let Some(found) = found {
            places(operation.fields).for_each(|field| registers.began_with(field, found.of(field)));
        }
        Ok(())
    }
}
