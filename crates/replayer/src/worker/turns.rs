//! Open loop: one task at a time waits for the next due time, and starts the session that is due.
//! The others are idle, or work at sessions. One that asks for work when a session is due starts it,
//! whoever has the turn: the task that waits may be woken later than that.
//!
//! The task that waits keeps the turn while it works at a session without waiting for the store.
//! When it has to wait, it gives the turn to the task whose thread has been idle for longest. So
//! sessions that are due together cost one wake-up each, and none against a store that answers at
//! once.
//!
//! A thread that ends a session takes the next one only if no other thread has been idle since that
//! one was due: then it has queued. Else the session is the other thread's, but the task goes on: it
//! takes that thread and leaves its own in exchange. To wake the other task instead would take a
//! microsecond each time, so that with 64 threads each session would wait for a round of all tasks.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;

use schemas::pace::Overload;
use schemas::vocabulary::Vocabulary;

use super::margin::Margin;
use super::pacer::{Asker, Idle, Kept, NO_PLACE, Pacer};
use super::shared::Shared;
use crate::dispatch::{Asking, Next, Session};

/// A sleep shorter than this costs more than it saves: two system calls and a change of context.
const SLEEP_MIN_NS: i64 = 10_000;

/// Handling other events takes about this long, so nearer due times are waited for without.
const LOOK_NS: i64 = 3_000;

/// The longest time without handling other events, if no session is under way: only the ticker
/// waits for any.
const SPIN_NS: i64 = 20_000;

impl<V: Vocabulary> Shared<V> {
    /// What a task that asks for work at `now_ns` gets.
    #[inline(never)]
    pub(super) fn next_due(&self, pacer: &Pacer, session: &mut Session<V>, asker: Asker, now_ns: i64) -> Next {
        let Asker { place, freed_ns } = asker;
        let turn = pacer.turn.get();
        let has_other_the_turn = turn != NO_PLACE && turn != place;
        let mut dispatcher = self.dispatcher.borrow_mut();
        let other_freed_ns = pacer.longest_idle_freed_ns();
        let next = dispatcher.hand_out_due(session, Asking { now_ns, freed_ns, other_freed_ns });
        let has_ready = dispatcher.has_ready();
        drop(dispatcher);
        match next {
            Next::Session => {
                if turn == NO_PLACE {
                    pacer.turn.set(place);
                }
                if has_ready {
                    self.call_for_ready(pacer, place);
                }
                return self.start_due(pacer, session, freed_ns, now_ns);
            }
            Next::NotDue(_) if has_other_the_turn => return Next::NotItsTurn,
            Next::ForOther if has_other_the_turn => {}
            Next::NotDue(_) | Next::ForOther => pacer.turn.set(place),
            Next::Blocked if turn == place => pacer.turn.set(NO_PLACE),
            Next::Finished => self.call_all(pacer),
            Next::Blocked | Next::NeedsChunk(_) | Next::Overdue | Next::NotItsTurn => {}
        }
        next
    }

    /// Records how a session that starts at `now_ns` kept its due time, in the measured part. If it
    /// had to queue, the plan may say that it does not start.
    #[inline]
    fn start_due(&self, pacer: &Pacer, session: &Session<V>, freed_ns: i64, now_ns: i64) -> Next {
        let Some(due_ns) = session.due_ns().filter(|_| pacer.is_measured.get()) else { return Next::Session };
        let kept = &mut *pacer.kept.borrow_mut();
        if session.was_aside() {
            // Its actor was busy, which is the store's fault or the workload's.
            kept.counts.queued += 1;
            kept.queued.record(now_ns - due_ns);
            return Next::Session;
        }
        let queued_ns = freed_ns.saturating_sub(due_ns);
        pacer.notice_stall(now_ns);
        if queued_ns <= 0 {
            pacer.forget_stall(due_ns);
            kept.unqueued += 1;
            kept.late.record(now_ns - due_ns);
            return Next::Session;
        }
        kept.counts.queued += 1;
        if queued_ns <= pacer.stalled_ns() {
            kept.counts.stalled += 1;
            kept.counts.stalled_ns_max = kept.counts.stalled_ns_max.max(queued_ns as u64);
        }
        match pacer.overload {
            Overload::Queue => {
                kept.queued.record(queued_ns);
                kept.late.record(now_ns - freed_ns);
                Next::Session
            }
            Overload::Skip => {
                kept.counts.skipped += 1;
                Next::Overdue
            }
            Overload::Stop => {
                self.overloaded.store(true, Ordering::Relaxed);
                let mut dispatcher = self.dispatcher.borrow_mut();
                dispatcher.take_back(session);
                dispatcher.close();
                drop(dispatcher);
                self.call_all(pacer);
                Next::Finished
            }
        }
    }

    /// The task at `place` is about to wait for something else than a due time. If it has the turn,
    /// another one gets it.
    #[inline]
    pub(super) fn leave(&self, place: usize) {
        if let Some(pacer) = self.pacer.as_ref().filter(|pacer| pacer.turn.get() == place) {
            self.pass_on(pacer);
        }
    }

    /// Exchanges a thread that became free at `freed_ns` for the one that has been idle for longest.
    /// Returns the place of the task that has it.
    #[inline]
    pub(super) fn exchange(&self, freed_ns: i64) -> Option<usize> {
        self.pacer.as_ref().and_then(|pacer| pacer.exchange(freed_ns))
    }

    /// Gives the turn to the task whose thread has been idle for longest.
    fn pass_on(&self, pacer: &Pacer) {
        self.wake(pacer.pass_on());
    }

    /// Sessions that waited aside can start: calls a task for the first of them. The task at
    /// `place` has one already.
    #[cold]
    fn call_for_ready(&self, pacer: &Pacer, place: usize) {
        let turn = pacer.turn.get();
        let called =
            pacer.call().map(|idle| idle.place).or_else(|| (turn != NO_PLACE && turn != place).then_some(turn));
        self.wake(called);
    }

    /// Calls all idle tasks, and the one that waits for the next due time.
    pub(super) fn call_all(&self, pacer: &Pacer) {
        while let Some(called) = pacer.call() {
            self.wake(Some(called.place));
        }
        self.wake(Some(pacer.turn.replace(NO_PLACE)));
    }

    fn wake(&self, place: Option<usize>) {
        let tasks = self.tasks.borrow();
        if let Some(task) = place.and_then(|place| tasks.get(place)).and_then(Option::as_ref) {
            task.wake_by_ref();
        }
    }

    /// Waits until it is the task's turn. Returns the time afterwards.
    pub(super) async fn wait_turn(&self, asker: Asker) -> i64 {
        if let Some(pacer) = &self.pacer {
            let Asker { place, freed_ns } = asker;
            pacer.add_idle(Idle { place, freed_ns });
            pacer.is_idle[place].set(true);
            // The task has registered its waker at its start.
            poll_fn(|_| if pacer.is_idle[place].get() { Poll::Pending } else { Poll::Ready(()) }).await;
            pacer.resumed(place);
        }
        self.clock.now_ns()
    }

    /// Waits until `at_ns`, or until the task that has the turn should ask again. Returns the time
    /// afterwards.
    pub(super) async fn wait_due(&self, asker: Asker, at_ns: i64) -> i64 {
        let at_ns = at_ns.min(self.deadline_ns.get());
        let mut now_ns = self.clock.now_ns();
        let Some(pacer) = &self.pacer else { return now_ns };
        pacer.waiting.set(Some(Idle { place: asker.place, freed_ns: asker.freed_ns }));
        let least_ns = Margin::of_wait_ns(at_ns - now_ns);
        while now_ns < at_ns && !self.should_ask() {
            let margin = pacer.margin.get();
            let until_ns = at_ns - margin.ns().max(least_ns);
            if until_ns - now_ns > SLEEP_MIN_NS {
                now_ns = self.sleep(until_ns).await;
                if now_ns >= until_ns {
                    pacer.margin.set(margin.after(now_ns - until_ns));
                }
            } else {
                now_ns = self.spin(pacer, at_ns, now_ns).await;
            }
        }
        pacer.resumed(asker.place);
        now_ns
    }

    /// Keeps the processor busy until `at_ns` or a little less. Handles other events meanwhile if
    /// there can be any.
    async fn spin(&self, pacer: &Pacer, at_ns: i64, began_ns: i64) -> i64 {
        let is_alone = pacer.idle.borrow().len() + 1 >= pacer.is_idle.len();
        let spin_ns = match at_ns - began_ns {
            left_ns if left_ns <= LOOK_NS => left_ns,
            left_ns if is_alone => left_ns.min(SPIN_NS),
            _ => 0,
        };
        let mut now_ns = began_ns;
        while now_ns - began_ns < spin_ns {
            std::hint::spin_loop();
            now_ns = self.clock.now_ns();
        }
        let operations = self.operations();
        if now_ns < at_ns {
            tokio::task::yield_now().await;
            now_ns = self.clock.now_ns();
        }
        // If other threads did something in between, the time was theirs.
        if self.operations() == operations {
            pacer.spun_ns.set(pacer.spun_ns.get() + now_ns - began_ns);
        }
        now_ns
    }

    /// Sleeps until `until_ns`, or until the task should ask again.
    async fn sleep(&self, until_ns: i64) -> i64 {
        let mut asked = false;
        poll_fn(|context| {
            let now_ns = self.clock.now_ns();
            if now_ns >= until_ns || self.should_ask() {
                return Poll::Ready(now_ns);
            }
            if !asked {
                asked = true;
                self.clock.wake_at(until_ns, context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Whether the task that has the turn should ask for a session before the next one is due.
    fn should_ask(&self) -> bool {
        let dispatcher = self.dispatcher.borrow();
        self.stop.load(Ordering::Relaxed) || dispatcher.is_closed() || dispatcher.has_ready()
    }

    /// In an open loop: the ticker measures at this time how late the worker is.
    pub(super) fn ticks_at(&self, tick_ns: i64) {
        self.pacer.iter().for_each(|pacer| pacer.ticks_at(tick_ns));
    }

    /// In an open loop: looks whether the worker stood still until now.
    pub(super) fn notice_stall(&self, now_ns: i64) {
        self.pacer.iter().for_each(|pacer| pacer.notice_stall(now_ns));
    }

    /// How the due times were kept; none in a closed loop. Counts the sessions that were due and have
    /// not started, so nothing can be handed out any more.
    pub(super) fn kept(&self) -> Option<Kept> {
        let pacer = self.pacer.as_ref()?;
        let mut kept = pacer.kept.take();
        if !pacer.is_measured.get() {
            return Some(kept);
        }
        let started = kept.unqueued + kept.queued.count();
        kept.queued.record_n(0, kept.unqueued);
        kept.counts.unstarted = self.unstarted();
        kept.counts.due = started + kept.counts.skipped + kept.counts.unstarted;
        Some(kept)
    }

    /// How many sessions were due before the end, and have not started.
    fn unstarted(&self) -> u64 {
        let until_ns = self.deadline_ns.get().min(self.clock.now_ns());
        let mut unstarted = self.dispatcher.borrow().waiting();
        while !self.is_abandoned() {
            let next = self.dispatcher.borrow_mut().skip_due(until_ns);
            match next {
                Next::Session => unstarted += 1,
                Next::NeedsChunk(fragment) => {
                    self.supply(fragment);
                }
                _ => break,
            }
        }
        unstarted
    }
}
