use analyzer::html::quoted;
use clap::{CommandFactory, Parser};
use schemas::run::Purpose;
use schemas::sla::Sla;
use schemas::verdict::Ruling;

use schemas::verdict::{Between, Interval, Rating, RatingDocument, RatingParameters};

use super::rows::percent;
use super::testing::{manifest, trial};
use super::*;
use crate::args::{Command, CommandLine};
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

/// Every parameter that was given is in the command that repeats the rating,
/// and the command is one that is understood.
#[test]
fn the_command_that_repeats_a_rating_has_its_parameters() {
    let typed = "rate --search-s 1,2.5 --max-threads 64 --first-threads 2 --rating soar --delta-check 10 \
                 --between continue --exhaustive";
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.trace");
    schemas::files::write_json(&trace.join(schemas::manifest::FILE_NAME), &manifest(1000, 1000)).unwrap();
    let shared = format!(
        "--trace {} --store memory: --sla '90% < 1s, 0.1% unpredictable, 20s' --runs {} --warmup 7 --monitor 5 \
         --shared-socialites --workers 2",
        trace.display(),
        folder.path().display()
    );
    let sla = "90% < 1s, 0.1% unpredictable, 20s";
    let mut words: Vec<&str> = shared.split('\'').collect();
    words[1] = sla;
    let shared_words = words.iter().enumerate().flat_map(|(place, part)| match place {
        1 => vec![*part],
        _ => part.split(' ').filter(|word| !word.is_empty()).collect(),
    });
    let line = std::iter::once("coord").chain(typed.split_whitespace()).chain(shared_words);
    let Command::Rate(args) = CommandLine::try_parse_from(line).unwrap().command else { panic!("not a rating") };
    let now = std::time::SystemTime::UNIX_EPOCH;
    let around = Surroundings { home: None, now, command: Vec::new(), variables: Default::default() };
    let rating = crate::resolve::rating(&args, &around).unwrap();
    let repeat = repeat_rate(&rating);
    assert_eq!(repeat.join(" "), typed);
    let set = TraceSet { folder: trace, manifest: manifest(1000, 1000) };
    let commands = next_commands(&rating.setting, &set, &repeat);
    assert_eq!(commands.lines().last().unwrap().trim(), format!("./encore {typed} {shared}"));
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
