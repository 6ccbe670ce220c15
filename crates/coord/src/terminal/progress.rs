//! How far an experiment is: what the display and `--monitor` show of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemas::latency::ResponseTimes;

/// The stage of an experiment, for the progress display.
#[derive(Debug, Clone)]
pub enum Stage {
    /// The trace set is being sent to replayers that do not have it.
    Sending {
        /// Bytes so far.
        bytes: u64,
        /// Bytes in all.
        bytes_total: u64,
    },
    /// The store is brought to its initial state.
    Loading {
        /// Rows so far.
        rows: u64,
        /// Rows in all.
        rows_total: u64,
    },
    /// The store is loaded, and the conditions of its data were checked.
    Loaded {
        /// So many conditions hold.
        conditions: u64,
    },
    /// The experiment runs.
    Running {
        /// All replayers together.
        whole: Box<Progress>,
        /// Each one, with its name.
        each: Vec<(String, Arc<Progress>)>,
    },
    /// Every item is being read, after the experiment.
    Closing {
        /// Items so far.
        items: u64,
        /// Items of the data set; sessions may have added more.
        items_total: u64,
    },
    /// The logs are being fetched.
    Collecting,
}

/// The figures of a running experiment so far.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Whether this is of the warm-up. The measured part counts from 0 again.
    pub is_warmup: bool,
    /// Time since its start.
    pub elapsed_ns: i64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, are of unknown fate, or were not issued.
    pub errors: u64,
    /// Operations of transactions that were rolled back.
    pub aborted: u64,
    /// Response times of those that succeeded.
    pub response_times: ResponseTimes,
    /// Their service times; none in a closed loop, where they are the same.
    pub service_times: Option<ResponseTimes>,
    /// Processors that the replayer uses; for several replayers the sum.
    pub cpus_used: f64,
    /// How late its workers have taken up work; for several replayers the largest value.
    pub dispatch_lag_ns_max: u64,
    /// What the store has counted itself since the experiment began; for several replayers the sum.
    pub store_counters: BTreeMap<String, u64>,
}
