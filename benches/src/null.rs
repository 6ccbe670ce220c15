//! The cost of the client itself: each tool against a back end that does nothing.

use std::path::Path;

use crate::Settings;
use crate::report::Section;
use crate::sample::{Figures, Sample, Spread};
use crate::tools::encore::{Encore, Replay};
use crate::tools::go_ycsb::{self, GoYcsb};
use crate::tools::unlogged;
use crate::tools::ycsb::{self, Ycsb};

/// The table's name.
pub const GROUP: &str = "A back end that does nothing";

const CASE: &str = "95% reads, 5% writes";

/// The same through the `kv` family, which is exactly the peers' workload.
const KV_CASE: &str = "kv: 95% reads, 5% updates";

/// BG's actions with 5% writes, the mix of the quickstart.
const SPEC: &str = include_str!("../../traces/quickstart.toml");

/// YCSB's workload B.
const KV_SPEC: &str = include_str!("../../traces/ycsb-b.toml");

/// Encore must log this many `kv` operations for each second of CPU time, with this many threads.
const KV_GOAL: (f64, u32) = (4_500_000.0, 64);

/// Runs all rounds.
pub fn run(settings: &Settings, folder: &Path, section: &mut Section) -> anyhow::Result<()> {
    let operations = settings.operations;
    let encore = Encore::new(folder)?;
    let sessions = format!("sessions={operations}");
    let traces =
        [(CASE, encore.trace("null", SPEC, &[&sessions])?), (KV_CASE, encore.trace("kv", KV_SPEC, &[&sessions])?)];
    section.here(
        "Encore",
        &crate::encore_version(),
        "null:, BG's actions, then YCSB's workload B, every operation logged",
    );
    section.here("Encore, no log", &crate::encore_version(), "as above, without the log");
    let go_ycsb = section.find("go-ycsb", go_ycsb::SETTINGS, GoYcsb::find(&settings.peers), GoYcsb::version);
    let ycsb = section.find("YCSB", ycsb::SETTINGS, Ycsb::find(&settings.peers), Ycsb::version);

    for round in 1..=settings.rounds {
        for threads in [1, 64, 1000] {
            let mut add = |case: &str, tool: &str, figures: Figures| {
                settings.progress(round, GROUP, case, threads, tool, &figures);
                section.samples.push(Sample { case: case.into(), threads, tool: tool.into(), figures });
            };
            for (case, trace) in &traces {
                let replay =
                    Replay { trace, store: "null:", threads, seconds: None, continued: false, shared_actors: false };
                let figures = encore.replay(&replay)?;
                // The response time of `null:` is only the cost of the clock.
                add(case, "Encore", Figures { mean_us: None, p50_us: None, p99_us: None, ..figures });
                add(case, "Encore, no log", unlogged::run(trace, threads)?);
            }
            if let Some(go_ycsb) = &go_ycsb {
                add(CASE, "go-ycsb", go_ycsb.run(threads, operations)?);
            }
            if let Some(ycsb) = &ycsb {
                add(CASE, "YCSB", ycsb.run(threads, operations)?);
            }
        }
    }
    section.goals = kv_goal(&section.samples).into_iter().collect();
    Ok(())
}

/// Whether the log of `kv` operations is as cheap as it must be; None if that was not measured.
fn kv_goal(samples: &[Sample]) -> Option<String> {
    let (goal, threads) = KV_GOAL;
    let of = |sample: &&Sample| sample.case == KV_CASE && sample.tool == "Encore" && sample.threads == threads;
    let measured = Spread::of(samples.iter().filter(of).map(|sample| sample.figures.operations_per_cpu_s()))?.median;
    let word = if measured >= goal { "met" } else { "missed" };
    Some(format!("at least {goal:.0} logged kv operations a CPU second at T = {threads}: {word}, {measured:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goal_is_judged_by_the_median_of_kv() {
        let sample = |case: &str, cpu: f64| {
            let figures = Figures { client_cpu_s_per_million: cpu, ..Figures::default() };
            Sample { case: case.into(), threads: 64, tool: "Encore".into(), figures }
        };
        let check = |samples: &[Sample], expect: &str| assert!(kv_goal(samples).unwrap().ends_with(expect));
        check(&[sample(KV_CASE, 0.2), sample(KV_CASE, 0.25), sample(KV_CASE, 0.1)], ": met, 5000000");
        check(&[sample(KV_CASE, 0.25), sample(CASE, 0.1)], ": missed, 4000000");
        assert_eq!(kv_goal(&[sample(CASE, 0.1)]), None);
    }
}
