//! The stores of a comparison's plan.

use serde::{Deserialize, Serialize};

/// One of the stores, or one design of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparedStore {
    /// Its name, for table and chart.
    pub label: String,
    /// Its URL. An embedded store without a path (`sqlite:?images=table`) gets a file in the run
    /// folder of each cell. In a plan's file, `${NAME}` and `${NAME:-default}` stand for
    /// environment variables.
    pub url: String,
    /// How many replayers drive it: the first ones that the command line names, or so many
    /// processes on the coordinator's machine. Null: what the command line says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayers: Option<u32>,
    /// Whether the transactions of the trace set are used on it. Null: what the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Use>,
}

/// Whether something is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// It is.
    On,
    /// It is not.
    Off,
}

impl Use {
    /// The name in plans and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Use::On => "on",
            Use::Off => "off",
        }
    }
}
