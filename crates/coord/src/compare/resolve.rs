//! From a plan to its cells: each a `coord rate`, or a `coord run`, as a user
//! could have typed it, checked before anything runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Parser;
use schemas::comparison::{ComparedStore, ComparisonFolder, ComparisonPlan, Point, Question, Wanted};
use schemas::plan::redact;
use schemas::verdict::Between;

use crate::args::{Command, CommandLine, CompareArgs, FleetArgs};
use crate::environment;
use crate::failure::Failure;
use crate::resolve::{self, Rating, Setting, Single, Surroundings};

/// A resolved `coord compare`.
#[derive(Debug)]
pub struct Comparison {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: ComparisonFolder,
    /// The plan with what the command line replaces, and with the URLs that the
    /// environment makes of it.
    pub plan: ComparisonPlan,
    /// The cells, point by point, and in each point store by store.
    pub cells: Vec<PlannedCell>,
    /// Whether a comparison that was begun before is continued.
    pub resume: bool,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The command line without secrets.
    pub command: Vec<String>,
}

/// One store at one point, about to be rated or measured.
#[derive(Debug)]
pub struct PlannedCell {
    /// The point's label; empty without an axis.
    pub point: String,
    /// The store's label.
    pub store: String,
    /// The name of its run folder.
    pub run: String,
    /// The file that an embedded store without a path gets in the run folder.
    pub own_file: Option<PathBuf>,
    /// What is done.
    pub job: Job,
}

/// What is done for a cell.
#[derive(Debug, Clone)]
pub enum Job {
    /// A search for ratings.
    Rate(Rating),
    /// One experiment.
    Measure(Single),
}

impl Job {
    /// The workload, the store, and where results go.
    pub fn setting(&self) -> &Setting {
        match self {
            Job::Rate(rating) => &rating.setting,
            Job::Measure(single) => &single.setting,
        }
    }

    fn setting_mut(&mut self) -> &mut Setting {
        match self {
            Job::Rate(rating) => &mut rating.setting,
            Job::Measure(single) => &mut single.setting,
        }
    }
}

/// The schemes of stores that live in a file.
const EMBEDDED: [&str; 1] = ["sqlite"];

/// The name of that file.
const STORE_FILE: &str = "store.db";

/// Resolves `coord compare`.
pub fn comparison(args: &CompareArgs, around: &Surroundings) -> Result<Comparison, Failure> {
    let mut plan = ComparisonPlan::read(&args.plan).map_err(Failure::usage)?;
    check_settings(&plan, &args.settings)?;
    plan.set.extend(args.settings.iter().cloned());
    for (number, store) in plan.stores.iter_mut().enumerate() {
        store.url = environment::filled_in(&store.url, &around.variables)
            .map_err(|message| wrong_url(args, number, &message))?;
    }
    let name = args.name.clone().unwrap_or_else(|| plan.name.clone());
    let folder = ComparisonFolder::new(args.runs.join(resolve::checked(&name)?));
    if folder.root().exists() && !args.resume {
        let folder = folder.root().display();
        return Err(Failure::usage(format!(
            "{folder}: exists already; continue it with --resume, or choose another --name"
        )));
    }
    let cells = cells(&plan, args, &folder, around)?;
    let started_unix_s = around.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let command = around.command.iter().map(|argument| redact(argument)).collect();
    Ok(Comparison { name, folder, plan, cells, resume: args.resume, started_unix_s, command })
}

/// What is wrong with the URL of a store, counted from 0.
fn wrong_url(args: &CompareArgs, number: usize, message: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: stores.{number}.url: {message}", args.plan.display()))
}

/// What the axis varies cannot be set for all of its points.
fn check_settings(plan: &ComparisonPlan, settings: &[String]) -> Result<(), Failure> {
    let key = |setting: &str| setting.split('=').next().unwrap_or_default().to_string();
    let points = plan.points();
    let varied: Vec<String> = points.iter().flat_map(|point| point.set.iter().map(|s| key(s))).collect();
    match settings.iter().find(|setting| varied.contains(&key(setting))) {
        None => Ok(()),
        Some(setting) => Err(Failure::usage(format!(
            "--set {setting}: {} is what the points of the axis set; change the plan instead",
            key(setting)
        ))),
    }
}

fn cells(
    plan: &ComparisonPlan,
    args: &CompareArgs,
    folder: &ComparisonFolder,
    around: &Surroundings,
) -> Result<Vec<PlannedCell>, Failure> {
    let mut cells: Vec<PlannedCell> = Vec::new();
    for point in plan.points() {
        for (number, store) in plan.stores.iter().enumerate() {
            let run = free_name(&point, store, &cells);
            let home = folder.root().join(&run);
            let own_file = wants_file(&store.url).then(|| home.join(STORE_FILE));
            let url = match &own_file {
                Some(file) => with_file(&store.url, file),
                None => store.url.clone(),
            };
            replayer::stores::open(&url).map_err(|e| wrong_url(args, number, &e))?;
            let fleet = FleetArgs { count: store.replayers.or(args.fleet.count), ..args.fleet.clone() };
            let mut job = job(plan, &point, &url, &fleet, args, around)?;
            let setting = job.setting_mut();
            setting.name = run.clone();
            setting.folder = home;
            // Its rows go to a terminal's stderr: stdout is for the comparison.
            setting.json = true;
            cells.push(PlannedCell { point: point.label.clone(), store: store.label.clone(), run, own_file, job });
        }
    }
    Ok(cells)
}

/// The command of a cell. The plan's parameters become the words that a user
/// would type, so that whatever that command takes a plan takes too.
fn job(
    plan: &ComparisonPlan,
    point: &Point,
    url: &str,
    fleet: &FleetArgs,
    args: &CompareArgs,
    around: &Surroundings,
) -> Result<Job, Failure> {
    let (subcommand, own_words) = match plan.question() {
        Question::Rate(wanted) => ("rate", rate_words(plan, wanted)),
        Question::Measure(_) => ("run", point.threads.iter().map(|threads| format!("--threads={threads}")).collect()),
    };
    let mut words: Vec<String> = vec!["coord".into(), subcommand.into()];
    words.extend([format!("--store={url}"), format!("--sla={}", plan.sla)]);
    words.extend(plan.set.iter().chain(&point.set).map(|setting| format!("--set={setting}")));
    words.extend(plan.warmup.as_ref().map(|warmup| format!("--warmup={warmup}")));
    words.extend(own_words);
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let mut runs = OsString::from("--runs=");
    runs.push(&args.runs);
    let spec = args.plan.parent().unwrap_or(Path::new("")).join(point.spec.as_ref().unwrap_or(&plan.spec));
    words.extend([runs, "--".into(), spec.into()]);
    match CommandLine::try_parse_from(words).map(|line| line.command) {
        Ok(Command::Rate(mut args)) => {
            args.workload.fleet = fleet.clone();
            Ok(Job::Rate(resolve::rating(&args, around)?))
        }
        Ok(Command::Run(mut args)) => {
            args.workload.fleet = fleet.clone();
            Ok(Job::Measure(resolve::single(&args, around)?))
        }
        Ok(_) => unreachable!("the words begin with `coord rate` or `coord run`"),
        Err(error) => {
            let message = error.to_string();
            let message = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let plan = args.plan.display();
            Err(Failure::usage(format!("{plan}: `coord {subcommand}` refuses what it says: {message}")))
        }
    }
}

/// What only `coord rate` takes.
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
    }
    words
}

/// Whether a URL names an embedded store without saying where.
fn wants_file(url: &str) -> bool {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    EMBEDDED.contains(&scheme) && (rest.is_empty() || rest.starts_with('?'))
}

fn with_file(url: &str, file: &Path) -> String {
    let (scheme, query) = url.split_once(':').unwrap_or((url, ""));
    format!("{scheme}:{}{query}", file.display())
}

/// The name of a cell's run folder: the two labels in plain letters, counted up
/// where two cells would have the same.
fn free_name(point: &Point, store: &ComparedStore, cells: &[PlannedCell]) -> String {
    let parts: Vec<String> = [slug(&point.label), slug(&store.label)].into_iter().filter(|s| !s.is_empty()).collect();
    let joined = parts.join("-");
    // The comparison's own files have names of this kind.
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
