//! When the sessions of a fragment are due.
//!
//! Each fragment draws its arrivals by itself, at its share of the rate f(t): for a fragment with
//! weight w they are a process of rate w f(t). The generator draws the process at rate 1, and maps it
//! to time with the inverse of the number of arrivals until a time.

use schemas::arrivals::{Arrivals, Cursor, NeverDue, Profile, Spacing};
use schemas::spec::Spec;

use super::chance::Stream;

/// The due times of a fragment's sessions, one after the other.
pub(super) struct DueTimes<'a> {
    cursor: Cursor<'a>,
    /// The fragment's share of all arrivals.
    weight: f64,
    resolution_us: u64,
    steps: Steps,
}

/// The arrivals of a process of rate 1.
#[expect(clippy::large_enum_variant, reason = "there is one for each fragment")]
enum Steps {
    /// Independent of each other.
    Poisson { chance: Stream, last: f64 },
    /// At distance 1. Fragments begin one after the other.
    Even { phase: f64, made: u64 },
}

impl Steps {
    fn next(&mut self) -> f64 {
        match self {
            Steps::Poisson { chance, last } => {
                // 1 - unit lies in (0, 1].
                *last -= libm::log(1.0 - chance.unit());
                *last
            }
            Steps::Even { phase, made } => {
                *made += 1;
                (*made - 1) as f64 + *phase
            }
        }
    }
}

impl<'a> DueTimes<'a> {
    /// The due times of a fragment with this share of all sessions. The weights of all fragments are
    /// together 1.
    pub(super) fn new(
        arrivals: &Arrivals,
        profile: &'a Profile,
        spec: &Spec,
        fragment: u32,
        weight: f64,
    ) -> DueTimes<'a> {
        let steps = match arrivals.spacing {
            Spacing::Poisson => Steps::Poisson { chance: Stream::new(spec.seed, "arrivals", fragment), last: 0.0 },
            Spacing::Even => Steps::Even { phase: (fragment as f64 + 0.5) / spec.fragments as f64, made: 0 },
        };
        DueTimes { cursor: profile.cursor(), weight, resolution_us: arrivals.resolution_us as u64, steps }
    }

    /// When the next session is due, in microseconds from the start of the load.
    pub(super) fn next_us(&mut self) -> Result<u64, NeverDue> {
        let arrivals = self.steps.next() / self.weight;
        let due_us = (self.cursor.time_of(arrivals)? * 1e6) as u64;
        Ok(due_us - due_us % self.resolution_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due_us(arrivals: &str, fragment: u32, weight: f64, sessions: usize) -> Vec<u64> {
        let text = format!(
            "name = 't'\nsessions = 9\nfragments = 2\n[data]\nmembers = 10\n[mix]\nview_profile = 1\n[arrivals]\n{arrivals}"
        );
        let spec = Spec::parse(&text, "t.toml").unwrap();
        let arrivals = spec.arrivals.as_ref().unwrap();
        let profile = arrivals.profile();
        let mut due_times = DueTimes::new(arrivals, &profile, &spec, fragment, weight);
        (0..sessions).map(|_| due_times.next_us().unwrap()).collect()
    }

    #[test]
    fn fragments_share_even_arrivals() {
        let even = "rate = 100\nspacing = 'even'";
        assert_eq!(due_us(even, 0, 0.5, 3), [5_000, 25_000, 45_000]);
        assert_eq!(due_us(even, 1, 0.5, 3), [15_000, 35_000, 55_000]);
        // A heavier fragment has its arrivals closer to each other.
        assert_eq!(due_us(even, 0, 0.8, 3), [3_125, 15_625, 28_125]);
        assert_eq!(
            due_us("rate = 300\nspacing = 'even'\nresolution_us = 1000", 1, 0.5, 4),
            [5_000, 11_000, 18_000, 25_000]
        );
    }

    /// The number of arrivals until t is w t^2 in a ramp whose rate is 2 t.
    #[test]
    fn arrivals_follow_the_rate() {
        let ramp = "pieces = [{ for = '100s', from = 0, to = 200 }]\nspacing = 'even'";
        let expect = (0..50).map(|k| ((k as f64 + 0.25) / 0.5).sqrt() * 1e6);
        for (found, expect) in due_us(ramp, 0, 0.5, 50).into_iter().zip(expect) {
            assert!((found as f64 - expect).abs() <= 1.0, "{found} instead of {expect}");
        }
    }

    /// Trace sets depend on these numbers: a change of them is a change of format.
    #[test]
    fn poisson_arrivals_are_pinned() {
        let first = due_us("rate = 1000", 0, 0.5, 4);
        assert_eq!(first, [227, 683, 705, 2_419]);
        assert_ne!(first, due_us("rate = 1000", 1, 0.5, 4));
        // Only the time scale depends on the weight.
        let double = due_us("rate = 2000", 0, 0.5, 4);
        assert!(first.iter().zip(&double).all(|(slow, fast)| slow / 2 == *fast || slow / 2 + 1 == *fast));
    }
}
