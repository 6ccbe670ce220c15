//! Transactions of a specification.

use serde::{Deserialize, Serialize};

use super::KvWorkload;
use crate::spec::Wrong;

/// Each session is one transaction: it begins with `begin`, and ends with `commit` or `abort`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Transactions {
    /// The share of the transactions that end with `abort`.
    pub abort_share: f64,
}

impl Transactions {
    pub(super) fn check(workload: &KvWorkload) -> Result<(), Wrong> {
        let share = workload.transactions.map_or(0.0, |transactions| transactions.abort_share);
        match (0.0..=1.0).contains(&share) {
            true => Ok(()),
            false => Err(Wrong::new("transactions.abort_share", format!("{share} is not between 0 and 1"))),
        }
    }
}
