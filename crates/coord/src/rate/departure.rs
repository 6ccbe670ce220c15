//! The note on a final experiment whose throughput is far from the search's with the same load. It
//! says how far, and why, if the experiment's timeline shows that.

use schemas::verdict::{Figures, Slice};

use crate::run::trial::Trial;
use crate::search::{Mean, Spread};
use crate::terminal::thousands;

/// A final experiment gets a note from this difference to the search on, as a share of the
/// search's throughput. It is twice the deviation that is assumed between short experiments; one
/// in twenty differs by more by chance. The deviation that repeats have shown counts too.
const FAR: f64 = 0.10;

/// The note on a final experiment that is far from the search with its load, which is named; none if
/// it is near.
pub(super) fn note(trial: &Trial, load: &str, long: Mean, searched: Mean, spread: &Spread) -> Option<String> {
    let share = long.per_s / searched.per_s - 1.0;
    let is_clear = spread.is_below(searched, long) || spread.is_below(long, searched);
    if !(share.is_finite() && share.abs() > FAR && is_clear) {
        return None;
    }
    let (verdict, percent) = (&trial.verdict, (100.0 * share.abs()).round());
    let side = if share < 0.0 { "below" } else { "above" };
    Some(format!(
        "the final experiment {} is {percent}% {side} the search's {} at {load}{}",
        verdict.experiment,
        per_s(searched.per_s),
        course(&verdict.figures, share).unwrap_or_default()
    ))
}

/// How throughput changed during the experiment, if that explains the difference: the short
/// experiments saw only its beginning.
fn course(figures: &Figures, share: f64) -> Option<String> {
    let slice_s = figures.timeline.slice_s;
    // Operations that end after the planned time, with fewer and fewer threads, are not in the
    // throughput.
    let counted = (figures.counted_ns as f64 / 1e9 / slice_s + 1e-6) as usize;
    let slices = &figures.timeline.slices;
    let slices = &slices[..counted.min(slices.len())];
    let third = slices.len() / 3;
    if third == 0 {
        return None;
    }
    let throughput =
        |slices: &[Slice]| slices.iter().map(|slice| slice.ok).sum::<u64>() as f64 / (slices.len() as f64 * slice_s);
    let (first, last) = (throughput(&slices[..third]), throughput(&slices[slices.len() - third..]));
    let course = format!("from {} in its first third to {} in its last", per_s(first), per_s(last));
    match share < 0.0 {
        true if last < first * (1.0 - FAR) => Some(format!(": throughput fell while it ran, {course}")),
        false if last > first * (1.0 + FAR) => {
            Some(format!(": throughput rose while it ran, {course}; use --warmup to exclude the start"))
        }
        _ => None,
    }
}

fn per_s(value: f64) -> String {
    format!("{}/s", thousands(value.round() as u64))
}

#[cfg(test)]
mod tests {
    use schemas::run::Purpose;
    use schemas::verdict::{Ruling, Timeline};

    use super::*;
    use crate::run::testing::trial;
    use crate::search::{Limits, Results};

    const LIMITS: Limits = Limits { first_load: 1, max_load: 64, resolution: 0.05, noise: 0.05 };

    /// Checks the note on a final experiment of 3 s with slices of 0.1 s. It did `seconds`
    /// operations in each second, and one after its time; the search had the throughput
    /// `searched`.
    fn check(searched: f64, seconds: [u64; 3], expect: Option<&str>) {
        let mean = seconds.iter().sum::<u64>() as f64 / 3.0;
        let mut trial = trial(9, 8, mean, Ruling::Pass, Purpose::Final("SoAR".into()));
        let slice = |ok| Slice { ok, ..Slice::default() };
        let slices = seconds.iter().flat_map(|per_s| std::iter::repeat_n(slice(per_s / 10), 10)).chain([slice(1)]);
        trial.verdict.figures.timeline = Timeline { slice_s: 0.1, slices: slices.collect() };
        trial.verdict.figures.counted_ns = 3_000_000_000;
        let spread = Spread::of(&Results::new(), &LIMITS);
        let [long, short] = [mean, searched].map(|per_s| Mean { per_s, samples: 3 });
        assert_eq!(note(&trial, "T=8", long, short, &spread).as_deref(), expect);
    }

    #[test]
    fn a_final_far_from_the_search_is_said_with_what_its_timeline_shows() {
        check(10_000.0, [9_200, 9_200, 9_200], None);
        check(
            10_000.0,
            [9_800, 7_800, 5_800],
            Some(
                "the final experiment 9 is 22% below the search's 10,000/s at T=8: throughput fell while it ran, \
                 from 9,800/s in its first third to 5,800/s in its last",
            ),
        );
        check(
            5_000.0,
            [5_000, 8_000, 8_000],
            Some(
                "the final experiment 9 is 40% above the search's 5,000/s at T=8: throughput rose while it ran, \
                 from 5,000/s in its first third to 8,000/s in its last; use --warmup to exclude the start",
            ),
        );
        // The timeline explains neither of these, so the note gives no reason.
        let plain = "the final experiment 9 is 20% below the search's 10,000/s at T=8";
        check(10_000.0, [8_000, 8_000, 8_000], Some(plain));
        check(10_000.0, [7_000, 8_000, 9_000], Some(plain));
    }

    #[test]
    fn what_the_spread_explains_is_not_said() {
        let trial = trial(9, 8, 8_500.0, Ruling::Pass, Purpose::Final("SoAR".into()));
        let spread = Spread::of(&Results::new(), &LIMITS);
        let of = |samples| {
            let [long, short] = [8_500.0, 10_000.0].map(|per_s| Mean { per_s, samples });
            note(&trial, "T=8", long, short, &spread)
        };
        // 1.96 x 5% x sqrt(2) of 10,000 are 1,386; with a spread of 10% it is twice as much.
        assert!(of(1).is_some());
        let wide = Spread::of(&Results::new(), &Limits { noise: 0.1, ..LIMITS });
        let [long, short] = [8_500.0, 10_000.0].map(|per_s| Mean { per_s, samples: 1 });
        assert_eq!(note(&trial, "T=8", long, short, &wide), None);
    }
}
