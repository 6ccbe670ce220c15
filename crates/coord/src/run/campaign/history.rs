//! The experiments of a run: those so far, and those of an earlier call that the search has still
//! to ask for.

use std::collections::VecDeque;

use schemas::plan::Limit;
use schemas::run::Purpose;
use schemas::verdict::Verdict;

use crate::run::trial::{Demand, Trial};
use crate::search::Unit;

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

    /// Every experiment so far: its load in this unit, and its verdict.
    pub(super) fn loads(&self, unit: Unit) -> impl Iterator<Item = (u32, &Verdict)> {
        self.trials.iter().map(move |trial| (trial.load(unit), &trial.verdict))
    }

    /// Adds an experiment.
    pub(super) fn add(&mut self, trial: Trial) {
        self.trials.push(trial);
    }

    /// Takes the next experiment of the earlier call, if it is the one that the search asks for.
    /// If it is another one, the earlier experiments are of no more use.
    pub(super) fn remembered(&mut self, demand: Demand, limit: Limit, purpose: &Purpose) -> Option<Trial> {
        let is_asked_for = |trial: &Trial| (trial.demand(), trial.limit, &trial.purpose) == (demand, limit, purpose);
        if !self.past.front().is_some_and(is_asked_for) {
            self.past.clear();
            return None;
        }
        self.past.pop_front()
    }
}
