//! What `encore trace show` says of a trace set of the family.

use schemas::manifest::Manifest;
use schemas::spec::SpecError;
use schemas::verdict::DrawRule;
use schemas::words::plural;
use schemas::workload::tpcc::{TpccStatistics, TpccWorkload};

use crate::core::show::{Facts, grouped, table_of};

/// Facts about the data set and the draws.
pub(super) fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
    let TpccWorkload { data, waits, results } = manifest.spec.workload()?;
    let statistics: TpccStatistics = manifest.statistics_of::<TpccWorkload>().unwrap_or_default();
    let is = |is: bool| if is { "as specified" } else { "none" };
    let mut about = vec![
        ("warehouses", grouped(data.warehouses)),
        ("terminals", format!("{} a warehouse", grouped(data.terminals))),
        ("keying times", is(waits.keying).to_string()),
        ("think times", is(waits.thinking).to_string()),
        ("results", if results.log_results { "logged" } else { "number of rows and hash logged" }.to_string()),
    ];
    if let Some(remark) = remark(manifest) {
        about.push(("cardinalities", remark));
    }
    let rules = statistics.draws.rules(data.warehouses > 1);
    let rules = rules.iter().map(|rule| rule.cells().to_vec()).collect();
    let rules = table_of(Some(&DrawRule::COLUMNS), rules);
    let draws = format!(
        "threads that this trace can keep busy: {} (data.warehouses, data.terminals)",
        grouped(data.warehouses * data.terminals)
    );
    Ok(Facts { about, draws, distributions: vec![rules] })
}

/// That a data set is not TPC-C's.
pub(super) fn remark(manifest: &Manifest) -> Option<String> {
    let data = manifest.spec.workload::<TpccWorkload>().ok()?.data;
    let (items, customers) = (plural(data.items, "item"), plural(data.customers, "customer"));
    (!data.is_whole()).then(|| format!("scaled down to {items} and {customers} a district, which is not TPC-C"))
}
