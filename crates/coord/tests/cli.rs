//! The program as a user calls it: what it refuses, and with which exit code.

use std::path::Path;
use std::process::{Command, Output};

const SPEC: &str = "name = \"t\"\nsessions = 10\n[data]\nmembers = 100\n[mix]\nview_profile = 1\n";

fn encore(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_encore"));
    command.args(args).current_dir(folder).output().unwrap()
}

/// Checks that the program refuses the arguments with one message and leaves nothing behind.
fn check(args: &[&str], expect: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let output = encore(folder.path(), args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(error.starts_with("error: ") && error.contains(expect), "{args:?}: {error:?} lacks {expect:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{args:?} left files");
}

#[test]
fn wrong_usage_and_input_exit_with_2() {
    check(&["run", "t.toml", "--threads", "0"], "0 is not in 1..");
    check(&["rate", "t.toml", "--sla", "95 < 100ms"], "\"95\" is not a percentage");
    check(&["rate", "t.toml", "--max-threads", "0"], "0 is not in 1..");
    check(&["rate", "none.toml"], "none.toml: No such file");
    check(&["rate", "t.toml", "--set", "data.membres=1"], "membres");
    check(&["rate", "--trace", "none.trace"], "is this a trace set?");
    check(&["run", "t.toml", "--threads", "1", "--duration", "1s", "--sessions", "1"], "cannot be used with");
    check(&["rate", "t.toml", "--store", "null:"], "use it with `encore run`");
    check(&["rate", "t.toml", "--search-s", "1,0"], "--search-s 0 is out of range");
    check(&["rate", "t.toml", "--rating", "best"], "possible values: soar, socialites, both");
    check(&["run", "t.toml", "--threads", "1", "--warmup", "100%"], "\"100%\" is not a warm-up");
    check(&["run", "t.toml", "--threads", "1", "--duration", "2s", "--monitor", "2"], "no line would be printed");
    check(&["rate", "t.toml", "--by", "rate", "--max-threads", "9"], "--max-threads is for a rating by threads");
    check(&["rate", "t.toml", "--max-rate", "9"], "--max-rate is for a rating by arrival rate; add --by rate");
    check(&["rate", "t.toml", "--by", "rate", "--overload", "wait"], "use queue, skip or stop");
    check(&["simulate", "--curve", "mmc", "--peaks", "9"], "--peaks is for a rating by threads");
    check(&["simulate", "--noise", "99"], "--noise 99 is not a percentage");
    check(&["simulate", "--curve", "cubic"], "invalid value 'cubic'");
    check(&["fly"], "unrecognized subcommand 'fly'");
}

#[test]
fn a_store_that_cannot_be_opened_leaves_no_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let output = encore(folder.path(), &["run", "t.toml", "--threads", "1", "--store", "nosuch:x", "--name", "a"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("nosuch"), "{error}");
    assert!(!folder.path().join("runs/a").exists());
}

/// What the program prints for these arguments.
fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn every_part_of_the_program_has_one_name() {
    let folder = tempfile::tempdir().unwrap();
    let whole = env!("CARGO_BIN_EXE_encore");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed(whole, &["--version"]), format!("encore {version}\n"));
    for part in ["trace", "replay", "analyze", "rate", "compare", "run", "certs", "collect", "simulate"] {
        let help = printed(whole, &[part, "--help"]);
        assert!(help.contains(&format!("Usage: encore {part}")), "{part}: {help}");
        for alone in ["coord ", "tracegen ", "replayer run", "analyzer "] {
            assert!(!help.contains(alone), "{part} speaks of {alone}: {help}");
        }
    }
    let error = printed(whole, &["trace", "show", &folder.path().join("no.trace").display().to_string()]);
    assert!(error.contains("Create one with `encore trace gen`"), "{error}");
}

/// A user who installed the coordinator alone types `coord`.
#[test]
fn a_tool_that_is_installed_by_itself_has_its_own_name() {
    let alone = env!("CARGO_BIN_EXE_coord");
    let help = printed(alone, &["rate", "--help"]);
    assert!(help.contains("Usage: coord rate") && help.contains("  coord rate --resume"), "{help}");
    assert!(help.contains("`replayer serve`") && !help.contains("encore rate"), "{help}");
    assert!(printed(alone, &["analyze", "sql", "--help"]).contains("Usage: analyzer sql"));
    assert!(printed(alone, &["rate", "none.toml", "--store", "null:"]).starts_with("error: "));
}

#[test]
fn a_simulation_needs_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let output = encore(folder.path(), &["simulate", "--peaks", "500,100000000", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["cases"].as_array().unwrap().len(), 2);
    assert!(printed["cases"][1]["soar"]["unique_experiments"].as_u64().unwrap() <= 25);
    let output = encore(folder.path(), &["simulate", "--peak", "500"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with("SoAR (operations/s)\n"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_small_rating_fills_its_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let args =
        ["rate", "t.toml", "--store", "memory:?latency_us=500", "--sla", "50% < 10s, 0.2s", "--name", "a", "--json"];
    let search = ["--search-s", "0.05,0.1", "--max-threads", "2", "--rating", "socialites", "--delta-check", "90"];
    let output = encore(folder.path(), &[&args[..], &search, &["--shared-actors"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{error}");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = schemas::run::RunFolder::new(folder.path().join("runs/a"));
    let kept: serde_json::Value = schemas::files::read_json(&run.rating()).unwrap();
    assert_eq!(printed, kept);
    assert_eq!(run.read_document().unwrap().state, schemas::run::RunState::Complete);
    // Ten sessions are too few: the trace was extended on the way.
    let manifest = schemas::manifest::Manifest::read(&folder.path().join("runs/traces/t.trace")).unwrap();
    assert!(manifest.sessions() > 10);
    let experiments = run.experiments().unwrap();
    assert_eq!(experiments.len(), kept["experiments"].as_array().unwrap().len());
    for (number, experiment) in experiments {
        for file in [experiment.plan(), experiment.report(), experiment.verdict(), experiment.log(0)] {
            assert!(file.exists(), "experiment {number} has no {}", file.display());
        }
    }
    assert!(kept["soar"].is_null());
    // On a busy machine experiments this short may be void; then the rating says so.
    let rests_on_void = !kept["socialites"]["rests_on_void"].is_null();
    assert!(rests_on_void || kept["socialites"]["threads"] == 2, "{}", kept["socialites"]);
    let parameters = &kept["parameters"];
    assert_eq!(parameters["search_s"], serde_json::json!([0.05, 0.1]));
    assert_eq!((&parameters["delta_check_percent"], &parameters["unique_actors"]), (&90.0.into(), &false.into()));
    let lines = |path| std::fs::read_to_string(path).unwrap().lines().map(String::from).collect::<Vec<_>>();
    let final_result = lines(run.bg_final_result());
    assert_eq!(final_result.len(), kept["experiments"].as_array().unwrap().len());
    for line in &final_result {
        assert_eq!((line.split(',').count(), line.split(',').nth(2)), (11, Some("Socialites")), "{line}");
    }
    assert_eq!(lines(run.bg_results()).len(), final_result.len());
}

/// The search varies the arrival rate, and every document of the run says so.
#[test]
fn a_rating_by_rate_fills_its_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let args = ["rate", "t.toml", "--store", "memory:", "--sla", "50% < 10s, 0.4s", "--name", "a", "--json"];
    let search = "--by rate --first-rate 100 --max-rate 400 --threads 4 --search-s 0.2 --overload queue";
    let search: Vec<&str> = search.split_whitespace().collect();
    let output = encore(folder.path(), &[&args[..], &search].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{error}");
    let rating: schemas::verdict::RatingDocument = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&rating.soar, &rating.socialites), (&None, &None));
    let limits = schemas::verdict::RateLimits { first_per_s: 100, max_per_s: 400 };
    assert_eq!((rating.parameters.rates, rating.parameters.max_threads), (Some(limits), 4));
    // On a busy machine experiments this short may be void; then the rating says so.
    let found = rating.rate.as_ref().expect("a rating by rate");
    assert!(
        found.rests_on_void.is_some() || (found.value, found.threads, found.at_least) == (400.0, 4, true),
        "{found:?}"
    );
    let run = schemas::run::RunFolder::new(folder.path().join("runs/a"));
    let first = &rating.experiments[0];
    assert_eq!((first.rate_per_s, first.threads), (Some(100.0), 4));
    for (number, experiment) in run.experiments().unwrap() {
        let plan: schemas::plan::Plan = schemas::files::read_json(&experiment.plan()).unwrap();
        let trial: schemas::run::TrialNote = schemas::files::read_json(&experiment.trial()).unwrap();
        let per_s = f64::from(trial.rate_per_s.expect("a rate"));
        let due = plan.open_loop.expect("an open loop").due;
        assert_eq!((due, plan.threads), (schemas::pace::Due::Even { per_s }, 4), "{number}");
        let verdict: schemas::verdict::Verdict = schemas::files::read_json(&experiment.verdict()).unwrap();
        assert_eq!(verdict.rate_per_s, Some(per_s), "{number}");
    }
    let page = std::fs::read_to_string(folder.path().join("runs/a/report.html")).unwrap();
    assert!(page.contains("Throughput by arrival rate") && !page.contains("Throughput by threads"));
    let bg = std::fs::read_to_string(run.bg_final_result()).unwrap();
    assert!(bg.lines().all(|line| line.split(',').nth(2) == Some("arrival rate")), "{bg}");
}

/// A workload whose sessions have due times keeps their course over time, as fast as the search asks.
#[test]
fn a_rating_by_rate_scales_the_due_times_of_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), format!("{SPEC}[arrivals]\nrate = 50\n")).unwrap();
    let args = ["rate", "t.toml", "--store", "memory:", "--sla", "50% < 10s, 0.4s", "--name", "a", "--json"];
    let search = ["--by", "rate", "--first-rate", "100", "--max-rate", "200", "--threads", "4", "--search-s", "0.2"];
    let output = encore(folder.path(), &[&args[..], &search].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{error}");
    let run = schemas::run::RunFolder::new(folder.path().join("runs/a"));
    let mut rates = Vec::new();
    for (number, experiment) in run.experiments().unwrap() {
        let plan: schemas::plan::Plan = schemas::files::read_json(&experiment.plan()).unwrap();
        let verdict: schemas::verdict::Verdict = schemas::files::read_json(&experiment.verdict()).unwrap();
        let rate_per_s = verdict.rate_per_s.expect("an open loop");
        let schemas::pace::Due::Trace { factor, .. } = plan.open_loop.expect("an open loop").due else {
            panic!("experiment {number} does not use the due times of the trace")
        };
        assert!((factor - rate_per_s / 50.0).abs() < 1e-6, "experiment {number}: {factor} for {rate_per_s}/s");
        rates.push(rate_per_s.round() as u32);
    }
    assert!(rates.len() >= 2 && rates[0] == 100, "{rates:?}");
    let output = encore(folder.path(), &["rate", "t.toml", "--store", "memory:"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("t has [arrivals]"), "{error}");
}

/// No operation ends within the time of an experiment, which says nothing about the SLA.
#[test]
fn a_rating_that_measures_nothing_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let args = ["rate", "t.toml", "--store", "memory:?latency_us=400000", "--sla", "50% < 10s, 0.1s", "--name", "a"];
    let output = encore(folder.path(), &[&args[..], &["--search-s", "0.05", "--max-threads", "2"]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for name in ["SoAR        ", "Socialites  "] {
        let line =
            format!("{name}nothing could be measured, because all 2 experiments were void: no operation succeeded");
        assert!(said.contains(&line), "{said}");
    }
    assert!(!said.contains("kept the SLA"), "{said}");
    let run = schemas::run::RunFolder::new(folder.path().join("runs/a"));
    let kept: serde_json::Value = schemas::files::read_json(&run.rating()).unwrap();
    for rating in [&kept["soar"], &kept["socialites"]] {
        assert_eq!((&rating["value"], &rating["unmeasured"]), (&0.0.into(), &true.into()), "{rating}");
    }
    let page = std::fs::read_to_string(folder.path().join("runs/a/report.html")).unwrap();
    assert!(page.contains("nothing could be measured, because all 2 experiments were void"), "{page}");
    let lines = std::fs::read_to_string(run.bg_final_result()).unwrap();
    assert!(lines.lines().count() == 2 && lines.lines().all(|line| line.ends_with(",0")), "{lines}");
}

/// Lines of `--monitor` are printed in a pipe too, beside the JSON object.
#[test]
fn a_running_experiment_is_monitored() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let args = ["run", "t.toml", "--store", "memory:?latency_us=500", "--sla", "50% < 10s", "--name", "a", "--json"];
    let output =
        encore(folder.path(), &[&args[..], &["--threads", "1", "--duration", "3s", "--monitor", "1"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.lines().any(|line| line.contains("/s  p95") && line.contains("errors 0")), "{said:?}");
    let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["threads"], 1, "{said}");
}

#[test]
fn a_run_that_ends_with_its_sessions_says_that_it_was_short() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let output = encore(folder.path(), &["run", "t.toml", "--store", "memory:", "--threads", "1", "--sessions", "5"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("before the SLA's 10 s; the verdict covers only that time"), "{text}");
}

/// Each experiment continues the trace where the last one stopped, and the store is in the state
/// that the trace expects. So no experiment is refused, and no read is unpredictable.
#[test]
fn a_continued_rating_goes_through_the_trace_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    let args = ["rate", "t.toml", "--set", "mix.invite_friend=0.2", "--sla", "50% < 10s, 0.3s", "--name", "a"];
    let search = ["--between", "continue", "--warmup", "5", "--search-s", "0.1", "--max-threads", "2", "--json"];
    let output = encore(folder.path(), &[&args[..], &search].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{error}");
    let rating: schemas::verdict::RatingDocument = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rating.parameters.between, schemas::verdict::Between::Continue);
    assert_eq!(rating.parameters.warmup_sessions, 5);
    let run = schemas::run::RunFolder::new(folder.path().join("runs/a"));
    let mut expected = 0;
    for (number, experiment) in run.experiments().unwrap() {
        let plan: schemas::plan::Plan = schemas::files::read_json(&experiment.plan()).unwrap();
        let report: schemas::run::ReplayReport = schemas::files::read_json(&experiment.report()).unwrap();
        assert_eq!((plan.fragments[0].first_session, plan.fragments[0].warmup_sessions), (expected, 5), "{number}");
        expected = report.positions[0].next_session;
        let verdict: schemas::verdict::Verdict = schemas::files::read_json(&experiment.verdict()).unwrap();
        assert_eq!(verdict.figures.unpredictable_reads, 0, "{number}");
    }
    assert!(expected > 10 && rating.experiments.len() > 2, "{rating:?}");
}
