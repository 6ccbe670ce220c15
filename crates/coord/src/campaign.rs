//! The experiments of a run: numbers them, keeps the run folder and `run.json`,
//! extends the trace when it runs out, and has each one analyzed.

use std::time::SystemTime;

use schemas::files;
use schemas::plan::{Limit, Plan};
use schemas::run::{EndReason, Host, ReplayReport, RunDocument, RunFolder, RunState};
use schemas::verdict::{RatedExperiment, Verdict};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::render::{self, Voice, thousands};
use crate::resolve::Setting;
use crate::tools;
use crate::trace_set::TraceSet;

/// A trace that ran out is extended to this many times what would have been
/// enough, because the next experiment may be faster.
const RESERVE: f64 = 1.25;

/// How often one experiment may extend the trace: each time its need was
/// estimated from a longer run, so more says that something else is wrong.
const MOST_EXTENSIONS: u32 = 4;

/// What an experiment is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// It stands for itself.
    Single,
    /// It belongs to a search.
    Search,
    /// It is to confirm what is named here.
    Final(String),
}

/// An experiment that has ended and was analyzed.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What it was for.
    pub purpose: Purpose,
    /// When it was to end.
    pub limit: Limit,
    /// When it started, in seconds since 1970.
    pub started_unix_s: u64,
    /// How it went, from the replayers' side.
    pub report: ReplayReport,
    /// What came out.
    pub verdict: Verdict,
}

impl Trial {
    /// The trial as a rating lists it.
    pub fn rated(&self) -> RatedExperiment {
        let duration_s = match self.limit {
            Limit::DurationS(seconds) => seconds,
            Limit::Sessions(_) | Limit::WholeTrace => self.report.elapsed_ns as f64 / 1e9,
        };
        RatedExperiment {
            experiment: self.verdict.experiment,
            started_unix_s: self.started_unix_s,
            threads: self.verdict.threads,
            duration_s,
            is_final: matches!(self.purpose, Purpose::Final(_)),
            ruling: self.verdict.ruling,
            reasons: self.verdict.reasons.clone(),
            throughput_per_s: self.verdict.figures.throughput_per_s,
            sessions_per_s: self.verdict.figures.sessions_per_s,
            within_beta_percent: self.verdict.figures.within_beta_percent,
            unpredictable_percent: self.verdict.figures.unpredictable_percent,
        }
    }
}

/// A run under way.
pub struct Campaign {
    setting: Setting,
    run: RunFolder,
    document: RunDocument,
    trace: TraceSet,
    fleet: Fleet,
    trials: Vec<Trial>,
    numbered: u32,
    voice: Voice,
    interrupt: Interrupt,
    runtime: Runtime,
}

impl Campaign {
    /// Gets the trace set, begins the run folder and starts the replayers.
    pub fn open(setting: Setting) -> Result<Campaign, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| Failure::tool(format!("cannot start the coordinator's runtime: {e}")))?;
        let interrupt = runtime
            .block_on(async { Interrupt::listen() })
            .map_err(|e| Failure::tool(format!("cannot listen for Ctrl-C: {e}")))?;
        let voice = Voice::new(setting.json);
        let trace = TraceSet::obtain(&setting.source, &setting.traces, voice, &interrupt)?;
        let run = RunFolder::new(&setting.folder);
        let fleet = runtime.block_on(Fleet::local())?;
        let document = document(&setting, &trace);
        files::write_json(&run.document(), &document)?;
        voice.say(&render::header(&setting, &trace));
        Ok(Campaign {
            setting,
            run,
            document,
            trace,
            fleet,
            trials: Vec::new(),
            numbered: 0,
            voice,
            interrupt,
            runtime,
        })
    }

    /// What the run was asked to do.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The run's folder.
    pub fn run(&self) -> &RunFolder {
        &self.run
    }

    /// The trace set as it is now.
    pub fn trace(&self) -> &TraceSet {
        &self.trace
    }

    /// Where lines for people go.
    pub fn voice(&self) -> Voice {
        self.voice
    }

    /// Every experiment so far.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Runs an experiment and prints its row. When the trace runs out before
    /// its time, a longer one takes its place and the experiment runs again.
    pub fn experiment(&mut self, threads: u32, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        for _ in 0..MOST_EXTENSIONS {
            let trial = self.once(threads, limit, purpose)?;
            let EndReason::TraceExhausted { sessions_needed } = trial.report.end else { return Ok(trial) };
            let sessions = (sessions_needed as f64 * RESERVE).ceil() as u64;
            self.voice.say(&format!(
                "the trace ran out: {} sessions, {} needed; it is extended (what was replayed stays its beginning) and T={threads} runs again",
                thousands(trial.report.sessions),
                thousands(sessions_needed)
            ));
            self.trace = self.trace.extended(sessions, &self.setting.traces, self.voice, &self.interrupt)?;
            self.document.trace = self.trace.folder.clone();
            self.document.trace_id = self.trace.manifest.trace_id.clone();
            self.document.spec = self.trace.manifest.spec.clone();
            files::write_json(&self.run.document(), &self.document)?;
        }
        self.once(threads, limit, purpose)
    }

    fn once(&mut self, threads: u32, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        self.check_interrupt()?;
        self.numbered += 1;
        let number = self.numbered;
        let plan = self.plan(number, threads, limit);
        let folder = self.run.experiment(number, threads);
        files::write_json(&folder.plan(), &plan.redacted())?;
        let live = Live::new();
        let started_unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let report =
            self.runtime.block_on(self.fleet.experiment(&plan, &folder, &mut self.interrupt, &mut |stage| {
                live.experiment(number, threads, &stage);
            }))?;
        files::write_json(&folder.report(), &report)?;
        self.document.store_settings = report.store_settings.clone();
        live.analyzing(number, threads);
        let verdict = tools::analyze(&self.run, number, &self.setting.sla)?;
        drop(live);
        let trial = Trial { purpose: purpose.clone(), limit, started_unix_s, report, verdict };
        if self.trials.is_empty() {
            files::write_json(&self.run.document(), &self.document)?;
            self.voice.say(&render::columns(&self.setting.sla));
        }
        self.voice.say(&render::row(&trial));
        self.trials.push(trial.clone());
        self.check_interrupt()?;
        Ok(trial)
    }

    fn check_interrupt(&self) -> Result<(), Failure> {
        if self.interrupt.has_come() { Err(Failure::Interrupted { run: None }) } else { Ok(()) }
    }

    fn plan(&self, experiment: u32, threads: u32, limit: Limit) -> Plan {
        Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment,
            trace: self.trace.folder.clone(),
            trace_id: self.trace.manifest.trace_id.clone(),
            store: self.setting.store.clone(),
            threads,
            workers: self.setting.workers,
            limit,
            fragments: schemas::plan::fragments(&self.trace.manifest, &[], 0),
            unique_socialites: true,
        }
    }

    /// Ends the replayers and writes into `run.json` how the run ended. A run
    /// that was refused before its first experiment leaves no folder.
    pub fn close<X>(self, result: Result<X, Failure>) -> Result<X, Failure> {
        let Campaign { mut document, run, fleet, runtime, trials, .. } = self;
        runtime.block_on(fleet.close());
        let result = result.map_err(|failure| match failure {
            Failure::Interrupted { .. } => Failure::Interrupted { run: Some(run.root().to_path_buf()) },
            Failure::Tool(message) => {
                Failure::Tool(format!("{message}\nwhat ran until then is in {}", run.root().display()))
            }
            usage @ Failure::Usage(_) => usage,
        });
        if let (Err(failure @ Failure::Usage(_)), true) = (&result, trials.is_empty()) {
            return match std::fs::remove_dir_all(run.root()) {
                Ok(()) => result,
                Err(e) => {
                    Err(Failure::usage(format!("{failure} (and {} cannot be removed: {e})", run.root().display())))
                }
            };
        }
        document.state = match &result {
            Ok(_) => RunState::Complete,
            Err(Failure::Interrupted { .. }) => RunState::Interrupted,
            Err(failure) => RunState::Failed(failure.to_string()),
        };
        files::write_json(&run.document(), &document)?;
        result
    }
}

fn document(setting: &Setting, trace: &TraceSet) -> RunDocument {
    RunDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        encore_version: env!("CARGO_PKG_VERSION").to_string(),
        name: setting.name.clone(),
        started_unix_s: setting.started_unix_s,
        state: RunState::Running,
        sla: Some(setting.sla),
        trace: trace.folder.clone(),
        trace_id: trace.manifest.trace_id.clone(),
        workload_id: trace.manifest.workload_id.clone(),
        spec: trace.manifest.spec.clone(),
        store: schemas::plan::redact(&setting.store),
        store_settings: Default::default(),
        host: Host::current(),
        command: setting.command.clone(),
    }
}
