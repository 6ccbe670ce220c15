//! `encore analyze consistency` of key-value runs with a known answer: a store that is right, and one
//! that shows each write a fixed time late.

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use analyzer::sql::Database;
use common::{Event, Fixture, log_row, outcomes};
use duckdb::types::Value;
use schemas::manifest::Manifest;
use schemas::oplog::Outcome;
use schemas::plan::FragmentPlan;
use schemas::run::RunFolder;
use schemas::spec::Spec;
use schemas::trace::OperationsReader;
use schemas::verdict::Verdict;
use schemas::vocabulary::kv::{Found, Kv, Operation, Verb};

const MS: i64 = 1_000_000;

type KvEvent = Event<Operation>;

/// An experiment on a generated trace set of one fragment with few records, without its log.
fn generated(mix: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    // A record that was inserted can only be drawn, and so deleted, where the latest ones are popular.
    let latest = if mix.contains("delete") { "distribution = 'latest'\n" } else { "" };
    let text = format!(
        "name = 'kv'\nfamily = 'kv'\nsessions = 4000\nfragments = 1\n[data]\nrecords = 12\nfields = 2\n\
         [access]\nread_all_fields = false\nclients = 8\n{latest}[mix]\n{mix}\n"
    );
    let spec = Spec::parse(&text, "kv.toml").unwrap();
    let run = RunFolder::new(folder.path().join("run"));
    let plan = FragmentPlan { fragment: 0, first_session: 0, given_back: Vec::new(), warmup_sessions: 0 };
    let fixture = Fixture { folder, run, fragments: vec![plan], batch_rows: 64 };
    tracegen::generate(&spec, &fixture.trace(), &Default::default()).unwrap();
    fixture
}

/// When a write shows, and its id. None removes the record.
type Shown = (i64, Option<i64>);

/// What a store does that shows each write this long after its end. There is an operation each millisecond,
/// which takes a tenth of one.
fn events(fixture: &Fixture, late_ns: i64) -> Vec<KvEvent> {
    let (folder, manifest) = (fixture.trace(), Manifest::read(&fixture.trace()).unwrap());
    let mut reader = OperationsReader::<Kv>::new(0, manifest.operation_files(&folder, 0), 1_000);
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    while reader.next_rows(&mut rows).unwrap() {
        all.append(&mut rows);
    }
    let mut shown: BTreeMap<(u64, u32), Vec<Shown>> = BTreeMap::new();
    let mut events = Vec::new();
    for (row, index) in all.iter().zip(1..) {
        let (operation, start, end) = (row.operation, index * MS, index * MS + MS / 10);
        let mut observed = Vec::new();
        for field in (0..2).filter(|field| operation.verb == Verb::Delete || operation.fields >> field & 1 == 1) {
            let writes = shown.entry((operation.key, field)).or_default();
            let is_new = operation.key >= 12;
            let initial = if is_new { None } else { Some(0) };
            match operation.verb {
                Verb::Read => {
                    let now = writes.iter().rev().find(|(from, _)| *from <= start);
                    let now = now.map_or(initial, |(_, id)| *id);
                    match now {
                        Some(id) => Found::push(&mut observed, [(field, id)].into_iter()),
                        None => observed.clear(),
                    }
                }
                Verb::Delete => writes.push((end + late_ns, None)),
                _ => writes.push((end + late_ns, Some(operation.id.number()))),
            }
        }
        let mut log = log_row(row.session, start, end, Outcome::Ok);
        log.step = row.step;
        events.push(Event { operation, log, observed, error: None });
    }
    events
}

fn analyzed(fixture: &Fixture, events: &[KvEvent]) -> Verdict {
    fixture.write_log(0, 0, events, true);
    fixture.write_documents();
    fixture.write_report(5_000_000_000, outcomes(events.iter()));
    fixture.analyze().unwrap()
}

fn consistency(fixture: &Fixture, flags: &[&str]) -> String {
    let run = fixture.run.root().display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyzer"));
    command.args(["consistency", &run]).args(flags).env_remove("COLUMNS").current_dir(fixture.folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn figures(fixture: &Fixture) -> serde_json::Value {
    serde_json::from_str(&consistency(fixture, &["--json"])).unwrap()
}

fn integers(fixture: &Fixture, verdict: &Verdict, statement: &str) -> Vec<i64> {
    let database = Database::open(&fixture.run, std::slice::from_ref(verdict), None).unwrap();
    let integer = |value: &Value| match value {
        Value::BigInt(n) => *n,
        Value::HugeInt(n) => *n as i64,
        other => panic!("{other:?} is no integer"),
    };
    database.query(statement).unwrap().rows[0].iter().map(integer).collect()
}

#[test]
fn a_right_store_is_linearizable() {
    for mix in ["read = 50\nupdate = 50", "read = 60\nupdate = 25\ninsert = 10\ndelete = 5"] {
        let fixture = generated(mix);
        analyzed(&fixture, &events(&fixture, -MS / 10));
        let found = &figures(&fixture)["consistency"];
        let registers = found["registers"].as_u64().unwrap();
        assert!(registers >= 24 && found["reads"].as_u64().unwrap() > 1_000, "{found}");
        assert_eq!(found["linearizable"].as_u64(), Some(registers), "{found}");
        assert_eq!((found["stale_reads"].as_u64(), found["gamma_ns"]["max"].as_u64()), (Some(0), Some(0)));
        for guarantee in ["read_your_writes", "monotonic_reads", "monotonic_writes", "writes_follow_reads"] {
            for by in ["by_thread", "by_actor"] {
                assert_eq!(found[by][guarantee]["violations"].as_u64(), Some(0), "{by} {guarantee}");
            }
        }
        assert!(found["by_thread"]["monotonic_reads"]["reads"].as_u64().unwrap() > 500);
    }
}

#[test]
fn a_late_store_is_stale_by_its_delay() {
    for (late_ms, mix) in [(10, "read = 50\nupdate = 50"), (50, "read = 80\nupdate = 20")] {
        let fixture = generated(mix);
        let verdict = analyzed(&fixture, &events(&fixture, late_ms * MS));
        let found = &figures(&fixture)["consistency"];
        let (low, high) = (late_ms * MS * 9 / 10, late_ms * MS);
        for metric in ["gamma_ns", "delta_ns", "t_visibility_ns"] {
            let max = found[metric]["max"].as_i64().unwrap();
            assert!(max >= low && max <= high, "{metric} {max}: {found}");
        }
        // Each read asks for one field.
        let stale = found["stale_reads"].as_i64().unwrap();
        assert_eq!(stale as u64, verdict.figures.unpredictable_reads);
        assert!(stale > 100);
        let slices: i64 = found["freshness"].as_array().unwrap().iter().map(|age| age["reads"].as_i64().unwrap()).sum();
        assert!(slices > 1_000);
        // Later than the delay all are fresh.
        for age in found["freshness"].as_array().unwrap() {
            let is_late = age["from_us"].as_i64().unwrap() > late_ms * 1_000;
            assert!(!is_late || age["reads"] == age["fresh"], "{age}");
        }
        // SQL gives the figures again.
        let statement = "SELECT count(*) FILTER (k_staleness > 0), max(t_staleness_ns), max(k_staleness), count(*)
                         FROM read_staleness AS r SEMI JOIN register_writes AS w
                            ON r.owner = w.owner AND r.element = w.element
                         WHERE NOT warmup AND NOT drained";
        let (t, k) = (found["t_staleness_ns"]["max"].as_i64(), found["k_staleness"]["max"].as_i64());
        let expected = [Some(stale), t, k, found["reads"].as_i64()].map(Option::unwrap);
        assert_eq!(integers(&fixture, &verdict, statement), expected);
        let statement = "SELECT sum(stale_reads), max(k_staleness_max) FROM register_staleness";
        assert_eq!(integers(&fixture, &verdict, statement), [stale, k.unwrap()]);

        let text = consistency(&fixture, &["--worst", "2"]);
        for expect in
            ["are linearizable", "t-staleness", "monotonic reads", "no order of these operations", "fragment 0: Γ"]
        {
            assert!(text.contains(expect), "{expect}\n\n{text}");
        }
    }
}

/// A write of unknown fate may take effect late, so its delay is no fault.
#[test]
fn writes_of_unknown_fate_accuse_no_store() {
    let fixture = generated("read = 50\nupdate = 50");
    let mut events = events(&fixture, 10 * MS);
    for event in events.iter_mut().filter(|event| event.operation.verb == Verb::Update) {
        event.log.outcome = Outcome::Unknown;
    }
    analyzed(&fixture, &events);
    let found = &figures(&fixture)["consistency"];
    assert!(found["unknown_writes"].as_u64().unwrap() > 1_000);
    assert_eq!((found["stale_reads"].as_u64(), found["linearizable"].as_u64()), (Some(0), found["registers"].as_u64()));
}
