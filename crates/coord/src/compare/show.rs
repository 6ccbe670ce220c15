//! What people see of a comparison: the table as text and as Markdown, and what
//! the chart is drawn from.

use std::fmt::Write as _;

use analyzer::chart::{Bar, BarChart, BarSeries, Scale};
use comfy_table::{CellAlignment, presets};
use schemas::comparison::{Cell, ComparisonDocument, ComparisonFolder, Concern, SettingDifference};
use schemas::run::RunState;

use super::table::{Mark, Metric, Table};
use super::{failures, ratings};
use crate::render::sla_in_words;

/// A cell as it is spoken of.
pub fn cell_name(cell: &Cell) -> String {
    if cell.point.is_empty() { cell.store.clone() } else { format!("{}, {}", cell.point, cell.store) }
}

fn tables(document: &ComparisonDocument) -> Vec<Table> {
    Metric::of(document.plan.rating).iter().map(|metric| Table::new(document, *metric)).collect()
}

fn axis_label(document: &ComparisonDocument) -> &str {
    document.plan.axis.as_ref().map_or("", |axis| &axis.label)
}

/// The tables as text, what their marks mean, and where everything is.
pub fn result(document: &ComparisonDocument, folder: &ComparisonFolder) -> String {
    let mut out = format!("\n{}\n{}\n", document.plan.title, sla_in_words(&document.plan.sla));
    let tables = tables(document);
    for table in &tables {
        let _ = write!(out, "\n{}\n{}\n", table.metric.title(), text(table, axis_label(document)));
    }
    out.push('\n');
    for mark in marks(&tables) {
        let _ = writeln!(out, "{}", mark.meaning());
    }
    let unequal: Vec<String> = promises(document).map(difference_in_words).collect();
    if !unequal.is_empty() {
        let _ = writeln!(out, "\nthe stores do not promise the same:");
        unequal.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    let _ = writeln!(out, "\ntable  {}\nchart  {}", folder.table().display(), folder.chart().display());
    if document.state != RunState::Complete {
        let _ = writeln!(out, "what is missing or failed is rated by the same command with --resume");
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
    shown.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

fn marks(tables: &[Table]) -> Vec<Mark> {
    let mut marks: Vec<Mark> = tables.iter().flat_map(Table::marks).collect();
    marks.sort();
    marks.dedup();
    marks
}

fn promises(document: &ComparisonDocument) -> impl Iterator<Item = &SettingDifference> {
    document.differences.iter().filter(|d| d.concern != Concern::Other)
}

fn difference_in_words(difference: &SettingDifference) -> String {
    let concern = match difference.concern {
        Concern::Durability => "durability: ",
        Concern::Isolation => "isolation: ",
        Concern::Other => "",
    };
    let values: Vec<String> = difference.values.iter().map(|(store, value)| format!("{value} ({store})")).collect();
    // One alone says that the others do not name the setting.
    let unsaid = if values.len() == 1 { "; other stores do not name it" } else { "" };
    format!("{concern}{} = {}{unsaid}", difference.setting, values.join(", "))
}

/// `comparison.md`.
pub fn markdown(document: &ComparisonDocument) -> String {
    let mut out = format!("# {}\n\n{}.\n", plain(&document.plan.title), plain(&sla_in_words(&document.plan.sla)));
    let state = match &document.state {
        RunState::Complete => String::new(),
        RunState::Running => "This comparison is going on, or was killed.".to_string(),
        RunState::Interrupted => "This comparison was interrupted.".to_string(),
        RunState::Failed(message) => format!("{}.", plain(message)),
    };
    if !state.is_empty() {
        let _ = write!(out, "\n{state}\n");
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
    let marks = marks(&tables);
    if !marks.is_empty() {
        out.push('\n');
    }
    for mark in marks {
        let (sign, meaning) = mark.meaning().split_once(' ').unwrap_or_default();
        let _ = writeln!(out, "- `{sign}` {}", meaning.trim());
    }
    let unequal: Vec<String> = promises(document).map(difference_in_words).collect();
    list(&mut out, "The stores do not promise the same", &unequal);
    let other = document.differences.iter().filter(|d| d.concern == Concern::Other);
    list(&mut out, "Other settings that differ", &other.map(difference_in_words).collect::<Vec<_>>());
    list(&mut out, "Notes", &notes(document));
    list(&mut out, "Failed", &failures(document));
    let stores = document.plan.stores.iter().map(|store| format!("{}: {}", store.label, store.url));
    list(&mut out, "Stores", &stores.collect::<Vec<_>>());
    let host = &document.host;
    let _ = write!(
        out,
        "\nEncore {}, on {} ({}, {} processors), started {}.\n",
        document.encore_version,
        plain(&host.name),
        host.system,
        host.cpus,
        humantime::format_rfc3339_seconds(
            std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(document.started_unix_s)
        )
    );
    out
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

/// What the ratings say of themselves, each once.
fn notes(document: &ComparisonDocument) -> Vec<String> {
    let mut notes = Vec::new();
    for cell in &document.cells {
        for rating in ratings(&cell.outcome) {
            let void = rating.rests_on_void.iter().map(|void| format!("rests on void {void}"));
            for note in void.chain(rating.notes.iter().cloned()) {
                let note = format!("{}: {note}", cell_name(cell));
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    notes
}

/// A text without anything that Markdown or HTML would take for its own.
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

/// The chart: SoAR, or Socialites where SoAR was not searched.
pub fn chart(document: &ComparisonDocument) -> BarChart {
    let metric = Metric::of(document.plan.rating).first().copied().unwrap_or(Metric::Soar);
    let table = Table::new(document, metric);
    let mut description = format!("{}, {}.", metric.title(), sla_in_words(&document.plan.sla));
    for (point, entries) in &table.rows {
        let values: Vec<String> = table.stores.iter().zip(entries).map(|(s, e)| format!("{s} {}", e.text())).collect();
        let point = if point.is_empty() { String::new() } else { format!("{point}: ") };
        let _ = write!(description, "\n{point}{}.", values.join(", "));
    }
    for line in promises(document).map(difference_in_words) {
        let _ = write!(description, "\nUnequal {line}.");
    }
    let series = table.stores.iter().enumerate().map(|(place, store)| BarSeries {
        label: store.clone(),
        bars: table
            .rows
            .iter()
            // The highest bar needs no mark.
            .map(|(_, row)| Bar { value: row[place].value, label: row[place].text().trim_end_matches(" *").into() })
            .collect(),
    });
    let unequal = promises(document).next().map(|_| "(! unequal durability or isolation)");
    let x_label: Vec<&str> = [Some(axis_label(document)), unequal].into_iter().flatten().collect();
    BarChart {
        title: document.plan.title.clone(),
        description,
        x_label: x_label.join(" ").trim().to_string(),
        y_label: metric.title().to_string(),
        groups: table.rows.iter().map(|(point, _)| point.clone()).collect(),
        series: series.collect(),
        scale: Scale::suited_to(table.rows.iter().flat_map(|(_, row)| row.iter().filter_map(|entry| entry.value))),
    }
}
