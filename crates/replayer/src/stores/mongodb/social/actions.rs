//! Performs operations on a thread's connection.
//!
//! A write that the server rolled back is retried. The driver replaces a broken connection: the
//! next operation waits for a server as long as an operation may take.

use std::sync::Arc;

use schemas::social::{Operation, Social};

use super::shared::Shared;
use super::transactions;
use crate::stores::mongodb::retry::Pause;
use crate::stores::{Answer, Connection, OperationError};

/// A thread's connection.
pub struct Actions {
    shared: Arc<Shared>,
    /// The operation under way may have changed something that is not rolled back.
    may_have_changed: bool,
}

impl Actions {
    /// With what its worker's connections share.
    pub fn new(shared: Arc<Shared>) -> Actions {
        Actions { shared, may_have_changed: false }
    }

    async fn perform(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        if operation.action.is_read() {
            let read = self.shared.read(operation, answer).await;
            return read.map_err(|refusal| OperationError::Failed(refusal.message));
        }
        match self.shared.changes(operation).1 {
            Some(_) if self.shared.transactions => self.transact(operation, answer).await,
            None | Some(_) => self.change(operation, answer).await,
        }
    }

    /// One document after the other.
    async fn change(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        self.may_have_changed = true;
        let mut pause = Pause::default();
        while let Err(refusal) = shared.make(shared.changes(operation).0, None).await {
            pause.before_another_try(refusal, answer).await?;
        }
        let Some(mut second) = shared.changes(operation).1 else { return Ok(()) };
        while let Err(refusal) = shared.make(second, None).await {
            // The first document keeps its change, whatever became of the second.
            let half = |error| match error {
                OperationError::Failed(why) | OperationError::Unknown(why) | OperationError::Aborted(why) => {
                    OperationError::Unknown(format!("changed only one of the two members: {why}"))
                }
            };
            pause.before_another_try(refusal, answer).await.map_err(half)?;
            let Some(again) = shared.changes(operation).1 else { return Ok(()) };
            second = again;
        }
        Ok(())
    }

    /// Both documents or none.
    async fn transact(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        let mut pause = Pause::default();
        while let Err(refusal) = transactions::attempt(&shared, operation, &mut self.may_have_changed).await {
            pause.before_another_try(refusal, answer).await?;
        }
        Ok(())
    }
}

impl Connection<Social> for Actions {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        self.may_have_changed = false;
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform(operation, answer)).await;
        done.unwrap_or_else(|_| Err(OperationError::timed_out(most, self.may_have_changed)))
    }
}
