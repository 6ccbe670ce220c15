//! The fields of a form or of a query, in their order.

use form_urlencoded::{Serializer, parse};

/// Names and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// The fields of an encoded text. Browsers send line breaks as `\r\n`.
    pub(super) fn of(text: &str) -> Form {
        let fields = parse(text.as_bytes()).map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n")));
        Form(fields.collect())
    }

    /// The first value of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The first value of this name without spaces around it; empty if there is none.
    pub(super) fn trimmed(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// All values of this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Sets a value.
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.retain(|(own, _)| own != name);
        self.0.push((name.to_string(), value.into()));
    }

    /// The fields but those of this name, encoded.
    pub(super) fn without(&self, name: &str) -> String {
        let rest = self.0.iter().filter(|(own, _)| own != name);
        Serializer::new(String::new()).extend_pairs(rest).finish()
    }
}

/// A part of a path, or a value of a query, encoded.
pub(super) fn encoded(text: &str) -> String {
    // In a path a space is not a '+'.
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
