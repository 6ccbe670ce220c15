//! Small values for the unit tests.

use schemas::oplog::{LogRow, Outcome};
use schemas::run::ReplayReport;
use schemas::social::{Action, Operation};

use crate::join::{Place, Row};

/// An operation that was answered.
pub(crate) fn row(session: u64, start_ns: i64, end_ns: i64, operation: Operation) -> Row<Operation> {
    Row { actor: operation.socialite, ..row_of(session, start_ns, end_ns, operation) }
}

/// An operation of any vocabulary that was answered.
pub(crate) fn row_of<O>(session: u64, start_ns: i64, end_ns: i64, operation: O) -> Row<O> {
    let log = LogRow {
        session,
        step: 0,
        try_number: 0,
        thread: 0,
        due_ns: None,
        start_ns,
        end_ns,
        waited_ns: 0,
        pool_wait_ns: 0,
        attempts: 1,
        outcome: Outcome::Ok,
    };
    Row {
        log,
        operation,
        actor: 0,
        after: None,
        txn: None,
        kind: 0,
        noops: 0,
        warmup: false,
        drained: false,
        place: Place::default(),
        of_try: None,
    }
}

/// A read that was answered.
pub(crate) fn read_row(session: u64, start_ns: i64, end_ns: i64) -> Row<Operation> {
    let operation = Operation { action: Action::ViewProfile, socialite: 0, target: 1, comment: None };
    row(session, start_ns, end_ns, operation)
}

/// The report of a replayer without problems.
pub(crate) fn report(elapsed_ns: u64) -> ReplayReport {
    ReplayReport { elapsed_ns, worker_cpu_share: 0.5, dispatch_lag_ns_p99: 1000, ..ReplayReport::default() }
}
