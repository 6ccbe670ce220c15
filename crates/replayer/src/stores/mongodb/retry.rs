//! Attempts at an operation: which of them may be followed by another one, and when.

use std::time::Duration;

use mongodb::error::Error;

use super::fate;
use crate::stores::{Answer, Fate, OperationError};

/// How often an operation is tried if the server rolls it back because of others.
const ATTEMPTS_MAX: u16 = 20;

/// The pause before the second attempt. It doubles before each further one, up to
/// `RETRY_PAUSE_MAX`, so that the operation in the way can end.
const RETRY_PAUSE: Duration = Duration::from_millis(1);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(50);

/// Why an attempt did not succeed.
#[derive(Debug)]
pub struct Refusal {
    pub fate: Fate,
    pub message: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { fate: fate::fate(&error), message: fate::words(&error) }
    }
}

impl From<mongodb::bson::error::Error> for Refusal {
    fn from(error: mongodb::bson::error::Error) -> Refusal {
        Refusal::refused(error)
    }
}

impl Refusal {
    /// Of an operation that did not happen.
    pub fn refused(message: impl ToString) -> Refusal {
        Refusal { fate: Fate::Refused, message: message.to_string() }
    }
}

/// Waits between attempts.
pub struct Pause(Duration);

impl Default for Pause {
    fn default() -> Pause {
        Pause(RETRY_PAUSE)
    }
}

impl Pause {
    /// Returns when a write may be retried; an error if it may not.
    pub async fn before_another_try(&mut self, refusal: Refusal, answer: &mut Answer) -> Result<(), OperationError> {
        match refusal.fate {
            Fate::RolledBack if answer.attempts < ATTEMPTS_MAX => {
                answer.attempts += 1;
                answer.clear_rows();
                tokio::time::sleep(self.0).await;
                self.0 = (self.0 * 2).min(RETRY_PAUSE_MAX);
                Ok(())
            }
            Fate::RolledBack | Fate::Refused => Err(OperationError::Failed(refusal.message)),
            Fate::Lost => Err(OperationError::Unknown(refusal.message)),
        }
    }
}
