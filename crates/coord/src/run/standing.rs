//! Where the next experiment continues the trace, and what happens to an experiment whose store
//! is not in the state that it starts from.

use replayer::stores::LOAD_AGAIN;
use schemas::run::FragmentPosition;
use schemas::sla::Sla;
use schemas::verdict::{Between, Figures, Ruling, Verdict};
use schemas::workload::ActorWords;

use crate::failure::Failure;
use crate::run::trial::{Demand, Trial};
use crate::terminal::thousands;

/// A continued trace that ran out is extended to last for this many more experiments of that
/// length, because all experiments of a search share the trace.
const CONTINUED_RESERVE: f64 = 8.0;

/// A trace that ran out is extended to this many times the sessions that would have been enough,
/// because the next experiment may be faster.
const RESERVE: f64 = 1.25;

/// The state in which experiments have left the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    between: Between,
    /// Whether another tool has loaded the store, so that Encore cannot load it again.
    is_kept: bool,
    /// Why no experiment can continue on a store that is kept.
    ended_by: Option<String>,
    /// Where each fragment stands; empty when the next experiment begins with a load.
    positions: Vec<FragmentPosition>,
}

impl Standing {
    /// The state before the first experiment, which always begins with a load.
    pub fn new(between: Between) -> Standing {
        Standing { between, is_kept: false, ended_by: None, positions: Vec::new() }
    }

    /// The state before the first experiment on records that another tool has loaded, and on which
    /// the trace has been replayed up to these positions.
    pub fn kept(positions: Vec<FragmentPosition>) -> Standing {
        Standing { between: Between::Continue, is_kept: true, ended_by: None, positions }
    }

    /// Where the next experiment begins in each fragment. A fragment without a position begins at
    /// its start.
    pub fn positions(&self) -> &[FragmentPosition] {
        &self.positions
    }

    /// Whether the next experiment continues the trace where the last one stopped.
    pub fn is_continued(&self) -> bool {
        !self.positions.is_empty()
    }

    /// Sessions of all fragments that are in the store already.
    pub fn done(&self) -> u64 {
        self.positions.iter().map(FragmentPosition::sessions_run).sum()
    }

    /// Makes the next experiment begin with a load.
    fn reload(&mut self) {
        self.positions.clear();
    }

    /// Records how an experiment left the store. If the next one should have continued but has to
    /// begin with a load, returns what to tell the user.
    pub fn after(&mut self, trial: &Trial) -> Option<String> {
        let why = self.moved(trial)?;
        if !self.is_kept {
            return Some(format!("the next experiment loads the store first: {why}"));
        }
        let note = format!("no other experiment can run on the records that were kept: {why}");
        self.ended_by = Some(why);
        Some(note)
    }

    /// Takes the positions after an experiment, or returns why they are not known.
    fn moved(&mut self, trial: &Trial) -> Option<String> {
        self.reload();
        if self.between == Between::Load {
            return None;
        }
        let experiment = trial.verdict.experiment;
        if trial.lost().is_some() {
            return Some(format!("a replayer was lost in experiment {experiment}"));
        }
        let Some(report) = &trial.report else {
            return Some(format!("experiment {experiment} found the store in the wrong state"));
        };
        if report.writes_not_ok > 0 {
            let lost = report.writes_not_ok;
            return Some(format!("{lost} writes of experiment {experiment} did not succeed"));
        }
        self.positions = report.positions.clone();
        None
    }

    /// How many sessions a trace set of `sessions` is extended to, when an experiment that began
    /// after `before` sessions would have needed `needed`. Always more than it has: if the trace
    /// met the estimate already, the estimate was too low.
    pub fn extension(&self, before: u64, needed: u64, sessions: u64) -> u64 {
        let enough = match self.between {
            Between::Load => (needed as f64 * RESERVE).ceil() as u64,
            Between::Continue => {
                let own = needed.saturating_sub(before) as f64 * CONTINUED_RESERVE;
                (self.done() + own.ceil() as u64).max(sessions.saturating_mul(2))
            }
        };
        if enough > sessions { enough } else { sessions.saturating_mul(2) }
    }
}

/// How often the trace is extended although the estimate says that it was long enough when it ran
/// out.
const MOST_BLIND_EXTENSIONS: u32 = 2;

/// How often one experiment may extend the trace. Each estimate comes from a longer run than the
/// one before, so a need for more extensions means that something else is wrong.
const MOST_EXTENSIONS: u32 = 4;

/// The extensions of the trace for one experiment.
#[derive(Debug, Default)]
pub struct Extensions {
    count: u32,
    blind: u32,
}

impl Extensions {
    /// Whether to extend the trace once more, after it ran out at `replayed` sessions and the
    /// estimate says that `needed` are enough.
    pub fn once_more(&mut self, replayed: u64, needed: u64) -> bool {
        let is_blind = needed <= replayed;
        if self.count == MOST_EXTENSIONS || (is_blind && self.blind == MOST_BLIND_EXTENSIONS) {
            return false;
        }
        self.count += 1;
        self.blind += u32::from(is_blind);
        true
    }

    /// Why the trace is not extended further, and what to do. `actors` is how many actors
    /// there are and what they are called, if each acts in one session at a time.
    pub fn given_up(&self, demand: Demand, sessions: u64, actors: Option<(u64, ActorWords)>) -> String {
        let crowd = actors.filter(|(actors, _)| u64::from(demand.threads) > *actors).map(|(actors, words)| {
            let (count, name) = (thousands(actors), words.plural);
            format!(
                ": {count} {name}, each in one session at a time, keep at most {count} threads busy; \
                 use fewer threads, or a workload with more {name}"
            )
        });
        format!(
            "trace too short for {}: {} extensions, up to {} sessions, did not help; no further extension{}",
            demand.named(),
            self.count,
            thousands(sessions),
            crowd.unwrap_or_else(|| format!(": use {}, or a shorter experiment", demand.less()))
        )
    }
}

/// The outcome of an attempt to run an experiment.
#[derive(Debug, PartialEq)]
pub enum Attempt<R> {
    /// It ran.
    Ran(R),
    /// The store was not in the state that the experiment starts from, for this reason.
    Refused(String),
    /// A replayer was lost before the experiment began, for this reason.
    Lost(String),
}

/// Attempts an experiment from the state that the store is in. If the store cannot be continued,
/// attempts it once more after a load, and reports that with `say`.
pub fn attempt<R>(
    standing: &mut Standing,
    say: &mut dyn FnMut(&str),
    run: &mut dyn FnMut(&Standing) -> Result<R, Failure>,
) -> Result<Attempt<R>, Failure> {
    if let Some(why) = &standing.ended_by {
        return Err(unkept(why));
    }
    let refused = match run(standing) {
        Ok(ran) => return Ok(Attempt::Ran(ran)),
        Err(Failure::State(why)) if standing.is_kept => return Err(unkept(&why)),
        Err(Failure::State(why)) => why,
        Err(Failure::Lost(why)) => return Ok(Attempt::Lost(why)),
        Err(other) => return Err(other),
    };
    if !standing.is_continued() {
        return Ok(Attempt::Refused(refused));
    }
    say(&format!("cannot continue on this store ({refused}): loading it again"));
    standing.reload();
    match run(standing) {
        Ok(ran) => Ok(Attempt::Ran(ran)),
        Err(Failure::State(why)) => Ok(Attempt::Refused(why)),
        Err(Failure::Lost(why)) => Ok(Attempt::Lost(why)),
        Err(other) => Err(other),
    }
}

/// Why no experiment can run on records that another tool has loaded.
fn unkept(why: &str) -> Failure {
    Failure::tool(format!("--keep-data: the trace cannot continue on the store's records: {why}; {LOAD_AGAIN}"))
}

/// The verdict on an experiment that never ran, for this reason.
pub fn never_ran(experiment: u32, demand: Demand, sla: Sla, why: String) -> Verdict {
    Verdict {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment,
        threads: demand.threads,
        rate_per_s: demand.rate_per_s.map(f64::from),
        sla,
        ruling: Ruling::Void,
        reasons: vec![why],
        figures: Figures::default(),
        replayers: Vec::new(),
        sealed: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use schemas::run::Purpose;
    use schemas::workload::Workload;
    use schemas::workload::kv::KvWorkload;
    use schemas::workload::social::SocialWorkload;

    use super::*;
    use crate::run::testing::trial;

    /// An experiment that left fragment 0 after 40 sessions and fragment 1 after 60.
    fn left() -> Trial {
        let mut trial = trial(3, 4, 100.0, Ruling::Pass, Purpose::Search);
        let position = FragmentPosition::at;
        trial.report.as_mut().unwrap().positions = vec![position(0, 40), position(1, 60)];
        trial
    }

    fn with_failed(reads: u64, writes: u64) -> Trial {
        let mut trial = left();
        let report = trial.report.as_mut().unwrap();
        (report.failed, report.writes_not_ok) = (reads + writes, writes);
        trial
    }

    #[test]
    fn a_continued_trace_is_taken_up_where_it_was_left() {
        let mut standing = Standing::new(Between::Continue);
        assert!(!standing.is_continued());
        assert_eq!(standing.after(&left()), None);
        assert_eq!((standing.positions(), standing.done()), (&left().report.unwrap().positions[..], 100));
        let mut loaded = Standing::new(Between::Load);
        assert_eq!(loaded.after(&left()), None);
        assert_eq!((loaded.is_continued(), loaded.done()), (false, 0));
    }

    #[test]
    fn failed_writes_require_a_load_and_failed_reads_do_not() {
        let mut standing = Standing::new(Between::Continue);
        assert_eq!(standing.after(&with_failed(2, 0)), None);
        assert!(standing.is_continued());
        let why = standing.after(&with_failed(0, 2));
        assert_eq!(
            why.as_deref(),
            Some("the next experiment loads the store first: 2 writes of experiment 3 did not succeed")
        );
        assert!(!standing.is_continued());
        let never_ran = Trial { report: None, ..left() };
        assert!(standing.after(&never_ran).unwrap().contains("experiment 3 found the store in the wrong state"));
        // If each experiment begins with a load anyway, there is no reason to report.
        assert_eq!(Standing::new(Between::Load).after(&with_failed(0, 2)), None);
    }

    /// Encore cannot load again what another tool has loaded, so it stops instead.
    #[test]
    fn kept_records_are_never_loaded() {
        let mut standing = Standing::kept(left().report.unwrap().positions);
        let fails = |standing: &mut Standing| {
            let mut never = |_: &str| panic!("a load is announced");
            attempt::<u32>(standing, &mut never, &mut |_| Err(Failure::State("at session 7".into()))).unwrap_err()
        };
        let text = fails(&mut standing).to_string();
        assert!(text.contains("--keep-data") && text.contains("at session 7; load the records again"), "{text}");
        assert_eq!(standing.after(&left()), None);
        let note = standing.after(&with_failed(0, 2)).unwrap();
        assert!(note.starts_with("no other experiment can run") && note.contains("2 writes of experiment 3"), "{note}");
        let text = fails(&mut standing).to_string();
        assert!(text.contains("2 writes of experiment 3 did not succeed"), "{text}");
    }

    #[test]
    fn a_continued_trace_is_extended_for_many_experiments() {
        assert_eq!(Standing::new(Between::Load).extension(0, 1000, 500), 1250);
        let mut standing = Standing::new(Between::Continue);
        standing.after(&left());
        // 100 sessions are done, and the experiment that ran out needed 50 from its beginning.
        assert_eq!(standing.extension(70, 120, 100), 500);
        assert_eq!(standing.extension(70, 120, 900), 1800);
    }

    /// A trace of 200,000 sessions was "extended" to 5,806, which gave the same trace again and
    /// again.
    #[test]
    fn an_extension_is_longer_than_the_trace() {
        for between in [Between::Load, Between::Continue] {
            assert_eq!(Standing::new(between).extension(0, 4645, 200_000), 400_000);
        }
        assert_eq!(Standing::new(Between::Load).extension(0, 800, 1000), 2000);
    }

    #[test]
    fn extensions_stop_when_they_do_not_help() {
        let mut sound = Extensions::default();
        let often = (1u64..).take_while(|n| sound.once_more(1000 * n, 1000 * n + 1)).count();
        assert_eq!(often, 4);
        let mut blind = Extensions::default();
        assert_eq!((0..9).filter(|_| blind.once_more(200_000, 5_806)).count(), 2);
        assert_eq!(
            blind.given_up(Demand::threads(20_000), 800_000, Some((10_000, SocialWorkload::ACTORS))),
            "trace too short for T=20000: 2 extensions, up to 800,000 sessions, did not help; no further extension: \
             10,000 members, each in one session at a time, keep at most 10,000 threads busy; use fewer threads, or a \
             workload with more members"
        );
        let said = blind.given_up(Demand::threads(20_000), 800_000, Some((4, KvWorkload::ACTORS)));
        assert!(
            said.ends_with(
                ": 4 clients, each in one session at a time, keep at most 4 threads busy; use fewer \
                                threads, or a workload with more clients"
            ),
            "{said}"
        );
        for actors in [None, Some(20_000)] {
            let actors = actors.map(|count| (count, SocialWorkload::ACTORS));
            let said = blind.given_up(Demand::threads(20_000), 800_000, actors);
            assert!(said.ends_with("no further extension: use fewer threads, or a shorter experiment"), "{said}");
        }
    }

    #[test]
    fn an_experiment_that_never_ran_is_void_and_says_why() {
        let verdict = never_ran(7, Demand::threads(64), Sla::default(), "it is at session 3".into());
        assert_eq!((verdict.experiment, verdict.threads, verdict.ruling), (7, 64, Ruling::Void));
        assert_eq!(verdict.reasons, ["it is at session 3"]);
    }

    /// Attempts an experiment whose store gives these answers in turn. Also returns whether each
    /// attempt continued the trace, and what was reported.
    fn check(continued: bool, answers: Vec<Result<u32, Failure>>) -> (Result<Attempt<u32>, String>, Vec<bool>, String) {
        let mut standing = Standing::new(Between::Continue);
        if continued {
            standing.after(&left());
        }
        let (mut tries, mut said) = (Vec::new(), String::new());
        let mut answers = answers.into_iter();
        let result = attempt(&mut standing, &mut |line| said.push_str(line), &mut |standing| {
            tries.push(standing.is_continued());
            answers.next().unwrap()
        });
        assert_eq!(answers.count(), 0, "it was not tried often enough");
        (result.map_err(|failure| failure.to_string()), tries, said)
    }

    fn state(why: &str) -> Result<u32, Failure> {
        Err(Failure::State(why.to_string()))
    }

    #[test]
    fn a_store_that_cannot_be_continued_is_loaded_once() {
        assert_eq!(check(true, vec![Ok(1)]), (Ok(Attempt::Ran(1)), vec![true], String::new()));
        let (result, tries, said) = check(true, vec![state("at session 7"), Ok(2)]);
        assert_eq!((result, tries), (Ok(Attempt::Ran(2)), vec![true, false]));
        assert!(said.contains("cannot continue on this store (at session 7): loading it again"), "{said}");
        let (result, tries, _) = check(true, vec![state("a"), state("b")]);
        assert_eq!((result, tries), (Ok(Attempt::Refused("b".into())), vec![true, false]));
        let (result, tries, said) = check(false, vec![state("a")]);
        assert_eq!((result, tries, said.as_str()), (Ok(Attempt::Refused("a".into())), vec![false], ""));
        let (result, tries, _) = check(true, vec![state("a"), Err(Failure::Lost("gone".into()))]);
        assert_eq!((result, tries), (Ok(Attempt::Lost("gone".into())), vec![true, false]));
        let (result, tries, _) = check(true, vec![Err(Failure::Lost("gone".into()))]);
        assert_eq!((result, tries), (Ok(Attempt::Lost("gone".into())), vec![true]));
        let (result, tries, _) = check(true, vec![Err(Failure::tool("gone"))]);
        assert_eq!((result, tries), (Err("gone".into()), vec![true]));
    }
}
