//! The records: in the order of their keys, how popular each is, and which fragment each is in.
//!
//! The keys of a fragment are next to each other among all keys, so that a scan stays inside its
//! fragment. A record that is inserted later belongs to the fragment between whose keys its own is.

use schemas::spec::SpecOf;
use schemas::workload::kv::keys::KeyPlace;
use schemas::workload::kv::{Distribution, Keys, KvWorkload};

use super::draw::{hundredth, latest_shares, popularity};
use crate::core::generate::GenerateError;

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
    /// The expected shares of the most popular record and of the most popular hundredth of them.
    pub(crate) expected: [f64; 2],
    /// The most popular hundredth of the records, counted from the first one, the most popular
    /// first. If all are alike, any hundredth.
    pub(crate) top: Vec<u32>,
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
        let shares = popularity(&spec.own);
        let starts = divide(spec, &by_key, &shares)?;
        let sums = starts.windows(2).map(|ends| by_key[ends[0]..ends[1]].iter().map(|one| share(&shares, *one)).sum());
        let sums: Vec<f64> = sums.collect();
        let total: f64 = sums.iter().sum();
        // With twelve decimals every JSON reader gets exactly the same number, so that all readers
        // share sessions between fragments alike.
        let weights: Vec<f64> = sums.iter().map(|sum| (sum / total * 1e12).round() / 1e12).collect();
        check_shares(spec, &weights)?;
        let place = |index: u32| keys.place(keys.number(first + index as u64));
        let places = starts[..starts.len() - 1].iter().map(|start| place(by_key[*start])).collect();
        let (top, expected) = top(&shares, data.records, total);
        let expected = latest_shares(&spec.own, spec.common.fragments).unwrap_or(expected);
        Ok(Space { keys, first, by_key, starts, places, weights, expected, top })
    }

    /// The records of a fragment in the order of their keys, counted from the first record.
    pub(crate) fn records(&self, fragment: u32) -> &[u32] {
        &self.by_key[self.starts[fragment as usize]..self.starts[fragment as usize + 1]]
    }

    /// The first record of a fragment in the order of keys.
    pub(crate) fn first_record(&self, fragment: u32) -> u64 {
        self.first + self.records(fragment)[0] as u64
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

/// The share of a record; without shares all are alike.
fn share(shares: &[f64], index: u32) -> f64 {
    shares.get(index as usize).copied().unwrap_or(1.0)
}

/// Where each fragment begins, and the end.
fn divide(spec: &SpecOf<KvWorkload>, by_key: &[u32], shares: &[f64]) -> Result<Vec<usize>, GenerateError> {
    let fragments = spec.common.fragments as usize;
    let asked = asked(spec);
    let total: f64 = by_key.iter().map(|index| share(shares, *index)).sum();
    let (mut starts, mut at, mut sum, mut wanted) = (vec![0], 0, 0.0, 0.0);
    for (fragment, asked) in asked.iter().enumerate().take(fragments - 1) {
        wanted += asked * total;
        // Each fragment has at least one record, and leaves one for each that follows.
        let most = by_key.len() - (fragments - 1 - fragment);
        let start = at;
        while at < most && (at == start || sum + share(shares, by_key[at]) / 2.0 < wanted) {
            sum += share(shares, by_key[at]);
            at += 1;
        }
        starts.push(at);
    }
    starts.push(by_key.len());
    Ok(starts)
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

/// The most popular hundredth of the records, the share of the first of them, and their share.
fn top(shares: &[f64], records: u64, total: f64) -> (Vec<u32>, [f64; 2]) {
    let most = hundredth(records) as usize;
    let mut top: Vec<u32> = (0..records as u32).collect();
    // Records of equal shares are ordered by their numbers, so that the result is always the same.
    let order = |a: &u32, b: &u32| share(shares, *b).total_cmp(&share(shares, *a)).then(a.cmp(b));
    if most < top.len() {
        top.select_nth_unstable_by(most - 1, order);
        top.truncate(most);
    }
    top.sort_unstable_by(order);
    let theirs: f64 = top.iter().map(|index| share(shares, *index)).sum();
    let first = share(shares, top[0]);
    (top, [first / total, theirs / total])
}

impl Space {
    /// Whether popular records are those that were inserted last.
    pub(crate) fn follows_inserts(distribution: Distribution) -> bool {
        matches!(distribution, Distribution::Latest | Distribution::Exponential)
    }
}
