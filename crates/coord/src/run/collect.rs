//! `encore collect`: fetches the logs of a run that replayers still have.

use schemas::run::RunFolder;

use super::runtime;
use crate::failure::Failure;
use crate::fleet::{Fleet, FleetSetting};

/// Fetches the logs of a run, and returns how many. `run_there` is the name that the run has at
/// its replayers.
pub fn collect(run: &RunFolder, run_there: &str, setting: &FleetSetting) -> Result<usize, Failure> {
    let experiments = run.experiments()?;
    runtime::start()?.block_on(async {
        let mut fleet = Fleet::open(setting).await?;
        let fetched = fleet.collect(run_there, &experiments).await;
        fleet.close().await;
        fetched
    })
}
