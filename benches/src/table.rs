//! The report as Markdown and JSON: the tools, and medians with their spread.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::sample::{Figures, Sample, Spread};

/// A tool of a table, or the reason why it was skipped.
#[derive(Debug, Clone, Serialize)]
pub struct Tool {
    /// The table.
    pub group: &'static str,
    /// The tool.
    pub name: &'static str,
    /// Its version; `None` when it was skipped.
    pub version: Option<String>,
    /// Its settings, or the reason why it was skipped.
    pub remark: String,
}

impl Tool {
    /// A tool that takes part.
    pub fn here(group: &'static str, name: &'static str, version: &str, settings: &str) -> Tool {
        Tool { group, name, version: Some(version.into()), remark: settings.into() }
    }

    /// A tool that is skipped.
    pub fn missing(group: &'static str, name: &'static str, why: &str) -> Tool {
        Tool { group, name, version: None, remark: why.into() }
    }

    /// Records the result of a search for a tool, and returns the tool if it was found.
    pub fn find<T>(
        tools: &mut Vec<Tool>,
        group: &'static str,
        name: &'static str,
        settings: &str,
        found: anyhow::Result<T>,
        version: impl Fn(&T) -> String,
    ) -> Option<T> {
        match found {
            Ok(tool) => {
                tools.push(Tool::here(group, name, &version(&tool), settings));
                Some(tool)
            }
            Err(error) => {
                let why = format!("{error:#}");
                eprintln!("benches: skipped {name}: {why}");
                tools.push(Tool::missing(group, name, why.lines().next().unwrap_or_default()));
                None
            }
        }
    }
}

/// The key of a row: the case, T and the tool.
type Key<'a> = (&'a str, u32, &'a str);

/// The report as Markdown.
pub fn markdown(machine: &Machine, command: &str, tools: &[Tool], samples: &[Sample], failure: Option<&str>) -> String {
    let mut text = format!("# Encore beside other tools\n\n`{command}`, on {machine}\n");
    let mut groups: Vec<&str> = tools.iter().map(|tool| tool.group).collect();
    groups.dedup();
    for group in groups {
        let _ = write!(text, "\n## {group}\n\n");
        for tool in tools.iter().filter(|tool| tool.group == group) {
            let _ = match &tool.version {
                Some(version) => writeln!(text, "- {}: {version}; {}", tool.name, tool.remark),
                None => writeln!(text, "- {} skipped: {}", tool.name, tool.remark),
            };
        }
        let samples: Vec<&Sample> = samples.iter().filter(|sample| sample.group == group).collect();
        if !samples.is_empty() {
            write_table(&mut text, &samples);
        }
    }
    if let Some(failure) = failure.and_then(|failure| failure.lines().last()) {
        let _ = write!(text, "\nEnded early: {failure}\n");
    }
    text += "\nMedian of all rounds (lowest–highest).\n";
    text
}

fn write_table(text: &mut String, samples: &[&Sample]) {
    let columns: Vec<_> = Figures::COLUMNS
        .iter()
        .filter(|(_, figure, _)| samples.iter().any(|sample| figure(&sample.figures).is_some()))
        .collect();
    let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    let _ = writeln!(text, "\n| | T | tool | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|---:|---|{}", "---:|".repeat(names.len()));
    for ((case, threads, tool), rows) in grouped(samples) {
        let cells = columns.iter().map(|(_, figure, decimals)| {
            let spread = Spread::of(rows.iter().filter_map(figure));
            spread.map_or_else(String::new, |spread| cell(spread, *decimals))
        });
        let _ = writeln!(text, "| {case} | {threads} | {tool} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

/// Rows in the order of their first measurements.
fn grouped<'a>(samples: &[&'a Sample]) -> Vec<(Key<'a>, Vec<Figures>)> {
    let mut places: BTreeMap<Key, usize> = BTreeMap::new();
    let mut rows: Vec<(Key, Vec<Figures>)> = Vec::new();
    for sample in samples {
        let key = (sample.case.as_str(), sample.threads, sample.tool);
        let place = *places.entry(key).or_insert_with(|| {
            rows.push((key, Vec::new()));
            rows.len() - 1
        });
        rows[place].1.push(sample.figures);
    }
    rows
}

fn cell(spread: Spread, decimals: usize) -> String {
    let said = |number: f64| with_commas(&format!("{number:.decimals$}"));
    if spread.lowest == spread.highest {
        return said(spread.median);
    }
    format!("{} ({}–{})", said(spread.median), said(spread.lowest), said(spread.highest))
}

fn with_commas(number: &str) -> String {
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    fraction.map_or(out.clone(), |fraction| format!("{out}.{fraction}"))
}

/// The report as JSON, with all samples as measured.
pub fn json(machine: &Machine, command: &str, tools: &[Tool], samples: &[Sample], failure: Option<&str>) -> Value {
    json!({ "machine": machine, "command": command, "tools": tools, "samples": samples, "failure": failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(threads: u32, tool: &'static str, operations_per_s: f64) -> Sample {
        let figures = Figures { operations_per_s, client_cpu_s_per_million: 2.0, ..Figures::default() };
        Sample { group: "A", case: "reads".into(), threads, tool, figures }
    }

    #[test]
    fn rounds_become_medians_and_missing_tools_are_named() {
        let machine = Machine { processor: "a processor".into(), cores: 2, memory_gib: 4, system: "Linux".into() };
        let tools = [Tool::here("A", "x", "1.0", "-q"), Tool::missing("A", "y", "not installed")];
        let samples =
            [sample(1, "x", 1000.0), sample(64, "x", 7.0), sample(1, "x", 3000.0), sample(1, "x", 2_000_000.0)];
        let text = markdown(&machine, "benches/run", &tools, &samples, Some("x failed:\nno disk"));
        assert!(text.contains("\nEnded early: no disk\n"), "{text}");
        assert!(text.contains("- x: 1.0; -q\n- y skipped: not installed\n"), "{text}");
        assert!(text.contains("| reads | 1 | x | 3,000 (1,000–2,000,000) | 500,000 | 2.00 |"), "{text}");
        assert!(text.contains("| reads | 64 | x | 7 |"), "{text}");
        assert!(!text.contains("p99"), "{text}");
    }
}
