//! `encore run`.

use std::path::Path;

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
    let request = args.pace.request();
    let trace = match &setting.source {
        Source::Spec(spec) => Path::new(&spec.name),
        Source::Given { folder, .. } => folder,
    };
    let has_due_times = setting.source.spec().arrivals.is_some();
    request.check_early(trace, has_due_times, args.threads).map_err(Failure::usage)?;
    setting.pace = request;
    Ok(Single { setting, threads: args.threads, limit })
}
