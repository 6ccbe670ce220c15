//! The pages of the deck, made on the server. All text goes through `maud`, which escapes it.

pub(super) mod compare;
pub(super) mod home;
pub(super) mod live;
pub(super) mod new;
pub(super) mod run;
pub(super) mod sql;
pub(super) mod traces;

use std::path::{Component, Path};

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::command::Typed;
use super::guard::UNLOCK;

/// The style sheet: that of the reports, and what only the deck has.
pub(super) fn style() -> String {
    format!("{}\n{}", analyzer::html::style(), include_str!("../deck.css"))
}

/// What the head of every page begins with.
fn about(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        title { (title) " – Encore" }
        link rel="icon" href="data:,";
    }
}

/// A page with the bar of the deck. `here` is the URL in the bar to which it belongs.
pub(super) fn shell(title: &str, here: &str, content: &Markup) -> Response {
    let places = [("/", "Runs"), ("/new?kind=rate", "Rate a store"), ("/new?kind=run", "Run one experiment")];
    let more = [("/new?kind=compare", "Compare stores"), ("/new?kind=trace", "Generate a trace set")];
    let places = places.into_iter().chain(more);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (about(title))
                link rel="stylesheet" href="/deck.css";
                script src="/page.js" defer {}
                script src="/deck.js" defer {}
            }
            body {
                nav.bar aria-label="Deck" {
                    b { "Encore" }
                    @for (url, name) in places { a href=(url) aria-current=[(url == here).then_some("page")] { (name) } }
                }
                main { (content) }
            }
        }
    };
    Html(page.into_string()).into_response()
}

/// A page that says what is wrong.
pub(super) fn error(status: StatusCode, why: &str) -> Response {
    let content = html! {
        h1 { (status.canonical_reason().unwrap_or("Error")) }
        p.fail { (why) "." }
        p { a href="/" { "All runs" } }
    };
    (status, shell("Error", "", &content)).into_response()
}

/// The page for a browser without the key. It asks for the key, and has nothing else of the deck. `again` is the
/// page that was asked for.
pub(super) fn locked(why: &str, again: Option<String>) -> Response {
    let page = bare(
        "Locked",
        &html! {
            main {
                h1 { "The deck is locked" }
                p.fail { (why) "." }
                p { "Open the URL that " code { "encore deck" } " printed, or enter the key in it; with --token-file, enter \
                     the secret in that file." }
                form method="post" action=(UNLOCK) {
                    label for="key" { "Key" }
                    div.row {
                        input #key type="password" name="key" autocomplete="current-password";
                        button.main { "Open the deck" }
                    }
                }
                // A link on another site does not take the cookie along, and a link here does.
                @if let Some(again) = again.filter(|again| again.starts_with('/') && !again.starts_with("//")) {
                    p.soft { "If this browser has opened the deck before, " a href=(again) { "try once more" } "." }
                }
            }
        },
    );
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Cookie realm=\"deck\"")], page).into_response()
}

/// A page that leads to another page of the deck.
pub(super) fn forward(place: &str) -> Html<String> {
    let page = html! { meta http-equiv="refresh" content=(format!("0; url={place}")); main { a href=(place) { "Open the deck" } } };
    bare("Encore", &page)
}

/// A page without scripts, and with the style in it: it needs no other request.
fn bare(title: &str, content: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (about(title))
                style { (PreEscaped(style())) }
            }
            body { (content) }
        }
    };
    Html(page.into_string())
}

/// The page for the name of no run.
pub(super) fn no_run() -> Response {
    error(StatusCode::NOT_FOUND, "there is no run of this name in the folder of the deck")
}

/// The command that does the same.
pub(super) fn command(typed: &Typed) -> Markup {
    html! { p.soft { "The same in a terminal:" } pre.command { (typed.text()) } }
}

/// The files of a run that a browser may have, and their types.
const FILES: [(&str, &str); 11] = [
    ("report.html", "text/html; charset=utf-8"),
    ("comparison.html", "text/html; charset=utf-8"),
    ("comparison.md", "text/plain; charset=utf-8"),
    ("comparison.svg", "image/svg+xml"),
    ("transactions.svg", "image/svg+xml"),
    ("load.svg", "image/svg+xml"),
    ("comparison.json", "application/json"),
    ("run.json", "application/json"),
    ("rating.json", "application/json"),
    ("FinalResult.csv", "text/csv; charset=utf-8"),
    ("Results.csv", "text/csv; charset=utf-8"),
];

/// What a page from a run folder may do. The folder may come from somebody else, so the page is in a sandbox: its
/// scripts see nothing of the deck, and it loads nothing from anywhere.
const SANDBOX: &str = "sandbox allow-scripts allow-popups allow-downloads; default-src 'none'; \
                       style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/// A file of a run or of a comparison.
pub(super) fn file(runs: &Path, path: &str) -> Response {
    let (folder, file) = path.rsplit_once('/').unwrap_or_default();
    let found = super::folder::Name::of(folder).zip(FILES.iter().find(|(name, _)| *name == file));
    let Some((name, (_, kind))) = found else { return no_run() };
    // A run may be a link to another disk. A link out of it would show what is no result.
    let run = name.folder(runs);
    let path = run.join(file);
    let is_inside = || Some(std::fs::canonicalize(&path).ok()?.starts_with(std::fs::canonicalize(&run).ok()?));
    debug_assert!(path.components().all(|part| part != Component::ParentDir));
    match std::fs::read(&path) {
        Ok(bytes) if is_inside() == Some(true) => {
            ([(header::CONTENT_TYPE, *kind), (header::CONTENT_SECURITY_POLICY, SANDBOX)], bytes).into_response()
        }
        _ => error(StatusCode::NOT_FOUND, "this run has no such file yet"),
    }
}
