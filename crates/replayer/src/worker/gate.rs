//! The gate between warm-up and measured part: it opens for all workers at the
//! same instant, when the last of them has come to it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::clock::Clock;

/// What waits behind the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// The measured part, which began at this time.
    At(i64),
    /// Nothing: some worker cannot go on.
    Never,
}

struct Gate {
    /// Workers that have not come yet, and whether all others can go on.
    expected: Mutex<(usize, bool)>,
    opening: watch::Sender<Option<Opening>>,
}

/// A worker's right to pass the gate once. Losing it (the worker failed) keeps
/// the others from waiting for ever.
pub struct Pass {
    gate: Arc<Gate>,
    has_arrived: bool,
}

/// The passes of so many workers.
pub fn passes(workers: usize) -> Vec<Pass> {
    let gate = Arc::new(Gate { expected: Mutex::new((workers, true)), opening: watch::Sender::new(None) });
    (0..workers).map(|_| Pass { gate: gate.clone(), has_arrived: false }).collect()
}

impl Pass {
    /// Waits for the other workers. The gate opens for nobody when one of them
    /// does not `go_on`.
    pub async fn through(mut self, go_on: bool, clock: &Clock) -> Opening {
        self.arrive(go_on.then(|| clock.now_ns()));
        let mut opening = self.gate.opening.subscribe();
        // The sender lives in the gate, which this pass holds.
        opening.wait_for(Option::is_some).await.ok().and_then(|opening| *opening).unwrap_or(Opening::Never)
    }

    /// `now_ns` is none when the worker cannot go on.
    fn arrive(&mut self, now_ns: Option<i64>) {
        self.has_arrived = true;
        let mut expected = self.gate.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.0 -= 1;
        expected.1 &= now_ns.is_some();
        if let (0, all_go_on) = *expected {
            let opening = now_ns.filter(|_| all_go_on).map_or(Opening::Never, Opening::At);
            self.gate.opening.send_replace(Some(opening));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.arrive(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openings(go_on: [bool; 3]) -> Vec<Opening> {
        let clock = Clock::starting_in(0);
        let workers = std::iter::zip(passes(3), go_on).map(|(pass, go_on)| {
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let opening = runtime.block_on(pass.through(go_on, &clock));
                if let Opening::At(at_ns) = opening {
                    assert!(clock.now_ns() >= at_ns);
                }
                opening
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    }

    #[test]
    fn all_begin_at_one_instant_or_nobody_does() {
        let all = openings([true; 3]);
        assert!(matches!(all[0], Opening::At(_)) && all.iter().all(|opening| *opening == all[0]), "{all:?}");
        assert_eq!(openings([true, false, true]), [Opening::Never; 3]);
    }

    #[tokio::test]
    async fn a_worker_that_failed_holds_up_nobody() {
        let mut passes = passes(2);
        drop(passes.pop());
        let pass = passes.pop().unwrap();
        assert_eq!(pass.through(true, &Clock::starting_in(0)).await, Opening::Never);
    }
}
