//! What the tasks of a worker wait for: a time, a session that another task has, an end of the
//! experiment. For due times see `turns`.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use schemas::vocabulary::Vocabulary;

use super::shared::Shared;
use super::throttle::Started;
use crate::dispatch::Dependency;

/// What ends a thread's wait before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Any end of this part of the experiment: the thread has no session.
    Over,
    /// Only a stop from outside: the thread is in the middle of a session.
    Stopped,
}

impl<V: Vocabulary> Shared<V> {
    /// Registers the calling task, so that it can be woken to give up.
    pub async fn register(&self, place: usize) {
        poll_fn(|context| {
            self.tasks.borrow_mut()[place] = Some(context.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    /// Waits until `at_ns`, or less if `until` ends the wait early. Returns the time afterwards.
    /// `place` is the thread's place.
    pub async fn rest(&self, place: usize, at_ns: i64, until: Until) -> i64 {
        let at_ns = match until {
            Until::Over => at_ns.min(self.deadline_ns.get()),
            Until::Stopped => at_ns,
        };
        let mut asked = false;
        poll_fn(|context| {
            let now_ns = self.clock.now_ns();
            let is_cut =
                self.stop.load(Ordering::Relaxed) || (until == Until::Over && self.dispatcher.borrow().is_over());
            if now_ns >= at_ns || is_cut {
                if asked {
                    self.resting_count.set(self.resting_count.get() - 1);
                    self.resting.borrow_mut()[place] = None;
                }
                return Poll::Ready(now_ns);
            }
            if !asked {
                asked = true;
                self.resting_count.set(self.resting_count.get() + 1);
                self.clock.wake_at(at_ns, context.waker().clone());
            }
            // A call that wakes all tasks takes the waker. The wait may go on, so it leaves a new one.
            self.resting.borrow_mut()[place].get_or_insert_with(|| context.waker().clone());
            Poll::Pending
        })
        .await
    }

    pub(super) fn wake_resting(&self) {
        self.resting.borrow_mut().iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    /// Ends the waits of all threads when the experiment is to end early. While all of them
    /// sleep, only the ticker notices a stop.
    pub fn look_for_stop(&self) {
        if self.stop.load(Ordering::Relaxed) || self.overloaded.load(Ordering::Relaxed) {
            self.dispatcher.borrow_mut().close();
            self.wake_resting();
            self.wake_waiting();
            if let Some(pacer) = &self.pacer {
                self.call_all(pacer);
            }
        }
        if self.is_abandoned() {
            self.tasks.borrow().iter().flatten().for_each(Waker::wake_by_ref);
        }
    }

    pub(super) fn wake_waiting(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.is_empty() {
            waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// Waits until some session has finished.
    async fn wait_once(&self) {
        let mut asked = false;
        poll_fn(|context| {
            if asked {
                return Poll::Ready(());
            }
            asked = true;
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits until that session is done.
    pub async fn wait_for(&self, fragment: usize, after: u64) -> Dependency {
        loop {
            self.wait_once().await;
            let dependency = self.dependency(fragment, after);
            if dependency != Dependency::Pending {
                return dependency;
            }
        }
    }

    /// Waits until the thread should ask for a session again: none was free at `now_ns`. Returns
    /// the time afterwards.
    pub async fn idle(&self, now_ns: i64) -> i64 {
        self.wait_once().await;
        let woken_ns = self.clock.now_ns();
        self.idle_ns.set(self.idle_ns.get() + self.in_time(now_ns, woken_ns));
        woken_ns
    }

    /// Waits until a thread may start its next session. Returns the time afterwards; an end of the
    /// part ends the wait.
    pub(super) async fn hold_back(&self, place: usize, thread: u32, started: &mut Started, now_ns: i64) -> i64 {
        let Some(throttle) = &self.throttle else { return now_ns };
        let began_ns = self.part_began_ns.get();
        let mut now_ns = now_ns;
        while let Some(rests_ns) = throttle.rests_until(place, self.measured_ns(now_ns)) {
            // The warm-up has the threads of the first step throughout.
            let until_ns = if self.is_warmup() { i64::MAX } else { began_ns.saturating_add(rests_ns) };
            now_ns = self.rest(place, until_ns, Until::Over).await;
            if now_ns < until_ns {
                return now_ns;
            }
            started.pass_over(throttle, now_ns - began_ns);
        }
        let may_ns = began_ns.saturating_add(throttle.session_ns(thread, started.count()));
        if may_ns > now_ns { self.rest(place, may_ns, Until::Over).await } else { now_ns }
    }
}
