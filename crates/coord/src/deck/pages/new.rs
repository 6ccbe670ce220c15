//! The form of a rating, of a single experiment, of a comparison or of a trace set. Its fields are the flags of the command line,
//! and the errors beside them are those of the command line.

use std::path::Path;
use std::time::SystemTime;

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use schemas::files;
use schemas::manifest::Manifest;
use schemas::plan::has_secret;

use super::{command, error, shell, traces};
use crate::deck::command::{self as commands, Errors, Typed, shown};
use crate::deck::fields::{Field, Kind, fields};
use crate::deck::folder::{Name, OWN, trace_sets};
use crate::deck::form::{Form, encoded};
use crate::deck::jobs;
use crate::deck::plan;
use crate::deck::server::{Deck, see};

/// The kinds of commands, and what their pages are called.
const KINDS: [(&str, &str); 4] = [
    ("rate", "Rate a store"),
    ("run", "Run one experiment"),
    ("compare", "Compare stores"),
    ("trace", "Generate a trace set"),
];

/// The fields that are always open, in this order.
fn first_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "rate" => &["store", "sla", "rating", "by", "name"],
        "run" => &["store", "threads", "sla", "duration", "name"],
        "trace" => &["name", "sessions", "fragments", "set"],
        _ => &["sla", "name"],
    }
}

/// Where specifications and plans are looked for, besides the folder of the deck's own.
const PLACES: [&str; 2] = ["traces", "."];

/// A specification, a plan or a trace set to choose from.
struct Choice {
    path: String,
    /// The text of the file; empty for a trace set.
    text: String,
    is_trace_set: bool,
}

/// All to choose from: plans for a comparison, else specifications; trace sets too, for what replays one.
fn choices(deck: &Deck, kind: &str) -> Vec<Choice> {
    let own = deck.setup.folder.join(OWN);
    let places = PLACES.iter().map(Path::new).chain([own.as_path()]);
    let mut found = Vec::new();
    for place in places {
        let mut paths: Vec<_> =
            std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml")) {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let is_plan = text.lines().any(|line| line.trim() == "[[stores]]");
            let is_spec = text.lines().any(|line| line.trim_start().starts_with("[data"));
            if if kind == "compare" { is_plan } else { is_spec && !is_plan } {
                let path = path.strip_prefix(".").unwrap_or(&path).display().to_string();
                found.push(Choice { path, text, is_trace_set: false });
            }
        }
    }
    if matches!(kind, "rate" | "run") {
        let runs = &deck.setup.folder;
        let paths = trace_sets(runs).into_iter().map(|name| name.folder(runs).display().to_string());
        found.extend(paths.map(|path| Choice { path, text: String::new(), is_trace_set: true }));
    }
    found
}

/// The empty form.
pub(in crate::deck) fn page(deck: &Deck, query: &Form) -> Response {
    // After a check the address bar has no kind.
    if query.get("kind").is_none() {
        return see("/new?kind=rate");
    }
    let Some((kind, _)) = kind_of(query) else { return error(StatusCode::NOT_FOUND, "the deck has no such form") };
    let choices = choices(deck, kind);
    let mut form = query.clone();
    show_chosen(deck, kind, &mut form, &choices);
    take_trace_set(&mut form, &choices);
    draw(deck, kind, &form, &choices, None)
}

/// Fills the flag --trace from the choice of a trace set. Another choice empties it again, unless the user typed it.
fn take_trace_set(form: &mut Form, choices: &[Choice]) {
    let chosen = choices.iter().find(|choice| choice.is_trace_set && choice.path == form.trimmed("spec"));
    if let Some(choice) = chosen {
        form.set("trace", choice.path.clone());
        form.set("taken", choice.path.clone());
    } else if !form.trimmed("taken").is_empty() && form.trimmed("trace") == form.trimmed("taken") {
        form.set("trace", String::new());
        form.set("taken", String::new());
    }
}

/// Puts the text of the chosen specification into a form, and a name that fits it, unless the user has typed one.
fn show_chosen(deck: &Deck, kind: &str, form: &mut Form, choices: &[Choice]) {
    let spec = form.trimmed("spec").to_string();
    if form.get("name").is_none_or(|name| name == form.trimmed("suggested")) {
        let stem = Path::new(&spec).file_stem().and_then(|stem| stem.to_str()).unwrap_or("quickstart");
        let name = if kind == "trace" { free_trace_name(deck, stem) } else { free_name(deck, stem) };
        form.set("suggested", name.clone());
        form.set("name", name);
    }
    let choice = choices.iter().find(|choice| choice.path == spec);
    form.set("text", choice.map_or(deck.setup.quickstart, |choice| choice.text.as_str()).to_string());
}

fn kind_of(form: &Form) -> Option<(&'static str, &'static str)> {
    KINDS.into_iter().find(|(kind, _)| form.get("kind") == Some(kind))
}

/// A name that no run has yet, from the time as the command line makes it.
fn free_name(deck: &Deck, stem: &str) -> String {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let time: String = time.chars().filter(char::is_ascii_digit).collect();
    let (day, clock) = time.split_at(time.len().min(8));
    let base = format!("{stem}-{day}-{clock}");
    let names = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}-{n}")));
    names.take(1000).find(|name| !deck.setup.folder.join(name).exists()).unwrap_or(base)
}

/// A name that no trace set has yet.
fn free_trace_name(deck: &Deck, stem: &str) -> String {
    let is_free =
        |name: &String| Name::of_trace_set(name).is_some_and(|name| !name.folder(&deck.setup.folder).exists());
    let mut names = std::iter::once(stem.to_string()).chain((2..1000).map(|n| format!("{stem}-{n}")));
    names.find(is_free).unwrap_or_else(|| stem.to_string())
}

/// What came of a form that was sent: the form again, or the run that it started.
pub(in crate::deck) async fn submit(deck: &std::sync::Arc<Deck>, mut form: Form) -> Response {
    let Some((kind, _)) = kind_of(&form) else { return error(StatusCode::NOT_FOUND, "the deck has no such form") };
    let choices = choices(deck, kind);
    take_trace_set(&mut form, &choices);
    if form.get("do") == Some("choose") {
        show_chosen(deck, kind, &mut form, &choices);
        return draw(deck, kind, &form, &choices, None);
    }
    if form.trimmed("name").is_empty() {
        form.set("name", if kind == "trace" { free_trace_name(deck, "quickstart") } else { free_name(deck, kind) });
    }
    let form = &form;
    let refused =
        |field: &str, why: String| draw(deck, kind, form, &choices, Some(Err([(field.to_string(), why)].into())));
    let name = match name_of(deck, kind, form.trimmed("name")) {
        Ok(name) => name,
        Err(why) => return refused("name", why),
    };
    let file = match specification(deck, kind, form, &choices) {
        Ok(file) => file,
        Err(why) => return refused("spec", why),
    };
    let (deck_fields, typed) = (fields(&deck.setup.commands, kind), command_of(deck, kind, form, file.as_deref()));
    let started = || see(&if matches!(kind, "compare" | "trace") { name.url() } else { name.url_of("live") });
    // The second click of two, which would find the run that the first one has started.
    if form.get("do") == Some("start") && jobs::runs_already(&deck.setup.folder, &name, &typed) {
        return started();
    }
    let (own, checked, checked_file) = (deck.clone(), typed.clone(), file.clone());
    let (own_form, own_fields) = (form.clone(), deck_fields.clone());
    let errors = tokio::task::spawn_blocking(move || {
        commands::check(&own.setup, &checked, checked_file.as_deref(), &own_fields, &own_form)
    });
    let errors = errors.await.unwrap_or_else(|_| [(String::new(), "the check failed".to_string())].into());
    if !errors.is_empty() {
        return draw(deck, kind, form, &choices, Some(Err(errors)));
    }
    if form.get("do") != Some("start") {
        return draw(deck, kind, form, &choices, Some(Ok(())));
    }
    match jobs::start(&deck.setup.folder, &name, &typed).await {
        Ok(()) => started(),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

/// The run or the trace set of this name, if it can be made.
fn name_of(deck: &Deck, kind: &str, name: &str) -> Result<Name, String> {
    let of_kind = if kind == "trace" { Name::of_trace_set(name) } else { Name::new([name]) };
    let found = of_kind.ok_or("use letters, digits, '-', '_' and '.'")?;
    if kind == "trace" && found.folder(&deck.setup.folder).exists() {
        return Err(format!("there is a trace set {name} already; choose another name"));
    }
    Ok(found)
}

/// The file of a form's specification or plan. Text that was edited becomes a file of the deck's own, so that the command
/// names it.
#[derive(Debug, PartialEq, Eq)]
struct File {
    path: String,
    /// What is to be written to it; None if it is there.
    edited: Option<String>,
}

/// The file that a form asks for; None for the built-in specification and for a trace set.
fn file_of(deck: &Deck, kind: &str, form: &Form, choices: &[Choice]) -> Result<Option<File>, String> {
    let chosen = form.trimmed("spec");
    let choice = choices.iter().find(|choice| choice.path == chosen);
    if choice.is_some_and(|choice| choice.is_trace_set) {
        return Ok(None);
    }
    let before = match choice {
        Some(choice) => choice.text.as_str(),
        None if kind == "compare" => return Err("choose the plan of the comparison".into()),
        None if chosen.is_empty() => deck.setup.quickstart,
        None => return Err("this file is not in the list any more; choose another".into()),
    };
    let text = form.get("text").unwrap_or(before);
    // A browser sends the ends of lines as \r\n. The command that generates a trace set takes no built-in specification.
    if is_same(text, before) && (choice.is_some() || kind != "trace") {
        return Ok(choice.map(|choice| File { path: choice.path.clone(), edited: None }));
    }
    if has_password(text) {
        return Err(
            "contains a password; set an environment variable before `encore deck`, and write ${VARIABLE} in its \
                    place"
                .into(),
        );
    }
    let name = form.trimmed("name");
    let Some(name) = Name::new([name]).filter(|_| files::is_plain_name(name)) else {
        return Err("the name of the run is needed for the file of the edited text".into());
    };
    let path = deck.setup.folder.join(OWN).join(format!("{name}.toml"));
    Ok(Some(File { path: path.display().to_string(), edited: Some(text.replace("\r\n", "\n")) }))
}

/// Whether two texts differ in nothing but the ends of their lines.
fn is_same(a: &str, b: &str) -> bool {
    a.trim().lines().eq(b.trim().lines())
}

/// The path of a form's specification or plan, which is written if it was edited.
fn specification(deck: &Deck, kind: &str, form: &Form, choices: &[Choice]) -> Result<Option<String>, String> {
    let Some(file) = file_of(deck, kind, form, choices)? else { return Ok(None) };
    if let Some(mut text) = file.edited {
        let own = deck.setup.folder.join(OWN);
        std::fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
        if kind == "compare" {
            let home = Path::new(form.trimmed("spec")).parent().unwrap_or(Path::new(""));
            text = plan::moved(&text, home, &own);
        }
        files::write_atomically(Path::new(&file.path), text.as_bytes()).map_err(|e| e.to_string())?;
    }
    Ok(Some(file.path))
}

/// The command that a form asks for, as far as it is filled.
fn command_of(deck: &Deck, kind: &str, form: &Form, file: Option<&str>) -> Typed {
    let (all, runs) = (fields(&deck.setup.commands, kind), &deck.setup.folder);
    match Name::of_trace_set(form.trimmed("name")).filter(|_| kind == "trace") {
        Some(name) => commands::of_trace(file, &all, form, &name.folder(runs).display().to_string()),
        None => commands::of_form(kind, file, &all, form, &runs.display().to_string()),
    }
}

/// Draws the form with the command that it asks for, and with what its check has found.
fn draw(deck: &Deck, kind: &str, form: &Form, choices: &[Choice], came: Option<Result<(), Errors>>) -> Response {
    let title = KINDS.into_iter().find(|(own, _)| *own == kind).map_or("", |(_, title)| title);
    let none = Errors::new();
    let errors = came.as_ref().and_then(|came| came.as_ref().err()).unwrap_or(&none);
    let all = fields(&deck.setup.commands, kind);
    let open = first_of(kind);
    let first: Vec<&Field> = open.iter().filter_map(|name| all.iter().find(|field| field.name == *name)).collect();
    let mut headings: Vec<&str> = Vec::new();
    let rest: Vec<&Field> = all.iter().filter(|field| !open.contains(&field.name.as_str())).collect();
    for field in &rest {
        if !headings.contains(&field.heading.as_str()) {
            headings.push(&field.heading);
        }
    }
    let file = file_of(deck, kind, form, choices).ok().flatten().map(|file| file.path);
    let file = file.or_else(|| (kind == "compare").then(|| "PLAN".to_string()));
    let typed = command_of(deck, kind, form, file.as_deref());
    let content = html! {
        h1 { (title) }
        form method="post" action="/new" data-at-change="" {
            input type="hidden" name="token" value=(deck.guard.token());
            input type="hidden" name="kind" value=(kind);
            input type="hidden" name="suggested" value=(form.trimmed("suggested"));
            input type="hidden" name="taken" value=(form.trimmed("taken"));
            // Enter in a field presses the first button of a form.
            button.unseen name="do" value="check" tabindex="-1" aria-hidden="true" {}
            (chooser(kind, form, choices))
            @if let Some(why) = errors.get("") { p.why role="alert" { (why) } }
            @if !errors.is_empty() { p.fail role="alert" { "Not started: see the marked fields." } }
            @if let Some(Ok(())) = came { p.conclusion.pass role="status" { "All is correct. Nothing has been started yet." } }
            div.fields { @for field in first { (drawn(field, form, errors)) } (editor(kind, form, choices, errors)) }
            @for heading in headings {
                @let own: Vec<&&Field> = rest.iter().filter(|field| field.heading == heading).collect();
                @let is_open = own.iter().any(|field| errors.contains_key(&field.name) || is_filled(field, form));
                details open[is_open] { summary { (heading) } div.fields { @for field in own { (drawn(field, form, errors)) } } }
            }
            div.row {
                button.main name="do" value="start" { "Start" }
                button name="do" value="check" { "Check, and update the command" }
            }
        }
        (command(&typed))
        p.soft { a href=(link_to(kind, form, &all)) { "A link to this form as it is filled" } }
        @if kind == "trace" { (traces::list(deck)) }
    };
    shell(title, &format!("/new?kind={kind}"), &content)
}

/// The URL of a form with what is typed, without an edited text.
fn link_to(kind: &str, form: &Form, fields: &[Field]) -> String {
    let names = ["spec", "taken"].into_iter().chain(fields.iter().map(|field| field.name.as_str()));
    let filled = names.filter_map(|name| Some((name, form.get(name)?))).filter(|(_, value)| !value.trim().is_empty());
    let parts: Vec<String> = filled.map(|(name, value)| format!("&{name}={}", encoded(&shown(value)))).collect();
    format!("/new?kind={kind}{}", parts.concat())
}

fn is_filled(field: &Field, form: &Form) -> bool {
    !form.trimmed(&field.name).is_empty()
}

/// The choice of the specification or plan. What else was typed stays.
fn chooser(kind: &str, form: &Form, choices: &[Choice]) -> Markup {
    let chosen = form.trimmed("spec");
    let what = if kind == "compare" { "Plan" } else { "Workload specification" };
    html! {
        div.row {
            label for="spec" { (what) }
            select #spec name="spec" data-at-change="" {
                @if kind == "compare" { option value="" { "Choose a plan" } } @else { option value="" { "quickstart.toml (built in)" } }
                @for choice in choices.iter().filter(|choice| choice.is_trace_set) {
                    option value=(choice.path) selected[choice.path == chosen] { (choice.path) " (trace set)" }
                }
                @for choice in choices.iter().filter(|choice| !choice.is_trace_set) { option value=(choice.path) selected[choice.path == chosen] { (choice.path) } }
            }
            button name="do" value="choose" data-reload="" formnovalidate { "Show it" }
        }
    }
}

/// The parts of a text of TOML that may be URLs: what stands between quotes on a line, and words with `://`.
fn urls(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split(['"', '\'', '\n']).map(str::trim);
    let quoted = quoted.filter(|part| !part.starts_with('#'));
    quoted.chain(text.split_whitespace().filter(|word| word.contains("://")))
}

/// Whether a text of TOML has a URL with a password.
fn has_password(text: &str) -> bool {
    urls(text).any(has_secret)
}

/// The text without its passwords.
fn without_passwords(text: &str) -> String {
    let mut out = text.to_string();
    for url in urls(text).filter(|url| has_secret(url)) {
        out = out.replace(url, &shown(url));
    }
    out
}

/// The text of the specification or plan, to edit; what a trace set has, to read.
fn editor(kind: &str, form: &Form, choices: &[Choice], errors: &Errors) -> Markup {
    let text = form.get("text").unwrap_or_default();
    let why = errors.get("spec");
    let chosen = choices.iter().find(|choice| choice.path == form.trimmed("spec"));
    let what = if kind == "compare" { "plan" } else { "specification" };
    let set = chosen.filter(|choice| choice.is_trace_set);
    html! {
        div.field.whole.wrong[why.is_some()] {
            @if let Some(why) = why { p.why id="why-spec" { (why) } }
            @if let Some(set) = set {
                @let shown = Manifest::read_alone(Path::new(&set.path)).map(|manifest| traces::overview(&manifest));
                details { summary { "The trace set" } pre { (shown.unwrap_or_else(|why| why.to_string())) } }
            } @else if chosen.is_some_and(|choice| has_password(&choice.text)) {
                p { "The " (what) " has a password, so its text is not shown. Write ${VARIABLE} in its place." }
            } @else if kind != "compare" || chosen.is_some() {
                details open[why.is_some()] {
                    summary { "Edit the " (what) }
                    label for="text" { "Text of the " (what)
                        span.soft {
                            "TOML. An edited one is stored beside the runs, and the command names it."
                            @if kind == "compare" { " Specifications in it are relative to the folder of the chosen plan." }
                        } }
                    textarea #text name="text" rows="24" spellcheck="false" aria-describedby=[why.map(|_| "why-spec")] { (without_passwords(text)) }
                }
            }
        }
    }
}

/// A field with its help and its error.
fn drawn(field: &Field, form: &Form, errors: &Errors) -> Markup {
    let (name, why) = (field.name.as_str(), errors.get(&field.name));
    let id = format!("field-{name}");
    let (help_id, why_id) = (format!("help-{name}"), format!("why-{name}"));
    let described = if why.is_some() { format!("{why_id} {help_id}") } else { help_id.clone() };
    // A password is never sent back.
    let value = shown(form.get(name).unwrap_or_default());
    let invalid = why.map(|_| "true");
    html! {
        div.field.wrong[why.is_some()] {
            label for=(id) { (words(name)) @if field.is_required { " (required)" } }
            @match field.kind {
                Kind::Check => input id=(id) type="checkbox" name=(name) value="on" checked[form.get(name).is_some()]
                    aria-describedby=(described) aria-invalid=[invalid];,
                Kind::Lines => textarea id=(id) name=(name) rows="2" aria-describedby=(described) aria-invalid=[invalid] { (value) },
                Kind::Choice => select id=(id) name=(name) aria-describedby=(described) aria-invalid=[invalid] {
                    option value="" { "default" }
                    @for choice in &field.choices { option value=(choice) selected[*choice == value] { (choice) } }
                },
                Kind::Text => input id=(id) type="text" name=(name) value=(value) autocomplete="off" spellcheck="false"
                    aria-describedby=(described) aria-invalid=[invalid];,
            }
            @if let Some(why) = why { p.why id=(why_id) { (why) } }
            span.soft id=(help_id) { (field.help) " " code { "--" (name) } }
        }
    }
}

/// The name of a flag as the label of a field.
fn words(flag: &str) -> String {
    match flag {
        "sla" => "SLA".into(),
        "set" => "Keys of the specification to override".into(),
        "store" => "Store URL".into(),
        _ => {
            let text = flag.replace('-', " ");
            let mut chars = text.chars();
            chars.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + chars.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_plans_are_found() {
        assert!(has_password("url = \"postgres://me:hush@db/x\""));
        assert!(!has_password("url = \"postgres://me:${PASSWORD}@db/x\""));
        assert!(!has_password("url = \"sqlite:a.db\"\nsla = \"95% < 100ms\""));
        assert!(!has_password("# mail me: joe@example.com\nname = \"a\"\n"));
        let text = "# was postgres://me:hush@db/x\nurl = \"${PG:-mysql://me:hush@db/x}\"\n[[stores]]\n";
        assert!(has_password(text));
        let shown = without_passwords(text);
        assert!(!shown.contains("hush") && shown.contains("[[stores]]") && shown.contains("me:***@db/x"), "{shown}");
    }
}
