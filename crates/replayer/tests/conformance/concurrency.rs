//! Many writers at the same time leave the state that the trace says, and a load undoes all of
//! their writes.

use replayer::any_store;
use replayer::experiment::Control;

use crate::place::{BUSY, Place};
use crate::subjects;

#[test]
fn concurrent_writers_leave_the_state_of_the_trace() {
    let place = Place::with(BUSY, &["sessions=500", "fragments=2", "data.members=120"]);
    let source = &place.source;
    let digest = place.digest(None);
    for (number, subject) in subjects::all(place.path()).into_iter().enumerate() {
        let url = subject.url.clone();
        let subject = subject.loaded(source);
        let experiment = place.experiment(&url, 8, &format!("run-{number}"));
        let report = subject.store().run(&experiment, &Control::default(), &mut |_| {}).expect(&url);
        assert_eq!((report.ok, report.failed, report.unknown, report.skipped), (500, 0, 0, 0), "{url}");
        assert_eq!(subject.store().digest(source).expect(&url).to_string(), digest, "{url}");
        // However a store is reset to its data set, it then holds that and nothing else.
        subject.store().load(source, &|_, _| {}).expect(&url);
        assert_eq!(subject.store().digest(source).expect(&url).to_string(), place.digest(Some(0)), "{url}");
        subject.store().check(&experiment).expect(&url);
    }
}

/// A short trace set does not have all that a long one of the same workload has written. A load
/// for the short one must undo all of it.
#[test]
fn a_load_takes_back_what_a_longer_trace_set_wrote() {
    let long = Place::with(BUSY, &["sessions=600"]);
    let short = Place::with(BUSY, &["sessions=20"]);
    assert_eq!(long.source.manifest.workload_id, short.source.manifest.workload_id);
    let name = format!("encore_shorter_{}", std::process::id());
    let file = format!("sqlite:{}?synchronous=off", long.path().join("shorter.db").display());
    let servers = [
        servers::postgres().map(|server| server.url(&name)),
        servers::mysql().map(|server| server.url(&name)),
        servers::mongodb().map(|server| server.url(&name)),
    ];
    for url in servers.into_iter().flatten().chain([file]) {
        let store = any_store::open(&url).expect(&url);
        store.load(&long.source, &|_, _| {}).expect(&url);
        let report = store.run(&long.experiment(&url, 4, "long"), &Control::default(), &mut |_| {}).expect(&url);
        assert_eq!(report.ok, 600, "{url}");
        store.load(&short.source, &|_, _| {}).expect(&url);
        assert_eq!(store.digest(&short.source).expect(&url).to_string(), short.digest(Some(0)), "{url}");
        std::fs::remove_dir_all(long.path().join("long")).expect("the run's folder");
    }
}
