//! Draws the socialites, so that none acts twice within a window, and counts how often each acts.

use std::collections::VecDeque;

use crate::core::alias::AliasTable;
use crate::core::chance::Stream;

/// How many draws are tried before all members who may act are listed. With a window of half of the
/// members, one of 25 draws of a usual distribution finds a member who may act. But a fragment may
/// have one popular member, and otherwise only members who are drawn once in millions of times.
const DRAWS_MAX: u32 = 1_000;

/// The socialites of a fragment, by position.
pub(crate) struct Socialites {
    /// A stream used only for socialites, so that the window changes no other draw.
    chance: Stream,
    /// Among this many consecutive sessions no socialite acts twice.
    window: usize,
    /// The socialites of the last sessions, at most `window - 1` of them.
    recent: VecDeque<u32>,
    is_recent: Vec<bool>,
    /// The number of sessions of each member.
    sessions: Vec<u64>,
}

impl Socialites {
    /// No member has acted yet. `window` is at most half of the members.
    pub(crate) fn new(chance: Stream, window: u64, members: usize) -> Socialites {
        Socialites {
            chance,
            window: window as usize,
            recent: VecDeque::new(),
            is_recent: vec![false; members],
            sessions: vec![0; members],
        }
    }

    /// Draws a socialite who has not acted within the window. `members` must be built from `weight`.
    pub(crate) fn draw(&mut self, members: &AliasTable, weight: impl Fn(u32) -> f64) -> u32 {
        for _ in 0..DRAWS_MAX {
            let socialite = members.draw(&mut self.chance);
            if !self.is_recent[socialite as usize] {
                return socialite;
            }
        }
        self.pick(weight)
    }

    /// Makes the same draw in one step, from the list of all members who may act.
    fn pick(&mut self, weight: impl Fn(u32) -> f64) -> u32 {
        let is_recent = &self.is_recent;
        let free = || (0..is_recent.len() as u32).filter(|position| !is_recent[*position as usize]);
        let total: f64 = free().map(&weight).sum();
        let mut left = self.chance.unit() * total;
        let mut picked = 0;
        for position in free() {
            picked = position;
            if left < weight(position) {
                break;
            }
            left -= weight(position);
        }
        picked
    }

    /// Records that the socialite acts in the next session of the trace.
    pub(crate) fn act(&mut self, socialite: u32) {
        self.sessions[socialite as usize] += 1;
        if self.window <= 1 {
            return;
        }
        if self.recent.len() + 1 == self.window
            && let Some(free) = self.recent.pop_front()
        {
            self.is_recent[free as usize] = false;
        }
        self.is_recent[socialite as usize] = true;
        self.recent.push_back(socialite);
    }

    /// The number of sessions of each member so far.
    pub(crate) fn sessions(&self) -> &[u64] {
        &self.sessions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socialites(window: u64, members: usize) -> Socialites {
        Socialites::new(Stream::new(1, "test", 0), window, members)
    }

    /// One member has nearly all the weight. The draw finds the other members nevertheless, and soon.
    #[test]
    fn one_who_may_act_is_found_however_unlikely() {
        let weights = [1.0, 1e-12, 2e-12, 1e-12];
        let members = AliasTable::new(&weights);
        let mut socialites = socialites(2, weights.len());
        for _ in 0..10_000 {
            let drawn = socialites.draw(&members, |position| weights[position as usize]);
            socialites.act(drawn);
        }
        let sessions = socialites.sessions();
        assert_eq!(sessions[0], 5_000);
        assert!((2_300..2_700).contains(&sessions[2]), "{sessions:?}");
        assert!((1_050..1_450).contains(&sessions[1]), "{sessions:?}");
    }

    #[test]
    fn a_socialite_may_act_again_after_the_window() {
        let mut socialites = socialites(3, 6);
        for (acts, recent) in [(4, vec![4]), (1, vec![1, 4]), (0, vec![0, 1]), (4, vec![0, 4])] {
            socialites.act(acts);
            let found: Vec<usize> = (0..6).filter(|position| socialites.is_recent[*position]).collect();
            assert_eq!(found, recent);
        }
        assert_eq!(socialites.sessions(), [1, 1, 0, 0, 2, 0]);
    }
}
