//! The analysis of one fragment, in one pass over its log: join, order,
//! validate, summarize, seal.

use std::path::{Path, PathBuf};

use schemas::manifest::Manifest;
use schemas::oplog::{self, LogColumns, LogEnd, LogReader, LogRow};
use schemas::plan::FragmentPlan;
use schemas::table::TableError;
use schemas::trace::{OperationsReader, TraceRow};
use schemas::vocabulary::{Operation, Vocabulary};
use schemas::words::plural;

use crate::error::AnalyzeError;
use crate::family::{Family, OperationOf};
use crate::figures::Summary;
use crate::join::{JoinError, Place, Row, TraceRing};
use crate::log::{HeldBatches, Survey};
use crate::order::Reorder;
use crate::seal::{Sealed, Sealer};
use crate::timeline::Measured;
use crate::validate::{FOREVER, Interval, Items, UnknownId, Validator};

/// Rows of the trace that are read at a time.
const TRACE_CHUNK_ROWS: usize = 8192;

/// A fragment of an experiment and its files.
pub(crate) struct FragmentInput<'a> {
    pub(crate) experiment: u32,
    pub(crate) plan: FragmentPlan,
    pub(crate) log: PathBuf,
    pub(crate) trace: &'a Path,
    pub(crate) manifest: &'a Manifest,
    pub(crate) beta_ns: u64,
    /// Whether the replayer has reported the experiment's end.
    pub(crate) has_report: bool,
    /// The sessions that were given back, if the replayer reported them.
    pub(crate) given_back: Option<&'a [u64]>,
    /// Where the sealed tables go: operations and unpredictable reads; None for figures only.
    pub(crate) sealed: Option<(PathBuf, PathBuf)>,
    /// Called with the number of rows of each batch that is done.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}

impl FragmentInput<'_> {
    /// Surveys the fragment's log. None if the replayer died, or was stopped, before the log
    /// began.
    pub(crate) fn survey(&self) -> Result<Option<Survey>, AnalyzeError> {
        if !self.has_report && !oplog::has_begun(&self.log)? {
            return Ok(None);
        }
        let sessions = self.manifest.fragments.iter().find(|f| f.fragment == self.plan.fragment);
        let sessions = sessions.map_or(0, |counts| counts.sessions);
        // The replayer's report, if there is one, has the measured part.
        let first_measured = (!self.has_report).then(|| self.plan.measured_from());
        let survey = Survey::read(&self.log, sessions, first_measured)?;
        self.check_header(&survey)?;
        Ok(Some(survey))
    }

    /// Analyzes the fragment. Returns its summary, and its sealed tables if requested.
    pub(crate) fn analyze<F: Family>(
        &self,
        survey: Option<&Survey>,
        measured: Measured,
    ) -> Result<(Summary, Option<Sealed>), AnalyzeError> {
        let (fragment, mut summary) = (self.plan.fragment, Summary::new(F::Vocabulary::KINDS, self.beta_ns, measured));
        let sealer = self.sealer::<F::Vocabulary>()?;
        let Some(survey) = survey else {
            let sentence = format!(
                "fragment {fragment}: no log; the experiment never started, or the log is still on its replayer's \
                 machine"
            );
            summary.note_missing(fragment, sentence);
            return Ok((summary, sealer.map(Sealer::close).transpose().map_err(AnalyzeError::Write)?));
        };
        let mut items = self.items_before::<F>()?;
        if let LogEnd::Torn { trailing_bytes } = survey.end {
            summary.note_missing(fragment, self.admit_unlogged::<F>(survey, trailing_bytes, &mut items)?);
        }
        let stream = Stream::<F> {
            log: &self.log,
            first_measured: self.plan.measured_from(),
            given_back: self.given_back,
            ring: TraceRing::new(self.reader()?, &self.plan),
            held: HeldBatches::default(),
            validator: Validator::new(items),
            summary,
            sealer,
        };
        stream.run(survey, self.progress)
    }

    fn sealer<V: Vocabulary>(&self) -> Result<Option<Sealer<V>>, AnalyzeError> {
        let paths = self.sealed.as_ref().map(|(operations, unpredictable)| {
            Sealer::create(self.plan.fragment, operations.clone(), unpredictable.clone()).map_err(AnalyzeError::Write)
        });
        paths.transpose()
    }

    fn reader<V: Vocabulary>(&self) -> Result<OperationsReader<V>, TableError> {
        self.manifest.reader(self.trace, self.plan.fragment, TRACE_CHUNK_ROWS)
    }

    fn check_header(&self, survey: &Survey) -> Result<(), TableError> {
        let header = &survey.header;
        let differs = |what: &str, found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
            let message =
                format!("the log has {what} {found}, the plan has {expected}; the log may be in the wrong folder");
            Err(TableError::new(&self.log, message))
        };
        if header.experiment != self.experiment {
            return differs("experiment", &header.experiment, &self.experiment);
        }
        if header.fragment != self.plan.fragment {
            return differs("fragment", &header.fragment, &self.plan.fragment);
        }
        if header.first_session != self.plan.begins_at() {
            return differs("first session", &header.first_session, &self.plan.begins_at());
        }
        if header.workload_id != self.manifest.workload_id {
            return differs("workload", &header.workload_id, &self.manifest.workload_id);
        }
        Ok(())
    }

    /// The items after all sessions that ran before the experiment.
    fn items_before<F: Family>(&self) -> Result<F::Items, AnalyzeError> {
        let mut items = F::items(self.trace, self.manifest, self.plan.fragment)?;
        // Long before the experiment, one after the other.
        let mut at = i64::MIN / 2;
        self.each_trace_row::<F::Vocabulary>(0, self.plan.first_session, |row| {
            if !self.plan.is_before(row.session) || !row.operation.writes() {
                return Ok(());
            }
            at += 1;
            items.register(&row.operation, Interval { start: at, end: at }, at)
        })?;
        Ok(items)
    }

    /// Registers the operations of a killed replayer that ran and are not in its log. Their
    /// writes may have happened at any time, or never. Returns a sentence that says what is
    /// missing.
    fn admit_unlogged<F: Family>(
        &self,
        survey: &Survey,
        trailing_bytes: u64,
        items: &mut F::Items,
    ) -> Result<String, AnalyzeError> {
        let (first, end) = (self.plan.begins_at(), survey.begun_before());
        let at = Interval { start: i64::MIN, end: FOREVER };
        let mut writes = 0;
        self.each_trace_row::<F::Vocabulary>(first, end, |row| {
            let is_logged = self.plan.is_before(row.session) || survey.has(row.session, row.step);
            if is_logged || !row.operation.writes() {
                return Ok(());
            }
            writes += 1;
            items.register(&row.operation, at, i64::MIN)
        })?;
        let fragment = self.plan.fragment;
        let found = match survey.last_session {
            Some(last) => format!("{} up to session {last}", plural(survey.rows, "row")),
            None => "no operations recorded".to_string(),
        };
        let trailing = match trailing_bytes {
            0 => String::new(),
            bytes => format!(", then {} of an incomplete batch", plural(bytes, "byte")),
        };
        let lost = plural(survey.header.unwritten_rows_max + survey.header.threads as u64, "row");
        let writes = plural(writes, "write");
        Ok(format!(
            "fragment {fragment}: log incomplete: {found}{trailing}; at most {lost} missing; {writes} of sessions \
             before {end} may have run without a row (counted as unknown)"
        ))
    }

    fn each_trace_row<V: Vocabulary>(
        &self,
        first: u64,
        end: u64,
        mut each: impl FnMut(&TraceRow<V::Operation>) -> Result<(), UnknownId>,
    ) -> Result<(), TableError> {
        if first >= end {
            return Ok(());
        }
        let mut reader = self.reader::<V>()?.starting_at(first);
        let mut chunk = Vec::new();
        while reader.next_rows(&mut chunk)? {
            for row in &chunk {
                if row.session >= end {
                    return Ok(());
                }
                each(row).map_err(|e| self.trace_error(row.session, row.step, e))?;
            }
        }
        Ok(())
    }

    fn trace_error(&self, session: u64, step: u16, e: UnknownId) -> TableError {
        let fragment = self.plan.fragment;
        TableError::new(self.trace, format!("fragment {fragment}, session {session} step {step}: {e}"))
    }
}

/// The stages that a row goes through, in order.
struct Stream<'a, F: Family> {
    log: &'a Path,
    first_measured: u64,
    /// The sessions that were given back, if the replayer reported them.
    given_back: Option<&'a [u64]>,
    ring: TraceRing<F::Vocabulary>,
    held: HeldBatches,
    validator: Validator<F::Items, OperationOf<F>>,
    summary: Summary,
    sealer: Option<Sealer<F::Vocabulary>>,
}

impl<F: Family> Stream<'_, F> {
    fn run(
        mut self,
        survey: &Survey,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(Summary, Option<Sealed>), AnalyzeError> {
        let mut reorder = Reorder::default();
        let mut row_number = 0u64;
        for (batch, later_start) in LogReader::open(self.log)?.zip(&survey.later_start) {
            let batch = batch?;
            let columns = LogColumns::of(&batch, self.log)?;
            let number = self.held.next();
            let rows = columns.len();
            for row in 0..rows {
                let place = Place { batch: number, row: row as u32 };
                reorder.push(self.join(&columns, place, row_number)?);
                row_number += 1;
            }
            self.held.hold(columns);
            for row in reorder.release(*later_start) {
                self.enter(row)?;
            }
            progress(rows as u64);
        }
        self.leave(None)?;
        if let (LogEnd::Closed, Some(last)) = (survey.end, survey.last_session) {
            self.check_gaps(last, survey.header.aside_sessions_max)?;
        }
        let Some(mut sealer) = self.sealer else { return Ok((self.summary, None)) };
        sealer.write(self.ring.kinds()).map_err(AnalyzeError::Write)?;
        let sealed = sealer.close().map_err(AnalyzeError::Write)?;
        Ok((self.summary, Some(sealed)))
    }

    fn join(&mut self, columns: &LogColumns, place: Place, row_number: u64) -> Result<Row<OperationOf<F>>, TableError> {
        let wrong = |message: String| TableError::new(self.log, format!("row {row_number}: {message}"));
        let log = columns.row(place.row as usize);
        if log.end_ns < log.start_ns {
            let (session, start, end) = (log.session, log.start_ns, log.end_ns);
            return Err(wrong(format!("session {session} ends at {end} ns, before its start at {start} ns")));
        }
        let trace = self.ring.take(log.session, log.step).map_err(|error| match error {
            // The trace set's fault is not the log's.
            JoinError::Trace(error) => error,
            error => wrong(error.to_string()),
        })?;
        Ok(Row {
            log,
            operation: trace.operation,
            actor: trace.actor,
            after: trace.after,
            kind: trace.kind,
            noops: trace.noops,
            warmup: log.session < self.first_measured,
            drained: self.summary.measured().is_over_at(log.start_ns),
            place,
        })
    }

    fn enter(&mut self, row: &Row<OperationOf<F>>) -> Result<(), AnalyzeError> {
        self.leave(Some(row.log.start_ns))?;
        self.validator.enter(*row).map_err(|e| unknown_id(self.log, &row.log, e))
    }

    fn leave(&mut self, now: Option<i64>) -> Result<(), AnalyzeError> {
        while let Some(row) = self.validator.leave(now) {
            let observed = self.held.observed(row.place);
            let findings = self.validator.check(&row, observed).map_err(|e| unknown_id(self.log, &row.log, e))?;
            self.summary.add(&row, findings);
            if let Some(sealer) = &mut self.sealer {
                let error = self.held.error(row.place);
                sealer.push(&row, observed, error, &findings.violations);
                if sealer.is_full() {
                    sealer.write(self.ring.kinds()).map_err(AnalyzeError::Write)?;
                }
            }
            self.held.release(row.place);
        }
        Ok(())
    }

    /// Checks that a closed log has every operation up to its last session, except whole sessions
    /// that were given back. If the replayer did not name these, at most as many may be missing
    /// as can wait aside.
    fn check_gaps(&mut self, last: u64, aside_sessions_max: u64) -> Result<(), TableError> {
        let mut missing: Vec<(u64, u16)> = Vec::new();
        self.ring.unmatched(last, |row| missing.push((row.session, row.step)))?;
        let sessions = missing.chunk_by(|(a, _), (b, _)| a == b);
        let gap = match self.given_back {
            Some(given_back) => sessions
                .filter(|steps| steps[0].1 > 0 || given_back.binary_search(&steps[0].0).is_err())
                .map(|steps| steps[0])
                .next(),
            None => {
                let (mut torn, whole): (Vec<_>, Vec<_>) = sessions.partition(|steps| steps[0].1 > 0);
                torn.extend(whole.get(aside_sessions_max as usize));
                torn.first().map(|steps| steps[0])
            }
        };
        match gap {
            Some((session, step)) => {
                let message = format!(
                    "session {session} step {step} is missing from a closed log that reaches session {last}; \
                     the log is damaged"
                );
                Err(TableError::new(self.log, message))
            }
            None => Ok(()),
        }
    }
}

fn unknown_id(path: &Path, log: &LogRow, e: UnknownId) -> AnalyzeError {
    let (session, step) = (log.session, log.step);
    TableError::new(path, format!("session {session} step {step}: {e}")).into()
}
