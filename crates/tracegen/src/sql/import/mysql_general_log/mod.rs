//! Imports the general log of MySQL and MariaDB.

mod line;

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::Imported;
use super::error::ImportError;
use super::lexer::Dialect;
use super::lines::Lines;
use super::sessions::{Executed, Sessions, Window};
use super::spool::{MEMORY, Spool};
use super::tally::{Place, Tally, beginning};
use super::time::Time;
use line::{Line, Stamps};

/// Connections.
pub const CONNECTIONS: &str = "connections and disconnections";
/// Steps of prepared statements.
pub const STEPS: &str = "Prepare, Close stmt and Reset stmt, whose executions are entries of their own";
/// Other commands of the protocol.
pub const COMMANDS: &str = "other commands of the protocol";
/// What the filter leaves out.
pub const FILTERED: &str = "statement in another database (--database)";
/// The end of a file that was cut off.
pub const CUT: &str = "entry is cut off at the end of its file";
/// Bytes of another encoding.
pub const NOT_UTF8: &str = "text is not UTF-8";
/// Lines before the first entry.
pub const NO_BEGINNING: &str = "line belongs to no entry";
/// Entries before the first time of the log.
pub const NO_TIME: &str = "entry before the first time of the log";

/// An entry whose lines are collected.
#[derive(Debug, Default)]
struct Entry {
    place: Place,
    time: Time,
    connection: u32,
    command: String,
    argument: String,
}

/// What goes from entry to entry.
struct Importer<'a> {
    databases: &'a [String],
    sessions: Sessions,
    tally: Tally,
    /// The database and the session of each connection. Ids may be used again after a restart.
    current: IndexMap<u32, (String, u64)>,
    begun: u64,
    entries: u64,
    /// The latest time of an entry.
    latest: Option<Time>,
}

/// Files of one log may overlap by so much: several threads write, and older versions write whole seconds.
const OVERLAP_US: i64 = 2_000_000;

/// Imports logs. The files may be in any order. Temporary files go to `folder`.
pub fn import(files: &[PathBuf], databases: &[String], window: Window, folder: &Path) -> Result<Imported, ImportError> {
    let mut order = Vec::new();
    for path in files {
        order.push((first(path)?, path));
    }
    order.sort();
    if let Some([(_, one), (_, other)]) = order.array_windows().find(|[(one, _), (other, _)]| one == other) {
        return Err(ImportError::Logs(format!(
            "{} and {} begin with the same entry; give each log once",
            one.display(),
            other.display()
        )));
    }
    let spool = Spool::new(folder, MEMORY);
    let mut importer = Importer {
        databases,
        sessions: Sessions::new(Dialect::Mysql, window, spool),
        tally: Tally::default(),
        current: IndexMap::new(),
        begun: 0,
        entries: 0,
        latest: None,
    };
    let mut stamps = Stamps::default();
    for (at, ((first, _), path)) in order.iter().enumerate() {
        if let Some(before) = importer.latest.filter(|latest| first.utc < latest.utc - OVERLAP_US) {
            return Err(ImportError::Logs(format!(
                "{}: begins {:.0} s before the end of {}; the files of one import must be parts of one log, one after the \
                 other; leave out copies, and import each server by itself",
                path.display(),
                (before.utc - first.utc) as f64 / 1e6,
                order[at - 1].1.display()
            )));
        }
        importer.read(path, &mut stamps)?;
    }
    let mut imported = Imported::of(importer.sessions, importer.tally, importer.entries)?;
    if stamps.has_seconds {
        let note = "the log has whole seconds only, so due times do too; MySQL 5.7 and later write microseconds";
        imported.report.notes.push(note.to_string());
    }
    if imported.report.statements == 0 {
        let report = imported.report;
        return Err(ImportError::Logs(format!(
            "the logs hold no statement that can be taken; record with general_log = ON, and widen the filters\n{report}"
        )));
    }
    Ok(imported)
}

/// The first entry of a file that has a time: its time and its line.
fn first(path: &Path) -> Result<(Time, String), ImportError> {
    let (mut lines, mut stamps) = (Lines::open(path)?, Stamps::default());
    let mut start = None;
    while lines.number() < 1_000 && lines.advance()? {
        let line = String::from_utf8_lossy(lines.line()).into_owned();
        start.get_or_insert_with(|| beginning(line.as_bytes()));
        if let Some(Line { time: Some(time), .. }) = stamps.read(&line) {
            return Ok((time, line));
        }
    }
    Err(ImportError::line(
        path,
        1,
        format!(
            "is no general log of MySQL or MariaDB: none of the first lines has a time, an id and a command; it begins \
             with {:?}; give the file of general_log_file",
            start.unwrap_or_default()
        ),
    ))
}

impl Importer<'_> {
    fn read(&mut self, path: &Path, stamps: &mut Stamps) -> Result<(), ImportError> {
        let (mut lines, file) = (Lines::open(path)?, self.tally.file(path));
        let mut open: Option<Entry> = None;
        let mut time = None;
        while lines.advance()? {
            let place = Place { file, line: lines.number() };
            let Ok(line) = std::str::from_utf8(lines.line()) else {
                self.tally.add(NOT_UTF8, place, lines.line());
                open = None;
                continue;
            };
            match stamps.read(line) {
                Some(Line { time: own, connection, command, argument }) => {
                    if let Some(done) = open.take() {
                        self.take(done)?;
                    }
                    time = own.or(time);
                    let (command, argument) = (command.to_string(), argument.to_string());
                    match time {
                        Some(time) => open = Some(Entry { place, time, connection, command, argument }),
                        None => self.tally.add(NO_TIME, place, line.as_bytes()),
                    }
                }
                // A server that starts writes three lines.
                None if line::is_header(line) => {
                    if let Some(done) = open.take() {
                        self.take(done)?;
                    }
                }
                None => match &mut open {
                    Some(entry) => {
                        entry.argument.push('\n');
                        entry.argument.push_str(line);
                    }
                    None => self.tally.add(NO_BEGINNING, place, line.as_bytes()),
                },
            }
            if !lines.is_whole()
                && let Some(cut) = open.take()
            {
                self.tally.add(CUT, cut.place, cut.argument.as_bytes());
            }
        }
        open.map_or(Ok(()), |last| self.take(last))
    }

    /// Hands an entry to its session, or counts it.
    fn take(&mut self, entry: Entry) -> Result<(), ImportError> {
        self.entries += 1;
        self.latest = self.latest.max(Some(entry.time));
        let (text, id) = (entry.argument.as_str(), entry.connection);
        match entry.command.as_str() {
            "Connect" | "Change user" => {
                self.sessions.end(id, &mut self.tally)?;
                // `user@host on database using TCP/IP`
                let database = text.split(" on ").nth(1).and_then(|rest| rest.split(" using").next());
                self.begin(id, database.unwrap_or_default().trim());
                self.tally.add(CONNECTIONS, entry.place, text.as_bytes());
            }
            "Quit" => {
                self.current.swap_remove(&id);
                self.sessions.end(id, &mut self.tally)?;
                self.tally.add(CONNECTIONS, entry.place, text.as_bytes());
            }
            "Init DB" => {
                self.enter(id).0 = text.trim().to_string();
                self.tally.add(COMMANDS, entry.place, text.as_bytes());
            }
            "Prepare" | "Close stmt" | "Reset stmt" => self.tally.add(STEPS, entry.place, text.as_bytes()),
            "Query" | "Execute" => return self.execute(&entry),
            _ => self.tally.add(COMMANDS, entry.place, text.as_bytes()),
        }
        Ok(())
    }

    fn begin(&mut self, id: u32, database: &str) {
        self.begun += 1;
        self.current.insert(id, (database.to_string(), self.begun));
    }

    fn enter(&mut self, id: u32) -> &mut (String, u64) {
        if !self.current.contains_key(&id) {
            self.begin(id, "");
        }
        let begun = self.begun;
        self.current.entry(id).or_insert_with(|| (String::new(), begun))
    }

    fn execute(&mut self, entry: &Entry) -> Result<(), ImportError> {
        let text = entry.argument.as_str();
        if let Some(name) = used(text) {
            self.enter(entry.connection).0 = name.to_string();
        }
        let (database, number) = self.enter(entry.connection).clone();
        let name = format!("{}.{number}", entry.connection);
        if !self.databases.is_empty() && !self.databases.contains(&database) {
            self.tally.add(FILTERED, entry.place, text.as_bytes());
            return Ok(());
        }
        let executed =
            Executed { place: entry.place, start: entry.time, took_us: None, text, bounds: None, failed: false };
        self.sessions.execute(entry.connection, &name, executed, &mut self.tally)
    }
}

/// The database that a `USE` names.
fn used(text: &str) -> Option<&str> {
    let (first, name) = text.trim().split_once(char::is_whitespace)?;
    first.eq_ignore_ascii_case("use").then(|| name.trim().trim_end_matches(';').trim_matches('`'))
}

#[cfg(test)]
mod tests;
