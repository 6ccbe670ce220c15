//! Time: nanoseconds since an experiment's start, precise waits, CPU time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Counts nanoseconds from an experiment's start.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// A clock whose time 0 is `zero`, which may lie ahead.
    pub fn starting_at(zero: Instant) -> Clock {
        Clock { zero }
    }

    /// Nanoseconds since time 0; below 0 before it.
    #[inline]
    pub fn now_ns(&self) -> i64 {
        let now = Instant::now();
        match now.checked_duration_since(self.zero) {
            Some(since) => since.as_nanos() as i64,
            None => -(self.zero.duration_since(now).as_nanos() as i64),
        }
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
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec to a valid address and keeps nothing.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if result == 0 { time.tv_sec * 1_000_000_000 + time.tv_nsec } else { 0 }
}
