//! Reads the syntax of Java property files: keys, values and their line numbers. Any bytes can be read.

/// One `key=value` of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The key, trimmed and without escapes.
    pub(super) key: String,
    /// The value, likewise.
    pub(super) value: String,
    /// The line that it begins on, from 1.
    pub(super) line: usize,
}

/// The entries of a file in their order.
///
/// A key ends at the first `=`, `:` or white space that is not escaped with `\`. A line that ends
/// with `\` continues on the next one. `#` and `!` begin comments.
pub(super) fn parse(bytes: &[u8]) -> Vec<Entry> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().zip(1..);
    let mut entries = Vec::new();
    while let Some((first, line)) = lines.next() {
        let mut logical = first.trim_start().to_string();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while ends_with_escape(&logical) {
            logical.pop();
            match lines.next() {
                Some((next, _)) => logical.push_str(next.trim_start()),
                None => break,
            }
        }
        let (key, value) = split(&logical);
        entries.push(Entry { key: unescape(key.trim()), value: unescape(value.trim()), line });
    }
    entries
}

/// Whether the text ends with an odd number of `\`.
fn ends_with_escape(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The key and what follows its separator.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        if !is_escaped && (matches!(c, '=' | ':') || c.is_whitespace()) {
            let rest = line[at..].trim_start();
            // White space may precede the separator.
            return (&line[..at], rest.strip_prefix(['=', ':']).unwrap_or(rest));
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    (line, "")
}

/// Replaces `\t`, `\n`, `\r`, `\f`, `\uXXXX`; any other escaped character stands for itself.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                plain.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &[(&str, &str, usize)]) {
        let found = parse(text.as_bytes());
        let found: Vec<_> = found.iter().map(|e| (e.key.as_str(), e.value.as_str(), e.line)).collect();
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn the_syntax_is_that_of_java() {
        check("a=1\nb: 2\nc 3\nd = 4 \n", &[("a", "1", 1), ("b", "2", 2), ("c", "3", 3), ("d", "4", 4)]);
        check("# a=1\n  ! b=2\n\n   \n\tc=3", &[("c", "3", 5)]);
        check("a=1=2:3\nb :=4", &[("a", "1=2:3", 1), ("b", "=4", 2)]);
        check("alone\nempty=\n=nameless", &[("alone", "", 1), ("empty", "", 2), ("", "nameless", 3)]);
        check("a=1\r\nb=2,\\\r\n  3\r\n", &[("a", "1", 1), ("b", "2,3", 2)]);
        check("long = 1,\\\n    2\nb=3\\", &[("long", "1,2", 1), ("b", "3", 3)]);
        check("a\\=b=c\\:d\\u0041\\t\\\\\\q", &[("a=b", "c:dA\t\\q", 1)]);
        check("a=\\uzzzz", &[("a", "\u{fffd}", 1)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
            for entry in parse(&bytes) {
                prop_assert!((1..=lines).contains(&entry.line));
            }
        }

        /// The alphabet is small, so that characters with a meaning often meet each other.
        #[test]
        fn any_syntax_is_read(text in "[a=:# !\\\\u0\n\r\té]{0,60}") {
            parse(text.as_bytes());
        }

        #[test]
        fn what_is_written_is_read(pairs in prop::collection::vec(("[a-zA-Z.]{1,9}", "[a-z0-9][a-z0-9 .=:]{0,9}"), 0..9)) {
            let text: String = pairs.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            let found: Vec<(String, String)> = parse(text.as_bytes()).into_iter().map(|e| (e.key, e.value)).collect();
            let expect: Vec<(String, String)> = pairs.into_iter().map(|(k, v)| (k, v.trim().to_string())).collect();
            prop_assert_eq!(found, expect);
        }
    }
}
