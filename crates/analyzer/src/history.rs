//! The transactions of a fragment as a history for the check of isolation: puts the reads and writes of
//! each try together.

use std::collections::HashMap;

use schemas::anomalies::{Anomalies, Fate};
use schemas::oplog::{Outcome, TryEnd};
use schemas::vocabulary::Operation;

use crate::consistency::isolation::{Checker, Event, Limits, Transaction};
use crate::join::OfTry;
use crate::join::Row;
use crate::validate::Items;

/// So many transactions are added before the earliest start of those under way is looked up again.
const ADVANCE_EVERY: u32 = 256;

/// The tries of transactions under way, each on a thread of its own, and those that are complete.
#[derive(Default)]
pub(crate) struct History {
    fragment: u32,
    /// None until the first transaction.
    checker: Option<Checker>,
    open: HashMap<u32, (Transaction, Vec<Event>)>,
    /// Lists of events that can be used again.
    spare: Vec<Vec<Event>>,
    added: u32,
}

impl History {
    pub(crate) fn new(fragment: u32) -> History {
        History { fragment, ..History::default() }
    }

    /// Takes the next row; rows come in the order of their start.
    pub(crate) fn add<O: Operation>(&mut self, row: &Row<O>, items: &impl Items<O>, observed: &[i64]) {
        let Some(of_try) = &row.of_try else { return };
        let Some(fate) = fate(of_try) else { return };
        let checker = self.checker.get_or_insert_with(|| Checker::new(self.fragment, Limits::default()));
        let thread = row.log.thread;
        if of_try.is_first {
            let transaction = Transaction {
                session: row.log.session,
                txn: row.log.step,
                try_number: row.log.try_number,
                thread,
                start_ns: of_try.begin_ns,
                end_ns: of_try.end_ns,
                fate,
            };
            self.open.insert(thread, (transaction, self.spare.pop().unwrap_or_default()));
        }
        // The beginning of a try may be missing in the log of a killed replayer.
        let Some((transaction, events)) = self.open.get_mut(&thread) else { return };
        let happened = match row.log.outcome {
            Outcome::Ok => true,
            Outcome::Unknown => row.operation.writes(),
            Outcome::Failed | Outcome::Skipped | Outcome::Aborted => false,
        };
        if happened {
            let (start_ns, end_ns, step) = (row.log.start_ns, row.log.end_ns, row.log.step);
            items.history(&row.operation, observed, &mut |touched| match touched {
                Some(touched) => events.push(Event {
                    item: touched.item,
                    version: touched.version,
                    act: touched.act,
                    start_ns,
                    end_ns,
                    step,
                }),
                None => checker.ambiguous_read(),
            });
        }
        if of_try.is_last {
            checker.add(transaction, events);
            if let Some((_, mut events)) = self.open.remove(&thread) {
                events.clear();
                self.spare.push(events);
            }
            self.added += 1;
            if self.added.is_multiple_of(ADVANCE_EVERY) {
                let begun = self.open.values().map(|(transaction, _)| transaction.start_ns);
                checker.advance(begun.min().unwrap_or(row.log.start_ns).min(row.log.start_ns));
            }
        }
    }

    /// What was found; None if there was no transaction.
    pub(crate) fn finish(self) -> Option<Anomalies> {
        self.checker.map(Checker::finish)
    }
}

/// How a try counts; None if it does not take part.
fn fate(of_try: &OfTry) -> Option<Fate> {
    match of_try.end {
        TryEnd::Committed => Some(Fate::Committed),
        TryEnd::Unknown => Some(Fate::Unknown),
        // A later try, which the log does not have, may have written the same values.
        TryEnd::Aborted if of_try.may_go_on => None,
        TryEnd::AbortAsked | TryEnd::Aborted | TryEnd::Failed => Some(Fate::Aborted),
        TryEnd::Skipped | TryEnd::BestEffort => None,
    }
}
