//! The histogram of response times that all tools use, so that any two merge.

use std::sync::LazyLock;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// Three significant digits from 1 ns to an hour; a longer time counts as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The length of the head of HdrHistogram's V2 encoding: the format, the number of bytes of
/// counts that follow, and the bounds.
const HEAD_BYTES: usize = 40;

/// The head of a histogram with the bounds that all tools use.
static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = ResponseTimes::default().to_bytes();
    bytes.truncate(HEAD_BYTES);
    bytes
});

/// Response times in nanoseconds, each within 0.1% of its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseTimes(Histogram<u64>);

impl Default for ResponseTimes {
    fn default() -> Self {
        ResponseTimes(
            Histogram::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|e| unreachable!("the bounds are valid: {e}")),
        )
    }
}

impl ResponseTimes {
    /// Counts one response time.
    #[inline]
    pub fn record(&mut self, response_ns: i64) {
        self.0.saturating_record(response_ns.max(0) as u64);
    }

    /// Counts the same response time several times.
    pub fn record_n(&mut self, response_ns: i64, count: u64) {
        self.0.saturating_record_n(response_ns.max(0) as u64, count);
    }

    /// The histogram itself, for HdrHistogram's own formats.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The response time that `percent` of the operations did not exceed; 0 when there is none.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent)
    }

    /// The mean; 0 when there is none.
    pub fn mean_ns(&self) -> f64 {
        self.0.mean()
    }

    /// The longest, within 0.1%.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// Adds all times of another histogram.
    pub fn merge(&mut self, other: &ResponseTimes) {
        self.0.add(&other.0).unwrap_or_else(|e| unreachable!("all histograms have the same bounds: {e}"));
    }

    /// What was counted since `earlier`, an older state of the same histogram; None when
    /// `earlier` is not one.
    pub fn since(&self, earlier: &ResponseTimes) -> Option<ResponseTimes> {
        let mut rest = self.0.clone();
        rest.subtract(&earlier.0).ok()?;
        Some(ResponseTimes(rest))
    }

    /// HdrHistogram's own V2 encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory cannot fail, and the counts fit the format.
        let _ = V2Serializer::new().serialize(&self.0, &mut out);
        out
    }

    /// From [`ResponseTimes::to_bytes`]; None when the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<ResponseTimes> {
        // The decoder allocates what the head claims: check the claim against the bytes that are
        // there.
        let head = bytes.first_chunk::<HEAD_BYTES>()?;
        let [_, _, _, _, a, b, c, d, ..] = *head;
        let counts = u32::from_be_bytes([a, b, c, d]) as usize;
        if head[..4] != HEAD[..4] || head[8..] != HEAD[8..] || counts > bytes.len() - HEAD_BYTES {
            return None;
        }
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).ok()?;
        let mut out = ResponseTimes::default();
        out.0.add(&read).ok()?;
        Some(out)
    }
}

/// In a document: the bytes in hexadecimal digits.
impl Serialize for ResponseTimes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for ResponseTimes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ResponseTimes, D::Error> {
        let text = String::deserialize(deserializer)?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        let times = bytes.and_then(|bytes| ResponseTimes::from_bytes(&bytes));
        times.ok_or_else(|| serde::de::Error::custom("not an HdrHistogram, V2 encoding, in hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Bytes also come over the network. The decoder reads or refuses damaged bytes; it does
        /// not panic.
        #[test]
        fn damaged_bytes_never_panic(
            times in prop::collection::vec(1i64..10_000_000_000, 0..20),
            damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
            cut in 0usize..60,
        ) {
            let mut whole = ResponseTimes::default();
            times.iter().for_each(|time| whole.record(*time));
            let mut bytes = whole.to_bytes();
            for (at, byte) in damage {
                let length = bytes.len();
                bytes[at % length] = byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = ResponseTimes::from_bytes(&bytes);
        }
    }

    #[test]
    fn bytes_round_trip_and_merging_counts_all() {
        let mut a = ResponseTimes::default();
        for i in 1..1000 {
            a.record(i * 1000);
        }
        let mut b = ResponseTimes::from_bytes(&a.to_bytes()).unwrap();
        assert_eq!(a, b);
        b.merge(&a);
        assert_eq!(b.count(), 2 * a.count());
        assert_eq!(b.percentile_ns(50.0), a.percentile_ns(50.0));
        assert!(ResponseTimes::from_bytes(b"garbage").is_none());
        let text = serde_json::to_string(&a).unwrap();
        assert_eq!(serde_json::from_str::<ResponseTimes>(&text).unwrap(), a);
        for wrong in ["\"0g\"", "\"00\"", "\"é\"", "7"] {
            assert!(serde_json::from_str::<ResponseTimes>(wrong).is_err(), "{wrong}");
        }
    }

    /// A head that claimed four gigabytes of counts made the decoder allocate them.
    #[test]
    fn a_head_that_claims_what_is_not_there_is_refused() {
        let mut times = ResponseTimes::default();
        times.record(5_000);
        let bytes = times.to_bytes();
        let claims = |at: usize, value: &[u8]| {
            let mut bytes = bytes.clone();
            bytes[at..at + value.len()].copy_from_slice(value);
            ResponseTimes::from_bytes(&bytes)
        };
        assert_eq!(claims(0, &[]), Some(times));
        assert_eq!(claims(4, &[0xff, 0xff, 0xff, 0xf0]), None, "the length");
        assert_eq!(claims(15, &[5]), None, "the digits");
        assert_eq!(claims(24, &[0x7f]), None, "the longest");
        assert_eq!(ResponseTimes::from_bytes(&bytes[..39]), None);
    }

    #[test]
    fn what_was_counted_since_is_the_difference() {
        let mut all = ResponseTimes::default();
        (0..100).for_each(|_| all.record(1_000_000));
        let earlier = all.clone();
        (0..10).for_each(|_| all.record(1_000));
        let since = all.since(&earlier).unwrap();
        assert_eq!((since.count(), since.percentile_ns(99.0)), (10, 1_000));
        assert_eq!(all.since(&all).unwrap().count(), 0);
        assert!(earlier.since(&all).is_none());
    }

    #[test]
    fn out_of_range_values_saturate() {
        let mut a = ResponseTimes::default();
        a.record(-5);
        a.record(i64::MAX);
        assert_eq!(a.count(), 2);
        assert!(a.max_ns() >= LONGEST_NS);
    }
}
