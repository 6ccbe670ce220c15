use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use replayer::cli::pace::PaceArgs;
use schemas::pace::Overload;
use schemas::pace_request::PaceRequest;
use schemas::plan::{Limit, Warmup};
use schemas::sla::Sla;
use schemas::verdict::{Between, RateLimits};
use schemas::workload::kv::KvWorkload;
use schemas::workload::social::SocialWorkload;

use super::*;
use crate::cli::args::{By, RateArgs, RunArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::rate::{Method, Rating, Wanted};

const SPEC: &str = "name = \"t\"\nsessions = 10\n[data]\nmembers = 100\n[mix]\nview_profile = 1\n";

fn invocation() -> Invocation {
    let command = vec!["encore".into(), "rate".into(), "--store".into(), "postgres://me:hush@db/x".into()];
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    Invocation { now, command, variables: BTreeMap::new() }
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("t.toml"), SPEC).unwrap();
    home
}

fn args(home: &Path) -> RateArgs {
    let workload = WorkloadArgs { runs: home.join("runs"), workers: 1, ..WorkloadArgs::default() };
    let spec = Some(home.join("t.toml"));
    RateArgs { spec, workload, ..RateArgs::default() }
}

/// Checks that the changed arguments are refused with this message.
fn check(change: impl FnOnce(&mut RateArgs, &Path), expect: &str) {
    let home = home();
    let mut args = args(home.path());
    change(&mut args, home.path());
    let error = rating(&args, &invocation()).unwrap_err();
    assert!(matches!(error, Failure::Usage(_)), "{error:?}");
    assert!(error.to_string().contains(expect), "{error} lacks {expect:?}");
}

#[test]
fn defaults() {
    let home = home();
    let rating = rating(&args(home.path()), &invocation()).unwrap();
    assert_eq!(rating.setting.name, "t-20270115-080000");
    assert_eq!(rating.setting.folder, home.path().join("runs/t-20270115-080000"));
    assert_eq!(rating.setting.store, format!("sqlite:{}/store.db", rating.setting.folder.display()));
    assert_eq!(
        (rating.setting.sla, rating.deltas.search_s, rating.method),
        (Sla::default(), vec![1.5], Method::Heuristic)
    );
    assert_eq!(rating.setting.source.spec().sessions, 10);
    assert_eq!(rating.setting.command[3], "postgres://me:***@db/x");
}

#[test]
fn a_taken_name_is_counted_up_or_refused() {
    let home = home();
    std::fs::create_dir_all(home.path().join("runs/t-20270115-080000")).unwrap();
    let rating = rating(&args(home.path()), &invocation()).unwrap();
    assert_eq!(rating.setting.name, "t-20270115-080000-2");
    check(
        |args, home| {
            std::fs::create_dir_all(home.join("runs/mine")).unwrap();
            args.workload.name = Some("mine".into());
        },
        "runs/mine: exists already",
    );
}

/// The workload is built into the program, so no file is needed.
#[test]
fn the_quickstart_workload_is_built_in() {
    let home = home();
    let args = RateArgs { spec: None, ..args(home.path()) };
    let rating = rating(&args, &invocation()).unwrap();
    let spec = rating.setting.source.spec();
    assert_eq!(spec.name, "quickstart");
    assert_eq!((Some(rating.setting.sla), rating.setting.sla == Sla::default()), (spec.sla, false), "its own SLA");
}

#[test]
fn settings_and_sessions_change_the_spec() {
    let home = home();
    let mut args = args(home.path());
    args.workload.settings = vec!["data.members=50".into()];
    args.sessions = Some(77);
    args.workload.sla = Some("99% < 5ms, 1s".parse().unwrap());
    let rating = rating(&args, &invocation()).unwrap();
    let spec = rating.setting.source.spec();
    let social: SocialWorkload = spec.workload().unwrap();
    assert_eq!((social.data.members, spec.sessions, rating.deltas.search_s), (50, 77, vec![1.0]));
}

/// `--sessions` came after the keys that follow from the number of sessions.
#[test]
fn keys_that_follow_from_the_sessions_follow_the_flag() {
    let home = home();
    let mut args = args(home.path());
    let text = "name = 'k'\nfamily = 'kv'\nsessions = 5\n[data]\nrecords = 10\n[access]\ndistribution = 'zipfian'\n\
                [mix]\ninsert = 1\n";
    let path = home.path().join("k.toml");
    std::fs::write(&path, text).unwrap();
    (args.spec, args.sessions) = (Some(path), Some(77));
    let rating = rating(&args, &invocation()).unwrap();
    let kv: KvWorkload = rating.setting.source.spec().workload().unwrap();
    assert_eq!(kv.access.key_space, 10 + 2 * 77 + 1);
}

#[test]
fn parameters_of_a_rating_are_resolved() {
    let home = home();
    let mut args = args(home.path());
    args.search_s = vec![4.0, 1.0, 2.0, 1.0];
    args.delta_check = Some(10.0);
    args.between = Some(crate::cli::args::BetweenArg::Continue);
    args.workload.shared_actors = true;
    args.workload.warmup = Some(Warmup::Operations(5));
    let rating = rating(&args, &invocation()).unwrap();
    assert_eq!(rating.setting.warmup, Warmup::Operations(5));
    let parameters = rating.parameters(2.0, 7, 0);
    assert_eq!((parameters.search_s, parameters.settled_search_s), (vec![1.0, 2.0, 4.0], 2.0));
    assert_eq!((parameters.delta_check_percent, parameters.between), (Some(10.0), Between::Continue));
    assert_eq!((parameters.warmup_sessions, parameters.unique_actors), (7, false));
}

#[test]
fn a_rating_by_rate_searches_rates_with_fixed_threads() {
    let home = home();
    let by_rate = RateArgs { by: By::Rate, ..args(home.path()) };
    let of = |args: &RateArgs| {
        let Rating { wanted, limits, threads, setting, .. } = rating(args, &invocation()).unwrap();
        (wanted, limits.first_load, limits.max_load, threads, setting.by_rate, setting.pace.overload)
    };
    assert_eq!(of(&by_rate), (Wanted::Rate, 100, 1_000_000, None, true, None));
    let low = RateArgs { max_rate: Some(20), overload: Some(Overload::Stop), threads: Some(7), ..by_rate.clone() };
    assert_eq!(of(&low), (Wanted::Rate, 20, 20, Some(7), true, Some(Overload::Stop)));
    assert_eq!(of(&args(home.path())), (Wanted::Both, 1, 256, None, false, None));
    let parameters = rating(&by_rate, &invocation()).unwrap().parameters(1.5, 0, 64);
    let rates = RateLimits { first_per_s: 100, max_per_s: 1_000_000 };
    assert_eq!((parameters.rates, parameters.first_threads, parameters.max_threads), (Some(rates), 64, 64));
}

/// A flag of the other search would be ignored, which no user wants.
#[test]
fn flags_of_the_other_search_are_refused() {
    let of_threads = "is for a rating by threads; remove it, or remove --by rate";
    let by_rate = |change: fn(&mut RateArgs), flag: &str| {
        check(
            |args, _| {
                args.by = By::Rate;
                change(args);
            },
            &format!("{flag} {of_threads}"),
        );
    };
    by_rate(|args| args.max_threads = Some(9), "--max-threads");
    by_rate(|args| args.first_threads = Some(9), "--first-threads");
    by_rate(|args| args.rating = Wanted::Soar, "--rating");
    by_rate(|args| args.exhaustive = true, "--exhaustive");
    by_rate(|args| args.delta_check = Some(9.0), "--delta-check");
    let of_rate = "is for a rating by arrival rate; add --by rate, or remove it";
    let by_threads =
        |change: fn(&mut RateArgs), flag: &str| check(|args, _| change(args), &format!("{flag} {of_rate}"));
    by_threads(|args| args.max_rate = Some(9), "--max-rate");
    by_threads(|args| args.first_rate = Some(9), "--first-rate");
    by_threads(|args| args.threads = Some(9), "--threads");
    by_threads(|args| args.overload = Some(Overload::Skip), "--overload");
    check(
        |args, _| (args.by, args.first_rate, args.max_rate) = (By::Rate, Some(9), Some(8)),
        "--first-rate 9 is above --max-rate 8",
    );
    check(
        |args, home| {
            let spec = format!("{SPEC}[arrivals]\nrate = 5\n");
            std::fs::write(home.join("t.toml"), spec).unwrap();
            args.by = By::Threads;
        },
        "t has [arrivals]: its sessions start at their due times",
    );
}

#[test]
fn invalid_arguments_are_refused() {
    check(|args, _| args.spec = Some("none.toml".into()), "none.toml: No such file");
    check(|args, _| args.workload.settings = vec!["data.membres=5".into()], "membres");
    check(|args, _| args.workload.name = Some("../x".into()), "--name \"../x\"");
    check(|args, _| args.workload.name = Some("traces".into()), "`traces` is reserved");
    check(|args, _| args.workload.store = Some("a.db".into()), "not a store URL");
    check(|args, _| args.first_threads = Some(300), "--first-threads 300 is above --max-threads 256");
    check(|args, _| args.search_s = vec![1.0, 0.0], "--search-s 0 is out of range");
    check(|args, _| args.search_s = vec![f64::NAN], "--search-s NaN is out of range");
    check(|args, _| args.delta_check = Some(0.0), "--delta-check 0 is out of range");
    check(|args, _| args.workload.monitor = Some(10.0), "--monitor 10 is not shorter than");
    check(|args, _| args.workload.store = Some("null:".into()), "use it with `encore run` or `encore replay run`");
    check(|args, home| args.workload.trace = Some(home.join("no.trace")), "is this a trace set?");
    check(|args, _| args.workload.workers = 99, "--workers: 99 workers need at least 99 fragments");
    check(|args, _| args.workload.fleet.count = Some(2), "add `--set fragments=2`");
    check(
        |args, home| {
            args.workload.trace = Some(home.join("no.trace"));
            args.sessions = Some(1);
        },
        "remove --sessions and --set",
    );
}

/// What contradicts itself or the workload is refused before anything starts.
#[test]
fn a_single_run_says_how_fast_sessions_start() {
    let home = home();
    let workload = args(home.path()).workload;
    let with = |arrivals: &str, pace: PaceArgs| {
        std::fs::write(home.path().join("t.toml"), format!("{SPEC}{arrivals}")).unwrap();
        let spec = Some(home.path().join("t.toml"));
        let args = RunArgs { spec, workload: workload.clone(), threads: 4, pace, ..RunArgs::default() };
        single(&args, &invocation()).map(|single| single.setting.pace)
    };
    let none = PaceArgs::default;
    assert_eq!(with("", none()).unwrap(), PaceRequest::default());
    assert_eq!(with("", PaceArgs { rate: Some(5.0), ..none() }).unwrap().rate, Some(5.0));
    let refused = |arrivals: &str, pace: PaceArgs, expect: &str| {
        let error = with(arrivals, pace).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)) && error.to_string().contains(expect), "{error} lacks {expect}");
    };
    refused("", PaceArgs { rate_factor: Some(2.0), ..none() }, "--rate-factor: trace t has no due times to scale");
    refused("", PaceArgs { overload: Some(Overload::Skip), ..none() }, "--overload: trace t has no due times");
    refused("", PaceArgs { rate: Some(5.0), target: Some(5.0), ..none() }, "--target and --rate exclude each other");
    let arrivals = "[arrivals]\nrate = 5\n";
    assert_eq!(with(arrivals, PaceArgs { rate_factor: Some(2.0), ..none() }).unwrap().rate_factor, Some(2.0));
    refused(arrivals, PaceArgs { rate: Some(5.0), ..none() }, "--rate: trace t has due times of its own");
    refused(arrivals, PaceArgs { target: Some(5.0), ..none() }, "--target: trace t has due times");
    let steps = Some("0s:2,9s:5".parse().unwrap());
    refused("", PaceArgs { threads_over_time: steps, ..none() }, "the step at 9 s has 5 threads, and --threads is 4");
}

#[test]
fn a_single_run_ends_at_its_limit() {
    let home = home();
    let workload = args(home.path()).workload;
    let spec = Some(home.path().join("t.toml"));
    let args = RunArgs { spec, workload, threads: 4, ..RunArgs::default() };
    let limit = |args: &RunArgs| {
        let single = single(args, &invocation()).unwrap();
        (single.limit, single.setting.sla.delta_s, single.setting.source.spec().sessions)
    };
    assert_eq!(limit(&args), (Limit::DurationS(10.0), 10.0, 10));
    assert_eq!(limit(&RunArgs { duration: Some(500_000_000), ..args.clone() }), (Limit::DurationS(0.5), 0.5, 10));
    assert_eq!(limit(&RunArgs { sessions: Some(30), ..args }), (Limit::Sessions(30), 10.0, 30));
}
