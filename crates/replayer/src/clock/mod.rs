//! Time: nanoseconds since an experiment's start, precise waits, CPU time, and how long a thread
//! has waited for a processor.

mod alarms;
mod readings;

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

pub use alarms::Alarms;
use readings::monotonic_now_ns;
pub use readings::{process_cpu_ns, thread_cpu_ns, thread_run_delay_ns, unix_ns};

/// Counts nanoseconds from an experiment's start, on the monotonic clock.
///
/// `Instant` keeps seconds and nanoseconds apart. That costs as much again as reading the clock,
/// which every operation does.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero_ns: i64,
}

thread_local! {
    /// The alarms of the worker that runs on this thread.
    static ALARMS: RefCell<Option<Rc<Alarms>>> = const { RefCell::new(None) };
}

/// Sets the alarms that end the waits of this thread. Without alarms, the runtime's timer ends them.
pub fn set_alarms(alarms: Option<Rc<Alarms>>) {
    ALARMS.set(alarms);
}

impl Clock {
    /// A clock whose time 0 is `delay_ns` from now.
    pub fn starting_in(delay_ns: i64) -> Clock {
        Clock { zero_ns: monotonic_now_ns() + delay_ns }
    }

    /// Nanoseconds since time 0; below 0 before it.
    #[inline]
    pub fn now_ns(&self) -> i64 {
        monotonic_now_ns() - self.zero_ns
    }

    /// Converts a time of this clock to the monotonic clock.
    pub fn monotonic_ns(&self, at_ns: i64) -> i64 {
        self.zero_ns.saturating_add(at_ns)
    }

    /// Waits until `at_ns`, without keeping a processor busy. On a worker's thread the wait is
    /// precise to some microseconds, elsewhere to the runtime's milliseconds.
    pub async fn sleep_until(&self, at_ns: i64) {
        if ALARMS.with_borrow(Option::is_none) {
            while self.now_ns() < at_ns {
                tokio::time::sleep(Duration::from_nanos((at_ns - self.now_ns()).max(0) as u64)).await;
            }
            return;
        }
        let mut asked = false;
        std::future::poll_fn(|context| {
            if self.now_ns() >= at_ns {
                return Poll::Ready(());
            }
            if !asked {
                asked = true;
                self.wake_at(at_ns, context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes a task of this worker at `at_ns`, or soon after if that has passed.
    pub fn wake_at(&self, at_ns: i64, waker: Waker) {
        ALARMS.with_borrow(|alarms| {
            // Only workers have tasks that rest, and every worker sets its alarms first.
            if let Some(alarms) = alarms {
                alarms.wake_at(self.monotonic_ns(at_ns), waker);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a worker's alarms: every sleeper wakes, and none before its time.
    #[tokio::test]
    async fn sleepers_wake_at_their_time_and_never_before() {
        let clock = Clock::starting_in(0);
        let sleeps = [3_000_000, 500_000, 2_000_000, 500_000, 0, -1].map(|at_ns| async move {
            clock.sleep_until(at_ns).await;
            assert!(clock.now_ns() >= at_ns);
        });
        futures::future::join_all(sleeps).await;
    }
}
