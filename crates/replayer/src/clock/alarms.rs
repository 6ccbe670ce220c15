//! A worker's alarm clock: one kernel timer, for which its runtime waits as it waits for sockets,
//! and the tasks that the timer wakes.
//!
//! The runtime's own timer ticks in milliseconds, which is too coarse for think times, and
//! a thread that wakes the tasks of others costs each of them a lock and a system call.
//! Here one expiry wakes all tasks whose times lie near each other.
//!
//! An expiry costs three system calls and a change of context, which is more than most operations.
//! So expiries are at least [`GAP_NS`] apart: where waits are dense, one expiry ends several.

use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::task::Waker;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::readings::monotonic_now_ns;

/// The least time between two expiries, in nanoseconds. Waits may end later by this, which is less than
/// a wake-up takes.
const GAP_NS: i64 = 10_000;

/// The tasks of one worker that wait for a time, on the monotonic clock.
#[derive(Debug)]
pub struct Alarms {
    timer: AsyncFd<OwnedFd>,
    waiting: RefCell<BinaryHeap<Alarm>>,
    /// When the timer expires next.
    armed_at_ns: Cell<i64>,
}

#[derive(Debug)]
struct Alarm {
    at_ns: i64,
    waker: Waker,
}

impl Alarms {
    /// Must be called inside the worker's runtime.
    pub fn new() -> io::Result<Alarms> {
        // SAFETY: the call takes no pointer; nothing else owns the descriptor that it gives.
        let timer = unsafe {
            match libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                timer => OwnedFd::from_raw_fd(timer),
            }
        };
        // SAFETY: an owned descriptor stays the same and open for as long as it lives.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?;
        Ok(Alarms { timer, waiting: RefCell::default(), armed_at_ns: Cell::new(i64::MAX) })
    }

    /// Wakes a task at `at_ns`, or soon after if that has passed.
    pub fn wake_at(&self, at_ns: i64, waker: Waker) {
        self.waiting.borrow_mut().push(Alarm { at_ns, waker });
        self.arm(at_ns);
    }

    /// Waits until `until_ns`, and meanwhile wakes every task whose time has come. One task of
    /// the worker calls this in a loop.
    pub async fn drive(&self, until_ns: i64) -> io::Result<()> {
        loop {
            let now_ns = monotonic_now_ns();
            self.ring(now_ns);
            if now_ns >= until_ns {
                return Ok(());
            }
            let next_ns = self.waiting.borrow().peek().map_or(until_ns, |first| first.at_ns.min(until_ns));
            self.arm(next_ns.max(now_ns + GAP_NS));
            // The number of expiries is not read: the clock says what is due, and the kernel reports
            // each expiry by itself (edge-triggered).
            self.timer.readable().await?.clear_ready();
            self.armed_at_ns.set(i64::MAX);
        }
    }

    fn ring(&self, now_ns: i64) {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(due) = waiting.peek_mut().filter(|first| first.at_ns <= now_ns) {
            PeekMut::pop(due).waker.wake();
        }
    }

    /// Sets the timer to `at_ns`, unless it expires earlier.
    fn arm(&self, at_ns: i64) {
        if at_ns >= self.armed_at_ns.get() {
            return;
        }
        self.armed_at_ns.set(at_ns);
        // A time of 0 would disarm the timer. A time that has passed expires at once.
        let at_ns = at_ns.max(1);
        let at = libc::timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let times = libc::itimerspec { it_interval: never, it_value: at };
        // SAFETY: the call reads one itimerspec. It fails for wrong descriptors and times alone.
        unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &times, std::ptr::null_mut()) };
    }
}

// The heap has its greatest item on top. The order is reversed, so that this is the earliest alarm.
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

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::clock::{Clock, set_alarms};

    /// Every sleeper wakes, and none before its time, in whatever order they asked.
    #[test]
    fn sleepers_wake_at_their_time_and_never_before() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let alarms = Rc::new(Alarms::new().unwrap());
            set_alarms(Some(alarms.clone()));
            let clock = Clock::starting_in(0);
            let sleeps = [30_000_000, 500_000, 20_000_000, 500_000, 0, -1].map(|at_ns| async move {
                clock.sleep_until(at_ns).await;
                assert!(clock.now_ns() >= at_ns);
            });
            let all = futures::future::join_all(sleeps);
            let drive = async {
                loop {
                    alarms.drive(monotonic_now_ns() + 10_000_000).await.unwrap();
                }
            };
            tokio::select! {
                biased;
                _ = all => {}
                () = drive => unreachable!("it never ends"),
            }
            set_alarms(None);
        });
    }
}
