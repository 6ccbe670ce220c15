//! An experiment: its plan checked against its trace set, what can go wrong with
//! it, how it is watched and ended early. `run.rs` runs it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schemas::files::FileError;
use schemas::latency::ResponseTimes;
use schemas::manifest::TraceSetError;
use schemas::oplog::{LogCompression, LogRow, Outcome};
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::share::{ends_after, sessions_by_fragment};
use schemas::trace::TableError;

use crate::dispatch::Stretch;
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
    /// The plan asks for what cannot be.
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
            _ => false,
        }
    }
}

/// A part of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// Replayed and logged, but no part of the figures.
    WarmUp,
    /// What the figures are about; all of an experiment without warm-up.
    #[default]
    Measured,
}

/// Counts and response times from the beginning of a part until now.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The part.
    pub part: Part,
    /// Time since its beginning; in the end, that of the last operation's end.
    pub elapsed_ns: i64,
    /// Operations by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; 4],
    /// Operations that succeeded and ended within the planned time.
    pub ok_in_time: u64,
    /// Operations that started after the planned time, which are in none of the figures.
    pub drained: u64,
    /// Response times of successful operations.
    pub response_times: ResponseTimes,
    /// The latest that a worker's tick came. (The distribution is in the report; a
    /// copy of it with every snapshot is what a replay against nothing would feel.)
    pub lag_ns_max: i64,
}

impl Snapshot {
    #[inline]
    pub(crate) fn count(&mut self, row: &LogRow, deadline_ns: i64) {
        self.outcomes[row.outcome as usize] += 1;
        self.elapsed_ns = self.elapsed_ns.max(row.end_ns);
        if row.outcome == Outcome::Ok {
            self.ok_in_time += u64::from(row.end_ns <= deadline_ns);
            let from_ns = row.due_ns.unwrap_or(row.start_ns);
            self.response_times.record(row.end_ns - from_ns);
        }
    }

    /// Adds what another worker counted in the same time. Once one of them has
    /// begun the measured part, what the others say of the warm-up is out of date.
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
        self.ok_in_time += other.ok_in_time;
        self.drained += other.drained;
        self.response_times.merge(&other.response_times);
        self.lag_ns_max = self.lag_ns_max.max(other.lag_ns_max);
    }
}

/// Waits until the start of what comes next is known, and gives it in nanoseconds since
/// 1970 (it starts at once when that has passed); none when it will not start.
pub type StartSignal = Arc<dyn Fn() -> Option<i64> + Send + Sync>;

/// Ends an experiment early, delays its start, and says what to tell the store of it.
#[derive(Clone, Default)]
pub struct Control {
    /// Set it to end: what is in flight is finished and logged, what waits is given back.
    pub stop: Arc<AtomicBool>,
    /// Set it, after `stop`, to give up what is in flight: such operations end with an
    /// unknown fate.
    pub abandon: Arc<AtomicBool>,
    /// Called when every connection stands, and again when the warm-up is over; without
    /// it both parts start at once.
    pub start: Option<StartSignal>,
    /// Whether to wait between warm-up and measured part even without a warm-up of one's
    /// own, because others have one.
    pub others_warm_up: bool,
    /// What the store is asked and told besides the operations.
    pub duty: StoreDuty,
}

/// What a replayer asks and tells the store besides the operations: several that
/// share a store must not all do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreDuty {
    /// Whether it is in the right state, that an experiment runs, and where it stands
    /// when that has ended.
    #[default]
    Alone,
    /// The same without the end, which comes when all have ended
    /// ([`AnyStore::settle`](crate::stores::AnyStore::settle)).
    Leads,
    /// Nothing.
    Follows,
}

/// What an experiment writes into its folder beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Papers {
    /// Both.
    PlanAndReport,
    /// The report: the plan is somebody else's, and there.
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
    pub(crate) papers: Papers,
    pub(crate) log_compression: LogCompression,
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
                "trace {} is not the planned one: its id is {}, not {}",
                plan.trace.display(),
                manifest.trace_id,
                plan.trace_id
            ));
        }
        if plan.threads == 0 || plan.workers == 0 {
            return wrong("threads and workers must be at least 1".into());
        }
        if plan.fragments.is_empty() {
            return wrong("names no fragment".into());
        }
        let mut counts = Vec::with_capacity(plan.fragments.len());
        for fragment in &plan.fragments {
            match manifest.fragments.iter().find(|f| f.fragment == fragment.fragment) {
                None => return wrong(format!("fragment {} is not in the trace set", fragment.fragment)),
                Some(count) => counts.push(count),
            }
        }
        let weights: Vec<f64> = counts.iter().map(|c| c.weight).collect();
        let measured_from: Vec<u64> = plan.fragments.iter().map(FragmentPlan::measured_from).collect();
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
                "trace {} has no session left to measure: its {} sessions have been run before or belong to the warm-up; make a longer one with `tracegen gen --sessions`",
                plan.trace.display(),
                counts.iter().map(|c| c.sessions).sum::<u64>()
            ));
        }
        let log_compression = LogCompression::None;
        Ok(Experiment {
            plan,
            folder,
            source,
            stretches,
            is_logged: true,
            papers: Papers::PlanAndReport,
            log_compression,
        })
    }

    /// Compresses its log, for long experiments: the writer's thread has more to do,
    /// the disk less.
    pub fn with_log_compression(self, log_compression: LogCompression) -> Experiment {
        Experiment { log_compression, ..self }
    }

    /// Logs nothing and leaves no log: for measuring what the log costs.
    pub fn without_log(self) -> Experiment {
        Experiment { is_logged: false, ..self }
    }

    /// Logs into the folder of a coordinator, who keeps the plan there; reports there if
    /// this is the whole of that, since the report of a part would be taken for it.
    pub fn in_shared_folder(self, is_whole: bool) -> Experiment {
        Experiment { papers: if is_whole { Papers::Report } else { Papers::Nothing }, ..self }
    }

    /// Whether it takes the trace up where an earlier one has stopped: there is no
    /// data set to load that would bring the store there.
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

    pub(crate) fn log_path(&self, fragment: u32) -> PathBuf {
        self.folder.join(format!("log/fragment-{fragment}.arrows"))
    }

    /// The fragments of each worker, as indexes into the plan's, by turns.
    pub(crate) fn shares(&self) -> Vec<Vec<usize>> {
        let fragments = self.plan.fragments.len();
        let workers = (self.plan.workers.min(self.plan.threads) as usize).min(fragments);
        (0..workers).map(|w| (w..fragments).step_by(workers).collect()).collect()
    }

    /// Threads of each worker, by the weight of its fragments, at least one each.
    pub(crate) fn threads(&self, shares: &[Vec<usize>]) -> Vec<u32> {
        let weights: Vec<f64> =
            shares.iter().map(|share| share.iter().map(|f| self.stretches[*f].weight).sum()).collect();
        let spare = self.plan.threads as u64 - shares.len() as u64;
        sessions_by_fragment(&weights, spare).into_iter().map(|n| n as u32 + 1).collect()
    }
}
