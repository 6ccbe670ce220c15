//! Transactions of several operations, whatever the family: a session of the driver each.
//!
//! The server reads from one snapshot, and refuses a write to a document that has changed since. Nothing in a
//! transaction is retried, except that the driver itself asks once more whether a commit has happened.

use std::time::Duration;

use mongodb::error::{Error, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use mongodb::options::{ReadConcern, ReadConcernLevel, ReadPreference, SessionOptions};
use mongodb::{ClientSession, Database};

use super::retry::Refusal;
use crate::stores::{Fate, OperationError};

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

    /// Begins a transaction. The server hears of it with the first operation.
    pub async fn begin(&mut self, database: &Database, most: Duration) -> Result<(), OperationError> {
        if matches!(self, Transaction::Open(_) | Transaction::Failed(..)) {
            return Err(OperationError::Failed("a transaction is under way already".to_string()));
        }
        *self = Transaction::None;
        match tokio::time::timeout(most, new_session(database)).await {
            Ok(Ok(session)) => {
                *self = Transaction::Open(Box::new(session));
                Ok(())
            }
            Ok(Err(error)) => Err(OperationError::Failed(Refusal::from(error).message)),
            Err(_) => Err(OperationError::timed_out(most, false)),
        }
    }

    /// Takes the session for an operation, with the reason why the transaction must not be committed, if there is
    /// one. If the operation is given up midway, the session goes with it, and the driver aborts the transaction.
    pub fn take(&mut self) -> Result<(Box<ClientSession>, Option<String>), OperationError> {
        match std::mem::replace(self, Transaction::Ended(GIVEN_UP.to_string(), None)) {
            Transaction::Open(session) => Ok((session, None)),
            Transaction::Failed(session, why) => Ok((session, Some(why))),
            Transaction::None => Err(OperationError::Failed(GIVEN_UP.to_string())),
            Transaction::Ended(why, session) => {
                *self = Transaction::Ended(why.clone(), session);
                let why = format!("not sent, since an operation of the transaction failed before: {why}");
                Err(OperationError::Failed(why))
            }
        }
    }

    /// Gives the session back after an operation that has succeeded.
    pub fn go_on(&mut self, session: Box<ClientSession>, failed: Option<String>) {
        *self = match failed {
            None => Transaction::Open(session),
            Some(why) => Transaction::Failed(session, why),
        };
    }

    /// Ends the transaction as the server has, or will, after it has refused an operation. Returns the error of
    /// the operation.
    pub async fn refused(
        &mut self,
        mut session: Box<ClientSession>,
        refusal: Refusal,
        most: Duration,
    ) -> OperationError {
        match refusal.fate {
            Fate::RolledBack => {
                end(&mut session, most).await;
                *self = Transaction::None;
                OperationError::Aborted(refusal.message)
            }
            Fate::Refused => {
                end(&mut session, most).await;
                *self = Transaction::Ended(refusal.message.clone(), None);
                OperationError::Failed(refusal.message)
            }
            // Without a commit the transaction has no effect, but it is in the way of others until it is aborted.
            Fate::Lost => {
                *self = Transaction::Ended(refusal.message.clone(), Some(session));
                OperationError::Failed(refusal.message)
            }
        }
    }

    /// Commits the transaction that is under way.
    pub async fn commit(&mut self, most: Duration) -> Result<(), OperationError> {
        let mut session = match std::mem::take(self) {
            Transaction::Open(session) => session,
            Transaction::None => return Err(OperationError::Failed("no transaction is under way".to_string())),
            Transaction::Ended(why, session) => {
                if let Some(mut session) = session {
                    end(&mut session, most).await;
                }
                return Err(OperationError::Failed(why));
            }
            Transaction::Failed(mut session, why) => {
                end(&mut session, most).await;
                return Err(OperationError::Failed(format!("rolled back, since an operation of it failed: {why}")));
            }
        };
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
    pub async fn abort(&mut self, most: Duration) {
        match std::mem::take(self) {
            Transaction::Open(mut session)
            | Transaction::Failed(mut session, _)
            | Transaction::Ended(_, Some(mut session)) => end(&mut session, most).await,
            Transaction::None | Transaction::Ended(_, None) => {}
        }
    }
}

/// A session in which a transaction has begun.
async fn new_session(database: &Database) -> Result<ClientSession, Error> {
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

/// Frees what a transaction has locked. Errors do not matter: the session ends either way.
pub async fn end(session: &mut ClientSession, most: Duration) {
    let _ = tokio::time::timeout(most, session.abort_transaction()).await;
}
