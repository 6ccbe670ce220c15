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
    has_begun: bool,
}

impl Csv {
    /// Reads a file.
    pub fn new(lines: Lines, file: u32) -> Csv {
        let (record, columns) = (Vec::new(), Vec::new());
        Csv { lines, file, clock: Clock::default(), record, columns, taken: 0, has_begun: false }
    }

    /// Leaves out the end of a record whose beginning is not in the file. A file that has no record at all is
    /// refused with its first line.
    fn skip_to_record(&mut self, tally: &mut Tally) -> Result<(), ImportError> {
        let mut skipped: Option<Place> = None;
        while self.lines.advance()? {
            if begins_record(self.lines.line()) {
                self.lines.put_back();
                break;
            }
            if self.record.is_empty() {
                self.record.extend_from_slice(self.lines.line());
                skipped = Some(Place { file: self.file, line: self.lines.number() });
            }
        }
        let Some(place) = skipped else { return Ok(()) };
        if !self.lines.is_back() {
            return Err(self.no_record(place.line));
        }
        tally.add(CUT, place, &self.record);
        Ok(())
    }

    /// The error for a file that is no csvlog, by what was read last.
    fn no_record(&mut self, line: u64) -> ImportError {
        let found = if self.split() { format!("{} columns", self.columns.len()) } else { "no CSV".to_string() };
        let message = format!(
            "is no record of a csvlog, but {found}; PostgreSQL 13 writes 24 columns, later versions 26; use another --format"
        );
        ImportError::line(self.lines.path(), line, message)
    }

    /// Reads a record: lines until all quotes are closed, or until another record begins, since a record that was cut
    /// closes none. None at the end of the file, else whether the record is whole.
    fn read(&mut self, place: &mut Place) -> Result<Option<bool>, ImportError> {
        self.record.clear();
        let mut is_open = false;
        loop {
            if !self.lines.advance()? {
                return Ok((!self.record.is_empty()).then_some(false));
            }
            if self.record.is_empty() {
                *place = Place { file: self.file, line: self.lines.number() };
            } else if begins_record(self.lines.line()) {
                self.lines.put_back();
                return Ok(Some(false));
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

/// Whether a line is the beginning of a record: time, user, database, process. Within a text, quotes are doubled, so that
/// no line of one looks like this.
pub fn begins_record(line: &[u8]) -> bool {
    // Most lines of a text end here.
    if !line.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let end = line.len().min(400);
    let text = String::from_utf8_lossy(&line[..end]);
    let Some((_, after)) = Clock::default().take(&text) else { return false };
    let name = |text| -> Option<&str> {
        let text: &str = str::strip_prefix(text, ",")?;
        match text.strip_prefix('"') {
            Some(quoted) => quoted.find('"').map(|end| &quoted[end + 1..]),
            None => Some(text),
        }
    };
    let Some(rest) = name(after).and_then(name).and_then(|rest| rest.strip_prefix(',')) else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && rest.as_bytes().get(digits) == Some(&b',')
}

impl Reader for Csv {
    fn next(&mut self, entry: &mut Entry, tally: &mut Tally) -> Result<bool, ImportError> {
        let mut place = Place::default();
        if !std::mem::replace(&mut self.has_begun, true) {
            self.skip_to_record(tally)?;
        }
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
            if self.split() && COLUMNS.contains(&self.columns.len()) && self.fill(entry) {
                entry.place = place;
                self.taken += 1;
                return Ok(true);
            }
            if self.taken == 0 {
                return Err(self.no_record(place.line));
            }
            tally.add(BROKEN, place, &self.record);
        }
        Ok(false)
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}
