//! The SoAR search: the T with the highest throughput among those that keep the SLA.
//!
//! While the throughput grows, T grows with it. A step is fourfold if throughput grew in line
//! with T over the last step and the limit leaves room for it, else twofold. Then the search
//! closes in on the peak between the neighbours of the best T, with what a concave curve can
//! still do there (`bracket.rs`).
//!
//! So the search never asks for a T far beyond what passed. With P the largest T that passed:
//!
//! - If the throughput of P was in line, it asks for no T above four times P.
//! - Else it asks for no T above twice P.
//! - If no T has passed, it asks for none above the first T.
//!
//! Noise does not mislead the search. If two neighbours differ by less than their spread, it
//! repeats them, and it keeps growing if they still do. It does not take the best single sample
//! for the best T.

use super::bracket::Bracket;
use super::{Found, Missing, Next, Point, Results, View, advance};

/// Throughput grew in line with T if each thread kept this share of what it did one step before.
/// On an inverse parabola, a fourfold step from there ends at 1.6 times the T of the peak at
/// most.
const IN_LINE: f64 = 0.9;

/// Only a T above this may be followed by a bold step, a fourfold one. A bold step saves an
/// experiment if it succeeds and costs one if it fails. From here on, doubling and hill climbing
/// spends one experiment below its best T that this search can spare. So this search never needs
/// more.
const BOLD_ABOVE: u32 = 2;

/// The next T to try, or the one with the highest throughput.
pub fn next(results: &Results, limits: &super::Limits) -> Next {
    advance(results, limits, search)
}

fn search(mut view: View) -> Result<Found, Missing> {
    view.at(view.limits.first_load)?;
    let Some(best) = best(&view)? else { return descend(view) };
    grow(&view, &best)?;
    reach_for_the_border(&view, &best)?;
    close_in(view, &best)
}

/// The lowest T of the highest throughput that keeps the SLA. A T without any throughput does not
/// count.
fn best(view: &View) -> Result<Option<Point>, Missing> {
    let mut best: Option<Point> = None;
    for point in view.results.points() {
        if point.is_tied {
            return Err(Missing(point.load));
        }
        let highest = best.map_or(0.0, |best| best.throughput_per_s);
        if point.passed() && point.throughput_per_s > highest {
            best = Some(point);
        }
    }
    Ok(best)
}

/// Asks for half of the lowest T, down to a single thread, as long as none passed.
fn descend(mut view: View) -> Result<Found, Missing> {
    let lowest = view.results.points().next().map_or(view.limits.first_load, |point| point.load);
    if lowest > 1 {
        return Err(Missing(lowest / 2));
    }
    view.confirm_fail(lowest)?;
    Ok(Found { rests_on: vec![lowest], void_loads: view.void_loads, ..Found::default() })
}

/// Asks for higher T's until one fails or is clearly below the best.
fn grow(view: &View, best: &Point) -> Result<(), Missing> {
    let mut top = *best;
    for point in view.results.points().filter(|point| point.load > best.load) {
        if !point.passed() || view.spread.is_clear(&point, best) {
            return Ok(());
        }
        top = point;
    }
    if top.throughput_per_s < best.throughput_per_s {
        view.repeat([&top, best])?;
    }
    if top.load >= view.limits.max_load {
        return Ok(());
    }
    // A bold step that the limit cuts short saves little. If the SLA ends just below the limit,
    // doubling comes closer to that end with the same experiments.
    let has_room = top.load.saturating_mul(4) <= view.limits.max_load;
    let factor = if has_room && is_in_line(view, &top) { 4 } else { 2 };
    Err(Missing(view.limits.times(top.load, factor)))
}

/// Whether throughput grew in line with T up to here. The step is measured from half of T or
/// less: nearer results, which another search asked for, say little about a slope.
fn is_in_line(view: &View, top: &Point) -> bool {
    let each = |point: &Point| point.throughput_per_s / point.load as f64;
    let before = view.results.points().rev().find(|point| point.passed() && point.load <= top.load / 2);
    top.load > BOLD_ABOVE && before.is_some_and(|before| each(top) >= IN_LINE * each(&before))
}

/// Asks for a T between the last that passed and the first that failed above the best. It does so
/// while the last one may be as good as the best: then it is chance which of the two is best, and
/// the curve may rise up to the fail.
fn reach_for_the_border(view: &View, best: &Point) -> Result<(), Missing> {
    let above = || view.results.points().filter(|point| point.load > best.load);
    let Some(fail) = above().find(|point| !point.passed()) else { return Ok(()) };
    let Some(last) = above().take_while(Point::passed).last() else { return Ok(()) };
    let gap = fail.load - last.load;
    if gap <= view.limits.gap(last.load) || view.spread.is_clear(&last, best) {
        return Ok(());
    }
    view.repeat([&last, best])?;
    if view.spread.share == 0.0 {
        return Ok(());
    }
    Err(Missing((last.load + gap / 2).min(view.limits.times(last.load, 2))))
}

/// Closes in on the peak, which lies between the neighbours of the best known T. Results that
/// another search asked for count as neighbours too.
fn close_in(mut view: View, best: &Point) -> Result<Found, Missing> {
    let bracket = Bracket::around(view.results, best);
    for neighbour in bracket.neighbours().filter(Point::passed) {
        let differs = neighbour.throughput_per_s != best.throughput_per_s;
        if differs && !view.spread.is_clear(&neighbour, best) {
            view.repeat([best, &neighbour])?;
        }
    }
    if let Some(load) = bracket.next(view.limits) {
        return Err(Missing(load));
    }
    if let Some(fail) = bracket.above().filter(|point| !point.passed()) {
        view.confirm_fail(fail.load)?;
    }
    // The highest of many samples is high by chance; a second sample corrects it.
    if view.spread.share > 0.0 && best.samples < 2 {
        return Err(Missing(best.load));
    }
    let mut rests_on = vec![best.load];
    for neighbour in bracket.neighbours() {
        view.at(neighbour.load)?;
        rests_on.push(neighbour.load);
    }
    rests_on.sort_unstable();
    Ok(Found {
        load: best.load,
        throughput_per_s: best.throughput_per_s,
        at_least: view.rises_to_the_limit(best),
        interval: view.spread.interval(best.throughput_per_s, best.agreeing),
        rests_on,
        void_loads: view.void_loads,
    })
}

#[cfg(test)]
mod tests;
