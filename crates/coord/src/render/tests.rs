use analyzer::html::quoted;
use clap::{CommandFactory, Parser};
use schemas::run::Purpose;
use schemas::sla::Sla;
use schemas::verdict::Ruling;

use schemas::verdict::{Between, Interval, Rating, RatingDocument, RatingParameters};

use super::rows::percent;
use super::testing::{manifest, trial};
use super::*;
use crate::args::{Command, CommandLine, DEFAULT_RETRIES, RateArgs};
use crate::resolve::Surroundings;

/// A text as a pipe gets it.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// The rows of trace sets with this many operations in 1,000 sessions.
fn table(operations: u64) -> String {
    let rows = Rows::new(&Sla::default(), &manifest(1000, operations));
    let trials = [
        trial(1, 1, 23_451.4, Ruling::Pass, Purpose::Search),
        trial(12, 256, 1_234_567.0, Ruling::Fail, Purpose::Search),
        trial(13, 8, 23_000.0, Ruling::Pass, Purpose::Final("SoAR".into())),
        trial(14, 256, 5.0, Ruling::Void, Purpose::Final("Socialites".into())),
    ];
    let rows = std::iter::once(rows.heading()).chain(trials.iter().map(|t| plain(&rows.row(t))));
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn rows_line_up() {
    insta::assert_snapshot!(table(1000));
}

#[test]
fn rows_show_sessions_where_they_have_several_actions() {
    insta::assert_snapshot!(table(4000));
}

#[test]
fn figures_by_action() {
    insta::assert_snapshot!(by_action(&trial(1, 1, 1.0, Ruling::Pass, Purpose::Single).verdict.figures));
}

fn parameters() -> RatingParameters {
    RatingParameters {
        search_s: vec![1.5],
        settled_search_s: 1.5,
        delta_check_percent: None,
        first_threads: 1,
        max_threads: 256,
        between: Between::Load,
        warmup_sessions: 0,
        unique_socialites: true,
    }
}

fn rating(value: f64, threads: u32, at_least: bool, confirmed_by: Option<u32>, notes: &[&str]) -> Rating {
    Rating {
        value,
        threads,
        interval: None,
        at_least,
        confirmed_by,
        unmeasured: false,
        rests_on: Vec::new(),
        rests_on_void: None,
        notes: notes.iter().map(|n| n.to_string()).collect(),
    }
}

#[test]
fn ratings_in_words() {
    let document = |soar, socialites| RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: Sla::default(),
        parameters: parameters(),
        soar: Some(soar),
        socialites: Some(socialites),
        experiments: Vec::new(),
    };
    let interval = |low, high| Some(Interval { low, high, basis: "spread".into() });
    let void = "upper bound not verified: experiment 7 (T=64) was void: client CPU full";
    let unmeasured = |why: Option<&str>| Rating {
        unmeasured: true,
        rests_on_void: why.map(String::from),
        ..rating(0.0, 0, false, None, &[])
    };
    let why = "nothing could be measured, because all 2 experiments were void: client CPU full";
    let texts = [
        ratings(&document(rating(23_451.2, 8, false, Some(19), &[]), rating(256.0, 256, true, Some(20), &[]))),
        ratings(&document(
            Rating { interval: interval(11_900.4, 12_700.0), ..rating(12_345.0, 16, false, Some(9), &[]) },
            Rating { interval: interval(15.0, 18.0), ..rating(16.0, 16, false, Some(9), &["a note"]) },
        )),
        ratings(&document(
            Rating { rests_on_void: Some(void.into()), ..rating(1000.0, 32, true, None, &["a note"]) },
            Rating {
                interval: interval(15.0, 18.0),
                rests_on_void: Some(void.into()),
                ..rating(16.0, 16, false, Some(9), &[])
            },
        )),
        ratings(&document(
            rating(0.0, 0, false, None, &[]),
            Rating { rests_on_void: Some(void.into()), ..rating(0.0, 0, false, None, &[]) },
        )),
        ratings(&document(unmeasured(Some(why)), unmeasured(None))),
    ];
    insta::assert_snapshot!(texts.join("---\n"));
}

/// What a rating is resolved against, in a folder with a trace set.
struct Place {
    folder: tempfile::TempDir,
    set: TraceSet,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t.trace");
        schemas::files::write_json(&trace.join(schemas::manifest::FILE_NAME), &manifest(1000, 1000).identified())
            .unwrap();
        std::fs::write(folder.path().join("token"), "hush").unwrap();
        Place { folder, set: TraceSet { folder: trace, manifest: manifest(1000, 1000) } }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The last lines that a rating prints when it was given these words and `--trace`, and
    /// its arguments.
    fn next(&self, words: &[&str]) -> (String, RateArgs) {
        let trace = self.path("t.trace");
        let line = ["coord", "rate", "--trace", &trace].into_iter().chain(words.iter().copied());
        let Command::Rate(args) = CommandLine::try_parse_from(line).unwrap().command else { panic!("not a rating") };
        let now = std::time::SystemTime::UNIX_EPOCH;
        let variables = [("PG".to_string(), "postgres://me:hush@db/x".to_string())].into();
        let around = Surroundings { home: None, now, command: Vec::new(), variables };
        let rating = crate::resolve::rating(&args, &around).unwrap();
        (next_commands(&rating, &rating.setting, &self.set), args)
    }
}

/// A flag was forgotten as often as one was added: every flag of `coord rate` is repeated, or
/// is one that a repetition has no use for.
#[test]
fn the_command_that_repeats_a_rating_has_every_flag() {
    let place = Place::new();
    let (runs, certs, token, trace) =
        (place.path("runs"), place.path("certs"), place.path("token"), place.path("t.trace"));
    let sla = "90% < 1s, 0.1% unpredictable, 20s";
    let typed: Vec<&str> = "--search-s 1,2.5 --max-threads 64 --first-threads 2 --rating soar --delta-check 10 \
        --between continue --exhaustive"
        .split_whitespace()
        .chain(["--trace", &trace, "--store", "memory:?stale=0.1", "--sla", sla, "--runs", &runs])
        .chain("--warmup 7 --monitor 5 --shared-socialites --workers 2".split_whitespace())
        .chain(["--replayer", "load1:7070", "--replayer", "[::1]:7071", "--certs", &certs, "--token-file", &token])
        .chain("--replayers 2 --calibrate --leave-logs --retries 5".split_whitespace())
        .collect();
    let without_trace: Vec<&str> = typed.iter().copied().filter(|word| *word != "--trace" && *word != trace).collect();
    let (commands, _) = place.next(&without_trace);
    let words: Vec<String> = typed.iter().map(|word| quoted(word)).collect();
    assert_eq!(commands.lines().last().unwrap().trim(), format!("./encore rate {}", words.join(" ")));
    let unrepeated = ["spec", "resume", "settings", "sessions", "name", "json", "quiet", "help"];
    let mut command = CommandLine::command();
    command.build();
    for flag in command.find_subcommand("rate").unwrap().get_arguments() {
        let is_repeated = flag.get_long().is_some_and(|long| typed.contains(&format!("--{long}").as_str()));
        let id = flag.get_id().as_str();
        assert!(is_repeated != unrepeated.contains(&id), "{id} is repeated: {is_repeated}");
    }
    // And what has a default is not said.
    let (commands, args) = place.next(&["--replayer", "load1:7070*2", "--store", "memory:"]);
    let last = commands.lines().last().unwrap().trim().to_string();
    let rest = "--store memory: --sla '95% < 100ms, 0.1% unpredictable, 10s' --replayer 'load1:7070*2'";
    assert_eq!(last, format!("./encore rate --search-s 1.5 --max-threads 256 --trace {trace} {rest}"));
    assert_eq!(args.workload.fleet.retries, DEFAULT_RETRIES);
}

/// `postgres://me:***@db/x` was printed as if it could log in.
#[test]
fn the_command_that_repeats_a_rating_pretends_no_password() {
    let place = Place::new();
    let (commands, _) = place.next(&["--store", "postgres://me:hush@db/x"]);
    let lines: Vec<&str> = commands.lines().rev().take(2).collect();
    assert!(lines[0].contains("--store '${ENCORE_STORE}'") && !lines[0].contains("***"), "{commands}");
    assert!(lines[1].trim().starts_with("export ENCORE_STORE='postgres://me:***@db/x'"), "{commands}");
    // A variable that was given stays one.
    let (commands, _) = place.next(&["--store", "${PG}?a=1"]);
    assert!(commands.contains("--store '${PG}?a=1'") && !commands.contains("export"), "{commands}");
    assert!(!commands.contains("hush"), "{commands}");
}

#[test]
fn the_command_that_repeats_a_rating_works_in_any_folder() {
    let place = Place::new();
    let here = std::env::current_dir().unwrap();
    let check = |typed: &[&str], expect: &str| {
        let (commands, _) = place.next(typed);
        let expect = expect.replace("HERE", &here.display().to_string());
        assert!(commands.ends_with(&expect), "{commands} lacks {expect}");
    };
    let sla = "--sla '95% < 100ms, 0.1% unpredictable, 10s'";
    check(&["--store", "sqlite:a.db?images=none"], &format!("--store 'sqlite:HERE/a.db?images=none' {sla}"));
    check(&["--store", "sqlite:/a.db"], &format!("--store sqlite:/a.db {sla}"));
    check(&["--runs", "elsewhere"], &format!("{sla} --runs HERE/elsewhere"));
    // The file is the replayer's, on its own machine.
    let remote = ["--store", "sqlite:a.db", "--replayer", "load1:7070", "--certs", "c"];
    check(&remote, &format!("--store sqlite:a.db {sla} --replayer load1:7070 --certs HERE/c"));
}

#[test]
fn percentages_are_not_rounded_over_an_edge() {
    for (value, expect) in [
        (100.0, "100%"),
        (99.9999, "99.999%"),
        (99.995, "99.995%"),
        (0.0, "0%"),
        (0.00001, "0.001%"),
        (0.1, "0.1%"),
        (0.007, "0.007%"),
        (93.25, "93.25%"),
    ] {
        assert_eq!(percent(value), expect);
    }
}

#[test]
fn numbers_and_words() {
    assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(quoted("runs/a-1"), "runs/a-1");
    assert_eq!(quoted("memory:?stale=1&x='"), r"'memory:?stale=1&x='\'''");
    assert_eq!(quoted(""), "''");
}

#[test]
fn help() {
    let mut command = CommandLine::command().term_width(100);
    insta::assert_snapshot!("help", command.render_long_help().to_string());
    for name in ["rate", "run", "simulate", "compare"] {
        let subcommand = command.find_subcommand_mut(name).unwrap();
        insta::assert_snapshot!(format!("help_{name}"), subcommand.render_help().to_string());
    }
}

/// A rating that would run into the limit of its trace says so before it starts.
#[test]
fn a_search_beyond_what_the_trace_keeps_busy_is_warned_of() {
    let mut manifest = testing::manifest(1_000, 1_000);
    manifest.statistics.socialites.active_threads_max = 542;
    assert_eq!(busy_at_most(&manifest, 542), None);
    let warning = busy_at_most(&manifest, 543).unwrap();
    assert!(warning.starts_with("warning: this trace keeps at most 542 threads busy"), "{warning}");
    assert!(warning.contains("(--max-threads)") && warning.contains("access.unique_window"), "{warning}");
}

/// Time without a session to run stands in the row of an experiment that passed, too.
#[test]
fn idle_threads_are_shown_in_the_row() {
    let manifest = testing::manifest(1_000, 1_000);
    let mut trial = testing::trial(3, 4, 100.0, Ruling::Pass, Purpose::Search);
    let rows = Rows::new(&Sla::default(), &manifest);
    assert!(!rows.row(&trial).contains("idle"));
    let report = trial.report.as_mut().unwrap();
    (report.counted_ns, report.idle_ns) = (1_000_000_000, 48_000_000);
    assert!(rows.row(&trial).contains(" (threads idle 1.2%)"), "{}", rows.row(&trial));
}
