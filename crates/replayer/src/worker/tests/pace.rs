//! Tests when a worker starts sessions: due times, targets, threads over time.

use schemas::plan::{FragmentPlan, Limit, Plan};

use super::*;
use crate::worker::throttle::Throttle;

/// A session of one operation for each due time, in microseconds. Session n acts for actor n.
fn due(due_us: &[u64]) -> Vec<TraceRow> {
    let row = |(session, due_us): (usize, &u64)| TraceRow {
        due_us: Some(*due_us),
        ..row(session as u64, 0, session as u64, 0)
    };
    due_us.iter().enumerate().map(row).collect()
}

fn open(rows: Vec<TraceRow>, threads: usize, overload: Overload) -> Setup {
    Setup { loop_kind: Loop::Open(overload), ..Setup::of(rows, threads) }
}

/// A store whose session 0 takes so many nanoseconds. The others take no time.
struct Stalls(i64);

impl Connection<Social> for Stalls {
    async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
        if operation.target == 0 {
            let clock = Clock::starting_in(0);
            clock.sleep_until(self.0).await;
        }
        Ok(())
    }
}

const MS: i64 = 1_000_000;

/// One connection of a store that stalls for 30 ms.
fn stalls() -> Vec<Stalls> {
    vec![Stalls(30 * MS)]
}

#[test]
fn sessions_start_when_they_are_due_and_say_so() {
    let mut rows = due(&[0, 900, 900, 2_500, 6_000]);
    rows.insert(4, TraceRow { think_us: 300, ..row(3, 1, 3, 0) });
    // Inter-arrival times are for closed loops.
    rows[0].think_us = HOUR_US;
    for threads in [1, 4] {
        let (report, logs) = open(rows.clone(), threads, Overload::Queue).replay(at_once(threads));
        let mut log = logs[0].clone();
        log.sort_by_key(|row| (row.session, row.step));
        let due_us = [Some(0), Some(900), Some(900), Some(2_500), None, Some(6_000)];
        assert_eq!(log.iter().map(|row| row.due_ns).collect::<Vec<_>>(), due_us.map(|us| us.map(|us| us * 1_000)));
        assert!(log.iter().all(|row| row.due_ns.is_none_or(|due_ns| row.start_ns >= due_ns)), "{log:?}");
        assert!(log[4].start_ns >= log[3].end_ns + 300_000, "{log:?}");
        let kept = report.kept.unwrap();
        assert_eq!((kept.counts.due, kept.counts.skipped, kept.counts.unstarted), (5, 0, 0));
        assert_eq!((kept.late.count(), kept.queued.count()), (5, 5));
    }
}

/// The log alone says how long a session queued and how late the replayer was, and the report says
/// the same.
#[test]
fn a_stall_shows_in_response_times_and_not_in_service_times() {
    let (report, logs) = open(due(&[0, 1_000, 2_000, 3_000, 40_000]), 1, Overload::Queue).replay(stalls());
    let log = &logs[0];
    let stalled_ns = log[0].end_ns;
    assert!(stalled_ns >= 30 * MS);
    for row in &log[1..4] {
        let (response_ns, service_ns) = (row.end_ns - row.due_ns.unwrap(), row.end_ns - row.start_ns);
        assert!(response_ns >= stalled_ns - row.due_ns.unwrap() + service_ns, "{row:?}");
        assert!(row.start_ns >= stalled_ns, "{row:?}");
    }
    let mut freed_ns = i64::MIN;
    let mut queued_ns = Vec::new();
    for row in log {
        queued_ns.push(freed_ns.saturating_sub(row.due_ns.unwrap()).max(0));
        freed_ns = row.end_ns;
    }
    let kept = report.kept.unwrap();
    assert_eq!(kept.counts.queued, queued_ns.iter().filter(|ns| **ns > 0).count() as u64);
    let longest_ns = queued_ns.iter().max().copied().unwrap() as f64;
    assert!((kept.queued.max_ns() as f64 / longest_ns - 1.0).abs() < 0.001, "{longest_ns}");
    // All response times begin at due times.
    assert!(report.snapshot.response_times.max_ns() as i64 >= 29 * MS);
}

/// A thread that waits for the store must not hold up sessions that others can start.
#[test]
fn sessions_that_are_due_together_start_together() {
    struct Together(Rc<Cell<usize>>);
    impl Connection<Social> for Together {
        async fn execute(&mut self, _operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
            self.0.set(self.0.get() + 1);
            while self.0.get() < 3 {
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    }
    let met = Rc::new(Cell::new(0));
    let connections = (0..3).map(|_| Together(met.clone())).collect();
    let (report, logs) = open(due(&[500, 500, 600]), 3, Overload::Queue).replay(connections);
    assert_eq!((report.sessions, met.get()), (3, 3));
    let mut threads: Vec<u32> = logs[0].iter().map(|row| row.thread).collect();
    threads.sort_unstable();
    assert_eq!(threads, [0, 1, 2]);
}

/// Against a store that answers at once one task does all the work, and takes over the thread that a
/// session is for. To wake that thread's task would cost each session a round of all tasks.
#[test]
fn a_session_for_another_thread_wakes_no_task() {
    struct Who(Rc<RefCell<Vec<tokio::task::Id>>>);
    impl Connection<Social> for Who {
        async fn execute(&mut self, _operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
            self.0.borrow_mut().push(tokio::task::id());
            Ok(())
        }
    }
    let tasks = Rc::new(RefCell::new(Vec::new()));
    let connections = (0..4).map(|_| Who(tasks.clone())).collect();
    // Late enough for all tasks to be idle by then: one that asks when a session is due starts it.
    let (report, logs) = open(due(&[50_000; 6]), 4, Overload::Queue).replay(connections);
    let first = tasks.borrow()[0];
    assert!(tasks.borrow().iter().all(|task| *task == first), "{tasks:?}");
    // The first four have a thread each that was idle by then. The others queue.
    let mut threads: Vec<u32> = logs[0][..4].iter().map(|row| row.thread).collect();
    threads.sort_unstable();
    assert_eq!((threads, report.kept.unwrap().counts.queued), (vec![0, 1, 2, 3], 2));
}

/// The task that waited for a due time was woken late, behind all others. They got no session although
/// one was due, so each round of the others made it later.
#[test]
fn a_task_that_asks_when_a_session_is_due_starts_it_for_the_one_that_waits() {
    struct Holds(Rc<RefCell<Vec<(u64, tokio::task::Id)>>>, Clock);
    impl Connection<Social> for Holds {
        async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
            self.0.borrow_mut().push((operation.target, tokio::task::id()));
            if operation.target == 0 {
                // The other task begins to wait for session 1. Then this one holds up the worker.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                while self.1.now_ns() < 150 * MS {
                    std::hint::spin_loop();
                }
            }
            Ok(())
        }
    }
    let ran = Rc::new(RefCell::new(Vec::new()));
    let clock = Clock::starting_in(0);
    let connections = (0..2).map(|_| Holds(ran.clone(), clock)).collect();
    let (report, logs) = open(due(&[0, 100_000]), 2, Overload::Queue).replay(connections);
    let ran = ran.borrow();
    assert_eq!((ran[0].0, ran[1].0, ran[0].1), (0, 1, ran[1].1), "one task: {ran:?}");
    // The session is the other thread's, which was idle when it was due. So it did not queue.
    let (first, second) = (logs[0][0], logs[0][1]);
    assert!(first.thread != second.thread && second.start_ns >= first.end_ns, "{first:?} {second:?}");
    let counts = report.kept.unwrap().counts;
    assert_eq!((counts.due, counts.queued), (2, 0));
}

/// A worker that stands still lets sessions queue, and says that it was not the store.
#[test]
fn sessions_that_queue_because_the_worker_stood_still_are_counted() {
    struct StandsStill(Clock);
    impl Connection<Social> for StandsStill {
        async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
            // The worker ticks for the first time.
            if operation.target == 0 {
                self.0.sleep_until(30 * MS).await;
            }
            while operation.target == 1 && self.0.now_ns() < 200 * MS {
                std::hint::spin_loop();
            }
            Ok(())
        }
    }
    let clock = Clock::starting_in(0);
    let rows = due(&[0, 31_000, 32_000, 33_000, 34_000, 400_000]);
    let (report, _) = open(rows, 1, Overload::Queue).replay(vec![StandsStill(clock)]);
    let counts = report.kept.unwrap().counts;
    assert!(counts.stalled >= 3 && counts.stalled <= counts.queued, "{counts:?}");
    assert!(counts.stalled_ns_max as i64 > 100 * MS, "{counts:?}");
}

/// Session 1 is due while its actor is busy in session 0, which ends with session 2.
#[test]
fn a_session_that_waited_for_its_actor_keeps_its_due_time() {
    let mut rows = due(&[0, 100, 200, 10_000]);
    rows[1].actor = 0;
    let ends = Rc::new(Cell::new(false));
    struct UntilTwo(Rc<Cell<bool>>);
    impl Connection<Social> for UntilTwo {
        async fn execute(&mut self, operation: &Operation, _answer: &mut Answer) -> Result<(), OperationError> {
            self.0.set(self.0.get() || operation.target == 2);
            while !self.0.get() {
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    }
    let connections = (0..3).map(|_| UntilTwo(ends.clone())).collect();
    let (report, logs) = open(rows, 3, Overload::Skip).replay(connections);
    let of = |session| *logs[0].iter().find(|row| row.session == session).unwrap();
    let (first, second) = (of(0), of(1));
    assert_eq!((second.due_ns, second.outcome), (Some(100_000), Outcome::Ok));
    assert!(second.start_ns > first.end_ns, "{first:?} {second:?}");
    // Neither the log nor the report blames the replayer.
    let before = logs[0].iter().filter(|row| row.thread == second.thread && row.end_ns <= second.start_ns);
    let freed_ns = before.filter(|row| row.session != 1).map(|row| row.end_ns).max().unwrap_or(i64::MIN);
    assert_eq!(second.start_ns - second.waited_ns, freed_ns.max(100_000));
    assert!(report.kept.unwrap().counts.queued >= 1);
}

#[test]
fn sessions_that_had_to_queue_are_skipped_if_the_plan_says_so() {
    let mut rows = due(&[0, 1_000, 2_000, 40_000]);
    rows[1] = TraceRow { due_us: rows[1].due_us, ..write(rows[1], None) };
    rows.insert(2, row(1, 1, 1, HOUR_US));
    let (report, logs) = open(rows, 1, Overload::Skip).replay(stalls());
    let log = &logs[0];
    let skipped: Vec<(u64, u16, i64)> = log
        .iter()
        .filter(|row| row.outcome == Outcome::Skipped)
        .filter(|row| row.session < 3)
        .map(|row| (row.session, row.step, row.end_ns - row.start_ns))
        .collect();
    assert_eq!(skipped, [(1, 0, 0), (1, 1, 0), (2, 0, 0)]);
    assert_eq!((log.len(), report.sessions, report.writes_not_ok), (5, 4, 1));
    let counts = report.kept.unwrap().counts;
    // The last session queues only on a machine that stands still.
    assert!(counts.due == 4 && counts.skipped == counts.queued && counts.skipped >= 2, "{counts:?}");
}

#[test]
fn an_experiment_stops_when_a_session_had_to_queue_if_the_plan_says_so() {
    let (report, logs) = open(due(&[0, 1_000, 2_000, 3_600_000_000]), 1, Overload::Stop).replay(stalls());
    assert_eq!((logs[0].len(), report.sessions, report.was_overloaded), (1, 1, true));
    let position = FragmentPosition { fragment: 0, next_session: 2, given_back: vec![1] };
    assert_eq!(report.positions, [position]);
    let counts = report.kept.unwrap().counts;
    assert_eq!((counts.due, counts.queued, counts.skipped, counts.unstarted), (3, 1, 0, 2));
}

/// The store cannot keep up: what was due before the end and did not start is counted, and a later
/// experiment continues there.
#[test]
fn sessions_that_did_not_start_in_time_are_counted() {
    let setup = open(due(&[0, 1_000, 2_000, 300_000, 3_600_000_000]), 1, Overload::Queue);
    let setup = Setup { duration_ns: Some(200 * MS), ..setup };
    let (report, logs) = setup.replay(vec![Stalls(400 * MS)]);
    assert_eq!(logs[0].len(), 1);
    assert_eq!(report.positions, [FragmentPosition::at(0, 1)]);
    let counts = report.kept.unwrap().counts;
    assert_eq!((counts.due, counts.unstarted), (3, 2));
}

/// Threads that wait for a due time far away end with the experiment.
#[test]
fn deadlines_and_stops_end_the_wait_for_a_due_time() {
    let rows = || due(&[0, 3_600_000_000, 3_600_000_001]);
    let setup = Setup { duration_ns: Some(10 * MS), ..open(rows(), 3, Overload::Queue) };
    // One session, unless the deadline passed before the first thread had its turn.
    assert!(setup.replay(at_once(3)).0.sessions <= 1);
    let setup = open(rows(), 3, Overload::Queue);
    let stop = setup.stop.clone();
    let stops = (0..3).map(|_| {
        let stop = stop.clone();
        Calls(move |_: &Operation| {
            stop.store(true, Ordering::Relaxed);
            Ok(())
        })
    });
    assert_eq!(setup.replay(stops.collect()).0.sessions, 1);
}

/// Both parts count due times from their beginning.
#[test]
fn due_times_begin_again_after_the_warm_up() {
    let setup = Setup { warmup_sessions: 2, ..open(due(&[0, 2_000, 4_000, 5_000]), 2, Overload::Queue) };
    let (report, logs) = setup.replay(at_once(2));
    let began_ns = report.warmup.ended_ns;
    let due_ns: Vec<i64> = logs[0].iter().map(|row| row.due_ns.unwrap()).collect();
    assert_eq!(due_ns, [0, 2 * MS, began_ns + 4 * MS, began_ns + 5 * MS]);
    assert!(logs[0].iter().all(|row| row.start_ns >= row.due_ns.unwrap()));
    assert_eq!(report.kept.unwrap().counts.due, 2, "the measured part");
}

/// The plan of a closed loop with limits, for three threads.
fn limits(target_per_s: Option<f64>, steps: &str) -> Plan {
    let schedule: schemas::pace::ThreadsOverTime = steps.parse().unwrap();
    Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace: "a.trace".into(),
        trace_id: String::new(),
        store: "null:".into(),
        threads: 3,
        workers: 1,
        limit: Limit::WholeTrace,
        fragments: Vec::<FragmentPlan>::new(),
        unique_actors: true,
        closing_read: None,
        open_loop: None,
        target_per_s,
        threads_over_time: schedule.0,
        transactions: Transactions::default(),
    }
}

#[test]
fn a_target_spreads_sessions_evenly() {
    let throttle = Throttle::of(&limits(Some(3_000.0), "0s:3"), &[3]);
    let rows = (0..12).map(|session| row(session, 0, session, 0)).collect();
    let setup = Setup { loop_kind: Loop::Closed(throttle), ..Setup::of(rows, 3) };
    let (_, logs) = setup.replay(at_once(3));
    for (thread, sessions) in sessions_by_thread(&logs[0]) {
        for (place, (_, start_ns, _)) in sessions.iter().enumerate() {
            // One session a millisecond and thread; the threads begin a third of it apart.
            let may_ns = (place as f64 + (thread as f64 + 0.5) / 3.0) * 1e6;
            assert!(*start_ns >= may_ns as i64, "thread {thread}, session {place} at {start_ns}");
        }
    }
}

#[test]
fn threads_beyond_the_schedule_rest() {
    let throttle = Throttle::of(&limits(None, "0s:1,20ms:3"), &[1, 3]);
    // One millisecond after each session: 400 ms for one thread.
    let rows = (0..400).map(|session| row(session, 0, session, 1_000)).collect();
    let setup = Setup { loop_kind: Loop::Closed(throttle), warmup_sessions: 3, ..Setup::of(rows, 3) };
    let (report, logs) = setup.replay(at_once(3));
    let from_ns = report.warmup.ended_ns + 20 * MS;
    assert_eq!(logs[0].len(), 400);
    assert!(logs[0].iter().all(|row| row.thread == 0 || row.start_ns >= from_ns));
    assert!([1, 2].iter().all(|thread| logs[0].iter().any(|row| row.thread == *thread)));
}
