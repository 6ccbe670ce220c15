//! What a specification says of arrivals: an expression over time, and the CSV file of rates.

use std::path::Path;

use schemas::spec::Spec;

use crate::{with_file, with_text};

/// A specification whose arrivals have this source, for instance `rate = '100'`.
fn spec(source: &str) -> String {
    format!(
        "name = 'a'\nsessions = 1\n[data]\nmembers = 10\n[mix]\nview_profile = 1\n[arrivals]\nrepeat = false\n{source}\n"
    )
}

/// Rates that are not refused have a due time for every session, and no session is due before the start.
fn check(spec: &Spec) {
    let Some(arrivals) = &spec.arrivals else { return };
    let (profile, sessions) = (arrivals.profile(), spec.sessions);
    let due_s = profile.time_of(sessions as f64);
    assert!(due_s.as_ref().is_ok_and(|due_s| *due_s >= 0.0), "{arrivals:?}: {due_s:?}");
    assert!(profile.arrivals_until(1.0) >= 0.0, "{arrivals:?}");
}

pub fn expressions() -> Vec<Vec<u8>> {
    [
        "100 + 50 * sin(2 * pi * t / 60)",
        "max(1, min(t, mod(t + 58, 60)) * 2.5)",
        "abs(ln(t + 1) - exp(0 - t)) ^ (1 / 3) + floor(t / 10)",
        "2000",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Reads an expression as the rate of a specification.
pub fn decode_expression(bytes: &[u8]) {
    with_text(bytes, |text| {
        let rate = toml::Value::String(text.into());
        if let Ok(spec) = Spec::parse(&spec(&format!("rate = {rate}")), "a.toml") {
            check(&spec);
        }
    });
}

pub fn rates() -> Vec<Vec<u8>> {
    ["seconds,rate\n0,100\n60,400.5\n120,0\n", "# two days\nseconds, rate\n\n0, 10\n86400, 1e3\n"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

/// Reads a CSV file that a specification beside it names.
pub fn decode_rates(bytes: &[u8]) {
    with_file("rates.csv", bytes, |folder: &Path, _| {
        let file = folder.join("a.toml");
        if let Ok(spec) = Spec::parse(&spec("file = 'rates.csv'"), &file.display().to_string()) {
            check(&spec);
        }
    });
}
