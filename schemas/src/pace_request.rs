//! How fast sessions shall start, as a user asks for it: which flags exclude each other, which of them
//! fit a trace set, and what a plan then says.

use std::path::Path;

use crate::arrivals::DUE_S_MAX;
use crate::manifest::Manifest;
use crate::pace::{Due, OpenLoop, Overload, Pace, ThreadsOverTime, check_rate, check_schedule, positive};
use crate::plan::{FragmentPlan, Limit};
use crate::share::ends_after;
use crate::table::TableError;
use crate::trace::due_from;

/// The load times at which the parts of an experiment begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstDue {
    /// The least due time of the first measured session of each fragment, in µs of load time.
    pub from_us: u64,
    /// The same with the warm-up, in µs.
    pub warmup_from_us: u64,
}

/// Whether the sessions of a trace set have due times. All have one, or none has; who reads the
/// operations refuses other trace sets.
pub fn has_due_times(manifest: &Manifest) -> bool {
    manifest.spec.arrivals.is_some()
}

/// Reads when the sessions of these plans are due at first. None if the trace set has no due times.
/// A fragment without sessions left says nothing.
pub fn first_due(
    folder: &Path,
    manifest: &Manifest,
    fragments: &[FragmentPlan],
) -> Result<Option<FirstDue>, TableError> {
    if !has_due_times(manifest) {
        return Ok(None);
    }
    let least_of = |session: fn(&FragmentPlan) -> u64| {
        let due = |plan: &FragmentPlan| due_from(manifest.operation_files(folder, plan.fragment), session(plan));
        let all: Result<Vec<Option<u64>>, TableError> = fragments.iter().map(due).collect();
        all.map(|all| all.into_iter().flatten().min())
    };
    let warmup_from_us = least_of(|plan| plan.first_session)?.unwrap_or_default();
    let from_us = least_of(FragmentPlan::measured_from)?.unwrap_or(warmup_from_us);
    Ok(Some(FirstDue { from_us, warmup_from_us }))
}

/// When the last session of an experiment is due, in seconds from the beginning of its measured part.
/// None if the experiment ends after a time.
fn last_due_s(
    due: Due,
    folder: &Path,
    manifest: &Manifest,
    fragments: &[FragmentPlan],
    limit: Limit,
) -> Result<Option<f64>, TableError> {
    let (weights, from) = (manifest.weights(), fragments.iter().map(FragmentPlan::measured_from));
    let from: Vec<u64> = from.collect();
    let ends: Vec<u64> = match limit {
        Limit::DurationS(_) => return Ok(None),
        Limit::Sessions(sessions) if weights.len() == from.len() => ends_after(&weights, &from, sessions),
        // Some fragments of a trace set are not replayed alone with a number of sessions for all.
        Limit::Sessions(_) | Limit::WholeTrace => manifest.fragments.iter().map(|f| f.sessions).collect(),
    };
    let all: f64 = weights.iter().sum();
    let mut last_s: f64 = 0.0;
    for (plan, from) in fragments.iter().zip(from) {
        let Some(place) = manifest.fragments.iter().position(|f| f.fragment == plan.fragment) else { continue };
        let last = ends[place].min(manifest.fragments[place].sessions).saturating_sub(1);
        let due_s = match due {
            Due::Even { per_s } => last.saturating_sub(from) as f64 / (per_s * weights[place] / all),
            // No trace set has a later due time than the latest one, so a higher factor needs no look.
            Due::Trace { factor, .. } if factor >= 1.0 => 0.0,
            Due::Trace { from_us, factor, .. } => {
                let due_us = due_from(manifest.operation_files(folder, plan.fragment), last)?;
                due_us.unwrap_or_default().saturating_sub(from_us) as f64 / 1e6 / factor
            }
        };
        last_s = last_s.max(due_s);
    }
    Ok(Some(last_s))
}

/// Refuses an experiment that would take longer than any trace set may.
fn check_last(due: Option<Due>, last_s: f64) -> Result<(), String> {
    let flag = match due {
        Some(Due::Even { .. }) => "--rate",
        _ => "--rate-factor",
    };
    match last_s > DUE_S_MAX {
        true => Err(format!(
            "{flag}: the last session is due after {last_s:.0} s, and an experiment may take 2^40 µs (12.7 days); use \
             a greater {flag}, or --duration or --sessions to end earlier"
        )),
        false => Ok(()),
    }
}

/// What a user asks for, by the names of the flags. All of them may be left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PaceRequest {
    /// `--rate`: evenly spaced arrivals, in sessions a second.
    pub rate: Option<f64>,
    /// `--rate-factor`: how many times as fast as the trace says.
    pub rate_factor: Option<f64>,
    /// `--overload`.
    pub overload: Option<Overload>,
    /// `--target`: sessions a second in a closed loop.
    pub target: Option<f64>,
    /// `--threads-over-time`.
    pub threads_over_time: ThreadsOverTime,
}

/// Flags that exclude each other or do not fit the trace set, or a trace set that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PaceError {
    /// The flags; the message names them.
    #[error("{0}")]
    Flags(String),
    /// A file of the trace set.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl PaceRequest {
    /// The keys of a plan for these fragments of the trace set in `folder`, with `threads` threads, that
    /// ends at `limit`. A trace set with due times is always replayed in an open loop.
    pub fn resolve(
        &self,
        folder: &Path,
        manifest: &Manifest,
        fragments: &[FragmentPlan],
        threads: u32,
        limit: Limit,
    ) -> Result<Pace, PaceError> {
        self.check(threads).map_err(PaceError::Flags)?;
        let first = first_due(folder, manifest, fragments)?;
        self.check_with(folder, first.is_some()).map_err(PaceError::Flags)?;
        let due = match (first, self.rate) {
            (Some(FirstDue { from_us, warmup_from_us }), _) => {
                Some(Due::Trace { from_us, warmup_from_us, factor: self.rate_factor.unwrap_or(1.0) })
            }
            (None, rate) => rate.map(|per_s| Due::Even { per_s }),
        };
        if let Some(last_s) = due.map_or(Ok(None), |due| last_due_s(due, folder, manifest, fragments, limit))? {
            check_last(due, last_s).map_err(PaceError::Flags)?;
        }
        Ok(Pace {
            open_loop: due.map(|due| OpenLoop { due, overload: self.overload.unwrap_or_default() }),
            target_per_s: self.target,
            threads_over_time: self.threads_over_time.0.clone(),
        })
    }

    /// Checks the flags before there is a trace set. Its specification says whether its sessions will
    /// have due times; `trace` names it in errors.
    pub fn check_early(&self, trace: &Path, has_due_times: bool, threads: u32) -> Result<(), PaceError> {
        self.check(threads).and_then(|()| self.check_with(trace, has_due_times)).map_err(PaceError::Flags)
    }

    /// The names of the flags that are set, of those that ask for a closed loop.
    fn closed_loop_flags(&self) -> impl Iterator<Item = &'static str> {
        let over_time = (!self.threads_over_time.0.is_empty()).then_some("--threads-over-time");
        self.target.map(|_| "--target").into_iter().chain(over_time)
    }

    /// Checks the flags by themselves.
    fn check(&self, threads: u32) -> Result<(), String> {
        check_rate("--rate", self.rate)?;
        positive("--rate-factor", self.rate_factor)?;
        check_rate("--target", self.target)?;
        check_schedule(&self.threads_over_time.0, threads).map_err(|why| format!("--threads-over-time: {why}"))?;
        if self.rate.is_some() && self.rate_factor.is_some() {
            return Err("--rate and --rate-factor exclude each other; --rate is for trace sets without due times, \
                        --rate-factor for those with due times"
                .into());
        }
        let open = [
            self.rate.map(|_| "--rate"),
            self.rate_factor.map(|_| "--rate-factor"),
            self.overload.map(|_| "--overload"),
        ];
        match (open.into_iter().flatten().next(), self.closed_loop_flags().next()) {
            (Some(open), Some(closed)) => Err(format!(
                "{closed} and {open} exclude each other: {closed} is for a closed loop, {open} for an open loop; remove one"
            )),
            _ => Ok(()),
        }
    }

    /// Checks the flags against a trace set.
    fn check_with(&self, folder: &Path, has_due_times: bool) -> Result<(), String> {
        let trace = folder.display();
        if has_due_times && self.rate.is_some() {
            return Err(format!("--rate: trace {trace} has due times of its own; use --rate-factor to scale them"));
        }
        if let Some(flag) = self.closed_loop_flags().next().filter(|_| has_due_times) {
            return Err(format!(
                "{flag}: trace {trace} has due times, so its load does not depend on threads (open loop); remove \
                 {flag}, or use a trace set without [arrivals]"
            ));
        }
        if !has_due_times && self.rate_factor.is_some() {
            return Err(format!("--rate-factor: trace {trace} has no due times to scale; use --rate"));
        }
        if !has_due_times && self.rate.is_none() && self.overload.is_some() {
            return Err(format!(
                "--overload: trace {trace} has no due times, so no session can be late (closed loop); add --rate, or \
                 remove --overload"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::FragmentCounts;
    use crate::spec::Spec;

    fn refused(request: PaceRequest, has_due_times: bool, expect: &[&str]) {
        let why = request.check(10).and_then(|()| request.check_with(Path::new("a.trace"), has_due_times)).unwrap_err();
        assert!(expect.iter().all(|words| why.contains(words)), "{why}");
    }

    /// A trace set is refused if its last session is due after 2^40 µs, and flags could ask for the same.
    #[test]
    fn an_experiment_that_would_take_longer_than_any_trace_set_is_refused() {
        let spec = "name = \"a\"\nsessions = 1000\n[data]\nmembers = 100\n[mix]\nlist_friends = 1";
        let fragment =
            |fragment, weight, sessions| FragmentCounts { fragment, weight, actors: 50, sessions, operations: 0 };
        let manifest = Manifest {
            format_version: crate::TRACE_FORMAT_VERSION,
            generator_version: String::new(),
            workload_id: String::new(),
            trace_id: String::new(),
            spec: Spec::parse(spec, "a.toml").unwrap(),
            fragments: vec![fragment(0, 3.0, 750), fragment(1, 1.0, 250)],
            requested_mix: Default::default(),
            achieved_mix: Default::default(),
            operations_by_name: Default::default(),
            noops: Default::default(),
            ended_early: Default::default(),
            active_threads_max: 1,
            statistics: crate::manifest::plain(&crate::workload::social::SocialStatistics::default()),
            files: Vec::new(),
        };
        let plans = [0, 1].map(|fragment| FragmentPlan {
            fragment,
            first_session: 10,
            given_back: Vec::new(),
            warmup_sessions: 0,
        });
        let last = |due, limit| last_due_s(due, Path::new("t"), &manifest, &plans, limit).unwrap();
        // Of fragment 0, whose share is three quarters, session 749 is the 739th after the first.
        assert_eq!(last(Due::Even { per_s: 4.0 }, Limit::WholeTrace), Some(739.0 / 3.0));
        assert_eq!(last(Due::Even { per_s: 4.0 }, Limit::DurationS(9.0)), None);
        let few = last(Due::Even { per_s: 4.0 }, Limit::Sessions(40)).unwrap();
        assert!((5.0..=13.0).contains(&few), "{few}");
        let fast = Due::Trace { from_us: 0, warmup_from_us: 0, factor: 1.0 };
        assert_eq!(last(fast, Limit::WholeTrace), Some(0.0));
        let even = |per_s| Some(Due::Even { per_s });
        assert_eq!(check_last(even(1.0), DUE_S_MAX), Ok(()));
        let why = check_last(even(1.0), DUE_S_MAX * 1.1).unwrap_err();
        assert!(why.contains("--rate: the last session is due after 1209463 s") && why.contains("--duration"), "{why}");
        let why = check_last(Some(fast), DUE_S_MAX * 1.1).unwrap_err();
        assert!(why.contains("--rate-factor: the last"), "{why}");
    }

    #[test]
    fn what_excludes_each_other_is_refused_by_its_flags() {
        let none = PaceRequest::default;
        let schedule = |text: &str| PaceRequest { threads_over_time: text.parse().unwrap(), ..none() };
        refused(PaceRequest { rate: Some(-1.0), ..none() }, false, &["--rate is -1", "above 0"]);
        refused(PaceRequest { rate: Some(f64::INFINITY), ..none() }, false, &["--rate is inf"]);
        refused(PaceRequest { rate: Some(1.1e9), ..none() }, false, &["--rate is 1100000000", "at most 1000000000"]);
        refused(PaceRequest { target: Some(2e9), ..none() }, false, &["--target is 2000000000", "at most 1000000000"]);
        assert_eq!(PaceRequest { rate: Some(1e9), ..none() }.check(10), Ok(()));
        refused(PaceRequest { rate_factor: Some(f64::NAN), ..none() }, true, &["--rate-factor is NaN"]);
        refused(PaceRequest { target: Some(0.0), ..none() }, false, &["--target is 0"]);
        refused(PaceRequest { rate: Some(1.0), rate_factor: Some(1.0), ..none() }, true, &["--rate and --rate-factor"]);
        refused(PaceRequest { rate: Some(1.0), target: Some(1.0), ..none() }, false, &["--target and --rate exclude"]);
        let overload = Some(Overload::Skip);
        refused(PaceRequest { overload, ..schedule("0s:1") }, true, &["--threads-over-time and --overload"]);
        refused(PaceRequest { rate: Some(5.0), ..none() }, true, &["--rate: trace a.trace", "--rate-factor"]);
        refused(schedule("0s:1"), true, &["--threads-over-time: trace a.trace has due times"]);
        refused(PaceRequest { target: Some(5.0), ..none() }, true, &["--target: trace a.trace has due times"]);
        refused(PaceRequest { rate_factor: Some(2.0), ..none() }, false, &["no due times to scale", "use --rate"]);
        refused(PaceRequest { overload, ..none() }, false, &["--overload: trace a.trace", "add --rate"]);
        refused(schedule("0s:1,3s:11"), false, &["--threads-over-time", "11 threads", "--threads is 10"]);
        assert_eq!(PaceRequest { overload, ..none() }.check_with(Path::new("a.trace"), true), Ok(()));
    }
}
