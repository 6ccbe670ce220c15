//! How fast sessions shall start, as a user asks for it: which flags exclude each other, which of them
//! fit a trace set, and what a plan then says.

use std::path::Path;

use crate::manifest::Manifest;
use crate::pace::{Due, OpenLoop, Overload, Pace, ThreadsOverTime, check_schedule, positive};
use crate::plan::FragmentPlan;
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
    /// The keys of a plan for these fragments of the trace set in `folder`, with `threads` threads. A
    /// trace set with due times is always replayed in an open loop.
    pub fn resolve(
        &self,
        folder: &Path,
        manifest: &Manifest,
        fragments: &[FragmentPlan],
        threads: u32,
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
        positive("--rate", self.rate)?;
        positive("--rate-factor", self.rate_factor)?;
        positive("--target", self.target)?;
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

    fn refused(request: PaceRequest, has_due_times: bool, expect: &[&str]) {
        let why = request.check(10).and_then(|()| request.check_with(Path::new("a.trace"), has_due_times)).unwrap_err();
        assert!(expect.iter().all(|words| why.contains(words)), "{why}");
    }

    #[test]
    fn what_excludes_each_other_is_refused_by_its_flags() {
        let none = PaceRequest::default;
        let schedule = |text: &str| PaceRequest { threads_over_time: text.parse().unwrap(), ..none() };
        refused(PaceRequest { rate: Some(-1.0), ..none() }, false, &["--rate is -1", "above 0"]);
        refused(PaceRequest { rate: Some(f64::INFINITY), ..none() }, false, &["--rate is inf"]);
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
