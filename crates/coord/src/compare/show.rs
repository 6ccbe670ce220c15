//! The texts of a comparison: its tables as text and as Markdown, what the stores promise, and
//! its notes.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, presets};
use schemas::comparison::{Cell, ComparisonDocument, ComparisonFolder, Concern, Outcome, SettingDifference};
use schemas::run::RunState;
use schemas::words::plural;

use super::outcome::{cell_name, failures, ratings};
use super::settings;
use super::settings::Promise;
use super::table::{self, Entry, Mark, Metric, Table};
use super::transactions::{self, TextTable};
use crate::terminal::sla_in_words;

/// One table for each number that the comparison is about, the times of open loops, and what benchmarks count.
pub fn tables(document: &ComparisonDocument) -> Vec<Table> {
    let is_open = |cell: &Cell| matches!(&cell.outcome, Outcome::Measured(own) if own.service_ns_p95.is_some());
    let times = if document.cells.iter().any(is_open) { &Metric::OF_OPEN_LOOPS[..] } else { &[] };
    let asked = Metric::of(document.plan.question());
    let counts = Metric::OF_BENCHMARKS.iter().filter(|metric| !asked.contains(metric) && is_known(document, **metric));
    asked.iter().chain(times).chain(counts).map(|metric| Table::new(document, *metric)).collect()
}

/// Whether an experiment has a number that only some benchmarks have.
fn is_known(document: &ComparisonDocument, metric: Metric) -> bool {
    document.cells.iter().any(|cell| match &cell.outcome {
        Outcome::Measured(own) if metric == Metric::PerMinute => own.headline.is_some(),
        Outcome::Measured(own) => own.conditions.is_some(),
        _ => false,
    })
}

/// What the axis varies; empty without an axis.
pub fn axis_label(document: &ComparisonDocument) -> &str {
    document.plan.axis.as_ref().map_or("", |axis| &axis.label)
}

/// The tables as text, the meaning of their marks, and the paths of the files.
pub fn result(document: &ComparisonDocument, folder: &ComparisonFolder) -> String {
    let mut out = format!("\n{}\n{}\n", document.plan.title, sla_in_words(&document.plan.sla()));
    let tables = tables(document);
    for table in &tables {
        let _ = write!(out, "\n{}\n{}\n", table.metric.title(), text(table, axis_label(document)));
    }
    for table in transactions::tables(document) {
        let _ = write!(out, "\n{}\n{}\n", table.title, text_of(&table));
    }
    let marks = marks(&tables);
    if !marks.is_empty() {
        out.push('\n');
    }
    for mark in marks {
        let _ = writeln!(out, "{:<7} {}", mark.sign(), mark.meaning(document.plan.question()));
    }
    let promises = promises(document);
    if !promises.is_empty() {
        let _ = write!(out, "\ndurability and isolation of the stores\n{}\n", promises_text(&promises));
    }
    let unequal: Vec<String> = unequal(document).map(difference_in_words).collect();
    if !unequal.is_empty() {
        let _ = writeln!(out, "\nthe stores differ in durability or isolation:");
        unequal.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    let _ = writeln!(
        out,
        "\ntable  {}\nchart  {}\npage   {}",
        folder.table().display(),
        folder.chart().display(),
        folder.page().display()
    );
    if document.state != RunState::Complete {
        let _ = writeln!(out, "to run missing and failed cells, repeat the command with --resume");
    }
    out
}

fn text(table: &Table, axis: &str) -> String {
    let mut shown = comfy_table::Table::new();
    shown.load_style(presets::NOTHING);
    shown.set_header(std::iter::once(axis).chain(table.stores.iter().map(String::as_str)));
    for (point, entries) in &table.rows {
        shown.add_row(std::iter::once(point.clone()).chain(entries.iter().map(|entry| entry.text())));
    }
    for column in shown.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    lines_of(&shown)
}

fn text_of(table: &TextTable) -> String {
    let mut shown = comfy_table::Table::new();
    shown.load_style(presets::NOTHING);
    shown.set_header(&table.header);
    for row in &table.rows {
        shown.add_row(row);
    }
    for column in shown.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    lines_of(&shown)
}

fn lines_of(table: &comfy_table::Table) -> String {
    table.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

/// The names of the columns of a store's promise.
pub const PROMISE_COLUMNS: [&str; 4] = ["store", "durability", "isolation", "decided by"];

/// What each store promises, in these columns. It is shown even if all promise the same, because
/// it is a condition of the comparison.
pub fn promises(document: &ComparisonDocument) -> Vec<[String; 4]> {
    let said = |words: Option<String>| words.unwrap_or_else(|| "unknown".into());
    let row = |promise: Promise| {
        let decided_by: Vec<String> =
            promise.decided_by.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let store = table::label(document, &promise.store);
        [store, said(promise.durability), said(promise.isolation), decided_by.join(", ")]
    };
    settings::promises(&document.plan.stores, &document.cells).into_iter().map(row).collect()
}

fn promises_text(promises: &[[String; 4]]) -> String {
    let mut shown = comfy_table::Table::new();
    shown.load_style(presets::NOTHING);
    shown.set_header(PROMISE_COLUMNS);
    for row in promises {
        shown.add_row(row);
    }
    lines_of(&shown)
}

/// The marks that occur in any of these tables.
pub fn marks(tables: &[Table]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = tables.iter().flat_map(Table::marks).collect();
    marks.sort();
    marks.dedup();
    marks
}

/// The differences that make the stores unequal.
pub fn unequal(document: &ComparisonDocument) -> impl Iterator<Item = &SettingDifference> {
    document.differences.iter().filter(|d| d.concern != Concern::Other)
}

/// A difference as a line.
pub fn difference_in_words(difference: &SettingDifference) -> String {
    let concern = match (difference.concern, difference.setting.as_str()) {
        (Concern::Durability, "durability") | (Concern::Isolation, "isolation") | (Concern::Other, _) => "",
        (Concern::Durability, _) => "durability: ",
        (Concern::Isolation, _) => "isolation: ",
    };
    let mut by_value: Vec<(&str, Vec<&str>)> = Vec::new();
    for (store, value) in &difference.values {
        match by_value.iter_mut().find(|(known, _)| known == value) {
            Some((_, stores)) => stores.push(store),
            None => by_value.push((value, vec![store])),
        }
    }
    let values: Vec<String> =
        by_value.iter().map(|(value, stores)| format!("{value} ({})", stores.join(", "))).collect();
    // A single value means that the other stores do not name the setting.
    let unsaid = if values.len() == 1 { "; other stores do not report this setting" } else { "" };
    format!("{concern}{} = {}{unsaid}", difference.setting, values.join(", "))
}

/// The state of the comparison; none if it is complete.
pub fn state(document: &ComparisonDocument) -> Option<String> {
    match &document.state {
        RunState::Complete => None,
        RunState::Running => Some("This comparison is still running, or was killed.".to_string()),
        RunState::Interrupted => Some("This comparison was interrupted.".to_string()),
        RunState::Failed(message) => Some(format!("{message}.")),
    }
}

/// When it began.
pub fn started(document: &ComparisonDocument) -> impl std::fmt::Display + use<> {
    let began = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(document.started_unix_s);
    humantime::format_rfc3339_seconds(began)
}

/// `comparison.md`.
pub fn markdown(document: &ComparisonDocument) -> String {
    let mut out = format!("# {}\n\n{}.\n", plain(&document.plan.title), plain(&sla_in_words(&document.plan.sla())));
    if let Some(state) = state(document) {
        let _ = write!(out, "\n{}\n", plain(&state));
    }
    let _ = write!(out, "\n![{}](comparison.svg)\n", plain(&document.plan.title));
    let tables = tables(document);
    for table in &tables {
        let header: Vec<String> = table.stores.iter().map(|store| plain(store)).collect();
        let _ = write!(
            out,
            "\n{}:\n\n| {} | {} |\n",
            table.metric.title(),
            plain(axis_label(document)),
            header.join(" | ")
        );
        let _ = writeln!(out, "|---|{}", "---:|".repeat(header.len()));
        for (point, entries) in &table.rows {
            let entries: Vec<String> = entries.iter().map(|entry| plain(&entry.text())).collect();
            let _ = writeln!(out, "| {} | {} |", plain(point), entries.join(" | "));
        }
    }
    if transactions::chart_of_shares(document).is_some() {
        let _ = write!(out, "\n![What transactions cost](transactions.svg)\n");
    }
    for table in transactions::tables(document) {
        let cells = |row: &[String]| row.iter().map(|text| plain(text)).collect::<Vec<_>>().join(" | ");
        let _ = write!(out, "\n{}:\n\n| {} |\n", table.title, cells(&table.header));
        let _ = writeln!(out, "|---|{}", "---:|".repeat(table.header.len() - 1));
        for row in &table.rows {
            let _ = writeln!(out, "| {} |", cells(row));
        }
    }
    let marks = marks(&tables);
    if !marks.is_empty() {
        out.push('\n');
    }
    for mark in marks {
        let _ = writeln!(out, "- `{}` {}", mark.sign(), mark.meaning(document.plan.question()));
    }
    promises_markdown(&mut out, &promises(document));
    let unequal: Vec<String> = unequal(document).map(difference_in_words).collect();
    list(&mut out, "The stores differ in durability or isolation", &unequal);
    let other = document.differences.iter().filter(|d| d.concern == Concern::Other);
    list(&mut out, "Other settings that differ", &other.map(difference_in_words).collect::<Vec<_>>());
    list(&mut out, "Notes", &notes(document));
    list(&mut out, "Failed", &failures(document));
    let stores = document.plan.stores.iter().map(|store| format!("{}: {}", store.label, store.urls_in_words()));
    list(&mut out, "Stores", &stores.collect::<Vec<_>>());
    let host = &document.host;
    let _ = write!(
        out,
        "\nEncore {}, on {} ({}, {}), started {}.\n",
        document.encore_version,
        plain(&host.name),
        host.system,
        plural(host.cpus.into(), "processor"),
        started(document)
    );
    out
}

fn promises_markdown(out: &mut String, promises: &[[String; 4]]) {
    if promises.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "\nDurability and isolation of the stores:\n\n| {} |\n|---|---|---|---|\n",
        PROMISE_COLUMNS.join(" | ")
    );
    for row in promises {
        let _ = writeln!(out, "| {} |", row.each_ref().map(|text| plain(&text.replace('\n', " "))).join(" | "));
    }
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(out, "\n{title}:\n\n");
    for line in lines {
        let _ = writeln!(out, "- {}", plain(&line.replace('\n', " ")));
    }
}

/// The notes of ratings and verdicts, each once.
pub fn notes(document: &ComparisonDocument) -> Vec<String> {
    let mut notes = Vec::new();
    for cell in &document.cells {
        if let Outcome::Measured(measured) = &cell.outcome
            && !measured.reasons.is_empty()
        {
            notes.push(format!("{}: {}: {}", cell_name(cell), measured.ruling.name(), measured.reasons.join("; ")));
        }
        for rating in ratings(&cell.outcome) {
            for note in rating.rests_on_void.iter().chain(&rating.notes) {
                let note = format!("{}: {note}", cell_name(cell));
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    notes
}

/// One sentence for each point: which store has the highest number, if one clearly has.
pub fn conclusions(document: &ComparisonDocument, table: &Table) -> Vec<String> {
    let at = |point: &str| match point {
        "" => String::new(),
        _ => format!("{} {point}: ", axis_label(document)),
    };
    table.rows.iter().filter_map(|(point, row)| conclusion(table, &at(point), row)).collect()
}

fn conclusion(table: &Table, at: &str, row: &[Entry]) -> Option<String> {
    let known = table.stores.iter().zip(row).filter(|(_, entry)| table.is_rated || !entry.has(Mark::Void));
    let mut known: Vec<(&str, &Entry, f64)> =
        known.filter_map(|(store, entry)| Some((store.trim_end_matches(" !"), entry, entry.value?))).collect();
    known.sort_by(|a, b| b.2.total_cmp(&a.2));
    let [(first, most, _), .., (last, least, _)] = known.as_slice() else { return None };
    let (name, unit) = table.metric.name_and_unit();
    let number = |entry: &Entry| entry.number().replace("≥", "at least");
    let (least, highest) = (number(least), number(most));
    Some(match (table.is_rated, most.has(Mark::Best)) {
        (true, true) => format!("{at}{first} has the highest {name}, {highest}{unit}."),
        (true, false) => format!("{at}no store clearly has the highest {name}; {first} has {highest}{unit}."),
        // Single measurements have no interval that would tell them apart.
        (false, _) => {
            format!("{at}the {name} is between {least} ({last}) and {highest}{unit} ({first}), one measurement each.")
        }
    })
}

/// Escapes what Markdown or HTML would interpret.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
