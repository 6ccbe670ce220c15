//! Numbers as a page writes them: thousands and units stand apart by a narrow space that never breaks.

use maud::{Markup, PreEscaped};

/// U+202F.
const SPACE: char = '\u{202f}';

/// The units that follow a number without a space in texts for terminals, and what a page writes.
const UNITS: [(&str, &str); 5] = [("ns", "ns"), ("us", "µs"), ("ms", "ms"), ("min", "min"), ("s", "s")];

/// The same text with narrow spaces in its numbers: `12,345` becomes `12 345`, `1.5ms` becomes `1.5 ms`. Tags stay as
/// they are.
pub fn spaced(markup: &Markup) -> Markup {
    PreEscaped(spaced_text(&markup.0))
}

/// The same for a text with tags.
pub(super) fn spaced_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (place, part) in text.split('<').enumerate() {
        let (tag, words) = match (place, part.split_once('>')) {
            (0, _) => ("", part),
            (_, Some((tag, words))) => (tag, words),
            (_, None) => (part, ""),
        };
        if place > 0 {
            out.push('<');
            out.push_str(tag);
            // A part without an end was no tag; nothing is added to it.
            if part.contains('>') {
                out.push('>');
            }
        }
        write_words(words, &mut out);
    }
    out
}

fn write_words(words: &str, out: &mut String) {
    let mut rest = words;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit()
            && !(before.is_alphanumeric() || matches!(before, '_' | '-' | '=' | '.' | '/' | ':' | '#'));
        // A minus belongs to the number if nothing is before it.
        let is_negative = first.is_ascii_digit() && before == '-' && !ends_in_word(out);
        let length = if is_number || is_negative { write_number(rest, out) } else { 0 };
        if length == 0 {
            out.push(first);
            before = first;
            rest = &rest[first.len_utf8()..];
        } else {
            before = '0';
            rest = &rest[length..];
        }
    }
}

/// Whether a minus at the end follows a letter or digit, as in a name.
fn ends_in_word(out: &str) -> bool {
    out.chars().rev().nth(1).is_some_and(char::is_alphanumeric)
}

/// Writes the number at the beginning of a text, with its unit. Returns its length.
fn write_number(text: &str, out: &mut String) -> usize {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ',' | '.'))).unwrap_or(text.len());
    // A comma or a full stop at the end belongs to the sentence.
    let number = text[..end].trim_end_matches([',', '.']);
    let groups: Vec<&str> = number.split(',').collect();
    let is_grouped = |own: &&str| own.split('.').next().is_some_and(|whole| whole.len() == 3);
    match groups[1..].iter().all(is_grouped) {
        true => out.push_str(&groups.join(&SPACE.to_string())),
        false => out.push_str(number),
    }
    let after = &text[number.len()..];
    let letters = after.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(after.len());
    match UNITS.iter().find(|(unit, _)| *unit == &after[..letters]) {
        Some((unit, written)) => {
            out.push(SPACE);
            out.push_str(written);
            number.len() + unit.len()
        }
        None => number.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_and_units_stand_apart() {
        let check = |text: &str, expect: &str| assert_eq!(spaced_text(text).replace(SPACE, "~"), expect);
        check("12,345", "12~345");
        check("-1,234,567.5 operations/s", "-1~234~567.5 operations/s");
        check("p95 is 1.5ms, not 20us.", "p95 is 1.5~ms, not 20~µs.");
        check("at 3s, 4,5 and 1,2345", "at 3~s, 4,5 and 1,2345");
        check(
            "<td data-label=\"1,234\" title='5ms'>1,234<br>5ms</td>",
            "<td data-label=\"1,234\" title='5ms'>1~234<br>5~ms</td>",
        );
        check("latency_us=300 name-20s v1.2s memory:5s 0.1.2", "latency_us=300 name-20s v1.2s memory:5s 0.1.2");
        check("3seconds <", "3seconds <");
        check("", "");
    }
}
