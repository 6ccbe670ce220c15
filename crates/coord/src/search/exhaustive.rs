//! The exhaustive search, to check the other searches: every T from 1 until the first that fails
//! (bg-2013 section G).

use super::{Basis, Found, Interval, Limits, Missing, Next, Results, View, advance};

/// The SoAR by trying every T.
pub fn soar(results: &Results, limits: &Limits) -> Next {
    advance(results, limits, |mut view| {
        let last = last_pass(&mut view)?;
        let mut best = None;
        let mut highest = 0.0;
        for load in 1..=last {
            let point = view.at(load)?;
            if point.throughput_per_s > highest {
                highest = point.throughput_per_s;
                best = Some(point);
            }
        }
        let interval = best.map_or(Interval::default(), |point| view.spread.interval(highest, point.agreeing));
        let load = best.map_or(0, |point| point.load);
        let at_least = best.is_some_and(|point| view.rises_to_the_limit(&point));
        Ok(Found { at_least, ..found(view, load, last, interval) })
    })
}

/// The Socialites rating by trying every T.
pub fn socialites(results: &Results, limits: &Limits) -> Next {
    advance(results, limits, |mut view| {
        let last = last_pass(&mut view)?;
        let interval = Interval { low: last as f64, high: last as f64, basis: Basis::Border };
        Ok(found(view, last, last, interval))
    })
}

fn found(view: View, load: u32, last: u32, interval: Interval) -> Found {
    let limits = view.limits;
    let throughput_per_s = view.results.point(load).map_or(0.0, |point| point.throughput_per_s);
    let rests_on = (1..=last.saturating_add(1).min(limits.max_load)).collect();
    let at_least = load >= limits.max_load;
    Found { load, throughput_per_s, at_least, interval, rests_on, void_loads: view.void_loads }
}

/// The last T before the first that fails; 0 when the first one does.
fn last_pass(view: &mut View) -> Result<u32, Missing> {
    for load in 1..=view.limits.max_load {
        if !view.at(load)?.passed() {
            return Ok(load - 1);
        }
    }
    Ok(view.limits.max_load)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Curve, LIMITS, drive};
    use super::*;

    #[test]
    fn tries_every_t_until_the_first_fail() {
        let curve = Curve::new(|t| t * (60.0 - t)).failing_from(41);
        let (found, results) = drive(soar, &curve, &LIMITS);
        assert_eq!((found.load, results.visited()), (30, 41));
        let (found, results) = drive(socialites, &curve, &LIMITS);
        assert_eq!((found.load, found.at_least, results.visited()), (40, false, 41));
        let (found, results) = drive(socialites, &Curve::passing_until(999), &LIMITS);
        assert_eq!((found.load, found.at_least, results.visited()), (256, true, 256));
    }
}
