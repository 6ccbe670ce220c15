//! What `trace show` says of tests.

use schemas::manifest::Manifest;
use schemas::sla::short_time;
use schemas::spec::SpecError;
use schemas::words::{short_percent, thousands};
use schemas::workload::consbench::{ConsbenchWorkload, Tests};

use crate::core::show::{Facts, grouped};
use crate::kv::show::about_records;

/// What there is to say of a trace set.
pub(super) fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
    let ConsbenchWorkload { data, consbench } = manifest.spec.workload()?;
    let fragments = u64::from(manifest.spec.fragments);
    let Tests { interval_us, burst_us, reads, readers } = consbench.tests();
    let time = |us: f64| short_time((us * 1e3) as u64);
    let writes = manifest.operations_by_name.get("update").copied().unwrap_or_default();
    let again_us = burst_us as f64 / f64::from(reads) * (u64::from(readers) / fragments) as f64;
    let mut about = about_records(&data, "written one after the other");
    about.extend([
        (
            "tests",
            format!(
                "{} writes, one in {} in each fragment, up to {} later",
                grouped(writes),
                time(interval_us as f64),
                time((interval_us - burst_us) as f64)
            ),
        ),
        (
            "bursts",
            format!("{} reads within {} of the write's due time", thousands(reads.into()), time(burst_us as f64)),
        ),
        (
            "resolution",
            format!(
                "each of {} replicas is read within {} in {}% of cases, if a read goes to any of them alike",
                consbench.replicas,
                time(consbench.resolution_us()),
                short_percent(consbench.coverage * 100.0)
            ),
        ),
        ("readers", format!("{} clients; one reads again after some {}", thousands(readers.into()), time(again_us))),
    ]);
    let draws =
        format!("threads that this trace can keep busy: {} (consbench.readers)", grouped(manifest.active_threads_max));
    Ok(Facts { about, draws, distributions: Vec::new() })
}
