//! Replays of whole traces leave the state that the trace says, and a load undoes all of their writes.

use replayer::any_store;
use replayer::experiment::Control;
use replayer::stores::Blame;

use super::{BUSY, subjects};
use crate::place::Place;

#[test]
fn concurrent_writers_leave_the_state_of_the_trace() {
    let place = Place::with(BUSY, &["fragments=2"]);
    let source = &place.source;
    let (digest, loaded) = (place.digest(None), place.digest(Some(0)));
    for (number, subject) in subjects::all(place.path()).into_iter().enumerate() {
        let url = subject.url.clone();
        let subject = subject.loaded(source);
        let sessions = source.manifest.spec.sessions;
        for threads in [1, 8] {
            let experiment = place.experiment(&url, threads, &format!("run-{number}-{threads}"));
            subject.store().check(&experiment).expect(&url);
            let report = subject.store().run(&experiment, &Control::default(), &mut |_| {}).expect(&url);
            let counts = (report.failed, report.unknown, report.skipped);
            assert_eq!((report.ok >= sessions, counts), (true, (0, 0, 0)), "{url}");
            assert_eq!(subject.store().digest(source).expect(&url).to_string(), digest, "{url}");
            let positions = report.positions.clone();
            subject.store().settle(1, &positions, 0).expect(&url);
            assert_eq!(subject.store().positions(source).unwrap_or_default(), positions, "{url}");
            // However a store is reset to its data set, it then holds that and nothing else.
            subject.store().load(source, &|_, _| {}).expect(&url);
            assert_eq!(subject.store().digest(source).expect(&url).to_string(), loaded, "{url}");
        }
    }
}

#[test]
fn racing_writes_have_no_digest() {
    let place = Place::with(BUSY, &["access.ordered_writes=false", "sessions=5"]);
    for subject in subjects::all(place.path()) {
        let subject = subject.loaded(&place.source);
        let error = subject.store().digest(&place.source).expect_err("no digest");
        assert_eq!(error.blame, Blame::Usage, "{error}");
        assert!(error.message.contains("access.ordered_writes = true"), "{error}");
    }
}

#[test]
fn null_performs_everything() {
    let place = Place::with(BUSY, &[]);
    let store = any_store::open("null:").expect("a store");
    let experiment = place.experiment("null:", 8, "run");
    let report = store.run(&experiment, &Control::default(), &mut |_| {}).expect("a run");
    assert_eq!((report.ok >= 600, report.failed, report.unknown, report.skipped), (true, 0, 0, 0));
}
