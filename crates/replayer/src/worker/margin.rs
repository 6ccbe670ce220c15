//! How long before a due time a thread stops sleeping, so that it is awake in time.

/// The least margin, in nanoseconds.
const LEAST_NS: i64 = 10_000;

/// The greatest. A machine that wakes a thread later than this is too busy to be on time anyway.
const GREATEST_NS: i64 = 200_000;

/// The share of a long wait that may be spent awake: 5% of the processor's time.
const AWAKE_SHARE: i64 = 20;

/// The most of it. Wake-ups of a processor that has slept for long are rarely later.
const AWAKE_NS: i64 = 500_000;

/// As long as the system took lately to wake a thread, and half as much again. A late wake-up raises
/// it at once, and a hundred punctual ones lower it again.
#[derive(Debug, Clone, Copy)]
pub struct Margin {
    overshoot_ns: i64,
}

impl Default for Margin {
    fn default() -> Margin {
        Margin { overshoot_ns: GREATEST_NS }
    }
}

impl Margin {
    /// The margin, in nanoseconds.
    pub fn ns(self) -> i64 {
        (self.overshoot_ns * 3 / 2).clamp(LEAST_NS, GREATEST_NS)
    }

    /// The least margin of a wait that takes this time. After a long sleep the system wakes a thread
    /// later than its short sleeps of late make one believe, and then there is time to spare.
    pub fn of_wait_ns(wait_ns: i64) -> i64 {
        (wait_ns / AWAKE_SHARE).min(AWAKE_NS)
    }

    /// The margin after a sleep that ended so many nanoseconds too late.
    pub fn after(self, late_ns: i64) -> Margin {
        let lower_ns = self.overshoot_ns - self.overshoot_ns / 32;
        Margin { overshoot_ns: lower_ns.max(late_ns.min(GREATEST_NS)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_follows_the_latest_wake_ups() {
        let mut margin = Margin::default();
        assert_eq!(margin.ns(), GREATEST_NS);
        (0..200).for_each(|_| margin = margin.after(8_000));
        assert_eq!(margin.ns(), 12_000);
        margin = margin.after(60_000);
        assert_eq!(margin.ns(), 90_000);
        assert_eq!(margin.after(1_000_000_000).ns(), GREATEST_NS);
        (0..400).for_each(|_| margin = margin.after(0));
        assert_eq!(margin.ns(), LEAST_NS);
    }

    /// A hundred punctual wake-ups lowered the margin to 10 µs even where sessions were half a second
    /// apart. Then one in a hundred started 140 to 280 µs late.
    #[test]
    fn a_long_wait_has_a_margin_of_a_twentieth() {
        let of = [-1, 100_000, 4_000_000, 10_000_000, 3_600_000_000_000].map(Margin::of_wait_ns);
        assert_eq!(of, [0, 5_000, 200_000, 500_000, 500_000]);
    }
}
