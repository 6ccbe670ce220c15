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

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use schemas::verdict::Guarantees;

use super::history::{BEFORE, COUNTED, Clients, History};
use super::windows::ItemHasher;
use crate::validate::Interval;

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
#[derive(Clone, Copy)]
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

/// In place of a read: there is none.
const NONE: u32 = u32::MAX;

/// How many earlier reads of its client a read is held against at most, on average.
const STEPS: usize = 16;

const NOTHING: Past =
    Past { wrote: None, saw: None, saw_last: None, saw_writer: false, saw_reader: false, read_newest: BEFORE };

/// What a client has seen, by write and by author. An entry counts for the client with its number.
#[derive(Default)]
struct Seen {
    /// The values that something which the client saw was written after, in reads by the author.
    superseded: Vec<u32>,
    /// The greatest start of the writes by each client that it saw.
    newest_of: Vec<(u32, i64)>,
}

/// Checks guarantees. What it allocates is kept for the next history.
///
/// Operations are taken by their start, whatever their client, since neighbours in time are neighbours in memory. A read
/// that went back in time is held against the reads of its client before it, from the last one back to the write that it
/// saw. Where that would take long, since reads are very stale, the clients that went back in time are taken one by
/// one.
#[derive(Default)]
pub struct Checker {
    /// The clients, and the number of each from 1 on.
    numbers: HashMap<u64, u32, BuildHasherDefault<ItemHasher>>,
    /// The client of each operation, by start: writes before reads that start at the same time.
    client_of: Vec<(Event, u32)>,
    /// Who ran each write.
    authors: Vec<Author>,
    past: Vec<Past>,
    pending: Vec<Vec<Event>>,
    /// The last read of each client that has ended, and of each read the one of its client before.
    last_read: Vec<u32>,
    read_before: Vec<u32>,
    /// The clients that went back in time.
    is_suspect: Vec<bool>,
    /// Their reads, by client.
    suspects: Vec<(u32, u32)>,
    seen: Seen,
}

impl Checker {
    /// The guarantees of clients. `client` says which client ran an operation. Reads that were counted before
    /// are not counted again.
    pub fn check(&mut self, history: &History, client: impl Fn(&Clients) -> u64) -> Guarantees {
        // Then a client may have seen what its author had not done yet.
        let has_future = history.reads.iter().any(|read| history.written(read.saw).start > read.access.at.end);
        if !has_future && let Some(found) = self.check_forward(history, &client, STEPS) {
            return found;
        }
        self.check_by_client(history, client, has_future)
    }

    /// Checks in one pass. None if reads are so stale that it would take more than so many steps a read.
    fn check_forward(
        &mut self,
        history: &History,
        client: impl Fn(&Clients) -> u64,
        steps: usize,
    ) -> Option<Guarantees> {
        let Checker { numbers, authors, past, pending, last_read, read_before, .. } = self;
        let mut found = Guarantees::default();
        let mut steps_left = steps * history.reads.len();
        numbers.clear();
        authors.clear();
        past.clear();
        last_read.clear();
        read_before.clear();
        read_before.resize(history.reads.len(), NONE);
        pending.iter_mut().for_each(Vec::clear);
        let mut writes = 0;
        let mut reads = 0;
        while writes < history.writes.len() || reads < history.reads.len() {
            let is_write = match (history.writes.get(writes), history.reads.get(reads)) {
                (Some(write), Some(read)) => write.at.start <= read.access.at.start,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let access = if is_write { &history.writes[writes] } else { &history.reads[reads].access };
            let fresh = past.len() as u32;
            let number = *numbers.entry(client(&access.by)).or_insert(fresh);
            let at = number as usize;
            if number == fresh {
                past.push(NOTHING);
                last_read.push(NONE);
                if pending.len() <= at {
                    pending.resize_with(at + 1, Vec::new);
                }
            }
            let (own, last) = (&mut past[at], &mut last_read[at]);
            settle(history, &mut pending[at], access.at.start, |ended| {
                own.end(history, ended);
                own.see(history, ended, authors);
                if let Event::Read(read) = ended {
                    read_before[read as usize] = std::mem::replace(last, read);
                }
            });
            if is_write {
                authors.push(own.author(number));
                pending[at].push(Event::Write(writes as u32));
                writes += 1;
                continue;
            }
            let read = reads as u32;
            if access.tag != COUNTED && own.check(history, read, &mut found) {
                let earlier = Earlier { history, authors, read_before, last: *last };
                steps_left = own.check_near(&earlier, read, &mut found, steps_left)?;
            }
            pending[at].push(Event::Read(read));
            reads += 1;
        }
        Some(found)
    }

    /// Checks the clients that went back in time one by one.
    fn check_by_client(&mut self, history: &History, client: impl Fn(&Clients) -> u64, has_future: bool) -> Guarantees {
        let mut found = Guarantees::default();
        self.find_authors(history, client);
        let Checker { client_of, authors, past, pending, is_suspect, .. } = self;
        past.iter_mut().for_each(|past| *past = NOTHING);
        pending.iter_mut().for_each(Vec::clear);
        let mut has_suspects = false;
        for (event, number) in client_of.iter() {
            let (own, waiting) = (&mut past[*number as usize], &mut pending[*number as usize]);
            settle(history, waiting, interval(history, *event).start, |ended| {
                own.end(history, ended);
                own.see(history, ended, authors);
            });
            if let Event::Read(read) = *event
                && history.reads[read as usize].access.tag != COUNTED
                && (own.check(history, read, &mut found) || has_future)
            {
                is_suspect[*number as usize] = true;
                has_suspects = true;
            }
            waiting.push(*event);
        }
        if has_suspects {
            self.check_suspects(history, &mut found);
        }
        found
    }

    /// Numbers the clients, and finds what each one had done before it wrote.
    fn find_authors(&mut self, history: &History, client: impl Fn(&Clients) -> u64) {
        let Checker { numbers, client_of, authors, past, pending, is_suspect, .. } = self;
        numbers.clear();
        client_of.clear();
        past.clear();
        pending.iter_mut().for_each(Vec::clear);
        let none = Author { client: 0, wrote_before: false, read_last: None, read_newest: BEFORE };
        authors.clear();
        authors.resize(history.writes.len(), none);
        past.push(NOTHING);
        let (mut writes, mut reads) =
            (history.writes.iter().zip(0u32..).peekable(), history.reads.iter().zip(0u32..).peekable());
        loop {
            let is_write = match (writes.peek(), reads.peek()) {
                (Some((write, _)), Some((read, _))) => write.at.start <= read.access.at.start,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            let next = if is_write {
                writes.next().map(|(write, at)| (*write, Event::Write(at)))
            } else {
                reads.next().map(|(read, at)| (read.access, Event::Read(at)))
            };
            let Some((access, event)) = next else { break };
            let fresh = past.len() as u32;
            let number = *numbers.entry(client(&access.by)).or_insert(fresh);
            if number == fresh {
                past.push(NOTHING);
            }
            let at = number as usize;
            if pending.len() <= at {
                pending.resize_with(at + 1, Vec::new);
            }
            let own = &mut past[at];
            settle(history, &mut pending[at], access.at.start, |ended| own.end(history, ended));
            if let Event::Write(write) = event {
                authors[write as usize] = own.author(number);
            }
            pending[at].push(event);
            client_of.push((event, number));
        }
        is_suspect.clear();
        is_suspect.resize(past.len(), false);
    }

    /// Checks the order of writes for the clients that went back in time.
    fn check_suspects(&mut self, history: &History, found: &mut Guarantees) {
        let Checker { client_of, authors, past, pending, is_suspect, suspects, seen, .. } = self;
        suspects.clear();
        let reads = client_of.iter().filter(|(_, number)| is_suspect[*number as usize]);
        suspects.extend(reads.filter_map(|(event, number)| match event {
            Event::Read(read) => Some((*number, *read)),
            Event::Write(_) => None,
        }));
        suspects.sort_unstable();
        seen.superseded.clear();
        seen.superseded.resize(history.writes.len() + 1, 0);
        seen.newest_of.clear();
        seen.newest_of.resize(past.len(), (0, BEFORE));
        for own in suspects.chunk_by(|a, b| a.0 == b.0) {
            let (number, pending) = (own[0].0, &mut pending[0]);
            let mut past = NOTHING;
            pending.clear();
            for (_, read) in own {
                let start = history.reads[*read as usize].access.at.start;
                settle(history, pending, start, |ended| {
                    past.end(history, ended);
                    past.see(history, ended, authors);
                    seen.see(history, ended, authors, number);
                });
                if history.reads[*read as usize].access.tag != COUNTED {
                    past.check_order(history, *read, authors, seen, number, found);
                }
                pending.push(Event::Read(*read));
            }
        }
    }
}

/// Calls `end` with the operations that ended before this time, and takes them out. A client has more than
/// one under way only if it runs several at a time.
#[inline]
fn settle(history: &History, pending: &mut Vec<Event>, now: i64, mut end: impl FnMut(Event)) {
    if let [only] = pending[..] {
        if interval(history, only).end < now {
            pending.clear();
            end(only);
        }
        return;
    }
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

/// The reads of a client before one at hand.
struct Earlier<'a> {
    history: &'a History,
    authors: &'a [Author],
    read_before: &'a [u32],
    /// The last one that has ended.
    last: u32,
}

impl Past {
    /// What is known of a client that writes now.
    fn author(&self, client: u32) -> Author {
        Author {
            client,
            wrote_before: self.wrote.is_some(),
            read_last: self.saw_last,
            read_newest: self.saw.unwrap_or(BEFORE),
        }
    }

    /// Checks the order of the writes that a client has seen, like [`Past::check_order`], in a history in which no read
    /// ends before the write that it saw starts. So a read that proves a violation ended after the write started that
    /// the read at hand saw. Returns the steps that are left; None if there are none.
    fn check_near(&self, earlier: &Earlier<'_>, read: u32, found: &mut Guarantees, mut steps: usize) -> Option<usize> {
        let Earlier { history, authors, read_before, last } = *earlier;
        let saw = history.reads[read as usize].saw;
        let seen = history.written(saw);
        let author = saw.map(|write| authors[write as usize].client);
        let mut is_open = [self.saw_writer && author.is_some(), self.saw_reader];
        if self.saw_reader && seen.end < self.read_newest {
            found.writes_follow_reads.violations += 1;
            is_open[1] = false;
        }
        let mut next = last;
        while is_open != [false; 2] && next != NONE {
            let before = &history.reads[next as usize];
            if before.access.at.end < seen.start {
                break;
            }
            steps = steps.checked_sub(1)?;
            next = read_before[next as usize];
            let Some(write) = before.saw else { continue };
            let later = &authors[write as usize];
            let is_own = Some(later.client) == author && history.writes[write as usize].at.start > seen.end;
            if is_open[0] && is_own {
                found.monotonic_writes.violations += 1;
                is_open[0] = false;
            }
            if is_open[1] && later.read_last == Some(place(saw)) && place(saw) != write + 1 {
                found.writes_follow_reads.violations += 1;
                is_open[1] = false;
            }
        }
        Some(steps)
    }

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
    fn see(&mut self, history: &History, event: Event, authors: &[Author]) {
        let Event::Read(index) = event else { return };
        let Some(write) = history.reads[index as usize].saw else { return };
        let author = &authors[write as usize];
        self.saw_writer |= author.wrote_before;
        if author.read_last.is_some() {
            self.saw_reader = true;
            self.read_newest = self.read_newest.max(author.read_newest);
        }
    }

    /// Checks what a client was promised of its own operations, and counts the reads that the other guarantees
    /// are checked with. Returns whether the client went back in time: it has seen a write that started later.
    fn check(&self, history: &History, read: u32, found: &mut Guarantees) -> bool {
        let written = history.written(history.reads[read as usize].saw);
        if let Some(wrote) = self.wrote {
            found.read_your_writes.add(written.end < wrote);
        }
        if let Some(newest) = self.saw {
            found.monotonic_reads.add(written.end < newest);
        }
        found.monotonic_writes.reads += u64::from(self.saw_writer);
        found.writes_follow_reads.reads += u64::from(self.saw_reader);
        (self.saw_writer || self.saw_reader)
            && (self.saw.is_some_and(|newest| newest > written.start) || self.read_newest > written.end)
    }

    /// Checks the order of the writes that a client has seen.
    fn check_order(
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
        if self.saw_writer {
            let newest = saw.map(|write| seen.newest_of[authors[write as usize].client as usize]);
            let violates = newest.is_some_and(|(client, start)| client == number && seen_end < start);
            found.monotonic_writes.violations += u64::from(violates);
        }
        if self.saw_reader {
            let is_superseded = seen.superseded[place(saw) as usize] == number;
            found.writes_follow_reads.violations += u64::from(is_superseded || seen_end < self.read_newest);
        }
    }
}

impl Seen {
    fn see(&mut self, history: &History, event: Event, authors: &[Author], number: u32) {
        let Event::Read(index) = event else { return };
        let Some(write) = history.reads[index as usize].saw else { return };
        let author = &authors[write as usize];
        let start = history.writes[write as usize].at.start;
        let newest = &mut self.newest_of[author.client as usize];
        *newest = if newest.0 == number { (number, newest.1.max(start)) } else { (number, start) };
        if let Some(read) = author.read_last.filter(|read| *read != write + 1) {
            self.superseded[read as usize] = number;
        }
    }
}

/// By thread: what a connection was promised.
pub fn by_thread(history: &History) -> Guarantees {
    Checker::default().check(history, |by| by.thread.into())
}

/// By actor: what a user feels.
pub fn by_actor(history: &History) -> Guarantees {
    Checker::default().check(history, |by| by.actor)
}

#[cfg(test)]
mod tests {
    use super::super::brute::{Event, histories, history, r, shuffled, w};
    use super::super::history::{Access, Read};
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

    /// One pass over all clients finds what the pass client by client does, unless it gives up.
    #[test]
    fn both_ways_to_check_agree() {
        let (mut near, mut gave_up) = (0, 0);
        for (writes, reads) in histories(20_000, 43, 60) {
            let history = History::new(writes, reads);
            if history.reads.iter().any(|read| history.written(read.saw).start > read.access.at.end) {
                continue;
            }
            let mut checker = Checker::default();
            let by = |by: &Clients| u64::from(by.thread);
            let expected = checker.check_by_client(&history, by, false);
            for steps in [usize::MAX / 1_000, 0] {
                match checker.check_forward(&history, by, steps) {
                    Some(found) => assert_eq!(found, expected, "{history:?}"),
                    None => gave_up += 1,
                }
            }
            near += expected.monotonic_writes.violations + expected.writes_follow_reads.violations;
        }
        assert!(near > 50 && gave_up > 20, "{near} {gave_up}");
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
