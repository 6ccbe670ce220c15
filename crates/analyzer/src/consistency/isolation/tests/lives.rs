//! Records that are inserted and deleted, and transactions that are tried again, beside every serial order.

use schemas::isolation::Isolation;

use super::brute::{Chance, ITEMS, State, can_follow};
use super::*;
use crate::consistency::isolation::{DELETED, INITIAL};

/// The record that does not exist at first. Nobody reads it before its insert: that has no version.
const BORN: u64 = 2;

/// A serial execution of transactions that read, overwrite, insert and delete, some of them after a try that was
/// rolled back. Some reads are changed to another version.
fn history(chance: &mut Chance) -> Vec<Told> {
    let mut state: State = [INITIAL; ITEMS];
    let mut known: Vec<Vec<i64>> = vec![vec![INITIAL], vec![INITIAL], Vec::new()];
    let mut shapes = Vec::new();
    for session in 0..2 + chance.below(4) {
        let mut events = Vec::new();
        for step in 0..1 + chance.below(3) {
            let (number, id) = (chance.below(ITEMS as u64), (session * 10 + step + 1) as i64);
            let (item, now) = (Item::new(number, 0), state[number as usize]);
            if number == BORN && known[number as usize].is_empty() {
                events.push((Act::Insert, item, id));
                (state[number as usize], known[number as usize]) = (id, vec![id]);
                continue;
            }
            events.push((Act::Read, item, now));
            let act = match chance.below(4) {
                // A record is deleted once, and then nobody writes it.
                _ if now == DELETED => continue,
                0 => (Act::Delete, item, DELETED),
                1 | 2 => (Act::Write, item, id),
                _ => continue,
            };
            events.push(act);
            state[number as usize] = act.2;
            known[number as usize].push(act.2);
        }
        shapes.push(events);
    }
    let mut out = Vec::new();
    for (session, mut events) in shapes.into_iter().enumerate() {
        for at in 0..events.len() {
            let (act, item, _) = events[at];
            let versions = &known[item.owner() as usize];
            let other = versions[chance.below(versions.len() as u64) as usize];
            // It reads nothing that it writes itself.
            let own = events.iter().any(|(act, own, version)| *act != Act::Read && *own == item && *version == other);
            let touched = events[..at].iter().any(|(_, own, _)| *own == item);
            if act == Act::Read && !own && !touched && chance.below(6) == 0 {
                events[at].2 = other;
            }
        }
        let start = session as i64 * 1000 + chance.below(800) as i64;
        let session = session as u64;
        if chance.below(3) == 0 {
            out.push(txn(session, (start - 900, start - 500), Fate::Aborted, &events));
        }
        let mut last = txn(session, (start, start + 100 + chance.below(1500) as i64), Fate::Committed, &events);
        last.transaction.try_number = 1;
        out.push(last);
    }
    out
}

/// Whose write each read of a committed transaction saw: whether one saw a try that was rolled back, and whether
/// one may have.
fn saw_aborted(history: &[Told]) -> (bool, bool) {
    let (mut is_sure, mut is_possible) = (false, false);
    for read in history
        .iter()
        .filter(|told| told.transaction.fate == Fate::Committed)
        .flat_map(|told| told.events.iter().filter(|event| event.act == Act::Read))
    {
        let writers = |fate| {
            history.iter().filter(move |told| told.transaction.fate == fate).filter_map(|told| {
                let wrote =
                    |event: &&Event| event.act != Act::Read && (event.item, event.version) == (read.item, read.version);
                told.events.iter().find(wrote).map(|event| (event.start_ns, told.transaction.end_ns))
            })
        };
        let Some((_, rolled_back_ns)) = writers(Fate::Aborted).next() else { continue };
        let began_ns = writers(Fate::Committed).map(|(start_ns, _)| start_ns).next();
        let is_early = began_ns.is_none_or(|began_ns| read.end_ns < began_ns);
        is_sure |= is_early;
        is_possible |= is_early || read.start_ns <= rolled_back_ns;
    }
    (is_sure, is_possible)
}

#[test]
fn lives_of_records_and_tries_are_judged_as_by_every_order() {
    let mut chance = Chance(31);
    let mut counts = [0; 4];
    for case in 0..10_000 {
        let history = history(&mut chance);
        let committed: Vec<&Told> = history.iter().filter(|told| told.transaction.fate == Fate::Committed).collect();
        let state = [INITIAL; ITEMS];
        let found = found(&history, Limits::default());
        let (is_sure, is_possible) = saw_aborted(&history);
        let context = || format!("case {case}: {history:#?}\n{:?}", classes(&found));
        if is_sure {
            assert!(found.strongest() <= Some(Isolation::ReadUncommitted), "{}", context());
            counts[0] += 1;
            continue;
        }
        for (place, level, strict) in [(1, Isolation::Serializable, false), (2, Isolation::StrictSerializable, true)] {
            let expect = can_follow(&state, &committed, strict);
            let at_least = found.strongest() >= Some(level);
            // A read that may have seen either try proves nothing.
            assert!(at_least == expect || at_least && is_possible, "{level:?}, {}", context());
            counts[place] += u64::from(expect);
            counts[3] += u64::from(!expect && place == 1);
        }
    }
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
}
