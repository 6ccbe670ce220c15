//! The conditions that the data of a trace set keep: `checks.toml`, one query a condition. A trace set without
//! conditions has no such file.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files::{FileEntry, FileError, at};
use crate::vocabulary::sql::Statement;
use crate::vocabulary::sql::text::{Dialect, effect};

/// The path of the conditions below the trace set's folder.
pub const CHECKS: &str = "checks.toml";

/// A condition that the data keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A short name, such as `3.3.2.1`.
    pub name: String,
    /// The condition in one line.
    pub title: String,
    /// When it holds.
    #[serde(default)]
    pub when: When,
    /// A query in the dialect of the trace set. It returns the rows that violate the condition, and none if the
    /// condition holds.
    pub query: String,
}

/// When a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// After the load, and after every session.
    #[default]
    Always,
    /// After the load, until sessions have run.
    AfterLoad,
}

/// The file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    check: Vec<Check>,
}

impl Check {
    /// The query as a statement.
    pub fn statement(&self) -> Statement {
        Statement {
            name: self.name.clone(),
            text: self.query.clone(),
            parameters: Vec::new(),
            reads: true,
            writes: false,
            ordered: false,
        }
    }
}

/// Refuses conditions that a replay could not check: without or with the same name, without a line of title,
/// with something else than a query.
pub fn validate_checks(checks: &[Check], dialect: Dialect) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for check in checks {
        let Check { name, title, query, .. } = check;
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(format!("a check has the name {name:?}; give it a short one, such as 3.3.2.1"));
        }
        if !names.insert(name) {
            return Err(format!("two checks have the name {name}; rename one"));
        }
        if title.trim().is_empty() || title.chars().any(char::is_control) {
            return Err(format!("check {name} has no title of one line"));
        }
        let does = effect(query, dialect).map_err(|why| format!("the query of check {name} {why}"))?;
        if !does.reads || does.writes {
            return Err(format!("the query of check {name} changes rows; write one that only reads"));
        }
        if does.parameters > 0 {
            return Err(format!("the query of check {name} has parameters, and nothing fills them; write values"));
        }
    }
    Ok(())
}

/// The file's text.
pub fn checks_text(checks: &[Check]) -> String {
    toml::to_string_pretty(&Document { check: checks.to_vec() })
        .unwrap_or_else(|e| unreachable!("checks are plain data: {e}"))
}

/// The conditions of the trace set in a folder. None where its manifest lists no file of them among its `files`.
pub fn read_checks(folder: &Path, files: &[FileEntry], dialect: Dialect) -> Result<Vec<Check>, FileError> {
    if !files.iter().any(|file| file.path == CHECKS) {
        return Ok(Vec::new());
    }
    let path = folder.join(CHECKS);
    let text = std::fs::read_to_string(&path).map_err(|error| at(&path)(error))?;
    let checks = parse_checks(&text, dialect);
    checks.map_err(|message| at(&path)(Error::new(ErrorKind::InvalidData, message)))
}

/// The conditions of a file's text.
pub fn parse_checks(text: &str, dialect: Dialect) -> Result<Vec<Check>, String> {
    let document: Document = toml::from_str(text).map_err(|e| e.to_string())?;
    validate_checks(&document.check, dialect)?;
    Ok(document.check)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, query: &str, when: When) -> Check {
        Check { name: name.into(), title: "The sum is that of the parts".into(), when, query: query.into() }
    }

    #[test]
    fn checks_come_out_as_they_went_in() {
        let query = "SELECT w_id\nFROM warehouse\nWHERE w_ytd <> 1 AND name <> 'it''s \"\"\" \\ '";
        let all = vec![check("1", query, When::Always), check("2", "SELECT 1 WHERE 1 = 2", When::AfterLoad)];
        let text = checks_text(&all);
        assert_eq!(parse_checks(&text, Dialect::Postgres), Ok(all), "{text}");
        assert_eq!(parse_checks("", Dialect::Postgres), Ok(Vec::new()));
    }

    #[test]
    fn checks_that_cannot_be_run_are_refused() {
        let refuse = |text: &str, expect: &str| {
            let error = parse_checks(text, Dialect::Sqlite).unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        let one = |name: &str, title: &str, query: &str| {
            format!("[[check]]\nname = \"{name}\"\ntitle = \"{title}\"\nquery = \"{query}\"\n")
        };
        let twice = one("1", "a", "SELECT 1").repeat(2);
        refuse(&twice, "two checks have the name 1; rename one");
        refuse(&one("", "a", "SELECT 1"), "give it a short one");
        refuse(&one("1", "a\\nb", "SELECT 1"), "check 1 has no title of one line");
        refuse(&one("1", "a", "SELECT FROM WHERE"), "the query of check 1 is not SQL that Encore knows");
        refuse(&one("1", "a", "DELETE FROM t"), "changes rows; write one that only reads");
        refuse(&one("1", "a", "SELECT a FROM t WHERE a = ?"), "has parameters");
        refuse("[[check]]\nname = \"1\"\nwhat = 1\n", "unknown field");
    }
}
