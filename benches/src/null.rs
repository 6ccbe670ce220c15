//! The cost of the client itself: each tool against a back end that does nothing.

use std::path::Path;

use crate::Settings;
use crate::sample::{Figures, Sample};
use crate::table::Tool;
use crate::tools::encore::{Encore, Replay};
use crate::tools::go_ycsb::{self, GoYcsb};
use crate::tools::unlogged;
use crate::tools::ycsb::{self, Ycsb};

/// The table's name.
pub const GROUP: &str = "A back end that does nothing";

const CASE: &str = "95% reads, 5% writes";

/// BG's actions with 5% writes, the mix of the quickstart.
const SPEC: &str = include_str!("../../traces/quickstart.toml");

/// Runs all rounds.
pub fn run(settings: &Settings, folder: &Path, tools: &mut Vec<Tool>, samples: &mut Vec<Sample>) -> anyhow::Result<()> {
    let operations = settings.operations;
    let encore = Encore::new(folder)?;
    let trace = encore.trace("null", SPEC, &[&format!("sessions={operations}")])?;
    tools.push(Tool::here(GROUP, "Encore", &crate::encore_version(), "null:, BG's actions, every operation logged"));
    tools.push(Tool::here(GROUP, "Encore, no log", &crate::encore_version(), "as above, without the log"));
    let go_ycsb =
        Tool::find(tools, GROUP, "go-ycsb", go_ycsb::SETTINGS, GoYcsb::find(&settings.peers), GoYcsb::version);
    let ycsb = Tool::find(tools, GROUP, "YCSB", ycsb::SETTINGS, Ycsb::find(&settings.peers), Ycsb::version);

    for round in 1..=settings.rounds {
        for threads in [1, 64, 1000] {
            let mut add = |tool, figures: Figures| {
                settings.progress(round, GROUP, CASE, threads, tool, &figures);
                samples.push(Sample { group: GROUP, case: CASE.into(), threads, tool, figures });
            };
            let replay = Replay {
                trace: &trace,
                store: "null:",
                threads,
                seconds: None,
                continued: false,
                shared_actors: false,
            };
            let figures = encore.replay(&replay)?;
            // The response time of `null:` is only the cost of the clock.
            add("Encore", Figures { mean_us: None, p50_us: None, p99_us: None, ..figures });
            add("Encore, no log", unlogged::run(&trace, threads)?);
            if let Some(go_ycsb) = &go_ycsb {
                add("go-ycsb", go_ycsb.run(threads, operations)?);
            }
            if let Some(ycsb) = &ycsb {
                add("YCSB", ycsb.run(threads, operations)?);
            }
        }
    }
    Ok(())
}
