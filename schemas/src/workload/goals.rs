//! What a benchmark asks of its kinds of sessions, and the figure that it is known by.

use crate::verdict::{Figures, Headline};

/// What a family says of the kinds of its sessions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionGoals {
    /// The figure that the benchmark is known by.
    pub headline: Option<Headline>,
    /// What is asked of each kind.
    pub kinds: Vec<KindGoal>,
}

/// What is asked of the sessions of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct KindGoal {
    /// The kind, as in the mix of a specification.
    pub kind: String,
    /// The longest 90th percentile of the response times, in nanoseconds.
    pub p90_max_ns: Option<u64>,
    /// The smallest share of all sessions that are committed or rolled back as the trace asks, in percent.
    pub share_min_percent: Option<f64>,
}

impl SessionGoals {
    /// Writes into the figures what is asked for.
    pub fn put_into(self, figures: &mut Figures) {
        for KindGoal { kind, p90_max_ns, share_min_percent } in self.kinds {
            if let Some(own) = figures.by_session.get_mut(&kind) {
                (own.p90_max_ns, own.share_min_percent) = (p90_max_ns, share_min_percent);
            }
        }
        // Without any session nothing was measured.
        figures.headline = self.headline.filter(|_| !figures.by_session.is_empty());
    }
}
