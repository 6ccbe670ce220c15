//! The phases of an experiment, on all replayers that take part.

use std::path::Path;
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use futures::future::{join_all, try_join_all};
use futures::stream::FuturesUnordered;
use schemas::plan::Plan;
use schemas::rpc::{self, Phase};
use schemas::run::{ClockReading, ReplayReport, ReplayerReport};
use tokio::sync::mpsc;

use super::deal::{self, Share};
use super::link;
use super::replayer::{Prepared, Replayer, Told};
use super::transfer::Logged;
use super::{Order, Progress, Stage, unix_ns};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How long before its start an experiment is proposed, besides the longest round trip:
/// time enough for every replayer to answer.
const START_AHEAD: Duration = Duration::from_millis(100);
/// How long replayers may take to hear that they are to stop.
const STOPPING: Duration = Duration::from_secs(2);

/// A replayer that takes part in an experiment.
pub(super) struct Member<'a> {
    /// The replayer.
    pub(super) replayer: &'a mut Replayer,
    share: Share,
    prepared: Option<Prepared>,
    clock: [ClockReading; 2],
    /// Whether it was lost in the experiment: nothing more is asked of it.
    is_lost: bool,
}

impl<'a> Member<'a> {
    /// A replayer with its share of the plan.
    pub(super) fn new(replayer: &'a mut Replayer, share: Share) -> Member<'a> {
        Member { replayer, share, prepared: None, clock: Default::default(), is_lost: false }
    }

    /// Whether nobody else sees its store.
    pub(super) fn has_own_store(&self) -> bool {
        self.prepared.is_some_and(|prepared| prepared.store_is_own)
    }

    /// Its part in the report of all.
    pub(super) fn told(&self, report: &ReplayReport) -> ReplayerReport {
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
pub(super) fn part(index: usize, members: usize, has_own_store: bool) -> rpc::Part {
    match index {
        _ if members == 1 || has_own_store => rpc::Part::Alone,
        0 => rpc::Part::Leads,
        _ => rpc::Part::Follows,
    }
}

/// Clocks, Offer, Send, Prepare and Load.
pub(super) async fn make_ready(
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
pub(super) async fn run(
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
    let mut running = FuturesUnordered::new();
    for (index, member) in team.iter_mut().enumerate() {
        let part = part(index, members, member.has_own_store());
        let (replayer, sender) = (&mut *member.replayer, sender.clone());
        running.push(async move { (index, replayer.run(index, experiment, part, sender).await) });
    }
    drop(sender);
    let mut lost = vec![false; members];
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
            ended = running.next() => match ended {
                None => break,
                Some((_, Ok(()))) => {}
                Some((index, Err(Failure::Lost(why)))) => {
                    lost[index] = true;
                    faults.push(why);
                }
                Some((_, Err(other))) => failure = failure.or(Some(other)),
            }
        }
        // Without one of them the others measure something else.
        if !stopped && (!faults.is_empty() || failure.is_some()) {
            stopped = true;
            stop(&mut clients).await;
        }
    }
    drop(running);
    for (member, is_lost) in team.iter_mut().zip(lost) {
        member.is_lost = is_lost;
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok((start_unix_ns.unwrap_or_else(|| unix_ns(SystemTime::now())), faults)),
    }
}

async fn stop(clients: &mut [link::Client]) {
    let asked = clients.iter_mut().map(|client| client.stop(rpc::StopRequest {}));
    // One that cannot be reached any more ends its stream with an error.
    let _ = tokio::time::timeout(STOPPING, join_all(asked)).await;
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
pub(super) async fn reports(team: &mut [Member<'_>]) -> (Vec<Option<ReplayReport>>, Vec<String>) {
    let (mut reports, mut faults) = (Vec::new(), Vec::new());
    for member in team {
        if member.is_lost {
            reports.push(None);
            continue;
        }
        let reported = member.replayer.report().await;
        if let Ok(clock) = member.replayer.clock().await {
            member.clock[1] = clock;
        }
        reports.push(match reported {
            Ok(report) => Some(report),
            Err(failure) => {
                faults.push(failure.to_string());
                None
            }
        });
    }
    (reports, faults)
}

/// Fetches the logs of those that do not write them here.
pub(super) async fn collect(team: &mut [Member<'_>], order: &Order<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let logged = Logged { run: order.run.to_string(), experiment: order.plan.experiment };
    for member in team {
        let is_far = !member.is_lost && member.prepared.is_some_and(|prepared| !prepared.logs_are_shared);
        if is_far && let Err(failure) = member.replayer.fetch(&logged, order.folder.root()).await {
            faults.push(format!("its log could not be fetched: {failure}"));
        }
    }
    faults
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
