//! The bytes of the values that an operation observed. Each value is stored as its difference
//! from the one before (the first from 0), with zigzag encoding and in groups of seven bits
//! (LEB128).
//!
//! Ids in a list are close to each other and counts are small. So most values take one or two
//! bytes instead of eight, and lists of friends no longer dominate the size of a log.

/// Appends the bytes of `values`.
#[inline]
pub(super) fn encode(values: &[i64], bytes: &mut Vec<u8>) {
    let mut before = 0i64;
    for value in values {
        let difference = value.wrapping_sub(before);
        before = *value;
        let mut left = ((difference << 1) ^ (difference >> 63)) as u64;
        while left >= 0x80 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
    }
}

/// Appends the values that `bytes` stand for. None if they are not a whole number of 64-bit
/// values.
pub(super) fn decode(bytes: &[u8], values: &mut Vec<i64>) -> Option<()> {
    let (mut before, mut bits, mut shift) = (0i64, 0u64, 0);
    for byte in bytes {
        let group = (*byte & 0x7f) as u64;
        // The tenth byte has room for one bit.
        if shift > 63 || (shift == 63 && group > 1) {
            return None;
        }
        bits |= group << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let difference = (bits >> 1) as i64 ^ -((bits & 1) as i64);
            before = before.wrapping_add(difference);
            values.push(before);
            (bits, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(values: &[i64]) -> (usize, Option<Vec<i64>>) {
        let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
        encode(values, &mut bytes);
        let found = decode(&bytes, &mut decoded).map(|()| decoded);
        (bytes.len(), found)
    }

    #[test]
    fn values_near_each_other_are_short() {
        assert_eq!(round_trip(&[5, 0]), (2, Some(vec![5, 0])));
        assert_eq!(round_trip(&[9_000, 9_010, 8_990]).0, 5);
        assert_eq!(round_trip(&[]), (0, Some(vec![])));
        let ends = [i64::MIN, i64::MAX, 0, i64::MIN];
        assert_eq!(round_trip(&ends).1.as_deref(), Some(&ends[..]));
    }

    #[test]
    fn bytes_that_are_no_values_are_refused() {
        let decoded = |bytes: &[u8]| decode(bytes, &mut Vec::new());
        assert_eq!(decoded(&[0x80]), None, "a value without an end");
        assert_eq!(decoded(&[0xff; 11]), None, "a value of more than 64 bits");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(values in prop::collection::vec(any::<i64>(), 0..20)) {
            prop_assert_eq!(round_trip(&values).1, Some(values));
        }
    }
}
