//! A rating in progress: runs the searches, keeps what each experiment showed, and confirms what
//! the searches found. It names loads in words of their unit; otherwise it does not know the unit.

mod rated;

use std::collections::BTreeMap;

use schemas::run::Purpose;
use schemas::verdict::{Rating, Ruling};

use self::rated::{Rated, Sample, seconds};
use super::departure;
use super::rating::{Method, Wanted};
use super::voids::{self, Void, brief};
use crate::failure::Failure;
use crate::run::trial::Trial;
use crate::search::{
    Basis, Found, Limits, Mean, Next, Point, Probe, Results, Spread, Unit, exhaustive, rate, soar, socialites,
};

pub(super) use self::rated::{Ratings, Searched};

/// How many loads a rating tries to confirm before it stays unconfirmed.
const MOST_FINALS: u32 = 3;

/// Runs an experiment with a load.
pub(super) type Run<'a> = dyn FnMut(u32, &Purpose) -> Result<Trial, Failure> + 'a;

/// The highest value of a rating that a failed load leaves possible.
type Below = fn(u32) -> f64;

/// One of the searches.
type Search = fn(&Results, &Limits) -> Next;

/// The state of a rating in progress: what each load showed, and how to run more experiments.
pub(super) struct Rater<'a> {
    run: &'a mut Run<'a>,
    limits: Limits,
    unit: Unit,
    results: Results,
    /// The experiments behind the results of a load, in the same order.
    behind: BTreeMap<u32, Vec<Sample>>,
    pub(super) finals: BTreeMap<u32, Trial>,
}

impl<'a> Rater<'a> {
    pub(super) fn new(run: &'a mut Run<'a>, limits: Limits, unit: Unit) -> Rater<'a> {
        Rater { run, limits, unit, results: Results::new(), behind: BTreeMap::new(), finals: BTreeMap::new() }
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
        let rate = if wanted.has_rate() { Some(self.drive(rate::next)?) } else { None };
        Ok(Searched { soar, socialites, rate })
    }

    /// Confirms what the searches found with final experiments.
    pub(super) fn confirm(&mut self, searched: &Searched) -> Result<Ratings, Failure> {
        let load = |found: &Option<Found>| found.as_ref().map(|found| found.load);
        let both = load(&searched.soar) == load(&searched.socialites);
        let name = if both { Wanted::Both } else { Wanted::Soar }.name();
        let mut soar = self.confirmed_one(&searched.soar, name)?;
        let mut socialites = self.confirmed_one(&searched.socialites, Wanted::Socialites.name())?;
        let mut by_rate = self.confirmed_one(&searched.rate, Wanted::Rate.name())?;
        // Only now are all final experiments known: those of one rating confirm the other too.
        if let Some(rated) = &mut soar {
            self.adopt(rated);
            self.raise(rated);
            let Mean { per_s, samples } = self.value_of(rated.load, rated.rating.value);
            rated.interval = Spread::of(&self.results, &self.limits).interval(per_s, samples);
        }
        for (rated, below) in [(&mut socialites, socialites::below as Below), (&mut by_rate, rate::below as Below)] {
            let Some(rated) = rated else { continue };
            self.adopt(rated);
            let unconfirmed = self.finals.iter().filter(|(_, trial)| trial.verdict.ruling != Ruling::Pass);
            rated.value_is_load(unconfirmed.map(|(load, _)| *load), below);
        }
        for rated in [&mut soar, &mut socialites, &mut by_rate].into_iter().flatten() {
            self.own_up(rated);
        }
        let final_of = |rated: &Option<Rated>| rated.as_ref().and_then(|rated| rated.rating.confirmed_by);
        let is_one = final_of(&soar) == final_of(&socialites);
        // A final experiment that two ratings share gets one note.
        let noted = [soar.as_mut(), socialites.as_mut().filter(|_| !is_one), by_rate.as_mut()];
        for rated in noted.into_iter().flatten() {
            let note = self.departure(rated);
            rated.rating.notes.extend(note);
        }
        let done = |rated: Option<Rated>| rated.map(|rated| self.done(rated));
        Ok(Ratings { soar: done(soar), socialites: done(socialites), rate: done(by_rate) })
    }

    /// Confirms what a search found, if it ran.
    fn confirmed_one(&mut self, found: &Option<Found>, name: &str) -> Result<Option<Rated>, Failure> {
        found.as_ref().map(|found| self.confirmed(found, name)).transpose()
    }

    /// The finished rating, with its threads, its interval and its void experiments.
    fn done(&self, rated: Rated) -> Rating {
        let Rated { load, mut rating, interval, voids } = rated;
        rating.threads = self.threads(load);
        // If nothing failed, the interval has no upper border.
        let is_open = rating.at_least && interval.basis == Basis::Border;
        if load > 0 && !is_open {
            rating.interval = Some(interval.to_document(self.unit));
        }
        rating.rests_on_void = match rating.unmeasured {
            true => Some(voids::nothing_measured(&voids)),
            false => voids::doubts(&voids, load, self.unit),
        };
        rating
    }

    /// The threads of the experiments with a load; 0 if none ran.
    fn threads(&self, load: u32) -> u32 {
        let of_final = self.finals.get(&load).map(|trial| trial.verdict.threads);
        let of_search = self.behind.get(&load).and_then(|samples| samples.first()).map(|sample| sample.threads);
        of_final.or(of_search).unwrap_or(0)
    }

    /// The throughput of a rating with this load, and how many samples it counts for. A final
    /// experiment counts for as many experiments of the search as it is long, but for no more than
    /// were seen to agree.
    fn value_of(&self, load: u32, per_s: f64) -> Mean {
        let agreeing = self.results.point(load).map_or(0, |point| point.agreeing);
        Mean { per_s, samples: agreeing.min(self.final_length(load)).max(1) }
    }

    /// The note on the final experiment of a rating, if it is far from the search.
    fn departure(&self, rated: &Rated) -> Option<String> {
        rated.rating.confirmed_by?;
        let trial = self.finals.get(&rated.load)?;
        let point = self.results.point(rated.load).filter(Point::passed)?;
        let long = self.value_of(rated.load, trial.verdict.figures.throughput_per_s);
        let spread = Spread::of(&self.results, &self.limits);
        departure::note(trial, &self.unit.named(rated.load), long, point.mean(), &spread)
    }

    /// How many experiments of the search take as long as the final one with this load.
    fn final_length(&self, load: u32) -> usize {
        let searched = self.behind.get(&load).into_iter().flatten().map(|sample| sample.seconds).fold(0.0, f64::max);
        match self.finals.get(&load) {
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
                Next::Probe { load } => {
                    let trial = (self.run)(load, &Purpose::Search)?;
                    self.keep(&trial);
                }
            }
        }
    }

    /// Adds what an experiment of the search showed to the results of its load.
    fn keep(&mut self, trial: &Trial) {
        let (verdict, load) = (&trial.verdict, trial.load(self.unit));
        let probe = Probe { throughput_per_s: verdict.figures.throughput_per_s, ruling: verdict.ruling };
        self.results.add(load, probe);
        let sample = Sample {
            experiment: verdict.experiment,
            threads: verdict.threads,
            ruling: verdict.ruling,
            reason: verdict.reasons.join("; "),
            seconds: seconds(&trial.limit),
        };
        self.behind.entry(load).or_default().push(sample);
    }

    /// Confirms what a search found with a final experiment. If that fails, the next lower load
    /// that passed is tried.
    fn confirmed(&mut self, found: &Found, name: &str) -> Result<Rated, Failure> {
        let mut rated = Rated {
            load: found.load,
            rating: Rating {
                value: self.searched(found.load),
                threads: 0,
                interval: None,
                at_least: found.at_least,
                confirmed_by: None,
                unmeasured: false,
                rests_on: self.experiments(&found.rests_on),
                rests_on_void: None,
                notes: Vec::new(),
            },
            voids: found.void_loads.iter().map(|load| self.void(*load)).collect(),
            interval: found.interval,
        };
        if self.results.points().all(|point| point.ruling == Ruling::Void) {
            rated.rating.unmeasured = true;
            rated.voids = self.results.points().map(|point| self.void(point.load)).collect();
            rated.rest_on(rated.voids.clone().into_iter().flat_map(|void| void.experiments));
        }
        for _ in 0..MOST_FINALS {
            if rated.load == 0 {
                break;
            }
            let trial = self.final_trial(rated.load, name)?;
            if !self.weigh(&mut rated, &trial) {
                break;
            }
        }
        Ok(rated)
    }

    /// Applies the final experiment of a rating's load. If it passed, it confirms the rating; else
    /// the next lower load that passed takes its place. Returns whether that one needs a final experiment
    /// of its own.
    fn weigh(&self, rated: &mut Rated, trial: &Trial) -> bool {
        let (verdict, load) = (&trial.verdict, rated.load);
        rated.rest_on([verdict.experiment]);
        if verdict.ruling == Ruling::Pass {
            rated.rating.value = verdict.figures.throughput_per_s;
            rated.rating.confirmed_by = Some(verdict.experiment);
            return false;
        }
        let reasons = verdict.reasons.iter().map(|reason| brief(reason)).collect::<Vec<_>>().join("; ");
        let lower = self.lower_pass(load);
        if verdict.ruling == Ruling::Void {
            let (experiments, reasons) = (vec![verdict.experiment], verdict.reasons.clone());
            rated.voids.push(Void { load, experiments, reasons });
            if lower == 0 {
                // It says nothing about the store: what the search found stays, unconfirmed.
                return false;
            }
        }
        rated.rating.notes.push(format!(
            "{} passed in the search but not in final experiment {} ({}: {reasons}){}",
            self.unit.named(load),
            verdict.experiment,
            verdict.ruling.name(),
            if lower > 0 { format!("; next lower {} that passed: {lower}", self.unit.brief()) } else { String::new() }
        ));
        (rated.load, rated.rating.at_least) = (lower, false);
        // The rating now has only the short experiments at the lower load.
        rated.rating.value = self.searched(lower);
        rated.rest_on(self.experiments(&[lower]));
        lower > 0
    }

    /// The throughput that the search measured with this load; 0 without one.
    fn searched(&self, load: u32) -> f64 {
        self.results.point(load).map_or(0.0, |point| point.throughput_per_s)
    }

    /// Applies final experiments that exist already, those of the other rating or of an earlier
    /// search, to a rating with their load that is not confirmed.
    fn adopt(&self, rated: &mut Rated) {
        while let Some(trial) = self.finals.get(&rated.load) {
            let is_known = rated.rating.rests_on.contains(&trial.verdict.experiment);
            if is_known || !self.weigh(rated, trial) {
                break;
            }
        }
    }

    /// Notes that a rating is unconfirmed, once no final experiment can confirm it any more.
    fn own_up(&self, rated: &mut Rated) {
        if rated.load > 0 && rated.rating.confirmed_by.is_none() {
            let load = self.unit.named(rated.load);
            rated.rating.notes.push(format!("{load} is not confirmed by a final experiment"));
        }
    }

    /// The highest load below this one that passed, and whose final experiment, if any, passed too;
    /// 0 if there is none.
    fn lower_pass(&self, load: u32) -> u32 {
        let holds = |load: u32| self.finals.get(&load).is_none_or(|trial| trial.verdict.ruling == Ruling::Pass);
        let mut lower = self.results.points().rev().filter(|point| point.load < load && point.passed());
        lower.find(|point| holds(point.load)).map_or(0, |point| point.load)
    }

    /// The experiments of the search with these loads. Void ones are included only where there are
    /// no others.
    fn experiments(&self, loads: &[u32]) -> Vec<u32> {
        let is_void = |load: &u32| self.results.point(*load).is_some_and(|p| p.ruling == Ruling::Void);
        let samples = loads.iter().flat_map(|load| {
            let all = self.behind.get(load).map_or(&[][..], Vec::as_slice);
            let is_void = is_void(load);
            all.iter().filter(move |sample| is_void || sample.ruling != Ruling::Void)
        });
        let mut experiments: Vec<u32> = samples.map(|sample| sample.experiment).collect();
        experiments.sort_unstable();
        experiments
    }

    /// The final experiment of a load, which both ratings share. It is kept apart from the samples
    /// of the search, which were shorter.
    fn final_trial(&mut self, load: u32, name: &str) -> Result<Trial, Failure> {
        if let Some(trial) = self.finals.get(&load) {
            return Ok(trial.clone());
        }
        let purpose = Purpose::Final(name.to_string());
        let mut trial = (self.run)(load, &purpose)?;
        if trial.verdict.ruling == Ruling::Void {
            // It says nothing about the store, so it runs once more.
            trial = (self.run)(load, &purpose)?;
        }
        self.finals.insert(load, trial.clone());
        Ok(trial)
    }

    /// Replaces the SoAR if another final experiment, of the other rating or of an earlier
    /// search, had a higher throughput than its own. A difference within their spread changes
    /// nothing: chance must not undo the peak that the search found. A SoAR without a final
    /// experiment of its own takes the best one.
    fn raise(&self, soar: &mut Rated) {
        let passed = self.finals.iter().filter(|(_, trial)| trial.verdict.ruling == Ruling::Pass);
        let throughput = |trial: &Trial| trial.verdict.figures.throughput_per_s;
        let Some((load, best)) = passed.max_by(|(_, a), (_, b)| throughput(a).total_cmp(&throughput(b))) else {
            return;
        };
        let (load, experiment, value) = (*load, best.verdict.experiment, throughput(best));
        let (found, rating) = (soar.load, &soar.rating);
        let spread = Spread::of(&self.results, &self.limits);
        let is_clear = spread.is_below(self.value_of(found, rating.value), self.value_of(load, value));
        if load == found || !(is_clear || rating.confirmed_by.is_none()) {
            return;
        }
        let is_confirmed = rating.confirmed_by.is_some();
        let at_least = is_clear && load == self.limits.max_load;
        soar.load = load;
        soar.rating = Rating { value, confirmed_by: Some(experiment), at_least, unmeasured: false, ..rating.clone() };
        let (searched, raised) = (self.unit.named(found), self.unit.named(load));
        let note = match (found, is_confirmed) {
            (0, _) => None,
            (_, true) => Some(format!(
                "the search found {searched}, but the final experiment with {raised} had a higher throughput"
            )),
            (_, false) => Some(format!(
                "{searched} is not confirmed by a final experiment; of the confirmed ones {raised} had the highest \
                 throughput"
            )),
        };
        soar.rating.notes.extend(note);
        soar.rest_on([experiment]);
        soar.rest_on(self.experiments(&[load]));
    }

    /// The void experiments of the search with this load.
    fn void(&self, load: u32) -> Void {
        let samples = self.behind.get(&load).into_iter().flatten();
        let (experiments, reasons) = samples
            .filter(|sample| sample.ruling == Ruling::Void)
            .map(|sample| (sample.experiment, sample.reason.clone()))
            .unzip();
        Void { load, experiments, reasons }
    }
}

#[cfg(test)]
mod tests;
