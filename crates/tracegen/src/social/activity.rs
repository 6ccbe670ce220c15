//! How often socialites act: the window within which none acts twice, and a model of the window's
//! effect on the access distribution.
//!
//! The model is a renewal process in a mean field. A socialite with the probability p acts, and is
//! not drawn in the next `window - 1` sessions. After that, each session draws them with the
//! probability `scale * p`. `scale` makes up for the members who cannot be drawn; the model takes
//! it as constant. So a socialite acts once in `window - 1 + 1 / (scale * p)` sessions. `scale` has
//! the value for which these rates add up to 1. The model is exact without a window, and close when
//! the window holds many socialites.

use schemas::spec::SpecOf;
use schemas::workload::social::SocialWorkload;

use crate::social::population::{Population, fragment_share, fragment_window};
use crate::social::top_fifth::TopFifth;

/// The iteration ends when the rates add up to 1 within this tolerance.
const SUM_TOLERANCE: f64 = 1e-12;

/// Newton's method needs some ten steps; the bound keeps an unforeseen input from looping for ever.
const STEPS_MAX: u32 = 100;

/// The expected activity of the socialites of all fragments.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Activity {
    /// The window in effect, in sessions of the whole trace.
    pub(crate) window: u64,
    /// The most active socialite's share of the sessions, by the access distribution alone.
    pub(crate) most_active_by_distribution: f64,
    /// The same share with the window.
    pub(crate) most_active: f64,
    /// The share of the sessions that the most popular fifth of the members has with the window.
    pub(crate) top_fifth: f64,
}

impl Activity {
    /// Applies the model to each fragment separately.
    pub(crate) fn new(spec: &SpecOf<SocialWorkload>, population: &Population, top: &TopFifth) -> Activity {
        let asked = spec.own.access.unique_window;
        let popularity = population.popularity();
        let total: f64 = popularity.iter().sum();
        let mut activity = Activity { window: asked, ..Activity::default() };
        activity.most_active_by_distribution = popularity.iter().copied().fold(0.0, f64::max) / total;
        for (initial, weight) in population.initial.iter().zip(&population.weights) {
            let members = initial.members();
            let window = fragment_window(asked, *weight, members.len() as u64);
            if window < fragment_share(asked, *weight) {
                // With a window of 0 a socialite may act in the fragment's next session. In the global order
                // that session comes 1 / weight sessions later.
                activity.window = activity.window.min((window.max(1) as f64 / weight) as u64);
            }
            let rates = Rates::new(window, || members.iter().map(|member| popularity[*member as usize]));
            for member in members {
                let share = rates.of(popularity[*member as usize]) * weight;
                activity.most_active = activity.most_active.max(share);
                if top.has(*member as u64) {
                    activity.top_fifth += share;
                }
            }
        }
        activity
    }

    /// How many threads the trace can keep busy in steady state, when a member
    /// acts in one session at a time.
    pub(crate) fn threads_max(&self) -> u64 {
        // A little more, so that a rounding error does not truncate a whole number to the one below.
        ((1.0 / self.most_active * (1.0 + 1e-9)) as u64).max(self.window).max(1)
    }
}

/// The share of a fragment's sessions that each of its members has.
struct Rates {
    /// How many sessions a member must let pass after each of their own.
    pause: f64,
    /// The factor by which each member's weight is multiplied.
    factor: f64,
}

impl Rates {
    /// The rates of members with these weights. The order of the weights is fixed, so that sums are
    /// the same on every platform.
    fn new<W: Iterator<Item = f64>>(window: u64, weights: impl Fn() -> W) -> Rates {
        let total: f64 = weights().sum();
        let mut rates = Rates { pause: window.saturating_sub(1) as f64, factor: 1.0 / total };
        if rates.pause == 0.0 {
            return rates;
        }
        // The sum of the rates grows with the factor, more and more slowly, and is at most 1 at the
        // start. So each step of Newton's method comes closer, and none goes too far.
        for _ in 0..STEPS_MAX {
            let (mut sum, mut slope) = (0.0, 0.0);
            for weight in weights() {
                sum += rates.of(weight);
                slope += rates.slope(weight);
            }
            let missing = 1.0 - sum;
            if missing < SUM_TOLERANCE {
                break;
            }
            rates.factor += missing / slope;
        }
        rates
    }

    /// The share of a member with this weight. In a session that may draw the member, the
    /// probability is at most 1.
    fn of(&self, weight: f64) -> f64 {
        let chance = (self.factor * weight).min(1.0);
        chance / (self.pause * chance + 1.0)
    }

    /// How fast that share grows with the factor.
    fn slope(&self, weight: f64) -> f64 {
        let chance = self.factor * weight;
        if chance >= 1.0 {
            return 0.0;
        }
        let pass = self.pause * chance + 1.0;
        weight / (pass * pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_has_its_share_of_the_window_and_half_of_its_members_at_most() {
        for (asked, weight, members, expect) in [
            (512, 1.0, 10_000, 512),
            (512, 0.25, 10_000, 128),
            (100, 0.333, 10_000, 34),
            (512, 1.0, 40, 20),
            (512, 0.5, 41, 20),
            (512, 1.0, 1, 0),
            (1 << 32, 1.0, u32::MAX as u64, (u32::MAX / 2) as u64),
            (0, 1.0, 40, 0),
        ] {
            assert_eq!(fragment_window(asked, weight, members), expect, "{asked} of {weight} with {members}");
        }
    }

    #[test]
    fn equally_popular_members_keep_one_thread_each_busy() {
        for (members, fragments, window) in [(40, 1, 0), (49, 1, 512), (10_000, 1, 512), (9_000, 9, 512)] {
            let text = format!(
                "name = 't'\nsessions = 1\nfragments = {fragments}\n[data]\nmembers = {members}\n\
                 [access]\ndistribution = 'uniform'\nunique_window = {window}\n[mix]\nview_profile = 1\n"
            );
            let spec = SpecOf::<SocialWorkload>::parse(&text, "t.toml").unwrap();
            let population = Population::new(&spec).unwrap();
            let activity = Activity::new(&spec, &population, &TopFifth::new(&population));
            assert_eq!(activity.threads_max(), members, "{fragments} fragments, window {window}");
            assert_eq!(activity.window, window.min(members / 2), "{members} members");
        }
    }

    fn rates(window: u64, weights: &[f64]) -> Vec<f64> {
        let rates = Rates::new(window, || weights.iter().copied());
        weights.iter().map(|weight| rates.of(*weight)).collect()
    }

    #[test]
    fn rates_add_up_to_one_and_respect_the_window() {
        let zipfian = |members: u32, theta: f64| -> Vec<f64> {
            (1..=members).map(|rank| libm::pow(rank as f64, theta - 1.0)).collect()
        };
        let one_of_all = [&[1e6][..], &[1.0; 9]].concat();
        for weights in [zipfian(10_000, 0.27), zipfian(40, 0.01), zipfian(1_000, 1.0), one_of_all] {
            let half = weights.len() as u64 / 2;
            for window in [2, 3, half / 2, half] {
                let rates = rates(window, &weights);
                let sum: f64 = rates.iter().sum();
                assert!((sum - 1.0).abs() < 1e-9, "window {window}: {sum}");
                assert!(rates.iter().all(|rate| *rate <= (1.0 + 1e-9) / window.max(1) as f64), "window {window}");
                assert!(rates.windows(2).all(|pair| pair[0] >= pair[1]), "window {window}");
            }
        }
    }

    #[test]
    fn without_a_window_rates_are_probabilities_and_equal_members_stay_equal() {
        for window in [0, 1] {
            assert_eq!(rates(window, &[3.0, 1.0, 4.0]), [0.375, 0.125, 0.5]);
        }
        assert!(rates(20, &[7.0; 40]).iter().all(|rate| (rate - 1.0 / 40.0).abs() < 1e-12));
    }
}
