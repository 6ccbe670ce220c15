//! The highest load that keeps the SLA, whatever the unit of the load.
//!
//! The load is doubled until an experiment fails. The highest load that passes is then found by
//! bisection between the last pass and the first fail. Results that another search asked for take
//! the place of its own. The answer is exact if every load below one that passes passes too.
//!
//! An accident is not taken for the border. The search repeats a fail below a load that passes, and
//! the fail that it ends at, once. If the second sample disagrees, a third decides.

use super::{Basis, Found, Interval, Missing, View};

/// The highest load that passes, or a load that is needed to know it. `below` gives the highest
/// value that a failed load leaves possible.
pub(super) fn search(mut view: View, below: fn(u32) -> f64) -> Result<Found, Missing> {
    view.at(view.limits.first_load)?;
    if let Some(tied) = view.results.points().find(|point| point.is_tied) {
        return Err(Missing(tied.load));
    }
    let Some(fail) = view.results.points().find(|point| !point.passed()) else {
        // The first load has passed, so there is a highest one.
        let pass = view.results.points().next_back().map_or(0, |point| point.load);
        if pass < view.limits.max_load {
            return Err(Missing(view.limits.times(pass, 2)));
        }
        return Ok(found(view, pass, None, below));
    };
    let fail = fail.load;
    if view.results.points().any(|point| point.load > fail && point.passed()) {
        view.confirm_fail(fail)?;
    }
    // A load of zero always passes.
    let pass = view.results.points().rev().find(|point| point.load < fail).map_or(0, |point| point.load);
    if fail - pass > view.limits.gap(pass) {
        let middle = pass + (fail - pass) / 2;
        // The fail may come from a bold step of another search.
        return Err(Missing(if pass > 0 { middle.min(view.limits.times(pass, 2)) } else { middle }));
    }
    view.confirm_fail(fail)?;
    Ok(found(view, pass, Some(fail), below))
}

fn found(view: View, pass: u32, fail: Option<u32>, below: fn(u32) -> f64) -> Found {
    let interval = Interval { low: pass as f64, high: fail.map_or(pass as f64, below), basis: Basis::Border };
    let throughput_per_s = view.results.point(pass).map_or(0.0, |point| point.throughput_per_s);
    let rests_on = [Some(pass).filter(|pass| *pass > 0), fail].into_iter().flatten().collect();
    let at_least = pass >= view.limits.max_load;
    Found { load: pass, throughput_per_s, at_least, interval, rests_on, void_loads: view.void_loads }
}
