//! The server of the deck: its routes, its start and its end.

use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Router, body::Bytes};
use tokio::sync::{Notify, Semaphore};

use super::folder::Name;
use super::form::Form;
use super::guard::{Guard, Refused, UNLOCK, guarded};
use super::listener::{Gate, Stranger};
use super::pages;
use super::watch::Watches;
use super::{Beside, Setup};
use crate::failure::Failure;

/// The longest form. A specification has a few kilobytes.
const FORM_BYTES_MAX: usize = 256 << 10;

/// The most questions that are answered at a time; each is a process.
const ASKED_MAX: usize = 2;

/// What the pages share.
pub(super) struct Deck {
    pub(super) setup: Setup,
    pub(super) guard: Arc<Guard>,
    pub(super) watches: Arc<Watches>,
    pub(super) asked: Semaphore,
}

/// A deck that listens.
pub struct Running {
    /// Where.
    pub address: SocketAddr,
    /// The URL of its pages, up to the path.
    base: String,
    /// The key, if it is in the URL that opens the deck.
    key: Option<String>,
    end: Arc<Notify>,
    thread: std::thread::JoinHandle<()>,
    watches: Arc<Watches>,
    beside: Option<Beside>,
}

/// How long the deck beside a run that has ended waits for those who watch, and for the page that they open then.
const LAST_PICTURE: Duration = Duration::from_secs(3);
const LAST_PAGE: Duration = Duration::from_secs(2);

impl Running {
    /// The URL that opens a page of it.
    pub fn url_of(&self, page: &str) -> String {
        let sign = if page.contains('?') { '&' } else { '?' };
        let key = self.key.as_ref().map(|key| format!("{sign}key={key}")).unwrap_or_default();
        format!("{}{page}{key}", self.base)
    }

    /// Ends the deck beside a run that has ended, after open live pages have received the end. If there were any and the
    /// program runs in a terminal, it waits for Ctrl-C; `say` gets the URL.
    pub fn end_with_run(self, say: impl FnOnce(&str)) -> Result<(), Failure> {
        let Some(beside) = self.beside.clone() else {
            self.stop();
            return Ok(());
        };
        if !self.watches.has_been_used() {
            // No browser has opened a live page.
            beside.end();
        } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            beside.end();
            say(&self.url_of(&format!("/runs/{}", beside.run)));
            let ended = crate::run::runtime::start()?.block_on(asked_to_end());
            ended.map_err(|e| Failure::tool(format!("cannot listen for Ctrl-C: {e}")))?;
        } else {
            return self.end_with_failure();
        }
        self.stop();
        Ok(())
    }

    /// Ends the deck beside a run that has ended early, after open live pages have received the end.
    pub fn end_with_failure(self) -> Result<(), Failure> {
        if let Some(beside) = &self.beside {
            beside.end();
        }
        if self.watches.has_been_used() {
            let patience = Instant::now() + LAST_PICTURE;
            while self.watches.is_used() && Instant::now() < patience {
                std::thread::sleep(Duration::from_millis(50));
            }
            std::thread::sleep(LAST_PAGE);
        }
        self.stop();
        Ok(())
    }

    /// Ends it. Jobs that it has started go on.
    pub fn stop(self) {
        self.end.notify_one();
        // A thread that has panicked has ended too.
        let _ = self.thread.join();
    }
}

/// Starts the deck on a thread of its own.
pub fn start(setup: Setup) -> Result<Running, Failure> {
    let entrance = setup.entrance.clone();
    let asked = entrance.listen;
    entrance.check()?;
    let tls = entrance.tls()?;
    let refused = |e: std::io::Error| Failure::usage(format!("--listen {asked}: {e}; choose another port"));
    let listener = TcpListener::bind(asked).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let base = format!("{}://{}:{}", entrance.scheme(), entrance.host(), address.port());
    let has_own_secret = entrance.token.is_some();
    let guard = Arc::new(Guard::new(address.port(), entrance)?);
    let key = (!has_own_secret).then(|| guard.key().to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::tool(format!("cannot start the deck: {e}")))?;
    let end = Arc::new(Notify::new());
    let (watches, beside) = (Arc::<Watches>::default(), setup.beside.clone());
    let deck = Deck { setup, guard, watches: watches.clone(), asked: Semaphore::new(ASKED_MAX) };
    let ended = end.clone();
    let thread = std::thread::spawn(move || {
        runtime.block_on(async move {
            let gate = tokio::net::TcpListener::from_std(listener).and_then(|listener| Gate::new(listener, tls));
            let Ok(gate) = gate else { return };
            let pages = router(deck).into_make_service_with_connect_info::<Stranger>();
            tokio::select! {
                _ = async { axum::serve(gate, pages).await } => {}
                () = ended.notified() => {}
            }
        });
        // Viewers hold connections open without an end.
        runtime.shutdown_background();
    });
    Ok(Running { address, base, key, end, thread, watches, beside })
}

/// Serves the deck until Ctrl-C. `say` gets the URL that opens it.
pub fn serve(setup: Setup, say: impl FnOnce(&str)) -> Result<(), Failure> {
    let runtime = crate::run::runtime::start()?;
    let running = start(setup)?;
    say(&running.url_of("/"));
    let ended = runtime.block_on(asked_to_end());
    running.stop();
    ended.map_err(|e| Failure::tool(format!("cannot listen for Ctrl-C: {e}")))
}

async fn asked_to_end() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    let hangup_counts = !schemas::terminal::hangup_is_ignored();
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv(), if hangup_counts => {}
    }
    Ok(())
}

/// All pages behind the guard.
pub(super) fn router(deck: Deck) -> Router {
    let guard = deck.guard.clone();
    Router::new()
        .route("/", get(home))
        .route(UNLOCK, post(unlock))
        .route("/new", get(new).post(submit))
        .route("/runs/{name}", get(run).post(act))
        .route("/runs/{name}/{cell}", get(cell).post(act_on_cell))
        .route("/compare", get(compare))
        .route("/events", get(events))
        .route("/answer", get(answer))
        .route("/export", get(export))
        .route("/files/{*path}", get(file))
        .route("/deck.css", get(async || ([(header::CONTENT_TYPE, "text/css")], pages::style())))
        .route("/page.js", get(async || script(analyzer::html::SCRIPT)))
        .route("/deck.js", get(async || script(include_str!("deck.js"))))
        .fallback(async || pages::error(StatusCode::NOT_FOUND, "the deck has no such page"))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(from_fn_with_state(guard, guarded))
        .with_state(Arc::new(deck))
}

/// A script of the deck's pages: that of the reports, and its own.
fn script(text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript")], text)
}

type Shared = State<Arc<Deck>>;

fn query_of(RawQuery(query): RawQuery) -> Form {
    Form::of(&query.unwrap_or_default())
}

/// Draws a page beside the connections: it reads files.
async fn drawn(draw: impl FnOnce() -> Response + Send + 'static) -> Response {
    let failed = |_| pages::error(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made; see the terminal");
    tokio::task::spawn_blocking(draw).await.unwrap_or_else(failed)
}

/// The form of a request, if it is one of the deck's.
fn form_of(deck: &Deck, body: &Bytes) -> Result<Form, Refused> {
    let text = std::str::from_utf8(body).map_err(|_| Refused::Elsewhere("the form is not text"))?;
    let form = Form::of(text);
    deck.guard.check(&form)?;
    Ok(form)
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Refused::Stranger(why) => pages::locked(why, None),
            Refused::Elsewhere(why) => pages::error(StatusCode::FORBIDDEN, why),
        }
    }
}

async fn unlock(State(deck): Shared, body: Bytes) -> Response {
    deck.guard.unlock(&Form::of(&String::from_utf8_lossy(&body)))
}

async fn home(State(deck): Shared, query: RawQuery) -> Response {
    let query = query_of(query);
    drawn(move || pages::home::page(&deck, &query)).await
}

async fn new(State(deck): Shared, query: RawQuery) -> Response {
    let query = query_of(query);
    drawn(move || pages::new::page(&deck, &query)).await
}

async fn submit(State(deck): Shared, body: Bytes) -> Response {
    let form = match form_of(&deck, &body) {
        Ok(form) => form,
        Err(refused) => return refused.into_response(),
    };
    pages::new::submit(&deck, form).await
}

async fn run(deck: Shared, Path(name): Path<String>, query: RawQuery) -> Response {
    show(deck, Name::new([name.as_str()]), query_of(query)).await
}

async fn cell(deck: Shared, Path((name, cell)): Path<(String, String)>, query: RawQuery) -> Response {
    show(deck, Name::new([name.as_str(), cell.as_str()]), query_of(query)).await
}

async fn show(State(deck): Shared, name: Option<Name>, query: Form) -> Response {
    let Some(name) = name else { return pages::no_run() };
    match query.get("show") {
        _ if name.is_trace_set() => drawn(move || pages::traces::page(&deck, &name)).await,
        Some("sql") => pages::sql::page(&deck, &name, &query).await,
        Some("live") => drawn(move || pages::live::page(&deck, &name)).await,
        _ => drawn(move || pages::run::page(&deck, &name)).await,
    }
}

async fn act(deck: Shared, Path(name): Path<String>, body: Bytes) -> Response {
    acted(deck, Name::new([name.as_str()]), body).await
}

async fn act_on_cell(deck: Shared, Path((name, cell)): Path<(String, String)>, body: Bytes) -> Response {
    acted(deck, Name::new([name.as_str(), cell.as_str()]), body).await
}

async fn acted(State(deck): Shared, name: Option<Name>, body: Bytes) -> Response {
    let Some(name) = name else { return pages::no_run() };
    match form_of(&deck, &body) {
        Ok(form) => pages::run::act(&deck, &name, &form).await,
        Err(refused) => refused.into_response(),
    }
}

async fn compare(State(deck): Shared, query: RawQuery) -> Response {
    pages::compare::page(&deck, &query_of(query)).await
}

async fn events(State(deck): Shared, headers: axum::http::HeaderMap, query: RawQuery) -> Response {
    let Some(name) = Name::of(query_of(query).get("run").unwrap_or_default()) else { return pages::no_run() };
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    pages::live::events(deck.watches.subscribe(&deck, &name), seen)
}

async fn answer(State(deck): Shared, query: RawQuery) -> Response {
    pages::sql::download(&deck, &query_of(query)).await
}

async fn export(State(deck): Shared, query: RawQuery) -> Response {
    pages::run::export(&deck, &query_of(query)).await
}

async fn file(State(deck): Shared, Path(path): Path<String>) -> Response {
    drawn(move || pages::file(&deck.setup.folder, &path)).await
}

/// After a form: the page that shows what came of it.
pub(super) fn see(url: &str) -> Response {
    Redirect::to(url).into_response()
}
