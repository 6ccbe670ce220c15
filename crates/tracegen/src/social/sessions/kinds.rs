//! The kinds of sessions that a specification mixes.

use schemas::social::Action;
use schemas::social::session::Step;
use schemas::spec::SpecOf;
use schemas::workload::social::SocialWorkload;

use crate::core::mix::Mix;

/// A kind of session.
pub(crate) struct Kind {
    /// The steps, in order.
    pub(crate) steps: Vec<Step>,
    /// How often the socialite views their own profile instead of a drawn member's. Only View
    /// Profile as a session of its own has such a share.
    pub(crate) own_profile_share: Option<f64>,
}

/// All kinds of a checked specification, in the order of [`schemas::spec::Spec::kinds`].
pub(crate) fn kinds(spec: &SpecOf<SocialWorkload>) -> Vec<Kind> {
    let own_share = |name: &str| (name == Action::ViewProfile.name()).then_some(spec.own.access.own_profile_share);
    let kinds = spec.session_kinds().into_iter();
    kinds.map(|kind| Kind { own_profile_share: own_share(&kind.name), steps: kind.steps }).collect()
}

/// How a kind is drawn: single actions come first, by their codes, then the others by name. So the
/// names of the others never change which single actions are drawn.
pub(crate) fn mix(spec: &SpecOf<SocialWorkload>) -> Mix {
    let kinds = spec.common.kinds();
    let code = |name: &str| Action::from_name(name).map_or(u8::MAX, |action| action as u8);
    let mut order: Vec<(usize, f64)> = kinds.iter().enumerate().map(|(place, (_, share))| (place, *share)).collect();
    order.sort_by_key(|(place, _)| code(kinds[*place].0));
    Mix::new(order)
}
