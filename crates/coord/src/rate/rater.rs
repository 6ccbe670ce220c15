//! A rating in progress: runs the searches, keeps what each experiment showed, and confirms what
//! the searches found.

use std::collections::BTreeMap;

use schemas::plan::Limit;
use schemas::run::Purpose;
use schemas::verdict::{Rating, Ruling};

use crate::failure::Failure;
use crate::run::trial::Trial;
use crate::search::{
    Basis, Found, Interval, Limits, Mean, Next, Point, Probe, Results, Spread, exhaustive, soar, socialites,
};

use super::departure;
use super::rating::{Method, Wanted};
use super::voids::{self, Void, brief};

/// How many T's a rating tries to confirm before it stays unconfirmed.
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
    /// The void experiments that it rests on.
    voids: Vec<Void>,
}

impl Rated {
    /// Adds experiments to those that the rating rests on.
    fn rest_on(&mut self, experiments: impl IntoIterator<Item = u32>) {
        let rests_on = &mut self.rating.rests_on;
        rests_on.extend(experiments);
        rests_on.sort_unstable();
        rests_on.dedup();
    }

    /// The finished rating, with its interval and its void experiments.
    fn done(self) -> Rating {
        let Rated { mut rating, interval, voids } = self;
        // If nothing failed, the interval has no upper border.
        let is_open = rating.at_least && interval.basis == Basis::Border;
        if rating.threads > 0 && !is_open {
            rating.interval = Some(interval.to_document());
        }
        rating.rests_on_void = match rating.unmeasured {
            true => Some(voids::nothing_measured(&voids)),
            false => voids::doubts(&voids, rating.threads),
        };
        rating
    }
}

/// An experiment of the search, with what a rating says of it.
struct Sample {
    experiment: u32,
    ruling: Ruling,
    reason: String,
    /// Its planned time.
    seconds: f64,
}

/// The planned time of an experiment; 0 if it ends by another limit.
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

/// The state of a rating in progress: what each T showed, and how to run more experiments.
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

    /// Searches the wanted ratings. Socialites comes first: the SoAR search begins to close in on
    /// the peak from what the Socialites search showed.
    pub(super) fn search(&mut self, method: Method, wanted: Wanted) -> Result<Searched, Failure> {
        let (for_soar, for_socialites): (Search, Search) = match method {
            Method::Heuristic => (soar::next, socialites::next),
            Method::Exhaustive => (exhaustive::soar, exhaustive::socialites),
        };
        let socialites = if wanted.has_socialites() { Some(self.drive(for_socialites)?) } else { None };
        let soar = if wanted.has_soar() { Some(self.drive(for_soar)?) } else { None };
        Ok(Searched { soar, socialites })
    }

    /// Confirms what the searches found with final experiments.
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
        // Only now are all final experiments known: those of one rating confirm the other too.
        if let Some(rated) = &mut soar {
            self.adopt(rated);
            self.raise(rated);
            let Mean { per_s, samples } = self.value_of(&rated.rating);
            rated.interval = Spread::of(&self.results, &self.limits).interval(per_s, samples);
        }
        if let Some(rated) = &mut socialites {
            self.adopt(rated);
            let threads = f64::from(rated.rating.threads);
            rated.rating.value = threads;
            // A final experiment that did not pass moves the border down.
            let unconfirmed = self.finals.values().filter(|trial| trial.verdict.ruling != Ruling::Pass);
            let failed = unconfirmed.map(|trial| f64::from(trial.verdict.threads)).filter(|failed| *failed > threads);
            rated.interval.low = threads;
            rated.interval.high = failed.map(|failed| failed - 1.0).fold(rated.interval.high, f64::min);
        }
        for rated in [&mut soar, &mut socialites].into_iter().flatten() {
            self.own_up(rated);
        }
        let final_of = |rated: &Option<Rated>| rated.as_ref().and_then(|rated| rated.rating.confirmed_by);
        let is_one = final_of(&soar) == final_of(&socialites);
        // A final experiment that both ratings share gets one note.
        let noted = [soar.as_mut(), socialites.as_mut().filter(|_| !is_one)];
        for rated in noted.into_iter().flatten() {
            rated.rating.notes.extend(self.departure(&rated.rating));
        }
        Ok(Ratings { soar: soar.map(Rated::done), socialites: socialites.map(Rated::done) })
    }

    /// The throughput of a rating, and how many samples it counts for. A final experiment counts
    /// for as many experiments of the search as it is long, but for no more than were seen to
    /// agree.
    fn value_of(&self, rating: &Rating) -> Mean {
        let agreeing = self.results.point(rating.threads).map_or(0, |point| point.agreeing);
        Mean { per_s: rating.value, samples: agreeing.min(self.final_length(rating.threads)).max(1) }
    }

    /// The note on the final experiment of a rating, if it is far from the search.
    fn departure(&self, rating: &Rating) -> Option<String> {
        rating.confirmed_by?;
        let trial = self.finals.get(&rating.threads)?;
        let point = self.results.point(rating.threads).filter(Point::passed)?;
        let value = Rating { value: trial.verdict.figures.throughput_per_s, ..rating.clone() };
        let spread = Spread::of(&self.results, &self.limits);
        departure::note(trial, self.value_of(&value), point.mean(), &spread)
    }

    /// How many experiments of the search take as long as the final one with these threads.
    fn final_length(&self, threads: u32) -> usize {
        let searched = self.behind.get(&threads).into_iter().flatten().map(|sample| sample.seconds).fold(0.0, f64::max);
        match self.finals.get(&threads) {
            Some(trial) if searched > 0.0 => (seconds(&trial.limit) / searched).round() as usize,
            Some(_) => 1,
            // Without a final experiment the value is the mean of all that the search showed.
            None => usize::MAX,
        }
    }

    /// Runs a search to its end.
    fn drive(&mut self, search: Search) -> Result<Found, Failure> {
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

    /// Adds what an experiment of the search showed to the results of its T.
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

    /// Confirms what a search found with a final experiment. If that fails, the next lower T that
    /// passed is tried.
    fn confirmed(&mut self, found: &Found, name: &str) -> Result<Rated, Failure> {
        let mut rated = Rated {
            rating: Rating {
                value: self.searched(found.threads),
                threads: found.threads,
                interval: None,
                at_least: found.at_least,
                confirmed_by: None,
                unmeasured: false,
                rests_on: self.experiments(&found.rests_on),
                rests_on_void: None,
                notes: Vec::new(),
            },
            voids: found.void_threads.iter().map(|threads| self.void(*threads)).collect(),
            interval: found.interval,
        };
        if self.results.points().all(|point| point.ruling == Ruling::Void) {
            rated.rating.unmeasured = true;
            rated.voids = self.results.points().map(|point| self.void(point.threads)).collect();
            rated.rest_on(rated.voids.clone().into_iter().flat_map(|void| void.experiments));
        }
        for _ in 0..MOST_FINALS {
            if rated.rating.threads == 0 {
                break;
            }
            let trial = self.final_trial(rated.rating.threads, name)?;
            if !self.weigh(&mut rated, &trial) {
                break;
            }
        }
        Ok(rated)
    }

    /// Applies the final experiment of a rating's T. If it passed, it confirms the rating; else
    /// the next lower T that passed replaces T. Returns whether that one needs a final experiment
    /// of its own.
    fn weigh(&self, rated: &mut Rated, trial: &Trial) -> bool {
        let (verdict, threads) = (&trial.verdict, rated.rating.threads);
        rated.rest_on([verdict.experiment]);
        if verdict.ruling == Ruling::Pass {
            rated.rating.value = verdict.figures.throughput_per_s;
            rated.rating.confirmed_by = Some(verdict.experiment);
            return false;
        }
        let reasons = verdict.reasons.iter().map(|reason| brief(reason)).collect::<Vec<_>>().join("; ");
        let lower = self.lower_pass(threads);
        if verdict.ruling == Ruling::Void {
            let (experiments, reasons) = (vec![verdict.experiment], verdict.reasons.clone());
            rated.voids.push(Void { threads, experiments, reasons });
            if lower == 0 {
                // It says nothing about the store: what the search found stays, unconfirmed.
                return false;
            }
        }
        rated.rating.notes.push(format!(
            "T={threads} passed in the search but not in final experiment {} ({}: {reasons}){}",
            verdict.experiment,
            verdict.ruling.name(),
            if lower > 0 { format!("; next lower T that passed: {lower}") } else { String::new() }
        ));
        (rated.rating.threads, rated.rating.at_least) = (lower, false);
        // The rating now has only the short experiments at the lower T.
        rated.rating.value = self.searched(lower);
        rated.rest_on(self.experiments(&[lower]));
        lower > 0
    }

    /// The throughput that the search measured with this T; 0 without threads.
    fn searched(&self, threads: u32) -> f64 {
        self.results.point(threads).map_or(0.0, |point| point.throughput_per_s)
    }

    /// Applies final experiments that exist already, those of the other rating or of an earlier
    /// search, to a rating with their T that is not confirmed.
    fn adopt(&self, rated: &mut Rated) {
        while let Some(trial) = self.finals.get(&rated.rating.threads) {
            let is_known = rated.rating.rests_on.contains(&trial.verdict.experiment);
            if is_known || !self.weigh(rated, trial) {
                break;
            }
        }
    }

    /// Notes that a rating is unconfirmed, once no final experiment can confirm it any more.
    fn own_up(&self, rated: &mut Rated) {
        let rating = &mut rated.rating;
        if rating.threads > 0 && rating.confirmed_by.is_none() {
            let threads = rating.threads;
            rating.notes.push(format!("T={threads} is not confirmed by a final experiment"));
        }
    }

    /// The highest T below this one that passed, and whose final experiment, if any, passed too;
    /// 0 if there is none.
    fn lower_pass(&self, threads: u32) -> u32 {
        let holds = |threads: u32| self.finals.get(&threads).is_none_or(|trial| trial.verdict.ruling == Ruling::Pass);
        let mut lower = self.results.points().rev().filter(|point| point.threads < threads && point.passed());
        lower.find(|point| holds(point.threads)).map_or(0, |point| point.threads)
    }

    /// The experiments of the search with these T's. Void ones are included only where there are
    /// no others.
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

    /// The final experiment of a T, which both ratings share. It is kept apart from the samples
    /// of the search, which were shorter.
    fn final_trial(&mut self, threads: u32, name: &str) -> Result<Trial, Failure> {
        if let Some(trial) = self.finals.get(&threads) {
            return Ok(trial.clone());
        }
        let purpose = Purpose::Final(name.to_string());
        let mut trial = (self.run)(threads, &purpose)?;
        if trial.verdict.ruling == Ruling::Void {
            // It says nothing about the store, so it runs once more.
            trial = (self.run)(threads, &purpose)?;
        }
        self.finals.insert(threads, trial.clone());
        Ok(trial)
    }

    /// Replaces the SoAR if another final experiment, of the other rating or of an earlier
    /// search, had a higher throughput than its own. A difference within their spread changes
    /// nothing: chance must not undo the peak that the search found. A SoAR without a final
    /// experiment of its own takes the best one.
    fn raise(&self, soar: &mut Rated) {
        let passed = self.finals.values().filter(|trial| trial.verdict.ruling == Ruling::Pass);
        let throughput = |trial: &Trial| trial.verdict.figures.throughput_per_s;
        let Some(best) = passed.max_by(|a, b| throughput(a).total_cmp(&throughput(b))) else { return };
        let (threads, experiment) = (best.verdict.threads, best.verdict.experiment);
        let rating = &soar.rating;
        let raised = Rating { value: throughput(best), threads, confirmed_by: Some(experiment), ..rating.clone() };
        let spread = Spread::of(&self.results, &self.limits);
        let is_clear = spread.is_below(self.value_of(rating), self.value_of(&raised));
        if threads == rating.threads || !(is_clear || rating.confirmed_by.is_none()) {
            return;
        }
        let (found, is_confirmed) = (rating.threads, rating.confirmed_by.is_some());
        soar.rating = Rating { at_least: is_clear && threads == self.limits.max_threads, unmeasured: false, ..raised };
        let note = match (found, is_confirmed) {
            (0, _) => None,
            (_, true) => Some(format!(
                "the search found T={found}, but the final experiment with T={threads} had a higher throughput"
            )),
            (_, false) => Some(format!(
                "T={found} is not confirmed by a final experiment; of the confirmed ones T={threads} had the highest \
                 throughput"
            )),
        };
        soar.rating.notes.extend(note);
        soar.rest_on([experiment]);
        soar.rest_on(self.experiments(&[threads]));
    }

    /// The void experiments of the search with this T.
    fn void(&self, threads: u32) -> Void {
        let samples = self.behind.get(&threads).into_iter().flatten();
        let (experiments, reasons) = samples
            .filter(|sample| sample.ruling == Ruling::Void)
            .map(|sample| (sample.experiment, sample.reason.clone()))
            .unzip();
        Void { threads, experiments, reasons }
    }
}

#[cfg(test)]
mod tests;
