//! The experiment that measures the weights of the replayers.

use schemas::plan::{Limit, Plan};

use crate::run::setting::Setting;
use crate::run::trace_set::TraceSet;

/// The plan of a calibration: one second of the whole workload against a store that answers at
/// once.
pub(super) fn plan(setting: &Setting, trace: &TraceSet) -> Plan {
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
        unique_actors: setting.unique_actors,
        closing_read: None,
    }
}
