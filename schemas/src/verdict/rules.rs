//! What a benchmark asks of what its sessions draw.

use serde::{Deserialize, Serialize};

/// A share of what sessions have drawn, and the limits that the benchmark sets to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawRule {
    /// What it is, such as `new orders rolled back`.
    pub name: String,
    /// The clause of the benchmark's standard that sets the limits.
    pub clause: String,
    /// How many have it, or their sum.
    pub part: u64,
    /// Of how many.
    pub of: u64,
    /// Whether the limits are in percent. Otherwise they are of the ratio.
    pub is_percent: bool,
    /// The smallest that the benchmark allows.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl DrawRule {
    /// The share, in percent if its limits are. None if nothing was drawn.
    pub fn value(&self) -> Option<f64> {
        let scale = if self.is_percent { 100.0 } else { 1.0 };
        (self.of > 0).then(|| scale * self.part as f64 / self.of as f64)
    }

    /// Whether the share is within the limits. None if nothing was drawn.
    pub fn holds(&self) -> Option<bool> {
        self.value().map(|value| (self.least..=self.most).contains(&value))
    }

    /// The columns of [`DrawRule::cells`].
    pub const COLUMNS: [&'static str; 6] = ["drawn", "clause", "of", "achieved", "allowed", "holds"];

    /// A row of a table: name, clause, of how many, value, limits, whether it holds.
    pub fn cells(&self) -> [String; 6] {
        let unit = if self.is_percent { "%" } else { "" };
        [
            self.name.clone(),
            self.clause.clone(),
            crate::words::thousands(self.of),
            self.value().map_or("-".to_string(), |value| format!("{value:.3}{unit}")),
            format!("{} to {}{unit}", self.least, self.most),
            self.holds().map_or("-", |holds| if holds { "yes" } else { "no" }).to_string(),
        ]
    }
}

/// Adds rules of other sessions.
pub fn merge_rules(all: &mut Vec<DrawRule>, others: &[DrawRule]) {
    for other in others {
        match all.iter_mut().find(|own| own.name == other.name) {
            Some(own) => {
                own.part += other.part;
                own.of += other.of;
            }
            None => all.push(other.clone()),
        }
    }
}
