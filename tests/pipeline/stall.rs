//! A stall of the store shows in the figures. It lasts five seconds, because a busy machine may
//! itself stall for one.

use crate::support::Workplace;

/// The figures of a run against a store that takes 50 ms for each operation.
fn figures(place: &Workplace, name: &str, store: &str) -> serde_json::Value {
    let ran = place.run(&[
        "run",
        "busy.toml",
        "--store",
        store,
        "--name",
        name,
        "--threads",
        "4",
        "--duration",
        "8s",
        "--json",
    ]);
    let verdict: serde_json::Value =
        serde_json::from_str(&ran.stdout()).unwrap_or_else(|e| panic!("{e}: {}", ran.stderr()));
    verdict["figures"].clone()
}

#[test]
fn a_stall_raises_p99_and_shows_in_the_time_series() {
    let place = Workplace::new();
    let calm = figures(&place, "calm", "memory:?latency_us=50000");
    let stalled = figures(&place, "stalled", "memory:?latency_us=50000&stall_ms=5000");
    let p99 = |figures: &serde_json::Value| figures["overall"]["p99_ns"].as_f64().expect("p99");
    assert!(p99(&stalled) >= 5e9, "{stalled}");
    assert!(p99(&calm) < p99(&stalled), "{calm}");

    let slice_s = stalled["timeline"]["slice_s"].as_f64().expect("a slice length");
    let slices = stalled["timeline"]["slices"].as_array().expect("slices").clone();
    let ok = |slice: &serde_json::Value| slice["ok"].as_u64().expect("ok");
    // No operation ends during the stall, so slices that lie entirely in it are empty.
    let longest = slices.split(|slice| ok(slice) > 0).map(<[_]>::len).max().unwrap_or(0);
    assert!((longest + 2) as f64 * slice_s >= 5.0 && longest > 0, "{longest} empty slices of {slice_s} s: {stalled}");
    let end = slices.windows(2).position(|pair| ok(&pair[0]) == 0 && pair[1]["max_ns"].as_f64() >= Some(5e9));
    assert!(end.is_some(), "no slice has the operations that waited: {stalled}");
}
