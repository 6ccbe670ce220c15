//! Which of two writes of a record wins: Cassandra keeps the one with the higher timestamp.
//!
//! Where the trace orders the writes of each record, a timestamp is the place of the write in the trace. A whole
//! replay then leaves one state, whatever the clocks say and however late a write arrives. Elsewhere it is the
//! time of this process, which is never the same twice. So a write that begins after another one has ended
//! wins, on whatever node, because only one replayer writes the records of a fragment. (A node's own
//! timestamps have milliseconds, and may order two writes on different nodes wrongly.)

use std::sync::{Arc, LazyLock};

use schemas::vocabulary::kv::WriteId;
use scylla::policies::timestamp_generator::{MonotonicTimestampGenerator, TimestampGenerator};

/// That of a loaded record, which every write overwrites.
pub const LOADED: i64 = 1;

/// The bits of a step in the timestamp; a session has fewer steps.
const STEP_BITS: u32 = 12;

/// That of a write in a trace that orders the writes of each record. They are all of one fragment.
pub fn in_trace(id: WriteId) -> i64 {
    let (_, session, step) = id.place();
    LOADED + 1 + (session << STEP_BITS | u64::from(step)) as i64
}

/// The timestamps of all other writes of this process, one after the other.
pub fn of_process() -> Arc<dyn TimestampGenerator> {
    static GENERATOR: LazyLock<Arc<MonotonicTimestampGenerator>> =
        LazyLock::new(|| Arc::new(MonotonicTimestampGenerator::new()));
    GENERATOR.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_writes_of_a_trace_have_higher_timestamps() {
        let of = |session, step| in_trace(WriteId::new(7, session, step));
        let times = [LOADED, of(0, 0), of(0, 1), of(0, 4_094), of(1, 0), of(1 << 35, 3)];
        assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    }
}
