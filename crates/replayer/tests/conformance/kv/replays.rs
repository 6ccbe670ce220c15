//! Replays of whole traces leave the state that the trace says, and a load undoes all of their writes.

use replayer::any_store;
use replayer::experiment::Control;
use replayer::stores::Blame;
use schemas::vocabulary::kv::Verb;

use super::{BUSY, operation, subjects};
use crate::place::Place;

#[test]
fn concurrent_writers_leave_the_state_of_the_trace() {
    subjects::each(&["fragments=2"], |place, subject, _| {
        let (url, source) = (subject.url.clone(), &place.source);
        let (digest, loaded) = (place.digest(None), place.digest(Some(0)));
        let subject = subject.loaded(source);
        let sessions = source.manifest.spec.sessions;
        let is_reference = url == "memory:";
        for threads in [1, 8] {
            let experiment = place.experiment(&url, threads, &format!("run-{}", subjects::number()));
            subject.store().check(&experiment).expect(&url);
            let report = subject.store().run(&experiment, &Control::default(), &mut |_| {}).expect(&url);
            let counts = (report.failed, report.unknown, report.skipped);
            assert_eq!((report.ok >= sessions, counts), (true, (0, 0, 0)), "{url}");
            assert_eq!(subject.store().digest(source).expect(&url).to_string(), digest, "{url}");
            for name in ["version", "durability", "isolation"] {
                assert!(is_reference || report.store_settings.contains_key(name), "{url}: {:?}", report.store_settings);
            }
            // Until it is settled where the store stands, no experiment starts there.
            let error = subject.store().check(&experiment).err();
            assert_eq!(error.map(|error| error.blame), Some(Blame::State), "{url}");
            let positions = report.positions.clone();
            subject.store().settle(1, &positions, 0).expect(&url);
            assert_eq!(subject.store().positions(source).unwrap_or_default(), positions, "{url}");
            // However a store is reset to its data set, it then holds that and nothing else.
            subject.store().load(source, &|_, _| {}).expect(&url);
            assert_eq!(subject.store().digest(source).expect(&url).to_string(), loaded, "{url}");
        }
    });
}

/// Another workload's records are replaced, and nothing of them is left. A record that is missing is
/// noticed.
#[test]
fn loads_replace_what_encore_has_loaded() {
    subjects::each(&["data.records=20", "data.fields=2", "seed=4"], |small, subject, has_scans| {
        let mix = if has_scans { "mix.scan=15" } else { "mix.scan=0" };
        let large = Place::with(BUSY, &["data.records=300", "seed=3", mix]);
        let (url, source) = (subject.url.clone(), &small.source);
        let subject = subject.loaded(&large.source);
        let experiment = small.experiment(&url, 1, &format!("run-{}", subjects::number()));
        let error = subject.store().check(&experiment).expect_err(&url);
        assert!(error.message.contains("contains workload"), "{error}");
        subject.load(source);
        assert_eq!(subject.store().digest(source).expect(&url).to_string(), small.digest(Some(0)), "{url}");
        subject.store().check(&experiment).expect(&url);
        subject.connect(source).execute(&operation(Verb::Delete, 3, 0, 0)).expect(&url);
        subject.pretend_unused();
        let error = subject.store().check(&experiment).expect_err(&url);
        assert_eq!(error.blame, Blame::State, "{error}");
        assert!(error.message.contains("19") && error.message.contains("20"), "{error}");
    });
}

#[test]
fn racing_writes_have_no_digest() {
    subjects::each(&["access.ordered_writes=false", "sessions=5"], |place, subject, _| {
        let subject = subject.loaded(&place.source);
        let error = subject.store().digest(&place.source).expect_err("no digest");
        assert_eq!(error.blame, Blame::Usage, "{error}");
        assert!(error.message.contains("access.ordered_writes = true"), "{error}");
    });
}

#[test]
fn null_performs_everything() {
    let place = Place::with(BUSY, &[]);
    let store = any_store::open("null:").expect("a store");
    let experiment = place.experiment("null:", 8, "run");
    let report = store.run(&experiment, &Control::default(), &mut |_| {}).expect("a run");
    assert_eq!((report.ok >= 600, report.failed, report.unknown, report.skipped), (true, 0, 0, 0));
}
