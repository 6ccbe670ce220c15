//! Families of workloads, as the analyzer sees them: which items a data set has, and which
//! operations change and observe them.
//!
//! A family is a folder here. Everything else is written against [`Family`], or against the views
//! `item_updates` and `item_reads` in SQL.

pub mod consbench;
pub mod economy;
pub mod kv;
pub mod social;
pub mod sql;
pub mod tpcc;

use std::ops::Range;
use std::path::Path;

use schemas::manifest::Manifest;
use schemas::table::TableError;
use schemas::verdict::DrawRule;
use schemas::vocabulary::Vocabulary;

use crate::error::DataSetError;
use crate::validate::Items;

/// A family of workloads.
pub trait Family: Send + Sync + 'static {
    /// Its name in a specification.
    const NAME: &'static str;

    /// Its operations.
    type Vocabulary: Vocabulary;

    /// The items of a fragment.
    type Items: Items<OperationOf<Self>>;

    /// The items of a fragment of the trace set in the folder, before the first session.
    fn items(folder: &Path, manifest: &Manifest, fragment: u32) -> Result<Self::Items, DataSetError>;

    /// The definitions of two views on `operations`:
    ///
    /// - `item_updates`: one row for each item that a write changes, for writes that happened or may
    ///   have happened: `experiment, fragment, session, step, operation, outcome, start_ns, end_ns,
    ///   item, owner, element, change`. `element` is the element of a list or the register of a
    ///   record, else NULL; `change` is what is added to a count, 1 for what is added or written and
    ///   -1 for what is removed.
    /// - `item_reads`: one row for each item that an answered read observes and that operations can
    ///   change: `experiment, fragment, session, step, start_ns, warmup, drained, item, owner, element,
    ///   unit`. `element` is NULL if all elements are observed. Items of one owner that have the same
    ///   `unit` count as one in the freshness.
    ///
    /// Functions that the family offers to those who write SQL are defined here too.
    fn views() -> String;

    /// The definitions of two views on `sealed_operations`, for families with items that are registers: each
    /// write writes a value of its own, and a read says which value it saw. None without registers.
    ///
    /// - `register_writes`: one row for each register that a write changes, for writes that happened or
    ///   may have happened: `experiment, fragment, session, step, thread, actor, outcome, start_ns, end_ns,
    ///   item, owner, element, value`. Values are above 0.
    /// - `register_reads`: one row for each register that an answered read observes: `experiment, fragment,
    ///   session, step, thread, actor, start_ns, end_ns, warmup, drained, item, owner, element, value,
    ///   absent`. `value` is 0 for the initial value and NULL if it is not known which write was seen;
    ///   `absent` says that the owner was not found.
    fn registers() -> Option<&'static str> {
        None
    }

    /// What an item is called in sentences; None if the family has no such item.
    fn words(item: &str) -> Option<ItemWords>;

    /// How wrong a row `u` of the view `unpredictable` is, as an expression of SQL. Rows with the highest
    /// value are shown first, after those without one.
    fn wrongness() -> &'static str {
        "greatest(u.low - u.observed, u.observed - u.high)"
    }

    /// The write whose value this is, of an item that is a register. None if no write wrote it.
    fn writer(_value: i64) -> Option<WritePlace> {
        None
    }

    /// What an item in the history of transactions is called.
    fn item_in_history(owner: u64, element: u32) -> String {
        format!("item {element} of {owner}")
    }

    /// What the benchmark asks of what these sessions of a fragment have drawn. Empty if it asks for nothing, or if the trace
    /// set does not say.
    fn draw_rules(
        _folder: &Path,
        _manifest: &Manifest,
        _fragment: u32,
        _sessions: Range<u64>,
    ) -> Result<Vec<DrawRule>, TableError> {
        Ok(Vec::new())
    }

    /// A sentence on how often the most popular items of a trace set are drawn; None if it says
    /// nothing.
    fn popularity(manifest: &Manifest) -> Option<String>;
}

/// The operation of a family.
pub type OperationOf<F> = <<F as Family>::Vocabulary as Vocabulary>::Operation;

/// The place of a write in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WritePlace {
    /// Its fragment.
    pub fragment: i64,
    /// Its session.
    pub session: i64,
    /// Its step.
    pub step: i64,
}

/// What an item is called in sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemWords {
    /// What owns it, such as `member`.
    pub owner: &'static str,
    /// What it is.
    pub is: ItemIs,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemIs {
    /// A count that writes change, of these, such as `friends`.
    Count(&'static str),
    /// A number that no write changes, of these.
    Constant(&'static str),
    /// A list of these, such as `comment`, which writes change.
    List(&'static str),
    /// A place in a list of these that no write changes.
    Place(&'static str),
    /// A register that writes overwrite. [`Family::writer`] says which write wrote a value.
    Register {
        /// What it is called, such as `field`.
        noun: &'static str,
        /// What a read observes if it has no value. No write leaves that.
        absent: i64,
    },
    /// Whether the owner exists.
    Existence,
    /// The shape of an answer; this says what may be wrong with it.
    Answer(&'static str),
}
