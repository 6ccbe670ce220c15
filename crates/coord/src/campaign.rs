//! The experiments of a run: numbers them, keeps the run folder and `run.json`,
//! extends the trace when it runs out, and has each one analyzed.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::time::{Duration, SystemTime};

use schemas::files;
use schemas::plan::{Limit, Plan, Warmup};
use schemas::run::{EndReason, Host, Purpose, ReplayReport, RunDocument, RunFolder, RunState, TrialNote};
use schemas::verdict::{Between, RatedExperiment, Verdict};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::fleet::{self, Fleet, Logs, Order, Ran, Stage};
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::monitor::Monitor;
use crate::render::{self, Rows, Voice, thousands};
use crate::resolve::{Setting, Source};
use crate::standing::{self, Attempt, Extensions, Standing};
use crate::tools;
use crate::trace_set::TraceSet;

/// An experiment that has ended and was analyzed.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What it was for.
    pub purpose: Purpose,
    /// When it was to end.
    pub limit: Limit,
    /// When it started, in seconds since 1970; the store was loaded by then.
    pub started_unix_s: u64,
    /// From then until its verdict, in seconds: warm-up, measured part and validation.
    pub took_s: f64,
    /// How it went, from the replayers' side; none when it did not run, because
    /// the store was not in the state that it starts from.
    pub report: Option<ReplayReport>,
    /// Which replayer was lost before it began, and how.
    pub lost: Option<String>,
    /// What came out.
    pub verdict: Verdict,
}

impl Trial {
    /// How long its measured part took, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.report.as_ref().map_or(0.0, |report| report.elapsed_ns as f64 / 1e9)
    }

    /// Which replayers were lost, before it began or later, and how.
    pub fn lost(&self) -> Option<String> {
        let faults = self.report.as_ref().map(|report| &report.faults).filter(|faults| !faults.is_empty());
        self.lost.clone().or_else(|| Some(faults?.join("; ")))
    }

    /// Whether somebody ended it early.
    pub fn was_interrupted(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.end == EndReason::Interrupted)
    }

    /// What `trial.json` says of it.
    fn note(&self) -> TrialNote {
        let Trial { purpose, limit, started_unix_s, took_s, lost, .. } = self.clone();
        TrialNote { purpose, limit, started_unix_s, took_s, lost }
    }

    /// How many sessions the trace should have had, when it ran out.
    fn sessions_needed(&self) -> Option<u64> {
        match self.report.as_ref()?.end {
            EndReason::TraceExhausted { sessions_needed } => Some(sessions_needed),
            EndReason::Limit | EndReason::Interrupted => None,
        }
    }

    /// How many sessions of the trace were done in all when it ended.
    fn replayed_until(&self) -> u64 {
        let positions = self.report.iter().flat_map(|report| &report.positions);
        positions.map(|position| position.next_session).sum()
    }

    /// The trial as a rating lists it.
    pub fn rated(&self) -> RatedExperiment {
        let duration_s = match self.limit {
            Limit::DurationS(seconds) => seconds,
            Limit::Sessions(_) | Limit::WholeTrace => self.elapsed_s(),
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
    warmup_sessions: u64,
    standing: Standing,
    rows: Rows,
    fleet: Fleet,
    trials: Vec<Trial>,
    /// What is known already, in the order in which it was found out.
    past: VecDeque<Trial>,
    /// Whether it goes on with what an earlier one has left.
    has_past: bool,
    numbered: u32,
    retries_left: u32,
    voice: Voice,
    interrupt: Interrupt,
    runtime: Runtime,
    /// Held as long as this lives.
    _lock: File,
}

/// Takes the run folder: two coordinators would write the same files at the same time. It
/// is free again when this process has ended.
pub(crate) fn claim(run: &RunFolder) -> Result<File, Failure> {
    let path = run.lock();
    std::fs::create_dir_all(run.root()).map_err(files::at(run.root()))?;
    let file = File::create(&path).map_err(files::at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let shown = run.root().display();
            Err(Failure::usage(format!("{shown}: another coordinator works on this run; wait until it has ended")))
        }
        // A file system without locks keeps nobody out.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

impl Campaign {
    /// Gets the trace set, begins the run folder and starts the replayers.
    pub fn open(mut setting: Setting) -> Result<Campaign, Failure> {
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
        // A share of the trace would grow when it is extended: what it means is settled here.
        // Of the trace that was asked for, since the one found may have been extended before.
        let warmup_sessions = match (setting.warmup, &setting.source) {
            (Warmup::Percent(percent), Source::Spec(spec)) => (spec.sessions as f64 * percent / 100.0).ceil() as u64,
            (warmup, _) => warmup.sessions(&trace.folder, &trace.manifest).map_err(Failure::tool)?,
        };
        setting.warmup = Warmup::Sessions(warmup_sessions);
        let standing = Standing::new(setting.between);
        let rows = Rows::new(&setting.sla, &trace.manifest);
        let run = RunFolder::new(&setting.folder);
        let past = VecDeque::from(std::mem::take(&mut setting.past));
        let fleet = runtime.block_on(Fleet::open(&setting.fleet))?;
        let lock = claim(&run)?;
        let numbered = run.experiments()?.last().map_or(0, |(number, _)| *number);
        let document = document(&setting, &trace);
        files::write_json(&run.document(), &document)?;
        voice.say(&render::header(&setting, &trace));
        let mut campaign = Campaign {
            retries_left: setting.retries,
            setting,
            run,
            document,
            trace,
            warmup_sessions,
            standing,
            rows,
            fleet,
            trials: Vec::new(),
            past,
            has_past: numbered > 0,
            numbered,
            voice,
            interrupt,
            runtime,
            _lock: lock,
        };
        match campaign.calibrate() {
            Ok(()) => {
                campaign.fleet.told().iter().for_each(|replayer| voice.say(&format!("replayer  {replayer}")));
                Ok(campaign)
            }
            // The run has begun, and ends like any other.
            Err(failure) => campaign.close(Err(failure)),
        }
    }

    /// Measures the weights of the replayers, where that is wanted.
    fn calibrate(&mut self) -> Result<(), Failure> {
        if !self.setting.fleet.calibrate {
            return Ok(());
        }
        let (plan, run) = (calibration(&self.setting, &self.trace), self.document.fleet_name());
        let folder = self.run.experiment(plan.experiment, plan.threads);
        let (manifest, logs) = (&self.trace.manifest, Logs::Unwritten);
        let order = Order { plan: &plan, manifest, folder: &folder, logs, run: &run };
        self.voice.say("calibrating: how fast is each replayer?");
        let weighed = self.runtime.block_on(self.fleet.calibrate(&order, &mut self.interrupt));
        // What an experiment without a log leaves is of no use to anybody.
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
        &self.run
    }

    /// The trace set as it is now.
    pub fn trace(&self) -> &TraceSet {
        &self.trace
    }

    /// How many sessions are replayed before each experiment is measured.
    pub fn warmup_sessions(&self) -> u64 {
        self.warmup_sessions
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
    /// its time, a longer one takes its place and the experiment runs again, as long as that helps.
    pub fn experiment(&mut self, threads: u32, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        self.make_long_enough(limit)?;
        let mut extensions = Extensions::default();
        loop {
            let before = self.standing.done();
            let remembered = self.remembered(threads, limit, purpose);
            let is_remembered = remembered.is_some();
            let trial = remembered.map_or_else(|| self.with_all_replayers(threads, limit, purpose), Ok)?;
            let Some(needed) = trial.sessions_needed() else { return Ok(trial) };
            let (sessions, replayed) = (self.trace.manifest.sessions(), trial.replayed_until());
            if !extensions.once_more(replayed, needed) {
                let unique = self.setting.unique_socialites.then_some(self.trace.manifest.spec.data.members);
                self.voice.say(&extensions.given_up(threads, sessions, unique));
                return Ok(trial);
            }
            if is_remembered && sessions >= needed + self.warmup_sessions && sessions > replayed {
                // The trace was extended before the run was interrupted.
                continue;
            }
            let longer = self.standing.extension(before, needed, sessions) + self.warmup_sessions;
            self.voice.say(&format!(
                "the trace ran out: {} sessions{}; it is extended to {} (earlier sessions stay as they are) and T={threads} runs again",
                thousands(sessions),
                // An estimate that the trace met says nothing.
                if needed > replayed { format!(", {} needed", thousands(needed)) } else { String::new() },
                thousands(longer)
            ));
            self.extend(longer)?;
        }
    }

    /// Repeats an experiment in which a replayer was lost, once all are back: it is
    /// recorded as void, and the next one starts from a load.
    fn with_all_replayers(&mut self, threads: u32, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        loop {
            let trial = self.once(threads, limit, purpose)?;
            let Some(why) = trial.lost() else { return Ok(trial) };
            let experiment = trial.verdict.experiment;
            if self.retries_left == 0 {
                return Err(Failure::tool(format!("experiment {experiment} is void, and no retry is left: {why}")));
            }
            self.retries_left -= 1;
            self.voice.say(&format!(
                "experiment {experiment} is void: {why}\nT={threads} runs again when all replayers are there ({} retries left)",
                self.retries_left
            ));
            self.runtime.block_on(self.fleet.recover(&mut self.interrupt)).map_err(|failure| match failure {
                Failure::Lost(why) => Failure::tool(format!("the replayer did not come back: {why}")),
                other => other,
            })?;
        }
    }

    /// What an experiment of an earlier part of the run has shown, if it is the one that
    /// is asked for next.
    fn remembered(&mut self, threads: u32, limit: Limit, purpose: &Purpose) -> Option<Trial> {
        let is_asked_for =
            |trial: &Trial| (trial.verdict.threads, trial.limit, &trial.purpose) == (threads, limit, purpose);
        if !self.past.front().is_some_and(is_asked_for) {
            self.past.clear();
            return None;
        }
        let trial = self.past.pop_front()?;
        if let Some(report) = &trial.report {
            self.document.store_settings = report.store_settings.clone();
        }
        self.keep(&trial);
        Some(trial)
    }

    /// Prints the row of an experiment, and takes it in.
    fn keep(&mut self, trial: &Trial) {
        if self.trials.is_empty() {
            self.voice.say(&self.rows.heading());
        }
        self.voice.say(&self.rows.row(trial));
        if let Some(why) = self.standing.after(trial) {
            self.voice.say(&format!("the next experiment starts from a load: {why}"));
        }
        self.trials.push(trial.clone());
    }

    /// Extends a trace that is known to be too short before the experiment runs.
    fn make_long_enough(&mut self, limit: Limit) -> Result<(), Failure> {
        let measured = match limit {
            Limit::Sessions(sessions) => sessions,
            Limit::DurationS(seconds) => self.expected_sessions(seconds),
            Limit::WholeTrace => 0,
        };
        let (sessions, before) = (self.trace.manifest.sessions(), self.standing.done());
        let needed = before + self.warmup_sessions + measured;
        if sessions >= needed {
            return Ok(());
        }
        self.voice.say(&format!(
            "the trace has {} sessions, {} are needed: it is extended (what was replayed stays its beginning)",
            thousands(sessions),
            thousands(needed)
        ));
        self.extend(self.standing.extension(before, needed, sessions))
    }

    /// How many sessions an experiment of this duration may do. What is only
    /// known from running it counts as one session, unless the trace is
    /// continued: then the last experiment is the measure, twice over because
    /// this one may have twice the threads.
    fn expected_sessions(&self, seconds: f64) -> u64 {
        let last = self.trials.last().and_then(|trial| Some((trial.report.as_ref()?, &trial.verdict.figures)));
        match last {
            Some((report, figures)) if self.setting.between == Between::Continue => {
                // Threads may have rested until the time was over.
                let lasted_ns = report.elapsed_ns.max(figures.counted_ns).max(1);
                let per_s = report.sessions as f64 / (lasted_ns as f64 / 1e9);
                (per_s * seconds * 2.0).ceil() as u64
            }
            _ => 1,
        }
    }

    fn extend(&mut self, sessions: u64) -> Result<(), Failure> {
        self.trace = self.trace.extended(sessions, &self.setting.traces, self.voice, &self.interrupt)?;
        self.document.trace = self.trace.full_name();
        self.document.trace_id = self.trace.manifest.trace_id.clone();
        self.document.spec = self.trace.manifest.spec.clone();
        files::write_json(&self.run.document(), &self.document)?;
        Ok(())
    }

    fn once(&mut self, threads: u32, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        self.check_interrupt()?;
        self.numbered += 1;
        let number = self.numbered;
        let live = Live::new().with_sketch(&render::sketch(&self.trials));
        let (voice, mut standing) = (self.voice, self.standing.clone());
        let attempt = standing::attempt(&mut standing, &mut |line| live.above(|| voice.say(line)), &mut |standing| {
            let plan = self.plan(number, threads, limit, standing);
            self.replay(&plan, &live)
        })?;
        live.analyzing(number, threads);
        let trial = self.trial(threads, limit, purpose, attempt)?;
        drop(live);
        files::write_json(&self.run.experiment(number, threads).trial(), &trial.note())?;
        if self.trials.is_empty() {
            files::write_json(&self.run.document(), &self.document)?;
        }
        self.standing = standing;
        self.keep(&trial);
        self.check_interrupt()?;
        Ok(trial)
    }

    /// Has a plan replayed, and keeps plan and report.
    fn replay(&mut self, plan: &Plan, live: &Live) -> Result<Ran, Failure> {
        let (number, threads) = (plan.experiment, plan.threads);
        let folder = self.run.experiment(number, threads);
        files::write_json(&folder.plan(), &plan.redacted())?;
        let voice = self.voice;
        let mut monitor = self.setting.monitor_s.map(Monitor::new);
        let mut watch = |stage: Stage| {
            live.experiment(number, threads, &stage);
            if let (Some(monitor), Stage::Running { whole, each }) = (&mut monitor, &stage) {
                for line in monitor.lines(whole, each) {
                    live.above(|| voice.report(&line));
                }
            }
        };
        let run = self.document.fleet_name();
        let logs = if self.setting.fleet.leave_logs { Logs::Left(self.setting.sla) } else { Logs::Fetched };
        let order = Order { plan, manifest: &self.trace.manifest, folder: &folder, logs, run: &run };
        let ran = self.runtime.block_on(self.fleet.experiment(&order, &mut self.interrupt, &mut watch))?;
        if let Some(note) = fleet::clock_note(&ran.report) {
            live.above(|| voice.say(&note));
        }
        files::write_json(&folder.report(), &ran.report)?;
        self.document.store_settings = ran.report.store_settings.clone();
        Ok(ran)
    }

    /// Rules on what came of the experiment numbered last.
    fn trial(&self, threads: u32, limit: Limit, purpose: &Purpose, attempt: Attempt<Ran>) -> Result<Trial, Failure> {
        let (number, sla, purpose) = (self.numbered, self.setting.sla, purpose.clone());
        match attempt {
            Attempt::Ran(Ran { report, start_unix_ns }) => {
                let verdict = tools::analyze(&self.run, number, &sla)?;
                let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(start_unix_ns.max(0) as u64);
                let took_s = SystemTime::now().duration_since(started).map_or(0.0, |d| d.as_secs_f64());
                let started_unix_s = start_unix_ns.max(0) as u64 / 1_000_000_000;
                Ok(Trial { purpose, limit, started_unix_s, took_s, report: Some(report), lost: None, verdict })
            }
            Attempt::Refused(why) => {
                let why = format!("the store was not in the state that the experiment starts from: {why}");
                self.never_ran(threads, limit, purpose, why, None)
            }
            Attempt::Lost(why) => self.never_ran(threads, limit, purpose, why.clone(), Some(why)),
        }
    }

    /// Records the experiment numbered last as void.
    fn never_ran(
        &self,
        threads: u32,
        limit: Limit,
        purpose: Purpose,
        why: String,
        lost: Option<String>,
    ) -> Result<Trial, Failure> {
        let verdict = standing::never_ran(self.numbered, threads, self.setting.sla, why);
        files::write_json(&self.run.experiment(self.numbered, threads).verdict(), &verdict)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Trial { purpose, limit, started_unix_s: now.as_secs(), took_s: 0.0, report: None, lost, verdict })
    }

    fn check_interrupt(&self) -> Result<(), Failure> {
        if self.interrupt.has_come() { Err(Failure::Interrupted { run: None }) } else { Ok(()) }
    }

    fn plan(&self, experiment: u32, threads: u32, limit: Limit, standing: &Standing) -> Plan {
        let (manifest, positions) = (&self.trace.manifest, standing.positions());
        Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment,
            trace: self.trace.full_name(),
            trace_id: self.trace.manifest.trace_id.clone(),
            store: self.setting.store.clone(),
            threads,
            workers: self.setting.workers,
            limit,
            fragments: schemas::plan::fragments(manifest, positions, self.warmup_sessions),
            unique_socialites: self.setting.unique_socialites,
        }
    }

    /// Ends the replayers and writes into `run.json` how the run ended. A run
    /// that was refused before its first experiment leaves no folder.
    pub fn close<X>(self, result: Result<X, Failure>) -> Result<X, Failure> {
        let Campaign { mut document, run, fleet, runtime, trials, has_past, voice, .. } = self;
        runtime.block_on(fleet.close());
        let result = result.map_err(|failure| match failure {
            Failure::Interrupted { .. } => Failure::Interrupted { run: Some(run.root().to_path_buf()) },
            Failure::Tool(message) | Failure::State(message) | Failure::Lost(message) => {
                Failure::Tool(format!("{message}\nwhat ran until then is in {}", run.root().display()))
            }
            usage @ Failure::Usage(_) => usage,
        });
        let is_empty = trials.is_empty() && !has_past;
        if let (Err(failure @ Failure::Usage(_)), true) = (&result, is_empty) {
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
        match tools::report(&run) {
            Ok(page) => voice.say(&format!("report    {}", page.display())),
            // What was found out stands, whether it can be drawn or not.
            Err(why) => voice.say(&format!("note: no report could be written: {why}")),
        }
        result
    }
}

/// A second of everything against a store that answers at once.
fn calibration(setting: &Setting, trace: &TraceSet) -> Plan {
    Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 0,
        trace: trace.full_name(),
        trace_id: trace.manifest.trace_id.clone(),
        store: "null:".to_string(),
        threads: 16 * setting.fleet.count as u32,
        workers: setting.workers,
        limit: Limit::DurationS(1.0),
        fragments: schemas::plan::fragments(&trace.manifest, &[], 0),
        unique_socialites: setting.unique_socialites,
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
        trace: trace.full_name(),
        trace_id: trace.manifest.trace_id.clone(),
        workload_id: trace.manifest.workload_id.clone(),
        spec: trace.manifest.spec.clone(),
        store: schemas::plan::redact(&setting.store),
        store_settings: Default::default(),
        host: Host::current(),
        command: setting.command.clone(),
    }
}
