//! A rating under way: runs the searches, keeps what each experiment showed, and
//! confirms what was found.

use std::collections::BTreeMap;

use schemas::plan::Limit;
use schemas::run::Purpose;
use schemas::verdict::{Rating, Ruling};

use crate::args::Wanted;
use crate::campaign::Trial;
use crate::failure::Failure;
use crate::resolve::Method;
use crate::search::{Basis, Found, Interval, Limits, Next, Probe, Results, Spread, exhaustive, soar, socialites};

/// How many T's a rating may try to confirm before it is left unconfirmed.
const MOST_FINALS: u32 = 3;

/// Runs an experiment with T threads.
pub(super) type Run<'a> = dyn FnMut(u32, &Purpose) -> Result<Trial, Failure> + 'a;

/// One of the two searches.
type Search = fn(&Results, &Limits) -> Next;

/// A rating with what it rests on.
#[derive(Debug, Clone, PartialEq)]
struct Rated {
    /// The rating.
    rating: Rating,
    /// Where the true value lies, in the rating's own unit.
    interval: Interval,
    /// The numbers of the experiments that it rests on, in their order: every
    /// sample of its T and of the T's that bound it, and the final ones.
    rests_on: Vec<u32>,
    /// The void ones among them, each a clause.
    voids: Vec<String>,
}

impl Rated {
    /// The rating with all that it says of itself.
    fn done(self) -> Rating {
        let Rated { mut rating, interval, rests_on, voids } = self;
        // Where nothing failed there is no border to lie before.
        let is_open = rating.at_least && interval.basis == Basis::Border;
        if rating.threads > 0 && !is_open {
            rating.interval = Some(interval.told());
        }
        rating.rests_on = rests_on;
        rating.rests_on_void = if voids.is_empty() { None } else { Some(voids.join("; and on ")) };
        rating
    }
}

/// An experiment of the search, as far as a rating names it.
struct Sample {
    experiment: u32,
    ruling: Ruling,
    reason: String,
    /// How long it was to be.
    seconds: f64,
}

/// How long an experiment is to be, where that is a time.
fn seconds(limit: &Limit) -> f64 {
    if let Limit::DurationS(seconds) = limit { *seconds } else { 0.0 }
}

/// What the searches of the wanted ratings found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Searched {
    pub(super) soar: Option<Found>,
    pub(super) socialites: Option<Found>,
}

/// The wanted ratings.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Ratings {
    pub(super) soar: Option<Rating>,
    pub(super) socialites: Option<Rating>,
}

/// The state of a rating under way: what each T showed, and how to try more.
pub(super) struct Rater<'a> {
    run: &'a mut Run<'a>,
    limits: Limits,
    results: Results,
    /// The experiments behind the results of a T, in the same order.
    behind: BTreeMap<u32, Vec<Sample>>,
    pub(super) finals: BTreeMap<u32, Trial>,
}

impl<'a> Rater<'a> {
    pub(super) fn new(run: &'a mut Run<'a>, limits: Limits) -> Rater<'a> {
        Rater { run, limits, results: Results::new(), behind: BTreeMap::new(), finals: BTreeMap::new() }
    }

    /// Searches what is wanted. Socialites goes first: what its search shows is
    /// where the SoAR search begins to close in.
    pub(super) fn search(&mut self, method: Method, wanted: Wanted) -> Result<Searched, Failure> {
        let (for_soar, for_socialites): (Search, Search) = match method {
            Method::Heuristic => (soar::next, socialites::next),
            Method::Exhaustive => (exhaustive::soar, exhaustive::socialites),
        };
        let socialites = if wanted.has_socialites() { Some(self.settle(for_socialites)?) } else { None };
        let soar = if wanted.has_soar() { Some(self.settle(for_soar)?) } else { None };
        Ok(Searched { soar, socialites })
    }

    /// Confirms what was found.
    pub(super) fn confirm(&mut self, searched: &Searched) -> Result<Ratings, Failure> {
        let threads = |found: &Option<Found>| found.as_ref().map(|found| found.threads);
        let both = threads(&searched.soar) == threads(&searched.socialites);
        let name = if both { Wanted::Both } else { Wanted::Soar }.name();
        let mut soar = match &searched.soar {
            Some(found) => Some(self.confirmed(found, name)?),
            None => None,
        };
        let mut socialites = match &searched.socialites {
            Some(found) => Some(self.confirmed(found, Wanted::Socialites.name())?),
            None => None,
        };
        if let Some(rated) = &mut soar {
            self.raise(rated);
            let (threads, value) = (rated.rating.threads, rated.rating.value);
            // A final experiment that is longer than those of the search counts for as many
            // of them as it is long, but for no more than were seen to agree.
            let agreeing = self.results.point(threads).map_or(0, |point| point.agreeing);
            let samples = agreeing.min(self.final_length(threads));
            rated.interval = Spread::of(&self.results, &self.limits).interval(value, samples);
        }
        if let Some(rated) = &mut socialites {
            let threads = f64::from(rated.rating.threads);
            rated.rating.value = threads;
            // A final experiment that did not pass has moved the border down.
            let unconfirmed = self.finals.values().filter(|trial| trial.verdict.ruling != Ruling::Pass);
            let failed = unconfirmed.map(|trial| f64::from(trial.verdict.threads)).filter(|failed| *failed > threads);
            rated.interval.low = threads;
            rated.interval.high = failed.map(|failed| failed - 1.0).fold(rated.interval.high, f64::min);
        }
        Ok(Ratings { soar: soar.map(Rated::done), socialites: socialites.map(Rated::done) })
    }

    /// How many experiments of the search are as long as the final one with these threads.
    fn final_length(&self, threads: u32) -> usize {
        let searched = self.behind.get(&threads).into_iter().flatten().map(|sample| sample.seconds).fold(0.0, f64::max);
        match self.finals.get(&threads) {
            Some(trial) if searched > 0.0 => (seconds(&trial.limit) / searched).round() as usize,
            Some(_) => 1,
            // What rests on the search alone is a mean of all that it showed.
            None => usize::MAX,
        }
    }

    /// Runs a search to its end.
    fn settle(&mut self, search: Search) -> Result<Found, Failure> {
        loop {
            match search(&self.results, &self.limits) {
                Next::Done(found) => return Ok(found),
                Next::Probe { threads } => {
                    let trial = (self.run)(threads, &Purpose::Search)?;
                    self.keep(&trial);
                }
            }
        }
    }

    /// Takes in what an experiment of the search showed of its T, beside what
    /// others with that T have shown.
    fn keep(&mut self, trial: &Trial) {
        let verdict = &trial.verdict;
        let probe = Probe { throughput_per_s: verdict.figures.throughput_per_s, ruling: verdict.ruling };
        self.results.add(verdict.threads, probe);
        let sample = Sample {
            experiment: verdict.experiment,
            ruling: verdict.ruling,
            reason: verdict.reasons.join("; "),
            seconds: seconds(&trial.limit),
        };
        self.behind.entry(verdict.threads).or_default().push(sample);
    }

    /// Confirms what a search found by a final experiment. When that fails, the
    /// next lower T that passed has its turn.
    fn confirmed(&mut self, found: &Found, name: &str) -> Result<Rated, Failure> {
        let mut rated = Rated {
            rating: Rating {
                value: 0.0,
                threads: found.threads,
                interval: None,
                at_least: false,
                confirmed_by: None,
                rests_on: Vec::new(),
                rests_on_void: None,
                notes: Vec::new(),
            },
            voids: found.void_threads.iter().map(|threads| self.void_note(*threads)).collect(),
            interval: found.interval,
            rests_on: self.experiments(&found.rests_on),
        };
        let rating = &mut rated.rating;
        for _ in 0..MOST_FINALS {
            let threads = rating.threads;
            if threads == 0 {
                break;
            }
            let trial = self.final_trial(threads, name)?;
            let verdict = &trial.verdict;
            rated.rests_on.push(verdict.experiment);
            if verdict.ruling == Ruling::Pass {
                rating.at_least = found.at_least && threads == found.threads;
                rating.value = verdict.figures.throughput_per_s;
                rating.confirmed_by = Some(verdict.experiment);
                return Ok(rated);
            }
            if verdict.ruling == Ruling::Void {
                let reasons = verdict.reasons.join("; ");
                rated.voids.push(format!("experiment {} (T={threads}): {reasons}", verdict.experiment));
            }
            let lower = self.lower_pass(threads);
            rating.notes.push(format!(
                "T={threads} passed in the search, but its final experiment {} did not ({}: {}){}",
                verdict.experiment,
                verdict.ruling.name(),
                verdict.reasons.join("; "),
                if lower > 0 { format!("; the next lower T that passed is {lower}") } else { String::new() }
            ));
            rating.threads = lower;
            // A short experiment at the lower T is now all that the rating has.
            rated.rests_on.extend(self.experiments(&[lower]));
            rated.rests_on.sort_unstable();
            rated.rests_on.dedup();
        }
        let threads = rating.threads;
        // One of the other rating, or of an earlier search, may have confirmed this T already.
        if let Some(trial) = self.finals.get(&threads).filter(|trial| trial.verdict.ruling == Ruling::Pass) {
            rating.value = trial.verdict.figures.throughput_per_s;
            rating.confirmed_by = Some(trial.verdict.experiment);
            rated.rests_on.push(trial.verdict.experiment);
            rated.rests_on.sort_unstable();
            rated.rests_on.dedup();
            return Ok(rated);
        }
        if threads > 0 {
            let note = format!("{MOST_FINALS} final experiments did not pass; T={threads} rests on the search alone");
            rating.notes.push(note);
        }
        rating.value = self.results.point(threads).map_or(0.0, |point| point.throughput_per_s);
        Ok(rated)
    }

    /// The highest T below this one that passed, and whose final experiment, if
    /// it had one, passed too; 0 when there is none.
    fn lower_pass(&self, threads: u32) -> u32 {
        let holds = |threads: u32| self.finals.get(&threads).is_none_or(|trial| trial.verdict.ruling == Ruling::Pass);
        let mut lower = self.results.points().rev().filter(|point| point.threads < threads && point.passed());
        lower.find(|point| holds(point.threads)).map_or(0, |point| point.threads)
    }

    /// The experiments of the search with these T's: the void ones only where
    /// there are no others.
    fn experiments(&self, threads: &[u32]) -> Vec<u32> {
        let is_void = |threads: &u32| self.results.point(*threads).is_some_and(|p| p.ruling == Ruling::Void);
        let samples = threads.iter().flat_map(|threads| {
            let all = self.behind.get(threads).map_or(&[][..], Vec::as_slice);
            let is_void = is_void(threads);
            all.iter().filter(move |sample| is_void || sample.ruling != Ruling::Void)
        });
        let mut experiments: Vec<u32> = samples.map(|sample| sample.experiment).collect();
        experiments.sort_unstable();
        experiments
    }

    /// The final experiment of a T, which both ratings share. It stands apart
    /// from the samples of the search, which were shorter.
    fn final_trial(&mut self, threads: u32, name: &str) -> Result<Trial, Failure> {
        if let Some(trial) = self.finals.get(&threads) {
            return Ok(trial.clone());
        }
        let purpose = Purpose::Final(name.to_string());
        let mut trial = (self.run)(threads, &purpose)?;
        if trial.verdict.ruling == Ruling::Void {
            // It says nothing of the store: it gets one more chance.
            trial = (self.run)(threads, &purpose)?;
        }
        self.finals.insert(threads, trial.clone());
        Ok(trial)
    }

    /// Another final experiment, that of the other rating or of an earlier
    /// search, may have had a higher throughput than the one that was to confirm the SoAR: then that is the SoAR.
    fn raise(&self, soar: &mut Rated) {
        let passed = self.finals.values().filter(|trial| trial.verdict.ruling == Ruling::Pass);
        let throughput = |trial: &Trial| trial.verdict.figures.throughput_per_s;
        let Some(best) = passed.max_by(|a, b| throughput(a).total_cmp(&throughput(b))) else { return };
        let rating = &mut soar.rating;
        if throughput(best) > rating.value || rating.confirmed_by.is_none() {
            if rating.threads != best.verdict.threads {
                rating.notes.push(format!(
                    "the search found T={}; another final experiment, with T={}, had more throughput",
                    rating.threads, best.verdict.threads
                ));
                soar.rests_on.push(best.verdict.experiment);
                soar.rests_on.extend(self.experiments(&[best.verdict.threads]));
                soar.rests_on.sort_unstable();
                soar.rests_on.dedup();
            }
            rating.value = throughput(best);
            rating.threads = best.verdict.threads;
            rating.at_least = rating.threads == self.limits.max_threads;
            rating.confirmed_by = Some(best.verdict.experiment);
        }
    }

    fn void_note(&self, threads: u32) -> String {
        let samples = self.behind.get(&threads).map_or(&[][..], Vec::as_slice);
        let void: Vec<&Sample> = samples.iter().filter(|sample| sample.ruling == Ruling::Void).collect();
        let numbers: Vec<String> = void.iter().map(|sample| sample.experiment.to_string()).collect();
        let mut reasons: Vec<&str> = void.iter().map(|sample| sample.reason.as_str()).collect();
        reasons.dedup();
        let plural = if numbers.len() == 1 { "" } else { "s" };
        format!("experiment{plural} {} (T={threads}): {}", numbers.join(" and "), reasons.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::trial;
    use crate::search::MOST_SAMPLES;

    const LIMITS: Limits = Limits { first_threads: 1, max_threads: 64, resolution: 0.05, noise: 0.05 };

    /// Rates a store given as (T, is final) -> (throughput, ruling); also gives
    /// each experiment's T and whether it was a final one.
    fn check(store: impl Fn(u32, bool) -> (f64, Ruling)) -> (Rating, Rating, Vec<(u32, bool)>) {
        let mut ran = Vec::new();
        let mut run = |threads: u32, purpose: &Purpose| {
            let is_final = *purpose != Purpose::Search;
            ran.push((threads, is_final));
            let (throughput_per_s, ruling) = store(threads, is_final);
            Ok(trial(ran.len() as u32, threads, throughput_per_s, ruling, purpose.clone()))
        };
        let mut rater = Rater::new(&mut run, LIMITS);
        let searched = rater.search(Method::Heuristic, Wanted::Both).unwrap();
        let Ratings { soar, socialites } = rater.confirm(&searched).unwrap();
        (soar.unwrap(), socialites.unwrap(), ran)
    }

    /// What is as long as three of the search has seen as much as three of them.
    #[test]
    fn a_final_experiment_counts_for_as_many_as_it_is_long() {
        let of = |number: u32, purpose: Purpose, seconds: f64| {
            let trial = trial(number, 4, 1000.0, Ruling::Pass, purpose);
            Trial { limit: Limit::DurationS(seconds), ..trial }
        };
        let mut run = |_: u32, _: &Purpose| unreachable!("nothing is run");
        let mut rater = Rater::new(&mut run, LIMITS);
        (1..=3).for_each(|number| rater.keep(&of(number, Purpose::Search, 0.1)));
        assert_eq!(rater.final_length(4), usize::MAX, "without one the search stands for itself");
        for (seconds, expect) in [(0.3, 3), (0.1, 1), (1.0, 10)] {
            rater.finals.insert(4, of(4, Purpose::Final(String::new()), seconds));
            assert_eq!(rater.final_length(4), expect);
        }
    }

    fn ends(rating: &Rating) -> (f64, f64) {
        let interval = rating.interval.as_ref().expect("an interval");
        (interval.low, interval.high)
    }

    fn pass_until(last: u32) -> impl Fn(u32) -> Ruling {
        move |threads| if threads <= last { Ruling::Pass } else { Ruling::Fail }
    }

    #[test]
    fn each_rating_is_confirmed_by_its_own_final_experiment() {
        let (soar, socialites, ran) = check(|t, _| (t as f64 * (40.0 - t as f64), pass_until(30)(t)));
        assert_eq!((soar.threads, soar.value, socialites.threads, socialites.value), (20, 400.0, 30, 30.0));
        let finals: Vec<u32> = ran.iter().filter(|(_, is_final)| *is_final).map(|(t, _)| *t).collect();
        assert_eq!(finals, [20, 30]);
        assert_eq!(soar.confirmed_by, Some(ran.len() as u32 - 1));
        assert!(soar.notes.is_empty() && socialites.notes.is_empty());
        let searched: Vec<u32> = ran.iter().filter(|(_, is_final)| !is_final).map(|(t, _)| *t).collect();
        let often = |t: &u32| searched.iter().filter(|other| *other == t).count();
        assert!(searched.iter().all(|t| often(t) <= MOST_SAMPLES), "a T ran too often: {ran:?}");
    }

    #[test]
    fn one_final_experiment_serves_both() {
        let (soar, socialites, ran) = check(|t, _| (t as f64, Ruling::Pass));
        assert_eq!((soar.threads, socialites.threads, soar.at_least, socialites.at_least), (64, 64, true, true));
        assert_eq!(ran.iter().filter(|(_, is_final)| *is_final).count(), 1);
    }

    #[test]
    fn a_final_that_fails_gives_the_next_lower_t() {
        let (_, socialites, _) = check(|t, is_final| {
            let last = if is_final { 20 } else { 32 };
            (100.0, pass_until(last)(t))
        });
        assert_eq!((socialites.threads, socialites.at_least), (16, false));
        assert!(socialites.confirmed_by.is_some());
        assert!(socialites.notes[0].contains("T=32 passed in the search"), "{:?}", socialites.notes);
    }

    #[test]
    fn finals_are_bounded() {
        let (soar, socialites, ran) =
            check(|t, is_final| (t as f64, if is_final { Ruling::Fail } else { Ruling::Pass }));
        assert_eq!((soar.confirmed_by, socialites.confirmed_by), (None, None));
        assert!(ran.iter().filter(|(_, is_final)| *is_final).count() <= 2 * MOST_FINALS as usize);
        assert!(socialites.threads > 0 && socialites.notes.last().unwrap().contains("rests on the search alone"));
    }

    /// Three finals of its own failed, but the T that is left has one of the other rating.
    #[test]
    fn the_final_of_the_other_rating_confirms_too() {
        let mut number = 0;
        let mut run = |threads: u32, purpose: &Purpose| {
            number += 1;
            let is_final = *purpose != Purpose::Search;
            let ruling = if is_final && threads > 2 { Ruling::Fail } else { Ruling::Pass };
            let throughput_per_s = 100.0 - 20.0 * f64::from(threads.abs_diff(2));
            Ok(trial(number, threads, throughput_per_s, ruling, purpose.clone()))
        };
        let mut rater = Rater::new(&mut run, Limits { max_threads: 5, ..LIMITS });
        let searched = rater.search(Method::Exhaustive, Wanted::Both).unwrap();
        let Ratings { soar, socialites } = rater.confirm(&searched).unwrap();
        let (soar, socialites) = (soar.unwrap(), socialites.unwrap());
        assert_eq!((soar.threads, socialites.threads), (2, 2));
        assert!(socialites.confirmed_by.is_some() && socialites.confirmed_by == soar.confirmed_by);
        assert!(!socialites.notes.iter().any(|note| note.contains("search alone")), "{:?}", socialites.notes);
    }

    #[test]
    fn no_t_passes() {
        let (soar, socialites, ran) = check(|_, _| (100.0, Ruling::Fail));
        assert_eq!((soar.threads, soar.value, socialites.threads, socialites.value), (0, 0.0, 0, 0.0));
        assert_eq!(ran, [(1, false), (1, false)], "the fail is repeated once");
    }

    #[test]
    fn void_experiments_are_named() {
        let ruling = |t: u32| if t < 8 { Ruling::Pass } else { Ruling::Void };
        let (soar, socialites, _) = check(|t, _| (t as f64, ruling(t)));
        assert_eq!((soar.threads, socialites.threads), (7, 7));
        let clause = Some("experiments 4 and 5 (T=8): because".to_string());
        assert_eq!((soar.rests_on_void, socialites.rests_on_void), (clause.clone(), clause));
    }

    #[test]
    fn a_void_final_experiment_is_named_too() {
        let ruling = |t: u32, is_final: bool| match (t, is_final) {
            (8, true) => Ruling::Void,
            (..=8, _) => Ruling::Pass,
            _ => Ruling::Fail,
        };
        let (_, socialites, ran) = check(|t, is_final| (t as f64, ruling(t, is_final)));
        // A void final experiment is repeated once; the second one counts.
        let number = ran.iter().rposition(|ran| *ran == (8, true)).unwrap() + 1;
        assert_eq!(ran.iter().filter(|ran| **ran == (8, true)).count(), 2);
        assert_eq!((socialites.threads, socialites.confirmed_by.is_some()), (4, true));
        assert_eq!(socialites.rests_on_void, Some(format!("experiment {number} (T=8): because")));
    }

    #[test]
    fn a_rating_lists_the_experiments_it_rests_on() {
        let (soar, socialites, ran) = check(|t, _| (t as f64 * (40.0 - t as f64), pass_until(30)(t)));
        let threads = |experiments: &[u32]| -> Vec<(u32, bool)> {
            experiments.iter().map(|experiment| ran[*experiment as usize - 1]).collect()
        };
        // Last pass, first fail (twice, because it is a border), final.
        assert_eq!(threads(&socialites.rests_on), [(30, false), (31, false), (31, false), (30, true)]);
        assert_eq!(ends(&socialites), (30.0, 30.0));
        let soar_threads = threads(&soar.rests_on);
        assert!(soar_threads.contains(&(20, false)) && soar_threads.ends_with(&[(20, true)]), "{soar_threads:?}");
        // Every sample of the T found is listed.
        let samples = ran.iter().filter(|ran| **ran == (20, false)).count();
        assert_eq!(soar_threads.iter().filter(|ran| **ran == (20, false)).count(), samples);
        let (low, high) = ends(&soar);
        assert!(low <= 400.0 && 400.0 <= high, "{:?}", soar.interval);
    }

    #[test]
    fn a_final_that_fails_moves_the_border() {
        let (_, socialites, _) = check(|t, is_final| (100.0, pass_until(if is_final { 20 } else { 32 })(t)));
        assert_eq!(ends(&socialites), (16.0, 31.0));
        let experiments = socialites.rests_on.len();
        assert!(socialites.rests_on.is_sorted() && experiments >= 4, "{:?}", socialites.rests_on);
    }

    #[test]
    fn the_interval_stays_around_the_confirmed_value() {
        let (soar, ..) = check(|t, is_final| (t as f64 * if is_final { 2.0 } else { 1.0 }, Ruling::Pass));
        let (low, high) = ends(&soar);
        assert_eq!(soar.value, 128.0);
        assert!(low < 128.0 && 128.0 < high && high < 150.0, "{:?}", soar.interval);
    }

    #[test]
    fn the_best_final_experiment_is_the_soar() {
        // Short experiments mislead: in the long ones more threads do better.
        let (soar, _, _) =
            check(|t, is_final| (if is_final { 100.0 + t as f64 } else { 200.0 - t as f64 }, Ruling::Pass));
        assert_eq!((soar.threads, soar.value, soar.at_least), (64, 164.0, true));
        assert!(soar.notes[0].contains("the search found T=1"), "{:?}", soar.notes);
    }
}
