//! Comparisons that measure, with made-up stores.

use schemas::comparison::{Measurement, Outcome, Question};
use schemas::plan::Limit;
use schemas::verdict::{Figures, OperationFigures, Ruling, TransactionFigures, Verdict};
use schemas::workload::social::SocialWorkload;

use super::*;
use crate::run::single::Single;

/// The two stores at two numbers of threads.
const MEASURED: &str = r#"
name = "sizes"
title = "Unpredictable reads by <threads>"
spec = "specs/t.toml"
sla = "95% < 100ms, 0.1% unpredictable, 1s"
measure = "unpredictable"
warmup = "5"

[axis]
label = "threads"
points = [{ label = "T=1", threads = 1 }, { label = "T=10", threads = 10, set = ["data.image_bytes=2048"] }]

[[stores]]
label = "fast"
url = "memory:?latency_us=100"

[[stores]]
label = "slow"
url = "memory:?latency_us=900"
"#;

/// What an experiment shows: its ruling, its throughput, its unpredictable reads and all its
/// reads, and the reason.
type Showing = (Ruling, f64, (u64, u64), &'static str);

/// Compares with made-up stores: `outcome` gives what a cell's experiment shows, by its run
/// folder.
fn measure(
    plans: &PlanFolder,
    change: impl FnOnce(&mut CompareArgs),
    outcome: impl Fn(&str) -> Result<Showing, Failure>,
) -> (Result<ComparisonDocument, Failure>, Vec<String>) {
    let comparison = plans.resolved(change).unwrap();
    let mut measured = Vec::new();
    let mut perform = |job: Job| {
        let Job::Measure(single) = job else { panic!("{job:?}") };
        measured.push(single.setting.name.clone());
        let outcome = outcome(&single.setting.name);
        let state = if outcome.is_ok() { RunState::Complete } else { RunState::Interrupted };
        let run = leave_run(&single.setting, state)?;
        // The trace ran out in the first experiment, as happens.
        let void = verdict(&single, (Ruling::Void, 0.0, (0, 0), "the trace ran out"));
        files::write_json(&run.experiment(1, single.threads).verdict(), &void)?;
        let found = verdict(&single, outcome?);
        files::write_json(&run.experiment(2, single.threads).verdict(), &found)?;
        Ok(Finding::Measured(Box::new(found)))
    };
    (conduct::conduct(&comparison, &mut perform, &|line| plans.hear(line)), measured)
}

fn verdict(single: &Single, (ruling, throughput_per_s, (unpredictable_reads, reads), reason): Showing) -> Verdict {
    Verdict {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 2,
        threads: single.threads,
        rate_per_s: None,
        sla: single.setting.sla,
        ruling,
        reasons: if reason.is_empty() { Vec::new() } else { vec![reason.to_string()] },
        figures: Figures {
            throughput_per_s,
            within_beta_percent: if throughput_per_s > 0.0 { 99.87 } else { 0.0 },
            reads,
            unpredictable_reads,
            unpredictable_percent: unpredictable_reads as f64 * 100.0 / reads.max(1) as f64,
            ..Figures::default()
        },
        replayers: Vec::new(),
        sealed: Vec::new(),
    }
}

fn good(throughput_per_s: f64) -> Result<Showing, Failure> {
    Ok((Ruling::Pass, throughput_per_s, (0, 1000), ""))
}

/// One cell passes, one misses the SLA, one is void and one showed nothing.
fn all_kinds(name: &str) -> Result<Showing, Failure> {
    Ok(match name {
        "t-1-fast" => (Ruling::Pass, 1234.0, (13, 100_000), ""),
        "t-1-slow" => (Ruling::Fail, 98.7, (250, 10_000), "2.5% of reads unpredictable, at most 0.1% allowed"),
        "t-10-fast" => (Ruling::Void, 9876.0, (1, 100_000), "client CPU full"),
        _ => (Ruling::Void, 0.0, (0, 0), "the store was not in the state that it starts from"),
    })
}

#[test]
fn every_cell_is_one_experiment() {
    let plans = PlanFolder::new(MEASURED);
    let comparison = plans.resolved(|_| ()).unwrap();
    let experiments: Vec<(&str, u32, Limit, u32)> = comparison
        .cells
        .iter()
        .map(|cell| {
            let Job::Measure(single) = &cell.job else { panic!("{cell:?}") };
            let social: SocialWorkload = single.setting.source.spec().workload().unwrap();
            let image_bytes = social.data.image_bytes;
            (cell.run.as_str(), single.threads, single.limit, image_bytes)
        })
        .collect();
    let limit = Limit::DurationS(1.0);
    assert_eq!(
        experiments,
        [
            ("t-1-fast", 1, limit, 0),
            ("t-1-slow", 1, limit, 0),
            ("t-10-fast", 10, limit, 2048),
            ("t-10-slow", 10, limit, 2048)
        ]
    );
    let setting = comparison.cells[3].job.setting();
    assert_eq!(setting.warmup, schemas::plan::Warmup::Sessions(5));
    assert_eq!((setting.sla.tau_percent, setting.folder.clone()), (0.1, plans.folder().root().join("t-10-slow")));
    // `encore run` checks the words of the plan.
    let wrong = MEASURED.replace("warmup = \"5\"", "warmup = \"much\"");
    let searched = PlanFolder::new(MEASURED).resolved(|args| args.max_threads = Some(8)).unwrap_err().to_string();
    assert!(searched.contains("--max-threads: ") && searched.contains("searches nothing"), "{searched}");
    let error = PlanFolder::new(&wrong).resolved(|_| ()).unwrap_err().to_string();
    assert!(error.contains("plan.toml: invalid for `encore run`: invalid value 'much'"), "{error}");
}

#[test]
fn tables_and_files_show_what_was_measured() {
    let plans = PlanFolder::new(MEASURED);
    let (ended, measured) = measure(&plans, |_| (), all_kinds);
    let document = ended.unwrap();
    assert_eq!(measured, ["t-1-fast", "t-1-slow", "t-10-fast", "t-10-slow"]);
    assert_eq!(document, plans.read());
    assert_eq!((document.state.clone(), exit_code(&document)), (RunState::Complete, 0));
    assert!(matches!(document.plan.question(), Question::Measure(_)));
    let said = plans.said.borrow();
    insta::assert_snapshot!("measured_said", plans.shown(&said.join("\n")));
    let markdown = std::fs::read_to_string(plans.folder().table()).unwrap();
    let (markdown, _) = markdown.rsplit_once("\nEncore ").unwrap();
    insta::assert_snapshot!("measured_markdown", markdown);
    insta::assert_snapshot!("measured_chart", std::fs::read_to_string(plans.folder().chart()).unwrap());
    let Chart::Lines(lines) = chart::of(&document) else { panic!("what is measured is lines") };
    assert!(lines.series[1].points[1].y.is_nan(), "an experiment that showed nothing has no point");
    assert_eq!(lines.series[0].points[1].mark, analyzer::chart::Mark::Hollow);
    // At the other point is only one value that is not void.
    assert_eq!(
        show::conclusions(&document, &show::tables(&document)[0]),
        [
            "threads T=1: the share of unpredictable reads is between 0.013% (fast) and 2.5% (slow), one measurement each."
        ]
    );
}

#[test]
fn what_is_asked_for_comes_first() {
    let plans = PlanFolder::new(&MEASURED.replace("\"unpredictable\"", "\"throughput\""));
    let (ended, _) = measure(&plans, |_| (), all_kinds);
    let Chart::Lines(lines) = chart::of(&ended.unwrap()) else { panic!("what is measured is lines") };
    assert_eq!((lines.y_label.as_str(), lines.series[0].points[0].y), ("Throughput (operations/s)", 1234.0));
    let said = plans.said.borrow().join("\n");
    let at = |title: &str| said.find(title).unwrap();
    assert!(
        at("Throughput (operations/s)\n") < at("Share within") && at("Share within") < at("Unpredictable reads (%)")
    );
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let plans = PlanFolder::new(MEASURED);
    let (ended, measured) = measure(
        &plans,
        |_| (),
        |name| match name {
            "t-10-fast" => Err(Failure::Interrupted { run: None }),
            _ => good(100.0),
        },
    );
    assert!(matches!(ended, Err(Failure::Interrupted { .. })));
    assert_eq!((measured.len(), plans.read().state), (3, RunState::Interrupted));
    let (ended, measured) = measure(&plans, |args| args.resume = true, |_| good(200.0));
    assert_eq!(measured, ["t-10-fast", "t-10-slow"]);
    let document = ended.unwrap();
    let throughputs: Vec<f64> = document
        .cells
        .iter()
        .map(|cell| match &cell.outcome {
            Outcome::Measured(Measurement { throughput_per_s, .. }) => *throughput_per_s,
            other => panic!("{}: {other:?}", cell.run),
        })
        .collect();
    assert_eq!((throughputs, document.state), (vec![100.0, 100.0, 200.0, 200.0], RunState::Complete));
    assert!(plans.said.borrow().iter().any(|line| line == "[1/4] T=1, fast: already measured"));
}

#[test]
fn a_cell_that_fails_is_exit_code_3_and_a_missed_agreement_is_not() {
    let plans = PlanFolder::new(MEASURED);
    let missed = |_: &str| Ok((Ruling::Fail, 5.0, (500, 1000), "50% of reads unpredictable"));
    let (ended, _) = measure(
        &plans,
        |_| (),
        |name| if name == "t-1-slow" { Err(Failure::tool("the store went away")) } else { missed(name) },
    );
    let document = ended.unwrap();
    assert_eq!((exit_code(&document), failures(&document)), (3, vec!["T=1, slow: the store went away".to_string()]));
    let (ended, measured) = measure(&plans, |args| args.resume = true, missed);
    assert_eq!((exit_code(&ended.unwrap()), measured), (0, vec!["t-1-slow".to_string()]));
}

/// One store at two numbers of threads, with and without transactions.
const TRANSACTED: &str = r#"
name = "sizes"
title = "Cost of transactions"
spec = "specs/t.toml"
sla = "95% < 100ms, 0.1% unpredictable, 1s"
measure = "throughput"
tries = 4

[axis]
label = "threads"
points = [{ label = "1", threads = 1 }, { label = "8", threads = 8 }]

[[stores]]
label = "with"
url = "memory:"

[[stores]]
label = "without"
url = "memory:"
transactions = "off"
"#;

/// With transactions, 1,000 operations a second less a tenth for each thread; without, 1,000.
fn transacted(single: &Single) -> Verdict {
    let used = single.setting.transactions.used;
    let share = if used { 1.0 - f64::from(single.threads) / 20.0 } else { 1.0 };
    let mut found = verdict(single, good(1_000.0 * share).unwrap());
    let times = |mean_ns: f64, p95_ns| OperationFigures { ok: 10, mean_ns, p95_ns, ..OperationFigures::default() };
    let figures = &mut found.figures;
    figures.by_operation.insert("read".into(), times(1_000_000.0, 2_000_000));
    let mut transactions = TransactionFigures { transactions: 10, tries: 10, ..TransactionFigures::default() };
    if used {
        figures.by_operation.insert("commit".into(), times(500_000.0, 900_000));
        (transactions.tries, transactions.committed, transactions.aborted) = (16, 10, 6);
    } else {
        transactions.best_effort = 10;
    }
    figures.transactions = Some(transactions);
    found
}

#[test]
fn what_transactions_cost_is_shown() {
    let plans = PlanFolder::new(TRANSACTED);
    let comparison = plans.resolved(|_| ()).unwrap();
    let asked: Vec<(bool, u16)> = comparison
        .cells
        .iter()
        .map(|cell| cell.job.setting().transactions)
        .map(|transactions| (transactions.used, transactions.tries))
        .collect();
    assert_eq!(asked, [(true, 4), (false, 4), (true, 4), (false, 4)]);
    let mut perform = |job: Job| {
        let Job::Measure(single) = job else { panic!("{job:?}") };
        let run = leave_run(&single.setting, RunState::Complete)?;
        let found = transacted(&single);
        files::write_json(&run.experiment(2, single.threads).verdict(), &found)?;
        Ok(Finding::Measured(Box::new(found)))
    };
    let document = conduct::conduct(&comparison, &mut perform, &|line| plans.hear(line)).unwrap();
    let tables = transactions::tables(&document);
    let [shares, times, rolled_back] = tables.as_slice() else { panic!("{tables:?}") };
    let texts = |rows: &[&[&str]]| {
        rows.iter().map(|row| row.iter().map(|text| text.to_string()).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(shares.header, ["threads", "with"]);
    assert_eq!(shares.rows, texts(&[&["1", "95%"], &["8", "60%"]]));
    assert_eq!(times.header, ["threads", "operation", "with", "without"]);
    assert_eq!(times.rows[0][1..], texts(&[&["read", "1ms / 2ms", "1ms / 2ms"]])[0]);
    assert_eq!(times.rows[1][1..], texts(&[&["commit", "500us / 900us", "-"]])[0]);
    assert_eq!(rolled_back.rows[1], texts(&[&["8", "37.5%", "best effort"]])[0]);
    let chart = transactions::chart_of_shares(&document).unwrap();
    let values: Vec<f64> = chart.series[0].points.iter().map(|point| point.y).collect();
    assert_eq!((chart.series.len(), values), (1, vec![95.0, 60.0]));
    assert!(plans.folder().chart_of_transactions().exists());
    let said = plans.said.borrow().join("\n");
    let markdown = std::fs::read_to_string(plans.folder().table()).unwrap();
    let page = std::fs::read_to_string(plans.folder().page()).unwrap();
    for title in [shares.title, times.title, rolled_back.title] {
        assert!([&said, &markdown, &page].iter().all(|text| text.contains(title)), "{title}");
    }
    // A comparison of a workload without transactions says nothing of them.
    let (ended, _) = measure(&PlanFolder::new(MEASURED), |_| (), all_kinds);
    let document = ended.unwrap();
    assert_eq!((transactions::tables(&document), transactions::chart_of_shares(&document)), (Vec::new(), None));
}
