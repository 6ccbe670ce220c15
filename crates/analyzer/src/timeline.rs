//! The measured part of an experiment in slices of equal length, with counts and response times
//! that merge with those of other fragments.

use schemas::oplog::{LogRow, Outcome};
use schemas::pace::OpenLoop;
use schemas::spec::Spec;
use schemas::verdict::{Slice, SliceServiceTimes, Timeline};
use serde::{Deserialize, Serialize};

use crate::join::{response_ns, service_ns};

/// Shorter slices would be mostly empty.
const SHORTEST_SLICE_NS: u64 = 1_000_000;
/// Experiments of at least this length have slices of at least a second.
const LONG_NS: u64 = 10_000_000_000;
/// No experiment has more slices than this.
const MOST_SLICES: u64 = 600;
/// Shorter experiments have at least this many slices, unless the slices would be too short.
const FEWEST_SLICES: u64 = 10;

/// When the measured part of an experiment begins and how long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Its beginning, in nanoseconds from the experiment's start.
    pub from_ns: i64,
    /// From there to the end of its last operation.
    pub elapsed_ns: u64,
    /// From there to the end of the time that rates are measured over.
    pub counted_ns: u64,
    /// From there to the end of the planned time; null if no time was planned. Operations that
    /// start later are in no figure.
    pub planned_ns: Option<u64>,
}

impl Measured {
    /// The length of a slice: 1, 2 or 5 times a power of ten nanoseconds. For less than ten
    /// seconds it is the longest that gives at least 10 slices, but at least a millisecond.
    /// Otherwise it is the shortest from a second on that gives at most 600 slices.
    ///
    /// ```
    /// use analyzer::timeline::Measured;
    /// let slice_s = |elapsed_s: f64| {
    ///     let elapsed_ns = (elapsed_s * 1e9) as u64;
    ///     let measured = Measured { from_ns: 0, elapsed_ns, counted_ns: elapsed_ns, planned_ns: None };
    ///     measured.slice_ns() as f64 / 1e9
    /// };
    /// assert_eq!((slice_s(0.7), slice_s(3.0), slice_s(60.0), slice_s(3600.0)), (0.05, 0.2, 1.0, 10.0));
    /// ```
    pub fn slice_ns(self) -> u64 {
        let mut round = (6..19).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
        if self.lasts_ns() < LONG_NS {
            let fits = |length: &u64| self.lasts_ns() / length >= FEWEST_SLICES;
            return round.take_while(fits).last().unwrap_or(SHORTEST_SLICE_NS);
        }
        let fits = |length: &u64| *length >= LONG_NS / 10 && self.lasts_ns().div_ceil(*length) <= MOST_SLICES;
        round.find(fits).unwrap_or_else(|| unreachable!("600 of the longest are more than 64 bits can count"))
    }

    /// Until the last operation has ended and the planned time is over.
    fn lasts_ns(self) -> u64 {
        self.elapsed_ns.max(self.counted_ns)
    }

    /// Whether an operation that started at `start_ns` started after the planned time.
    pub(crate) fn is_over_at(self, start_ns: i64) -> bool {
        self.planned_ns.is_some_and(|planned_ns| start_ns - self.from_ns >= planned_ns as i64)
    }

    /// Whether an operation that ended at `end_ns` counts for the rates.
    pub(crate) fn counts(self, end_ns: i64) -> bool {
        end_ns - self.from_ns <= self.counted_ns as i64
    }

    /// How much of an interval is in the time that counts for the rates.
    pub(crate) fn counted_of(self, start_ns: i64, end_ns: i64) -> u64 {
        let over_ns = self.from_ns.saturating_add_unsigned(self.counted_ns);
        (end_ns.min(over_ns) - start_ns).max(0) as u64
    }

    /// The slice of this time. Before and after the measured part are the first and the last one.
    pub(crate) fn slice_at(self, at_ns: i64) -> usize {
        let slice = at_ns.saturating_sub(self.from_ns).max(0) as u64 / self.slice_ns();
        slice.min(self.slices() as u64 - 1) as usize
    }

    /// The number of slices; the last one may not be full.
    fn slices(self) -> usize {
        self.lasts_ns().div_ceil(self.slice_ns()).max(1) as usize
    }
}

/// The operations that ended in each slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimelineSummary {
    measured: Measured,
    slice_ns: i64,
    slices: Vec<SliceSummary>,
    /// The slice of the last operation. Operations come nearly in the order of their ends, so the
    /// next one is mostly in the same slice.
    last: usize,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct SliceSummary {
    ok: u64,
    errors: u64,
    unpredictable: u64,
    met: u64,
    sessions: u64,
    times: CoarseTimes,
    /// None while all service times are equal to the response times, as in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<CoarseTimes>,
}

impl SliceSummary {
    /// Counts the times of an operation that succeeded.
    fn record(&mut self, log: &LogRow) {
        if log.due_ns.is_some() && self.service.is_none() {
            self.service = Some(self.times.clone());
        }
        if let Some(service) = &mut self.service {
            service.record(service_ns(log));
        }
        self.times.record(response_ns(log));
    }

    fn merge(&mut self, other: &SliceSummary) {
        self.ok += other.ok;
        self.errors += other.errors;
        self.unpredictable += other.unpredictable;
        self.met += other.met;
        self.sessions += other.sessions;
        if self.service.is_some() || other.service.is_some() {
            let service = self.service.get_or_insert_with(|| self.times.clone());
            service.merge(other.service.as_ref().unwrap_or(&other.times));
        }
        self.times.merge(&other.times);
    }

    fn service_times(&self) -> SliceServiceTimes {
        let service = self.service.as_ref().unwrap_or(&self.times);
        SliceServiceTimes {
            p50_ns: service.percentile_ns(50.0),
            p95_ns: service.percentile_ns(95.0),
            p99_ns: service.percentile_ns(99.0),
            max_ns: service.max_ns,
        }
    }
}

impl TimelineSummary {
    pub(crate) fn new(measured: Measured) -> TimelineSummary {
        let slices = vec![SliceSummary::default(); measured.slices()];
        TimelineSummary { measured, slice_ns: measured.slice_ns() as i64, slices, last: 0 }
    }

    /// Counts an operation in the slice in which it ended. If it ended before or after the
    /// measured part (by the clock of another replayer), it counts in the first or the last
    /// slice. `has_met` if the operation met both limits of the SLA.
    pub(crate) fn add(&mut self, log: &LogRow, is_unpredictable: bool, has_met: bool) {
        self.begin_session(log);
        let slice = self.slice_of(log);
        slice.unpredictable += u64::from(is_unpredictable);
        slice.met += u64::from(has_met);
        if log.outcome == Outcome::Ok {
            slice.ok += 1;
            slice.record(log);
        } else {
            // What was rolled back is no error.
            slice.errors += u64::from(log.outcome != Outcome::Aborted);
        }
    }

    /// Counts the session of an operation if it is the session's first one, and was issued.
    pub(crate) fn begin_session(&mut self, log: &LogRow) {
        let begins = log.step == 0 && log.try_number == 0 && log.outcome != Outcome::Skipped;
        if begins {
            self.slice_of(log).sessions += 1;
        }
    }

    /// Counts an operation after all that met both limits, which ended then.
    pub(crate) fn excuse(&mut self, end_ns: i64) {
        let slice = self.measured.slice_at(end_ns);
        if let Some(slice) = self.slices.get_mut(slice) {
            slice.met += 1;
        }
    }

    #[inline]
    fn slice_of(&mut self, log: &LogRow) -> &mut SliceSummary {
        let at = log.end_ns - self.measured.from_ns;
        let into_last = at - self.last as i64 * self.slice_ns;
        if !(0..self.slice_ns).contains(&into_last) {
            self.last = (at / self.slice_ns).clamp(0, self.slices.len() as i64 - 1) as usize;
        }
        &mut self.slices[self.last]
    }

    /// Adds the timeline of other fragments of the same experiment.
    pub(crate) fn merge(&mut self, other: &TimelineSummary) {
        debug_assert_eq!(self.measured, other.measured);
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            mine.merge(theirs);
        }
    }

    pub(crate) fn timeline(&self, is_open_loop: bool) -> Timeline {
        let slice = |summary: &SliceSummary| Slice {
            ok: summary.ok,
            errors: summary.errors,
            unpredictable: summary.unpredictable,
            met: summary.met,
            sessions: summary.sessions,
            due_per_s: None,
            p50_ns: summary.times.percentile_ns(50.0),
            p95_ns: summary.times.percentile_ns(95.0),
            p99_ns: summary.times.percentile_ns(99.0),
            max_ns: summary.times.max_ns,
            service: is_open_loop.then(|| summary.service_times()),
        };
        Timeline { slice_s: self.slice_ns as f64 / 1e9, slices: self.slices.iter().map(slice).collect() }
    }
}

/// Adds the arrival rate that an open loop asked for to each slice.
pub(crate) fn add_due_rates(timeline: &mut Timeline, open: &OpenLoop, spec: &Spec) {
    let rates = open.rates_in_slices(spec, timeline.slice_s, timeline.slices.len());
    for (slice, rate) in timeline.slices.iter_mut().zip(rates.into_iter().flatten()) {
        slice.due_per_s = Some(rate);
    }
}

/// Buckets for each power of two: a bucket is less than 0.8% wide.
const BUCKETS: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 7;
/// More than an hour counts as an hour, as in [`schemas::latency::ResponseTimes`].
const LONGEST_NS: u64 = 3_600_000_000_000;
const OCTAVES: usize = (LONGEST_NS.ilog2() - BUCKET_BITS) as usize + 2;

/// Response times to 0.8%, in a few kilobytes: an experiment has hundreds of slices, and the
/// times of most slices span few powers of two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "WrittenTimes", try_from = "WrittenTimes")]
pub(crate) struct CoarseTimes {
    /// The first octave counts times below [`BUCKETS`] nanoseconds, each other one a power of two.
    octaves: [Option<Box<[u32; BUCKETS]>>; OCTAVES],
    count: u64,
    /// Exact.
    max_ns: u64,
}

/// The form in a document: the octaves that exist, each with its number.
#[derive(Serialize, Deserialize)]
struct WrittenTimes {
    octaves: Vec<(usize, Vec<u32>)>,
    count: u64,
    max_ns: u64,
}

impl From<CoarseTimes> for WrittenTimes {
    fn from(times: CoarseTimes) -> WrittenTimes {
        let there = times.octaves.into_iter().enumerate().filter_map(|(at, buckets)| Some((at, buckets?.to_vec())));
        WrittenTimes { octaves: there.collect(), count: times.count, max_ns: times.max_ns }
    }
}

impl TryFrom<WrittenTimes> for CoarseTimes {
    type Error = String;

    fn try_from(written: WrittenTimes) -> Result<CoarseTimes, String> {
        let mut times = CoarseTimes { count: written.count, max_ns: written.max_ns, ..CoarseTimes::default() };
        for (at, buckets) in written.octaves {
            let place =
                times.octaves.get_mut(at).ok_or_else(|| format!("octave {at} is out of range; there are {OCTAVES}"))?;
            let found = buckets.len();
            let buckets: Result<Box<[u32; BUCKETS]>, _> = buckets.into_boxed_slice().try_into();
            *place = Some(buckets.map_err(|_| format!("octave {at} has {found} buckets instead of {BUCKETS}"))?);
        }
        Ok(times)
    }
}

impl Default for CoarseTimes {
    fn default() -> Self {
        CoarseTimes { octaves: [const { None }; OCTAVES], count: 0, max_ns: 0 }
    }
}

impl CoarseTimes {
    /// How many were counted.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    #[inline]
    pub(crate) fn record(&mut self, response_ns: i64) {
        let ns = response_ns.max(0) as u64;
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        let ns = ns.min(LONGEST_NS);
        let octave = (ns | (BUCKETS as u64 - 1)).ilog2() + 1 - BUCKET_BITS;
        let place = (ns >> octave.saturating_sub(1)) as usize % BUCKETS;
        let buckets = self.octaves[octave as usize].get_or_insert_with(|| Box::new([0; BUCKETS]));
        buckets[place] = buckets[place].saturating_add(1);
    }

    pub(crate) fn merge(&mut self, other: &CoarseTimes) {
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
        for (mine, theirs) in self.octaves.iter_mut().zip(&other.octaves) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_with(|| Box::new([0; BUCKETS]));
            mine.iter_mut().zip(theirs.iter()).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        }
    }

    /// The response time that `percent` of the operations did not exceed, at most 0.8% too long;
    /// 0 if there are none.
    pub(crate) fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = ((percent / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (octave, buckets) in self.octaves.iter().enumerate() {
            for (place, count) in buckets.iter().flat_map(|buckets| buckets.iter().enumerate()) {
                seen += *count as u64;
                if seen >= wanted {
                    return longest_of(octave, place).min(self.max_ns);
                }
            }
        }
        self.max_ns
    }
}

/// The longest time that a bucket counts.
fn longest_of(octave: usize, place: usize) -> u64 {
    match octave {
        0 => place as u64,
        _ => (((BUCKETS + place + 1) as u64) << (octave - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::read_row;

    fn measured(elapsed_ns: u64) -> Measured {
        Measured { from_ns: 0, elapsed_ns, counted_ns: elapsed_ns, planned_ns: None }
    }

    #[test]
    fn slices_have_round_lengths_and_are_neither_few_nor_many() {
        let check = |elapsed_s: f64, slice_s: f64, slices: usize| {
            let measured = measured((elapsed_s * 1e9) as u64);
            assert_eq!((measured.slice_ns() as f64 / 1e9, measured.slices()), (slice_s, slices), "{elapsed_s} s");
        };
        check(0.0, 0.001, 1);
        check(0.004, 0.001, 4);
        check(0.02, 0.002, 10);
        check(0.5, 0.05, 10);
        check(1.0, 0.1, 10);
        check(1.001, 0.1, 11);
        check(3.01, 0.2, 16);
        check(9.999, 0.5, 20);
        check(10.0, 1.0, 10);
        check(60.002, 1.0, 61);
        check(600.0, 1.0, 600);
        check(600.1, 2.0, 301);
        check(1300.0, 5.0, 260);
        check(86_400.0, 200.0, 432);
        for elapsed_ns in (0..64).map(|power| 1 << power).chain([u64::MAX]) {
            let slices = measured(elapsed_ns).slices();
            assert!(slices <= 600 && (slices >= 10 || elapsed_ns < 10_000_000), "{elapsed_ns} ns: {slices}");
        }
    }

    #[test]
    fn an_operation_belongs_to_the_slice_in_which_it_ended() {
        let mut summary = TimelineSummary::new(Measured { from_ns: 1_000_000_000, ..measured(1_000_000_000) });
        let ms = 1_000_000;
        for (start, end) in
            [(900, 999), (1000, 1000), (1000, 1099), (1000, 1100), (1050, 1999), (1999, 2000), (0, 3000)]
        {
            summary.add(&read_row(0, start * ms, end * ms).log, false, end < 1100);
        }
        let slices = summary.timeline(false).slices;
        let ok: Vec<u64> = slices.iter().map(|slice| slice.ok).collect();
        assert_eq!(ok, [3, 1, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!((slices[0].met_percent(), slices[1].met_percent()), (Some(100.0), Some(0.0)));
        assert_eq!((slices[2].met_percent(), slices[9].sessions), (None, 3));
        assert_eq!((slices[9].max_ns, slices[9].p99_ns), (3_000_000_000, 3_000_000_000));
        assert_eq!(slices[2], Slice::default());
    }

    proptest! {
        /// Percentiles of merged summaries are those of all values.
        #[test]
        fn percentiles_of_merged_times_are_those_of_all_values(
            values in prop::collection::vec((0u32..44, 0u64..1 << 20, any::<bool>()), 1..300),
        ) {
            let (mut one, mut other) = (CoarseTimes::default(), CoarseTimes::default());
            let mut all = Vec::new();
            for (power, low_bits, is_other) in values {
                let ns = ((1u64 << power) + low_bits % (1 << power)).min(LONGEST_NS);
                all.push(ns);
                if is_other { &mut other } else { &mut one }.record(ns as i64);
            }
            one.merge(&other);
            all.sort_unstable();
            prop_assert_eq!(one.max_ns, all[all.len() - 1]);
            for percent in [50.0, 95.0, 99.0, 100.0] {
                let exact = all[((percent / 100.0 * all.len() as f64).ceil() as usize).max(1) - 1];
                let found = one.percentile_ns(percent);
                prop_assert!(exact <= found && found <= exact + exact / 128, "{}%: {} not {}", percent, found, exact);
            }
        }
    }
}
