//! The share of something among the draws of a trace set.

use serde::{Deserialize, Serialize};

/// A share from 0 to 1: by the access distribution, by the whole specification, and as achieved.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Shares {
    /// What the access distribution alone would give.
    pub distribution: f64,
    /// What a model of the distribution with `access.unique_window` gives.
    pub expected: f64,
    /// What this trace has.
    pub achieved: f64,
}
