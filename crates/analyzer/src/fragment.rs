//! The analysis of one fragment, in one pass over its log: join, order,
//! validate, summarize, seal.

use std::path::{Path, PathBuf};

use schemas::manifest::Manifest;
use schemas::oplog::{self, LogColumns, LogEnd, LogReader};
use schemas::plan::FragmentPlan;
use schemas::trace::{OperationsReader, TableError};

use crate::error::AnalyzeError;
use crate::figures::Summary;
use crate::initial::Initial;
use crate::join::{JoinError, Place, Row, TraceRing};
use crate::log::{HeldBatches, Survey};
use crate::order::Reorder;
use crate::seal::{Sealed, Sealer};
use crate::timeline::Measured;
use crate::validate::{FOREVER, Interval, State, UnknownId, Validator};

/// Rows of the trace that are read at a time.
const TRACE_CHUNK_ROWS: usize = 8192;

/// A fragment of an experiment and where its files are.
pub(crate) struct FragmentInput<'a> {
    pub(crate) experiment: u32,
    pub(crate) plan: FragmentPlan,
    pub(crate) log: PathBuf,
    pub(crate) trace: &'a Path,
    pub(crate) manifest: &'a Manifest,
    pub(crate) beta_ns: u64,
    /// Whether the replayer has reported the experiment's end.
    pub(crate) has_report: bool,
    /// The sessions that it has given back then.
    pub(crate) given_back: Option<&'a [u64]>,
    /// Where the sealed tables go: operations and unpredictable reads; None for figures only.
    pub(crate) sealed: Option<(PathBuf, PathBuf)>,
    /// Told how many rows are done, now and then.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}

impl FragmentInput<'_> {
    /// A first look at the fragment's log. None: the replayer died, or was
    /// stopped, before the log had begun.
    pub(crate) fn survey(&self) -> Result<Option<Survey>, AnalyzeError> {
        if !self.has_report && !oplog::has_begun(&self.log)? {
            return Ok(None);
        }
        let sessions = self.manifest.fragments.iter().find(|f| f.fragment == self.plan.fragment);
        let sessions = sessions.map_or(0, |counts| counts.sessions);
        // The replayer's report, where there is one, says when the measured part was.
        let first_measured = (!self.has_report).then(|| self.plan.measured_from());
        let survey = Survey::read(&self.log, sessions, first_measured)?;
        self.check_header(&survey)?;
        Ok(Some(survey))
    }

    /// Analyzes the fragment: its summary, and its sealed tables where they are wanted.
    pub(crate) fn analyze(
        &self,
        survey: Option<&Survey>,
        measured: Measured,
    ) -> Result<(Summary, Option<Sealed>), AnalyzeError> {
        let (fragment, mut summary) = (self.plan.fragment, Summary::new(self.beta_ns, measured));
        let sealer = self.sealer()?;
        let Some(survey) = survey else {
            let sentence = format!(
                "fragment {fragment}: there is no log; the experiment never began, or its replayer has the log"
            );
            summary.note_missing(fragment, sentence);
            return Ok((summary, sealer.map(Sealer::close).transpose().map_err(AnalyzeError::Write)?));
        };
        let mut state = self.state_before()?;
        if let LogEnd::Torn { trailing_bytes } = survey.end {
            summary.note_missing(fragment, self.admit_unlogged(survey, trailing_bytes, &mut state)?);
        }
        let stream = Stream {
            log: &self.log,
            first_measured: self.plan.measured_from(),
            given_back: self.given_back,
            ring: TraceRing::new(self.reader(), &self.plan),
            held: HeldBatches::default(),
            validator: Validator::new(state),
            summary,
            sealer,
        };
        stream.run(survey, self.progress)
    }

    fn sealer(&self) -> Result<Option<Sealer>, AnalyzeError> {
        let paths = self.sealed.as_ref().map(|(operations, unpredictable)| {
            Sealer::create(operations.clone(), unpredictable.clone()).map_err(AnalyzeError::Write)
        });
        paths.transpose()
    }

    fn reader(&self) -> OperationsReader {
        OperationsReader::new(self.manifest.operation_files(self.trace, self.plan.fragment), TRACE_CHUNK_ROWS)
    }

    fn check_header(&self, survey: &Survey) -> Result<(), TableError> {
        let header = &survey.header;
        let differs = |what: &str, found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
            let message = format!("the log is of {what} {found}, the plan says {expected}; is it in the wrong folder?");
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

    /// The state of the data set and of all sessions that ran before the experiment.
    fn state_before(&self) -> Result<State, AnalyzeError> {
        let top_k = self.manifest.spec.data.top_k;
        let mut state = State::new(Initial::read(self.trace, self.plan.fragment, top_k)?);
        self.each_trace_row(0, self.plan.first_session, |row| {
            let has_run = self.plan.is_before(row.session);
            if has_run && row.operation.action.is_write() { state.apply(&row.operation) } else { Ok(()) }
        })?;
        Ok(state)
    }

    /// A killed replayer leaves operations that ran and are not in its log. Their
    /// writes may have happened at any time, or never. Says what is missing.
    fn admit_unlogged(&self, survey: &Survey, trailing_bytes: u64, state: &mut State) -> Result<String, AnalyzeError> {
        let (first, end) = (self.plan.begins_at(), survey.begun_before());
        let at = Interval { start: i64::MIN, end: FOREVER };
        let mut writes = 0;
        self.each_trace_row(first, end, |row| {
            let is_logged = self.plan.is_before(row.session) || survey.has(row.session, row.step);
            if is_logged || !row.operation.action.is_write() {
                return Ok(());
            }
            writes += 1;
            state.register(&row.operation, at, i64::MIN)
        })?;
        let (fragment, rows) = (self.plan.fragment, survey.rows);
        let lost = survey.header.unwritten_rows_max + survey.header.threads as u64;
        let last = survey.last_session.map_or("no session".to_string(), |last| format!("session {last}"));
        Ok(format!(
            "fragment {fragment}: the log ends without its closing mark after {rows} rows, up to {last} \
             ({trailing_bytes} bytes of a broken batch follow): at most {lost} rows are missing; {writes} writes of \
             sessions before {end} may have happened unlogged and count as unknown"
        ))
    }

    fn each_trace_row(
        &self,
        first: u64,
        end: u64,
        mut each: impl FnMut(&schemas::trace::TraceRow) -> Result<(), UnknownId>,
    ) -> Result<(), TableError> {
        if first >= end {
            return Ok(());
        }
        let mut reader = self.reader().starting_at(first);
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
struct Stream<'a> {
    log: &'a Path,
    first_measured: u64,
    /// The sessions that were given back in the end, where the replayer has said so.
    given_back: Option<&'a [u64]>,
    ring: TraceRing,
    held: HeldBatches,
    validator: Validator,
    summary: Summary,
    sealer: Option<Sealer>,
}

impl Stream<'_> {
    fn run(
        mut self,
        survey: &Survey,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(Summary, Option<Sealed>), AnalyzeError> {
        let mut reorder = Reorder::default();
        let mut row_number = 0;
        for (batch, later_start) in LogReader::open(self.log)?.zip(&survey.later_start) {
            let batch = batch?;
            let columns = LogColumns::of(&batch, self.log)?;
            let number = self.held.next();
            let rows = columns.len();
            for row in 0..rows {
                let place = Place { batch: number, row: row as u32 };
                let joined = self
                    .join(&columns, place)
                    .map_err(|message| TableError::new(self.log, format!("row {row_number}: {message}")))?;
                reorder.push(joined);
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

    fn join(&mut self, columns: &LogColumns, place: Place) -> Result<Row, String> {
        let log = columns.row(place.row as usize);
        if log.end_ns < log.start_ns {
            let (session, start, end) = (log.session, log.start_ns, log.end_ns);
            return Err(format!("session {session} ends at {end} ns, before its start at {start} ns"));
        }
        let trace = self.ring.take(log.session, log.step).map_err(|e: JoinError| e.to_string())?;
        Ok(Row {
            log,
            operation: trace.operation,
            after: trace.after,
            kind: trace.kind,
            noops: trace.noops,
            warmup: log.session < self.first_measured,
            drained: self.summary.measured().is_over_at(log.start_ns),
            place,
        })
    }

    fn enter(&mut self, row: &Row) -> Result<(), AnalyzeError> {
        self.leave(Some(row.log.start_ns))?;
        self.validator.enter(*row).map_err(|e| unknown_id(self.log, row, e))
    }

    fn leave(&mut self, now: Option<i64>) -> Result<(), AnalyzeError> {
        while let Some(row) = self.validator.leave(now) {
            let observed = self.held.observed(row.place);
            let findings = self.validator.check(&row, observed).map_err(|e| unknown_id(self.log, &row, e))?;
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

    /// A closed log has every operation up to its last session, but for whole sessions
    /// that were given back: those that the replayer has named, else as many as could wait.
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
                    "session {session} step {step} is missing, though session {last} is there and the log is closed; the log is damaged"
                );
                Err(TableError::new(self.log, message))
            }
            None => Ok(()),
        }
    }
}

fn unknown_id(log: &Path, row: &Row, e: UnknownId) -> AnalyzeError {
    let (session, step) = (row.log.session, row.log.step);
    TableError::new(log, format!("session {session} step {step}: {e}")).into()
}
