//! What the system's clocks say.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
pub fn unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}

/// Nanoseconds of the monotonic clock.
#[inline]
pub fn monotonic_now_ns() -> i64 {
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
