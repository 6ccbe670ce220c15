//! Replays of transactions with several threads: what the log says of them is true.

use std::collections::BTreeMap;

use replayer::any_store;
use replayer::experiment::{Control, Experiment};
use replayer::stores::Blame;
use schemas::isolation::Isolation;
use schemas::oplog::{LogColumns, LogReader, LogRow, Outcome};
use schemas::plan::Transactions;
use schemas::run::ReplayReport;
use schemas::trace::OperationsReader;
use schemas::vocabulary::kv::{Found, Kv, Operation, Verb};

use super::super::refused;
use super::super::subjects::number;
use super::subjects;
use crate::place::Place;
use crate::subjects::url_with;

/// Sessions that meet on few records. A transaction writes all fields of a record that it has read.
const SPEC: &str = r#"
name = "transactions"
family = "kv"
sessions = 400
[data]
records = 40
fields = 4
field_bytes = 30
[access]
distribution = "zipfian"
scan_length_max = 5
write_all_fields = true
[mix]
read = 20
scan = 5
insert = 5
read_modify_write = 70
[transactions]
abort_share = 0.1
"#;

/// Runs the whole trace with 8 threads and some tries.
fn run(place: &Place, url: &str, tries: u16, name: &str) -> ReplayReport {
    let mut plan = place.experiment(url, 8, name).plan().clone();
    plan.transactions = Transactions { used: true, tries };
    let experiment = Experiment::prepare(plan, place.path().join(name)).expect("a plan");
    let store = any_store::open(url).expect(url);
    store.load(&place.source, &|_, _| {}).expect(url);
    store.check(&experiment).expect(url);
    store.run(&experiment, &Control::default(), &mut |_| {}).expect(url)
}

/// The rows of the log, with the operation of each and what it saw.
fn rows(place: &Place, name: &str) -> Vec<(LogRow, Operation, Vec<i64>)> {
    let files = place.source.manifest.operation_files(&place.source.folder, 0);
    let mut reader = OperationsReader::<Kv>::new(0, files, 1024);
    let (mut chunk, mut operations) = (Vec::new(), BTreeMap::new());
    while reader.next_rows(&mut chunk).expect("a chunk") {
        operations.extend(chunk.iter().map(|row| ((row.session, row.step), row.operation)));
    }
    let folder = place.path().join(name).join("log");
    let mut rows = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()) {
        for batch in LogReader::open(&file).expect("a log") {
            let columns = LogColumns::of(&batch.expect("a batch"), &file).expect("columns");
            rows.extend((0..columns.len()).map(|number| {
                let row = columns.row(number);
                (row, operations[&(row.session, row.step)], columns.observed(number).to_vec())
            }));
        }
    }
    rows
}

/// How many versions of records two committed transactions have overwritten, and how many transactions of
/// those that write have been committed.
fn lost_updates(rows: &[(LogRow, Operation, Vec<i64>)]) -> (usize, usize) {
    let mut overwritten: BTreeMap<(u64, i64), u32> = BTreeMap::new();
    let mut committed = 0;
    let key = |row: &LogRow| (row.session, row.try_number);
    let of = |verb: Verb| rows.iter().filter(move |(row, one, _)| one.verb == verb && row.outcome == Outcome::Ok);
    let commits: std::collections::BTreeSet<_> = of(Verb::Commit).map(|(row, ..)| key(row)).collect();
    let reads: BTreeMap<_, _> = of(Verb::Read).map(|(row, one, seen)| ((key(row), one.key), seen)).collect();
    for (row, one, _) in of(Verb::Update).filter(|(row, ..)| commits.contains(&key(row))) {
        committed += 1;
        let seen = reads.get(&(key(row), one.key)).expect("it reads what it writes");
        let version = Found::read(seen).expect("an answer").expect("a record").of(0);
        *overwritten.entry((one.key, version)).or_default() += 1;
    }
    (overwritten.values().filter(|count| **count > 1).count(), committed)
}

#[test]
fn replays_with_many_threads_lose_no_update_where_the_level_promises_it() {
    let place = Place::with(SPEC, &[]);
    for subject in subjects::all(place.path()) {
        let url = url_with(&subject.url, if subject.url.starts_with("memory:") { "latency_us=200" } else { "" });
        let url = url.trim_end_matches(['?', '&']);
        for (pool, tries) in [("", 1000), ("connections=3", 1)] {
            let has_pool = ["postgres:", "mysql:", "mongodb:", "redis:"].iter().any(|scheme| url.starts_with(scheme));
            if !pool.is_empty() && !has_pool {
                continue;
            }
            let url = if pool.is_empty() { url.to_string() } else { url_with(url, pool) };
            let name = format!("run-{}", number());
            let report = run(&place, &url, tries, &name);
            let counts = (report.failed, report.unknown, report.skipped);
            assert_eq!(counts, (0, 0, 0), "{url}: {report:?}");
            assert_eq!(report.store_settings["transactions"], subject.level.name(), "{url}");
            let rows = rows(&place, &name);
            let (lost, committed) = lost_updates(&rows);
            assert!(committed > 30, "{url}: {committed}");
            // MariaDB's `repeatable-read` does not look at what has changed since the snapshot.
            let is_mariadb = url.starts_with("mysql:") && subject.level == Isolation::RepeatableRead;
            if subject.level >= Isolation::RepeatableRead && !is_mariadb {
                assert_eq!(lost, 0, "{url}");
            }
            if tries > 1 {
                // Every transaction was committed, or aborted as the trace asks for, in its last try.
                let ends = rows.iter().filter(|(row, one, _)| {
                    matches!(one.verb, Verb::Commit | Verb::Abort) && row.outcome == Outcome::Ok
                });
                assert_eq!(ends.count(), 400, "{url}");
            }
        }
    }
}

/// Begin, commit and abort do nothing there, and operations are by themselves.
#[test]
fn stores_without_transactions_say_so() {
    let place = Place::with(SPEC, &["sessions=20"]);
    for url in ["null:", "memory:?isolation=none", "memory:?stale=0.1"] {
        let report = run(&place, url, 1, &format!("run-{}", number()));
        assert!(report.store_settings["transactions"].starts_with("best effort"), "{:?}", report.store_settings);
        assert_eq!((report.failed, report.aborted), (0, 0), "{url}");
    }
    refused(any_store::open("memory:?lost=1&isolation=snapshot").map(drop), Blame::Usage, &["isolation=none"]);
}

/// A program that is ended with its test.
struct Started(std::process::Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// MongoDB has no transactions on a server by itself. Encore says so before the experiment begins.
#[test]
fn transactions_on_a_single_mongodb_server_are_refused() {
    let Some(server) = servers::mongodb() else { return };
    if std::env::var_os(server.kind().variable()).is_some() {
        // It is the user's own server, whose program is elsewhere.
        return;
    }
    let program = std::fs::read_link(format!("/proc/{}/exe", server.processes()[0])).expect("a program");
    let place = Place::with(SPEC, &["sessions=20"]);
    let data = place.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr()).expect("a port");
    let mut command = std::process::Command::new(program);
    command.arg("--dbpath").arg(&data).args(["--port", &free.port().to_string(), "--bind_ip", "127.0.0.1"]);
    command.args(["--nounixsocket", "--quiet", "--wiredTigerCacheSizeGB", "0.25"]);
    let _started = Started(command.stdout(std::process::Stdio::null()).spawn().expect("a server"));
    let url = format!("mongodb://127.0.0.1:{}/single", free.port());
    let store = any_store::open(&url).expect(&url);
    // Each look takes some seconds at most.
    let is_ready = (0..60).any(|_| store.reach().is_ok());
    assert!(is_ready, "{url}");
    store.load(&place.source, &|_, _| {}).expect(&url);
    let used = place.experiment(&url, 1, "used");
    refused(
        store.check(&used),
        Blame::Usage,
        &["transactions require a replica set", "--replSet", "--transactions off"],
    );
    let mut plan = used.plan().clone();
    plan.transactions.used = false;
    let unused = Experiment::prepare(plan, place.path().join("unused")).expect("a plan");
    store.check(&unused).expect(&url);
    let report = store.run(&unused, &Control::default(), &mut |_| {}).expect(&url);
    assert!(report.failed == 0 && report.store_settings["transactions"].starts_with("off"), "{report:?}");
}
