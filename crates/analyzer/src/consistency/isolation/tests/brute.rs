//! The verdict on small histories, beside that of trying every order.

use schemas::isolation::Isolation;

use super::*;
use crate::consistency::isolation::INITIAL;

/// Numbers by chance (splitmix64).
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % limit
    }
}

pub(super) const ITEMS: usize = 3;
pub(super) type State = [i64; ITEMS];

fn index(item: Item) -> usize {
    item.owner() as usize
}

/// What the events of a transaction leave of a state; None if they cannot have seen it.
fn apply(state: &State, told: &Told) -> Option<State> {
    let mut state = *state;
    for event in &told.events {
        let value = &mut state[index(event.item)];
        match event.act {
            Act::Read if *value != event.version => return None,
            Act::Read => {}
            Act::Write | Act::Insert | Act::Delete => *value = event.version,
        }
    }
    Some(state)
}

fn ended_ns(told: &Told) -> i64 {
    if told.transaction.fate == Fate::Unknown { i64::MAX } else { told.transaction.end_ns }
}

/// Whether the transactions of `left` can follow on a state, one after the other. Those of unknown fate
/// need not. With `strict`, none comes before one that had ended when it began.
pub(super) fn can_follow(state: &State, left: &[&Told], strict: bool) -> bool {
    if left.iter().all(|told| told.transaction.fate == Fate::Unknown) {
        return true;
    }
    (0..left.len()).any(|next| {
        let had_ended = |other: &&&Told| ended_ns(other) < left[next].transaction.start_ns;
        if strict && left.iter().any(|other| had_ended(&other)) {
            return false;
        }
        let rest: Vec<&Told> = left.iter().enumerate().filter(|(at, _)| *at != next).map(|(_, told)| *told).collect();
        apply(state, left[next]).is_some_and(|state| can_follow(&state, &rest, strict))
    })
}

/// Whether the transactions that run, each with the state at its begin, and those that are `left` can end
/// under snapshot isolation.
pub(super) fn has_snapshots(state: &State, running: &[(&Told, State)], left: &[&Told]) -> bool {
    let is_optional = |told: &&Told| told.transaction.fate == Fate::Unknown;
    if running.is_empty() && left.iter().all(is_optional) {
        return true;
    }
    let ends = (0..running.len()).any(|next| {
        let (told, begun) = &running[next];
        let written = || told.events.iter().filter(|event| event.act != Act::Read).map(|event| index(event.item));
        // The first of two that overwrite the same version wins.
        if written().any(|item| begun[item] != state[item]) {
            return false;
        }
        let Some(after) = apply(begun, told) else { return false };
        let mut state = *state;
        written().for_each(|item| state[item] = after[item]);
        let rest: Vec<_> = running.iter().enumerate().filter(|(at, _)| *at != next).map(|(_, one)| *one).collect();
        has_snapshots(&state, &rest, left)
    });
    ends || (0..left.len()).any(|next| {
        if apply(state, left[next]).is_none() {
            return false;
        }
        let rest: Vec<&Told> = left.iter().enumerate().filter(|(at, _)| *at != next).map(|(_, told)| *told).collect();
        let running: Vec<_> = running.iter().copied().chain([(left[next], *state)]).collect();
        has_snapshots(state, &running, &rest)
    })
}

/// Transactions that read what they overwrite. Every second history begins as a serial one, and some of its
/// reads are changed.
pub(super) fn history(chance: &mut Chance) -> Vec<Told> {
    let count = 1 + chance.below(5);
    let items = 1 + chance.below(ITEMS as u64);
    let mut shapes: Vec<Vec<(Item, bool, i64)>> = Vec::new();
    let mut versions: Vec<Vec<i64>> = vec![vec![INITIAL]; ITEMS];
    for session in 0..count {
        let mut shape = Vec::new();
        for step in 0..1 + chance.below(3) {
            let (item, writes) = (chance.below(items), chance.below(2) == 0);
            let id = (session * 10 + step + 1) as i64;
            if writes {
                versions[item as usize].push(id);
            }
            shape.push((Item::new(item, 0), writes, id));
        }
        shapes.push(shape);
    }
    let is_serial = chance.below(2) == 0;
    if is_serial && items > 1 && chance.below(2) == 0 {
        // Each reads two items and overwrites one of them: what snapshots allow and serial orders do not.
        versions = vec![vec![INITIAL]; ITEMS];
        for (session, shape) in shapes.iter_mut().enumerate() {
            let first = chance.below(items);
            let second = (first + 1 + chance.below(items - 1)) % items;
            let id = |step: i64| session as i64 * 10 + step;
            *shape = vec![(Item::new(first, 0), false, id(1)), (Item::new(second, 0), true, id(2))];
            versions[second as usize].push(id(2));
        }
    }
    let mut state = [INITIAL; ITEMS];
    let mut before = state;
    let mut out = Vec::new();
    for (session, shape) in shapes.iter().enumerate() {
        let mut events = Vec::new();
        // Some read the state before the last transaction.
        let begun = std::mem::replace(&mut before, state);
        let mut view = if chance.below(3) == 0 { begun } else { state };
        for (item, writes, id) in shape {
            let known = &versions[index(*item)];
            let is_chance = if is_serial { chance.below(12) == 0 } else { chance.below(3) > 0 };
            let other = known[chance.below(known.len() as u64) as usize];
            let seen = if is_chance { other } else { view[index(*item)] };
            // No transaction reads what it writes later.
            let own_later = shape.iter().any(|(_, writes, own)| *writes && *own == seen && *own >= *id);
            events.push((Act::Read, *item, if own_later { INITIAL } else { seen }));
            if *writes {
                events.push((Act::Write, *item, *id));
                (view[index(*item)], state[index(*item)]) = (*id, *id);
            }
        }
        let start = chance.below(400) as i64;
        let start = if chance.below(2) == 0 { session as i64 * 100 } else { start };
        let fate = match chance.below(12) {
            0 => Fate::Unknown,
            1 => Fate::Aborted,
            _ => Fate::Committed,
        };
        out.push(txn(session as u64, (start, start + 20 + chance.below(200) as i64), fate, &events));
    }
    out
}

/// Serializable if there is a serial order, and only then; the same for strict serializability and
/// snapshot isolation.
#[test]
fn the_verdict_is_that_of_trying_every_order() {
    let mut chance = Chance(19);
    let mut counts = [0; 4];
    let (mut forgotten, mut retired) = (0, 0);
    for case in 0..12_000 {
        let history = history(&mut chance);
        let may_happen: Vec<&Told> = history.iter().filter(|told| told.transaction.fate != Fate::Aborted).collect();
        let state = [INITIAL; ITEMS];
        let found = found(&history, Limits::default());
        let strongest = found.strongest();
        let at_least = |level| strongest >= Some(level);
        let expect = [
            (Isolation::Snapshot, has_snapshots(&state, &[], &may_happen)),
            (Isolation::Serializable, can_follow(&state, &may_happen, false)),
            (Isolation::StrictSerializable, can_follow(&state, &may_happen, true)),
        ];
        for (place, (level, is_possible)) in expect.into_iter().enumerate() {
            assert_eq!(at_least(level), is_possible, "case {case}, {level:?}: {history:#?}\n{:?}", classes(&found));
            counts[place + 1] += u64::from(is_possible);
        }
        counts[0] += u64::from(!expect[0].1);
        // What is forgotten accuses nobody.
        for window in 1..4 {
            let bounded = super::found(&history, Limits { window, most: window + 1 });
            let allowed = expect.iter().filter(|(_, is_possible)| *is_possible).map(|(level, _)| *level).max();
            assert!(
                bounded.strongest() >= allowed,
                "case {case}, window {window}: {history:#?}\n{:?}",
                classes(&bounded)
            );
            forgotten += u64::from(bounded.strongest() != strongest);
            retired += u64::from(bounded.strongest() < Some(Isolation::Serializable));
        }
    }
    // Small windows forget something, and still find something.
    assert!(forgotten > 100 && retired > 1000, "{forgotten} {retired}");
    // Enough of each kind.
    assert!(counts.iter().all(|count| *count > 1000), "{counts:?}");
    assert!(counts[1] > counts[2] + 100 && counts[2] > counts[3] + 200, "{counts:?}");
}
