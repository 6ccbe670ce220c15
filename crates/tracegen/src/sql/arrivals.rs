//! The rate over time of due times that come from elsewhere, for the specification of their trace set.

use std::collections::BTreeMap;

use schemas::arrivals::{Arrivals, Point, Spacing};

/// The most parts of the time that have a rate of their own.
const PARTS_MAX: u64 = 1_000;

/// Counts due times by the second.
#[derive(Debug, Default)]
pub(super) struct DueTimes {
    by_second: BTreeMap<u64, u64>,
    /// The last one.
    pub(super) last_us: u64,
}

impl DueTimes {
    pub(super) fn add(&mut self, due_us: u64) {
        *self.by_second.entry(due_us / 1_000_000).or_default() += 1;
        self.last_us = self.last_us.max(due_us);
    }

    /// The arrivals; none if there is no due time.
    pub(super) fn arrivals(&self) -> Option<Arrivals> {
        let sessions: u64 = self.by_second.values().sum();
        if sessions == 0 {
            return None;
        }
        let seconds = self.last_us / 1_000_000 + 1;
        let width = seconds.div_ceil(PARTS_MAX);
        let mut parts = vec![0u64; seconds.div_ceil(width) as usize];
        for (second, count) in &self.by_second {
            parts[(second / width) as usize] += count;
        }
        let mut points: Vec<Point> = Vec::new();
        for (part, count) in parts.iter().enumerate() {
            let rate = *count as f64 / width as f64;
            let [from, to] = [part as u64, part as u64 + 1].map(|edge| (edge * width) as f64);
            match points.last_mut() {
                // The rate goes on.
                Some([end, before]) if *before == rate => *end = to,
                _ => points.extend([[from, rate], [to, rate]]),
            }
        }
        // A longer trace would go on at the mean rate, which is above 0.
        let end = (parts.len() as u64 * width) as f64;
        points.push([end, sessions as f64 / end]);
        Some(Arrivals {
            rate: None,
            file: None,
            repeat: false,
            spacing: Spacing::Even,
            resolution_us: 1,
            points,
            pieces: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_has_as_many_arrivals_as_there_are_sessions() {
        let mut due = DueTimes::default();
        assert_eq!(due.arrivals(), None);
        for us in [0, 1, 500_000, 1_200_000, 2_000_001, 9_000_000] {
            due.add(us);
        }
        let arrivals = due.arrivals().unwrap();
        assert_eq!(arrivals.points[..4], [[0.0, 3.0], [1.0, 3.0], [1.0, 1.0], [3.0, 1.0]]);
        let profile = arrivals.profile();
        assert_eq!((profile.arrivals_until(1.0), profile.arrivals_until(10.0)), (3.0, 6.0));
        assert_eq!(profile.rate_at(20.0), 0.6);
    }

    #[test]
    fn a_long_time_has_few_points() {
        let mut due = DueTimes::default();
        (0..50_000).for_each(|second| due.add(second * 1_000_000 + second % 3));
        due.add(40_000_000_000);
        let arrivals = due.arrivals().unwrap();
        assert!(arrivals.points.len() < 2_100, "{}", arrivals.points.len());
        let all = arrivals.profile().arrivals_until(50_000.0);
        assert!((all - 50_001.0).abs() < 1e-6, "{all}");
    }
}
