//! Small random histories, and what exhaustive search says of them.

use std::collections::HashSet;

use schemas::verdict::Step;

use super::history::{Access, BEFORE, Clients, History, NEW};
use crate::validate::{FOREVER, Interval};

/// A write or a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    is_write: bool,
    access: Access,
}

pub(super) fn w(value: i64, start: i64, end: i64) -> Event {
    Event { is_write: true, access: Access { value, at: Interval { start, end }, by: Clients::default(), tag: NEW } }
}

pub(super) fn r(value: i64, start: i64, end: i64) -> Event {
    Event { is_write: false, ..w(value, start, end) }
}

impl Event {
    /// The same by this thread and actor.
    pub(super) fn by(self, client: u32) -> Event {
        let by = Clients { thread: client, actor: client.into() };
        Event { access: Access { by, ..self.access }, ..self }
    }
}

pub(super) fn history(events: &[Event]) -> History {
    let of = |is_write| events.iter().filter(|event| event.is_write == is_write).map(|event| event.access).collect();
    History::new(of(true), of(false))
}

/// A small generator of pseudo-random numbers; only its seed decides them.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

pub(super) type Accesses = (Vec<Access>, Vec<Access>);

/// Random histories of up to four writes and five reads within this time, one seed after the other. Half
/// of them are those of a store that is mostly right, with longer intervals than it needs.
pub(super) fn histories(count: u64, seed: u64, horizon: u64) -> impl Iterator<Item = Accesses> {
    (0..count).map(move |index| {
        let mut dice = Dice((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed << 32);
        (0..4).for_each(|_| _ = dice.below(2));
        let (writes, reads) = (dice.below(5), 1 + dice.below(5));
        let by = |dice: &mut Dice| Clients { thread: dice.below(3) as u32, actor: dice.below(2) };
        // When each write takes effect.
        let mut effects: Vec<(i64, i64)> = Vec::new();
        let mut written = Vec::new();
        for value in 1..=writes as i64 {
            let start = dice.below(horizon) as i64;
            let length = dice.below(6) as i64;
            effects.push((start + dice.below(length as u64 + 1) as i64, value));
            let end = if dice.below(8) == 0 { FOREVER } else { start + length };
            written.push(Access { value, at: Interval { start, end }, by: by(&mut dice), tag: NEW });
        }
        effects.sort_unstable();
        let is_honest = dice.below(2) == 0;
        let read = (0..reads).map(|_| {
            let start = dice.below(horizon + 4) as i64;
            let end = start + dice.below(5) as i64;
            let at = start + dice.below((end - start) as u64 + 1) as i64 - i64::from(dice.below(4) == 0);
            let current = effects.iter().rev().find(|(effect, _)| *effect <= at).map_or(0, |(_, value)| *value);
            let value = if is_honest { current } else { dice.below(writes + 1) as i64 };
            Access { value, at: Interval { start, end }, by: by(&mut dice), tag: NEW }
        });
        let read = read.collect();
        (written, read)
    })
}

/// The same history from input in another order.
pub(super) fn shuffled(writes: &[Access], reads: &[Access], seed: u64) -> History {
    let mut dice = Dice(seed | 1);
    let mut shuffle = |accesses: &[Access]| {
        let mut accesses = accesses.to_vec();
        for index in (1..accesses.len()).rev() {
            accesses.swap(index, dice.below(index as u64 + 1) as usize);
        }
        accesses
    };
    let writes = shuffle(writes);
    History::new(writes, shuffle(reads))
}

/// The operations of a proof as a history.
pub(super) fn of_steps(steps: &[Step]) -> Accesses {
    let access = |step: &Step| {
        let by = Clients { thread: step.thread, actor: step.actor };
        Access {
            value: step.value,
            at: Interval { start: step.start_ns, end: step.end_ns.unwrap_or(FOREVER) },
            by,
            tag: NEW,
        }
    };
    let of = |is_write| steps.iter().filter(|step| step.is_write == is_write).map(access).collect();
    (of(true), of(false))
}

/// An operation in an order that is searched for: a write of `saw`, or a read that saw it.
struct Op {
    is_write: bool,
    saw: Option<u32>,
    at: Interval,
}

fn operations(history: &History) -> Vec<Op> {
    let writes = (0..).zip(&history.writes).map(|(index, write)| (true, Some(index), write.at));
    let reads = history.reads.iter().map(|read| (false, read.saw, read.access.at));
    writes.chain(reads).map(|(is_write, saw, at)| Op { is_write, saw, at }).collect()
}

/// Whether there is an order of all operations in which each read sees one of the `k` newest writes, and
/// which keeps what precedes what.
fn has_order(ops: &[Op], k: usize, precedes: impl Fn(&Op, &Op) -> bool) -> bool {
    let all = (1u32 << ops.len()) - 1;
    let mut seen = HashSet::new();
    // What is in the order, and its newest writes. The initial value is the oldest.
    let mut waiting = vec![(0u32, vec![None])];
    while let Some((placed, newest)) = waiting.pop() {
        if placed == all {
            return true;
        }
        for (index, op) in ops.iter().enumerate() {
            let is_free = |other: &usize| placed >> other & 1 == 0;
            let mut waits = (0..ops.len()).filter(is_free).filter(|other| *other != index);
            if !is_free(&index) || waits.any(|other| precedes(&ops[other], op)) {
                continue;
            }
            let mut newest = newest.clone();
            if op.is_write {
                newest.push(op.saw);
                newest.drain(..newest.len().saturating_sub(k));
            } else if !newest.contains(&op.saw) {
                continue;
            }
            let next = (placed | 1 << index, newest);
            if seen.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    false
}

fn gap(first: &Op, then: &Op) -> i64 {
    then.at.start.saturating_sub(first.at.end)
}

/// The shifts at which the order of two operations may change, ascending.
fn shifts(ops: &[Op]) -> Vec<i64> {
    let mut shifts: Vec<i64> = ops.iter().flat_map(|a| ops.iter().map(|b| gap(a, b).max(0))).collect();
    shifts.push(0);
    shifts.sort_unstable();
    shifts.dedup();
    shifts
}

pub(super) fn gamma(history: &History) -> i64 {
    let ops = operations(history);
    let holds = |shift: &i64| has_order(&ops, 1, |a, b| gap(a, b) > *shift);
    shifts(&ops).into_iter().find(holds).unwrap()
}

pub(super) fn delta(history: &History) -> Option<i64> {
    let ops = operations(history);
    let holds = |shift: &i64| has_order(&ops, 1, |a, b| gap(a, b) > if b.is_write { 0 } else { *shift });
    shifts(&ops).into_iter().find(holds)
}

/// The least k of at most 2 at which the history is k-atomic.
pub(super) fn k(history: &History) -> Option<usize> {
    let ops = operations(history);
    [1, 2].into_iter().find(|k| has_order(&ops, *k, |a, b| gap(a, b) > 0))
}

/// k- and t-staleness of a read by trying all times at which the writes may take effect: how many writes
/// that had ended before the read are newer than what it saw, and for how long the value had been
/// overwritten, at least. Of writes with the same time any may be the newer one.
pub(super) fn staleness(history: &History, index: usize) -> (u64, i64) {
    let read = &history.reads[index];
    let latest = read.access.at.end + 1;
    let writes: Vec<Interval> = history.writes.iter().map(|write| write.at).collect();
    let mut times: Vec<i64> = writes.iter().map(|at| at.start).collect();
    let (mut least_k, mut least_t) = (u64::MAX, i64::MAX);
    loop {
        let own = read.saw.map_or(BEFORE, |own| times[own as usize]);
        let newer = |other: &usize| times[*other] > own && Some(*other as u32) != read.saw;
        let ended = |other: &usize| writes[*other].end < read.access.at.start;
        least_k = least_k.min((0..times.len()).filter(newer).filter(ended).count() as u64);
        let overwritten = (0..times.len()).filter(newer).map(|other| times[other]).min();
        let stale = overwritten.map_or(0, |overwritten| (read.access.at.start - overwritten).max(0));
        least_t = least_t.min(stale);
        // The next combination of times.
        let Some(next) = (0..times.len()).find(|other| times[*other] < writes[*other].end.min(latest)) else { break };
        times[next] += 1;
        (0..next).for_each(|other| times[other] = writes[other].start);
    }
    (least_k, least_t)
}
