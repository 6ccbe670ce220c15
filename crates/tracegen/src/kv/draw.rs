//! How the record of an operation is drawn: YCSB's request distributions, among the records of a
//! fragment that exist.
//!
//! A draw takes logarithmic time, whatever was deleted and however many fragments there are.

use std::collections::VecDeque;

use schemas::workload::kv::{Distribution, KvWorkload};

use super::space::{Space, hundredth};
use crate::core::chance::Stream;
use crate::core::weights::Weights;
use crate::core::zipfian::Zipfian;

/// Draws records of a fragment. The records stand in the order in which they are inserted.
pub(crate) struct Draws<'a> {
    space: &'a Space,
    how: How,
    /// Those of the data set, counted from the first record.
    initial: Vec<u32>,
    /// Those that sessions inserted and that can be drawn.
    inserted: Vec<u64>,
    /// Those that sessions inserted and that cannot be drawn yet, and the sessions.
    waiting: VecDeque<(u64, u64)>,
    /// How many sessions an insert waits.
    window: u64,
    /// The weights of those that exist; 1 where ranks decide.
    weights: Weights,
    /// The weight of the hottest record, and of the hottest hundredth of the records, as far as they
    /// are in the fragment and exist.
    hot: [u64; 2],
    /// The probability that a draw gives them.
    expected: [f64; 2],
    /// The same before the first session.
    alone: [f64; 2],
}

/// How the place of a record is drawn.
enum How {
    ByWeight,
    Sequential {
        /// The place at which the next record is searched.
        next: usize,
    },
    Latest {
        /// One for each record that exists.
        ranks: Zipfian,
    },
    Exponential {
        gamma: f64,
    },
}

/// A record that was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) record: u64,
    /// Its place among the records of the fragment.
    pub(crate) place: usize,
    /// Whether it is the most popular record, and whether it is one of the most popular hundredth.
    pub(crate) is_hot: [bool; 2],
    /// The probability of these.
    pub(crate) expected: [f64; 2],
}

impl<'a> Draws<'a> {
    /// The draws of a fragment, before the first session.
    pub(crate) fn new(workload: &KvWorkload, space: &'a Space, fragment: u32) -> Draws<'a> {
        let mut initial = space.records(fragment).to_vec();
        initial.sort_unstable();
        let count = initial.len() as u64;
        let weight = |index: &u32| space.popularity.of(*index as u64);
        let top: u64 = initial.iter().filter(|index| space.is_top(**index as u64)).map(weight).sum();
        let hottest: u64 = initial.iter().filter(|index| **index == space.hottest).map(weight).sum();
        let weights = Weights::new(initial.iter().map(weight));
        let how = match workload.access.distribution {
            Distribution::Uniform | Distribution::Zipfian | Distribution::Hotspot => How::ByWeight,
            Distribution::Sequential => How::Sequential { next: 0 },
            Distribution::Latest => How::Latest { ranks: Zipfian::new(count) },
            Distribution::Exponential => How::Exponential { gamma: gamma(workload, count) },
        };
        let window = if how.follows_inserts() { workload.access.dependency_window } else { 0 };
        let mut draws = Draws {
            space,
            how,
            initial,
            inserted: Vec::new(),
            waiting: VecDeque::new(),
            window,
            weights,
            hot: [hottest, top],
            expected: [0.0; 2],
            alone: [0.0; 2],
        };
        draws.expect();
        draws.alone = draws.expected;
        draws
    }

    /// Lets records be drawn only this many sessions after their insert, whatever the distribution.
    pub(crate) fn wait_for_inserts(&mut self, sessions: u64) {
        self.window = sessions;
    }

    /// The probabilities that a draw before the first session gives the hottest record, and one of the
    /// hottest hundredth.
    pub(crate) fn alone(&self) -> [f64; 2] {
        self.alone
    }

    /// A record that exists; None if none can be drawn.
    pub(crate) fn draw(&mut self, chance: &mut Stream) -> Option<Drawn> {
        let total = self.weights.total();
        if total == 0 {
            return None;
        }
        let (place, rank) = match &mut self.how {
            How::ByWeight => (self.weights.draw(chance), None),
            How::Sequential { next } => {
                let before = self.weights.before(*next % self.initial.len());
                let place = self.weights.find(before % total);
                *next = place + 1;
                (place, None)
            }
            How::Latest { ranks } => {
                let rank = ranks.draw(chance);
                (self.weights.find(total - 1 - rank), Some(rank))
            }
            How::Exponential { gamma } => {
                // The part of the exponential distribution that lies below the number of records.
                let unit = chance.unit() * exponential(*gamma, total);
                let rank = ((-libm::log1p(-unit) / *gamma) as u64).min(total - 1);
                (self.weights.find(total - 1 - rank), Some(rank))
            }
        };
        let record = self.record(place);
        let index = record - self.space.first;
        let is_hot = match rank {
            Some(rank) => [rank == 0, rank < hundredth(total)],
            None => [index == self.space.hottest as u64, self.space.is_top(index)],
        };
        Some(Drawn { record, place, is_hot, expected: self.expected })
    }

    fn record(&self, place: usize) -> u64 {
        match self.initial.get(place) {
            Some(index) => self.space.first + *index as u64,
            None => self.inserted[place - self.initial.len()],
        }
    }

    /// A session inserted a record.
    pub(crate) fn insert(&mut self, record: u64, session: u64) {
        self.waiting.push_back((record, session));
    }

    /// Lets the next session draw the records that were inserted long enough ago.
    pub(crate) fn settle(&mut self, session: u64) {
        while let Some((record, inserted)) = self.waiting.front().copied()
            && inserted.saturating_add(self.window) <= session
        {
            self.waiting.pop_front();
            let weight = self.space.popularity.of(record - self.space.first);
            if weight == 0 {
                continue;
            }
            self.inserted.push(record);
            self.weights.push(weight);
            if let How::Latest { ranks } = &mut self.how {
                ranks.grow();
            }
            self.expect();
        }
    }

    /// A session deleted the record at this place.
    pub(crate) fn delete(&mut self, Drawn { record, place, .. }: Drawn) {
        let weight = self.weights.remove(place);
        let index = record - self.space.first;
        self.hot[0] -= if index == self.space.hottest as u64 { weight } else { 0 };
        self.hot[1] -= if self.space.is_top(index) { weight } else { 0 };
        if let How::Latest { ranks } = &mut self.how {
            ranks.shrink();
        }
        self.expect();
    }

    /// Computes the probabilities of the hottest records.
    fn expect(&mut self) {
        let total = self.weights.total();
        if total == 0 {
            return;
        }
        let top = hundredth(total);
        self.expected = match &self.how {
            How::Latest { ranks } => [ranks.below(1), ranks.below(top)],
            How::Exponential { gamma } => [1, top].map(|ranks| exponential(*gamma, ranks) / exponential(*gamma, total)),
            How::ByWeight | How::Sequential { .. } => self.hot.map(|weight| weight as f64 / total as f64),
        };
    }
}

impl How {
    /// Whether popular records are those that were inserted last.
    fn follows_inserts(&self) -> bool {
        matches!(self, How::Latest { .. } | How::Exponential { .. })
    }
}

fn gamma(workload: &KvWorkload, records: u64) -> f64 {
    let access = &workload.access;
    let range = (records as f64 * access.exponential_data_share).max(1.0);
    // Above 0, even if the percentage is next to nothing.
    (-libm::log1p(-access.exponential_percentile / 100.0) / range).max(f64::MIN_POSITIVE)
}

/// The probability of a rank below this one, if ranks have no end.
fn exponential(gamma: f64, rank: u64) -> f64 {
    -libm::expm1(-gamma * rank as f64)
}
