//! How long operations take: `latency_us`, `servers` and `stall_ms`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock::Clock;
use crate::stores::StoreError;
use crate::stores::url::StoreUrl;

/// How long after the first operation the stall begins.
const STALL_AFTER_NS: i64 = 1_000_000_000;

/// When operations take effect, and when they end.
pub(super) struct Timing {
    latency_ns: i64,
    /// How many operations run at a time; 0 for no limit.
    servers: u32,
    stall_ns: i64,
    /// When each server is free; servers that have never worked are not in it.
    free_at: Mutex<BinaryHeap<Reverse<i64>>>,
    clock: Clock,
    /// When the stall ends; 0 before it has begun.
    stalled_until_ns: AtomicI64,
    first_operation_ns: AtomicI64,
}

impl Timing {
    /// As a URL asks for.
    pub(super) fn of(url: &StoreUrl) -> Result<Timing, StoreError> {
        Ok(Timing {
            latency_ns: url.number::<u32>("latency_us", 0)? as i64 * 1_000,
            servers: url.number("servers", 0)?,
            stall_ns: url.number::<u32>("stall_ms", 0)? as i64 * 1_000_000,
            free_at: Mutex::default(),
            clock: Clock::starting_in(0),
            stalled_until_ns: AtomicI64::new(0),
            first_operation_ns: AtomicI64::new(0),
        })
    }

    /// The time.
    pub(super) fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Waits for so long.
    pub(super) async fn sleep(&self, ns: i64) {
        self.clock.sleep_until(self.clock.now_ns() + ns).await;
    }

    /// Performs an operation when it takes effect, and waits until it ends.
    #[inline]
    pub(super) async fn perform<X>(&self, take_effect: impl FnOnce() -> X) -> X {
        if self.stall_ns > 0 {
            self.stall().await;
        }
        if self.latency_ns == 0 {
            return take_effect();
        }
        let (effect_ns, end_ns) = self.times();
        self.clock.sleep_until(effect_ns).await;
        let result = take_effect();
        self.clock.sleep_until(end_ns).await;
        result
    }

    /// Waits for the end of the stall, which all threads share.
    async fn stall(&self) {
        let now = self.clock.now_ns().max(1);
        let _ = self.first_operation_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        if now - self.first_operation_ns.load(Ordering::Relaxed) < STALL_AFTER_NS {
            return;
        }
        let until = now + self.stall_ns;
        let _ = self.stalled_until_ns.compare_exchange(0, until, Ordering::Relaxed, Ordering::Relaxed);
        self.clock.sleep_until(self.stalled_until_ns.load(Ordering::Relaxed)).await;
    }

    /// When the next operation takes effect, and when it ends: `latency_us` after a server is
    /// free for it. Both times count from one start. So two waits that end some microseconds late
    /// make the operation late only once.
    fn times(&self) -> (i64, i64) {
        let (now, latency_ns) = (self.clock.now_ns(), self.latency_ns);
        let mut start = now;
        if self.servers > 0 {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            if free_at.len() == self.servers as usize {
                // The heap has at least one entry.
                start = free_at.pop().map_or(now, |Reverse(free_ns)| free_ns.max(now));
            }
            free_at.push(Reverse(start + latency_ns));
        }
        (start + latency_ns / 2, start + latency_ns)
    }
}
