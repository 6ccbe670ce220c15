//! Prints a trace set for users: the manifest in a readable form.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use schemas::arrivals::{Arrivals, Spacing};
use schemas::manifest::{Manifest, Shares};
use schemas::spec::{Delay, DelayDistribution};
use serde::Serialize;

use super::rate_chart::{COLUMNS, chart, short};

/// What a family says of a trace set, in words and tables for people.
#[derive(Debug, Default)]
pub struct Facts {
    /// Facts about the data set, with their names.
    pub about: Vec<(&'static str, String)>,
    /// How actors and items are drawn.
    pub draws: String,
    /// How the data set is distributed, a text for each distribution.
    pub distributions: Vec<String>,
}

/// Shares of draws as a table: for each name what the distribution alone would give, what is
/// expected, and what the trace has.
pub fn shares_table(rows: &[(&str, Shares)]) -> String {
    let percent = |share: f64| format!("{:.3}", share * 100.0);
    let row = |(name, shares): &(&str, Shares)| {
        vec![name.to_string(), percent(shares.distribution), percent(shares.expected), percent(shares.achieved)]
    };
    let header = ["draws of", "distribution %", "expected %", "achieved %"];
    table_of(Some(&header), rows.iter().map(row).collect())
}

/// The figures of a trace set. As JSON it is the object of `encore trace show --json`.
#[derive(Debug, Serialize)]
pub struct Overview<'a> {
    /// The whole manifest.
    pub manifest: &'a Manifest,
    /// What its family says of it.
    #[serde(skip)]
    facts: Facts,
    /// Sessions over all fragments.
    pub sessions: u64,
    /// Operations over all fragments.
    pub operations: u64,
    /// Bytes of the operations' files.
    pub operation_bytes: u64,
    /// The mean of these bytes for each operation.
    pub bytes_per_operation: f64,
    /// Rows of each table of the data set.
    pub dataset_rows: BTreeMap<String, u64>,
    /// Bytes of the data set's files.
    pub dataset_bytes: u64,
    /// The wanted load; none in a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}

/// The load that the arrivals of a trace set ask for.
#[derive(Debug, Serialize)]
pub struct Load {
    /// When all sessions are due by the rate over time, in seconds from the start of the load.
    pub length_s: f64,
    /// The mean rate until then, in sessions a second.
    pub mean_per_s: f64,
    /// The greatest rate until then, in sessions a second.
    pub greatest_per_s: f64,
    /// The mean rate of each of equal parts of this time, in sessions a second.
    pub rates_per_s: Vec<f64>,
    #[serde(skip)]
    spacing: Spacing,
}

impl Load {
    /// The load of so many sessions; none if they never arrive.
    fn of(arrivals: &Arrivals, sessions: u64) -> Option<Load> {
        let profile = arrivals.profile();
        let length_s = profile.time_of(sessions as f64).ok()?;
        let times: Vec<f64> = (0..=COLUMNS).map(|part| length_s * part as f64 / COLUMNS as f64).collect();
        let until = profile.arrivals_until_each(&times);
        let part_s = length_s / COLUMNS as f64;
        Some(Load {
            length_s,
            mean_per_s: profile.mean_rate(length_s),
            greatest_per_s: profile.greatest_rate(length_s),
            rates_per_s: until.windows(2).map(|pair| (pair[1] - pair[0]) / part_s).collect(),
            spacing: arrivals.spacing,
        })
    }

    fn facts(&self) -> String {
        let spacing = match self.spacing {
            Spacing::Poisson => "poisson",
            Spacing::Even => "even",
        };
        let (mean, greatest) = (short(self.mean_per_s), short(self.greatest_per_s));
        format!("{spacing}, {mean} sessions a second on average, at most {greatest}, for {} s", short(self.length_s))
    }

    fn chart(&self) -> String {
        format!(
            "wanted sessions a second over time (means of {COLUMNS} equal parts)\n{}",
            chart(&self.rates_per_s, self.length_s)
        )
    }
}

impl<'a> Overview<'a> {
    /// The figures of a manifest, with what its family says of the trace set.
    pub(crate) fn with(manifest: &'a Manifest, facts: Facts) -> Overview<'a> {
        let (mut operation_bytes, mut dataset_bytes) = (0, 0);
        let mut dataset_rows = BTreeMap::new();
        for file in &manifest.files {
            match file.path.strip_prefix("dataset/").and_then(|path| path.rsplit('/').next()) {
                Some(name) => {
                    let table = name.trim_end_matches(".parquet").to_string();
                    *dataset_rows.entry(table).or_insert(0) += file.rows;
                    dataset_bytes += file.bytes;
                }
                None => operation_bytes += file.bytes,
            }
        }
        let operations = manifest.operations();
        Overview {
            manifest,
            facts,
            sessions: manifest.sessions(),
            operations,
            operation_bytes,
            bytes_per_operation: operation_bytes as f64 / operations.max(1) as f64,
            dataset_rows,
            dataset_bytes,
            load: manifest.spec.arrivals.as_ref().and_then(|arrivals| Load::of(arrivals, manifest.sessions())),
        }
    }

    fn facts(&self) -> String {
        let manifest = self.manifest;
        let spec = &manifest.spec;
        let mut rows = Vec::new();
        let mut fact = |name: &str, value: String| rows.push(vec![name.to_string(), value]);
        fact("trace", format!("{} (format {})", spec.name, manifest.format_version));
        fact("generator", manifest.generator_version.clone());
        fact("workload id", manifest.workload_id.clone());
        fact("trace id", manifest.trace_id.clone());
        fact("seed", spec.seed.to_string());
        for (name, value) in &self.facts.about {
            fact(name, value.clone());
        }
        fact("think time", delay(spec.think_time));
        match &self.load {
            Some(load) => fact("arrivals", load.facts()),
            None => fact("inter-arrival time", delay(spec.inter_arrival_time)),
        }
        fact("sessions", grouped(self.sessions));
        fact(
            "operations",
            format!(
                "{} in {} bytes, {:.2} bytes each",
                grouped(self.operations),
                grouped(self.operation_bytes),
                self.bytes_per_operation
            ),
        );
        let tables: Vec<String> =
            self.dataset_rows.iter().map(|(table, rows)| format!("{} {table}", grouped(*rows))).collect();
        fact("data set", format!("{} in {} bytes", tables.join(", "), grouped(self.dataset_bytes)));
        fact("files", grouped(manifest.files.len() as u64));
        table_of(None, rows)
    }

    fn mix(&self) -> String {
        let share = |mix: &BTreeMap<String, f64>, kind: &str| {
            mix.get(kind).map_or(String::new(), |share| format!("{:.3}", share * 100.0))
        };
        let number = |of: &BTreeMap<String, u64>, kind: &str| grouped(of.get(kind).copied().unwrap_or(0));
        let manifest = self.manifest;
        let rows = manifest.requested_mix.keys().map(|kind| {
            vec![
                kind.clone(),
                share(&manifest.requested_mix, kind),
                share(&manifest.achieved_mix, kind),
                number(&manifest.noops, kind),
                number(&manifest.ended_early, kind),
            ]
        });
        table_of(Some(&["session", "requested %", "achieved %", "no-ops", "ended early"]), rows.collect())
    }

    fn by_name(&self) -> String {
        let all = self.operations.max(1) as f64;
        let rows = self.manifest.operations_by_name.iter().map(|(name, operations)| {
            vec![name.clone(), grouped(*operations), format!("{:.3}", *operations as f64 / all * 100.0)]
        });
        table_of(Some(&["operation", "operations", "%"]), rows.collect())
    }

    fn fragments(&self) -> String {
        let rows = self.manifest.fragments.iter().map(|counts| {
            vec![
                counts.fragment.to_string(),
                format!("{:.6}", counts.weight),
                grouped(counts.actors),
                grouped(counts.sessions),
                grouped(counts.operations),
            ]
        });
        table_of(Some(&["fragment", "weight", "actors", "sessions", "operations"]), rows.collect())
    }
}

impl fmt::Display for Overview<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = vec![self.facts()];
        parts.extend(self.load.as_ref().map(Load::chart));
        parts.extend([self.facts.draws.clone(), self.mix(), self.by_name()]);
        parts.extend(self.facts.distributions.iter().cloned());
        parts.push(self.fragments());
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{part}")?;
        }
        Ok(())
    }
}

/// A waiting time in words.
fn delay(delay: Delay) -> String {
    let mean_ms = delay.mean_us as f64 / 1e3;
    match delay.distribution {
        _ if delay.mean_us == 0 => "none".to_string(),
        DelayDistribution::Constant => format!("{mean_ms} ms"),
        DelayDistribution::Exponential => format!("exponential, mean {mean_ms} ms"),
    }
}

/// A table without lines. With a header, all columns but the first are numbers.
pub fn table_of(header: Option<&[&str]>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(header) = header {
        table.set_header(header.iter().copied());
    }
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if header.is_some() && index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// A number with its digits in groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{delay, grouped};
    use schemas::spec::{Delay, DelayDistribution};

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, expect) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(grouped(number), expect);
        }
    }

    #[test]
    fn waits_are_said_in_milliseconds() {
        use DelayDistribution::{Constant, Exponential};
        for (mean_us, distribution, expect) in
            [(0, Exponential, "none"), (5_000, Constant, "5 ms"), (2_500, Exponential, "exponential, mean 2.5 ms")]
        {
            assert_eq!(delay(Delay { mean_us, distribution }), expect);
        }
    }
}
