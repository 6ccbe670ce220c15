//! A sketch of what a rating has found so far, in characters: throughput and response times by
//! load.

use schemas::sla::short_time;
use schemas::verdict::Verdict;
use schemas::words::thousands;

use crate::search::Unit;

/// The heights of a column, lowest first.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The most columns.
const MOST_COLUMNS: usize = 40;

/// One column for each load with successful operations, in rising order; empty for fewer than two.
/// The latest experiment of a load counts. `verdicts` are those of all experiments so far, with their
/// loads.
pub fn sketch(unit: Unit, verdicts: &mut dyn Iterator<Item = (u32, &Verdict)>) -> String {
    let mut by_load = std::collections::BTreeMap::new();
    for (load, verdict) in verdicts.filter(|(_, verdict)| verdict.figures.overall.ok > 0) {
        let figures = &verdict.figures;
        by_load.insert(load, (figures.throughput_per_s, figures.overall.p95_ns as f64));
    }
    if by_load.len() < 2 {
        return String::new();
    }
    let shown: Vec<(u32, (f64, f64))> = by_load.into_iter().take(MOST_COLUMNS).collect();
    let (rates, times): (Vec<f64>, Vec<f64>) = shown.iter().map(|(_, values)| *values).unzip();
    let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let (first, last) = (shown[0].0, shown[shown.len() - 1].0);
    format!(
        "    ops/s {}  up to {}   p95 {}  up to {}   {}",
        columns(&rates),
        thousands(highest(&rates).round() as u64),
        columns(&times),
        short_time(highest(&times) as u64),
        unit.range(first, last)
    )
}

fn columns(values: &[f64]) -> String {
    let highest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let height = |value: &f64| (value / highest * HEIGHTS.len() as f64).ceil() as usize;
    values.iter().map(|value| HEIGHTS[height(value).clamp(1, HEIGHTS.len()) - 1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_high_as_their_values() {
        assert_eq!(columns(&[0.0, 50.0, 100.0]), "▁▄█");
        assert_eq!(columns(&[7.0]), "█");
    }
}
