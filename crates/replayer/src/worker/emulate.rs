//! One thread: takes sessions, performs their operations, waits in between.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use schemas::oplog::{LogRow, Outcome};
use schemas::vocabulary::{Operation, Vocabulary};

use super::shared::{Shared, Until};
use crate::dispatch::{Dependency, Next, Session};
use crate::stores::{Answer, Connection, OperationError};

/// A task that never has to wait for the store yields to the others after this time slice.
/// Yielding after each session would cost more than a session against a store that answers at once.
const SLICE_NS: i64 = 20_000;

/// The time slice of a task that runs beside the ticker alone.
const SLICE_ALONE_NS: i64 = 1_000_000;

/// The state of a thread, kept from one part of the experiment to the next.
pub struct Thread<C> {
    connection: C,
    /// Its number in the experiment.
    number: u32,
    /// Its place among the worker's threads.
    place: usize,
    /// The earliest time at which it takes its next session.
    free_at_ns: i64,
    answer: Answer,
}

impl<C> Thread<C> {
    /// A thread for each connection, numbered from `first_thread` on.
    pub fn of(connections: Vec<C>, first_thread: u32) -> Vec<Thread<C>> {
        let thread = |(place, connection)| Thread {
            connection,
            number: first_thread + place as u32,
            place,
            free_at_ns: i64::MIN,
            answer: Answer::default(),
        };
        connections.into_iter().enumerate().map(thread).collect()
    }
}

/// One emulated stream of sessions, until nothing is left for it to do.
pub async fn emulate<V: Vocabulary, C: Connection<V>>(
    shared: Rc<Shared<V>>,
    mut thread: Thread<C>,
    others: bool,
) -> Thread<C> {
    let slice_ns = if others { SLICE_NS } else { SLICE_ALONE_NS };
    let mut now_ns = shared.clock.now_ns();
    if thread.free_at_ns > now_ns {
        // The rest of a wait that began in the warm-up.
        now_ns = shared.rest(thread.place, thread.free_at_ns, Until::Over).await;
    }
    shared.register(thread.place).await;
    let mut yielded_ns = now_ns;
    let mut session = Session::default();
    loop {
        match shared.next(&mut session, now_ns) {
            Next::Session => {}
            Next::Finished => return thread,
            Next::NeedsChunk(fragment) => {
                now_ns = shared.supply(fragment);
                continue;
            }
            Next::Blocked => {
                now_ns = shared.idle(now_ns).await;
                continue;
            }
        }
        let taken_ns = now_ns;
        let mut writes_ok = true;
        for place in 0..session.steps() {
            let (succeeded, free_ns) = perform(&shared, &mut thread, &session, place, writes_ok, now_ns).await;
            now_ns = free_ns;
            writes_ok &= succeeded;
        }
        shared.finish(&session, writes_ok, taken_ns, now_ns);
        let inter_arrival_us = session.think_us(0);
        if inter_arrival_us > 0 {
            thread.free_at_ns = now_ns + inter_arrival_us as i64 * 1_000;
            now_ns = shared.rest(thread.place, thread.free_at_ns, Until::Over).await;
            yielded_ns = now_ns;
        } else if now_ns - yielded_ns > slice_ns {
            // The thread yields even after a wait for the store. So answers that have come for
            // other threads are stamped before this thread sends a request that delays them.
            tokio::task::yield_now().await;
            now_ns = shared.clock.now_ns();
            yielded_ns = now_ns;
        }
    }
}

/// The error of operations that were in flight when a user interrupted the experiment for a second time.
const GIVEN_UP: &str = "abandoned: the experiment was interrupted before the store answered";

/// Performs the operation in this place of its session: waits as the trace says, calls the store,
/// logs. Returns false for a write that did not succeed, and when the thread is free again.
/// `writes_ok` is false if an earlier write of the session did not succeed.
///
/// The operation starts at `now_ns`, when its thread took it up, or after its waits. Some 50 ns
/// of the replayer's own lie between that and the call of the store. Reading the clock once more
/// would take as long, and was a seventh of the cost of an operation against `null:`.
async fn perform<V: Vocabulary, C: Connection<V>>(
    shared: &Shared<V>,
    thread: &mut Thread<C>,
    session: &Session<V>,
    place: usize,
    writes_ok: bool,
    now_ns: i64,
) -> (bool, i64) {
    let clock = &shared.clock;
    let mut start_ns = now_ns;
    // The first operation's time is the inter-arrival time, which passes after the session.
    if place > 0 && session.think_us(place) > 0 {
        let until_ns = now_ns + session.think_us(place) as i64 * 1_000;
        start_ns = shared.rest(thread.place, until_ns, Until::Stopped).await;
    }
    let mut waited_ns = 0;
    let mut dependency = Dependency::Done;
    if let Some(after) = session.after(place) {
        if after == session.number() {
            // The session itself is not done, but its earlier steps are.
            dependency = if writes_ok { Dependency::Done } else { Dependency::NotOk };
        } else {
            dependency = shared.dependency(session.fragment, after);
        }
        if dependency == Dependency::Pending {
            let began_ns = start_ns;
            dependency = shared.wait_for(session.fragment, after).await;
            start_ns = clock.now_ns();
            waited_ns = start_ns - began_ns;
        }
    }
    let operation = session.operation(place);
    let answer = &mut thread.answer;
    answer.clear();
    let (outcome, error, end_ns) = if dependency == Dependency::NotOk {
        answer.attempts = 0;
        (Outcome::Skipped, Some("a write that it depends on did not succeed".to_string()), start_ns)
    } else if shared.is_abandoned() {
        answer.attempts = 0;
        (Outcome::Skipped, Some(GIVEN_UP.to_string()), start_ns)
    } else {
        // Pinned here: moving it into another function would copy it for every operation.
        let mut execution = pin!(thread.connection.execute(&operation, answer));
        let result = poll_fn(|context| match execution.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if shared.is_abandoned() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        let end_ns = clock.now_ns();
        match result {
            Some(Ok(())) => (Outcome::Ok, None, end_ns),
            Some(Err(OperationError::Failed(error))) => (Outcome::Failed, Some(error), end_ns),
            Some(Err(OperationError::Unknown(error))) => (Outcome::Unknown, Some(error), end_ns),
            None if operation.writes() => (Outcome::Unknown, Some(GIVEN_UP.to_string()), end_ns),
            None => (Outcome::Failed, Some(GIVEN_UP.to_string()), end_ns),
        }
    };
    if outcome != Outcome::Ok {
        answer.values.clear();
    }
    let logged = LogRow {
        session: session.number(),
        step: place as u16,
        thread: thread.number,
        due_ns: session.due_us().map(|due| due as i64 * 1_000),
        start_ns,
        end_ns,
        waited_ns,
        pool_wait_ns: answer.pool_wait_ns,
        attempts: answer.attempts,
        outcome,
    };
    let has_sent = shared.log(session.fragment, logged, &answer.values, error.as_deref());
    // The next operation does not overlap with this one, so it must start after it. If the log
    // had to wait for the disk, that time is not part of the next operation either.
    let free_ns = if has_sent { clock.now_ns().max(end_ns + 1) } else { end_ns + 1 };
    let succeeded = outcome == Outcome::Ok || !operation.writes();
    if !succeeded {
        shared.writes_not_ok.set(shared.writes_not_ok.get() + 1);
    }
    (succeeded, free_ns)
}
