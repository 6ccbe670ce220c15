//! How long the experiments of a search have to be: δ (bg-2013 section G).
//!
//! There are two checks. If several lengths are given, the search is done with each, from the
//! shortest on, and the two largest have to agree. With `--delta-check` the final experiments are
//! the check: if they differ too much from the search, it is repeated with twice the length.
//!
//! Each length has a search of its own, so results of different lengths never mix. Final
//! experiments always last Δ, and all searches share them.

use std::collections::BTreeMap;

use schemas::run::Purpose;
use schemas::verdict::{Rating, Ruling};

use super::rater::{Rater, Ratings, Searched};
use super::rating::{Deltas, Method, Wanted};
use crate::failure::Failure;
use crate::run::trial::Trial;
use crate::search::{Found, Limits};
use crate::terminal::thousands;

/// How often a search is repeated with twice the length.
const MOST_REPEATS: u32 = 3;

/// Runs an experiment with a load for this many seconds.
pub(super) type Run<'a> = dyn FnMut(u32, f64, &Purpose) -> Result<Trial, Failure> + 'a;

/// What is searched, and how.
#[derive(Debug, Clone)]
pub(super) struct SearchTask {
    /// Which ratings.
    pub(super) wanted: Wanted,
    /// How the load is searched.
    pub(super) method: Method,
    /// The limits of each search.
    pub(super) limits: Limits,
    /// The lengths to try, and the check.
    pub(super) deltas: Deltas,
    /// Δ: how long final experiments run, in seconds.
    pub(super) final_s: f64,
}

/// The ratings, with the length of the experiments that they rest on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RatedLength {
    /// The ratings.
    pub(super) ratings: Ratings,
    /// The δ that they rest on, in seconds.
    pub(super) search_s: f64,
}

/// The final experiments so far, by load.
type Finals = BTreeMap<u32, Trial>;

/// A search with one length.
struct Round {
    search_s: f64,
    searched: Searched,
    /// The ratings, if what this search found was confirmed.
    ratings: Option<Ratings>,
    /// The throughputs that this search saw, by load.
    throughputs: BTreeMap<u32, Vec<f64>>,
}

/// Searches with as many lengths as needed, and reports its progress with `say`.
pub(super) fn rate_with_lengths(
    task: &SearchTask,
    run: &mut Run<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<RatedLength, Failure> {
    let mut finals = Finals::new();
    let mut notes = Vec::new();
    let mut round = by_agreement(task, run, &mut finals, &mut notes, say)?;
    for repeats in 0.. {
        let Some(difference) = too_different(task, &round, &finals) else { break };
        if round.search_s >= task.final_s || repeats == MOST_REPEATS {
            notes.push(format!("{difference}; the search is not repeated with longer experiments"));
            break;
        }
        let longer_s = (round.search_s * 2.0).min(task.final_s);
        let line = format!("{difference}; the search is repeated with experiments of {longer_s} s");
        say(&line);
        notes.push(line);
        round = search(task, longer_s, run, &mut finals, &mut |_| true)?;
    }
    let mut ratings = round.ratings.unwrap_or_default();
    for rating in ratings.each_mut() {
        rating.notes.extend(notes.iter().cloned());
    }
    Ok(RatedLength { ratings, search_s: round.search_s })
}

/// Searches with each length, and confirms what the longest one finds. If the two longest do not
/// agree, the ratings say so.
fn by_agreement(
    task: &SearchTask,
    run: &mut Run<'_>,
    finals: &mut Finals,
    notes: &mut Vec<String>,
    say: &mut dyn FnMut(&str),
) -> Result<Round, Failure> {
    let lengths = &task.deltas.search_s;
    let mut shorter: Option<Round> = None;
    for (index, length_s) in lengths.iter().enumerate() {
        if lengths.len() > 1 {
            say(&format!("searching with experiments of {length_s} s"));
        }
        let is_last = index + 1 == lengths.len();
        let round = search(task, *length_s, run, finals, &mut |searched| {
            let Some(shorter) = &shorter else { return is_last };
            let (shorter_s, disagreements) = (shorter.search_s, differences(&task.limits, &shorter.searched, searched));
            if disagreements.is_empty() {
                say(&format!("experiments of {shorter_s} s and {length_s} s give the same ratings"));
                return is_last;
            }
            let among = disagreements.join(", ");
            let line = format!("experiments of {shorter_s} s and {length_s} s give different ratings: {among}");
            say(&line);
            if is_last {
                notes.push(line);
            }
            is_last
        })?;
        if round.ratings.is_some() {
            return Ok(round);
        }
        shorter = Some(round);
    }
    unreachable!("the last length, of which there is one at least, is confirmed whatever it shows")
}

/// Searches with one length. Confirms what is found if `is_enough` says so.
fn search(
    task: &SearchTask,
    search_s: f64,
    run: &mut Run<'_>,
    finals: &mut Finals,
    is_enough: &mut dyn FnMut(&Searched) -> bool,
) -> Result<Round, Failure> {
    let mut throughputs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut run = |load: u32, purpose: &Purpose| {
        let is_search = *purpose == Purpose::Search;
        let trial = run(load, if is_search { search_s } else { task.final_s }, purpose)?;
        if is_search && trial.verdict.ruling != Ruling::Void {
            throughputs.entry(load).or_default().push(trial.verdict.figures.throughput_per_s);
        }
        Ok(trial)
    };
    let mut rater = Rater::new(&mut run, task.limits, task.wanted.unit());
    rater.finals = std::mem::take(finals);
    let searched = rater.search(task.method, task.wanted)?;
    let ratings = if is_enough(&searched) { Some(rater.confirm(&searched)?) } else { None };
    *finals = std::mem::take(&mut rater.finals);
    Ok(Round { search_s, searched, ratings, throughputs })
}

/// What two searches do not agree on.
fn differences(limits: &Limits, shorter: &Searched, longer: &Searched) -> Vec<String> {
    let mut out = Vec::new();
    if let (Some(a), Some(b)) = (&shorter.soar, &longer.soar) {
        let highest = a.throughput_per_s.max(b.throughput_per_s);
        let is_same = (a.throughput_per_s - b.throughput_per_s).abs() <= highest * limits.noise;
        if !is_same && !is_same_load(limits, a, b) {
            out.push(format!("SoAR at T={} and T={}", a.load, b.load));
        }
    }
    if let (Some(a), Some(b)) = (&shorter.socialites, &longer.socialites)
        && !is_same_load(limits, a, b)
    {
        out.push(format!("Socialites T={} and T={}", a.load, b.load));
    }
    if let (Some(a), Some(b)) = (&shorter.rate, &longer.rate)
        && !is_same_load(limits, a, b)
    {
        out.push(format!("{} and {} sessions/s", a.load, b.load));
    }
    out
}

/// Whether two searches found the same load, within their resolution.
fn is_same_load(limits: &Limits, a: &Found, b: &Found) -> bool {
    let resolved = (a.load.max(b.load) as f64 * limits.resolution) as u32;
    a.load.abs_diff(b.load) <= resolved
}

/// The largest difference between a final experiment and the search with the same load, in words;
/// none if it is no larger than `--delta-check` allows.
fn too_different(task: &SearchTask, round: &Round, finals: &Finals) -> Option<String> {
    let allowed = task.deltas.check_percent?;
    let mut worst: Option<(f64, String)> = None;
    for (load, trial) in finals {
        let Some(seen) = round.throughputs.get(load) else { continue };
        if trial.verdict.ruling == Ruling::Void {
            continue;
        }
        let short = seen.iter().sum::<f64>() / seen.len() as f64;
        let long = trial.verdict.figures.throughput_per_s;
        let percent = (long - short).abs() / short.max(f64::MIN_POSITIVE) * 100.0;
        if percent > allowed && worst.as_ref().is_none_or(|(most, _)| percent > *most) {
            let words = format!(
                "final experiment {} ({}) had {} operations/s, search experiments of {} s had {} (more than \
                 {allowed}% apart)",
                trial.verdict.experiment,
                task.wanted.unit().named(*load),
                thousands(long.round() as u64),
                round.search_s,
                thousands(short.round() as u64),
            );
            worst = Some((percent, words));
        }
    }
    worst.map(|(_, words)| words)
}

impl Ratings {
    /// The ratings that exist.
    fn each_mut(&mut self) -> impl Iterator<Item = &mut Rating> {
        [&mut self.soar, &mut self.socialites, &mut self.rate].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::trial;
    use crate::search::MOST_SAMPLES;

    const LIMITS: Limits = Limits { first_load: 1, max_load: 64, resolution: 0.05, noise: 0.05 };

    /// The experiments that ran: T, seconds, whether it was a final one.
    type Ran = Vec<(u32, f64, bool)>;

    /// Rates a store given as (T, seconds) -> (throughput, kept the SLA), with finals of 8 s.
    fn check(
        lengths: &[f64],
        check_percent: Option<f64>,
        wanted: Wanted,
        store: impl Fn(u32, f64) -> (f64, bool),
    ) -> (RatedLength, Ran, Vec<String>) {
        let (mut ran, mut said) = (Ran::new(), Vec::new());
        let mut run = |threads: u32, seconds: f64, purpose: &Purpose| {
            ran.push((threads, seconds, *purpose != Purpose::Search));
            let (throughput, passed) = store(threads, seconds);
            let ruling = if passed { Ruling::Pass } else { Ruling::Fail };
            Ok(trial(ran.len() as u32, threads, throughput, ruling, purpose.clone()))
        };
        let deltas = Deltas { search_s: lengths.to_vec(), check_percent };
        let task = SearchTask { wanted, method: Method::Heuristic, limits: LIMITS, deltas, final_s: 8.0 };
        let rated = rate_with_lengths(&task, &mut run, &mut |line| said.push(line.to_string())).unwrap();
        (rated, ran, said)
    }

    fn lengths_of(ran: &Ran) -> Vec<f64> {
        let mut lengths: Vec<f64> = ran.iter().filter(|(_, _, is_final)| !is_final).map(|(_, s, _)| *s).collect();
        lengths.dedup();
        lengths
    }

    /// A store that keeps the SLA up to T = 40 in short experiments, and up to T = 20 in longer
    /// ones.
    fn tiring(threads: u32, seconds: f64) -> (f64, bool) {
        let last = if seconds < 2.0 { 40 } else { 20 };
        (threads as f64 * 100.0, threads <= last)
    }

    #[test]
    fn the_two_largest_lengths_have_to_agree() {
        let (rated, ran, said) = check(&[1.0, 2.0, 3.0], None, Wanted::Both, tiring);
        assert_eq!((rated.search_s, lengths_of(&ran)), (3.0, vec![1.0, 2.0, 3.0]));
        let ratings = rated.ratings;
        assert_eq!((ratings.soar.unwrap().threads, ratings.socialites.as_ref().unwrap().threads), (20, 20));
        assert!(ratings.socialites.unwrap().notes.is_empty());
        assert!(
            said.iter().any(|line| line.contains("of 1 s and 2 s give different ratings: SoAR at T=40")),
            "{said:?}"
        );
        assert!(said.iter().any(|line| line.contains("of 2 s and 3 s give the same ratings")), "{said:?}");
        // Only the last length is confirmed, and each length has a whole search of its own.
        assert!(ran.iter().all(|(_, seconds, is_final)| *is_final == (*seconds == 8.0)));
        for length in [1.0, 2.0, 3.0] {
            let threads: Vec<u32> = ran.iter().filter(|(_, s, _)| *s == length).map(|(t, _, _)| *t).collect();
            let often = |t: &u32| threads.iter().filter(|other| *other == t).count();
            assert_eq!(threads[0], 1, "{length} s: {ran:?}");
            assert!(threads.iter().all(|t| often(t) <= MOST_SAMPLES), "{length} s: {ran:?}");
        }
    }

    #[test]
    fn lengths_that_never_agree_are_said_in_a_note() {
        let (rated, _, _) = check(&[1.0, 2.0], None, Wanted::Socialites, tiring);
        assert_eq!((rated.search_s, rated.ratings.soar), (2.0, None));
        let notes = rated.ratings.socialites.unwrap().notes;
        assert_eq!(notes, ["experiments of 1 s and 2 s give different ratings: Socialites T=40 and T=20"]);
    }

    #[test]
    fn one_length_without_a_check_is_one_search() {
        let (rated, ran, said) = check(&[1.0], None, Wanted::Soar, tiring);
        assert_eq!((rated.search_s, lengths_of(&ran), said), (1.0, vec![1.0], Vec::<String>::new()));
        assert_eq!(rated.ratings.socialites, None);
    }

    /// A store that is slower the longer it runs, up to 4 s.
    fn slowing(threads: u32, seconds: f64) -> (f64, bool) {
        (threads as f64 * 100.0 / seconds.min(4.0), threads <= 20)
    }

    #[test]
    fn a_search_too_far_from_its_final_is_repeated_with_twice_the_length() {
        let (rated, ran, said) = check(&[1.0], Some(10.0), Wanted::Both, slowing);
        assert_eq!((rated.search_s, lengths_of(&ran)), (4.0, vec![1.0, 2.0, 4.0]));
        let expect = "(T=20) had 500 operations/s, search experiments of 1 s had 2,000 (more than 10% apart); ";
        assert!(said[0].contains(expect), "{said:?}");
        assert!(said[0].ends_with("the search is repeated with experiments of 2 s"), "{said:?}");
        let socialites = rated.ratings.socialites.unwrap();
        assert_eq!((socialites.threads, socialites.notes), (20, said));
        // The final experiment of T=20 serves all three searches.
        assert_eq!(ran.iter().filter(|(_, _, is_final)| *is_final).count(), 1);
    }

    #[test]
    fn repeats_are_bounded_by_their_number_and_by_the_final_time() {
        let never = |threads: u32, seconds: f64| (threads as f64 / seconds, threads <= 2);
        let (rated, ran, _) = check(&[0.1], Some(10.0), Wanted::Both, never);
        assert_eq!((rated.search_s, lengths_of(&ran)), (0.8, vec![0.1, 0.2, 0.4, 0.8]));
        let notes = rated.ratings.soar.unwrap().notes;
        assert_eq!(notes.len(), 5);
        assert!(notes[0].contains("is 90% below the search's 3/s at T=2"), "{notes:?}");
        assert!(notes[4].ends_with("the search is not repeated with longer experiments"), "{notes:?}");
        let (rated, _, _) = check(&[5.0], Some(10.0), Wanted::Both, never);
        assert_eq!(rated.search_s, 8.0);
    }
}
