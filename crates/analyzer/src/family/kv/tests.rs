//! Tests the items of the family against brute force, scans case by case, and the views against the
//! vocabulary.

use proptest::prelude::*;
use schemas::oplog::Outcome;
use schemas::spec::SpecOf;
use schemas::vocabulary::Operation as _;
use schemas::vocabulary::kv::{ABSENT, Found, Operation, UNVERIFIABLE, Verb, WriteId};
use schemas::workload::kv::KvWorkload;
use schemas::workload::kv::keys::KeyRange;

use super::items::KvItems;
use super::{Kv, names};
use crate::family::Family;
use crate::fixtures::row_of;
use crate::validate::brute::{Write, at, brute_force, open_ended};
use crate::validate::{Findings, Interval, ItemRead, Items, SHAPE, Validator, Violation};

/// A workload with this data set.
pub(super) fn workload_of(data: &str) -> KvWorkload {
    let text = format!("name = 't'\nfamily = 'kv'\nsessions = 1\n[data]\n{data}\n[mix]\nread = 1\n");
    SpecOf::<KvWorkload>::parse(&text, "t.toml").unwrap().own
}

/// So many records, from 0 on, with keys in the order of their numbers.
fn workload(records: u64) -> KvWorkload {
    workload_of(&format!("records = {records}\nkey_order = 'ordered'\nkey_digits = 4"))
}

pub(super) fn id(session: usize) -> i64 {
    WriteId::new(0, session as u64, 0).number()
}

pub(super) fn operation(session: usize, verb: Verb, key: u64, fields: u64, length: u32) -> Operation {
    Operation { verb, key, fields, length, id: WriteId::new(0, session as u64, 0), amount: 0 }
}

/// What is observed of a record: the numbers in its fields, from field 0 on.
pub(super) fn record(fields: u64, numbers: impl Fn(u32) -> i64) -> Vec<i64> {
    let mut observed = Vec::new();
    Found::push(&mut observed, (0..63).filter(|field| fields >> field & 1 == 1).map(|field| (field, numbers(field))));
    observed
}

/// One operation of a random history of one record, with three fields.
#[derive(Debug, Clone)]
struct Step {
    at: Interval,
    outcome: Outcome,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Write(Verb, u64),
    /// The numbers that are seen in the fields of a mask; None for no record. A number above 0 is
    /// that of a step.
    Read(u64, Option<[i64; 3]>),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![6 => Just(Outcome::Ok), 1 => Just(Outcome::Unknown), 1 => Just(Outcome::Failed)];
    let seen = prop_oneof![1 => Just(UNVERIFIABLE), 1 => Just(ABSENT), 2 => Just(0), 10 => 1i64..12];
    let what = prop_oneof![
        3 => (1u64..8).prop_map(|fields| What::Write(Verb::Update, fields)),
        1 => Just(What::Write(Verb::Insert, 7)),
        1 => Just(What::Write(Verb::Delete, 0)),
        4 => (1u64..8, prop::option::weighted(0.8, prop::array::uniform3(seen)))
            .prop_map(|(fields, seen)| What::Read(fields, seen)),
    ];
    (0i64..14, 0i64..6, outcome, what).prop_map(|(start, length, outcome, what)| Step {
        at: at(start, start + length),
        outcome,
        what,
    })
}

/// A number that a step sees, as an id.
fn number(seen: i64) -> i64 {
    if seen > 0 { id(seen as usize - 1) } else { seen }
}

/// The findings of the streaming validator, by step.
fn stream(steps: &[Step], key: u64) -> Vec<Findings> {
    let items = KvItems::new(&workload(1), KeyRange::default());
    let operation = |index: usize| match steps[index].what {
        What::Write(verb, fields) => operation(index, verb, key, fields, 0),
        What::Read(fields, _) => operation(index, Verb::Read, key, fields, 0),
    };
    let observed = |index: usize| match steps[index].what {
        What::Read(fields, Some(seen)) => record(fields, |field| number(seen[field as usize])),
        _ => Vec::new(),
    };
    let rows: Vec<_> =
        (0..steps.len()).map(|index| (steps[index].at, steps[index].outcome, operation(index))).collect();
    validated(items, &rows, observed)
}

/// The findings about operations with their times and outcomes, by operation.
pub(super) fn validated(
    items: KvItems,
    operations: &[(Interval, Outcome, Operation)],
    observed: impl Fn(usize) -> Vec<i64>,
) -> Vec<Findings> {
    let mut validator = Validator::new(items);
    let mut found = vec![Findings::default(); operations.len()];
    let mut order: Vec<usize> = (0..operations.len()).collect();
    order.sort_by_key(|index| operations[*index].0.start);
    let mut drain = |validator: &mut Validator<KvItems, Operation>, now: Option<i64>| {
        while let Some(row) = validator.leave(now) {
            let index = row.log.session as usize;
            found[index] = validator.check(&row, &observed(index)).unwrap().clone();
        }
    };
    for index in order {
        let (at, outcome, operation) = operations[index];
        let mut row = row_of(index as u64, at.start, at.end, operation);
        row.log.outcome = outcome;
        drain(&mut validator, Some(at.start));
        validator.enter(row).unwrap();
    }
    drain(&mut validator, None);
    found
}

/// What brute force finds in one read.
fn expected(steps: &[Step], index: usize, is_initial: bool) -> Findings {
    const NEVER: i64 = -5;
    let read = &steps[index];
    let mut findings = Findings::default();
    let What::Read(fields, seen) = read.what else { return findings };
    if read.outcome != Outcome::Ok {
        return findings;
    }
    let mut by_start: Vec<usize> = (0..steps.len()).collect();
    by_start.sort_by_key(|index| steps[*index].at.start);
    let writes: Vec<(Interval, bool, i64, Verb, u64)> = by_start
        .into_iter()
        .filter(|index| matches!(steps[*index].outcome, Outcome::Ok | Outcome::Unknown))
        .filter_map(|index| match steps[index].what {
            What::Write(verb, fields) => {
                let optional = steps[index].outcome == Outcome::Unknown;
                Some((open_ended(steps[index].at, optional), optional, id(index), verb, fields))
            }
            What::Read(..) => None,
        })
        .collect();
    let existence: Vec<Write<bool>> = writes
        .iter()
        .filter(|write| write.3 != Verb::Update)
        .map(|(at, optional, _, verb, _)| Write { at: *at, optional: *optional, effect: *verb == Verb::Insert })
        .collect();
    let exists = seen.is_some();
    if !brute_force(is_initial, &existence, read.at, &|_, exists| exists).contains(&exists) {
        let (item, observed, only) = (names::EXISTENCE, i64::from(exists), i64::from(!exists));
        let owner = u64::from(!is_initial);
        findings.violations.push(Violation { item, owner, element: None, observed, low: only, high: only });
    }
    for field in 0..3u32 {
        let Some(seen) = seen.map(|seen| number(seen[field as usize])).filter(|_| fields >> field & 1 == 1) else {
            continue;
        };
        let of_field: Vec<_> = writes.iter().filter(|write| write.4 >> field & 1 == 1).collect();
        let brute: Vec<Write<i64>> =
            of_field.iter().map(|(at, optional, id, ..)| Write { at: *at, optional: *optional, effect: *id }).collect();
        let values = brute_force(if is_initial { 0 } else { NEVER }, &brute, read.at, &|_, id| id);
        if seen != UNVERIFIABLE && !values.contains(&seen) {
            let ended = of_field.iter().filter(|write| write.0.end < read.at.start);
            let newest = ended.max_by_key(|write| write.0.start).map_or(0, |write| write.2);
            findings.violations.push(Violation {
                item: names::FIELD,
                owner: u64::from(!is_initial),
                element: Some(field as i64),
                observed: seen,
                low: newest,
                high: newest,
            });
        }
    }
    let ends = writes.iter().filter(|write| write.3 != Verb::Update || write.4 & fields != 0).map(|write| write.0.end);
    if let Some(end) = ends.filter(|end| *end < read.at.start).max() {
        let (age_ns, is_fresh) = (read.at.start - end, findings.violations.is_empty());
        findings.items.push(ItemRead { age_ns, is_fresh });
    }
    findings
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    /// The window, and what is dropped, change nothing: for each read the stream finds what brute
    /// force over the whole history finds.
    #[test]
    fn the_stream_finds_what_brute_force_finds(
        steps in prop::collection::vec(step(), 0..12)
            .prop_filter("brute force is for few writes", |steps| {
                steps.iter().filter(|s| matches!(s.what, What::Write(..))).count() <= 6
            }),
        is_initial in any::<bool>(),
    ) {
        let found = stream(&steps, u64::from(!is_initial));
        for (index, findings) in found.into_iter().enumerate() {
            prop_assert_eq!(findings, expected(&steps, index, is_initial), "step {}", index);
        }
    }
}

/// The violations of an answer: the item, the owner, the element and what was observed.
type Wrong = (&'static str, u64, Option<i64>, i64);

fn check(items: &mut KvItems, operation: Operation, observed: &[i64], read: Interval, expect: &[Wrong]) {
    let mut findings = Findings::default();
    items.check(&operation, observed, read, read.start, &mut findings).unwrap();
    let found: Vec<Wrong> = findings.violations.iter().map(|v| (v.item, v.owner, v.element, v.observed)).collect();
    assert_eq!(found, expect, "{observed:?}");
}

#[test]
fn answers_of_another_shape_say_nothing_about_their_items() {
    let mut items = KvItems::new(&workload(10), KeyRange::default());
    let read = operation(0, Verb::Read, 3, 0b101, 0);
    let wrong = |values: i64| [(SHAPE, 3, None, values)];
    check(&mut items, read, &[0], at(0, 1), &[]);
    check(&mut items, read, &[0b10, id(1)], at(0, 1), &wrong(2));
    check(&mut items, read, &[0b101, id(1)], at(0, 1), &wrong(2));
    check(&mut items, read, &[0, 0], at(0, 1), &wrong(2));
    check(&mut items, read, &[-1], at(0, 1), &wrong(1));
    let mut findings = Findings::default();
    items.check(&read, &[0b10, id(1)], at(0, 1), 0, &mut findings).unwrap();
    assert_eq!((findings.violations[0].low, findings.violations[0].high), (0, 3));
}

#[test]
fn values_of_other_writes_are_wrong() {
    let mut items = KvItems::new(&workload(10), KeyRange::default());
    items.register(&operation(1, Verb::Update, 3, 0b1, 0), at(0, 5), 0).unwrap();
    items.register(&operation(2, Verb::Update, 4, 0b1, 0), at(0, 5), 0).unwrap();
    let read = operation(9, Verb::Read, 3, 0b11, 0);
    let field = |field: i64, observed: i64| (names::FIELD, 3, Some(field), observed);
    check(&mut items, read, &[0b1, id(1)], at(6, 7), &[]);
    check(&mut items, read, &[0], at(6, 7), &[field(0, 0)]);
    // Of another record, another field, another fragment, and one that says nothing.
    check(&mut items, read, &[0b1, id(2)], at(6, 7), &[field(0, id(2))]);
    check(&mut items, read, &[0b11, id(1), id(1)], at(6, 7), &[field(1, id(1))]);
    let foreign = WriteId::new(1, 1, 0).number();
    check(&mut items, read, &[0b1, foreign], at(6, 7), &[field(0, foreign)]);
    check(&mut items, read, &[0b1, UNVERIFIABLE], at(6, 7), &[]);
    // A field without a value: of a record that was written, and of one that was not.
    check(&mut items, read, &[0b1, ABSENT], at(6, 7), &[field(0, ABSENT)]);
    let unwritten = operation(9, Verb::Read, 5, 0b11, 0);
    check(&mut items, unwritten, &[0b10, ABSENT], at(6, 7), &[(names::FIELD, 5, Some(1), ABSENT)]);
    // A record that was never inserted, with and without a value.
    let other = operation(9, Verb::Read, 12, 0b1, 0);
    check(&mut items, other, &[], at(6, 7), &[]);
    let absent = (names::EXISTENCE, 12, None, 1);
    check(&mut items, other, &[0], at(6, 7), &[absent, (names::FIELD, 12, Some(0), 0)]);
}

/// Records 10 to 19 of 30 are in the fragment.
fn scanned() -> KvItems {
    let keys = schemas::workload::kv::Keys::new(&workload(30).data);
    let range = KeyRange { from: Some(keys.place(10)), to: Some(keys.place(20)) };
    KvItems::new(&workload(30), range).scanned(&(10..20).collect::<Vec<_>>())
}

fn keys(records: &[i64]) -> Vec<i64> {
    records.iter().flat_map(|record| [*record, 0]).collect()
}

#[test]
fn scans_return_the_records_that_exist_in_order() {
    let mut items = scanned();
    let scan = |length| operation(9, Verb::Scan, 12, 0b1, length);
    let missing = |record: u64| (names::EXISTENCE, record, None, 0);
    let now = at(100, 101);
    check(&mut items, scan(3), &keys(&[12, 13, 14]), now, &[]);
    check(&mut items, scan(3), &keys(&[12, 14, 15]), now, &[missing(13)]);
    check(&mut items, scan(3), &keys(&[13, 14, 15]), now, &[missing(12)]);
    // Too few, and none at all: as many are missing as were asked for.
    check(&mut items, scan(3), &keys(&[12, 13]), now, &[missing(14)]);
    check(&mut items, scan(3), &[], now, &[missing(12), missing(13), missing(14)]);
    check(&mut items, scan(2), &keys(&[18, 19]), now, &[missing(12), missing(13)]);
    // Records of the next fragment are not judged, and need not be there.
    check(&mut items, scan(10), &keys(&[12, 13, 14, 15, 16, 17, 18, 19, 20, 25]), now, &[]);
    check(&mut items, scan(10), &keys(&[12, 13, 14, 15, 16, 17, 18, 19]), now, &[]);
    check(&mut items, scan(9), &keys(&[12, 13, 14, 15, 16, 17, 18, 20, 99]), now, &[missing(19)]);
    for wrong in [&[11, 12][..], &[12, 14, 13], &[12, 12], &[12, 13, 14, 15], &[-12]] {
        check(&mut items, scan(3), &keys(wrong), now, &[(SHAPE, 12, None, 2 * wrong.len() as i64)]);
    }
    check(&mut items, scan(3), &[12, 0b10, id(1)], now, &[(SHAPE, 12, None, 3)]);
    check(&mut items, scan(3), &[12, 0b1], now, &[(SHAPE, 12, None, 2)]);
}

#[test]
fn scans_follow_inserts_and_deletes() {
    // Key 14x lies between 14 and 15, in the order of texts.
    let mut items = scanned();
    let scan = |length| operation(9, Verb::Scan, 12, 0b1, length);
    items.register(&operation(1, Verb::Delete, 13, 0, 0), at(0, 5), 0).unwrap();
    items.register(&operation(2, Verb::Update, 12, 0b1, 0), at(0, 5), 0).unwrap();
    let existence = |record: u64, observed: i64| (names::EXISTENCE, record, None, observed);
    let first = |numbers: &[i64], rest: &[i64]| [&[12], numbers, &keys(rest)].concat();
    let written = &[0b1, id(2)];
    check(&mut items, scan(3), &first(written, &[14, 15]), at(6, 7), &[]);
    check(&mut items, scan(3), &first(written, &[13, 14]), at(6, 7), &[existence(13, 1)]);
    check(&mut items, scan(3), &first(&[0], &[14, 15]), at(6, 7), &[(names::FIELD, 12, Some(0), 0)]);
    // While the delete runs, both are possible.
    for answer in [&[13, 14][..], &[14, 15]] {
        check(&mut items, scan(3), &first(written, answer), at(5, 6), &[]);
    }
}

/// With hashed keys, records are in another order than their numbers, and new ones lie between the
/// others.
#[test]
fn scans_find_what_is_inserted_between_other_keys() {
    let workload = workload_of("records = 50");
    let keys = schemas::workload::kv::Keys::new(&workload.data);
    let place = |record: &u64| keys.place(keys.number(*record));
    let mut all: Vec<u64> = (0..60).collect();
    all.sort_by_key(place);
    let initial: Vec<u64> = all.iter().copied().filter(|record| *record < 50).collect();
    let mut items = KvItems::new(&workload, KeyRange::default()).scanned(&initial);
    for record in 50..60 {
        let insert = operation(record as usize, Verb::Insert, record, 0b1, 0);
        items.register(&insert, at(record as i64, record as i64 + 1), 0).unwrap();
    }
    let scan = operation(99, Verb::Scan, all[0], 0b1, 60);
    let answer = |records: &[u64]| -> Vec<i64> {
        let numbers = |record: &u64| if *record < 50 { vec![0] } else { vec![1, id(*record as usize)] };
        records.iter().flat_map(|record| [vec![keys.number(*record) as i64], numbers(record)].concat()).collect()
    };
    check(&mut items, scan, &answer(&all), at(100, 101), &[]);
    let missing: Vec<Wrong> =
        all.iter().filter(|record| **record >= 50).map(|record| (names::EXISTENCE, *record, None, 0)).collect();
    check(&mut items, scan, &answer(&initial), at(100, 101), &missing);
    // A key that no record has.
    let mut phantom = answer(&all);
    phantom.extend([i64::MAX, 0]);
    let scan = Operation { length: 61, ..scan };
    check(&mut items, scan, &phantom, at(100, 101), &[(names::EXISTENCE, i64::MAX as u64, None, 1)]);
}

#[test]
fn a_record_of_another_fragment_is_an_error() {
    let mut items = scanned();
    let error = items.register(&operation(0, Verb::Update, 25, 1, 0), at(0, 1), 0).unwrap_err();
    assert_eq!(error.to_string(), "record 25 is not in the fragment's data set");
}

/// Sessions before the experiment leave one of several values if they may have raced, and the last
/// one otherwise. They count as neither new nor stale.
#[test]
fn earlier_writes_are_possible_initial_values() {
    let long_ago = |session: usize| at(i64::MIN / 2 + session as i64, i64::MIN / 2 + session as i64);
    let earlier = |mut items: KvItems| {
        for (session, verb, key, fields) in [
            (1, Verb::Update, 3, 0b1),
            (2, Verb::Update, 3, 0b1),
            (3, Verb::Insert, 12, 0b11),
            (4, Verb::Insert, 13, 0b11),
            (5, Verb::Delete, 13, 0),
            (6, Verb::Delete, 4, 0),
        ] {
            let write = operation(session, verb, key, fields, 0);
            items.register(&write, long_ago(session), long_ago(session).start).unwrap();
        }
        items
    };
    let new = || KvItems::new(&workload(10), KeyRange::default());
    let read = |key| operation(99, Verb::Read, key, 0b1, 0);
    let field = |observed: i64| (names::FIELD, 3, Some(0), observed);
    let now = at(10, 11);
    for (mut items, of_first) in [(earlier(new()), &[field(id(1))][..]), (earlier(new().racing()), &[])] {
        check(&mut items, read(3), &[1, id(1)], now, of_first);
        check(&mut items, read(3), &[1, id(2)], now, &[]);
        check(&mut items, read(3), &[0], now, &[field(0)]);
        check(&mut items, read(3), &[1, id(3)], now, &[field(id(3))]);
        check(&mut items, read(12), &[1, id(3)], now, &[]);
        check(&mut items, read(12), &[], now, &[(names::EXISTENCE, 12, None, 0)]);
        check(&mut items, read(13), &[], now, &[]);
        check(&mut items, read(4), &[], now, &[]);
        let mut findings = Findings::default();
        items.check(&read(3), &[1, id(2)], now, 10, &mut findings).unwrap();
        assert_eq!(findings, Findings::default());
        // A write of the experiment ends that.
        items.register(&operation(20, Verb::Update, 3, 0b1, 0), at(10, 12), 10).unwrap();
        check(&mut items, read(3), &[1, id(2)], at(12, 13), &[]);
        check(&mut items, read(3), &[1, id(2)], at(13, 14), &[field(id(2))]);
        check(&mut items, read(3), &[1, id(20)], at(13, 14), &[]);
    }
}

/// Of writes before the experiment that a store may have rolled back, none need have happened.
#[test]
fn earlier_writes_of_transactions_may_be_undone() {
    let long_ago = |session: usize| at(i64::MIN / 2 + session as i64, i64::MIN / 2 + session as i64);
    let earlier = || {
        let mut items = KvItems::new(&workload(10), KeyRange::default()).racing().undoable();
        for (session, verb, key, fields) in
            [(1, Verb::Update, 3, 0b1), (2, Verb::Insert, 12, 0b11), (3, Verb::Delete, 4, 0)]
        {
            items.register(&operation(session, verb, key, fields, 0), long_ago(session), i64::MIN).unwrap();
        }
        items
    };
    let read = |key| operation(99, Verb::Read, key, 0b1, 0);
    let now = at(10, 11);
    let field = |observed: i64| (names::FIELD, 3, Some(0), observed);
    let mut items = earlier();
    for (key, observed) in
        [(3, vec![1, id(1)]), (3, vec![0]), (12, vec![1, id(2)]), (12, vec![]), (4, vec![]), (4, vec![0])]
    {
        check(&mut items, read(key), &observed, now, &[]);
    }
    check(&mut items, read(3), &[1, id(2)], now, &[field(id(2))]);
    // A closing read says which it was.
    let mut items = earlier();
    items.begin_with(&read(3), &[0]).unwrap();
    check(&mut items, read(3), &[0], now, &[]);
    check(&mut items, read(3), &[1, id(1)], now, &[field(id(1))]);
    let mut items = earlier();
    items.begin_with(&read(3), &[1, id(1)]).unwrap();
    check(&mut items, read(3), &[1, id(1)], now, &[]);
    check(&mut items, read(3), &[0], now, &[field(0)]);
    let mut items = earlier();
    items.begin_with(&read(12), &[]).unwrap();
    check(&mut items, read(12), &[], now, &[]);
    check(
        &mut items,
        read(12),
        &[1, id(2)],
        now,
        &[(names::EXISTENCE, 12, None, 1), (names::FIELD, 12, Some(0), id(2))][..1],
    );
}

/// The views in SQL say of random operations what the items say of them.
#[test]
fn the_views_are_what_the_vocabulary_says() {
    let database = duckdb::Connection::open_in_memory().unwrap();
    let table = "CREATE TABLE operations (experiment BIGINT, fragment BIGINT, session BIGINT, step SMALLINT, \
                 operation VARCHAR, actor BIGINT, key BIGINT, fields BIGINT, length INTEGER, outcome VARCHAR, \
                 start_ns BIGINT, end_ns BIGINT, warmup BOOLEAN, drained BOOLEAN, counts_as VARCHAR, snapshot_ns BIGINT, \
                 visible_ns BIGINT, try_end VARCHAR)";
    database.execute_batch(&format!("{table};{}", Kv::views())).unwrap();
    let (mut updates, mut reads) = (Vec::new(), Vec::new());
    for (session, verb) in (0..).zip(Verb::ALL.into_iter().cycle().take(3 * Verb::ALL.len())) {
        let all = [0b1001, 1 << 62 | 0b10, (1 << 63) - 1][session as usize / Verb::ALL.len()];
        let fields: u64 = if verb == Verb::Delete || verb.control().is_some() { 0 } else { all };
        let row =
            "INSERT INTO operations VALUES (1, 0, ?, 0, ?, 4, 7, ?, 9, 'ok', 1, 2, false, false, 'ok', 1, 2, NULL)";
        database.execute(row, duckdb::params![session, verb.name(), fields as i64]).unwrap();
        let each = (0..63i64).filter(|field| fields >> field & 1 == 1);
        let of_verb = operation(0, verb, 7, fields, 9);
        if of_verb.writes() {
            updates.extend(each.map(|field| (session, "field".to_string(), 7, Some(field), 1)));
            match verb {
                Verb::Insert => updates.push((session, "existence".to_string(), 7, None, 1)),
                Verb::Delete => updates.push((session, "existence".to_string(), 7, None, -1)),
                _ => {}
            }
        } else if verb == Verb::Read {
            // The last mask has every field that the operations use.
            let each = if fields == (1 << 63) - 1 { vec![None] } else { each.map(Some).collect() };
            reads.extend(each.into_iter().map(|field| (session, "field".to_string(), 7, field, "record".to_string())));
            reads.push((session, "existence".to_string(), 7, None, "record".to_string()));
        }
    }
    let mut found = database.prepare("SELECT session, item, owner, element, change FROM item_updates").unwrap();
    let row = |row: &duckdb::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    let mut found: Vec<(i64, String, u64, Option<i64>, i64)> =
        found.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap();
    found.sort();
    updates.sort();
    assert_eq!(found, updates);
    let mut found = database.prepare("SELECT session, item, owner, element, unit FROM item_reads").unwrap();
    let row = |row: &duckdb::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    let mut found: Vec<(i64, String, u64, Option<i64>, String)> =
        found.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap();
    found.sort();
    reads.sort();
    assert_eq!(found, reads);

    let place = (32_766, (1i64 << 36) - 2, 4_000);
    let id = WriteId::new(place.0 as u32, place.1 as u64, place.2 as u16).number();
    let statement = "SELECT write_fragment(?1), write_session(?1), write_step(?1)";
    let found: (i64, i64, i64) =
        database.query_row(statement, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!(found, place);
}
