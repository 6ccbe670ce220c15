//! Think times and inter-arrival times.

use schemas::manifest::Manifest;
use schemas::social::TraceRow;

use crate::{generate_into, mixed, operations};

/// The mixed trace with some settings.
fn rows(settings: &[&str]) -> Vec<TraceRow> {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("t");
    let manifest: Manifest = generate_into(&mixed(settings), &folder, 2);
    (0..manifest.spec.fragments).flat_map(|fragment| operations(&manifest, &folder, fragment)).collect()
}

fn mean(waits: &[u32]) -> f64 {
    waits.iter().map(|wait| *wait as f64).sum::<f64>() / waits.len() as f64
}

#[test]
fn a_constant_wait_is_always_the_same() {
    let rows = rows(&["sessions=2000", "think_time.distribution=constant"]);
    assert!(rows.iter().any(|row| row.step > 0));
    for row in rows {
        assert_eq!(row.think_us, if row.step == 0 { 700 } else { 300 }, "{row:?}");
    }
}

/// The mean at every step is that of the specification, and successive waits differ.
#[test]
fn exponential_waits_are_drawn_for_every_step() {
    let settings =
        ["sessions=150000", "inter_arrival_time={mean_us=20000,distribution='exponential'}", "think_time.mean_us=5000"];
    let rows = rows(&settings);
    let waits = |step| -> Vec<u32> { rows.iter().filter(|row| row.step == step).map(|row| row.think_us).collect() };
    for (step, expect) in [(0, 20_000.0), (1, 5_000.0), (2, 5_000.0), (3, 5_000.0)] {
        let waits = waits(step);
        assert!(waits.len() > 40_000, "step {step}: {} waits", waits.len());
        assert!((mean(&waits) / expect - 1.0).abs() < 0.02, "step {step}: {}", mean(&waits));
    }
    let thinks: Vec<u32> = rows.iter().filter(|row| row.step > 0).map(|row| row.think_us).collect();
    let same = thinks.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(same * 1_000 < thinks.len(), "{same} of {} waits repeat the one before", thinks.len());
}

#[test]
fn no_wait_is_none() {
    let rows = rows(&["sessions=2000", "think_time.mean_us=0", "inter_arrival_time.mean_us=0"]);
    assert!(rows.iter().all(|row| row.think_us == 0));
}
