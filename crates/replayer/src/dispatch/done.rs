//! Which sessions of a fragment are done, and how they ended.

use std::collections::{HashMap, VecDeque};

use super::{Dependency, Ended};

/// Which sessions of a fragment are done: all before `base`, and those whose
/// bit is set. Its size follows the span of sessions in flight, plus one entry
/// for each failure.
pub struct DoneSessions {
    first: u64,
    /// A multiple of 64 sessions after `first`.
    base: u64,
    bits: VecDeque<u64>,
    /// The others ended well.
    not_ok: HashMap<u64, Ended>,
}

impl DoneSessions {
    /// All before `first` are done.
    pub fn from(first: u64) -> DoneSessions {
        DoneSessions { first, base: first, bits: VecDeque::new(), not_ok: HashMap::new() }
    }

    /// A session is done, and its writes ended like this.
    #[inline]
    pub fn finish(&mut self, session: u64, writes: Ended) {
        let index = (session - self.base) as usize;
        while self.bits.len() <= index / 64 {
            self.bits.push_back(0);
        }
        self.bits[index / 64] |= 1 << (index % 64);
        while self.bits.front() == Some(&u64::MAX) {
            self.bits.pop_front();
            self.base += 64;
        }
        if writes != Ended::Ok {
            self.not_ok.insert(session, writes);
        }
    }

    /// Whether a session is done.
    pub fn get(&self, session: u64) -> Dependency {
        // The store has the sessions before the experiment: its state was checked.
        if session < self.first {
            return Dependency::Done;
        }
        let done = session < self.base || {
            let index = (session - self.base) as usize;
            self.bits.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
        };
        match done {
            false => Dependency::Pending,
            true if self.not_ok.is_empty() => Dependency::Done,
            true => match self.not_ok.get(&session) {
                None | Some(Ended::Ok) => Dependency::Done,
                Some(Ended::Aborted) => Dependency::Aborted,
                Some(Ended::NotOk) => Dependency::NotOk,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_tell_done_from_failed_from_pending() {
        let mut done = DoneSessions::from(100);
        assert_eq!(done.get(99), Dependency::Done);
        assert_eq!(done.get(100), Dependency::Pending);
        for session in (100..400).rev() {
            let writes = match session {
                150 => Ended::NotOk,
                151 => Ended::Aborted,
                _ => Ended::Ok,
            };
            done.finish(session, writes);
        }
        assert_eq!(done.get(100), Dependency::Done);
        assert_eq!(done.get(150), Dependency::NotOk);
        assert_eq!(done.get(151), Dependency::Aborted);
        assert_eq!(done.get(400), Dependency::Pending);
        // Memory grows with the sessions in flight, not with those done.
        assert!(done.bits.len() <= 1);
    }
}
