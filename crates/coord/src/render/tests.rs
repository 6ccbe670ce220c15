use clap::CommandFactory;
use schemas::verdict::Ruling;

use super::testing::trial;
use schemas::verdict::{Between, RatingParameters};

use super::*;
use crate::args::CommandLine;

#[test]
fn rows_line_up() {
    let rows = [
        columns(&Sla::default()),
        row(&trial(1, 1, 23_451.4, Ruling::Pass, Purpose::Search)),
        row(&trial(12, 256, 1_234_567.0, Ruling::Fail, Purpose::Search)),
        row(&trial(13, 8, 23_000.0, Ruling::Pass, Purpose::Final("SoAR".into()))),
        row(&trial(14, 256, 5.0, Ruling::Void, Purpose::Final("Socialites".into()))),
    ];
    insta::assert_snapshot!(rows.join("\n"));
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
    let texts = [
        ratings(&document(rating(23_451.2, 8, false, Some(19), &[]), rating(256.0, 256, true, Some(20), &[]))),
        ratings(&document(
            rating(1000.0, 256, true, None, &["rests on void experiment 7 (T=64): client CPU full"]),
            rating(0.0, 0, false, None, &[]),
        )),
    ];
    insta::assert_snapshot!(texts.join("---\n"));
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
    for name in ["rate", "run", "compare"] {
        let subcommand = command.find_subcommand_mut(name).unwrap();
        insta::assert_snapshot!(format!("help_{name}"), subcommand.render_help().to_string());
    }
}
