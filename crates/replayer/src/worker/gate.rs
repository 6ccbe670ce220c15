//! The gate between warm-up and measured part. It opens for all workers at the same instant, some
//! time after the last of them has reached it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// What follows the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// The measured part, which begins at this time.
    At(i64),
    /// Nothing: some worker cannot go on.
    Never,
}

struct Gate {
    /// How many workers have not arrived yet, and whether all others can go on.
    expected: Mutex<(usize, bool)>,
    /// Sends to the keeper when the last worker has arrived.
    all_came: Mutex<Sender<bool>>,
    opening: watch::Sender<Option<Opening>>,
}

/// Opens the gate.
pub struct Keeper {
    gate: Arc<Gate>,
    all_came: Receiver<bool>,
}

/// A worker's right to pass the gate once. If the worker fails and drops it, the others do not
/// wait for ever.
pub struct Pass {
    gate: Arc<Gate>,
    has_arrived: bool,
}

/// A gate, with a pass for each worker.
pub fn gate(workers: usize) -> (Keeper, Vec<Pass>) {
    let (sender, all_came) = channel();
    let expected = Mutex::new((workers, true));
    let gate = Arc::new(Gate { expected, all_came: Mutex::new(sender), opening: watch::Sender::new(None) });
    let passes = (0..workers).map(|_| Pass { gate: gate.clone(), has_arrived: false }).collect();
    (Keeper { gate, all_came }, passes)
}

impl Keeper {
    /// Waits at most `patience` for the workers. Returns whether all can go on, or none if some
    /// have not arrived.
    pub fn all_came(&self, patience: Duration) -> Option<bool> {
        match self.all_came.recv_timeout(patience) {
            Ok(go_on) => Some(go_on),
            Err(RecvTimeoutError::Timeout) => None,
            // The sender lives in the gate.
            Err(RecvTimeoutError::Disconnected) => Some(false),
        }
    }

    /// Opens the gate. If the keeper is dropped instead, the gate opens with [`Opening::Never`].
    pub fn open(self, opening: Opening) {
        self.gate.opening.send_replace(Some(opening));
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.gate.opening.send_if_modified(|opening| {
            let is_shut = opening.is_none();
            opening.get_or_insert(Opening::Never);
            is_shut
        });
    }
}

impl Pass {
    /// Waits for the other workers, and until the keeper says when the gate opens. It stays shut
    /// if a worker does not `go_on`.
    pub async fn through(mut self, go_on: bool) -> Opening {
        self.arrive(go_on);
        let mut opening = self.gate.opening.subscribe();
        // The sender lives in the gate, which this pass holds.
        let opening = opening.wait_for(Option::is_some).await.ok().and_then(|opening| *opening);
        opening.unwrap_or(Opening::Never)
    }

    fn arrive(&mut self, go_on: bool) {
        self.has_arrived = true;
        let mut expected = self.gate.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.0 -= 1;
        expected.1 &= go_on;
        if let (0, all_go_on) = *expected {
            // If the keeper is gone, it has opened the gate with `Never`.
            let _ = self.gate.all_came.lock().unwrap_or_else(PoisonError::into_inner).send(all_go_on);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.arrive(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn openings(go_on: [bool; 3]) -> Vec<Opening> {
        let clock = Clock::starting_in(0);
        let (keeper, passes) = gate(3);
        let workers = std::iter::zip(passes, go_on).map(|(pass, go_on)| {
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(pass.through(go_on))
            })
        });
        let workers: Vec<_> = workers.collect();
        let all_go_on = keeper.all_came(Duration::from_secs(60)).unwrap();
        keeper.open(if all_go_on { Opening::At(clock.now_ns() + 5_000_000) } else { Opening::Never });
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    }

    #[test]
    fn all_begin_at_one_instant_or_none_does() {
        let all = openings([true; 3]);
        assert!(matches!(all[0], Opening::At(_)) && all.iter().all(|opening| *opening == all[0]), "{all:?}");
        assert_eq!(openings([true, false, true]), [Opening::Never; 3]);
    }

    #[tokio::test]
    async fn a_failed_worker_does_not_block_the_others() {
        let (keeper, mut passes) = gate(2);
        drop(passes.pop());
        assert_eq!(keeper.all_came(Duration::ZERO), None);
        let pass = passes.pop().unwrap();
        let passing = tokio::spawn(async move { pass.through(true).await });
        assert_eq!(
            tokio::task::spawn_blocking(move || keeper.all_came(Duration::from_secs(60))).await.unwrap(),
            Some(false)
        );
        // The keeper is gone by now.
        assert_eq!(passing.await.unwrap(), Opening::Never);
    }
}
