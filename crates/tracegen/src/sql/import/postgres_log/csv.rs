//! The reader of csvlog: 24 columns in PostgreSQL 13, 26 since 14. A text in quotes may hold line ends.

use super::Reader;
use super::entry::{Entry, Severity};
use super::stderr::{CUT, NOT_UTF8};
use crate::sql::import::error::ImportError;
use crate::sql::import::lines::Lines;
use crate::sql::import::tally::{Place, Tally};
use crate::sql::import::time::Clock;

/// How many columns versions of PostgreSQL write: up to 12, 13, and since 14.
const COLUMNS: [usize; 3] = [23, 24, 26];
const LOG_TIME: usize = 0;
const USER: usize = 1;
const DATABASE: usize = 2;
const PROCESS: usize = 3;
const SESSION: usize = 5;
const SEVERITY: usize = 11;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const CONTEXT: usize = 18;
const STATEMENT: usize = 19;

/// Records that lack columns or have a wrong value.
pub const BROKEN: &str = "record of the CSV log is damaged";

/// The entries of one file.
pub struct Csv {
    lines: Lines,
    file: u32,
    clock: Clock,
    record: Vec<u8>,
    columns: Vec<String>,
    taken: u64,
}

impl Csv {
    /// Reads a file.
    pub fn new(lines: Lines, file: u32) -> Csv {
        Csv { lines, file, clock: Clock::default(), record: Vec::new(), columns: Vec::new(), taken: 0 }
    }

    /// Reads a record: lines until all quotes are closed. None at the end of the file, else whether the
    /// record is whole.
    fn read(&mut self, place: &mut Place) -> Result<Option<bool>, ImportError> {
        self.record.clear();
        let mut is_open = false;
        loop {
            if !self.lines.advance()? {
                return Ok((!self.record.is_empty()).then_some(false));
            }
            if self.record.is_empty() {
                *place = Place { file: self.file, line: self.lines.number() };
            } else {
                self.record.push(b'\n');
            }
            let line = self.lines.line();
            self.record.extend_from_slice(line);
            is_open ^= line.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
            if !is_open {
                return Ok(Some(self.lines.is_whole()));
            }
        }
    }

    /// Splits the record into its columns. False if it is not CSV.
    fn split(&mut self) -> bool {
        let Ok(record) = std::str::from_utf8(&self.record) else { return false };
        let mut used = 0;
        let mut rest = record;
        loop {
            if used == self.columns.len() {
                self.columns.push(String::new());
            }
            let column = &mut self.columns[used];
            column.clear();
            used += 1;
            if let Some(quoted) = rest.strip_prefix('"') {
                rest = quoted;
                loop {
                    let Some(end) = rest.find('"') else { return false };
                    column.push_str(&rest[..end]);
                    rest = &rest[end + 1..];
                    let Some(again) = rest.strip_prefix('"') else { break };
                    column.push('"');
                    rest = again;
                }
            } else {
                let end = rest.find(',').unwrap_or(rest.len());
                column.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None => break,
            }
        }
        self.columns.truncate(used);
        rest.is_empty()
    }

    fn fill(&mut self, entry: &mut Entry) -> bool {
        let columns = &self.columns;
        let Some((time, _)) = self.clock.take(&columns[LOG_TIME]) else { return false };
        let Some(severity) = Severity::of(&columns[SEVERITY]) else { return false };
        entry.clear();
        (entry.time, entry.severity) = (time, severity);
        entry.process = columns[PROCESS].parse().unwrap_or(0);
        for (text, column) in [
            (&mut entry.session, SESSION),
            (&mut entry.user, USER),
            (&mut entry.database, DATABASE),
            (&mut entry.message, MESSAGE),
            (&mut entry.detail, DETAIL),
            (&mut entry.context, CONTEXT),
            (&mut entry.statement, STATEMENT),
        ] {
            text.push_str(&columns[column]);
        }
        true
    }
}

impl Reader for Csv {
    fn next(&mut self, entry: &mut Entry, tally: &mut Tally) -> Result<bool, ImportError> {
        let mut place = Place::default();
        while let Some(is_whole) = self.read(&mut place)? {
            if self.record.is_empty() {
                continue;
            }
            if !is_whole {
                tally.add(CUT, place, &self.record);
                continue;
            }
            if std::str::from_utf8(&self.record).is_err() {
                tally.add(NOT_UTF8, place, &self.record);
                continue;
            }
            let is_csv = self.split();
            if is_csv && COLUMNS.contains(&self.columns.len()) && self.fill(entry) {
                entry.place = place;
                self.taken += 1;
                return Ok(true);
            }
            if self.taken == 0 {
                let found = if is_csv { format!("{} columns", self.columns.len()) } else { "no CSV".to_string() };
                return Err(ImportError::line(
                    self.lines.path(),
                    place.line,
                    format!(
                        "is no record of a csvlog, but {found}; PostgreSQL 13 writes 24 columns, later versions 26; \
                         use another --format"
                    ),
                ));
            }
            tally.add(BROKEN, place, &self.record);
        }
        Ok(false)
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}
