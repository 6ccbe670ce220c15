//! Closed loop: when a thread may start its next session, if the plan has a target or a number of
//! threads over time.

use schemas::plan::Plan;

/// The limits of a worker's threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Throttle {
    /// The time between two sessions of a thread; 0 for no target.
    interval_ns: f64,
    /// T.
    threads: u32,
    /// From which time of the measured part on how many of the worker's threads work. Empty for
    /// always all.
    steps: Vec<(i64, usize)>,
}

impl Throttle {
    /// As a plan says, in which this worker has so many threads from each step on. None without any
    /// limit.
    pub fn of(plan: &Plan, threads_at_steps: &[usize]) -> Option<Throttle> {
        if plan.target_per_s.is_none() && plan.threads_over_time.is_empty() {
            return None;
        }
        let from_ns = plan.threads_over_time.iter().map(|step| (step.from_s * 1e9) as i64);
        Some(Throttle {
            interval_ns: plan.target_per_s.map_or(0.0, |target| 1e9 * f64::from(plan.threads) / target),
            threads: plan.threads,
            steps: from_ns.zip(threads_at_steps.iter().copied()).collect(),
        })
    }

    /// When a thread of this number that has started so many sessions may start the next one, in
    /// nanoseconds from the part's beginning. The threads begin one after the other, so that they do
    /// not all send at once.
    pub(super) fn session_ns(&self, thread: u32, started: f64) -> i64 {
        ((started + (f64::from(thread) + 0.5) / f64::from(self.threads)) * self.interval_ns) as i64
    }

    /// Until when the thread in this place rests, in time of the measured part; none if it works.
    pub(super) fn rests_until(&self, place: usize, elapsed_ns: i64) -> Option<i64> {
        let now = self.steps.partition_point(|(from_ns, _)| *from_ns <= elapsed_ns).checked_sub(1)?;
        let mut later = self.steps[now..].iter();
        let works_from = later.find(|(_, threads)| place < *threads).map_or(i64::MAX, |(from_ns, _)| *from_ns);
        (works_from > elapsed_ns).then_some(works_from)
    }
}

/// How many sessions a thread has started in this part, or did without while it rested.
#[derive(Debug, Clone, Copy, Default)]
pub struct Started(f64);

impl Started {
    /// The thread starts a session.
    #[inline]
    pub fn add_one(&mut self) {
        self.0 += 1.0;
    }

    /// How many.
    pub(super) fn count(self) -> f64 {
        self.0
    }

    /// Adds the sessions that the thread would have started in this time of the part. The thread does not
    /// make up for them.
    pub(super) fn pass_over(&mut self, throttle: &Throttle, elapsed_ns: i64) {
        if throttle.interval_ns > 0.0 {
            self.0 = self.0.max(elapsed_ns as f64 / throttle.interval_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns_at_an_even_pace() {
        let throttle = Throttle { interval_ns: 400.0, threads: 4, steps: Vec::new() };
        let starts = |started| [0, 1, 2, 3].map(|thread| throttle.session_ns(thread, started));
        assert_eq!((starts(0.0), starts(1.0)), ([50, 150, 250, 350], [450, 550, 650, 750]));
        let free = Throttle { interval_ns: 0.0, ..throttle };
        assert_eq!((free.session_ns(3, 100.0), free.rests_until(3, 5)), (0, None));
    }

    #[test]
    fn threads_beyond_the_step_rest_until_one_has_them() {
        let steps = vec![(0, 2), (100, 5), (200, 1), (300, 3)];
        let throttle = Throttle { interval_ns: 0.0, threads: 5, steps };
        let until = |place, elapsed_ns| throttle.rests_until(place, elapsed_ns);
        assert_eq!((until(1, 0), until(2, 0), until(4, 99)), (None, Some(100), Some(100)));
        assert_eq!((until(4, 100), until(0, 250)), (None, None));
        assert_eq!((until(1, 200), until(2, 299), until(3, 200)), (Some(300), Some(300), Some(i64::MAX)));
    }
}
