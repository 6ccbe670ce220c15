//! A user's requirements on a result, for continuous integration. Each requirement with its
//! outcome is written as JUnit XML or as an annotation of GitHub Actions.

use std::fmt::Write;
use std::path::Path;

use schemas::files::{FileError, write_atomically};

/// A requirement, and why it is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is required, such as `SoAR at least 10,000 operations/s`.
    pub name: String,
    /// What was found instead; None if the requirement is met.
    pub failure: Option<String>,
}

/// Writes the requirements as JUnit XML, from which continuous integration reads test results.
pub fn write_junit(path: &Path, suite: &str, checks: &[Check]) -> Result<(), FileError> {
    write_atomically(path, junit(suite, checks).as_bytes())
}

fn junit(suite: &str, checks: &[Check]) -> String {
    let failures = checks.iter().filter(|check| check.failure.is_some()).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">", escaped(suite), checks.len());
    for check in checks {
        let name = escaped(&check.name);
        let _ = match &check.failure {
            None => writeln!(out, "  <testcase classname=\"encore\" name=\"{name}\"/>"),
            Some(why) => writeln!(
                out,
                "  <testcase classname=\"encore\" name=\"{name}\"><failure message=\"{}\"/></testcase>",
                escaped(why)
            ),
        };
    }
    out + "</testsuite>\n"
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML cannot contain most control characters.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The requirements that are not met, one line each: as annotations if GitHub Actions runs this
/// program (it sets `GITHUB_ACTIONS`), otherwise as plain text.
pub fn failures(checks: &[Check], in_github_actions: bool) -> Vec<String> {
    let failed = checks.iter().filter_map(|check| Some((&check.name, check.failure.as_ref()?)));
    let line = |(name, why): (&String, &String)| match in_github_actions {
        // A line break would end the command.
        true => format!("::error title={}::{}", command_safe(name), command_safe(why)),
        false => format!("requirement failed: {name}: {why}"),
    };
    failed.map(line).collect()
}

fn command_safe(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A").replace(':', "%3A").replace(',', "%2C")
}

/// Whether GitHub Actions runs this program.
pub fn in_github_actions() -> bool {
    std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        let met = Check { name: "SoAR at least 10".into(), failure: None };
        let missed = Check { name: "p95 <b> & \"c\"".into(), failure: Some("5%, found: 9\n%".into()) };
        vec![met, missed]
    }

    #[test]
    fn requirements_are_test_cases() {
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <testsuite name=\"rate\" tests=\"2\" failures=\"1\">\n  \
            <testcase classname=\"encore\" name=\"SoAR at least 10\"/>\n  \
            <testcase classname=\"encore\" name=\"p95 &lt;b&gt; &amp; &quot;c&quot;\">\
            <failure message=\"5%, found: 9 %\"/></testcase>\n</testsuite>\n";
        assert_eq!(junit("rate", &checks()), expected);
    }

    #[test]
    fn requirements_that_are_not_met_are_annotations() {
        assert_eq!(failures(&checks(), false), ["requirement failed: p95 <b> & \"c\": 5%, found: 9\n%"]);
        let annotation = "::error title=p95 <b> & \"c\"::5%25%2C found%3A 9%0A%25";
        assert_eq!(failures(&checks(), true), [annotation]);
    }
}
