//! A store with threads, in a few lines: it keeps, or fails to keep, what a level of isolation promises.

use std::collections::HashMap;

use super::brute::Chance;
use super::*;
use crate::consistency::isolation::INITIAL;

/// What the store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Reads one state; at the commit nothing that it read may have changed.
    Serializable,
    /// Reads one state; at the commit nothing that it overwrites may have changed.
    Snapshot,
    /// Reads what was committed last, and writes at the commit.
    ReadCommitted,
    /// Reads and writes in place, and takes its writes back if it is rolled back.
    ReadUncommitted,
}

pub(super) struct Settings {
    pub(super) mode: Mode,
    pub(super) threads: usize,
    pub(super) items: u64,
    pub(super) transactions: u64,
}

/// A transaction under way.
struct Running {
    session: u64,
    start_ns: i64,
    /// The state at its begin, for the items that it uses.
    begun: Vec<(u64, i64)>,
    /// The items, and whether each is overwritten.
    plan: Vec<(u64, bool)>,
    next: usize,
    events: Vec<Event>,
    /// What was there before its writes.
    before: Vec<(u64, i64)>,
}

pub(super) struct Simulator {
    settings: Settings,
    chance: Chance,
    now: i64,
    sessions: u64,
    state: HashMap<u64, i64>,
    threads: Vec<Option<Running>>,
}

impl Simulator {
    pub(super) fn new(settings: Settings, seed: u64) -> Simulator {
        let threads = (0..settings.threads).map(|_| None).collect();
        Simulator { settings, chance: Chance(seed), now: 0, sessions: 0, state: HashMap::new(), threads }
    }

    /// The transactions in the order of their ends, each with the earliest start of those under way.
    pub(super) fn run(mut self, mut each: impl FnMut(&Told, i64)) {
        let mut ended = 0;
        while ended < self.settings.transactions {
            self.now += 10;
            let thread = self.chance.below(self.settings.threads as u64) as usize;
            match self.threads[thread].take() {
                None => self.threads[thread] = Some(self.begin()),
                Some(running) if running.next < running.plan.len() => {
                    let running = self.perform(running);
                    self.threads[thread] = Some(running);
                }
                Some(running) => {
                    let told = self.end(running, thread as u32);
                    let starts = self.threads.iter().flatten().map(|running| running.start_ns);
                    each(&told, starts.min().unwrap_or(self.now));
                    ended += 1;
                }
            }
        }
    }

    pub(super) fn history(self) -> Vec<Told> {
        let mut out = Vec::new();
        self.run(|told, _| out.push(told.clone()));
        out
    }

    fn value(&self, item: u64) -> i64 {
        self.state.get(&item).copied().unwrap_or(INITIAL)
    }

    fn begin(&mut self) -> Running {
        self.sessions += 1;
        let first = self.chance.below(self.settings.items);
        let second = (first + 1 + self.chance.below(self.settings.items - 1)) % self.settings.items;
        let is_writer = self.chance.below(4) > 0;
        // Both are read, and one or both are overwritten, at once or at the end.
        let plan = match (is_writer, self.chance.below(3)) {
            (false, _) => vec![(first, false), (second, false)],
            (true, 0) => vec![(first, false), (second, false), (first, true)],
            (true, 1) => vec![(first, false), (second, false), (first, true), (second, true)],
            (true, _) => vec![(first, false), (first, true), (second, false), (second, true)],
        };
        let begun = [first, second].map(|item| (item, self.value(item))).to_vec();
        let (session, start_ns) = (self.sessions, self.now);
        Running { session, start_ns, begun, plan, next: 0, events: Vec::new(), before: Vec::new() }
    }

    fn perform(&mut self, mut running: Running) -> Running {
        let (number, writes) = running.plan[running.next];
        let item = Item::new(number, 0);
        let step = running.next as u16 + 1;
        running.next += 1;
        let mut event = Event { item, version: 0, start_ns: self.now, end_ns: self.now + 5, step, act: Act::Read };
        if writes {
            event.act = Act::Write;
            event.version = (running.session * 8 + u64::from(step)) as i64;
            if self.settings.mode == Mode::ReadUncommitted {
                running.before.push((number, self.value(number)));
                self.state.insert(number, event.version);
            }
        } else {
            let begun = running.begun.iter().find(|(own, _)| *own == number).unwrap().1;
            event.version = match self.settings.mode {
                Mode::Serializable | Mode::Snapshot => begun,
                Mode::ReadCommitted | Mode::ReadUncommitted => self.value(number),
            };
        }
        running.events.push(event);
        running
    }

    fn end(&mut self, running: Running, thread: u32) -> Told {
        let writes = |item: u64| running.plan.contains(&(item, true));
        let changed = running.begun.iter().any(|(item, begun)| {
            let counts = match self.settings.mode {
                Mode::Serializable => true,
                Mode::Snapshot => writes(*item),
                Mode::ReadCommitted | Mode::ReadUncommitted => false,
            };
            counts && self.value(*item) != *begun
        });
        let chance = self.chance.below(100);
        let is_unknown = chance >= 97;
        // What is unknown to the client has happened, or not.
        let aborts = changed || chance < 4 || chance == 97;
        if aborts {
            for (item, before) in running.before.iter().rev() {
                self.state.insert(*item, *before);
            }
        } else if self.settings.mode != Mode::ReadUncommitted {
            for event in running.events.iter().filter(|event| event.act == Act::Write) {
                self.state.insert(event.item.owner(), event.version);
            }
        }
        let fate = match (is_unknown, aborts) {
            (true, _) => Fate::Unknown,
            (false, true) => Fate::Aborted,
            (false, false) => Fate::Committed,
        };
        let (session, start_ns, end_ns) = (running.session, running.start_ns, self.now + 5);
        let transaction = Transaction { session, txn: 0, try_number: 0, thread, start_ns, end_ns, fate };
        Told { transaction, events: running.events }
    }
}
