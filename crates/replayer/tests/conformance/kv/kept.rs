//! Records that another tool has loaded are run on, and never overwritten.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use replayer::any_store::{self, AnyStore};
use replayer::experiment::Control;
use replayer::stores::Blame;
use schemas::vocabulary::kv::{ABSENT, Operation, Verb};
use schemas::workload::kv::{Keys, KvWorkload};

use super::foreign::{self, Foreign};
use super::{BUSY, operation, scan, subjects};
use crate::place::{self, Place};

/// A store with records of a table that another tool has loaded.
fn filled(foreign: &Foreign, place: &Place, fields: u32) -> Box<dyn AnyStore> {
    let workload = place.source.workload::<KvWorkload>();
    let keys = Keys::new(&workload.data);
    let records = workload.data.first_record..workload.data.first_record + workload.data.records;
    foreign.fill(&records.map(|record| keys.key(record)).collect::<Vec<_>>(), fields);
    any_store::open(&foreign.url).unwrap_or_else(|error| panic!("{error}"))
}

/// Databases with names that no other test has.
fn all(folder: &Path) -> Vec<Foreign> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    foreign::all(&format!("kept_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed)), folder)
}

/// A place with sessions that the store can perform.
fn place_for(foreign: &Foreign, overrides: &[&str]) -> Place {
    let scans = if foreign.has_scans() { "mix.scan=15" } else { "mix.scan=0" };
    Place::with(BUSY, &[&["fragments=2", scans], overrides].concat())
}

#[track_caller]
fn refused<X>(what: &str, result: Result<X, replayer::stores::StoreError>, words: &[&str]) {
    let error = result.err().unwrap_or_else(|| panic!("{what}: not refused"));
    assert!(error.blame != Blame::Store, "{what}: {error}");
    for word in words {
        assert!(error.message.contains(word), "{what}: {error} lacks {word:?}");
    }
}

#[test]
fn records_of_another_tool_are_run_on_and_never_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, foreign) in all(folder.path()).iter().enumerate() {
        let (place, url) = (place_for(foreign, &["mix.insert=0", "mix.delete=0"]), &foreign.url);
        let source = &place.source;
        let store = filled(foreign, &place, 4);
        refused(url, store.load(source, &|_, _| {}), &["Encore has not"]);
        assert_eq!(store.adopt(source).expect(url), [], "{url}");
        // Until an experiment has run, the same records serve other sessions too.
        let other = place_for(foreign, &["mix.insert=0", "seed=9"]);
        assert_eq!(store.adopt(&other.source).expect(url), [], "{url}");
        assert_eq!(store.adopt(source).expect(url), [], "{url}");

        let experiment = place.experiment(url, 4, &format!("run-{number}"));
        store.check(&experiment).expect(url);
        let report = store.run(&experiment, &Control::default(), &mut |_| {}).expect(url);
        assert_eq!((report.ok >= 600, report.failed, report.unknown), (true, 0, 0), "{url}");
        let positions = report.positions.clone();
        assert_eq!(store.adopt(source).expect(url), positions, "{url}");
        // From here on, ids that are written would come again.
        refused(url, store.check(&experiment), &["session", "load the records again with the tool"]);
        refused(url, store.adopt(&other.source), &["the same ids", "load the records again with the tool"]);
        refused(url, store.load(source, &|_, _| {}), &["does not overwrite them", "encore_state"]);
        assert_eq!(store.adopt(source).expect(url), positions, "{url}");
        // Without the marker, the values say it.
        foreign.unmark();
        refused(url, store.adopt(source), &["a run of Encore has written", "load the records again with the tool"]);
    }
}

#[test]
fn records_that_are_not_the_data_set_are_refused_and_unmarked() {
    let folder = tempfile::tempdir().expect("a folder");
    for foreign in &all(folder.path()) {
        let url = &foreign.url;
        let place = place_for(foreign, &[]);
        let adopt = |place: &Place| any_store::open(url).expect(url).adopt(&place.source);
        if foreign.counts_exactly() {
            refused(url, adopt(&place), &["no records to keep", "--keep-data"]);
        }
        filled(foreign, &place, 4);
        let more = place_for(foreign, &["data.records=121"]);
        refused(url, adopt(&more), &["found 120", "has 121", "recordcount", "t.trace"]);
        let ordered = place_for(foreign, &["data.key_order='ordered'", "fragments=1"]);
        let words: &[&str] = match foreign.counts_exactly() {
            true => &["has no record user0 ", "insertorder", "the store has user"],
            false => &["found 0", "insertorder", "the store has user"],
        };
        refused(url, adopt(&ordered), words);
        let wider = place_for(foreign, &["data.fields=5"]);
        refused(url, adopt(&wider), &["cannot read record user", "fieldcount", "5 fields"]);
        // Nothing was marked.
        refused(url, any_store::open(url).expect(url).positions(&place.source), &[]);
        assert_eq!(adopt(&place).expect(url), []);
    }
}

#[test]
fn what_cannot_be_kept_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, social) = (Place::with(BUSY, &["sessions=1"]), Place::with(place::BUSY, &["sessions=1"]));
    let url = format!("sqlite:{}", folder.path().join("own.db").display());
    let open = |url: &str| any_store::open(url).expect(url);
    for url in ["memory:", "null:"] {
        refused(url, open(url).adopt(&place.source), &["keeps no data of another tool; remove --keep-data"]);
    }
    refused("social", open(&url).adopt(&social.source), &["can only be loaded by Encore", "remove --keep-data"]);
    open(&url).load(&place.source, &|_, _| {}).expect("a load");
    refused("own", open(&url).adopt(&place.source), &["was loaded by Encore", "remove --keep-data"]);
}

/// Every update of a column that was too narrow failed.
#[test]
fn columns_that_are_too_narrow_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for foreign in &all(folder.path()) {
        let (place, url) = (place_for(foreign, &[]), &foreign.url);
        let store = filled(foreign, &place, 4);
        if !foreign.narrow() {
            continue;
        }
        let wide = place_for(foreign, &["data.field_bytes=51"]);
        let words = ["usertable holds at most 50 characters", "up to 51 (data.field_bytes)", "widen"];
        refused(url, store.adopt(&wide.source), &words);
        // Sessions that only read need no room, and 50 bytes fit.
        let none = ["mix.update=0", "mix.insert=0", "mix.delete=0", "mix.read_modify_write=0", "data.field_bytes=51"];
        assert_eq!(store.adopt(&place_for(foreign, &none).source).expect(url), [], "{url}");
        let fitting = place_for(foreign, &["data.field_bytes=50"]);
        assert_eq!(store.adopt(&fitting.source).expect(url), [], "{url}");
    }
}

/// A read of a field without a value failed, and the experiment passed.
#[test]
fn a_field_without_a_value_is_read_as_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for foreign in &all(folder.path()) {
        let (place, url) = (place_for(foreign, &[]), &foreign.url);
        let keys = Keys::new(&place.source.workload::<KvWorkload>().data);
        filled(foreign, &place, 4).adopt(&place.source).expect(url);
        foreign.remove_field(&keys.key(119));
        observes(url, &place, operation(Verb::Read, 119, 0b1111, 0), &[0b10, ABSENT]);
        observes(url, &place, operation(Verb::Read, 119, 0b0110, 0), &[0b10, ABSENT]);
        observes(url, &place, operation(Verb::Read, 119, 0b1000, 0), &[0]);
        if foreign.has_scans() {
            let number = keys.number(119) as i64;
            observes(url, &place, scan(119, 0b0011, 1), &[number, 0b10, ABSENT]);
        }
        foreign.unmark();
        let adopted = any_store::open(url).expect(url).adopt(&place.source);
        refused(url, adopted, &["cannot read record user", "field1 has no value", "fieldcount"]);
    }
}

/// Checks what a read or a scan observes on the store of a URL.
fn observes(url: &str, place: &Place, read: Operation, expect: &[i64]) {
    let seen = subjects::of_url(url).connect(&place.source).execute(&read).unwrap_or_else(|e| panic!("{url}: {e:?}"));
    assert_eq!(seen.values, expect, "{url}: {read:?}");
}

/// Rows that were deleted by hand are noticed before anything starts.
#[test]
fn a_count_that_contradicts_the_trace_set_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, foreign) in all(folder.path()).iter().enumerate() {
        let (place, url) = (place_for(foreign, &[]), &foreign.url);
        let store = any_store::open(url).expect(url);
        store.load(&place.source, &|_, _| {}).expect(url);
        foreign.remove(&Keys::new(&place.source.workload::<KvWorkload>().data).key(7));
        let error = store.check(&place.experiment(url, 1, &format!("run-{number}"))).expect_err(url);
        assert_eq!(error.blame, Blame::State, "{error}");
        for word in
            ["found 119, the data set of", "t.trace has 120; ", "load it again with `encore replay load --trace"]
        {
            assert!(error.message.contains(word), "{error} lacks {word}");
        }
    }
}
