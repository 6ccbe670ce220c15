//! Time: nanoseconds since an experiment's start, precise waits, CPU time.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Counts nanoseconds from an experiment's start, on the monotonic clock.
///
/// `Instant` keeps seconds and nanoseconds apart, which costs as much again as
/// reading the clock; every operation reads it.
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

    /// Wakes a task at `at_ns`, or as soon as it has passed.
    pub fn wake_at(&self, at_ns: i64, waker: Waker) {
        TIMER.wake_at(self.zero_ns.saturating_add(at_ns), waker);
    }

    /// Waits until `at_ns`, without keeping a processor busy.
    pub async fn sleep_until(&self, at_ns: i64) {
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
}

/// Wakes tasks at a time, from a thread of its own: the runtime's timer ticks in
/// milliseconds, which is too coarse for think times and due times.
static TIMER: LazyLock<&'static Timer> = LazyLock::new(Timer::start);

#[derive(Default)]
struct Timer {
    alarms: Mutex<BinaryHeap<Alarm>>,
    earlier: Condvar,
}

struct Alarm {
    at_ns: i64,
    waker: Waker,
}

impl Timer {
    fn start() -> &'static Timer {
        let timer: &'static Timer = Box::leak(Box::default());
        std::thread::spawn(|| timer.ring());
        timer
    }

    fn wake_at(&self, at_ns: i64, waker: Waker) {
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let is_earliest = alarms.peek().is_none_or(|first| at_ns < first.at_ns);
        alarms.push(Alarm { at_ns, waker });
        if is_earliest {
            self.earlier.notify_one();
        }
    }

    fn ring(&self) {
        // The kernel may round a wait up by 50 us to save power; ask it not to.
        #[cfg(target_os = "linux")]
        // SAFETY: sets a number of the calling thread.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        }
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now_ns = read(libc::CLOCK_MONOTONIC);
            while let Some(due) = alarms.peek_mut().filter(|first| first.at_ns <= now_ns) {
                PeekMut::pop(due).waker.wake();
            }
            alarms = match alarms.peek().map(|first| first.at_ns - now_ns) {
                None => self.earlier.wait(alarms).unwrap_or_else(PoisonError::into_inner),
                Some(left_ns) => {
                    let left = Duration::from_nanos(left_ns as u64);
                    self.earlier.wait_timeout(alarms, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

// The heap has its greatest on top; that is to be the earliest alarm.
impl Ord for Alarm {
    fn cmp(&self, other: &Alarm) -> std::cmp::Ordering {
        other.at_ns.cmp(&self.at_ns)
    }
}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Alarm) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Alarm) -> bool {
        self.at_ns == other.at_ns
    }
}

impl Eq for Alarm {}

/// Nanoseconds since 1970.
pub fn unix_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process, in nanoseconds.
pub fn process_cpu_ns() -> i64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
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

    /// Whatever the order in which they were asked for, nobody is woken early
    /// and everybody is woken.
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
