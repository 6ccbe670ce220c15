//! Fewer connections than threads (`connections=N`). A thread takes a connection for an operation
//! and returns it, or keeps it for a transaction. The wait for a connection is logged separately.

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
    /// Any connection of the worker's pool that is free; the one of a transaction until that has ended.
    Pooled(Rc<Pool<C>>, Option<Taken<C>>),
}

/// The connections that the threads of a worker share. All of them run on one
/// operating-system thread.
pub struct Pool<C> {
    free: RefCell<Vec<C>>,
    /// As many permits as there are free connections; hands them out in order.
    permits: Semaphore,
    clock: Clock,
}

/// A connection that a thread has taken out of the pool. It goes back when this is dropped.
pub struct Taken<C> {
    pool: Rc<Pool<C>>,
    /// None only while it is dropped.
    connection: Option<C>,
}

impl<C> Drop for Taken<C> {
    fn drop(&mut self) {
        // The connection goes back before the permit, so that the next thread with the permit finds it.
        self.pool.free.borrow_mut().extend(self.connection.take());
        self.pool.permits.add_permits(1);
    }
}

impl<C> Route<C> {
    /// A route through a pool.
    pub fn through(pool: Rc<Pool<C>>) -> Route<C> {
        Route::Pooled(pool, None)
    }
}

impl<C> Pool<C> {
    /// A pool of these connections, at least one.
    pub fn new(connections: Vec<C>) -> Pool<C> {
        let permits = Semaphore::new(connections.len());
        Pool { free: RefCell::new(connections), permits, clock: Clock::starting_in(0) }
    }

    /// Takes a connection as soon as one is free, and says in the answer how long that took.
    async fn take(self: &Rc<Self>, answer: &mut Answer) -> Result<Taken<C>, OperationError> {
        let nothing_free = || OperationError::Failed("the pool of connections is closed".to_string());
        let asked_ns = self.clock.now_ns();
        // The permit comes back with the connection.
        self.permits.acquire().await.map_err(|_| nothing_free())?.forget();
        let taken = Taken { pool: self.clone(), connection: self.free.borrow_mut().pop() };
        answer.pool_wait_ns = self.clock.now_ns() - asked_ns;
        if taken.connection.is_none() { Err(nothing_free()) } else { Ok(taken) }
    }
}

impl<C> Taken<C> {
    /// The connection, which is there until this is dropped.
    fn connection(&mut self) -> Result<&mut C, OperationError> {
        self.connection.as_mut().ok_or_else(|| OperationError::Failed("the pool of connections is closed".to_string()))
    }
}

/// Whether the transaction is over in which a call ended like this.
fn is_over(done: &Result<(), OperationError>) -> bool {
    matches!(done, Err(OperationError::Aborted(_)))
}

/// Performs an operation on the connection that the thread holds, or on one that is free.
async fn through<V: Vocabulary, C: Connection<V>>(
    pool: &Rc<Pool<C>>,
    held: &mut Option<Taken<C>>,
    request: &V::Request,
    answer: &mut Answer,
) -> Result<(), OperationError> {
    let mut free;
    let taken = match held {
        Some(taken) => taken,
        None => {
            free = pool.take(answer).await?;
            &mut free
        }
    };
    let done = taken.connection()?.execute(request, answer).await;
    if is_over(&done) {
        *held = None;
    }
    done
}

impl<V: Vocabulary, C: Connection<V>> Connection<V> for Route<C> {
    #[inline]
    async fn execute(&mut self, request: &V::Request, answer: &mut Answer) -> Result<(), OperationError> {
        match self {
            Route::Own(connection) => connection.execute(request, answer).await,
            Route::Pooled(pool, held) => through::<V, C>(pool, held, request, answer).await,
        }
    }

    async fn begin(&mut self, answer: &mut Answer) -> Result<(), OperationError> {
        match self {
            Route::Own(connection) => connection.begin(answer).await,
            Route::Pooled(pool, held) => {
                if held.is_none() {
                    *held = Some(pool.take(answer).await?);
                }
                let Some(taken) = held else { return Ok(()) };
                let done = taken.connection()?.begin(answer).await;
                if done.is_err() {
                    *held = None;
                }
                done
            }
        }
    }

    async fn commit(&mut self, answer: &mut Answer) -> Result<(), OperationError> {
        match self {
            Route::Own(connection) => connection.commit(answer).await,
            Route::Pooled(_, held) => match held.take() {
                Some(mut taken) => taken.connection()?.commit(answer).await,
                None => Err(OperationError::Failed("no transaction is under way".to_string())),
            },
        }
    }

    async fn abort(&mut self, answer: &mut Answer) -> Result<(), OperationError> {
        match self {
            Route::Own(connection) => connection.abort(answer).await,
            Route::Pooled(_, held) => match held.take() {
                Some(mut taken) => taken.connection()?.abort(answer).await,
                None => Ok(()),
            },
        }
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

    /// Counts what it is asked for, and refuses to go on after some operations.
    #[derive(Default)]
    struct Transactional {
        open: bool,
        operations: u32,
    }

    impl Connection<Social> for Transactional {
        async fn execute(&mut self, _: &Operation, _: &mut Answer) -> Result<(), OperationError> {
            assert!(self.open, "an operation on another connection than that of its transaction");
            tokio::task::yield_now().await;
            self.operations += 1;
            match self.operations {
                3 => {
                    self.open = false;
                    Err(OperationError::Aborted("deadlock".into()))
                }
                _ => Ok(()),
            }
        }

        async fn begin(&mut self, _: &mut Answer) -> Result<(), OperationError> {
            assert!(!std::mem::replace(&mut self.open, true));
            self.operations = 0;
            Ok(())
        }

        async fn commit(&mut self, _: &mut Answer) -> Result<(), OperationError> {
            assert!(std::mem::take(&mut self.open));
            Ok(())
        }

        async fn abort(&mut self, _: &mut Answer) -> Result<(), OperationError> {
            assert!(std::mem::take(&mut self.open));
            Ok(())
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_belongs_to_its_transaction() {
        let pool = Rc::new(Pool::new(vec![Transactional::default(), Transactional::default()]));
        let operation = Operation { action: Action::ListFriends, socialite: 0, target: 0, comment: None };
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let threads = (0..THREADS).map(|thread| {
                    let mut route = Route::through(pool.clone());
                    tokio::task::spawn_local(async move {
                        let mut answer = Answer::default();
                        for length in [2, 3, 1] {
                            Connection::<Social>::begin(&mut route, &mut answer).await.unwrap();
                            let mut done = Ok(());
                            for _ in 0..length {
                                done = route.execute(&operation, &mut answer).await;
                            }
                            match (done, thread % 2) {
                                // The connection is free again already.
                                (Err(_), _) => {}
                                (Ok(()), 0) => Connection::<Social>::commit(&mut route, &mut answer).await.unwrap(),
                                (Ok(()), _) => Connection::<Social>::abort(&mut route, &mut answer).await.unwrap(),
                            }
                        }
                    })
                });
                for thread in threads.collect::<Vec<_>>() {
                    thread.await.unwrap();
                }
            })
            .await;
        assert_eq!((pool.permits.available_permits(), pool.free.borrow().len()), (2, 2));
        assert!(pool.free.borrow().iter().all(|connection| !connection.open));
        // A thread that ends within its transaction gives the connection back.
        let mut route = Route::through(pool.clone());
        Connection::<Social>::begin(&mut route, &mut Answer::default()).await.unwrap();
        assert_eq!(pool.permits.available_permits(), 1);
        drop(route);
        assert_eq!(pool.permits.available_permits(), 2);
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
                let mut route = Route::through(pool.clone());
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
