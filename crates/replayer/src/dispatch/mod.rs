//! Who is next: hands sessions out in trace order, keeps socialites unique and
//! knows which sessions are done. Pure: no clock, no store, no task.
//!
//! A session whose socialite is busy waits aside, and goes first when she is
//! free. A session never waits for one that comes after it in the trace, and a
//! thread that frees a socialite takes the session that waited for her, so no
//! two threads can wait for each other.

mod done;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use schemas::share::next_among;
use schemas::trace::TraceRow;

use done::DoneSessions;

/// A few thousand operations of one fragment that hold whole sessions.
pub type Chunk = Vec<TraceRow>;

/// A session: a stretch of a chunk.
#[derive(Debug, Clone)]
pub struct Session {
    /// The fragment, as an index into the dispatcher's fragments.
    pub fragment: usize,
    chunk: Rc<Chunk>,
    first: usize,
    end: usize,
}

impl Session {
    /// The operations in order; never empty.
    pub fn rows(&self) -> &[TraceRow] {
        &self.chunk[self.first..self.end]
    }

    /// The session's number in its fragment.
    pub fn number(&self) -> u64 {
        self.rows()[0].session
    }

    fn socialite(&self) -> u64 {
        self.rows()[0].operation.socialite
    }
}

/// What a thread that asks for work gets.
#[derive(Debug)]
pub enum Next {
    /// This session.
    Session(Session),
    /// The next chunk of this fragment is needed first ([`Dispatcher::supply`]).
    NeedsChunk(usize),
    /// Too many sessions wait aside: ask again when a session has finished.
    Blocked,
    /// All that was to be handed out has been. Sessions that still wait aside
    /// go to the threads that now act for their socialites.
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

type ById<V> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

struct Fragment {
    weight: f64,
    /// The next session to take from the trace.
    next_session: u64,
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

/// Hands out the sessions of some fragments.
pub struct Dispatcher {
    fragments: Vec<Fragment>,
    /// One entry for each socialite that a thread acts for, with the sessions
    /// that wait for her: hardly ever any, so an entry is one word.
    #[expect(clippy::box_collection, reason = "one word for the many entries that nobody waits for")]
    busy: ById<Option<Box<VecDeque<Session>>>>,
    ready: VecDeque<Session>,
    aside: usize,
    aside_max: usize,
    unique_socialites: bool,
    closed: bool,
}

/// How many sessions may wait aside before threads wait too.
pub fn aside_max(threads: usize) -> usize {
    1024 + 16 * threads
}

/// A fragment's part in an experiment: `[first_session, end_session)`.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// The fragment's share of all draws.
    pub weight: f64,
    /// The first session.
    pub first_session: u64,
    /// The first session after the warm-up.
    pub measured_from: u64,
    /// The session after the last.
    pub end_session: u64,
}

impl Dispatcher {
    /// A dispatcher for `threads` threads, which hands out warm-up and measured
    /// part without a break.
    pub fn new(stretches: &[Stretch], threads: usize, unique_socialites: bool) -> Dispatcher {
        let fragments = stretches
            .iter()
            .map(|s| Fragment {
                weight: s.weight,
                next_session: s.first_session,
                part_end: s.end_session,
                end_session: s.end_session,
                chunk: Rc::new(Vec::new()),
                at: 0,
                exhausted: false,
                done: DoneSessions::from(s.first_session),
            })
            .collect();
        Dispatcher {
            fragments,
            busy: HashMap::with_capacity_and_hasher(threads, Default::default()),
            ready: VecDeque::with_capacity(threads),
            aside: 0,
            aside_max: aside_max(threads),
            // A thread alone acts for one socialite at a time anyway.
            unique_socialites: unique_socialites && threads > 1,
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

    /// Takes nothing more from the trace. What waits aside is still handed out,
    /// so that the sessions that ran are a prefix of each fragment.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether there is no use in waiting for a session: nothing is taken from the
    /// trace any more, and either that was decided early ([`Dispatcher::close`]) or
    /// nothing waits aside.
    pub fn is_over(&self) -> bool {
        self.closed
            || (self.ready.is_empty()
                && self.aside == 0
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

    /// Each fragment's next session that has not been handed out.
    pub fn positions(&self) -> impl Iterator<Item = u64> + '_ {
        self.fragments.iter().map(|f| f.next_session)
    }

    /// The next session for a thread.
    #[inline]
    pub fn hand_out(&mut self) -> Next {
        if let Some(session) = self.ready.pop_front() {
            return Next::Session(session);
        }
        loop {
            if self.closed {
                return Next::Finished;
            }
            if self.aside >= self.aside_max {
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
            let first = fragment.at;
            let number = fragment.chunk[first].session;
            let mut end = first + 1;
            while end < fragment.chunk.len() && fragment.chunk[end].session == number {
                end += 1;
            }
            fragment.at = end;
            fragment.next_session = number + 1;
            let session = Session { fragment: index, chunk: fragment.chunk.clone(), first, end };
            if !self.unique_socialites {
                return Next::Session(session);
            }
            match self.busy.entry(session.socialite()) {
                std::collections::hash_map::Entry::Occupied(mut waiting) => {
                    waiting.get_mut().get_or_insert_default().push_back(session);
                    self.aside += 1;
                }
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(None);
                    return Next::Session(session);
                }
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
        if !self.unique_socialites {
            return;
        }
        let socialite = session.socialite();
        let Some(waiting) = self.busy.get_mut(&socialite) else { return };
        match waiting.as_mut().and_then(|sessions| sessions.pop_front()) {
            Some(next) => {
                self.aside -= 1;
                self.ready.push_back(next);
            }
            None => {
                self.busy.remove(&socialite);
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
