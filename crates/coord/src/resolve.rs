//! From what was typed to what is meant: defaults filled in, files looked up,
//! everything checked before anything runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use schemas::manifest::Manifest;
use schemas::plan::{Limit, Warmup};
use schemas::sla::Sla;
use schemas::spec::Spec;
use schemas::verdict::{Between, RatingParameters};

use crate::args::{FleetArgs, RateArgs, RunArgs, Wanted, WorkloadArgs};
use crate::campaign::Trial;
use crate::environment;
use crate::failure::Failure;
use crate::fleet::FleetSetting;
use crate::search::Limits;

/// What the arguments are resolved against.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The folder that holds `traces/`, when it is not the current one.
    pub home: Option<PathBuf>,
    /// The time.
    pub now: SystemTime,
    /// The command line, for `run.json`.
    pub command: Vec<String>,
    /// The environment's variables, for the URLs of a comparison's plan; those
    /// whose names and values are text.
    pub variables: BTreeMap<String, String>,
}

impl Surroundings {
    /// Those of this process.
    pub fn current(command: Vec<String>) -> Surroundings {
        let home = std::env::var_os("ENCORE_HOME").map(PathBuf::from);
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Surroundings { home, now: SystemTime::now(), command, variables: variables.collect() }
    }

    /// How the program is called from the current folder.
    fn program(&self) -> String {
        match &self.home {
            Some(home) if std::env::current_dir().is_ok_and(|current| current != *home) => {
                home.join("encore").display().to_string()
            }
            _ => "./encore".to_string(),
        }
    }
}

/// Where the trace set comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Generated from a spec, or reused when it was before.
    Spec(Box<Spec>),
    /// This trace set, which is not changed.
    Given {
        /// Its folder.
        folder: PathBuf,
        /// Its manifest.
        manifest: Box<Manifest>,
    },
}

impl Source {
    /// The workload.
    pub fn spec(&self) -> &Spec {
        match self {
            Source::Spec(spec) => spec,
            Source::Given { manifest, .. } => &manifest.spec,
        }
    }
}

/// What both kinds of run need, resolved.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The run's name.
    pub name: String,
    /// Its folder, which does not exist yet.
    pub folder: PathBuf,
    /// Where generated trace sets are kept.
    pub traces: PathBuf,
    /// The trace set.
    pub source: Source,
    /// The store's URL, with its secrets.
    pub store: String,
    /// The SLA.
    pub sla: Sla,
    /// What is replayed before each experiment is measured.
    pub warmup: Warmup,
    /// Seconds between two lines with the figures of a running experiment.
    pub monitor_s: Option<u32>,
    /// Never let two threads act for one socialite at the same time.
    pub unique_socialites: bool,
    /// What happens to the store between two experiments.
    pub between: Between,
    /// Operating-system threads of a replayer.
    pub workers: u32,
    /// Which replayers do the work.
    pub fleet: FleetSetting,
    /// How many experiments may be repeated because a replayer was lost.
    pub retries: u32,
    /// What the run has found out already, when it goes on.
    pub past: Vec<Trial>,
    /// Whether stdout is for one JSON object alone.
    pub json: bool,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The command line without secrets.
    pub command: Vec<String>,
    /// How the program is called, for commands that people may type next.
    pub program: String,
}

/// A resolved `coord rate`.
#[derive(Debug, Clone)]
pub struct Rating {
    /// What both kinds of run need.
    pub setting: Setting,
    /// Which ratings.
    pub wanted: Wanted,
    /// The limits of the search.
    pub limits: Limits,
    /// How long the experiments of a search run.
    pub deltas: Deltas,
    /// How T is searched.
    pub method: Method,
    /// What it was resolved from, for the command that repeats it.
    pub typed: Box<RateArgs>,
}

/// How long the experiments of a search run (bg-2013 section G: δ).
#[derive(Debug, Clone, PartialEq)]
pub struct Deltas {
    /// In seconds, by rising length, each once, at least one.
    pub search_s: Vec<f64>,
    /// The difference to a final experiment, in percent, from which the search
    /// is repeated with a longer δ.
    pub check_percent: Option<f64>,
}

impl Rating {
    /// How it was searched, for `rating.json`: with this δ in the end and this
    /// many sessions of warm-up in each experiment.
    pub fn parameters(&self, settled_search_s: f64, warmup_sessions: u64) -> RatingParameters {
        RatingParameters {
            search_s: self.deltas.search_s.clone(),
            settled_search_s,
            delta_check_percent: self.deltas.check_percent,
            first_threads: self.limits.first_threads,
            max_threads: self.limits.max_threads,
            between: self.setting.between,
            warmup_sessions,
            unique_socialites: self.setting.unique_socialites,
        }
    }
}

/// How T is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Growing with the throughput, then closing in.
    Heuristic,
    /// Every T.
    Exhaustive,
}

/// A resolved `coord run`.
#[derive(Debug, Clone)]
pub struct Single {
    /// What both kinds of run need.
    pub setting: Setting,
    /// T.
    pub threads: u32,
    /// When the experiment ends.
    pub limit: Limit,
}

/// Below 16 threads every T is told apart, above it 5% is close enough.
pub const RESOLUTION: f64 = 0.05;

/// The standard deviation of short experiments with the same T, as a share of
/// their mean, until repeats have shown the real one.
pub const NOISE: f64 = 0.05;

/// The longest that an experiment of the search runs unless told otherwise:
/// about twenty of them and two final ones fit in two minutes.
const SEARCH_S: f64 = 1.5;

/// Resolves `coord rate`.
pub fn rating(args: &RateArgs, around: &Surroundings) -> Result<Rating, Failure> {
    if args.first_threads > args.max_threads {
        let (first, max) = (args.first_threads, args.max_threads);
        return Err(Failure::usage(format!("--first-threads {first} is above --max-threads {max}")));
    }
    let mut setting = setting(args.spec.as_deref(), &args.workload, args.sessions, around)?;
    setting.between = args.between.into();
    if setting.store.starts_with("null:") {
        return Err(Failure::usage(
            "--store null: cannot be rated: it answers at once and holds no data, so all it returns is unpredictable. \
             It measures the replayer itself: use it with `coord run` or `coord replay run`",
        ));
    }
    let deltas = deltas(args, setting.sla.delta_s)?;
    monitored(setting.monitor_s, setting.sla.delta_s)?;
    let limits = Limits {
        first_threads: args.first_threads,
        max_threads: args.max_threads,
        resolution: RESOLUTION,
        noise: NOISE,
    };
    let method = if args.exhaustive { Method::Exhaustive } else { Method::Heuristic };
    Ok(Rating { setting, wanted: args.rating, limits, deltas, method, typed: Box::new(args.clone()) })
}

fn deltas(args: &RateArgs, delta_s: f64) -> Result<Deltas, Failure> {
    let mut search_s = match args.search_s.is_empty() {
        true => vec![SEARCH_S.min(delta_s)],
        false => args.search_s.clone(),
    };
    if let Some(wrong) = search_s.iter().find(|seconds| !(**seconds > 0.0 && **seconds <= 86_400.0)) {
        return Err(Failure::usage(format!("--search-s {wrong} is not a number of seconds above 0, of at most a day")));
    }
    if let Some(longer) = search_s.iter().find(|seconds| **seconds > delta_s) {
        return Err(Failure::usage(format!(
            "--search-s {longer} is longer than the {delta_s} s of the SLA, for which the final experiments run; take a shorter one"
        )));
    }
    search_s.sort_by(f64::total_cmp);
    search_s.dedup();
    if let Some(percent) = args.delta_check
        && !(percent > 0.0 && percent <= 100.0)
    {
        return Err(Failure::usage(format!("--delta-check {percent} is not a percentage above 0, of at most 100")));
    }
    Ok(Deltas { search_s, check_percent: args.delta_check })
}

/// Refuses an interval in which no line would ever be printed.
fn monitored(monitor_s: Option<u32>, longest_s: f64) -> Result<(), Failure> {
    match monitor_s {
        Some(seconds) if f64::from(seconds) >= longest_s => Err(Failure::usage(format!(
            "--monitor {seconds} is not below the time of the longest experiment, {longest_s} s: no line would be printed"
        ))),
        _ => Ok(()),
    }
}

/// Resolves `coord run`.
pub fn single(args: &RunArgs, around: &Surroundings) -> Result<Single, Failure> {
    let mut setting = setting(args.spec.as_deref(), &args.workload, None, around)?;
    let limit = match (args.sessions, args.duration) {
        (Some(sessions), _) => Limit::Sessions(sessions),
        (None, Some(ns)) => Limit::DurationS(ns as f64 / 1e9),
        (None, None) => Limit::DurationS(setting.sla.delta_s),
    };
    match (&limit, &mut setting.source) {
        (Limit::DurationS(seconds), _) => {
            setting.sla.delta_s = *seconds;
            monitored(setting.monitor_s, *seconds)?;
        }
        (Limit::Sessions(sessions), Source::Spec(spec)) => spec.sessions = spec.sessions.max(*sessions),
        _ => {}
    }
    Ok(Single { setting, threads: args.threads, limit })
}

fn setting(
    spec: Option<&Path>,
    args: &WorkloadArgs,
    sessions: Option<u64>,
    around: &Surroundings,
) -> Result<Setting, Failure> {
    let source = source(spec, args, sessions, around)?;
    let name = name(args.name.as_deref(), &source.spec().name, &args.runs, around.now)?;
    let folder = args.runs.join(&name);
    let fleet = fleet(&args.fleet)?;
    let store = match &args.store {
        Some(url) => environment::filled_in(url, &around.variables)
            .map_err(|message| Failure::usage(format!("--store: {message}")))?,
        None if !fleet.replayers.is_empty() => {
            return Err(Failure::usage("--replayer: name with --store the store that all replayers reach"));
        }
        None => format!("sqlite:{}", folder.join("store.db").display()),
    };
    if !store.contains(':') {
        let message = "is not the URL of a store; write it like sqlite:a.db, memory: or null:";
        return Err(Failure::usage(format!("--store {store:?} {message}")));
    }
    let started_unix_s = around.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    Ok(Setting {
        name,
        folder,
        traces: args.runs.join("traces"),
        source,
        store,
        sla: args.sla.unwrap_or_default(),
        warmup: args.warmup.unwrap_or(Warmup::Sessions(0)),
        monitor_s: args.monitor,
        unique_socialites: !args.shared_socialites,
        between: Between::Load,
        workers: args.workers,
        fleet,
        retries: args.fleet.retries,
        past: Vec::new(),
        json: args.json,
        started_unix_s,
        command: around.command.iter().map(|argument| schemas::plan::redact(argument)).collect(),
        program: around.program(),
    })
}

/// Resolves which replayers take part.
pub fn fleet(args: &FleetArgs) -> Result<FleetSetting, Failure> {
    let mut names: Vec<String> = args.replayers.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::usage(format!(
            "--replayer {} is named twice; give it a weight instead: {}*2",
            twice[0], twice[0]
        )));
    }
    let token = args.secrets.token_file.as_ref().map(|path| {
        let text = std::fs::read_to_string(path);
        text.map(|text| text.trim().to_string())
            .map_err(|e| Failure::usage(format!("--token-file {}: {e}", path.display())))
    });
    let named = args.replayers.len();
    let count = args.count.map_or(named.max(1), |count| count as usize);
    if named > 0 && count > named {
        return Err(Failure::usage(format!("--replayers {count}: only {named} are named with --replayer")));
    }
    if let Some(weighted) = args.replayers.iter().find(|replayer| args.calibrate && replayer.weight != 1.0) {
        let weight = weighted.weight;
        return Err(Failure::usage(format!(
            "--calibrate measures what *{weight} of --replayer {weighted}*{weight} says; leave one of the two away"
        )));
    }
    let replayers = args.replayers.iter().take(count).cloned().collect();
    let certificates = args.secrets.certs.clone();
    let FleetArgs { calibrate, leave_logs, .. } = *args;
    Ok(FleetSetting { replayers, count, calibrate, leave_logs, certificates, token: token.transpose()? })
}

fn source(
    spec: Option<&Path>,
    args: &WorkloadArgs,
    sessions: Option<u64>,
    around: &Surroundings,
) -> Result<Source, Failure> {
    if let Some(folder) = &args.trace {
        if sessions.is_some() || !args.settings.is_empty() {
            return Err(Failure::usage("--trace takes a trace set as it is; leave --sessions and --set away"));
        }
        let manifest = Manifest::read(folder)?;
        if let Some(path) = spec
            && Spec::read(path)?.workload_id() != manifest.workload_id
        {
            let (folder, path) = (folder.display(), path.display());
            return Err(Failure::usage(format!(
                "--trace {folder} holds another workload than {path}; leave one of the two away"
            )));
        }
        return Ok(Source::Given { folder: folder.clone(), manifest: Box::new(manifest) });
    }
    let path = match spec {
        Some(path) => path.to_path_buf(),
        None => around.home.as_deref().unwrap_or(Path::new("")).join("traces/quickstart.toml"),
    };
    let text = std::fs::read_to_string(&path).map_err(|e| {
        let hint = match spec {
            Some(_) => "",
            None => "; name a specification, or run this in Encore's own folder",
        };
        Failure::usage(format!("{}: {e}{hint}", path.display()))
    })?;
    let mut spec = Spec::parse_with(&text, &path.display().to_string(), &args.settings)?;
    if let Some(sessions) = sessions {
        spec.sessions = sessions;
    }
    Ok(Source::Spec(Box::new(spec)))
}

/// Refuses what cannot be the name of a run.
pub(crate) fn checked(name: &str) -> Result<&str, Failure> {
    if !schemas::files::is_plain_name(name) || name == "traces" {
        return Err(Failure::usage(format!(
            "--name {name:?} is not a name of letters, digits, '-', '_' and '.' (`traces` is taken)"
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

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "name = \"t\"\nsessions = 10\n[data]\nmembers = 100\n[mix]\nview_profile = 1\n";

    fn around(home: &Path) -> Surroundings {
        let command = vec!["coord".into(), "rate".into(), "--store".into(), "postgres://me:hush@db/x".into()];
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        Surroundings { home: Some(home.into()), now, command, variables: BTreeMap::new() }
    }

    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("traces")).unwrap();
        std::fs::write(home.path().join("traces/quickstart.toml"), SPEC).unwrap();
        home
    }

    fn args(home: &Path) -> RateArgs {
        let workload = WorkloadArgs { runs: home.join("runs"), workers: 1, ..WorkloadArgs::default() };
        RateArgs { workload, first_threads: 1, max_threads: 256, ..RateArgs::default() }
    }

    /// What the arguments are refused with.
    fn check(change: impl FnOnce(&mut RateArgs, &Path), expect: &str) {
        let home = home();
        let mut args = args(home.path());
        change(&mut args, home.path());
        let error = rating(&args, &around(home.path())).unwrap_err();
        assert!(matches!(error, Failure::Usage(_)), "{error:?}");
        assert!(error.to_string().contains(expect), "{error} lacks {expect:?}");
    }

    #[test]
    fn defaults() {
        let home = home();
        let rating = rating(&args(home.path()), &around(home.path())).unwrap();
        assert_eq!(rating.setting.name, "t-20270115-080000");
        assert_eq!(rating.setting.folder, home.path().join("runs/t-20270115-080000"));
        assert_eq!(rating.setting.store, format!("sqlite:{}/store.db", rating.setting.folder.display()));
        assert_eq!(
            (rating.setting.sla, rating.deltas.search_s, rating.method),
            (Sla::default(), vec![1.5], Method::Heuristic)
        );
        assert_eq!(rating.setting.source.spec().sessions, 10);
        assert_eq!(rating.setting.command[3], "postgres://me:***@db/x");
    }

    #[test]
    fn a_taken_name_is_counted_up_or_refused() {
        let home = home();
        std::fs::create_dir_all(home.path().join("runs/t-20270115-080000")).unwrap();
        let rating = rating(&args(home.path()), &around(home.path())).unwrap();
        assert_eq!(rating.setting.name, "t-20270115-080000-2");
        check(
            |args, home| {
                std::fs::create_dir_all(home.join("runs/mine")).unwrap();
                args.workload.name = Some("mine".into());
            },
            "runs/mine: exists already",
        );
    }

    #[test]
    fn settings_and_sessions_change_the_spec() {
        let home = home();
        let mut args = args(home.path());
        args.workload.settings = vec!["data.members=50".into()];
        args.sessions = Some(77);
        args.workload.sla = Some("99% < 5ms, 1s".parse().unwrap());
        let rating = rating(&args, &around(home.path())).unwrap();
        let spec = rating.setting.source.spec();
        assert_eq!((spec.data.members, spec.sessions, rating.deltas.search_s), (50, 77, vec![1.0]));
    }

    #[test]
    fn parameters_of_a_rating_are_resolved() {
        let home = home();
        let mut args = args(home.path());
        args.search_s = vec![4.0, 1.0, 2.0, 1.0];
        args.delta_check = Some(10.0);
        args.between = crate::args::BetweenArg::Continue;
        args.workload.shared_socialites = true;
        args.workload.warmup = Some(Warmup::Operations(5));
        let rating = rating(&args, &around(home.path())).unwrap();
        assert_eq!(rating.setting.warmup, Warmup::Operations(5));
        let parameters = rating.parameters(2.0, 7);
        assert_eq!((parameters.search_s, parameters.settled_search_s), (vec![1.0, 2.0, 4.0], 2.0));
        assert_eq!((parameters.delta_check_percent, parameters.between), (Some(10.0), Between::Continue));
        assert_eq!((parameters.warmup_sessions, parameters.unique_socialites), (7, false));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check(|args, _| args.spec = Some("none.toml".into()), "none.toml: No such file");
        check(|_, home| std::fs::remove_file(home.join("traces/quickstart.toml")).unwrap(), "name a specification");
        check(|args, _| args.workload.settings = vec!["data.membres=5".into()], "membres");
        check(|args, _| args.workload.name = Some("../x".into()), "--name \"../x\"");
        check(|args, _| args.workload.name = Some("traces".into()), "`traces` is taken");
        check(|args, _| args.workload.store = Some("a.db".into()), "not the URL of a store");
        check(|args, _| args.first_threads = 300, "--first-threads 300 is above --max-threads 256");
        check(|args, _| args.search_s = vec![1.0, 0.0], "--search-s 0");
        check(|args, _| args.search_s = vec![f64::NAN], "--search-s NaN");
        check(|args, _| args.delta_check = Some(0.0), "--delta-check 0 is not a percentage");
        check(|args, _| args.workload.monitor = Some(10), "--monitor 10 is not below the time");
        check(|args, _| args.workload.store = Some("null:".into()), "use it with `coord run` or `coord replay run`");
        check(|args, home| args.workload.trace = Some(home.join("no.trace")), "is this a trace set?");
        check(
            |args, home| {
                args.workload.trace = Some(home.join("no.trace"));
                args.sessions = Some(1);
            },
            "leave --sessions and --set away",
        );
    }

    #[test]
    fn a_single_run_ends_as_told() {
        let home = home();
        let workload = args(home.path()).workload;
        let args = RunArgs { workload, threads: 4, ..RunArgs::default() };
        let limit = |args: &RunArgs| {
            let single = single(args, &around(home.path())).unwrap();
            (single.limit, single.setting.sla.delta_s, single.setting.source.spec().sessions)
        };
        assert_eq!(limit(&args), (Limit::DurationS(10.0), 10.0, 10));
        assert_eq!(limit(&RunArgs { duration: Some(500_000_000), ..args.clone() }), (Limit::DurationS(0.5), 0.5, 10));
        assert_eq!(limit(&RunArgs { sessions: Some(30), ..args }), (Limit::Sessions(30), 10.0, 30));
    }
}
