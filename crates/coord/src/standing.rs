//! Where the next experiment takes the trace up, and what becomes of one whose
//! store is not in the state that it starts from.

use schemas::run::FragmentPosition;
use schemas::sla::Sla;
use schemas::verdict::{Between, Figures, Ruling, Verdict};

use crate::campaign::Trial;
use crate::failure::Failure;
use crate::render::thousands;

/// How many more experiments of the length of the one that ran out a continued
/// trace is made to last: all of a search's come from the same trace.
const CONTINUED_RESERVE: f64 = 8.0;

/// A trace that ran out is extended to this many times what would have been
/// enough, because the next experiment may be faster.
const RESERVE: f64 = 1.25;

/// The state in which experiments have left the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    between: Between,
    /// Where each fragment stands; empty when the next experiment begins with a load.
    positions: Vec<FragmentPosition>,
}

impl Standing {
    /// Before the first experiment, which begins with a load in any case.
    pub fn new(between: Between) -> Standing {
        Standing { between, positions: Vec::new() }
    }

    /// Where the next experiment begins in each fragment; where nothing is
    /// said, at the beginning.
    pub fn positions(&self) -> &[FragmentPosition] {
        &self.positions
    }

    /// Whether the next experiment takes the trace up where the last one stopped.
    pub fn is_continued(&self) -> bool {
        !self.positions.is_empty()
    }

    /// Sessions of all fragments that are in the store already.
    pub fn done(&self) -> u64 {
        self.positions.iter().map(FragmentPosition::sessions_run).sum()
    }

    /// The next experiment begins with a load.
    pub fn reload(&mut self) {
        self.positions.clear();
    }

    /// Takes in how an experiment left the store. Gives the reason when the next
    /// one would have continued and has to begin with a load instead.
    pub fn after(&mut self, trial: &Trial) -> Option<String> {
        self.reload();
        if self.between == Between::Load {
            return None;
        }
        let experiment = trial.verdict.experiment;
        if trial.lost().is_some() {
            return Some(format!("a replayer was lost in experiment {experiment}"));
        }
        let Some(report) = &trial.report else {
            return Some(format!("experiment {experiment} found the store in another state than it should be"));
        };
        let writes = trial.verdict.figures.by_action.iter().filter(|(action, _)| action.is_write());
        let lost: u64 = writes.map(|(_, figures)| figures.failed + figures.unknown + figures.skipped).sum();
        if lost > 0 {
            return Some(format!("{lost} writes of experiment {experiment} did not succeed"));
        }
        self.positions = report.positions.clone();
        None
    }

    /// How many sessions a trace set of `sessions` is extended to when an
    /// experiment that began after `before` sessions would have needed `needed`. Always more
    /// than it has: an estimate that it met already was too low.
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

/// How often the trace is extended against the estimate, which says that it was long enough
/// when it ran out.
const MOST_BLIND_EXTENSIONS: u32 = 2;

/// How often one experiment may extend the trace: each time its need was
/// estimated from a longer run, so more says that something else is wrong.
const MOST_EXTENSIONS: u32 = 4;

/// The extensions of the trace for one experiment.
#[derive(Debug, Default)]
pub struct Extensions {
    count: u32,
    blind: u32,
}

impl Extensions {
    /// Whether the trace is extended once more, when it ran out after `replayed` sessions and
    /// `needed` are said to be enough.
    pub fn once_more(&mut self, replayed: u64, needed: u64) -> bool {
        let is_blind = needed <= replayed;
        if self.count == MOST_EXTENSIONS || (is_blind && self.blind == MOST_BLIND_EXTENSIONS) {
            return false;
        }
        self.count += 1;
        self.blind += u32::from(is_blind);
        true
    }

    /// Why the trace is not extended any more, and what to do. `socialites` is how many members
    /// can act at the same time, when each acts in one session at a time.
    pub fn given_up(&self, threads: u32, sessions: u64, socialites: Option<u64>) -> String {
        let crowd = socialites.filter(|socialites| u64::from(threads) > *socialites).map(|socialites| {
            let members = thousands(socialites);
            format!(
                ": {members} members, each in one session at a time, keep at most {members} threads busy; \
                 take fewer threads, or a workload with more members"
            )
        });
        format!(
            "the trace ran out again with T={threads}: {} extensions, up to {} sessions, did not help, and it is not extended further{}",
            self.count,
            thousands(sessions),
            crowd.unwrap_or_else(|| ": take fewer threads, or a shorter experiment".to_string())
        )
    }
}

/// What came of trying an experiment.
#[derive(Debug, PartialEq)]
pub enum Attempt<R> {
    /// It ran.
    Ran(R),
    /// The store was not in the state that it starts from, for this reason.
    Refused(String),
    /// A replayer was lost before it began.
    Lost(String),
}

/// Tries an experiment from where the store stands. When the store cannot be
/// continued it gets one more chance from a load; `say` tells people so.
pub fn attempt<R>(
    standing: &mut Standing,
    say: &mut dyn FnMut(&str),
    run: &mut dyn FnMut(&Standing) -> Result<R, Failure>,
) -> Result<Attempt<R>, Failure> {
    let refused = match run(standing) {
        Ok(ran) => return Ok(Attempt::Ran(ran)),
        Err(Failure::State(why)) => why,
        Err(Failure::Lost(why)) => return Ok(Attempt::Lost(why)),
        Err(other) => return Err(other),
    };
    if !standing.is_continued() {
        return Ok(Attempt::Refused(refused));
    }
    say(&format!("the store cannot be continued ({refused}): the experiment starts from a load"));
    standing.reload();
    match run(standing) {
        Ok(ran) => Ok(Attempt::Ran(ran)),
        Err(Failure::State(why)) => Ok(Attempt::Refused(why)),
        Err(Failure::Lost(why)) => Ok(Attempt::Lost(why)),
        Err(other) => Err(other),
    }
}

/// The verdict on an experiment that never ran, for this reason.
pub fn never_ran(experiment: u32, threads: u32, sla: Sla, why: String) -> Verdict {
    Verdict {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment,
        threads,
        sla,
        ruling: Ruling::Void,
        reasons: vec![why],
        figures: Figures::default(),
        replayers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use schemas::run::Purpose;
    use schemas::social::Action;

    use super::*;
    use crate::render::testing::trial;

    /// An experiment that left fragment 0 after 40 sessions and fragment 1 after 60.
    fn left() -> Trial {
        let mut trial = trial(3, 4, 100.0, Ruling::Pass, Purpose::Search);
        let position = FragmentPosition::at;
        trial.report.as_mut().unwrap().positions = vec![position(0, 40), position(1, 60)];
        trial
    }

    fn with_errors(action: Action) -> Trial {
        let mut trial = left();
        trial.verdict.figures.by_action.entry(action).or_default().failed = 2;
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
    fn lost_writes_ask_for_a_load_and_lost_reads_do_not() {
        let mut standing = Standing::new(Between::Continue);
        assert_eq!(standing.after(&with_errors(Action::ViewProfile)), None);
        assert!(standing.is_continued());
        let why = standing.after(&with_errors(Action::InviteFriend));
        assert_eq!(why.as_deref(), Some("2 writes of experiment 3 did not succeed"));
        assert!(!standing.is_continued());
        let never_ran = Trial { report: None, ..left() };
        assert!(standing.after(&never_ran).unwrap().contains("experiment 3 found the store in another state"));
        // Where each experiment begins with a load anyway, there is nothing to say.
        assert_eq!(Standing::new(Between::Load).after(&with_errors(Action::InviteFriend)), None);
    }

    #[test]
    fn a_continued_trace_is_extended_for_many_experiments() {
        assert_eq!(Standing::new(Between::Load).extension(0, 1000, 500), 1250);
        let mut standing = Standing::new(Between::Continue);
        standing.after(&left());
        // 100 are done, and the one that ran out needed 50 from its beginning on.
        assert_eq!(standing.extension(70, 120, 100), 500);
        assert_eq!(standing.extension(70, 120, 900), 1800);
    }

    /// 200,000 sessions were "extended" to 5,806, which gave the same trace, again and again.
    #[test]
    fn an_extension_is_longer_than_the_trace() {
        for between in [Between::Load, Between::Continue] {
            assert_eq!(Standing::new(between).extension(0, 4645, 200_000), 400_000);
        }
        assert_eq!(Standing::new(Between::Load).extension(0, 800, 1000), 2000);
    }

    #[test]
    fn what_extensions_do_not_help_is_given_up() {
        let mut sound = Extensions::default();
        let often = (1u64..).take_while(|n| sound.once_more(1000 * n, 1000 * n + 1)).count();
        assert_eq!(often, 4);
        let mut blind = Extensions::default();
        assert_eq!((0..9).filter(|_| blind.once_more(200_000, 5_806)).count(), 2);
        assert_eq!(
            blind.given_up(20_000, 800_000, Some(10_000)),
            "the trace ran out again with T=20000: 2 extensions, up to 800,000 sessions, did not help, and it is not \
             extended further: 10,000 members, each in one session at a time, keep at most 10,000 threads busy; take \
             fewer threads, or a workload with more members"
        );
        for socialites in [None, Some(20_000)] {
            let said = blind.given_up(20_000, 800_000, socialites);
            assert!(said.ends_with("not extended further: take fewer threads, or a shorter experiment"), "{said}");
        }
    }

    #[test]
    fn an_experiment_that_never_ran_is_void_and_says_why() {
        let verdict = never_ran(7, 64, Sla::default(), "it is at session 3".into());
        assert_eq!((verdict.experiment, verdict.threads, verdict.ruling), (7, 64, Ruling::Void));
        assert_eq!(verdict.reasons, ["it is at session 3"]);
    }

    /// Tries an experiment whose store gives these answers in turn; also gives
    /// whether each try continued, and what was said.
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
        assert!(said.contains("cannot be continued (at session 7): the experiment starts from a load"), "{said}");
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
