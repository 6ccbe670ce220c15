//! Open loop: when sessions are due, and which fragment's next session is due first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemas::manifest::Manifest;
use schemas::pace::Due;

/// When the sessions of one fragment are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rhythm {
    due: Due,
    /// Sessions a second of this fragment, and what fraction of a step its first session waits. Only
    /// for [`Due::Even`].
    per_s: f64,
    phase: f64,
}

impl Rhythm {
    /// That of a fragment of this trace set.
    pub fn of(due: Due, manifest: &Manifest, fragment: u32) -> Rhythm {
        let weights: f64 = manifest.weights().iter().sum();
        let place = manifest.fragments.iter().position(|f| f.fragment == fragment).unwrap_or_default();
        let share = manifest.fragments.get(place).map_or(1.0, |f| f.weight / weights);
        let per_s = if let Due::Even { per_s } = due { per_s * share } else { 0.0 };
        Rhythm { due, per_s, phase: (place as f64 + 0.5) / manifest.fragments.len().max(1) as f64 }
    }

    /// The due times of a trace that begins with the part.
    #[cfg(test)]
    pub fn of_trace() -> Rhythm {
        Rhythm { due: Due::Trace { from_us: 0, warmup_from_us: 0, factor: 1.0 }, per_s: 0.0, phase: 0.0 }
    }

    /// When a session is due, in nanoseconds from the beginning of the part. `first` is the
    /// fragment's first session of the part; an earlier one was given back and is due at once.
    /// `due_us` is what the trace says.
    fn due_ns(&self, is_warmup: bool, first: u64, session: u64, due_us: Option<u64>) -> i64 {
        let Some(place) = session.checked_sub(first) else { return 0 };
        let ns = match self.due {
            Due::Even { .. } => (place as f64 + self.phase) * 1e9 / self.per_s,
            Due::Trace { from_us, warmup_from_us, factor } => {
                let from_us = if is_warmup { warmup_from_us } else { from_us };
                due_us.unwrap_or_default().saturating_sub(from_us) as f64 * 1e3 / factor
            }
        };
        // A time beyond all clocks saturates.
        ns as i64
    }
}

/// The order in which the sessions of some fragments are due.
pub struct DueOrder {
    rhythms: Vec<Rhythm>,
    /// When the part began, by the experiment's clock.
    began_ns: i64,
    is_warmup: bool,
    /// When the next session of each fragment is due, of those where that is known. Of two that are
    /// due together, the first fragment's comes first.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    /// The other fragments: their next session has not been looked at yet.
    unknown: Vec<usize>,
}

impl DueOrder {
    /// For fragments of these rhythms, in a part that begins at time 0.
    pub fn new(rhythms: Vec<Rhythm>) -> DueOrder {
        let unknown = (0..rhythms.len()).collect();
        DueOrder { heads: BinaryHeap::with_capacity(rhythms.len()), rhythms, began_ns: 0, is_warmup: false, unknown }
    }

    /// Says that the part is the warm-up.
    pub fn warming_up(&mut self) {
        self.is_warmup = true;
    }

    /// Continues with the measured part, which begins at this time.
    pub fn begin_measured(&mut self, at_ns: i64) {
        (self.is_warmup, self.began_ns) = (false, at_ns);
        self.heads.clear();
        self.unknown = (0..self.rhythms.len()).collect();
    }

    /// A fragment whose next session has not been looked at.
    #[inline]
    pub fn unknown(&self) -> Option<usize> {
        self.unknown.last().copied()
    }

    /// Says which session of the fragment [`DueOrder::unknown`] is next, and what the trace says of
    /// its due time. `first` is the fragment's first session of the part.
    #[inline]
    pub fn learn(&mut self, first: u64, session: u64, due_us: Option<u64>) {
        if let Some(index) = self.unknown.pop() {
            let due_ns = self.rhythms[index].due_ns(self.is_warmup, first, session, due_us);
            self.heads.push(Reverse((self.began_ns.saturating_add(due_ns), index)));
        }
    }

    /// Says that the fragment [`DueOrder::unknown`] has no further session in this part.
    pub fn forget(&mut self) {
        self.unknown.pop();
    }

    /// When the session that is due first is due, by the experiment's clock, and its fragment. Some
    /// fragment is [`DueOrder::unknown`] until its next session is known.
    #[inline]
    pub fn first(&self) -> Option<(i64, usize)> {
        self.heads.peek().map(|Reverse(head)| *head)
    }

    /// The first session is taken.
    #[inline]
    pub fn take(&mut self) {
        if let Some(Reverse((_, index))) = self.heads.pop() {
            self.unknown.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rhythm(due: Due, per_s: f64, phase: f64) -> Rhythm {
        Rhythm { due, per_s, phase }
    }

    #[test]
    fn due_times_count_from_the_beginning_of_their_part() {
        let trace = rhythm(Due::Trace { from_us: 500, warmup_from_us: 100, factor: 2.0 }, 0.0, 0.0);
        assert_eq!(trace.due_ns(false, 10, 10, Some(500)), 0);
        assert_eq!(trace.due_ns(false, 10, 12, Some(700)), 100_000);
        assert_eq!(trace.due_ns(true, 10, 12, Some(700)), 300_000);
        assert_eq!(trace.due_ns(true, 10, 3, Some(700)), 0, "it was given back");
        // 2^40 µs are exact to the nanosecond.
        let slow = rhythm(Due::Trace { from_us: 0, warmup_from_us: 0, factor: 1.0 }, 0.0, 0.0);
        assert_eq!(slow.due_ns(false, 0, 1, Some((1 << 40) - 1)), ((1 << 40) - 1) * 1_000);
        let even = rhythm(Due::Even { per_s: 8.0 }, 4.0, 0.25);
        let due: Vec<i64> = (10..13).map(|session| even.due_ns(false, 10, session, None)).collect();
        assert_eq!(due, [62_500_000, 312_500_000, 562_500_000]);
    }

    #[test]
    fn the_fragment_whose_session_is_due_first_is_first() {
        let trace = Due::Trace { from_us: 0, warmup_from_us: 0, factor: 1.0 };
        let mut order = DueOrder::new(vec![rhythm(trace, 0.0, 0.0); 3]);
        assert_eq!(order.first(), None);
        // The last is looked at first.
        for due_us in [3, 2, 2] {
            order.learn(0, 0, Some(due_us));
        }
        assert_eq!((order.unknown(), order.first()), (None, Some((2_000, 0))), "of two, the first fragment");
        order.take();
        assert_eq!(order.unknown(), Some(0));
        order.learn(0, 1, Some(9));
        assert_eq!(order.first(), Some((2_000, 1)));
        order.take();
        order.forget();
        assert_eq!((order.unknown(), order.first()), (None, Some((3_000, 2))));
        order.begin_measured(50);
        assert_eq!((order.unknown(), order.first()), (Some(2), None));
        order.learn(0, 0, Some(4));
        assert_eq!(order.first(), Some((4_050, 2)));
    }
}
