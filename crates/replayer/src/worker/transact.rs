//! A transaction: its operations from the one that begins it to the one that ends it, tried again if the
//! store rolls it back.

use std::ops::Range;
use std::sync::atomic::Ordering;

use schemas::oplog::{LogRow, Outcome, TryEnd};
use schemas::vocabulary::{Control, Operation, Request, Vocabulary};

use super::emulate::{Logged, Thread, Within, perform, plain_outcome};
use super::shared::Shared;
use crate::dispatch::{Ended, Session};
use crate::stores::{Answer, Connection, OperationError};

/// One try of a transaction.
struct Try {
    number: u16,
    /// The place of the operation that begins it.
    begin: usize,
    /// Whether the store is asked for transactions.
    is_used: bool,
    /// Whether the store has a transaction to end.
    is_open: bool,
    /// How the operations end that are not sent any more, and why.
    stop: Option<(Outcome, String)>,
    /// Whether the store has rolled it back, so that another try may succeed.
    was_rolled_back: bool,
    /// Whether an operation failed, or may have happened or not.
    has_error: bool,
    /// The rows that begin and end it.
    first: Option<LogRow>,
    last: Option<(Control, LogRow)>,
    /// The other rows, each with whether it writes. They are counted when it is known how it ended.
    uncounted: Vec<(LogRow, bool)>,
}

impl Try {
    /// The operations that follow one that did not succeed are not sent.
    fn stop_at(&mut self, row: &LogRow, control: Option<Control>) {
        if !self.is_used || self.stop.is_some() {
            return;
        }
        let step = row.step;
        self.stop = match (control, row.outcome) {
            (_, Outcome::Ok) => None,
            (Some(Control::Begin), Outcome::Aborted) => {
                Some((Outcome::Aborted, "its transaction was rolled back".into()))
            }
            (Some(Control::Begin), _) => Some((Outcome::Skipped, "its transaction did not begin".into())),
            (_, Outcome::Aborted) if !self.is_open => {
                Some((Outcome::Aborted, format!("its transaction was rolled back at step {step}")))
            }
            _ => Some((Outcome::Aborted, format!("step {step} of its transaction did not succeed"))),
        };
    }
}

impl Within for Try {
    fn try_number(&self) -> u16 {
        self.number
    }

    /// Another try begins at once, and what is not sent waits for nothing.
    fn pauses(&self, place: usize) -> bool {
        place > 0 && self.stop.is_none() && (self.number == 0 || place > self.begin)
    }

    /// The figures leave out the operation that begins a transaction, and must not lose how long a
    /// session waited for its start. So the first operation on data has the due time too.
    fn is_due(&self, place: usize) -> bool {
        self.begin == 0 && place <= 1
    }

    fn refusal<O: Operation>(&self, operation: &O) -> Option<(Outcome, String)> {
        let ends = matches!(operation.control(), Some(Control::Commit | Control::Abort));
        // An open transaction must be ended.
        self.stop.clone().filter(|_| !(ends && self.is_open))
    }

    async fn call<V: Vocabulary, C: Connection<V>>(
        &self,
        connection: &mut C,
        request: &V::Request,
        answer: &mut Answer,
    ) -> Result<(), OperationError> {
        match request.operation().control() {
            None => connection.execute(request, answer).await,
            Some(_) if !self.is_used => {
                answer.attempts = 0;
                Ok(())
            }
            Some(Control::Begin) => connection.begin(answer).await,
            Some(Control::Commit) if self.stop.is_none() => connection.commit(answer).await,
            Some(Control::Commit | Control::Abort) => connection.abort(answer).await,
        }
    }

    fn may_have_happened<O: Operation>(&self, operation: &O) -> bool {
        operation.writes() || (operation.control() == Some(Control::Commit) && self.stop.is_none())
    }

    fn outcome<O: Operation>(
        &mut self,
        operation: &O,
        result: Result<(), OperationError>,
    ) -> (Outcome, Option<String>) {
        let control = operation.control();
        if !self.is_used {
            return plain_outcome(result);
        }
        let rolled_back = matches!(result, Err(OperationError::Aborted(_)));
        let (outcome, error) = match (control, &self.stop) {
            (Some(Control::Commit | Control::Abort), Some((_, why))) => {
                let failed = result.err().map(OperationError::into_message);
                let failed = failed.map(|error| format!("; the rollback did not succeed either: {error}"));
                (Outcome::Aborted, Some(format!("rolled back: {why}{}", failed.unwrap_or_default())))
            }
            // It is gone, as the trace asked for.
            (Some(Control::Abort), None) if rolled_back => (Outcome::Ok, None),
            _ => plain_outcome(result),
        };
        match control {
            Some(Control::Begin) => self.is_open = outcome == Outcome::Ok,
            Some(Control::Commit | Control::Abort) => self.is_open = false,
            None if rolled_back => self.is_open = false,
            None => {}
        }
        self.was_rolled_back |= rolled_back && control != Some(Control::Abort);
        (outcome, error)
    }

    fn log<V: Vocabulary>(
        &mut self,
        shared: &Shared<V>,
        fragment: usize,
        row: LogRow,
        logged: Logged<'_, V::Operation>,
    ) -> bool {
        let control = logged.operation.control();
        match control {
            None => {
                self.has_error |= matches!(row.outcome, Outcome::Failed | Outcome::Unknown | Outcome::Skipped);
                self.uncounted.push((row, logged.operation.writes()));
            }
            Some(control) => {
                shared.count_control(&row);
                match control {
                    Control::Begin => self.first = Some(row),
                    Control::Commit | Control::Abort => self.last = Some((control, row)),
                }
            }
        }
        self.stop_at(&row, control);
        shared.write(fragment, row, logged.observed, logged.error)
    }
}

/// Performs the operations in these places, which are a transaction. Returns how its writes ended, and
/// when the thread is free again. `writes` says how the earlier writes of the session ended.
pub(super) async fn transact<V: Vocabulary, C: Connection<V>>(
    shared: &Shared<V>,
    thread: &mut Thread<V, C>,
    session: &Session<V>,
    places: Range<usize>,
    writes: Ended,
    now_ns: i64,
) -> (Ended, i64) {
    let mut now_ns = now_ns;
    let transactions = shared.transactions;
    let mut number = 0;
    loop {
        let mut one = Try {
            number,
            begin: places.start,
            is_used: transactions.used,
            is_open: false,
            stop: None,
            was_rolled_back: false,
            has_error: false,
            first: None,
            last: None,
            uncounted: std::mem::take(&mut thread.uncounted),
        };
        let mut own = writes;
        V::forget_try(&mut thread.memory);
        for place in places.clone() {
            let (ended, free_ns) = perform(shared, thread, session, place, own, now_ns, &mut one).await;
            now_ns = free_ns;
            own = own.max(ended);
        }
        let (first, last) = (one.first.as_ref(), one.last.as_ref());
        let end = first.map(|first| TryEnd::of(first, last.map(|(control, row)| (*control, row)), one.has_error));
        let end = end.unwrap_or(TryEnd::Failed);
        let mut writes_of_try = 0;
        for (row, writes) in one.uncounted.drain(..) {
            let counts_as = end.counts_as(row.outcome, writes);
            writes_of_try += u64::from(writes && row.outcome == Outcome::Ok);
            shared.count(&LogRow { outcome: counts_as, ..row });
        }
        thread.uncounted = one.uncounted;
        let ended = match end {
            // The operations say so themselves.
            TryEnd::BestEffort => own,
            TryEnd::Committed | TryEnd::AbortAsked => Ended::Ok,
            TryEnd::Aborted => Ended::Aborted,
            TryEnd::Failed | TryEnd::Unknown => {
                shared.writes_not_ok.set(shared.writes_not_ok.get() + writes_of_try);
                if writes_of_try > 0 { Ended::NotOk } else { own }
            }
            TryEnd::Skipped => own,
        };
        let commit_failed = one.last.is_some_and(|(_, row)| row.outcome == Outcome::Failed);
        if commit_failed && one.is_used && !shared.is_abandoned() {
            // The connection may still have the transaction.
            thread.answer.clear();
            let _ = thread.connection.abort(&mut thread.answer).await;
            now_ns = now_ns.max(shared.clock.now_ns());
        }
        number += 1;
        let is_over = number >= transactions.tries || shared.stop.load(Ordering::Relaxed);
        if end != TryEnd::Aborted || !one.was_rolled_back || is_over {
            return (ended, now_ns);
        }
        // The session waited for its actor only once.
        thread.aside_ns = 0;
        // Against a store that answers at once, the transaction that is in the way would never end.
        tokio::task::yield_now().await;
        now_ns = now_ns.max(shared.clock.now_ns());
    }
}
