//! Imports PostgreSQL's logs: in the form of stderr, csvlog and jsonlog, of versions 13 to 18.

mod csv;
mod entry;
mod json;
mod message;
mod parameters;
mod prefix;
mod stderr;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use schemas::words::{plural, thousands};

use super::error::ImportError;
use super::lexer::Dialect;
use super::lines::Lines;
use super::sessions::{Executed, Sessions, Window};
use super::spool::{MEMORY, Spool};
use super::tally::{Tally, beginning};
use super::time::{Clock, Time};
use super::values::Bound;
use super::{Imported, Report};
pub use entry::{Entry, Severity};
use message::Message;
pub use prefix::{Found, KNOWN, Prefix};

/// How far the times of one log may go back from a file to the next one: processes write at once.
const OVERLAP_US: i64 = 10_000_000;

/// More rows of a statement that runs.
pub const FETCH: &str = "execution goes on with more rows of its portal";
/// Parts of an execution.
pub const STEPS: &str = "parse and bind steps, whose execution is an entry of its own";
/// Durations without a statement.
pub const DURATIONS: &str = "duration of something that was not taken";
/// Connections.
pub const CONNECTIONS: &str = "connections and disconnections";
/// Plans of auto_explain.
pub const PLANS: &str = "plans of auto_explain";
/// Messages about other things.
pub const MESSAGES: &str = "other messages of the server";
/// Warnings.
pub const WARNINGS: &str = "notices, warnings and debug messages";
/// Errors without a statement.
pub const ERRORS: &str = "error without its statement";
/// What the filters leave out.
pub const FILTERED: &str = "entry of another database or user (--database, --user)";

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines with a prefix.
    Stderr,
    /// csvlog.
    Csv,
    /// jsonlog.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        match name {
            "stderr" => Ok(Format::Stderr),
            "csv" => Ok(Format::Csv),
            "json" => Ok(Format::Json),
            _ => Err(format!("{name:?} is no format; use stderr, csv or json")),
        }
    }
}

/// What is imported, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The server's `log_line_prefix`, for logs in the form of stderr; None tries the usual ones.
    pub prefix: Option<String>,
    /// The form of the files; None looks at each one.
    pub format: Option<Format>,
    /// Only these databases; all if empty.
    pub databases: Vec<String>,
    /// Only these users; all if empty.
    pub users: Vec<String>,
    /// Which transactions.
    pub window: Window,
}

impl Options {
    fn holds(&self, entry: &Entry) -> bool {
        let is_one = |names: &[String], name: &str| names.is_empty() || names.iter().any(|one| one == name);
        is_one(&self.databases, &entry.database) && is_one(&self.users, &entry.user)
    }
}

/// Reads the entries of one file.
pub trait Reader {
    /// Reads the next entry; false after the last one.
    fn next(&mut self, entry: &mut Entry, tally: &mut Tally) -> Result<bool, ImportError>;
    /// The clock that has read its times.
    fn clock(&self) -> &Clock;
}

/// A file whose form is known.
struct Log {
    path: PathBuf,
    format: Format,
    prefix: Option<Prefix>,
    first: Time,
}

impl Log {
    fn open(&self, file: u32) -> Result<Box<dyn Reader>, ImportError> {
        reader(Lines::open(&self.path)?, file, self.format, self.prefix.as_ref())
    }
}

/// The reader of a file's lines. Logs in the form of stderr need a prefix.
pub fn reader(
    lines: Lines,
    file: u32,
    format: Format,
    prefix: Option<&Prefix>,
) -> Result<Box<dyn Reader>, ImportError> {
    match (format, prefix) {
        (Format::Csv, _) => Ok(Box::new(csv::Csv::new(lines, file))),
        (Format::Json, _) => Ok(Box::new(json::Json::new(lines, file))),
        (Format::Stderr, Some(prefix)) => Ok(Box::new(stderr::Stderr::new(lines, file, prefix.clone()))),
        (Format::Stderr, None) => Err(no_prefix(&lines, lines.number(), lines.line())),
    }
}

fn no_prefix(lines: &Lines, number: u64, line: &[u8]) -> ImportError {
    let known = KNOWN.map(|prefix| format!("{prefix:?}")).join(", ");
    let message = format!(
        "the lines begin with none of the usual prefixes ({known}), and are neither CSV nor JSON; \
         give the server's setting (SHOW log_line_prefix) with --log-line-prefix; this line: {}",
        beginning(line)
    );
    ImportError::line(lines.path(), number, message)
}

/// Imports logs. The files may be in any order. Temporary files go to `folder`.
pub fn import(files: &[PathBuf], options: &Options, folder: &Path) -> Result<Imported, ImportError> {
    let given = options.prefix.as_deref().map(Prefix::parse).transpose();
    let given = given.map_err(|message| ImportError::flag("--log-line-prefix", message))?;
    let mut logs = Vec::new();
    for path in files {
        logs.extend(look(path, options, given.as_ref())?);
    }
    if logs.is_empty() {
        return Err(ImportError::Logs("the logs are empty; nothing can be imported".into()));
    }
    logs.sort_by(|a, b| a.first.cmp(&b.first).then_with(|| a.path.cmp(&b.path)));
    for log in &logs {
        check_filters(log, options)?;
    }
    let mut tally = Tally::default();
    let mut sessions = Sessions::new(Dialect::Postgres, options.window, Spool::new(folder, MEMORY));
    let (mut entries, mut entry, mut latest) = (0, Entry::default(), None::<Time>);
    let (mut unknown, mut noticed) = (Vec::new(), Noticed::default());
    for (at, log) in logs.iter().enumerate() {
        if let Some(before) = latest.filter(|latest| log.first.utc < latest.utc - OVERLAP_US || is_same(&logs, at)) {
            return Err(overlap(&logs, at, before));
        }
        let mut reader = log.open(tally.file(&log.path))?;
        while reader.next(&mut entry, &mut tally)? {
            entries += 1;
            latest = latest.max(Some(entry.time));
            noticed.look(&entry, options);
            take(&entry, options, &mut sessions, &mut tally, &mut noticed)?;
        }
        unknown.extend(reader.clock().unknown().map(str::to_string));
    }
    let mut imported = Imported::of(sessions, tally, entries)?;
    note(&mut imported.report, &logs, unknown);
    imported.report.notes.extend(noticed.notes());
    if imported.report.statements == 0 {
        return Err(nothing(&imported.report));
    }
    Ok(imported)
}

/// Finds out the form of a file and the time of its first entry; None if it is empty.
fn look(path: &Path, options: &Options, given: Option<&Prefix>) -> Result<Option<Log>, ImportError> {
    let mut lines = Lines::open(path)?;
    let mut has_text = false;
    while !has_text && lines.advance()? {
        has_text = !lines.line().is_empty();
    }
    if !has_text {
        return Ok(None);
    }
    let mut format = options.format.unwrap_or_else(|| form(lines.line()));
    let (number, first) = (lines.number(), lines.line().to_vec());
    let mut prefix = given.cloned();
    if format == Format::Stderr && prefix.is_none() {
        lines.put_back();
        prefix = stderr::guess(&mut lines)?;
        // A csvlog may begin in the middle of a record.
        if prefix.is_none() && options.format.is_none() && has_csv(path)? {
            format = Format::Csv;
        }
    }
    if format == Format::Stderr && prefix.is_none() {
        return Err(no_prefix(&lines, number, &first));
    }
    let mut log = Log { path: path.to_path_buf(), format, prefix, first: Time::default() };
    let (mut entry, mut tally) = (Entry::default(), Tally::default());
    let mut reader = log.open(tally.file(path))?;
    if !reader.next(&mut entry, &mut tally)? {
        return Ok(None);
    }
    log.first = entry.time;
    Ok(Some(log))
}

/// How far the middle of a record may reach into a file.
const LINES_OF_A_RECORD: usize = 1_000;

/// Whether one of the first lines of a file begins a record of a csvlog.
fn has_csv(path: &Path) -> Result<bool, ImportError> {
    let mut lines = Lines::open(path)?;
    for _ in 0..LINES_OF_A_RECORD {
        if !lines.advance()? {
            break;
        }
        if csv::begins_record(lines.line()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The form of a log by its first line.
fn form(line: &[u8]) -> Format {
    if line.first() == Some(&b'{') {
        return Format::Json;
    }
    let text = String::from_utf8_lossy(line);
    let after = Clock::default().take(&text).map(|(_, after)| after.as_bytes());
    match after {
        Some([b',', b'"' | b',', ..]) => Format::Csv,
        _ => Format::Stderr,
    }
}

/// Refuses filters that the prefix of a log cannot serve.
fn check_filters(log: &Log, options: &Options) -> Result<(), ImportError> {
    let Some(prefix) = log.prefix.as_ref().filter(|_| log.format == Format::Stderr) else { return Ok(()) };
    let needed = [("--database", 'd', &options.databases), ("--user", 'u', &options.users)];
    for (flag, field, names) in needed {
        if !names.is_empty() && !prefix.tells(field) {
            return Err(ImportError::flag(
                flag,
                format!(
                    "log_line_prefix {:?} does not tell %{field} from what is beside it, so {} has no \
                     entries that the flag could choose; remove the flag",
                    prefix.text(),
                    log.path.display()
                ),
            ));
        }
    }
    Ok(())
}

/// Whether a file is the one before it, under this or another name.
fn is_same(logs: &[Log], at: usize) -> bool {
    let of = |at: usize| std::fs::canonicalize(&logs[at].path).ok();
    at > 0 && of(at).is_some() && of(at) == of(at - 1)
}

fn overlap(logs: &[Log], at: usize, before: Time) -> ImportError {
    let seconds = (before.utc - logs[at].first.utc) as f64 / 1e6;
    ImportError::Logs(format!(
        "{}: begins {seconds:.0} s before the end of {}; the files of one import must be parts of one log, \
         one after the other; leave out copies, and import each server by itself",
        logs[at].path.display(),
        logs[at - 1].path.display()
    ))
}

/// Hands an entry to its session, or counts it.
fn take(
    entry: &Entry,
    options: &Options,
    sessions: &mut Sessions,
    tally: &mut Tally,
    noticed: &mut Noticed,
) -> Result<(), ImportError> {
    let mut skip = |reason| {
        tally.add(reason, entry.place, entry.message.as_bytes());
        Ok(())
    };
    if !options.holds(entry) {
        return skip(FILTERED);
    }
    let (process, name) = (entry.process, entry.session.as_str());
    let execute = |text, took_us: Option<u64>, failed| {
        let before = took_us.unwrap_or(0) as i64;
        let start = Time { utc: entry.time.utc - before, wall: entry.time.wall - before };
        Executed { place: entry.place, start, took_us, text, bounds: None, failed }
    };
    match entry.severity {
        Severity::Error | Severity::Fatal | Severity::Panic if !entry.statement.is_empty() => {
            let bounds = parameters::of_context(&entry.context);
            let executed = Executed { bounds: bounds.as_deref(), ..execute(&entry.statement, None, true) };
            sessions.fail(process, name, executed, tally)
        }
        Severity::Error | Severity::Fatal | Severity::Panic => skip(ERRORS),
        Severity::Other => skip(WARNINGS),
        Severity::Log => match message::read(&entry.message) {
            Message::Statement { text, took_us } => {
                sessions.execute(process, name, execute(text, took_us, false), tally)
            }
            Message::Execute { is_fetch: true, .. } => skip(FETCH),
            Message::Execute { text, took_us, .. } => {
                let bounds = parameters::of_detail(&entry.detail);
                noticed.cut += u64::from(bounds.as_deref().is_some_and(has_cut));
                let executed = Executed { bounds: bounds.as_deref(), ..execute(text, took_us, false) };
                sessions.execute(process, name, executed, tally)
            }
            Message::Step => skip(STEPS),
            Message::Took(took_us) if sessions.took(process, name, took_us) => Ok(()),
            Message::Took(_) => skip(DURATIONS),
            // A process without an id of its session begins a new one.
            Message::Connected if !name.contains(['.', '@']) => {
                skip(CONNECTIONS).and_then(|()| sessions.end(process, tally))
            }
            Message::Connected => skip(CONNECTIONS),
            Message::Disconnected => skip(CONNECTIONS).and_then(|()| sessions.end(process, tally)),
            Message::Plan => skip(PLANS),
            Message::Other => skip(MESSAGES),
        },
    }
}

/// What entries show that the user should know.
#[derive(Default)]
struct Noticed {
    /// Entries by database.
    databases: BTreeMap<String, u64>,
    /// Statements with a parameter that was perhaps cut.
    cut: u64,
}

impl Noticed {
    fn look(&mut self, entry: &Entry, options: &Options) {
        if entry.severity != Severity::Log || entry.database.is_empty() || !options.holds(entry) {
            return;
        }
        match self.databases.get_mut(&entry.database) {
            Some(count) => *count += 1,
            None => _ = self.databases.insert(entry.database.clone(), 1),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.databases.len() > 1 {
            let names: Vec<String> =
                self.databases.iter().map(|(name, count)| format!("{name} ({})", plural(*count, "entry"))).collect();
            notes.push(format!(
                "the logs have statements of several databases, and all of them are in this trace set: {}; choose with \
                 --database",
                names.join(", ")
            ));
        }
        if self.cut > 0 {
            notes.push(format!(
                "{} a parameter that ends with \"...\", as the server writes those that log_parameter_max_length has cut; \
                 record with log_parameter_max_length = -1",
                match self.cut {
                    1 => "1 statement has".to_string(),
                    cut => format!("{} statements have", thousands(cut)),
                }
            ));
        }
        notes
    }
}

/// Whether the server has perhaps cut one of these parameters.
fn has_cut(bounds: &[Bound]) -> bool {
    bounds.iter().flatten().any(|text| text.ends_with("..."))
}

/// Adds what the user should know.
fn note(report: &mut Report, logs: &[Log], mut unknown: Vec<String>) {
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        report.notes.push(format!("the time zone {names} is not known; its times count as UTC"));
    }
    let has_seconds = |log: &&Log| {
        let prefix = log.prefix.as_ref().filter(|_| log.format == Format::Stderr);
        prefix.is_some_and(|prefix| !prefix.has(&['m', 'n']))
    };
    if let Some(log) = logs.iter().find(has_seconds) {
        let path = log.path.display();
        report.notes.push(format!("{path} has whole seconds only (%t), so due times do too; record with %m"));
    }
}

fn nothing(report: &Report) -> ImportError {
    ImportError::Logs(format!(
        "the logs hold no statement that can be taken; record with log_statement = 'all' or \
         log_min_duration_statement = 0, and widen the filters\n{report}"
    ))
}
