//! Who is next: hands sessions out in trace order, keeps socialites unique and
//! knows which sessions are done. Pure: no clock, no store, no task.
//!
//! A session whose socialite is busy waits aside, and goes first when she is
//! free. A session never waits for one that comes after it in the trace, and a
//! thread that frees a socialite takes the session that waited for her, so no
//! two threads can wait for each other.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use schemas::share::next_among;
use schemas::trace::TraceRow;

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
    /// The first session that is not to be handed out any more.
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
    /// The session after the last.
    pub end_session: u64,
}

impl Dispatcher {
    /// A dispatcher for `threads` threads.
    pub fn new(stretches: &[Stretch], threads: usize, unique_socialites: bool) -> Dispatcher {
        let fragments = stretches
            .iter()
            .map(|s| Fragment {
                weight: s.weight,
                next_session: s.first_session,
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
            unique_socialites,
            closed: false,
        }
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

    /// Whether a fragment ran out of trace before its end.
    pub fn ran_out(&self) -> bool {
        self.fragments.iter().any(|f| f.exhausted && f.next_session < f.end_session)
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
            return (only.next_session < only.end_session).then_some(0);
        }
        let open = self.fragments.iter().enumerate().filter(|(_, f)| f.next_session < f.end_session);
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

/// Which sessions of a fragment are done: all before `base`, and those whose
/// bit is set. Its size follows the span of sessions in flight, plus one entry
/// for each failure.
struct DoneSessions {
    first: u64,
    /// A multiple of 64 sessions after `first`.
    base: u64,
    bits: VecDeque<u64>,
    not_ok: HashSet<u64>,
}

impl DoneSessions {
    fn from(first: u64) -> DoneSessions {
        DoneSessions { first, base: first, bits: VecDeque::new(), not_ok: HashSet::new() }
    }

    fn finish(&mut self, session: u64, ok: bool) {
        let index = (session - self.base) as usize;
        while self.bits.len() <= index / 64 {
            self.bits.push_back(0);
        }
        self.bits[index / 64] |= 1 << (index % 64);
        while self.bits.front() == Some(&u64::MAX) {
            self.bits.pop_front();
            self.base += 64;
        }
        if !ok {
            self.not_ok.insert(session);
        }
    }

    fn get(&self, session: u64) -> Dependency {
        // What lies before the experiment is in the store: its state was checked.
        if session < self.first {
            return Dependency::Done;
        }
        let done = session < self.base || {
            let index = (session - self.base) as usize;
            self.bits.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
        };
        match done {
            false => Dependency::Pending,
            true if !self.not_ok.is_empty() && self.not_ok.contains(&session) => Dependency::NotOk,
            true => Dependency::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schemas::social::{Action, Operation};

    fn chunk(socialites: &[u64]) -> Chunk {
        let row = |(session, socialite): (usize, &u64)| TraceRow {
            session: session as u64,
            step: 0,
            kind: 0,
            noops: 0,
            think_us: 0,
            due_us: None,
            after: None,
            operation: Operation { action: Action::ListFriends, socialite: *socialite, target: 0, comment: None },
        };
        socialites.iter().enumerate().map(row).collect()
    }

    fn whole(weight: f64, sessions: usize) -> Stretch {
        Stretch { weight, first_session: 0, end_session: sessions as u64 }
    }

    fn take(dispatcher: &mut Dispatcher) -> Option<Session> {
        match dispatcher.hand_out() {
            Next::Session(session) => Some(session),
            _ => None,
        }
    }

    #[test]
    fn a_busy_socialites_session_waits_and_then_goes_first() {
        let mut dispatcher = Dispatcher::new(&[whole(1.0, 4)], 2, true);
        dispatcher.supply(0, Some(chunk(&[7, 7, 8, 9])));
        let first = take(&mut dispatcher).unwrap();
        let second = take(&mut dispatcher).unwrap();
        assert_eq!((first.number(), second.number()), (0, 2));
        dispatcher.finish(&first, true);
        assert_eq!(take(&mut dispatcher).unwrap().number(), 1);
        assert_eq!(take(&mut dispatcher).unwrap().number(), 3);
        assert!(matches!(dispatcher.hand_out(), Next::Finished));
    }

    #[test]
    fn closing_hands_out_what_waits_aside_and_no_more() {
        let mut dispatcher = Dispatcher::new(&[whole(1.0, 4)], 2, true);
        dispatcher.supply(0, Some(chunk(&[7, 7, 8, 9])));
        let first = take(&mut dispatcher).unwrap();
        let second = take(&mut dispatcher).unwrap();
        dispatcher.close();
        assert!(take(&mut dispatcher).is_none());
        dispatcher.finish(&second, true);
        assert!(take(&mut dispatcher).is_none());
        dispatcher.finish(&first, true);
        assert_eq!(take(&mut dispatcher).unwrap().number(), 1);
        assert_eq!(dispatcher.positions().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn dependencies_tell_done_from_failed_from_pending() {
        let mut done = DoneSessions::from(100);
        assert_eq!(done.get(99), Dependency::Done);
        assert_eq!(done.get(100), Dependency::Pending);
        for session in (100..400).rev() {
            done.finish(session, session != 150);
        }
        assert_eq!(done.get(100), Dependency::Done);
        assert_eq!(done.get(150), Dependency::NotOk);
        assert_eq!(done.get(400), Dependency::Pending);
        // Memory follows what is in flight, not what is done.
        assert!(done.bits.len() <= 1);
    }

    #[test]
    fn a_stuck_socialite_blocks_before_memory_grows() {
        let mut dispatcher = Dispatcher::new(&[whole(1.0, 10_000)], 1, true);
        dispatcher.supply(0, Some(chunk(&vec![7; 10_000])));
        let stuck = take(&mut dispatcher).unwrap();
        assert!(matches!(dispatcher.hand_out(), Next::Blocked));
        dispatcher.finish(&stuck, true);
        assert_eq!(take(&mut dispatcher).unwrap().number(), 1);
    }

    proptest! {
        /// Any threads, any order of finishing: every session runs exactly once,
        /// one socialite's sessions in order and never two at a time.
        #[test]
        fn every_session_runs_once_and_socialites_are_unique(
            socialites in prop::collection::vec(0u64..6, 1..200),
            threads in 1usize..9,
            picks in prop::collection::vec(0usize..64, 400),
        ) {
            let mut dispatcher = Dispatcher::new(&[whole(1.0, socialites.len())], threads, true);
            dispatcher.supply(0, Some(chunk(&socialites)));
            let (mut running, mut finished): (Vec<Session>, Vec<u64>) = (vec![], vec![]);
            let mut picks = picks.into_iter().cycle();
            loop {
                while running.len() < threads {
                    let Some(session) = take(&mut dispatcher) else { break };
                    prop_assert!(running.iter().all(|r| r.socialite() != session.socialite()));
                    running.push(session);
                }
                if running.is_empty() {
                    break;
                }
                let session = running.swap_remove(picks.next().unwrap() % running.len());
                dispatcher.finish(&session, true);
                finished.push(session.number());
            }
            for socialite in 0..6 {
                let of_one: Vec<u64> =
                    finished.iter().copied().filter(|s| socialites[*s as usize] == socialite).collect();
                prop_assert!(of_one.is_sorted());
            }
            finished.sort();
            prop_assert_eq!(finished, (0..socialites.len() as u64).collect::<Vec<_>>());
        }
    }
}
