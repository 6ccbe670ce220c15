//! Exact arithmetic on decimal numbers, for values that a statement computes from its parameters.

use std::cmp::Ordering;

use super::super::canonical;
use super::term::Operator;

/// A number: its digits, and how many of them are after its point.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    digits: i128,
    scale: u32,
}

const TOO_LONG: &str = "a number has more digits than 38";

impl Number {
    /// A whole number.
    pub fn whole(number: i64) -> Number {
        Number { digits: number.into(), scale: 0 }
    }

    /// Reads digits with a sign and a point.
    pub fn parse(text: &str) -> Option<Number> {
        let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let scale = u32::try_from(fraction.len()).ok()?;
        let all = format!("{whole}{fraction}");
        let is_number = all.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit());
        let digits = all.parse().ok().filter(|_| is_number)?;
        Some(Number { digits, scale })
    }

    fn scaled(self, scale: u32) -> Result<i128, &'static str> {
        let factor = 10i128.checked_pow(scale - self.scale).ok_or(TOO_LONG)?;
        self.digits.checked_mul(factor).ok_or(TOO_LONG)
    }

    /// Its digits as a whole number, and how many of them are after its point.
    pub fn parts(self) -> (i128, u32) {
        (self.digits, self.scale)
    }

    /// A sum, difference or product.
    pub fn calculate(self, operator: Operator, other: Number) -> Result<Number, &'static str> {
        if operator == Operator::Multiply {
            let digits = self.digits.checked_mul(other.digits).ok_or(TOO_LONG)?;
            return Ok(Number { digits, scale: self.scale + other.scale });
        }
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.scaled(scale)?, other.scaled(scale)?);
        let digits = match operator {
            Operator::Add => left.checked_add(right),
            _ => left.checked_sub(right),
        };
        Ok(Number { digits: digits.ok_or(TOO_LONG)?, scale })
    }

    /// The order of two numbers.
    pub fn compare(self, other: Number) -> Result<Ordering, &'static str> {
        let scale = self.scale.max(other.scale);
        Ok(self.scaled(scale)?.cmp(&other.scaled(scale)?))
    }

    /// Rounds to so many digits after the point, a half away from zero.
    pub fn round(self, scale: u32) -> Number {
        if scale >= self.scale {
            return self;
        }
        let Some(factor) = 10i128.checked_pow(self.scale - scale) else { return Number { digits: 0, scale } };
        let half = factor / 2 * self.digits.signum();
        Number { digits: (self.digits + half) / factor, scale }
    }

    /// The whole number; None if it has another value or more than 64 bits.
    pub fn as_whole(self) -> Option<i64> {
        let factor = 10i128.checked_pow(self.scale)?;
        (self.digits % factor == 0).then(|| i64::try_from(self.digits / factor).ok()).flatten()
    }

    /// Its canonical text.
    pub fn text(self) -> String {
        let sign = if self.digits < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", self.digits.unsigned_abs(), width = self.scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - self.scale as usize);
        let mut text = String::new();
        canonical::decimal(&format!("{sign}{whole}.{fraction}"), &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_exact() {
        let number = |text: &str| Number::parse(text).unwrap();
        let check = |left: &str, operator, right: &str, expect: &str| {
            assert_eq!(number(left).calculate(operator, number(right)).unwrap().text(), expect, "{left} {right}");
        };
        check("0.1", Operator::Add, "0.2", "0.3");
        check("-5", Operator::Add, "0.25", "-4.75");
        check("10", Operator::Subtract, "10.00", "0");
        check("3", Operator::Multiply, "-1.05", "-3.15");
        for (text, scale, expect) in [("2.345", 2, "2.35"), ("-2.345", 2, "-2.35"), ("2.344", 2, "2.34"), ("7", 2, "7")]
        {
            assert_eq!(number(text).round(scale).text(), expect);
        }
        assert_eq!(number("5.00").as_whole(), Some(5));
        assert_eq!(number("5.01").as_whole(), None);
        assert_eq!(number("-.5").text(), "-0.5");
        assert!(Number::parse("1e3").is_none() && Number::parse("").is_none());
        assert_eq!(number("2.50").compare(number("2.5")), Ok(Ordering::Equal));
    }
}
