//! The server's `log_line_prefix`: what it holds, and how a line is read with it.

use super::entry::Severity;
use crate::sql::import::time::{Clock, Time, take_epoch};

/// Prefixes that are tried if none is given: PostgreSQL's own and Debian's, and those that pgBadger and
/// Amazon's RDS recommend.
pub const KNOWN: [&str; 5] = [
    "%m [%p] %q%u@%d ",
    "%m [%p] ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t:%r:%u@%d:[%p]:",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// The text of a field, as its escape letter.
    Field(char),
    /// Processes without a session write nothing after it.
    Stop,
}

/// A prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    text: String,
    parts: Vec<Part>,
}

/// What the prefix of a line says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found<'a> {
    /// The time of the line.
    pub time: Time,
    /// The session's id (`%c`).
    pub session: Option<&'a str>,
    /// The process (`%p`).
    pub process: Option<&'a str>,
    /// When the session began (`%s`).
    pub started: Option<&'a str>,
    /// The user.
    pub user: &'a str,
    /// The database.
    pub database: &'a str,
    /// The word after the prefix: `LOG`, `DETAIL`, …
    pub word: &'a str,
    /// What follows that word.
    pub rest: &'a str,
}

impl Prefix {
    /// Reads the setting of the server. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Prefix, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                push_literal(&mut parts, letter);
                continue;
            }
            // A width like %-10u pads with blanks.
            let escape = letters.by_ref().find(|c| !(c.is_ascii_digit() || *c == '-'));
            match escape {
                Some('%') => push_literal(&mut parts, '%'),
                Some('q') => parts.push(Part::Stop),
                Some(field) if "audrhLbpPtmnieclsvxQ".contains(field) => parts.push(Part::Field(field)),
                // The server itself ignores others.
                Some(_) => {}
                None => return Err(format!("{text:?} ends in the middle of an escape; give log_line_prefix as it is")),
            }
        }
        let prefix = Prefix { text: text.to_string(), parts };
        if !prefix.has(&['c', 'p']) {
            return Err(format!(
                "{text:?} has neither %c nor %p, so the lines do not say which session they belong to; \
                 record the log with log_line_prefix = '%m [%c] %q%u@%d '"
            ));
        }
        if !prefix.has(&['t', 'm', 'n']) {
            return Err(format!(
                "{text:?} has none of %m, %n and %t, so the lines have no time; \
                 record the log with log_line_prefix = '%m [%c] %q%u@%d '"
            ));
        }
        Ok(prefix)
    }

    /// The setting.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has one of these fields.
    pub fn has(&self, fields: &[char]) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Field(field) if fields.contains(field)))
    }

    /// Whether one of these fields has a border to the next field, so that its text is known.
    pub fn tells(&self, field: char) -> bool {
        let is_free = |part: Option<&Part>| matches!(part, Some(Part::Field(field)) if is_text(*field));
        let place = self.parts.iter().position(|part| *part == Part::Field(field));
        place.is_some_and(|at| !(is_free(self.parts.get(at + 1)) || at > 0 && is_free(self.parts.get(at - 1))))
    }

    /// Reads a line. None if the line does not begin with this prefix.
    pub fn read<'a>(&self, line: &'a str, clock: &mut Clock) -> Option<Found<'a>> {
        let mut found = Found::default();
        take(&self.parts, line, &mut found, clock).then_some(found)
    }
}

fn push_literal(parts: &mut Vec<Part>, letter: char) {
    match parts.last_mut() {
        Some(Part::Literal(text)) => text.push(letter),
        _ => parts.push(Part::Literal(letter.into())),
    }
}

/// Whether a field may hold any text.
fn is_text(field: char) -> bool {
    matches!(field, 'a' | 'u' | 'd' | 'r' | 'h' | 'L' | 'b' | 'i')
}

/// Reads the rest of a line with the rest of a prefix.
fn take<'a>(parts: &[Part], line: &'a str, found: &mut Found<'a>, clock: &mut Clock) -> bool {
    let Some((part, others)) = parts.split_first() else { return take_word(line, found) };
    match part {
        Part::Literal(text) => line.strip_prefix(text.as_str()).is_some_and(|rest| take(others, rest, found, clock)),
        Part::Stop => {
            let before = *found;
            take(others, line, found, clock) || {
                // What was found after the stop is not there.
                *found = before;
                take_word(line, found)
            }
        }
        Part::Field(field) if is_text(*field) => take_text(*field, others, line, found, clock),
        Part::Field(field) => {
            let mut after = |line: &'a str| {
                let Some(rest) = take_field(*field, line, found, clock) else { return false };
                let padded = rest.trim_start_matches(' ');
                take(others, rest, found, clock) || (padded.len() < rest.len() && take(others, padded, found, clock))
            };
            // A width pads with blanks, on either side. A field may also be empty, before a blank of the prefix.
            let padded = line.trim_start_matches(' ');
            after(line) || (padded.len() < line.len() && after(padded))
        }
    }
}

/// Takes a field of any text: the shortest one with which the rest of the line fits.
fn take_text<'a>(field: char, others: &[Part], line: &'a str, found: &mut Found<'a>, clock: &mut Clock) -> bool {
    let mut end = 0;
    loop {
        // The next place where what follows may begin.
        let step = match others.first() {
            Some(Part::Literal(text)) => line[end..].find(text.as_str()),
            _ => Some(0),
        };
        let Some(step) = step else { return false };
        end += step;
        if take(others, &line[end..], found, clock) {
            let text = line[..end].trim_matches(' ');
            match field {
                'u' => found.user = text,
                'd' => found.database = text,
                _ => {}
            }
            return true;
        }
        match line[end..].chars().next() {
            Some(letter) => end += letter.len_utf8(),
            None => return false,
        }
    }
}

/// Takes a field whose form is known; returns what follows.
fn take_field<'a>(field: char, line: &'a str, found: &mut Found<'a>, clock: &mut Clock) -> Option<&'a str> {
    let while_in = |is: fn(&u8) -> bool| {
        let end = line.bytes().take_while(is).count();
        line.split_at(end)
    };
    match field {
        't' | 'm' => {
            let (time, rest) = clock.take(line)?;
            found.time = time;
            Some(rest)
        }
        'n' => {
            let (time, rest) = take_epoch(line)?;
            found.time = time;
            Some(rest)
        }
        's' => {
            let (_, rest) = clock.take(line)?;
            found.started = Some(&line[..line.len() - rest.len()]);
            Some(rest)
        }
        'c' => {
            let (id, rest) = while_in(|byte| byte.is_ascii_hexdigit() || *byte == b'.');
            found.session = id.contains('.').then_some(id);
            found.session.map(|_| rest)
        }
        'p' => {
            let (digits, rest) = while_in(u8::is_ascii_digit);
            found.process = Some(digits).filter(|digits| !digits.is_empty());
            found.process.map(|_| rest)
        }
        'l' | 'x' => {
            let (digits, rest) = while_in(u8::is_ascii_digit);
            (!digits.is_empty()).then_some(rest)
        }
        'e' => {
            let (state, rest) = line.split_at_checked(5)?;
            is_state(state).then_some(rest)
        }
        // Empty where there is none.
        'P' => Some(while_in(u8::is_ascii_digit).1),
        'v' => Some(while_in(|byte| byte.is_ascii_digit() || matches!(byte, b'/' | b'-')).1),
        'Q' => Some(while_in(|byte| byte.is_ascii_digit() || *byte == b'-').1),
        _ => None,
    }
}

fn is_state(text: &str) -> bool {
    text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Takes the word after the prefix, such as `LOG:  `.
fn take_word<'a>(line: &'a str, found: &mut Found<'a>) -> bool {
    let Some((word, rest)) = line.split_once(':') else { return false };
    let is_part = matches!(word, "DETAIL" | "HINT" | "QUERY" | "CONTEXT" | "LOCATION" | "STATEMENT" | "BACKTRACE");
    if !is_part && Severity::of(word).is_none() {
        return false;
    }
    let rest = rest.strip_prefix("  ").or_else(|| rest.strip_prefix(' ')).unwrap_or(rest);
    // With log_error_verbosity = verbose a message begins with its SQLSTATE.
    let verbose = rest.split_at_checked(5).filter(|(state, _)| !is_part && is_state(state));
    let rest = verbose.and_then(|(_, after)| after.strip_prefix(": ")).unwrap_or(rest);
    (found.word, found.rest) = (word, rest);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// User, database, session or process, and what follows the severity.
    fn read<'a>(prefix: &str, line: &'a str) -> Option<(&'a str, &'a str, &'a str, &'a str)> {
        let found = Prefix::parse(prefix).unwrap().read(line, &mut Clock::default())?;
        Some((found.user, found.database, found.session.or(found.process).unwrap(), found.rest))
    }

    #[test]
    fn lines_are_read_with_the_prefixes_of_the_field() {
        let time = "2026-11-24 06:33:30.123 UTC";
        let line = format!("{time} [77] app@shop LOG:  statement: SELECT 1");
        assert_eq!(read("%m [%p] %q%u@%d ", &line), Some(("app", "shop", "77", "statement: SELECT 1")));
        let line = format!("{time} [77] LOG:  checkpoint starting");
        assert_eq!(read("%m [%p] %q%u@%d ", &line), Some(("", "", "77", "checkpoint starting")));
        let line = "2026-11-24 06:33:30 CET [77]: user=app,db=shop,app=psql 15: x,client=10.0.0.1 ERROR:  no";
        assert_eq!(read(KNOWN[2], line), Some(("app", "shop", "77", "no")));
        let line = "2026-11-24 06:33:30 UTC:10.0.0.1(5000):app@shop:[77]:LOG:  statement: SELECT ':[1]:'";
        assert_eq!(read(KNOWN[3], line), Some(("app", "shop", "77", "statement: SELECT ':[1]:'")));
        let line = "1700000000.123|6921ab00.4d|3/12|0|00000|idle in transaction|100% |client backend|-77|LOG:  x";
        assert_eq!(read("%n|%c|%v|%x|%e|%i|100%% |%b|%Q|", line).map(|all| (all.2, all.3)), Some(("6921ab00.4d", "x")));
    }

    #[test]
    fn a_verbose_log_and_padded_fields_are_read() {
        let line = "2026-11-24 06:33:30.123 UTC     77  app        LOG:  00000: statement: SELECT 1";
        assert_eq!(read("%m %6p  %-10u ", line), Some(("app", "", "77", "statement: SELECT 1")));
    }

    #[test]
    fn a_text_that_looks_like_a_border_is_no_border() {
        let line = "2026-11-24 06:33:30.123 UTC [77] a@b@shop LOG:  LOG:  x";
        assert_eq!(read("%m [%p] %u@%d ", line), Some(("a", "b@shop", "77", "LOG:  x")));
        let line = "2026-11-24 06:33:30.123 UTC my app [77] LOG:  x";
        assert_eq!(read("%m %a [%p] ", line).map(|all| all.2), Some("77"));
    }

    #[test]
    fn a_prefix_without_session_or_time_is_refused() {
        for (prefix, expect) in [("%m ", "neither %c nor %p"), ("[%p] ", "no time"), ("%m %p %", "ends in the middle")]
        {
            let error = Prefix::parse(prefix).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
        assert!(Prefix::parse("%m %c %u%d ").is_ok_and(|prefix| !prefix.tells('d') && !prefix.tells('u')));
        assert!(Prefix::parse(KNOWN[0]).is_ok_and(|prefix| prefix.tells('d') && prefix.tells('u')));
    }
}
