//! What the manifest of a trace set says of its statements.

use serde::{Deserialize, Serialize};

/// Statistics of a trace set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SqlStatistics {
    /// The verb and the types of the parameters of each statement, such as `query(integer,text)`.
    pub statements: Vec<String>,
    /// How often each statement is in the sessions.
    pub uses: Vec<u64>,
    /// How many rows the preload leaves in all tables. None if its statements do not tell.
    pub loaded_rows: Option<u64>,
    /// The custom parameters of the sessions: each list of them that a statement has, the first
    /// [`CustomUse::MOST`] ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<CustomUse>,
    /// How long the arrivals of the source take, in microseconds.
    pub length_us: u64,
}

/// Custom parameters of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomUse {
    /// The number of the statement.
    pub statement: u32,
    /// The custom parameters.
    pub parameters: Vec<String>,
    /// How many operations have them.
    pub uses: u64,
}

impl CustomUse {
    /// How many lists of custom parameters the statistics have. A store checks those before a run, and all others when their
    /// operations come.
    pub const MOST: usize = 1_000;
}
