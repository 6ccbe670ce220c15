//! How an open loop kept its due times: a part of a replayer's report.

use serde::{Deserialize, Serialize};

use crate::latency::ResponseTimes;

/// How the sessions of the measured part kept their due times.
///
/// A session that a thread was waiting for can only be late through the replayer: the client's
/// fault. A session whose thread was still busy at its due time has queued: the store's fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pacing {
    /// Sessions whose due time came before the experiment ended. Each was started, was skipped, or
    /// was still waiting for a thread at the end.
    pub sessions_due: u64,
    /// Those that had to wait for a thread or for their actor.
    pub sessions_queued: u64,
    /// Those that did not start because of that ([`Overload::Skip`](crate::pace::Overload::Skip)).
    pub sessions_skipped: u64,
    /// Those that were still waiting at the end. A later experiment continues with them.
    pub sessions_unstarted: u64,
    /// Those of the queued ones that queued for no longer than their worker had just stood still: without
    /// that they would have found a thread. It is the client's fault.
    #[serde(default)]
    pub sessions_stalled: u64,
    /// The longest time that one of these queued.
    #[serde(default)]
    pub stalled_ns_max: u64,
    /// How late the replayer started sessions that a thread was waiting for: the median.
    pub late_ns_p50: u64,
    /// The 99th percentile.
    pub late_ns_p99: u64,
    /// The longest, within 0.1%.
    pub late_ns_max: u64,
    /// How long sessions queued, over all started sessions; 0 for those that did not: the 99th
    /// percentile.
    pub queued_ns_p99: u64,
    /// The longest, within 0.1%.
    pub queued_ns_max: u64,
    /// The distribution behind `late_ns_…`, from which the reports of several replayers merge.
    pub late: ResponseTimes,
    /// The distribution behind `queued_ns_…`.
    pub queued: ResponseTimes,
}

impl Pacing {
    /// From its counts and distributions.
    pub fn new(counts: PacingCounts, late: ResponseTimes, queued: ResponseTimes) -> Pacing {
        Pacing {
            sessions_due: counts.due,
            sessions_queued: counts.queued,
            sessions_skipped: counts.skipped,
            sessions_unstarted: counts.unstarted,
            sessions_stalled: counts.stalled,
            stalled_ns_max: counts.stalled_ns_max,
            late_ns_p50: late.percentile_ns(50.0),
            late_ns_p99: late.percentile_ns(99.0),
            late_ns_max: late.max_ns(),
            queued_ns_p99: queued.percentile_ns(99.0),
            queued_ns_max: queued.max_ns(),
            late,
            queued,
        }
    }

    /// That of two replayers together: counts add up, and percentiles are those of the merged
    /// distributions.
    pub fn merged(mut self, other: Pacing) -> Pacing {
        self.late.merge(&other.late);
        self.queued.merge(&other.queued);
        let counts = PacingCounts {
            due: self.sessions_due + other.sessions_due,
            queued: self.sessions_queued + other.sessions_queued,
            skipped: self.sessions_skipped + other.sessions_skipped,
            unstarted: self.sessions_unstarted + other.sessions_unstarted,
            stalled: self.sessions_stalled + other.sessions_stalled,
            stalled_ns_max: self.stalled_ns_max.max(other.stalled_ns_max),
        };
        Pacing::new(counts, self.late, self.queued)
    }

    /// Checks a report from another machine; the error names what cannot be.
    pub(crate) fn check(&self, most: u64) -> Result<(), String> {
        let counts = PacingCounts {
            due: self.sessions_due,
            queued: self.sessions_queued,
            skipped: self.sessions_skipped,
            unstarted: self.sessions_unstarted,
            stalled: self.sessions_stalled,
            stalled_ns_max: self.stalled_ns_max,
        };
        if counts.due > most {
            return Err(format!("pacing.sessions_due is {}", counts.due));
        }
        let parts = [
            ("queued", counts.queued),
            ("skipped", counts.skipped),
            ("unstarted", counts.unstarted),
            ("stalled", counts.stalled),
        ];
        if let Some((name, count)) = parts.iter().find(|(_, count)| *count > counts.due) {
            return Err(format!("pacing.sessions_{name} is {count}, more than sessions_due ({})", counts.due));
        }
        if self.late.count().max(self.queued.count()) > counts.due {
            return Err(format!("pacing has more times than sessions_due ({})", counts.due));
        }
        match *self == Pacing::new(counts, self.late.clone(), self.queued.clone()) {
            true => Ok(()),
            false => Err("the percentiles of pacing do not fit its distributions".into()),
        }
    }
}

/// The counts of a [`Pacing`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacingCounts {
    /// [`Pacing::sessions_due`].
    pub due: u64,
    /// [`Pacing::sessions_queued`].
    pub queued: u64,
    /// [`Pacing::sessions_skipped`].
    pub skipped: u64,
    /// [`Pacing::sessions_unstarted`].
    pub unstarted: u64,
    /// [`Pacing::sessions_stalled`].
    pub stalled: u64,
    /// [`Pacing::stalled_ns_max`].
    pub stalled_ns_max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(due: u64, late_ns: &[i64]) -> Pacing {
        let mut late = ResponseTimes::default();
        late_ns.iter().for_each(|ns| late.record(*ns));
        Pacing::new(
            PacingCounts { due, queued: 1, unstarted: 2, ..PacingCounts::default() },
            late,
            ResponseTimes::default(),
        )
    }

    /// The percentile of the whole is not the mean of the parts' percentiles.
    #[test]
    fn percentiles_of_several_replayers_come_from_merged_distributions() {
        let one = pacing(99, &[1_000; 99]);
        let other = pacing(1, &[9_000_000]);
        let both = one.clone().merged(other);
        assert_eq!((both.sessions_due, both.sessions_queued, both.sessions_unstarted), (100, 2, 4));
        assert_eq!((both.late_ns_p50, both.late_ns_p99), (1_000, 1_000));
        assert!(both.late_ns_max > 8_900_000, "{}", both.late_ns_max);
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(serde_json::from_str::<Pacing>(&text).unwrap(), both);
    }

    #[test]
    fn reports_that_contradict_themselves_are_refused() {
        let check = |change: fn(&mut Pacing), expect: &str| {
            let mut pacing = pacing(99, &[1_000; 9]);
            assert_eq!(pacing.check(1_000), Ok(()));
            change(&mut pacing);
            let why = pacing.check(1_000).unwrap_err();
            assert!(why.contains(expect), "{why}");
        };
        check(|p| p.sessions_due = 2_000, "sessions_due is 2000");
        check(|p| p.sessions_skipped = 100, "sessions_skipped is 100, more than");
        check(|p| p.late_ns_p99 = 5, "percentiles");
        check(|p| p.late.record_n(5, 100), "more times than");
    }
}
