//! `plan.json`: one experiment, as the coordinator hands it to a replayer.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::run::FragmentPosition;
use crate::share::ends_after;
use crate::sla::percent;
use crate::trace::TableError;
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

/// When an experiment ends. What is in flight then is finished and logged; sessions that
/// wait for a busy socialite are given back when a time ends it, and run else.
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
    /// Its first session in this experiment: all before it are in the store, but for those
    /// that were given back.
    pub first_session: u64,
    /// Sessions before the first that an earlier experiment has given back, in their order.
    /// They are run before all others, as a warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_back: Vec<u64>,
    /// How many sessions from there on are the warm-up: replayed and logged like
    /// all others, but no part of the figures, and over before the measured part
    /// begins.
    #[serde(default)]
    pub warmup_sessions: u64,
}

impl FragmentPlan {
    /// The first session of the trace that it needs.
    pub fn begins_at(&self) -> u64 {
        self.given_back.first().copied().unwrap_or(self.first_session)
    }

    /// The first session after the warm-up.
    pub fn measured_from(&self) -> u64 {
        self.first_session.saturating_add(self.warmup_sessions)
    }

    /// Whether anything is run before the measured part.
    pub fn has_warmup(&self) -> bool {
        self.warmup_sessions > 0 || !self.given_back.is_empty()
    }

    /// Whether a session was run before the experiment.
    pub fn is_before(&self, session: u64) -> bool {
        session < self.first_session && self.given_back.binary_search(&session).is_err()
    }
}

/// The fragments of a trace set, each taken up where `positions` says (at its
/// beginning where it says nothing), with the first `warmup_sessions` of the
/// global order from there on as warm-up.
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
    /// So many sessions over all fragments.
    Sessions(u64),
    /// This share of all sessions of the trace set, from 0 to less than 100 percent.
    Percent(f64),
    /// As many sessions as hold so many operations, counted from the trace's beginning.
    Operations(u64),
}

impl Warmup {
    /// How many sessions of the trace set in a folder that is, over all fragments,
    /// rounded up. Reads as many operations as it is about, when it is about these.
    pub fn sessions(self, folder: &Path, manifest: &Manifest) -> Result<u64, TableError> {
        match self {
            Warmup::Sessions(sessions) => Ok(sessions),
            Warmup::Percent(percent) => Ok((manifest.sessions() as f64 * percent / 100.0).ceil() as u64),
            Warmup::Operations(operations) => sessions_with(operations, folder, manifest),
        }
    }
}

/// A text that is no warm-up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no warm-up; write a number of sessions (20000), a share of the trace below 100% (10%) or a number of operations (500000ops)"
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

/// Whether a scheme is followed by a path or by nothing, so that an '@' is a part of a name.
fn is_of_files(scheme: &str) -> bool {
    matches!(scheme.rsplit('+').next(), Some("sqlite" | "memory" | "null"))
}

/// A host, without what stands where its port would, if that is no number: the user and the
/// password of a URL that ends there.
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
/// // Mistyped ones keep their secrets too.
/// assert_eq!(redact("postgres://me:hush"), "postgres://me:***");
/// assert_eq!(redact("postgres//me:hush@db/x"), "postgres//me:***@db/x");
/// assert_eq!(redact("me:hush@db/x"), "me:***@db/x");
/// assert_eq!(redact("postgres://db:5432/x"), "postgres://db:5432/x");
/// ```
pub fn redact(url: &str) -> String {
    let (scheme, rest) = match (url.split_once("://"), url.split_once(':')) {
        (Some((scheme, rest)), _) => (format!("{scheme}://"), rest),
        // What comes before is no store's scheme: a user, or one that lacks its colon.
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
        // An '@' ends credentials only where a ':' stands before it.
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

/// What stands before the place and the parameters of a URL, after its `//`.
fn authority(rest: &str) -> &str {
    &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
}

/// Whether what follows the `//` of a URL looks like a user whose password holds a
/// character that ends it: `me:hu/sh@db`.
pub fn has_raw_password(rest: &str) -> bool {
    let authority = authority(rest);
    let after_colon = authority.rsplit_once(':').map(|(_, port)| port);
    let is_port = |port: &str| port.ends_with(']') || (!port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let has_port = after_colon.is_some_and(is_port);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let ends_in_query = place.contains(':') && !place.contains('/') && query.contains('@');
    ends_in_query || (!authority.contains('@') && after_colon.is_some() && !has_port && rest.contains('@'))
}

/// Whether an '@' in the parameters may end a password as well as be a part of a value:
/// then nothing is shown.
fn is_unclear(rest: &str) -> bool {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_place = |behind: &str| !place.contains('/') || behind.contains('/');
    place.contains(':') && query.split_once('@').is_some_and(|(_, behind)| is_place(behind))
}

/// Where the '@' is behind the credentials of what follows the `//` of a URL: the last
/// one that may be, since a password may hold any character. One in the value of a
/// parameter (`?application_name=a@b`) is none.
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
    /// The plan as it may be written to a file.
    pub fn redacted(&self) -> Plan {
        Plan { store: redact(&self.store), ..self.clone() }
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
            members: 10,
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
            operations_by_action: Default::default(),
            noops: Default::default(),
            ended_early: Default::default(),
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
        // Without any file the mean of three operations a session has to do.
        check("300ops", 100);
        check("301 ops", 101);
        for wrong in ["", "%", "ops", "-1", "100%", "1.5", "5s", "2.5ops"] {
            let error = wrong.parse::<Warmup>().unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?}")) && error.contains("10%"), "{error}");
        }
    }

    /// A fragment that is ahead of the others waits for them, and the warm-up is
    /// as long as it was asked for.
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
