//! Which isolation a history of transactions has: counts anomalies by class, and keeps the smallest one
//! of each class as a witness. Pure: transactions in, [`Anomalies`] out.
//!
//! Every value names its writer. So a read tells which version of an item it saw, and a write of a
//! transaction that had read the item before tells which version it overwrote. These are the edges of
//! a graph of transactions:
//!
//! | edge | from | to |
//! |---|---|---|
//! | ww | the writer of a version | who read that version and overwrote it |
//! | wr | the writer of a version | who read it |
//! | rw | who read a version | who read the same version and overwrote it |
//!
//! A write of an item that its transaction has not read gets no ww edge. Nothing is invented: an edge
//! that is not known is left out, so a store is never accused of a cycle that it does not have. If two
//! transactions overwrote the same version, that is a lost update in either order. There is no edge
//! between the two.
//!
//! ```text
//!  add ──▶ window ──(every two windows)──▶ graph ──▶ components ──▶ classes, witnesses
//!             └──▶ retire: the oldest transactions are counted and forgotten
//! ```
//!
//! Time is linear in the operations. Memory is bounded by [`Limits`].

mod classify;
mod graph;
mod index;
mod retire;
pub mod story;
#[cfg(test)]
mod tests;
mod window;
mod witness;

use schemas::anomalies::Counts;
pub use schemas::anomalies::{Anomalies, Class, Fate};

use self::classify::Classifier;
use self::window::Window;
pub use crate::validate::{Act, DELETED, INITIAL, Item, Touched};

/// A read or a write of an item in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The item.
    pub item: Item,
    /// The version: [`INITIAL`], [`DELETED`] or the id of the write.
    pub version: i64,
    /// When the operation started.
    pub start_ns: i64,
    /// When it had ended.
    pub end_ns: i64,
    /// Its step.
    pub step: u16,
    /// What it does.
    pub act: Act,
}

/// A try of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// Its session.
    pub session: u64,
    /// The step of its `begin`.
    pub txn: u16,
    /// Its try, from 0.
    pub try_number: u16,
    /// The thread that ran it.
    pub thread: u32,
    /// When its `begin` started.
    pub start_ns: i64,
    /// When its `commit` or `abort` had ended.
    pub end_ns: i64,
    /// How it ended.
    pub fate: Fate,
}

/// How much of the history is held at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A transaction is forgotten at the earliest when so many others have been added after it. Longer
    /// cycles, and reads of versions that were overwritten longer ago, are not found.
    pub window: usize,
    /// A transaction that may still run at the same time as one to come is kept beyond the window, but
    /// no more than these are kept in all.
    pub most: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { window: 1 << 16, most: 1 << 19 }
    }
}

/// Checks the transactions of a fragment.
pub struct Checker {
    fragment: u32,
    limits: Limits,
    /// No transaction that is still to come starts before this.
    low: i64,
    /// Transactions since the last check.
    added: usize,
    window: Window,
    classifier: Classifier,
    found: Anomalies,
}

impl Checker {
    /// A checker of a history that has not begun.
    pub fn new(fragment: u32, limits: Limits) -> Checker {
        Checker {
            fragment,
            limits,
            low: i64::MAX,
            added: 0,
            window: Window::default(),
            classifier: Classifier::default(),
            found: Anomalies { counts: Counts::default(), ..Anomalies::default() },
        }
    }

    /// Says that no transaction that is still to come starts before this time.
    pub fn advance(&mut self, low: i64) {
        self.low = low;
    }

    /// Adds a transaction with its events, in the order of their steps. Transactions come roughly in the
    /// order in which they ended; all tries of one come before [`Limits::window`] others.
    pub fn add(&mut self, transaction: &Transaction, events: &[Event]) {
        match transaction.fate {
            Fate::Committed => self.found.committed += 1,
            Fate::Aborted => self.found.aborted += 1,
            Fate::Unknown => self.found.unknown += 1,
        }
        self.found.operations += events.len() as u64;
        self.found.unordered_writes += self.window.add(transaction, events);
        self.added += 1;
        // Each check looks at the whole window again, so it waits until most of that is new.
        if self.added >= 2 * self.limits.window && self.window.len() >= 3 * self.limits.window {
            self.check();
            let keep_from = self.window.len().saturating_sub(self.limits.window);
            let forced = self.window.len().saturating_sub(self.limits.most);
            let ended = self.window.ended_before(self.low).max(forced);
            retire::retire(&mut self.window, keep_from.min(ended), self.fragment, &mut self.found);
        }
    }

    /// Counts a read whose version is not known.
    pub fn ambiguous_read(&mut self) {
        self.found.ambiguous_reads += 1;
    }

    /// What was found in the whole history.
    pub fn finish(mut self) -> Anomalies {
        self.check();
        let all = self.window.len();
        retire::retire(&mut self.window, all, self.fragment, &mut self.found);
        self.found
    }

    fn check(&mut self) {
        self.added = 0;
        self.window.settle_unknown();
        self.classifier.classify(&mut self.window);
        self.classifier.witnesses(&self.window, self.fragment, &mut self.found);
    }
}
