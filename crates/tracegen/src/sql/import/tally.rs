//! What of a log was not taken: how many entries for each reason, with an example.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::Serialize;

/// How much of an example is kept, in characters.
const EXAMPLE: usize = 100;

/// Where an entry of a log begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The number of the file, in the order in which the files are read.
    pub file: u32,
    /// The line, from 1.
    pub line: u64,
}

/// Entries that were not taken for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Why.
    pub reason: &'static str,
    /// How many entries, or statements of them.
    pub count: u64,
    /// `file:line` of the first one.
    pub place: String,
    /// The beginning of the first one.
    pub example: String,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Tally {
    files: Vec<PathBuf>,
    refused: IndexMap<&'static str, Refused>,
}

impl Tally {
    /// Begins with a file; returns its number.
    pub fn file(&mut self, path: &Path) -> u32 {
        self.files.push(path.to_path_buf());
        self.files.len() as u32 - 1
    }

    /// The path of a file.
    pub fn path(&self, file: u32) -> &Path {
        self.files.get(file as usize).map_or(Path::new(""), PathBuf::as_path)
    }

    /// Counts an entry that is not taken.
    pub fn add(&mut self, reason: &'static str, place: Place, text: &[u8]) {
        if let Some(refused) = self.refused.get_mut(reason) {
            refused.count += 1;
            return;
        }
        let place = format!("{}:{}", self.path(place.file).display(), place.line);
        self.refused.insert(reason, Refused { reason, count: 1, place, example: beginning(text) });
    }

    /// How many entries were not taken for this reason.
    pub fn count(&self, reason: &str) -> u64 {
        self.refused.get(reason).map_or(0, |refused| refused.count)
    }

    /// All reasons, the most frequent first.
    pub fn refused(&self) -> Vec<Refused> {
        let mut refused: Vec<Refused> = self.refused.values().cloned().collect();
        refused.sort_by(|a, b| b.count.cmp(&a.count).then(a.reason.cmp(b.reason)));
        refused
    }
}

/// The beginning of a text, in one line and without what a terminal would obey.
pub(super) fn beginning(text: &[u8]) -> String {
    let some = &text[..text.len().min(4 * EXAMPLE)];
    let text = String::from_utf8_lossy(some);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(EXAMPLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
