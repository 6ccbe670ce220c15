//! Read committed and repeatable read on small histories, beside their definitions word by word.

use schemas::isolation::Isolation;

use super::brute::{Chance, history};
use super::*;
use crate::consistency::isolation::INITIAL;

/// The event of a transaction on the same item before this one.
fn before(told: &Told, at: usize) -> Option<&Event> {
    told.events[..at].iter().rev().find(|event| event.item == told.events[at].item)
}

/// A transaction reads nothing that was rolled back, nothing that its writer overwrote later, and there is an order
/// in which each reads from itself or from those before it only. (Who overwrites has read, so this orders overwrites
/// too.)
fn is_read_committed(committed: &[&Told]) -> bool {
    let mut comes_after = Vec::new();
    for (reader, told) in committed.iter().enumerate() {
        for read in told.events.iter().filter(|event| event.act == Act::Read && event.version != INITIAL) {
            let wrote = |told: &&Told| {
                told.events.iter().position(|event| event.act != Act::Read && event.version == read.version)
            };
            let Some(writer) = committed.iter().position(|told| wrote(told).is_some()) else { return false };
            if writer == reader {
                continue;
            }
            let last = committed[writer].events.iter().rfind(|event| event.act != Act::Read && event.item == read.item);
            if last.is_none_or(|last| last.version != read.version) {
                return false;
            }
            comes_after.push((writer, reader));
        }
    }
    let mut left: Vec<usize> = (0..committed.len()).collect();
    while !left.is_empty() {
        let is_next = |one: &usize| !comes_after.iter().any(|(from, to)| to == one && left.contains(from));
        let Some(next) = left.iter().position(is_next) else { return false };
        left.remove(next);
    }
    true
}

/// And an item stays as it was read until the transaction itself writes it, and no two overwrite the same version.
fn is_repeatable(committed: &[&Told]) -> bool {
    let mut overwritten = Vec::new();
    for told in committed {
        for (at, event) in told.events.iter().enumerate() {
            let Some(before) = before(told, at) else { continue };
            if event.act == Act::Read && event.version != before.version {
                return false;
            }
            if event.act != Act::Read && before.act == Act::Read {
                let own = told.events[..at].iter().any(|own| own.act != Act::Read && own.version == before.version);
                if !own {
                    overwritten.push((event.item, before.version));
                }
            }
        }
    }
    let mut seen = Vec::new();
    overwritten.into_iter().all(|version| {
        let is_new = !seen.contains(&version);
        seen.push(version);
        is_new
    })
}

#[test]
fn the_weak_levels_are_what_their_definitions_say() {
    let mut chance = Chance(23);
    let mut counts = [0; 3];
    let mut cases = 0;
    while cases < 10_000 {
        let history = history(&mut chance);
        if history.iter().any(|told| told.transaction.fate == Fate::Unknown) {
            continue;
        }
        cases += 1;
        let committed: Vec<&Told> = history.iter().filter(|told| told.transaction.fate == Fate::Committed).collect();
        let found = found(&history, Limits::default());
        let committed_only = is_read_committed(&committed);
        let repeatable = committed_only && is_repeatable(&committed);
        let at_least = |level| found.strongest() >= Some(level);
        assert_eq!(at_least(Isolation::ReadCommitted), committed_only, "{history:#?}\n{:?}", classes(&found));
        assert_eq!(at_least(Isolation::RepeatableRead), repeatable, "{history:#?}\n{:?}", classes(&found));
        counts[usize::from(committed_only) + usize::from(repeatable)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 300), "{counts:?}");
}
