//! Isolation from files to the verdict: a generated trace set with transactions, and logs of stores that
//! keep what they promise or do not.

mod common;

use std::collections::HashMap;
use std::process::Command;

use common::{Event, Fixture, log_row, outcomes};
use schemas::anomalies::Class;
use schemas::isolation::Isolation;
use schemas::manifest::Manifest;
use schemas::oplog::Outcome;
use schemas::plan::FragmentPlan;
use schemas::run::{RunDocument, RunFolder};
use schemas::spec::Spec;
use schemas::trace::OperationsReader;
use schemas::verdict::{Ruling, Verdict};
use schemas::vocabulary::kv::{Found, Kv, Operation, Verb};

type KvEvent = Event<Operation>;

const THREADS: u64 = 4;

/// An experiment on a generated trace set of two fragments, without its logs.
fn generated(transactions: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "name = 'kv'\nfamily = 'kv'\nsessions = 4000\nfragments = 2\n[data]\nrecords = 60\nfields = 1\n\
         {transactions}\n[mix]\nread = 20\nread_modify_write = 80\n"
    );
    let spec = Spec::parse(&text, "kv.toml").unwrap();
    let run = RunFolder::new(folder.path().join("run"));
    let plan = |fragment| FragmentPlan { fragment, first_session: 0, given_back: Vec::new(), warmup_sessions: 0 };
    let fixture = Fixture { folder, run, fragments: (0..2).map(plan).collect(), batch_rows: 64 };
    tracegen::generate(&spec, &fixture.trace(), &Default::default()).unwrap();
    fixture
}

/// What a store does with the sessions of a fragment: four run at the same time, each reads at its begin
/// what was committed by then. A store that `checks` rolls back who would overwrite what has changed.
fn logged(fixture: &Fixture, fragment: u32, checks: bool) -> Vec<KvEvent> {
    let (folder, manifest) = (fixture.trace(), Manifest::read(&fixture.trace()).unwrap());
    let mut reader = OperationsReader::<Kv>::new(fragment, manifest.operation_files(&folder, fragment), 1_000);
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    while reader.next_rows(&mut rows).unwrap() {
        all.append(&mut rows);
    }
    // Of each record the values with the time of their commit.
    let mut values: HashMap<u64, Vec<(i64, i64)>> = HashMap::new();
    let at = |values: &HashMap<u64, Vec<(i64, i64)>>, key: u64, time: i64| {
        let of_key = values.get(&key).map_or(&[][..], Vec::as_slice);
        of_key.iter().rev().find(|(committed, _)| *committed <= time).map_or(0, |(_, value)| *value)
    };
    let mut events = Vec::new();
    for session in all.chunk_by(|a, b| a.session == b.session) {
        let number = session[0].session;
        let (start, commit) = (number as i64 * 1000, number as i64 * 1000 + 3500);
        let write = session.iter().map(|row| row.operation).find(|operation| operation.verb == Verb::Update);
        let has_changed = |key| at(&values, key, start) != at(&values, key, commit);
        let aborts = checks && write.is_some_and(|write| has_changed(write.key));
        if let Some(write) = write.filter(|_| !aborts) {
            values.entry(write.key).or_default().push((commit, write.id.number()));
        }
        for row in session {
            let mut observed = Vec::new();
            let own = start + i64::from(row.step) * 700;
            let (mut from, mut to, mut outcome) = (own, own + 500, Outcome::Ok);
            match row.operation.verb {
                Verb::Read => Found::push(&mut observed, [(0, at(&values, row.operation.key, start))].into_iter()),
                Verb::Commit => {
                    (from, to) = (commit - 100, commit + 100);
                    outcome = if aborts { Outcome::Aborted } else { Outcome::Ok };
                }
                _ => {}
            }
            let mut log = log_row(row.session, from, to, outcome);
            (log.step, log.thread) = (row.step, (number % THREADS) as u32);
            events.push(Event { operation: row.operation, log, observed, error: None });
        }
    }
    events
}

fn analyzed(fixture: &Fixture, checks: bool, sla: &str) -> Verdict {
    let events = [0, 1].map(|fragment| logged(fixture, fragment, checks));
    for (fragment, events) in (0..).zip(&events) {
        fixture.write_log(fragment, 0, events, true);
    }
    fixture.write_documents();
    let document = fixture.run.read_document().unwrap();
    let mut store_settings = document.store_settings.clone();
    store_settings.insert("transactions".into(), "serializable: as it says".into());
    let sla = sla.parse().unwrap();
    let document = RunDocument { store_settings, sla: Some(sla), ..document };
    schemas::files::write_json(&fixture.run.document(), &document).unwrap();
    fixture.write_report(1_000_000_000, outcomes(events.iter().flatten()));
    fixture.analyze().unwrap()
}

/// What the analyzer prints, and its exit code.
fn analyzer(fixture: &Fixture, arguments: &[&str]) -> (String, i32) {
    // The run names its trace set by a path relative to this folder.
    let mut command = Command::new(env!("CARGO_BIN_EXE_analyzer"));
    let folder = fixture.run.root().display().to_string();
    let arguments = arguments.iter().map(|argument| if *argument == "RUN" { folder.as_str() } else { argument });
    command.args(arguments).env_remove("COLUMNS").current_dir(fixture.folder.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code().unwrap())
}

#[test]
fn a_store_that_keeps_its_promise_is_not_accused() {
    let fixture = generated("[transactions]");
    let verdict = analyzed(&fixture, true, "95% < 100ms, strict serializable");
    let found = verdict.figures.anomalies.as_ref().unwrap();
    assert_eq!(found.strongest(), Some(Isolation::StrictSerializable), "{found:?}");
    assert!(found.committed > 3000 && found.aborted > 50 && found.operations > 6000, "{found:?}");
    assert_eq!((found.unordered_writes, found.ambiguous_reads), (0, 0));
    assert_eq!(verdict.figures.unpredictable_reads, 0);
    assert!(!verdict.reasons.iter().any(|reason| reason.contains("transactions show")), "{:?}", verdict.reasons);
    let (text, code) = analyzer(&fixture, &["isolation", "RUN"]);
    assert!(text.contains("memory: promises: serializable") && code == 0, "{text}");
    assert!(text.contains("isolation: consistent with strict serializable; no anomaly"), "{text}");
}

#[test]
fn lost_updates_are_found_with_a_story_and_miss_the_clause() {
    let fixture = generated("[transactions]");
    let verdict = analyzed(&fixture, false, "95% < 100ms, serializable");
    let found = verdict.figures.anomalies.as_ref().unwrap();
    let lost = found.count(Class::LostUpdate);
    assert!(lost > 50 && found.strongest() == Some(Isolation::ReadCommitted), "{found:?}");
    assert_eq!(verdict.ruling, Ruling::Fail);
    let reason = &verdict.reasons[0];
    let expect = format!("transactions show read committed ({lost} lost update");
    assert!(reason.starts_with(&expect) && reason.ends_with("needs serializable"), "{reason}");

    let (text, code) = analyzer(&fixture, &["isolation", "RUN"]);
    assert_eq!(code, 1);
    let expect =
        ["read committed (weaker than promised)", "both overwrote it.", "anomalies by the second", "T2: session"];
    for expect in expect {
        assert!(text.contains(expect), "{expect}\n\n{text}");
    }
    let (text, code) = analyzer(&fixture, &["isolation", "RUN", "--experiment", "1", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &json["experiments"][0]["shows"]), (1, &"read committed".into()));
    assert_eq!(json["experiments"][0]["is_weaker_than_promised"], true);
    let statement = "SELECT sum(anomalies) AS n FROM isolation_anomalies WHERE class = 'lost_update'";
    let (text, _) = analyzer(&fixture, &["sql", "RUN", statement, "--format", "csv"]);
    assert_eq!(text, format!("n\n{lost}\n"));
    let (text, code) = analyzer(&fixture, &["validate", "RUN"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("isolation: consistent with read committed") && text.contains("both overwrote it."),
        "{text}"
    );
    let (text, code) = analyzer(&fixture, &["validate", "RUN", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &json["isolation"]["shows"]), (1, &"read committed".into()));
    assert_eq!(json["isolation"]["promised"], "serializable: as it says");
    assert!(json["isolation"]["stories"][0].as_str().unwrap().contains("both overwrote it."), "{text}");
    let (text, _) = analyzer(&fixture, &["summary", "RUN"]);
    assert!(text.contains("isolation: consistent with read committed"), "{text}");
    let (text, code) = analyzer(&fixture, &["report", "RUN"]);
    assert_eq!(code, 0, "{text}");
    let page = std::fs::read_to_string(fixture.run.root().join("report.html")).unwrap();
    assert!(page.contains("weaker than promised") && page.contains("both overwrote it."));
    assert!(page.contains("Anomalies by the second in which their transaction ended"));
}

#[test]
fn without_transactions_the_sentence_says_so() {
    let fixture = generated("");
    let verdict = analyzed(&fixture, true, "95% < 100ms, serializable");
    assert_eq!((verdict.ruling, verdict.figures.anomalies.clone()), (Ruling::Void, None));
    assert!(verdict.reasons[0].contains("the SLA asks for serializable transactions"), "{:?}", verdict.reasons);
    let (text, code) = analyzer(&fixture, &["isolation", "RUN"]);
    assert!(text.contains("# 1 no transactions: the trace has none") && code == 0, "{text}");
    let (text, _) = analyzer(&fixture, &["validate", "RUN", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["isolation"], serde_json::Value::Null);
}
