//! Draws a rate over time with characters, for terminals.

/// Columns of a chart.
pub(super) const COLUMNS: usize = 60;

/// Rows of a chart.
const ROWS: usize = 6;

/// The heights of a column in a row, lowest first.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One column for each rate (sessions a second), over so many seconds. Lines have at most 80
/// characters.
pub(super) fn chart(rates: &[f64], seconds: f64) -> String {
    let greatest = rates.iter().copied().fold(0.0, f64::max);
    let label = short(greatest);
    let width = label.chars().count().max(1);
    let eighths = |rate: f64| match greatest > 0.0 {
        // A rate above 0 is always visible.
        true => ((rate / greatest * (ROWS * 8) as f64).round() as usize).max((rate > 0.0) as usize),
        false => 0,
    };
    let mut lines = Vec::with_capacity(ROWS + 2);
    for row in (0..ROWS).rev() {
        let bar: String = rates.iter().map(|rate| HEIGHTS[eighths(*rate).saturating_sub(row * 8).min(8)]).collect();
        let label = match row {
            row if row == ROWS - 1 => label.as_str(),
            0 => "0",
            _ => "",
        };
        lines.push(format!("{label:>width$} |{}", bar.trim_end()).trim_end().to_string());
    }
    let end = format!("{} s", short(seconds));
    lines.push(format!("{:>width$}  0{end:>room$}", "", room = rates.len().saturating_sub(1)));
    lines.join("\n")
}

/// A number with at most three decimals.
pub(super) fn short(number: f64) -> String {
    let rounded = (number * 1e3).round() / 1e3;
    match rounded >= 1e4 {
        true => schemas::words::thousands(rounded.round() as u64),
        false => rounded.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_column_for_each_rate() {
        let rates: Vec<f64> = (0..12).map(|column| column as f64 * 10.0).collect();
        let expect = "\
110 |          ▄█
    |        ▃▇██
    |      ▂▇████
    |    ▁▆██████
    |  ▁▅████████
  0 | ▄██████████
     0       60 s";
        assert_eq!(chart(&rates, 60.0), expect);
    }

    #[test]
    fn numbers_are_short() {
        for (number, expect) in
            [(0.0, "0"), (1.0 / 3.0, "0.333"), (250.5, "250.5"), (9_999.0, "9999"), (1e6, "1,000,000")]
        {
            assert_eq!(short(number), expect);
        }
    }

    #[test]
    fn the_least_rate_is_visible_and_none_is_not() {
        let chart = chart(&[0.0, 1e-6, 1e6], 1.0);
        let last = chart.lines().nth(ROWS - 1).unwrap();
        assert_eq!(last, "        0 | ▁█");
        assert!(chart.lines().all(|line| line.chars().count() <= 80), "{chart}");
    }
}
