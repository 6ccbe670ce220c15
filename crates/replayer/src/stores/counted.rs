//! Counts that a server keeps, since the store was opened.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What a server has counted so far. The server's own counts begin anew when it restarts.
#[derive(Debug, Default)]
pub(crate) struct Counted(Mutex<BTreeMap<String, Count>>);

#[derive(Debug, Default)]
struct Count {
    last: Option<u64>,
    sum: u64,
}

impl Counted {
    /// All counts, after the server's own have become these. They never shrink.
    pub fn with(&self, now: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, now) in now {
            let count = counts.entry(name).or_default();
            // What was counted before the first look is not this store's.
            count.sum += match count.last {
                None => 0,
                Some(last) if last <= now => now - last,
                Some(_) => now,
            };
            count.last = Some(now);
        }
        counts.iter().map(|(name, count)| (name.clone(), count.sum)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_grow_over_a_restart_of_the_server() {
        let counted = Counted::default();
        for (now, expect) in [(Some(7), 0), (Some(9), 2), (None, 2), (Some(3), 5), (Some(3), 5)] {
            let found = counted.with(now.into_iter().map(|now| ("evictions".to_string(), now)).collect());
            assert_eq!(found["evictions"], expect);
        }
    }
}
