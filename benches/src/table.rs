//! The report as Markdown: the tools, medians with their spread, and goals.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::report::{Report, Section};
use crate::sample::{Figures, Sample, Spread};

/// The key of a row: the case, T and the tool.
type Key<'a> = (&'a str, u32, &'a str);

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut text = String::from("# Encore beside other tools\n\nMedian of all rounds (lowest–highest).\n");
    report.sections.iter().for_each(|section| write_section(&mut text, section));
    text
}

fn write_section(text: &mut String, section: &Section) {
    let _ = write!(text, "\n## {}\n\n`{}`, on {}\n\n", section.group, section.command, section.machine);
    for tool in &section.tools {
        let _ = match &tool.version {
            Some(version) => writeln!(text, "- {}: {version}; {}", tool.name, tool.remark),
            None => writeln!(text, "- {} skipped: {}", tool.name, tool.remark),
        };
    }
    if !section.samples.is_empty() {
        write_table(text, &section.samples);
    }
    if !section.goals.is_empty() {
        text.push('\n');
    }
    for goal in &section.goals {
        let _ = writeln!(text, "- Goal: {goal}");
    }
    if let Some(failure) = section.failure.as_ref().and_then(|failure| failure.lines().last()) {
        let _ = write!(text, "\nEnded early: {failure}\n");
    }
}

fn write_table(text: &mut String, samples: &[Sample]) {
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
fn grouped(samples: &[Sample]) -> Vec<(Key<'_>, Vec<Figures>)> {
    let mut places: BTreeMap<Key, usize> = BTreeMap::new();
    let mut rows: Vec<(Key, Vec<Figures>)> = Vec::new();
    for sample in samples {
        let key = (&*sample.case, sample.threads, &*sample.tool);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn sample(threads: u32, tool: &str, operations_per_s: f64) -> Sample {
        let figures = Figures { operations_per_s, client_cpu_s_per_million: 2.0, ..Figures::default() };
        Sample { case: "reads".into(), threads, tool: tool.into(), figures }
    }

    #[test]
    fn rounds_become_medians_and_missing_tools_are_named() {
        let machine = Machine { processor: "a processor".into(), cores: 2, memory_gib: 4, system: "Linux".into() };
        let mut section = Section::new("A", &machine, "benches/run");
        section.here("x", "1.0", "-q");
        section.missing("y", "not installed\nsee above");
        section.samples =
            vec![sample(1, "x", 1000.0), sample(64, "x", 7.0), sample(1, "x", 3000.0), sample(1, "x", 2_000_000.0)];
        section.goals = vec!["fast: met".into()];
        section.failure = Some("x failed:\nno disk".into());
        let text = markdown(&Report { sections: vec![section] });
        assert!(text.contains("## A\n\n`benches/run`, on a processor (2 processors, 4 GiB), Linux\n"), "{text}");
        assert!(text.contains("- x: 1.0; -q\n- y skipped: not installed\n"), "{text}");
        assert!(text.contains("| reads | 1 | x | 3,000 (1,000–2,000,000) | 500,000 | 2.00 |"), "{text}");
        assert!(text.contains("| reads | 64 | x | 7 |"), "{text}");
        assert!(text.ends_with("\n\n- Goal: fast: met\n\nEnded early: no disk\n"), "{text}");
        assert!(!text.contains("p99") && !text.contains("errors"), "{text}");
    }
}
