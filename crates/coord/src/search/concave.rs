//! What a concave curve can still do between known T's.
//!
//! bg-2013 section G assumes that throughput over T is a square root or an inverse parabola. Both
//! are concave. Between known points a concave curve stays below the lines through the known
//! points on either side.

/// A known point of the curve: T and throughput.
pub type Known = (f64, f64);

/// The line through two points with different T's.
pub type Line = (Known, Known);

/// The highest value that a concave curve can have at a T from `from` to `to`. The points of the
/// `rising` line lie left of these T's, those of the `falling` line right of them, and the curve
/// stays below both lines. Infinite if there is no line.
pub fn ceiling(from: f64, to: f64, rising: Option<Line>, falling: Option<Line>) -> f64 {
    let at = |line: Option<Line>, t: f64| line.map_or(f64::INFINITY, |line| on(line, t));
    let lower = |t: f64| at(rising, t).min(at(falling, t));
    let ends = lower(from).max(lower(to));
    match rising.zip(falling).and_then(|(rising, falling)| crossing(rising, falling)) {
        Some(t) => ends.max(lower(t.clamp(from, to))),
        None => ends,
    }
}

/// The T where two lines cross; None when they are parallel.
pub fn crossing(one: Line, other: Line) -> Option<f64> {
    let difference = slope(one) - slope(other);
    (difference != 0.0).then(|| one.0.0 + (on(other, one.0.0) - one.0.1) / difference)
}

/// The T of the vertex of the parabola through three points in the order of T;
/// None when it opens upwards or is a line.
pub fn vertex(left: Known, middle: Known, right: Known) -> Option<f64> {
    let (before, after) = (slope((left, middle)), slope((middle, right)));
    // A parabola's slope between two points is its slope halfway between them.
    let (from, to) = ((left.0 + middle.0) / 2.0, (middle.0 + right.0) / 2.0);
    (before > after).then(|| from + (to - from) * before / (before - after))
}

fn slope(((t, value), (u, other)): Line) -> f64 {
    (other - value) / (u - t)
}

fn on(line: Line, t: f64) -> f64 {
    line.0.1 + slope(line) * (t - line.0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_vertex_of_a_parabola_is_exact() {
        let known = |t: f64| (t, t * (60.0 - t));
        assert!((vertex(known(0.0), known(16.0), known(64.0)).unwrap() - 30.0).abs() < 1e-9);
        assert!((vertex(known(31.0), known(32.0), known(33.0)).unwrap() - 30.0).abs() < 1e-9);
        assert_eq!(vertex((0.0, 0.0), (1.0, 1.0), (2.0, 2.0)), None);
        assert_eq!(vertex((0.0, 0.0), (1.0, 1.0), (2.0, 4.0)), None);
    }

    #[test]
    fn lines_cross_where_a_curve_with_a_kink_has_its_peak() {
        let kinked = |t: f64| (t, t.min(40.0 - t / 3.0));
        let (rising, falling) = ((kinked(4.0), kinked(8.0)), (kinked(64.0), kinked(90.0)));
        assert!((crossing(rising, falling).unwrap() - 30.0).abs() < 1e-9);
        assert_eq!(crossing(rising, rising), None);
        assert!((ceiling(9.0, 63.0, Some(rising), Some(falling)) - 30.0).abs() < 1e-9);
        assert_eq!(ceiling(9.0, 20.0, Some(rising), None), 20.0);
        assert_eq!(ceiling(9.0, 20.0, None, None), f64::INFINITY);
    }

    proptest! {
        /// No concave curve exceeds its ceiling. The curve here is the minimum of a power and a
        /// falling line.
        #[test]
        fn a_concave_curve_stays_below_its_ceiling(
            power in 0.05f64..1.0, fall in 0.0f64..2.0, height in 1.0f64..100.0, ts in prop::collection::btree_set(1u32..500, 4),
        ) {
            let known = |t: f64| (t, (10.0 * t.powf(power)).min(height * 10.0 - fall * t));
            let ts: Vec<f64> = ts.into_iter().map(f64::from).collect();
            let (rising, falling) = ((known(ts[0]), known(ts[1])), (known(ts[2]), known(ts[3])));
            let top = ceiling(ts[1], ts[2], Some(rising), Some(falling));
            for t in ts[1] as u32..=ts[2] as u32 {
                prop_assert!(known(t as f64).1 <= top + 1e-9 * (1.0 + top.abs()), "T = {} exceeds {}", t, top);
            }
        }
    }
}
