//! `encore compare` as a user calls it, with real replayers and stores that take a known time for
//! each answer.

use std::path::Path;
use std::process::{Command, Output};

use schemas::comparison::{Cell, ComparisonDocument, Concern, Measurement, Outcome};
use schemas::run::{RunFolder, RunState};

const SPEC: &str = "name = \"t\"\nsessions = 4000\n[data]\nmembers = 60\nfriends_per_member = 4\n[mix]\n\
                    view_profile = 3\nlist_friends = 1\n";

const PLAN: &str = r#"
name = "pair"
title = "Two speeds"
spec = "t.toml"
sla = "50% < 10s, 0.3s"
search_s = 0.2
max_threads = 1

[axis]
label = "friends"
points = [{ label = "four" }, { label = "eight", set = ["data.friends_per_member=8"] }]

[[stores]]
label = "a millisecond"
url = "memory:?latency_us=1000"

[[stores]]
label = "twenty"
url = "memory:?latency_us=20000"
"#;

fn place(plan: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.toml"), SPEC).unwrap();
    std::fs::write(folder.path().join("pair.toml"), plan).unwrap();
    folder
}

fn compare(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_encore"));
    command.arg("compare").args(args).current_dir(folder);
    command.env_remove("ENCORE_TEST_STORE").output().unwrap()
}

fn said(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn two_stores_at_two_points() {
    let folder = place(PLAN);
    let output = compare(folder.path(), &["pair.toml"]);
    let (text, error) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{error}");
    for expected in ["[4/4] eight, twenty", "SoAR (operations/s)", "Socialites (threads)", "≥ 1"] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
    let home = folder.path().join("runs/pair");
    let document: ComparisonDocument = schemas::files::read_json(&home.join("comparison.json")).unwrap();
    assert_eq!(document.state, RunState::Complete);
    assert!(document.differences.iter().all(|d| d.concern == Concern::Other), "{:?}", document.differences);
    let soar: Vec<f64> = document
        .cells
        .iter()
        .map(|cell| match &cell.outcome {
            Outcome::Rated { soar: Some(soar), socialites: Some(socialites), rate: None } => {
                assert_eq!(socialites.value, 1.0);
                soar.value
            }
            other => panic!("{}: {other:?}", cell.run),
        })
        .collect();
    let folder_of = |cell: usize| RunFolder::new(home.join(&document.cells[cell].run));
    for (cell, latency_ns) in [1_000_000, 20_000_000, 1_000_000, 20_000_000].into_iter().enumerate() {
        // Each is the rating of its own store: one thread gets no more answers than its latency
        // allows.
        assert!(soar[cell] > 0.0 && soar[cell] <= 1e9 / latency_ns as f64, "{soar:?}");
        for (number, experiment) in folder_of(cell).experiments().unwrap() {
            let verdict: schemas::verdict::Verdict = schemas::files::read_json(&experiment.verdict()).unwrap();
            let p50_ns = verdict.figures.overall.p50_ns;
            assert!(verdict.figures.overall.ok == 0 || p50_ns >= latency_ns * 99 / 100, "{cell}, {number}: {p50_ns}");
        }
    }
    let run = |cell: usize| folder_of(cell).read_document().unwrap();
    assert_eq!(run(0).workload_id, run(1).workload_id);
    assert_eq!((run(0).trace.clone(), run(0).state), (run(1).trace, RunState::Complete));
    assert_ne!(run(0).workload_id, run(2).workload_id);
    assert!(home.join("comparison.md").exists() && home.join("comparison.svg").exists());
    let traces = std::fs::read_dir(folder.path().join("runs/traces")).unwrap().count();
    assert_eq!(traces, 2, "one trace set a point");

    // Nothing is left to do, and stdout has only the document.
    let again = compare(folder.path(), &["pair.toml", "--resume", "--json"]);
    let printed: ComparisonDocument = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((again.status.code(), printed.cells), (Some(0), document.cells));
    let refused = compare(folder.path(), &["pair.toml"]);
    assert_eq!((refused.status.code(), said(&refused).1.contains("--resume")), (Some(2), true));
}

/// Nearly half of the operations change what the others read. So the share of stale reads is far
/// above chance even in a hundred reads.
const WRITES: &str = "name = \"w\"\nsessions = 60000\n[data]\nmembers = 40\nfriends_per_member = 4\n\
                      pending_per_member = 10\n[mix]\nview_profile = 3\nview_friend_requests = 2\n\
                      invite_friend = 2\nreject_friend_request = 2\n";

const MEASURED: &str = r#"
name = "lies"
title = "Unpredictable reads by threads"
spec = "w.toml"
sla = "50% < 10s, 0.1% unpredictable, 1.5s"
measure = "unpredictable"
warmup = "1000"

[axis]
label = "threads"
points = [{ label = "1", threads = 1 }, { label = "4", threads = 4 }]

[[stores]]
label = "truthful"
url = "${ENCORE_TEST_STORE:-memory:?seed=1}?latency_us=200"

[[stores]]
label = "stale"
url = "${ENCORE_TEST_STORE:-memory:?seed=1}?latency_us=200&stale=0.2"

[[stores]]
label = "staler"
url = "${ENCORE_TEST_STORE:-memory:?seed=1}?latency_us=200&stale=0.9"
"#;

#[test]
fn a_staler_store_has_the_larger_share_of_unpredictable_reads() {
    let folder = place(PLAN);
    std::fs::write(folder.path().join("w.toml"), WRITES).unwrap();
    std::fs::write(folder.path().join("lies.toml"), MEASURED).unwrap();
    let output = compare(folder.path(), &["lies.toml"]);
    let (text, error) = said(&output);
    // Stores that return stale data miss the SLA. This comparison is made to show that, so the
    // exit code is 0.
    assert_eq!(output.status.code(), Some(0), "{text}{error}");
    for expected in [
        "[6/6] 4, staler: measuring",
        "Unpredictable reads (%)",
        "Throughput (operations/s)",
        "durability and isolation",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
    let home = folder.path().join("runs/lies");
    let read = || -> ComparisonDocument { schemas::files::read_json(&home.join("comparison.json")).unwrap() };
    let mut document = read();
    // A share of too few reads is chance. If a busy machine left no time for more, the cell is
    // measured again.
    let too_few = |cell: &Cell| matches!(&cell.outcome, Outcome::Measured(measured) if measured.reads < 100);
    while let Some(cell) = document.cells.iter().find(|cell| too_few(cell)) {
        std::fs::remove_dir_all(home.join(&cell.run)).unwrap();
        compare(folder.path(), &["lies.toml", "--resume"]);
        document = read();
    }
    assert_eq!(document.plan.stores[1].url, "memory:?seed=1&latency_us=200&stale=0.2");
    let measured: Vec<Measurement> = document
        .cells
        .iter()
        .map(|cell| match &cell.outcome {
            Outcome::Measured(measured) => measured.clone(),
            other => panic!("{}: {other:?}", cell.run),
        })
        .collect();
    for (point, threads) in measured.chunks(3).zip([1, 4]) {
        assert!(point.iter().all(|measured| measured.threads == threads), "{point:?}");
        let shares: Vec<f64> = point.iter().map(|measured| measured.unpredictable_percent().unwrap()).collect();
        assert!(shares[0] == 0.0 && shares[1] > 0.0 && shares[2] > shares[1], "T={threads}: {shares:?}");
    }
    // A cell leaves what `encore run` leaves.
    let run = RunFolder::new(home.join("4-staler"));
    assert_eq!(run.read_document().unwrap().state, RunState::Complete);
    let experiments = run.experiments().unwrap();
    let verdict: schemas::verdict::Verdict = schemas::files::read_json(&experiments[0].1.verdict()).unwrap();
    assert_eq!(Measurement::from(&verdict), measured[5]);

    let again = compare(folder.path(), &["lies.toml", "--resume", "--json"]);
    let printed: ComparisonDocument = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((again.status.code(), printed.cells), (Some(0), document.cells));
}

/// One trace set with and without transactions: what YCSB+T's tier 5 measures.
#[test]
fn transactions_are_measured_beside_none() {
    const MONEY: &str = "name = \"m\"\nfamily = \"economy\"\nsessions = 30000\n[data]\nrecords = 100\nfields = 1\n[mix]\n\
                         read = 5\nread_modify_write = 5\n[transactions]\nabort_share = 0.1\n";
    const COST: &str = r#"
name = "cost"
title = "What transactions cost"
spec = "money.toml"
sla = "50% < 10s, 100% unpredictable, 0.7s"
measure = "throughput"
tries = 10
warmup = "100"

[axis]
label = "threads"
points = [{ label = "1", threads = 1 }, { label = "4", threads = 4 }]

[[stores]]
label = "with"
url = "memory:?latency_us=300"

[[stores]]
label = "without"
url = "memory:?latency_us=300"
transactions = "off"
"#;
    let folder = place(PLAN);
    std::fs::write(folder.path().join("money.toml"), MONEY).unwrap();
    std::fs::write(folder.path().join("cost.toml"), COST).unwrap();
    let output = compare(folder.path(), &["cost.toml"]);
    let (text, error) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{error}");
    let home = folder.path().join("runs/cost");
    let markdown = std::fs::read_to_string(home.join("comparison.md")).unwrap();
    for title in [
        "Throughput with transactions, of that without them",
        "Response times (mean / 95th percentile)",
        "Tries of transactions that the store rolled back",
    ] {
        assert!(text.contains(title) && markdown.contains(title), "{title}: {text}");
    }
    assert!(markdown.contains("](transactions.svg)"), "{markdown}");
    let document: ComparisonDocument = schemas::files::read_json(&home.join("comparison.json")).unwrap();
    let measured: Vec<&Measurement> = document
        .cells
        .iter()
        .map(|cell| match &cell.outcome {
            Outcome::Measured(measured) => measured,
            other => panic!("{}: {other:?}", cell.run),
        })
        .collect();
    for (cell, measured) in measured.iter().enumerate() {
        let (used, transactions) = (cell % 2 == 0, measured.transactions.unwrap());
        assert_eq!(transactions.best_effort == 0, used, "{transactions:?}");
        for control in ["begin", "commit", "abort"] {
            let times = measured.by_operation.get(control).filter(|times| times.ok > 0);
            // Without transactions they do nothing and have no time.
            assert!(!used || times.is_some(), "{control}: {measured:?}");
        }
        assert!(measured.by_operation["read"].ok > 0 && measured.by_operation["update"].ok > 0);
    }
    // The chart has the ratio at both points, as the table has.
    let chart = std::fs::read_to_string(home.join("transactions.svg")).unwrap();
    for (point, pair) in ["1", "4"].iter().zip(measured.chunks(2)) {
        let percent = (pair[0].throughput_per_s * 1000.0 / pair[1].throughput_per_s).round() / 10.0;
        assert!(percent > 0.0 && chart.contains(&format!("{point}: ")), "{chart}");
        assert!(chart.contains(&format!(" {percent}%")), "{percent}: {chart}");
    }
}

/// The same search as `encore rate --by rate`, for each store at each point.
#[test]
fn stores_are_compared_by_arrival_rate() {
    let plan = PLAN.replace("max_threads = 1", "rating = \"rate\"\nfirst_rate = 100\nmax_rate = 200\nthreads = 8");
    let folder = place(&plan.replace(", { label = \"eight\"", " ]#"));
    let output = compare(folder.path(), &["pair.toml"]);
    let (text, error) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{error}");
    for expected in ["[2/2] four, twenty", "Arrival rate (sessions/s)", "≥ 200"] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
    let home = folder.path().join("runs/pair");
    let document: ComparisonDocument = schemas::files::read_json(&home.join("comparison.json")).unwrap();
    for cell in &document.cells {
        let Outcome::Rated { soar: None, socialites: None, rate: Some(rate) } = &cell.outcome else {
            panic!("{}: {:?}", cell.run, cell.outcome);
        };
        assert_eq!((rate.value, rate.at_least, rate.threads), (200.0, true, 8));
        let experiments = RunFolder::new(home.join(&cell.run)).experiments().unwrap();
        let names = experiments.iter().map(|(_, folder)| folder.root().display().to_string());
        assert!(names.into_iter().all(|name| name.contains("-T8-R")), "{experiments:?}");
    }
    let output = compare(folder.path(), &["pair.toml", "--resume", "--json"]);
    let again: ComparisonDocument = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), again.cells), (Some(0), document.cells));
}

#[test]
fn a_store_that_cannot_be_loaded_fails_alone() {
    let folder = place(PLAN);
    // A path below a file: the URL is valid, but the store's file cannot be created.
    let plan =
        PLAN.replace("memory:?latency_us=20000", "sqlite:t.toml/store.db").replace(", { label = \"eight\"", " ]#");
    std::fs::write(folder.path().join("pair.toml"), plan).unwrap();
    let output = compare(folder.path(), &["pair.toml", "--name", "half"]);
    let (text, error) = said(&output);
    assert_eq!(output.status.code(), Some(3), "{text}{error}");
    assert!(error.contains("error: four, twenty: ") && text.contains("failed"), "{text}{error}");
    let home = folder.path().join("runs/half");
    let document: ComparisonDocument = schemas::files::read_json(&home.join("comparison.json")).unwrap();
    assert!(matches!(document.cells[0].outcome, Outcome::Rated { .. }));
    assert!(matches!(document.cells[1].outcome, Outcome::Failed(_)));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_rated_and_resume_rates_the_rest() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    let folder = place(&PLAN.replace("0.3s", "1s").replace(", { label = \"eight\"", " ]#"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_encore"));
    command.args(["compare", "pair.toml"]).current_dir(folder.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let second = folder.path().join("runs/pair/four-twenty/run.json");
    let patience = Instant::now() + Duration::from_secs(600);
    while !second.exists() {
        assert!(Instant::now() < patience && child.try_wait().unwrap().is_none(), "the second cell never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let (_, error) = said(&output);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("interrupted") && error.contains("runs/pair"), "{error}");
    let read = || -> ComparisonDocument {
        schemas::files::read_json(&folder.path().join("runs/pair/comparison.json")).unwrap()
    };
    let interrupted = read();
    assert_eq!(interrupted.state, RunState::Interrupted);
    assert!(matches!(interrupted.cells[0].outcome, Outcome::Rated { .. }));
    assert_eq!(interrupted.cells[1].outcome, Outcome::Missing);
    let output = compare(folder.path(), &["pair.toml", "--resume"]);
    assert_eq!(output.status.code(), Some(0), "{:?}", said(&output));
    assert_eq!((read().state, read().cells[0].clone()), (RunState::Complete, interrupted.cells[0].clone()));
}
