//! What an operation of a transaction did to items, for the check of isolation.

/// The version of an item before the first write.
pub const INITIAL: i64 = 0;

/// The version of an item that a delete leaves. A record is deleted at most once.
pub const DELETED: i64 = -1;

/// An item: a field of a record, for instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item(u64);

const ELEMENT_BITS: u32 = 6;

impl Item {
    /// The item of an owner below 2^58 with this number below 64.
    pub const fn new(owner: u64, element: u32) -> Item {
        Item(owner << ELEMENT_BITS | (element & ((1 << ELEMENT_BITS) - 1)) as u64)
    }

    /// Its owner.
    pub const fn owner(self) -> u64 {
        self.0 >> ELEMENT_BITS
    }

    /// Its number among the items of its owner.
    pub const fn element(self) -> u32 {
        (self.0 & ((1 << ELEMENT_BITS) - 1)) as u32
    }
}

/// What an event does to its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It saw the version.
    Read,
    /// It wrote the version over another one.
    Write,
    /// It wrote the first version of an item that did not exist.
    Insert,
    /// It left [`DELETED`].
    Delete,
}

/// What an operation did to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touched {
    /// The item.
    pub item: Item,
    /// What was done.
    pub act: Act,
    /// The version that was read or written.
    pub version: i64,
}

/// What an operation did to a register. Values are numbers of writes; 0 is the initial one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// A read saw this value; None if it is not known which.
    Saw(Option<i64>),
    /// A read found no owner of the register, which says that it saw this value; None if it is not known which.
    Missed(Option<i64>),
    /// It wrote this value.
    Wrote(i64),
    /// It removed the owner of the register, which counts as a write of this value.
    Removed(i64),
}
