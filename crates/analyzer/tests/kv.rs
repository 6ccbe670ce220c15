//! The analysis of key-value workloads from files: a generated trace set, and logs of stores that
//! tell the truth or lie.

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use analyzer::sql::Database;
use common::{Dice, Event, Fixture, log_row, outcomes};
use duckdb::types::Value;
use schemas::manifest::Manifest;
use schemas::oplog::Outcome;
use schemas::plan::FragmentPlan;
use schemas::run::RunFolder;
use schemas::spec::Spec;
use schemas::trace::OperationsReader;
use schemas::verdict::{Ruling, Verdict};
use schemas::vocabulary::kv::{Found, Kv, Operation, Verb, WriteId};
use schemas::workload::kv::keys::KeyPlace;
use schemas::workload::kv::{Keys, KvWorkload, dataset};

const FIELDS: u32 = 4;

/// An operation with its log row and what it observed.
type KvEvent = Event<Operation>;

/// An experiment on a generated trace set of two fragments, without its logs.
fn generated(sessions: u64, more: &str, mix: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let reads = if more.contains("read_all_fields") { "" } else { "read_all_fields = false\n" };
    let text = format!(
        "name = 'kv'\nfamily = 'kv'\nsessions = {sessions}\nfragments = 2\n[data]\nrecords = 60\nfields = {FIELDS}\n\
         [access]\n{reads}scan_length_max = 12\nclients = 8\n{more}\n[mix]\n{mix}\n"
    );
    let spec = Spec::parse(&text, "kv.toml").unwrap();
    let run = RunFolder::new(folder.path().join("run"));
    let plan = |fragment| FragmentPlan { fragment, first_session: 0, given_back: Vec::new(), warmup_sessions: 0 };
    let fixture = Fixture { folder, run, fragments: (0..2).map(plan).collect(), batch_rows: 64 };
    tracegen::generate(&spec, &fixture.trace(), &Default::default()).unwrap();
    fixture
}

/// What a store that tells the truth does with the sessions of a fragment. Each operation takes
/// effect in the middle of its interval.
fn truthful(fixture: &Fixture, fragment: u32) -> Vec<KvEvent> {
    let (folder, manifest) = (fixture.trace(), Manifest::read(&fixture.trace()).unwrap());
    let keys = Keys::new(&manifest.spec.workload::<KvWorkload>().unwrap().data);
    let place = |record: u64| keys.place(keys.number(record));
    let mut state: BTreeMap<KeyPlace, (u64, [i64; FIELDS as usize])> = BTreeMap::new();
    for record in dataset::records(&folder, fragment).unwrap().flat_map(Result::unwrap) {
        state.insert(place(record), (record, [0; FIELDS as usize]));
    }
    let mut reader = OperationsReader::<Kv>::new(fragment, manifest.operation_files(&folder, fragment), 1_000);
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    while reader.next_rows(&mut rows).unwrap() {
        all.append(&mut rows);
    }
    let mut dice = Dice(77 + fragment as u64);
    let observe = |fields: u64, values: &[i64; FIELDS as usize], observed: &mut Vec<i64>| {
        let asked = (0..FIELDS).filter(|field| fields >> field & 1 == 1);
        Found::push(observed, asked.map(|field| (field, values[field as usize])));
    };
    let mut events = Vec::new();
    for (index, row) in all.iter().enumerate() {
        let operation = row.operation;
        let key = place(operation.key);
        let mut observed = Vec::new();
        match operation.verb {
            Verb::Read => {
                if let Some((_, values)) = state.get(&key) {
                    observe(operation.fields, values, &mut observed);
                }
            }
            Verb::Scan => {
                for (record, values) in state.range(key..).map(|(_, record)| record).take(operation.length as usize) {
                    observed.push(keys.number(*record) as i64);
                    observe(operation.fields, values, &mut observed);
                }
            }
            Verb::Delete => drop(state.remove(&key)),
            Verb::Insert | Verb::Update => {
                let (_, values) = state.entry(key).or_insert((operation.key, [0; FIELDS as usize]));
                let written = (0..FIELDS).filter(|field| operation.fields >> field & 1 == 1);
                written.for_each(|field| values[field as usize] = operation.id.number());
            }
            Verb::Begin | Verb::Commit | Verb::Abort => {}
        }
        let middle = 10_000 + index as i64 * 1000;
        let (before, after) = (dice.below(2000) as i64, dice.below(2000) as i64);
        let mut log = log_row(row.session, middle - before, middle + after, Outcome::Ok);
        log.step = row.step;
        events.push(Event { operation, log, observed, error: None });
    }
    events
}

/// Writes the logs and the documents, and analyzes them.
fn analyzed(fixture: &Fixture, events: &[Vec<KvEvent>]) -> Verdict {
    for (events, plan) in events.iter().zip(&fixture.fragments) {
        let own: Vec<KvEvent> =
            events.iter().filter(|event| event.log.session >= plan.first_session).cloned().collect();
        fixture.write_log(plan.fragment, plan.first_session, &own, true);
    }
    fixture.write_documents();
    let own = events.iter().zip(&fixture.fragments);
    let own = own.flat_map(|(events, plan)| events.iter().filter(|event| event.log.session >= plan.first_session));
    fixture.write_report(1_000_000_000, outcomes(own));
    fixture.analyze().unwrap()
}

const MIX: &str = "read = 40\nupdate = 30\ninsert = 10\nscan = 10\nread_modify_write = 8\ndelete = 2";

fn integers(fixture: &Fixture, verdict: &Verdict, statement: &str) -> Vec<Vec<i64>> {
    let database = Database::open(&fixture.run, std::slice::from_ref(verdict), None).unwrap();
    let integer = |value: &Value| match value {
        Value::BigInt(n) => *n,
        Value::HugeInt(n) => *n as i64,
        other => panic!("{other:?} is no integer"),
    };
    database.query(statement).unwrap().rows.iter().map(|row| row.iter().map(integer).collect()).collect()
}

fn check_freshness(fixture: &Fixture, verdict: &Verdict) {
    let statement = "SELECT from_us, to_us, reads, fresh FROM freshness ORDER BY from_us";
    let of = |f: &schemas::verdict::Freshness| [f.from_us, f.to_us, f.reads, f.fresh].map(|n| n as i64).to_vec();
    let expect: Vec<Vec<i64>> = verdict.figures.freshness.iter().map(of).collect();
    assert!(expect.len() > 5, "{expect:?}");
    assert_eq!(integers(fixture, verdict, statement), expect);
}

fn is_asked(event: &KvEvent) -> bool {
    event.operation.verb == Verb::Read && !event.observed.is_empty()
}

#[test]
fn a_truthful_store_passes() {
    // A read of all fields is one row in `item_reads`, and a read of one field is another.
    ["read_all_fields = false", "read_all_fields = true"].into_iter().for_each(passes);
}

fn passes(more: &str) {
    let fixture = generated(3_000, more, MIX);
    let events = [truthful(&fixture, 0), truthful(&fixture, 1)];
    let verdict = analyzed(&fixture, &events);
    assert_eq!((verdict.ruling, verdict.figures.unpredictable_reads), (Ruling::Pass, 0));
    let reads = events.iter().flatten().filter(|event| event.operation.verb.reads()).count();
    assert_eq!(verdict.figures.reads, reads as u64);
    check_freshness(&fixture, &verdict);
    assert!(verdict.figures.freshness.iter().all(|f| f.fresh == f.reads));
    // Each id leads to the write of the same record.
    let statement = "SELECT count(*), count(w.key), count(*) FILTER (w.key = r.key AND w.fields & r.fields > 0)
                     FROM (SELECT *, unnest(observed[2:]) AS id FROM operations WHERE operation = 'read') AS r
                     LEFT JOIN operations AS w
                        ON w.fragment = write_fragment(id) AND w.session = write_session(id) AND w.step = write_step(id)";
    let found = integers(&fixture, &verdict, statement).remove(0);
    assert!(found[0] > 500 && found[1] == found[0] && found[2] == found[0], "{found:?}");
}

#[test]
fn a_continued_experiment_starts_from_what_the_earlier_sessions_may_have_left() {
    for (more, mix) in [("ordered_writes = true", MIX), ("", "read = 60\nupdate = 30\nscan = 10")] {
        let mut fixture = generated(2_000, more, mix);
        let events = [truthful(&fixture, 0), truthful(&fixture, 1)];
        fixture.fragments[0].first_session = 700;
        fixture.fragments[1].first_session = 500;
        let figures = analyzed(&fixture, &events).figures;
        assert_eq!((figures.unpredictable_reads, figures.missing), (0, vec![]));
        assert!(figures.reads > 300);
    }
}

/// A field is read as an old write left it: the read is found, with the write that it saw and the
/// one that it should have seen. So are a record that is not found, and an answer of another shape.
#[test]
fn lies_are_found_with_their_witnesses() {
    let fixture = generated(3_000, "", "read = 50\nupdate = 50");
    let mut events = [truthful(&fixture, 0), truthful(&fixture, 1)];
    let own = &mut events[0];
    let is_write_of = |event: &KvEvent, read: &KvEvent| {
        event.operation.verb == Verb::Update
            && event.operation.key == read.operation.key
            && event.operation.fields & read.operation.fields != 0
            && event.log.end_ns < read.log.start_ns
    };
    let (stale, old, new) = (0..own.len())
        .rev()
        .filter(|at| is_asked(&own[*at]))
        .find_map(|at| {
            let mut writes: Vec<&KvEvent> = own.iter().filter(|event| is_write_of(event, &own[at])).collect();
            writes.sort_by_key(|event| event.log.start_ns);
            let (new, old) = (*writes.last()?, *writes.first()?);
            (old.log.end_ns < new.log.start_ns).then(|| (at, old.clone(), new.clone()))
        })
        .unwrap();
    own[stale].observed = vec![own[stale].operation.fields as i64, old.operation.id.number()];
    let stale = own[stale].clone();
    let absent = own.iter().position(|event| is_asked(event) && event.log.session != stale.log.session).unwrap();
    own[absent].observed.clear();
    let absent = own[absent].clone();
    let shape = events[1].iter().position(is_asked).unwrap();
    events[1][shape].observed = vec![0, 0];
    let shape = events[1][shape].clone();
    let verdict = analyzed(&fixture, &events);
    assert_eq!(verdict.figures.unpredictable_reads, 3);
    check_freshness(&fixture, &verdict);

    let folder = fixture.run.root().display().to_string();
    let analyzer = |arguments: &[&str]| {
        // The run names its trace set by a path relative to this folder.
        let mut command = Command::new(env!("CARGO_BIN_EXE_analyzer"));
        command.args(arguments).env_remove("COLUMNS").current_dir(fixture.folder.path());
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let text = analyzer(&["validate", &folder]);
    let (key, field) = (stale.operation.key, stale.operation.fields.trailing_zeros());
    let session = |event: &KvEvent| format!("session {} step {}", event.log.session, event.log.step);
    for expect in [
        format!("read by {} of fragment 0", session(&stale)),
        format!(
            "field {field} of record {key} had the value of {}, which {} had overwritten before the read began",
            session(&old),
            session(&new)
        ),
        format!("writes  update, {}: ", session(&new)),
        format!("record {} was not found, although it existed", absent.operation.key),
        format!(
            "the answer about record {} has 2 values (0 to 2 expected), or a field that was not asked for",
            shape.operation.key
        ),
    ] {
        assert!(text.contains(&expect), "{expect}\n\n{text}");
    }
    // The difference of two ids is far greater than that of two counts, but it says nothing.
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}\n\n{text}"));
    let wrong_field = place(&format!("field {field} of record {key} had"));
    assert!(place("was not found") < wrong_field && place("the answer about record") < wrong_field, "{text}");
    let text = analyzer(&["report", &folder]);
    let page =
        std::fs::read_to_string(fixture.run.root().join("report.html")).unwrap_or_else(|e| panic!("{e}: {text}"));
    for expect in [
        format!("This read returned a wrong value: field {field} of record {key} had the value of {}", session(&old)),
        "the most popular hundredth of the records gets ".to_string(),
    ] {
        assert!(page.contains(&expect), "{expect}");
    }
}

/// The value that had been overwritten for the longest time is shown first, whatever the ids.
#[test]
fn the_stalest_reads_are_shown_first() {
    let fixture = generated(3_000, "", "read = 50\nupdate = 50");
    let mut events = [truthful(&fixture, 0), truthful(&fixture, 1)];
    // Every tenth read sees the initial value of its field.
    for event in events.iter_mut().flatten().filter(|event| is_asked(event)).step_by(10) {
        event.observed = vec![event.operation.fields as i64, 0];
    }
    let verdict = analyzed(&fixture, &events);
    assert!(verdict.figures.unpredictable_reads > 10, "{verdict:?}");
    let output = Command::new(env!("CARGO_BIN_EXE_analyzer"))
        .args(["validate", &fixture.run.root().display().to_string(), "--worst", "8", "--json"])
        .current_dir(fixture.folder.path())
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let age = |offender: &serde_json::Value| {
        let newest = WriteId::from_number(offender["low"].as_i64().unwrap()).unwrap().place();
        let of_fragment = &events[newest.0 as usize];
        let write = of_fragment.iter().find(|event| (event.log.session, event.log.step) == (newest.1, newest.2));
        offender["start_ns"].as_i64().unwrap() - write.unwrap().log.end_ns
    };
    let ages: Vec<i64> = shown["worst"].as_array().unwrap().iter().map(age).collect();
    assert!(ages.len() == 8 && ages.is_sorted_by(|older, younger| older >= younger), "{ages:?}");
}

/// Without this, a killed replayer would make a correct store look wrong.
#[test]
fn what_a_killed_replayer_did_not_log_may_have_happened() {
    let fixture = generated(1_000, "", MIX);
    let mut events = [truthful(&fixture, 0), truthful(&fixture, 1)];
    for events in &mut events {
        events.sort_by_key(|event| event.log.end_ns);
        events.truncate(events.len() - 60);
    }
    for (fragment, events) in (0..).zip(&events) {
        fixture.write_log(fragment, 0, events, false);
    }
    fixture.write_documents();
    let verdict = fixture.analyze().unwrap();
    assert_eq!((verdict.ruling, verdict.figures.unpredictable_reads), (Ruling::Void, 0));
    assert!(verdict.figures.missing[0].contains("log incomplete"), "{:?}", verdict.figures.missing);
}
