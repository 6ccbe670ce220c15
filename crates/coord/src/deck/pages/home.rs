//! All runs of the folder: filter them, open one, select several to compare.

use std::time::{Duration, UNIX_EPOCH};

use analyzer::html::{Column, spaced, table};
use axum::response::Response;
use maud::{Markup, html};
use schemas::words::plural;

use super::{command, shell};
use crate::deck::command::Typed;
use crate::deck::folder::{self, Entry, State};
use crate::deck::form::Form;
use crate::deck::server::Deck;

/// The most runs that are listed; the filter finds the others.
const LISTED_MAX: usize = 500;

pub(in crate::deck) fn page(deck: &Deck, query: &Form) -> Response {
    let runs = folder::list(&deck.setup.folder);
    let filter = query.trimmed("filter").to_lowercase();
    let words: Vec<&str> = filter.split_whitespace().collect();
    let shown: Vec<&Entry> = runs.iter().filter(|run| words.iter().all(|word| run.has(word))).collect();
    let folder = deck.setup.folder.display().to_string();
    let content = html! {
        h1 { "Runs" }
        p.soft { "Folder " code { (folder) } ", " (plural(runs.len() as u64, "run")) }
        @if runs.is_empty() {
            p.conclusion { "There is no run yet." }
            p { "Rate SQLite with the built-in workload: it needs no server and takes about two minutes." }
            p { a.button.main href="/new?kind=rate" { "Rate a store" } }
        } @else {
            form.row method="get" action="/" role="search" {
                input type="text" name="filter" value=(query.trimmed("filter")) aria-label="Filter"
                    placeholder="Filter by name, workload, store or state";
                button { "Filter" }
                @if !filter.is_empty() { a href="/" { "Show all" } }
            }
            @if shown.is_empty() { p { "No run matches this filter." } } @else {
                form method="get" action="/compare" {
                    (listed(&shown))
                    div.row {
                        button.main { "Compare selected runs" }
                        span.soft { "Select two or more. The first of them is the base." }
                    }
                }
            }
            @if shown.len() > LISTED_MAX {
                p.soft { "The latest " (LISTED_MAX) " of " (shown.len()) " runs are listed; the filter finds the others." }
            }
        }
        (command(&Typed::of(["deck".to_string(), folder])))
    };
    shell("Runs", "/", &content)
}

fn listed(shown: &[&Entry]) -> Markup {
    let columns = ["select", "run", "state", "result", "workload", "store", "SLA", "began"].map(Column::Words);
    let rows: Vec<Vec<Markup>> = shown.iter().take(LISTED_MAX).map(|run| row(run)).collect();
    table(&columns, &rows)
}

fn row(run: &Entry) -> Vec<Markup> {
    let url = match run.state {
        State::Running if !run.is_comparison => run.name.url_of("live"),
        _ => run.name.url(),
    };
    vec![
        html! { @if !run.is_comparison {
            input type="checkbox" name="run" value=(run.name) aria-label=(format!("Select {}", run.name));
        } },
        html! { a href=(url) { (run.name) } @if run.is_comparison { " (comparison)" } },
        state(&run.state),
        spaced(&html! { (run.result) }),
        html! { (run.workload) },
        html! { (run.store) },
        html! { (run.sla) },
        html! { (time(run.started_unix_s)) },
    ]
}

/// How a run stands, in its colour.
pub(super) fn state(state: &State) -> Markup {
    let class = match state {
        State::Running => "pass",
        State::Complete => "soft",
        State::Interrupted => "void",
        State::Killed | State::Failed(_) => "fail",
    };
    html! { span class=(class) { (state.word()) } }
}

/// A time in words, without seconds.
pub(super) fn time(unix_s: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(unix_s)).map(humantime::format_rfc3339_seconds);
    let text = time.map(|time| time.to_string()).unwrap_or_default();
    text.get(..16).unwrap_or_default().replace('T', " ") + " UTC"
}
