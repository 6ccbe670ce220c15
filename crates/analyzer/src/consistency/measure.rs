//! All metrics of one register.

use schemas::verdict::{Guarantees, K};

use super::delta::delta;
use super::gamma::Gamma;
use super::guarantees::Checker;
use super::history::{BEFORE, Cluster, History};
use super::k_atomicity::of_broken;
use super::staleness::{Staleness, Stalenesses};

/// Which metrics are computed besides Γ. All are, but for measurements of what one costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Which {
    /// Δ and k.
    pub order: bool,
    /// Staleness of reads.
    pub staleness: bool,
    /// Visibility of writes.
    pub visibility: bool,
    /// Session guarantees.
    pub guarantees: bool,
}

impl Which {
    /// All metrics.
    pub const ALL: Which = Which { order: true, staleness: true, visibility: true, guarantees: true };
    /// Only Γ.
    pub const GAMMA: Which = Which { order: false, staleness: false, visibility: false, guarantees: false };
}

impl Default for Which {
    fn default() -> Which {
        Which::ALL
    }
}

/// The metrics of a register. It can be filled again, so that it allocates seldom.
#[derive(Default)]
pub struct Measured {
    /// Its history.
    pub history: History,
    /// The clusters of the history.
    pub clusters: Vec<Cluster>,
    /// Γ of each cluster.
    pub gamma: Gamma,
    /// Δ; None if a read ended before its write started.
    pub delta_ns: Option<i64>,
    /// k.
    pub k: K,
    /// The staleness of each read.
    pub reads: Vec<Staleness>,
    /// The t-visibility of each write, in nanoseconds; None for a write of unknown fate.
    pub visibility_ns: Vec<Option<i64>>,
    /// The session guarantees of threads.
    pub by_thread: Guarantees,
    /// The session guarantees of actors.
    pub by_actor: Guarantees,
    /// Which of them are computed.
    pub which: Which,
    stalenesses: Stalenesses,
    checker: Checker,
}

impl Measured {
    /// Computes them.
    pub fn of(history: History) -> Measured {
        let mut measured = Measured { history, ..Measured::default() };
        measured.fill(BEFORE, |_| None);
        measured
    }

    /// Computes them for the history that is here. The arguments are those of
    /// [`History::clusters_after`].
    pub fn fill(&mut self, initial_last_read: i64, known: impl Fn(u32) -> Option<Cluster>) {
        let Measured { history, clusters, gamma, stalenesses, checker, which, .. } = self;
        history.clusters_after(clusters, initial_last_read, known);
        gamma.fill(clusters);
        (self.delta_ns, self.k) = match gamma.is_linearizable() {
            true => (Some(0), K::One),
            false if which.order => (delta(clusters, gamma), of_broken(clusters, gamma)),
            false => (Some(0), K::More),
        };
        match which.staleness {
            true => stalenesses.of_reads(history, &mut self.reads),
            false => self.reads.clear(),
        }
        match which.visibility {
            true => stalenesses.of_writes(history, clusters, &mut self.visibility_ns),
            false => self.visibility_ns.clear(),
        }
        if which.guarantees {
            self.by_thread = checker.check(history, |by| by.thread.into());
            self.by_actor = checker.check(history, |by| by.actor);
        }
    }

    /// How many reads are stale.
    pub fn stale_reads(&self) -> u64 {
        self.reads.iter().filter(|read| read.k > 0).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::brute::{Event, histories, history, r, w};
    use super::*;

    /// The metrics agree with each other where they must.
    #[test]
    fn metrics_agree() {
        for (writes, reads) in histories(5_000, 51, 30) {
            let measured = Measured::of(History::new(writes, reads));
            let gamma = measured.gamma.item();
            assert_eq!(gamma == 0, measured.k == K::One);
            if let Some(delta) = measured.delta_ns {
                assert_eq!(gamma == 0, delta == 0);
                // Γ moves the ends too.
                assert!(gamma <= delta, "{:?}", measured.history);
                let stale = measured.reads.iter().map(|read| read.t_ns).max().unwrap_or(0);
                assert!(stale <= delta, "{:?}", measured.history);
            }
            assert!(measured.stale_reads() == 0 || gamma > 0);
        }
    }

    /// A store that returns what was true 10 ms ago.
    #[test]
    fn a_store_that_is_exactly_ten_milliseconds_late() {
        const MS: i64 = 1_000_000;
        let mut events: Vec<Event> = (1..100).map(|value| w(value, value * 20 * MS, value * 20 * MS)).collect();
        for ms in 1..2_000 {
            let seen = (ms - 10) / 20;
            events.push(r(seen, ms * MS, ms * MS));
        }
        let measured = Measured::of(history(&events));
        let most = measured.reads.iter().map(|read| read.t_ns).max();
        // The last stale read of a value is 9 ms after the next one was written.
        assert_eq!((measured.gamma.item(), measured.delta_ns, most), (9 * MS, Some(9 * MS), Some(9 * MS)));
        assert_eq!(measured.visibility_ns.iter().max(), Some(&Some(9 * MS)));
        assert_eq!(measured.k, K::Two);
        assert_eq!(measured.stale_reads(), 9 * 99);
    }
}
