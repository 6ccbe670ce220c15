//! Encore in continuous integration: a build fails when a store is slower than required, and the
//! reason is in a file that the CI system reads.

use crate::support::Workplace;

fn rate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = "rate busy.toml --store memory:?latency_us=5000 --set sessions=20000 --search-s 0.2 --max-threads 2 \
                 --rating soar";
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.extend(["--sla", "50% < 10s, 100% unpredictable, 0.4s"]);
    words.extend(more);
    words
}

#[test]
fn a_rating_below_what_is_required_fails_the_build() {
    let place = Workplace::alone();
    let passed = rate(&["--fail-below", "10", "--junit", "passed.xml"]);
    place.measures("passed", &passed).succeeds();
    let junit = |name: &str| std::fs::read_to_string(place.path(name)).expect("the file");
    let text = junit("passed.xml");
    assert!(text.contains("failures=\"0\"") && text.contains("SoAR at least 10 operations/s"), "{text}");
    let missed = rate(&["--name", "missed", "--fail-below", "1000000000", "--junit", "missed.xml"]);
    // The test may itself run in GitHub Actions.
    let plain = place.command(&missed).env_remove("GITHUB_ACTIONS").output().expect("the program starts");
    assert_eq!(plain.status.code(), Some(1));
    let why = "SoAR at least 1,000,000,000 operations/s: measured ";
    let said = String::from_utf8_lossy(&plain.stderr);
    assert!(said.contains(&format!("requirement failed: {why}")), "{said}");
    let text = junit("missed.xml");
    assert!(text.contains("failures=\"1\"") && text.contains("<failure message=\"measured "), "{text}");
    let missed = rate(&["--name", "annotated", "--fail-below", "1000000000"]);
    let annotated = place.command(&missed).env("GITHUB_ACTIONS", "true").output().expect("the program starts");
    let said = String::from_utf8_lossy(&annotated.stderr);
    assert!(said.contains("::error title=SoAR at least 1%2C000%2C000%2C000 operations/s::measured "), "{said}");
}

#[test]
fn a_run_slower_than_another_fails_the_build() {
    let place = Workplace::alone();
    for (name, latency_us) in [("before", 10_000), ("after", 30_000)] {
        let store = format!("memory:?latency_us={latency_us}");
        let run = ["run", "busy.toml", "--store", &store, "--threads", "4", "--sessions", "300"];
        place.measures(name, &[&run[..], &["--sla", "50% < 10s, 100% unpredictable, 1s"]].concat()).succeeds();
    }
    let compare = |first: &str, second: &str, percent: &str| {
        let words = ["analyze", "compare", first, second, "--fail-if-slower", percent, "--junit", "slower.xml"];
        let output = place.command(&words).env_remove("GITHUB_ACTIONS").output().expect("the program starts");
        let text = std::fs::read_to_string(place.path("slower.xml")).expect("the file");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), text)
    };
    let (code, said, junit) = compare("runs/before", "runs/after", "5%");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("requirement failed: ") && junit.contains("<failure"), "{said}\n{junit}");
    let (code, said, junit) = compare("runs/after", "runs/before", "5%");
    assert_eq!((code, said.contains("requirement failed")), (Some(0), false), "{said}");
    assert!(junit.contains("failures=\"0\""), "{junit}");
    place.run(&["analyze", "compare", "runs/after", "runs/before", "--fail-if-slower", "much"]).exits(2);
}
