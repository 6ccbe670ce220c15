//! The replayers of a run, driven through one experiment after the other.
//!
//! Each phase is over on every replayer before the next begins: prepare, load,
//! agree on a start, run, report. While an experiment runs nobody talks about
//! work; the replayers only stream their progress.

mod deal;
mod local;

use std::time::{Duration, SystemTime};

use schemas::latency::ResponseTimes;
use schemas::plan::Plan;
use schemas::rpc;
use schemas::run::{ExperimentFolder, ReplayReport};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use local::Replayer;

/// How long before its start an experiment is proposed: time enough for every
/// replayer to answer and to get ready.
const START_AHEAD: Duration = Duration::from_millis(100);

/// What goes on, for whoever watches.
#[derive(Debug, Clone)]
pub enum Stage {
    /// The store is brought to its initial state.
    Loading {
        /// Rows so far.
        rows: u64,
        /// Rows in all.
        rows_total: u64,
    },
    /// The experiment runs.
    Running(Progress),
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
}

/// An experiment that ran to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// How it went, over all replayers.
    pub report: ReplayReport,
    /// When it started, in nanoseconds since 1970: all was loaded by then.
    pub start_unix_ns: i64,
}

/// The replayers of a run.
pub struct Fleet {
    replayers: Vec<Replayer>,
}

impl Fleet {
    /// Starts one replayer on this machine.
    pub async fn local() -> Result<Fleet, Failure> {
        let mut replayer = Replayer::start().await?;
        replayer.greet().await?;
        Ok(Fleet { replayers: vec![replayer] })
    }

    /// Runs one experiment. After an interrupt it ends early and is reported
    /// like any other; an interrupt before it runs is an error.
    pub async fn experiment(
        &mut self,
        plan: &Plan,
        folder: &ExperimentFolder,
        interrupt: &mut Interrupt,
        watch: &mut dyn FnMut(Stage),
    ) -> Result<Ran, Failure> {
        let plans = deal::plans(plan, self.replayers.len());
        // Fewer fragments or threads than replayers: the others have no part in it.
        let replayers = &mut self.replayers[..plans.len()];
        let early = Failure::Interrupted { run: None };
        tokio::select! {
            made = make_ready(replayers, &plans, folder, watch) => made?,
            () = interrupt.wait() => return Err(early),
        }
        let start_unix_ns = run(replayers, interrupt, watch).await?;
        let mut reports = Vec::with_capacity(replayers.len());
        for replayer in replayers {
            reports.push(replayer.report().await?);
        }
        let report = deal::merged(reports).ok_or_else(|| Failure::tool("no replayer took part in the experiment"))?;
        Ok(Ran { report, start_unix_ns })
    }

    /// Lets every replayer end.
    pub async fn close(self) {
        for replayer in self.replayers {
            replayer.end().await;
        }
    }
}

/// Prepare and Load.
async fn make_ready(
    replayers: &mut [Replayer],
    plans: &[Plan],
    folder: &ExperimentFolder,
    watch: &mut dyn FnMut(Stage),
) -> Result<(), Failure> {
    for (replayer, plan) in replayers.iter_mut().zip(plans) {
        replayer.prepare(plan, folder.root()).await?;
    }
    for replayer in replayers {
        replayer.load(&mut |rows, rows_total| watch(Stage::Loading { rows, rows_total })).await?;
    }
    Ok(())
}

/// AgreeStart and Run; gives the start.
async fn run(
    replayers: &mut [Replayer],
    interrupt: &mut Interrupt,
    watch: &mut dyn FnMut(Stage),
) -> Result<i64, Failure> {
    let mut start_unix_ns = unix_ns(SystemTime::now() + START_AHEAD);
    for replayer in replayers.iter_mut() {
        start_unix_ns = start_unix_ns.max(replayer.agree_start(start_unix_ns).await?);
    }
    let (sender, mut receiver) = mpsc::channel(16);
    let mut latest = vec![Progress::default(); replayers.len()];
    let mut others: Vec<_> = replayers.iter().map(Replayer::client).collect();
    let running = async {
        let mut tasks = Vec::new();
        for (index, replayer) in replayers.iter_mut().enumerate() {
            tasks.push(replayer.run(start_unix_ns, index, sender.clone()));
        }
        drop(sender);
        all(tasks).await
    };
    tokio::pin!(running);
    let mut stopped = false;
    loop {
        tokio::select! {
            biased;
            Some((index, progress)) = receiver.recv() => {
                if let Some(slot) = latest.get_mut(index) {
                    *slot = progress;
                }
                watch(Stage::Running(deal::progress(&latest)));
            }
            () = interrupt.wait(), if !stopped => {
                stopped = true;
                for client in &mut others {
                    // One that cannot be reached any more ends its stream with an error.
                    let _ = client.stop(rpc::StopRequest {}).await;
                }
            }
            ended = &mut running => return ended.map(|()| start_unix_ns),
        }
    }
}

/// Waits for all; the first error ends the waiting.
async fn all<F: Future<Output = Result<(), Failure>>>(tasks: Vec<F>) -> Result<(), Failure> {
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| Some(Box::pin(task))).collect();
    std::future::poll_fn(|context| {
        let mut is_pending = false;
        for slot in &mut tasks {
            if let Some(task) = slot {
                match task.as_mut().poll(context) {
                    std::task::Poll::Ready(Ok(())) => *slot = None,
                    std::task::Poll::Ready(Err(failure)) => return std::task::Poll::Ready(Err(failure)),
                    std::task::Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending { std::task::Poll::Pending } else { std::task::Poll::Ready(Ok(())) }
    })
    .await
}

fn unix_ns(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}
