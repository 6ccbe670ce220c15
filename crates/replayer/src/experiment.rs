//! An experiment: its plan, checked against its trace set; its errors; how a caller watches it
//! and ends it early. `run/` runs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use schemas::files::FileError;
use schemas::latency::ResponseTimes;
use schemas::manifest::TraceSetError;
use schemas::oplog::{LogCompression, LogRow, Outcome};
use schemas::pace::Due;
use schemas::pace_request::has_due_times;
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::program::quoted;
use schemas::share::{ends_after, sessions_by_fragment};
use schemas::table::TableError;
use schemas::workload::Closing;

use crate::clock::Clock;
use crate::dispatch::{Rhythm, Stretch};
use crate::source::Source;
use crate::stores::{Blame, StoreError};

/// An experiment that cannot be run, or did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The trace set is not usable.
    #[error(transparent)]
    TraceSet(#[from] TraceSetError),
    /// A file of the trace or the log.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A file of the run.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan asks for something impossible.
    #[error("plan: {0}")]
    Plan(String),
    /// The operating system refused a thread or a runtime.
    #[error("cannot start a worker: {0}")]
    Worker(std::io::Error),
}

impl ExperimentError {
    /// Whether the user's input is to blame (else a tool or store failed).
    pub fn is_usage(&self) -> bool {
        match self {
            ExperimentError::TraceSet(_) | ExperimentError::Plan(_) => true,
            ExperimentError::Store(error) => error.blame != Blame::Store,
            // What a file of the trace holds is at fault, and not the system.
            ExperimentError::Table(error) => error.io.is_none(),
            _ => false,
        }
    }
}

/// A part of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// Replayed and logged, but in none of the figures.
    WarmUp,
    /// The part that the figures are about; the whole experiment if there is no warm-up.
    #[default]
    Measured,
}

/// Counts and response times from the beginning of a part until now.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The part.
    pub part: Part,
    /// Time since the part began. In the final snapshot it ends with the last operation.
    pub elapsed_ns: i64,
    /// Operations by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Begins, commits and aborts of transactions, whatever became of them.
    pub of_transactions: u64,
    /// Operations that succeeded and ended within the planned time.
    pub ok_in_time: u64,
    /// Operations that started after the planned time, which are in none of the figures.
    pub drained: u64,
    /// Response times of successful operations.
    pub response_times: ResponseTimes,
    /// Their service times. Only an open loop has them: else they are the response times.
    pub service_times: Option<ResponseTimes>,
    /// The longest delay of a worker's tick. (The distribution is in the report. Copying it with
    /// every snapshot would slow down a replay against `null:`.)
    pub lag_ns_max: i64,
    /// What the store has counted itself since the experiment began, as of a second ago at most.
    pub store_counters: BTreeMap<String, u64>,
}

impl Snapshot {
    /// The beginning of a part.
    pub(crate) fn of(part: Part, is_open_loop: bool) -> Snapshot {
        Snapshot { part, service_times: is_open_loop.then(ResponseTimes::default), ..Snapshot::default() }
    }

    #[inline]
    pub(crate) fn count(&mut self, row: &LogRow, deadline_ns: i64) {
        self.outcomes[row.outcome as usize] += 1;
        self.elapsed_ns = self.elapsed_ns.max(row.end_ns);
        if row.outcome == Outcome::Ok {
            self.ok_in_time += u64::from(row.end_ns <= deadline_ns);
            let from_ns = row.due_ns.unwrap_or(row.start_ns);
            self.response_times.record(row.end_ns - from_ns);
            if let Some(service_times) = &mut self.service_times {
                service_times.record(row.end_ns - row.start_ns);
            }
        }
    }

    /// All operations.
    pub(crate) fn operations(&self) -> u64 {
        self.outcomes.iter().sum::<u64>() + self.of_transactions
    }

    /// Adds what another worker counted in the same time. Once a worker has begun the measured
    /// part, the warm-up figures of the others are out of date.
    pub fn merge(&mut self, other: &Snapshot) {
        match (self.part, other.part) {
            (Part::WarmUp, Part::Measured) => *self = Snapshot::default(),
            (Part::Measured, Part::WarmUp) => return,
            _ => {}
        }
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        for (mine, others) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += others;
        }
        self.of_transactions += other.of_transactions;
        self.ok_in_time += other.ok_in_time;
        self.drained += other.drained;
        self.response_times.merge(&other.response_times);
        if let Some(times) = &other.service_times {
            self.service_times.get_or_insert_default().merge(times);
        }
        self.lag_ns_max = self.lag_ns_max.max(other.lag_ns_max);
    }
}

/// Waits until the start of the next part is known. Returns it in nanoseconds since 1970; if that
/// time has passed, the part starts at once. None if the part will not start.
pub type StartSignal = Arc<dyn Fn() -> Option<i64> + Send + Sync>;

/// Ends an experiment early, delays its start, and says what the replayer reports to the store.
#[derive(Clone, Default)]
pub struct Control {
    /// Set it to end. Sessions under way are finished and logged; sessions that wait are given back.
    pub stop: Arc<AtomicBool>,
    /// Set it, after `stop`, to give up the operations in flight. Writes among them end with an
    /// unknown fate, reads as failed.
    pub abandon: Arc<AtomicBool>,
    /// Set when a session had to queue and the plan ends the experiment then. Set it to end for the
    /// same reason, because another replayer was overloaded.
    pub overloaded: Arc<AtomicBool>,
    /// Called when all connections are open, and again when the warm-up is over. Without it, both
    /// parts start at once.
    pub start: Option<StartSignal>,
    /// Whether to wait between warm-up and measured part even if this replayer has no warm-up,
    /// because other replayers have one.
    pub others_warm_up: bool,
    /// What the replayer asks the store and reports to it besides the operations.
    pub duty: StoreDuty,
}

/// What a replayer asks the store and reports to it besides the operations. Of several replayers
/// that share a store, only one may do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreDuty {
    /// Check the store's state before an experiment, mark that one runs, and record where the
    /// store stands afterwards.
    #[default]
    Alone,
    /// The same except for recording the end, which follows when all replayers have ended
    /// ([`AnyStore::settle`](crate::any_store::AnyStore::settle)).
    Leads,
    /// Nothing.
    Follows,
}

/// More sessions than any trace has. More are refused: splitting them between fragments takes long.
const SESSIONS_MAX: u64 = 1_000_000_000_000_000;

/// What an experiment writes into its folder beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Documents {
    /// Both.
    PlanAndReport,
    /// The report alone: the coordinator has written the plan.
    Report,
    /// Neither.
    Nothing,
}

/// A plan that has been checked against its trace set.
#[derive(Debug, Clone)]
pub struct Experiment {
    pub(crate) plan: Plan,
    pub(crate) folder: PathBuf,
    pub(crate) source: Source,
    /// What each fragment of the plan replays.
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) is_logged: bool,
    /// What is written beside the log.
    pub(crate) documents: Documents,
    pub(crate) log_compression: LogCompression,
    /// The clock of the experiment, once it has started.
    clock: Arc<Mutex<Option<Clock>>>,
}

impl Experiment {
    /// Checks the plan. `folder` is where the logs and the report go.
    pub fn prepare(plan: Plan, folder: PathBuf) -> Result<Experiment, ExperimentError> {
        let wrong = |message: String| Err(ExperimentError::Plan(message));
        let source = Source::open(&plan.trace)?;
        let manifest = &source.manifest;
        if plan.format_version != schemas::RUN_FORMAT_VERSION {
            return wrong(format!(
                "format version {}, this replayer reads version {}",
                plan.format_version,
                schemas::RUN_FORMAT_VERSION
            ));
        }
        if plan.trace_id != manifest.trace_id {
            return wrong(format!(
                "trace {} has the id {}, the plan expects {}",
                plan.trace.display(),
                manifest.trace_id,
                plan.trace_id
            ));
        }
        if plan.threads == 0 || plan.workers == 0 {
            return wrong("threads and workers must be at least 1".into());
        }
        if plan.fragments.is_empty() {
            return wrong("\"fragments\" is empty".into());
        }
        plan.pace().check(plan.threads).map_err(ExperimentError::Plan)?;
        plan.transactions.check().map_err(ExperimentError::Plan)?;
        check_due_times(&plan, &source)?;
        let mut counts = Vec::with_capacity(plan.fragments.len());
        for fragment in &plan.fragments {
            match manifest.fragments.iter().find(|f| f.fragment == fragment.fragment) {
                None => return wrong(format!("fragment {} is not in the trace set", fragment.fragment)),
                Some(count) => counts.push(count),
            }
        }
        let weights: Vec<f64> = counts.iter().map(|c| c.weight).collect();
        let measured_from: Vec<u64> = plan.fragments.iter().map(FragmentPlan::measured_from).collect();
        if let Limit::Sessions(sessions @ SESSIONS_MAX..) = plan.limit {
            return wrong(format!("{sessions} sessions are too many; use fewer than {SESSIONS_MAX}"));
        }
        let ends: Vec<u64> = match plan.limit {
            Limit::WholeTrace => counts.iter().map(|c| c.sessions).collect(),
            Limit::Sessions(sessions) => ends_after(&weights, &measured_from, sessions),
            Limit::DurationS(_) => vec![u64::MAX; counts.len()],
        };
        let stretches: Vec<Stretch> = (0..counts.len())
            .map(|i| Stretch {
                weight: weights[i],
                given_back: plan.fragments[i].given_back.clone(),
                first_session: plan.fragments[i].first_session,
                measured_from: measured_from[i],
                end_session: ends[i].max(measured_from[i]),
            })
            .collect();
        let from_the_beginning = plan.fragments.iter().all(|f| f.first_session == 0 && f.warmup_sessions == 0);
        let is_empty = stretches.iter().all(|s| s.end_session == s.measured_from);
        if plan.limit == Limit::WholeTrace && is_empty && !from_the_beginning {
            return wrong(format!(
                "trace {} has no session left to measure: all {} are already replayed or part of the warm-up; extend \
                 it with {}",
                plan.trace.display(),
                counts.iter().map(|c| c.sessions).sum::<u64>(),
                extension(&plan.trace, None)
            ));
        }
        let log_compression = LogCompression::None;
        Ok(Experiment {
            plan,
            folder,
            source,
            stretches,
            is_logged: true,
            documents: Documents::PlanAndReport,
            log_compression,
            clock: Arc::default(),
        })
    }

    /// Refuses more sessions than the trace has left. This is for users who name a trace
    /// themselves; a coordinator makes the trace longer instead.
    pub fn check_sessions(&self) -> Result<(), ExperimentError> {
        let counts = &self.source.manifest.fragments;
        let sessions_of = |fragment| counts.iter().find(|c| c.fragment == fragment).map_or(0, |c| c.sessions);
        let left = |f: &FragmentPlan| sessions_of(f.fragment).saturating_sub(f.measured_from());
        let left: u64 = self.plan.fragments.iter().map(left).sum();
        let warmup: u64 = self.plan.fragments.iter().map(|f| f.warmup_sessions).sum();
        if warmup > 0 && left == 0 {
            return Err(ExperimentError::Plan(format!(
                "--warmup: a warm-up of {warmup} sessions leaves no session of trace {} to measure; shorten the \
                 warm-up, or extend the trace with {}",
                self.plan.trace.display(),
                extension(&self.plan.trace, None)
            )));
        }
        match self.plan.limit {
            Limit::Sessions(sessions) if sessions > left => Err(ExperimentError::Plan(format!(
                "--sessions {sessions}: trace {} has only {left} left; reduce --sessions, or extend the trace with {}",
                self.plan.trace.display(),
                extension(&self.plan.trace, None)
            ))),
            _ => Ok(()),
        }
    }

    /// Compresses the log, for long experiments: more work for the writer's thread, less for the disk.
    pub fn with_log_compression(self, log_compression: LogCompression) -> Experiment {
        Experiment { log_compression, ..self }
    }

    /// Disables the log, to measure what it costs.
    pub fn without_log(self) -> Experiment {
        Experiment { is_logged: false, ..self }
    }

    /// Logs into the folder of a coordinator, which keeps the plan there. Writes the report there
    /// only if this replayer runs the whole experiment: a part's report would be taken for the whole.
    pub fn in_shared_folder(self, is_whole: bool) -> Experiment {
        Experiment { documents: if is_whole { Documents::Report } else { Documents::Nothing }, ..self }
    }

    /// Whether the experiment continues where an earlier one stopped. No load of a data set could
    /// bring the store into that state.
    pub fn continues(&self) -> bool {
        self.plan.fragments.iter().any(|f| f.first_session > 0)
    }

    /// Whether a warm-up comes before the measured part.
    pub fn has_warmup(&self) -> bool {
        self.plan.fragments.iter().any(FragmentPlan::has_warmup)
    }

    /// The trace set.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The experiment's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the closing read reads; none if the plan or the family has none.
    pub(crate) fn closing(&self) -> Option<Closing> {
        let is_planned = self.plan.closing_read.is_some() && self.is_logged;
        is_planned.then(|| self.source.closing()).flatten()
    }

    /// Whether the conditions of the data are checked after the experiment. One replayer checks them: the one that
    /// runs the first fragment of the trace set.
    pub(crate) fn checks_conditions(&self) -> bool {
        let is_planned = self.plan.closing_read.is_some() && self.is_logged;
        let first = self.source.fragments().next();
        let is_first = || self.plan.fragments.iter().any(|own| Some(own.fragment) == first);
        is_planned && self.source.has_conditions() && is_first()
    }

    pub(crate) fn set_clock(&self, clock: Clock) {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
    }

    /// The clock of the experiment; none before it has started.
    pub(crate) fn clock(&self) -> Option<Clock> {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log_path(&self, fragment: u32) -> PathBuf {
        self.folder.join(format!("log/fragment-{fragment}.arrows"))
    }

    /// The fragments of each worker, as indexes into the plan's, round robin. Each worker has a thread
    /// at any time.
    pub(crate) fn shares(&self) -> Vec<Vec<usize>> {
        let fragments = self.plan.fragments.len();
        let least = self.plan.threads_over_time.iter().map(|step| step.threads).min();
        let threads = least.map_or(self.plan.threads, |least| least.min(self.plan.threads));
        let workers = (self.plan.workers.min(threads) as usize).min(fragments);
        (0..workers).map(|w| (w..fragments).step_by(workers).collect()).collect()
    }

    /// Threads of each worker, by the weight of its fragments, at least one each.
    pub(crate) fn threads(&self, shares: &[Vec<usize>]) -> Vec<u32> {
        self.threads_of(shares, self.plan.threads)
    }

    /// The same for some of the threads; not fewer than there are workers.
    pub(crate) fn threads_of(&self, shares: &[Vec<usize>], threads: u32) -> Vec<u32> {
        let weights: Vec<f64> =
            shares.iter().map(|share| share.iter().map(|f| self.stretches[*f].weight).sum()).collect();
        let spare = u64::from(threads) - shares.len() as u64;
        sessions_by_fragment(&weights, spare).into_iter().map(|n| n as u32 + 1).collect()
    }

    /// When the sessions of a worker's fragments are due in an open loop.
    pub(crate) fn rhythms(&self, due: Due, share: &[usize]) -> Vec<Rhythm> {
        let rhythm = |index: &usize| Rhythm::of(due, &self.source.manifest, self.plan.fragments[*index].fragment);
        share.iter().map(rhythm).collect()
    }
}

/// Refuses a plan whose due times are not those of its trace set.
fn check_due_times(plan: &Plan, source: &Source) -> Result<(), ExperimentError> {
    let wrong = match (plan.open_loop.map(|open| open.due), has_due_times(&source.manifest)) {
        (None, true) => {
            "has due times, and the plan has no open_loop; a trace set with due times is replayed in an \
                         open loop"
        }
        (Some(Due::Even { .. }), true) => {
            "has due times of its own, and the plan wants even ones (--rate); use \
                                           --rate-factor to scale those of the trace"
        }
        (Some(Due::Trace { .. }), false) => "has no due times, and the plan wants those of the trace; use --rate",
        _ => return Ok(()),
    };
    Err(ExperimentError::Plan(format!("trace {} {wrong}", plan.trace.display())))
}

/// The command that makes a trace set longer: with this many sessions, or as many as the user
/// writes in place of N.
pub(crate) fn extension(trace: &Path, sessions: Option<u64>) -> String {
    let trace = quoted(&trace.display().to_string());
    let sessions = sessions.map_or("N".to_string(), |sessions| sessions.to_string());
    format!("`encore trace gen {trace} --sessions {sessions} -o {trace}`")
}
