//! How often what was done, to be merged over fragments.

use std::collections::BTreeMap;

use schemas::social::Action;
use schemas::spec::Spec;

use crate::statistics::{References, SocialiteCounts};

/// What the sessions of a fragment add up to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Sessions by kind.
    pub(crate) sessions: Vec<u64>,
    /// How often each kind was drawn and nothing of it could be done.
    pub(crate) noops: Vec<u64>,
    /// Sessions of each kind that ended before their last step.
    pub(crate) ended_early: Vec<u64>,
    /// Operations by the code of their action.
    pub(crate) operations: [u64; Action::ALL.len()],
    /// Who acted how often.
    pub(crate) socialites: SocialiteCounts,
    /// Draws of members to be acted upon.
    pub(crate) targets: References,
}

impl Counts {
    /// Nothing yet, of so many kinds.
    pub(crate) fn new(kinds: usize) -> Counts {
        let zeros = vec![0; kinds];
        Counts { sessions: zeros.clone(), noops: zeros.clone(), ended_early: zeros, ..Counts::default() }
    }

    /// Adds another fragment's.
    pub(crate) fn merge(&mut self, other: &Counts) {
        let add = |into: &mut [u64], from: &[u64]| into.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        add(&mut self.sessions, &other.sessions);
        add(&mut self.noops, &other.noops);
        add(&mut self.ended_early, &other.ended_early);
        add(&mut self.operations, &other.operations);
        self.socialites.merge(other.socialites);
        self.targets.merge(other.targets);
    }

    /// Share of each kind among the sessions.
    pub(crate) fn mix(&self, spec: &Spec) -> BTreeMap<String, f64> {
        let all = self.sessions.iter().sum::<u64>().max(1) as f64;
        let kinds = spec.kinds().into_iter().zip(&self.sessions);
        kinds.map(|(kind, sessions)| (kind.name, *sessions as f64 / all)).collect()
    }

    /// Operations by action.
    pub(crate) fn by_action(&self) -> BTreeMap<Action, u64> {
        Action::ALL.into_iter().zip(self.operations).collect()
    }
}

/// Numbers by the name of the kind, without those that are 0.
pub(crate) fn by_kind(spec: &Spec, numbers: &[u64]) -> BTreeMap<String, u64> {
    let kinds = spec.kinds().into_iter().zip(numbers);
    kinds.filter(|(_, number)| **number > 0).map(|(kind, number)| (kind.name, *number)).collect()
}
