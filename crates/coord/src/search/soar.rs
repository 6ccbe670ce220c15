//! The SoAR search: the T with the highest throughput among those that keep the SLA.
//!
//! While the throughput grows T grows with it: fourfold while it grew in line
//! with T over the last step and the limit leaves room for it, else twofold. Then the search closes in on the
//! peak between its neighbours, with what a concave curve can still do there
//! (`bracket.rs`). So no T is ever asked for that lies above four times
//! the largest T that passed and whose throughput was in line, nor above twice
//! the largest T that passed when it was not, nor above the first T when none
//! has passed.
//!
//! Noise does not lead it: where two neighbours differ by less than their
//! spread it repeats them, goes on growing when they still do, and does not
//! take the single best sample for the best T.

use super::bracket::Bracket;
use super::{Found, Missing, Next, Point, Results, View, advance};

/// Throughput grew in line with T when each thread kept this share of what it
/// did one step before. On an inverse parabola a fourfold step from there ends
/// at 1.6 times the T of the peak at most.
const IN_LINE: f64 = 0.9;

/// A bold step saves an experiment when it goes well and costs one when it does
/// not. From here on doubling and hill climbing spends one below its best T
/// that this search can spare, so that it never needs more than that.
const BOLD_ABOVE: u32 = 2;

/// The next T to try, or the one with the highest throughput.
pub fn next(results: &Results, limits: &super::Limits) -> Next {
    advance(results, limits, search)
}

fn search(mut view: View) -> Result<Found, Missing> {
    view.at(view.limits.first_threads)?;
    let Some(best) = best(&view)? else { return descend(view) };
    grow(&view, &best)?;
    reach_for_the_border(&view, &best)?;
    close_in(view, &best)
}

/// The lowest T of the highest throughput that keeps the SLA. One without any
/// throughput is no better than none.
fn best(view: &View) -> Result<Option<Point>, Missing> {
    let mut best: Option<Point> = None;
    for point in view.results.points() {
        if point.is_tied {
            return Err(Missing(point.threads));
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
    let lowest = view.results.points().next().map_or(view.limits.first_threads, |point| point.threads);
    if lowest > 1 {
        return Err(Missing(lowest / 2));
    }
    view.confirm_fail(lowest)?;
    Ok(Found { rests_on: vec![lowest], void_threads: view.void_threads, ..Found::default() })
}

/// Asks for higher T's until one fails or is clearly below the best.
fn grow(view: &View, best: &Point) -> Result<(), Missing> {
    let mut top = *best;
    for point in view.results.points().filter(|point| point.threads > best.threads) {
        if !point.passed() || view.spread.is_clear(&point, best) {
            return Ok(());
        }
        top = point;
    }
    if top.throughput_per_s < best.throughput_per_s {
        view.repeat([&top, best])?;
    }
    if top.threads >= view.limits.max_threads {
        return Ok(());
    }
    // A bold step that the limit cuts short has little to save: where the SLA ends just
    // below the limit, doubling comes closer to that end with the same experiments.
    let has_room = top.threads.saturating_mul(4) <= view.limits.max_threads;
    let factor = if has_room && is_in_line(view, &top) { 4 } else { 2 };
    Err(Missing(view.limits.times(top.threads, factor)))
}

/// Whether throughput grew in line with T up to here. The step is measured from
/// half of T or less: nearer results of another search say little about a slope.
fn is_in_line(view: &View, top: &Point) -> bool {
    let each = |point: &Point| point.throughput_per_s / point.threads as f64;
    let before = view.results.points().rev().find(|point| point.passed() && point.threads <= top.threads / 2);
    top.threads > BOLD_ABOVE && before.is_some_and(|before| each(top) >= IN_LINE * each(&before))
}

/// Asks for a T between the last that passed and the first that failed above
/// the best, as long as that last one may be as good as the best: then it is
/// chance which of the two is best, and the curve may rise up to the fail.
fn reach_for_the_border(view: &View, best: &Point) -> Result<(), Missing> {
    let above = || view.results.points().filter(|point| point.threads > best.threads);
    let Some(fail) = above().find(|point| !point.passed()) else { return Ok(()) };
    let Some(last) = above().take_while(Point::passed).last() else { return Ok(()) };
    let gap = fail.threads - last.threads;
    if gap <= view.limits.gap(last.threads) || view.spread.is_clear(&last, best) {
        return Ok(());
    }
    view.repeat([&last, best])?;
    if view.spread.share == 0.0 {
        return Ok(());
    }
    Err(Missing((last.threads + gap / 2).min(view.limits.times(last.threads, 2))))
}

/// Closes in on the peak. It lies between the neighbours of the best T known,
/// whoever asked for those: results that another search asked for count too.
fn close_in(mut view: View, best: &Point) -> Result<Found, Missing> {
    let bracket = Bracket::around(view.results, best);
    for neighbour in bracket.neighbours().filter(Point::passed) {
        let differs = neighbour.throughput_per_s != best.throughput_per_s;
        if differs && !view.spread.is_clear(&neighbour, best) {
            view.repeat([best, &neighbour])?;
        }
    }
    if let Some(threads) = bracket.next(view.limits) {
        return Err(Missing(threads));
    }
    if let Some(fail) = bracket.above().filter(|point| !point.passed()) {
        view.confirm_fail(fail.threads)?;
    }
    // The highest of many samples is high by chance: a second one brings it down.
    if view.spread.share > 0.0 && best.samples < 2 {
        return Err(Missing(best.threads));
    }
    let mut rests_on = vec![best.threads];
    for neighbour in bracket.neighbours() {
        view.at(neighbour.threads)?;
        rests_on.push(neighbour.threads);
    }
    rests_on.sort_unstable();
    Ok(Found {
        threads: best.threads,
        throughput_per_s: best.throughput_per_s,
        at_least: view.rises_to_the_limit(best),
        interval: view.spread.interval(best.throughput_per_s, best.agreeing),
        rests_on,
        void_threads: view.void_threads,
    })
}

#[cfg(test)]
mod tests;
