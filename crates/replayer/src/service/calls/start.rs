//! The calls that agree on a start with other replayers, and commit it.

use std::time::Duration;

use schemas::rpc::{StartAnswer, StartProposal, StartReply, StartRequest};
use tonic::Status;

use crate::clock::unix_ns;
use crate::service::state::Service;

/// Enough time for replayers to receive a start that was committed.
const HEARING: Duration = Duration::from_millis(50);

/// How far from now a start may be, by the replayer's clock.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Answers with the proposed start, or a later one if this replayer needs more time.
pub fn agree_start(service: &Service, proposal: StartProposal) -> Result<StartAnswer, Status> {
    let proposed = proposal.start_unix_ns;
    // For a start that has passed, the answer is the earliest start that is possible.
    check_start(proposed.max(unix_ns()))?;
    service.job()?;
    let earliest = unix_ns() + HEARING.as_nanos() as i64;
    Ok(StartAnswer { start_unix_ns: proposed.max(earliest) })
}

/// Commits the start of what the experiment waits for.
pub fn start(service: &Service, request: StartRequest) -> Result<StartReply, Status> {
    let start_unix_ns = request.start_unix_ns;
    check_start(start_unix_ns)?;
    match service.job()?.start(start_unix_ns) {
        true => Ok(StartReply { late_ns: (unix_ns() - start_unix_ns).max(0) }),
        false => Err(Status::aborted("the experiment does not wait for a start, or was stopped")),
    }
}

/// Refuses a start that is far off: a clock is wrong, and the replayer would wait for too long.
fn check_start(start_unix_ns: i64) -> Result<(), Status> {
    let now_ns = unix_ns();
    let away = Duration::from_nanos(start_unix_ns.saturating_sub(now_ns).unsigned_abs());
    if away <= START_WITHIN {
        return Ok(());
    }
    let side = if start_unix_ns > now_ns { "after" } else { "before" };
    Err(Status::invalid_argument(format!(
        "the start is {:.0} s {side} now by this replayer's clock (limit {} s); synchronize the clocks",
        away.as_secs_f64(),
        START_WITHIN.as_secs()
    )))
}
