//! Session guarantees (Terry et al., "Session guarantees for weakly consistent replicated data", 1994) of
//! one register. The sessions of that paper are called clients here: the threads, since that is what
//! a connection was promised, or the actors, since that is what a user feels.
//!
//! `a` is older than `b` if the write of a ended before the write of b started. One operation of a client is
//! before another one if it ended before that one started.
//!
//! | guarantee | a read is checked if | it violates the guarantee if |
//! |---|---|---|
//! | read your writes | its client wrote the register before | it saw a value older than such a write |
//! | monotonic reads | its client read the register before | it saw a value older than what such a read saw |
//! | monotonic writes | its client saw, before, a write of a client that had written before | it saw an earlier write of the client of that write |
//! | writes follow reads | its client saw, before, a write of a client that had read before | it saw what that client had read last before that write, or a value older than what it had read |
//!
//! The last two are promises about the order of writes, and the log shows an order only to one
//! who sees both: first the later write, then the earlier one. So each such violation breaks the
//! monotonic reads of the reader too, and a violation that no client saw is not counted.

use super::history::{Access, BEFORE, Clients, History};
use crate::validate::Interval;

/// How many reads a guarantee was checked with, and how many of them violate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Checked {
    /// Reads that could violate it.
    pub reads: u64,
    /// Reads that do.
    pub violations: u64,
}

impl Checked {
    fn add(&mut self, violates: bool) {
        self.reads += 1;
        self.violations += u64::from(violates);
    }

    fn merge(&mut self, other: Checked) {
        self.reads += other.reads;
        self.violations += other.violations;
    }
}

/// The session guarantees of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Guarantees {
    /// Read your writes.
    pub read_your_writes: Checked,
    /// Monotonic reads.
    pub monotonic_reads: Checked,
    /// Monotonic writes.
    pub monotonic_writes: Checked,
    /// Writes follow reads.
    pub writes_follow_reads: Checked,
}

impl Guarantees {
    /// Adds those of another register.
    pub fn merge(&mut self, other: &Guarantees) {
        self.read_your_writes.merge(other.read_your_writes);
        self.monotonic_reads.merge(other.monotonic_reads);
        self.monotonic_writes.merge(other.monotonic_writes);
        self.writes_follow_reads.merge(other.writes_follow_reads);
    }

    /// The guarantees with their names.
    pub fn named(&self) -> [(&'static str, Checked); 4] {
        [
            ("read your writes", self.read_your_writes),
            ("monotonic reads", self.monotonic_reads),
            ("monotonic writes", self.monotonic_writes),
            ("writes follow reads", self.writes_follow_reads),
        ]
    }
}

/// An operation of a client: an index of the history's writes, or of its reads.
#[derive(Clone, Copy)]
enum Event {
    Write(u32),
    Read(u32),
}

/// What is known of the client that ran a write, when it ran it.
#[derive(Clone, Copy)]
struct Author {
    /// The client's number.
    client: u32,
    /// Whether it had written before.
    wrote_before: bool,
    /// What it had read last: the place in [`Seen::superseded`].
    read_last: Option<u32>,
    /// The greatest start of the writes that it had seen.
    read_newest: i64,
}

/// What a client has done so far: only operations that have ended.
struct Past {
    /// The greatest start of its own writes.
    wrote: Option<i64>,
    /// The greatest start of the writes that it saw.
    saw: Option<i64>,
    /// What it saw last, with the end of that read.
    saw_last: Option<u32>,
    /// Whether it saw a write of a client that had written, or had read, before it.
    saw_writer: bool,
    saw_reader: bool,
    /// The greatest start of the writes that authors of what it saw had read.
    read_newest: i64,
}

const NOTHING: Past =
    Past { wrote: None, saw: None, saw_last: None, saw_writer: false, saw_reader: false, read_newest: BEFORE };

/// What a client has seen, by write and by author. An entry counts for the client with its number.
struct Seen {
    /// The values that something which the client saw was written after, in reads by the author.
    superseded: Vec<u32>,
    /// The greatest start of the writes by each client that it saw.
    newest_of: Vec<(u32, i64)>,
}

/// Checks the guarantees of clients. `client` says which client ran an operation.
pub fn guarantees(history: &History, client: impl Fn(&Clients) -> u64) -> Guarantees {
    let mut found = Guarantees::default();
    let mut events: Vec<(u64, i64, u32)> = Vec::with_capacity(history.writes.len() + history.reads.len());
    let writes = history.writes.len() as u32;
    let of = |access: &Access, index| (client(&access.by), access.at.start, index);
    events.extend(history.writes.iter().zip(0..).map(|(write, index)| of(write, index)));
    events.extend(history.reads.iter().zip(writes..).map(|(read, index)| of(&read.access, index)));
    events.sort_unstable();
    let event = |index: u32| if index < writes { Event::Write(index) } else { Event::Read(index - writes) };
    let none = Author { client: 0, wrote_before: false, read_last: None, read_newest: BEFORE };
    let mut authors = vec![none; history.writes.len()];
    let clients = || events.chunk_by(|a, b| a.0 == b.0).zip(1u32..);
    let mut pending = Vec::new();
    for (own, number) in clients() {
        let mut past = NOTHING;
        pending.clear();
        for (_, start, index) in own {
            settle(history, &mut pending, *start, |ended| past.end(history, ended));
            let event = event(*index);
            if let Event::Write(write) = event {
                authors[write as usize] = Author {
                    client: number,
                    wrote_before: past.wrote.is_some(),
                    read_last: past.saw_last,
                    read_newest: past.saw.unwrap_or(BEFORE),
                };
            }
            pending.push(event);
        }
    }
    let count = clients().count();
    let mut seen = Seen { superseded: vec![0; history.writes.len() + 1], newest_of: vec![(0, BEFORE); count + 1] };
    for (own, number) in clients() {
        let mut past = NOTHING;
        pending.clear();
        for (_, start, index) in own {
            settle(history, &mut pending, *start, |ended| {
                past.end(history, ended);
                past.see(history, ended, &authors, &mut seen, number);
            });
            let event = event(*index);
            if let Event::Read(read) = event {
                past.check(history, read, &authors, &seen, number, &mut found);
            }
            pending.push(event);
        }
    }
    found
}

/// Calls `end` with the operations that ended before this time, and takes them out. A client has more than
/// one under way only if it runs several at a time.
fn settle(history: &History, pending: &mut Vec<Event>, now: i64, mut end: impl FnMut(Event)) {
    if pending.len() > 1 {
        pending.sort_by_key(|event| interval(history, *event).end);
    }
    let ended = pending.iter().take_while(|event| interval(history, **event).end < now).count();
    pending.drain(..ended).for_each(&mut end);
}

fn interval(history: &History, event: Event) -> Interval {
    match event {
        Event::Write(index) => history.writes[index as usize].at,
        Event::Read(index) => history.reads[index as usize].access.at,
    }
}

/// The place of a value in [`Seen::superseded`].
fn place(saw: Option<u32>) -> u32 {
    saw.map_or(0, |index| index + 1)
}

impl Past {
    fn end(&mut self, history: &History, event: Event) {
        match event {
            Event::Write(index) => self.wrote = self.wrote.max(Some(history.writes[index as usize].at.start)),
            Event::Read(index) => {
                let saw = history.reads[index as usize].saw;
                self.saw = self.saw.max(Some(history.written(saw).start));
                self.saw_last = Some(place(saw));
            }
        }
    }

    /// Adds what the author of what a read saw had done before.
    fn see(&mut self, history: &History, event: Event, authors: &[Author], seen: &mut Seen, number: u32) {
        let Event::Read(index) = event else { return };
        let Some(write) = history.reads[index as usize].saw else { return };
        let author = &authors[write as usize];
        let start = history.writes[write as usize].at.start;
        let newest = &mut seen.newest_of[author.client as usize];
        *newest = if newest.0 == number { (number, newest.1.max(start)) } else { (number, start) };
        self.saw_writer |= author.wrote_before;
        if let Some(read) = author.read_last {
            self.saw_reader = true;
            self.read_newest = self.read_newest.max(author.read_newest);
            if read != write + 1 {
                seen.superseded[read as usize] = number;
            }
        }
    }

    fn check(
        &self,
        history: &History,
        read: u32,
        authors: &[Author],
        seen: &Seen,
        number: u32,
        found: &mut Guarantees,
    ) {
        let saw = history.reads[read as usize].saw;
        let seen_end = history.written(saw).end;
        if let Some(wrote) = self.wrote {
            found.read_your_writes.add(seen_end < wrote);
        }
        if let Some(newest) = self.saw {
            found.monotonic_reads.add(seen_end < newest);
        }
        if self.saw_writer {
            let newest = saw.map(|write| seen.newest_of[authors[write as usize].client as usize]);
            found.monotonic_writes.add(newest.is_some_and(|(client, start)| client == number && seen_end < start));
        }
        if self.saw_reader {
            let is_superseded = seen.superseded[place(saw) as usize] == number;
            found.writes_follow_reads.add(is_superseded || seen_end < self.read_newest);
        }
    }
}

/// By thread: what a connection was promised.
pub fn by_thread(history: &History) -> Guarantees {
    guarantees(history, |by| by.thread.into())
}

/// By actor: what a user feels.
pub fn by_actor(history: &History) -> Guarantees {
    guarantees(history, |by| by.actor)
}

#[cfg(test)]
mod tests {
    use super::super::brute::{Event, histories, history, r, shuffled, w};
    use super::super::history::Read;
    use super::*;
    use crate::validate::FOREVER;

    fn is_known(write: &Access) -> bool {
        write.at.end != FOREVER
    }

    /// From the table, operation by operation.
    fn brute(history: &History) -> Guarantees {
        let mut found = Guarantees::default();
        let is_before = |a: &Access, b: &Access| a.at.end < b.at.start;
        let is_own = |a: &Access, b: &Access| a.by.thread == b.by.thread && is_before(a, b);
        let older = |a: Option<u32>, b: Option<u32>| history.written(a).end < history.written(b).start;
        let (writes, reads) = (&history.writes, &history.reads);
        let saw = |read: &Read| read.saw.map(|write| &writes[write as usize]);
        for read in reads {
            let own_writes: Vec<u32> = (0..writes.len() as u32)
                .filter(|write| is_known(&writes[*write as usize]) && is_own(&writes[*write as usize], &read.access))
                .collect();
            if !own_writes.is_empty() {
                found.read_your_writes.add(own_writes.iter().any(|write| older(read.saw, Some(*write))));
            }
            let earlier: Vec<&Read> = reads.iter().filter(|first| is_own(&first.access, &read.access)).collect();
            if !earlier.is_empty() {
                found.monotonic_reads.add(earlier.iter().any(|first| older(read.saw, first.saw)));
            }
            let before = |first: &Read| -> Vec<&Access> {
                let later = saw(first);
                writes
                    .iter()
                    .filter(|write| is_known(write) && later.is_some_and(|later| is_own(write, later)))
                    .collect()
            };
            if earlier.iter().any(|first| !before(first).is_empty()) {
                let seen = saw(read);
                let violates = earlier.iter().any(|first| before(first).iter().any(|write| Some(*write) == seen));
                found.monotonic_writes.add(violates);
            }
            // What the author of what was seen had read, the last one at the end.
            let read_by_author = |first: &Read| -> Vec<&Read> {
                let later = saw(first);
                let own = |read: &&Read| later.is_some_and(|later| is_own(&read.access, later));
                let mut own: Vec<&Read> = reads.iter().filter(own).collect();
                own.sort_by_key(|read| read.access.at.end);
                own
            };
            if earlier.iter().any(|first| !read_by_author(first).is_empty()) {
                let violates = earlier.iter().any(|first| {
                    let own = read_by_author(first);
                    let last = own.last().map(|last| last.saw);
                    (last == Some(read.saw) && last != Some(first.saw))
                        || own.iter().any(|author| older(read.saw, author.saw))
                });
                found.writes_follow_reads.add(violates);
            }
        }
        found
    }

    /// Reads that end at the same time make "the last one" of a client ambiguous; no client runs
    /// two operations at a time.
    fn is_sequential(history: &History) -> bool {
        let accesses: Vec<Access> =
            history.writes.iter().copied().chain(history.reads.iter().map(|read| read.access)).collect();
        let overlap = |a: &Access, b: &Access| a.at.start <= b.at.end && b.at.start <= a.at.end;
        let pairs = (0..accesses.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let own = |(a, b): &(usize, usize)| accesses[*a].by.thread == accesses[*b].by.thread;
        !pairs.filter(own).any(|(a, b)| overlap(&accesses[a], &accesses[b]))
    }

    #[test]
    fn guarantees_are_as_defined() {
        let mut all = Guarantees::default();
        for (writes, reads) in histories(40_000, 41, 50) {
            let history = History::new(writes.clone(), reads.clone());
            if !is_sequential(&history) {
                continue;
            }
            let found = by_thread(&history);
            assert_eq!(found, brute(&history), "{history:?}");
            assert_eq!(by_thread(&shuffled(&writes, &reads, 8)), found);
            all.merge(&found);
        }
        for (name, checked) in all.named() {
            assert!(checked.violations > 50 && checked.violations < checked.reads, "{name}: {checked:?}");
        }
    }

    /// A store in which each operation takes effect within its interval violates none.
    #[test]
    fn a_correct_store_is_never_accused() {
        for (writes, reads) in histories(20_000, 42, 40) {
            let history = History::new(writes, reads);
            if super::super::brute::gamma(&history) > 0 {
                continue;
            }
            for guarantees in [by_thread(&history), by_actor(&history)] {
                assert!(guarantees.named().iter().all(|(_, checked)| checked.violations == 0), "{history:?}");
            }
        }
    }

    #[test]
    fn known_answers() {
        let violations = |events: &[Event]| by_thread(&history(events)).named().map(|(_, checked)| checked.violations);
        assert_eq!(violations(&[w(1, 0, 5).by(1), r(0, 6, 7).by(1), r(0, 6, 7).by(2)]), [1, 0, 0, 0]);
        assert_eq!(violations(&[w(1, 0, 5).by(1), r(1, 6, 7).by(2), r(0, 8, 9).by(2)]), [0, 1, 0, 0]);
        let two = [w(1, 0, 5).by(1), w(2, 6, 7).by(1)];
        assert_eq!(violations(&[&two[..], &[r(2, 8, 9).by(2), r(1, 10, 11).by(2)]].concat()), [0, 1, 1, 0]);
        // Another client saw the first value before it wrote.
        let answer = [w(1, 0, 5).by(1), r(1, 6, 7).by(2), w(2, 8, 9).by(2)];
        assert_eq!(violations(&[&answer[..], &[r(2, 10, 11).by(3), r(1, 12, 13).by(3)]].concat()), [0, 1, 0, 1]);
        // No client was promised a write of unknown fate, and it may take effect late.
        assert_eq!(violations(&[w(1, 0, FOREVER).by(1), r(0, 6, 7).by(1)]), [0; 4]);
        assert_eq!(violations(&[w(1, 0, FOREVER).by(1), w(2, 1, 2).by(2), r(2, 3, 4).by(2), r(1, 5, 6).by(2)]), [0; 4]);
    }
}
