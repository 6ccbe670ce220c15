//! The reader of jsonlog: one object a line.

use std::borrow::Cow;

use serde::Deserialize;

use super::Reader;
use super::entry::{Entry, Severity};
use super::stderr::{CUT, NOT_UTF8};
use crate::sql::import::error::ImportError;
use crate::sql::import::lines::Lines;
use crate::sql::import::tally::{Place, Tally};
use crate::sql::import::time::Clock;

/// Lines that are no object of the log, or lack a key.
pub const BROKEN: &str = "object of the JSON log is damaged";

/// The keys that are used.
#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    user: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    dbname: Option<Cow<'a, str>>,
    #[serde(default)]
    pid: Option<u32>,
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    error_severity: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    detail: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    context: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    statement: Option<Cow<'a, str>>,
}

/// The entries of one file.
pub struct Json {
    lines: Lines,
    file: u32,
    clock: Clock,
    taken: u64,
}

impl Json {
    /// Reads a file.
    pub fn new(lines: Lines, file: u32) -> Json {
        Json { lines, file, clock: Clock::default(), taken: 0 }
    }

    /// Fills an entry. The error says what is wrong with the line.
    fn fill(&mut self, entry: &mut Entry) -> Result<(), String> {
        let line = std::str::from_utf8(self.lines.line()).map_err(|e| e.to_string())?;
        let object: Object<'_> = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let (time, _) = self.clock.take(&object.timestamp).ok_or("timestamp is no time")?;
        let severity = Severity::of(&object.error_severity).ok_or("error_severity is unknown")?;
        entry.clear();
        (entry.time, entry.severity, entry.process) = (time, severity, object.pid.unwrap_or(0));
        entry.session.push_str(&object.session_id);
        for (text, value) in [
            (&mut entry.user, &object.user),
            (&mut entry.database, &object.dbname),
            (&mut entry.message, &object.message),
            (&mut entry.detail, &object.detail),
            (&mut entry.context, &object.context),
            (&mut entry.statement, &object.statement),
        ] {
            text.push_str(value.as_deref().unwrap_or_default());
        }
        Ok(())
    }
}

impl Reader for Json {
    fn next(&mut self, entry: &mut Entry, tally: &mut Tally) -> Result<bool, ImportError> {
        while self.lines.advance()? {
            let place = Place { file: self.file, line: self.lines.number() };
            if self.lines.line().is_empty() {
                continue;
            }
            let is_utf8 = std::str::from_utf8(self.lines.line()).is_ok();
            match self.fill(entry) {
                Ok(()) => {
                    entry.place = place;
                    self.taken += 1;
                    return Ok(true);
                }
                Err(_) if !self.lines.is_whole() => tally.add(CUT, place, self.lines.line()),
                Err(_) if !is_utf8 => tally.add(NOT_UTF8, place, self.lines.line()),
                Err(message) if self.taken == 0 => {
                    return Err(ImportError::line(
                        self.lines.path(),
                        place.line,
                        format!("is no object of a jsonlog: {message}; use another --format"),
                    ));
                }
                Err(_) => tally.add(BROKEN, place, self.lines.line()),
            }
        }
        Ok(false)
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}
