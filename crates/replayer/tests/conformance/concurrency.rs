//! Many writers at the same time leave the state that the trace says, and a
//! load takes all of it back.

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
        // However a store is brought back to its data set, it holds that and nothing else.
        subject.store().load(source, &|_, _| {}).expect(&url);
        assert_eq!(subject.store().digest(source).expect(&url).to_string(), place.digest(Some(0)), "{url}");
        subject.store().check(&experiment).expect(&url);
    }
}
