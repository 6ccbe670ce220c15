//! How far a fragment has been replayed.

use serde::{Deserialize, Serialize};

/// The position of a fragment: which of its sessions have been run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentPosition {
    /// The fragment.
    pub fragment: u32,
    /// This session and all later ones have not been run.
    pub next_session: u64,
    /// The sessions before it that have not been run either, in order. They waited for a busy
    /// actor when the time was over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_back: Vec<u64>,
}

impl FragmentPosition {
    /// The position after all sessions before `next_session`.
    pub fn at(fragment: u32, next_session: u64) -> FragmentPosition {
        FragmentPosition { fragment, next_session, given_back: Vec::new() }
    }

    /// How many sessions have been run.
    pub fn sessions_run(&self) -> u64 {
        self.next_session - self.given_back.len() as u64
    }

    /// Whether a session has been run.
    pub fn has_run(&self, session: u64) -> bool {
        session < self.next_session && self.given_back.binary_search(&session).is_err()
    }
}
