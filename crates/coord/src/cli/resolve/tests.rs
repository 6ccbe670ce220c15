use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use schemas::plan::{Limit, Warmup};
use schemas::sla::Sla;
use schemas::verdict::Between;
use schemas::workload::kv::KvWorkload;
use schemas::workload::social::SocialWorkload;

use super::*;
use crate::cli::args::{RateArgs, RunArgs, WorkloadArgs};
use crate::failure::Failure;
use crate::rate::Method;

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
    RateArgs { spec, workload, first_threads: 1, max_threads: 256, ..RateArgs::default() }
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
    let parameters = rating.parameters(2.0, 7);
    assert_eq!((parameters.search_s, parameters.settled_search_s), (vec![1.0, 2.0, 4.0], 2.0));
    assert_eq!((parameters.delta_check_percent, parameters.between), (Some(10.0), Between::Continue));
    assert_eq!((parameters.warmup_sessions, parameters.unique_actors), (7, false));
}

#[test]
fn invalid_arguments_are_refused() {
    check(|args, _| args.spec = Some("none.toml".into()), "none.toml: No such file");
    check(|args, _| args.workload.settings = vec!["data.membres=5".into()], "membres");
    check(|args, _| args.workload.name = Some("../x".into()), "--name \"../x\"");
    check(|args, _| args.workload.name = Some("traces".into()), "`traces` is reserved");
    check(|args, _| args.workload.store = Some("a.db".into()), "not a store URL");
    check(|args, _| args.first_threads = 300, "--first-threads 300 is above --max-threads 256");
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
