//! What the stores share whose threads have a plain connection each, without a pool of the driver's:
//! parameters, time limits, and a connection that is made again after it broke.

use std::time::Duration;

use schemas::run::NOTE;
use schemas::vocabulary::kv::{Operation, Verb};

use super::fields::{exists, is_missing};
use super::url::StoreUrl;
use super::{Fate, OperationError, StoreError, patience};

/// How long an operation may take unless the URL says otherwise.
const TIMEOUT_MS: u32 = 10_000;

/// The parameters of such a store.
pub(crate) const PARAMETERS: [&str; 3] = ["ttl", "timeout_ms", "connections"];

/// The values of [`PARAMETERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// For how many seconds a record stays; None: for ever.
    pub ttl: Option<u32>,
    /// How long an operation may take.
    pub timeout: Duration,
    /// The most connections of all threads together; None: one a thread.
    pub connections_max: Option<u32>,
}

impl Limits {
    /// Those of a URL.
    pub fn of(url: &StoreUrl) -> Result<Limits, StoreError> {
        Ok(Limits {
            ttl: url.count("ttl")?,
            timeout: Duration::from_millis(url.count("timeout_ms")?.unwrap_or(TIMEOUT_MS).into()),
            connections_max: url.count("connections")?,
        })
    }
}

/// What a user must know of the reads of records that expire, as a setting of the store.
pub(crate) fn expiry_note(ttl: Option<u32>) -> Option<(String, String)> {
    let seconds = ttl?;
    let note = format!(
        "records expire {seconds} s after their last write (ttl={seconds}), and Encore counts a read that does not find \
         an expired record as unpredictable, an update of it as failed; remove ttl from the URL to check the store"
    );
    Some((NOTE.to_string(), note))
}

/// Waits for work on a store that is not an operation; `timeout` is that of operations.
pub(crate) async fn in_time<X, E>(
    url: &StoreUrl,
    timeout: Duration,
    work: impl Future<Output = Result<X, E>>,
    failed: impl FnOnce(&E) -> StoreError,
) -> Result<X, StoreError> {
    let most = patience(timeout);
    match tokio::time::timeout(most, work).await {
        Ok(done) => done.map_err(|error| failed(&error)),
        Err(_) => Err(StoreError::store(url, format!("timed out after {} ms", most.as_millis()))),
    }
}

/// Why an operation did not succeed.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub fate: Fate,
    pub message: String,
}

impl Refusal {
    /// Nothing has happened.
    pub fn refused(message: impl ToString) -> Refusal {
        Refusal { fate: Fate::Refused, message: message.to_string() }
    }
}

/// The end of an operation on the record with this key. `done` says whether the record was there, or
/// for an insert, that it was not.
pub(crate) fn outcome(done: Result<bool, Refusal>, operation: &Operation, key: &str) -> Result<(), OperationError> {
    match done {
        Ok(true) => Ok(()),
        Ok(false) if operation.verb == Verb::Insert => Err(exists(key)),
        Ok(false) => Err(is_missing(key)),
        Err(Refusal { fate: Fate::Lost, message }) if operation.verb.writes() => Err(OperationError::Unknown(message)),
        Err(Refusal { message, .. }) => Err(OperationError::Failed(message)),
    }
}

/// Why a command has no answer.
#[derive(Debug)]
pub(crate) enum Failure<E> {
    /// Nothing was sent.
    Connect(E),
    /// The server, or the way to it or back.
    Server(E),
}

/// A thread's connection.
pub(crate) struct Link<C> {
    /// None if it broke, or if a command on it timed out.
    open: Option<C>,
    may_have_changed: bool,
}

impl<C> Link<C> {
    /// An open connection.
    pub fn new(open: C) -> Link<C> {
        Link { open: Some(open), may_have_changed: false }
    }

    /// Whether a command that writes may have been sent and has happened, since [`Link::begin`].
    pub fn may_have_changed(&self) -> bool {
        self.may_have_changed
    }

    /// Begins an operation, or its next try: nothing of it has happened.
    pub fn begin(&mut self) {
        self.may_have_changed = false;
    }

    /// Sends a command, on a new connection if there is none. After an answer, and after an error of
    /// which `is_whole` says that the server has read all that was sent, the connection is kept.
    pub async fn send<X, E>(
        &mut self,
        writes: bool,
        connect: impl AsyncFnOnce() -> Result<C, E>,
        ask: impl AsyncFnOnce(&mut C) -> Result<X, E>,
        is_whole: impl FnOnce(&E) -> bool,
    ) -> Result<X, Failure<E>> {
        // Taken out, so that a command that is dropped at its time limit leaves no connection behind
        // on which its answer may still come.
        let mut open = match self.open.take() {
            Some(open) => open,
            None => connect().await.map_err(Failure::Connect)?,
        };
        self.may_have_changed |= writes;
        let answer = ask(&mut open).await;
        if answer.as_ref().err().is_none_or(is_whole) {
            self.open = Some(open);
        }
        answer.map_err(Failure::Server)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A connection is numbered; errors are "whole" or "broken".
    async fn send(link: &mut Link<u32>, made: &Cell<u32>, ask: Result<(), &'static str>) -> Result<u32, &'static str> {
        let connect = async || {
            made.set(made.get() + 1);
            Ok(made.get())
        };
        let sent = link.send(true, connect, async |open| ask.map(|()| *open), |error| *error == "whole").await;
        sent.map_err(|failure| match failure {
            Failure::Connect(error) | Failure::Server(error) => error,
        })
    }

    #[tokio::test]
    async fn a_connection_is_made_again_only_after_it_broke() {
        let (mut link, made) = (Link::new(0), Cell::new(0));
        assert_eq!(send(&mut link, &made, Ok(())).await, Ok(0));
        assert_eq!(send(&mut link, &made, Err("whole")).await, Err("whole"));
        assert_eq!(send(&mut link, &made, Ok(())).await, Ok(0));
        assert_eq!(send(&mut link, &made, Err("broken")).await, Err("broken"));
        assert_eq!(send(&mut link, &made, Ok(())).await, Ok(1));
        // A command that never ends is dropped with its connection.
        let sent = link.send(true, async || Ok(7), async |_| std::future::pending().await, |_: &()| true);
        assert!(
            tokio::time::timeout(Duration::from_millis(1), sent).await.map(|sent: Result<(), _>| drop(sent)).is_err()
        );
        assert_eq!(send(&mut link, &made, Ok(())).await, Ok(2));
    }

    #[tokio::test]
    async fn nothing_has_changed_before_a_write_was_sent() {
        let mut link: Link<()> = Link::new(());
        let read = link.send(false, async || Ok(()), async |()| Err::<(), _>("broken"), |_| false).await;
        assert!(matches!(read, Err(Failure::Server("broken"))) && !link.may_have_changed());
        let unsent = link.send(true, async || Err("no server"), async |()| Ok(()), |_| false).await;
        assert!(matches!(unsent, Err(Failure::Connect("no server"))) && !link.may_have_changed());
        let sent = link.send(true, async || Ok(()), async |()| Err::<(), _>("broken"), |_| false).await;
        assert!(sent.is_err() && link.may_have_changed());
        link.begin();
        assert!(!link.may_have_changed());
    }
}
