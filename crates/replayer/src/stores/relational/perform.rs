//! Performs operations on a connection to a relational database, whatever the vocabulary.
//!
//! An operation that the database rolled back is retried. A broken connection is replaced before
//! the next operation, which waits for the server as long as an operation may take. In a transaction of several
//! operations neither happens (`transaction.rs`).

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use schemas::vocabulary::{Operation, Request, Vocabulary};
use sqlx::Error;

use super::engine::Engine;
use super::transaction::Transaction;
use super::words;
use crate::stores::{Answer, Connection, Fate, OperationError};

/// How often an operation is tried if the database rolls it back because of others.
const ATTEMPTS_MAX: u16 = 20;

/// The pause before the second attempt to connect. It doubles before each further attempt, up to
/// `RECONNECT_PAUSE_MAX`.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);
const RECONNECT_PAUSE_MAX: Duration = Duration::from_millis(500);

/// What the operations of a vocabulary do on a connection.
pub trait Attempts<V: Vocabulary, E: Engine>: 'static {
    /// The statement that begins a transaction of several operations.
    fn begin(&self) -> &'static str {
        E::DIALECT.begin
    }

    /// Tries an operation once. `is_inside` says whether it belongs to a transaction of several.
    fn attempt(
        &mut self,
        client: &mut E::Client,
        request: &V::Request,
        is_inside: bool,
        answer: &mut Answer,
    ) -> impl Future<Output = Result<(), Refusal>>;
}

/// A thread's connection.
pub struct Performer<E: Engine, A> {
    pub(super) engine: Arc<E>,
    /// None if it broke, and while an operation uses it. An operation that times out drops it, so
    /// that no other operation gets the rest of its answer.
    pub(super) client: Option<E::Client>,
    pub(super) attempts: A,
    pub(super) transaction: Transaction,
    pub(super) progress: Progress,
    /// The connection to a replica, for reads outside of transactions.
    reader: Option<Box<Performer<E, A>>>,
}

/// How far an operation got, for the case that it times out.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Something may have reached the database that the database has not rolled back.
    is_sent: bool,
    /// Why there is no connection.
    trouble: Option<String>,
}

impl Progress {
    /// Why an operation has not ended in its time.
    pub(super) fn timed_out(&mut self, most: Duration) -> String {
        let trouble = self.trouble.take().map(|trouble| format!(": {trouble}")).unwrap_or_default();
        format!("timed out after {} ms{trouble}", most.as_millis())
    }
}

impl<E: Engine, A> Performer<E, A> {
    /// On a connection that is open.
    pub(super) fn new(engine: Arc<E>, client: E::Client, attempts: A) -> Performer<E, A> {
        Performer {
            engine,
            client: Some(client),
            attempts,
            transaction: Transaction::None,
            progress: Progress::default(),
            reader: None,
        }
    }

    /// The same, with a connection to a replica for reads outside of transactions.
    pub(super) fn reading_from(self, reader: Performer<E, A>) -> Performer<E, A> {
        Performer { reader: Some(Box::new(reader)), ..self }
    }

    /// The connection, or a new one as soon as the server can be reached again.
    pub(super) async fn connected(&mut self) -> Result<E::Client, Error> {
        let mut pause = RECONNECT_PAUSE;
        loop {
            if let Some(client) = self.client.take() {
                return Ok(client);
            }
            match self.engine.connect().await {
                Ok(client) => return Ok(client),
                // Without a time limit, nothing would end the attempts.
                Err(error) if self.engine.timeout().is_none() => return Err(error),
                Err(error) => self.progress.trouble = Some(words(&error)),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RECONNECT_PAUSE_MAX);
        }
    }

    /// Tries until the operation is done, refused or of unknown fate.
    async fn perform<V: Vocabulary>(&mut self, request: &V::Request, answer: &mut Answer) -> Result<(), OperationError>
    where
        A: Attempts<V, E>,
    {
        loop {
            let mut client =
                self.connected().await.map_err(|error| OperationError::Failed(format!("no connection: {error}")))?;
            self.progress.is_sent = true;
            let refusal = match self.attempts.attempt(&mut client, request, false, answer).await {
                Ok(()) => {
                    self.client = Some(client);
                    return Ok(());
                }
                Err(refusal) => refusal,
            };
            if refusal.is_client_usable {
                self.client = Some(client);
            }
            match refusal.fate {
                Fate::RolledBack if answer.attempts < ATTEMPTS_MAX => {
                    self.progress.is_sent = false;
                    answer.attempts += 1;
                    answer.clear_rows();
                }
                Fate::Lost if request.operation().writes() => return Err(OperationError::Unknown(refusal.message)),
                Fate::RolledBack | Fate::Refused | Fate::Lost => return Err(OperationError::Failed(refusal.message)),
            }
        }
    }
}

/// Why an attempt did not succeed.
pub struct Refusal {
    pub(super) fate: Fate,
    pub(super) message: String,
    /// The connection can go on with the next statement.
    pub(super) is_client_usable: bool,
    /// So can its transaction.
    pub(super) is_transaction_usable: bool,
}

impl Refusal {
    /// An error of the driver.
    pub(super) fn of<E: Engine>(error: Error) -> Refusal {
        let fate = E::fate(&error);
        Refusal { fate, message: words(&error), is_client_usable: fate != Fate::Lost, is_transaction_usable: false }
    }

    /// Of work for which there is no connection.
    pub(super) fn unsent(why: &impl Display) -> Refusal {
        Refusal {
            fate: Fate::Refused,
            message: format!("no connection: {why}"),
            is_client_usable: false,
            is_transaction_usable: false,
        }
    }

    /// Of work that was sent on a connection that is closed since.
    pub(super) fn lost(message: String) -> Refusal {
        Refusal { fate: Fate::Lost, message, is_client_usable: false, is_transaction_usable: false }
    }

    /// An answer of the database that is not the expected one.
    pub(super) fn usable(fate: Fate, message: String) -> Refusal {
        Refusal { fate, message, is_client_usable: true, is_transaction_usable: true }
    }
}

impl<V: Vocabulary, E: Engine, A: Attempts<V, E>> Connection<V> for Performer<E, A> {
    async fn execute(&mut self, request: &V::Request, answer: &mut Answer) -> Result<(), OperationError> {
        if self.transaction.is_under_way() {
            // In a box, so that operations by themselves need no room for it.
            return Box::pin(self.perform_inside::<V>(request, answer)).await;
        }
        let writes = request.operation().writes();
        let on = match &mut self.reader {
            Some(reader) if !writes => &mut **reader,
            _ => self,
        };
        on.progress = Progress::default();
        let Some(most) = on.engine.timeout() else { return on.perform::<V>(request, answer).await };
        match tokio::time::timeout(most, on.perform::<V>(request, answer)).await {
            Ok(done) => done,
            Err(_) => {
                let message = on.progress.timed_out(most);
                match writes && on.progress.is_sent {
                    true => Err(OperationError::Unknown(message)),
                    false => Err(OperationError::Failed(message)),
                }
            }
        }
    }

    async fn begin(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.begin_with(Attempts::<V, E>::begin(&self.attempts)).await
    }

    async fn commit(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.commit_it().await
    }

    async fn abort(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        self.roll_it_back().await;
        Ok(())
    }
}
