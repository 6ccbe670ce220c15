//! Transactions: tries, rollbacks, and what is logged and counted of them.

use schemas::vocabulary::kv::{Kv, Operation, Verb, WriteId};

use super::*;

/// A row of a transaction that begins at step 0, or of none.
fn row(session: u64, step: u16, verb: Verb, txn: Option<u16>) -> RowOf<Kv> {
    let fields = u64::from(matches!(verb, Verb::Read | Verb::Update));
    let operation = Operation { verb, key: session, fields, length: 0, id: WriteId::new(0, session, step), amount: 0 };
    RowOf::<Kv> { txn, ..RowOf::<Kv>::plain(session, step, operation, session) }
}

/// A session that is one transaction: begin, a read, an update, and its end.
fn transaction(session: u64, end: Verb) -> Vec<RowOf<Kv>> {
    let verbs = [Verb::Begin, Verb::Read, Verb::Update, end];
    verbs.into_iter().enumerate().map(|(step, verb)| row(session, step as u16, verb, Some(0))).collect()
}

/// What a connection is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Begin,
    Read,
    Update,
    Commit,
    Abort,
}

use Call::{Abort, Begin, Commit, Read, Update};
use Outcome::{Aborted, Failed, Ok as Fine, Skipped, Unknown};

/// Answers call after call from a script, then always well; remembers the calls.
struct Script {
    calls: Rc<RefCell<Vec<Call>>>,
    answers: Vec<(usize, OperationError)>,
}

impl Script {
    fn answer(&self, call: Call) -> Result<(), OperationError> {
        let at = self.calls.borrow().len();
        self.calls.borrow_mut().push(call);
        self.answers.iter().find(|(number, _)| *number == at).map_or(Ok(()), |(_, error)| Err(error.clone()))
    }
}

impl Connection<Kv> for Script {
    async fn execute(&mut self, operation: &Operation, _: &mut Answer) -> Result<(), OperationError> {
        self.answer(if operation.verb == Verb::Read { Call::Read } else { Call::Update })
    }

    async fn begin(&mut self, _: &mut Answer) -> Result<(), OperationError> {
        self.answer(Call::Begin)
    }

    async fn commit(&mut self, _: &mut Answer) -> Result<(), OperationError> {
        self.answer(Call::Commit)
    }

    async fn abort(&mut self, _: &mut Answer) -> Result<(), OperationError> {
        self.answer(Call::Abort)
    }
}

/// What a replay of transactions did.
struct Done {
    report: WorkerReport,
    /// Session, step, try and outcome of each row.
    rows: Vec<(u64, u16, u16, Outcome)>,
    calls: Vec<Call>,
}

fn replay(rows: Vec<RowOf<Kv>>, transactions: Transactions, answers: Vec<(usize, OperationError)>) -> Done {
    let calls = Rc::new(RefCell::new(Vec::new()));
    let script = Script { calls: calls.clone(), answers };
    let (report, logs) = SetupOf::<Kv> { transactions, ..SetupOf::of(rows, 1) }.replay(vec![script]);
    let rows = logs[0].iter().map(|row| (row.session, row.step, row.try_number, row.outcome)).collect();
    Done { report, rows, calls: calls.take() }
}

fn tries(tries: u16) -> Transactions {
    Transactions { used: true, tries }
}

fn aborted() -> OperationError {
    OperationError::Aborted("could not serialize".into())
}

#[test]
fn a_transaction_that_is_rolled_back_is_tried_again() {
    // The update of the first try, then the commit of the second one.
    let done = replay(transaction(0, Verb::Commit), tries(3), vec![(2, aborted()), (6, aborted())]);
    assert_eq!(done.calls, [Begin, Read, Update, Begin, Read, Update, Commit, Begin, Read, Update, Commit]);
    let rows: Vec<(u16, u16, Outcome)> = done.rows.iter().map(|row| (row.1, row.2, row.3)).collect();
    let expect = [
        (0, 0, Fine),
        (1, 0, Fine),
        (2, 0, Aborted),
        (3, 0, Aborted),
        (0, 1, Fine),
        (1, 1, Fine),
        (2, 1, Fine),
        (3, 1, Aborted),
        (0, 2, Fine),
        (1, 2, Fine),
        (2, 2, Fine),
        (3, 2, Fine),
    ];
    assert_eq!(rows, expect);
    let snapshot = &done.report.snapshot;
    // Of the first two tries nothing counts but that it was rolled back.
    assert_eq!((snapshot.outcomes, snapshot.of_transactions), ([2, 0, 0, 0, 4], 6));
    assert_eq!((done.report.writes_not_ok, snapshot.ok_in_time, done.report.sessions), (0, 2, 1));
}

#[test]
fn without_tries_left_the_session_goes_on_as_if_its_writes_had_not_happened() {
    let mut rows = transaction(0, Verb::Commit);
    // Depends on the write that was rolled back; then one that depends on it in turn.
    rows.push(RowOf::<Kv> { after: Some(0), ..row(1, 0, Verb::Update, None) });
    rows.push(RowOf::<Kv> { after: Some(1), ..row(2, 0, Verb::Read, None) });
    let done = replay(rows, tries(1), vec![(2, aborted())]);
    assert_eq!(done.calls, [Begin, Read, Update]);
    let outcomes: Vec<Outcome> = done.rows.iter().map(|row| row.3).collect();
    assert_eq!(outcomes, [Fine, Fine, Aborted, Aborted, Aborted, Aborted]);
    assert_eq!(done.report.writes_not_ok, 0, "what was rolled back leaves a known state");
    assert_eq!(done.report.snapshot.outcomes, [0, 0, 0, 0, 4]);
}

#[test]
fn an_error_ends_a_transaction_with_a_rollback() {
    let failed = OperationError::Failed("no such record".into());
    let done = replay(transaction(0, Verb::Commit), tries(5), vec![(1, failed)]);
    assert_eq!(done.calls, [Begin, Read, Abort], "and the update is not sent");
    let outcomes: Vec<Outcome> = done.rows.iter().map(|row| row.3).collect();
    assert_eq!(outcomes, [Fine, Failed, Aborted, Aborted]);
    assert_eq!(done.report.snapshot.outcomes, [0, 1, 0, 0, 1]);

    let done = replay(transaction(0, Verb::Commit), tries(5), vec![(2, OperationError::Unknown("lost".into()))]);
    assert_eq!(done.calls, [Begin, Read, Update, Abort]);
    assert_eq!(done.report.snapshot.outcomes, [0, 1, 1, 0, 0], "the read did not happen either");
    assert_eq!(done.report.writes_not_ok, 1);
}

#[test]
fn a_commit_may_fail_or_stay_unknown() {
    let done = replay(transaction(0, Verb::Commit), tries(5), vec![(3, OperationError::Unknown("lost".into()))]);
    assert_eq!((done.calls.len(), done.rows[3].3), (4, Unknown));
    assert_eq!((done.report.snapshot.outcomes, done.report.writes_not_ok), ([1, 0, 1, 0, 0], 1));
    let done = replay(transaction(0, Verb::Commit), tries(5), vec![(3, OperationError::Failed("refused".into()))]);
    assert_eq!((done.calls, done.rows[3].3), (vec![Begin, Read, Update, Commit, Abort], Failed));
    assert_eq!((done.report.snapshot.outcomes, done.report.writes_not_ok), ([0, 2, 0, 0, 0], 1));
}

#[test]
fn a_transaction_that_does_not_begin_is_skipped() {
    let done =
        replay(transaction(0, Verb::Commit), tries(5), vec![(0, OperationError::Failed("no connection".into()))]);
    assert_eq!(done.calls, [Begin]);
    let outcomes: Vec<Outcome> = done.rows.iter().map(|row| row.3).collect();
    assert_eq!(outcomes, [Failed, Skipped, Skipped, Skipped]);
    // A begin that the store rolls back is tried again like the rest.
    let done = replay(transaction(0, Verb::Commit), tries(2), vec![(0, aborted())]);
    assert_eq!(done.calls, [Begin, Begin, Read, Update, Commit]);
    assert_eq!(done.report.snapshot.outcomes, [2, 0, 0, 0, 2]);
}

#[test]
fn an_abort_of_the_trace_is_what_was_asked_for() {
    let done = replay(transaction(0, Verb::Abort), tries(5), Vec::new());
    assert_eq!(done.calls, [Begin, Read, Update, Abort]);
    assert_eq!((done.report.snapshot.outcomes, done.report.writes_not_ok), ([2, 0, 0, 0, 0], 0));
    // Gone is gone.
    let done = replay(transaction(0, Verb::Abort), tries(5), vec![(3, aborted())]);
    assert_eq!((done.calls.len(), done.rows[3].3), (4, Fine));
}

#[test]
fn without_transactions_each_operation_is_by_itself() {
    let off = Transactions { used: false, tries: 5 };
    let mut rows = transaction(0, Verb::Commit);
    rows.extend(transaction(1, Verb::Abort));
    let done = replay(rows, off, vec![(0, OperationError::Failed("asked to".into()))]);
    assert_eq!(done.calls, [Read, Update, Read, Update]);
    let outcomes: Vec<Outcome> = done.rows.iter().map(|row| row.3).collect();
    assert_eq!(outcomes, [Fine, Failed, Fine, Fine, Fine, Fine, Fine, Fine]);
    let snapshot = &done.report.snapshot;
    assert_eq!((snapshot.outcomes, snapshot.of_transactions), ([3, 1, 0, 0, 0], 4));
}

#[test]
fn operations_before_and_after_a_transaction_are_by_themselves() {
    let mut rows = vec![row(0, 0, Verb::Update, None)];
    let verbs = [Verb::Begin, Verb::Update, Verb::Commit];
    rows.extend(verbs.into_iter().zip(1..).map(|(verb, step)| row(0, step, verb, Some(1))));
    rows.push(row(0, 4, Verb::Read, None));
    let done = replay(rows, tries(2), vec![(3, aborted())]);
    assert_eq!(done.calls, [Update, Begin, Update, Commit, Begin, Update, Commit, Read]);
    let places: Vec<(u16, u16)> = done.rows.iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(places, [(0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1), (4, 0)]);
    assert_eq!(done.report.snapshot.outcomes, [3, 0, 0, 0, 1]);
}
