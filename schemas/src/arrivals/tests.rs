//! Tests arrivals: every shape, every refusal.

use proptest::prelude::*;

use super::*;
use crate::manifest::plain;
use crate::spec::Spec;

const GOOD: &str = "name = \"t\"\nsessions = 100\n[data]\nmembers = 100\n[mix]\nview_profile = 1\n[arrivals]\n";

fn spec(arrivals: &str) -> Result<Spec, String> {
    Spec::parse(&format!("{GOOD}{arrivals}"), "t.toml").map_err(|e| e.to_string())
}

fn profile(arrivals: &str) -> Profile {
    spec(arrivals).unwrap().arrivals.unwrap().profile()
}

/// The rates at some times.
fn check(arrivals: &str, rates: &[(f64, f64)]) {
    let profile = profile(arrivals);
    for (t_s, expect) in rates {
        let rate = profile.rate_at(*t_s);
        assert!((rate - expect).abs() < 1e-9, "{arrivals}: {rate} at {t_s} s instead of {expect}");
    }
}

fn check_refused(arrivals: &str, expect: &str) {
    let error = spec(arrivals).expect_err(arrivals);
    assert!(error.starts_with("t.toml: ") && error.contains(expect), "{arrivals}: {error:?} lacks {expect:?}");
}

#[test]
fn a_constant_rate_has_a_number_or_an_expression() {
    check("rate = 500", &[(0.0, 500.0), (1e6, 500.0)]);
    check("rate = 0.5", &[(7.0, 0.5)]);
    check("rate = \"2 * 50\"", &[(0.0, 100.0), (9.0, 100.0)]);
    let profile = profile("rate = 500");
    assert_eq!((profile.arrivals_until(3.0), profile.time_of(1_500.0)), (1_500.0, Ok(3.0)));
    assert_eq!((profile.mean_rate(3.0), profile.mean_rate(0.0), profile.greatest_rate(3.0)), (500.0, 500.0, 500.0));
}

#[test]
fn an_expression_is_linear_between_its_evaluations() {
    check("rate = \"100 + 10 * t\"", &[(0.0, 100.0), (0.01, 100.1), (60.0, 700.0)]);
    // The jump at one second is drawn in a 32nd of a second.
    check("rate = \"100 + 100 * floor(min(t, 1))\"", &[(0.96875, 100.0), (0.984375, 150.0), (1.0, 200.0)]);
    let profile = profile("rate = \"10 * t\"");
    assert!((profile.arrivals_until(4.0) - 80.0).abs() < 1e-9);
    assert!((profile.time_of(80.0).unwrap() - 4.0).abs() < 1e-9);
}

#[test]
fn pieces_have_shapes() {
    check("pieces = [{ for = \"10s\", from = 100 }]", &[(0.0, 100.0), (99.0, 100.0)]);
    check(
        "pieces = [{ for = \"10s\", from = 100 }, { for = \"20s\", from = 50, to = 150 }]",
        &[(9.999, 100.0), (10.0, 50.0), (20.0, 100.0), (30.0, 150.0), (99.0, 150.0)],
    );
    check(
        "pieces = [{ for = \"10s\", shape = \"spike\", from = 10, to = 110 }]",
        &[(0.0, 10.0), (2.5, 60.0), (5.0, 110.0), (7.5, 60.0), (10.0, 10.0), (11.0, 10.0)],
    );
    check(
        "pieces = [{ for = \"2m\", shape = \"sine\", from = 0, to = 200, period = \"60s\" }]",
        &[(0.0, 100.0), (15.0, 200.0), (30.0, 100.0), (45.0, 0.0), (75.0, 200.0), (120.0, 100.0)],
    );
    check(
        "pieces = [{ for = \"24h\", shape = \"day_night\", from = 20, to = 100 }]",
        &[(0.0, 20.0), (6.0 * 3600.0, 60.0), (12.0 * 3600.0, 100.0), (24.0 * 3600.0, 20.0)],
    );
    // A wave may end in the middle of a period.
    check(
        "pieces = [{ for = \"15s\", shape = \"sine\", from = 0, to = 200, period = \"60s\" }]",
        &[(15.0, 200.0), (60.0, 200.0)],
    );
}

#[test]
fn pieces_and_points_can_repeat() {
    let pieces = "pieces = [{ for = \"10s\", from = 0, to = 100 }, { for = \"10s\", from = 20 }]\nrepeat = true";
    check(pieces, &[(5.0, 50.0), (15.0, 20.0), (25.0, 50.0), (2_015.0, 20.0)]);
    assert_eq!(profile(pieces).arrivals_until(40.0), 1_400.0);
    assert_eq!(
        profile(pieces).arrivals_until_each(&[0.0, 10.0, 15.0, 20.0, 30.0]),
        [0.0, 500.0, 600.0, 700.0, 1_200.0]
    );
    check("points = [[0, 10], [10, 30]]\nrepeat = true", &[(5.0, 20.0), (15.0, 20.0), (10.0, 10.0)]);
    check("points = [[0, 10], [10, 30], [10, 100], [20, 100]]", &[(9.0, 28.0), (10.0, 100.0), (50.0, 100.0)]);
}

#[test]
fn nothing_is_due_while_the_rate_is_zero() {
    let pieces = "pieces = [{ for = \"1s\", from = 50 }, { for = \"9s\", from = 0 }]\nrepeat = true";
    let profile = profile(pieces);
    let mut cursor = profile.cursor();
    assert_eq!(cursor.time_of(50.0), Ok(1.0));
    assert!((cursor.time_of(50.5).unwrap() - 10.01).abs() < 1e-9);
    assert_eq!(profile.greatest_rate(30.0), 50.0);
}

#[test]
fn a_file_is_read_with_the_specification() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("spec.toml");
    let parse = |csv: &str| {
        std::fs::write(folder.path().join("rates.csv"), csv).unwrap();
        Spec::parse(&format!("{GOOD}file = \"rates.csv\""), file.to_str().unwrap()).map_err(|e| e.to_string())
    };
    let spec = parse("# of a day\nseconds,rate\n0, 10\n\n60, 25.5\n60, 5\n").unwrap();
    let arrivals = spec.arrivals.clone().unwrap();
    assert_eq!((&arrivals.points[..], &arrivals.file), (&[[0.0, 10.0], [60.0, 25.5], [60.0, 5.0]][..], &None));
    // The specification of a trace set stands alone.
    assert_eq!(Spec::parse(&spec.to_toml().unwrap(), "elsewhere.toml").unwrap(), spec);
    let check = |csv: &str, line: u64, expect: &str| {
        let error = parse(csv).unwrap_err();
        let place = format!("rates.csv line {line}: ");
        assert!(error.contains("arrivals.file: ") && error.contains(&place), "{error}");
        assert!(error.contains(expect), "{error:?} lacks {expect:?}");
    };
    check("0,1\n5,2\n", 1, "the header is \"0,1\"; write \"seconds,rate\"");
    check("seconds,rate\n0,1\n9,2\n\n5,2\n", 5, "5 s comes after 9 s; sort the points by time");
    check("seconds,rate\r\n0,1\r\n\r\n# up\r\n9,2\r\n5,2", 6, "5 s comes after 9 s");
    check("seconds,rate\n0,1\n9,-2\n", 3, "the rate -2 at 9 s is negative");
    check("seconds,rate\n0,1\n9,inf\n", 3, "the rate inf at 9 s is infinite");
    check("seconds,rate\n0,many\n", 2, "\"many\" is not a number");
    check("seconds,rate\n0,1,2\n", 2, "has 3 values; write a time and a rate");
    check("seconds,rate\n5,1\n", 2, "the first point is at 5 s; begin with the rate at 0 s");
    check("seconds,rate\n0,1\n0.0001,1\n", 3, "less than 0.001 s after 0 s");
    check("seconds,rate\n", 1, "there is no point");
    std::fs::remove_file(folder.path().join("rates.csv")).unwrap();
    let missing = Spec::parse(&format!("{GOOD}file = \"rates.csv\""), file.to_str().unwrap()).unwrap_err().to_string();
    assert!(missing.contains("arrivals.file: ") && missing.contains("rates.csv: cannot be read: "), "{missing}");
}

/// The specification of a trace set is in its manifest; a file beside it would not be found.
#[test]
fn a_specification_that_was_read_names_no_file() {
    let mut spec = spec("rate = 5").unwrap();
    spec.arrivals = Some(Arrivals { rate: None, file: Some("rates.csv".into()), ..spec.arrivals.unwrap() });
    let error = spec.check("manifest.json").unwrap_err().to_string();
    assert!(error.starts_with("manifest.json: arrivals.file: is only possible in"), "{error}");
}

#[test]
fn wrong_arrivals_are_refused_with_a_reason() {
    check_refused("spacing = \"even\"", "arrivals: has no rate; give one of rate, pieces, points and file");
    check_refused("rate = 5\npoints = [[0, 5]]", "arrivals: rate and points exclude each other");
    check_refused("rate = 5\nfile = \"none.csv\"", "arrivals: rate and file exclude each other");
    check_refused("rates = 5", "rates");
    check_refused("rate = true", "a number, or an expression over t in quotes");
    check_refused("rate = 5\nspacing = \"bursts\"", "bursts");
    check_refused("rate = 5\nresolution_us = 0", "arrivals.resolution_us: 0 is not between 1 and 60,000,000");
    check_refused("rate = 5\nrepeat = true", "arrivals.repeat: only pieces and points repeat");
    check_refused("rate = -5", "arrivals.rate: -5 is negative");
    check_refused("rate = nan", "arrivals.rate: NaN is not a number");
    check_refused("rate = inf", "arrivals.rate: inf is infinite");
    check_refused("rate = 1e10", "is above 1,000,000,000");
    check_refused("rate = 0", "arrivals.rate: is 0 at all times");
    check_refused("rate = \"2 * x\"", "arrivals.rate: \"x\" in \"2 * x\" is unknown");
    check_refused("rate = \"2 *\"", "arrivals.rate: \"2 *\" is not an expression over t");
    check_refused("rate = \"-5\"", "arrivals.rate: the rate at t = 0 s is -5, which is negative");
    check_refused("rate = \"10 - t\"", "arrivals.rate: the rate at t = 10.03125 s is -0.03125, which is negative");
    check_refused("rate = \"1 + 1 / (t - 2)\"", "the rate at t = 1.03125 s is -0.03");
    check_refused("rate = \"1 / (t - 2) ^ 2\"", "the rate at t = 2 s is inf, which is infinite");
    check_refused("rate = \"ln(t - 0.5) + 5\"", "the rate at t = 0 s is NaN, which is not a number");
    check_refused("points = [[0, 1], [5, 0]]", "arrivals.points: only 2 of 100 sessions are due in the first 2^40 µs");
    check_refused("points = [[0, 1], [5, -1]]", "arrivals.points.1: the rate -1 at 5 s is negative");
    check_refused("points = [[0, 1], [5, 1], [3, 1]]", "arrivals.points.2: 3 s comes after 5 s");
    check_refused("points = [[0, 5]]\nrepeat = true", "arrivals.repeat: one point has no length");
    check_refused("points = [[0, 0], [5, 0]]", "arrivals.points: is 0 at all times");
    check_refused("rate = 0.00001", "arrivals.rate: only 10 of 100 sessions are due in the first 2^40 µs");
    check_refused("rate = 5\n[inter_arrival_time]\nmean_us = 5", "arrivals and inter_arrival_time exclude each other");
}

#[test]
fn wrong_pieces_are_refused_with_a_reason() {
    let check = |piece: &str, expect: &str| check_refused(&format!("pieces = [{{ {piece} }}]"), expect);
    check("for = \"10s\", from = -1", "arrivals.pieces.0.from: the rate -1 is negative");
    check("for = \"10s\", from = 1, to = nan", "arrivals.pieces.0.to: the rate NaN is not a number");
    check("for = \"10s\", from = 0", "arrivals.pieces: is 0 at all times");
    check("for = \"10\", from = 1", "arrivals.pieces.0.for: \"10\" is not a time with its unit");
    check("for = \"10us\", from = 1", "arrivals.pieces.0.for: \"10us\" is shorter than 0.001 s");
    check("from = 1", "for");
    check("for = \"10s\", from = 1, shape = \"sine\"", "arrivals.pieces.0.to: is missing");
    check("for = \"10s\", from = 1, to = 2, shape = \"step\"", "arrivals.pieces.0.to: a step has one rate");
    check("for = \"10s\", from = 1, to = 2, period = \"5s\"", "arrivals.pieces.0.period: only the shapes");
    check("for = \"10s\", from = 1, to = 2, shape = \"saw\"", "saw");
    check(
        "for = \"10s\", from = 1, to = 2, shape = \"sine\", period = \"1ms\"",
        "arrivals.pieces.0.period: \"1ms\" is shorter than 0.1 s",
    );
    check(
        "for = \"200h\", from = 1, to = 2, shape = \"sine\", period = \"1s\"",
        "arrivals.pieces.0.period: the pieces have more than 1,048,576 straight lines",
    );
}

#[test]
fn arrivals_change_the_workload_and_their_absence_changes_nothing() {
    let without = Spec::parse(&GOOD.replace("[arrivals]\n", ""), "t.toml").unwrap();
    assert_eq!(without.arrivals, None);
    assert!(!serde_json::to_string(&without).unwrap().contains("arrivals"));
    let (one, two) = (spec("rate = 5").unwrap(), spec("rate = 6").unwrap());
    assert!(one.workload_id() != two.workload_id() && one.workload_id() != without.workload_id());
}

#[test]
fn arrivals_read_back_as_they_are() {
    for arrivals in [
        "rate = 500",
        "rate = \"100 + 50 * sin(t)\"\nspacing = \"even\"\nresolution_us = 1000",
        "points = [[0, 5], [0.1, 0.3]]\nrepeat = true",
        "pieces = [{ for = \"10s\", from = 5 }, { for = \"1m\", shape = \"sine\", from = 1, to = 2, period = \"5s\" }]",
    ] {
        let spec = spec(arrivals).unwrap();
        assert_eq!(Spec::parse(&spec.to_toml().unwrap(), "again.toml").unwrap(), spec, "{arrivals}");
        let json = serde_json::Value::Object(plain(&spec)).to_string();
        assert_eq!(serde_json::from_str::<Spec>(&json).unwrap(), spec, "{json}");
    }
}

proptest! {
    /// The time until which n sessions are due is the inverse of how many are due until a time.
    #[test]
    fn the_inverse_is_the_inverse(
        rates in prop::collection::vec((1u32..200, 0u32..1_000), 1..8),
        repeat: bool,
        share in 0.0f64..1.0,
    ) {
        let mut at_s = 0.0;
        let mut points = vec![[0.0, 5.0]];
        for (length, rate) in rates {
            at_s += length as f64 / 10.0;
            points.push([at_s, rate as f64]);
        }
        let spec = spec("rate = 5").unwrap();
        let arrivals = Arrivals { rate: None, points, repeat, ..spec.arrivals.unwrap() };
        let profile = arrivals.profile();
        let until = at_s * 3.0 * share;
        let arrivals = profile.arrivals_until(until);
        if let Ok(time) = profile.time_of(arrivals) {
            // Where the rate is low, a small error of the number is a large one of the time.
            prop_assert!((profile.arrivals_until(time) - arrivals).abs() < 1e-6, "{time} {until}");
        }
    }

    #[test]
    fn due_times_never_decrease(steps in prop::collection::vec(0.0f64..50.0, 1..60), repeat: bool) {
        let pieces = "pieces = [{ for = \"3s\", from = 0, to = 90 }, { for = \"2s\", from = 0 }, { for = \"1s\", from = 7 }]";
        let profile = profile(&format!("{pieces}\nrepeat = {repeat}"));
        let mut cursor = profile.cursor();
        let (mut arrivals, mut before) = (0.0, 0.0);
        for step in steps {
            arrivals += step;
            let time_s = cursor.time_of(arrivals).unwrap();
            prop_assert!(time_s >= before);
            before = time_s;
        }
    }
}
