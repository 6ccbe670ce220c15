//! Decides which session is next: hands sessions out in trace order, keeps actors unique and
//! knows which sessions are done. Pure: no clock, no store, no task. In an open loop it hands them out
//! in the order of their due times, when it is told the time.
//!
//! A session whose actor is busy waits aside, and goes first when the actor is free. A session never
//! waits for a later one of the trace. A thread that frees an actor takes the session that waited for
//! this actor. So no two threads can wait for each other. When the
//! time is over, sessions that wait aside are given back: they are not run, and the positions say so.

mod aside;
mod done;
mod due;
mod open;
mod session;

use std::collections::VecDeque;
use std::hash::Hasher;
use std::rc::Rc;

use schemas::run::FragmentPosition;
use schemas::share::next_among;
use schemas::trace::Chunk;
use schemas::vocabulary::Vocabulary;

use aside::{Aside, Busy};
use done::DoneSessions;
use due::DueOrder;
pub use due::Rhythm;
pub use open::Asking;
pub use session::Session;

/// What the dispatcher answers to a thread that asks for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A session.
    Session,
    /// The next chunk of this fragment is needed first ([`Dispatcher::supply`]).
    NeedsChunk(usize),
    /// Too many sessions wait aside: ask again when a session has finished.
    Blocked,
    /// Open loop: the next session is due at this time, by the experiment's clock.
    NotDue(i64),
    /// Open loop: the session is for another thread, which was free when it became due
    /// ([`Asking::other_freed_ns`]).
    ForOther,
    /// Open loop: another task waits for the next due time. Only a worker knows.
    NotItsTurn,
    /// Open loop: the session had to queue, and the plan skips such sessions. Only a worker knows.
    Overdue,
    /// Everything has been handed out, or the time is over. In the first case, sessions that
    /// still wait aside go to the threads that now act for their actors.
    Finished,
}

/// Whether the write that an operation depends on is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// It succeeded.
    Done,
    /// It did not succeed.
    NotOk,
    /// It was rolled back.
    Aborted,
    /// It is not done yet.
    Pending,
}

/// How the writes of a session ended, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// All succeeded.
    Ok,
    /// One was rolled back with its transaction: it did not happen, as far as the store knows.
    Aborted,
    /// One did not succeed, or it is not known whether it did.
    NotOk,
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

struct Fragment<V: Vocabulary> {
    weight: f64,
    /// The next session to take from the trace.
    next_session: u64,
    /// Sessions that an earlier experiment gave back, which come first.
    catch_up: VecDeque<u64>,
    /// The first session that no earlier experiment has taken from the trace.
    first_session: u64,
    /// The first session of this part of the experiment.
    part_begin: u64,
    /// The first session that is not to be handed out in this part of the experiment.
    part_end: u64,
    /// The first session that is not to be handed out at all.
    end_session: u64,
    chunk: Rc<Chunk<V>>,
    /// The next row of the chunk.
    at: usize,
    exhausted: bool,
    done: DoneSessions,
}

impl<V: Vocabulary> Fragment<V> {
    fn new(stretch: &Stretch) -> Fragment<V> {
        let begins_at = stretch.given_back.first().copied().unwrap_or(stretch.first_session);
        let mut done = DoneSessions::from(begins_at);
        for session in begins_at..stretch.first_session {
            if stretch.given_back.binary_search(&session).is_err() {
                done.finish(session, Ended::Ok);
            }
        }
        Fragment {
            weight: stretch.weight,
            next_session: begins_at,
            catch_up: stretch.given_back.iter().copied().collect(),
            first_session: stretch.first_session,
            part_begin: stretch.first_session,
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
    fn take(&mut self, index: usize, session: &mut Session<V>) {
        let first = self.at;
        let number = self.chunk.session(first);
        let mut end = first + 1;
        while end < self.chunk.len() && self.chunk.session(end) == number {
            end += 1;
        }
        self.at = end;
        self.next_session = number + 1;
        if number < self.first_session {
            // Sessions that were given back come first, in their order.
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
pub struct Dispatcher<V: Vocabulary> {
    fragments: Vec<Fragment<V>>,
    /// None where two threads may act for one actor.
    busy: Option<Busy>,
    aside: Aside<V>,
    aside_max: usize,
    /// Sessions that waited aside and can be handed out now.
    ready: VecDeque<Session<V>>,
    /// When sessions are due. None in a closed loop.
    due: Option<DueOrder>,
    closed: bool,
}

/// How many sessions may wait aside before threads wait too. They must be enough for a store that
/// keeps some operations waiting for long. They must be few enough for the store's marker, which
/// lists the sessions that are given back. (A workload that cannot keep all threads busy may hide
/// behind this limit for a while; the ruling detects it by the sessions under way.)
pub fn aside_max(threads: usize) -> usize {
    (1024 + 4 * threads).min(4096)
}

/// A fragment's part in an experiment: `[first_session, end_session)`, after what an
/// earlier experiment gave back.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// The fragment's share of all draws.
    pub weight: f64,
    /// Sessions before `first_session` that an earlier experiment gave back; they run first.
    pub given_back: Vec<u64>,
    /// The first session.
    pub first_session: u64,
    /// The first session after the warm-up.
    pub measured_from: u64,
    /// The session after the last.
    pub end_session: u64,
}

impl<V: Vocabulary> Dispatcher<V> {
    /// A dispatcher for `threads` threads, which hands out warm-up and measured part without a
    /// break. With `unique_among` (the number of actors), no two threads act for one of them at
    /// the same time.
    pub fn new(stretches: &[Stretch], threads: usize, unique_among: Option<u64>) -> Dispatcher<V> {
        Dispatcher {
            fragments: stretches.iter().map(Fragment::new).collect(),
            // With one thread, an actor never has two sessions at a time anyway.
            busy: unique_among.filter(|_| threads > 1).map(Busy::new),
            aside: Aside::default(),
            aside_max: aside_max(threads),
            ready: VecDeque::with_capacity(threads),
            due: None,
            closed: false,
        }
    }

    /// Hands out sessions when they are due ([`Dispatcher::hand_out_due`]); with the rhythm of each
    /// fragment.
    pub fn open_loop(self, rhythms: Vec<Rhythm>) -> Dispatcher<V> {
        Dispatcher { due: Some(DueOrder::new(rhythms)), ..self }
    }

    /// Hands out only the warm-up, until [`Dispatcher::begin_measured`].
    pub fn warming_up(mut self, stretches: &[Stretch]) -> Dispatcher<V> {
        for (fragment, stretch) in self.fragments.iter_mut().zip(stretches) {
            fragment.part_end = stretch.measured_from;
        }
        if let Some(due) = &mut self.due {
            due.warming_up();
        }
        self
    }

    /// Continues with what follows the warm-up, and remembers which sessions are done. The measured
    /// part begins at this time.
    pub fn begin_measured(&mut self, at_ns: i64) {
        for fragment in &mut self.fragments {
            fragment.part_begin = fragment.part_end;
            fragment.part_end = fragment.end_session;
        }
        if let Some(due) = &mut self.due {
            due.begin_measured(at_ns);
        }
    }

    /// Gives a fragment its next chunk; `None` means that the trace has ended.
    pub fn supply(&mut self, fragment: usize, chunk: Option<Chunk<V>>) {
        let fragment = &mut self.fragments[fragment];
        match chunk {
            Some(chunk) => {
                fragment.chunk = Rc::new(chunk);
                fragment.at = 0;
            }
            None => fragment.exhausted = true,
        }
    }

    /// Hands out no more sessions. Sessions that wait aside are given back.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether a thread need not wait for a session. This is so when nothing more is taken from
    /// the trace, and either the dispatcher was closed ([`Dispatcher::close`]) or no session waits aside.
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

    /// Writes the next session for a thread over the thread's last one.
    ///
    /// The session is written in place. Copying data that has just been written in parts makes a
    /// processor wait until all these writes are done, which took 40% of a replay against `null:`.
    #[inline(always)]
    pub fn hand_out(&mut self, session: &mut Session<V>) -> Next {
        self.hand_out_from(session, |this, session| {
            let index = this.next_fragment().ok_or(Next::Finished)?;
            let fragment = &mut this.fragments[index];
            if fragment.at < fragment.chunk.len() {
                fragment.take(index, session);
                return Ok(());
            }
            // One fragment without sessions ends the experiment. Continuing with the others would
            // change how often each member is drawn.
            Err(if fragment.exhausted { Next::Finished } else { Next::NeedsChunk(index) })
        })
    }

    /// Hands out a session that waited aside, or else one that `take` takes from the trace. A session
    /// whose actor is busy goes aside, and the next one is taken. The error of `take` is the answer to
    /// a thread if no session can be taken.
    #[inline(always)]
    fn hand_out_from(
        &mut self,
        session: &mut Session<V>,
        mut take: impl FnMut(&mut Self, &mut Session<V>) -> Result<(), Next>,
    ) -> Next {
        if self.closed {
            return Next::Finished;
        }
        if let Some(ready) = self.ready.pop_front() {
            *session = Session { was_aside: true, ..ready };
            return Next::Session;
        }
        loop {
            if self.aside.len() >= self.aside_max {
                return Next::Blocked;
            }
            if let Err(next) = take(self, session) {
                return next;
            }
            let Some(busy) = &mut self.busy else { return Next::Session };
            if !busy.take(session.actor()) {
                self.aside.wait_for_actor(session.clone());
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

    /// A thread has finished a session, whose writes ended like this. The session that waited for the
    /// actor becomes ready.
    #[inline]
    pub fn finish(&mut self, session: &Session<V>, writes: Ended) {
        self.fragments[session.fragment].done.finish(session.number(), writes);
        let Some(busy) = &mut self.busy else { return };
        if self.aside.len() == 0 {
            busy.free(session.actor());
            return;
        }
        match self.aside.next_of(session.actor()) {
            Some(next) => self.release(next),
            None => busy.free(session.actor()),
        }
    }

    /// The session's actor is free for it. The session becomes ready, and so do the sessions
    /// that wait for it, unless they depend on others that still wait.
    #[cold]
    fn release(&mut self, session: Session<V>) {
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
