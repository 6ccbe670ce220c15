//! Operations on records in a transaction.

use mongodb::ClientSession;
use schemas::vocabulary::kv::{Operation, Verb};

use super::actions::{KvActions, none_found};
use crate::stores::mongodb::retry::Refusal;
use crate::stores::mongodb::transaction::{Transaction, end};
use crate::stores::{Answer, Fate, OperationError};

impl KvActions {
    /// Performs an operation in the transaction that is under way.
    pub(super) async fn execute_inside(
        &mut self,
        operation: &Operation,
        answer: &mut Answer,
    ) -> Result<(), OperationError> {
        let (mut session, failed) = self.transaction.take()?;
        let most = self.shared.timeout;
        let done = tokio::time::timeout(most, self.perform_inside(&mut session, operation, answer)).await;
        let refusal = match done {
            Ok(Ok(true)) => {
                self.transaction.go_on(session, failed);
                return Ok(());
            }
            Ok(Ok(false)) => {
                let error = none_found(operation, &self.key);
                let why = error.clone().into_message();
                self.transaction = match operation.verb {
                    // The server ends a transaction whose insert it has refused.
                    Verb::Insert => {
                        end(&mut session, most).await;
                        Transaction::Ended(why, None)
                    }
                    _ => Transaction::Failed(session, failed.unwrap_or(why)),
                };
                return Err(error);
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => Refusal { fate: Fate::Lost, message: format!("timed out after {} ms", most.as_millis()) },
        };
        Err(self.transaction.refused(session, refusal, most).await)
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
}
