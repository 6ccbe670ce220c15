//! The analysis of transactions: logs of a store with snapshots that rolls back the second of two writers,
//! with tries, errors and aborts, which tells the truth or lies.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use analyzer::sql::Database;
use common::{Dice, Event, Fixture, THREADS, log_row};
use duckdb::types::Value;
use schemas::manifest::Manifest;
use schemas::oplog::{Outcome, TryEnd};
use schemas::plan::FragmentPlan;
use schemas::run::{ReplayReport, RunFolder};
use schemas::spec::Spec;
use schemas::trace::{OperationsReader, TraceRow};
use schemas::verdict::{Ruling, TransactionFigures, Verdict};
use schemas::vocabulary::kv::{Found, Kv, Operation, Verb};

const FIELDS: u32 = 4;
const TRIES: u16 = 3;

type Values = [i64; FIELDS as usize];
type KvEvent = Event<Operation>;

/// An experiment on a generated trace set of one fragment, without its log.
fn generated(sessions: u64, mix: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "name = 'kv'\nfamily = 'kv'\nsessions = {sessions}\n[data]\nrecords = 12\nfields = {FIELDS}\n[access]\n\
         clients = 8\n[mix]\n{mix}\n[transactions]\nabort_share = 0.1\n"
    );
    let spec = Spec::parse(&text, "kv.toml").unwrap();
    let run = RunFolder::new(folder.path().join("run"));
    let plan = FragmentPlan { fragment: 0, first_session: 0, given_back: Vec::new(), warmup_sessions: 0 };
    let fixture = Fixture { folder, run, fragments: vec![plan], batch_rows: 64 };
    tracegen::generate(&spec, &fixture.trace(), &Default::default()).unwrap();
    fixture
}

/// The sessions of the trace set.
fn sessions(fixture: &Fixture) -> Vec<Vec<TraceRow<Operation>>> {
    let manifest = Manifest::read(&fixture.trace()).unwrap();
    let mut reader: OperationsReader<Kv> = manifest.reader(&fixture.trace(), 0, 1_000).unwrap();
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    while reader.next_rows(&mut rows).unwrap() {
        all.append(&mut rows);
    }
    all.chunk_by(|a, b| a.session == b.session).map(<[_]>::to_vec).collect()
}

/// A thread with the transaction that it runs.
struct Client {
    session: Vec<TraceRow<Operation>>,
    place: usize,
    number: u16,
    now: i64,
    snapshot: BTreeMap<u64, (u64, Values)>,
    writes: BTreeMap<u64, Values>,
    /// Why nothing more of the transaction is sent: the store has rolled it back, or an error.
    stop: Option<bool>,
    has_error: bool,
    /// The next operation: its start, its moment, its end.
    next: (i64, i64, i64),
}

/// What the store does now and then.
struct Faults {
    per_mille: u64,
}

/// Replays the sessions against a store with snapshots. Returns the events, and how each try ended.
fn replayed(sessions: Vec<Vec<TraceRow<Operation>>>, faults: &Faults) -> (Vec<KvEvent>, Vec<(u16, TryEnd)>) {
    let mut dice = Dice(4_711);
    let mut state: BTreeMap<u64, (u64, Values)> = (0..12).map(|key| (key, (0, [0; FIELDS as usize]))).collect();
    let mut version = 0;
    let (mut events, mut ends) = (Vec::new(), Vec::new());
    let mut waiting = sessions.into_iter();
    let mut clients: Vec<Option<Client>> = Vec::new();
    for thread in 0..THREADS as i64 {
        clients.push(waiting.next().map(|session| client(session, 10_000 + thread * 37, &mut dice)));
    }
    while let Some(thread) = (0..clients.len()).filter(|at| clients[*at].is_some()).min_by_key(|at| {
        let moment = clients[*at].as_ref().map(|client| client.next.1);
        (moment, *at)
    }) {
        let mut one = clients[thread].take().unwrap();
        let row = one.session[one.place];
        let (start, _, end) = one.next;
        let mut log = log_row(row.session, start, end, Outcome::Ok);
        (log.step, log.try_number, log.thread) = (row.step, one.number, thread as u32);
        let (mut observed, verb) = (Vec::new(), row.operation.verb);
        let is_faulty = dice.below(1_000) < faults.per_mille;
        let ending = matches!(verb, Verb::Commit | Verb::Abort);
        let mut try_end = None;
        match (verb, one.stop) {
            (Verb::Begin, _) => {
                one.snapshot = state.clone();
                one.writes.clear();
            }
            // The store has rolled it back: nothing is sent. After an error the replayer does.
            (_, Some(rolled_back)) => {
                log.outcome = Outcome::Aborted;
                log.attempts = u16::from(ending && !rolled_back);
                if log.attempts == 0 {
                    log.end_ns = start;
                }
                try_end = ending.then_some(if one.has_error { TryEnd::Failed } else { TryEnd::Aborted });
            }
            (Verb::Read, _) if is_faulty => {
                log.outcome = Outcome::Failed;
                (one.stop, one.has_error) = (Some(false), true);
            }
            (Verb::Update, _) if is_faulty => {
                log.outcome = Outcome::Aborted;
                one.stop = Some(true);
            }
            (Verb::Read, _) => {
                let own = one.writes.get(&row.operation.key).copied();
                let values = own.unwrap_or_else(|| one.snapshot[&row.operation.key].1);
                Found::push(&mut observed, (0..FIELDS).map(|field| (field, values[field as usize])));
            }
            (Verb::Update, _) => {
                let before = one.snapshot[&row.operation.key].1;
                let values = one.writes.entry(row.operation.key).or_insert(before);
                let written = (0..FIELDS).filter(|field| row.operation.fields >> field & 1 == 1);
                written.for_each(|field| values[field as usize] = row.operation.id.number());
            }
            (Verb::Abort, _) => try_end = Some(TryEnd::AbortAsked),
            (Verb::Commit, _) => {
                let is_first = one.writes.keys().all(|key| state[key].0 == one.snapshot[key].0);
                let (outcome, happens) = match (is_first, is_faulty.then(|| dice.below(3))) {
                    (false, _) => (Outcome::Aborted, false),
                    (true, None) => (Outcome::Ok, true),
                    (true, Some(0)) => (Outcome::Failed, false),
                    (true, Some(which)) => (Outcome::Unknown, which == 1),
                };
                log.outcome = outcome;
                try_end = Some(match outcome {
                    Outcome::Ok => TryEnd::Committed,
                    Outcome::Unknown => TryEnd::Unknown,
                    Outcome::Aborted => TryEnd::Aborted,
                    _ => TryEnd::Failed,
                });
                if happens {
                    version += 1;
                    // Only the fields that it wrote.
                    for (key, values) in &one.writes {
                        state.insert(*key, (version, *values));
                    }
                }
            }
            _ => unreachable!("the mix has reads and updates"),
        }
        let error = (log.outcome != Outcome::Ok).then(|| "made up".to_string());
        one.now = log.end_ns + 1;
        events.push(Event { operation: row.operation, log, observed, error });
        one.place += 1;
        let again = try_end == Some(TryEnd::Aborted) && one.number + 1 < TRIES;
        if let Some(end) = try_end {
            ends.push((one.number, end));
        }
        clients[thread] = if again {
            (one.place, one.number, one.stop, one.has_error) = (0, one.number + 1, None, false);
            one.next = next(one.now, &mut dice);
            Some(one)
        } else if one.place < one.session.len() {
            one.next = next(one.now, &mut dice);
            Some(one)
        } else {
            waiting.next().map(|session| client(session, one.now, &mut dice))
        };
    }
    (events, ends)
}

fn client(session: Vec<TraceRow<Operation>>, now: i64, dice: &mut Dice) -> Client {
    Client {
        session,
        place: 0,
        number: 0,
        now,
        snapshot: BTreeMap::new(),
        writes: BTreeMap::new(),
        stop: None,
        has_error: false,
        next: next(now, dice),
    }
}

fn next(now: i64, dice: &mut Dice) -> (i64, i64, i64) {
    let start = now + dice.below(50) as i64;
    let moment = start + dice.below(400) as i64;
    (start, moment, moment + dice.below(400) as i64)
}

/// What the operations count as, and how many begins, commits and aborts there are.
fn counted(events: &[KvEvent], ends: &BTreeMap<(u64, u16), TryEnd>) -> ([u64; Outcome::ALL.len()], u64) {
    let (mut counts, mut controls) = ([0; Outcome::ALL.len()], 0);
    for event in events {
        if event.operation.verb.control().is_some() {
            controls += 1;
            continue;
        }
        let end = ends[&(event.log.session, event.log.try_number)];
        counts[end.counts_as(event.log.outcome, event.operation.verb.writes()) as usize] += 1;
    }
    (counts, controls)
}

/// How each try ended, by its session and number.
fn by_try(events: &[KvEvent]) -> BTreeMap<(u64, u16), TryEnd> {
    let mut of_try: BTreeMap<(u64, u16), Vec<&KvEvent>> = BTreeMap::new();
    for event in events {
        of_try.entry((event.log.session, event.log.try_number)).or_default().push(event);
    }
    let end = |events: &Vec<&KvEvent>| {
        let last = events[events.len() - 1];
        let has_error = events.iter().any(|event| {
            event.operation.verb.control().is_none() && matches!(event.log.outcome, Outcome::Failed | Outcome::Unknown)
        });
        TryEnd::of(&events[0].log, last.operation.verb.control().map(|control| (control, &last.log)), has_error)
    };
    of_try.iter().map(|(key, events)| (*key, end(events))).collect()
}

fn analyzed(fixture: &Fixture, events: &[KvEvent]) -> Verdict {
    fixture.write_log(0, 0, events, true);
    fixture.write_documents();
    let (counts, of_transactions) = counted(events, &by_try(events));
    let [ok, failed, unknown, skipped, aborted] = counts;
    let elapsed_ns = 1_000_000_000;
    let report = ReplayReport {
        elapsed_ns,
        counted_ns: elapsed_ns,
        ok,
        failed,
        unknown,
        skipped,
        aborted,
        of_transactions,
        worker_cpu_share: 0.2,
        dispatch_lag_ns_p99: 100,
        ..ReplayReport::default()
    };
    schemas::files::write_json(&fixture.run.experiment(1, THREADS).report(), &report).unwrap();
    fixture.analyze().unwrap()
}

fn integers(fixture: &Fixture, verdict: &Verdict, statement: &str) -> Vec<Vec<i64>> {
    let database = Database::open(&fixture.run, std::slice::from_ref(verdict), None).unwrap();
    let integer = |value: &Value| match value {
        Value::BigInt(n) => *n,
        Value::HugeInt(n) => *n as i64,
        Value::UBigInt(n) => *n as i64,
        other => panic!("{other:?} is no integer"),
    };
    database.query(statement).unwrap().rows.iter().map(|row| row.iter().map(integer).collect()).collect()
}

const MIX: &str = "read = 20\nupdate = 20\nread_modify_write = 60";

#[test]
fn a_store_that_rolls_back_is_not_accused_and_its_figures_are_those_of_what_happened() {
    let fixture = generated(3_000, MIX);
    let (events, ends) = replayed(sessions(&fixture), &Faults { per_mille: 20 });
    let verdict = analyzed(&fixture, &events);
    let figures = &verdict.figures;
    assert_eq!(figures.unpredictable_reads, 0);
    let (counts, controls) = counted(&events, &by_try(&events));
    let overall = &figures.overall;
    let found = [overall.ok, overall.failed, overall.unknown, overall.skipped, overall.aborted];
    assert_eq!(found, counts);
    assert!(counts[Outcome::Aborted as usize] > 500 && counts[Outcome::Failed as usize] > 20, "{counts:?}");
    let of = |end: TryEnd| ends.iter().filter(|(_, found)| *found == end).count() as u64;
    let transactions = figures.transactions.unwrap();
    let expect = TransactionFigures {
        transactions: 3_000,
        rows: controls,
        tries: ends.len() as u64,
        committed: of(TryEnd::Committed),
        aborts: of(TryEnd::AbortAsked),
        aborted: of(TryEnd::Aborted),
        failed: of(TryEnd::Failed),
        unknown: of(TryEnd::Unknown),
        skipped: 0,
        best_effort: 0,
    };
    assert_eq!(transactions, expect);
    assert!(expect.aborted > 100 && expect.failed > 10 && expect.unknown > 3 && expect.aborts > 100, "{expect:?}");
    assert_eq!(figures.sessions, 3_000, "a later try is no session of its own");
    // Errors are few enough for a verdict: what was rolled back is none. The rows agree with the report.
    let disagreement = verdict.reasons.iter().find(|reason| reason.contains("counted"));
    assert_eq!(disagreement, None, "{:?}", verdict.reasons);
    for name in ["begin", "commit", "abort"] {
        assert!(figures.by_operation[name].ok > 0 && figures.by_operation[name].mean_ns > 0.0, "{name}");
    }

    // SQL gives the same.
    let rows = integers(
        &fixture,
        &verdict,
        "SELECT count(*), count(*) FILTER (outcome = 'committed'), count(*) FILTER (outcome = 'aborted'),
            count(*) FILTER (try = 0), count(DISTINCT session), CAST(sum(operations) AS BIGINT),
            count(*) FILTER (begin_ns > 0 AND commit_ns >= 0)
         FROM transactions",
    );
    let (tries, committed, aborted) = (expect.tries as i64, expect.committed as i64, expect.aborted as i64);
    let operations = (events.len() as u64 - controls) as i64;
    assert_eq!(rows[0][..6], [tries, committed, aborted, 3_000, 3_000, operations]);
    let rows = integers(
        &fixture,
        &verdict,
        "SELECT count(*) FILTER (counts_as = 'ok'), count(*) FILTER (counts_as = 'failed'),
            count(*) FILTER (counts_as = 'unknown'), count(*) FILTER (counts_as = 'aborted') FROM operations",
    );
    let expect: Vec<i64> = [0, 1, 2, 4].map(|code: usize| counts[code] as i64).to_vec();
    assert_eq!(rows[0], expect);
    let rows = integers(
        &fixture,
        &verdict,
        "SELECT CAST(sum(ok) AS BIGINT), CAST(sum(errors) AS BIGINT), CAST(sum(sessions) AS BIGINT) FROM timeline",
    );
    let slices = &figures.timeline.slices;
    let sum = |of: fn(&schemas::verdict::Slice) -> u64| slices.iter().map(of).sum::<u64>() as i64;
    assert_eq!(rows[0], [sum(|slice| slice.ok), sum(|slice| slice.errors), sum(|slice| slice.sessions)]);
    assert_eq!(rows[0][0], counts[0] as i64);
    let statement = "SELECT from_us, to_us, reads, fresh FROM freshness ORDER BY from_us";
    let of = |f: &schemas::verdict::Freshness| [f.from_us, f.to_us, f.reads, f.fresh].map(|n| n as i64).to_vec();
    let expect: Vec<Vec<i64>> = figures.freshness.iter().map(of).collect();
    assert!(!expect.is_empty());
    assert_eq!(integers(&fixture, &verdict, statement), expect);
}

/// A value of a transaction that was rolled back, and one that was overwritten before the transaction
/// began.
#[test]
fn lies_are_found() {
    let fixture = generated(2_000, MIX);
    let (mut events, _) = replayed(sessions(&fixture), &Faults { per_mille: 0 });
    let ends = by_try(&events);
    let is_of = |event: &KvEvent, end: TryEnd| ends[&(event.log.session, event.log.try_number)] == end;
    // Sessions whose transaction was never committed: no try of theirs wrote anything.
    let committed: BTreeSet<u64> =
        ends.iter().filter(|(_, end)| **end == TryEnd::Committed).map(|((session, _), _)| *session).collect();
    let is_read = |event: &KvEvent| event.operation.verb == Verb::Read && is_of(event, TryEnd::Committed);
    let dirty = events
        .iter()
        .find(|event| {
            event.operation.verb == Verb::Update
                && event.log.outcome == Outcome::Ok
                && !committed.contains(&event.log.session)
        })
        .cloned()
        .unwrap();
    let key = dirty.operation.key;
    let victim = events
        .iter()
        .position(|event| is_read(event) && event.operation.key == key && event.log.start_ns > dirty.log.end_ns)
        .unwrap();
    let field = dirty.operation.fields.trailing_zeros();
    let see = |event: &mut KvEvent, field: u32, id: i64| {
        let found = Found::read(&event.observed).unwrap().unwrap();
        let values: Vec<(u32, i64)> =
            (0..FIELDS).map(|own| (own, if own == field { id } else { found.of(own) })).collect();
        let mut observed = Vec::new();
        Found::push(&mut observed, values.into_iter());
        event.observed = observed;
    };
    see(&mut events[victim], field, dirty.operation.id.number());
    // The last read of a field that was written sees its initial value.
    let stale = events
        .iter()
        .rposition(|event| {
            is_read(event) && Found::read(&event.observed).unwrap().is_some_and(|found| found.mask() == 0b1111)
        })
        .unwrap();
    assert_ne!(stale, victim);
    see(&mut events[stale], 2, 0);
    let verdict = analyzed(&fixture, &events);
    assert_eq!(verdict.figures.unpredictable_reads, 2);
    let rows =
        integers(&fixture, &verdict, "SELECT session, CAST(step AS BIGINT) FROM unpredictable ORDER BY start_ns");
    let place = |at: usize| vec![events[at].log.session as i64, i64::from(events[at].log.step)];
    assert_eq!(rows, [place(victim), place(stale)]);
}

/// A read counts from the start of its transaction on, and a write until the end of it.
#[test]
fn a_snapshot_is_as_old_as_its_transaction() {
    let fixture = generated(2_000, MIX);
    let (events, _) = replayed(sessions(&fixture), &Faults { per_mille: 0 });
    let starts: BTreeMap<(u64, u16), i64> = events
        .iter()
        .filter(|event| event.operation.verb == Verb::Begin)
        .map(|event| ((event.log.session, event.log.try_number), event.log.start_ns))
        .collect();
    let verdict = analyzed(&fixture, &events);
    let rows = integers(
        &fixture,
        &verdict,
        "SELECT session, CAST(try AS BIGINT), snapshot_ns, visible_ns, end_ns FROM operations WHERE operation = 'read'",
    );
    assert!(rows.len() > 1_000);
    for row in &rows {
        assert_eq!(row[2], starts[&(row[0] as u64, row[1] as u16)], "{row:?}");
        assert!(row[3] > row[4], "{row:?}");
    }
    assert_eq!((verdict.ruling, verdict.figures.unpredictable_reads), (Ruling::Pass, 0));
}

/// The next try of a transaction may have run without a row.
#[test]
fn what_a_killed_replayer_did_not_log_may_have_happened() {
    let fixture = generated(1_500, MIX);
    let (events, _) = replayed(sessions(&fixture), &Faults { per_mille: 0 });
    let mut ordered = events;
    ordered.sort_by_key(|event| event.log.end_ns);
    for lost in [1, 17, 60, 130] {
        let kept = &ordered[..ordered.len() - lost];
        // The rows before the loss are those of a store that went on: what it wrote may be seen.
        fixture.write_log(0, 0, kept, false);
        fixture.write_documents();
        let verdict = fixture.analyze().unwrap();
        assert_eq!((verdict.ruling, verdict.figures.unpredictable_reads), (Ruling::Void, 0), "{lost}");
    }
}

#[test]
fn a_log_with_a_try_that_follows_no_other_is_damaged() {
    let fixture = generated(50, MIX);
    let (mut events, _) = replayed(sessions(&fixture), &Faults { per_mille: 0 });
    let last = events.len() - 1;
    events[last].log.try_number += 2;
    fixture.write_log(0, 0, &events, true);
    fixture.write_documents();
    fixture.write_report(1_000_000_000, [0; Outcome::ALL.len()]);
    let error = fixture.analyze().unwrap_err().to_string();
    assert!(error.contains("and the try before it is not"), "{error}");
}
