//! The vocabulary of key-value stores: read, insert, update, delete and scan of records that have a
//! key and some fields, as in YCSB, and transactions of them.
//!
//! Each field of a record is a register: it holds what was written last. Every write has an id of
//! its own ([`WriteId`]), and what it writes begins with that id. So a read tells whose write it
//! saw, and no value is stored in a trace or a log.

mod answer;
mod balances;
mod columns;

use super::{Control, OperationKind, Vocabulary};

pub use answer::{ABSENT, Found, FoundRecords, Malformed, Seen, UNVERIFIABLE};
pub use balances::{Balances, WHOLE_BALANCE, new_balance};

/// The vocabulary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kv;

impl Vocabulary for Kv {
    const NAME: &'static str = "kv";
    const KINDS: &'static [OperationKind] = &Verb::KINDS;
    type Operation = Operation;
    type Columns = columns::Columns;
    type Memory = Balances;
    type Request = Operation;

    #[inline(always)]
    fn request<'a>(
        operation: &'a Operation,
        _columns: &columns::Columns,
        _memory: &'a mut Balances,
    ) -> Result<&'a Operation, &'static str> {
        Ok(operation)
    }

    /// An item is a record, and its parts are its fields.
    fn read_whole(item: u64, parts: u64) -> Option<Operation> {
        let id = WriteId::new(0, 0, 0);
        Some(Operation { verb: Verb::Read, key: item, fields: parts, length: 0, id, amount: 0 })
    }

    #[inline]
    fn forget(memory: &mut Balances) {
        memory.forget();
    }

    #[inline]
    fn remember(memory: &mut Balances, operation: &Operation, observed: &[i64]) {
        memory.remember(operation, observed);
    }

    #[inline]
    fn resolve(operation: &mut Operation, memory: &Balances) -> Result<(), &'static str> {
        memory.resolve(operation)
    }
}

/// An operation of a trace with its envelope.
pub type TraceRow = super::TraceRow<Operation>;

/// The most fields of a record: they are the bits of a mask that is stored as a signed number.
pub const FIELDS_MAX: u32 = 63;

/// What is done. The discriminant is the code used in memory; files carry the [name](Verb::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Verb {
    /// Some fields of a record, or that it does not exist.
    Read = 0,
    /// A record that does not exist, with all fields.
    Insert = 1,
    /// Some fields of a record that exists.
    Update = 2,
    /// A record that exists.
    Delete = 3,
    /// Some fields of the records from a key on, in the order of their keys.
    Scan = 4,
    /// The operations that follow are a transaction.
    Begin = 5,
    /// The transaction ends, and has happened.
    Commit = 6,
    /// The transaction ends, and has not happened.
    Abort = 7,
}

impl Verb {
    /// Every verb, in the order of their codes.
    pub const ALL: [Verb; 8] =
        [Verb::Read, Verb::Insert, Verb::Update, Verb::Delete, Verb::Scan, Verb::Begin, Verb::Commit, Verb::Abort];

    /// The verbs as kinds of operations.
    const KINDS: [OperationKind; Verb::ALL.len()] = {
        let mut kinds = [OperationKind { name: "", reads: false, writes: false }; Verb::ALL.len()];
        let mut code = 0;
        while code < kinds.len() {
            let verb = Verb::ALL[code];
            kinds[code] = OperationKind { name: verb.name(), reads: verb.reads(), writes: verb.writes() };
            code += 1;
        }
        kinds
    };

    /// The name in specifications, files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Insert => "insert",
            Verb::Update => "update",
            Verb::Delete => "delete",
            Verb::Scan => "scan",
            Verb::Begin => "begin",
            Verb::Commit => "commit",
            Verb::Abort => "abort",
        }
    }

    /// Whether it observes data.
    pub const fn reads(self) -> bool {
        matches!(self, Verb::Read | Verb::Scan)
    }

    /// Whether it changes data.
    pub const fn writes(self) -> bool {
        matches!(self, Verb::Insert | Verb::Update | Verb::Delete)
    }

    /// What it does to a transaction; None for operations on records.
    #[inline]
    pub const fn control(self) -> Option<Control> {
        match self {
            Verb::Begin => Some(Control::Begin),
            Verb::Commit => Some(Control::Commit),
            Verb::Abort => Some(Control::Abort),
            Verb::Read | Verb::Insert | Verb::Update | Verb::Delete | Verb::Scan => None,
        }
    }
}

/// One operation. Records are numbered as in YCSB; [`crate::workload::kv::keys`] makes their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What is done.
    pub verb: Verb,
    /// The record; of a scan, the one that it begins with. 0 for begin, commit and abort.
    pub key: u64,
    /// Which fields are read or written: a bit each. None for begin, commit and abort.
    pub fields: u64,
    /// How many records a scan asks for; 0 for the others.
    pub length: u32,
    /// The id of what is written. A read has an id too, which nothing uses.
    pub id: WriteId,
    /// What is done to the balance of the record, in data sets with balances; else 0. In a trace: the
    /// balance of a new record, what an update adds to the balance that its session has read, or
    /// [`WHOLE_BALANCE`] of a delete. When a store gets the operation: the balance to write.
    pub amount: i64,
}

impl Operation {
    /// The operation that begins or ends a transaction.
    pub const fn of_transaction(control: Control, id: WriteId) -> Operation {
        let verb = match control {
            Control::Begin => Verb::Begin,
            Control::Commit => Verb::Commit,
            Control::Abort => Verb::Abort,
        };
        Operation { verb, key: 0, fields: 0, length: 0, id, amount: 0 }
    }
}

impl super::Operation for Operation {
    fn code(&self) -> u8 {
        self.verb as u8
    }

    #[inline]
    fn reads(&self) -> bool {
        self.verb.reads()
    }

    #[inline]
    fn writes(&self) -> bool {
        self.verb.writes()
    }

    #[inline]
    fn control(&self) -> Option<Control> {
        self.verb.control()
    }

    fn adds(&self) -> Option<u64> {
        (self.verb == Verb::Insert).then_some(self.key)
    }
}

/// The id of a write: its place in the trace set. All of them differ, and none is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(u64);

const STEP_BITS: u32 = 12;
const SESSION_BITS: u32 = 36;
const FRAGMENT_BITS: u32 = 15;

impl WriteId {
    /// The most sessions of a fragment.
    pub const SESSIONS_MAX: u64 = 1 << SESSION_BITS;
    /// The most fragments.
    pub const FRAGMENTS_MAX: u32 = 1 << FRAGMENT_BITS;
    /// The most steps of a session. The last one of the last session of the last fragment would
    /// have an id of 64 bits.
    pub const STEPS_MAX: u32 = (1 << STEP_BITS) - 1;

    /// The id of the operation at this place.
    #[inline]
    pub const fn new(fragment: u32, session: u64, step: u16) -> WriteId {
        let place = (fragment as u64) << (SESSION_BITS + STEP_BITS) | session << STEP_BITS | step as u64;
        WriteId(place + 1)
    }

    /// The id that this number stands for; None if it is 0 or below, which no id is.
    pub const fn from_number(number: i64) -> Option<WriteId> {
        if number > 0 { Some(WriteId(number as u64)) } else { None }
    }

    /// The id as a number above 0.
    #[inline]
    pub const fn number(self) -> i64 {
        self.0 as i64
    }

    /// Fragment, session and step of the operation.
    pub const fn place(self) -> (u32, u64, u16) {
        let place = self.0 - 1;
        let session = place >> STEP_BITS & (Self::SESSIONS_MAX - 1);
        ((place >> (SESSION_BITS + STEP_BITS)) as u32, session, (place & Self::STEPS_MAX as u64) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_place_and_a_positive_number() {
        let last = (WriteId::FRAGMENTS_MAX - 1, WriteId::SESSIONS_MAX - 1, WriteId::STEPS_MAX as u16 - 1);
        for (fragment, session, step) in [(0, 0, 0), (3, 17, 1), (0, 1 << 35, 4_000), last] {
            let id = WriteId::new(fragment, session, step);
            assert_eq!(id.place(), (fragment, session, step));
            assert_eq!(WriteId::from_number(id.number()), Some(id));
        }
        assert_eq!((WriteId::from_number(0), WriteId::from_number(-1)), (None, None));
    }

    #[test]
    fn an_operation_is_small() {
        assert!(size_of::<Operation>() <= 40);
    }
}
