//! How fast logs of PostgreSQL become a trace set, in statements and bytes a second.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use schemas::vocabulary::sql::text::Dialect;
use tracegen::sql::import::postgres_log::{Options, import};
use tracegen::sql::import::{SetOptions, write};

const STATEMENTS: u64 = 100_000;

/// Statements of one session, each a transaction, as the server writes them with log_min_duration_statement = 0.
fn log(folder: &Path, form: &str) -> PathBuf {
    let mut text = String::new();
    for number in 0..STATEMENTS {
        let (minute, second, ms) = (number / 60_000 % 60, number / 1_000 % 60, number % 1_000);
        let at = format!("2026-11-24 06:{minute:02}:{second:02}.{ms:03} UTC");
        let sql = match number % 3 {
            0 => format!("SELECT abalance FROM pgbench_accounts WHERE aid = {number};"),
            1 => format!("UPDATE pgbench_accounts SET abalance = abalance + {} WHERE aid = {number};", number % 977),
            _ => format!("INSERT INTO notes (id, note) VALUES ({number}, 'a note of some length, {number}');"),
        };
        let line = number + 1;
        let _ = match form {
            "json" => writeln!(
                text,
                r#"{{"timestamp":"{at}","user":"app","dbname":"shop","pid":77,"remote_host":"127.0.0.1","remote_port":5,"session_id":"6921ab00.4d","line_num":{line},"ps":"SELECT","session_start":"2026-11-24 06:00:00 UTC","vxid":"3/{line}","txid":0,"error_severity":"LOG","message":"duration: 0.321 ms  statement: {sql}","application_name":"app","backend_type":"client backend","query_id":0}}"#
            ),
            _ => writeln!(text, "{at} [77] app@shop LOG:  duration: 0.321 ms  statement: {sql}"),
        };
    }
    let path = folder.join(format!("shop.{form}"));
    std::fs::write(&path, text).expect("a log");
    path
}

fn bench(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let set = SetOptions {
        name: "shop".into(),
        source: "postgres-log",
        dialect: Dialect::Postgres,
        schema: String::new(),
        fragments: 1,
        open_loop: true,
        log_results: false,
    };
    for form in ["json", "log"] {
        let files = [log(folder.path(), form)];
        let bytes = std::fs::metadata(&files[0]).expect("the log").len();
        let mut group = c.benchmark_group(format!("import_postgres_{form}"));
        group.sample_size(10);
        for (unit, throughput) in
            [("statements", Throughput::Elements(STATEMENTS)), ("bytes", Throughput::Bytes(bytes))]
        {
            group.throughput(throughput);
            group.bench_function(unit, |b| {
                let place = || tempfile::tempdir_in(folder.path()).expect("a temporary folder");
                let whole = |place: tempfile::TempDir| {
                    let mut imported = import(&files, &Options::default(), place.path()).expect("a log");
                    assert_eq!(imported.report.statements, STATEMENTS);
                    let target = place.path().join("shop.trace");
                    black_box(write(&mut imported, &target, &set).expect("a trace set"));
                };
                b.iter_batched(place, whole, BatchSize::PerIteration);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
