//! The experiments of a run.
//!
//! ```text
//!  open ──▶ experiment ──▶ attempt ──▶ driver (fleet, runtime, Ctrl-C)
//!             │  history     why
//!             │  length
//!             ▼
//!  close ◀── record (run folder, run.json)
//! ```

mod attempt;
mod calibration;
mod driver;
mod experiment;
mod history;
mod length;
mod pace;
mod published;
mod record;
mod why;

use replayer::stores::Blame;
use schemas::files;
use schemas::isolation::Isolation;
use schemas::plan::{Warmup, redact};
use schemas::run::{RunFolder, RunState};

use self::driver::Driver;
use self::history::History;
use self::published::Published;
use self::record::Record;
use super::setting::{Setting, Source};
use super::standing::Standing;
use super::trace_set::TraceSet;
use super::trial::Trial;
use super::{runtime, tools};
use crate::failure::Failure;
use crate::fleet::{Logs, Order};
use crate::terminal::{ExperimentTable, Header, Voice};

/// A run in progress.
pub struct Campaign {
    setting: Setting,
    record: Record,
    published: Option<Published>,
    trace: TraceSet,
    warmup_sessions: u64,
    standing: Standing,
    history: History,
    driver: Driver,
    retries_left: u32,
    table: ExperimentTable,
    voice: Voice,
}

impl Campaign {
    /// Gets the trace set, begins the run folder and starts the replayers.
    pub fn open(mut setting: Setting) -> Result<Campaign, Failure> {
        let runtime = runtime::start()?;
        let interrupt = runtime::listen(&runtime)?;
        let voice = Voice::new(setting.json);
        reach(&setting)?;
        let published = setting.publish.as_ref().map(|url| Published::open(&url.join(&setting.name), &setting));
        let published = published.transpose()?;
        let trace = TraceSet::obtain(&setting.source, &setting.traces, voice, &interrupt)?;
        let warmup_sessions = warmup_sessions(&setting, &trace)?;
        setting.warmup = Warmup::Sessions(warmup_sessions);
        let standing = standing(&setting, &trace)?;
        let history = History::new(std::mem::take(&mut setting.past));
        let driver = Driver::open(runtime, interrupt, &setting.fleet)?;
        let record = Record::begin(&setting, &trace)?;
        voice.say(&header(&setting, &trace));
        unpromised(&setting, &trace).iter().for_each(|note| voice.say(note));
        let mut campaign = Campaign {
            standing,
            retries_left: setting.retries,
            table: ExperimentTable::new(&setting.sla, &trace.manifest).in_unit(pace::unit(&setting, &trace)),
            setting,
            record,
            published,
            trace,
            warmup_sessions,
            history,
            driver,
            voice,
        };
        match campaign.calibrate() {
            Ok(()) => {
                let replayers = campaign.driver.fleet.descriptions();
                replayers.iter().for_each(|replayer| voice.say(&format!("replayer  {replayer}")));
                Ok(campaign)
            }
            // The run has begun, so it is closed like any other.
            Err(failure) => campaign.close(Err(failure)),
        }
    }

    /// Measures the weights of the replayers, if `--calibrate` is given.
    fn calibrate(&mut self) -> Result<(), Failure> {
        if !self.setting.fleet.calibrate {
            return Ok(());
        }
        let (plan, run) = (calibration::plan(&self.setting, &self.trace), self.record.fleet_name());
        let folder = self.record.folder().experiment(plan.experiment, plan.threads);
        let (manifest, logs) = (&self.trace.manifest, Logs::Unwritten);
        let trace_url = self.trace.url.as_ref();
        let order = Order { plan: &plan, manifest, folder: &folder, logs, trace_url, publish_to: None, run: &run };
        self.voice.say("calibrating: measuring the speed of each replayer");
        let weighed = self.driver.calibrate(&order);
        // An experiment without logs leaves nothing of use in its folder.
        let removed = match folder.root().exists() {
            true => std::fs::remove_dir_all(folder.root()).map_err(files::at(folder.root())),
            false => Ok(()),
        };
        weighed.and(removed.map_err(Failure::from))
    }

    /// What the run was asked to do.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The run's folder.
    pub fn run(&self) -> &RunFolder {
        self.record.folder()
    }

    /// The trace set as it is now.
    pub fn trace(&self) -> &TraceSet {
        &self.trace
    }

    /// How many sessions are replayed before each experiment is measured.
    pub fn warmup_sessions(&self) -> u64 {
        self.warmup_sessions
    }

    /// Where messages for the user go.
    pub fn voice(&self) -> Voice {
        self.voice
    }

    /// Every experiment so far.
    pub fn trials(&self) -> &[Trial] {
        self.history.trials()
    }

    /// Ends the replayers, and writes into `run.json` how the run ended. If the run was refused
    /// before its first experiment, its folder is removed.
    pub fn close<X>(self, result: Result<X, Failure>) -> Result<X, Failure> {
        let Campaign { mut record, driver, history, voice, published, .. } = self;
        // The runtime listens for Ctrl-C until the report is written.
        let Driver { fleet, interrupt, runtime } = driver;
        runtime.block_on(fleet.close());
        let run = record.folder().clone();
        let result = result.map_err(|failure| match failure {
            Failure::Interrupted { .. } => Failure::Interrupted { run: Some(run.root().to_path_buf()) },
            Failure::Tool(message) | Failure::State(message) | Failure::Lost(message) => {
                Failure::Tool(format!("{message}\nresults so far: {}", run.root().display()))
            }
            usage @ Failure::Usage(_) => usage,
        });
        let is_empty = history.trials().is_empty() && !record.has_past();
        if let (Err(failure @ Failure::Usage(_)), true) = (&result, is_empty) {
            return match std::fs::remove_dir_all(run.root()) {
                Ok(()) => result,
                Err(e) => {
                    Err(Failure::usage(format!("{failure} (and {} cannot be removed: {e})", run.root().display())))
                }
            };
        }
        record.end(match &result {
            Ok(_) => RunState::Complete,
            Err(Failure::Interrupted { .. }) => RunState::Interrupted,
            Err(failure) => RunState::Failed(failure.to_string()),
        })?;
        interrupt.end_at_once();
        match tools::report(&run) {
            Ok(page) => voice.say(&format!("report    {}", page.display())),
            // The results hold, even if the page cannot be written.
            Err(why) => voice.say(&format!("note: no report could be written: {why}")),
        }
        let Some(mut published) = published else { return result };
        match published.publish(&run) {
            Ok(()) => voice.say(&format!("published {}", published.url())),
            Err(why) => {
                let shown = run.root().display();
                let why = format!(
                    "{shown} is complete, and could not be published: {why}; copy the folder to {}",
                    published.url()
                );
                return result.and(Err(Failure::Tool(why)));
            }
        }
        result
    }
}

/// The note on an SLA that asks for a stronger isolation than the store promises: a pass would be luck.
fn unpromised(setting: &Setting, trace: &TraceSet) -> Option<String> {
    let asked = setting.sla.isolation.filter(|_| setting.transactions.used && trace.manifest.transactions() > 0)?;
    let store = replayer::any_store::open(&setting.store).ok()?;
    let promised = store.transactions(&trace.manifest.spec);
    (promised < Some(asked)).then(|| {
        let (asked, promised) = (asked.name(), promised.map_or("no isolation at all", Isolation::name));
        format!(
            "note   the SLA asks for {asked} transactions, and the store promises {promised}; experiments fail as soon \
             as one shows less than {asked}; choose another isolation=... in the store's URL, or a weaker clause\n"
        )
    })
}

/// Refuses a store whose server does not answer, or that Encore may not load, before a trace set is
/// generated. Replayers on other machines may reach what this machine does not.
fn reach(setting: &Setting) -> Result<(), Failure> {
    if !setting.fleet.replayers.is_empty() {
        return Ok(());
    }
    let store = replayer::any_store::open(&setting.store);
    let is_adopted = store.and_then(|store| store.reach().and_then(|()| store.is_adopted()));
    match is_adopted.map_err(|error| Failure::tool(format!("--store {error}")))? {
        true if !setting.keep_data => Err(Failure::usage(format!(
            "--store {}: contains records that another tool has loaded, and Encore does not overwrite them; add \
             --keep-data to run on them, or choose another database",
            redact(&setting.store)
        ))),
        _ => Ok(()),
    }
}

/// The state of the store before the first experiment. Records that the user keeps are checked here,
/// before anything is written.
fn standing(setting: &Setting, trace: &TraceSet) -> Result<Standing, Failure> {
    if !setting.keep_data {
        return Ok(Standing::new(setting.between));
    }
    let source = replayer::source::Source { folder: trace.folder.clone(), manifest: trace.manifest.clone() };
    let adopted = replayer::any_store::open(&setting.store).and_then(|store| store.adopt(&source));
    adopted.map(Standing::kept).map_err(|error| match error.blame {
        Blame::Store => Failure::tool(format!("--store {error}")),
        Blame::Usage | Blame::State => Failure::usage(format!("--store {error}")),
    })
}

/// How many sessions are replayed before each experiment is measured. A share of the trace would
/// grow with each extension, so it becomes a number of sessions here. It is a share of the spec's
/// sessions, since the trace set found may have been extended before.
fn warmup_sessions(setting: &Setting, trace: &TraceSet) -> Result<u64, Failure> {
    match (setting.warmup, &setting.source) {
        (Warmup::Percent(percent), Source::Spec(spec)) => Ok((spec.sessions as f64 * percent / 100.0).ceil() as u64),
        (warmup, _) => warmup.sessions(&trace.folder, &trace.manifest).map_err(Failure::tool),
    }
}

/// The header of the run.
fn header(setting: &Setting, trace: &TraceSet) -> String {
    let (store, sla) = (redact(&setting.store), &setting.sla);
    let closing_read = setting.closing_read.then_some(setting.between);
    let (trace, manifest, run) = (&trace.folder, &trace.manifest, &setting.folder);
    Header { store: &store, trace, manifest, sla, run, closing_read }.to_string()
}
