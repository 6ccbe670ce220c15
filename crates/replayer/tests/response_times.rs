//! Compares the response times in the log with what the store itself did. The tests hold on any
//! machine, however slow or busy, since they set no time limits.
//!
//! The stub store records when each operation was called and when it answered, on a clock of its
//! own. A test fails if
//! - an operation's time begins after the store is called, or ends before it has
//!   answered, or comes from a clock that is coarse or has another unit;
//! - a stall is cut short;
//! - other threads run between start and call or answer and end, so that the worker's
//!   queue is in a response time;
//! - think time, inter-arrival time or the wait for a dependency is in a response
//!   time, or the wait for a connection is not;
//! - an operation is logged twice, not at all or with another's times;
//! - the histogram's percentiles are not those of the log.
//!
//! The tests cannot see a time that is too long while nothing else happens.
//! `benches/response_times.rs` measures how much longer the log's times are than the store's.

mod stub;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use replayer::clock::Clock;
use replayer::stores::{Answer, Connection, OperationError};
use schemas::oplog::{LogRow, Outcome};
use schemas::social::{Action, Operation, Social, TraceRow};
use stub::{Replayed, Stub, percentile, replay, trace};

/// A comment is posted once and deleted once, so action and comment identify an operation.
const SPEC: &str = r#"
name = "comments"
sessions = 300
[data]
members = 12
resources_per_member = 1
[access]
dependency_window = 1
[think_time]
mean_us = 300
[mix]
post_comment = 50
delete_comment = 30
post_and_delete = 20
[session.post_and_delete]
steps = ["post_comment own_resource", "delete_comment own_resource"]
"#;
const SESSIONS: u64 = 300;
const THINK_NS: i64 = 300_000;

/// The call at which the store begins to stand still.
const STALL_AT_CALL: u64 = 100;
const STALL_NS: i64 = 300_000_000;

/// What the store has done, in nanoseconds of its own clock.
struct Diary {
    zero: Instant,
    calls: u64,
    /// When each operation was called and when it answered.
    answered: Vec<((Action, Option<u64>), i64, i64)>,
    /// The store answers nothing between these two times.
    stall: (i64, i64),
}

impl Diary {
    fn now_ns(&self) -> i64 {
        self.zero.elapsed().as_nanos() as i64
    }

    /// Records a call; returns its time.
    fn call(&mut self) -> i64 {
        let called_ns = self.now_ns();
        self.calls += 1;
        if self.calls == STALL_AT_CALL {
            self.stall = (called_ns, called_ns + STALL_NS);
        }
        called_ns
    }
}

struct SlowConnection(Arc<Mutex<Diary>>);

impl SlowConnection {
    fn diary(&self) -> MutexGuard<'_, Diary> {
        self.0.lock().expect("nobody panicked")
    }
}

impl Connection<Social> for SlowConnection {
    async fn execute(&mut self, operation: &Operation, _: &mut Answer) -> Result<(), OperationError> {
        let called_ns = self.diary().call();
        // From 0.2 ms to 3 ms, the same for an operation in every run.
        let delay_us = 200 + operation.comment.expect("a comment") * 7_919 % 2_800;
        wait(delay_us as i64 * 1_000).await;
        let (began_ns, over_ns) = self.diary().stall;
        let now_ns = self.diary().now_ns();
        if (began_ns..over_ns).contains(&now_ns) {
            wait(over_ns - now_ns).await;
        }
        let mut diary = self.diary();
        let answered_ns = diary.now_ns();
        diary.answered.push(((operation.action, operation.comment), called_ns, answered_ns));
        Ok(())
    }
}

async fn wait(wait_ns: i64) {
    Clock::starting_in(wait_ns).sleep_until(0).await;
}

/// An operation as the trace, the log and the store have it.
struct Seen {
    traced: TraceRow,
    row: LogRow,
    called_ns: i64,
    answered_ns: i64,
}

fn check(threads: u32, inter_arrival_us: i64, connections_max: Option<u32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let source = trace(folder.path(), &format!("{SPEC}[inter_arrival_time]\nmean_us = {inter_arrival_us}"));
    let diary = Diary { zero: Instant::now(), calls: 0, answered: Vec::new(), stall: (i64::MAX, i64::MAX) };
    let diary = Arc::new(Mutex::new(diary));
    let connect = {
        let diary = diary.clone();
        move || SlowConnection(diary.clone())
    };
    let replayed = replay(Stub::new(connect, connections_max), &source, threads, SESSIONS);
    let diary = diary.lock().expect("nobody panicked");
    let seen = each_is_logged_once(&replayed, &diary);
    none_is_shorter_than_the_stores(&seen, diary.stall);
    nobody_has_a_turn_in_between(&seen, connections_max.is_some());
    waits_are_no_part(seen, inter_arrival_us * 1_000);
    the_histogram_agrees(&replayed);
}

fn each_is_logged_once(replayed: &Replayed, diary: &Diary) -> Vec<Seen> {
    let answered = diary.answered.iter();
    let noted: HashMap<_, _> =
        answered.map(|(key, called_ns, answered_ns)| (*key, (*called_ns, *answered_ns))).collect();
    let rows = &replayed.rows;
    let logged: HashSet<_> = rows.iter().map(|(_, row)| (row.session, row.step)).collect();
    let counts = [rows.len(), logged.len(), noted.len()].map(|count| count as u64);
    assert_eq!((counts, replayed.report.ok), ([diary.calls; 3], diary.calls));
    assert!(rows.iter().all(|(_, row)| row.outcome == Outcome::Ok));
    let seen = rows.iter().map(|&(traced, row)| {
        let (called_ns, answered_ns) = noted[&(traced.operation.action, traced.operation.comment)];
        Seen { traced, row, called_ns, answered_ns }
    });
    seen.collect()
}

fn none_is_shorter_than_the_stores(seen: &[Seen], (began_ns, over_ns): (i64, i64)) {
    let mut in_stall = 0;
    for Seen { row, called_ns, answered_ns, .. } in seen {
        let response_ns = row.end_ns - row.start_ns;
        assert!(response_ns >= row.pool_wait_ns + answered_ns - called_ns, "{called_ns} to {answered_ns}: {row:?}");
        if *called_ns < over_ns && *answered_ns >= over_ns {
            in_stall += 1;
            assert!(response_ns >= over_ns - began_ns.max(*called_ns), "{called_ns} to {answered_ns}: {row:?}");
        }
    }
    assert!(in_stall > 0);
}

/// All threads belong to one worker. While one of them calls the store or takes its answer, no
/// other thread reaches the store, unless the call waits for a connection.
fn nobody_has_a_turn_in_between(seen: &[Seen], waits_for_connections: bool) {
    // The log's time 0 on the store's clock lies between these two, if no operation starts after
    // its call and none ends before its answer.
    let earliest_ns = seen.iter().map(|s| s.answered_ns - s.row.end_ns).max().expect("an operation");
    let latest_ns = seen.iter().map(|s| s.called_ns - s.row.start_ns).min().expect("an operation");
    assert!(earliest_ns <= latest_ns, "time 0 is at {earliest_ns} at the earliest and {latest_ns} at the latest");
    let mut turns_ns: Vec<i64> = seen.iter().flat_map(|s| [s.called_ns, s.answered_ns]).collect();
    turns_ns.sort_unstable();
    let before = |at_ns: i64| turns_ns.partition_point(|turn_ns| *turn_ns < at_ns);
    for Seen { row, called_ns, answered_ns, .. } in seen {
        let is_called_at_once = before(row.start_ns + latest_ns) == before(*called_ns);
        assert!(is_called_at_once || waits_for_connections, "{latest_ns}, {called_ns}: {row:?}");
        assert!(before(row.end_ns + earliest_ns) <= before(answered_ns + 1), "{earliest_ns}, {answered_ns}: {row:?}");
    }
}

fn waits_are_no_part(mut seen: Vec<Seen>, inter_arrival_ns: i64) {
    seen.sort_by_key(|s| (s.row.thread, s.row.start_ns));
    for pair in seen.windows(2) {
        let (row, next) = (pair[0].row, pair[1].row);
        let wait_ns = if next.step > 0 { THINK_NS } else { inter_arrival_ns };
        assert!(next.thread != row.thread || next.start_ns >= row.end_ns + wait_ns, "{row:?} {next:?}");
    }
    let ends: HashMap<u64, i64> = seen.iter().map(|s| (s.row.session, s.row.end_ns)).collect();
    let on_others = seen.iter().filter(|s| s.traced.after.is_some_and(|after| after != s.row.session));
    let started_late = on_others.map(|s| s.row.start_ns >= ends[&s.traced.after.expect("filtered")]);
    let started_late: Vec<bool> = started_late.collect();
    assert!(!started_late.is_empty() && started_late.iter().all(|is_late| *is_late), "{started_late:?}");
}

fn the_histogram_agrees(replayed: &Replayed) {
    let mut sorted: Vec<i64> = replayed.rows.iter().map(|(_, row)| row.end_ns - row.start_ns).collect();
    sorted.sort_unstable();
    for percent in [50.0, 90.0, 95.0, 99.0, 99.9, 100.0] {
        let (exact, reported) = (percentile(&sorted, percent), replayed.last.response_times.percentile_ns(percent));
        assert!(
            (reported as f64 / exact as f64 - 1.0).abs() <= 0.001,
            "p{percent}: {exact} ns, the histogram says {reported}"
        );
    }
}

#[test]
fn one_thread() {
    check(1, 500, None);
}

#[test]
fn many_threads() {
    check(32, 0, None);
}

#[test]
fn many_threads_that_wait_between_sessions() {
    check(32, 500, None);
}

#[test]
fn many_threads_with_few_connections() {
    check(32, 0, Some(8));
}
