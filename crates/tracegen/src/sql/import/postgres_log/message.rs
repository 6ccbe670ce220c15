//! What a message of the server says about a statement.

/// What a message is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message<'a> {
    /// A statement of the simple protocol.
    Statement {
        /// Its text.
        text: &'a str,
        /// How long it took, in microseconds; None if it begins now.
        took_us: Option<u64>,
    },
    /// A statement of the extended protocol. Its parameters are in the details.
    Execute {
        /// Its text.
        text: &'a str,
        /// How long it took, in microseconds; None if it begins now.
        took_us: Option<u64>,
        /// Whether it fetches more rows of a statement that runs.
        is_fetch: bool,
    },
    /// A step of the extended protocol before the execution.
    Step,
    /// How long the last statement took, in microseconds.
    Took(u64),
    /// A session begins.
    Connected,
    /// A session ends.
    Disconnected,
    /// The plan of a statement.
    Plan,
    /// Anything else.
    Other,
}

/// Reads a message of severity LOG.
pub fn read(text: &str) -> Message<'_> {
    if let Some(rest) = text.strip_prefix("duration: ") {
        return read_duration(rest).unwrap_or(Message::Other);
    }
    if text.starts_with("connection received: ") || text.starts_with("connection authorized: ") {
        return Message::Connected;
    }
    if text.starts_with("disconnection: ") {
        return Message::Disconnected;
    }
    read_statement(text, None).unwrap_or(Message::Other)
}

/// Reads what follows `duration: `, as in `0.123 ms  statement: SELECT 1`.
fn read_duration(text: &str) -> Option<Message<'_>> {
    let (number, rest) = text.split_once(" ms")?;
    let took_us = micros(number)?;
    let rest = rest.trim_start_matches(' ');
    match rest {
        "" => Some(Message::Took(took_us)),
        _ if rest.starts_with("plan:") => Some(Message::Plan),
        _ => read_statement(rest, Some(took_us)),
    }
}

fn read_statement(text: &str, took_us: Option<u64>) -> Option<Message<'_>> {
    if let Some(text) = text.strip_prefix("statement: ") {
        return Some(Message::Statement { text, took_us });
    }
    if let Some(rest) = text.strip_prefix("execute ") {
        let is_fetch = rest.starts_with("fetch from ");
        let (_, text) = rest.split_once(": ")?;
        return Some(Message::Execute { text, took_us, is_fetch });
    }
    let is_step = text.starts_with("parse ") || text.starts_with("bind ");
    (is_step && text.contains(": ")).then_some(Message::Step)
}

/// Milliseconds with three decimals, in microseconds.
fn micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = format!("{fraction:0<3}");
    let fraction: u64 = fraction.get(..3)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_was_executed_and_how_long_it_took() {
        let simple = |text, took_us| Message::Statement { text, took_us };
        let execute = |text, took_us, is_fetch| Message::Execute { text, took_us, is_fetch };
        for (text, expect) in [
            ("statement: SELECT 1", simple("SELECT 1", None)),
            ("duration: 0.038 ms  statement: SELECT 1", simple("SELECT 1", Some(38))),
            ("duration: 12 ms  statement: ", simple("", Some(12_000))),
            ("execute <unnamed>: SELECT $1", execute("SELECT $1", None, false)),
            ("execute S_1/C_2: SELECT ': '", execute("SELECT ': '", None, false)),
            ("duration: 1234.567 ms  execute P0_1: SELECT $1", execute("SELECT $1", Some(1_234_567), false)),
            ("execute fetch from S_1/C_2: SELECT 1", execute("SELECT 1", None, true)),
            ("duration: 0.1 ms  parse <unnamed>: SELECT 1", Message::Step),
            ("duration: 0.1 ms  bind <unnamed>: SELECT 1", Message::Step),
            ("duration: 0.105 ms", Message::Took(105)),
            ("duration: 0.105 ms  plan:\nQuery Text: SELECT 1", Message::Plan),
            ("connection authorized: user=app database=shop", Message::Connected),
            ("disconnection: session time: 0:00:00.004 user=app", Message::Disconnected),
            ("checkpoint starting: time", Message::Other),
            ("duration: long", Message::Other),
            ("execute", Message::Other),
        ] {
            assert_eq!(read(text), expect, "{text}");
        }
    }
}
