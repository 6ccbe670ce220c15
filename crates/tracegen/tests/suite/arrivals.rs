//! Due times of an open loop: when sessions arrive, and that nothing else depends on it.

use std::path::Path;

use proptest::prelude::*;
use schemas::arrivals::DUE_US_MAX;
use schemas::manifest::Manifest;
use schemas::social::{Social, TraceRow};
use schemas::spec::Spec;
use tracegen::{GenerateError, GenerateOptions, generate};

use crate::{busy, content, generate_into, operations};

/// Every shape in 60 seconds, some 300 sessions a second on average.
const SHAPES: &str = "arrivals={pieces=[{for='10s',from=100},{for='10s',from=100,to=500},\
    {for='20s',shape='sine',from=100,to=500,period='5s'},{for='10s',shape='spike',from=100,to=900},\
    {for='10s',shape='day_night',from=50,to=550}],repeat=true}";

/// The due times of a fragment's sessions. A due time stands in the first row of each session alone.
fn due_us(manifest: &Manifest, folder: &Path, fragment: u32) -> Vec<u64> {
    let rows = operations(manifest, folder, fragment);
    assert!(rows.iter().all(|row| row.due_us.is_some() == (row.step == 0)), "fragment {fragment}");
    rows.iter().filter_map(|row| row.due_us).collect()
}

/// The due times of every fragment of a trace set.
fn generated(spec: &Spec) -> (Manifest, Vec<Vec<u64>>) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("busy.trace");
    let manifest = generate_into(spec, &folder, 2);
    // The reader of a replay accepts what the generator writes.
    for fragment in 0..spec.fragments {
        let mut reader = manifest.reader::<Social>(&folder, fragment, 10_000).unwrap();
        while reader.next_rows(&mut Vec::new()).unwrap() {}
    }
    let due = (0..spec.fragments).map(|fragment| due_us(&manifest, &folder, fragment)).collect();
    (manifest, due)
}

#[test]
fn due_times_are_the_same_with_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let spec = busy(&[SHAPES]);
    let (one, eight) = (dir.path().join("one"), dir.path().join("eight"));
    generate_into(&spec, &one, 1);
    let manifest = generate_into(&spec, &eight, 8);
    assert_eq!(content(&one), content(&eight));
    let seeded = generated(&busy(&[SHAPES, "seed=6"])).1;
    assert_ne!(due_us(&manifest, &one, 0), seeded[0]);
    assert_ne!(due_us(&manifest, &one, 0), due_us(&manifest, &one, 1));
}

/// A trace without due times keeps its bytes, so a trace with them differs in nothing else.
#[test]
fn arrivals_change_nothing_but_due_times() {
    let dir = tempfile::tempdir().unwrap();
    let (closed, open) = (dir.path().join("closed"), dir.path().join("open"));
    let sets = [(&closed, generate_into(&busy(&[]), &closed, 2)), (&open, generate_into(&busy(&[SHAPES]), &open, 2))];
    let rows = |fragment| sets.each_ref().map(|(folder, manifest)| operations(manifest, folder, fragment));
    for fragment in 0..8 {
        let [closed, open] = rows(fragment);
        assert!(closed.iter().all(|row| row.due_us.is_none()));
        let without: Vec<TraceRow> = open.iter().map(|row| TraceRow { due_us: None, ..*row }).collect();
        assert_eq!(closed, without);
    }
    let digest = |folder| tracegen::digest(folder, tracegen::Ran::All).unwrap();
    assert_eq!(digest(&closed), digest(&open));
}

#[test]
fn a_longer_open_loop_starts_with_the_shorter_one() {
    for arrivals in [SHAPES, "arrivals={rate='100 + 50 * sin(t)',spacing='even'}"] {
        let short = generated(&busy(&[arrivals, "sessions=777"])).1;
        let long = generated(&busy(&[arrivals, "sessions=3000"])).1;
        for (short, long) in short.iter().zip(&long) {
            assert!(short.len() < long.len());
            assert_eq!(short[..], long[..short.len()]);
        }
    }
}

/// The number of arrivals in every second lies within five standard deviations of that of the rate.
#[test]
fn arrivals_follow_the_rate_over_time() {
    let spec = busy(&[SHAPES]);
    let (_, due) = generated(&spec);
    let profile = spec.arrivals.unwrap().profile();
    let seconds = 50;
    let until = profile.arrivals_until_each(&(0..=seconds).map(|t| t as f64).collect::<Vec<_>>());
    let mut most = 0.0f64;
    for second in 0..seconds {
        let is_then = |due_us: &&u64| **due_us / 1_000_000 == second;
        let found = due.iter().flatten().filter(is_then).count() as f64;
        let expect = until[second as usize + 1] - until[second as usize];
        let deviations = (found - expect).abs() / expect.sqrt();
        assert!(deviations < 5.0, "{found} arrivals in second {second} instead of {expect}");
        most = most.max(deviations);
    }
    // Evenly spaced arrivals would lie closer to the rate.
    assert!(most > 1.0, "at most {most} deviations: these are no independent arrivals");
    let all = due.iter().flatten().filter(|due_us| **due_us < seconds * 1_000_000).count() as f64;
    assert!((all - until[seconds as usize]).abs() < 4.0 * until[seconds as usize].sqrt(), "{all}");
}

/// The distances of a Poisson process are exponential: a share of 1/e is above the mean.
#[test]
fn distances_of_independent_arrivals_are_exponential() {
    let (_, due) = generated(&busy(&["fragments=1", "arrivals={rate=1000}"]));
    let distances: Vec<u64> = due[0].windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = distances.iter().sum::<u64>() as f64 / distances.len() as f64;
    assert!((980.0..1_020.0).contains(&mean), "{mean}");
    let above = distances.iter().filter(|distance| **distance > 1_000).count() as f64 / distances.len() as f64;
    assert!((0.355..0.381).contains(&above), "{above}");
}

#[test]
fn even_arrivals_have_equal_distances() {
    let weights = "fragment_weights=[1,1,1,1,2,2,2,2]";
    let (manifest, due) = generated(&busy(&[weights, "arrivals={rate=200,spacing='even'}"]));
    for (counts, due) in manifest.fragments.iter().zip(&due) {
        let distance = 1e6 / (200.0 * counts.weight);
        assert!(due.windows(2).all(|pair| ((pair[1] - pair[0]) as f64 - distance).abs() <= 1.0), "{counts:?}");
        let phase = (counts.fragment as f64 + 0.5) / 8.0;
        assert!((due[0] as f64 - phase * distance).abs() <= 1.0, "{counts:?}: {}", due[0]);
    }
}

#[test]
fn due_times_have_a_resolution() {
    let fine = generated(&busy(&["sessions=2000", "arrivals={rate=500}"])).1;
    let coarse = generated(&busy(&["sessions=2000", "arrivals={rate=500,resolution_us=1000}"])).1;
    assert!(fine.iter().flatten().any(|due_us| due_us % 1_000 != 0));
    let rounded: Vec<Vec<u64>> = fine.iter().map(|due| due.iter().map(|us| us / 1_000 * 1_000).collect()).collect();
    assert_eq!(coarse, rounded);
}

/// By its rate, the trace just fits. Independent arrivals may be later than that.
#[test]
fn a_session_that_is_never_due_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let rate = 100.0 / (DUE_US_MAX as f64 / 1e6);
    let spec = busy(&["sessions=100", &format!("arrivals={{rate={:.12}}}", rate * 1.000_1)]);
    let error = generate(&spec, &dir.path().join("never"), &GenerateOptions::default()).unwrap_err();
    assert!(matches!(error, GenerateError::Infeasible(_)), "{error}");
    let words = ["arrivals: session ", "is due after 2^40 µs (12.7 days)", "use a greater rate or fewer sessions"];
    assert!(words.iter().all(|words| error.to_string().contains(words)), "{error}");
    assert!(content(dir.path()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the rate over time, due times never decrease, and never exceed what the format holds.
    #[test]
    fn due_times_never_decrease(
        points in prop::collection::vec((1u32..90, 0u32..2_000), 1..6),
        (repeat, even) in any::<(bool, bool)>(),
        resolution_us in 1u32..5_000,
    ) {
        let mut at_s = 0.0;
        let mut text = "[0, 3]".to_string();
        for (length, rate) in points {
            at_s += length as f64 / 30.0;
            text.push_str(&format!(", [{at_s}, {rate}]"));
        }
        // The last rate of a load that does not repeat must be above 0.
        let spacing = if even { "even" } else { "poisson" };
        let arrivals = format!(
            "arrivals={{points=[{text}, [{}, 5]],repeat={repeat},spacing='{spacing}',resolution_us={resolution_us}}}",
            at_s + 1.0
        );
        let (_, due) = generated(&busy(&["sessions=400", "fragments=2", &arrivals]));
        for due in due {
            prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(due.iter().all(|us| *us <= DUE_US_MAX && us.is_multiple_of(resolution_us as u64)));
        }
    }
}
