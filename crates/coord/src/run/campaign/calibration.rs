//! The experiment that measures the weights of the replayers.

use schemas::pace::{Due, OpenLoop, Overload};
use schemas::pace_request::first_due;
use schemas::plan::{Limit, Plan};

use crate::run::setting::Setting;
use crate::run::trace_set::TraceSet;

/// So many times as fast as the trace says, all sessions are due at once.
const AT_ONCE: f64 = 1e12;

/// The plan of a calibration: one second of the whole workload against a store that answers at
/// once.
pub(super) fn plan(setting: &Setting, trace: &TraceSet) -> Plan {
    let fragments = schemas::plan::fragments(&trace.manifest, &[], 0);
    // A trace set that cannot be read is reported by the replayers, with their names.
    let first = first_due(&trace.full_name(), &trace.manifest, &fragments).ok().flatten();
    let due =
        first.map(|first| Due::Trace { from_us: first.from_us, warmup_from_us: first.warmup_from_us, factor: AT_ONCE });
    Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 0,
        trace: trace.full_name(),
        trace_id: trace.manifest.trace_id.clone(),
        store: "null:".to_string(),
        threads: 16 * setting.fleet.count as u32,
        workers: setting.workers,
        limit: Limit::DurationS(1.0),
        fragments,
        unique_actors: setting.unique_actors,
        closing_read: None,
        open_loop: due.map(|due| OpenLoop { due, overload: Overload::Queue }),
        target_per_s: None,
        threads_over_time: Vec::new(),
        transactions: Default::default(),
    }
}
