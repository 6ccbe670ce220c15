//! The mix of a specification: how the kind of a session is drawn.

use super::chance::Stream;

/// The kinds of sessions with their shares.
pub struct Mix {
    /// Place and share of each kind, in the order in which a draw goes through them. The place is
    /// that in [`schemas::spec::Spec::kinds`].
    order: Vec<(usize, f64)>,
    total: f64,
}

/// The kinds that are no longer drawn for the current session. Each is a bit; there are at most 100
/// kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Excluded(u128);

impl Excluded {
    /// Excludes a kind.
    pub fn add(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    fn has(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

impl Mix {
    /// A mix of kinds, with place and share of each. A draw depends on their order.
    pub fn new(order: Vec<(usize, f64)>) -> Mix {
        let total = order.iter().map(|(_, share)| share).sum();
        Mix { order, total }
    }

    /// The place of a kind that is not excluded, drawn in proportion to the shares; `None` when all
    /// are excluded.
    pub fn draw(&self, excluded: Excluded, chance: &mut Stream) -> Option<usize> {
        if excluded == Excluded::default() {
            return Some(pick(self.order.iter().copied(), self.total, chance));
        }
        if excluded.count() == self.order.len() {
            return None;
        }
        let remaining = || self.order.iter().copied().filter(|(place, _)| !excluded.has(*place));
        Some(pick(remaining(), remaining().map(|(_, share)| share).sum(), chance))
    }
}

/// Draws one of some places in proportion to their shares, which add up to `total`.
fn pick(places: impl Iterator<Item = (usize, f64)>, total: f64, chance: &mut Stream) -> usize {
    let mut left = chance.unit() * total;
    let mut last = 0;
    for (place, share) in places {
        last = place;
        if left < share {
            break;
        }
        left -= share;
    }
    last
}
