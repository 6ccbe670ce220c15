//! `comparison.html`: a comparison as one page that opens anywhere, and from which the
//! page of every cell can be opened.

use std::path::Path;

use analyzer::chart::ChartError;
use analyzer::html::{command_line, figure, page as whole_page, section};
use maud::{Markup, html};
use schemas::comparison::{Cell, ComparisonDocument, Concern, Outcome};

use super::show::{
    PROMISE_COLUMNS, axis_label, cell_name, difference_in_words, marks, notes, promises, started, state, tables,
    unequal,
};
use super::table::{Entry, Metric, Table};
use super::{chart, failures};
use crate::render::sla_in_words;

/// The page of a comparison in this folder.
pub fn page(document: &ComparisonDocument, folder: &Path) -> Result<String, ChartError> {
    let tables = tables(document);
    let unequal: Vec<String> = unequal(document).map(difference_in_words).collect();
    let others = document.differences.iter().filter(|difference| difference.concern == Concern::Other);
    let body = html! {
        header {
            h1 { (document.plan.title) }
            p.soft { (document.name) " · " (started(document)) " · Encore " (document.encore_version) }
            p { (sla_in_words(&document.plan.sla)) "." }
            @if let Some(state) = state(document) { p.fail { (state) } }
            @if !unequal.is_empty() {
                p.fail { "The stores do not promise the same:" }
                ul { @for line in &unequal { li { (line) } } }
            }
        }
        @for table in &tables { (section(table.metric.title(), &shown(document, table, folder)?)) }
        @let marks = marks(&tables);
        p.soft { "Each number opens the page of its run; below it the interval in which the true value lies, where it has one." }
        @if !marks.is_empty() {
            ul.soft { @for mark in marks { li { b { (mark.sign()) } " " (mark.meaning()) } } }
        }
        @let promises = promises(document);
        @if !promises.is_empty() { (section("What the stores promise", &promised(&promises))) }
        (list("Other settings that differ", &others.map(difference_in_words).collect::<Vec<_>>()))
        (list("Notes", &notes(document)))
        (list("Failed", &failures(document)))
        (section("Circumstances", &circumstances(document)))
    };
    Ok(whole_page(&document.plan.title, &body))
}

/// A number of every cell: the picture, what it is made of, and the table.
fn shown(document: &ComparisonDocument, table: &Table, folder: &Path) -> Result<Markup, ChartError> {
    let svg = chart::of_table(document, table).svg()?;
    let entries = table.rows.iter().zip(document.cells.chunks(table.stores.len().max(1)));
    Ok(html! {
        (figure(table.metric.title(), &svg, "", &statement(table.metric)))
        div.wide { table {
            thead { tr {
                th.word { (axis_label(document)) }
                @for store in &table.stores { th { (store) } }
            } }
            tbody { @for ((point, row), cells) in entries {
                tr {
                    td.word { (point) }
                    @for (entry, cell) in row.iter().zip(cells) { td { (number(entry, cell, folder)) } }
                }
            } }
        } }
    })
}

/// A number, its interval where it has one, and the way to its run's page.
fn number(entry: &Entry, cell: &Cell, folder: &Path) -> Markup {
    // A cell that failed has a page too if it came so far as to run.
    let is_there = !matches!(cell.outcome, Outcome::Missing) && folder.join(&cell.run).join("report.html").exists();
    html! {
        @if is_there {
            a href=(format!("{}/report.html", cell.run)) title=(cell_name(cell)) { (entry.text()) }
        } @else {
            (entry.text())
        }
        @if let Some(interval) = entry.interval_text() { br; span.soft { (interval) } }
    }
}

/// The statement that gives a picture's numbers, asked of the comparison's folder.
fn statement(metric: Metric) -> String {
    let value = match metric {
        Metric::Soar => "soar, soar_low, soar_high, soar_at_least, soar_confirmed_by, soar_void",
        Metric::Socialites => "socialites, socialites_at_least, socialites_confirmed_by, socialites_void",
        Metric::Throughput => "throughput_per_s, ruling",
        Metric::WithinBeta => "within_beta_percent, ruling",
        Metric::Unpredictable => "unpredictable_percent, ruling",
    };
    format!("SELECT point, store, {value} FROM cells")
}

fn promised(promises: &[[String; 4]]) -> Markup {
    html! {
        div.wide { table {
            thead { tr { @for name in PROMISE_COLUMNS { th.word { (name) } } } }
            tbody { @for row in promises { tr { @for text in row { td.word { (text) } } } } }
        } }
    }
}

fn list(title: &str, lines: &[String]) -> Markup {
    if lines.is_empty() {
        return html! {};
    }
    section(title, &html! { ul { @for line in lines { li { (line) } } } })
}

fn circumstances(document: &ComparisonDocument) -> Markup {
    let host = &document.host;
    // Whoever repeats it has nothing to resume.
    let command: Vec<String> = document.command.iter().filter(|word| *word != "--resume").cloned().collect();
    html! {
        p { "Trace sets decide everything but time, so that this, with the same plan and the same variables, repeats the comparison under another --name:" }
        pre { (command_line(&command)) }
        dl {
            @for store in &document.plan.stores { dt { (store.label) } dd { (store.url) } }
            dt { "host" } dd { (host.name) ", " (host.system) ", " (host.cpus) " processors" }
        }
    }
}
