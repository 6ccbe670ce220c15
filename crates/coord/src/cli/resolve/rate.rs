//! `encore rate`.

use std::rc::Rc;

use schemas::spec::Spec;

use super::Invocation;
use super::setting::{monitored, setting};
use crate::cli::args::{BetweenArg, By, RateArgs};
use crate::failure::Failure;
use crate::rate::{Deltas, Method, Rating, Wanted};
use crate::search::{Limits, NOISE, RESOLUTION, Unit};

/// The highest T of a search, unless `--max-threads` is given.
const MAX_THREADS: u32 = 256;

/// The first arrival rate of a search in sessions a second, unless `--first-rate` is given. A search
/// experiment of a second or two then has the hundred sessions that a percentage needs.
const FIRST_RATE: u32 = 100;

/// The highest arrival rate of a search in sessions a second, unless `--max-rate` is given.
const MAX_RATE: u32 = 1_000_000;

/// The longest default length of a search experiment, in seconds. About twenty of these and two
/// final experiments fit into two minutes.
const SEARCH_S: f64 = 1.5;

/// Resolves `encore rate`.
pub fn rating(args: &RateArgs, invocation: &Invocation) -> Result<Rating, Failure> {
    let Searched { wanted, first, max } = searched(args)?;
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
    refuse_arrivals(wanted, setting.source.spec())?;
    setting.pace.overload = args.overload;
    setting.by_rate = wanted.unit() == Unit::SessionsPerS;
    let limits = Limits { first_load: first, max_load: max, resolution: RESOLUTION, noise: NOISE };
    let method = if args.exhaustive { Method::Exhaustive } else { Method::Heuristic };
    Ok(Rating { setting, wanted, limits, threads: args.threads, deltas, method, typed: Rc::new(args.clone()) })
}

/// What is searched, and from where to where.
struct Searched {
    wanted: Wanted,
    first: u32,
    max: u32,
}

/// What `--by` searches. Refuses the flags of the other search.
fn searched(args: &RateArgs) -> Result<Searched, Failure> {
    let of_threads = [
        ("--rating", args.rating != Wanted::Both),
        ("--max-threads", args.max_threads.is_some()),
        ("--first-threads", args.first_threads.is_some()),
        ("--exhaustive", args.exhaustive),
        ("--delta-check", args.delta_check.is_some()),
    ];
    let of_rate = [
        ("--max-rate", args.max_rate.is_some()),
        ("--first-rate", args.first_rate.is_some()),
        ("--threads", args.threads.is_some()),
        ("--overload", args.overload.is_some()),
    ];
    let given = |flags: &[(&'static str, bool)]| flags.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag);
    let (wanted, flags, first, max) = match args.by {
        By::Threads => {
            if let Some(flag) = given(&of_rate) {
                return Err(Failure::usage(format!(
                    "{flag} is for a rating by arrival rate; add --by rate, or remove it"
                )));
            }
            let (first, max) = (args.first_threads.unwrap_or(1), args.max_threads.unwrap_or(MAX_THREADS));
            (args.rating, ("--first-threads", "--max-threads"), first, max)
        }
        By::Rate => {
            if let Some(flag) = given(&of_threads) {
                return Err(Failure::usage(format!(
                    "{flag} is for a rating by threads; remove it, or remove --by rate"
                )));
            }
            let (first, max) = (args.first_rate.unwrap_or(FIRST_RATE), args.max_rate.unwrap_or(MAX_RATE));
            // A low limit alone is enough to search below it.
            let first = if args.first_rate.is_none() { first.min(max) } else { first };
            (Wanted::Rate, ("--first-rate", "--max-rate"), first, max)
        }
    };
    if first > max {
        return Err(Failure::usage(format!("{} {first} is above {} {max}", flags.0, flags.1)));
    }
    Ok(Searched { wanted, first, max })
}

/// Refuses to search the threads of a workload whose sessions arrive by themselves.
fn refuse_arrivals(wanted: Wanted, spec: &Spec) -> Result<(), Failure> {
    match wanted.unit() {
        Unit::Threads if spec.arrivals.is_some() => Err(Failure::usage(format!(
            "{} has [arrivals]: its sessions start at their due times (open loop), so the load does not depend on \
             threads; use `encore rate --by rate`, or remove [arrivals]",
            spec.name
        ))),
        Unit::Threads | Unit::SessionsPerS => Ok(()),
    }
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
