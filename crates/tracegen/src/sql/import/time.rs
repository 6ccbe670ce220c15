//! Times of logs, and of `--from` and `--to`.

use std::collections::BTreeSet;

/// A time of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Microseconds since 1970, UTC.
    pub utc: i64,
    /// What the log says, as if it were UTC.
    pub wall: i64,
}

/// Reads times, and remembers the zones that it does not know.
#[derive(Debug, Default)]
pub struct Clock {
    unknown: BTreeSet<String>,
}

impl Clock {
    /// The time at the beginning of a text, `YYYY-MM-DD HH:MM:SS`, perhaps with a fraction, a blank or
    /// nothing, and a zone; and what follows it.
    pub fn take<'a>(&mut self, text: &'a str) -> Option<(Time, &'a str)> {
        let (wall, rest) = take_wall(text)?;
        let (zone, after) = match rest.strip_prefix(' ') {
            Some(spaced) => take_zone(spaced),
            None => take_zone(rest),
        };
        if zone.is_empty() {
            return Some((Time { utc: wall, wall }, rest));
        }
        let offset = offset_of(zone).unwrap_or_else(|| {
            if !self.unknown.contains(zone) {
                self.unknown.insert(zone.to_string());
            }
            0
        });
        Some((Time { utc: wall - offset * 1_000_000, wall }, after))
    }

    /// The abbreviations of zones that are not known, whose times count as UTC.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(String::as_str)
    }
}

/// Seconds since 1970 with a fraction, as `%n` writes them, and what follows.
pub fn take_epoch(text: &str) -> Option<(Time, &str)> {
    let (seconds, rest) = take_digits(text)?;
    let (fraction, rest) = take_fraction(rest);
    let utc = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?.checked_add(fraction)?;
    Some((Time { utc, wall: utc }, rest))
}

/// A limit of `--from` or `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// With a zone: microseconds since 1970, UTC.
    Utc(i64),
    /// Without one: compared with what the log says.
    Wall(i64),
}

impl Limit {
    /// Reads `YYYY-MM-DD HH:MM:SS`; the time, its seconds and the zone may be missing.
    pub fn parse(text: &str) -> Result<Limit, String> {
        let wrong = || {
            format!(
                "{text:?} is no time; write it as \"2026-03-01 14:30:00\", with a zone like +02 if it is not the log's"
            )
        };
        let text = text.trim();
        let date = text.get(..10).ok_or_else(wrong)?;
        let rest = text[10..].trim_start_matches([' ', 'T']);
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(rest.len());
        let (clock, zone) = rest.split_at(end);
        let clock = match clock.len() {
            0 => "00:00:00".to_string(),
            5 => format!("{clock}:00"),
            _ => clock.to_string(),
        };
        let joined = format!("{date} {clock}");
        let (wall, left) = take_wall(&joined).ok_or_else(wrong)?;
        if !left.is_empty() {
            return Err(wrong());
        }
        match zone.trim() {
            "" => Ok(Limit::Wall(wall)),
            zone => Ok(Limit::Utc(wall - offset_of(zone).ok_or_else(wrong)? * 1_000_000)),
        }
    }

    /// Whether a time is at the limit or after it.
    pub fn is_reached(self, time: Time) -> bool {
        match self {
            Limit::Utc(limit) => time.utc >= limit,
            Limit::Wall(limit) => time.wall >= limit,
        }
    }
}

/// `YYYY-MM-DD HH:MM:SS` (or with a `T`) and a fraction, in microseconds.
fn take_wall(text: &str) -> Option<(i64, &str)> {
    let bytes = text.as_bytes();
    let shape = bytes.get(..19)?;
    let number = |from: usize, to: usize| -> Option<i64> {
        shape[from..to].iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
    };
    let separators = [shape[4], shape[7], shape[13], shape[16]];
    if separators != *b"--::" || !matches!(shape[10], b' ' | b'T') {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let (fraction, rest) = take_fraction(&text[19..]);
    Some((seconds * 1_000_000 + fraction, rest))
}

/// Days since 1970-01-01.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A fraction of a second in microseconds, 0 if there is none, and what follows.
fn take_fraction(text: &str) -> (i64, &str) {
    let Some(digits) = text.strip_prefix('.') else { return (0, text) };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let micros = digits.bytes().take(end).chain(std::iter::repeat(b'0')).take(6);
    (micros.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')), &digits[end..])
}

fn take_digits(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The zone at the beginning of a text; empty if there is none.
fn take_zone(text: &str) -> (&str, &str) {
    let end = match text.as_bytes().first() {
        Some(b'+' | b'-') => 1 + text[1..].find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(text.len() - 1),
        _ => text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()),
    };
    // `+` alone is no zone, and one letter is `Z` or none.
    let zone = &text[..end];
    let is_zone = zone.len() >= 3 || zone == "Z";
    if is_zone { (zone, &text[end..]) } else { ("", text) }
}

/// Seconds east of Greenwich. Names that several countries use with different meanings are those of the
/// server's default set of abbreviations.
fn offset_of(zone: &str) -> Option<i64> {
    if let Some(signed) = zone.strip_prefix(['+', '-']) {
        let mut parts = signed.splitn(2, ':');
        let (hours, minutes) = (parts.next()?, parts.next());
        let (hours, minutes) = match (hours.len(), minutes) {
            (1 | 2, minutes) => (hours, minutes.unwrap_or("0")),
            (4, None) => hours.split_at(2),
            _ => return None,
        };
        let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds = hours * 3_600 + minutes * 60;
        return Some(if zone.starts_with('-') { -seconds } else { seconds });
    }
    let hours = match zone {
        "UTC" | "GMT" | "Z" | "UCT" | "WET" => 0.0,
        "CET" | "BST" | "WEST" | "MET" | "WAT" => 1.0,
        "CEST" | "EET" | "MEST" | "SAST" | "CAT" => 2.0,
        "EEST" | "MSK" | "EAT" | "TRT" | "IDT" => 3.0,
        "IST" => 2.0,
        "PKT" => 5.0,
        "NPT" => 5.75,
        "ICT" | "WIB" => 7.0,
        "HKT" | "SGT" | "AWST" | "PHT" => 8.0,
        "JST" | "KST" => 9.0,
        "ACST" => 9.5,
        "AEST" => 10.0,
        "ACDT" => 10.5,
        "AEDT" => 11.0,
        "NZST" => 12.0,
        "NZDT" => 13.0,
        "NST" => -3.5,
        "NDT" => -2.5,
        "BRT" | "ART" | "ADT" => -3.0,
        "AST" | "EDT" => -4.0,
        "EST" | "CDT" => -5.0,
        "CST" | "MDT" => -6.0,
        "MST" | "PDT" => -7.0,
        "PST" | "AKDT" => -8.0,
        "AKST" => -9.0,
        "HST" => -10.0,
        _ => return None,
    };
    Some((hours * 3_600.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> i64 {
        Clock::default().take(text).unwrap().0.utc
    }

    #[test]
    fn times_are_read_with_their_zones() {
        assert_eq!(utc("1970-01-02 00:00:01.5 UTC"), 86_401_500_000);
        assert_eq!(utc("2026-11-24 06:33:30.123 CET"), utc("2026-11-24 05:33:30.123 UTC"));
        assert_eq!(utc("2026-11-24 06:33:30 +05:30"), utc("2026-11-24 01:03:30 UTC"));
        assert_eq!(utc("2026-11-24T06:33:30.000001Z"), utc("2026-11-24 06:33:30.000001 GMT"));
        assert_eq!(utc("2000-03-01 00:00:00 UTC"), 951_868_800_000_000);
        let mut clock = Clock::default();
        let (time, rest) = clock.take("2026-11-24 06:33:30.123 XQT [7] LOG").unwrap();
        assert_eq!((time.utc, rest), (time.wall, " [7] LOG"));
        assert_eq!(clock.unknown().collect::<Vec<_>>(), ["XQT"]);
        for wrong in ["2026-11-24", "2026-13-24 06:33:30 UTC", "2026-11-24x06:33:30", ""] {
            assert!(clock.take(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_compared_with_the_log_or_with_utc() {
        let time = Clock::default().take("2026-11-24 06:33:30 CET").unwrap().0;
        for (limit, is_reached) in [
            ("2026-11-24", true),
            ("2026-11-24 06:33", true),
            ("2026-11-24 06:33:30", true),
            ("2026-11-24 06:33:30.001", false),
            ("2026-11-24T05:33:30Z", true),
            ("2026-11-24 05:33:31 UTC", false),
            ("2026-11-24 08:00+03", true),
        ] {
            assert_eq!(Limit::parse(limit).unwrap().is_reached(time), is_reached, "{limit}");
        }
        for wrong in ["", "yesterday", "2026-11-24 6h", "2026-11-24 06:33:30 XQT"] {
            assert!(Limit::parse(wrong).is_err(), "{wrong}");
        }
    }
}
