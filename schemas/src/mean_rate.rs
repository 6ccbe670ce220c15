//! The mean arrival rate of an open loop: what a plan asks for, and which factor gives a wanted rate.

use crate::arrivals::{DUE_S_MAX, NeverDue, Profile};
use crate::pace::{Due, OpenLoop};
use crate::spec::Spec;

impl OpenLoop {
    /// How many sessions a second are due on average in the first `seconds` of the measured part. None
    /// if the due times come from a trace whose specification has no arrivals.
    pub fn mean_rate(&self, spec: &Spec, seconds: f64) -> Option<f64> {
        match self.due {
            Due::Even { per_s } => Some(per_s),
            Due::Trace { from_us, factor, .. } => {
                let profile = spec.arrivals.as_ref()?.profile();
                let from_s = from_us as f64 / 1e6;
                // No session is due later, so a longer walk would find none.
                let until_s = (from_s + factor * seconds).min(DUE_S_MAX);
                let due = profile.arrivals_until(until_s) - profile.arrivals_until(from_s);
                Some(due / seconds).filter(|rate| rate.is_finite())
            }
        }
    }

    /// How many sessions a second are due on average in each slice of the measured part. The slices
    /// are `slice_s` seconds long, and the first one begins with the measured part. None as for
    /// [`OpenLoop::mean_rate`].
    pub fn rates_in_slices(&self, spec: &Spec, slice_s: f64, slices: usize) -> Option<Vec<f64>> {
        match self.due {
            Due::Even { per_s } => Some(vec![per_s; slices]),
            Due::Trace { from_us, factor, .. } => {
                let profile = spec.arrivals.as_ref()?.profile();
                let edge = |slice: usize| (from_us as f64 / 1e6 + factor * slice_s * slice as f64).min(DUE_S_MAX);
                let edges: Vec<f64> = (0..=slices).map(edge).collect();
                let due = profile.arrivals_until_each(&edges);
                Some(due.windows(2).map(|pair| (pair[1] - pair[0]) / slice_s).collect())
            }
        }
    }
}

/// How many times as fast as its due times a trace has to be replayed, so that on average `per_s`
/// sessions a second are due in the first `seconds` after the load time `from_us`. With a constant
/// rate that is `per_s` divided by it, however long the experiment is.
///
/// ```
/// # let spec = schemas::spec::Spec::parse(r#"
/// #     name = "rising"
/// #     sessions = 1000
/// #     [arrivals]
/// #     pieces = [{ for = "10s", from = 0, to = 100 }]
/// #     [data]
/// #     members = 100
/// #     [mix]
/// #     view_profile = 1
/// # "#, "rising.toml").unwrap();
/// use schemas::mean_rate::factor_for;
/// // It rises to 100 a second in 10 s: 500 sessions, or 50 a second.
/// let profile = spec.arrivals.unwrap().profile();
/// assert_eq!(factor_for(&profile, 0, 50.0, 10.0).unwrap(), 1.0);
/// // The same rise within one second has ten times the rate.
/// assert_eq!(factor_for(&profile, 0, 500.0, 1.0).unwrap(), 10.0);
/// ```
pub fn factor_for(profile: &Profile, from_us: u64, per_s: f64, seconds: f64) -> Result<f64, NeverDue> {
    let from_s = from_us as f64 / 1e6;
    let until_s = profile.time_of(profile.arrivals_until(from_s) + per_s * seconds)?;
    Ok((until_s - from_s) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Overload;

    fn spec(arrivals: &str) -> Spec {
        let text = format!(
            "name = \"w\"\nsessions = 100\n[arrivals]\n{arrivals}\n[data]\nmembers = 10\n[mix]\nlist_friends = 1\n"
        );
        Spec::parse(&text, "spec").unwrap()
    }

    /// Whatever the course of the rate, an experiment with the factor has the mean rate.
    #[test]
    fn the_factor_gives_the_wanted_mean() {
        let courses = [
            "rate = 20",
            "pieces = [{ for = \"10s\", from = 0, to = 100 }]",
            "points = [[0, 5], [3, 50], [4, 1]]\nrepeat = true",
        ];
        for course in courses {
            let spec = spec(course);
            let profile = spec.arrivals.as_ref().unwrap().profile();
            for (from_us, per_s, seconds) in [(0, 7.0, 1.5), (2_500_000, 700.0, 10.0), (9_000_000, 31.0, 60.0)] {
                let factor = factor_for(&profile, from_us, per_s, seconds).unwrap();
                let due = Due::Trace { from_us, warmup_from_us: 0, factor };
                let mean = OpenLoop { due, overload: Overload::Queue }.mean_rate(&spec, seconds).unwrap();
                assert!((mean / per_s - 1.0).abs() < 1e-9, "{course}: {mean} instead of {per_s}");
            }
        }
        let constant = spec(courses[0]).arrivals.unwrap().profile();
        assert_eq!(factor_for(&constant, 0, 50.0, 4.0).unwrap(), 2.5);
    }

    /// A load time of `factor` seconds passes in each second of the experiment.
    #[test]
    fn slices_have_the_rates_of_the_course_at_its_scale() {
        let rising = spec("pieces = [{ for = \"10s\", from = 0, to = 100 }]");
        let due = Due::Trace { from_us: 2_000_000, warmup_from_us: 0, factor: 2.0 };
        let open = OpenLoop { due, overload: Overload::Queue };
        // It rises from 20 to 40 a second of load time in the first second, and ends at 100.
        let rates = open.rates_in_slices(&rising, 1.0, 6).unwrap();
        assert_eq!(rates, [60.0, 100.0, 140.0, 180.0, 200.0, 200.0]);
        let plain = Spec { arrivals: None, ..rising };
        assert_eq!(open.rates_in_slices(&plain, 1.0, 6), None);
        let even = OpenLoop { due: Due::Even { per_s: 7.5 }, ..open };
        assert_eq!(even.rates_in_slices(&plain, 0.1, 2), Some(vec![7.5, 7.5]));
    }

    #[test]
    fn even_arrivals_need_no_trace() {
        let open = OpenLoop { due: Due::Even { per_s: 7.5 }, overload: Overload::Skip };
        let plain = Spec { arrivals: None, ..spec("rate = 1") };
        assert_eq!(open.mean_rate(&plain, 9.0), Some(7.5));
        let due = Due::Trace { from_us: 0, warmup_from_us: 0, factor: 1.0 };
        assert_eq!(OpenLoop { due, ..open }.mean_rate(&plain, 9.0), None);
    }

    #[test]
    fn a_course_that_ends_has_no_factor() {
        let ending = spec("pieces = [{ for = \"10s\", from = 100, to = 0 }]");
        let profile = ending.arrivals.unwrap().profile();
        assert!(factor_for(&profile, 9_000_000, 100.0, 10.0).is_err());
    }
}
