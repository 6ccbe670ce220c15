//! Why a rating runs an experiment with this number of threads, in a few words.

use schemas::run::Purpose;

use crate::run::trial::Trial;

/// The phase of the rating and the reason; empty outside of a rating. `trials` are the experiments
/// so far.
pub fn why(trials: &[Trial], threads: u32, purpose: &Purpose) -> String {
    match purpose {
        Purpose::Single => String::new(),
        Purpose::Final(rating) => format!("final, confirms {rating}"),
        Purpose::Search => format!("search, {}", position(trials, threads)),
    }
}

/// Where T lies among those that the search has tried.
fn position(trials: &[Trial], threads: u32) -> String {
    let tried = || trials.iter().filter(|trial| trial.purpose == Purpose::Search).map(|trial| &trial.verdict);
    let named = |threads: u32| {
        let last = tried().rev().find(|verdict| verdict.threads == threads);
        format!("T={threads}{}", last.map_or(String::new(), |verdict| format!(" ({})", verdict.ruling.name())))
    };
    let lower = tried().map(|verdict| verdict.threads).filter(|lower| *lower < threads).max();
    let higher = tried().map(|verdict| verdict.threads).filter(|higher| *higher > threads).min();
    if tried().any(|verdict| verdict.threads == threads) {
        return "repeats a T whose result was not clear".to_string();
    }
    match (lower, higher) {
        (None, None) => "the first T".to_string(),
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
        assert_eq!(why(&[], 1, &Purpose::Search), "search, the first T");
        assert_eq!(why(&trials, 8, &Purpose::Search), "search, above T=4 (pass)");
        trials.push(search(2, 16, Ruling::Fail));
        assert_eq!(why(&trials, 8, &Purpose::Search), "search, between T=4 (pass) and T=16 (fail)");
        assert_eq!(why(&trials, 2, &Purpose::Search), "search, below T=4 (pass)");
        assert_eq!(why(&trials, 16, &Purpose::Search), "search, repeats a T whose result was not clear");
        assert_eq!(why(&trials, 4, &Purpose::Final("SoAR".into())), "final, confirms SoAR");
        assert_eq!(why(&trials, 4, &Purpose::Single), "");
    }
}
