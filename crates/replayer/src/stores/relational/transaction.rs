//! Transactions of several operations on a connection to a relational database.
//!
//! Nothing in a transaction is retried, and its connection is never replaced: a transaction whose
//! connection is lost has failed, and its later operations fail without being sent.

use std::mem::take;

use schemas::vocabulary::Vocabulary;
use sqlx::{Error, SqlSafeStr};

use super::engine::{Client, Engine};
use super::perform::{Attempts, Performer, Progress, Refusal};
use crate::stores::{Answer, Fate, OperationError};

/// Where the transaction of a connection stands.
#[derive(Debug, Default)]
pub(super) enum Transaction {
    /// There is none: each operation is by itself.
    #[default]
    None,
    /// It is open.
    Open,
    /// It is open, but an operation of it has failed, so it must not be committed.
    Failed(String),
    /// The same, and no other operation of it may be sent: the database has refused a statement, and some
    /// databases have rolled back by then. Later operations would be by themselves.
    Stuck(String),
    /// Its connection is gone, so the database rolls it back.
    Lost(String),
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

impl<E: Engine, A> Performer<E, A> {
    /// Begins a transaction by this statement.
    pub(super) async fn begin_with(&mut self, statement: &'static str) -> Result<(), OperationError> {
        if matches!(self.transaction, Transaction::Open | Transaction::Failed(_) | Transaction::Stuck(_)) {
            return Err(OperationError::Failed("a transaction is under way already".to_string()));
        }
        self.transaction = Transaction::Lost(GIVEN_UP.to_string());
        let began = self.in_time(async |performer| {
            let mut client = performer.connected().await.map_err(|error| Refusal::unsent(&error))?;
            match client.run(statement.into_sql_str()).await {
                Ok(()) => performer.client = Some(client),
                Err(error) => return Err(performer.end(client, Refusal::of::<E>(error)).await),
            }
            Ok(())
        });
        match began.await {
            Ok(()) => {
                self.transaction = Transaction::Open;
                Ok(())
            }
            // The transaction is over before it has begun.
            Err(refusal) => {
                self.transaction = Transaction::None;
                Err(match refusal.fate {
                    Fate::RolledBack => OperationError::Aborted(refusal.message),
                    Fate::Refused | Fate::Lost => OperationError::Failed(refusal.message),
                })
            }
        }
    }

    /// Performs an operation in the transaction that is under way.
    pub(super) async fn perform_inside<V: Vocabulary>(
        &mut self,
        request: &V::Request,
        answer: &mut Answer,
    ) -> Result<(), OperationError>
    where
        A: Attempts<V, E>,
    {
        // If this is given up midway, the connection goes with it.
        let before = std::mem::replace(&mut self.transaction, Transaction::Lost(GIVEN_UP.to_string()));
        if let Transaction::Lost(why) | Transaction::Stuck(why) = &before {
            let why = format!("not sent, since an operation of the transaction failed before: {why}");
            self.transaction = before;
            return Err(OperationError::Failed(why));
        }
        let performed = self.in_time(async |performer| {
            let Some(mut client) = performer.client.take() else { return Err(Refusal::lost(GIVEN_UP.to_string())) };
            match performer.attempts.attempt(&mut client, request, true, answer).await {
                Ok(()) => performer.client = Some(client),
                Err(refusal) if refusal.fate == Fate::RolledBack => return Err(performer.end(client, refusal).await),
                Err(refusal) => {
                    performer.client = refusal.is_client_usable.then_some(client);
                    return Err(refusal);
                }
            }
            Ok(())
        });
        match performed.await {
            Ok(()) => {
                self.transaction = before;
                Ok(())
            }
            Err(refusal) if refusal.fate == Fate::RolledBack => {
                self.transaction = Transaction::None;
                Err(OperationError::Aborted(refusal.message))
            }
            // Without a commit nothing has happened, whatever became of the statement.
            Err(refusal) => {
                self.transaction = match (before, &self.client) {
                    (_, None) => Transaction::Lost(refusal.message.clone()),
                    (_, Some(_)) if !refusal.is_transaction_usable => Transaction::Stuck(refusal.message.clone()),
                    (Transaction::Failed(first), Some(_)) => Transaction::Failed(first),
                    (_, Some(_)) => Transaction::Failed(refusal.message.clone()),
                };
                Err(OperationError::Failed(refusal.message))
            }
        }
    }

    /// Commits the transaction that is under way.
    pub(super) async fn commit_it(&mut self) -> Result<(), OperationError> {
        match take(&mut self.transaction) {
            Transaction::None => Err(OperationError::Failed("no transaction is under way".to_string())),
            Transaction::Lost(why) => Err(OperationError::Failed(why)),
            Transaction::Failed(why) | Transaction::Stuck(why) => {
                // PostgreSQL would answer to COMMIT without an error, and roll back.
                self.roll_it_back().await;
                Err(OperationError::Failed(format!("rolled back, since an operation of it failed: {why}")))
            }
            Transaction::Open => {
                let committed = self.in_time(async |performer| {
                    let Some(mut client) = performer.client.take() else {
                        return Err(Refusal::unsent(&GIVEN_UP));
                    };
                    match client.run("COMMIT".into_sql_str()).await {
                        Ok(()) => performer.client = Some(client),
                        Err(error) => return Err(performer.end(client, Refusal::of::<E>(error)).await),
                    }
                    Ok(())
                });
                committed.await.map_err(|refusal| match refusal.fate {
                    Fate::RolledBack => OperationError::Aborted(refusal.message),
                    Fate::Refused => OperationError::Failed(refusal.message),
                    Fate::Lost => OperationError::Unknown(refusal.message),
                })
            }
        }
    }

    /// Rolls the transaction back. That always succeeds: without a commit it has no effect.
    pub(super) async fn roll_it_back(&mut self) {
        self.transaction = Transaction::None;
        let rolled_back = self.in_time(async |performer| {
            if let Some(mut client) = performer.client.take()
                && roll_back::<E>(&mut client).await
            {
                performer.client = Some(client);
            }
            Ok(())
        });
        // If that took too long, the connection is closed, which rolls back as well.
        let _ = rolled_back.await;
    }

    /// Ends a transaction that the database refuses to go on with. Keeps the connection if it can.
    async fn end(&mut self, mut client: E::Client, refusal: Refusal) -> Refusal {
        if refusal.is_client_usable && roll_back::<E>(&mut client).await {
            self.client = Some(client);
        }
        refusal
    }

    /// Does some work within the time of an operation. A connection that it has taken is closed
    /// when the time is over.
    async fn in_time(&mut self, work: impl AsyncFnOnce(&mut Self) -> Result<(), Refusal>) -> Result<(), Refusal> {
        let Some(most) = self.engine.timeout() else { return work(self).await };
        self.progress = Progress::default();
        let done = tokio::time::timeout(most, work(self)).await;
        done.unwrap_or_else(|_| Err(Refusal::lost(self.progress.timed_out(most))))
    }
}

/// Rolls back the transaction of a connection. Returns whether the connection can be used after it.
pub(super) async fn roll_back<E: Engine>(client: &mut E::Client) -> bool {
    match client.run("ROLLBACK".into_sql_str()).await {
        Ok(()) => true,
        // After some errors SQLite has already rolled back, and refuses to do so again.
        Err(Error::Database(error)) => error.message().contains("no transaction is active"),
        // Closing the connection rolls it back as well.
        Err(_) => false,
    }
}
