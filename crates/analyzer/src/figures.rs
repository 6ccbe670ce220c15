//! The summary of a fragment's operations: counts and response times that merge
//! with those of other fragments, and the figures made of them.

use std::collections::BTreeMap;

use schemas::latency::ResponseTimes;
use schemas::oplog::Outcome;
use schemas::social::Action;
use schemas::verdict::{ActionFigures, Figures, Timeline};
use serde::{Deserialize, Serialize};

use crate::freshness::FreshnessSummary;
use crate::join::Row;
use crate::timeline::{Measured, TimelineSummary};
use crate::validate::Findings;

/// Counts and response times of one action.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct ActionSummary {
    by_outcome: [u64; 4],
    within_beta: u64,
    unpredictable: u64,
    times: ResponseTimes,
}

impl ActionSummary {
    fn merge(&mut self, other: &ActionSummary) {
        for (mine, theirs) in self.by_outcome.iter_mut().zip(other.by_outcome) {
            *mine += theirs;
        }
        self.within_beta += other.within_beta;
        self.unpredictable += other.unpredictable;
        self.times.merge(&other.times);
    }

    fn figures(&self) -> ActionFigures {
        let [ok, failed, unknown, skipped] = self.by_outcome;
        ActionFigures {
            ok,
            failed,
            unknown,
            skipped,
            within_beta: self.within_beta,
            unpredictable: self.unpredictable,
            mean_ns: self.times.mean_ns(),
            p50_ns: self.times.percentile_ns(50.0),
            p95_ns: self.times.percentile_ns(95.0),
            p99_ns: self.times.percentile_ns(99.0),
            max_ns: self.times.max_ns(),
        }
    }
}

/// What is kept of the operations of one or more fragments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    beta_ns: u64,
    measured: Measured,
    warmup_operations: u64,
    drained_operations: u64,
    actions: Vec<ActionSummary>,
    sessions: u64,
    noops: u64,
    /// Successful operations, and sessions with no-operations, that count for the rates.
    ok_counted: u64,
    sessions_counted: u64,
    error_ns: u64,
    timeline: TimelineSummary,
    freshness: FreshnessSummary,
    /// By fragment, so that the order of merging does not matter.
    missing: BTreeMap<u32, String>,
}

impl Summary {
    /// Nothing yet; β decides which operations were in time.
    pub fn new(beta_ns: u64, measured: Measured) -> Summary {
        Summary {
            beta_ns,
            measured,
            warmup_operations: 0,
            drained_operations: 0,
            actions: vec![ActionSummary::default(); Action::ALL.len()],
            sessions: 0,
            noops: 0,
            ok_counted: 0,
            sessions_counted: 0,
            error_ns: 0,
            timeline: TimelineSummary::new(measured),
            freshness: FreshnessSummary::default(),
            missing: BTreeMap::new(),
        }
    }

    /// Counts an operation and what its check found.
    pub fn add(&mut self, row: &Row, findings: &Findings) {
        if row.warmup {
            self.warmup_operations += 1;
            return;
        }
        if row.drained {
            self.drained_operations += 1;
            return;
        }
        let unpredictable = !findings.violations.is_empty();
        let summary = &mut self.actions[row.operation.action as usize];
        summary.by_outcome[row.log.outcome as usize] += 1;
        summary.unpredictable += u64::from(unpredictable);
        if row.log.outcome == Outcome::Ok {
            let response_ns = response_ns(row);
            summary.times.record(response_ns);
            summary.within_beta += u64::from(response_ns as u64 <= self.beta_ns);
        }
        if matches!(row.log.outcome, Outcome::Failed | Outcome::Unknown) {
            self.error_ns += self.measured.counted_of(row.log.start_ns, row.log.end_ns);
        }
        // Every session begins with step 0, whatever becomes of it.
        self.sessions += u64::from(row.log.step == 0);
        self.noops += u64::from(row.noops);
        if self.measured.counts(row.log.end_ns) {
            self.ok_counted += u64::from(row.log.outcome == Outcome::Ok);
            self.sessions_counted += u64::from(row.log.step == 0) + u64::from(row.noops);
        }
        self.timeline.add(row, unpredictable);
        findings.items.iter().for_each(|item| self.freshness.add(item));
    }

    /// The measured part.
    pub(crate) fn measured(&self) -> Measured {
        self.measured
    }

    /// What decides whether it merges with another: β, and the measured part.
    pub fn basis(&self) -> (u64, Measured) {
        (self.beta_ns, self.measured)
    }

    /// Notes what the log of a fragment lacks.
    pub fn note_missing(&mut self, fragment: u32, sentence: String) {
        self.missing.insert(fragment, sentence);
    }

    /// Takes in the summary of other fragments of the same experiment, made with the same β.
    pub fn merge(&mut self, other: &Summary) {
        debug_assert_eq!((self.beta_ns, self.measured), (other.beta_ns, other.measured));
        self.warmup_operations += other.warmup_operations;
        self.drained_operations += other.drained_operations;
        for (mine, theirs) in self.actions.iter_mut().zip(&other.actions) {
            mine.merge(theirs);
        }
        self.sessions += other.sessions;
        self.noops += other.noops;
        self.ok_counted += other.ok_counted;
        self.sessions_counted += other.sessions_counted;
        self.error_ns += other.error_ns;
        self.timeline.merge(&other.timeline);
        self.freshness.merge(&other.freshness);
        self.missing.extend(other.missing.iter().map(|(fragment, sentence)| (*fragment, sentence.clone())));
    }

    /// The figures of all that was counted.
    pub fn figures(&self) -> Figures {
        let mut overall = ActionSummary::default();
        let (mut by_action, mut reads) = (BTreeMap::new(), 0);
        for (action, summary) in Action::ALL.into_iter().zip(&self.actions) {
            if summary.by_outcome == [0; 4] {
                continue;
            }
            overall.merge(summary);
            by_action.insert(action, summary.figures());
            if action.is_read() {
                reads += summary.by_outcome[Outcome::Ok as usize];
            }
        }
        let overall = overall.figures();
        let Measured { elapsed_ns, counted_ns, .. } = self.measured;
        let timeline = if by_action.is_empty() { Timeline::default() } else { self.timeline.timeline() };
        let per_second = |count: u64| if counted_ns == 0 { 0.0 } else { count as f64 * 1e9 / counted_ns as f64 };
        Figures {
            elapsed_ns,
            counted_ns,
            warmup_operations: self.warmup_operations,
            drained_operations: self.drained_operations,
            sessions: self.sessions,
            noops: self.noops,
            throughput_per_s: per_second(self.ok_counted),
            sessions_per_s: per_second(self.sessions_counted),
            within_beta_percent: percent(overall.within_beta, overall.ok + overall.failed + overall.unknown),
            error_ns: self.error_ns,
            reads,
            unpredictable_reads: overall.unpredictable,
            unpredictable_percent: percent(overall.unpredictable, reads),
            overall,
            by_action,
            missing: self.missing.values().cloned().collect(),
            timeline,
            freshness: self.freshness.figures(),
        }
    }
}

/// From the due time where there is one, so that a stalled store cannot hide its
/// queue; else from when its thread took it up.
pub(crate) fn response_ns(row: &Row) -> i64 {
    row.log.end_ns - row.log.due_ns.unwrap_or(row.log.start_ns)
}

/// A share in percent; 0 of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
