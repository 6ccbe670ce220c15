//! One thread's operations: from the cache if it has the answer, else from the database.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use schemas::social::{Operation, Social};

use super::Consistency;
use super::cache::{CacheConnection, Fill, Look};
use super::codec::{Codec, Coder};
use super::keys::Item;
use crate::stores::answer::NotRows;
use crate::stores::relational::engine::Engine;
use crate::stores::relational::social::actions::SocialConnection;
use crate::stores::{Answer, Connection, OperationError};

/// How the cache is used.
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// How the cache avoids stale values.
    pub consistency: Consistency,
    /// How long a value stays, in seconds; 0 for ever.
    pub ttl_s: u32,
    /// How values are written.
    pub codec: Codec,
    /// How long a reader waits between the database and the fill.
    pub fill_delay: Duration,
}

/// A thread's connections to the cache and to the database behind it.
pub struct CasqlConnection<E: Engine> {
    database: SocialConnection<E>,
    cache: CacheConnection,
    /// Shared by all connections of a worker.
    coder: Rc<RefCell<Coder>>,
    protocol: Protocol,
}

impl<E: Engine> CasqlConnection<E> {
    /// From its two connections.
    pub fn new(
        database: SocialConnection<E>,
        cache: CacheConnection,
        coder: Rc<RefCell<Coder>>,
        protocol: Protocol,
    ) -> CasqlConnection<E> {
        CasqlConnection { database, cache, coder, protocol }
    }

    async fn read(&mut self, item: Item, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let lease = self.protocol.consistency == Consistency::Lease;
        let fill = match self.cache.look(&item, lease).await {
            Look::Hit(value) => match self.coder.borrow_mut().decode(&value, answer) {
                Ok(()) => return Ok(()),
                Err(NotRows) => {
                    answer.clear_rows();
                    Fill::No
                }
            },
            Look::Miss(fill) => fill,
        };
        if fill == Fill::No {
            return self.database.execute(operation, answer).await;
        }
        answer.keep_rows();
        self.database.execute(operation, answer).await?;
        if !self.protocol.fill_delay.is_zero() {
            tokio::time::sleep(self.protocol.fill_delay).await;
        }
        if let Some(rows) = answer.rows() {
            let value = self.coder.borrow_mut().encode(rows);
            self.cache.fill(&item, value, fill, self.protocol.ttl_s).await;
        }
        Ok(())
    }

    async fn write(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let done = self.database.execute(operation, answer).await;
        let may_have_happened = matches!(done, Ok(()) | Err(OperationError::Unknown(_)));
        if may_have_happened && self.protocol.consistency != Consistency::Ttl {
            self.cache.invalidate(&Item::changed_by(operation)).await;
        }
        done
    }
}

impl<E: Engine> Connection<Social> for CasqlConnection<E> {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        match Item::read_by(operation) {
            Some(item) => self.read(item, operation, answer).await,
            None => self.write(operation, answer).await,
        }
    }
}
