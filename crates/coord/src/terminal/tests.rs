use analyzer::html::quoted;
use schemas::run::Purpose;
use schemas::sla::Sla;
use schemas::verdict::{Between, Interval, Rating, RatingDocument, RatingParameters, Ruling, ServiceTimes, Verdict};

use super::testing::{manifest, report, verdict};
use super::*;
use crate::search::Unit;

/// A text without colours, as a pipe gets it.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// The table for a trace set with this many operations in 1,000 sessions.
fn table(operations: u64) -> String {
    let table = ExperimentTable::new(&Sla::default(), &manifest(1000, operations));
    let experiments = [
        (Purpose::Search, verdict(1, 1, 23_451.4, Ruling::Pass)),
        (Purpose::Search, verdict(12, 256, 1_234_567.0, Ruling::Fail)),
        (Purpose::Final("SoAR".into()), verdict(13, 8, 23_000.0, Ruling::Pass)),
        (Purpose::Final("Socialites".into()), verdict(14, 256, 5.0, Ruling::Void)),
    ];
    let row = |(purpose, verdict): &(Purpose, Verdict)| plain(&table.row(purpose, Some(&report()), verdict));
    let rows = std::iter::once(table.heading()).chain(experiments.iter().map(row));
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn rows_line_up() {
    insta::assert_snapshot!(table(1000));
}

#[test]
fn rows_show_sessions_where_they_have_several_operations() {
    let table = table(4000);
    insta::assert_snapshot!(table);
    let rows: Vec<&str> = table.lines().filter(|line| !line.starts_with("          ")).collect();
    assert!(rows.len() > 1 && rows.iter().all(|row| row.chars().count() <= 80), "{table}");
}

#[test]
fn rows_of_an_open_loop_show_the_rate() {
    let of = |rate_per_s, operations_per_s| {
        let mut verdict = verdict(7, 64, operations_per_s, Ruling::Pass);
        verdict.rate_per_s = Some(rate_per_s);
        verdict
    };
    for operations in [1000, 4000] {
        let manifest = manifest(1000, operations);
        let table = ExperimentTable::new(&Sla::default(), &manifest).in_unit(Unit::SessionsPerS);
        let (heading, row) = (table.heading(), table.row(&Purpose::Search, None, &of(51_200.4, 51_199.0)));
        let row = plain(&row).lines().next().unwrap().to_string();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[..3], ["7", "51,200", "51,199"], "{heading}\n{row}");
        assert_eq!(heading.split_whitespace().nth(1), Some("due/s"));
        let end = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
        assert_eq!(end(&heading, "due/s"), end(&row, "51,200"), "{heading}\n{row}");
        assert!(heading.len() <= 80 && row.len() <= 80, "{heading}\n{row}");
    }
}

/// The table's times count from when sessions were due.
#[test]
fn service_times_stand_below_the_row_of_an_open_loop() {
    let mut of = verdict(7, 64, 100.0, Ruling::Pass);
    let service = ServiceTimes { p95_ns: 1_000_000, p99_ns: 2_000_000, max_ns: 3_000_000, ..ServiceTimes::default() };
    of.figures.overall.service = Some(service);
    let table = ExperimentTable::new(&Sla::default(), &manifest(1000, 1000)).in_unit(Unit::SessionsPerS);
    let row = plain(&table.row(&Purpose::Search, None, &of));
    let below = row.lines().nth(1).unwrap_or_default().trim();
    assert_eq!(below, "service time: p95 1ms, p99 2ms, max 3ms", "{row}");
}

#[test]
fn rows_without_operations_show_dashes() {
    let mut nothing = verdict(3, 8, 0.0, Ruling::Void);
    nothing.figures = schemas::verdict::Figures::default();
    let table = ExperimentTable::new(&Sla::default(), &manifest(1000, 1000));
    let row = plain(&table.row(&Purpose::Search, Some(&report()), &nothing));
    let cells: Vec<&str> = row.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(cells, ["3", "8", "-", "-", "-", "-", "-", "-", "void"]);
}

fn parameters() -> RatingParameters {
    RatingParameters {
        search_s: vec![1.5],
        settled_search_s: 1.5,
        delta_check_percent: None,
        first_threads: 1,
        max_threads: 256,
        rates: None,
        between: Between::Load,
        warmup_sessions: 0,
        unique_actors: true,
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
        rate: None,
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

#[test]
fn a_rating_by_rate_in_words() {
    let document = |rate| RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: Sla::default(),
        parameters: parameters(),
        soar: None,
        socialites: None,
        rate: Some(rate),
        experiments: Vec::new(),
    };
    let interval = Some(Interval { low: 5_600.0, high: 5_800.0, basis: "border".into() });
    let found = Rating { interval, ..rating(5_600.0, 64, false, Some(17), &["a note"]) };
    assert_eq!(
        ratings(&document(found)),
        "rate        5,600 sessions/s (5,600 to 5,800) with T=64 (confirmed by experiment 17)\n            note: a note\n"
    );
    let none = ratings(&document(rating(0.0, 0, false, None, &[])));
    assert_eq!(none, "rate        0: no arrival rate kept the SLA\n");
    assert_eq!(document(rating(0.0, 0, false, None, &[])).exit_code(), 1);
    assert_eq!(document(rating(9.0, 4, false, Some(1), &[])).exit_code(), 0);
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

/// A rating that may reach the limit of its trace says so before it starts.
#[test]
fn a_search_beyond_what_the_trace_keeps_busy_is_warned_of() {
    let mut manifest = testing::manifest(1_000, 1_000);
    manifest.active_threads_max = 542;
    assert_eq!(busy_at_most(&manifest, "--threads", 542), None);
    let warning = busy_at_most(&manifest, "--threads", 543).unwrap();
    assert!(warning.starts_with("warning: --threads 543 exceeds the 542 threads that this trace"), "{warning}");
    assert!(warning.contains("with more will be void") && warning.contains("access.unique_window"), "{warning}");
}

/// The row shows idle threads even if the experiment passed.
#[test]
fn idle_threads_are_shown_in_the_row() {
    let manifest = testing::manifest(1_000, 1_000);
    let (verdict, mut report) = (verdict(3, 4, 100.0, Ruling::Pass), report());
    let table = ExperimentTable::new(&Sla::default(), &manifest);
    assert!(!table.row(&Purpose::Search, Some(&report), &verdict).contains("idle"));
    (report.counted_ns, report.idle_ns) = (1_000_000_000, 48_000_000);
    let row = table.row(&Purpose::Search, Some(&report), &verdict);
    assert!(row.ends_with("\n          threads idle 1.2%"), "{row}");
}
