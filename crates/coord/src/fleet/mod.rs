//! The replayers of a run, driven through one experiment after the other.
//!
//! Each phase ends on every replayer before the next begins. All get the trace set and the plan.
//! One replayer loads the store and the others check it. All connections are made, and the start
//! is agreed (again after a warm-up). While an experiment runs, replayers only stream their
//! progress. Then all items are read, where the plan says so; the coordinator fetches the logs, and one replayer records in the store where
//! it stands.

mod address;
mod calibrate;
pub mod certs;
mod clock;
mod deal;
mod link;
mod local;
mod order;
mod phases;
mod replayer;
mod transfer;

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use schemas::run::{EndReason, ExperimentFolder, ReplayerReport};
use schemas::words::plural;

use self::phases::Participant;
use self::replayer::Replayer;
use self::transfer::Logged;
use crate::failure::Failure;
use crate::terminal::{Interrupt, Stage};

pub use self::address::Address;
pub use self::clock::clock_note;
pub use self::order::{FleetSetting, Logs, Order, Ran};

/// How long the coordinator waits for lost replayers to return.
const RETURN: Duration = Duration::from_secs(60);

/// The replayers of a run.
pub struct Fleet {
    replayers: Vec<Replayer>,
}

impl Fleet {
    /// Connects to the replayers, or starts them on this machine.
    pub async fn open(setting: &FleetSetting) -> Result<Fleet, Failure> {
        let found: Vec<Result<Replayer, Failure>> = match setting.replayers.as_slice() {
            [] => phases::together((0..setting.count).map(|_| Replayer::start())).collect().await,
            named => phases::together(named.iter().map(|address| Replayer::reach(address, setting))).collect().await,
        };
        let (mut replayers, mut failure) = (Vec::new(), None);
        for found in found {
            match found {
                Ok(replayer) => replayers.push(replayer),
                Err(why) => failure = failure.or(Some(why)),
            }
        }
        let fleet = Fleet { replayers };
        match failure {
            None => Ok(fleet),
            // The replayers that were reached are released.
            Some(failure) => {
                fleet.close().await;
                Err(failure)
            }
        }
    }

    /// What the user should know of the fleet: each replayer on another machine, with that
    /// machine.
    pub fn descriptions(&self) -> Vec<String> {
        let remote = self.replayers.iter().filter(|replayer| !replayer.is_local());
        let lines = remote.map(|replayer| {
            let (host, weight) = (&replayer.host, replayer.weight);
            let weight = if weight == 1.0 { String::new() } else { format!(", weight {weight}") };
            let processors = plural(host.cpus.into(), "processor");
            format!("{} on {} ({}, {processors}{weight})", replayer.name, host.name, host.system)
        });
        lines.collect()
    }

    /// Runs one experiment. After an interrupt it ends early and is reported like any other. An
    /// interrupt before it runs is an error, and so is a replayer that is lost before it runs. A
    /// replayer that is lost later leaves a report that says so.
    pub async fn experiment(
        &mut self,
        order: &Order<'_>,
        interrupt: &mut Interrupt,
        watch: &mut (dyn FnMut(Stage) + Send),
    ) -> Result<Ran, Failure> {
        let mut team = self.team(order);
        tokio::select! {
            made = phases::make_ready(&mut team, order, watch) => made?,
            () = interrupt.wait() => return Err(Failure::Interrupted { run: None }),
        }
        let (start_unix_ns, mut faults) = phases::run(&mut team, order, interrupt, watch).await?;
        let (reports, unreported) = phases::reports(&mut team).await;
        faults.extend(unreported);
        let each =
            team.iter().zip(&reports).filter_map(|(participant, report)| Some(participant.report_of(report.as_ref()?)));
        let each: Vec<ReplayerReport> = each.collect();
        let Some(mut report) = deal::merged(reports.into_iter().flatten().collect(), order.manifest) else {
            return Err(Failure::Lost(faults.join("; ")));
        };
        report.replayers = each;
        let is_read = order.plan.closing_read.is_some() && faults.is_empty() && report.end != EndReason::Interrupted;
        let unread = match is_read {
            true => phases::closing_read(&mut team, order, interrupt, watch).await,
            false => Vec::new(),
        };
        watch(Stage::Collecting);
        faults.extend(phases::collect(&mut team, order, &report).await);
        if faults.is_empty() && team.len() > 1 && !team[0].has_own_store() {
            team[0].replayer.settle(&report.positions, report.writes_not_ok).await?;
        }
        report.faults = faults;
        Ok(Ran { report, start_unix_ns, unread })
    }

    /// The replayers that take part in an experiment, each with its share.
    fn team(&mut self, order: &Order<'_>) -> Vec<Participant<'_>> {
        let weights: Vec<f64> = self.replayers.iter().map(|replayer| replayer.weight).collect();
        let shares = deal::shares(order.plan, order.manifest, &weights);
        let mut rest = self.replayers.iter_mut().enumerate();
        let participants = shares.into_iter().map(|share| {
            // With fewer fragments or threads than replayers, the others do not take part.
            let found = rest.find(|(index, _)| *index == share.replayer);
            let Some((_, replayer)) = found else { unreachable!("shares are in the order of the replayers") };
            Participant::new(replayer, share)
        });
        participants.collect()
    }

    /// Waits until all replayers are there again, after one was lost.
    pub async fn recover(&mut self, interrupt: &mut Interrupt) -> Result<(), Failure> {
        let until = Instant::now() + RETURN;
        for replayer in &mut self.replayers {
            tokio::select! {
                recovered = replayer.recover(until) => recovered?,
                () = interrupt.wait() => return Err(Failure::Interrupted { run: None }),
            }
        }
        Ok(())
    }

    /// Fetches the logs of these experiments of a run that the replayers have, and returns how
    /// many. A verdict that was made without them is removed, so that the next analysis makes it
    /// again.
    pub async fn collect(&mut self, run: &str, experiments: &[(u32, ExperimentFolder)]) -> Result<usize, Failure> {
        let mut fetched = 0;
        for replayer in &mut self.replayers {
            for (experiment, folder) in experiments {
                let logged = Logged { run: run.to_string(), experiment: *experiment };
                let more = replayer.fetch(&logged, folder).await?;
                fetched += more;
                let verdict = folder.verdict();
                if more > 0 && verdict.exists() {
                    std::fs::remove_file(&verdict).map_err(schemas::files::at(&verdict))?;
                }
            }
        }
        Ok(fetched)
    }

    /// Releases every replayer, and ends the local ones.
    pub async fn close(self) {
        join_all(self.replayers.into_iter().map(Replayer::end)).await;
    }
}
