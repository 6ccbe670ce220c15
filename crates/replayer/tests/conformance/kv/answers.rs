//! Every operation does what the reference store does, and what its definition says.

use replayer::stores::kv::KvData;
use replayer::stores::{Answer, OperationError};
use schemas::vocabulary::kv::{Found, FoundRecords, Kv, Operation, UNVERIFIABLE, Verb};

use super::{BUSY, operation, scan, subjects};
use crate::place::Place;
use crate::subjects::{Client, Subject};

/// What differs between the workloads: keys, lengths of values, fields that are asked for.
const VARIANTS: [&[&str]; 6] = [
    &[],
    &["data.key_order=\"ordered\"", "seed=2"],
    &["data.key_order=\"ordered\"", "data.key_digits=25", "access.read_all_fields=false", "seed=3"],
    &["data.field_length=\"uniform\"", "data.field_bytes_min=1", "data.field_bytes=60", "seed=4"],
    &["data.fields=63", "data.key_digits=200", "access.read_all_fields=false", "seed=5"],
    &["data.records=12", "data.fields=2", "data.field_bytes=70000", "access.write_all_fields=true", "sessions=60"],
];

fn execute(client: &mut dyn Client<Kv>, operation: &Operation, url: &str) -> Answer {
    client.execute(operation).unwrap_or_else(|error| panic!("{url}: {operation:?}: {error:?}"))
}

#[test]
fn every_operation_sees_what_the_reference_store_shows() {
    for settings in VARIANTS {
        subjects::each(settings, |place, subject, _| {
            let source = &place.source;
            let url = format!("{settings:?}, {}", subject.url);
            let (reference, subject) = (subjects::reference().loaded(source), subject.loaded(source));
            let (mut truth, mut client) = (reference.connect(source), subject.connect(source));
            for (number, operation) in place.operations_of::<Kv>().iter().enumerate() {
                let expected = execute(truth.as_mut(), operation, "memory:");
                let answer = execute(client.as_mut(), operation, &url);
                assert_eq!(answer.values, expected.values, "{url}: operation {number}, {operation:?}");
                assert_eq!(answer.payload_bytes, expected.payload_bytes, "{url}: operation {number}, {operation:?}");
            }
            assert_eq!(digest(&subject, place), place.digest(None), "{url}");
        });
    }
}

fn refused(client: &mut dyn Client<Kv>, operation: &Operation, words: &str, url: &str) {
    match client.execute(operation) {
        Err(OperationError::Failed(why)) => assert!(why.contains(words), "{url}: {why}"),
        other => panic!("{url}: {operation:?}: {other:?}"),
    }
}

fn digest(subject: &Subject<Kv>, place: &Place) -> String {
    subject.store().digest(&place.source).expect(&subject.url).to_string()
}

#[test]
fn impossible_writes_fail_and_change_nothing() {
    let (there, new, all) = (7, 5_000, 0b1111);
    subjects::each(&["sessions=1"], |place, subject, _| {
        let (url, source) = (subject.url.clone(), &place.source);
        let subject = subject.loaded(source);
        let before = digest(&subject, place);
        assert_eq!(before, place.digest(Some(0)), "{url}");
        let mut client = subject.connect(source);
        let client = client.as_mut();
        assert_eq!(execute(client, &operation(Verb::Read, new, all, 0), &url).values, [0; 0], "{url}");
        refused(client, &operation(Verb::Insert, there, all, 1), "exists already", &url);
        refused(client, &operation(Verb::Update, new, 0b10, 2), "does not exist", &url);
        refused(client, &operation(Verb::Delete, new, 0, 3), "does not exist", &url);
        assert_eq!(digest(&subject, place), before, "{url}");
        // The next writes succeed, and other connections see them.
        let (insert, update) = (operation(Verb::Insert, new, all, 4), operation(Verb::Update, new, 0b100, 5));
        let (inserted, updated) = (insert.id.number(), update.id.number());
        execute(client, &insert, &url);
        execute(client, &update, &url);
        let mut other = subject.connect(source);
        let seen = execute(other.as_mut(), &operation(Verb::Read, new, all, 0), &url).values;
        assert_eq!(seen, [all as i64, inserted, inserted, updated, inserted], "{url}");
        let seen = execute(other.as_mut(), &operation(Verb::Read, new, 0b101, 0), &url).values;
        assert_eq!(seen, [0b101, inserted, updated], "{url}");
        refused(client, &insert, "exists already", &url);
        execute(client, &operation(Verb::Delete, new, 0, 6), &url);
        refused(client, &operation(Verb::Delete, new, 0, 7), "does not exist", &url);
        assert_eq!(execute(other.as_mut(), &operation(Verb::Read, new, all, 0), &url).values, [0; 0], "{url}");
        assert_eq!(digest(&subject, place), before, "{url}");
    });
}

/// Scans return records in the order of the texts of their keys, from any key on.
#[test]
fn scans_are_in_the_order_of_keys() {
    for settings in [&["sessions=1"][..], &["sessions=1", "data.key_order=\"ordered\""]] {
        let place = Place::with(BUSY, settings);
        let source = &place.source;
        let data = KvData::of(source);
        let mut sorted: Vec<(String, i64)> =
            (0..120).map(|record| (data.keys.key(record), data.keys.number(record) as i64)).collect();
        sorted.sort();
        subjects::each_with_scans(&place, |subject| {
            let url = format!("{settings:?}, {}", subject.url);
            let subject = subject.loaded(source);
            let mut client = subject.connect(source);
            // The last one has no record, but a place among the keys.
            for record in [0, 1, 10, 99, 119, 1_000] {
                let key = data.keys.key(record);
                let from = sorted.iter().filter(|(other, _)| *other >= key).map(|(_, number)| *number);
                for length in [1, 7, 120, 100_000] {
                    let seen = execute(client.as_mut(), &scan(record, 0b11, length), &url);
                    let found: Vec<(i64, u64)> = FoundRecords::new(&seen.values)
                        .map(|one| one.map(|(number, found)| (number, found.mask())).expect(&url))
                        .collect();
                    let expected: Vec<(i64, u64)> = from.clone().take(length as usize).map(|n| (n, 0)).collect();
                    assert_eq!(found, expected, "{url}: {length} records from {key}");
                    assert_eq!(seen.payload_bytes, found.len() as u64 * 80, "{url}");
                }
            }
        });
    }
}

/// A value that is shorter than an id is read as one that tells nothing.
#[test]
fn short_values_are_unverifiable() {
    subjects::each(&["sessions=1", "data.field_bytes=10"], |place, subject, _| {
        let (url, source) = (subject.url.clone(), &place.source);
        let subject = subject.loaded(source);
        let seen = execute(subject.connect(source).as_mut(), &operation(Verb::Read, 3, 0b1010, 0), &url);
        let found = Found::read(&seen.values).expect(&url).expect("a record");
        assert_eq!([0, 1, 3].map(|field| found.of(field)), [0, UNVERIFIABLE, UNVERIFIABLE], "{url}");
        assert_eq!(seen.payload_bytes, 20, "{url}");
    });
}
