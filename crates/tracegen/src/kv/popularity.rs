//! How popular each record is, in whole numbers.

use schemas::workload::kv::keys::hash;
use schemas::workload::kv::{Distribution, KvWorkload};

use crate::core::zipfian::Zipfian;

/// Over how many ranks YCSB scatters its Zipfian distribution, and the sum of their weights.
const RANKS: u64 = 10_000_000_001;
const RANKS_SUM: f64 = 26.469_028_201_783_02;

/// The shares of so many of the first ranks are added record by record; the others are spread evenly.
const RANKS_COUNTED: u64 = 1_000_000;

/// The sum of all weights, about.
const WHOLE: f64 = (1u64 << 60) as f64;

/// The weight of each record by the distribution. If the latest records are the most popular, all have
/// the weight 1, since their ranks change with each insert.
pub(crate) struct Popularity {
    /// Those of the data set, counted from the first one. Empty if all have the weight 1.
    initial: Vec<u64>,
    /// How many records there are in the data set.
    records: u64,
    /// Those that are not in the data set and more popular than the others that are not, by number.
    inserted: Vec<(u64, u64)>,
    /// That of the others that are not in the data set, below `space`. From there on it is 0.
    inserted_rest: u64,
    /// Over how many records the popular ones are scattered.
    space: u64,
}

impl Popularity {
    /// The weights of a checked specification.
    pub(crate) fn new(workload: &KvWorkload) -> Popularity {
        let records = workload.data.records;
        let alike = |inserted_rest| Popularity {
            initial: Vec::new(),
            records,
            inserted: Vec::new(),
            inserted_rest,
            space: u64::MAX,
        };
        match workload.access.distribution {
            Distribution::Uniform | Distribution::Sequential => alike(0),
            Distribution::Latest | Distribution::Exponential => alike(1),
            Distribution::Zipfian => scattered(records, workload.access.key_space.max(records)),
            Distribution::Hotspot => {
                let (hot, access) = (hot(workload), workload.access.hotspot_access_share);
                let (hot_share, cold_share) = match hot {
                    0 => (0.0, 1.0 / records as f64),
                    all if all >= records => (1.0 / records as f64, 0.0),
                    hot => (access / hot as f64, (1.0 - access) / (records - hot) as f64),
                };
                let (hot_weight, cold_weight) = (weight(hot_share), weight(cold_share));
                let initial = (0..records).map(|index| if index < hot { hot_weight } else { cold_weight }).collect();
                Popularity { initial, ..alike(0) }
            }
        }
    }

    /// The weight of a record, counted from the first one.
    pub(crate) fn of(&self, index: u64) -> u64 {
        if index < self.records {
            return self.initial.get(index as usize).copied().unwrap_or(1);
        }
        match self.inserted.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(place) => self.inserted[place].1,
            Err(_) if index < self.space => self.inserted_rest,
            Err(_) => 0,
        }
    }
}

/// A share of all draws as a weight. What can be drawn has at least 1.
fn weight(share: f64) -> u64 {
    if share > 0.0 { ((share * WHOLE) as u64).max(1) } else { 0 }
}

/// YCSB's `ScrambledZipfianGenerator`: each rank goes to the record that its hash gives.
fn scattered(records: u64, space: u64) -> Popularity {
    let ranks = Zipfian::with_sum(RANKS, RANKS_SUM);
    let mut initial = vec![0.0; records as usize];
    let mut inserted: Vec<(u64, f64)> = Vec::new();
    let mut below = 0.0;
    for rank in 0..RANKS_COUNTED {
        let next = ranks.below(rank + 1);
        let (index, share) = (hash(rank) % space, next - below);
        below = next;
        match initial.get_mut(index as usize) {
            Some(record) => *record += share,
            None => inserted.push((index, share)),
        }
    }
    let rest = (1.0 - below) / space as f64;
    // Stable, so that shares of one record are added in the order of their ranks.
    inserted.sort_by_key(|(index, _)| *index);
    let shares = inserted.chunk_by(|(one, _), (other, _)| one == other);
    let share_of =
        |ranks: &[(u64, f64)]| (ranks[0].0, weight(rest + ranks.iter().map(|(_, share)| share).sum::<f64>()));
    Popularity {
        initial: initial.into_iter().map(|share| weight(rest + share)).collect(),
        records,
        inserted: shares.map(share_of).collect(),
        inserted_rest: weight(rest),
        space,
    }
}

/// How many records are hot.
fn hot(workload: &KvWorkload) -> u64 {
    (workload.data.records as f64 * workload.access.hotspot_data_share) as u64
}

#[cfg(test)]
mod tests {
    use schemas::spec::SpecOf;

    use super::*;

    fn popularity(records: u64, more: &str) -> Popularity {
        let text = format!(
            "name = 't'\nfamily = 'kv'\nsessions = 1000\n[data]\nrecords = {records}\n[access]\n\
             distribution = 'zipfian'\n{more}\n"
        );
        Popularity::new(&SpecOf::<KvWorkload>::parse(&text, "t.toml").unwrap().own)
    }

    /// The key space lacked a number, so that other records were hot than in YCSB. The expected values
    /// come from `ScrambledZipfianGenerator` of YCSB 0.17.0 (`site.ycsb:core`): 50,000,000 draws, without
    /// those of records that do not exist.
    #[test]
    fn the_hottest_records_are_those_of_ycsb() {
        for (records, mix, expect) in [
            (
                1_000,
                "[mix]\nread = 1",
                [
                    (144, 0.038571),
                    (610, 0.019941),
                    (213, 0.015996),
                    (679, 0.011658),
                    (10, 0.009327),
                    (545, 0.007799),
                    (942, 0.006586),
                    (476, 0.005839),
                    (436, 0.005324),
                    (902, 0.004942),
                    (505, 0.004370),
                    (971, 0.004235),
                    (719, 0.003932),
                    (253, 0.003694),
                    (650, 0.003376),
                    (184, 0.003299),
                    (728, 0.003150),
                    (824, 0.002943),
                    (262, 0.002943),
                    (797, 0.002789),
                ],
            ),
            (
                1_000,
                "[mix]\nscan = 0.95\ninsert = 0.05",
                [
                    (903, 0.042426),
                    (403, 0.021887),
                    (802, 0.017810),
                    (302, 0.012938),
                    (660, 0.010290),
                    (59, 0.008643),
                    (761, 0.007437),
                    (160, 0.006633),
                    (62, 0.006008),
                    (663, 0.005478),
                    (562, 0.004722),
                    (400, 0.004354),
                    (900, 0.004192),
                    (582, 0.004016),
                    (501, 0.003975),
                    (481, 0.003649),
                    (322, 0.003638),
                    (842, 0.003561),
                    (221, 0.003383),
                    (822, 0.003266),
                ],
            ),
            (
                100_000,
                "[mix]\nread = 1",
                [
                    (42439, 0.037808),
                    (91481, 0.019020),
                    (44356, 0.015302),
                    (93398, 0.010897),
                    (31877, 0.008470),
                    (82836, 0.006971),
                    (29960, 0.005895),
                    (80919, 0.005123),
                    (20588, 0.004514),
                    (69630, 0.004038),
                    (22505, 0.003651),
                    (71547, 0.003335),
                    (53728, 0.003072),
                    (4686, 0.002862),
                    (51811, 0.002661),
                    (2769, 0.002491),
                    (98738, 0.002336),
                    (22703, 0.002208),
                    (654, 0.002086),
                    (49696, 0.001986),
                ],
            ),
        ] {
            let popularity = popularity(records, mix);
            let total: u64 = (0..records).map(|record| popularity.of(record)).sum();
            let mut hottest: Vec<u64> = (0..records).collect();
            hottest.sort_by_key(|record| std::cmp::Reverse(popularity.of(*record)));
            for (place, (record, share)) in expect.into_iter().enumerate() {
                let found = popularity.of(record) as f64 / total as f64;
                // Five times the deviation of so many draws.
                let near = 5.0 * (share / 50e6f64).sqrt();
                assert!((found - share).abs() < near, "{records} {mix}: record {record} has {found} for {share}");
                // Records that are about equally popular may change places.
                let there = hottest.iter().position(|one| *one == record).unwrap_or_default();
                assert!(there.abs_diff(place) <= 1, "{records} {mix}: record {record} is at {there}, not {place}");
            }
        }
    }

    /// Generation drew numbers of a large key space until one existed, for ever.
    #[test]
    fn a_key_space_of_any_size_takes_no_more_memory() {
        let popularity = popularity(100, "key_space = 9_000_000_000_000_000_000\n[mix]\nread = 1");
        assert!((0..100).all(|record| popularity.of(record) > 0));
        assert!(popularity.inserted.len() <= RANKS_COUNTED as usize);
        let hot = hash(0) % 9_000_000_000_000_000_000;
        assert!(popularity.of(hot) > popularity.of(hot + 1) && popularity.of(hot + 1) > 0);
        assert_eq!(popularity.of(u64::MAX), 0);
    }
}
