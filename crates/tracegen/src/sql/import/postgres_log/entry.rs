//! An entry of a log, whatever its format.

use crate::sql::import::tally::Place;
use crate::sql::import::time::Time;

/// How serious a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Severity {
    /// For the log: statements and durations among them.
    #[default]
    Log,
    /// A statement failed.
    Error,
    /// A session ends.
    Fatal,
    /// The server ends.
    Panic,
    /// Anything else: DEBUG, INFO, NOTICE, WARNING.
    Other,
}

impl Severity {
    /// The severity of a word of the log; None if it is none.
    pub fn of(word: &str) -> Option<Severity> {
        match word {
            "LOG" => Some(Severity::Log),
            "ERROR" => Some(Severity::Error),
            "FATAL" => Some(Severity::Fatal),
            "PANIC" => Some(Severity::Panic),
            "INFO" | "NOTICE" | "WARNING" => Some(Severity::Other),
            _ if word.starts_with("DEBUG") => Some(Severity::Other),
            _ => None,
        }
    }
}

/// An entry: what the server reported at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Where it begins.
    pub place: Place,
    /// When it was written.
    pub time: Time,
    /// What names its session: the same text in all entries of the session. Empty if the entry has none.
    pub session: String,
    /// The process of its session; 0 if the log does not say.
    pub process: u32,
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
    /// How serious it is.
    pub severity: Severity,
    /// The message.
    pub message: String,
    /// The details: the parameters of a statement among them.
    pub detail: String,
    /// The context: the parameters of a statement that failed among them.
    pub context: String,
    /// The statement that led to the message.
    pub statement: String,
}

impl Entry {
    /// Empties it, and keeps its memory.
    pub fn clear(&mut self) {
        let texts = [
            &mut self.session,
            &mut self.user,
            &mut self.database,
            &mut self.message,
            &mut self.detail,
            &mut self.context,
            &mut self.statement,
        ];
        texts.into_iter().for_each(String::clear);
        (self.place, self.time, self.process, self.severity) = Default::default();
    }
}
