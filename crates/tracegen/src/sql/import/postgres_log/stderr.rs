//! The reader of logs in the form of stderr: a prefix, a word like `LOG:`, and a message. Lines that
//! begin with a tab go on with the message above them.

use super::Reader;
use super::entry::{Entry, Severity};
use super::prefix::{Found, KNOWN, Prefix};
use crate::sql::import::error::ImportError;
use crate::sql::import::lines::Lines;
use crate::sql::import::tally::{Place, Tally, beginning};
use crate::sql::import::time::Clock;

/// After so many lines that do not fit, the prefix is wrong.
const PATIENCE: u64 = 1_000;

/// Lines that begin with a tab, at the beginning of a file.
pub const NO_BEGINNING: &str = "continues an entry whose beginning is not in the logs";
/// Lines with another prefix.
pub const NO_PREFIX: &str = "line does not begin with log_line_prefix";
/// A detail whose message is of another session.
pub const NO_MESSAGE: &str = "DETAIL, CONTEXT or STATEMENT without its message";
/// The end of a file that was cut off.
pub const CUT: &str = "entry is cut off at the end of its file";
/// Bytes of another encoding.
pub const NOT_UTF8: &str = "text is not UTF-8";

/// Which text of the entry a line went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Message,
    Detail,
    Context,
    Statement,
    /// Not kept.
    Other,
}

/// The entries of one file.
pub struct Stderr {
    lines: Lines,
    file: u32,
    prefix: Prefix,
    clock: Clock,
    next: Option<Entry>,
    spare: Entry,
    part: Part,
    fitting: u64,
    others: u64,
    /// The beginning of the first line that did not fit, and its number.
    first_other: Option<(u64, String)>,
}

impl Stderr {
    /// Reads a file with this prefix.
    pub fn new(lines: Lines, file: u32, prefix: Prefix) -> Stderr {
        Stderr {
            lines,
            file,
            prefix,
            clock: Clock::default(),
            next: None,
            spare: Entry::default(),
            part: Part::Other,
            fitting: 0,
            others: 0,
            first_other: None,
        }
    }

    fn place(&self) -> Place {
        Place { file: self.file, line: self.lines.number() }
    }

    /// Takes the line that was read; true if it begins an entry, so that the one before is complete.
    fn take(&mut self, tally: &mut Tally) -> Result<Option<Entry>, ImportError> {
        let place = self.place();
        let Ok(line) = std::str::from_utf8(self.lines.line()) else {
            tally.add(NOT_UTF8, place, self.lines.line());
            // What goes on with this line goes with it.
            self.part = Part::Other;
            return Ok(None);
        };
        if let Some(more) = line.strip_prefix('\t') {
            match (&mut self.next, self.part) {
                (Some(entry), part) => go_on(entry, part, more),
                (None, _) => tally.add(NO_BEGINNING, place, line.as_bytes()),
            }
            return Ok(None);
        }
        let Some(found) = self.prefix.read(line, &mut self.clock) else {
            tally.add(NO_PREFIX, place, line.as_bytes());
            self.part = Part::Other;
            self.others += 1;
            self.first_other.get_or_insert_with(|| (place.line, beginning(line.as_bytes())));
            return if self.fitting == 0 && self.others >= PATIENCE { Err(self.unfit()) } else { Ok(None) };
        };
        self.fitting += 1;
        let Some(severity) = Severity::of(found.word) else {
            self.part = match found.word {
                "DETAIL" => Part::Detail,
                "CONTEXT" => Part::Context,
                "STATEMENT" => Part::Statement,
                _ => Part::Other,
            };
            let process = process(&found);
            match self.next.as_mut().filter(|entry| is_of(entry, &found, process)) {
                Some(entry) => *text(entry, self.part).unwrap_or(&mut String::new()) = found.rest.to_string(),
                None => {
                    tally.add(NO_MESSAGE, place, line.as_bytes());
                    self.part = Part::Other;
                }
            }
            return Ok(None);
        };
        let mut entry = std::mem::take(&mut self.spare);
        entry.clear();
        (entry.place, entry.time, entry.severity, entry.process) = (place, found.time, severity, process(&found));
        session(&found, &mut entry.session);
        entry.user.push_str(found.user);
        entry.database.push_str(found.database);
        entry.message.push_str(found.rest);
        self.part = Part::Message;
        Ok(self.next.replace(entry))
    }

    fn unfit(&self) -> ImportError {
        let (line, text) = self.first_other.clone().unwrap_or_default();
        let prefix = self.prefix.text();
        ImportError::line(
            self.lines.path(),
            line,
            format!(
                "no line begins with log_line_prefix {prefix:?}; this one begins with {text:?}; \
                 give the server's setting (SHOW log_line_prefix) with --log-line-prefix"
            ),
        )
    }
}

impl Reader for Stderr {
    fn next(&mut self, entry: &mut Entry, tally: &mut Tally) -> Result<bool, ImportError> {
        loop {
            if !self.lines.advance()? {
                if self.fitting == 0 && self.others > 0 {
                    return Err(self.unfit());
                }
                return Ok(self.next.take().is_some_and(|last| {
                    *entry = last;
                    true
                }));
            }
            let is_whole = self.lines.is_whole();
            let done = self.take(tally)?;
            if !is_whole && let Some(last) = self.next.take() {
                tally.add(CUT, last.place, last.message.as_bytes());
            }
            if let Some(done) = done {
                self.spare = std::mem::replace(entry, done);
                return Ok(true);
            }
        }
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// The text of an entry that a part of it goes to.
fn text(entry: &mut Entry, part: Part) -> Option<&mut String> {
    match part {
        Part::Message => Some(&mut entry.message),
        Part::Detail => Some(&mut entry.detail),
        Part::Context => Some(&mut entry.context),
        Part::Statement => Some(&mut entry.statement),
        Part::Other => None,
    }
}

fn go_on(entry: &mut Entry, part: Part, more: &str) {
    if let Some(text) = text(entry, part) {
        text.push('\n');
        text.push_str(more);
    }
}

fn process(found: &Found<'_>) -> u32 {
    let of_id = || u32::from_str_radix(found.session?.split_once('.')?.1, 16).ok();
    found.process.and_then(|digits| digits.parse().ok()).or_else(of_id).unwrap_or(0)
}

/// What names the session: its id, or else its process and when it began.
fn session(found: &Found<'_>, name: &mut String) {
    if let Some(id) = found.session {
        name.push_str(id);
        return;
    }
    name.push_str(found.process.unwrap_or_default());
    if let Some(started) = found.started {
        name.push('@');
        name.push_str(started);
    }
}

fn is_of(entry: &Entry, found: &Found<'_>, process: u32) -> bool {
    match found.session {
        Some(id) => entry.session == id,
        None => entry.process == process,
    }
}

/// The prefix among [`KNOWN`] that most of the first lines of a file begin with; None if hardly any does.
pub fn guess(lines: &mut Lines) -> Result<Option<Prefix>, ImportError> {
    let known: Vec<Prefix> = KNOWN.iter().filter_map(|text| Prefix::parse(text).ok()).collect();
    let mut fitting = vec![0; known.len()];
    let (mut read, mut clock) = (0, Clock::default());
    while read < 200 && lines.advance()? {
        let Ok(line) = std::str::from_utf8(lines.line()) else { continue };
        if line.starts_with('\t') {
            continue;
        }
        read += 1;
        for (prefix, fitting) in known.iter().zip(&mut fitting) {
            *fitting += usize::from(prefix.read(line, &mut clock).is_some());
        }
    }
    let best = known.into_iter().zip(fitting).rev().max_by_key(|(_, fitting)| *fitting);
    Ok(best.filter(|(_, fitting)| *fitting * 2 > read).map(|(prefix, _)| prefix))
}
