//! Doubling and hill climbing, the SoAR search of bg-2013 section G. The search of this project
//! is compared with it.
//!
//! From the paper:
//!
//! - T is doubled, beginning with the first one, and the highest throughput is kept.
//! - Doubling stops at the first T that has a lower throughput or misses the SLA.
//! - The T's one below and one above the best show the slope on either side. If both fall, the
//!   best is the peak. Else a hill is climbed in the interval that holds the peak.
//! - No T runs twice.
//!
//! Decided here, because the paper leaves it open:
//!
//! - Each step of the climb tries the middle of the wider gap beside the best T. That needs one
//!   experiment, while a slope needs two.
//! - The climb ends when both gaps are within the resolution, as in the other search.
//! - A T without any throughput stops the doubling like a fail.
//! - If the first T fails, T is halved until one passes. The paper begins with T = 1.
//!
//! Each of these decisions saves experiments, and none costs any.

use super::{Basis, Found, Interval, Limits, Missing, Next, Point, Results, View, advance};

/// The next T, or the one with the highest throughput. It takes results as they are: the paper
/// does not consider noise.
pub fn next(results: &Results, limits: &Limits) -> Next {
    advance(results, limits, search)
}

fn search(mut view: View) -> Result<Found, Missing> {
    let Some(star) = doubled(&mut view)? else { return Ok(Found::default()) };
    if star.load > 1 {
        view.at(star.load - 1)?;
    }
    if star.load < view.limits.max_load {
        view.at(star.load + 1)?;
    }
    climb(view, &star)
}

/// Whether a T can be the best one.
fn counts(point: &Point) -> bool {
    point.passed() && point.throughput_per_s > 0.0
}

/// The best of the doubled T's, or the first that passes when halving.
fn doubled(view: &mut View) -> Result<Option<Point>, Missing> {
    let mut star: Option<Point> = None;
    let mut load = view.limits.first_load;
    loop {
        let point = view.at(load)?;
        let highest = star.map_or(0.0, |star| star.throughput_per_s);
        if !counts(&point) || point.throughput_per_s < highest {
            break;
        }
        if point.throughput_per_s > highest {
            star = Some(point);
        }
        if load >= view.limits.max_load {
            break;
        }
        load = view.limits.times(load, 2);
    }
    let mut load = view.limits.first_load;
    while star.is_none() && load > 1 {
        load /= 2;
        star = Some(view.at(load)?).filter(counts);
    }
    Ok(star)
}

fn climb(view: View, star: &Point) -> Result<Found, Missing> {
    let limits = view.limits;
    let mut best = *star;
    for point in view.results.points().filter(counts) {
        if point.throughput_per_s > best.throughput_per_s {
            best = point;
        }
    }
    if best.load != star.load {
        let low = view.results.points().rev().find(|point| point.load < best.load);
        let high = view.results.points().find(|point| point.load > best.load);
        let below = best.load - low.map_or(0, |point| point.load);
        let above = high.map_or(limits.max_load.saturating_add(1), |point| point.load) - best.load;
        if below.max(above) > limits.gap(best.load) {
            let half = |gap: u32| (gap / 2).max(1);
            return Err(Missing(if above >= below { best.load + half(above) } else { best.load - half(below) }));
        }
    }
    let value = best.throughput_per_s;
    Ok(Found {
        load: best.load,
        throughput_per_s: value,
        at_least: best.load >= limits.max_load,
        interval: Interval { low: value, high: value, basis: Basis::Nothing },
        rests_on: vec![best.load],
        void_loads: view.void_loads,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Curve, drive};
    use super::*;

    /// Checks the T's in the order in which they are tried.
    fn check(curve: Curve, limits: &Limits, expect: &[u32]) {
        let mut results = Results::new();
        let mut tried = Vec::new();
        while let Next::Probe { load } = next(&results, limits) {
            tried.push(load);
            results.add(load, curve.probe(load, 0));
        }
        assert_eq!(tried, expect);
    }

    const LIMITS: Limits = Limits { first_load: 1, max_load: 256, resolution: 0.0, noise: 0.05 };

    #[test]
    fn doubles_tests_the_slopes_and_climbs() {
        // Both slopes fall: 8 is the peak.
        check(Curve::new(|t| t * (16.0 - t).max(0.0)), &LIMITS, &[1, 2, 4, 8, 16, 7, 9]);
        // The peak is at 6, below the best doubled T.
        check(Curve::new(|t| t * (12.4 - t).max(0.0)), &LIMITS, &[1, 2, 4, 8, 16, 7, 9, 6, 5]);
        // A fail ends the doubling and bounds the climb.
        check(Curve::new(f64::sqrt).failing_from(6), &LIMITS, &[1, 2, 4, 8, 3, 5, 6]);
        // A first T that fails is halved.
        check(Curve::new(f64::sqrt).failing_from(3), &Limits { first_load: 9, ..LIMITS }, &[9, 4, 2, 1, 3]);
        check(Curve::new(|t| t).failing_from(1), &LIMITS, &[1]);
        // A flat curve is doubled to the limit.
        check(Curve::new(|_| 5.0), &LIMITS, &[1, 2, 4, 8, 16, 32, 64, 128, 256]);
    }

    #[test]
    fn needs_about_what_figure_13_shows() {
        // Figure 13 has 40 unique experiments at 100 million, and about 15 at 500.
        for (peak, at_least, at_most) in [(500.0, 14, 20), (100e6, 34, 44)] {
            let curve = Curve::new(move |t| (t - t * t / (4.0 * peak)).max(0.0));
            let limits = Limits { max_load: 1_000_000_000, resolution: 0.05, ..LIMITS };
            let (found, results) = drive(next, &curve, &limits);
            assert!((at_least..=at_most).contains(&results.unique()), "{} experiments", results.unique());
            assert!(found.throughput_per_s >= 0.99 * peak);
        }
    }
}
