//! Transactions of several operations: a session of the driver each.
//!
//! The server reads from one snapshot, and refuses a write to a document that has changed since. Nothing in a
//! transaction is retried, except that the driver itself asks once more whether a commit has happened.

use mongodb::ClientSession;
use mongodb::error::{Error, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use mongodb::options::{ReadConcern, ReadConcernLevel, ReadPreference, SessionOptions};
use schemas::vocabulary::kv::{Operation, Verb};

use super::actions::{KvActions, none_found};
use crate::stores::mongodb::retry::Refusal;
use crate::stores::{Answer, Fate, OperationError};

/// Where the transaction of a thread stands.
#[derive(Default)]
pub enum Transaction {
    /// There is none: each operation is by itself.
    #[default]
    None,
    /// It is open.
    Open(Box<ClientSession>),
    /// It is open, but an operation of it has found no document, so it must not be committed.
    Failed(Box<ClientSession>, String),
    /// The server has ended it, or will. No operation of it may be sent: the server would say that there is no
    /// such transaction, which sounds as if it had rolled it back because of others. With the session whose
    /// transaction the server may still have open, since it does not end with a connection.
    Ended(String, Option<Box<ClientSession>>),
}

/// What an operation finds that follows one that was given up midway.
const GIVEN_UP: &str = "an earlier operation of the transaction did not end";

impl Transaction {
    /// Whether operations belong to a transaction.
    #[inline]
    pub fn is_under_way(&self) -> bool {
        !matches!(self, Transaction::None)
    }
}

impl KvActions {
    /// Begins a transaction. The server hears of it with the first operation.
    pub(super) async fn begin_one(&mut self) -> Result<(), OperationError> {
        if matches!(self.transaction, Transaction::Open(_) | Transaction::Failed(..)) {
            return Err(OperationError::Failed("a transaction is under way already".to_string()));
        }
        self.transaction = Transaction::None;
        let most = self.shared.timeout;
        match tokio::time::timeout(most, self.new_session()).await {
            Ok(Ok(session)) => {
                self.transaction = Transaction::Open(Box::new(session));
                Ok(())
            }
            Ok(Err(error)) => Err(OperationError::Failed(Refusal::from(error).message)),
            Err(_) => Err(OperationError::timed_out(most, false)),
        }
    }

    async fn new_session(&self) -> Result<ClientSession, Error> {
        let database = &self.shared.database;
        // The transaction need not see what another session has seen.
        let options = SessionOptions::builder().causal_consistency(false).build();
        let mut session = database.client().start_session().with_options(options).await?;
        // Transactions know three levels of read concern; all of them read from one snapshot.
        use ReadConcernLevel::{Local, Majority, Snapshot};
        let concern = match database.read_concern().map(|concern| &concern.level) {
            Some(level @ (Local | Majority | Snapshot)) => ReadConcern::from(level.clone()),
            _ => ReadConcern::snapshot(),
        };
        let begin = session.start_transaction().selection_criteria(ReadPreference::Primary.into());
        begin.read_concern(concern).await?;
        Ok(session)
    }

    /// Performs an operation in the transaction that is under way.
    pub(super) async fn execute_inside(
        &mut self,
        operation: &Operation,
        answer: &mut Answer,
    ) -> Result<(), OperationError> {
        // If this is given up midway, the session goes with it, and the driver aborts the transaction.
        let (mut session, failed) =
            match std::mem::replace(&mut self.transaction, Transaction::Ended(GIVEN_UP.to_string(), None)) {
                Transaction::Open(session) => (session, None),
                Transaction::Failed(session, why) => (session, Some(why)),
                Transaction::None => return Err(OperationError::Failed(GIVEN_UP.to_string())),
                Transaction::Ended(why, session) => {
                    self.transaction = Transaction::Ended(why.clone(), session);
                    let why = format!("not sent, since an operation of the transaction failed before: {why}");
                    return Err(OperationError::Failed(why));
                }
            };
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform_inside(&mut session, operation, answer)).await;
        let refusal = match done {
            Ok(Ok(true)) => {
                self.transaction = match failed {
                    None => Transaction::Open(session),
                    Some(why) => Transaction::Failed(session, why),
                };
                return Ok(());
            }
            Ok(Ok(false)) => {
                let error = none_found(operation, &self.key);
                let why = error.clone().into_message();
                self.transaction = match operation.verb {
                    // The server ends a transaction whose insert it has refused.
                    Verb::Insert => {
                        self.end(&mut session).await;
                        Transaction::Ended(why, None)
                    }
                    _ => Transaction::Failed(session, failed.unwrap_or(why)),
                };
                return Err(error);
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => Refusal { fate: Fate::Lost, message: format!("timed out after {} ms", most.as_millis()) },
        };
        match refusal.fate {
            Fate::RolledBack => {
                self.end(&mut session).await;
                self.transaction = Transaction::None;
                Err(OperationError::Aborted(refusal.message))
            }
            Fate::Refused => {
                self.end(&mut session).await;
                self.transaction = Transaction::Ended(refusal.message.clone(), None);
                Err(OperationError::Failed(refusal.message))
            }
            // Without a commit the transaction has no effect, but it is in the way of others until it is aborted.
            Fate::Lost => {
                self.transaction = Transaction::Ended(refusal.message.clone(), Some(session));
                Err(OperationError::Failed(refusal.message))
            }
        }
    }

    /// Whether a write has found its document; true for reads.
    async fn perform_inside(
        &mut self,
        session: &mut ClientSession,
        operation: &Operation,
        answer: &mut Answer,
    ) -> Result<bool, Refusal> {
        let shared = self.shared.clone();
        shared.fields.key(operation, &mut self.key);
        match operation.verb {
            Verb::Read | Verb::Scan => shared.look(operation, &self.key, Some(session), answer).await.map(|()| true),
            _ => Ok(shared.change(operation, &self.key, Some(session)).await? > 0),
        }
    }

    /// Commits the transaction that is under way.
    pub(super) async fn commit_it(&mut self) -> Result<(), OperationError> {
        let mut session = match std::mem::take(&mut self.transaction) {
            Transaction::Open(session) => session,
            Transaction::None => return Err(OperationError::Failed("no transaction is under way".to_string())),
            Transaction::Ended(why, session) => {
                if let Some(mut session) = session {
                    self.end(&mut session).await;
                }
                return Err(OperationError::Failed(why));
            }
            Transaction::Failed(mut session, why) => {
                self.end(&mut session).await;
                return Err(OperationError::Failed(format!("rolled back, since an operation of it failed: {why}")));
            }
        };
        let most = self.shared.timeout;
        match tokio::time::timeout(most, session.commit_transaction()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let is_unknown = error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT);
                let refusal = Refusal::from(error);
                Err(match refusal.fate {
                    _ if is_unknown => OperationError::Unknown(refusal.message),
                    Fate::RolledBack => OperationError::Aborted(refusal.message),
                    Fate::Refused => OperationError::Failed(refusal.message),
                    Fate::Lost => OperationError::Unknown(refusal.message),
                })
            }
            Err(_) => Err(OperationError::timed_out(most, true)),
        }
    }

    /// Aborts the transaction that is under way. That always succeeds: without a commit it has no effect.
    pub(super) async fn abort_it(&mut self) {
        match std::mem::take(&mut self.transaction) {
            Transaction::Open(mut session)
            | Transaction::Failed(mut session, _)
            | Transaction::Ended(_, Some(mut session)) => self.end(&mut session).await,
            Transaction::None | Transaction::Ended(_, None) => {}
        }
    }

    /// Frees what a transaction has locked. Errors do not matter: the session ends either way.
    async fn end(&self, session: &mut ClientSession) {
        let _ = tokio::time::timeout(self.shared.timeout, session.abort_transaction()).await;
    }
}
