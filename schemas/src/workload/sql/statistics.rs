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
    /// How long the arrivals of the source take, in microseconds.
    pub length_us: u64,
}
