//! What can go wrong with a store, and with an operation on it.

use std::time::Duration;

use super::url::StoreUrl;
use crate::source::Source;

/// An error of a store, or of what a user asks of it. The URL in it carries no secrets.
#[derive(Debug, thiserror::Error)]
#[error("{url}{} {message}", if url.ends_with(':') { "" } else { ":" })]
pub struct StoreError {
    /// The store, without secrets.
    pub url: String,
    /// What is wrong and what to do.
    pub message: String,
    /// What is to blame.
    pub blame: Blame,
}

/// What has caused an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The user: a wrong URL, wrong parameters.
    Usage,
    /// The store's state: it is not loaded, holds something else or is not where the experiment
    /// starts. Loading it repairs that.
    State,
    /// The store: it does not answer as it should.
    Store,
}

impl StoreError {
    /// The user has to act.
    pub fn usage(url: &StoreUrl, message: impl ToString) -> StoreError {
        StoreError { url: url.redacted(), message: message.to_string(), blame: Blame::Usage }
    }

    /// The store is not in the expected state.
    pub fn state(url: &StoreUrl, message: impl ToString) -> StoreError {
        StoreError { url: url.redacted(), message: message.to_string(), blame: Blame::State }
    }

    /// The same error, found while the state was checked: unless the store
    /// failed, its state is to blame.
    pub(crate) fn into_state(self) -> StoreError {
        let blame = match self.blame {
            Blame::Store => Blame::Store,
            Blame::Usage | Blame::State => Blame::State,
        };
        StoreError { blame, ..self }
    }

    /// The same error with what to do about it. A store that failed has said that itself.
    pub(crate) fn with(self, remedy: &str) -> StoreError {
        match self.blame {
            Blame::Store => self,
            Blame::Usage | Blame::State => StoreError { message: format!("{}; {remedy}", self.message), ..self },
        }
    }

    /// The store holds another number of things than the data set.
    pub(crate) fn miscounted(url: &StoreUrl, what: &str, found: i64, expected: i64, source: &Source) -> StoreError {
        let folder = source.folder.display();
        StoreError::usage(url, format!("{what}: found {found}, the data set of {folder} has {expected}"))
    }

    /// The store failed.
    pub fn store(url: &StoreUrl, message: impl ToString) -> StoreError {
        StoreError { url: url.redacted(), message: message.to_string(), blame: Blame::Store }
    }
}

/// What became of the statement, command or transaction that an error ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The store rolled it back because of others (for example after a deadlock): it may be
    /// retried at once.
    RolledBack,
    /// It did not happen.
    Refused,
    /// Unknown: a write may have happened. The connection may be broken.
    Lost,
}

/// Why an operation did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationError {
    /// It did not happen.
    Failed(String),
    /// A write that may have happened, now or later.
    Unknown(String),
    /// The store rolled back the transaction that it belonged to, because of others: none of it happened,
    /// and another transaction may begin.
    Aborted(String),
}

impl OperationError {
    /// Why it did not succeed.
    pub fn into_message(self) -> String {
        match self {
            OperationError::Failed(why) | OperationError::Unknown(why) | OperationError::Aborted(why) => why,
        }
    }

    /// The end of an operation that took longer than it may.
    pub fn timed_out(most: Duration, may_have_changed: bool) -> OperationError {
        let message = format!("timed out after {} ms", most.as_millis());
        match may_have_changed {
            true => OperationError::Unknown(message),
            false => OperationError::Failed(message),
        }
    }
}
