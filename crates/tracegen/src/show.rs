//! What a trace set is, for people: the manifest in a readable form.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use schemas::manifest::{Histogram, Manifest, Shares, SocialiteStatistics};
use schemas::spec::{Assignment, Delay, DelayDistribution, Distribution};
use serde::Serialize;

/// How many characters the longest bar of a histogram has.
const BAR_CHARACTERS: u64 = 40;

/// The figures of a trace set. As JSON it is the object of `tracegen show --json`.
#[derive(Debug, Serialize)]
pub struct Overview<'a> {
    /// Everything the manifest says.
    pub manifest: &'a Manifest,
    /// Sessions over all fragments.
    pub sessions: u64,
    /// Operations over all fragments.
    pub operations: u64,
    /// Bytes of the operations' files.
    pub operation_bytes: u64,
    /// The same for each operation.
    pub bytes_per_operation: f64,
    /// Rows of each table of the data set.
    pub dataset_rows: BTreeMap<String, u64>,
    /// Bytes of the data set's files.
    pub dataset_bytes: u64,
}

impl<'a> Overview<'a> {
    /// The figures of a manifest.
    pub fn new(manifest: &'a Manifest) -> Overview<'a> {
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
            sessions: manifest.sessions(),
            operations,
            operation_bytes,
            bytes_per_operation: operation_bytes as f64 / operations.max(1) as f64,
            dataset_rows,
            dataset_bytes,
        }
    }

    fn facts(&self) -> String {
        let manifest = self.manifest;
        let (spec, data) = (&manifest.spec, &manifest.spec.data);
        let access = match spec.access.distribution {
            Distribution::Uniform => "uniform".to_string(),
            Distribution::Zipfian => format!("zipfian, theta {}", spec.access.theta),
        };
        let mut rows = Vec::new();
        let mut fact = |name: &str, value: String| rows.push(vec![name.to_string(), value]);
        fact("trace", format!("{} (format {})", spec.name, manifest.format_version));
        fact("generator", manifest.generator_version.clone());
        fact("workload id", manifest.workload_id.clone());
        fact("trace id", manifest.trace_id.clone());
        fact("seed", spec.seed.to_string());
        fact("members", format!("{}, drawn {access}", grouped(data.members)));
        fact(
            "each member",
            format!(
                "{} friends, {} invitations, {} resources with {} comments each",
                data.confirmed_per_member(),
                data.waiting_per_member(),
                data.resources_per_member,
                data.comments_per_resource
            ),
        );
        let assigned = match data.friendships {
            Assignment::Ring => "in a ring".to_string(),
            Assignment::Uniform => "uniformly".to_string(),
            Assignment::Zipfian => format!("zipfian, theta {}", data.friendships_theta),
        };
        let statistics = &manifest.statistics;
        fact(
            "friendships",
            format!("{assigned}; the 20% with the most have {:.2}%", statistics.friends_of_top_fifth * 100.0),
        );
        fact(
            "payload",
            format!(
                "attributes {}, image {}, thumbnail {}, resource {}, comment {} bytes",
                data.attribute_bytes, data.image_bytes, data.thumbnail_bytes, data.resource_bytes, data.comment_bytes
            ),
        );
        fact("think time", delay(spec.think_time));
        fact("inter-arrival time", delay(spec.inter_arrival_time));
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

    /// Who is drawn, beside what is expected, and how many threads that is for.
    fn access(&self) -> String {
        let statistics = &self.manifest.statistics;
        let row = |who: &str, shares: &Shares| {
            let percent = |share: f64| format!("{:.3}", share * 100.0);
            vec![who.to_string(), percent(shares.distribution), percent(shares.expected), percent(shares.achieved)]
        };
        let rows = vec![
            row("socialites: the most active", &statistics.socialites.most_active),
            row("socialites: the 20% most popular", &statistics.socialites.top_fifth),
            row("targets: the 20% most popular", &statistics.targets.top_fifth),
        ];
        let header = ["who is drawn", "by the distribution %", "expected %", "achieved %"];
        format!("{}\n{}", table_of(Some(&header), rows), active_threads(&statistics.socialites))
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

    fn actions(&self) -> String {
        let all = self.operations.max(1) as f64;
        let rows = self.manifest.operations_by_action.iter().map(|(action, operations)| {
            vec![action.name().to_string(), grouped(*operations), format!("{:.3}", *operations as f64 / all * 100.0)]
        });
        table_of(Some(&["action", "operations", "%"]), rows.collect())
    }

    fn fragments(&self) -> String {
        let rows = self.manifest.fragments.iter().map(|counts| {
            vec![
                counts.fragment.to_string(),
                format!("{:.6}", counts.weight),
                grouped(counts.members),
                grouped(counts.sessions),
                grouped(counts.operations),
            ]
        });
        table_of(Some(&["fragment", "weight", "members", "sessions", "operations"]), rows.collect())
    }
}

impl fmt::Display for Overview<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistics = &self.manifest.statistics;
        let parts = [
            self.facts(),
            self.access(),
            self.mix(),
            self.actions(),
            histogram("friends", &statistics.friends),
            histogram("invitations waiting", &statistics.pending),
            histogram("resources on the wall", &statistics.wall_resources),
            self.fragments(),
        ];
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{part}")?;
        }
        Ok(())
    }
}

/// How many threads a trace can keep busy, and which window that follows from.
pub(crate) fn active_threads(socialites: &SocialiteStatistics) -> String {
    let (asked, window) = (socialites.unique_window_asked, socialites.unique_window);
    let window = match (asked, window) {
        (0, _) => "off, so that a popular member may act again at once".to_string(),
        _ if is_capped(socialites) => format!(
            "{} in effect, {} asked for: a fragment's window is at most half of its members",
            grouped(window),
            grouped(asked)
        ),
        _ => grouped(window),
    };
    let threads = grouped(socialites.active_threads_max);
    format!("threads that this trace can keep busy: {threads} (access.unique_window {window})")
}

/// Is the window smaller than the specification asks for?
pub(crate) fn is_capped(socialites: &SocialiteStatistics) -> bool {
    socialites.unique_window < socialites.unique_window_asked
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

/// Members by how many they have of something, with bars.
fn histogram(of: &str, histogram: &Histogram) -> String {
    let mut lines = vec![format!(
        "{of} of a member before the first session: {} to {}, mean {:.2}",
        grouped(histogram.min),
        grouped(histogram.max),
        histogram.mean
    )];
    let rows: Vec<(String, String)> = histogram
        .buckets
        .iter()
        .map(|bucket| {
            let range = match bucket.from == bucket.to {
                true => grouped(bucket.from),
                false => format!("{} to {}", grouped(bucket.from), grouped(bucket.to)),
            };
            (range, grouped(bucket.members))
        })
        .collect();
    let ranges = rows.iter().map(|(range, _)| range.len()).max().unwrap_or_default();
    let numbers = rows.iter().map(|(_, members)| members.len()).max().unwrap_or_default();
    let most = histogram.buckets.iter().map(|bucket| bucket.members).max().unwrap_or_default();
    for ((range, members), bucket) in rows.iter().zip(&histogram.buckets) {
        // Whoever is there is seen, if only as one character.
        let bar = (bucket.members * BAR_CHARACTERS).div_ceil(most.max(1)) as usize;
        lines.push(format!("  {range:>ranges$}  {members:>numbers$}  {}", "#".repeat(bar)));
    }
    lines.join("\n")
}

/// A table without lines; the columns of the cells beside the first are numbers.
fn table_of(header: Option<&[&str]>, rows: Vec<Vec<String>>) -> String {
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
fn grouped(number: u64) -> String {
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
    use super::{active_threads, delay, grouped};
    use schemas::manifest::SocialiteStatistics;
    use schemas::spec::{Delay, DelayDistribution};

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, expect) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(grouped(number), expect);
        }
    }

    #[test]
    fn the_window_in_effect_is_said_with_the_threads() {
        for (unique_window_asked, unique_window, active_threads_max, expect) in [
            (512, 512, 1_550, "1,550 (access.unique_window 512)"),
            (0, 0, 41, "41 (access.unique_window off, so that a popular member may act again at once)"),
            (512, 20, 24, "24 (access.unique_window 20 in effect, 512 asked for: a fragment's window is at most "),
        ] {
            let socialites = SocialiteStatistics {
                unique_window_asked,
                unique_window,
                active_threads_max,
                ..SocialiteStatistics::default()
            };
            let line = active_threads(&socialites);
            assert!(line.starts_with(&format!("threads that this trace can keep busy: {expect}")), "{line}");
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
