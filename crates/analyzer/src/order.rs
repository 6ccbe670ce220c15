//! Sorts the rows of a log by start. It holds back only rows that a row of a later batch may
//! still precede.

use crate::join::Row;

/// Rows that wait for release. They are large and many, so they are not moved: a released row
/// stays in its place until the next release.
pub struct Reorder<O> {
    waiting: Vec<Row<O>>,
    order: Vec<(i64, u64, u16, u32)>,
    /// Rows that start before this have been released.
    released: i64,
    /// The earliest start of the rows that have not been released.
    earliest: i64,
}

impl<O> Default for Reorder<O> {
    fn default() -> Self {
        Reorder { waiting: Vec::new(), order: Vec::new(), released: i64::MIN, earliest: i64::MAX }
    }
}

impl<O> Reorder<O> {
    /// Adds a row.
    pub fn push(&mut self, row: Row<O>) {
        self.earliest = self.earliest.min(row.log.start_ns);
        self.waiting.push(row);
    }

    /// The rows that start before `limit`, ordered by start, session and step. No row that is
    /// pushed afterwards may start before `limit`.
    pub fn release(&mut self, limit: i64) -> impl Iterator<Item = &Row<O>> {
        self.order.clear();
        // One operation that takes minutes holds back millions of rows: do not scan them with
        // every batch.
        if limit > self.earliest || limit == i64::MAX {
            let released = self.released;
            self.waiting.retain(|row| row.log.start_ns >= released);
            (self.released, self.earliest) = (limit, i64::MAX);
            for (index, row) in self.waiting.iter().enumerate() {
                if row.log.start_ns < limit || limit == i64::MAX {
                    self.order.push((row.log.start_ns, row.log.session, row.log.step, index as u32));
                } else {
                    self.earliest = self.earliest.min(row.log.start_ns);
                }
            }
        }
        self.order.sort_unstable();
        self.order.iter().map(|(.., index)| &self.waiting[*index as usize])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::read_row;

    proptest! {
        /// Rows come out in the order of their start, whatever batches they are in.
        #[test]
        fn batches_in_any_order_come_out_by_start(
            batches in prop::collection::vec(prop::collection::vec(0i64..30, 0..8), 1..8),
        ) {
            let mut later: Vec<i64> = Vec::new();
            for i in 0..batches.len() {
                later.push(batches[i + 1..].iter().flatten().copied().min().unwrap_or(i64::MAX));
            }
            let (mut reorder, mut out, mut session) = (Reorder::default(), Vec::new(), 0);
            for (batch, later) in batches.iter().zip(later) {
                for start in batch {
                    reorder.push(read_row(session, *start, *start + 1));
                    session += 1;
                }
                out.extend(reorder.release(later).copied());
            }
            prop_assert_eq!(out.len(), session as usize);
            prop_assert!(out.is_sorted_by_key(|r| (r.log.start_ns, r.log.session)));
        }
    }
}
