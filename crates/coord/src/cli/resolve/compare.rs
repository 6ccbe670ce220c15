//! From a plan to its cells: each is an `encore rate` or an `encore run` that a user could have
//! typed, and is checked before anything runs.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Parser;
use schemas::comparison::{ComparedStore, ComparisonFolder, ComparisonPlan, Point, Question, Use, Wanted};
use schemas::plan::redact;
use schemas::sla::Sla;
use schemas::verdict::Between;

use super::Invocation;
use super::rate::rating;
use super::run::single;
use super::setting::checked;
use crate::cli::args::{Command, CommandLine, CompareArgs, FleetArgs};
use crate::cli::environment;
use crate::compare::{Comparison, Job, PlannedCell};
use crate::failure::Failure;

/// The schemes of stores that live in a file.
const EMBEDDED: [&str; 1] = ["sqlite"];

/// The name of that file.
const STORE_FILE: &str = "store.db";

/// Resolves `encore compare`.
pub fn comparison(args: &CompareArgs, invocation: &Invocation) -> Result<Comparison, Failure> {
    let mut plan = ComparisonPlan::read(&args.plan).map_err(Failure::usage)?;
    check_settings(&plan, &args.settings)?;
    plan.set.extend(args.settings.iter().cloned());
    override_search(&mut plan, args)?;
    for (number, store) in plan.stores.iter_mut().enumerate() {
        for (key, url) in store.urls_mut() {
            *url = environment::filled_in(url, &invocation.variables)
                .map_err(|message| wrong_url(args, number, &key, &message))?;
        }
    }
    let name = args.name.clone().unwrap_or_else(|| plan.name.clone());
    let folder = ComparisonFolder::new(args.runs.join(checked(&name)?));
    if folder.root().exists() && !args.resume {
        let folder = folder.root().display();
        return Err(Failure::usage(format!(
            "{folder}: exists already; continue it with --resume, or choose another --name"
        )));
    }
    let cells = cells(&plan, args, &folder, invocation)?;
    plan.sla = Some(one_sla(&args.plan, &cells)?);
    let started_unix_s = invocation.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let command = invocation.command.iter().map(|argument| redact(argument)).collect();
    Ok(Comparison { name, folder, plan, cells, resume: args.resume, started_unix_s, command })
}

/// Replaces the plan's SLA, closing read and search parameters by those of the command line.
fn override_search(plan: &mut ComparisonPlan, args: &CompareArgs) -> Result<(), Failure> {
    plan.sla = args.sla.or(plan.sla);
    plan.closing_read &= !args.no_closing_read;
    let search_s = ("--search-s", !args.search_s.is_empty());
    let (max_threads, max_rate) =
        (("--max-threads", args.max_threads.is_some()), ("--max-rate", args.max_rate.is_some()));
    let (refused, why) = match plan.question() {
        Question::Measure(_) => (
            vec![search_s, max_threads, max_rate],
            "measures with fixed numbers of threads and searches nothing; remove the flag",
        ),
        Question::Rate(Wanted::Rate) => (vec![max_threads], "rates by arrival rate; use --max-rate"),
        Question::Rate(_) => (vec![max_rate], "rates by threads; use --max-threads"),
    };
    if let Some((flag, _)) = refused.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!("{flag}: {} {why}", args.plan.display())));
    }
    if !args.search_s.is_empty() {
        plan.search_s.clone_from(&args.search_s);
    }
    plan.max_threads = args.max_threads.or(plan.max_threads);
    plan.max_rate = args.max_rate.or(plan.max_rate);
    Ok(())
}

/// The SLA of all cells. They differ if the plan has none, and its specifications have different
/// ones.
fn one_sla(plan: &Path, cells: &[PlannedCell]) -> Result<Sla, Failure> {
    let first = cells[0].job.setting().sla;
    match cells.iter().find(|cell| cell.job.setting().sla != first) {
        None => Ok(first),
        Some(other) => Err(Failure::usage(format!(
            "{}: sla: is missing, and the specifications of its points have different ones ({first}; {}: {}); \
             add an `sla` to the plan, or use --sla",
            plan.display(),
            other.point,
            other.job.setting().sla
        ))),
    }
}

/// The error for a URL of a store; `number` counts from 0.
fn wrong_url(args: &CompareArgs, number: usize, key: &str, message: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: stores.{number}.{key}: {message}", args.plan.display()))
}

/// Refuses to set for all points what the axis varies.
fn check_settings(plan: &ComparisonPlan, settings: &[String]) -> Result<(), Failure> {
    let key = |setting: &str| setting.split('=').next().unwrap_or_default().to_string();
    let points = plan.points();
    let varied: Vec<String> = points.iter().flat_map(|point| point.set.iter().map(|s| key(s))).collect();
    match settings.iter().find(|setting| varied.contains(&key(setting))) {
        None => Ok(()),
        Some(setting) => Err(Failure::usage(format!(
            "--set {setting}: the plan's axis sets {}; change the plan instead",
            key(setting)
        ))),
    }
}

fn cells(
    plan: &ComparisonPlan,
    args: &CompareArgs,
    folder: &ComparisonFolder,
    invocation: &Invocation,
) -> Result<Vec<PlannedCell>, Failure> {
    let mut cells: Vec<PlannedCell> = Vec::new();
    let points = plan.points();
    for (index, point) in points.iter().enumerate() {
        for (number, store) in plan.stores.iter().enumerate() {
            let run = free_name(point, store, &cells);
            let home = folder.root().join(&run);
            let (key, planned) = store.url_at(&points, index);
            let own_file = wants_file(planned).then(|| home.join(STORE_FILE));
            let url = match &own_file {
                Some(file) => with_file(planned, file),
                None => planned.to_string(),
            };
            replayer::any_store::open(&url).map_err(|e| wrong_url(args, number, &key, &e))?;
            let fleet = FleetArgs { count: store.replayers.or(args.fleet.count), ..args.fleet.clone() };
            let cell = Cell { point, url: &url, transactions: store.transactions.or(plan.transactions) };
            let mut job = job(plan, &cell, &fleet, args, invocation)?;
            let setting = job.setting_mut();
            setting.name = run.clone();
            setting.folder = home;
            // Its rows go to stderr if that is a terminal: stdout is for the comparison.
            setting.json = true;
            cells.push(PlannedCell { point: point.label.clone(), store: store.label.clone(), run, own_file, job });
        }
    }
    Ok(cells)
}

/// What is particular to a cell.
struct Cell<'a> {
    point: &'a Point,
    url: &'a str,
    transactions: Option<Use>,
}

/// The command of a cell. The plan's parameters become the words that a user would type, so that
/// a plan accepts whatever the command accepts.
fn job(
    plan: &ComparisonPlan,
    cell: &Cell<'_>,
    fleet: &FleetArgs,
    args: &CompareArgs,
    invocation: &Invocation,
) -> Result<Job, Failure> {
    let Cell { point, url, transactions } = *cell;
    let (subcommand, own_words) = match plan.question() {
        Question::Rate(wanted) => ("rate", rate_words(plan, wanted)),
        Question::Measure(_) => ("run", point.threads.iter().map(|threads| format!("--threads={threads}")).collect()),
    };
    let mut words: Vec<String> = vec!["encore".into(), subcommand.into()];
    words.push(format!("--store={url}"));
    words.extend(plan.sla.map(|sla| format!("--sla={sla}")));
    words.extend(plan.set.iter().chain(&point.set).map(|setting| format!("--set={setting}")));
    words.extend(plan.warmup.as_ref().map(|warmup| format!("--warmup={warmup}")));
    if !plan.closing_read {
        words.push("--no-closing-read".into());
    }
    words.extend(transactions.map(|used| format!("--transactions={}", used.name())));
    words.extend(plan.tries.map(|tries| format!("--tries={tries}")));
    words.extend(own_words);
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let mut runs = OsString::from("--runs=");
    runs.push(&args.runs);
    let spec = args.plan.parent().unwrap_or(Path::new("")).join(point.spec.as_ref().unwrap_or(&plan.spec));
    words.extend([runs, "--".into(), spec.into()]);
    match CommandLine::try_parse_from(words).map(|line| line.command) {
        Ok(Command::Rate(mut args)) => {
            args.workload.fleet = fleet.clone();
            Ok(Job::Rate(rating(&args, invocation)?))
        }
        Ok(Command::Run(mut args)) => {
            args.workload.fleet = fleet.clone();
            Ok(Job::Measure(single(&args, invocation)?))
        }
        Ok(_) => unreachable!("the words begin with `encore rate` or `encore run`"),
        Err(error) => {
            let message = error.to_string();
            let message = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let plan = args.plan.display();
            Err(Failure::usage(format!("{plan}: invalid for `encore {subcommand}`: {message}")))
        }
    }
}

/// The words that only `encore rate` accepts.
fn rate_words(plan: &ComparisonPlan, wanted: Wanted) -> Vec<String> {
    let mut words = Vec::new();
    if !plan.search_s.is_empty() {
        let seconds: Vec<String> = plan.search_s.iter().map(f64::to_string).collect();
        words.push(format!("--search-s={}", seconds.join(",")));
    }
    words.extend(plan.max_threads.map(|threads| format!("--max-threads={threads}")));
    words.extend(plan.first_threads.map(|threads| format!("--first-threads={threads}")));
    match plan.between {
        Between::Load => {}
        Between::Continue => words.push("--between=continue".into()),
    }
    match wanted {
        Wanted::Both => {}
        Wanted::Soar => words.push("--rating=soar".into()),
        Wanted::Socialites => words.push("--rating=socialites".into()),
        Wanted::Rate => {
            words.push("--by=rate".into());
            words.extend(plan.max_rate.map(|rate| format!("--max-rate={rate}")));
            words.extend(plan.first_rate.map(|rate| format!("--first-rate={rate}")));
            words.extend(plan.threads.map(|threads| format!("--threads={threads}")));
            words.extend(plan.overload.map(|overload| format!("--overload={overload}")));
        }
    }
    words
}

/// Whether a URL names an embedded store without its path.
fn wants_file(url: &str) -> bool {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    EMBEDDED.contains(&scheme) && (rest.is_empty() || rest.starts_with('?'))
}

fn with_file(url: &str, file: &Path) -> String {
    let (scheme, query) = url.split_once(':').unwrap_or((url, ""));
    format!("{scheme}:{}{query}", file.display())
}

/// The name of a cell's run folder: the labels of point and store in plain letters, with a number
/// if another cell has that name.
fn free_name(point: &Point, store: &ComparedStore, cells: &[PlannedCell]) -> String {
    let parts: Vec<String> = [slug(&point.label), slug(&store.label)].into_iter().filter(|s| !s.is_empty()).collect();
    let joined = parts.join("-");
    // The comparison's own files are named like this.
    let base = if joined.is_empty() || joined.starts_with("comparison.") { format!("cell-{joined}") } else { joined };
    let is_free = |name: &String| cells.iter().all(|cell| cell.run != *name);
    let mut names = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}-{n}")));
    names.find(is_free).unwrap_or_else(|| unreachable!("{} cells cannot take endlessly many names", cells.len()))
}

/// A label in lower-case letters, digits, '.' and '-'.
fn slug(label: &str) -> String {
    let mut out = String::new();
    for c in label.chars().take(48) {
        let next = if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
        if !(next == '-' && out.ends_with('-')) {
            out.push(next);
        }
    }
    out.trim_matches(|c| c == '-' || c == '.').to_string()
}
