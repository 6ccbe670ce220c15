//! Sessions that wait: for a busy socialite, or for a session that waits itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;

use super::{IdHasher, Session};

type Hashed = BuildHasherDefault<IdHasher>;

/// A session by its fragment and its number.
type Key = (usize, u64);

fn key(session: &Session) -> Key {
    (session.fragment, session.number())
}

/// Which members are busy: a thread acts for them, or is about to.
pub struct Busy(Vec<u64>);

impl Busy {
    /// Of so many members none is.
    pub fn new(members: u64) -> Busy {
        Busy(vec![0; members as usize / 64 + 1])
    }

    /// Marks a member; false when she was busy.
    #[inline]
    pub fn take(&mut self, member: u64) -> bool {
        let (word, bit) = (&mut self.0[member as usize / 64], 1 << (member % 64));
        let is_free = *word & bit == 0;
        *word |= bit;
        is_free
    }

    #[inline]
    pub fn free(&mut self, member: u64) {
        self.0[member as usize / 64] &= !(1 << (member % 64));
    }
}

/// The sessions that were taken from the trace and cannot be handed out yet.
///
/// A session also waits while one that it depends on waits here. So what has been handed
/// out depends on nothing in here, and can run to its end when all this is given back.
#[derive(Default)]
pub struct Aside {
    /// In trace order, by the socialite who is busy.
    by_socialite: HashMap<u64, VecDeque<Session>, Hashed>,
    /// By the session that they depend on. Their socialites are busy: later sessions of
    /// theirs wait behind them.
    by_session: HashMap<Key, Vec<Session>, Hashed>,
    waiting: HashSet<Key, Hashed>,
}

impl Aside {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Their numbers in a fragment, in no order.
    pub fn numbers(&self, fragment: usize) -> impl Iterator<Item = u64> + '_ {
        self.waiting.iter().filter(move |(of, _)| *of == fragment).map(|(_, number)| *number)
    }

    /// Puts aside a session whose socialite is busy.
    pub fn wait_for_socialite(&mut self, session: Session) {
        self.waiting.insert(key(&session));
        self.by_socialite.entry(session.socialite()).or_default().push_back(session);
    }

    /// Whether a session whose socialite is free has to wait for one in here.
    pub fn puts_off(&mut self, session: &Session) -> bool {
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

    /// The next session of a socialite who is free now.
    pub fn next_of(&mut self, socialite: u64) -> Option<Session> {
        let queue = self.by_socialite.get_mut(&socialite)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.by_socialite.remove(&socialite);
        }
        next
    }

    /// The sessions that waited for this one, which has left.
    pub fn after(&mut self, session: &Session) -> Vec<Session> {
        if self.by_session.is_empty() {
            return Vec::new();
        }
        self.by_session.remove(&key(session)).unwrap_or_default()
    }
}
