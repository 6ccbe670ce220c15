//! Tests the items of the family on long histories of a store that tells the truth, and on lies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::oplog::Outcome;
use schemas::vocabulary::kv::{Found, Kv, Operation, UNVERIFIABLE, Verb};
use schemas::vocabulary::{Operation as _, Vocabulary as _};
use schemas::workload::kv::keys::KeyPlace;
use schemas::workload::kv::keys::KeyRange;
use schemas::workload::kv::{Keys, KvWorkload};

use super::items::KvItems;
use super::names;
use super::tests::{id, operation, record, validated, workload_of};
use crate::fixtures::row_of;
use crate::validate::brute::at;
use crate::validate::register::EXISTENCE;
use crate::validate::{FOREVER, Findings, Interval, Items, RegisterWrite, Validator, may_return};

/// A small generator of pseudo-random numbers; only its seed decides them.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

const FIELDS: u32 = 3;
const ALL: u64 = (1 << FIELDS) - 1;
const RECORDS: u64 = 40;

/// The middle one of three fragments of a data set.
struct World {
    workload: KvWorkload,
    keys: Keys,
    range: KeyRange,
    /// The records of the fragment in the order of their keys, then those of the next one.
    own: Vec<u64>,
    next: Vec<u64>,
}

impl World {
    fn new() -> World {
        let workload = workload_of(&format!("records = {RECORDS}\nfields = {FIELDS}"));
        let keys = Keys::new(&workload.data);
        let mut all: Vec<u64> = (0..RECORDS).collect();
        all.sort_by_key(|record| keys.place(keys.number(*record)));
        let place = |at: usize| Some(keys.place(keys.number(all[at])));
        let range = KeyRange { from: place(10), to: place(25) };
        World { workload, keys, range, own: all[10..25].to_vec(), next: all[25..].to_vec() }
    }

    fn place(&self, record: u64) -> KeyPlace {
        self.keys.place(self.keys.number(record))
    }

    fn items(&self) -> KvItems {
        KvItems::new(&self.workload, self.range).scanned(&self.own)
    }

    /// Some records of the fragment that are not in the data set.
    fn new_records(&self) -> impl Iterator<Item = u64> + '_ {
        (RECORDS..).filter(|record| self.range.contains(self.place(*record)))
    }
}

/// The records of a store, in the order of their keys: the number of each, and its fields.
type State = BTreeMap<KeyPlace, (u64, [i64; FIELDS as usize])>;

/// An operation of a history, and what it observed.
#[derive(Clone)]
struct Event {
    at: Interval,
    outcome: Outcome,
    operation: Operation,
    observed: Vec<i64>,
}

/// A history of a store that tells the truth: every operation takes effect at once, at some moment
/// between its start and its end. One of unknown fate may do so much later, or never. Sessions count
/// from `first` on.
fn truthful(
    world: &World,
    state: &mut State,
    dice: &mut Dice,
    first: usize,
    operations: usize,
    errors: bool,
) -> Vec<Event> {
    let mut fresh = world.new_records().skip(first);
    let mut known: Vec<u64> = state.values().map(|(record, _)| *record).collect();
    let mut events = Vec::new();
    let mut moments = Vec::new();
    for index in 0..operations {
        if known.is_empty() {
            known.push(world.own[0]);
        }
        let start = 10 * index as i64 + dice.below(10) as i64;
        let length = [3, 40, 400][dice.below(3) as usize];
        let (end, moment) = (start + length, start + dice.below(length as u64 + 1) as i64);
        // Few records are popular.
        let popular = dice.below(known.len() as u64).min(dice.below(known.len() as u64));
        let key = known[popular as usize];
        let some = 1 + dice.below(ALL);
        let (verb, key, fields, length) = match dice.below(20) {
            0 => (Verb::Insert, fresh.next().unwrap(), ALL, 0),
            1 => (Verb::Delete, known.remove(popular as usize), 0, 0),
            2..9 => (Verb::Update, key, some, 0),
            9..12 => (Verb::Scan, key, some, 1 + dice.below(20) as u32),
            _ => (Verb::Read, key, some, 0),
        };
        if verb == Verb::Insert {
            known.push(key);
        }
        let (outcome, moment) = match dice.below(30) {
            0 if errors => (Outcome::Failed, None),
            1 if errors => (Outcome::Unknown, None),
            2 if errors => (Outcome::Unknown, Some(moment + dice.below(2_000) as i64)),
            _ => (Outcome::Ok, Some(moment)),
        };
        let operation = operation(first + index, verb, key, fields, length);
        events.push(Event { at: at(start, end), outcome, operation, observed: Vec::new() });
        moments.extend(moment.map(|moment| (moment, index)));
    }
    moments.sort_unstable();
    for (_, index) in moments {
        let event = &mut events[index];
        match act(world, state, &event.operation) {
            Some(observed) => event.observed = observed,
            // The store refuses what makes no sense: a record that it does not have, or has already.
            None if event.outcome == Outcome::Ok => event.outcome = Outcome::Failed,
            None => {}
        }
    }
    events
}

/// Carries out an operation at one moment; None if the store refuses it.
fn act(world: &World, state: &mut State, operation: &Operation) -> Option<Vec<i64>> {
    let Operation { verb, key, fields, length, .. } = *operation;
    let place = world.place(key);
    let observe = |values: &[i64; FIELDS as usize]| record(fields, |field| values[field as usize]);
    match verb {
        Verb::Read => return Some(state.get(&place).map(|(_, values)| observe(values)).unwrap_or_default()),
        Verb::Scan => {
            let own = state.range(place..).map(|(_, (record, values))| (*record, observe(values)));
            let all = own.chain(world.next.iter().map(|record| (*record, vec![0])));
            let numbers = |(record, values): (u64, Vec<i64>)| [vec![world.keys.number(record) as i64], values].concat();
            return Some(all.take(length as usize).flat_map(numbers).collect());
        }
        Verb::Insert if state.contains_key(&place) => return None,
        Verb::Insert => {
            state.insert(place, (key, [operation.id.number(); FIELDS as usize]));
        }
        Verb::Update => {
            let (_, values) = state.get_mut(&place)?;
            let written = (0..FIELDS).filter(|field| fields >> field & 1 == 1);
            written.for_each(|field| values[field as usize] = operation.id.number());
        }
        Verb::Delete => drop(state.remove(&place)?),
        Verb::Begin | Verb::Commit | Verb::Abort => {}
    }
    Some(Vec::new())
}

fn initial(world: &World) -> State {
    world.own.iter().map(|record| (world.place(*record), (*record, [0; FIELDS as usize]))).collect()
}

fn findings(items: KvItems, events: &[Event]) -> Vec<Findings> {
    // The validator's rows are numbered from 0, whatever the sessions.
    let rows: Vec<_> = events.iter().map(|event| (event.at, event.outcome, event.operation)).collect();
    validated(items, &rows, |index| events[index].observed.clone())
}

fn check_truth(findings: &[Findings], events: &[Event], seed: u64) {
    for (index, (findings, event)) in findings.iter().zip(events).enumerate() {
        assert_eq!(
            findings.violations,
            [],
            "seed {seed}, operation {index}: {:?} {:?}",
            event.operation,
            event.observed
        );
        assert!(findings.items.iter().all(|item| item.is_fresh));
    }
}

#[test]
fn a_store_that_tells_the_truth_is_never_accused() {
    let world = World::new();
    let mut counts = [0; 3];
    for seed in 1..=300u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let events = truthful(&world, &mut initial(&world), &mut dice, 0, 600, true);
        let found = findings(world.items(), &events);
        check_truth(&found, &events, seed);
        counts[0] += events.iter().filter(|event| event.outcome == Outcome::Unknown).count();
        counts[1] += events.iter().filter(|event| event.observed.len() > 8).count();
        counts[2] += found.iter().map(|findings| findings.items.len()).sum::<usize>();
    }
    assert!(counts[0] > 5_000 && counts[1] > 5_000 && counts[2] > 20_000, "{counts:?}");
}

/// A validator that has seen the whole history, as before a closing read.
fn after(items: KvItems, events: &[Event]) -> Validator<KvItems, Operation> {
    let mut validator = Validator::new(items);
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|index| events[*index].at.start);
    for index in order {
        let Event { at, outcome, operation, .. } = &events[index];
        let mut row = row_of(index as u64, at.start, at.end, *operation);
        row.log.outcome = *outcome;
        validator.enter(row).unwrap();
        while validator.leave(Some(at.start)).is_some() {}
    }
    while validator.leave(None).is_some() {}
    validator
}

/// The closing read of a record, and what it sees in this state.
fn closing_read(world: &World, state: &State, record: u64) -> (Operation, Vec<i64>) {
    let read = Kv::read_whole(record, ALL).unwrap();
    let observed = act(world, &mut state.clone(), &read).unwrap();
    (read, observed)
}

/// Every record that ever existed.
fn records_of(world: &World, histories: &[&[Event]]) -> BTreeSet<u64> {
    let inserted = histories.iter().flat_map(|events| events.iter()).filter_map(|event| event.operation.adds());
    world.own.iter().copied().chain(inserted).collect()
}

const LONG_AFTER: Interval = Interval { start: 1_000_000, end: 1_000_007 };

#[test]
fn the_closing_read_of_a_store_that_tells_the_truth_is_never_accused() {
    let world = World::new();
    let mut absent = 0;
    for seed in 1..=300u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut state = initial(&world);
        let events = truthful(&world, &mut state, &mut dice, 0, 600, true);
        let mut validator = after(world.items(), &events);
        for record in records_of(&world, &[&events]) {
            let (read, observed) = closing_read(&world, &state, record);
            let findings = validator.check_closing(&read, &observed, LONG_AFTER).unwrap();
            assert_eq!(findings.violations, [], "seed {seed}, record {record}: {observed:?}");
            absent += usize::from(observed.is_empty());
        }
    }
    assert!(absent > 1_000, "{absent}");
}

/// If the last update of a record is lost, no operation of the history says so, but the closing read.
#[test]
fn a_lost_last_update_is_found_by_the_closing_read() {
    let world = World::new();
    let (mut lost, mut found) = (0, 0);
    for seed in 1..=60u64 {
        let mut dice = Dice(seed.wrapping_mul(0x94d0_49bb_1331_11eb) | 1);
        let mut state = initial(&world);
        let events = truthful(&world, &mut state, &mut dice, 0, 200, false);
        let mut validator = after(world.items(), &events);
        for (place, (record, values)) in &state {
            // The write of field 0 that ended last, if all others had ended when it began.
            let writes = events.iter().filter(|event| {
                event.operation.key == *record && event.operation.writes() && event.operation.fields & 1 == 1
            });
            let mut writes: Vec<&Event> = writes.filter(|event| event.outcome == Outcome::Ok).collect();
            writes.sort_by_key(|event| event.at.end);
            let Some((last, before)) = writes.split_last() else { continue };
            let is_alone = before.iter().all(|event| event.at.end < last.at.start);
            if !is_alone || last.operation.verb != Verb::Update || values[0] != last.operation.id.number() {
                continue;
            }
            lost += 1;
            let mut shown = state.clone();
            let old = before.last().map_or(0, |event| event.operation.id.number());
            shown.get_mut(place).unwrap().1[0] = old;
            let (read, observed) = closing_read(&world, &shown, *record);
            let violations = &validator.check_closing(&read, &observed, LONG_AFTER).unwrap().violations;
            assert_eq!(violations.iter().map(|v| (v.item, v.element)).collect::<Vec<_>>(), [(names::FIELD, Some(0))]);
            found += violations.len();
        }
    }
    assert!(lost > 200 && found == lost, "{found} of {lost}");
}

/// The items before a continued experiment, with what the closing read before it saw, if there was one.
fn continued(world: &World, earlier: &[Event], closing: Option<&State>) -> KvItems {
    let mut items = world.items().racing();
    for (session, event) in (0..).zip(earlier).filter(|(_, event)| event.operation.writes()) {
        let long_ago = i64::MIN / 2 + session;
        // What the store refused did not happen.
        if event.outcome == Outcome::Ok {
            items.register(&event.operation, at(long_ago, long_ago), long_ago).unwrap();
        }
    }
    for record in closing.map_or(BTreeSet::new(), |_| records_of(world, &[earlier])) {
        let (read, observed) = closing_read(world, closing.unwrap(), record);
        items.begin_with(&read, &observed).unwrap();
    }
    items
}

/// With a closing read, a continued experiment is never accused either. It then finds values of
/// earlier writes that the store no longer had, which were possible before.
#[test]
fn a_closing_read_says_what_a_continued_experiment_began_with() {
    let world = World::new();
    let (mut seen, mut unseen) = (0, 0);
    for seed in 1..=300u64 {
        let mut dice = Dice(seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1);
        let mut state = initial(&world);
        let earlier = truthful(&world, &mut state, &mut dice, 0, 300, false);
        let began = state.clone();
        let mut events = truthful(&world, &mut state, &mut dice, 300, 400, true);
        check_truth(&findings(continued(&world, &earlier, Some(&began)), &events), &events, seed);
        // A read of a record that this experiment has not written yet returns what an earlier write wrote.
        let lies = (0..events.len()).filter(|index| {
            let Event { operation, outcome, observed, at } = &events[*index];
            let is_written = |event: &Event| {
                event.operation.key == operation.key && event.operation.writes() && event.at.start <= at.end
            };
            operation.verb == Verb::Read
                && *outcome == Outcome::Ok
                && !observed.is_empty()
                && !events.iter().any(is_written)
        });
        for index in lies.collect::<Vec<usize>>() {
            let Operation { key, fields, .. } = events[index].operation;
            let field = fields.trailing_zeros();
            let truth = events[index].observed.clone();
            let truth = Found::read(&truth).unwrap().unwrap();
            let is_other = |event: &&Event| {
                let Operation { verb, key: of, fields, id, .. } = event.operation;
                of == key && verb.writes() && fields >> field & 1 == 1 && id.number() != truth.of(field)
            };
            let Some(other) = earlier.iter().filter(|event| event.outcome == Outcome::Ok).find(is_other) else {
                continue;
            };
            let value = other.operation.id.number();
            events[index].observed = record(fields, |of| if of == field { value } else { truth.of(of) });
            let violations = |closing| findings(continued(&world, &earlier, closing), &events)[index].violations.len();
            seen += violations(Some(&began));
            unseen += 1 - violations(None);
            break;
        }
    }
    assert!(seen > 100 && seen == unseen, "{seen} {unseen}");
}

/// The sessions before a continued experiment raced, so only the store knows what they left.
#[test]
fn a_continued_experiment_is_never_accused() {
    let world = World::new();
    for seed in 1..=300u64 {
        let mut dice = Dice(seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1);
        let mut state = initial(&world);
        let earlier = truthful(&world, &mut state, &mut dice, 0, 300, false);
        let events = truthful(&world, &mut state, &mut dice, 300, 400, true);
        let mut items = world.items().racing();
        for (session, event) in (0..).zip(&earlier).filter(|(_, event)| event.operation.writes()) {
            let long_ago = i64::MIN / 2 + session;
            items.register(&event.operation, at(long_ago, long_ago), long_ago).unwrap();
        }
        check_truth(&findings(items, &events), &events, seed);
    }
}

/// For each answer with another number in one field, the stream finds what the whole history says of
/// it.
#[test]
fn lies_are_found_if_they_are_visible() {
    let world = World::new();
    let (mut found_lies, mut possible) = (0, 0);
    for seed in 1..=60u64 {
        let mut dice = Dice(seed.wrapping_mul(0x94d0_49bb_1331_11eb) | 1);
        let mut events = truthful(&world, &mut initial(&world), &mut dice, 0, 600, true);
        let mut history: HashMap<(u64, u32), Vec<RegisterWrite>> = HashMap::new();
        for event in events.iter().filter(|event| event.operation.writes()) {
            let Event { at, outcome, operation, .. } = event;
            let end = match outcome {
                Outcome::Ok => at.end,
                Outcome::Unknown => FOREVER,
                _ => continue,
            };
            let value = if operation.verb == Verb::Delete { 0 } else { operation.id.number() };
            let existence = if operation.verb == Verb::Update { 0 } else { 1 << EXISTENCE };
            let places = operation.fields | existence;
            for place in (0..64).filter(|place| places >> place & 1 == 1) {
                let write = RegisterWrite { at: Interval { end, ..*at }, places: 1 << place, value };
                history.entry((operation.key, place)).or_default().push(write);
            }
        }
        let none = Vec::new();
        let mut expected = HashMap::new();
        for (index, event) in events.iter_mut().enumerate() {
            let Operation { verb: Verb::Read, key, fields, .. } = event.operation else { continue };
            if event.outcome != Outcome::Ok {
                continue;
            }
            let is_initial = key < RECORDS;
            let field = fields.trailing_zeros();
            let writes = history.get(&(key, field)).unwrap_or(&none);
            match dice.below(3) {
                // The record is there, or not, unlike the truth.
                0 => {
                    let exists = event.observed.is_empty();
                    event.observed = if exists { record(fields, |_| UNVERIFIABLE) } else { Vec::new() };
                    let writes = history.get(&(key, EXISTENCE)).unwrap_or(&none);
                    let may = may_return(Some(is_initial.into()), writes, EXISTENCE, event.at, exists.into());
                    expected.insert(index, (names::EXISTENCE, may));
                }
                // The value of some other write, or of one of the record.
                1 if !event.observed.is_empty() => {
                    let seen = match dice.below(4) {
                        0 => 0,
                        1 => id(dice.below(600) as usize),
                        _ if writes.is_empty() => 0,
                        _ => writes[dice.below(writes.len() as u64) as usize].value,
                    };
                    let truth = event.observed.clone();
                    let truth = Found::read(&truth).unwrap().unwrap();
                    event.observed = record(fields, |of| if of == field { seen } else { truth.of(of) });
                    let may = may_return(is_initial.then_some(0), writes, field, event.at, seen);
                    expected.insert(index, (names::FIELD, may));
                }
                _ => {}
            }
        }
        for (index, findings) in findings(world.items(), &events).into_iter().enumerate() {
            let found: Vec<&str> = findings.violations.iter().map(|violation| violation.item).collect();
            match expected.get(&index) {
                Some((item, false)) => {
                    assert_eq!(found, [*item], "seed {seed}, operation {index}");
                    assert!(findings.items.iter().all(|item| !item.is_fresh));
                    found_lies += 1;
                }
                Some((_, true)) => {
                    assert_eq!(found, [""; 0], "seed {seed}, operation {index}");
                    possible += 1;
                }
                None => assert_eq!(found, [""; 0], "seed {seed}, operation {index}"),
            }
        }
    }
    assert!(found_lies > 2_000 && possible > 500, "{found_lies} {possible}");
}
