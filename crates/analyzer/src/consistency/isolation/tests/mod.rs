//! Histories by hand, by chance and from a simulated store.

mod brute;
mod definitions;
mod lives;
mod planted;
mod simulated;
mod simulator;

use schemas::anomalies::{Anomalies, Class, Fate};

use super::{Act, Checker, Event, Item, Limits, Transaction};

/// A transaction with its events.
#[derive(Debug, Clone)]
struct Told {
    transaction: Transaction,
    events: Vec<Event>,
}

const ITEM: Item = Item::new(7, 0);
const OTHER: Item = Item::new(8, 1);

/// A transaction whose events are spread over its time.
fn txn(session: u64, at: (i64, i64), fate: Fate, events: &[(Act, Item, i64)]) -> Told {
    let (start_ns, end_ns) = at;
    let transaction = Transaction { session, txn: 0, try_number: 0, thread: session as u32, start_ns, end_ns, fate };
    let length = (end_ns - start_ns) / (events.len() as i64 + 1);
    let events = events.iter().enumerate().map(|(index, (act, item, version))| {
        let start_ns = start_ns + length * (index as i64 + 1);
        let step = index as u16 + 1;
        Event { item: *item, version: *version, start_ns, end_ns: start_ns + length / 2, step, act: *act }
    });
    Told { transaction, events: events.collect() }
}

/// The findings in a history whose transactions come in the order of their ends.
fn found(history: &[Told], limits: Limits) -> Anomalies {
    let mut order: Vec<&Told> = history.iter().collect();
    order.sort_by_key(|told| told.transaction.end_ns);
    let mut checker = Checker::new(0, limits);
    // The earliest start of those that are still to come.
    let mut low: Vec<i64> = Vec::with_capacity(order.len());
    let mut earliest = i64::MAX;
    for told in order.iter().rev() {
        low.push(earliest);
        earliest = earliest.min(told.transaction.start_ns);
    }
    for (told, low) in order.iter().zip(low.iter().rev()) {
        checker.advance(*low);
        checker.add(&told.transaction, &told.events);
    }
    checker.finish()
}

/// The classes that were found, with their counts.
fn classes(found: &Anomalies) -> Vec<(Class, u64)> {
    let counts = Class::ALL.into_iter().map(|class| (class, found.count(class)));
    counts.filter(|(_, count)| *count > 0).collect()
}
