//! Clocks of replayers, beside that of this machine.

use std::time::{Duration, SystemTime};

use schemas::run::ReplayReport;

/// Clocks further apart than this get a note.
const OFFSET_WORTH_A_WORD: Duration = Duration::from_millis(100);

/// The note on clocks that are far apart. Only the times in the logs of different fragments
/// depend on them.
pub fn clock_note(report: &ReplayReport) -> Option<String> {
    let far = OFFSET_WORTH_A_WORD.as_nanos() as u64;
    let apart = report.replayers.iter().filter(|replayer| {
        let [before, after] = replayer.clock;
        before.offset_ns.unsigned_abs() > far || before.offset_ns.abs_diff(after.offset_ns) > far
    });
    let sentences: Vec<String> = apart
        .map(|replayer| {
            let [before, after] = replayer.clock.map(|reading| reading.offset_ns as f64 / 1e6);
            format!("{} by {before:+.1} ms before the experiment, {after:+.1} ms after it", replayer.name)
        })
        .collect();
    (!sentences.is_empty()).then(|| {
        format!(
            "note: clocks differ from this machine's ({}); starts are corrected for it, verdicts are not affected",
            sentences.join("; ")
        )
    })
}

/// A time in nanoseconds since 1970.
pub(super) fn unix_ns(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}
