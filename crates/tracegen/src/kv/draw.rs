//! How the record of an operation is drawn: YCSB's request distributions.
//!
//! `zipfian` and `hotspot` draw among all records and take those of the fragment. The others draw
//! among the records of the fragment, in the order in which they are inserted.

use schemas::workload::kv::keys::hash;
use schemas::workload::kv::{Distribution, KvWorkload};

use super::space::Space;
use crate::core::chance::Stream;
use crate::core::zipfian::{CONSTANT, Zipfian};

/// Over how many ranks YCSB scatters its Zipfian distribution, and the sum of their weights.
const RANKS: u64 = 10_000_000_000;
const RANKS_SUM: f64 = 26.469_028_201_783_02;

/// The shares of so many of the first ranks are added record by record; the others are spread evenly.
const RANKS_COUNTED: u64 = 1_000_000;

/// Draws records of a fragment.
pub(crate) enum Draw {
    Uniform,
    Zipfian { ranks: Zipfian, space: u64 },
    Latest { ranks: Zipfian },
    Sequential { next: u64 },
    Exponential { gamma: f64 },
    Hotspot { hot: u64, access: f64 },
}

/// The records of a fragment in the order in which they are inserted.
pub(crate) struct Sequence {
    /// Those of the data set, counted from the first record.
    pub(crate) initial: Vec<u32>,
    /// Those that sessions inserted, and the sessions.
    pub(crate) inserted: Vec<(u64, u64)>,
    /// How many of them were inserted long enough ago to be drawn as one of the latest.
    pub(crate) settled: usize,
}

impl Sequence {
    fn get(&self, at: u64, first: u64) -> u64 {
        match self.initial.get(at as usize) {
            Some(index) => first + *index as u64,
            None => self.inserted[at as usize - self.initial.len()].0,
        }
    }

    /// How many records can be drawn as one of the latest.
    pub(crate) fn len(&self) -> u64 {
        (self.initial.len() + self.settled) as u64
    }
}

/// A record that was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) record: u64,
    /// Its rank among the latest records, if these are the most popular.
    pub(crate) rank: Option<u64>,
}

impl Draw {
    /// The draws of a fragment, before the first session.
    pub(crate) fn new(workload: &KvWorkload, sequence: &Sequence) -> Draw {
        let access = &workload.access;
        match access.distribution {
            Distribution::Uniform => Draw::Uniform,
            Distribution::Zipfian => {
                Draw::Zipfian { ranks: Zipfian::with_sum(RANKS, RANKS_SUM), space: key_space(workload) }
            }
            Distribution::Latest => Draw::Latest { ranks: Zipfian::new(sequence.len()) },
            Distribution::Sequential => Draw::Sequential { next: 0 },
            Distribution::Exponential => Draw::Exponential { gamma: gamma(workload, sequence.initial.len() as u64) },
            Distribution::Hotspot => Draw::Hotspot { hot: hot(workload), access: access.hotspot_access_share },
        }
    }

    /// One more record of the sequence can be drawn as one of the latest.
    pub(crate) fn grow(&mut self) {
        if let Draw::Latest { ranks } = self {
            ranks.grow();
        }
    }

    /// A record that may be of the fragment, and may exist.
    pub(crate) fn draw(
        &mut self,
        workload: &KvWorkload,
        space: &Space,
        sequence: &Sequence,
        chance: &mut Stream,
    ) -> Drawn {
        let (first, records) = (space.first, workload.data.records);
        let rank = match self {
            Draw::Latest { ranks } => Some(ranks.draw(chance)),
            Draw::Exponential { gamma } => loop {
                // 1 - unit lies in (0, 1].
                let back = -libm::log(1.0 - chance.unit()) / *gamma;
                if back < sequence.len() as f64 {
                    break Some(back as u64);
                }
            },
            _ => None,
        };
        let record = match self {
            Draw::Uniform => first + sequence.initial[chance.below(sequence.initial.len() as u64) as usize] as u64,
            Draw::Zipfian { ranks, space } => first + hash(ranks.draw(chance)) % *space,
            Draw::Latest { .. } | Draw::Exponential { .. } => {
                sequence.get(sequence.len() - 1 - rank.unwrap_or_default(), first)
            }
            Draw::Sequential { next } => {
                let at = *next % sequence.initial.len() as u64;
                *next += 1;
                first + sequence.initial[at as usize] as u64
            }
            Draw::Hotspot { hot, access } => {
                let is_hot = chance.unit() < *access && *hot > 0 || *hot >= records;
                first + if is_hot { chance.below(*hot) } else { *hot + chance.below(records - *hot) }
            }
        };
        Drawn { record, rank }
    }
}

/// Over how many records popular ones are scattered.
fn key_space(workload: &KvWorkload) -> u64 {
    match workload.access.key_space {
        0 => workload.data.records,
        given => given,
    }
}

/// How many records are hot.
fn hot(workload: &KvWorkload) -> u64 {
    (workload.data.records as f64 * workload.access.hotspot_data_share) as u64
}

fn gamma(workload: &KvWorkload, records: u64) -> f64 {
    let access = &workload.access;
    let range = (records as f64 * access.exponential_data_share).max(1.0);
    -libm::log(1.0 - access.exponential_percentile / 100.0) / range
}

/// The share of each record of the data set, counted from the first one, in any unit; empty if all
/// are alike, or if the latest are the most popular: each fragment draws among its own latest records.
pub(crate) fn popularity(workload: &KvWorkload) -> Vec<f64> {
    let records = workload.data.records;
    match workload.access.distribution {
        Distribution::Uniform | Distribution::Sequential | Distribution::Latest | Distribution::Exponential => {
            Vec::new()
        }
        Distribution::Zipfian => {
            let space = key_space(workload);
            let mut shares = vec![0.0; records as usize];
            let mut counted = 0.0;
            for rank in 0..RANKS_COUNTED {
                let weight = libm::pow((rank + 1) as f64, -CONSTANT);
                counted += weight;
                if let Some(share) = shares.get_mut((hash(rank) % space) as usize) {
                    *share += weight;
                }
            }
            let rest = (RANKS_SUM - counted) / space as f64;
            shares.iter_mut().for_each(|share| *share += rest);
            shares
        }
        Distribution::Hotspot => {
            let (hot, access) = (hot(workload), workload.access.hotspot_access_share);
            let (hot_share, cold_share) = match hot {
                0 => (0.0, 1.0),
                all if all >= records => (1.0, 0.0),
                hot => (access / hot as f64, (1.0 - access) / (records - hot) as f64),
            };
            (0..records).map(|index| if index < hot { hot_share } else { cold_share }).collect()
        }
    }
}

/// The shares of the first rank and of the first hundredth of the ranks, if the latest records are
/// the most popular.
pub(crate) fn latest_shares(workload: &KvWorkload, fragments: u32) -> Option<[f64; 2]> {
    let records = (workload.data.records / fragments as u64).max(1);
    let top = hundredth(records);
    match workload.access.distribution {
        Distribution::Latest => {
            let whole = Zipfian::new(records);
            Some([whole.share(0), (0..top).map(|rank| whole.share(rank)).sum()])
        }
        Distribution::Exponential => {
            let gamma = gamma(workload, records);
            let below = |ranks: u64| 1.0 - libm::exp(-gamma * ranks as f64);
            Some([below(1) / below(records), below(top) / below(records)])
        }
        _ => None,
    }
}

/// The hundredth of so many records, rounded up.
pub(crate) fn hundredth(records: u64) -> u64 {
    records.div_ceil(100)
}
