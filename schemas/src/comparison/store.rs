//! The stores of a comparison's plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Point;

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
    /// Its URL from some points of the axis on, by their labels, in place of `url`. So a series follows a schedule
    /// of settings along the axis, as a client would that adapts to what the axis varies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from: BTreeMap<String, String>,
    /// How many replayers drive it: the first ones that the command line names, or so many
    /// processes on the coordinator's machine. Null: what the command line says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayers: Option<u32>,
    /// Whether the transactions of the trace set are used on it. Null: what the plan says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Use>,
}

impl ComparedStore {
    /// Its URL at one of the axis' points, and the URL's key in a plan.
    pub fn url_at(&self, points: &[Point], index: usize) -> (String, &str) {
        let changes = points.iter().take(index + 1).rev();
        let last = changes.filter_map(|point| self.from.get_key_value(&point.label)).next();
        let first = || ("url".to_string(), self.url.as_str());
        last.map_or_else(first, |(label, url)| (key_from(label), url.as_str()))
    }

    /// All its URLs with their keys in a plan.
    pub fn urls(&self) -> impl Iterator<Item = (String, &str)> {
        let later = self.from.iter().map(|(point, url)| (key_from(point), url.as_str()));
        std::iter::once(("url".to_string(), self.url.as_str())).chain(later)
    }

    /// The same, to be changed.
    pub fn urls_mut(&mut self) -> impl Iterator<Item = (String, &mut String)> {
        let later = self.from.iter_mut().map(|(point, url)| (key_from(point), url));
        std::iter::once(("url".to_string(), &mut self.url)).chain(later)
    }

    /// Its URLs for people: `url`, then those from some points on.
    pub fn urls_in_words(&self) -> String {
        let later = self.from.iter().map(|(point, url)| format!("; from {point} on: {url}"));
        std::iter::once(self.url.clone()).chain(later).collect()
    }
}

/// The key of the URL from a point on.
fn key_from(point: &str) -> String {
    format!("from.{point:?}")
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
