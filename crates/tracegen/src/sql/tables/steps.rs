//! The rows of operations: their columns, and what one of them says.

use std::path::Path;

use schemas::vocabulary::Control;

use super::ImportError;
use super::rows::{Column, Rows, needed, optional};

const COLUMNS: [Column; 9] = [
    needed("process"),
    needed("statement"),
    optional("parameters"),
    optional("client"),
    optional("kind"),
    optional("due_us"),
    optional("think_us"),
    optional("custom"),
    optional("warmup"),
];
const PROCESS: usize = 0;
const STATEMENT: usize = 1;
const PARAMETERS: usize = 2;
const CLIENT: usize = 3;
const KIND: usize = 4;
const DUE: usize = 5;
const THINK: usize = 6;
const CUSTOM: usize = 7;
const WARMUP: usize = 8;

/// The greatest client, so that what is kept by client has room.
const CLIENT_MAX: u64 = 100_000_000 - 1;

/// The latest due time of a trace, some 12 days.
const DUE_MAX: u64 = 1 << 40;

/// The longest wait of a trace.
const THINK_MAX: u64 = i32::MAX as u64;

/// The rows of operations.
pub(super) struct Steps(pub(super) Rows);

/// What a row does.
pub(super) enum Does<'a> {
    Control(Control),
    Statement(&'a str),
}

impl Steps {
    pub(super) fn open(path: &Path) -> Result<Steps, ImportError> {
        Rows::open(path, &COLUMNS).map(Steps)
    }

    pub(super) fn process(&self) -> Result<&str, ImportError> {
        self.0.needed(PROCESS, "process")
    }

    pub(super) fn does(&self) -> Result<Does<'_>, ImportError> {
        let word = self.0.needed(STATEMENT, "statement")?;
        let controls = [("begin", Control::Begin), ("commit", Control::Commit), ("abort", Control::Abort)];
        let control = controls.into_iter().find(|(name, _)| word.trim().eq_ignore_ascii_case(name));
        Ok(control.map_or(Does::Statement(word), |(_, control)| Does::Control(control)))
    }

    pub(super) fn parameters(&self) -> Option<&str> {
        self.0.get(PARAMETERS)
    }

    pub(super) fn kind(&self) -> Option<&str> {
        self.0.get(KIND)
    }

    pub(super) fn client(&self) -> Result<Option<u64>, ImportError> {
        self.0.number(CLIENT, "client", CLIENT_MAX)
    }

    pub(super) fn due_us(&self) -> Result<Option<u64>, ImportError> {
        self.0.number(DUE, "due_us", DUE_MAX)
    }

    pub(super) fn think_us(&self) -> Result<u32, ImportError> {
        Ok(self.0.number(THINK, "think_us", THINK_MAX)?.unwrap_or(0) as u32)
    }

    /// Whether the process is one of the warm-up. None if the row does not say.
    pub(super) fn warmup(&self) -> Result<Option<bool>, ImportError> {
        match self.0.get(WARMUP).map(str::trim) {
            None => Ok(None),
            Some("1") => Ok(Some(true)),
            Some("0") => Ok(Some(false)),
            Some(text) => text.to_ascii_lowercase().parse().map(Some).map_err(|_| {
                self.0
                    .wrong(format!("warmup is {text:?}; write true or 1 for a process of the warm-up, else false or 0"))
            }),
        }
    }

    /// What only a store's adapter interprets: a JSON array of texts.
    pub(super) fn custom(&self) -> Result<Vec<String>, ImportError> {
        let read = |text: &str| {
            serde_json::from_str(text)
                .map_err(|error| self.0.wrong(format!("custom is no JSON array of texts, such as [\"ONE\"]: {error}")))
        };
        self.0.get(CUSTOM).map_or(Ok(Vec::new()), read)
    }
}
