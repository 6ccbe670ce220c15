//! Several runs beside each other: the page that `encore analyze compare --html` writes.

use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::html;

use super::{command, error, shell};
use crate::deck::command::Typed;
use crate::deck::folder::Name;
use crate::deck::form::{Form, encoded};
use crate::deck::jobs;
use crate::deck::server::Deck;

/// How long a comparison may take: experiments that are not analyzed yet are analyzed first.
const WITHIN: Duration = Duration::from_secs(120);

/// The most runs that are compared.
const RUNS_MAX: usize = 20;

pub(in crate::deck) async fn page(deck: &Deck, query: &Form) -> Response {
    let names: Option<Vec<Name>> = query.all("run").map(Name::of).collect();
    let Some(names) = names.filter(|names| names.len() >= 2 && names.len() <= RUNS_MAX) else {
        let why = format!("select at least two runs, and at most {RUNS_MAX}");
        return error(StatusCode::BAD_REQUEST, &why);
    };
    let page = match tempfile::NamedTempFile::with_suffix(".html") {
        Ok(page) => page,
        Err(why) => return error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    };
    let folders = names.iter().map(|name| name.folder(&deck.setup.folder).display().to_string());
    let words = |page: String| {
        Typed::of(
            ["analyze", "compare"]
                .map(String::from)
                .into_iter()
                .chain(folders.clone())
                .chain([format!("--html={page}")]),
        )
    };
    if query.get("page").is_none() {
        let runs: Vec<String> = names.iter().map(|name| format!("run={}", encoded(&name.to_string()))).collect();
        let listed: Vec<String> = names.iter().map(ToString::to_string).collect();
        let content = html! {
            h1 { "Comparison of " (listed.join(", ")) }
            p { "The first run is the base of the others." }
            p { a.button.main href=(format!("/compare?{}&page=1", runs.join("&"))) { "Open the comparison" } }
            (command(&words("comparison.html".into())))
            ul { @for name in &names { li { a href=(name.url()) { (name) } } } }
        };
        return shell("Comparison", "/", &content);
    }
    let Ok(_room) = deck.asked.acquire().await else { return super::no_run() };
    if let Err(why) = jobs::ask(&words(page.path().display().to_string()), WITHIN).await {
        return error(StatusCode::UNPROCESSABLE_ENTITY, &why);
    }
    match tokio::fs::read(page.path()).await {
        Ok(bytes) => {
            let headers =
                [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, super::SANDBOX)];
            (headers, bytes).into_response()
        }
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}
