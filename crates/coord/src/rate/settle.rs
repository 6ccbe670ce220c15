//! How long the experiments of a search have to be: δ (bg-2013 section G).
//!
//! Either a set of lengths is given: the search is done with each from the
//! shortest on, and the two largest have to agree. Or the final experiments are the
//! check: when they differ too much from the search, it is repeated with twice
//! the length. Each length has a search of its own, so that results of
//! different lengths never meet; final experiments last Δ in all of them and
//! are kept.

use std::collections::BTreeMap;

use schemas::run::Purpose;
use schemas::verdict::{Rating, Ruling};

use super::rater::{Rater, Ratings, Searched};
use crate::args::Wanted;
use crate::campaign::Trial;
use crate::failure::Failure;
use crate::render::thousands;
use crate::resolve::{Deltas, Method};
use crate::search::{Found, Limits};

/// How often a search is repeated with twice the length.
const MOST_REPEATS: u32 = 3;

/// Runs an experiment with T threads for so many seconds.
pub(super) type Run<'a> = dyn FnMut(u32, f64, &Purpose) -> Result<Trial, Failure> + 'a;

/// What is searched, and how.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Which ratings.
    pub(super) wanted: Wanted,
    /// How T is searched.
    pub(super) method: Method,
    /// The limits of each search.
    pub(super) limits: Limits,
    /// The lengths to try, and the check.
    pub(super) deltas: Deltas,
    /// Δ: how long final experiments run, in seconds.
    pub(super) final_s: f64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settled {
    /// The ratings.
    pub(super) ratings: Ratings,
    /// The δ that they rest on, in seconds.
    pub(super) search_s: f64,
}

/// The final experiments so far, by T.
type Finals = BTreeMap<u32, Trial>;

/// A search with one length.
struct Round {
    search_s: f64,
    searched: Searched,
    /// The ratings, once the length is long enough to confirm what was found.
    ratings: Option<Ratings>,
    /// The throughputs that this search saw, by T.
    throughputs: BTreeMap<u32, Vec<f64>>,
}

/// Searches with as many lengths as it takes; `say` tells people what goes on.
pub(super) fn settle(question: &Question, run: &mut Run<'_>, say: &mut dyn FnMut(&str)) -> Result<Settled, Failure> {
    let mut finals = Finals::new();
    let mut notes = Vec::new();
    let mut round = by_agreement(question, run, &mut finals, &mut notes, say)?;
    for repeats in 0.. {
        let Some(difference) = too_different(question, &round, &finals) else { break };
        if round.search_s >= question.final_s || repeats == MOST_REPEATS {
            notes.push(format!("{difference}, and the search is not repeated with longer ones"));
            break;
        }
        let longer_s = (round.search_s * 2.0).min(question.final_s);
        let line = format!("{difference}: the search is repeated with experiments of {longer_s} s");
        say(&line);
        notes.push(line);
        round = search(question, longer_s, run, &mut finals, &mut |_| true)?;
    }
    let mut ratings = round.ratings.unwrap_or_default();
    for rating in ratings.each_mut() {
        rating.notes.extend(notes.iter().cloned());
    }
    Ok(Settled { ratings, search_s: round.search_s })
}

/// Searches with each length, and confirms what the longest one finds. When it
/// does not agree with the one before, the ratings say so.
fn by_agreement(
    question: &Question,
    run: &mut Run<'_>,
    finals: &mut Finals,
    notes: &mut Vec<String>,
    say: &mut dyn FnMut(&str),
) -> Result<Round, Failure> {
    let lengths = &question.deltas.search_s;
    let mut shorter: Option<Round> = None;
    for (place, length_s) in lengths.iter().enumerate() {
        if lengths.len() > 1 {
            say(&format!("searching with experiments of {length_s} s"));
        }
        let is_last = place + 1 == lengths.len();
        let round = search(question, *length_s, run, finals, &mut |searched| {
            let Some(shorter) = &shorter else { return is_last };
            let (shorter_s, disagreements) =
                (shorter.search_s, differences(&question.limits, &shorter.searched, searched));
            if disagreements.is_empty() {
                say(&format!("experiments of {shorter_s} s and {length_s} s give the same ratings"));
                return is_last;
            }
            let among = disagreements.join(", ");
            let line = format!("experiments of {shorter_s} s and {length_s} s do not agree: {among}");
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

/// Searches with one length, and confirms what is found when `is_enough` says so.
fn search(
    question: &Question,
    search_s: f64,
    run: &mut Run<'_>,
    finals: &mut Finals,
    is_enough: &mut dyn FnMut(&Searched) -> bool,
) -> Result<Round, Failure> {
    let mut throughputs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut run = |threads: u32, purpose: &Purpose| {
        let is_search = *purpose == Purpose::Search;
        let trial = run(threads, if is_search { search_s } else { question.final_s }, purpose)?;
        if is_search && trial.verdict.ruling != Ruling::Void {
            throughputs.entry(threads).or_default().push(trial.verdict.figures.throughput_per_s);
        }
        Ok(trial)
    };
    let mut rater = Rater::new(&mut run, question.limits);
    rater.finals = std::mem::take(finals);
    let searched = rater.search(question.method, question.wanted)?;
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
        if !is_same && !is_same_t(limits, a, b) {
            out.push(format!("SoAR at T={} and T={}", a.threads, b.threads));
        }
    }
    if let (Some(a), Some(b)) = (&shorter.socialites, &longer.socialites)
        && !is_same_t(limits, a, b)
    {
        out.push(format!("Socialites T={} and T={}", a.threads, b.threads));
    }
    out
}

/// Whether two searches found one T, as far as they tell T's apart.
fn is_same_t(limits: &Limits, a: &Found, b: &Found) -> bool {
    let resolved = (a.threads.max(b.threads) as f64 * limits.resolution) as u32;
    a.threads.abs_diff(b.threads) <= resolved
}

/// The largest difference between a final experiment and the search with the
/// same T in words, when it is larger than asked for.
fn too_different(question: &Question, round: &Round, finals: &Finals) -> Option<String> {
    let allowed = question.deltas.check_percent?;
    let mut worst: Option<(f64, String)> = None;
    for (threads, trial) in finals {
        let Some(seen) = round.throughputs.get(threads) else { continue };
        if trial.verdict.ruling == Ruling::Void {
            continue;
        }
        let short = seen.iter().sum::<f64>() / seen.len() as f64;
        let long = trial.verdict.figures.throughput_per_s;
        let percent = (long - short).abs() / short.max(f64::MIN_POSITIVE) * 100.0;
        if percent > allowed && worst.as_ref().is_none_or(|(most, _)| percent > *most) {
            let words = format!(
                "final experiment {} (T={threads}) had {} actions/s, those of {} s had {}: more than {allowed}% apart",
                trial.verdict.experiment,
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
    /// Those that there are.
    fn each_mut(&mut self) -> impl Iterator<Item = &mut Rating> {
        [&mut self.soar, &mut self.socialites].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::trial;
    use crate::search::MOST_SAMPLES;

    const LIMITS: Limits = Limits { first_threads: 1, max_threads: 64, resolution: 0.05, noise: 0.05 };

    /// What was run: T, seconds, whether it was a final experiment.
    type Ran = Vec<(u32, f64, bool)>;

    /// Rates a store given as (T, seconds) -> (throughput, kept the SLA), with finals of 8 s.
    fn check(
        lengths: &[f64],
        check_percent: Option<f64>,
        wanted: Wanted,
        store: impl Fn(u32, f64) -> (f64, bool),
    ) -> (Settled, Ran, Vec<String>) {
        let (mut ran, mut said) = (Ran::new(), Vec::new());
        let mut run = |threads: u32, seconds: f64, purpose: &Purpose| {
            ran.push((threads, seconds, *purpose != Purpose::Search));
            let (throughput, passed) = store(threads, seconds);
            let ruling = if passed { Ruling::Pass } else { Ruling::Fail };
            Ok(trial(ran.len() as u32, threads, throughput, ruling, purpose.clone()))
        };
        let deltas = Deltas { search_s: lengths.to_vec(), check_percent };
        let question = Question { wanted, method: Method::Heuristic, limits: LIMITS, deltas, final_s: 8.0 };
        let settled = settle(&question, &mut run, &mut |line| said.push(line.to_string())).unwrap();
        (settled, ran, said)
    }

    fn lengths_of(ran: &Ran) -> Vec<f64> {
        let mut lengths: Vec<f64> = ran.iter().filter(|(_, _, is_final)| !is_final).map(|(_, s, _)| *s).collect();
        lengths.dedup();
        lengths
    }

    /// A store that keeps the SLA with more threads the shorter the experiment.
    fn tiring(threads: u32, seconds: f64) -> (f64, bool) {
        let last = if seconds < 2.0 { 40 } else { 20 };
        (threads as f64 * 100.0, threads <= last)
    }

    #[test]
    fn the_two_largest_lengths_have_to_agree() {
        let (settled, ran, said) = check(&[1.0, 2.0, 3.0], None, Wanted::Both, tiring);
        assert_eq!((settled.search_s, lengths_of(&ran)), (3.0, vec![1.0, 2.0, 3.0]));
        let ratings = settled.ratings;
        assert_eq!((ratings.soar.unwrap().threads, ratings.socialites.as_ref().unwrap().threads), (20, 20));
        assert!(ratings.socialites.unwrap().notes.is_empty());
        assert!(said.iter().any(|line| line.contains("of 1 s and 2 s do not agree: SoAR at T=40")), "{said:?}");
        assert!(said.iter().any(|line| line.contains("of 2 s and 3 s give the same ratings")), "{said:?}");
        // Only what settled is confirmed, and each length has a whole search of its own.
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
        let (settled, _, _) = check(&[1.0, 2.0], None, Wanted::Socialites, tiring);
        assert_eq!((settled.search_s, settled.ratings.soar), (2.0, None));
        let notes = settled.ratings.socialites.unwrap().notes;
        assert_eq!(notes, ["experiments of 1 s and 2 s do not agree: Socialites T=40 and T=20"]);
    }

    #[test]
    fn one_length_without_a_check_is_one_search() {
        let (settled, ran, said) = check(&[1.0], None, Wanted::Soar, tiring);
        assert_eq!((settled.search_s, lengths_of(&ran), said), (1.0, vec![1.0], Vec::<String>::new()));
        assert_eq!(settled.ratings.socialites, None);
    }

    /// A store that is slower the longer it runs, up to 4 s.
    fn slowing(threads: u32, seconds: f64) -> (f64, bool) {
        (threads as f64 * 100.0 / seconds.min(4.0), threads <= 20)
    }

    #[test]
    fn a_search_too_far_from_its_final_is_repeated_with_twice_the_length() {
        let (settled, ran, said) = check(&[1.0], Some(10.0), Wanted::Both, slowing);
        assert_eq!((settled.search_s, lengths_of(&ran)), (4.0, vec![1.0, 2.0, 4.0]));
        assert!(said[0].contains("(T=20) had 500 actions/s, those of 1 s had 2,000: more than 10% apart"), "{said:?}");
        assert!(said[0].ends_with("the search is repeated with experiments of 2 s"), "{said:?}");
        let socialites = settled.ratings.socialites.unwrap();
        assert_eq!((socialites.threads, socialites.notes), (20, said));
        // The final experiment of T=20 serves all three searches.
        assert_eq!(ran.iter().filter(|(_, _, is_final)| *is_final).count(), 1);
    }

    #[test]
    fn repeats_are_bounded_by_their_number_and_by_the_final_time() {
        let never = |threads: u32, seconds: f64| (threads as f64 / seconds, threads <= 2);
        let (settled, ran, _) = check(&[0.1], Some(10.0), Wanted::Both, never);
        assert_eq!((settled.search_s, lengths_of(&ran)), (0.8, vec![0.1, 0.2, 0.4, 0.8]));
        let notes = settled.ratings.soar.unwrap().notes;
        assert_eq!(notes.len(), 5);
        assert!(notes[0].contains("is 90% below the search's 3/s at T=2"), "{notes:?}");
        assert!(notes[4].ends_with("and the search is not repeated with longer ones"), "{notes:?}");
        let (settled, _, _) = check(&[5.0], Some(10.0), Wanted::Both, never);
        assert_eq!(settled.search_s, 8.0);
    }
}
