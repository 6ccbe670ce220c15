//! What a trace set is, for people: the manifest in a readable form.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use schemas::manifest::Manifest;
use schemas::spec::Distribution;
use serde::Serialize;

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
                data.friends_per_member, data.pending_per_member, data.resources_per_member, data.comments_per_resource
            ),
        );
        fact(
            "payload",
            format!(
                "attributes {}, image {}, thumbnail {}, resource {}, comment {} bytes",
                data.attribute_bytes, data.image_bytes, data.thumbnail_bytes, data.resource_bytes, data.comment_bytes
            ),
        );
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
        let rows = self.manifest.requested_mix.keys().map(|kind| {
            vec![
                kind.clone(),
                share(&self.manifest.requested_mix, kind),
                share(&self.manifest.achieved_mix, kind),
                grouped(self.manifest.noops.get(kind).copied().unwrap_or(0)),
            ]
        });
        table_of(Some(&["session", "requested %", "achieved %", "no-ops"]), rows.collect())
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
        for (index, table) in [self.facts(), self.mix(), self.fragments()].iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{table}")?;
        }
        Ok(())
    }
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
    use super::grouped;

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, expect) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(grouped(number), expect);
        }
    }
}
