//! `plan.json`: one experiment, as the coordinator hands it to a replayer.

use std::path::PathBuf;

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
    use super::*;

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
