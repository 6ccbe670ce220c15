//! `encore run`.

use schemas::plan::Limit;

use super::Invocation;
use super::setting::{monitored, setting};
use crate::cli::args::RunArgs;
use crate::failure::Failure;
use crate::run::setting::Source;
use crate::run::single::Single;

/// Resolves `encore run`.
pub fn single(args: &RunArgs, invocation: &Invocation) -> Result<Single, Failure> {
    let mut setting = setting(args.spec.as_deref(), &args.workload, None, invocation)?;
    let limit = match (args.sessions, args.duration) {
        (Some(sessions), _) => Limit::Sessions(sessions),
        (None, Some(ns)) => Limit::DurationS(ns as f64 / 1e9),
        (None, None) => Limit::DurationS(setting.sla.delta_s),
    };
    match (&limit, &mut setting.source) {
        (Limit::DurationS(seconds), _) => {
            setting.sla.delta_s = *seconds;
            monitored(setting.monitor_s, *seconds)?;
        }
        (Limit::Sessions(sessions), Source::Spec(spec)) => spec.sessions = spec.sessions.max(*sessions),
        _ => {}
    }
    Ok(Single { setting, threads: args.threads, limit })
}
