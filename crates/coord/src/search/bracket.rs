//! The interval around the best known load that holds the peak, and the load in it that says most
//! about the peak.

use schemas::verdict::Ruling;

use super::concave::{Line, ceiling, crossing, vertex};
use super::{Limits, Point, Results};

/// An interval is not divided further if a concave curve could gain no more in it, over the best
/// known throughput, than this share of the resolution: 1% for a resolution of 5%.
const WORTH: f64 = 0.2;

/// The gain that rounding alone can show.
const ROUNDING: f64 = 1e-9;

/// The best known load and the results nearest to it, nearest first.
pub struct Bracket {
    best: Point,
    below: [Option<Point>; 3],
    above: [Option<Point>; 3],
}

/// One of the two sides of the best load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

impl Bracket {
    /// The bracket around the best load.
    pub fn around(results: &Results, best: &Point) -> Bracket {
        let mut below = results.points().rev().filter(|point| point.load < best.load);
        let below = [below.next(), below.next(), below.next()];
        let mut above = results.points().filter(|point| point.load > best.load);
        let above = [above.next(), above.next(), above.next()];
        Bracket { best: *best, below, above }
    }

    /// The results next to the best.
    pub fn neighbours(&self) -> impl Iterator<Item = Point> {
        [self.below[0], self.above[0]].into_iter().flatten()
    }

    /// The nearest result above the best.
    pub fn above(&self) -> Option<Point> {
        self.above[0]
    }

    /// The load to try next; None when dividing further is not worth it.
    pub fn next(&self, limits: &Limits) -> Option<u32> {
        let best = self.best.load;
        let (room_below, room_above) = (self.room(Side::Below, limits), self.room(Side::Above, limits));
        if room_below <= 0.0 && room_above <= 0.0 {
            return None;
        }
        if room_above > 0.0 && self.above[0].is_some_and(|above| !above.passed()) {
            return Some(self.towards_the_fail(limits));
        }
        let side = if room_above >= room_below { Side::Above } else { Side::Below };
        if let Some(load) = self.leap(side, limits) {
            return Some(load);
        }
        // The vertex of the parabola, if it is not at the best load.
        let gap = limits.gap(best);
        if let Some(vertex) = self.vertex() {
            // The neighbours are at least two loads apart. The throughput of the best load is higher
            // than theirs, so the vertex lies between them, and so does this.
            let vertex = vertex.round().clamp(self.low() as f64 + 1.0, self.high(limits) as f64 - 1.0) as u32;
            if (room_above > 0.0 && vertex >= best + gap) || (room_below > 0.0 && vertex + gap <= best) {
                return Some(vertex);
            }
        }
        // The slope at the best: if the curve falls towards the open side, that side is closed.
        Some(match side {
            Side::Above => best + gap,
            Side::Below => best - limits.gap_below(best),
        })
    }

    fn low(&self) -> u32 {
        self.below[0].map_or(0, |point| point.load)
    }

    fn high(&self, limits: &Limits) -> u32 {
        self.above[0].map_or(limits.max_load.saturating_add(1), |point| point.load)
    }

    /// The load to try if the next result above the best is a fail. After a bold step that is the
    /// doubled load. Then it is the nearest load that the resolution tells apart, because the SLA may
    /// end right at the best (the paper tries T + 1). Then it is the middle: the one that the
    /// paper's T + 1 would lead to, so that this interval stays within that of doubling and hill
    /// climbing.
    fn towards_the_fail(&self, limits: &Limits) -> u32 {
        let (best, low, high) = (self.best.load, self.low(), self.high(limits));
        let gap = limits.gap(best);
        if high / 2 > best {
            return best * 2;
        }
        if low <= best / 2 {
            return best + gap;
        }
        let is_first_step = best - low <= gap && self.below[1].map_or(0, |point| point.load) <= low / 2;
        let from = if is_first_step { low + 1 } else { best };
        from + (high - from) / 2
    }

    /// The load at which a curve with a kink would have its peak, or the middle of the open side. It
    /// applies if the open side is wide and three results on the other side lie near the best:
    /// there the parabola would crawl along a slope.
    fn leap(&self, side: Side, limits: &Limits) -> Option<u32> {
        let best = self.best.load;
        let (low, high, closed) = match side {
            Side::Below => (self.low(), best, &self.above),
            Side::Above => (best, self.high(limits), &self.below),
        };
        let (open, gap) = (high - low, limits.gap(best));
        if open <= 2 * gap || closed[2]?.load.abs_diff(best) >= open / 2 {
            return None;
        }
        let crossing = match self.lines(side) {
            (Some(rising), Some(falling)) => crossing(rising, falling),
            _ => None,
        };
        let within = |t: f64| t.round().clamp((low + gap) as f64, (high - gap) as f64) as u32;
        Some(crossing.map_or(low + open / 2, within))
    }

    /// The load of the vertex of the parabola through the best and its neighbours.
    fn vertex(&self) -> Option<f64> {
        let above = self.above[0].filter(|point| point.ruling != Ruling::Void)?;
        vertex(self.below[0].map_or((0.0, 0.0), known), known(self.best), known(above))
    }

    /// What a concave curve could gain over the best on one side, as a share of the best, beyond
    /// a gain that is not worth another experiment. It is 0 for a side that is narrower than the
    /// resolution.
    fn room(&self, side: Side, limits: &Limits) -> f64 {
        let best = self.best.load;
        let (low, high) = match side {
            Side::Below => (self.low(), best),
            Side::Above => (best, self.high(limits)),
        };
        if high - low <= limits.gap(best) {
            return 0.0;
        }
        let (rising, falling) = self.lines(side);
        let top = ceiling(low as f64 + 1.0, high as f64 - 1.0, rising, falling);
        let gain = top / self.best.throughput_per_s - 1.0;
        (gain - (limits.resolution * WORTH).max(ROUNDING)).max(0.0)
    }

    /// The lines below which a concave curve stays on one side of the best: one through the
    /// results left of that side, and one through those right of it. A load of zero has no
    /// throughput. Void experiments say nothing. Failed ones count only for the side below the
    /// best: there a throughput that collapsed with the SLA makes the search more careful, not
    /// less.
    fn lines(&self, side: Side) -> (Option<Line>, Option<Line>) {
        let origin = |point: Option<Point>| point.map_or((0.0, 0.0), known);
        match side {
            Side::Below => {
                let rising = self.below[0].map(|left| (origin(self.below[1]), known(left)));
                let above = self.above[0].filter(|point| point.ruling != Ruling::Void);
                (rising, above.map(|right| (known(self.best), known(right))))
            }
            Side::Above => {
                let rising = (origin(self.below[0]), known(self.best));
                let falling = match self.above {
                    [Some(right), Some(further), _]
                        if right.passed() && further.ruling != Ruling::Void && further.throughput_per_s > 0.0 =>
                    {
                        Some((known(right), known(further)))
                    }
                    _ => None,
                };
                (Some(rising), falling)
            }
        }
    }
}

/// The point as load and throughput.
fn known(point: Point) -> (f64, f64) {
    (point.load as f64, point.throughput_per_s)
}
