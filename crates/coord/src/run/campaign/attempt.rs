//! One attempt at an experiment: the replayers run its plan, the log is analyzed, and plan, report
//! and verdict go to the run folder.

use std::time::{Duration, SystemTime};

use replayer::any_store::closing_read_name;
use schemas::files;
use schemas::pace::Pace;
use schemas::plan::{Limit, Plan};
use schemas::run::{ExperimentFolder, Purpose};
use schemas::verdict::all_hold;

use super::{Campaign, why};
use crate::failure::Failure;
use crate::fleet::{self, Logs, Order, Ran};
use crate::live::{Feed, Wanted};
use crate::run::standing::{self, Attempt, Standing};
use crate::run::tools;
use crate::run::trial::{Demand, Trial};
use crate::terminal::{self, Announced, Live, Monitor, Stage};

/// The experiment that is attempted.
struct Asked<'a> {
    /// Its number.
    number: u32,
    /// What it asks of the store.
    demand: Demand,
    /// When it is meant to end.
    limit: Limit,
    /// What it is for.
    purpose: &'a Purpose,
}

impl Campaign {
    /// Attempts an experiment once, and adds it to the run whatever came of it.
    pub(super) fn once(&mut self, demand: Demand, limit: Limit, purpose: &Purpose) -> Result<Trial, Failure> {
        self.driver.check_interrupt()?;
        let number = self.record.next_number();
        let live = Live::start().with_sketch(&terminal::sketch(demand.unit(), &mut self.history.loads(demand.unit())));
        let planned_s = match limit {
            Limit::DurationS(seconds) => Some(seconds),
            Limit::Sessions(_) | Limit::WholeTrace => None,
        };
        let announced = Announced {
            number,
            load: demand.named(),
            why: why::why(self.history.trials(), demand, purpose),
            planned_s,
        };
        let (path, beta_ns) = (self.record.folder().live(), self.setting.sla.beta_ns);
        let mut feed = Feed::new(&path, &announced, beta_ns, self.setting.board.clone());
        let asked = Asked { number, demand, limit, purpose };
        let (voice, mut standing) = (self.voice, self.standing.clone());
        let attempt = standing::attempt(&mut standing, &mut |line| live.above(|| voice.say(line)), &mut |standing| {
            let plan = self.plan(&asked, standing)?;
            self.replay(&plan, &demand.folder(self.record.folder(), number), &live, &announced, &mut feed)
        })?;
        if let Attempt::Refused(why) = &attempt {
            live.above(|| voice.report(&format!("experiment {number} did not start: {why}")));
        }
        live.analyzing(&announced);
        feed.validating();
        let trial = self.judged(&asked, attempt)?;
        feed.ended(purpose, &trial.verdict, trial.report.as_ref().map(|report| &report.store_counters));
        drop(live);
        files::write_json(&demand.folder(self.record.folder(), number).trial(), &trial.note())?;
        if self.history.trials().is_empty() {
            self.record.write()?;
        }
        self.standing = standing;
        self.keep(&trial);
        self.leave(&trial);
        self.publish();
        self.driver.check_interrupt()?;
        Ok(trial)
    }

    /// Publishes what is new in the run folder. What could not be published now is published after the next experiment.
    fn publish(&mut self) {
        let Some(published) = &mut self.published else { return };
        if let Err(why) = published.publish(self.record.folder()) {
            self.voice.say(&format!("note: not published yet: {why}"));
        }
    }

    /// Has the replayers run a plan, and writes plan and report into the run folder.
    fn replay(
        &mut self,
        plan: &Plan,
        folder: &ExperimentFolder,
        live: &Live,
        announced: &Announced,
        feed: &mut Feed,
    ) -> Result<Ran, Failure> {
        files::write_json(&folder.plan(), &plan.redacted())?;
        let voice = self.voice;
        let mut monitor = self.setting.monitor_s.map(Monitor::new);
        feed.wants(plan.open_loop.as_ref().and_then(|open_loop| Wanted::new(open_loop, &self.trace.manifest)));
        let mut watch = |stage: Stage| {
            live.experiment(announced, &stage);
            feed.stage(&stage);
            if let Stage::Loaded { conditions } = stage {
                live.above(|| voice.say(&format!("note   after the load, {}", all_hold(conditions))));
            }
            if let (Some(monitor), Stage::Running { whole, each }) = (&mut monitor, &stage) {
                for line in monitor.lines(whole, each) {
                    live.above(|| voice.report(&line));
                }
            }
        };
        let run = self.record.fleet_name();
        let logs = if self.setting.fleet.leave_logs { Logs::Left(self.setting.sla) } else { Logs::Fetched };
        let publish_to = self.published.as_ref().map(|published| published.place_of(folder));
        let (manifest, trace_url, publish_to) = (&self.trace.manifest, self.trace.url.as_ref(), publish_to.as_ref());
        let order = Order { plan, manifest, folder, logs, trace_url, publish_to, run: &run };
        let ran = self.driver.experiment(&order, &mut watch)?;
        if let Some(note) = fleet::clock_note(&ran.report) {
            live.above(|| voice.say(&note));
        }
        for trouble in &ran.unread {
            live.above(|| voice.say(&format!("note: no complete closing read: {trouble}")));
        }
        files::write_json(&folder.report(), &ran.report)?;
        if let Some(note) = self.record.set_store_settings(&ran.report) {
            live.above(|| voice.say(&format!("note: {note}")));
        }
        Ok(ran)
    }

    /// The experiment with its verdict.
    fn judged(&self, asked: &Asked<'_>, attempt: Attempt<Ran>) -> Result<Trial, Failure> {
        let Asked { number, demand, limit, purpose } = *asked;
        match attempt {
            Attempt::Ran(Ran { report, start_unix_ns, .. }) => {
                let verdict = tools::analyze(self.record.folder(), number, &self.setting.sla)?;
                let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(start_unix_ns.max(0) as u64);
                let took_s = SystemTime::now().duration_since(started).map_or(0.0, |d| d.as_secs_f64());
                let started_unix_s = start_unix_ns.max(0) as u64 / 1_000_000_000;
                let (purpose, rate_per_s) = (purpose.clone(), demand.rate_per_s);
                Ok(Trial {
                    purpose,
                    limit,
                    rate_per_s,
                    started_unix_s,
                    took_s,
                    report: Some(report),
                    lost: None,
                    verdict,
                })
            }
            Attempt::Refused(why) => {
                let why = format!("the store is in the wrong state for this experiment: {why}");
                self.never_ran(asked, why, None)
            }
            Attempt::Lost(why) => self.never_ran(asked, why.clone(), Some(why)),
        }
    }

    /// Records the experiment as void.
    fn never_ran(&self, asked: &Asked<'_>, why: String, lost: Option<String>) -> Result<Trial, Failure> {
        let Asked { number, demand, limit, purpose } = *asked;
        let verdict = standing::never_ran(number, demand, self.setting.sla, why);
        files::write_json(&demand.folder(self.record.folder(), number).verdict(), &verdict)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (purpose, rate_per_s, started_unix_s) = (purpose.clone(), demand.rate_per_s, now.as_secs());
        Ok(Trial { purpose, limit, rate_per_s, started_unix_s, took_s: 0.0, report: None, lost, verdict })
    }

    /// The plan of an experiment that starts where the store stands.
    fn plan(&self, asked: &Asked<'_>, standing: &Standing) -> Result<Plan, Failure> {
        let Asked { number: experiment, demand, limit, purpose } = *asked;
        let is_read = self.setting.ends_with_closing_read(purpose);
        let (manifest, positions) = (&self.trace.manifest, standing.positions());
        let fragments = schemas::plan::fragments(manifest, positions, self.warmup_sessions);
        let Pace { open_loop, target_per_s, threads_over_time } = self.pace(demand, limit, &fragments)?;
        Ok(Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment,
            trace: self.trace.full_name(),
            trace_id: self.trace.manifest.trace_id.clone(),
            store: self.setting.store.clone(),
            threads: demand.threads,
            workers: self.setting.workers,
            limit,
            fragments,
            unique_actors: self.setting.unique_actors,
            closing_read: is_read.then(|| closing_read_name(experiment)),
            open_loop,
            target_per_s,
            threads_over_time,
            transactions: self.setting.transactions,
        })
    }
}
