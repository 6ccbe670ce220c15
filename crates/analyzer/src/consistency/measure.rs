//! All metrics of one register.

use super::delta::delta;
use super::gamma::Gamma;
use super::guarantees::{Guarantees, by_actor, by_thread};
use super::history::{Cluster, History};
use super::k_atomicity::K;
use super::staleness::{Staleness, of_reads, of_writes};

/// The metrics of a register.
#[derive(Debug, Clone)]
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
    /// The t-visibility of each known write that a read followed, in nanoseconds.
    pub visibility_ns: Vec<i64>,
    /// The session guarantees of threads.
    pub by_thread: Guarantees,
    /// The session guarantees of actors.
    pub by_actor: Guarantees,
}

impl Measured {
    /// Computes them.
    pub fn of(history: History) -> Measured {
        let clusters = history.clusters();
        let gamma = Gamma::of(&clusters);
        let (delta_ns, k) = match gamma.is_linearizable() {
            true => (Some(0), K::One),
            false => (delta(&clusters), K::of_broken(&clusters)),
        };
        Measured {
            delta_ns,
            k,
            reads: of_reads(&history),
            visibility_ns: of_writes(&history),
            by_thread: by_thread(&history),
            by_actor: by_actor(&history),
            history,
            clusters,
            gamma,
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
                assert!(gamma <= delta, "{measured:?}");
                let stale = measured.reads.iter().map(|read| read.t_ns).max().unwrap_or(0);
                assert!(stale <= delta, "{measured:?}");
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
        assert_eq!(measured.visibility_ns.iter().max(), Some(&(9 * MS)));
        assert_eq!(measured.k, K::Two);
        assert_eq!(measured.stale_reads(), 9 * 99);
    }
}
