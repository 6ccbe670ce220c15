//! `comparison.html`: a comparison as one page without other files, with links to the page of
//! every cell.

use std::path::Path;

use analyzer::chart::ChartError;
use analyzer::html::{Column, Section, command_line, figure, page as whole_page, section, spaced, table as html_table};
use maud::{Markup, html};
use schemas::comparison::{Cell, ComparisonDocument, Concern, Question};
use schemas::words::plural;

use super::chart;
use super::outcome::{cell_name, failures};
use super::show::{
    PROMISE_COLUMNS, axis_label, conclusions, difference_in_words, marks, notes, promises, started, state, tables,
    unequal,
};
use super::table::{Entry, Mark, Metric, Table};
use super::transactions;
use crate::terminal::sla_in_words;

/// The page of a comparison in this folder.
pub fn page(document: &ComparisonDocument, folder: &Path) -> Result<String, ChartError> {
    let tables = tables(document);
    let unequal: Vec<String> = unequal(document).map(difference_in_words).collect();
    let others = document.differences.iter().filter(|difference| difference.concern == Concern::Other);
    let head = html! {
        h1 { (document.plan.title) }
        p.soft { (document.name) " · " (started(document)) " · Encore " (document.encore_version) }
        @for sentence in tables.first().map_or_else(Vec::new, |table| conclusions(document, table)) { p.conclusion { (spaced(&html! { (sentence) })) } }
        p { "SLA: " (sla_in_words(&document.plan.sla())) "." }
        @if let Some(state) = state(document) { p.fail { (state) } }
        @if !unequal.is_empty() {
            p.fail { "The stores differ in durability or isolation:" }
            ul { @for line in &unequal { li { (line) } } }
        }
    };
    let mut sections = Vec::new();
    for table in &tables {
        sections.push(section(table.metric.title(), shown(document, table, folder)?));
    }
    for table in transactions::tables(document) {
        let columns: Vec<Column> = table
            .header
            .iter()
            .enumerate()
            .map(|(at, name)| if at == 0 { Column::Words(name) } else { Column::Number(name) })
            .collect();
        let row = |row: &Vec<String>| row.iter().map(|text| html! { (text) }).collect::<Vec<Markup>>();
        let rows = html_table(&columns, &table.rows.iter().map(row).collect::<Vec<_>>());
        let chart = transactions::chart_of_shares(document).filter(|chart| chart.title == table.title);
        let picture = chart.map(|chart| figure(&chart, table.title, "", &statement(Metric::Throughput))).transpose()?;
        sections.push(section(table.title, html! { @if let Some(picture) = picture { (picture) } (rows) }));
    }
    sections.extend([
        section("Signs in charts and tables", legend(&marks(&tables), document.plan.question())),
        section("Durability and isolation of the stores", promised(&promises(document))),
        list("Other settings that differ", &others.map(difference_in_words).collect::<Vec<_>>()),
        list("Notes", &notes(document)),
        list("Failed", &failures(document)),
        section("How to repeat it", repetition(document)),
    ]);
    Ok(whole_page(&document.plan.title, &head, &sections))
}

/// One number of every cell: the chart, the SQL behind it, and the table.
fn shown(document: &ComparisonDocument, table: &Table, folder: &Path) -> Result<Markup, ChartError> {
    let chart = chart::of_table(document, table).titled(table.metric.title()).linked(document, folder);
    let columns: Vec<Column> = std::iter::once(Column::Words(axis_label(document)))
        .chain(table.stores.iter().map(|store| Column::Number(store)))
        .collect();
    let entries = table.rows.iter().zip(document.cells.chunks(table.stores.len().max(1)));
    let row = |((point, entries), cells): (&(String, Vec<Entry>), &[Cell])| {
        let numbers = entries.iter().zip(cells).map(|(entry, cell)| number(entry, cell, folder));
        std::iter::once(html! { (point) }).chain(numbers).collect::<Vec<Markup>>()
    };
    Ok(html! {
        (figure(&chart, table.metric.title(), note(table), &statement(table.metric))?)
        (html_table(&columns, &entries.map(row).collect::<Vec<_>>()))
    })
}

/// What a reader has to know about a chart.
fn note(table: &Table) -> &'static str {
    let has_interval = table.rows.iter().flat_map(|(_, row)| row).any(|entry| entry.bounds().is_some());
    match (has_interval, table.metric) {
        (true, _) => "The line on a bar is the interval in which the true value lies.",
        (false, Metric::WithinBeta) => "The vertical axis can start above 0.",
        (false, _) => "",
    }
}

/// What the signs beside numbers mean.
fn legend(marks: &[Mark], question: Question) -> Markup {
    html! {
        p { "Select a number to open the page of its run. An interval below a number contains the true value." }
        @if !marks.is_empty() { ul { @for mark in marks { li { b { (mark.sign()) } " " (mark.meaning(question)) } } } }
    }
}

/// A number with its interval, if it has one, and a link to the page of its run.
fn number(entry: &Entry, cell: &Cell, folder: &Path) -> Markup {
    html! {
        @if let Some(page) = chart::page_of(cell, folder) {
            a href=(page) title=(cell_name(cell)) { (entry.text()) }
        } @else {
            (entry.text())
        }
        @if let Some(interval) = entry.interval_text() { br; span.soft { (interval) } }
    }
}

/// The SQL for the numbers of a chart, for the folder of the comparison.
fn statement(metric: Metric) -> String {
    let value = match metric {
        Metric::Soar => "soar, soar_low, soar_high, soar_at_least, soar_confirmed_by, soar_void",
        Metric::Socialites => {
            "socialites, socialites_low, socialites_high, socialites_at_least, socialites_confirmed_by, socialites_void"
        }
        Metric::Rate => "rate, rate_low, rate_high, rate_at_least, rate_confirmed_by, rate_void",
        Metric::Throughput => "throughput_per_s, ruling",
        Metric::WithinBeta => "within_beta_percent, ruling",
        Metric::Unpredictable => "unpredictable_percent, ruling",
        Metric::ResponseTime => "p95_ns, ruling",
        Metric::Gamma => "gamma_p95_ns, ruling",
        Metric::AnomalyScore => "anomaly_score, ruling",
        Metric::PerMinute => "counted_name, counted_per_minute, ruling",
        Metric::Conditions => "conditions_broken, ruling",
        Metric::Response => "response_ns_p95, ruling",
        Metric::Service => "service_ns_p95, ruling",
    };
    format!("SELECT point, store, {value} FROM cells")
}

fn promised(promises: &[[String; 4]]) -> Markup {
    if promises.is_empty() {
        return html! {};
    }
    let row = |row: &[String; 4]| row.each_ref().map(|text| html! { (text) }).into();
    html_table(&PROMISE_COLUMNS.map(Column::Words), &promises.iter().map(row).collect::<Vec<_>>())
}

fn list(title: &str, lines: &[String]) -> Section {
    section(title, html! { @if !lines.is_empty() { ul { @for line in lines { li { (line) } } } } })
}

fn repetition(document: &ComparisonDocument) -> Markup {
    let host = &document.host;
    // The command that repeats the comparison has nothing to resume.
    let command: Vec<String> = document.command.iter().filter(|word| *word != "--resume").cloned().collect();
    html! {
        p { "To repeat the comparison with the same workloads, plan and environment variables, under another --name:" }
        pre { (command_line(&command)) }
        dl {
            @for store in &document.plan.stores { dt { (store.label) } dd { (store.urls_in_words()) } }
            dt { "host" } dd { (host.name) ", " (host.system) ", " (plural(host.cpus.into(), "processor")) }
        }
    }
}
