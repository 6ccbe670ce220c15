//! A rate as an expression over the time `t` in seconds.
//!
//! The crate `exmex` parses and evaluates. All functions are `libm`'s, so that an expression has the
//! same value on every machine. Functions of two arguments are operators to `exmex`. Its own reading of
//! `max(a, b)` as `((a) max (b))` fails if `b` contains a comma, so this module rewrites them before.

use std::sync::LazyLock;

use exmex::{BinOp, Express, FlatEx, MakeOperators, Operator};

use crate::damage::guarded;
use crate::words::plural;

/// The most characters of an expression.
const LENGTH_MAX: usize = 1_000;

/// The variable: seconds since the start of the load.
const TIME: &str = "t";

/// The functions of two arguments.
const OF_TWO: [&str; 3] = ["min", "max", "mod"];

/// The operators and functions, in `exmex`'s order of precedence.
#[derive(Debug, Clone)]
struct Operators;

impl MakeOperators<f64> for Operators {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        let binary = |apply: fn(f64, f64) -> f64, prio, is_commutative| BinOp { apply, prio, is_commutative };
        // `-` and `/` bind more tightly than `+` and `*`: exmex adds and multiplies constants first.
        vec![
            Operator::make_bin_unary("+", binary(|a, b| a + b, 0, true), |a| a),
            Operator::make_bin_unary("-", binary(|a, b| a - b, 1, false), |a| -a),
            Operator::make_bin("*", binary(|a, b| a * b, 2, true)),
            Operator::make_bin("/", binary(|a, b| a / b, 3, false)),
            Operator::make_bin("^", binary(libm::pow, 4, false)),
            Operator::make_bin("min", binary(libm::fmin, 0, false)),
            Operator::make_bin("max", binary(libm::fmax, 0, false)),
            Operator::make_bin("mod", binary(libm::fmod, 0, false)),
            Operator::make_unary("sin", libm::sin),
            Operator::make_unary("cos", libm::cos),
            Operator::make_unary("tan", libm::tan),
            Operator::make_unary("exp", libm::exp),
            Operator::make_unary("ln", libm::log),
            Operator::make_unary("sqrt", libm::sqrt),
            Operator::make_unary("abs", libm::fabs),
            Operator::make_unary("floor", libm::floor),
            Operator::make_unary("ceil", libm::ceil),
            Operator::make_unary("round", libm::round),
            Operator::make_constant("pi", std::f64::consts::PI),
        ]
    }
}

/// The names that an expression may contain.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let operators = Operators::make();
    let named = operators.iter().map(Operator::repr).filter(|name| name.starts_with(|c: char| c.is_alphabetic()));
    std::iter::once(TIME).chain(named).collect()
});

/// An expression that was parsed.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    parsed: FlatEx<f64, Operators>,
}

impl Expression {
    /// Parses a text; the error says what is wrong and what to do.
    pub(super) fn parse(text: &str) -> Result<Expression, String> {
        let length = text.chars().count();
        if length > LENGTH_MAX {
            return Err(format!(
                "the expression has {length} characters, at most {LENGTH_MAX} are possible; use pieces or a file"
            ));
        }
        check_words(text)?;
        let infix = infix(text).map_err(|reason| format!("{text:?}: {reason}"))?;
        let parsed = guarded(|| FlatEx::<f64, Operators>::parse(&infix)).map_err(|reason| {
            format!(
                "{text:?} is not an expression over t ({reason}); write it like \"100 + 50 * sin(2 * pi * t / 60)\""
            )
        })?;
        Ok(Expression { parsed })
    }

    /// Its value if it does not depend on the time.
    pub(super) fn constant(&self) -> Option<f64> {
        self.parsed.var_names().is_empty().then(|| self.at(0.0))
    }

    /// Its value at a time in seconds; NaN if it has none.
    pub(super) fn at(&self, t_s: f64) -> f64 {
        let variables = [t_s];
        self.parsed.eval(&variables[..self.parsed.var_names().len()]).unwrap_or(f64::NAN)
    }
}

/// Refuses names that do not exist. `exmex` would take each for a variable.
fn check_words(text: &str) -> Result<(), String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).filter(|word| !word.is_empty());
    for word in words {
        let starts_with_digit = word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if starts_with_digit && (word.parse::<f64>().is_err() || word.contains(char::is_alphabetic)) {
            return Err(format!(
                "{word:?} in {text:?} is not a number; write it without an exponent, like 1000 or 0.5"
            ));
        }
        if !starts_with_digit && !NAMES.contains(&word) {
            return Err(format!("{word:?} in {text:?} is unknown; use {}", NAMES.join(", ")));
        }
    }
    Ok(())
}

/// The text with each call of a function of two arguments as an operator between them: `((a) max (b))`
/// for `max(a, b)`. The error says which function has another number of arguments, or that a comma is
/// outside of such a call.
fn infix(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(2 * text.len());
    let mut rest = text;
    while let Some(Call { before, name, arguments, after }) = first_call(rest) {
        let [first, second] = arguments[..] else {
            let found = plural(arguments.len() as u64, "argument");
            return Err(format!("{name} has {found}, and takes 2; write {name}(t, 100)"));
        };
        out.push_str(&format!("{}(({}) {name} ({}))", without_comma(before)?, infix(first)?, infix(second)?));
        rest = after;
    }
    Ok(out + without_comma(rest)?)
}

fn without_comma(text: &str) -> Result<&str, String> {
    match text.contains(',') {
        true => Err(format!(
            "a comma may stand only between the two arguments of {}; check the parentheses",
            OF_TWO.join(", ")
        )),
        false => Ok(text),
    }
}

/// A call of a function of two arguments in a text.
struct Call<'a> {
    before: &'a str,
    name: &'static str,
    arguments: Vec<&'a str>,
    after: &'a str,
}

/// The first call in a text that has all its parentheses.
fn first_call(text: &str) -> Option<Call<'_>> {
    let named = OF_TWO.iter().flat_map(|name| text.match_indices(name).map(|(at, _)| (at, *name)));
    let mut named: Vec<(usize, &'static str)> = named.collect();
    named.sort_unstable();
    let is_part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    named.into_iter().find_map(|(at, name)| {
        let (before, from_name) = text.split_at(at);
        let inside = from_name[name.len()..].trim_start().strip_prefix('(')?;
        let (arguments, after) = arguments(inside).filter(|_| !before.ends_with(is_part_of_word))?;
        Some(Call { before, name, arguments, after })
    })
}

/// The arguments up to the parenthesis that closes a call, and what follows it.
fn arguments(inside: &str) -> Option<(Vec<&str>, &str)> {
    let (mut found, mut begin, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ',' | ')' if depth == 0 => {
                found.push(&inside[begin..at]);
                begin = at + 1;
                if c == ')' {
                    return Some((found, &inside[begin..]));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, t_s: f64) -> f64 {
        Expression::parse(text).unwrap().at(t_s)
    }

    #[test]
    fn expressions_follow_the_usual_rules() {
        for (text, expect) in [
            ("100 - 20 - 30", 50.0),
            ("t - 2 + 3", 6.0),
            ("t / 2 * 3", 7.5),
            ("t / 5 / 2", 0.5),
            ("2 * t ^ 2 + 1", 51.0),
            ("2 - (t - 1) * 3", -10.0),
            ("max(0, 3 - t)", 0.0),
            ("max(min(t, 4), 1)", 4.0),
            ("max(1, min(t, 2))", 2.0),
            ("max(min(t, 4), min(8, t + 2))", 7.0),
            ("min(max(1, mod(t, 3)), max(2, max(3, t))) + 1", 3.0),
            ("max(1, 2 * min(3, (t + 1) * 2)) * 10", 60.0),
            ("min (abs(max(0 - t, 0 - 3)), 9)", 3.0),
            ("min(t, 4) + max(1, 2)", 6.0),
            ("mod(t + 58, 60)", 3.0),
            ("floor(t / 2) * 10", 20.0),
            ("sqrt(abs(-16)) + round(0.6) + ceil(0.2)", 6.0),
            (".5 + t", 5.5),
        ] {
            assert_eq!(at(text, 5.0), expect, "{text}");
        }
        let sine = at("100 + 50 * sin(2 * pi * t / 20)", 5.0);
        assert!((sine - 150.0).abs() < 1e-9, "{sine}");
        assert_eq!(at("exp(ln(8)) ^ (1 / 3)", 0.0), libm::pow(libm::exp(libm::log(8.0)), 1.0 / 3.0));
        // The sign binds more tightly than the power.
        assert_eq!(at("-t ^ 2", 3.0), 9.0);
    }

    /// `exmex` refuses a function of two arguments in the second argument of another one. Each level must
    /// be read, up to the longest text.
    #[test]
    fn functions_of_two_arguments_nest_to_any_depth() {
        let nested = (0..80).fold("t".to_string(), |inner, depth| format!("max({depth}, {inner})"));
        assert_eq!((at(&nested, 5.0), at(&nested, 500.0)), (79.0, 500.0));
    }

    /// The standard library's functions may differ between platforms in the last bit.
    #[test]
    fn values_are_pinned_to_the_bit() {
        // Written down, so that another version of the library is noticed too.
        assert_eq!(at("100 + 50 * sin(t)", 1.0).to_bits(), 0x4061_c25a_83ef_c486);
        assert_eq!(at("100 * exp(0 - t / 7)", 3.0).to_bits(), 0x4050_4935_c079_d2db);
    }

    #[test]
    fn only_expressions_without_t_are_constant() {
        assert_eq!(Expression::parse("2 * 50").unwrap().constant(), Some(100.0));
        assert_eq!(Expression::parse("0 * t").unwrap().constant(), None);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let check = |text: &str, expect: &str| {
            let error = Expression::parse(text).unwrap_err();
            assert!(error.contains(expect), "{text}: {error}");
        };
        check("", "is not an expression over t");
        check("100 +", "is not an expression over t");
        check("(t", "is not an expression over t");
        check("t t", "is not an expression over t");
        check("max(t)", "max has 1 argument, and takes 2; write max(t, 100)");
        check("max(1, min(t, 2, 3))", "min has 3 arguments, and takes 2");
        check("max(1, min(t, 2)", "only between the two arguments of min, max, mod; check the parentheses");
        check("max(1,)", "is not an expression over t");
        check("max(1, 2) + (1, 2)", "a comma may stand only between");
        check("sin(1, 2)", "a comma may stand only between");
        check("max 1", "is not an expression over t");
        check("100 * x", "\"x\" in \"100 * x\" is unknown; use t, min, max, mod, sin");
        check("foo(t)", "\"foo\" in");
        check("{t} + {y}", "\"y\" in");
        check("1e6 * t", "\"1e6\" in \"1e6 * t\" is not a number; write it without an exponent");
        check("1.2.3", "\"1.2.3\" in");
        check("t\u{0} + 1", "is not an expression over t");
        check(&"(".repeat(1_001), "1001 characters, at most 1000");
    }
}
