//! Tests a worker with operations written by hand, and with stores that do what a test needs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schemas::oplog::{LogColumns, LogHeader, LogReader, LogRow, Outcome};
use schemas::social::{Action, Operation, Social, TraceRow};

use super::*;
use crate::dispatch::{Rhythm, Stretch};
use crate::log::OperationLogs;
use crate::stores::{Answer, OperationError};

mod pace;
mod transactions;

const HOUR_US: u32 = 3_600_000_000;

fn row(session: u64, step: u16, actor: u64, think_us: u32) -> TraceRow {
    let operation = Operation { action: Action::ListFriends, socialite: actor, target: session, comment: None };
    TraceRow { think_us, ..TraceRow::plain(session, step, operation, actor) }
}

/// The same row with a write instead of the read.
fn write(row: TraceRow, after: Option<u64>) -> TraceRow {
    TraceRow { after, operation: Operation { action: Action::InviteFriend, ..row.operation }, ..row }
}

/// A row of a trace in a vocabulary.
type RowOf<V> = schemas::trace::TraceRow<<V as Vocabulary>::Operation>;

/// The settings of a replay; fragments have equal weights.
struct SetupOf<V: Vocabulary> {
    fragments: Vec<Vec<RowOf<V>>>,
    threads: usize,
    unique_actors: bool,
    warmup_sessions: u64,
    duration_ns: Option<i64>,
    loop_kind: Loop,
    transactions: Transactions,
    stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
}

type Setup = SetupOf<Social>;

impl<V: Vocabulary> SetupOf<V> {
    fn of(rows: Vec<RowOf<V>>, threads: usize) -> SetupOf<V> {
        SetupOf {
            fragments: vec![rows],
            threads,
            unique_actors: true,
            warmup_sessions: 0,
            duration_ns: None,
            loop_kind: Loop::Closed(None),
            transactions: Transactions::default(),
            stop: Arc::default(),
            abandon: Arc::default(),
        }
    }

    /// Replays all sessions. Returns the report, and each fragment's log. A replay that takes
    /// longer than a minute fails.
    fn replay<C: Connection<V>>(self, connections: Vec<C>) -> (WorkerReport, Vec<Vec<LogRow>>) {
        assert_eq!(connections.len(), self.threads);
        let folder = tempfile::tempdir().unwrap();
        let path = |fragment: usize| folder.path().join(format!("{fragment}.arrows"));
        let header = |fragment: usize| LogHeader {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment: 1,
            fragment: fragment as u32,
            workload_id: String::new(),
            first_session: 0,
            threads: self.threads as u32,
            unwritten_rows_max: 0,
            aside_sessions_max: 0,
            started_unix_ns: 0,
        };
        let count = self.fragments.len();
        let logs =
            OperationLogs::create((0..count).map(|f| (path(f), header(f))).collect(), Default::default()).unwrap();
        let stretch = |rows: &Vec<RowOf<V>>| Stretch {
            weight: 1.0,
            given_back: Vec::new(),
            first_session: 0,
            measured_from: self.warmup_sessions,
            end_session: rows.last().unwrap().session + 1,
        };
        let clock = Clock::starting_in(0);
        let stretches: Vec<Stretch> = self.fragments.iter().map(stretch).collect();
        let mut dispatcher = Dispatcher::new(&stretches, self.threads, self.unique_actors.then_some(1_000));
        if matches!(self.loop_kind, Loop::Open(_)) {
            dispatcher = dispatcher.open_loop(vec![Rhythm::of_trace(); count]);
        }
        let pass = (self.warmup_sessions > 0).then(|| {
            let (keeper, mut passes) = gate::gate(1);
            std::thread::spawn(move || {
                let go_on = keeper.all_came(Duration::from_secs(60)) == Some(true);
                keeper.open(if go_on { Opening::At(clock.now_ns()) } else { Opening::Never });
            });
            passes.remove(0)
        });
        if pass.is_some() {
            dispatcher = dispatcher.warming_up(&stretches);
        }
        let plan = WorkerPlan {
            dispatcher,
            fragments: (0..count as u32).collect(),
            feeds: self.fragments.iter().map(|rows| Feed::of(rows, 2)).collect(),
            logs: (0..count).collect(),
            sender: logs.sender(),
            is_logged: true,
            clock,
            pass,
            duration_ns: self.duration_ns,
            stop: self.stop,
            abandon: self.abandon,
            loop_kind: self.loop_kind,
            transactions: self.transactions,
            overloaded: Arc::default(),
            snapshot: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = tokio::task::LocalSet::new();
        let replay = async { tokio::time::timeout(Duration::from_secs(60), run(plan, 0, connections)).await };
        let report = local.block_on(&runtime, replay).expect("a wait that nothing ended").unwrap();
        drop(local);
        logs.close().unwrap();
        (report, (0..count).map(|fragment| read_log(&path(fragment))).collect())
    }
}

fn read_log(path: &std::path::Path) -> Vec<LogRow> {
    let mut rows = Vec::new();
    for batch in LogReader::open(path).unwrap() {
        let batch = batch.unwrap();
        let columns = LogColumns::of(&batch, path).unwrap();
        rows.extend((0..columns.len()).map(|at| columns.row(at)));
    }
    rows
}

/// A store that calls a closure for each operation.
struct Calls<F>(F);

impl<F: FnMut(&Operation) -> Result<(), OperationError> + 'static> Connection<Social> for Calls<F> {
    async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
        (self.0)(operation)
    }
}

/// A store that answers at once.
struct AtOnce;

impl Connection<Social> for AtOnce {
    async fn execute(&mut self, _operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
        Ok(())
    }
}

fn at_once(threads: usize) -> Vec<AtOnce> {
    (0..threads).map(|_| AtOnce).collect()
}

/// The starts and ends of sessions, by thread, in the order in which they ran.
fn sessions_by_thread(log: &[LogRow]) -> BTreeMap<u32, Vec<(u64, i64, i64)>> {
    let mut threads: BTreeMap<u32, Vec<(u64, i64, i64)>> = BTreeMap::new();
    for row in log {
        let sessions = threads.entry(row.thread).or_default();
        match sessions.last_mut() {
            Some((session, _, end_ns)) if *session == row.session => *end_ns = row.end_ns,
            _ => sessions.push((row.session, row.start_ns, row.end_ns)),
        }
    }
    threads
}

#[test]
fn threads_wait_before_operations_and_after_sessions() {
    let think_us = |session: u64, step: u16| (session % 3) as u32 * 400 + step as u32 * 300;
    let rows: Vec<TraceRow> = (0..24)
        .flat_map(|session| (0..3).map(move |step| row(session, step, session % 5, think_us(session, step))))
        .collect();
    let (report, logs) = Setup::of(rows, 3).replay(at_once(3));
    let log = &logs[0];
    assert_eq!((report.sessions, log.len()), (24, 72));
    let of_session = |session| {
        let mut steps: Vec<&LogRow> = log.iter().filter(|row| row.session == session).collect();
        steps.sort_by_key(|row| row.step);
        steps
    };
    for session in 0..24 {
        for pair in of_session(session).windows(2) {
            let wait_ns = think_us(session, pair[1].step) as i64 * 1_000;
            assert!(pair[1].start_ns >= pair[0].end_ns + wait_ns, "session {session}: {pair:?}");
        }
    }
    for (thread, sessions) in sessions_by_thread(log) {
        for pair in sessions.windows(2) {
            let wait_ns = think_us(pair[0].0, 0) as i64 * 1_000;
            assert!(pair[1].1 >= pair[0].2 + wait_ns, "thread {thread}: {pair:?}");
        }
    }
}

/// Thread 0 waits for an hour after its first session. Its actor is free, so thread 1 runs
/// all other sessions. Then no thread has to wait any more.
#[test]
fn a_waiting_thread_holds_up_neither_its_actor_nor_the_end() {
    let rows = (0..40).map(|session| row(session, 0, 7, if session == 0 { HOUR_US } else { 0 })).collect();
    let (report, logs) = Setup::of(rows, 2).replay(at_once(2));
    assert_eq!(report.sessions, 40);
    let threads: Vec<u32> = logs[0].iter().map(|row| row.thread).collect();
    assert_eq!((threads[0], &threads[1..]), (0, &[1; 39][..]));
}

#[test]
fn no_wait_follows_the_last_session() {
    let rows = (0..3).map(|session| row(session, 0, session, HOUR_US)).collect();
    let (report, _) = Setup::of(rows, 3).replay(at_once(3));
    assert_eq!((report.sessions, report.ran_out), (3, false));
}

#[test]
fn the_deadline_ends_a_wait_for_the_next_session() {
    let rows = (0..9).map(|session| row(session, 0, session, HOUR_US)).collect();
    let setup = Setup { duration_ns: Some(20_000_000), ..Setup::of(rows, 2) };
    let (report, _) = setup.replay(at_once(2));
    // Two sessions, unless the deadline passed before the second thread had its first turn.
    assert!(report.sessions <= 2);
    assert_eq!(report.positions, [FragmentPosition::at(0, report.sessions)]);
}

/// A stop ends every wait, and sessions under way are finished.
#[test]
fn a_stop_ends_every_wait() {
    let rows = (0..4).flat_map(|session| [row(session, 0, session, HOUR_US), row(session, 1, session, HOUR_US)]);
    let setup = Setup::of(rows.collect(), 2);
    let stop = setup.stop.clone();
    let connections = vec![0, 1].into_iter().map(|_| {
        let stop = stop.clone();
        Calls(move |operation: &Operation| {
            if operation.target == 1 {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(())
        })
    });
    let (report, logs) = setup.replay(connections.collect());
    assert_eq!((report.sessions, logs[0].len()), (2, 4));
}

#[test]
fn a_write_needs_the_earlier_writes_of_its_session() {
    let session = |session: u64| {
        let one = write(row(session, 0, session, 0), None);
        [one, row(session, 1, session, 0), write(row(session, 2, session, 0), Some(session))]
    };
    let mut rows: Vec<TraceRow> = [session(0), session(1)].concat();
    rows.push(write(row(2, 0, 2, 0), Some(0)));
    rows.push(write(row(3, 0, 3, 0), Some(1)));
    let store = Calls(|operation: &Operation| match (operation.action.is_write(), operation.target) {
        (true, 1) => Err(OperationError::Failed("asked to".into())),
        _ => Ok(()),
    });
    let (report, logs) = Setup::of(rows, 1).replay(vec![store]);
    let outcomes: Vec<Outcome> = logs[0].iter().map(|row| row.outcome).collect();
    let (ok, failed, skipped) = (Outcome::Ok, Outcome::Failed, Outcome::Skipped);
    assert_eq!(outcomes, [ok, ok, ok, failed, ok, skipped, ok, skipped]);
    assert_eq!(report.writes_not_ok, 3);
}

/// Two fragments with a warm-up of 5 sessions each. Session 1 of fragment 0 fails in the warm-up,
/// and the measured part remembers it.
#[test]
fn the_measured_part_follows_the_whole_warm_up() {
    let fragment = |offset: u64| -> Vec<TraceRow> {
        (0..12)
            .map(|session| {
                let row = row(session, 0, session % 4, if session == 4 { 2_000 } else { 100 });
                let row = TraceRow { operation: Operation { target: session + offset, ..row.operation }, ..row };
                if session == 1 { write(row, None) } else { row }
            })
            .collect()
    };
    let mut fragments = vec![fragment(0), fragment(100)];
    fragments[0][8] = write(fragments[0][8], Some(1));
    let setup = Setup { fragments, warmup_sessions: 5, ..Setup::of(Vec::new(), 3) };
    let store = || {
        Calls(|operation: &Operation| match operation.target {
            1 => Err(OperationError::Failed("asked to".into())),
            _ => Ok(()),
        })
    };
    let (report, logs) = setup.replay(vec![store(), store(), store()]);
    let began_ns = report.warmup.ended_ns;
    let rows: Vec<&LogRow> = logs.iter().flatten().collect();
    let (warmup, measured): (Vec<&LogRow>, Vec<&LogRow>) = rows.into_iter().partition(|row| row.session < 5);
    assert_eq!((warmup.len(), measured.len()), (10, 14));
    assert!(warmup.iter().all(|row| row.end_ns <= began_ns), "{began_ns}: {warmup:?}");
    assert!(measured.iter().all(|row| row.start_ns >= began_ns), "{began_ns}: {measured:?}");
    assert_eq!((report.warmup.operations, report.sessions), (10, 14));
    assert_eq!(report.snapshot.outcomes, [13, 0, 0, 1, 0]);
    assert_eq!(report.snapshot.response_times.count(), 13);
    let last_ns = measured.iter().map(|row| row.end_ns).max().unwrap();
    assert_eq!(report.snapshot.elapsed_ns, last_ns - began_ns);
    let ends = [FragmentPosition::at(0, 12), FragmentPosition::at(1, 12)];
    assert_eq!((&report.positions[..], report.writes_not_ok), (&ends[..], 2));
    assert_eq!(logs[0].iter().find(|row| row.session == 8).unwrap().outcome, Outcome::Skipped);
}

/// The duration counts from the end of the warm-up, which may take longer.
#[test]
fn the_warm_up_has_no_deadline() {
    let rows = (0..4).map(|session| row(session, 0, 1, if session < 3 { 1_000 } else { 0 })).collect();
    let setup = Setup { warmup_sessions: 3, duration_ns: Some(1), ..Setup::of(rows, 1) };
    let (report, logs) = setup.replay(at_once(1));
    assert_eq!(report.warmup.operations, 3);
    assert!(logs[0].len() >= 3 && report.warmup.ended_ns > 1);
}

/// Counts the operations in the store for each actor. Each operation stays for some turns of
/// the others; with `waits`, until it has met another one.
struct Meeting {
    inside: Rc<RefCell<BTreeMap<u64, usize>>>,
    met: Rc<Cell<bool>>,
    waits: bool,
}

impl Connection<Social> for Meeting {
    async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
        *self.inside.borrow_mut().entry(operation.socialite).or_default() += 1;
        let mut turns = 0;
        while turns < 20 || (self.waits && !self.met.get()) {
            turns += 1;
            let others = self.inside.borrow()[&operation.socialite] > 1;
            self.met.set(self.met.get() || others);
            tokio::task::yield_now().await;
        }
        *self.inside.borrow_mut().entry(operation.socialite).or_default() -= 1;
        Ok(())
    }
}

fn meetings(threads: usize, waits: bool) -> (Vec<Meeting>, Rc<Cell<bool>>) {
    let (inside, met) = (Rc::default(), Rc::new(Cell::new(false)));
    let meeting = |_| Meeting { inside: Rc::clone(&inside), met: met.clone(), waits };
    ((0..threads).map(meeting).collect(), met)
}

fn overlaps(log: &[LogRow]) -> bool {
    let mut rows: Vec<&LogRow> = log.iter().collect();
    rows.sort_by_key(|row| row.start_ns);
    rows.windows(2).any(|pair| pair[1].start_ns < pair[0].end_ns)
}

#[test]
fn two_threads_act_for_one_actor_only_when_they_may() {
    let rows = || (0..20).map(|session| row(session, 0, 7, 0)).collect();
    let (connections, met) = meetings(4, false);
    let (_, logs) = Setup::of(rows(), 4).replay(connections);
    assert!(!met.get() && !overlaps(&logs[0]));
    // Here the first session waits until it meets a second one of the same actor.
    let (connections, met) = meetings(4, true);
    let (report, logs) = Setup { unique_actors: false, ..Setup::of(rows(), 4) }.replay(connections);
    assert!(met.get() && overlaps(&logs[0]));
    assert_eq!(report.sessions, 20);
}

/// A store whose operations end when the test says so, or never.
struct Held(Rc<Cell<bool>>);

impl Connection<Social> for Held {
    async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
        if operation.target != 0 {
            return Ok(());
        }
        while !self.0.get() {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Session 0 is in flight when the time is over, and session 1 waits for its actor. Session 1
/// does not start and is given back. Threads without a session are idle.
#[test]
fn nothing_starts_after_the_deadline() {
    let rows: Vec<TraceRow> = (0..2_000).map(|session| row(session, 0, 7, 0)).collect();
    let is_over = Rc::new(Cell::new(false));
    let setup = Setup { duration_ns: Some(30_000_000), ..Setup::of(rows, 2) };
    struct Late(Held, Clock);
    impl Connection<Social> for Late {
        async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
            // Until well after the deadline.
            self.1.sleep_until(60_000_000).await;
            self.0.0.set(true);
            self.0.execute(operation, answer).await
        }
    }
    let clock = Clock::starting_in(0);
    let (report, logs) = setup.replay((0..2).map(|_| Late(Held(is_over.clone()), clock)).collect());
    assert_eq!((logs[0].len(), report.sessions), (1, 1));
    let aside = crate::dispatch::aside_max(2) as u64;
    let given_back: Vec<u64> = (1..=aside).collect();
    assert_eq!(report.positions, [FragmentPosition { fragment: 0, next_session: aside + 1, given_back }]);
    // In the planned time the second thread had no session, and the first one had one throughout.
    assert!(report.idle_ns > 0 && report.idle_ns <= 30_000_000, "{}", report.idle_ns);
    assert!(report.session_ns > 0 && report.session_ns <= 30_000_000, "{}", report.session_ns);
    assert_eq!((report.snapshot.drained, report.snapshot.ok_in_time), (0, 0));
    assert_eq!(report.snapshot.outcomes, [1, 0, 0, 0, 0], "what was in flight is measured");
}

/// After the deadline, the later steps of a session under way still run, but count in no figure.
#[test]
fn steps_after_the_deadline_are_drained() {
    let rows = (0..3).flat_map(|session| [row(session, 0, session, 0), row(session, 1, session, 40_000)]);
    let setup = Setup { duration_ns: Some(20_000_000), ..Setup::of(rows.collect(), 1) };
    let (report, logs) = setup.replay(at_once(1));
    assert_eq!((logs[0].len(), report.sessions), (2, 1));
    assert_eq!((report.snapshot.drained, report.snapshot.outcomes), (1, [1, 0, 0, 0, 0]));
    assert_eq!(report.positions, [FragmentPosition::at(0, 1)]);
}

/// A second interrupt does not wait for a store that never answers, and every operation
/// that was handed out has a row.
#[test]
fn what_is_in_flight_can_be_given_up() {
    let rows = vec![write(row(0, 0, 0, 0), None), row(0, 1, 0, 0), row(1, 0, 1, HOUR_US)];
    let setup = Setup::of(rows, 2);
    let (stop, abandon) = (setup.stop.clone(), setup.abandon.clone());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        stop.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        abandon.store(true, Ordering::Relaxed);
    });
    struct Never;
    impl Connection<Social> for Never {
        async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
            if operation.target == 0 { std::future::pending().await } else { Ok(()) }
        }
    }
    let (report, logs) = setup.replay(vec![Never, Never]);
    let of_first: Vec<Outcome> = logs[0].iter().filter(|row| row.session == 0).map(|row| row.outcome).collect();
    assert_eq!(of_first, [Outcome::Unknown, Outcome::Skipped]);
    assert_eq!(report.writes_not_ok, 1);
}
