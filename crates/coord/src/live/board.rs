//! The latest figures of a run, for `--metrics-listen`. Counters go on from one experiment to the next, as Prometheus
//! expects of them.

use std::sync::{Arc, Mutex, PoisonError};

use schemas::latency::ResponseTimes;
use schemas::verdict::{Ruling, Verdict};

use crate::terminal::Progress;

/// The board. The coordinator writes it, and a server reads it.
#[derive(Debug, Default)]
pub struct Board(Mutex<Figures>);

/// What the board shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// The running experiment and its load.
    pub(super) experiment: u32,
    pub(super) load: String,
    /// The measured part of the running experiment.
    pub(super) now: Progress,
    pub(super) replayers: Vec<(String, Arc<Progress>)>,
    /// All experiments before it.
    pub(super) before: Counts,
    pub(super) ended: [u64; 3],
    pub(super) last: Option<LastVerdict>,
}

/// What adds up over experiments.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) ok: u64,
    pub(super) errors: u64,
    pub(super) aborted: u64,
    pub(super) reads: u64,
    pub(super) unpredictable: u64,
    pub(super) times: ResponseTimes,
}

/// The figures of the experiment that ended last.
#[derive(Debug, Clone)]
pub(super) struct LastVerdict {
    pub(super) throughput_per_s: f64,
    pub(super) within_percent: f64,
    pub(super) unpredictable_percent: f64,
}

impl Board {
    /// An experiment begins: what the last one has counted is added up.
    pub(super) fn begin(&self, experiment: u32, load: &str) {
        self.change(|figures| {
            figures.add_up();
            (figures.experiment, figures.load) = (experiment, load.to_string());
        });
    }

    /// The running experiment has come so far. The warm-up does not count.
    pub(super) fn running(&self, whole: &Progress, each: &[(String, Arc<Progress>)]) {
        self.change(|figures| {
            figures.replayers = each.to_vec();
            if !whole.is_warmup {
                figures.now = whole.clone();
            }
        });
    }

    /// An experiment has its verdict.
    pub(super) fn ended(&self, verdict: &Verdict) {
        self.change(|figures| {
            figures.add_up();
            let place = match verdict.ruling {
                Ruling::Pass => 0,
                Ruling::Fail => 1,
                Ruling::Void => 2,
            };
            figures.ended[place] += 1;
            let own = &verdict.figures;
            figures.before.reads += own.reads;
            figures.before.unpredictable += own.unpredictable_reads;
            figures.last = Some(LastVerdict {
                throughput_per_s: own.throughput_per_s,
                within_percent: own.within_beta_percent,
                unpredictable_percent: own.unpredictable_percent,
            });
        });
    }

    fn change(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A copy of what it shows.
    pub(super) fn figures(&self) -> Figures {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Figures {
    fn add_up(&mut self) {
        let now = std::mem::take(&mut self.now);
        self.before.ok += now.ok;
        self.before.errors += now.errors;
        self.before.aborted += now.aborted;
        self.before.times.merge(&now.response_times);
        self.replayers.clear();
    }
}
