//! Time: nanoseconds since an experiment's start, precise waits, CPU time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Counts nanoseconds from an experiment's start, on the monotonic clock.
///
/// `Instant` keeps seconds and nanoseconds apart, which costs as much again as
/// reading the clock; an operation reads it twice.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero_ns: i64,
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

    /// Waits until `at_ns`.
    ///
    /// The runtime's timer ticks in milliseconds, so it is used up to the last
    /// but one tick; the rest is spent giving way to the other tasks.
    pub async fn sleep_until(&self, at_ns: i64) {
        const TICK_NS: i64 = 1_000_000;
        loop {
            let left_ns = at_ns - self.now_ns();
            if left_ns <= 0 {
                return;
            }
            if left_ns > 2 * TICK_NS {
                tokio::time::sleep(Duration::from_nanos((left_ns - TICK_NS) as u64)).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec to a valid address and keeps nothing.
    // It cannot fail for the two clocks that every Unix has.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
