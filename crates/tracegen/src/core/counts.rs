//! Counts of sessions, no-operations and operations, which are merged over fragments.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemas::spec::Spec;
use schemas::vocabulary::Vocabulary;
use serde::{Deserialize, Serialize};

/// The totals over the sessions of a fragment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Sessions by kind.
    pub sessions: Vec<u64>,
    /// How often each kind was drawn but nothing of it could be done.
    pub noops: Vec<u64>,
    /// Sessions of each kind that ended before their last step.
    pub ended_early: Vec<u64>,
    /// Operations by their code.
    pub operations: Vec<u64>,
}

impl Counts {
    /// All counts 0, for this number of kinds of sessions, and of kinds of operations.
    pub fn new(kinds: usize, operations: usize) -> Counts {
        let zeros = vec![0; kinds];
        Counts { sessions: zeros.clone(), noops: zeros.clone(), ended_early: zeros, operations: vec![0; operations] }
    }

    /// Adds the counts of another fragment.
    pub fn merge(&mut self, other: &Counts) {
        let add = |into: &mut [u64], from: &[u64]| into.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        add(&mut self.sessions, &other.sessions);
        add(&mut self.noops, &other.noops);
        add(&mut self.ended_early, &other.ended_early);
        add(&mut self.operations, &other.operations);
    }

    /// Share of each kind among the sessions.
    pub fn mix(&self, spec: &Spec) -> BTreeMap<String, f64> {
        let all = self.sessions.iter().sum::<u64>().max(1) as f64;
        let kinds = spec.kinds().into_iter().zip(&self.sessions);
        kinds.map(|((name, _), sessions)| (name.to_string(), *sessions as f64 / all)).collect()
    }

    /// Operations by name. Begin, commit and abort are left out where there is none, as in most traces.
    pub fn by_name<V: Vocabulary>(&self) -> IndexMap<String, u64> {
        let counted = V::KINDS.iter().zip(self.operations.iter().copied());
        let shown = counted.filter(|(kind, operations)| *operations > 0 || !kind.is_control());
        shown.map(|(kind, operations)| (kind.name.to_string(), operations)).collect()
    }
}

/// Numbers by the name of the kind of session, without zeros.
pub fn by_kind(spec: &Spec, numbers: &[u64]) -> BTreeMap<String, u64> {
    let kinds = spec.kinds().into_iter().zip(numbers);
    kinds.filter(|(_, number)| **number > 0).map(|((name, _), number)| (name.to_string(), *number)).collect()
}
