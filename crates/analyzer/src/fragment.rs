//! The analysis of one fragment, in one pass over its log: join, order,
//! validate, summarize, seal.

use std::path::{Path, PathBuf};

use schemas::manifest::Manifest;
use schemas::oplog::{self, LogColumns, LogEnd, LogReader, LogRow, Outcome};
use schemas::plan::FragmentPlan;
use schemas::table::TableError;
use schemas::trace::{OperationsReader, TraceRow};
use schemas::vocabulary::{Operation, Vocabulary};
use schemas::words::plural;

use crate::closing::{ClosingFile, ClosingPlan, ClosingSealer, Expected};
use crate::error::AnalyzeError;
use crate::family::{Family, OperationOf};
use crate::figures::{Limits, Summary};
use crate::history::History;
use crate::join::{JoinError, Place, Row, TraceRing};
use crate::log::{HeldBatches, Survey};
use crate::order::Reorder;
use crate::registers::Registers;
use crate::seal::{ClosedTable, Sealed, Sealer};
use crate::session_kinds::Sessions;
use crate::timeline::Measured;
use crate::transactions::Tries;
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
    pub(crate) limits: Limits,
    /// Whether the replayer has reported the experiment's end.
    pub(crate) has_report: bool,
    /// The sessions that were given back, if the replayer reported them.
    pub(crate) given_back: Option<&'a [u64]>,
    pub(crate) closing: ClosingPlan,
    /// Where the sealed tables go; None for figures only.
    pub(crate) sealed: Option<SealedPaths>,
    /// Called with the number of rows of each batch that is done.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}

/// The sealed tables of a fragment.
pub(crate) struct SealedPaths {
    pub(crate) operations: PathBuf,
    pub(crate) unpredictable: PathBuf,
    pub(crate) closing_reads: PathBuf,
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
        let (fragment, mut summary) = (self.plan.fragment, Summary::new(F::Vocabulary::KINDS, self.limits, measured));
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
        if self.closing.after.is_some() {
            summary.expect_closing();
        }
        if items.is_open() {
            self.begin_with_closing_read::<F>(&mut items, &mut summary);
        }
        if let LogEnd::Torn { trailing_bytes } = survey.end {
            summary.note_missing(fragment, self.admit_unlogged::<F>(survey, trailing_bytes, &mut items)?);
        }
        let stream = Stream::<F> {
            input: self,
            log: &self.log,
            first_measured: self.plan.measured_from(),
            given_back: self.given_back,
            ring: TraceRing::new(self.reader()?, &self.plan),
            held: HeldBatches::default(),
            validator: Validator::new(items),
            history: History::new(fragment),
            registers: Registers::new::<F>(&self.plan, &summary, matches!(survey.end, LogEnd::Torn { .. })),
            tries: Tries::new(matches!(survey.end, LogEnd::Torn { .. })),
            sessions: Sessions::default(),
            summary,
            sealer,
        };
        stream.run(survey, self.progress)
    }

    fn sealer<V: Vocabulary>(&self) -> Result<Option<Sealer<V>>, AnalyzeError> {
        let paths = self.sealed.as_ref().map(|SealedPaths { operations, unpredictable, .. }| {
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

    /// Of the states that the sessions before the experiment may have left, a closing read says which it
    /// was.
    fn begin_with_closing_read<F: Family>(&self, items: &mut F::Items, summary: &mut Summary) {
        let Some((experiment, folder)) = &self.closing.before else { return };
        let path = folder.audit(self.plan.fragment);
        let begun = ClosingFile::open(&path, self.expected(*experiment)).and_then(|mut file| {
            while let Some(columns) = file.next() {
                let columns = columns?;
                for index in 0..columns.len() {
                    let row = columns.row(index);
                    let read = F::Vocabulary::read_whole(row.session, self.closing.parts);
                    if let (Outcome::Ok, Some(read)) = (row.outcome, read) {
                        items.begin_with(&read, columns.observed.of_row(index)).map_err(|e| e.to_string())?;
                    }
                }
            }
            file.end()
        });
        if let Err(why) = begun {
            summary.note_closing(format!(
                "fragment {}: the closing read of experiment {experiment} tells not all of the state that this \
                 experiment began with, so every earlier write counts as possible there: {why}",
                self.plan.fragment
            ));
        }
    }

    fn expected(&self, experiment: u32) -> Expected<'_> {
        Expected { experiment, fragment: self.plan.fragment, workload_id: &self.manifest.workload_id }
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
    input: &'a FragmentInput<'a>,
    log: &'a Path,
    first_measured: u64,
    /// The sessions that were given back, if the replayer reported them.
    given_back: Option<&'a [u64]>,
    ring: TraceRing<F::Vocabulary>,
    held: HeldBatches,
    tries: Tries<OperationOf<F>>,
    sessions: Sessions,
    history: History,
    /// None if the family has no registers.
    registers: Option<Registers>,
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
                let row = self.join(&columns, place, row_number)?;
                if F::Vocabulary::HAS_TRANSACTIONS {
                    self.tries.push(row, |row| reorder.push(row));
                } else {
                    reorder.push(row);
                }
                row_number += 1;
            }
            self.held.hold(columns);
            if *later_start == i64::MAX {
                self.tries.flush(|row| reorder.push(row));
            }
            for row in reorder.release(self.tries.earliest().min(*later_start)) {
                self.enter(row)?;
            }
            progress(rows as u64);
        }
        self.leave(None)?;
        if let Some(found) = std::mem::take(&mut self.history).finish() {
            self.summary.add_anomalies(&found);
        }
        if let (LogEnd::Closed, Some(last)) = (survey.end, survey.last_session) {
            self.check_gaps(last, survey.header.aside_sessions_max)?;
        }
        if let Some(registers) = &mut self.registers {
            registers.finish(&mut self.summary);
        }
        if F::Vocabulary::HAS_SESSION_FIGURES {
            let sessions = std::mem::take(&mut self.sessions);
            self.summary.add_sessions(&sessions.finish(self.summary.measured(), self.ring.kinds()));
            let FragmentInput { trace, manifest, plan, .. } = self.input;
            let ran = self.first_measured..survey.last_session.map_or(0, |last| last + 1);
            self.summary.add_draw_rules(&F::draw_rules(trace, manifest, plan.fragment, ran)?);
        }
        let closing_reads = self.close(progress)?;
        if self.input.closing.after.is_some()
            && let Some(sum) = self.validator.items_mut().sum()
        {
            self.summary.add_sum(&sum);
        }
        let Some(mut sealer) = self.sealer else { return Ok((self.summary, None)) };
        sealer.write(self.ring.kinds()).map_err(AnalyzeError::Write)?;
        let mut sealed = sealer.close().map_err(AnalyzeError::Write)?;
        sealed.closing_reads = closing_reads;
        Ok((self.summary, Some(sealed)))
    }

    /// Checks the closing read, if the experiment has one: its reads are the last ones of all. Returns
    /// its sealed table.
    fn close(&mut self, progress: &(dyn Fn(u64) + Sync)) -> Result<Option<ClosedTable>, AnalyzeError> {
        let input = self.input;
        let Some(folder) = &input.closing.after else { return Ok(None) };
        let fragment = input.plan.fragment;
        let opened = ClosingFile::open(&folder.audit(fragment), input.expected(input.experiment));
        let mut file = match opened {
            Ok(file) => file,
            Err(why) => {
                self.summary.note_closing(format!("fragment {fragment}: {why}"));
                return Ok(None);
            }
        };
        let sealer = input.sealed.as_ref().map(|paths| ClosingSealer::create(paths.closing_reads.clone()));
        let mut sealer = sealer.transpose().map_err(AnalyzeError::Write)?;
        let checked = loop {
            match file.next() {
                Some(Ok(columns)) => {
                    if let Err(why) = self.check_closing(&columns, sealer.as_mut())? {
                        break Err(why);
                    }
                    progress(columns.len() as u64);
                }
                Some(Err(why)) => break Err(why),
                None => break file.end(),
            }
        };
        if let Err(why) = checked {
            self.summary.note_closing(format!("fragment {fragment}: {why}"));
        }
        sealer.map(ClosingSealer::close).transpose().map_err(AnalyzeError::Write)
    }

    /// Checks some closing reads. A sentence says which item is not in the fragment.
    fn check_closing(
        &mut self,
        columns: &LogColumns,
        mut sealer: Option<&mut ClosingSealer<F::Vocabulary>>,
    ) -> Result<Result<(), String>, AnalyzeError> {
        for index in 0..columns.len() {
            let (row, observed) = (columns.row(index), columns.observed.of_row(index));
            let Some(read) = F::Vocabulary::read_whole(row.session, self.input.closing.parts) else { continue };
            let at = Interval { start: row.start_ns, end: row.end_ns };
            if row.outcome == Outcome::Ok {
                self.validator.items_mut().account_closing(observed);
            }
            let violations = match row.outcome {
                Outcome::Ok => match self.validator.check_closing(&read, observed, at) {
                    Ok(findings) => findings.violations.as_slice(),
                    Err(unknown) => return Ok(Err(unknown.to_string())),
                },
                Outcome::Failed | Outcome::Unknown | Outcome::Skipped | Outcome::Aborted => &[],
            };
            self.summary.add_closing(row.outcome, !violations.is_empty());
            if let Some(sealer) = &mut sealer {
                let error = columns.errors.binary_search_by_key(&(index as u32), |(row, _)| *row).ok();
                let error = error.map(|at| columns.errors[at].1.as_str());
                sealer.push(row, read, error, observed, violations).map_err(AnalyzeError::Write)?;
            }
        }
        Ok(Ok(()))
    }

    fn join(&mut self, columns: &LogColumns, place: Place, row_number: u64) -> Result<Row<OperationOf<F>>, TableError> {
        let wrong = |message: String| TableError::new(self.log, format!("row {row_number}: {message}"));
        let log = columns.row(place.row as usize);
        if log.end_ns < log.start_ns {
            let (session, start, end) = (log.session, log.start_ns, log.end_ns);
            return Err(wrong(format!("session {session} ends at {end} ns, before its start at {start} ns")));
        }
        let trace = match log.try_number {
            0 => self.ring.take(log.session, log.step),
            _ => self.tries.again(&log),
        };
        let trace = trace.map_err(|error| match error {
            // The trace set's fault is not the log's.
            JoinError::Trace(error) => error,
            error => wrong(error.to_string()),
        })?;
        if F::Vocabulary::HAS_TRANSACTIONS && log.try_number == 0 && trace.txn.is_some() {
            self.tries.remember(log.thread, trace);
        }
        Ok(Row {
            log,
            operation: trace.operation,
            actor: trace.actor,
            after: trace.after,
            txn: trace.txn,
            kind: trace.kind,
            noops: trace.noops,
            warmup: log.session < self.first_measured,
            drained: self.summary.measured().is_over_at(log.start_ns),
            place,
            of_try: None,
        })
    }

    fn enter(&mut self, row: &Row<OperationOf<F>>) -> Result<(), AnalyzeError> {
        self.leave(Some(row.log.start_ns))?;
        self.validator.enter(*row).map_err(|e| unknown_id(self.log, &row.log, e))?;
        if let Some(registers) = &mut self.registers {
            registers.enter(row, self.validator.items());
        }
        Ok(())
    }

    fn leave(&mut self, now: Option<i64>) -> Result<(), AnalyzeError> {
        while let Some(row) = self.validator.leave(now) {
            let observed = self.held.observed(row.place);
            self.validator.items_mut().account(&row, observed);
            if F::Vocabulary::HAS_TRANSACTIONS {
                self.history.add(&row, self.validator.items(), observed);
            }
            let findings = self.validator.check(&row, observed).map_err(|e| unknown_id(self.log, &row.log, e))?;
            self.summary.add(&row, findings);
            if F::Vocabulary::HAS_SESSION_FIGURES && !row.warmup {
                self.sessions.add(&row, self.summary.measured());
            }
            if let Some(sealer) = &mut self.sealer {
                let error = self.held.error(row.place);
                sealer.push(&row, observed, error, &findings.violations);
                if sealer.is_full() {
                    sealer.write(self.ring.kinds()).map_err(AnalyzeError::Write)?;
                }
            }
            if let Some(registers) = &mut self.registers {
                let violations = findings.violations.len();
                registers.leave::<F>(&row, self.validator.items(), observed, violations, &mut self.summary);
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
