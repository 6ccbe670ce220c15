//! What every relational store has in common: the physical designs that a URL
//! can choose, their tables, the statements of the eleven actions on them, and
//! how operations are performed with these.
//!
//! ```text
//!  URL ──▶ Design ──▶ tables, indexes      (creation)
//!                 ├─▶ rows                 (the data set, as rows of these tables)
//!                 ├─▶ Statements ──▶ Actions (one thread's operations)
//!                 └─▶ audit ──▶ state      (row counts, digest, what must agree)
//! ```
//!
//! A database adds an [`Engine`]: its [`Dialect`], how it connects, loads in
//! bulk and resets, its settings, and what its errors say of a write's fate.

pub mod actions;
pub mod audit;
pub mod design;
pub mod engine;
pub mod rows;
pub(crate) mod state;
pub mod statements;
pub mod tables;
pub mod touched;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use schemas::digest::StateDigest;

use super::url::StoreUrl;
use super::{HeldState, LoadProgress, Store, StoreError, patience};
use crate::source::Source;
use actions::Actions;
use design::Design;
use engine::{Client, Engine};
use statements::Statements;

/// How a relational store says what all of them can say.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// The type of ids and counts, 64 bits.
    pub integer: &'static str,
    /// The type of texts.
    pub text: &'static str,
    /// The type of images.
    pub bytes: &'static str,
    /// What follows the definition of a table that is little more than its key.
    pub narrow_table: &'static str,
    /// The parameter of a statement that is bound n-th, from 1.
    pub parameter: fn(usize) -> String,
    /// What begins a transaction that writes.
    pub begin: &'static str,
    /// A query for two numbers: tables of the database, and those of them that
    /// are called `encore_state`.
    pub tables: &'static str,
}

/// The parameter that caps the connections of all threads.
const CONNECTIONS: &str = "connections";

/// A relational store.
pub struct Relational<E> {
    url: StoreUrl,
    design: Design,
    engine: Arc<E>,
    connections_max: Option<u32>,
}

impl<E: Engine> Relational<E> {
    /// Reads the URL; opens nothing yet.
    pub fn open(url: StoreUrl) -> Result<Relational<E>, StoreError> {
        let mut known = E::PARAMETERS.to_vec();
        known.extend(Design::PARAMETERS);
        known.push(CONNECTIONS);
        url.allow(&known)?;
        Ok(Relational {
            design: Design::of(&url)?,
            engine: Arc::new(E::open(&url)?),
            connections_max: url.count(CONNECTIONS)?,
            url,
        })
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// What the database adds.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// A connection that is not one of an experiment's threads.
    pub async fn client(&self) -> Result<E::Client, StoreError> {
        self.in_time(self.engine.connect()).await
    }

    /// Something of the driver's that is not an operation, and must end too.
    pub async fn in_time<X>(&self, work: impl Future<Output = Result<X, sqlx::Error>>) -> Result<X, StoreError> {
        let done = match self.engine.timeout().map(patience) {
            None => work.await,
            Some(most) => match tokio::time::timeout(most, work).await {
                Ok(done) => done,
                Err(_) => return Err(self.failed(format!("gave no answer within {} ms", most.as_millis()))),
            },
        };
        done.map_err(|error| self.driver_failed(error))
    }

    /// An error that the user can mend.
    pub fn misused(&self, message: impl ToString) -> StoreError {
        StoreError::usage(&self.url, message)
    }

    /// An error of the store's.
    pub fn failed(&self, error: impl ToString) -> StoreError {
        StoreError::store(&self.url, error)
    }

    /// An error of the driver's, with what a user should do about it.
    pub fn driver_failed(&self, error: sqlx::Error) -> StoreError {
        match self.engine.advice(&error) {
            Some(advice) => self.failed(format!("{error}; {advice}")),
            None => self.failed(error),
        }
    }
}

impl<E: Engine> Store for Relational<E> {
    type Connection = Actions<E>;

    fn url(&self) -> &StoreUrl {
        &self.url
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        E::load(self, source, progress).await
    }

    async fn held(&self) -> Result<Option<HeldState>, StoreError> {
        let held = E::held(self).await?;
        if let Some(held) = &held {
            self.design.check(&self.url, held)?;
        }
        Ok(held)
    }

    async fn set_held(&self, state: &HeldState) -> Result<(), StoreError> {
        self.write_state(state).await
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        self.check_rows(source).await
    }

    async fn settings(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let mut client = self.client().await?;
        let mut settings = self.in_time(E::settings(&mut client)).await?;
        settings.extend(self.design.settings());
        self.in_time(client.farewell()).await?;
        Ok(settings)
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        self.state_digest(source).await
    }

    fn connections_max(&self) -> Option<u32> {
        self.connections_max
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<Actions<E>>, StoreError> {
        let statements = Arc::new(Statements::new(&self.design, &E::DIALECT));
        let mut connections = Vec::with_capacity(threads.len());
        for thread in threads.clone() {
            let client = self.client().await.map_err(|error| StoreError {
                message: format!("connection {} of {}: {}", thread - threads.start + 1, threads.len(), error.message),
                ..error
            })?;
            connections.push(Actions::new(self.engine.clone(), client, statements.clone(), source));
        }
        Ok(connections)
    }
}
