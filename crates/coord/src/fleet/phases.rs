//! The phases of an experiment, on all replayers that take part.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures::future::{join_all, try_join, try_join_all};
use futures::stream::{self, FuturesUnordered};
use futures::{Stream, StreamExt, TryStreamExt};
use schemas::plan::{FragmentPlan, Plan};
use schemas::rpc::{self, Phase};
use schemas::run::{ClockReading, ExperimentFolder, ReplayReport, ReplayerReport};
use tokio::sync::mpsc;

use super::clock::unix_ns;
use super::deal::{self, Share};
use super::link;
use super::order::{Logs, Order};
use super::replayer::{Prepared, Replayer, Update};
use super::transfer::Logged;
use crate::failure::Failure;
use crate::terminal::{Interrupt, Progress, Stage};

/// How long before its start an experiment is proposed, in addition to four times the longest
/// round trip. That is enough for every replayer to answer, and to receive what was agreed.
const START_AHEAD: Duration = Duration::from_millis(100);
/// The same if several replayers are to start together.
const START_AHEAD_TOGETHER: Duration = Duration::from_millis(500);
/// How much later than the others a replayer may start: a hundredth of a second.
const LATE: Duration = Duration::from_millis(10);
/// How often progress is merged and shown, at most.
const SHOWING: Duration = Duration::from_millis(500);
/// How many replayers are prepared at a time, while each receives parts of files.
const AT_A_TIME: usize = 32;
/// How long the coordinator waits for answers to a stop, and how soon it repeats the stop for
/// replayers that still run: one may have been out of reach.
const STOPPING: Duration = Duration::from_secs(2);
const STOPPING_AGAIN: Duration = Duration::from_secs(1);

/// A replayer that takes part in an experiment.
pub(super) struct Participant<'a> {
    /// The replayer.
    pub(super) replayer: &'a mut Replayer,
    share: Share,
    prepared: Option<Prepared>,
    clock: [ClockReading; 2],
    /// Whether it was lost in the experiment. The coordinator then makes no more calls to it.
    is_lost: bool,
    /// Whether the experiment ended because it was overloaded.
    is_overloaded: bool,
}

impl<'a> Participant<'a> {
    /// A replayer with its share of the plan.
    pub(super) fn new(replayer: &'a mut Replayer, share: Share) -> Participant<'a> {
        let clock = Default::default();
        Participant { replayer, share, prepared: None, clock, is_lost: false, is_overloaded: false }
    }

    /// The replayer's index in the fleet.
    pub(super) fn index(&self) -> usize {
        self.share.replayer
    }

    /// Whether no other replayer sees its store.
    pub(super) fn has_own_store(&self) -> bool {
        self.prepared.is_some_and(|prepared| prepared.store_is_own)
    }

    /// Whether its logs are on its own disk.
    fn has_logs(&self) -> bool {
        !self.is_lost && self.prepared.is_some_and(|prepared| !prepared.logs_are_shared)
    }

    /// Its part of the merged report.
    pub(super) fn report_of(&self, report: &ReplayReport) -> ReplayerReport {
        ReplayerReport {
            name: self.replayer.address(),
            host: self.replayer.host.clone(),
            fragments: self.share.plan.fragments.iter().map(|fragment| fragment.fragment).collect(),
            threads: self.share.plan.threads,
            ok: report.ok,
            errors: report.failed + report.unknown + report.skipped,
            worker_cpu_share: report.worker_cpu_share,
            dispatch_lag_ns_mean: report.dispatch_lag_ns_mean,
            dispatch_lag_ns_p99: report.dispatch_lag_ns_p99,
            run_delay_share: report.run_delay_share,
            idle_ns: report.idle_ns,
            overloaded: self.is_overloaded,
            clock: self.clock,
        }
    }
}

/// What a participant does with the store. Participants that share a store have a leader.
pub(super) fn part(index: usize, participants: usize, has_own_store: bool) -> rpc::Part {
    match index {
        _ if participants == 1 || has_own_store => rpc::Part::Alone,
        0 => rpc::Part::Leads,
        _ => rpc::Part::Follows,
    }
}

/// The calls Clock, Offer, Send, Prepare and Load.
pub(super) async fn make_ready(
    team: &mut [Participant<'_>],
    order: &Order<'_>,
    watch: &mut (dyn FnMut(Stage) + Send),
) -> Result<(), Failure> {
    // Replayers that share a folder know it by its absolute path.
    let (trace, folder) = (full_name(&order.plan.trace)?, full_name(order.folder.root())?);
    let participants = team.len();
    let sending = Mutex::new((vec![(0, 0); participants], &mut *watch));
    let prepared = team.iter_mut().enumerate().map(async |(index, participant)| {
        participant.clock[0] = participant.replayer.clock().await?;
        let sent = &mut |bytes, bytes_total| {
            let (each, watch) = &mut *sending.lock().unwrap_or_else(PoisonError::into_inner);
            each[index] = (bytes, bytes_total);
            let (bytes, bytes_total) = each.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            watch(Stage::Sending { bytes, bytes_total });
        };
        participant.replayer.send(&trace, order.trace_url, order.manifest, sent).await?;
        let plan = Plan { trace: trace.clone(), ..participant.share.plan.clone() };
        participant.prepared = Some(participant.replayer.prepare(&plan, &folder, order).await?);
        Ok::<(), Failure>(())
    });
    together(prepared).try_collect::<()>().await?;
    let Some((first, rest)) = team.split_first_mut() else { return Ok(()) };
    let has_own = first.has_own_store();
    let mut loaded = |rows, rows_total| watch(Stage::Loading { rows, rows_total });
    let first_loads = first.replayer.load(part(0, participants, has_own), &mut loaded);
    let rest_loads = rest.iter_mut().enumerate().map(async |(index, participant)| {
        let part = part(index + 1, participants, participant.has_own_store());
        participant.replayer.load(part, &mut |_, _| ()).await.map(drop)
    });
    let rest_loads = together(rest_loads).try_collect::<()>();
    let conditions = if has_own {
        try_join(first_loads, rest_loads).await?.0
    } else {
        let conditions = first_loads.await?;
        // The others check that the store is loaded.
        rest_loads.await?;
        conditions
    };
    if conditions > 0 {
        watch(Stage::Loaded { conditions });
    }
    Ok(())
}

/// The absolute path of a folder. Links are kept, since replayers that share the folder may have
/// other links. A path with `..` is resolved, since replayers refuse it.
fn full_name(path: &Path) -> Result<PathBuf, Failure> {
    let full = std::path::absolute(path).map_err(|e| Failure::tool(format!("{}: {e}", path.display())))?;
    if full.components().all(|part| part != Component::ParentDir) {
        return Ok(full);
    }
    // A folder that does not exist yet is below one that does.
    let real = full.ancestors().find_map(|ancestor| Some((ancestor, std::fs::canonicalize(ancestor).ok()?)));
    let below = real.and_then(|(ancestor, real)| Some(real.join(full.strip_prefix(ancestor).ok()?)));
    Ok(below.unwrap_or(full))
}

/// Makes calls to many replayers, [`AT_A_TIME`] of them at a time.
pub(super) fn together<F: Future>(calls: impl IntoIterator<Item = F>) -> impl Stream<Item = F::Output> {
    stream::iter(calls).buffered(AT_A_TIME)
}

/// The call Run, and AgreeStart and Start whenever all replayers wait for a start. An overload of one
/// replayer ends the experiment on all of them, if the plan says so. Returns the first start, and what
/// happened to replayers that were lost.
pub(super) async fn run(
    team: &mut [Participant<'_>],
    order: &Order<'_>,
    interrupt: &mut Interrupt,
    watch: &mut (dyn FnMut(Stage) + Send),
) -> Result<(i64, Vec<String>), Failure> {
    let experiment = order.plan.experiment;
    let participants = team.len();
    let names: Vec<String> = team.iter().map(|participant| participant.replayer.name.clone()).collect();
    let clocks: Vec<ClockReading> = team.iter().map(|participant| participant.clock[0]).collect();
    let mut clients: Vec<_> = team.iter().map(|participant| participant.replayer.client()).collect();
    let (sender, mut receiver) = mpsc::channel(16);
    let mut running = FuturesUnordered::new();
    let warm_up = team.iter().any(|participant| participant.share.plan.fragments.iter().any(FragmentPlan::has_warmup));
    for (index, participant) in team.iter_mut().enumerate() {
        let part = part(index, participants, participant.has_own_store()).into();
        let (replayer, sender) = (&mut *participant.replayer, sender.clone());
        let run = rpc::RunRequest { experiment, part, warm_up };
        running.push(async move { (index, replayer.run(index, run, sender).await) });
    }
    drop(sender);
    let (mut lost, mut overloaded) = (vec![false; participants], vec![false; participants]);
    let mut latest: Vec<Arc<Progress>> = (0..participants).map(|_| Arc::default()).collect();
    let mut shown = Instant::now();
    // None once the replayer has ended the experiment.
    let mut phases = vec![Some(Phase::Connecting); participants];
    let (mut start_unix_ns, mut stopped) = (None, None);
    let (mut faults, mut failure) = (Vec::new(), None);
    let mut again = tokio::time::interval(STOPPING_AGAIN);
    loop {
        tokio::select! {
            biased;
            Some(Update { index, phase, is_overloaded, progress }) = receiver.recv() => {
                (phases[index], latest[index]) = (Some(phase), Arc::new(progress));
                // Once stopped, the others say the same.
                overloaded[index] |= is_overloaded && stopped.is_none();
                // Merging all of them at every message would cost too much with a thousand
                // replayers.
                if start_unix_ns.is_some() && shown.elapsed() >= SHOWING {
                    shown = Instant::now();
                    let each = names.iter().cloned().zip(latest.iter().cloned()).collect();
                    watch(Stage::Running { whole: Box::new(deal::progress(&latest)), each });
                }
            }
            () = interrupt.wait(), if stopped != Some(Stop::Interrupted) => {
                stopped = Some(Stop::Interrupted);
                stop(&mut clients, &phases, Stop::Interrupted, interrupt.is_urgent()).await;
                again.reset();
            }
            ended = running.next() => match ended {
                None => break,
                Some((index, ended)) => {
                    phases[index] = None;
                    match ended {
                        Ok(()) => {}
                        Err(Failure::Lost(why)) => {
                            lost[index] = true;
                            faults.push(why);
                        }
                        Err(other) => failure = failure.or(Some(other)),
                    }
                }
            },
            // This branch comes last, and only some time after the previous stop: the other
            // branches have to read the messages of the other replayers.
            _ = again.tick(), if stopped.is_some() => {
                stop(&mut clients, &phases, stopped.unwrap_or(Stop::Interrupted), interrupt.is_urgent()).await;
                again.reset();
            }
        }
        if stopped.is_none()
            && let Some(waiting) = all_waiting(&phases)
        {
            // The next message of these replayers is about what starts now.
            waiting.iter().for_each(|index| phases[*index] = Some(Phase::Measuring));
            match agreed(&mut clients, &clocks, &names, &waiting).await {
                Ok((agreed, late)) => {
                    start_unix_ns = start_unix_ns.or(Some(agreed));
                    // A calibration measures each replayer in its own time, so a late start does
                    // not matter there.
                    faults.extend(late.into_iter().filter(|_| order.logs != Logs::Unwritten));
                }
                Err(Failure::Lost(why)) => faults.push(why),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        // If one replayer is missing, the others measure something else.
        let why = match !faults.is_empty() || failure.is_some() {
            true => Some(Stop::Interrupted),
            false => overloaded.contains(&true).then_some(Stop::Overloaded),
        };
        if let Some(why) = why.filter(|why| stopped.is_none_or(|before| before < *why)) {
            stopped = Some(why);
            stop(&mut clients, &phases, why, interrupt.is_urgent()).await;
            again.reset();
        }
    }
    drop(running);
    for ((participant, is_lost), is_overloaded) in team.iter_mut().zip(lost).zip(overloaded) {
        (participant.is_lost, participant.is_overloaded) = (is_lost, is_overloaded);
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok((start_unix_ns.unwrap_or_else(|| unix_ns(SystemTime::now())), faults)),
    }
}

/// The replayers that wait for a start, once no other replayer is still on its way there. A
/// replayer that has ended in its warm-up takes no part in what follows.
fn all_waiting(phases: &[Option<Phase>]) -> Option<Vec<usize>> {
    let waits = |phase: &Option<Phase>| matches!(phase, Some(Phase::Ready | Phase::Warm));
    let waiting: Vec<usize> = (0..phases.len()).filter(|index| waits(&phases[*index])).collect();
    let is_all = phases.iter().all(|phase| phase.is_none() || waits(phase));
    (is_all && !waiting.is_empty()).then_some(waiting)
}

/// Why the replayers are stopped. A later one takes the place of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stop {
    /// One of them was overloaded. Their reports say so.
    Overloaded,
    /// The user interrupted the experiment, or it failed.
    Interrupted,
}

/// Stops the replayers that have not ended. With `abandon` they do not wait for operations in
/// flight.
async fn stop(clients: &mut [link::Client], phases: &[Option<Phase>], why: Stop, abandon: bool) {
    let request = rpc::StopRequest { abandon, overloaded: why == Stop::Overloaded };
    let running = clients.iter_mut().zip(phases).filter(|(_, phase)| phase.is_some());
    let asked = running.map(|(client, _)| client.stop(request));
    // A replayer that cannot be reached is asked again, or its stream ends with an error.
    let _ = tokio::time::timeout(STOPPING, join_all(asked)).await;
}

/// How much later than proposed a replayer may want to start. By then the proposal has reached
/// it, so it can only want more if its clock has moved.
const PUT_OFF_MAX: Duration = Duration::from_secs(5);

/// Proposes a start to the replayers that wait, takes the latest answer and commits it; each by
/// the replayer's own clock. Returns the start, and which replayers received it too late to start
/// with the others.
async fn agreed(
    clients: &mut [link::Client],
    clocks: &[ClockReading],
    names: &[String],
    waiting: &[usize],
) -> Result<(i64, Vec<String>), Failure> {
    let round_trip_ns = clocks.iter().map(|clock| clock.round_trip_ns).max().unwrap_or(0);
    let least = if waiting.len() > 1 { START_AHEAD_TOGETHER } else { START_AHEAD };
    let ahead = least + Duration::from_nanos(4 * round_trip_ns.max(0) as u64);
    let proposed = unix_ns(SystemTime::now() + ahead);
    let lost = |index: usize| move |status| link::failure(&names[index], &status);
    let answers = waiting.iter().map(async |index| {
        let (mut client, offset_ns) = (clients[*index].clone(), clocks[*index].offset_ns);
        let request = rpc::StartProposal { start_unix_ns: proposed + offset_ns };
        let reply = link::answer(client.agree_start(request)).await.map_err(lost(*index))?;
        let answered = reply.into_inner().start_unix_ns.saturating_sub(offset_ns);
        let put_off = Duration::from_nanos(answered.saturating_sub(proposed).max(0) as u64);
        if put_off > PUT_OFF_MAX {
            let (name, away) = (&names[*index], put_off.as_secs_f64());
            return Err(Failure::Lost(format!(
                "{name} would start {away:.0} s later than the others: its clock was changed"
            )));
        }
        Ok(answered)
    });
    let start_unix_ns = try_join_all(answers).await?.into_iter().fold(proposed, i64::max);
    let commits = waiting.iter().map(async |index| {
        let (mut client, offset_ns) = (clients[*index].clone(), clocks[*index].offset_ns);
        let request = rpc::StartRequest { start_unix_ns: start_unix_ns + offset_ns };
        let reply = link::answer(client.start(request)).await.map_err(lost(*index))?;
        Ok::<_, Failure>((*index, reply.into_inner().late_ns))
    });
    let heard = try_join_all(commits).await?;
    Ok((start_unix_ns, latecomers(names, &heard)))
}

/// The notes on replayers, by their indices, that received a start too long after it.
fn latecomers(names: &[String], heard: &[(usize, i64)]) -> Vec<String> {
    // A single replayer just starts later.
    let late = heard.iter().filter(|(_, late_ns)| heard.len() > 1 && *late_ns > LATE.as_nanos() as i64);
    let sentences = late.map(|(index, late_ns)| {
        format!(
            "{} received the start signal {} ms too late to start with the others",
            names[*index],
            late_ns / 1_000_000
        )
    });
    sentences.collect()
}

/// A fragment that ran sessions according to the report, but whose log is not here.
fn lacked(fragments: &[FragmentPlan], folder: &ExperimentFolder, report: &ReplayReport) -> Option<u32> {
    let lacked = fragments.iter().find(|fragment| {
        let position = report.positions.iter().find(|position| position.fragment == fragment.fragment);
        position.is_some_and(|position| position.next_session > fragment.first_session)
            && !folder.log(fragment.fragment).exists()
    });
    lacked.map(|fragment| fragment.fragment)
}

/// The report of each replayer, and what happened to those that have none.
pub(super) async fn reports(team: &mut [Participant<'_>]) -> (Vec<Option<ReplayReport>>, Vec<String>) {
    let reported = team.iter_mut().map(async |participant| {
        if participant.is_lost {
            return Ok(None);
        }
        let reported = participant.replayer.report().await.and_then(|report| {
            let name = &participant.replayer.name;
            let wrong = |what| Failure::Lost(format!("{name} sent an invalid report: {what}"));
            report.check(&participant.share.plan).map_err(wrong).map(|()| report)
        });
        if let Ok(clock) = participant.replayer.clock().await {
            participant.clock[1] = clock;
        }
        reported.map(Some)
    });
    let mut faults = Vec::new();
    let mut known = |reported: Result<Option<ReplayReport>, Failure>| {
        reported.unwrap_or_else(|failure| {
            faults.push(failure.to_string());
            None
        })
    };
    let reports = together(reported).collect::<Vec<_>>().await.into_iter().map(&mut known).collect();
    (reports, faults)
}

/// The call CloseRead. No replayer reads before all have ended, so that none disturbs another's
/// experiment. An interrupt ends it early. Returns which replayers did not finish, and why.
pub(super) async fn closing_read(
    team: &mut [Participant<'_>],
    order: &Order<'_>,
    interrupt: &mut Interrupt,
    watch: &mut (dyn FnMut(Stage) + Send),
) -> Vec<String> {
    let mut clients: Vec<_> = team.iter().map(|participant| participant.replayer.client()).collect();
    let running = vec![Some(Phase::Measuring); clients.len()];
    let reading = Mutex::new((vec![(0, 0); clients.len()], watch));
    let reads = team.iter_mut().enumerate().map(async |(index, participant)| {
        let progress = &mut |items, items_total| {
            let (each, watch) = &mut *reading.lock().unwrap_or_else(PoisonError::into_inner);
            each[index] = (items, items_total);
            let (items, items_total) = each.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            watch(Stage::Closing { items, items_total });
        };
        participant.replayer.close_read(order.plan.experiment, progress).await
    });
    let mut ended = std::pin::pin!(together(reads).collect::<Vec<Result<(), Failure>>>());
    let mut stopped = false;
    let ended = loop {
        tokio::select! {
            ended = &mut ended => break ended,
            () = interrupt.wait(), if !stopped => {
                stopped = true;
                stop(&mut clients, &running, Stop::Interrupted, false).await;
            }
        }
    };
    ended.into_iter().filter_map(Result::err).map(|failure| failure.to_string()).collect()
}

/// Fetches the logs of replayers that do not write them to the run folder, or the summaries of
/// these logs.
pub(super) async fn collect(team: &mut [Participant<'_>], order: &Order<'_>, report: &ReplayReport) -> Vec<String> {
    let logged = Logged { run: order.run.to_string(), experiment: order.plan.experiment };
    let far = team.iter_mut().filter(|participant| participant.has_logs());
    let fetched = far.map(async |participant| match order.logs {
        Logs::Fetched => {
            let fetched = participant.replayer.fetch(&logged, order.folder).await?;
            match lacked(&participant.share.plan.fragments, order.folder, report) {
                None => Ok(fetched),
                Some(fragment) => {
                    let name = &participant.replayer.name;
                    Err(Failure::Lost(format!("{name} ran fragment {fragment} but has no log of it")))
                }
            }
        }
        Logs::Left(sla) => {
            let publish_to = participant.replayer.publish_to(order);
            participant.replayer.summarize(&logged, order.folder, report, &sla, publish_to).await
        }
        Logs::Unwritten => Ok(0),
    });
    let fetched: Vec<Result<usize, Failure>> = together(fetched).collect().await;
    let failed = fetched.into_iter().filter_map(Result::err);
    failed.map(|failure| format!("a log could not be fetched: {failure}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_replayer_starts_before_all_wait() {
        use Phase::{Connecting, Measuring, Ready, Warm, WarmingUp};
        let check = |phases: [Option<Phase>; 3], expect: Option<Vec<usize>>| assert_eq!(all_waiting(&phases), expect);
        check([Some(Ready), Some(Connecting), Some(Ready)], None);
        check([Some(Ready); 3], Some(vec![0, 1, 2]));
        check([Some(Warm), Some(WarmingUp), Some(Warm)], None);
        check([Some(Warm), None, Some(Warm)], Some(vec![0, 2]));
        check([Some(Measuring), None, None], None);
        check([None; 3], None);
    }

    #[test]
    fn a_replayer_that_starts_late_is_named() {
        let names = ["a".to_string(), "b".to_string()];
        assert_eq!(latecomers(&names, &[(0, 0), (1, 9_000_000)]), Vec::<String>::new());
        let sentences = latecomers(&names, &[(0, 0), (1, 42_000_000)]);
        assert!(
            sentences.len() == 1 && sentences[0].starts_with("b received the start signal 42 ms too late"),
            "{sentences:?}"
        );
        assert_eq!(latecomers(&names, &[(1, 42_000_000)]), Vec::<String>::new());
    }

    #[test]
    fn one_replayer_loads_a_shared_store() {
        assert_eq!(part(0, 1, false), rpc::Part::Alone);
        assert_eq!([part(0, 3, false), part(1, 3, false)], [rpc::Part::Leads, rpc::Part::Follows]);
        assert_eq!(part(1, 3, true), rpc::Part::Alone);
    }
}
