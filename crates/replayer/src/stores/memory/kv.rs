//! The vocabulary `kv`: records in the order of their keys. A field is the id of the write that it holds,
//! since every value is a function of it. The balance of a record, if it has one, follows its fields.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use schemas::digest::StateDigest;
use schemas::vocabulary::kv::{Found, Kv, Operation, Seen, Verb, WriteId};
use schemas::workload::kv::LengthDistribution;
use schemas::workload::kv::keys::KeyPlace;
use schemas::workload::kv::values::BALANCE_FIELD;

use super::connection::State;
use super::transactions::{Locks, RecordsTransaction};
use super::versions::Versions;
use super::{Inner, Kept, Room};
use crate::source::Source;
use crate::stores::kv::{ALREADY_THERE, KvData, MISSING};
use crate::stores::url::StoreUrl;
use crate::stores::{Answer, StoreError};

impl Kept for Kv {
    type State = Records;
}

/// The number of the write that each field holds, 0 for its initial value, then the balance of the record,
/// if it has one; empty if all are initial.
pub type Ids = Box<[i64]>;

/// A record, and what it was before its last write. None where it does not exist.
#[derive(Debug, Clone)]
struct Record {
    number: u64,
    now: Option<Ids>,
    before: Option<Option<Ids>>,
    /// What it was earlier, each with the time at which that ended.
    past: VecDeque<(i64, Option<Ids>)>,
}

impl Record {
    fn new(number: u64, now: Option<Ids>) -> Record {
        Record { number, now, before: None, past: VecDeque::new() }
    }

    fn seen(&self, stale: bool) -> Option<&Ids> {
        match (&self.before, stale) {
            (Some(before), true) => before.as_ref(),
            _ => self.now.as_ref(),
        }
    }

    fn seen_at(&self, at_ns: i64) -> Option<&Ids> {
        let then = self.past.iter().find(|(until_ns, _)| *until_ns > at_ns);
        then.map_or(self.now.as_ref(), |(_, ids)| ids.as_ref())
    }
}

/// The records of a data set.
#[derive(Debug, Clone)]
pub struct Records {
    records: BTreeMap<KeyPlace, Record>,
    data: Arc<KvData>,
    /// All values have this length; None if they differ, or tell nothing.
    bytes_each: Option<u32>,
    /// What transactions may have to see.
    pub versions: Versions<Option<Ids>>,
    /// What transactions have written whose writes are seen before they commit.
    pub locks: Locks,
}

impl Records {
    /// Where a record stands among all.
    pub fn place(&self, record: u64) -> KeyPlace {
        self.data.keys.place(self.data.keys.number(record))
    }

    fn exists(&self, record: u64) -> bool {
        self.records.get(&self.place(record)).is_some_and(|record| record.now.is_some())
    }

    /// Puts the value of a field in place of what `text` holds.
    fn value(&self, record: u64, ids: &Ids, field: u32, text: &mut String) {
        text.clear();
        match ids.get(field as usize).copied().and_then(WriteId::from_number) {
            Some(id) => self.data.values.written(id, self.balance(record, ids).unwrap_or_default(), field, text),
            None => self.data.values.initial(record, field, text),
        }
    }

    /// What a record consists of.
    fn shape(&self, record: u64) -> Shape {
        Shape { fields: self.data.data.fields as usize, initial_balance: self.balance(record, &Ids::default()) }
    }

    /// The balance of a record; None if records have none.
    fn balance(&self, record: u64, ids: &Ids) -> Option<i64> {
        let initial = || self.data.values.initial_balance(record);
        self.data.data.total_cash.map(|_| ids.last().copied().unwrap_or_else(initial))
    }

    /// The number of a key, as a scan observes it.
    pub fn key_number(&self, record: u64) -> i64 {
        self.data.keys.number(record) as i64
    }

    /// What a record is now; None if it does not exist.
    pub fn current(&self, place: KeyPlace) -> Option<&Ids> {
        self.records.get(&place)?.now.as_ref()
    }

    /// The first record that exists from a place on.
    pub fn next(&self, from: Bound<KeyPlace>) -> Option<KeyPlace> {
        self.records.range((from, Bound::Unbounded)).next().map(|(place, _)| *place)
    }

    /// The number of the record at a place, if it exists or has existed when a transaction began.
    pub fn number(&self, place: KeyPlace) -> Option<u64> {
        let now = self.records.get(&place).map(|record| record.number);
        now.or_else(|| self.versions.at(place, 0).map(|(number, _)| number))
    }

    /// Does what a write does to a record.
    pub fn apply(&self, write: &Operation, now: &mut Option<Ids>) {
        apply(self.shape(write.key), write, now);
    }

    /// Performs the writes of a transaction at one moment.
    pub fn write_all(&mut self, writes: &[Operation]) {
        self.versions.tick();
        writes.iter().for_each(|write| self.change(write, false));
    }

    /// Puts a record back to what it was.
    pub fn restore(&mut self, place: KeyPlace, number: u64, ids: Option<Ids>) {
        match ids {
            Some(ids) => drop(self.records.insert(place, Record::new(number, Some(ids)))),
            None => drop(self.records.remove(&place)),
        }
    }

    fn change(&mut self, write: &Operation, keep_before: bool) {
        let (place, shape) = (self.place(write.key), self.shape(write.key));
        let record = self.records.entry(place).or_insert_with(|| Record::new(write.key, None));
        if keep_before {
            record.before = Some(record.now.clone());
        }
        if self.versions.is_watched() {
            self.versions.note(place, write.key, record.now.clone());
        }
        apply(shape, write, &mut record.now);
        if record.now.is_none() && !keep_before {
            self.records.remove(&place);
        }
    }

    /// Adds to an answer what a read finds in a record.
    pub fn find(&self, record: u64, ids: &Ids, fields: u64, answer: &mut Answer) {
        let places = (0..self.data.data.fields).filter(|field| fields >> field & 1 == 1);
        let Answer { values, payload_bytes, .. } = answer;
        if let Some(bytes) = self.bytes_each {
            *payload_bytes += fields.count_ones() as u64 * bytes as u64;
            let balance = self.balance(record, ids);
            let seen = |field| {
                let number = ids.get(field as usize).copied().unwrap_or(0);
                (field, Seen { number, balance: balance.filter(|_| field == BALANCE_FIELD) })
            };
            return Found::push(values, places.map(seen));
        }
        let mut text = String::new();
        let numbers = places.map(|field| {
            self.value(record, ids, field, &mut text);
            *payload_bytes += text.len() as u64;
            (field, self.data.values.seen(field, text.as_bytes()))
        });
        Found::push(values, numbers);
    }
}

/// What a record consists of: so many fields, and a balance if it has one.
struct Shape {
    fields: usize,
    initial_balance: Option<i64>,
}

/// Does what a write does to a record.
fn apply(shape: Shape, write: &Operation, now: &mut Option<Ids>) {
    let Shape { fields, initial_balance } = shape;
    match (write.verb, now) {
        (Verb::Insert | Verb::Update, now @ Some(_)) | (Verb::Insert, now @ None) => {
            let ids = now.get_or_insert_default();
            if ids.is_empty() {
                *ids = std::iter::repeat_n(0, fields).chain(initial_balance).collect();
            }
            for (field, id) in ids.iter_mut().enumerate().take(fields) {
                if write.fields >> field & 1 == 1 {
                    *id = write.id.number();
                }
            }
            if initial_balance.is_some() && write.fields >> BALANCE_FIELD & 1 == 1 {
                ids[fields] = write.amount;
            }
        }
        (Verb::Delete, now) => *now = None,
        // What a correct store would hold lacks records that this store has lost the delete of.
        (Verb::Update | Verb::Read | Verb::Scan, _) | (Verb::Begin | Verb::Commit | Verb::Abort, _) => {}
    }
}

impl State<Kv> for Records {
    const COUNTED: &'static str = "records";

    type Transaction = RecordsTransaction;

    fn loaded(source: &Source, url: &StoreUrl) -> Result<Records, StoreError> {
        let data = Arc::new(KvData::of(source));
        let is_constant = data.data.field_length == LengthDistribution::Constant && data.values.are_verifiable();
        let bytes_each = is_constant.then_some(data.data.field_bytes);
        let mut state = Records {
            records: BTreeMap::new(),
            data,
            bytes_each,
            versions: Versions::default(),
            locks: Locks::default(),
        };
        for fragment in source.fragments() {
            for records in KvData::records(source, fragment, url)? {
                for number in records? {
                    let record = Record::new(number, Some(Ids::default()));
                    state.records.insert(state.place(number), record);
                }
            }
        }
        Ok(state)
    }

    fn room(inner: &mut Inner) -> &mut Option<Room<Records>> {
        &mut inner.kv
    }

    fn count(&self) -> u64 {
        self.records.values().filter(|record| record.now.is_some()).count() as u64
    }

    fn expected(source: &Source) -> u64 {
        KvData::count(source)
    }

    fn digest(&self, source: &Source, url: &StoreUrl) -> Result<StateDigest, StoreError> {
        KvData::has_one_state(source, url)?;
        let mut digest = StateDigest::default();
        let mut texts = vec![String::new(); self.data.data.fields as usize];
        for record in self.records.values() {
            let Some(ids) = &record.now else { continue };
            for (field, text) in (0..).zip(&mut texts) {
                self.value(record.number, ids, field, text);
            }
            digest.record(&self.data.keys.key(record.number), texts.iter().map(|text| text.as_bytes()));
        }
        Ok(digest)
    }

    fn refusal(&self, write: &Operation) -> Option<&'static str> {
        match (write.verb, self.exists(write.key)) {
            (Verb::Insert, true) => Some(ALREADY_THERE),
            (Verb::Update | Verb::Delete, false) => Some(MISSING),
            _ => None,
        }
    }

    #[inline]
    fn is_taken(&self, write: &Operation) -> bool {
        self.locks.is_taken(|| self.place(write.key))
    }

    fn write(&mut self, write: &Operation, keep_before: bool) {
        if self.versions.is_watched() {
            self.versions.tick();
        }
        self.change(write, keep_before);
    }

    fn read(&self, read: &Operation, stale: bool, answer: &mut Answer) {
        self.read_as(read, |record| record.seen(stale), answer);
    }

    const KEEPS_PAST: bool = true;

    fn write_at(&mut self, write: &Operation, now_ns: i64, keep_ns: i64) {
        let place = self.place(write.key);
        // A record that is removed stays, as long as a read may see it.
        self.change(write, true);
        let Some(record) = self.records.get_mut(&place) else { return };
        record.past.push_back((now_ns, record.before.take().flatten()));
        while record.past.front().is_some_and(|(until_ns, _)| *until_ns < now_ns - keep_ns) {
            record.past.pop_front();
        }
    }

    fn read_at(&self, read: &Operation, at_ns: i64, answer: &mut Answer) {
        self.read_as(read, |record| record.seen_at(at_ns), answer);
    }
}

impl Records {
    /// Performs a read. `seen` says what it sees of a record.
    fn read_as<'a>(&'a self, read: &Operation, seen: impl Fn(&'a Record) -> Option<&'a Ids>, answer: &mut Answer) {
        if read.verb == Verb::Read {
            if let Some((number, ids)) =
                self.records.get(&self.place(read.key)).and_then(|one| seen(one).map(|ids| (one.number, ids)))
            {
                self.find(number, ids, read.fields, answer);
            }
            return;
        }
        let from = self.records.range(self.place(read.key)..);
        let seen = from.filter_map(|(_, record)| seen(record).map(|ids| (record.number, ids)));
        for (number, ids) in seen.take(read.length as usize) {
            answer.values.push(self.data.keys.number(number) as i64);
            self.find(number, ids, read.fields, answer);
        }
    }
}
