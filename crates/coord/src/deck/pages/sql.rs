//! SQL over a run or a comparison, by `encore analyze sql`: it only reads, and only this folder. The process is
//! ended when it takes too long.

use std::time::Duration;

use analyzer::chart::{Across, LineChart, LinePoint, LineSeries, Mark, Scale, Stroke};
use analyzer::html::{Column, picture, table};
use analyzer::thousands;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use schemas::words::plural;

use super::run::download as downloaded;
use super::{command, error, no_run, shell};
use crate::deck::command::Typed;
use crate::deck::folder::{self, Name};
use crate::deck::form::{Form, encoded};
use crate::deck::jobs;
use crate::deck::server::Deck;

/// How long a question may take.
const WITHIN: Duration = Duration::from_secs(30);

/// The memory of a question.
const MEMORY: &str = "1GiB";

/// The rows that a page shows, and that a download has at most.
const SHOWN_MAX: u64 = 500;
const ROWS_MAX: u64 = 1_000_000;

/// The columns of all views.
const VIEWS: &str = "SELECT table_name, column_name, data_type FROM duckdb_columns() \
                     WHERE schema_name = 'main' AND NOT internal ORDER BY table_name, column_index";

/// The statement of an empty page.
const FIRST: &str =
    "SELECT experiment, threads, ruling, throughput_per_s, p95_ns, p99_ns\nFROM experiments ORDER BY experiment";
const FIRST_OF_COMPARISON: &str = "SELECT * FROM cells";

/// An answer as text.
struct Answer {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The command that asks.
fn asked(deck: &Deck, name: &Name, statement: &str, format: &str, rows_max: u64) -> Typed {
    let folder = name.folder(&deck.setup.folder).display().to_string();
    Typed::of([
        "analyze".to_string(),
        "sql".into(),
        folder,
        statement.trim().to_string(),
        format!("--format={format}"),
        format!("--memory-limit={MEMORY}"),
        format!("--max-rows={rows_max}"),
    ])
}

/// What a command printed, or why there is no answer.
async fn ask(deck: &Deck, typed: &Typed) -> Result<Vec<u8>, String> {
    let _room = deck.asked.acquire().await.map_err(|e| e.to_string())?;
    jobs::ask(typed, WITHIN).await.map_err(|why| match why.starts_with("--memory-limit") {
        // Who reads a page cannot give it a flag.
        true => {
            format!("the question needs more than {MEMORY} of memory; ask for less, or run the command in a terminal")
        }
        false => why,
    })
}

async fn answer(deck: &Deck, name: &Name, statement: &str, rows_max: u64) -> Result<Answer, String> {
    let text = ask(deck, &asked(deck, name, statement, "csv", rows_max)).await?;
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let fields = |record: &csv::StringRecord| record.iter().map(String::from).collect::<Vec<_>>();
    let columns = reader.headers().map(&fields).map_err(|e| e.to_string())?;
    let rows = reader.records().map(|record| record.map(|record| fields(&record))).collect::<Result<_, _>>();
    Ok(Answer { columns, rows: rows.map_err(|e| e.to_string())? })
}

pub(in crate::deck) async fn page(deck: &Deck, name: &Name, query: &Form) -> Response {
    let folder = name.folder(&deck.setup.folder);
    if !folder.exists() {
        return no_run();
    }
    let first = if folder::comparison(&folder).is_some() { FIRST_OF_COMPARISON } else { FIRST };
    let statement = query.get("q").unwrap_or(first);
    let views = answer(deck, name, VIEWS, 10_000).await;
    // One more than is shown says whether there are more.
    let found = answer(deck, name, statement, SHOWN_MAX + 1).await;
    let content = html! {
        h1 { "SQL on " a href=(name.url()) { (name) } }
        div.beside {
            div {
                form method="get" action=(name.url()) {
                    input type="hidden" name="show" value="sql";
                    label for="q" { "Statement " span.soft { "One statement of DuckDB's SQL that only reads; times end in _ns." } }
                    textarea #q name="q" rows="7" spellcheck="false" { (statement) }
                    div.row { button.main { "Ask" } }
                }
                @match &found {
                    Ok(found) => (shown(found, name, statement)),
                    Err(why) => p.why role="alert" { (why) },
                }
                (command(&asked(deck, name, statement, "table", SHOWN_MAX)))
            }
            div.views {
                h2 { "Views" }
                @match &views {
                    Ok(views) => (listed(views)),
                    Err(why) => p.fail { (why) },
                }
            }
        }
    };
    shell(&format!("SQL on {name}"), "", &content)
}

/// The views with their columns. A button puts a statement into the field.
fn listed(views: &Answer) -> Markup {
    let of = views.rows.chunk_by(|a, b| a.first() == b.first());
    html! {
        @for view in of {
            @let name = view.first().and_then(|row| row.first()).map(String::as_str).unwrap_or_default();
            details {
                summary { (name) }
                button type="button" data-statement=(format!("SELECT * FROM {name} LIMIT 100")) { "Use it" }
                ul { @for row in view {
                    li { (row.get(1).map(String::as_str).unwrap_or_default()) " "
                        span.soft { (row.get(2).map(String::as_str).unwrap_or_default().to_lowercase()) } }
                } }
            }
        }
    }
}

fn shown(found: &Answer, name: &Name, statement: &str) -> Markup {
    let (run, q) = (encoded(&name.to_string()), encoded(statement));
    let is_number = |at: usize| {
        let mut values = found.rows.iter().filter_map(|row| row.get(at)).filter(|value| !value.is_empty()).peekable();
        values.peek().is_some() && values.all(|value| value.parse::<f64>().is_ok())
    };
    let numbers: Vec<bool> = (0..found.columns.len()).map(is_number).collect();
    let column = |(name, is_number): (&'_ String, &bool)| (name.clone(), *is_number);
    let named: Vec<(String, bool)> = found.columns.iter().zip(&numbers).map(column).collect();
    let columns: Vec<Column> =
        named.iter().map(|(name, number)| if *number { Column::Number(name) } else { Column::Words(name) }).collect();
    let first = found.rows.iter().take(SHOWN_MAX as usize);
    let rows: Vec<Vec<Markup>> = first.map(|row| row.iter().map(|value| html! { (value) }).collect()).collect();
    let is_cut = found.rows.len() > rows.len();
    html! {
        p.soft role="status" {
            (plural(rows.len() as u64, "row"))
            @if is_cut {
                ", the first of more: a page shows " (SHOWN_MAX) " at most, and a download " (thousands(ROWS_MAX))
            }
        }
        @if let Some(chart) = chart(found, &numbers) {
            @if let Ok(picture) = picture(&chart, "answer") { figure { (picture) } }
        }
        div.wide-table { (table(&columns, &rows)) }
        p { "Download: "
            a href=(format!("/answer?run={run}&format=csv&q={q}")) { "CSV" } " · "
            a href=(format!("/answer?run={run}&format=json&q={q}")) { "JSON" } }
    }
}

/// The most lines of a chart.
const LINES_MAX: usize = 5;

/// The chart of an answer whose columns are all numbers: the others over the first one, if that one grows.
fn chart(found: &Answer, numbers: &[bool]) -> Option<LineChart> {
    let value = |row: &Vec<String>, at: usize| row.get(at).and_then(|text| text.parse::<f64>().ok());
    let across: Vec<f64> = found.rows.iter().filter_map(|row| value(row, 0)).collect();
    let fits = found.columns.len() >= 2 && found.columns.len() <= LINES_MAX + 1 && numbers.iter().all(|number| *number);
    if !fits || across.len() < 3 || across.len() != found.rows.len() || !across.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let series: Vec<LineSeries> = (1..found.columns.len())
        .map(|at| LineSeries {
            label: found.columns[at].clone(),
            points: found
                .rows
                .iter()
                .zip(&across)
                .map(|(row, x)| LinePoint { x: *x, y: value(row, at).unwrap_or(f64::NAN), mark: Mark::Filled })
                .collect(),
            stroke: if across.len() > 60 { Stroke::Plain } else { Stroke::Marked },
            ..LineSeries::default()
        })
        .collect();
    let least = series.iter().flat_map(|series| &series.points).map(|point| point.y).fold(f64::MAX, f64::min);
    // The axes begin at 0 at the lowest.
    if least < 0.0 || across.first().is_some_and(|first| *first < 0.0) {
        return None;
    }
    let title = format!("{} by {}", found.columns[1..].join(", "), found.columns[0]);
    Some(LineChart {
        description: format!("{title}; the rows are below."),
        title,
        x_label: found.columns[0].clone(),
        y_label: if found.columns.len() == 2 { found.columns[1].clone() } else { "value".into() },
        across: Across::Numbers(Scale::Linear),
        y_scale: Scale::Linear,
        series,
        rules: Vec::new(),
    })
}

/// All rows of an answer, as a file.
pub(in crate::deck) async fn download(deck: &Deck, query: &Form) -> Response {
    let Some(name) = Name::of(query.trimmed("run")) else { return no_run() };
    let format = if query.get("format") == Some("json") { "json" } else { "csv" };
    let typed = asked(deck, &name, query.trimmed("q"), format, ROWS_MAX + 1);
    match ask(deck, &typed).await {
        // A file that lacks rows would look whole.
        Ok(text) if rows_of(format, &text) > ROWS_MAX => {
            let most = thousands(ROWS_MAX);
            let why = format!("the answer has more than {most} rows; ask for less, or run the command in a terminal");
            error(StatusCode::UNPROCESSABLE_ENTITY, &why)
        }
        Ok(text) => downloaded(&format!("answer.{format}"), format, text),
        Err(why) => error(StatusCode::UNPROCESSABLE_ENTITY, &why),
    }
}

/// How many rows an answer has.
fn rows_of(format: &str, text: &[u8]) -> u64 {
    let rows = match format {
        "json" => serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(text).map_or(0, |rows| rows.len()),
        _ => csv::Reader::from_reader(text).byte_records().count(),
    };
    rows as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[[&str; 2]]) -> Answer {
        let rows = rows.iter().map(|row| row.map(String::from).to_vec()).collect();
        Answer { columns: vec!["x".into(), "y".into()], rows }
    }

    #[test]
    fn rows_are_counted_in_both_formats() {
        assert_eq!(rows_of("csv", b"a,b\n1,\"x\ny\"\n2,z\n"), 2);
        assert_eq!(rows_of("json", b"[{\"a\": 1}, {\"a\": [2, 3]}]"), 2);
    }

    #[test]
    fn a_chart_is_drawn_where_it_fits() {
        let fits = |rows: &[[&str; 2]], numbers: &[bool]| chart(&answer(rows), numbers).is_some();
        let both = [true, true];
        assert!(fits(&[["1", "5"], ["2", "6"], ["3", ""]], &both));
        assert!(!fits(&[["1", "5"], ["2", "6"]], &both), "two points");
        assert!(!fits(&[["1", "5"], ["1", "6"], ["3", "7"]], &both), "the first column does not grow");
        assert!(!fits(&[["1", "a"], ["2", "b"], ["3", "c"]], &[true, false]), "words");
        assert!(!fits(&[["1", "5"], ["2", "-6"], ["3", "7"]], &both), "below 0");
    }
}
