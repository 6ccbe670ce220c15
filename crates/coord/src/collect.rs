//! `coord collect`: the logs that replayers still have of a run.

use schemas::run::RunFolder;

use crate::args::{CollectArgs, FleetArgs};
use crate::failure::Failure;
use crate::fleet::Fleet;
use crate::resolve;

/// Fetches them; gives what to tell of it.
pub fn collect(args: &CollectArgs) -> Result<String, Failure> {
    let run = RunFolder::new(&args.run);
    let document = run.read_document().map_err(Failure::usage)?;
    let (replayers, secrets) = (args.replayers.clone(), args.secrets.clone());
    let setting = resolve::fleet(&FleetArgs { replayers, secrets, ..FleetArgs::default() })?;
    let experiments = run.experiments()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Failure::tool(format!("cannot start the coordinator's runtime: {e}")))?;
    let fetched = runtime.block_on(async {
        let mut fleet = Fleet::open(&setting).await?;
        let fetched = fleet.collect(&document.fleet_name(), &experiments).await;
        fleet.close().await;
        fetched
    })?;
    Ok(match fetched {
        0 => format!("the replayers have no log that {} lacks", args.run.display()),
        n => format!("{n} logs fetched\nnext:\n  ./encore analyze summary {}", args.run.display()),
    })
}
