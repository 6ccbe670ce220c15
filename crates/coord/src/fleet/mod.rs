//! The replayers of a run, driven through one experiment after the other.
//!
//! Each phase is over on every replayer before the next begins: the trace set is
//! there, the plan prepared, the store loaded by one and seen by all, every connection
//! made, a start agreed. While an experiment runs nobody talks about work; the
//! replayers only stream their progress. In the end one of them tells the store where
//! it stands, and the logs are fetched.

mod address;
mod deal;
mod link;
mod local;
mod replayer;
mod transfer;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use futures::future::try_join_all;
use schemas::latency::ResponseTimes;
use schemas::manifest::Manifest;
use schemas::plan::Plan;
use schemas::rpc::{self, Phase};
use schemas::run::{ClockReading, ExperimentFolder, ReplayReport, ReplayerReport};
use tokio::sync::mpsc;

pub use address::Address;
use deal::Share;
use replayer::{Prepared, Replayer, Told};
use transfer::Logged;

use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How long before its start an experiment is proposed, besides the longest round trip:
/// time enough for every replayer to answer.
const START_AHEAD: Duration = Duration::from_millis(100);
/// How long replayers that were lost are waited for.
const RETURN: Duration = Duration::from_secs(60);
/// Clocks further apart than this are worth a word.
const OFFSET_WORTH_A_WORD: Duration = Duration::from_millis(100);

/// Which replayers take part, and what they want to hear.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetSetting {
    /// Where they are; one process on this machine when there are none.
    pub replayers: Vec<Address>,
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
        each: Vec<(String, Progress)>,
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
    /// How late its workers take up work; of several the worst.
    pub dispatch_lag_ns_p99: u64,
}

/// An experiment that ran to its end, or until a replayer was lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How it went, over all replayers.
    pub report: ReplayReport,
    /// When it started, in nanoseconds since 1970: all was loaded by then.
    pub start_unix_ns: i64,
}

/// What is to be run.
pub struct Order<'a> {
    /// The experiment.
    pub plan: &'a Plan,
    /// Its trace set.
    pub manifest: &'a Manifest,
    /// Where plan, report and logs go.
    pub folder: &'a ExperimentFolder,
    /// The name of the run in the folders of replayers that share none with this machine.
    pub run: &'a str,
}

/// The replayers of a run.
pub struct Fleet {
    replayers: Vec<Replayer>,
}

impl Fleet {
    /// Reaches the replayers, or starts one on this machine.
    pub async fn open(setting: &FleetSetting) -> Result<Fleet, Failure> {
        let mut replayers = Vec::new();
        if setting.replayers.is_empty() {
            replayers.push(Replayer::start().await?);
        }
        for address in &setting.replayers {
            match Replayer::reach(address, setting).await {
                Ok(replayer) => replayers.push(replayer),
                Err(failure) => {
                    Fleet { replayers }.close().await;
                    return Err(failure);
                }
            }
        }
        Ok(Fleet { replayers })
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
        let weights: Vec<f64> = self.replayers.iter().map(|replayer| replayer.weight).collect();
        let shares = deal::shares(order.plan, order.manifest, &weights);
        let mut team: Vec<Member<'_>> = Vec::with_capacity(shares.len());
        let mut rest = self.replayers.iter_mut().enumerate();
        for share in shares {
            // Fewer fragments or threads than replayers: the others have no part in it.
            let found = rest.find(|(index, _)| *index == share.replayer);
            let Some((_, replayer)) = found else { unreachable!("shares are in the order of the replayers") };
            team.push(Member { replayer, share, prepared: None, clock: Default::default() });
        }
        tokio::select! {
            made = make_ready(&mut team, order, watch) => made?,
            () = interrupt.wait() => return Err(Failure::Interrupted { run: None }),
        }
        let experiment = order.plan.experiment;
        let (start_unix_ns, mut faults) = run(&mut team, experiment, interrupt, watch).await?;
        let (reports, lost) = reports(&mut team).await;
        faults.extend(lost);
        watch(Stage::Collecting);
        faults.extend(collect(&mut team, order).await);
        let each = team.iter().zip(&reports).filter_map(|(member, report)| Some(member.told(report.as_ref()?)));
        let each: Vec<ReplayerReport> = each.collect();
        let Some(mut report) = deal::merged(reports.into_iter().flatten().collect()) else {
            return Err(Failure::Lost(faults.join("; ")));
        };
        if faults.is_empty() && team.len() > 1 && !team[0].has_own_store() {
            team[0].replayer.settle(&report.positions, report.writes_not_ok).await?;
        }
        (report.replayers, report.faults) = (each, faults);
        Ok(Ran { report, start_unix_ns })
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
                let more = replayer.fetch(&logged, folder.root()).await?;
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
        for replayer in self.replayers {
            replayer.end().await;
        }
    }
}

/// A replayer that takes part in an experiment.
struct Member<'a> {
    replayer: &'a mut Replayer,
    share: Share,
    prepared: Option<Prepared>,
    clock: [ClockReading; 2],
}

impl Member<'_> {
    /// Whether nobody else sees its store.
    fn has_own_store(&self) -> bool {
        self.prepared.is_some_and(|prepared| prepared.store_is_own)
    }

    fn told(&self, report: &ReplayReport) -> ReplayerReport {
        ReplayerReport {
            name: self.replayer.address(),
            host: self.replayer.host.clone(),
            fragments: self.share.plan.fragments.iter().map(|fragment| fragment.fragment).collect(),
            threads: self.share.plan.threads,
            ok: report.ok,
            errors: report.failed + report.unknown + report.skipped,
            worker_cpu_share: report.worker_cpu_share,
            dispatch_lag_ns_p99: report.dispatch_lag_ns_p99,
            clock: self.clock,
        }
    }
}

/// What a member does with the store: several that share one have a leader.
fn part(index: usize, members: usize, has_own_store: bool) -> rpc::Part {
    match index {
        _ if members == 1 || has_own_store => rpc::Part::Alone,
        0 => rpc::Part::Leads,
        _ => rpc::Part::Follows,
    }
}

/// Clocks, Offer, Send, Prepare and Load.
async fn make_ready(
    team: &mut [Member<'_>],
    order: &Order<'_>,
    watch: &mut (dyn FnMut(Stage) + Send),
) -> Result<(), Failure> {
    // Whoever shares a folder knows it by its full name.
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|e| Failure::tool(format!("{}: {e}", path.display())));
    let (trace, folder) = (absolute(&order.plan.trace)?, absolute(order.folder.root())?);
    for member in team.iter_mut() {
        member.clock[0] = member.replayer.clock().await?;
        let sent = &mut |bytes, bytes_total| watch(Stage::Sending { bytes, bytes_total });
        member.replayer.send(&trace, order.manifest, sent).await?;
        let plan = Plan { trace: trace.clone(), ..member.share.plan.clone() };
        member.prepared = Some(member.replayer.prepare(&plan, &folder, order.run).await?);
    }
    let members = team.len();
    for (index, member) in team.iter_mut().enumerate() {
        let part = part(index, members, member.has_own_store());
        member.replayer.load(part, &mut |rows, rows_total| watch(Stage::Loading { rows, rows_total })).await?;
    }
    Ok(())
}

/// Run, AgreeStart and Start; gives the start, and what happened to replayers that were lost.
async fn run(
    team: &mut [Member<'_>],
    experiment: u32,
    interrupt: &mut Interrupt,
    watch: &mut (dyn FnMut(Stage) + Send),
) -> Result<(i64, Vec<String>), Failure> {
    let members = team.len();
    let names: Vec<String> = team.iter().map(|member| member.replayer.name.clone()).collect();
    let clocks: Vec<ClockReading> = team.iter().map(|member| member.clock[0]).collect();
    let mut clients: Vec<_> = team.iter().map(|member| member.replayer.client()).collect();
    let (sender, mut receiver) = mpsc::channel(16);
    let mut running = futures::stream::FuturesUnordered::new();
    for (index, member) in team.iter_mut().enumerate() {
        let part = part(index, members, member.has_own_store());
        running.push(member.replayer.run(index, experiment, part, sender.clone()));
    }
    drop(sender);
    let mut latest = vec![Progress::default(); members];
    let mut phases = vec![Phase::Connecting; members];
    let (mut start_unix_ns, mut stopped) = (None, false);
    let (mut faults, mut failure) = (Vec::new(), None);
    loop {
        tokio::select! {
            biased;
            Some(Told { index, phase, progress }) = receiver.recv() => {
                (phases[index], latest[index]) = (phase, progress);
                if start_unix_ns.is_none() && !stopped && phases.iter().all(|phase| *phase != Phase::Connecting) {
                    match agreed(&mut clients, &clocks, &names).await {
                        Ok(agreed) => start_unix_ns = Some(agreed),
                        Err(Failure::Lost(why)) => faults.push(why),
                        Err(other) => failure = failure.or(Some(other)),
                    }
                } else if start_unix_ns.is_some() {
                    let each = names.iter().cloned().zip(latest.iter().cloned()).collect();
                    watch(Stage::Running { whole: deal::progress(&latest), each });
                }
            }
            () = interrupt.wait(), if !stopped => {
                stopped = true;
                stop(&mut clients).await;
            }
            ended = futures::StreamExt::next(&mut running) => match ended {
                None => break,
                Some(Ok(())) => {}
                Some(Err(Failure::Lost(why))) => faults.push(why),
                Some(Err(other)) => failure = failure.or(Some(other)),
            }
        }
        // Without one of them the others measure something else.
        if !stopped && !(faults.is_empty() && failure.is_none()) {
            stopped = true;
            stop(&mut clients).await;
        }
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok((start_unix_ns.unwrap_or_else(|| unix_ns(SystemTime::now())), faults)),
    }
}

async fn stop(clients: &mut [link::Client]) {
    let asked = clients.iter_mut().map(|client| client.stop(rpc::StopRequest {}));
    // One that cannot be reached any more ends its stream with an error.
    let _ = tokio::time::timeout(Duration::from_secs(2), futures::future::join_all(asked)).await;
}

/// Proposes a start, takes the latest answer, commits it; each by the replayer's own clock.
async fn agreed(clients: &mut [link::Client], clocks: &[ClockReading], names: &[String]) -> Result<i64, Failure> {
    let round_trip_ns = clocks.iter().map(|clock| clock.round_trip_ns).max().unwrap_or(0);
    let ahead = START_AHEAD + Duration::from_nanos(4 * round_trip_ns.max(0) as u64);
    let proposed = unix_ns(SystemTime::now() + ahead);
    let mut start_unix_ns = proposed;
    for ((client, clock), name) in clients.iter_mut().zip(clocks).zip(names) {
        let request = rpc::StartProposal { start_unix_ns: proposed + clock.offset_ns };
        let reply = link::answer(client.agree_start(request)).await.map_err(|status| link::failure(name, &status))?;
        start_unix_ns = start_unix_ns.max(reply.into_inner().start_unix_ns - clock.offset_ns);
    }
    let commits = clients.iter_mut().zip(clocks).zip(names).map(async |((client, clock), name)| {
        let request = rpc::StartRequest { start_unix_ns: start_unix_ns + clock.offset_ns };
        link::answer(client.start(request)).await.map_err(|status| link::failure(name, &status))
    });
    try_join_all(commits).await?;
    Ok(start_unix_ns)
}

/// The report of each, and what happened to those that have none.
async fn reports(team: &mut [Member<'_>]) -> (Vec<Option<ReplayReport>>, Vec<String>) {
    let (mut reports, mut faults) = (Vec::new(), Vec::new());
    for member in team {
        let reported = member.replayer.report().await;
        if let Ok(clock) = member.replayer.clock().await {
            member.clock[1] = clock;
        }
        reports.push(match reported {
            Ok(report) => Some(report),
            // Whoever was lost in the experiment has been told of.
            Err(Failure::Lost(_)) => None,
            Err(failure) => {
                faults.push(failure.to_string());
                None
            }
        });
    }
    (reports, faults)
}

/// Fetches the logs of those that do not write them here.
async fn collect(team: &mut [Member<'_>], order: &Order<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let logged = Logged { run: order.run.to_string(), experiment: order.plan.experiment };
    for member in team {
        let is_far = member.prepared.is_some_and(|prepared| !prepared.logs_are_shared);
        if is_far && let Err(failure) = member.replayer.fetch(&logged, order.folder.root()).await {
            faults.push(format!("its log could not be fetched: {failure}"));
        }
    }
    faults
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_speaks_to_the_store_for_all() {
        assert_eq!(part(0, 1, false), rpc::Part::Alone);
        assert_eq!([part(0, 3, false), part(1, 3, false)], [rpc::Part::Leads, rpc::Part::Follows]);
        assert_eq!(part(1, 3, true), rpc::Part::Alone);
    }
}
