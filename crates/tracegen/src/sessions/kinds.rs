//! The kinds of sessions that a specification mixes, and how one is drawn.

use schemas::session::Step;
use schemas::social::Action;
use schemas::spec::Spec;

use crate::chance::Stream;

/// A kind of session.
pub(crate) struct Kind {
    /// What is done, in order.
    pub(crate) steps: Vec<Step>,
    /// How often she looks at her own profile instead of a drawn member's; only
    /// View Profile as a session of its own has such a share.
    pub(crate) own_profile_share: Option<f64>,
}

/// All kinds, by their place in [`Spec::kinds`].
pub(crate) struct Kinds {
    kinds: Vec<Kind>,
    /// Place and share of each: single actions by their codes, then the others by
    /// name, so that what these are called never changes what single actions draw.
    order: Vec<(usize, f64)>,
    total: f64,
}

/// The kinds that are no longer drawn for the session at hand, a bit each:
/// there are at most 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Excluded(u128);

impl Excluded {
    /// Takes a kind out.
    pub(crate) fn add(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    fn has(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

impl Kinds {
    /// The kinds of a checked specification.
    pub(crate) fn new(spec: &Spec) -> Kinds {
        let kinds = spec.kinds();
        let code = |name: &str| Action::from_name(name).map_or(u8::MAX, |action| action as u8);
        let mut order: Vec<(usize, f64)> = kinds.iter().enumerate().map(|(place, kind)| (place, kind.share)).collect();
        order.sort_by_key(|(place, _)| code(&kinds[*place].name));
        let total = order.iter().map(|(_, share)| share).sum();
        let own_share = |name: &str| (name == Action::ViewProfile.name()).then_some(spec.access.own_profile_share);
        let kinds = kinds
            .into_iter()
            .map(|kind| Kind { own_profile_share: own_share(&kind.name), steps: kind.steps })
            .collect();
        Kinds { kinds, order, total }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The kind at a place.
    pub(crate) fn get(&self, place: usize) -> &Kind {
        &self.kinds[place]
    }

    /// The place of a kind that is not excluded, drawn in proportion to the
    /// shares; none when all are.
    pub(crate) fn draw(&self, excluded: Excluded, chance: &mut Stream) -> Option<usize> {
        if excluded == Excluded::default() {
            return Some(pick(self.order.iter().copied(), self.total, chance));
        }
        if excluded.count() == self.kinds.len() {
            return None;
        }
        let remaining = || self.order.iter().copied().filter(|(place, _)| !excluded.has(*place));
        Some(pick(remaining(), remaining().map(|(_, share)| share).sum(), chance))
    }
}

/// One of some places with their shares, which add up to `total`.
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
