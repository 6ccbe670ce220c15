//! What `encore rate` and `encore run` share: trace set, store, SLA and the folder of the run.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use replayer::any_store::has_closing_read;
use schemas::manifest::Manifest;
use schemas::pace_request::PaceRequest;
use schemas::plan::Warmup;
use schemas::spec::Spec;
use schemas::verdict::Between;
use storage::Place;

use super::Invocation;
use super::fleet::fleet;
use crate::cli::args::WorkloadArgs;
use crate::cli::environment;
use crate::failure::Failure;
use crate::run::setting::{Setting, Source};
use crate::run::trace_set::fetched;

/// The workload when the command line names none.
pub(in crate::cli) const QUICKSTART: &str = include_str!("../../../../../traces/quickstart.toml");

/// What errors call its file.
const QUICKSTART_FILE: &str = "quickstart.toml";

/// Resolves the setting of a run.
pub(super) fn setting(
    spec: Option<&Path>,
    args: &WorkloadArgs,
    sessions: Option<u64>,
    invocation: &Invocation,
) -> Result<Setting, Failure> {
    if let Ok(Place::Remote(url)) = Place::of(&args.runs) {
        return Err(Failure::usage(format!(
            "--runs {url}: a run is written to a folder of this machine; leave out --runs, and add --publish {url}"
        )));
    }
    let source = source(spec, args, sessions)?;
    let name = name(args.name.as_deref(), &source.spec().name, &args.runs, invocation.now)?;
    let folder = args.runs.join(&name);
    let sla = args.sla.or(source.spec().sla).unwrap_or_default();
    let fleet = fleet(&args.fleet)?;
    check_fragments(source.spec().fragments, fleet.count, args)?;
    let store = match &args.store {
        Some(url) => environment::filled_in(url, &invocation.variables)
            .map_err(|message| Failure::usage(format!("--store: {message}")))?,
        None if !fleet.replayers.is_empty() => {
            return Err(Failure::usage(
                "--replayer requires --store: give the URL of a store that all replayers can reach",
            ));
        }
        None => format!("sqlite:{}", folder.join("store.db").display()),
    };
    if !store.contains(':') {
        let message = "is not a store URL; write for example sqlite:a.db, memory: or null:";
        return Err(Failure::usage(format!("--store {store:?} {message}")));
    }
    // What is wrong with the URL itself is said before a trace set is generated.
    let opened = replayer::any_store::open(&store).map_err(|error| Failure::usage(format!("--store {error}")))?;
    // So is what the store cannot do. A comparison resolves all of its cells before the first one runs.
    let file = spec.or(args.trace.as_deref()).unwrap_or(Path::new(QUICKSTART_FILE));
    opened.accepts(source.spec(), file).map_err(|error| Failure::usage(format!("--store {error}")))?;
    let spec = source.spec();
    let has_conditions = spec.family().and_then(|family| family.has_conditions(spec)).map_err(Failure::usage)?;
    let own_warmup = spec.family().and_then(|family| family.warmup_sessions(spec)).map_err(Failure::usage)?;
    let has_closing_read = has_closing_read(opened.as_ref(), source.spec()).map_err(Failure::usage)?;
    let started_unix_s = invocation.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    Ok(Setting {
        name,
        folder,
        traces: args.runs.join("traces"),
        publish: args.publish.clone(),
        source,
        store,
        sla,
        warmup: args.warmup.unwrap_or(Warmup::Sessions(own_warmup)),
        pace: PaceRequest::default(),
        by_rate: false,
        monitor_s: args.monitor,
        unique_actors: !args.shared_actors,
        transactions: args.transactions.request(),
        closing_read: !args.no_closing_read && has_closing_read,
        has_conditions,
        // Records that Encore did not load cannot be brought back to the trace's beginning.
        between: if args.keep_data { Between::Continue } else { Between::Load },
        keep_data: args.keep_data,
        workers: args.workers,
        fleet,
        retries: args.fleet.retries,
        past: Vec::new(),
        json: args.json,
        board: args.metrics_listen.map(|_| Arc::default()),
        started_unix_s,
        command: invocation.command.iter().map(|argument| schemas::plan::redact_typed(argument)).collect(),
    })
}

/// Refuses more replayers or workers than there are fragments. One worker of one replayer replays
/// a fragment, so the others would have nothing to do.
fn check_fragments(fragments: u32, replayers: usize, args: &WorkloadArgs) -> Result<(), Failure> {
    let wanted = [
        (if args.fleet.replayers.is_empty() { "--replayers" } else { "--replayer" }, "replayers", replayers as u64),
        ("--workers", "workers", u64::from(args.workers)),
    ];
    let Some((flag, what, count)) = wanted.into_iter().find(|(.., count)| *count > u64::from(fragments)) else {
        return Ok(());
    };
    let advice = match &args.trace {
        Some(trace) => format!("generate {} again with `--fragments {count}`", trace.display()),
        None => format!("add `--set fragments={count}`"),
    };
    Err(Failure::usage(format!(
        "{flag}: {count} {what} need at least {count} fragments, and the workload has {fragments}, because a fragment \
         belongs to one worker of one replayer: one clock times all operations of an item; {advice}"
    )))
}

fn source(spec: Option<&Path>, args: &WorkloadArgs, sessions: Option<u64>) -> Result<Source, Failure> {
    if let Some(folder) = &args.trace {
        if sessions.is_some() || !args.settings.is_empty() {
            return Err(Failure::usage("--trace uses a trace set unchanged; remove --sessions and --set"));
        }
        let (folder, url) = match Place::of(folder)? {
            Place::Local(folder) => (folder, None),
            Place::Remote(url) => (fetched(&url, &args.runs.join("traces"))?, Some(url)),
        };
        let folder = &folder;
        let manifest = Manifest::read(folder)?;
        if let Some(path) = spec
            && Spec::read(path)?.workload_id() != manifest.workload_id
        {
            let (folder, path) = (folder.display(), path.display());
            return Err(Failure::usage(format!("--trace {folder} and {path} have different workloads; remove one")));
        }
        return Ok(Source::Given { folder: folder.clone(), manifest: Box::new(manifest), url });
    }
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())));
    let (text, file) = match spec {
        Some(path) => (read(path)?, path.display().to_string()),
        None => (QUICKSTART.to_string(), QUICKSTART_FILE.to_string()),
    };
    let mut settings = args.settings.clone();
    // As a setting, since other keys may follow from the number of sessions.
    settings.extend(sessions.map(|sessions| format!("sessions={sessions}")));
    Ok(Source::Spec(Box::new(Spec::parse_with(&text, &file, &settings)?)))
}

/// Refuses a text that cannot be the name of a run.
pub(super) fn checked(name: &str) -> Result<&str, Failure> {
    if !schemas::files::is_plain_name(name) || name == "traces" {
        return Err(Failure::usage(format!(
            "--name {name:?} is invalid; use letters, digits, '-', '_' and '.' (`traces` is reserved)"
        )));
    }
    Ok(name)
}

/// A name that no run has yet.
fn name(given: Option<&str>, spec: &str, runs: &Path, now: SystemTime) -> Result<String, Failure> {
    if let Some(name) = given {
        checked(name)?;
        if runs.join(name).exists() {
            let folder = runs.join(name);
            return Err(Failure::usage(format!("{}: exists already; choose another --name", folder.display())));
        }
        return Ok(name.to_string());
    }
    let time = humantime::format_rfc3339_seconds(now).to_string();
    let time: String = time
        .chars()
        .filter_map(|c| match c {
            'T' => Some('-'),
            c if c.is_ascii_digit() => Some(c),
            _ => None,
        })
        .collect();
    let base = format!("{spec}-{time}");
    let later = (2..).map(|n| format!("{base}-{n}"));
    let mut names = std::iter::once(base.clone()).chain(later);
    Ok(names.find(|name| !runs.join(name).exists()).unwrap_or(base))
}

/// Refuses a `--monitor` interval that is not shorter than the longest experiment: no line would
/// ever be printed.
pub(super) fn monitored(monitor_s: Option<f64>, longest_s: f64) -> Result<(), Failure> {
    match monitor_s {
        Some(seconds) if seconds >= longest_s => Err(Failure::usage(format!(
            "--monitor {seconds} is not shorter than the longest experiment ({longest_s} s): no line would be printed; \
             use a smaller number of seconds"
        ))),
        _ => Ok(()),
    }
}
