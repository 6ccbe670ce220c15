//! Figures by kind of session, and what a benchmark asks of them.

use serde::{Deserialize, Serialize};

use crate::sla::short_time;
use crate::words::{rate, short_percent};

/// The sessions of one kind in the measured part. A session ends as its transactions do, each in its last try.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SessionFigures {
    /// All of them.
    pub sessions: u64,
    /// Those whose transactions were all committed.
    pub committed: u64,
    /// Those of which a transaction was rolled back because the trace asks for it, and the others were committed.
    pub rolled_back: u64,
    /// Those of which the store rolled back a transaction because of others, in its last try too.
    pub aborted: u64,
    /// Those that an error ended.
    pub failed: u64,
    /// Those of which it is not known whether they were committed.
    pub unknown: u64,
    /// Those of which something was not sent.
    pub skipped: u64,
    /// Committed sessions that ended within `counted_ns`, a minute.
    pub per_minute: f64,
    /// Share among the sessions of all kinds that were committed or rolled back as the trace asks, in percent.
    pub share_percent: f64,
    /// Median response time of the sessions that were committed or rolled back as the trace asks: from when the session
    /// was due, in a closed loop from its start, to the end of its last operation.
    pub p50_ns: u64,
    /// 90th percentile of these.
    pub p90_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The longest 90th percentile that the benchmark allows; null if it asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_max_ns: Option<u64>,
    /// The smallest share that the benchmark allows, in percent; null if it asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_min_percent: Option<f64>,
}

impl SessionFigures {
    /// Sessions that were committed or rolled back as the trace asks.
    pub fn completed(&self) -> u64 {
        self.committed + self.rolled_back
    }

    /// Whether the response times are as short as the benchmark asks; None if it does not ask, or there are none.
    pub fn is_fast_enough(&self) -> Option<bool> {
        self.p90_max_ns.filter(|_| self.completed() > 0).map(|most| self.p90_ns <= most)
    }

    /// Whether the share is as large as the benchmark asks; None if it does not ask.
    pub fn is_frequent_enough(&self) -> Option<bool> {
        self.share_min_percent.map(|least| self.share_percent >= least)
    }

    /// What the benchmark asks for and the sessions of this kind do not keep, a sentence for each.
    pub fn misses(&self, kind: &str) -> Vec<String> {
        let mut out = Vec::new();
        if let (Some(most), Some(false)) = (self.p90_max_ns, self.is_fast_enough()) {
            let found = short_time(self.p90_ns);
            out.push(format!(
                "90% of the {kind} sessions took up to {found}, and at most {} are allowed",
                short_time(most)
            ));
        }
        if let (Some(least), Some(false)) = (self.share_min_percent, self.is_frequent_enough()) {
            let found = short_percent(self.share_percent);
            out.push(format!("{found}% of the sessions are {kind}, and at least {least}% are required"));
        }
        out
    }
}

/// The figure that a benchmark is known by: how many sessions of a kind are committed a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headline {
    /// Its name, such as `tpmC`.
    pub name: String,
    /// The kind of session.
    pub kind: String,
}

impl Headline {
    /// The figure in words.
    ///
    /// ```
    /// use schemas::verdict::Headline;
    /// let tpmc = Headline { name: "tpmC".into(), kind: "new-order".into() };
    /// assert_eq!(tpmc.in_words(13_600.4), "tpmC 13,600 (committed new-order sessions a minute)");
    /// ```
    pub fn in_words(&self, per_minute: f64) -> String {
        format!("{} {} (committed {} sessions a minute)", self.name, rate(per_minute), self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_benchmark_asks_for_is_kept_or_missed() {
        let figures = SessionFigures {
            committed: 99,
            rolled_back: 1,
            share_percent: 42.5,
            p90_ns: 5_100_000_000,
            p90_max_ns: Some(5_000_000_000),
            share_min_percent: Some(43.0),
            ..SessionFigures::default()
        };
        assert_eq!(
            figures.misses("payment"),
            [
                "90% of the payment sessions took up to 5.1s, and at most 5s are allowed",
                "42.5% of the sessions are payment, and at least 43% are required"
            ]
        );
        let kept = SessionFigures { p90_ns: 5_000_000_000, share_percent: 43.0, ..figures.clone() };
        assert_eq!((kept.is_fast_enough(), kept.is_frequent_enough()), (Some(true), Some(true)));
        assert_eq!(kept.misses("payment"), [""; 0]);
        // Of sessions that never ended nothing is known.
        let none = SessionFigures { committed: 0, rolled_back: 0, ..figures };
        assert_eq!(none.is_fast_enough(), None);
        assert_eq!(SessionFigures::default().misses("x"), [""; 0]);
    }
}
