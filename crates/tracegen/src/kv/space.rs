//! The records: in the order of their keys, how popular each is, and which fragment each is in.
//!
//! The keys of a fragment are next to each other among all keys, so that a scan stays inside its
//! fragment. A record that is inserted later belongs to the fragment between whose keys its own is.

use schemas::spec::SpecOf;
use schemas::workload::kv::keys::KeyPlace;
use schemas::workload::kv::{KeyOrder, Keys, KvWorkload, SessionKind};

use super::popularity::Popularity;
use crate::core::error::GenerateError;

/// How far a fragment's share of all draws may be from its weight, relative to the weight.
const SHARE_TOLERANCE: f64 = 0.05;

/// The records of all fragments.
pub(crate) struct Space {
    /// The keys.
    pub(crate) keys: Keys,
    /// The number of the first record.
    pub(crate) first: u64,
    /// The records of all fragments in the order of their keys, counted from the first one.
    by_key: Vec<u32>,
    /// Where each fragment begins in that order, and the end.
    starts: Vec<usize>,
    /// The place of each fragment's first key.
    places: Vec<KeyPlace>,
    /// Each fragment's share of all draws.
    pub(crate) weights: Vec<f64>,
    /// How popular each record is.
    pub(crate) popularity: Popularity,
    /// The most popular record of the data set, counted from the first one. If all are alike, any.
    pub(crate) hottest: u32,
    /// A bit for each record of the data set: whether it is in the most popular hundredth.
    top: Vec<u64>,
}

impl Space {
    /// Distributes the records of a checked specification over its fragments.
    pub(crate) fn new(spec: &SpecOf<KvWorkload>) -> Result<Space, GenerateError> {
        let data = &spec.own.data;
        let (keys, first) = (Keys::new(data), data.first_record);
        let mut places: Vec<(KeyPlace, u32)> =
            (0..data.records as u32).map(|index| (keys.place(keys.number(first + index as u64)), index)).collect();
        places.sort_unstable();
        let by_key: Vec<u32> = places.into_iter().map(|(_, index)| index).collect();
        let popularity = Popularity::new(&spec.own);
        let starts = divide(spec, &by_key, &popularity);
        let sum = |ends: &[usize]| by_key[ends[0]..ends[1]].iter().map(|index| popularity.of(*index as u64)).sum();
        let sums: Vec<u64> = starts.windows(2).map(sum).collect();
        let total: u64 = sums.iter().sum();
        // With twelve decimals every JSON reader gets exactly the same number, so that all readers
        // share sessions between fragments alike.
        let weights: Vec<f64> = sums.iter().map(|sum| (*sum as f64 / total as f64 * 1e12).round() / 1e12).collect();
        check_shares(spec, &weights)?;
        let place = |index: u32| keys.place(keys.number(first + index as u64));
        let places = starts[..starts.len() - 1].iter().map(|start| place(by_key[*start])).collect();
        let (hottest, top) = top(&popularity, data.records);
        Ok(Space { keys, first, by_key, starts, places, weights, popularity, hottest, top })
    }

    /// The records of a fragment in the order of their keys, counted from the first record.
    pub(crate) fn records(&self, fragment: u32) -> &[u32] {
        &self.by_key[self.starts[fragment as usize]..self.starts[fragment as usize + 1]]
    }

    /// The first record of a fragment in the order of keys.
    pub(crate) fn first_record(&self, fragment: u32) -> u64 {
        self.first + self.records(fragment)[0] as u64
    }

    /// Whether a record, counted from the first one, is in the most popular hundredth of the data set.
    pub(crate) fn is_top(&self, index: u64) -> bool {
        self.top.get((index / 64) as usize).is_some_and(|bits| bits >> (index % 64) & 1 == 1)
    }

    /// Whether a record is in a fragment, if it exists.
    pub(crate) fn is_in(&self, fragment: u32, record: u64) -> bool {
        if self.places.len() == 1 {
            return true;
        }
        let place = self.keys.place(self.keys.number(record));
        let fragment = fragment as usize;
        // The outer fragments go on to both ends.
        (fragment == 0 || self.places[fragment] <= place)
            && self.places.get(fragment + 1).is_none_or(|next| place < *next)
    }

    /// How many records of the fragment's data set have this record's key or a higher one.
    pub(crate) fn from(&self, fragment: u32, record: u64) -> usize {
        let place = self.keys.place(self.keys.number(record));
        let records = self.records(fragment);
        let lower =
            records.partition_point(|index| self.keys.place(self.keys.number(self.first + *index as u64)) < place);
        records.len() - lower
    }

    /// Whether this is the fragment with the highest keys.
    pub(crate) fn is_last(&self, fragment: u32) -> bool {
        fragment as usize + 1 == self.places.len()
    }
}

/// Where each fragment begins, and the end.
fn divide(spec: &SpecOf<KvWorkload>, by_key: &[u32], popularity: &Popularity) -> Vec<usize> {
    let weight = |place: usize| popularity.of(by_key[place] as u64) as f64;
    let (asked, least) = (asked(spec), least(spec));
    let total: f64 = (0..by_key.len()).map(weight).sum();
    let (mut starts, mut at, mut sum, mut wanted) = (vec![0], 0, 0.0, 0.0);
    let mut following: usize = least.iter().sum();
    for (asked, least) in asked.iter().zip(&least).take(asked.len() - 1) {
        wanted += asked * total;
        following -= least;
        let (fewest, most) = (at + least, by_key.len() - following);
        while at < most && (at < fewest || sum + weight(at) / 2.0 < wanted) {
            sum += weight(at);
            at += 1;
        }
        starts.push(at);
    }
    starts.push(by_key.len());
    starts
}

/// The least number of records of each fragment: 1, and with inserts an eighth of what its weight asks
/// for. Otherwise a popular record would be a fragment alone, and hardly any new record has a key between
/// those of its neighbours.
fn least(spec: &SpecOf<KvWorkload>) -> Vec<usize> {
    let inserts = spec.common.kinds().iter().any(|(name, _)| *name == SessionKind::Insert.name());
    let is_hashed = spec.own.data.key_order != KeyOrder::Ordered;
    let records = if inserts && is_hashed { spec.own.data.records as f64 / 8.0 } else { 0.0 };
    asked(spec).into_iter().map(|asked| ((records * asked) as usize).max(1)).collect()
}

/// Each fragment's share by its weight.
fn asked(spec: &SpecOf<KvWorkload>) -> Vec<f64> {
    let weights = &spec.common.fragment_weights;
    if weights.is_empty() {
        return vec![1.0 / spec.common.fragments as f64; spec.common.fragments as usize];
    }
    // Divided by the largest first, since the sum of large weights may not be finite.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    weights.iter().map(|weight| weight / largest / sum).collect()
}

/// Refuses shares that differ too much from the specification's weights.
fn check_shares(spec: &SpecOf<KvWorkload>, found: &[f64]) -> Result<(), GenerateError> {
    if spec.common.fragment_weights.is_empty() {
        return Ok(());
    }
    for (fragment, (asked, found)) in (0..).zip(asked(spec).iter().zip(found)) {
        if (found - asked).abs() > SHARE_TOLERANCE * asked {
            return Err(GenerateError::UnequalShare { fragment, asked: *asked, found: *found, what: "record" });
        }
    }
    Ok(())
}

/// The hundredth of so many records, rounded up.
pub(crate) fn hundredth(records: u64) -> u64 {
    records.div_ceil(100)
}

/// The most popular record of the data set, and a bit for each one of the most popular hundredth.
fn top(popularity: &Popularity, records: u64) -> (u32, Vec<u64>) {
    let most = hundredth(records) as usize;
    let mut top: Vec<u32> = (0..records as u32).collect();
    // Records of equal weights are ordered by their numbers, so that the result is always the same.
    let order = |a: &u32, b: &u32| popularity.of(*b as u64).cmp(&popularity.of(*a as u64)).then(a.cmp(b));
    if most < top.len() {
        top.select_nth_unstable_by(most - 1, order);
        top.truncate(most);
    }
    let mut bits = vec![0; records.div_ceil(64) as usize];
    top.iter().for_each(|index| bits[*index as usize / 64] |= 1 << (index % 64));
    // There is at least one record.
    (top.into_iter().min_by(order).unwrap_or_default(), bits)
}
