//! The axes of a chart: the position of each value, and the ticks.

/// A ratio above this is hard to see on a linear axis.
const LINEAR_RATIO_MAX: f64 = 30.0;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0, in equal steps.
    Linear,
    /// In equal steps, from near the lowest value: for shares that are all close to 100%.
    Near,
    /// In powers of ten; it has no 0.
    Log,
}

impl Scale {
    /// Logarithmic where the values above 0 differ by more than a factor of 30.
    pub fn suited_to(values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = extent(values);
        if high > low * LINEAR_RATIO_MAX { Scale::Log } else { Scale::Linear }
    }
}

/// The smallest and the largest of the values above 0; 1 and 1 if there are none.
fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let above = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
    let (low, high) = above.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    if high > 0.0 { (low, high) } else { (1.0, 1.0) }
}

/// An axis: the values at its two ends, and its ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// The ticks: values that are written beside the axis, ascending.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// An axis that holds the values. At least `free` of it (a share from 0 to below 1) stays
    /// free above the largest value.
    pub fn new(scale: Scale, values: impl IntoIterator<Item = f64>, free: f64) -> Axis {
        if scale == Scale::Near {
            return Axis::near(values);
        }
        let (smallest, largest) = extent(values);
        match scale {
            Scale::Linear | Scale::Near => Axis::linear(largest / (1.0 - free)),
            // The smallest bar needs some height too.
            Scale::Log => Axis::log(smallest / 1.5, largest, free),
        }
    }

    /// An axis for points from left to right: the first point may be at its very beginning.
    pub fn across(scale: Scale, values: impl IntoIterator<Item = f64>) -> Axis {
        let (smallest, largest) = extent(values);
        match scale {
            Scale::Linear | Scale::Near => Axis::linear(largest),
            Scale::Log => Axis::log(smallest, largest, 0.0),
        }
    }

    fn linear(largest: f64) -> Axis {
        let step = step(largest);
        let count = (largest / step).ceil() as u32;
        let ticks = (0..=count).map(|i| i as f64 * step).collect();
        Axis { scale: Scale::Linear, low: 0.0, high: count as f64 * step, ticks }
    }

    /// An axis that does not begin at 0, unless some value is far below the others.
    fn near(values: impl IntoIterator<Item = f64>) -> Axis {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        if high <= 0.0 || low < high / 2.0 {
            return Axis::linear(if high > 0.0 { high } else { 1.0 });
        }
        // Equal values need a range too.
        let range = (high - low).max(high / 100.0);
        let (low, step) = (high - range, step(range));
        // A value on a tick needs no further step, whatever the rounding of binary fractions.
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let ticks: Vec<f64> = (0..=(last - first) as u32).map(|i| (first + f64::from(i)) * step).collect();
        Axis { scale: Scale::Near, low: first * step, high: last * step, ticks }
    }

    fn log(smallest: f64, largest: f64, free: f64) -> Axis {
        let first = smallest.log10().floor() as i32;
        let last = (largest.log10().ceil() as i32).max(first + 1);
        let every = ((last - first) as usize).div_ceil(9).max(1);
        let ticks = (first..=last).step_by(every).map(|n| 10f64.powi(n)).collect();
        // If the last power of ten is too near, the axis extends beyond it.
        let needed = f64::from(first) + (largest.log10() - f64::from(first)) / (1.0 - free);
        Axis { scale: Scale::Log, low: 10f64.powi(first), high: 10f64.powf(needed.max(f64::from(last))), ticks }
    }

    /// The values at its two ends.
    pub fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether equal distances are equal ratios.
    pub fn is_log(&self) -> bool {
        self.scale == Scale::Log
    }

    /// The position of a value, from 0 (the low end) to 1. A value outside the axis is placed at
    /// the nearer end.
    pub fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear | Scale::Near => (value - self.low) / (self.high - self.low),
            Scale::Log if value <= 0.0 => 0.0,
            Scale::Log => (value / self.low).log10() / (self.high / self.low).log10(),
        };
        share.clamp(0.0, 1.0)
    }
}

/// The step between ticks for a range: 1, 2 or 5 times a power of ten, four to eight of them.
fn step(range: f64) -> f64 {
    let power = 10f64.powf((range / 8.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| range / step <= 8.0);
    step.unwrap_or(10.0 * power)
}

/// A value as the text of a tick: `12,000`, `0.05`.
pub fn tick_label(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1e9 || (magnitude > 0.0 && magnitude < 1e-3) {
        return format!("{value:e}");
    }
    // Six decimals hide the errors of binary fractions.
    let text = format!("{value:.6}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { out } else { format!("{out}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ratios_above_thirty_are_logarithmic() {
        assert_eq!(Scale::suited_to([100.0, 3000.0]), Scale::Linear);
        assert_eq!(Scale::suited_to([100.0, 3001.0]), Scale::Log);
        assert_eq!(Scale::suited_to([0.0, 1.0, f64::NAN]), Scale::Linear);
        assert_eq!(Scale::suited_to([]), Scale::Linear);
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 0.2 + 0.1, 1.0, 2500.0, 1e6, 3e12, 1e-5].map(tick_label);
        assert_eq!(labels, ["0", "0.3", "1", "2,500", "1,000,000", "3e12", "1e-5"]);
    }

    #[test]
    fn ticks_of_an_axis() {
        let check = |scale, values: &[f64], expect: &[f64]| {
            assert_eq!(Axis::new(scale, values.iter().copied(), 0.0).ticks, expect);
        };
        check(Scale::Linear, &[3.0, 7.0], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        check(Scale::Linear, &[900.0, 0.0], &[0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        check(Scale::Log, &[12.0, 32_452.0], &[1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
        check(Scale::Log, &[100.0, 1000.0], &[10.0, 100.0, 1000.0]);
        check(Scale::Log, &[], &[0.1, 1.0]);
        check(Scale::Near, &[95.0, 99.97, 100.0], &[95.0, 96.0, 97.0, 98.0, 99.0, 100.0]);
        check(Scale::Near, &[50.0, 12.0], &[0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        check(Scale::Near, &[7.0, 0.0], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    }

    /// Shares close to 100% use the whole height, and 100% is the upper end.
    #[test]
    fn near_axes_begin_near_the_lowest_value() {
        let axis = Axis::new(Scale::Near, [100.0, 99.98, 100.0], 0.0);
        assert!(axis.ticks[0] >= 99.0 && axis.place(100.0) == 1.0, "{axis:?}");
        let axis = Axis::new(Scale::Near, [100.0; 3], 0.0);
        assert!(axis.ticks[0] >= 98.0 && axis.place(100.0) == 1.0, "{axis:?}");
    }

    /// Points need no height: a search that starts with one thread starts at the left end.
    #[test]
    fn an_axis_across_begins_with_its_first_point() {
        let axis = Axis::across(Scale::Log, [1.0, 64.0]);
        assert_eq!((axis.ticks.as_slice(), axis.place(1.0)), ([1.0, 10.0, 100.0].as_slice(), 0.0));
        assert_eq!(Axis::across(Scale::Linear, [3.0, 7.0]), Axis::new(Scale::Linear, [3.0, 7.0], 0.0));
    }

    proptest! {
        #[test]
        fn every_value_has_its_place(values in prop::collection::vec(1e-9f64..1e15, 1..9), is_log: bool) {
            let scale = if is_log { Scale::Log } else { Scale::Linear };
            let axis = Axis::new(scale, values.iter().copied(), 0.1);
            prop_assert!(axis.ticks.len() >= 2 && axis.ticks.len() <= 12, "{:?}", axis.ticks);
            let top = values.iter().map(|value| axis.place(*value)).fold(0.0, f64::max);
            prop_assert!(top <= 0.9 + 1e-9, "{top}");
            prop_assert!(axis.ticks.is_sorted());
            for value in &values {
                let share = value / values.iter().fold(0.0f64, |a, b| a.max(*b));
                let place = axis.place(*value);
                // On a linear axis positions are proportional; on a logarithmic one no value is
                // at the bottom.
                prop_assert!(place < 1.0 && (is_log || (place / axis.place(*value / share) - share).abs() < 1e-9));
                prop_assert!(!is_log || place > 0.0);
            }
        }
    }
}
