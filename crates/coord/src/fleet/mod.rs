//! The replayers of a run, driven through one experiment after the other.
//!
//! Each phase is over on every replayer before the next begins: the trace set is
//! there, the plan prepared, the store loaded by one and seen by all, every connection
//! made, a start agreed (again after a warm-up). While an experiment runs nobody talks about work; the
//! replayers only stream their progress. In the end one of them tells the store where
//! it stands, and the logs are fetched.

mod address;
mod calibrate;
mod deal;
mod link;
mod local;
mod phases;
mod replayer;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::StreamExt;
use futures::future::join_all;
use schemas::latency::ResponseTimes;
use schemas::manifest::Manifest;
use schemas::plan::Plan;
use schemas::run::{ExperimentFolder, ReplayReport, ReplayerReport};
use schemas::sla::Sla;

pub use address::Address;
use phases::Member;
use replayer::Replayer;
use transfer::Logged;

use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How long replayers that were lost are waited for.
const RETURN: Duration = Duration::from_secs(60);
/// Clocks further apart than this are worth a word.
const OFFSET_WORTH_A_WORD: Duration = Duration::from_millis(100);

/// Which replayers take part, and what they want to hear.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetSetting {
    /// Where they are; processes on this machine when there are none.
    pub replayers: Vec<Address>,
    /// How many take part, at least one.
    pub count: usize,
    /// Whether their weights are measured.
    pub calibrate: bool,
    /// Whether logs stay where they are written, and only their summaries travel.
    pub leave_logs: bool,
    /// A folder with `ca.pem`, `coordinator.pem` and `coordinator.key`, for TLS.
    pub certificates: Option<PathBuf>,
    /// The secret that they ask for.
    pub token: Option<String>,
}

/// What goes on, for whoever watches.
#[derive(Debug, Clone)]
pub enum Stage {
    /// The trace set is on its way to replayers that lack it.
    Sending {
        /// Bytes so far.
        bytes: u64,
        /// Bytes in all.
        bytes_total: u64,
    },
    /// The store is brought to its initial state.
    Loading {
        /// Rows so far.
        rows: u64,
        /// Rows in all.
        rows_total: u64,
    },
    /// The experiment runs.
    Running {
        /// All replayers together.
        whole: Progress,
        /// Each one, with its name.
        each: Vec<(String, Arc<Progress>)>,
    },
    /// The logs are being fetched.
    Collecting,
}

/// The figures of a running experiment so far.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Whether this is of the warm-up: the measured part counts from 0 again.
    pub is_warmup: bool,
    /// Time since its start.
    pub elapsed_ns: i64,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed, are of unknown fate, or were not issued.
    pub errors: u64,
    /// Response times of those that succeeded.
    pub response_times: ResponseTimes,
    /// Processors that the replayer uses; of several the sum.
    pub cpus_used: f64,
    /// How late its workers have taken up work; of several the latest.
    pub dispatch_lag_ns_max: u64,
}

/// An experiment that ran to its end, or until a replayer was lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How it went, over all replayers.
    pub report: ReplayReport,
    /// When it started, in nanoseconds since 1970: all was loaded by then.
    pub start_unix_ns: i64,
}

/// What becomes of the logs of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Logs {
    /// They are fetched, unless they are written here.
    Fetched,
    /// Those that are not written here are summarized where they are, for this SLA.
    Left(Sla),
    /// There are none: only the replayers are measured.
    Unwritten,
}

/// What is to be run.
pub struct Order<'a> {
    /// The experiment.
    pub plan: &'a Plan,
    /// Its trace set.
    pub manifest: &'a Manifest,
    /// Where plan, report and logs go.
    pub folder: &'a ExperimentFolder,
    /// What becomes of the logs.
    pub logs: Logs,
    /// The name of the run in the folders of replayers that share none with this machine.
    pub run: &'a str,
}

/// The replayers of a run.
pub struct Fleet {
    replayers: Vec<Replayer>,
}

impl Fleet {
    /// Reaches the replayers, or starts them on this machine.
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
            // Those that were reached are given back.
            Some(failure) => {
                fleet.close().await;
                Err(failure)
            }
        }
    }

    /// What people should know of it: each replayer with its machine.
    pub fn told(&self) -> Vec<String> {
        let remote = self.replayers.iter().filter(|replayer| !replayer.is_local());
        let told = remote.map(|replayer| {
            let (host, weight) = (&replayer.host, replayer.weight);
            let weight = if weight == 1.0 { String::new() } else { format!(", weight {weight}") };
            format!("{} on {} ({}, {} processors{weight})", replayer.name, host.name, host.system, host.cpus)
        });
        told.collect()
    }

    /// Runs one experiment. After an interrupt it ends early and is reported like any
    /// other; an interrupt before it runs is an error, and so is a replayer that was lost
    /// before. One that is lost later leaves a report that says so.
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
        let each = team.iter().zip(&reports).filter_map(|(member, report)| Some(member.told(report.as_ref()?)));
        let each: Vec<ReplayerReport> = each.collect();
        let Some(mut report) = deal::merged(reports.into_iter().flatten().collect(), order.manifest) else {
            return Err(Failure::Lost(faults.join("; ")));
        };
        report.replayers = each;
        watch(Stage::Collecting);
        faults.extend(phases::collect(&mut team, order, &report).await);
        if faults.is_empty() && team.len() > 1 && !team[0].has_own_store() {
            team[0].replayer.settle(&report.positions, report.writes_not_ok).await?;
        }
        report.faults = faults;
        Ok(Ran { report, start_unix_ns })
    }

    /// Those that take part in an experiment, each with its share.
    fn team(&mut self, order: &Order<'_>) -> Vec<Member<'_>> {
        let weights: Vec<f64> = self.replayers.iter().map(|replayer| replayer.weight).collect();
        let shares = deal::shares(order.plan, order.manifest, &weights);
        let mut rest = self.replayers.iter_mut().enumerate();
        let members = shares.into_iter().map(|share| {
            // Fewer fragments or threads than replayers: the others have no part in it.
            let found = rest.find(|(index, _)| *index == share.replayer);
            let Some((_, replayer)) = found else { unreachable!("shares are in the order of the replayers") };
            Member::new(replayer, share)
        });
        members.collect()
    }

    /// Makes sure that all replayers are there again, after one was lost.
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

    /// Fetches the logs of these experiments of a run that the replayers have; says how many.
    /// A verdict without them is taken away, so that the next look makes it anew.
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

    /// Lets every replayer end.
    pub async fn close(self) {
        join_all(self.replayers.into_iter().map(Replayer::end)).await;
    }
}

/// What to say of clocks that stand far apart: nothing depends on it but the times in
/// the logs of different fragments.
pub fn clock_note(report: &ReplayReport) -> Option<String> {
    let far = OFFSET_WORTH_A_WORD.as_nanos() as u64;
    let apart = report.replayers.iter().filter(|replayer| {
        let [before, after] = replayer.clock;
        before.offset_ns.unsigned_abs() > far || before.offset_ns.abs_diff(after.offset_ns) > far
    });
    let told: Vec<String> = apart
        .map(|replayer| {
            let [before, after] = replayer.clock.map(|reading| reading.offset_ns as f64 / 1e6);
            format!("{} by {before:+.1} ms before the experiment, {after:+.1} ms after it", replayer.name)
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "note: clocks differ from this machine's ({}); the start allows for it, and no verdict depends on it",
            told.join("; ")
        )
    })
}

fn unix_ns(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}
