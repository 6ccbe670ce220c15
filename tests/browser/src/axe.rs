//! What axe-core finds in a page: violations of WCAG 2.2 at levels A and AA.

use serde_json::Value;

use crate::{Page, cache, is_required};

/// The version that `tests/run` takes out of its npm package.
const VERSION: &str = "4.10.3";

const RUN: &str = "axe.run(document, { resultTypes: ['violations'],
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then(found => found.violations)";

impl Page<'_> {
    /// Requires that axe-core finds nothing in the page as it is now. Without axe-core nothing is looked for,
    /// unless ENCORE_TEST_SERVERS=required.
    pub fn is_accessible(&self, what: &str) {
        let file = cache().join(format!("axe-core-{VERSION}/axe.min.js"));
        let Ok(script) = std::fs::read_to_string(&file) else {
            assert!(!is_required(), "{} is missing: tests/run downloads it", file.display());
            println!("left out: axe-core is not here");
            return;
        };
        if !self.evaluate::<bool>("typeof axe === 'object'") {
            self.evaluate::<bool>(&format!("{script};\ntypeof axe === 'object'"));
        }
        let found: Vec<Value> = self.evaluate(RUN);
        let line = |violation: &Value| {
            let nodes = violation["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let of = |node: &Value| format!("\n    {} {}", node["html"], node["failureSummary"]);
            format!("{}: {}{}", violation["id"], violation["help"], nodes.iter().take(5).map(of).collect::<String>())
        };
        let lines: Vec<String> = found.iter().map(line).collect();
        assert!(lines.is_empty(), "{what}: axe-core finds\n{}", lines.join("\n"));
    }
}
