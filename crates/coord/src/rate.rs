//! `coord rate`: searches T for the ratings, confirms each, and says what it found.

mod settle;

use std::collections::BTreeMap;

use schemas::files;
use schemas::plan::Limit;
use schemas::verdict::{Rating, RatingDocument, Ruling};

use crate::args::Wanted;
use crate::bg_files;
use crate::campaign::{Campaign, Purpose, Trial};
use crate::failure::Failure;
use crate::render;
use crate::resolve::{self, Method};
use crate::search::{Found, Limits, Next, Probe, Results, exhaustive, soar, socialites};
use settle::{Question, Settled};

/// How many T's a rating may try to confirm before it is left unconfirmed.
const MOST_FINALS: u32 = 3;

/// Rates a store from beginning to end; prints as it goes.
pub fn rate(rating: resolve::Rating) -> Result<RatingDocument, Failure> {
    let mut campaign = Campaign::open(rating.setting.clone())?;
    let result = rate_within(&mut campaign, &rating);
    campaign.close(result)
}

fn rate_within(campaign: &mut Campaign, rating: &resolve::Rating) -> Result<RatingDocument, Failure> {
    let question = Question {
        wanted: rating.wanted,
        method: rating.method,
        limits: rating.limits,
        deltas: rating.deltas.clone(),
        final_s: rating.setting.sla.delta_s,
    };
    let voice = campaign.voice();
    let mut run = |threads: u32, seconds: f64, purpose: &Purpose| {
        let trial = campaign.experiment(threads, Limit::DurationS(seconds), purpose)?;
        // After each experiment, so that a rating that is interrupted has them too.
        bg_files::write(campaign.run(), &rating.setting.sla, rating.wanted, campaign.trials())?;
        Ok(trial)
    };
    let Settled { ratings, search_s } = settle::settle(&question, &mut run, &mut |line| voice.say(line))?;
    let document = RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: rating.setting.sla,
        parameters: rating.parameters(search_s, campaign.warmup_sessions()),
        soar: ratings.soar,
        socialites: ratings.socialites,
        experiments: campaign.trials().iter().map(Trial::rated).collect(),
    };
    files::write_json(&campaign.run().rating(), &document)?;
    voice.say(&format!("\n{}", render::ratings(&document)));
    let repeat = render::repeat_rate(rating);
    voice.say(&render::next_commands(campaign.setting(), campaign.trace(), &repeat));
    Ok(document)
}

/// Runs an experiment with T threads.
type Run<'a> = dyn FnMut(u32, &Purpose) -> Result<Trial, Failure> + 'a;

/// One of the two searches.
type Search = fn(&Results, &Limits) -> Next;

/// What the searches of the wanted ratings found.
#[derive(Debug, Clone, PartialEq)]
struct Searched {
    soar: Option<Found>,
    socialites: Option<Found>,
}

/// The wanted ratings.
#[derive(Debug, Clone, PartialEq, Default)]
struct Ratings {
    soar: Option<Rating>,
    socialites: Option<Rating>,
}

/// The state of a rating under way: what each T showed, and how to try more.
struct Rater<'a> {
    run: &'a mut Run<'a>,
    limits: Limits,
    results: Results,
    /// The experiment behind each result, and why it is not a pass.
    behind: BTreeMap<u32, (u32, String)>,
    finals: BTreeMap<u32, Trial>,
}

impl<'a> Rater<'a> {
    fn new(run: &'a mut Run<'a>, limits: Limits) -> Rater<'a> {
        Rater { run, limits, results: Results::new(), behind: BTreeMap::new(), finals: BTreeMap::new() }
    }

    /// Searches what is wanted. Socialites goes first: what its search shows is
    /// where the SoAR search begins to close in.
    fn search(&mut self, method: Method, wanted: Wanted) -> Result<Searched, Failure> {
        let (for_soar, for_socialites): (Search, Search) = match method {
            Method::Heuristic => (soar::next, socialites::next),
            Method::Exhaustive => (exhaustive::soar, exhaustive::socialites),
        };
        let socialites = if wanted.has_socialites() { Some(self.settle(for_socialites)?) } else { None };
        let soar = if wanted.has_soar() { Some(self.settle(for_soar)?) } else { None };
        Ok(Searched { soar, socialites })
    }

    /// Confirms what was found.
    fn confirm(&mut self, searched: &Searched) -> Result<Ratings, Failure> {
        let threads = |found: &Option<Found>| found.as_ref().map(|found| found.threads);
        let both = threads(&searched.soar) == threads(&searched.socialites);
        let name = if both { Wanted::Both } else { Wanted::Soar }.name();
        let mut ratings = Ratings::default();
        if let Some(found) = &searched.soar {
            ratings.soar = Some(self.confirmed(found, name)?);
        }
        if let Some(found) = &searched.socialites {
            let mut rating = self.confirmed(found, Wanted::Socialites.name())?;
            rating.value = rating.threads as f64;
            ratings.socialites = Some(rating);
        }
        if let Some(rating) = &mut ratings.soar {
            self.raise(rating);
        }
        Ok(ratings)
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

    /// Takes in what an experiment showed of its T.
    fn keep(&mut self, trial: &Trial) {
        let verdict = &trial.verdict;
        let probe = Probe { throughput_per_s: verdict.figures.throughput_per_s, ruling: verdict.ruling };
        self.results.insert(verdict.threads, probe);
        self.behind.insert(verdict.threads, (verdict.experiment, verdict.reasons.join("; ")));
    }

    /// Confirms what a search found by a final experiment. When that fails, the
    /// next lower T that passed has its turn.
    fn confirmed(&mut self, found: &Found, name: &str) -> Result<Rating, Failure> {
        let mut voids: Vec<String> = found.void_threads.iter().map(|threads| self.void_note(*threads)).collect();
        let mut notes = Vec::new();
        let mut threads = found.threads;
        for _ in 0..MOST_FINALS {
            if threads == 0 {
                break;
            }
            let trial = self.final_trial(threads, name)?;
            let verdict = &trial.verdict;
            if verdict.ruling == Ruling::Pass {
                let at_least = found.at_least && threads == found.threads;
                let (value, confirmed_by) = (verdict.figures.throughput_per_s, Some(verdict.experiment));
                return Ok(Rating {
                    value,
                    threads,
                    interval: None,
                    at_least,
                    confirmed_by,
                    rests_on_void: clause(&voids),
                    notes,
                });
            }
            if verdict.ruling == Ruling::Void {
                voids.push(void_clause(verdict.experiment, threads, &verdict.reasons.join("; ")));
            }
            let lower = self.results.range(..threads).rev().find(|(_, probe)| probe.passed()).map_or(0, |(t, _)| *t);
            notes.push(format!(
                "T={threads} passed in the search, but its final experiment {} did not ({}: {}){}",
                verdict.experiment,
                verdict.ruling.name(),
                verdict.reasons.join("; "),
                if lower > 0 { format!("; the next lower T that passed is {lower}") } else { String::new() }
            ));
            threads = lower;
        }
        if threads > 0 {
            notes.push(format!("{MOST_FINALS} final experiments did not pass; T={threads} rests on the search alone"));
        }
        let value = self.results.get(&threads).map_or(0.0, |probe| probe.throughput_per_s);
        let rests_on_void = clause(&voids);
        Ok(Rating { value, threads, interval: None, at_least: false, confirmed_by: None, rests_on_void, notes })
    }

    /// The final experiment of a T, which both ratings share. Its result takes
    /// the place of the shorter one's.
    fn final_trial(&mut self, threads: u32, name: &str) -> Result<Trial, Failure> {
        if let Some(trial) = self.finals.get(&threads) {
            return Ok(trial.clone());
        }
        let trial = (self.run)(threads, &Purpose::Final(name.to_string()))?;
        self.keep(&trial);
        self.finals.insert(threads, trial.clone());
        Ok(trial)
    }

    /// Another final experiment, that of the other rating or of an earlier
    /// search, may have had a higher throughput
    /// than the one that was to confirm the SoAR: then that is the SoAR.
    fn raise(&self, soar: &mut Rating) {
        let passed = self.finals.values().filter(|trial| trial.verdict.ruling == Ruling::Pass);
        let throughput = |trial: &Trial| trial.verdict.figures.throughput_per_s;
        let Some(best) = passed.max_by(|a, b| throughput(a).total_cmp(&throughput(b))) else { return };
        if throughput(best) > soar.value || soar.confirmed_by.is_none() {
            if soar.threads != best.verdict.threads {
                soar.notes.push(format!(
                    "the search found T={}; another final experiment, with T={}, had more throughput",
                    soar.threads, best.verdict.threads
                ));
            }
            soar.value = throughput(best);
            soar.threads = best.verdict.threads;
            soar.at_least = soar.threads == self.limits.max_threads;
            soar.confirmed_by = Some(best.verdict.experiment);
        }
    }

    fn void_note(&self, threads: u32) -> String {
        match self.behind.get(&threads) {
            Some((experiment, reason)) => void_clause(*experiment, threads, reason),
            None => format!("an experiment with T={threads}"),
        }
    }
}

/// A void experiment, as a rating that rests on it names it.
fn void_clause(experiment: u32, threads: u32, reason: &str) -> String {
    format!("experiment {experiment} (T={threads}): {reason}")
}

/// All of them in one clause; none when there are none.
fn clause(voids: &[String]) -> Option<String> {
    if voids.is_empty() { None } else { Some(voids.join("; and on ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::trial;

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
        let mut searched: Vec<u32> = ran.iter().filter(|(_, is_final)| !is_final).map(|(t, _)| *t).collect();
        let all = searched.len();
        searched.sort_unstable();
        searched.dedup();
        assert_eq!(searched.len(), all, "a T ran twice: {ran:?}");
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

    #[test]
    fn no_t_passes() {
        let (soar, socialites, ran) = check(|_, _| (100.0, Ruling::Fail));
        assert_eq!((soar.threads, soar.value, socialites.threads, socialites.value), (0, 0.0, 0, 0.0));
        assert_eq!(ran, [(1, false)]);
    }

    #[test]
    fn void_experiments_are_named() {
        let ruling = |t: u32| if t < 8 { Ruling::Pass } else { Ruling::Void };
        let (soar, socialites, _) = check(|t, _| (t as f64, ruling(t)));
        assert_eq!((soar.threads, socialites.threads), (7, 7));
        let clause = Some("experiment 4 (T=8): because".to_string());
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
        let number = ran.iter().position(|(t, is_final)| (*t, *is_final) == (8, true)).unwrap() + 1;
        assert_eq!((socialites.threads, socialites.confirmed_by.is_some()), (7, true));
        assert_eq!(socialites.rests_on_void, Some(format!("experiment {number} (T=8): because")));
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
