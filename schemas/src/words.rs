//! Counts, rates and shares in texts for people.

/// A number with commas between the thousands.
///
/// ```
/// assert_eq!(schemas::words::thousands(1_954_721), "1,954,721");
/// ```
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, in the plural unless the count is 1.
///
/// ```
/// use schemas::words::plural;
/// assert_eq!((plural(1, "row"), plural(2000, "row")), ("1 row".into(), "2,000 rows".into()));
/// ```
pub fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// A number of events a second, with one decimal if it is small.
///
/// ```
/// use schemas::words::rate;
/// assert_eq!((rate(12.54), rate(1_954_721.2)), ("12.5".into(), "1,954,721".into()));
/// ```
pub fn rate(per_s: f64) -> String {
    if per_s < 1000.0 { format!("{per_s:.1}") } else { thousands(per_s.round() as u64) }
}

/// A percentage with up to three decimals, never rounded up to 100 or down to 0.
///
/// ```
/// use schemas::words::short_percent;
/// assert_eq!((short_percent(99.99999), short_percent(0.16041)), (99.999, 0.161));
/// ```
pub fn short_percent(value: f64) -> f64 {
    let thousandths = value * 1000.0;
    let kept = if value > 99.0 { thousandths.floor() } else { thousandths.ceil() };
    // Rounding errors may put a whole number of thousandths a little above itself.
    let kept = if (thousandths - thousandths.round()).abs() < 1e-6 { thousandths.round() } else { kept };
    kept / 1000.0
}
