//! The experiments of a run: those so far, and those of an earlier call that the search has still
//! to ask for.

use std::collections::VecDeque;

use schemas::plan::Limit;
use schemas::run::Purpose;

use crate::run::trial::Trial;

/// The experiments of a run.
pub(super) struct History {
    trials: Vec<Trial>,
    /// Experiments of an earlier call that the search has not asked for again yet, in their
    /// order.
    past: VecDeque<Trial>,
}

impl History {
    /// Before the first experiment of this call; `past` are those of an earlier one.
    pub(super) fn new(past: Vec<Trial>) -> History {
        History { trials: Vec::new(), past: VecDeque::from(past) }
    }

    /// Every experiment so far.
    pub(super) fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Adds an experiment.
    pub(super) fn add(&mut self, trial: Trial) {
        self.trials.push(trial);
    }

    /// Takes the next experiment of the earlier call, if it is the one that the search asks for.
    /// If it is another one, the earlier experiments are of no more use.
    pub(super) fn remembered(&mut self, threads: u32, limit: Limit, purpose: &Purpose) -> Option<Trial> {
        let is_asked_for =
            |trial: &Trial| (trial.verdict.threads, trial.limit, &trial.purpose) == (threads, limit, purpose);
        if !self.past.front().is_some_and(is_asked_for) {
            self.past.clear();
            return None;
        }
        self.past.pop_front()
    }
}
