//! Trace sets whose sums are right and whose operations do not fit their specification: the replayer
//! sends no such operation to a store, and the analyzer does not judge by it.

use std::path::PathBuf;

use parquet::arrow::ArrowWriter;
use schemas::manifest::Manifest;
use schemas::trace::{OperationsBuilder, OperationsReader};
use schemas::vocabulary::kv::{Kv, TraceRow, Verb};

use crate::support::Workplace;

const SPEC: &str = "\
name = 'kv'\nfamily = 'kv'\nsessions = 300\nfragments = 2\n[data]\nrecords = 80\nfields = 3\nfield_bytes = 20\n\
[access]\nscan_length_max = 9\ndependency_window = 8\n\
[mix]\nread = 3\nupdate = 3\ninsert = 2\nscan = 2\ndelete = 1\n";

/// A change of the first operation of a kind, and the words of the error that it leads to.
struct Case {
    verb: Verb,
    change: fn(&mut TraceRow),
    words: &'static [&'static str],
}

/// The same workload in transactions.
const TRANSACTIONS: &str = "\
name = 'kv'\nfamily = 'kv'\nsessions = 300\nfragments = 2\n[data]\nrecords = 80\nfields = 3\nfield_bytes = 20\n\
[mix]\nread = 3\nupdate = 3\nread_modify_write = 2\n[transactions]\nabort_share = 0.2\n";

const BAD_TRANSACTIONS: [Case; 6] = [
    Case {
        verb: Verb::Commit,
        change: |row| row.operation.verb = Verb::Begin,
        words: &["begins a transaction inside of the one that began at step 0"],
    },
    Case {
        verb: Verb::Begin,
        change: |row| row.operation.verb = Verb::Abort,
        words: &["ends a transaction, and none has begun"],
    },
    Case { verb: Verb::Read, change: |row| row.txn = None, words: &["has txn empty, expected 0"] },
    Case { verb: Verb::Update, change: |row| row.txn = Some(1), words: &["has txn 1, expected 0"] },
    Case { verb: Verb::Begin, change: |row| row.txn = None, words: &["has txn empty, expected 0"] },
    Case { verb: Verb::Commit, change: |row| row.operation.key = 5, words: &["key 5 of commit must be 0"] },
];

const CASES: [Case; 11] = [
    Case { verb: Verb::Read, change: |row| row.operation.fields |= 8, words: &["fields 15 of read"] },
    Case { verb: Verb::Update, change: |row| row.operation.fields = 0, words: &["fields 0 of update"] },
    Case { verb: Verb::Insert, change: |row| row.operation.fields = 1, words: &["fields 1 of insert"] },
    Case { verb: Verb::Insert, change: |row| row.operation.key = 5, words: &["key 5 is of the data set"] },
    Case { verb: Verb::Update, change: |row| row.operation.key = 900, words: &["key 900 is not of the data set"] },
    Case { verb: Verb::Delete, change: |row| row.operation.key = i64::MAX as u64, words: &["key 9223372036854775807"] },
    Case { verb: Verb::Scan, change: |row| row.operation.length = 10, words: &["length 10 of scan"] },
    Case { verb: Verb::Read, change: |row| row.operation.length = 2, words: &["length 2 of read"] },
    Case { verb: Verb::Read, change: |row| row.after = Some(row.session), words: &["(after is ", "depends on itself"] },
    Case { verb: Verb::Read, change: |row| row.actor = 1 << 40, words: &["actor 1099511627776 does not exist"] },
    Case { verb: Verb::Read, change: |row| row.due_us = Some(7), words: &["has a due time (due_us is 7)"] },
];

/// A trace set that is changed by hand.
struct TraceSet {
    folder: PathBuf,
    manifest: Manifest,
    rows: Vec<TraceRow>,
}

impl TraceSet {
    fn read(folder: PathBuf) -> TraceSet {
        let manifest = Manifest::read(&folder).expect("a manifest");
        let mut reader = OperationsReader::<Kv>::new(0, manifest.operation_files(&folder, 0), 10_000);
        let mut rows = Vec::new();
        reader.next_rows(&mut rows).expect("rows");
        TraceSet { folder, manifest, rows }
    }

    /// The path of the operations of fragment 0 below the folder.
    fn path(&self) -> String {
        let is_ours = |path: &&String| path.starts_with("operations/fragment=0/");
        self.manifest.files.iter().map(|file| &file.path).find(is_ours).expect("operations").clone()
    }

    /// Writes the trace set with one row changed, with right sums. Returns the row and the new id.
    fn write(&self, case: &Case) -> (TraceRow, String) {
        let at = self.rows.iter().position(|row| row.operation.verb == case.verb).expect("an operation");
        let mut rows = self.rows.clone();
        (case.change)(&mut rows[at]);
        let row = rows[at];
        (row, self.write_rows(&rows))
    }

    /// Writes the trace set with other rows of fragment 0, with right sums and counts. Returns the new id.
    fn write_rows(&self, rows: &[TraceRow]) -> String {
        let kinds = self.manifest.spec.kinds();
        let mut builder = OperationsBuilder::<Kv>::new(kinds.into_iter().map(|(name, _)| name));
        rows.iter().for_each(|row| builder.push(row));
        let batch = builder.finish();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("written");
        writer.close().expect("closed");
        let path = self.path();
        std::fs::write(self.folder.join(&path), &bytes).expect("written");
        let mut manifest = self.manifest.clone();
        let entry = manifest.files.iter_mut().find(|file| file.path == path).expect("an entry");
        (entry.bytes, entry.blake3) = (bytes.len() as u64, blake3::hash(&bytes).to_hex().to_string());
        entry.rows = rows.len() as u64;
        manifest.fragments[0].operations = rows.len() as u64;
        let manifest = manifest.identified();
        let text = serde_json::to_string(&manifest).expect("JSON");
        std::fs::write(self.folder.join(schemas::manifest::FILE_NAME), text).expect("written");
        manifest.trace_id
    }
}

/// Makes a run one of another trace set.
fn adopt(place: &Workplace, run: &str, old: &str, new: &str) {
    for name in ["run.json", "experiments/0001-T2/plan.json"] {
        let path = place.path(run).join(name);
        let text = std::fs::read_to_string(&path).expect("a document");
        assert!(text.contains(old) || name == "run.json", "{name} names no trace set");
        std::fs::write(&path, text.replace(old, new)).expect("written");
    }
}

#[test]
fn operations_that_do_not_fit_the_specification_are_refused() {
    refused(SPEC, &CASES);
}

#[test]
fn transactions_that_are_not_whole_are_refused() {
    refused(TRANSACTIONS, &BAD_TRANSACTIONS);
}

/// Each session is one transaction by the specification, with two records of one fragment.
const TRANSFERS: &str = "\
name = 'money'\nfamily = 'economy'\nsessions = 300\nfragments = 2\n[data]\nrecords = 80\nfields = 1\n\
[mix]\nread_modify_write = 1\n";

#[test]
fn transactions_that_do_not_end_or_cross_fragments_are_refused() {
    let place = Workplace::new();
    std::fs::write(place.path("money.toml"), TRANSFERS).expect("written");
    place.run(&["trace", "gen", "money.toml", "-o", "money.trace"]).succeeds();
    let good = TraceSet::read(place.path("money.trace"));
    let replay =
        |run: &str| place.run(&["replay", "run", "--trace", "money.trace", "--store", "memory:", "-T", "2", "-o", run]);
    replay("r").succeeds();
    let refused = |name: &str, old: &str, rows: &[TraceRow], words: &[&str]| {
        let id = good.write_rows(rows);
        place.run(&["trace", "verify", "money.trace"]).succeeds();
        let path = good.path();
        let words = [&[path.as_str()][..], words].concat();
        replay(name).fails(2, &words);
        adopt(&place, "r", old, &id);
        place.run(&["analyze", "summary", "r"]).fails(2, &words);
        id
    };
    // The commit of the third session is missing.
    let commit = good.rows.iter().enumerate().filter(|(_, row)| row.operation.verb == Verb::Commit).nth(2);
    let (at, commit) = commit.expect("a commit");
    let mut open = good.rows.clone();
    open.remove(at);
    let whose = format!("session {} step 0 begins a transaction that no commit or abort", commit.session);
    let id = refused("open", &good.manifest.trace_id, &open, &[whose.as_str(), "must not leave its session"]);
    // The second record of a transfer is one of the other fragment.
    let files = good.manifest.operation_files(&good.folder, 1);
    let (mut other, mut others) = (OperationsReader::<Kv>::new(1, files, 10_000), Vec::new());
    other.next_rows(&mut others).expect("rows");
    let foreign = others.iter().find(|row| row.operation.verb == Verb::Update).expect("an update").operation.key;
    let mut crossing = good.rows.clone();
    let at = crossing.iter().rposition(|row| row.operation.verb == Verb::Update).expect("an update");
    crossing[at].operation.key = foreign;
    let whose = format!("session {} step {}", crossing[at].session, crossing[at].step);
    let key = format!("key {foreign} is of another fragment");
    refused("crossing", &id, &crossing, &[whose.as_str(), key.as_str()]);
}

fn refused(spec: &str, cases: &[Case]) {
    let place = Workplace::new();
    std::fs::write(place.path("kv.toml"), spec).expect("written");
    place.run(&["trace", "gen", "kv.toml", "-o", "kv.trace"]).succeeds();
    let good = TraceSet::read(place.path("kv.trace"));
    place.run(&["replay", "run", "--trace", "kv.trace", "--store", "memory:", "-T", "2", "-o", "r"]).succeeds();
    let (path, mut id) = (good.path(), good.manifest.trace_id.clone());
    for (number, case) in cases.iter().enumerate() {
        let (row, new_id) = good.write(case);
        place.run(&["trace", "verify", "kv.trace"]).succeeds();
        let whose = format!("session {} step {}", row.session, row.step);
        let words = [&[path.as_str(), &whose][..], case.words].concat();
        let run = format!("bad-{number}");
        let replay = ["replay", "run", "--trace", "kv.trace", "--store", "memory:", "-T", "2", "-o", &run];
        place.run(&replay).fails(2, &words);
        adopt(&place, "r", &id, &new_id);
        place.run(&["analyze", "summary", "r"]).fails(2, &words);
        id = new_id;
    }
}
