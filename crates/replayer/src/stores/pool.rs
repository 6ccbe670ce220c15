//! Fewer connections than threads (`connections=N`). A thread takes a connection for an operation
//! and returns it. The wait for a connection is logged separately.

use std::cell::RefCell;
use std::rc::Rc;

use schemas::vocabulary::Vocabulary;
use tokio::sync::Semaphore;

use super::{Answer, Connection, OperationError};
use crate::clock::Clock;

/// A thread's route to a connection: its own, or one of a pool.
pub enum Route<C> {
    /// The thread's own connection.
    Own(C),
    /// Any connection of the worker's pool that is free.
    Pooled(Rc<Pool<C>>),
}

/// The connections that the threads of a worker share. All of them run on one
/// operating-system thread.
pub struct Pool<C> {
    free: RefCell<Vec<C>>,
    /// As many permits as there are free connections; hands them out in order.
    permits: Semaphore,
    clock: Clock,
}

impl<C> Pool<C> {
    /// A pool of these connections, at least one.
    pub fn new(connections: Vec<C>) -> Pool<C> {
        let permits = Semaphore::new(connections.len());
        Pool { free: RefCell::new(connections), permits, clock: Clock::starting_in(0) }
    }
}

impl<V: Vocabulary, C: Connection<V>> Connection<V> for Route<C> {
    #[inline]
    async fn execute(&mut self, operation: &V::Operation, answer: &mut Answer) -> Result<(), OperationError> {
        match self {
            Route::Own(connection) => connection.execute(operation, answer).await,
            Route::Pooled(pool) => pool.execute(operation, answer).await,
        }
    }
}

impl<C> Pool<C> {
    async fn execute<V: Vocabulary>(&self, operation: &V::Operation, answer: &mut Answer) -> Result<(), OperationError>
    where
        C: Connection<V>,
    {
        let nothing_free = || OperationError::Failed("the pool of connections is closed".to_string());
        let asked_ns = self.clock.now_ns();
        let _permit = self.permits.acquire().await.map_err(|_| nothing_free())?;
        let mut connection = self.free.borrow_mut().pop().ok_or_else(nothing_free)?;
        answer.pool_wait_ns = self.clock.now_ns() - asked_ns;
        let done = connection.execute(operation, answer).await;
        // The connection goes back before the permit, so that the next thread with the permit finds it.
        self.free.borrow_mut().push(connection);
        done
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use schemas::social::{Action, Operation, Social};

    use super::*;

    const THREADS: u32 = 6;

    /// Takes 10 ms an operation, from when all threads have asked for a connection. Counts how
    /// many operations run at the same time.
    struct Slow {
        running: Rc<Cell<(u32, u32)>>,
        asked: Rc<Cell<u32>>,
    }

    impl Connection<Social> for Slow {
        async fn execute(&mut self, _: &Operation, _: &mut Answer) -> Result<(), OperationError> {
            let (now, most) = self.running.get();
            self.running.set((now + 1, most.max(now + 1)));
            while self.asked.get() < THREADS {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            let (now, most) = self.running.get();
            self.running.set((now - 1, most));
            Ok(())
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn threads_wait_for_a_connection_and_say_how_long() {
        let running = Rc::new(Cell::new((0, 0)));
        let asked = Rc::new(Cell::new(0));
        let connections = (0..2).map(|_| Slow { running: running.clone(), asked: asked.clone() });
        let pool = Rc::new(Pool::new(connections.collect()));
        let operation = Operation { action: Action::ListFriends, socialite: 0, target: 0, comment: None };
        let local = tokio::task::LocalSet::new();
        let waits = local.run_until(async {
            let threads = (0..THREADS).map(|_| {
                let mut route = Route::Pooled(pool.clone());
                let asked = asked.clone();
                tokio::task::spawn_local(async move {
                    let mut answer = Answer::default();
                    asked.set(asked.get() + 1);
                    route.execute(&operation, &mut answer).await.unwrap();
                    answer.pool_wait_ns
                })
            });
            let mut waits = Vec::new();
            for thread in threads.collect::<Vec<_>>() {
                waits.push(thread.await.unwrap());
            }
            waits
        });
        let mut waits = waits.await;
        waits.sort_unstable();
        assert_eq!(running.get(), (0, 2), "never more than two at a time");
        // Two threads got one at once; the last two waited for two operations of 10 ms each.
        assert!(waits[4] >= 20_000_000, "{waits:?}");
    }
}
