//! The tables of the consistency of registers, from the verdicts.

use duckdb::{Connection, params};
use schemas::verdict::{ConsistencyFigures, Verdict};

/// Fills `consistency`, `gamma_over_time`, `gamma_spectrum` and `session_guarantees`.
pub(super) fn fill(connection: &Connection, verdicts: &[Verdict]) -> Result<(), duckdb::Error> {
    for verdict in verdicts {
        let Some(found) = &verdict.figures.consistency else { continue };
        fill_figures(connection, verdict.experiment, found)?;
        let mut insert = connection.prepare_cached("INSERT INTO gamma_over_time VALUES (?, ?, ?, ?, ?, ?, ?)")?;
        for (slice, gamma) in found.over_time.iter().enumerate().filter(|(_, gamma)| gamma.count > 0) {
            let from_s = slice as f64 * verdict.figures.timeline.slice_s;
            insert.execute(params![
                verdict.experiment,
                slice as u64,
                from_s,
                gamma.count,
                gamma.p50,
                gamma.p95,
                gamma.max
            ])?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO gamma_spectrum VALUES (?, ?, ?, ?)")?;
        for at in &found.gamma_spectrum {
            insert.execute(params![verdict.experiment, at.percent, at.registers_ns, at.values_ns])?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO session_guarantees VALUES (?, ?, ?, ?, ?)")?;
        for (client, guarantees) in [("thread", &found.by_thread), ("actor", &found.by_actor)] {
            for (name, checked) in guarantees.named() {
                insert.execute(params![verdict.experiment, client, name, checked.reads, checked.violations])?;
            }
        }
    }
    Ok(())
}

fn fill_figures(connection: &Connection, experiment: u32, found: &ConsistencyFigures) -> Result<(), duckdb::Error> {
    let places = ["?"; 28].join(", ");
    let mut insert = connection.prepare_cached(&format!("INSERT INTO consistency VALUES ({places})"))?;
    insert.execute(params![
        experiment,
        found.registers,
        found.linearizable,
        found.k[1],
        found.k[2],
        found.from_the_future,
        found.writes,
        found.unknown_writes,
        found.reads,
        found.stale_reads,
        found.unattributed_reads,
        found.forgotten_reads,
        found.gamma_ns.p50,
        found.gamma_ns.p95,
        found.gamma_ns.max,
        found.value_gamma_ns.count,
        found.value_gamma_ns.p50,
        found.value_gamma_ns.p95,
        found.value_gamma_ns.max,
        found.within_gamma_percent(),
        found.delta_ns.p95,
        found.delta_ns.max,
        found.k_staleness.p95,
        found.k_staleness.max,
        found.t_staleness_ns.p95,
        found.t_staleness_ns.max,
        found.t_visibility_ns.p95,
        found.t_visibility_ns.max,
    ])?;
    Ok(())
}
