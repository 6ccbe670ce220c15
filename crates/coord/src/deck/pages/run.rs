//! A run or a comparison: what it found, its report, what can be asked of it and done with it.

use std::time::Duration;

use analyzer::html::{Column, spaced, table};
use analyzer::{sla_in_words, thousands};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use schemas::comparison::{ComparisonDocument, Outcome};
use schemas::program::{quoted, to_type};
use schemas::run::{RunDocument, RunFolder};
use schemas::sla::short_time;
use schemas::verdict::{ConditionFigures, Verdict};
use schemas::words::plural;

use super::home::{state, time};
use super::{command, error, no_run, shell};
use crate::deck::command::Typed;
use crate::deck::folder::{self, Name, State};
use crate::deck::form::{Form, encoded};
use crate::deck::jobs;
use crate::deck::server::{Deck, see};

/// How long an export may take.
const EXPORT: Duration = Duration::from_secs(120);

pub(in crate::deck) fn page(deck: &Deck, name: &Name) -> Response {
    let folder = name.folder(&deck.setup.folder);
    if let Some(document) = folder::comparison(&folder) {
        return comparison(deck, name, &document);
    }
    let run = RunFolder::new(&folder);
    match run.read_document() {
        Ok(document) => whole(deck, name, &run, &document),
        Err(_) if deck.setup.works_on(name) => super::live::page(deck, name),
        Err(why) => match jobs::output(&deck.setup.folder, name) {
            Some(output) => not_begun(deck, name, &output),
            None if folder.exists() => error(StatusCode::NOT_FOUND, &why.to_string()),
            None => no_run(),
        },
    }
}

/// A run of which there is only what its command has printed.
fn not_begun(deck: &Deck, name: &Name, output: &str) -> Response {
    if !jobs::has_ended(output) {
        return super::live::page(deck, name);
    }
    let content = html! {
        h1 { (name) }
        p.conclusion.fail { "The command ended before the run began." }
        pre { (output) }
        p { a href="/new?kind=rate" { "Configure another rating" } }
    };
    shell(&name.to_string(), "", &content)
}

fn whole(deck: &Deck, name: &Name, run: &RunFolder, document: &RunDocument) -> Response {
    let verdicts = folder::verdicts(run);
    let standing = folder::run_state(run, document);
    let rating = folder::rating(run);
    let path = run.root().display().to_string();
    let is_rating = document.command.iter().any(|word| word == "rate");
    let has_report = run.root().join("report.html").exists();
    let content = html! {
        h1 { (name) }
        p.soft { (state(&standing)) " · " (document.spec.name) " · " (document.store) " · " (time(document.started_unix_s)) }
        @if let Some(rating) = &rating { pre.result { (analyzer::ratings(rating).trim_end()) } }
        @if let (None, Some(last)) = (&rating, verdicts.last()) { (answer(last)) }
        @if let State::Failed(why) = &standing { p.fail { "The run failed: " (why) } }
        p { "SLA: " (spaced(&html! { (sla_in_words(&document.sla())) })) "." }
        div.row {
            @if has_report { a.button.main href=(format!("/files{}/report.html", files_of(name))) { "Open the report" } }
            @if standing == State::Running { a.button.main href=(name.url_of("live")) { "Watch it live" } }
            a.button href=(name.url_of("sql")) { "Ask SQL" }
            (actions(deck, name, &standing, is_rating))
        }
        (stopping(is_stopping(deck, name, &standing)))
        @if !verdicts.is_empty() { h2 { "Experiments" } (experiments(&verdicts)) }
        h2 { "Download" }
        (downloads(name, run))
        h2 { "Commands" }
        p.soft { "This run was made by:" }
        pre { (analyzer::html::command_line(&document.command)) }
        (command(&Typed::of(["analyze".into(), "summary".into(), path.clone()])))
        @if can_resume(&standing, is_rating) {
            p.soft { "This takes it up again:" }
            pre.command { (Typed::of(["rate".into(), "--resume".into(), path]).text()) }
        }
        @if let Some(output) = jobs::output(&deck.setup.folder, name) {
            details { summary { "What the command has printed" } pre { (output) } }
        }
    };
    shell(&name.to_string(), "", &content)
}

/// A name as a part of the path of a file.
pub(super) fn files_of(name: &Name) -> String {
    name.url().trim_start_matches("/runs").to_string()
}

fn is_stopping(deck: &Deck, name: &Name, state: &State) -> bool {
    *state == State::Running && jobs::is_stopping(&deck.setup.folder, name, deck.setup.works_on(name))
}

/// That a run was asked to stop.
pub(super) fn stopping(is_asked: bool) -> Markup {
    html! { @if is_asked { p.soft role="status" { "Stopping: what is under way is finished first." } } }
}

/// The buttons that change something.
pub(super) fn actions(deck: &Deck, name: &Name, state: &State, is_rating: bool) -> Markup {
    let button = |act: &str, text: &str| {
        html! {
            form method="post" action=(name.url()) {
                input type="hidden" name="token" value=(deck.guard.token());
                button name="act" value=(act) { (text) }
            }
        }
    };
    html! {
        @if *state == State::Running && !is_stopping(deck, name, state) { (button("stop", "Stop it safely")) }
        @if can_resume(state, is_rating) {
            (button("resume", "Resume it"))
        }
    }
}

fn can_resume(state: &State, is_rating: bool) -> bool {
    is_rating && matches!(state, State::Interrupted | State::Killed | State::Failed(_))
}

/// Where the table of a run has an experiment.
pub(super) fn experiment_id(experiment: u32) -> String {
    format!("experiment-{experiment}")
}

/// The answer of a run that is no rating, from its last experiment.
fn answer(verdict: &Verdict) -> Markup {
    let (figures, ruling) = (&verdict.figures, verdict.ruling.name());
    let throughput = thousands(figures.throughput_per_s.round() as u64);
    let (within, beta) = (figures.within_beta_percent, short_time(verdict.sla.beta_ns));
    let sentence = format!(
        "{throughput} operations/s with {}, {within:.2}% of them within {beta}, {:.3}% of the reads unpredictable.",
        plural(verdict.threads.into(), "thread"),
        figures.unpredictable_percent
    );
    html! {
        div.answer {
            span class=(format!("badge {ruling}")) { (ruling) }
            p.conclusion { (spaced(&html! { (sentence) @for reason in &verdict.reasons { br; (reason) } })) }
        }
        @if figures.breaks_conditions() {
            @for lines in figures.conditions.iter().flat_map(ConditionFigures::lines_with_rows) { pre.fail { (lines) } }
        }
    }
}

fn experiments(verdicts: &[Verdict]) -> Markup {
    let numbers = ["experiment", "T", "sessions due/s", "operations/s", "p95", "p99", "% within", "% unpredictable"];
    let columns: Vec<Column> = numbers.into_iter().map(Column::Number).chain([Column::Words("verdict")]).collect();
    let row = |verdict: &Verdict| {
        let (figures, ruling) = (&verdict.figures, verdict.ruling.name());
        let number = html! { span id=(experiment_id(verdict.experiment)) { (verdict.experiment) } };
        let rate = verdict.rate_per_s.map_or("-".to_string(), |rate| thousands(rate.round() as u64));
        let texts = [
            verdict.threads.to_string(),
            rate,
            thousands(figures.throughput_per_s.round() as u64),
            short_time(figures.overall.p95_ns),
            short_time(figures.overall.p99_ns),
            format!("{:.2}", figures.within_beta_percent),
            format!("{:.3}", figures.unpredictable_percent),
        ];
        let verdict =
            spaced(&html! { span class=(ruling) { (ruling) } @for reason in &verdict.reasons { br; (reason) } });
        let texts = texts.into_iter().map(|text| html! { (text) });
        std::iter::once(number).chain(texts).chain([verdict]).collect::<Vec<Markup>>()
    };
    table(&columns, &verdicts.iter().map(row).collect::<Vec<_>>())
}

/// What an export gives: the rows or times, and the format.
const EXPORTS: [(&str, &str, &str); 6] = [
    ("experiments", "csv", "Experiments (CSV)"),
    ("timeline", "csv", "Timeline (CSV)"),
    ("unpredictable", "csv", "Unpredictable reads (CSV)"),
    ("spectrum", "csv", "Response times (CSV)"),
    ("", "hgrm", "Response times by percentile (HdrHistogram)"),
    ("", "openmetrics", "Metrics (OpenMetrics)"),
];

fn downloads(name: &Name, run: &RunFolder) -> Markup {
    let files = ["rating.json", "run.json", "FinalResult.csv", "Results.csv"];
    html! {
        ul {
            @for (rows, format, text) in EXPORTS {
                @let run = encoded(&name.to_string());
                li { a href=(format!("/export?run={run}&rows={rows}&format={format}")) { (text) } }
            }
            @for file in files { @if run.root().join(file).exists() {
                li { a href=(format!("/files{}/{file}", files_of(name))) { (file) } }
            } }
        }
        p.soft { "All operations of a run may be gigabytes; this command writes them to a file. With another format and --rows it \
                  makes what is listed here." }
        pre.command { (to_type()) " analyze export " (quoted(&run.root().display().to_string())) " --format parquet -o operations.parquet" }
    }
}

/// An export, made by the command that makes it in a terminal.
pub(in crate::deck) async fn export(deck: &Deck, query: &Form) -> Response {
    let Some(name) = Name::of(query.trimmed("run")) else { return no_run() };
    let (rows, format) = (query.trimmed("rows"), query.trimmed("format"));
    if !EXPORTS.iter().any(|(own, own_format, _)| (*own, *own_format) == (rows, format)) {
        return error(StatusCode::NOT_FOUND, "the deck has no such export");
    }
    let path = name.folder(&deck.setup.folder).display().to_string();
    let mut words = vec!["analyze".to_string(), "export".into(), path, format!("--format={format}")];
    words.extend((!rows.is_empty()).then(|| format!("--rows={rows}")));
    let Ok(_room) = deck.asked.acquire().await else { return no_run() };
    match jobs::ask(&Typed(words), EXPORT).await {
        Ok(text) => download(&format!("{}-{}.{format}", name.to_string().replace('/', "-"), rows), format, text),
        Err(why) => error(StatusCode::UNPROCESSABLE_ENTITY, &why),
    }
}

/// A file that a browser stores. Its name has only plain characters.
pub(super) fn download(file: &str, format: &str, text: Vec<u8>) -> Response {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let file: String = file.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let kind = match format {
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        "openmetrics" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let disposition = format!("attachment; filename=\"{file}\"");
    ([(header::CONTENT_TYPE, kind.to_string()), (header::CONTENT_DISPOSITION, disposition)], text).into_response()
}

fn comparison(deck: &Deck, name: &Name, document: &ComparisonDocument) -> Response {
    let folder = name.folder(&deck.setup.folder);
    let standing = folder::comparison_state(&folder, document);
    let running = folder::running_cell(&folder, document);
    let columns = ["point", "store", "outcome", "run"].map(Column::Words);
    let row = |cell: &schemas::comparison::Cell| {
        let outcome = match &cell.outcome {
            _ if running.as_ref() == Some(&cell.run) => html! { span.pass { "running" } },
            Outcome::Missing => html! { span.soft { "to come" } },
            Outcome::Rated { soar, socialites, rate } => html! { (folder::in_words([soar, socialites, rate])) },
            Outcome::Measured(measured) => html! {
                span class=(measured.ruling.name()) { (measured.ruling.name()) } ": "
                (thousands(measured.throughput_per_s.round() as u64)) " operations/s"
            },
            Outcome::Failed(why) => html! { span.fail { (why) } },
        };
        let link = name.cell(&cell.run).filter(|own| own.folder(&deck.setup.folder).exists());
        let link = html! { @match link { Some(own) => a href=(own.url()) { (cell.run) }, None => (cell.run) } };
        vec![html! { (cell.point) }, html! { (cell.store) }, outcome, link]
    };
    let live = running.as_deref().and_then(|cell| name.cell(cell)).map(|cell| cell.url_of("live"));
    let content = html! {
        h1 { (name) }
        p.soft { (state(&standing)) " · " (document.plan.title) " · " (time(document.started_unix_s)) }
        @if let State::Failed(why) = &standing { p.fail { (why) } }
        div.row {
            @if folder.join("comparison.html").exists() {
                a.button.main href=(format!("/files{}/comparison.html", files_of(name))) { "Open the comparison" }
            }
            @if let Some(live) = live { a.button.main href=(live) { "Watch the running cell" } }
            a.button href=(name.url_of("sql")) { "Ask SQL" }
            (actions(deck, name, &standing, true))
        }
        (stopping(is_stopping(deck, name, &standing)))
        @if standing == State::Running { p.soft data-again="" { "The page is loaded again every few seconds." } }
        h2 { "Cells" }
        (table(&columns, &document.cells.iter().map(row).collect::<Vec<_>>()))
        h2 { "Download" }
        ul {
            @for file in ["comparison.md", "comparison.json", "comparison.svg"] { @if folder.join(file).exists() {
                li { a href=(format!("/files{}/{file}", files_of(name))) { (file) } }
            } }
        }
        h2 { "Commands" }
        p.soft { "This comparison was made by:" }
        pre { (analyzer::html::command_line(&document.command)) }
        @if can_resume(&standing, true) {
            p.soft { "This takes it up again:" }
            pre.command { (to_resume(document).text()) }
        }
    };
    shell(&name.to_string(), "", &content)
}

/// Stops or resumes a run.
pub(in crate::deck) async fn act(deck: &Deck, name: &Name, form: &Form) -> Response {
    let runs = &deck.setup.folder;
    match form.get("act") {
        Some("stop") => match jobs::stop(runs, name, deck.setup.works_on(name)) {
            Ok(_) => see(&watched(deck, name)),
            Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
        },
        Some("resume") => {
            let typed = match resumed(deck, name) {
                Ok(typed) => typed,
                Err(why) => return error(StatusCode::UNPROCESSABLE_ENTITY, &why),
            };
            match jobs::start(runs, name, &typed).await {
                Ok(()) => see(&watched(deck, name)),
                Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
            }
        }
        _ => error(StatusCode::BAD_REQUEST, "the deck knows the actions stop and resume"),
    }
}

/// Where a run is watched. A comparison has a page of its own, which leads to the cell that runs.
fn watched(deck: &Deck, name: &Name) -> String {
    match folder::comparison(&name.folder(&deck.setup.folder)) {
        Some(_) => name.url(),
        None => name.url_of("live"),
    }
}

/// The command of a comparison names its plan and flags; the first word is the program.
fn to_resume(document: &ComparisonDocument) -> Typed {
    let words = document.command.iter().skip(1).filter(|word| *word != "--resume" && *word != "--json").cloned();
    Typed(words.chain(["--resume".to_string()]).collect())
}

/// The command that takes up a run, if the command line accepts it.
fn resumed(deck: &Deck, name: &Name) -> Result<Typed, String> {
    let folder = name.folder(&deck.setup.folder);
    let typed = match folder::comparison(&folder) {
        Some(document) => to_resume(&document),
        None => Typed::of(["rate".to_string(), "--resume".into(), folder.display().to_string()]),
    };
    let words: Vec<String> = std::iter::once("encore".to_string()).chain(typed.0.iter().cloned()).collect();
    (deck.setup.check)(&words).map(|()| typed)
}
