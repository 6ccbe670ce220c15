//! `plan.json`: one experiment, as the coordinator hands it to a replayer.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::run::FragmentPosition;
use crate::share::sessions_by_fragment;

/// One experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The experiment's number in its run, from 1.
    pub experiment: u32,
    /// The trace set's folder.
    pub trace: PathBuf,
    /// The trace set's id, which the folder must still have.
    pub trace_id: String,
    /// The store's URL; written to files only after [`redact`].
    pub store: String,
    /// Threads: streams of sessions at the same time.
    pub threads: u32,
    /// Operating-system threads that drive them; fragments are shared among
    /// these, so more than there are fragments is of no use.
    pub workers: u32,
    /// When the experiment ends.
    pub limit: Limit,
    /// The fragments to replay, and where each starts.
    pub fragments: Vec<FragmentPlan>,
    /// Never let two threads act for one socialite at the same time.
    pub unique_socialites: bool,
}

/// When an experiment ends. What is in flight then is finished and logged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// After this time, in seconds, from the end of the warm-up.
    DurationS(f64),
    /// After this many sessions over all fragments, not counting the warm-up.
    Sessions(u64),
    /// At the end of the trace.
    WholeTrace,
}

/// A fragment's part in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FragmentPlan {
    /// The fragment.
    pub fragment: u32,
    /// Its first session in this experiment: all before it are in the store.
    pub first_session: u64,
    /// How many sessions from there on are the warm-up: replayed and logged like
    /// all others, but no part of the figures, and over before the measured part
    /// begins.
    #[serde(default)]
    pub warmup_sessions: u64,
}

/// How much of the trace is replayed before an experiment is measured: `500`
/// sessions, `10%` of the trace set's sessions, or as many as hold `500000ops`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warmup {
    /// So many sessions.
    Sessions(u64),
    /// This share of the sessions of the trace set, in percent, below 100.
    SharePercent(f64),
    /// As many sessions as have so many operations, by the trace set's mean.
    Operations(u64),
}

impl Warmup {
    /// The warm-up in sessions of this trace set, rounded up.
    pub fn sessions(&self, manifest: &Manifest) -> u64 {
        match *self {
            Warmup::Sessions(sessions) => sessions,
            Warmup::SharePercent(percent) => (manifest.sessions() as f64 * percent / 100.0).ceil() as u64,
            Warmup::Operations(operations) => {
                // A session has at least one operation, so an empty trace set counts as such.
                let (all, sessions) = (manifest.operations().max(1) as u128, manifest.sessions().max(1) as u128);
                u64::try_from((operations as u128 * sessions).div_ceil(all)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// A text that is no warm-up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{text:?} is no warm-up; write a number of sessions (500), a share below 100% (10%) or operations (500000ops)")]
pub struct WarmupError {
    text: String,
}

impl FromStr for Warmup {
    type Err = WarmupError;

    fn from_str(text: &str) -> Result<Warmup, WarmupError> {
        let trimmed = text.trim();
        let warmup = if let Some(share) = trimmed.strip_suffix('%') {
            share.trim().parse().ok().filter(|percent| (0.0..100.0).contains(percent)).map(Warmup::SharePercent)
        } else if let Some(operations) = trimmed.strip_suffix("ops") {
            operations.trim().parse().ok().map(Warmup::Operations)
        } else {
            trimmed.parse().ok().map(Warmup::Sessions)
        };
        warmup.ok_or_else(|| WarmupError { text: text.to_string() })
    }
}

impl fmt::Display for Warmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warmup::Sessions(sessions) => write!(f, "{sessions}"),
            Warmup::SharePercent(percent) => write!(f, "{percent}%"),
            Warmup::Operations(operations) => write!(f, "{operations}ops"),
        }
    }
}

/// The fragments of a trace set, each taken up where `positions` says (at its
/// beginning where it says nothing), with the first `warmup_sessions` of the
/// global order from there on as warm-up.
pub fn fragments(manifest: &Manifest, positions: &[FragmentPosition], warmup_sessions: u64) -> Vec<FragmentPlan> {
    let at = |fragment| positions.iter().find(|p| p.fragment == fragment).map_or(0, |p| p.next_session);
    let mut plans: Vec<FragmentPlan> = manifest
        .fragments
        .iter()
        .map(|f| FragmentPlan { fragment: f.fragment, first_session: at(f.fragment), warmup_sessions: 0 })
        .collect();
    let before: u64 = plans.iter().map(|plan| plan.first_session).sum();
    let ends = sessions_by_fragment(&manifest.weights(), before + warmup_sessions);
    for (plan, end) in plans.iter_mut().zip(ends) {
        // Workers end an experiment each for itself, so a fragment may be a few
        // sessions ahead of the global order.
        plan.warmup_sessions = end.saturating_sub(plan.first_session);
    }
    plans
}

/// A store's URL without secrets: the password after `user:` and the values of
/// parameters that name a password, a secret, a token or a key become `***`.
///
/// ```
/// use schemas::plan::redact;
/// assert_eq!(redact("postgres://me:hush@db/encore?a=1&password=x"), "postgres://me:***@db/encore?a=1&password=***");
/// assert_eq!(redact("sqlite:a@b.db"), "sqlite:a@b.db");
/// ```
pub fn redact(url: &str) -> String {
    // Credentials end at the last '@', since a password may hold any character.
    // Without "//" an '@' ends them only where a ':' stands before it.
    let (scheme, rest) = match (url.split_once("://"), url.split_once(':')) {
        (Some((scheme, rest)), _) => (format!("{scheme}://"), rest),
        (None, Some((scheme, rest))) => (format!("{scheme}:"), rest),
        (None, None) => (String::new(), url),
    };
    let (credentials, rest) = match rest.rsplit_once('@') {
        Some((credentials, rest)) if scheme.ends_with("//") || credentials.contains(':') => {
            let user = credentials.split_once(':').map(|(user, _)| format!("{user}:***@"));
            (user.unwrap_or_else(|| format!("{credentials}@")), rest)
        }
        _ => (String::new(), rest),
    };
    let (base, query) = match rest.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (rest, None),
    };
    let mut out = format!("{scheme}{credentials}{base}");
    if let Some(query) = query {
        let parameters: Vec<String> = query
            .split('&')
            .map(|parameter| match parameter.split_once('=') {
                Some((name, _)) if is_secret(name) => format!("{name}=***"),
                _ => parameter.to_string(),
            })
            .collect();
        out.push('?');
        out.push_str(&parameters.join("&"));
    }
    out
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "pwd", "secret", "token", "key"].iter().any(|word| name.contains(word))
}

impl Plan {
    /// The plan as it may be written to a file.
    pub fn redacted(&self) -> Plan {
        Plan { store: redact(&self.store), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::manifest::{FragmentCounts, Statistics};
    use crate::spec::Spec;

    /// A trace set of two fragments with 700 sessions and 2,000 operations in all.
    fn manifest() -> Manifest {
        let spec = "name = \"t\"\nsessions = 700\nfragments = 2\n[data]\nmembers = 9\n[mix]\nview_profile = 1\n";
        let counts =
            |fragment, sessions, operations| FragmentCounts { fragment, weight: 0.5, members: 4, sessions, operations };
        Manifest {
            format_version: crate::TRACE_FORMAT_VERSION,
            generator_version: String::new(),
            workload_id: String::new(),
            trace_id: String::new(),
            spec: Spec::parse(spec, "t").unwrap(),
            fragments: vec![counts(0, 350, 1100), counts(1, 350, 900)],
            requested_mix: BTreeMap::new(),
            achieved_mix: BTreeMap::new(),
            operations_by_action: BTreeMap::new(),
            noops: BTreeMap::new(),
            ended_early: BTreeMap::new(),
            statistics: Statistics::default(),
            files: Vec::new(),
        }
    }

    #[test]
    fn a_warmup_is_read_and_counted_in_sessions() {
        for (text, warmup, sessions) in [
            ("500", Warmup::Sessions(500), 500),
            ("10%", Warmup::SharePercent(10.0), 70),
            ("0.1%", Warmup::SharePercent(0.1), 1),
            ("1000ops", Warmup::Operations(1000), 350),
            ("3ops", Warmup::Operations(3), 2),
            ("0", Warmup::Sessions(0), 0),
        ] {
            assert_eq!(text.parse(), Ok(warmup));
            assert_eq!((warmup.to_string().as_str(), warmup.sessions(&manifest())), (text, sessions));
        }
        for text in ["", "ten", "-1", "100%", "-1%", "NaN%", "1.5", "5 sessions", "xops"] {
            let error = text.parse::<Warmup>().unwrap_err().to_string();
            assert!(error.contains("is no warm-up; write"), "{error}");
        }
    }

    #[test]
    fn fragments_start_where_positions_say_and_share_the_warmup() {
        let positions = [FragmentPosition { fragment: 1, next_session: 7 }];
        let plans = fragments(&manifest(), &positions, 5);
        let told: Vec<(u32, u64, u64)> =
            plans.iter().map(|p| (p.fragment, p.first_session, p.warmup_sessions)).collect();
        // Fragment 1 is ahead of the global order, so the warm-up is fragment 0's.
        assert_eq!(told, [(0, 0, 6), (1, 7, 0)]);
        let even = [0, 1].map(|fragment| FragmentPosition { fragment, next_session: 10 });
        let warmups: Vec<u64> = fragments(&manifest(), &even, 5).iter().map(|p| p.warmup_sessions).collect();
        assert_eq!(warmups, [3, 2]);
    }

    #[test]
    fn secrets_are_redacted_wherever_they_stand() {
        for (url, expect) in [
            ("mysql://u:p@ss:w@h:1/d", "mysql://u:***@h:1/d"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres://me:hu?sh@db/x?a=1", "postgres://me:***@db/x?a=1"),
            ("mysql:me:hush@db/x", "mysql:me:***@db/x"),
            (
                "mongodb://u:p@h/d?authToken=t&tlsCertificateKeyFilePassword=q&w=1",
                "mongodb://u:***@h/d?authToken=***&tlsCertificateKeyFilePassword=***&w=1",
            ),
            ("memory:?stale=0.1", "memory:?stale=0.1"),
        ] {
            assert_eq!(redact(url), expect);
        }
    }
}
