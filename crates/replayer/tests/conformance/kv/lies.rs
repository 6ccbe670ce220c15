//! The faults of `memory:`: it counts the wrong answers that it gives, and no others.

use replayer::stores::OperationError;
use schemas::vocabulary::kv::Kv;

use super::{BUSY, subjects};
use crate::place::Place;

/// Every operation is performed by an honest store and by one that lies. Returns how many answers
/// differ, and how many lies the store counted.
fn differences(url: &str, settings: &[&str]) -> (u64, u64) {
    let place = Place::with(BUSY, settings);
    let source = &place.source;
    let honest = subjects::reference().loaded(source);
    let liar = subjects::memory(url).loaded(source);
    let (mut truth, mut lies) = (honest.connect(source), liar.connect(source));
    let mut differences = 0;
    for operation in place.operations_of::<Kv>() {
        let [expected, found] = [&mut truth, &mut lies].map(|client| client.execute(&operation).expect(url).values);
        differences += (expected != found) as u64;
    }
    let told = liar.counters().get("lies_told").copied().expect("a counter");
    (differences, told)
}

#[test]
fn wrong_answers_are_counted() {
    for (url, settings) in [
        ("memory:?stale=0.3", &[][..]),
        ("memory:?stale=1&seed=9", &["access.read_all_fields=false"]),
        ("memory:?lost=0.2", &["mix.insert=0", "mix.delete=0"]),
    ] {
        let (differences, told) = differences(url, settings);
        assert!(differences > 20, "{url}: {differences}");
        assert_eq!(told, differences, "{url}");
    }
    assert_eq!(differences("memory:", &[]), (0, 0));
}

/// Every second write of unknown fate happened; one that failed did not.
#[test]
fn failed_writes_did_not_happen() {
    let place = Place::with(BUSY, &["mix.insert=0", "mix.delete=0"]);
    let source = &place.source;
    let honest = subjects::reference().loaded(source);
    let faulty = subjects::memory("memory:?error=0.2&unknown=0.2").loaded(source);
    let (mut truth, mut faults) = (honest.connect(source), faulty.connect(source));
    let (mut failed, mut unknown) = (0, 0);
    for operation in place.operations_of::<Kv>() {
        match faults.execute(&operation) {
            Ok(answer) => assert_eq!(answer.values, truth.execute(&operation).expect("an answer").values),
            Err(OperationError::Failed(_) | OperationError::Aborted(_)) => failed += 1,
            Err(OperationError::Unknown(_)) => {
                unknown += 1;
                if unknown % 2 == 1 {
                    truth.execute(&operation).expect("a write");
                }
            }
        }
    }
    assert!(failed > 50 && unknown > 20, "{failed} {unknown}");
    let digests = [honest, faulty].map(|subject| subject.store().digest(source).expect("a digest").to_string());
    assert_eq!(digests[0], digests[1]);
}
