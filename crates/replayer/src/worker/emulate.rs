//! One task: takes sessions for a thread, performs their operations, waits in between.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use schemas::oplog::{LogRow, Outcome};
use schemas::vocabulary::{Operation, Vocabulary};

use super::pacer::Asker;
use super::shared::Shared;
use super::throttle::Started;
use super::transact::transact;
use super::waits::Until;
use crate::dispatch::{Dependency, Ended, Next, Session};
use crate::stores::{Answer, Connection, OperationError};

/// A task that never has to wait for the store yields to the others after this time slice.
/// Yielding after each session would cost more than a session against a store that answers at once.
const SLICE_NS: i64 = 20_000;

/// The time slice of a task that runs beside the ticker alone.
const SLICE_ALONE_NS: i64 = 1_000_000;

/// The state of a thread, kept from one part of the experiment to the next. A task works for one
/// thread; in an open loop tasks may exchange theirs.
pub struct Thread<V: Vocabulary, C> {
    pub(super) connection: C,
    /// What its session has read.
    pub(super) memory: V::Memory,
    /// Its number in the experiment.
    number: u32,
    /// The place among the worker's tasks of the one that works for it.
    place: usize,
    /// The earliest time at which it takes its next session.
    free_at_ns: i64,
    /// When it ended its last operation.
    freed_ns: i64,
    /// How long its session waited for a busy actor before it started (open loop only).
    pub(super) aside_ns: i64,
    /// Whether it has waited for the store in this time slice.
    has_waited: bool,
    pub(super) answer: Answer,
    /// The operations of a transaction, which are counted at its end.
    pub(super) uncounted: Vec<(LogRow, bool)>,
}

impl<V: Vocabulary, C> Thread<V, C> {
    /// A thread for each connection, numbered from `first_thread` on.
    pub fn of(connections: Vec<C>, first_thread: u32) -> Vec<Thread<V, C>> {
        let thread = |(place, connection)| Thread {
            connection,
            memory: V::Memory::default(),
            number: first_thread + place as u32,
            place,
            free_at_ns: i64::MIN,
            freed_ns: i64::MIN,
            aside_ns: 0,
            has_waited: false,
            answer: Answer::default(),
            uncounted: Vec::new(),
        };
        connections.into_iter().enumerate().map(thread).collect()
    }
}

/// The place of an idle task's thread; boxed, so that an exchange moves a pointer.
type Left<V, C> = Cell<Option<Box<Thread<V, C>>>>;

/// The threads of idle tasks, by the task's place.
pub struct IdleThreads<V: Vocabulary, C>(Vec<Left<V, C>>);

impl<V: Vocabulary, C> IdleThreads<V, C> {
    /// For so many tasks.
    pub fn of(tasks: usize) -> IdleThreads<V, C> {
        IdleThreads((0..tasks).map(|_| Cell::new(None)).collect())
    }

    /// Leaves a thread to the task at `place`, which is idle.
    fn leave(&self, place: usize, mut thread: Box<Thread<V, C>>) {
        thread.place = place;
        self.0[place].set(Some(thread));
    }

    /// The thread that was left to the task at `place`.
    fn take(&self, place: usize) -> Box<Thread<V, C>> {
        self.0[place].take().expect("an idle task has a thread")
    }

    /// Exchanges a thread for the one of the idle task at `place`.
    fn exchange(&self, place: usize, thread: &mut Box<Thread<V, C>>) {
        let mut other = self.take(place);
        other.place = thread.place;
        self.leave(place, std::mem::replace(thread, other));
    }
}

/// One emulated stream of sessions, until nothing is left for it to do.
pub async fn emulate<V: Vocabulary, C: Connection<V>>(
    shared: Rc<Shared<V>>,
    idle: Rc<IdleThreads<V, C>>,
    thread: Thread<V, C>,
) -> Thread<V, C> {
    let slice_ns = if idle.0.len() > 1 { SLICE_NS } else { SLICE_ALONE_NS };
    let mut thread = Box::new(thread);
    let mut now_ns = shared.clock.now_ns();
    if thread.free_at_ns > now_ns {
        // The rest of a wait that began in the warm-up.
        now_ns = shared.rest(thread.place, thread.free_at_ns, Until::Over).await;
    }
    shared.register(thread.place).await;
    let mut yielded_ns = now_ns;
    let mut session = Session::default();
    let mut started = Started::default();
    loop {
        if shared.throttle.is_some() {
            now_ns = shared.hold_back(thread.place, thread.number, &mut started, now_ns).await;
        }
        let asker = Asker { place: thread.place, freed_ns: thread.freed_ns };
        match shared.next(&mut session, asker, now_ns) {
            Next::Session => {}
            Next::Finished => return *thread,
            Next::NeedsChunk(fragment) => {
                now_ns = shared.supply(fragment);
                continue;
            }
            Next::Blocked => {
                now_ns = shared.idle(now_ns).await;
                continue;
            }
            Next::NotDue(at_ns) => {
                // Meanwhile another task may take the thread.
                idle.leave(asker.place, thread);
                now_ns = shared.wait_due(asker, at_ns).await;
                thread = idle.take(asker.place);
                continue;
            }
            Next::ForOther => {
                if let Some(other) = shared.exchange(thread.freed_ns) {
                    idle.exchange(other, &mut thread);
                }
                continue;
            }
            Next::NotItsTurn => {
                idle.leave(asker.place, thread);
                now_ns = shared.wait_turn(asker).await;
                thread = idle.take(asker.place);
                continue;
            }
            Next::Overdue => {
                skip(&shared, thread.number, &session, now_ns);
                now_ns = shared.clock.now_ns();
                if now_ns - yielded_ns > slice_ns {
                    tokio::task::yield_now().await;
                    now_ns = shared.clock.now_ns();
                    yielded_ns = now_ns;
                }
                continue;
            }
        }
        started.add_one();
        thread.aside_ns = aside_ns(&session, thread.freed_ns, now_ns);
        let taken_ns = now_ns;
        V::forget(&mut thread.memory);
        let mut writes = Ended::Ok;
        let mut place = 0;
        while place < session.steps() {
            let (ended, free_ns);
            if V::HAS_TRANSACTIONS && session.is_in_transaction(place) {
                let end = session.end_of_transaction(place);
                (ended, free_ns) = transact(&shared, &mut thread, &session, place..end + 1, writes, now_ns).await;
                place = end;
            } else {
                (ended, free_ns) = perform(&shared, &mut thread, &session, place, writes, now_ns, &mut Alone).await;
            }
            now_ns = free_ns;
            writes = writes.max(ended);
            place += 1;
        }
        shared.finish(&session, writes, taken_ns, now_ns);
        let inter_arrival_us = session.think_us(0);
        if inter_arrival_us > 0 && shared.has_inter_arrival_times() {
            thread.free_at_ns = now_ns + inter_arrival_us as i64 * 1_000;
            now_ns = shared.rest(thread.place, thread.free_at_ns, Until::Over).await;
            yielded_ns = now_ns;
        } else if now_ns - yielded_ns > slice_ns && shared.is_open_loop() && std::mem::take(&mut thread.has_waited) {
            // A session that has queued must not wait for another round of all tasks.
            yielded_ns = now_ns;
        } else if now_ns - yielded_ns > slice_ns {
            // In a closed loop the thread yields even after a wait for the store. So answers that have come for
            // other threads are stamped before this thread sends a request that delays them.
            tokio::task::yield_now().await;
            now_ns = shared.clock.now_ns();
            yielded_ns = now_ns;
        }
    }
}

/// How long a session waited for its actor while its thread could have started it. It is not the
/// replayer that was late.
#[inline]
fn aside_ns<V: Vocabulary>(session: &Session<V>, freed_ns: i64, now_ns: i64) -> i64 {
    match session.due_ns() {
        Some(due_ns) if session.was_aside() => (now_ns - due_ns.max(freed_ns)).max(0),
        _ => 0,
    }
}

/// The error of the operations of a session that was skipped.
const OVERDUE: &str = "all threads were busy when its session was due (overload: skip)";

/// Logs all operations of a session that does not start.
#[cold]
fn skip<V: Vocabulary>(shared: &Shared<V>, thread: u32, session: &Session<V>, now_ns: i64) {
    let mut writes = Ended::Ok;
    for place in 0..session.steps() {
        let logged = LogRow {
            session: session.number(),
            step: place as u16,
            try_number: 0,
            thread,
            due_ns: session.due_ns().filter(|_| place == 0),
            start_ns: now_ns,
            end_ns: now_ns,
            waited_ns: 0,
            pool_wait_ns: 0,
            attempts: 0,
            outcome: Outcome::Skipped,
        };
        let operation = session.operation(place);
        if operation.control().is_some() {
            shared.count_control(&logged);
            shared.write(session.fragment, logged, &[], Some(OVERDUE));
        } else {
            shared.log(session.fragment, logged, &[], Some(OVERDUE));
        }
        if operation.writes() {
            writes = Ended::NotOk;
            shared.writes_not_ok.set(shared.writes_not_ok.get() + 1);
        }
    }
    shared.finish(session, writes, now_ns, now_ns);
}

/// The error of operations that were in flight when a user interrupted the experiment for a second time.
const GIVEN_UP: &str = "abandoned: the experiment was interrupted before the store answered";

/// What an operation is performed in. What is compiled for operations by themselves has nothing of
/// transactions.
pub(super) trait Within {
    /// The try of the transaction.
    fn try_number(&self) -> u16;

    /// Whether the thread waits before the operation in this place, if the trace says so.
    fn pauses(&self, place: usize) -> bool;

    /// Whether the operation in this place has the due time of its session.
    fn is_due(&self, place: usize) -> bool;

    /// Why the operation is not sent, and how it ends; None if it is sent.
    fn refusal<O: Operation>(&self, operation: &O) -> Option<(Outcome, String)>;

    /// Calls the store.
    fn call<V: Vocabulary, C: Connection<V>>(
        &self,
        connection: &mut C,
        request: &V::Request,
        answer: &mut Answer,
    ) -> impl Future<Output = Result<(), OperationError>>;

    /// Whether the operation may have happened although its answer was not awaited.
    fn may_have_happened<O: Operation>(&self, operation: &O) -> bool;

    /// What the outcome of a call stands for.
    fn outcome<O: Operation>(&mut self, operation: &O, result: Result<(), OperationError>)
    -> (Outcome, Option<String>);

    /// Logs and counts the operation. True as for [`Shared::log`].
    fn log<V: Vocabulary>(
        &mut self,
        shared: &Shared<V>,
        fragment: usize,
        row: LogRow,
        logged: Logged<'_, V::Operation>,
    ) -> bool;
}

/// What is logged of an operation besides its row.
pub(super) struct Logged<'a, O> {
    pub operation: &'a O,
    pub observed: &'a [i64],
    pub error: Option<&'a str>,
}

/// The operation is in no transaction.
struct Alone;

impl Within for Alone {
    #[inline(always)]
    fn try_number(&self) -> u16 {
        0
    }

    // The first operation's time is the inter-arrival time, which passes after the session.
    #[inline(always)]
    fn pauses(&self, place: usize) -> bool {
        place > 0
    }

    #[inline(always)]
    fn is_due(&self, place: usize) -> bool {
        place == 0
    }

    #[inline(always)]
    fn refusal<O: Operation>(&self, _operation: &O) -> Option<(Outcome, String)> {
        None
    }

    #[inline(always)]
    fn call<V: Vocabulary, C: Connection<V>>(
        &self,
        connection: &mut C,
        request: &V::Request,
        answer: &mut Answer,
    ) -> impl Future<Output = Result<(), OperationError>> {
        connection.execute(request, answer)
    }

    #[inline(always)]
    fn may_have_happened<O: Operation>(&self, operation: &O) -> bool {
        operation.writes()
    }

    #[inline(always)]
    fn outcome<O: Operation>(
        &mut self,
        _operation: &O,
        result: Result<(), OperationError>,
    ) -> (Outcome, Option<String>) {
        plain_outcome(result)
    }

    #[inline(always)]
    fn log<V: Vocabulary>(
        &mut self,
        shared: &Shared<V>,
        fragment: usize,
        row: LogRow,
        logged: Logged<'_, V::Operation>,
    ) -> bool {
        shared.log(fragment, row, logged.observed, logged.error)
    }
}

/// The outcome that a result stands for by itself.
#[inline(always)]
pub(super) fn plain_outcome(result: Result<(), OperationError>) -> (Outcome, Option<String>) {
    match result {
        Ok(()) => (Outcome::Ok, None),
        Err(OperationError::Failed(error)) => (Outcome::Failed, Some(error)),
        Err(OperationError::Unknown(error)) => (Outcome::Unknown, Some(error)),
        Err(OperationError::Aborted(error)) => (Outcome::Aborted, Some(error)),
    }
}

/// Performs the operation in this place of its session: waits as the trace says, calls the store,
/// logs. Returns how it ended if it is a write, and when the thread is free again. `writes` says how
/// the earlier writes of the session ended.
///
/// The operation starts at `now_ns`, when its thread took it up, or after its waits. Some 50 ns
/// of the replayer's own lie between that and the call of the store. Reading the clock once more
/// would take as long, and was a seventh of the cost of an operation against `null:`.
pub(super) async fn perform<V: Vocabulary, C: Connection<V>, W: Within>(
    shared: &Shared<V>,
    thread: &mut Thread<V, C>,
    session: &Session<V>,
    place: usize,
    writes: Ended,
    now_ns: i64,
    within: &mut W,
) -> (Ended, i64) {
    let clock = &shared.clock;
    let mut start_ns = now_ns;
    if within.pauses(place) && session.think_us(place) > 0 {
        shared.leave(thread.place);
        let until_ns = now_ns + session.think_us(place) as i64 * 1_000;
        start_ns = shared.rest(thread.place, until_ns, Until::Stopped).await;
    }
    let mut waited_ns = if place == 0 { thread.aside_ns } else { 0 };
    let mut dependency = Dependency::Done;
    if let Some(after) = session.after(place) {
        if after == session.number() {
            // The session itself is not done, but its earlier steps are.
            dependency = match writes {
                Ended::Ok => Dependency::Done,
                Ended::Aborted => Dependency::Aborted,
                Ended::NotOk => Dependency::NotOk,
            };
        } else {
            dependency = shared.dependency(session.fragment, after);
        }
        if dependency == Dependency::Pending {
            shared.leave(thread.place);
            let began_ns = start_ns;
            dependency = shared.wait_for(session.fragment, after).await;
            start_ns = clock.now_ns();
            waited_ns += start_ns - began_ns;
        }
    }
    let mut operation = session.operation(place);
    let own_place = thread.place;
    let has_waited = &mut thread.has_waited;
    let answer = &mut thread.answer;
    answer.clear();
    let (outcome, error, end_ns) = if dependency == Dependency::NotOk {
        answer.attempts = 0;
        (Outcome::Skipped, Some("a write that it depends on did not succeed".to_string()), start_ns)
    } else if dependency == Dependency::Aborted {
        answer.attempts = 0;
        (Outcome::Aborted, Some("a write that it depends on was rolled back".to_string()), start_ns)
    } else if shared.is_abandoned() {
        answer.attempts = 0;
        (Outcome::Skipped, Some(GIVEN_UP.to_string()), start_ns)
    } else if let Some((outcome, why)) = within.refusal(&operation) {
        answer.attempts = 0;
        (outcome, Some(why), start_ns)
    } else if let Err(missing) = V::resolve(&mut operation, &thread.memory) {
        answer.attempts = 0;
        (Outcome::Skipped, Some(missing.to_string()), start_ns)
    } else {
        match V::request(&operation, session.columns(), &mut thread.memory) {
            Err(missing) => {
                answer.attempts = 0;
                (Outcome::Skipped, Some(missing.to_string()), start_ns)
            }
            Ok(request) => {
                let result = {
                    // Pinned here: moving it into another function would copy it for every operation.
                    let mut execution = pin!(within.call::<V, C>(&mut thread.connection, request, answer));
                    poll_fn(|context| match execution.as_mut().poll(context) {
                        Poll::Ready(result) => Poll::Ready(Some(result)),
                        Poll::Pending if shared.is_abandoned() => Poll::Ready(None),
                        Poll::Pending => {
                            *has_waited = true;
                            shared.leave(own_place);
                            Poll::Pending
                        }
                    })
                    .await
                };
                let end_ns = clock.now_ns();
                match result {
                    Some(result) => {
                        let (outcome, error) = within.outcome(&operation, result);
                        (outcome, error, end_ns)
                    }
                    None if within.may_have_happened(&operation) => {
                        (Outcome::Unknown, Some(GIVEN_UP.to_string()), end_ns)
                    }
                    None => (Outcome::Failed, Some(GIVEN_UP.to_string()), end_ns),
                }
            }
        }
    };
    if outcome == Outcome::Ok {
        V::remember(&mut thread.memory, &operation, &answer.values);
    } else {
        answer.values.clear();
    }
    let logged = LogRow {
        session: session.number(),
        step: place as u16,
        try_number: within.try_number(),
        thread: thread.number,
        due_ns: session.due_ns().filter(|_| within.is_due(place)),
        start_ns,
        end_ns,
        waited_ns,
        pool_wait_ns: answer.pool_wait_ns,
        attempts: answer.attempts,
        outcome,
    };
    thread.freed_ns = end_ns;
    let more = Logged { operation: &operation, observed: &answer.values, error: error.as_deref() };
    let has_sent = within.log(shared, session.fragment, logged, more);
    // The next operation does not overlap with this one, so it must start after it. If the log
    // had to wait for the disk, that time is not part of the next operation either.
    let free_ns = if has_sent { clock.now_ns().max(end_ns + 1) } else { end_ns + 1 };
    if outcome == Outcome::Ok || !operation.writes() {
        return (Ended::Ok, free_ns);
    }
    if outcome == Outcome::Aborted {
        return (Ended::Aborted, free_ns);
    }
    shared.writes_not_ok.set(shared.writes_not_ok.get() + 1);
    (Ended::NotOk, free_ns)
}
