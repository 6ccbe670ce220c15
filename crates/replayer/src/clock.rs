//! Time: nanoseconds since an experiment's start, precise waits, CPU time, and how long a thread
//! has waited for a processor.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::worker::alarms::Alarms;

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
        Clock { zero_ns: read(libc::CLOCK_MONOTONIC) + delay_ns }
    }

    /// Nanoseconds since time 0; below 0 before it.
    #[inline]
    pub fn now_ns(&self) -> i64 {
        read(libc::CLOCK_MONOTONIC) - self.zero_ns
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

/// Nanoseconds since 1970.
pub fn unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}

/// Nanoseconds of the monotonic clock.
#[inline]
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process, in nanoseconds.
pub fn process_cpu_ns() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// How long the calling thread has been ready to run but waited for a processor, in nanoseconds.
/// None if the kernel does not count it.
pub fn thread_run_delay_ns() -> Option<i64> {
    // Time on a processor, time of waiting for one, number of time slices.
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    counts.split_whitespace().nth(1)?.parse().ok()
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec to a valid address and keeps nothing.
    // It cannot fail for these clocks that every Unix has.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
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
