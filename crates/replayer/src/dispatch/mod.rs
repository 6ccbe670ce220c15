//! Who is next: hands sessions out in trace order, keeps socialites unique and
//! knows which sessions are done. Pure: no clock, no store, no task.
//!
//! A session whose socialite is busy waits aside, and goes first when she is
//! free. A session never waits for one that comes after it in the trace, and a
//! thread that frees a socialite takes the session that waited for her, so no
//! two threads can wait for each other. When the time is over, what waits aside is
//! given back: it is not run, and the positions say so.

mod aside;
mod done;

use std::collections::VecDeque;
use std::hash::Hasher;
use std::rc::Rc;

use schemas::run::FragmentPosition;
use schemas::share::next_among;
use schemas::social::Operation;
use schemas::trace::Chunk;

use aside::{Aside, Busy};
use done::DoneSessions;

/// A session: a stretch of a chunk, which holds whole sessions.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The fragment, as an index into the dispatcher's fragments.
    pub fragment: usize,
    chunk: Rc<Chunk>,
    first: usize,
    end: usize,
}

impl Session {
    /// How many operations it has; never 0.
    pub fn steps(&self) -> usize {
        self.end - self.first
    }

    /// What is done in this place of it.
    #[inline(always)]
    pub fn operation(&self, place: usize) -> Operation {
        self.chunk.operation(self.first + place)
    }

    /// The session's number in its fragment.
    #[inline]
    pub fn number(&self) -> u64 {
        self.chunk.session(self.first)
    }

    /// What its thread waits before the operation in this place; see [`schemas::trace::TraceRow::think_us`].
    #[inline]
    pub fn think_us(&self, place: usize) -> u32 {
        self.chunk.think_us(self.first + place)
    }

    /// The session that the operation in this place depends on.
    #[inline]
    pub fn after(&self, place: usize) -> Option<u64> {
        self.chunk.after(self.first + place)
    }

    /// When it starts (open loop only).
    #[inline]
    pub fn due_us(&self) -> Option<u64> {
        self.chunk.due_us(self.first)
    }

    #[inline]
    fn socialite(&self) -> u64 {
        self.chunk.socialite(self.first)
    }

    /// The sessions that its operations depend on.
    fn depends_on(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.steps()).filter_map(|place| self.after(place))
    }
}

/// What a thread that asks for work gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A session.
    Session,
    /// The next chunk of this fragment is needed first ([`Dispatcher::supply`]).
    NeedsChunk(usize),
    /// Too many sessions wait aside: ask again when a session has finished.
    Blocked,
    /// All that was to be handed out has been, or the time is over. In the first case
    /// sessions that still wait aside go to the threads that now act for their socialites.
    Finished,
}

/// Whether the write that an operation depends on is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// It succeeded.
    Done,
    /// It did not succeed.
    NotOk,
    /// It is not done yet.
    Pending,
}

/// Ids are dense and drawn by a known generator: one multiplication spreads them.
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(*byte as u64);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

struct Fragment {
    weight: f64,
    /// The next session to take from the trace.
    next_session: u64,
    /// Sessions that an earlier experiment gave back, which come first.
    catch_up: VecDeque<u64>,
    /// The first session that no earlier experiment has taken from the trace.
    first_session: u64,
    /// The first session that is not to be handed out in this part of the experiment.
    part_end: u64,
    /// The first session that is not to be handed out at all.
    end_session: u64,
    chunk: Rc<Chunk>,
    /// The next row of the chunk.
    at: usize,
    exhausted: bool,
    done: DoneSessions,
}

impl Fragment {
    fn new(stretch: &Stretch) -> Fragment {
        let begins_at = stretch.given_back.first().copied().unwrap_or(stretch.first_session);
        let mut done = DoneSessions::from(begins_at);
        for session in begins_at..stretch.first_session {
            if stretch.given_back.binary_search(&session).is_err() {
                done.finish(session, true);
            }
        }
        Fragment {
            weight: stretch.weight,
            next_session: begins_at,
            catch_up: stretch.given_back.iter().copied().collect(),
            first_session: stretch.first_session,
            part_end: stretch.end_session,
            end_session: stretch.end_session,
            chunk: Rc::default(),
            at: 0,
            exhausted: false,
            done,
        }
    }

    /// Takes the next session of the chunk, which has one.
    #[inline(always)]
    fn take(&mut self, index: usize, session: &mut Session) {
        let first = self.at;
        let number = self.chunk.session(first);
        let mut end = first + 1;
        while end < self.chunk.len() && self.chunk.session(end) == number {
            end += 1;
        }
        self.at = end;
        self.next_session = number + 1;
        if number < self.first_session {
            // They come in their order, and nothing else comes before them.
            self.catch_up.pop_front();
            self.next_session = self.catch_up.front().copied().unwrap_or(self.first_session);
        }
        session.fragment = index;
        session.first = first;
        session.end = end;
        if !Rc::ptr_eq(&session.chunk, &self.chunk) {
            session.chunk = self.chunk.clone();
        }
    }
}

/// Hands out the sessions of some fragments.
pub struct Dispatcher {
    fragments: Vec<Fragment>,
    /// None where two threads may act for one socialite.
    busy: Option<Busy>,
    aside: Aside,
    aside_max: usize,
    /// What waited aside and need not wait any more.
    ready: VecDeque<Session>,
    closed: bool,
}

/// How many sessions may wait aside before threads wait too: as many as a store that keeps some
/// operations waiting for long needs, and few enough for the store's marker, which names those
/// that are given back. (A workload that keeps fewer threads busy than there are may hide behind them
/// for a while; the ruling sees it by the sessions under way.)
pub fn aside_max(threads: usize) -> usize {
    (1024 + 4 * threads).min(4096)
}

/// A fragment's part in an experiment: `[first_session, end_session)`, after what an
/// earlier experiment gave back.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// The fragment's share of all draws.
    pub weight: f64,
    /// Sessions before the first that come first all the same.
    pub given_back: Vec<u64>,
    /// The first session.
    pub first_session: u64,
    /// The first session after the warm-up.
    pub measured_from: u64,
    /// The session after the last.
    pub end_session: u64,
}

impl Dispatcher {
    /// A dispatcher for `threads` threads, which hands out warm-up and measured part
    /// without a break. With `unique_among` so many members, no two threads ever act for
    /// one of them at the same time.
    pub fn new(stretches: &[Stretch], threads: usize, unique_among: Option<u64>) -> Dispatcher {
        Dispatcher {
            fragments: stretches.iter().map(Fragment::new).collect(),
            // A thread alone acts for one socialite at a time anyway.
            busy: unique_among.filter(|_| threads > 1).map(Busy::new),
            aside: Aside::default(),
            aside_max: aside_max(threads),
            ready: VecDeque::with_capacity(threads),
            closed: false,
        }
    }

    /// Hands out the warm-up alone, until [`Dispatcher::begin_measured`].
    pub fn warming_up(mut self, stretches: &[Stretch]) -> Dispatcher {
        for (fragment, stretch) in self.fragments.iter_mut().zip(stretches) {
            fragment.part_end = stretch.measured_from;
        }
        self
    }

    /// Goes on with what follows the warm-up. What has been done is remembered.
    pub fn begin_measured(&mut self) {
        self.fragments.iter_mut().for_each(|fragment| fragment.part_end = fragment.end_session);
    }

    /// Gives a fragment its next chunk; `None` says that the trace has no more.
    pub fn supply(&mut self, fragment: usize, chunk: Option<Chunk>) {
        let fragment = &mut self.fragments[fragment];
        match chunk {
            Some(chunk) => {
                fragment.chunk = Rc::new(chunk);
                fragment.at = 0;
            }
            None => fragment.exhausted = true,
        }
    }

    /// Hands out nothing more. What waits aside is given back.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether there is no use in waiting for a session: nothing is taken from the
    /// trace any more, and either that was decided early ([`Dispatcher::close`]) or
    /// nothing waits aside.
    pub fn is_over(&self) -> bool {
        self.closed
            || (self.ready.is_empty()
                && self.aside.len() == 0
                && self.next_fragment().is_none_or(|index| {
                    let fragment = &self.fragments[index];
                    fragment.exhausted && fragment.at == fragment.chunk.len()
                }))
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a fragment ran out of trace before the end of this part.
    pub fn ran_out(&self) -> bool {
        self.fragments.iter().any(|f| f.exhausted && f.next_session < f.part_end)
    }

    /// Where each fragment stands once every session that was handed out has ended;
    /// `fragments` are their numbers.
    pub fn positions(&self, fragments: &[u32]) -> Vec<FragmentPosition> {
        let position = |(index, number): (usize, &u32)| {
            let fragment = &self.fragments[index];
            let ready = self.ready.iter().filter(|session| session.fragment == index).map(Session::number);
            let aside = self.aside.numbers(index).chain(ready);
            let mut given_back: Vec<u64> = aside.chain(fragment.catch_up.iter().copied()).collect();
            given_back.sort_unstable();
            let next_session = fragment.next_session.max(fragment.first_session);
            FragmentPosition { fragment: *number, next_session, given_back }
        };
        fragments.iter().enumerate().map(|(index, number)| position((index, number))).collect()
    }

    /// The next session for a thread, which takes the place of its last one.
    ///
    /// It is written where it stays: to copy what was just written in parts makes a
    /// processor wait until all its writes are done, which took 40% of a replay against
    /// nothing.
    #[inline(always)]
    pub fn hand_out(&mut self, session: &mut Session) -> Next {
        if self.closed {
            return Next::Finished;
        }
        if let Some(ready) = self.ready.pop_front() {
            *session = ready;
            return Next::Session;
        }
        loop {
            if self.aside.len() >= self.aside_max {
                return Next::Blocked;
            }
            let Some(index) = self.next_fragment() else { return Next::Finished };
            let fragment = &mut self.fragments[index];
            if fragment.at == fragment.chunk.len() {
                if fragment.exhausted {
                    // One fragment without sessions ends the experiment: going on with
                    // the others would change who is drawn how often.
                    return Next::Finished;
                }
                return Next::NeedsChunk(index);
            }
            fragment.take(index, session);
            let Some(busy) = &mut self.busy else { return Next::Session };
            if !busy.take(session.socialite()) {
                self.aside.wait_for_socialite(session.clone());
            } else if self.aside.len() == 0 || !self.aside.puts_off(session) {
                return Next::Session;
            }
        }
    }

    /// The fragment whose session comes next in the global order, among those
    /// with sessions left.
    fn next_fragment(&self) -> Option<usize> {
        if let [only] = self.fragments.as_slice() {
            return (only.next_session < only.part_end).then_some(0);
        }
        let open = self.fragments.iter().enumerate().filter(|(_, f)| f.next_session < f.part_end);
        next_among(open.map(|(index, f)| (index, f.weight, f.next_session)))
    }

    /// A thread has finished a session; `ok` is false when one of its writes did
    /// not succeed. The session that waited for the socialite becomes ready.
    #[inline]
    pub fn finish(&mut self, session: &Session, ok: bool) {
        self.fragments[session.fragment].done.finish(session.number(), ok);
        let Some(busy) = &mut self.busy else { return };
        if self.aside.len() == 0 {
            busy.free(session.socialite());
            return;
        }
        match self.aside.next_of(session.socialite()) {
            Some(next) => self.release(next),
            None => busy.free(session.socialite()),
        }
    }

    /// A session's socialite is free for it: it becomes ready, and so do those that wait
    /// for it, unless they depend on others that still wait.
    #[cold]
    fn release(&mut self, session: Session) {
        let mut free = VecDeque::from([session]);
        while let Some(session) = free.pop_front() {
            if !self.aside.puts_off(&session) {
                free.extend(self.aside.after(&session));
                self.ready.push_back(session);
            }
        }
    }

    /// Whether the write in session `after` of a fragment is done.
    pub fn dependency(&self, fragment: usize, after: u64) -> Dependency {
        self.fragments[fragment].done.get(after)
    }
}

#[cfg(test)]
mod tests;
