//! `encore rate`.

use std::rc::Rc;

use super::Invocation;
use super::setting::{monitored, setting};
use crate::cli::args::{BetweenArg, RateArgs};
use crate::failure::Failure;
use crate::rate::{Deltas, Method, Rating};
use crate::search::{Limits, NOISE, RESOLUTION};

/// The longest default length of a search experiment, in seconds. About twenty of these and two
/// final experiments fit into two minutes.
const SEARCH_S: f64 = 1.5;

/// Resolves `encore rate`.
pub fn rating(args: &RateArgs, invocation: &Invocation) -> Result<Rating, Failure> {
    if args.first_threads > args.max_threads {
        let (first, max) = (args.first_threads, args.max_threads);
        return Err(Failure::usage(format!("--first-threads {first} is above --max-threads {max}")));
    }
    let mut setting = setting(args.spec.as_deref(), &args.workload, args.sessions, invocation)?;
    match args.between {
        Some(BetweenArg::Load) if setting.keep_data => {
            return Err(Failure::usage(
                "--between load: Encore does not load the records that --keep-data keeps; remove one of the two flags",
            ));
        }
        Some(between) => setting.between = between.into(),
        None => {}
    }
    if setting.store.starts_with("null:") {
        return Err(Failure::usage(
            "--store null: cannot be rated: it stores no data, so every read is unpredictable; \
             use it with `encore run` or `encore replay run` to measure the replayer",
        ));
    }
    let deltas = deltas(args, setting.sla.delta_s)?;
    monitored(setting.monitor_s, setting.sla.delta_s)?;
    let limits = Limits {
        first_threads: args.first_threads,
        max_threads: args.max_threads,
        resolution: RESOLUTION,
        noise: NOISE,
    };
    let method = if args.exhaustive { Method::Exhaustive } else { Method::Heuristic };
    Ok(Rating { setting, wanted: args.rating, limits, deltas, method, typed: Rc::new(args.clone()) })
}

fn deltas(args: &RateArgs, delta_s: f64) -> Result<Deltas, Failure> {
    let mut search_s = match args.search_s.is_empty() {
        true => vec![SEARCH_S.min(delta_s)],
        false => args.search_s.clone(),
    };
    if let Some(wrong) = search_s.iter().find(|seconds| !(**seconds > 0.0 && **seconds <= 86_400.0)) {
        return Err(Failure::usage(format!(
            "--search-s {wrong} is out of range; use more than 0 and at most 86400 seconds"
        )));
    }
    if let Some(longer) = search_s.iter().find(|seconds| **seconds > delta_s) {
        return Err(Failure::usage(format!(
            "--search-s {longer} is longer than a final experiment ({delta_s} s, from the SLA); use a shorter time"
        )));
    }
    search_s.sort_by(f64::total_cmp);
    search_s.dedup();
    if let Some(percent) = args.delta_check
        && !(percent > 0.0 && percent <= 100.0)
    {
        return Err(Failure::usage(format!(
            "--delta-check {percent} is out of range; use more than 0 and at most 100 percent"
        )));
    }
    Ok(Deltas { search_s, check_percent: args.delta_check })
}
