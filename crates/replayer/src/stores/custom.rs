//! Custom parameters of operations (`sql`), which each store interprets by itself.

use schemas::run::NOTE;
use schemas::words::plural;
use schemas::workload::sql::{CustomUse, SqlStatistics, SqlWorkload};

use crate::source::Source;

/// Those that the manifest of a trace set lists.
pub(crate) fn custom_parameters(source: &Source) -> Vec<CustomUse> {
    // The statistics of each family of this vocabulary have those of its statements.
    source.manifest.statistics_of::<SqlWorkload>().unwrap_or_else(|_| SqlStatistics::default()).custom
}

/// What a user must know of a store that uses no custom parameters, as a setting of the store.
pub(crate) fn ignored(source: &Source) -> Option<(String, String)> {
    let all = custom_parameters(source);
    let first = all.first()?.parameters.join(", ");
    let uses = plural(all.iter().map(|one| one.uses).sum(), "operation");
    let note = format!("this store ignores custom parameters, which {uses} of the trace have (such as {first})");
    Some((NOTE.to_string(), note))
}
