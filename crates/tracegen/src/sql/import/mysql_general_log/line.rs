//! A line of the general log: a time, the id of a connection, a command and its argument.

use crate::sql::import::time::{Clock, Time};

/// The commands that servers write.
const COMMANDS: [&str; 18] = [
    "Query",
    "Execute",
    "Prepare",
    "Close stmt",
    "Reset stmt",
    "Connect",
    "Quit",
    "Init DB",
    "Change user",
    "Statistics",
    "Field List",
    "Long Data",
    "Ping",
    "Fetch",
    "Kill",
    "Refresh",
    "Shutdown",
    "Set option",
];

/// A line that begins an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its time. MariaDB leaves it out where it is that of the entry before.
    pub time: Option<Time>,
    /// The id of the connection.
    pub connection: u32,
    /// The command.
    pub command: &'static str,
    /// What follows it.
    pub argument: &'a str,
}

/// Reads lines.
#[derive(Debug, Default)]
pub struct Stamps {
    clock: Clock,
    /// Whether a time had no fraction of a second.
    pub has_seconds: bool,
}

impl Stamps {
    /// Reads a line; None if it does not begin an entry.
    pub fn read<'a>(&mut self, line: &'a str) -> Option<Line<'a>> {
        let (time, rest) = match line.strip_prefix('\t') {
            Some(rest) => (None, rest.strip_prefix('\t')?),
            None => self.time(line).map(|(time, rest)| (Some(time), rest))?,
        };
        let rest = rest.trim_start_matches([' ', '\t']);
        let (digits, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
        let rest = rest.strip_prefix(' ')?;
        let command = COMMANDS.into_iter().find(|command| rest.starts_with(command))?;
        let argument = &rest[command.len()..];
        let argument = argument.strip_prefix('\t').or(argument.is_empty().then_some(""))?;
        Some(Line { time, connection: digits.parse().ok()?, command, argument })
    }

    /// `2026-11-24T06:33:30.123456Z` of MySQL, or `261124  6:33:30` of MariaDB.
    fn time<'a>(&mut self, line: &'a str) -> Option<(Time, &'a str)> {
        let found = self.clock.take(line).or_else(|| self.short(line))?;
        self.has_seconds |= !line[..line.len() - found.1.len()].contains('.');
        Some(found)
    }

    fn short<'a>(&mut self, line: &'a str) -> Option<(Time, &'a str)> {
        let (text, rest) = line.split_at_checked(15)?;
        let part = |from: usize, to: usize| text.get(from..to).map(|digits| digits.replace(' ', "0"));
        let long = format!("20{}-{}-{} {}", part(0, 2)?, part(2, 4)?, part(4, 6)?, part(7, 15)?);
        let (time, left) = self.clock.take(&long)?;
        left.is_empty().then_some((time, rest))
    }
}

/// Whether a line is one of those that a server writes when it starts.
pub fn is_header(line: &str) -> bool {
    line.ends_with("started with:")
        || line.starts_with("Tcp port: ")
        || line.starts_with("Time  ")
        || line.starts_with("Time\t")
}
