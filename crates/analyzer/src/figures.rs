//! The summary of a fragment's operations: counts and response times, which merge with those of
//! other fragments, and the figures computed from them.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use schemas::anomalies::Anomalies;
use schemas::latency::ResponseTimes;
use schemas::oplog::{LogRow, Outcome};
use schemas::sla::Sla;
use schemas::verdict::{
    ClosingFigures, ConditionFigures, DrawRule, Figures, OperationFigures, ServiceTimes, SumFigures, Timeline,
    TransactionFigures, merge_rules,
};
use schemas::vocabulary::{Operation, OperationKind};
use serde::{Deserialize, Serialize};

use crate::consistency::summary::ConsistencySummary;
use crate::freshness::FreshnessSummary;
use crate::join::{Row, response_ns, service_ns};
use crate::session_kinds::SessionKinds;
use crate::shares::percent;
use crate::timeline::{Measured, TimelineSummary};
use crate::transactions::CountTries;
use crate::validate::{Findings, Sum};

/// Counts and response times of one kind of operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct KindSummary {
    name: String,
    /// Whether it observes data.
    reads: bool,
    /// Whether it begins or ends a transaction: then it counts in no other figure.
    #[serde(default)]
    is_control: bool,
    by_outcome: [u64; Outcome::ALL.len()],
    within_beta: u64,
    unpredictable: u64,
    met: u64,
    times: ResponseTimes,
    /// None while all service times are equal to the response times, as in a closed loop: a
    /// histogram takes much memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<ResponseTimes>,
}

impl KindSummary {
    fn new(kind: &OperationKind) -> KindSummary {
        KindSummary {
            name: kind.name.to_string(),
            reads: kind.reads,
            is_control: kind.is_control(),
            ..KindSummary::default()
        }
    }

    fn merge(&mut self, other: &KindSummary) {
        for (mine, theirs) in self.by_outcome.iter_mut().zip(other.by_outcome) {
            *mine += theirs;
        }
        self.within_beta += other.within_beta;
        self.unpredictable += other.unpredictable;
        self.met += other.met;
        if self.service.is_some() || other.service.is_some() {
            let service = self.service.get_or_insert_with(|| self.times.clone());
            service.merge(other.service.as_ref().unwrap_or(&other.times));
        }
        self.times.merge(&other.times);
    }

    /// Counts the times of an operation that succeeded.
    fn record(&mut self, log: &LogRow) {
        if log.due_ns.is_some() && self.service.is_none() {
            self.service = Some(self.times.clone());
        }
        if let Some(service) = &mut self.service {
            service.record(service_ns(log));
        }
        self.times.record(response_ns(log));
    }

    fn figures(&self, is_open_loop: bool) -> OperationFigures {
        let service = self.service.as_ref().unwrap_or(&self.times);
        let service = ServiceTimes {
            mean_ns: service.mean_ns(),
            p50_ns: service.percentile_ns(50.0),
            p95_ns: service.percentile_ns(95.0),
            p99_ns: service.percentile_ns(99.0),
            max_ns: service.max_ns(),
        };
        let [ok, failed, unknown, skipped, aborted] = self.by_outcome;
        OperationFigures {
            ok,
            failed,
            unknown,
            skipped,
            aborted,
            within_beta: self.within_beta,
            unpredictable: self.unpredictable,
            met: self.met,
            mean_ns: self.times.mean_ns(),
            p50_ns: self.times.percentile_ns(50.0),
            p95_ns: self.times.percentile_ns(95.0),
            p99_ns: self.times.percentile_ns(99.0),
            max_ns: self.times.max_ns(),
            service: is_open_loop.then_some(service),
        }
    }
}

/// What operations are measured against: the limits of an SLA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// β.
    pub beta_ns: u64,
    /// The limit of Γ; None without such a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma_ns: Option<u64>,
}

impl From<u64> for Limits {
    fn from(beta_ns: u64) -> Limits {
        Limits { beta_ns, gamma_ns: None }
    }
}

impl From<&Sla> for Limits {
    fn from(sla: &Sla) -> Limits {
        Limits { beta_ns: sla.beta_ns, gamma_ns: sla.gamma.map(|gamma| gamma.limit_ns) }
    }
}

/// The summary of the operations of one or more fragments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    #[serde(flatten)]
    limits: Limits,
    measured: Measured,
    warmup_operations: u64,
    drained_operations: u64,
    /// By the codes of the vocabulary.
    kinds: Vec<KindSummary>,
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
    /// None if there were no transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transactions: Option<TransactionFigures>,
    /// None if no transaction was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    anomalies: Option<Anomalies>,
    /// None if the family has no registers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    consistency: Option<ConsistencySummary>,
    /// None if no closing read was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closing: Option<ClosingSummary>,
    /// None if the family has no sum, or no closing read was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sum: Option<Sum>,
    /// None if no conditions were to be checked, or another replayer checked them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conditions: Option<ConditionFigures>,
    /// None if the vocabulary has no figures of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by_session: Option<SessionKinds>,
    /// Empty if the benchmark asks nothing of what is drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    draw_rules: Vec<DrawRule>,
}

/// The summary of closing reads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct ClosingSummary {
    items: u64,
    failed: u64,
    unpredictable: u64,
    /// In order, so that the order of merging does not matter.
    missing: BTreeSet<String>,
}

impl Summary {
    /// An empty summary of these kinds of operations; the limits decide which operations met them.
    pub fn new(kinds: &[OperationKind], limits: impl Into<Limits>, measured: Measured) -> Summary {
        Summary {
            limits: limits.into(),
            measured,
            warmup_operations: 0,
            drained_operations: 0,
            kinds: kinds.iter().map(KindSummary::new).collect(),
            sessions: 0,
            noops: 0,
            ok_counted: 0,
            sessions_counted: 0,
            error_ns: 0,
            timeline: TimelineSummary::new(measured),
            freshness: FreshnessSummary::default(),
            missing: BTreeMap::new(),
            transactions: None,
            anomalies: None,
            consistency: None,
            closing: None,
            sum: None,
            conditions: None,
            by_session: None,
            draw_rules: Vec::new(),
        }
    }

    /// Counts an operation and what its check found.
    pub fn add<O: Operation>(&mut self, row: &Row<O>, findings: &Findings) {
        if row.warmup {
            self.warmup_operations += 1;
            return;
        }
        if row.drained {
            self.drained_operations += 1;
            return;
        }
        // Every session begins with step 0, whatever its outcome, and a later try repeats that.
        let begins = row.log.step == 0 && row.log.try_number == 0;
        self.sessions += u64::from(begins);
        self.noops += if begins { u64::from(row.noops) } else { 0 };
        if self.measured.counts(row.log.end_ns) && begins {
            self.sessions_counted += 1 + u64::from(row.noops);
        }
        if let Some(of_try) = &row.of_try {
            self.transactions.get_or_insert_default().add(row, of_try);
        }
        let Some(outcome) = row.counts_as() else { return self.add_control(row) };
        // It counts with the outcome of its transaction.
        let log = LogRow { outcome, ..row.log };
        let unpredictable = !findings.violations.is_empty();
        let is_within_beta = self.is_within_beta(&row.log);
        let summary = &mut self.kinds[usize::from(row.operation.code())];
        summary.by_outcome[outcome as usize] += 1;
        summary.unpredictable += u64::from(unpredictable);
        let mut has_met = false;
        if outcome == Outcome::Ok {
            summary.record(&log);
            has_met = is_within_beta && !unpredictable;
            summary.within_beta += u64::from(is_within_beta);
            summary.met += u64::from(has_met);
        }
        if matches!(outcome, Outcome::Failed | Outcome::Unknown) {
            self.error_ns += self.measured.counted_of(row.log.start_ns, row.log.end_ns);
        }
        if self.measured.counts(row.log.end_ns) {
            self.ok_counted += u64::from(outcome == Outcome::Ok);
        }
        self.timeline.add(&log, unpredictable, has_met);
        findings.items.iter().for_each(|item| self.freshness.add(item));
    }

    /// Counts an operation that begins or ends a transaction. What was not sent has no time.
    fn add_control<O: Operation>(&mut self, row: &Row<O>) {
        let summary = &mut self.kinds[usize::from(row.operation.code())];
        self.timeline.begin_session(&row.log);
        if row.log.outcome == Outcome::Ok && row.log.attempts == 0 {
            return;
        }
        summary.by_outcome[row.log.outcome as usize] += 1;
        if row.log.outcome == Outcome::Ok {
            summary.record(&LogRow { due_ns: None, ..row.log });
            summary.within_beta += u64::from(service_ns(&row.log) as u64 <= self.limits.beta_ns);
        }
    }

    /// Adds what the check of the transactions of a fragment found.
    pub(crate) fn add_anomalies(&mut self, found: &Anomalies) {
        self.anomalies.get_or_insert_default().merge(found);
    }

    /// Adds the consistency of the registers of a fragment.
    pub(crate) fn add_consistency(&mut self, found: ConsistencySummary) {
        match &mut self.consistency {
            Some(mine) => mine.merge(&found),
            None => self.consistency = Some(found),
        }
    }

    /// Whether the response time of an operation is within β.
    pub(crate) fn is_within_beta(&self, log: &LogRow) -> bool {
        response_ns(log) as u64 <= self.limits.beta_ns
    }

    /// Counts an operation within β that was unpredictable, but not more stale than the SLA allows.
    pub(crate) fn excuse(&mut self, code: u8, end_ns: i64) {
        self.kinds[usize::from(code)].met += 1;
        self.timeline.excuse(end_ns);
    }

    /// The limits that operations are measured against.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The measured part.
    pub(crate) fn measured(&self) -> Measured {
        self.measured
    }

    /// Two summaries merge only if these are equal: the limits, and the measured part.
    pub fn basis(&self) -> (Limits, Measured) {
        (self.limits, self.measured)
    }

    /// Records what is missing from the log of a fragment.
    pub fn note_missing(&mut self, fragment: u32, sentence: String) {
        self.missing.insert(fragment, sentence);
    }

    /// Records that a closing read was planned.
    pub fn expect_closing(&mut self) {
        self.closing.get_or_insert_default();
    }

    /// Counts a closing read, with its outcome and whether it is unpredictable.
    pub fn add_closing(&mut self, outcome: Outcome, unpredictable: bool) {
        let closing = self.closing.get_or_insert_default();
        closing.items += u64::from(outcome == Outcome::Ok);
        closing.failed += u64::from(outcome != Outcome::Ok);
        closing.unpredictable += u64::from(unpredictable);
    }

    /// Records what is missing of a closing read.
    pub fn note_closing(&mut self, sentence: String) {
        self.closing.get_or_insert_default().missing.insert(sentence);
    }

    /// Adds the sum of a fragment whose closing read was planned.
    pub fn add_sum(&mut self, sum: &Sum) {
        self.sum.get_or_insert_default().merge(sum);
    }

    /// Adds the sessions of a fragment by their kinds.
    pub(crate) fn add_sessions(&mut self, found: &SessionKinds) {
        self.by_session.get_or_insert_default().merge(found);
    }

    /// Adds what sessions have drawn.
    pub(crate) fn add_draw_rules(&mut self, found: &[DrawRule]) {
        merge_rules(&mut self.draw_rules, found);
    }

    /// Adds what was found of the conditions of the data. One replayer checks them for all.
    pub(crate) fn add_conditions(&mut self, found: Option<ConditionFigures>) {
        self.conditions = self.conditions.take().or(found);
    }

    /// Adds the summary of other fragments of the same experiment, made with the same β.
    pub fn merge(&mut self, other: &Summary) {
        debug_assert_eq!(self.basis(), other.basis());
        self.warmup_operations += other.warmup_operations;
        self.drained_operations += other.drained_operations;
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.merge(theirs);
        }
        self.sessions += other.sessions;
        self.noops += other.noops;
        self.ok_counted += other.ok_counted;
        self.sessions_counted += other.sessions_counted;
        self.error_ns += other.error_ns;
        self.timeline.merge(&other.timeline);
        self.freshness.merge(&other.freshness);
        if let Some(theirs) = &other.transactions {
            self.transactions.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.anomalies {
            self.add_anomalies(theirs);
        }
        if let Some(theirs) = &other.consistency {
            self.add_consistency(theirs.clone());
        }
        if let Some(theirs) = &other.closing {
            let mine = self.closing.get_or_insert_default();
            mine.items += theirs.items;
            mine.failed += theirs.failed;
            mine.unpredictable += theirs.unpredictable;
            mine.missing.extend(theirs.missing.iter().cloned());
        }
        if let Some(theirs) = &other.sum {
            self.add_sum(theirs);
        }
        self.add_conditions(other.conditions.clone());
        self.add_draw_rules(&other.draw_rules);
        if let Some(theirs) = &other.by_session {
            self.add_sessions(theirs);
        }
        self.missing.extend(other.missing.iter().map(|(fragment, sentence)| (*fragment, sentence.clone())));
    }

    /// The figures of all that was counted.
    pub fn figures(&self) -> Figures {
        let mut overall = KindSummary::default();
        let (mut by_operation, mut reads) = (IndexMap::new(), 0);
        let is_open_loop = self.kinds.iter().any(|kind| kind.service.is_some());
        for summary in &self.kinds {
            if summary.by_outcome == [0; Outcome::ALL.len()] {
                continue;
            }
            if !summary.is_control {
                overall.merge(summary);
            }
            by_operation.insert(summary.name.clone(), summary.figures(is_open_loop));
            if summary.reads {
                reads += summary.by_outcome[Outcome::Ok as usize];
            }
        }
        let overall = overall.figures(is_open_loop);
        let Measured { elapsed_ns, counted_ns, .. } = self.measured;
        let timeline = match by_operation.is_empty() {
            true => Timeline::default(),
            false => self.timeline.timeline(is_open_loop),
        };
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
            met_percent: (overall.operations() > 0).then(|| percent(overall.met, overall.operations())),
            overall,
            by_operation,
            missing: self.missing.values().cloned().collect(),
            timeline,
            freshness: self.freshness.figures(),
            transactions: self.transactions,
            anomalies: self.anomalies.clone(),
            consistency: self.consistency.as_ref().and_then(ConsistencySummary::figures),
            closing: self.closing.as_ref().map(|closing| ClosingFigures {
                items: closing.items,
                failed: closing.failed,
                unpredictable: closing.unpredictable,
                missing: closing.missing.iter().cloned().collect(),
            }),
            sum: self.sum.as_ref().map(|sum| self.sum_figures(sum)),
            conditions: self.conditions.clone(),
            by_session: self.by_session.as_ref().map(|own| own.figures(self.measured)).unwrap_or_default(),
            headline: None,
            draw_rules: self.draw_rules.clone(),
        }
    }

    fn sum_figures(&self, sum: &Sum) -> SumFigures {
        let is_read = self.closing.as_ref().is_some_and(|closing| closing.failed == 0 && closing.missing.is_empty());
        let is_known = is_read && self.missing.is_empty() && !sum.is_incomplete;
        SumFigures {
            start: sum.start,
            end: sum.end,
            captured: sum.captured,
            released: sum.released,
            unknown_low: sum.unknown.0,
            unknown_high: sum.unknown.1,
            off: sum.off,
            transactions: sum.transactions,
            apart: sum.apart,
            score: is_known.then(|| sum.off as f64 / sum.transactions.max(1) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use schemas::social::Social;
    use schemas::vocabulary::Vocabulary;

    use super::*;
    use crate::fixtures::read_row;

    /// The second step of a session has no due time. If it comes first, the summary does not yet know
    /// of an open loop.
    #[test]
    fn service_times_merge_in_any_order() {
        let measured = Measured { from_ns: 0, elapsed_ns: 1_000_000, counted_ns: 1_000_000, planned_ns: None };
        let empty = || Summary::new(Social::KINDS, 5_000, measured);
        let (mut later, mut first, mut whole) = (empty(), empty(), empty());
        for n in 0..20 {
            let (mut row, own) = (read_row(n, 10_000 * n as i64, 10_000 * n as i64 + 1_000), n % 2 == 0);
            row.log.due_ns = own.then_some(row.log.start_ns - 9_000);
            row.log.step = u16::from(!own);
            if own { &mut first } else { &mut later }.add(&row, &Findings::default());
            whole.add(&row, &Findings::default());
        }
        assert_eq!(later.figures().overall.service, None);
        let expect = whole.figures();
        let service = expect.overall.service.unwrap();
        assert_eq!((service.p50_ns, service.max_ns, expect.overall.max_ns / 100), (1_000, 1_000, 100));
        let slice = expect.timeline.slices[0];
        assert_eq!((slice.service_times().max_ns, slice.max_ns / 100), (1_000, 100));
        assert_eq!(later.figures().timeline.slices[0].service, None);
        assert_eq!((expect.overall.met, expect.met_percent), (10, Some(50.0)));
        for (mut one, other) in [(later.clone(), first.clone()), (first, later)] {
            one.merge(&other);
            assert_eq!(one.figures(), expect);
        }
    }
}
