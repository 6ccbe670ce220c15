//! Leaves out points that the eye cannot tell: of each stretch of a long line the highest and the lowest stay.

use super::lines::LineSeries;

/// A line of more points than this is thinned: two for each pixel of a chart as wide as a page.
pub(super) const POINTS_MAX: usize = 2400;

/// The series with at most [`POINTS_MAX`] points, and as many fewer tooltips, names and links.
pub(super) fn thinned(series: &LineSeries) -> LineSeries {
    let count = series.points.len();
    if count <= POINTS_MAX {
        return series.clone();
    }
    let stretch = count.div_ceil(POINTS_MAX / 2);
    let mut kept: Vec<usize> = Vec::with_capacity(POINTS_MAX);
    for first in (0..count).step_by(stretch) {
        let own = first..(first + stretch).min(count);
        let by_height = |a: &usize, b: &usize| series.points[*a].y.total_cmp(&series.points[*b].y);
        let finite = || own.clone().filter(|place| series.points[*place].y.is_finite());
        // A gap stays a gap: its first point is kept.
        let ends = [finite().min_by(by_height), finite().max_by(by_height)];
        let mut ends: Vec<usize> = ends.into_iter().flatten().collect();
        if ends.is_empty() {
            ends.push(first);
        }
        ends.sort_unstable();
        ends.dedup();
        kept.extend(ends);
    }
    let texts = |all: &[String]| kept.iter().filter_map(|place| all.get(*place).cloned()).collect();
    LineSeries {
        points: kept.iter().map(|place| series.points[*place]).collect(),
        tooltips: texts(&series.tooltips),
        names: texts(&series.names),
        links: texts(&series.links),
        ..series.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LinePoint, Mark};
    use super::*;

    #[test]
    fn the_highest_and_the_lowest_of_many_points_stay() {
        let point = |x: usize| LinePoint { x: x as f64, y: ((x * 7919) % 1000) as f64, mark: Mark::Filled };
        let mut series = LineSeries { points: (0..100_000).map(point).collect(), ..LineSeries::default() };
        series.points[77_777].y = 1e6;
        series.tooltips = (0..100_000).map(|place| place.to_string()).collect();
        let thin = thinned(&series);
        assert!(thin.points.len() <= POINTS_MAX && thin.points.len() > POINTS_MAX / 2, "{}", thin.points.len());
        assert_eq!(thin.tooltips.len(), thin.points.len());
        assert!(thin.points.is_sorted_by_key(|point| point.x));
        assert!(thin.points.iter().zip(&thin.tooltips).all(|(point, tooltip)| point.x.to_string() == *tooltip));
        let place = thin.points.iter().position(|point| point.y == 1e6).expect("the peak is there");
        assert_eq!(thin.tooltips[place], "77777");
        assert_eq!(thinned(&thin).points.len(), thin.points.len());
    }
}
