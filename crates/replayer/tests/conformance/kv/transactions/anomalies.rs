//! `memory:` at each level of isolation: the anomalies that the level allows, and no others. So its weaker
//! levels are planted faults of a known kind.
//!
//! Many transactions run at the same time, one operation of a randomly chosen one after the other. Each reads
//! what it overwrites, so the order of versions is known, and the dependencies of transactions form a graph.

use std::collections::{BTreeMap, BTreeSet};

use super::subjects::{self, Subject};
use super::{Client, is_aborted};
use crate::place::Place;

/// What one transaction did.
#[derive(Debug, Clone, Default)]
struct History {
    /// The records that it read, and the writer of what it saw; 0 is the initial value.
    read: Vec<(u64, u16)>,
    /// The records that it wrote, and the number of each write.
    written: Vec<(u64, u16)>,
    is_committed: bool,
}

/// How many anomalies of each kind there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Found {
    aborted: usize,
    /// Reads of what was never committed.
    dirty_reads: usize,
    /// Pairs that overwrite the same version.
    lost_updates: usize,
    /// Cycles with exactly one anti-dependency, such as a read of two states.
    single: usize,
    /// Cycles of any kind.
    cycles: usize,
}

impl std::ops::AddAssign for Found {
    fn add_assign(&mut self, other: Found) {
        self.aborted += other.aborted;
        self.dirty_reads += other.dirty_reads;
        self.lost_updates += other.lost_updates;
        self.single += other.single;
        self.cycles += other.cycles;
    }
}

const CLIENTS: usize = 6;
const RECORDS: u64 = 5;

/// One client, and how far its transaction is.
struct Running {
    client: Client,
    step: usize,
    /// Two records are read; then the first one is written, or both.
    records: [u64; 2],
    writes_both: bool,
    history: History,
}

fn draw(state: &mut u64, most: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % most
}

/// Runs transactions until some hundred have ended; returns what each did.
async fn run(clients: Vec<Client>, seed: u64) -> Vec<History> {
    let mut state = seed;
    let mut numbers = 0u16;
    let fresh = |state: &mut u64| {
        let first = draw(state, RECORDS);
        ([first, (first + 1 + draw(state, RECORDS - 1)) % RECORDS], draw(state, 2) == 0)
    };
    let mut all: Vec<Running> = clients
        .into_iter()
        .map(|client| {
            let (records, writes_both) = fresh(&mut state);
            Running { client, step: 0, records, writes_both, history: History::default() }
        })
        .collect();
    let mut histories = Vec::new();
    while histories.len() < 300 {
        let one = &mut all[draw(&mut state, CLIENTS as u64) as usize];
        let [a, b] = one.records;
        let step = one.step;
        one.step += 1;
        let done = match step {
            0 => one.client.begin().await,
            1 | 2 => {
                let key = [a, b][step - 1];
                let seen = one.client.read(key).await;
                seen.map(|seen| one.history.read.push((key, seen.expect("a record"))))
            }
            3 | 4 if step == 3 || one.writes_both => {
                numbers += 1;
                let (key, number) = ([a, b][step - 3], numbers);
                let written = one.client.update(key, number).await;
                // At read uncommitted, others may see it even if it is aborted later.
                written.map(|()| one.history.written.push((key, number)))
            }
            4 => Ok(()),
            _ if draw(&mut state, 10) == 0 => {
                let aborted = one.client.abort().await;
                histories.push(std::mem::take(&mut one.history));
                one.step = 0;
                aborted
            }
            _ => {
                let committed = one.client.commit().await;
                if committed.is_ok() {
                    one.history.is_committed = true;
                    histories.push(std::mem::take(&mut one.history));
                    one.step = 0;
                }
                committed
            }
        };
        assert!(done.is_ok() || is_aborted(&done), "{done:?}");
        if done.is_err() {
            histories.push(std::mem::take(&mut one.history));
            one.step = 0;
        }
        if one.step == 0 {
            (one.records, one.writes_both) = fresh(&mut state);
        }
    }
    histories
}

/// Counts the anomalies of a history.
fn anomalies(histories: &[History]) -> Found {
    let committed: Vec<&History> = histories.iter().filter(|one| one.is_committed).collect();
    // Who has committed each value, and who has overwritten it.
    let mut writer: BTreeMap<(u64, u16), usize> = BTreeMap::new();
    let mut overwriter: BTreeMap<(u64, u16), Vec<usize>> = BTreeMap::new();
    for (number, one) in committed.iter().enumerate() {
        for (key, value) in &one.written {
            writer.insert((*key, *value), number);
            let read = one.read.iter().find(|(other, _)| other == key).expect("it reads what it writes");
            overwriter.entry(*read).or_default().push(number);
        }
    }
    let mut found = Found { aborted: histories.len() - committed.len(), ..Found::default() };
    found.lost_updates = overwriter.values().filter(|some| some.len() > 1).count();
    // Dependencies: on what was read or overwritten, and of a read on who has overwritten what it saw.
    let mut follows: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); committed.len()];
    let mut anti = BTreeSet::new();
    for (number, one) in committed.iter().enumerate() {
        for read in &one.read {
            match writer.get(read) {
                Some(writer) if *writer != number => drop(follows[*writer].insert(number)),
                None if read.1 != 0 => found.dirty_reads += 1,
                _ => {}
            }
            for other in overwriter.get(read).into_iter().flatten().filter(|other| **other != number) {
                anti.insert((number, *other));
            }
        }
    }
    let reaches = |from: usize, to: usize, follows: &[BTreeSet<usize>]| {
        let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(one) = next.pop() {
            next.extend(follows[one].iter().copied().filter(|other| seen.insert(*other)));
        }
        seen.contains(&to)
    };
    found.single = anti.iter().filter(|(from, to)| reaches(*to, *from, &follows)).count();
    let mut every = follows.clone();
    for (from, to) in &anti {
        every[*from].insert(*to);
    }
    found.cycles = anti.iter().filter(|(from, to)| reaches(*to, *from, &every)).count();
    found
}

/// All that happened in some histories of a level.
fn at(level: &str, place: &Place) -> Found {
    let mut sum = Found::default();
    for seed in 0..20 {
        let subject = Subject::of(&format!("memory:?isolation={level}"));
        let histories = subject.run(place, CLIENTS as u32, async |clients| run(clients, seed).await);
        sum += anomalies(&histories);
    }
    sum
}

#[test]
fn each_level_of_memory_has_its_own_anomalies_and_no_others() {
    let place = subjects::place_without_scans();
    let serializable = at("serializable", &place);
    assert!(serializable.aborted > 500, "{serializable:?}");
    assert_eq!(Found { aborted: 0, ..serializable }, Found::default());

    let snapshot = at("snapshot", &place);
    assert!(snapshot.cycles > 20, "{snapshot:?}");
    assert_eq!((snapshot.dirty_reads, snapshot.lost_updates, snapshot.single), (0, 0, 0), "{snapshot:?}");

    let committed = at("read-committed", &place);
    assert!(committed.lost_updates > 100 && committed.single > 20, "{committed:?}");
    assert_eq!(committed.dirty_reads, 0, "{committed:?}");

    let uncommitted = at("read-uncommitted", &place);
    assert!(uncommitted.dirty_reads > 100 && uncommitted.lost_updates > 20, "{uncommitted:?}");
}
