//! Trace sets: what is in one, its generation, and what can be done with it.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use schemas::manifest::Manifest;
use tracegen::Overview;

use super::{command, error, live, no_run, shell};
use crate::deck::command::Typed;
use crate::deck::folder::{Name, trace_sets};
use crate::deck::form::encoded;
use crate::deck::jobs;
use crate::deck::server::Deck;

/// A trace set, or what has become of its generation.
pub(in crate::deck) fn page(deck: &Deck, name: &Name) -> Response {
    let runs = &deck.setup.folder;
    if jobs::process(runs, name).is_some() {
        return live::page(deck, name);
    }
    let folder = name.folder(runs);
    let output = jobs::output(runs, name);
    let manifest = match (Manifest::read(&folder), &output) {
        (Ok(manifest), _) => manifest,
        (Err(_), Some(output)) => return failed(name, output),
        (Err(why), None) if folder.exists() => return error(StatusCode::NOT_FOUND, &why.to_string()),
        (Err(_), None) => return no_run(),
    };
    let path = folder.display().to_string();
    let form = |kind: &str| format!("/new?kind={kind}&spec={}", encoded(&path));
    let content = html! {
        h1 { (name) }
        div.row {
            a.button.main href=(form("rate")) { "Rate a store with it" }
            a.button href=(form("run")) { "Run one experiment with it" }
        }
        pre { (overview(&manifest)) }
        (command(&Typed::of(["trace".to_string(), "show".into(), path])))
        @if let Some(output) = output {
            details { summary { "What the command has printed" } pre { (output) } }
        }
    };
    shell(&name.to_string(), "/new?kind=trace", &content)
}

/// A generation that has left no trace set.
fn failed(name: &Name, output: &str) -> Response {
    let content = html! {
        h1 { (name) }
        p.conclusion.fail { "The command ended without a trace set." }
        pre { (output) }
        @if output.trim_end().lines().count() < 2 {
            p { "It printed nothing: it was killed, or stopped before it began." }
        }
        p { a href="/new?kind=trace" { "Generate another one" } }
    };
    shell(&name.to_string(), "/new?kind=trace", &content)
}

/// What `encore trace show` prints.
pub(super) fn overview(manifest: &Manifest) -> String {
    Overview::new(manifest).map_or_else(|why| why.to_string(), |overview| overview.to_string())
}

/// All trace sets of the folder, as links.
pub(super) fn list(deck: &Deck) -> Markup {
    let names = trace_sets(&deck.setup.folder);
    html! {
        @if !names.is_empty() {
            h2 { "Trace sets" }
            p.soft { "A rating or a run takes one up where its workload is chosen." }
            ul { @for name in &names { li { a href=(name.url()) { (name) } } } }
        }
    }
}
