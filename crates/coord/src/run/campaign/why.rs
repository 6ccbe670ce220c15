//! Why a rating runs an experiment with this load, in a few words.

use schemas::run::Purpose;

use crate::run::trial::{Demand, Trial};

/// The phase of the rating and the reason; empty outside of a rating. `trials` are the experiments
/// so far.
pub fn why(trials: &[Trial], demand: Demand, purpose: &Purpose) -> String {
    match purpose {
        Purpose::Single => String::new(),
        Purpose::Final(rating) => format!("final, confirms {rating}"),
        Purpose::Search => format!("search, {}", position(trials, demand)),
    }
}

/// Where the load lies among those that the search has tried.
fn position(trials: &[Trial], demand: Demand) -> String {
    let (unit, load) = (demand.unit(), demand.load(demand.unit()));
    let tried = || trials.iter().filter(|trial| trial.purpose == Purpose::Search);
    let loads = || tried().map(|trial| trial.load(unit));
    let named = |load: u32| {
        let last = tried().rev().find(|trial| trial.load(unit) == load);
        let ruling = last.map_or(String::new(), |trial| format!(" ({})", trial.verdict.ruling.name()));
        format!("{}{ruling}", unit.named(load))
    };
    if loads().any(|tried| tried == load) {
        return format!("repeats a {} whose result was not clear", unit.brief());
    }
    let (lower, higher) = (loads().filter(|lower| *lower < load).max(), loads().filter(|higher| *higher > load).min());
    match (lower, higher) {
        (None, None) => format!("the first {}", unit.brief()),
        (Some(lower), None) => format!("above {}", named(lower)),
        (None, Some(higher)) => format!("below {}", named(higher)),
        (Some(lower), Some(higher)) => format!("between {} and {}", named(lower), named(higher)),
    }
}

#[cfg(test)]
mod tests {
    use schemas::verdict::Ruling;

    use super::*;
    use crate::run::testing::trial;

    #[test]
    fn the_reason_is_the_place_among_what_was_tried() {
        let search = |number, threads, ruling| trial(number, threads, 1.0, ruling, Purpose::Search);
        let mut trials = vec![search(1, 4, Ruling::Pass)];
        assert_eq!(why(&[], Demand::threads(1), &Purpose::Search), "search, the first T");
        assert_eq!(why(&trials, Demand::threads(8), &Purpose::Search), "search, above T=4 (pass)");
        trials.push(search(2, 16, Ruling::Fail));
        assert_eq!(why(&trials, Demand::threads(8), &Purpose::Search), "search, between T=4 (pass) and T=16 (fail)");
        assert_eq!(why(&trials, Demand::threads(2), &Purpose::Search), "search, below T=4 (pass)");
        assert_eq!(
            why(&trials, Demand::threads(16), &Purpose::Search),
            "search, repeats a T whose result was not clear"
        );
        assert_eq!(why(&trials, Demand::threads(4), &Purpose::Final("SoAR".into())), "final, confirms SoAR");
        assert_eq!(why(&trials, Demand::threads(4), &Purpose::Single), "");
    }
    #[test]
    fn rates_are_named_in_their_unit() {
        let of =
            |rate_per_s, ruling| Trial { rate_per_s: Some(rate_per_s), ..trial(1, 64, 1.0, ruling, Purpose::Search) };
        let trials = [of(100, Ruling::Pass), of(400, Ruling::Fail)];
        let demand = |rate_per_s| Demand { threads: 64, rate_per_s: Some(rate_per_s) };
        let text = |trials: &[Trial], rate_per_s| why(trials, demand(rate_per_s), &Purpose::Search);
        assert_eq!(text(&[], 100), "search, the first rate");
        assert_eq!(text(&trials, 200), "search, between 100 sessions/s (pass) and 400 sessions/s (fail)");
        assert_eq!(text(&trials, 400), "search, repeats a rate whose result was not clear");
    }
}
