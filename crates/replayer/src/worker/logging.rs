//! How a worker logs and counts operations, and what it publishes while it runs.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use schemas::oplog::{LogBuffer, LogRow};
use schemas::vocabulary::Vocabulary;

use super::shared::{Shared, buffer_like};
use crate::log::{BATCH_BYTES, BATCH_ROWS};

impl<V: Vocabulary> Shared<V> {
    /// Logs and counts an operation. True if a full buffer was handed to the writer, so that the
    /// call took longer than usual.
    ///
    /// Inlined into its caller: a call would pass the row through memory, which took 5% of a
    /// replay against `null:`.
    #[inline(always)]
    pub fn log(&self, fragment: usize, row: LogRow, observed: &[i64], error: Option<&str>) -> bool {
        self.count(&row);
        self.write(fragment, row, observed, error)
    }

    /// Counts an operation.
    #[inline(always)]
    pub fn count(&self, row: &LogRow) {
        let mut snapshot = self.snapshot.borrow_mut();
        if self.is_drained(row.start_ns) {
            snapshot.drained += 1;
        } else {
            snapshot.count(row, self.deadline_ns.get());
        }
    }

    /// Counts a begin, a commit or an abort.
    pub fn count_control(&self, row: &LogRow) {
        let mut snapshot = self.snapshot.borrow_mut();
        if self.is_drained(row.start_ns) {
            snapshot.drained += 1;
        } else {
            snapshot.of_transactions += 1;
            snapshot.elapsed_ns = snapshot.elapsed_ns.max(row.end_ns);
        }
    }

    /// Logs an operation. True as for [`Shared::log`].
    #[inline(always)]
    pub fn write(&self, fragment: usize, row: LogRow, observed: &[i64], error: Option<&str>) -> bool {
        if !self.is_logged {
            return false;
        }
        let mut buffers = self.buffers.borrow_mut();
        let buffer = &mut buffers[fragment];
        buffer.push(row, observed, error);
        let is_full = buffer.len() >= BATCH_ROWS || buffer.variable_bytes() >= BATCH_BYTES;
        if is_full {
            self.send(fragment, buffer);
        }
        is_full
    }

    fn send(&self, fragment: usize, buffer: &mut LogBuffer) {
        let full = std::mem::replace(buffer, buffer_like(buffer.len()));
        let stalled_ns = self.sender.send(self.logs[fragment], full);
        self.log_stall_ns.set(self.log_stall_ns.get() + stalled_ns);
        if self.sender.has_failed() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Sends everything that has been logged so far to the writer, and publishes the figures so far.
    pub fn hand_over(&self) {
        for (fragment, buffer) in self.buffers.borrow_mut().iter_mut().enumerate() {
            if !buffer.is_empty() {
                self.send(fragment, buffer);
            }
        }
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        *published = self.snapshot.borrow().clone();
        published.elapsed_ns = self.clock.now_ns() - self.part_began_ns.get();
    }

    /// Records how late the ticker was.
    pub fn record_lag(&self, late_ns: i64) {
        self.lag.borrow_mut().record(late_ns);
        let mut snapshot = self.snapshot.borrow_mut();
        snapshot.lag_ns_max = snapshot.lag_ns_max.max(late_ns);
    }
}
