//! Sessions that wait: for a busy actor, or for a session that waits itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;

use schemas::vocabulary::Vocabulary;

use super::{IdHasher, Session};

type Hashed = BuildHasherDefault<IdHasher>;

/// A session by its fragment and its number.
type Key = (usize, u64);

fn key<V: Vocabulary>(session: &Session<V>) -> Key {
    (session.fragment, session.number())
}

/// Which actors are busy: a thread acts for them, or is about to.
pub struct Busy(Vec<u64>);

impl Busy {
    /// Of `actors` actors, none is busy.
    pub fn new(actors: u64) -> Busy {
        Busy(vec![0; actors as usize / 64 + 1])
    }

    /// Marks an actor as busy; false if the actor was busy already.
    #[inline]
    pub fn take(&mut self, actor: u64) -> bool {
        let (word, bit) = (&mut self.0[actor as usize / 64], 1 << (actor % 64));
        let is_free = *word & bit == 0;
        *word |= bit;
        is_free
    }

    #[inline]
    pub fn free(&mut self, actor: u64) {
        self.0[actor as usize / 64] &= !(1 << (actor % 64));
    }
}

/// The sessions that were taken from the trace and cannot be handed out yet.
///
/// A session also waits here while it depends on another session that waits here. So the sessions
/// that were handed out depend on none of these, and can run to their end when these are given back.
#[derive(Default)]
pub struct Aside<V: Vocabulary> {
    /// By the busy actor, in trace order.
    by_actor: HashMap<u64, VecDeque<Session<V>>, Hashed>,
    /// By the session that they depend on. Their actors count as busy, so later sessions of the
    /// same actors wait behind them.
    by_session: HashMap<Key, Vec<Session<V>>, Hashed>,
    waiting: HashSet<Key, Hashed>,
}

impl<V: Vocabulary> Aside<V> {
    /// How many sessions wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The numbers of a fragment's waiting sessions, unordered.
    pub fn numbers(&self, fragment: usize) -> impl Iterator<Item = u64> + '_ {
        self.waiting.iter().filter(move |(of, _)| *of == fragment).map(|(_, number)| *number)
    }

    /// Puts aside a session whose actor is busy.
    pub fn wait_for_actor(&mut self, session: Session<V>) {
        self.waiting.insert(key(&session));
        self.by_actor.entry(session.actor()).or_default().push_back(session);
    }

    /// Whether a session whose actor is free must wait for a session in here. If so, it is put aside.
    pub fn puts_off(&mut self, session: &Session<V>) -> bool {
        let own = key(session);
        let mut on = session.depends_on().map(|after| (session.fragment, after));
        let waits_for = on.find(|on| *on != own && self.waiting.contains(on));
        match waits_for {
            Some(on) => {
                self.waiting.insert(own);
                self.by_session.entry(on).or_default().push(session.clone());
            }
            None => {
                self.waiting.remove(&own);
            }
        }
        waits_for.is_some()
    }

    /// The next session of an actor that is free now.
    pub fn next_of(&mut self, actor: u64) -> Option<Session<V>> {
        let queue = self.by_actor.get_mut(&actor)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.by_actor.remove(&actor);
        }
        next
    }

    /// Takes out the sessions that waited for this one.
    pub fn after(&mut self, session: &Session<V>) -> Vec<Session<V>> {
        if self.by_session.is_empty() {
            return Vec::new();
        }
        self.by_session.remove(&key(session)).unwrap_or_default()
    }
}
