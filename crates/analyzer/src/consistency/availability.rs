//! Availability: the share of operations that succeeded, and how often and how long a store was down, from
//! a timeline.
//!
//! A slice of time is down if more of the operations that ended in it failed than succeeded. A slice in which
//! no operation ended is like the one before it. An outage is a run of slices that are down. The mean time
//! between failures is the time up divided by the outages, the mean time to repair the time down divided by
//! them.

/// Availability over a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Availability {
    /// How often the store went down.
    pub outages: u64,
    /// Time down, in seconds.
    pub down_s: f64,
    /// Time up, in seconds.
    pub up_s: f64,
}

impl Availability {
    /// Of slices of this length: how many operations succeeded in each, and how many did not.
    pub fn of(slice_s: f64, slices: impl Iterator<Item = (u64, u64)>) -> Availability {
        let (mut outages, mut down, mut up, mut is_down) = (0, 0u64, 0u64, false);
        for (ok, errors) in slices {
            if ok + errors > 0 {
                outages += u64::from(errors > ok && !is_down);
                is_down = errors > ok;
            }
            *if is_down { &mut down } else { &mut up } += 1;
        }
        Availability { outages, down_s: down as f64 * slice_s, up_s: up as f64 * slice_s }
    }

    /// The mean time between failures, in seconds. None without a failure.
    pub fn between_failures_s(&self) -> Option<f64> {
        (self.outages > 0).then(|| self.up_s / self.outages as f64)
    }

    /// The mean time to repair, in seconds. None without a failure.
    pub fn to_repair_s(&self) -> Option<f64> {
        (self.outages > 0).then(|| self.down_s / self.outages as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_runs_of_slices() {
        let slices = [(9, 0), (1, 5), (0, 0), (0, 3), (8, 1), (0, 0), (0, 1), (5, 5)];
        let found = Availability::of(0.5, slices.into_iter());
        assert_eq!(found, Availability { outages: 2, down_s: 2.0, up_s: 2.0 });
        assert_eq!((found.between_failures_s(), found.to_repair_s()), (Some(1.0), Some(1.0)));
        let never = Availability::of(1.0, [(3, 1), (0, 0)].into_iter());
        assert_eq!((never.outages, never.up_s, never.to_repair_s()), (0, 2.0, None));
    }
}
