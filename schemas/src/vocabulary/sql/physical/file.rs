//! The file of a physical schema, which people edit: where in it something is wrong.

use serde::de::DeserializeOwned;

/// What is wrong with an entry of a physical schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The entry, by its place, and its key; None if it is none of a single entry.
    pub at: Option<(usize, &'static str)>,
    /// What is wrong, and what to do.
    pub why: String,
}

impl Wrong {
    /// What is wrong with the whole.
    pub(super) fn whole(why: String) -> Wrong {
        Wrong { at: None, why }
    }

    /// The words, after the line in the text of the file, if the text has the entry. `header` is that of entries.
    pub(super) fn in_text(self, text: &str, header: &str) -> String {
        match self.at.and_then(|(entry, key)| line(text, header, entry, key)) {
            Some(line) => format!("line {line}: {}", self.why),
            None => self.why,
        }
    }
}

/// The line, from 1, of a key of an entry, or of the entry itself if it does not have the key.
fn line(text: &str, header: &str, entry: usize, key: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_header = |line: &str| line.starts_with(&format!("[[{header}]]"));
    let start = (0..lines.len()).filter(|at| is_header(lines[*at])).nth(entry)?;
    let own = lines[start + 1..].iter().take_while(|line| !is_header(line));
    let is_key = |line: &&str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='));
    let found = own.copied().position(|line| is_key(&line));
    Some(found.map_or(start, |place| start + 1 + place) + 1)
}

/// Reads a file. The error begins with the line.
pub(super) fn parse<X: DeserializeOwned>(text: &str) -> Result<X, String> {
    toml::from_str(text).map_err(|error| {
        let words = error.message().replace('\n', "; ");
        let again = "correct it, or write a new file with `encore trace physical`";
        match error.span() {
            Some(span) => {
                let before = text.get(..span.start).unwrap_or(text);
                format!("line {}: {words}; {again}", before.matches('\n').count() + 1)
            }
            None => format!("{words}; {again}"),
        }
    })
}

/// A list of texts in TOML.
pub(super) fn list(names: &[String]) -> String {
    format!("[{}]", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
}

/// A text in TOML.
pub(super) fn quoted(name: &str) -> String {
    toml::Value::String(name.to_string()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_has_its_line() {
        let text = "# head\n[[a]]\nname = 1\n\n[[a]]\n  name = 2\n";
        let wrong = |entry, key| Wrong { at: Some((entry, key)), why: "x".into() }.in_text(text, "a");
        assert_eq!([wrong(0, "name"), wrong(1, "name"), wrong(1, "paths")], ["line 3: x", "line 6: x", "line 5: x"]);
        assert_eq!([wrong(2, "name"), Wrong::whole("x".into()).in_text(text, "a")], ["x", "x"]);
    }
}
