use clap::Parser;

use super::*;
use crate::cli::args::{Command, CommandLine, SimulateArgs};
use crate::cli::resolve::{Simulated, simulation};
use crate::failure::Failure;

fn args(words: &str) -> SimulateArgs {
    let words = ["encore", "simulate"].into_iter().chain(words.split_whitespace());
    match CommandLine::try_parse_from(words).unwrap().command {
        Command::Simulate(args) => args,
        other => panic!("{other:?}"),
    }
}

fn simulated(words: &str) -> Simulation {
    match simulation(&args(words)).unwrap() {
        Simulated::Threads(setup) => simulate(&setup),
        Simulated::Rate(setup) => panic!("{setup:?}"),
    }
}

fn print(words: &str) -> String {
    table(&simulated(words))
}

#[test]
fn figure_13() {
    insta::assert_snapshot!(print("--compare"));
}

#[test]
fn with_noise() {
    insta::assert_snapshot!(print("--noise 2 --seed 7 --compare"));
}

#[test]
fn queues_by_arrival_rate() {
    let Simulated::Rate(setup) = simulation(&args("--curve mmc --seed 7")).unwrap() else { panic!("a rate") };
    insta::assert_snapshot!(by_rate::table(&by_rate::simulate(setup)));
}

#[test]
fn the_sla_ends_first() {
    insta::assert_snapshot!(print("--curve square-root --peaks 500,1000000 --noise 1"));
    let one = print("--peak 5000 --sla-until 3000 --max-threads 4000 --resolution 0");
    insta::assert_snapshot!(one);
}

/// Checks that the search finds the peak within this share of it.
fn check(words: &str, within: f64) {
    let simulation = simulated(words);
    for case in &simulation.cases {
        let threads = case.store.best_threads(&simulation.limits);
        let truth = case.store.throughput_per_s(threads);
        // The T's around the true best T are no better.
        let last = case.store.last_threads(&simulation.limits);
        for other in [threads.saturating_sub(1), threads.saturating_add(1).min(last), last / 2, last] {
            assert!(case.store.throughput_per_s(other) <= truth, "{words}: {other} is better than {threads}");
        }
        let found = case.soar.found.throughput_per_s;
        assert!((found / truth - 1.0).abs() <= within, "{words}: {found} of {truth}");
    }
}

#[test]
fn finds_what_the_formula_says() {
    check("", 0.01);
    check("--curve saturating", 0.05);
    check("--curve square-root --resolution 1", 0.01);
    check("--peaks 777 --sla-until 1000 --resolution 0", 0.0);
    check("--peaks 500 --max-threads 64", 0.0);
    check("--peaks 500 --first-threads 300", 0.01);
}

#[test]
fn the_document_says_the_same() {
    let simulation = simulated("--peak 500 --sla-until 1200 --compare");
    let json = document(&simulation);
    let case = &json["cases"][0];
    assert_eq!((&case["true_soar_threads"], &case["true_socialites_threads"]), (&1000.into(), &1200.into()));
    assert_eq!(case["soar"]["unique_experiments"], simulation.cases[0].soar.unique);
    assert_eq!(case["soar"]["value"], simulation.cases[0].soar.found.throughput_per_s);
    assert!(case["socialites"]["error_share"].as_f64().unwrap().abs() <= 0.05);
    assert!(case["doubling"]["unique_experiments"].as_u64() > case["soar"]["unique_experiments"].as_u64());
}

#[test]
fn invalid_arguments_are_refused() {
    let check = |words: &str, expect: &str| {
        let error = simulation(&args(words)).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)) && error.to_string().contains(expect), "{error} lacks {expect}");
    };
    check("--noise 51", "--noise 51 is not a percentage from 0 to 50");
    check("--noise=-1", "--noise -1");
    check("--resolution NaN", "--resolution NaN");
    check("--peaks 500,0", "--peaks 0 is not a throughput");
    check("--peaks inf", "--peaks inf");
    check("--servers 4", "--servers is for a queue; add --curve mmc");
    check("--curve mmc --peaks 500", "--peaks is for a rating by threads");
    check("--curve mmc --noise 2", "--noise is for a rating by threads");
    check("--curve mmc --service-rate 0", "--service-rate 0 is out of range");
    check("--curve mmc --search-s=-1", "--search-s -1 is out of range");
    check("--curve mmc --first-rate 9 --max-rate 8", "--first-rate 9 is above --max-rate 8");
    check("--first-threads 9 --max-threads 8", "--first-threads 9 is above --max-threads 8");
    assert!(CommandLine::try_parse_from(["encore", "simulate", "--max-threads", "2000000000"]).is_err());
}
