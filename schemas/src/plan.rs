//! `plan.json`: one experiment, as the coordinator hands it to a replayer.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::pace::{OpenLoop, Pace, ThreadsFrom};
use crate::position::FragmentPosition;
use crate::share::ends_after;
use crate::sla::percent;
use crate::table::TableError;
use crate::warmup::sessions_with;

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
    /// The trace set's id; the folder must have the same.
    pub trace_id: String,
    /// The store's URL; written to files only after [`redact`].
    pub store: String,
    /// Threads (T): sessions that run concurrently.
    pub threads: u32,
    /// Workers: operating-system threads that drive the threads. They divide the fragments among
    /// them, so more workers than fragments are of no use.
    pub workers: u32,
    /// When the experiment ends.
    pub limit: Limit,
    /// The fragments to replay, and where each starts.
    pub fragments: Vec<FragmentPlan>,
    /// Whether an actor acts in at most one session at a time.
    pub unique_actors: bool,
    /// The name of the closing read that follows the experiment; none if none follows. No other
    /// experiment has this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing_read: Option<String>,
    /// How sessions arrive. None for a closed loop: a thread starts its next session when the last
    /// one has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// Closed loop only: sessions a second over all threads at most, each thread at its own even
    /// pace. None for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_per_s: Option<f64>,
    /// Closed loop only: how many of the T threads work from which second on. Empty if always all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_over_time: Vec<ThreadsFrom>,
    /// How the transactions of the trace set are run.
    #[serde(default, skip_serializing_if = "Transactions::is_default")]
    pub transactions: Transactions,
}

/// How the transactions of a trace set are run. It decides nothing for a trace set without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    /// Whether they are used. Otherwise begin, commit and abort are logged and do nothing, as on a
    /// store that has no transactions.
    pub used: bool,
    /// How often a transaction is tried that the store rolls back because of others; at least once.
    pub tries: u16,
}

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions { used: true, tries: 1 }
    }
}

impl Transactions {
    /// The most tries. The log has 15 bits for their number.
    pub const TRIES_MAX: u16 = 10_000;

    fn is_default(&self) -> bool {
        *self == Transactions::default()
    }

    /// Refuses a number of tries that is not possible.
    pub fn check(&self) -> Result<(), String> {
        match (1..=Transactions::TRIES_MAX).contains(&self.tries) {
            true => Ok(()),
            false => Err(format!("tries: {} is not between 1 and {}", self.tries, Transactions::TRIES_MAX)),
        }
    }
}

/// When an experiment ends. Sessions under way then run to their end and are logged. Sessions
/// that wait for a busy actor are given back (not run) if time ends the experiment; otherwise
/// they are run.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FragmentPlan {
    /// The fragment.
    pub fragment: u32,
    /// Its first session in this experiment. The store has the effects of all sessions before it,
    /// except those that were given back.
    pub first_session: u64,
    /// Sessions before the first that an earlier experiment gave back, in order. They run before
    /// all others, as a warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_back: Vec<u64>,
    /// How many sessions from `first_session` on are the warm-up. They are replayed and logged
    /// like all others, but count in no figure, and end before the measured part begins.
    #[serde(default)]
    pub warmup_sessions: u64,
}

impl FragmentPlan {
    /// The first session of the trace that this experiment reads.
    pub fn begins_at(&self) -> u64 {
        self.given_back.first().copied().unwrap_or(self.first_session)
    }

    /// The first session after the warm-up.
    pub fn measured_from(&self) -> u64 {
        self.first_session.saturating_add(self.warmup_sessions)
    }

    /// Whether any session runs before the measured part.
    pub fn has_warmup(&self) -> bool {
        self.warmup_sessions > 0 || !self.given_back.is_empty()
    }

    /// Whether a session was run before the experiment.
    pub fn is_before(&self, session: u64) -> bool {
        session < self.first_session && self.given_back.binary_search(&session).is_err()
    }
}

/// The plans of all fragments of a trace set. Each fragment starts at its position in
/// `positions`, or at its beginning if it has none. The first `warmup_sessions` of the global
/// order from there on are the warm-up.
pub fn fragments(manifest: &Manifest, positions: &[FragmentPosition], warmup_sessions: u64) -> Vec<FragmentPlan> {
    let position = |fragment| positions.iter().find(|p| p.fragment == fragment);
    let firsts: Vec<u64> =
        manifest.fragments.iter().map(|f| position(f.fragment).map_or(0, |p| p.next_session)).collect();
    let ends = ends_after(&manifest.weights(), &firsts, warmup_sessions);
    let plan = |((fragment, first_session), end)| FragmentPlan {
        fragment,
        first_session,
        given_back: position(fragment).map_or(Vec::new(), |p| p.given_back.clone()),
        warmup_sessions: end - first_session,
    };
    manifest.fragments.iter().map(|f| f.fragment).zip(firsts).zip(ends).map(plan).collect()
}

/// How long a warm-up is, as a user writes it: `20000` sessions, `10%` of the
/// sessions of the trace set, or `500000ops`, a number of operations.
///
/// ```
/// use schemas::plan::Warmup;
/// assert_eq!("20000".parse(), Ok(Warmup::Sessions(20_000)));
/// assert_eq!("10%".parse(), Ok(Warmup::Percent(10.0)));
/// assert_eq!("500000ops".parse(), Ok(Warmup::Operations(500_000)));
/// assert_eq!(Warmup::Percent(2.5).to_string(), "2.5%");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warmup {
    /// A number of sessions over all fragments.
    Sessions(u64),
    /// This share of all sessions of the trace set, from 0 to less than 100 percent.
    Percent(f64),
    /// A number of operations: as many sessions from the trace's beginning as hold them.
    Operations(u64),
}

impl Warmup {
    /// How many sessions over all fragments the warm-up has, rounded up. For a number of
    /// operations it reads that many operations of the trace set in `folder`.
    pub fn sessions(self, folder: &Path, manifest: &Manifest) -> Result<u64, TableError> {
        match self {
            Warmup::Sessions(sessions) => Ok(sessions),
            Warmup::Percent(percent) => Ok((manifest.sessions() as f64 * percent / 100.0).ceil() as u64),
            Warmup::Operations(operations) => sessions_with(operations, folder, manifest),
        }
    }
}

/// A text that is not a valid warm-up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a warm-up; write a number of sessions (20000), a share of the trace below 100% (10%) or a number \
     of operations (500000ops)"
)]
pub struct WarmupError {
    text: String,
}

impl FromStr for Warmup {
    type Err = WarmupError;

    fn from_str(text: &str) -> Result<Warmup, WarmupError> {
        let trimmed = text.trim();
        let parsed = if trimmed.ends_with('%') {
            percent(trimmed).ok().filter(|share| *share < 100.0).map(Warmup::Percent)
        } else if let Some(operations) = trimmed.strip_suffix("ops") {
            operations.trim().parse().ok().map(Warmup::Operations)
        } else {
            trimmed.parse().ok().map(Warmup::Sessions)
        };
        parsed.ok_or_else(|| WarmupError { text: text.to_string() })
    }
}

impl fmt::Display for Warmup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warmup::Sessions(sessions) => write!(f, "{sessions}"),
            Warmup::Percent(percent) => write!(f, "{percent}%"),
            Warmup::Operations(operations) => write!(f, "{operations}ops"),
        }
    }
}

/// Whether URLs of this scheme have only a path or nothing, so that an '@' is a part of a name.
fn is_of_files(scheme: &str) -> bool {
    matches!(scheme.rsplit('+').next(), Some("sqlite" | "memory" | "null"))
}

/// The host of a URL, with a password hidden. A URL that was cut off after `user:password` seems
/// to have the password as its port, so a port that is not a number is hidden.
fn without_password(base: &str) -> String {
    let (host, rest) = base.split_at(base.find('/').unwrap_or(base.len()));
    match host.rsplit_once(':') {
        Some((user, port)) if !host.starts_with('[') && !port.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{user}:***{rest}")
        }
        _ => base.to_string(),
    }
}

/// A store's URL without secrets: the password after `user:` and the values of
/// parameters that name a password, a secret, a token or a key become `***`.
///
/// ```
/// use schemas::plan::redact;
/// assert_eq!(redact("postgres://me:hush@db/encore?a=1&password=x"), "postgres://me:***@db/encore?a=1&password=***");
/// assert_eq!(redact("sqlite:a@b.db"), "sqlite:a@b.db");
/// // Mistyped URLs keep their secrets hidden too.
/// assert_eq!(redact("postgres://me:hush"), "postgres://me:***");
/// assert_eq!(redact("postgres//me:hush@db/x"), "postgres//me:***@db/x");
/// assert_eq!(redact("me:hush@db/x"), "me:***@db/x");
/// assert_eq!(redact("postgres://db:5432/x"), "postgres://db:5432/x");
/// ```
pub fn redact(url: &str) -> String {
    let (scheme, rest) = match (url.split_once("://"), url.split_once(':')) {
        (Some((scheme, rest)), _) => (format!("{scheme}://"), rest),
        // The part before the ':' is not a store's scheme: it is a user, or a scheme that lacks
        // its ':'.
        (None, Some((user, rest)))
            if !is_of_files(user) && rest.rfind('@').is_some_and(|at| !rest[..at].contains(':')) =>
        {
            return format!("{user}:***@{}", redact(rest.rsplit('@').next().unwrap_or_default()));
        }
        (None, Some((scheme, rest))) => (format!("{scheme}:"), rest),
        (None, None) => (String::new(), url),
    };
    if scheme.ends_with("//") && is_unclear(rest) {
        return format!("{scheme}***");
    }
    let end = match scheme.ends_with("//") {
        true => end_of_credentials(rest),
        // An '@' ends credentials only if a ':' stands before it.
        false => rest.rfind('@').filter(|at| rest[..*at].contains(':')),
    };
    let (credentials, rest) = match end {
        Some(end) => {
            let (credentials, rest) = (&rest[..end], &rest[end + 1..]);
            let user = credentials.split_once(':').map(|(user, _)| format!("{user}:***@"));
            (user.unwrap_or_else(|| format!("{credentials}@")), rest)
        }
        None => (String::new(), rest),
    };
    let (base, query) = match rest.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (rest, None),
    };
    let base = if credentials.is_empty() && scheme.ends_with("//") { without_password(base) } else { base.into() };
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

/// Whether a URL has a secret in it. `${VARIABLE}` in its place is none; its default (`${VARIABLE:-DEFAULT}`) may be one.
///
/// ```
/// use schemas::plan::has_secret;
/// assert!(has_secret("postgres://me:hush@db/x") && has_secret("${PG:-postgres://me:hush@db/x}"));
/// assert!(!has_secret("postgres://me:${PG}@db/x") && !has_secret("sqlite:a.db"));
/// ```
pub fn has_secret(url: &str) -> bool {
    let mut plain = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once("${") {
        let (variable, after) = after.split_once('}').unwrap_or((after, ""));
        match variable.split_once(":-") {
            Some((_, default)) => plain.extend([before, default]),
            None => plain.push_str(match before.strip_suffix(':').filter(|_| after.starts_with('@')) {
                Some(before) => before,
                None => before.strip_suffix('=').unwrap_or(before),
            }),
        }
        rest = after;
    }
    plain.push_str(rest);
    redact(&plain) != plain
}

/// A text that a user typed, without secrets: variables stay, so that it can be typed again.
///
/// ```
/// use schemas::plan::redact_typed;
/// assert_eq!(redact_typed("--store=postgres://me:${PG}@db/x"), "--store=postgres://me:${PG}@db/x");
/// assert_eq!(redact_typed("--store=postgres://me:hush@db/x"), "--store=postgres://me:***@db/x");
/// ```
pub fn redact_typed(text: &str) -> String {
    if has_secret(text) { redact(text) } else { text.to_string() }
}

/// The authority of a URL: what follows its `//`, up to the path or the parameters.
fn authority(rest: &str) -> &str {
    &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
}

/// Whether what follows the `//` of a URL looks like a user with a password that contains an
/// unescaped `/`, `?` or `#`: `me:hu/sh@db`.
pub fn has_raw_password(rest: &str) -> bool {
    let authority = authority(rest);
    let after_colon = authority.rsplit_once(':').map(|(_, port)| port);
    let is_port = |port: &str| port.ends_with(']') || (!port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let has_port = after_colon.is_some_and(is_port);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let ends_in_query = place.contains(':') && !place.contains('/') && query.contains('@');
    ends_in_query || (!authority.contains('@') && after_colon.is_some() && !has_port && rest.contains('@'))
}

/// Whether an '@' in the parameters may end a password or be a part of a value. [`redact`] then
/// hides everything after the scheme.
fn is_unclear(rest: &str) -> bool {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_place = |behind: &str| !place.contains('/') || behind.contains('/');
    place.contains(':') && query.split_once('@').is_some_and(|(_, behind)| is_place(behind))
}

/// The position of the '@' that ends the credentials in what follows the `//` of a URL. It is the
/// last possible one, since a password may contain any character. An '@' in the value of a
/// parameter (`?application_name=a@b`) does not count.
fn end_of_credentials(rest: &str) -> Option<usize> {
    if has_raw_password(rest) {
        return rest.rfind('@');
    }
    let place = rest.find('?').unwrap_or(rest.len());
    let mut begin = place + 1;
    let mut end = rest[..place].rfind('@');
    for parameter in rest.get(begin..).unwrap_or_default().split('&') {
        let name = &parameter[..parameter.find('=').unwrap_or(parameter.len())];
        end = name.rfind('@').map(|at| begin + at).or(end);
        begin += parameter.len() + 1;
    }
    end
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "pwd", "secret", "token", "key"].iter().any(|word| name.contains(word))
}

impl Plan {
    /// The plan without secrets, as it may be written to a file.
    pub fn redacted(&self) -> Plan {
        Plan { store: redact(&self.store), ..self.clone() }
    }

    /// How fast it starts sessions.
    pub fn pace(&self) -> Pace {
        Pace {
            open_loop: self.open_loop,
            target_per_s: self.target_per_s,
            threads_over_time: self.threads_over_time.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::FragmentCounts;
    use crate::spec::Spec;

    #[test]
    fn secrets_are_redacted_wherever_they_stand() {
        for (url, expect) in [
            ("mysql://u:p@ss:w@h:1/d", "mysql://u:***@h:1/d"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres://me:hu?sh@db/x?a=1", "postgres://***"),
            ("postgres://u:p@ss?w=x@h/d", "postgres://***"),
            ("postgres://u:p@ss/w?x=a@h/d", "postgres://***"),
            ("postgres://me:?a=b@h/d", "postgres://***"),
            ("postgres://me:12?a=b@h/d", "postgres://***"),
            ("postgres://db:5432?password=p@ss", "postgres://***"),
            ("postgres://db?user=me&password=p@ss", "postgres://db?user=me&password=***"),
            ("postgres://me:p@db/x?sslrootcert=/a@b/c", "postgres://***"),
            ("mysql:me:hush@db/x", "mysql:me:***@db/x"),
            ("postgres://me:hu/sh@db/x", "postgres://me:***@db/x"),
            ("postgres://u:p@s/s@h/d", "postgres://u:***@h/d"),
            ("postgres://db/x?user=me&password=p@ss", "postgres://db/x?user=me&password=***"),
            ("postgres://db:5432/x?password=p@ss&a=b@c", "postgres://db:5432/x?password=***&a=b@c"),
            ("postgres://me:hush@[::1]:5432/x?a=b@c", "postgres://me:***@[::1]:5432/x?a=b@c"),
            ("--store=postgres://me:hush@db/x", "--store=postgres://me:***@db/x"),
            (
                "mongodb://u:p@h/d?authToken=t&tlsCertificateKeyFilePassword=q&w=1",
                "mongodb://u:***@h/d?authToken=***&tlsCertificateKeyFilePassword=***&w=1",
            ),
            ("memory:?stale=0.1", "memory:?stale=0.1"),
        ] {
            assert_eq!(redact(url), expect);
        }
    }

    /// A trace set of `sessions` sessions a fragment, of three operations each.
    fn manifest(sessions: &[u64]) -> Manifest {
        let counts = sessions.iter().enumerate().map(|(fragment, sessions)| FragmentCounts {
            fragment: fragment as u32,
            weight: 0.5,
            actors: 10,
            sessions: *sessions,
            operations: 3 * sessions,
        });
        let spec = Spec::parse("name = \"w\"\nsessions = 1\n[data]\nmembers = 10\n[mix]\nlist_friends = 1", "spec");
        Manifest {
            format_version: crate::TRACE_FORMAT_VERSION,
            generator_version: String::new(),
            workload_id: String::new(),
            trace_id: String::new(),
            spec: spec.unwrap(),
            fragments: counts.collect(),
            requested_mix: Default::default(),
            achieved_mix: Default::default(),
            operations_by_name: Default::default(),
            noops: Default::default(),
            ended_early: Default::default(),
            active_threads_max: 1,
            statistics: Default::default(),
            files: Vec::new(),
        }
    }

    #[test]
    fn warm_ups_are_shares_of_the_trace_rounded_up() {
        let manifest = manifest(&[500, 501]);
        let check = |text: &str, expect: u64| {
            let warmup: Warmup = text.parse().unwrap();
            let sessions = warmup.sessions(Path::new("nowhere"), &manifest).unwrap();
            assert_eq!((sessions, warmup.to_string().parse()), (expect, Ok(warmup)), "{text}");
        };
        check("7", 7);
        check("10%", 101);
        check(" 0% ", 0);
        // There are no files here, so the mean of three operations a session is used.
        check("300ops", 100);
        check("301 ops", 101);
        for wrong in ["", "%", "ops", "-1", "100%", "1.5", "5s", "2.5ops"] {
            let error = wrong.parse::<Warmup>().unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?}")) && error.contains("10%"), "{error}");
        }
    }

    /// A fragment that is ahead of the others waits for them, and the warm-up has the requested
    /// length.
    #[test]
    fn the_warm_up_of_a_continued_trace_starts_where_the_fragments_stand() {
        let manifest = manifest(&[1000, 1000]);
        let at = FragmentPosition::at;
        let plans = fragments(&manifest, &[at(0, 110), at(1, 90)], 30);
        let parts: Vec<(u64, u64)> = plans.iter().map(|p| (p.first_session, p.warmup_sessions)).collect();
        assert_eq!(parts, [(110, 5), (90, 25)]);
        assert!(fragments(&manifest, &[], 0).iter().all(|p| (p.first_session, p.warmup_sessions) == (0, 0)));
    }
}
