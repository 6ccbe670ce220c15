//! When the sessions of an experiment start: in an open loop at their due times, of which the search
//! or the user says how many come in a second.

use schemas::mean_rate::factor_for;
use schemas::pace::Pace;
use schemas::pace_request::{PaceError, PaceRequest, first_due};
use schemas::plan::{FragmentPlan, Limit};
use schemas::spec::Spec;

use super::Campaign;
use crate::failure::Failure;
use crate::run::setting::Setting;
use crate::run::trace_set::TraceSet;
use crate::run::trial::Demand;
use crate::search::Unit;

/// The number of sessions that are due in some time varies by chance; so many standard deviations
/// above its mean are enough.
const DEVIATIONS: f64 = 5.0;

/// The unit in which the rows of a run show the load: the arrival rate if sessions have due times.
pub(super) fn unit(setting: &Setting, trace: &TraceSet) -> Unit {
    let is_open = setting.by_rate || setting.pace.rate.is_some() || trace.manifest.spec.arrivals.is_some();
    if is_open { Unit::SessionsPerS } else { Unit::Threads }
}

impl Campaign {
    /// The keys of a plan that say when sessions start.
    pub(super) fn pace(&self, demand: Demand, limit: Limit, fragments: &[FragmentPlan]) -> Result<Pace, Failure> {
        let (folder, manifest) = (self.trace.full_name(), &self.trace.manifest);
        let mut request = self.setting.pace.clone();
        if let Some(rate_per_s) = demand.rate_per_s {
            let first = first_due(&folder, manifest, fragments).map_err(Failure::tool)?;
            match first {
                Some(first) => {
                    let seconds = planned_s(limit);
                    request.rate_factor = Some(factor(&manifest.spec, first.from_us, rate_per_s, seconds)?);
                }
                None => request.rate = Some(f64::from(rate_per_s)),
            }
        }
        request.resolve(&folder, manifest, fragments, demand.threads, limit).map_err(|error| match error {
            PaceError::Flags(_) => Failure::usage(error),
            PaceError::Table(_) => Failure::tool(error),
        })
    }

    /// How many sessions at most are due in an experiment of this duration, with a margin for chance.
    /// None in a closed loop.
    pub(super) fn sessions_due(&self, demand: Demand, seconds: f64) -> Option<u64> {
        let spec = &self.trace.manifest.spec;
        let due = due(&self.setting.pace, spec, demand, seconds)?;
        // Each fragment needs enough of its own.
        let margin = DEVIATIONS * (due * f64::from(spec.fragments)).sqrt() + f64::from(spec.fragments);
        Some((due + margin).ceil() as u64)
    }
}

/// How many sessions are due on average in the first seconds.
fn due(pace: &PaceRequest, spec: &Spec, demand: Demand, seconds: f64) -> Option<f64> {
    if let Some(rate_per_s) = demand.rate_per_s.map(f64::from).or(pace.rate) {
        return Some(rate_per_s * seconds);
    }
    let profile = spec.arrivals.as_ref()?.profile();
    Some(profile.arrivals_until(pace.rate_factor.unwrap_or(1.0) * seconds))
}

/// The planned time of an experiment of a search, which always has one.
fn planned_s(limit: Limit) -> f64 {
    match limit {
        Limit::DurationS(seconds) => seconds,
        Limit::Sessions(_) | Limit::WholeTrace => 1.0,
    }
}

/// How many times as fast as its due times a trace set is replayed, so that its sessions arrive at
/// this mean rate.
fn factor(spec: &Spec, from_us: u64, rate_per_s: u32, seconds: f64) -> Result<f64, Failure> {
    let Some(arrivals) = &spec.arrivals else {
        return Err(Failure::tool(format!(
            "{}: its trace set has due times, and its [arrivals] are missing",
            spec.name
        )));
    };
    let sessions = (f64::from(rate_per_s) * seconds).ceil() as u64;
    factor_for(&arrivals.profile(), from_us, f64::from(rate_per_s), seconds).map_err(|never| {
        Failure::usage(format!(
            "{}: [arrivals] cannot give {rate_per_s} sessions/s for {seconds} s: {}",
            spec.name,
            never.words(sessions)
        ))
    })
}
