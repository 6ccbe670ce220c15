//! The raw log of a fragment: a first pass that finds when its batches start, and the batches
//! whose rows are still needed.

use std::collections::VecDeque;
use std::path::Path;

use schemas::oplog::{LogColumns, LogEnd, LogHeader, LogReader, Observed};
use schemas::table::TableError;

use crate::join::Place;

/// The results of a first pass over a log.
pub(crate) struct Survey {
    pub(crate) header: LogHeader,
    pub(crate) end: LogEnd,
    pub(crate) rows: u64,
    /// For each batch, the earliest start in all later ones; `i64::MAX` for the last batch.
    pub(crate) later_start: Vec<i64>,
    /// The highest session; None if there are no rows.
    pub(crate) last_session: Option<u64>,
    /// The first start and the last end in the measured part; None if not requested or if it has
    /// no rows.
    pub(crate) measured: Option<(i64, i64)>,
    /// How many rows each session has, from the header's first session on; only for a torn log.
    rows_of: Vec<u8>,
}

impl Survey {
    /// `sessions` is the number of sessions of the fragment in the trace. With `first_measured`,
    /// the first session after the warm-up, it also finds the measured part.
    pub(crate) fn read(path: &Path, sessions: u64, first_measured: Option<u64>) -> Result<Survey, TableError> {
        let reader = LogReader::open(path)?;
        let (header, end) = (reader.header().clone(), reader.end());
        let mut survey = Survey {
            header,
            end,
            rows: 0,
            later_start: Vec::new(),
            last_session: None,
            measured: None,
            rows_of: Vec::new(),
        };
        for batch in reader {
            let batch = batch?;
            let columns = LogColumns::of(&batch, path)?;
            survey.later_start.push(columns.start_ns.iter().copied().min().unwrap_or(i64::MAX));
            // The code that follows sizes its memory by these session numbers.
            if let Some(row) = columns.session.iter().position(|s| !(0..sessions as i64).contains(s)) {
                let (row, session) = (survey.rows + row as u64, columns.session[row]);
                let message = format!(
                    "row {row}: session {session} is not in the trace set, which has {sessions} in this fragment; \
                     the log belongs to another trace set, or is damaged"
                );
                return Err(TableError::new(path, message));
            }
            if let Some(last) = columns.session.iter().copied().max() {
                survey.last_session = survey.last_session.max(Some(last as u64));
            }
            if let Some(first_measured) = first_measured {
                survey.measure(&columns, first_measured);
            }
            if end != LogEnd::Closed {
                // Later tries repeat the operations of the first one.
                let first = (0..columns.len()).map(|at| columns.row(at)).filter(|row| row.try_number == 0);
                first.for_each(|row| survey.count(row.session));
            }
            survey.rows += columns.len() as u64;
        }
        let mut later = i64::MAX;
        for start in survey.later_start.iter_mut().rev() {
            (*start, later) = (later, later.min(*start));
        }
        Ok(survey)
    }

    fn measure(&mut self, columns: &LogColumns, first_measured: u64) {
        for ((session, start), end) in columns.session.iter().zip(&columns.start_ns).zip(&columns.end_ns) {
            if *session as u64 >= first_measured {
                let (first, last) = self.measured.unwrap_or((*start, *end));
                self.measured = Some((first.min(*start), last.max(*end)));
            }
        }
    }

    fn count(&mut self, session: u64) {
        // A session before the first is an error; the join reports it with its row.
        let Some(index) = session.checked_sub(self.header.first_session) else { return };
        let index = index as usize;
        if self.rows_of.len() <= index {
            self.rows_of.resize(index + 1, 0);
        }
        self.rows_of[index] = self.rows_of[index].saturating_add(1);
    }

    /// Whether the operation is in the (torn) log. A session's steps are logged in order.
    pub(crate) fn has(&self, session: u64, step: u16) -> bool {
        let rows = session.checked_sub(self.header.first_session).and_then(|index| self.rows_of.get(index as usize));
        rows.is_some_and(|rows| u16::from(*rows) > step || *rows == u8::MAX)
    }

    /// The first session that cannot have begun before the replayer died.
    pub(crate) fn begun_before(&self) -> u64 {
        let next = self.last_session.map_or(self.header.first_session, |last| last + 1);
        let header = &self.header;
        let unlogged = header.unwritten_rows_max.saturating_add(header.aside_sessions_max);
        next.saturating_add(unlogged).saturating_add(header.threads as u64)
    }
}

/// The parts of a batch that rows refer to by their place.
struct Held {
    observed: Observed,
    /// The errors as (row, text), sorted by row.
    errors: Vec<(u32, String)>,
    /// How many rows have not been released.
    left: usize,
}

/// The batches that rows still refer to.
#[derive(Default)]
pub(crate) struct HeldBatches {
    first: u32,
    batches: VecDeque<Held>,
}

impl HeldBatches {
    /// The number that the next batch will have.
    pub(crate) fn next(&self) -> u32 {
        self.first + self.batches.len() as u32
    }

    /// Keeps the parts of a batch that rows refer to.
    pub(crate) fn hold(&mut self, columns: LogColumns) {
        let left = columns.len();
        self.batches.push_back(Held { observed: columns.observed, errors: columns.errors, left });
        self.drop_done();
    }

    pub(crate) fn observed(&self, place: Place) -> &[i64] {
        self.batches[(place.batch - self.first) as usize].observed.of_row(place.row as usize)
    }

    pub(crate) fn error(&self, place: Place) -> Option<&str> {
        let errors = &self.batches[(place.batch - self.first) as usize].errors;
        let at = errors.binary_search_by_key(&place.row, |(row, _)| *row).ok()?;
        Some(&errors[at].1)
    }

    /// Releases a row that is no longer needed.
    pub(crate) fn release(&mut self, place: Place) {
        self.batches[(place.batch - self.first) as usize].left -= 1;
        if place.batch == self.first {
            self.drop_done();
        }
    }

    fn drop_done(&mut self) {
        // The newest batch stays: it may still be in use.
        while self.batches.len() > 1 && self.batches[0].left == 0 {
            self.batches.pop_front();
            self.first += 1;
        }
    }
}
