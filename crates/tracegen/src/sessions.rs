//! Makes the sessions of one fragment, one after the other.

use schemas::social::{Action, Operation};
use schemas::spec::Spec;
use schemas::trace::TraceRow;

use crate::alias::AliasTable;
use crate::chance::Stream;
use crate::comments::Comments;
use crate::graph::{Graph, Horizon};
use crate::initial::{Initial, Relation};
use crate::population::Population;

/// How often each action was meant, by its code.
pub(crate) type ActionCounts = [u64; Action::ALL.len()];

/// How many members are drawn in search of one to invite, twice at most.
const INVITEE_DRAWS: u32 = 16;

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    initial: &'a Initial,
    members: AliasTable,
    mix: [f64; Action::ALL.len()],
    chance: Stream,
    graph: Graph<'a>,
    comments: Comments,
    resources_per_member: u64,
    own_profile_share: f64,
    window: u64,
    next: u64,
    /// How often each action was performed.
    pub(crate) performed: ActionCounts,
    /// How often each action was drawn in vain.
    pub(crate) redrawn: ActionCounts,
}

/// An operation that can be performed. Members stand as positions in it,
/// resources as ids.
struct Choice {
    operation: Operation,
    after: Option<u64>,
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment from the first one on.
    pub(crate) fn new(spec: &Spec, population: &'a Population, fragment: u32) -> Sessions<'a> {
        let initial = &population.initial[fragment as usize];
        let data = &spec.data;
        let stored_comments = data.members * data.resources_per_member * data.comments_per_resource;
        Sessions {
            initial,
            members: population.distribution(fragment),
            mix: Action::ALL.map(|action| spec.mix.get(action.name()).copied().unwrap_or(0.0)),
            chance: Stream::new(spec.seed, "sessions", fragment),
            graph: Graph::new(initial),
            // Fragments take turns with new ids, so that none needs to know of the others.
            comments: Comments::new(
                data.comments_per_resource,
                stored_comments + fragment as u64,
                spec.fragments as u64,
            ),
            resources_per_member: data.resources_per_member,
            own_profile_share: spec.access.own_profile_share,
            window: spec.access.dependency_window,
            next: 0,
            performed: ActionCounts::default(),
            redrawn: ActionCounts::default(),
        }
    }

    /// The next session; it has one operation.
    ///
    /// The socialite stays when an action is drawn anew, so that references to
    /// members keep their distribution.
    pub(crate) fn next_session(&mut self) -> TraceRow {
        let session = self.next;
        self.next += 1;
        let socialite = self.members.draw(&mut self.chance);
        let mut mix = self.mix;
        loop {
            let action = draw_action(&mix, &mut self.chance);
            let Some(choice) = self.choose(action, socialite, session) else {
                self.redrawn[action as usize] += 1;
                // What she cannot do now would only be drawn in vain again. A
                // read remains: the specification has one that can always be done.
                mix[action as usize] = 0.0;
                continue;
            };
            self.performed[action as usize] += 1;
            return self.perform(choice, session);
        }
    }

    /// What the socialite does it to, if she can do it at all.
    fn choose(&mut self, action: Action, socialite: u32, session: u64) -> Option<Choice> {
        let horizon = Horizon { session, window: self.window };
        let chance = &mut self.chance;
        let mut after = None;
        let mut comment = None;
        let target = match action {
            Action::ViewProfile if chance.unit() < self.own_profile_share => socialite as u64,
            Action::ViewProfile | Action::ListFriends | Action::ViewTopKResources => self.members.draw(chance) as u64,
            Action::ViewFriendRequests => socialite as u64,
            Action::InviteFriend => {
                let invitee = self.draw_invitee(socialite, horizon)?;
                after = self.graph.last_write(socialite, invitee);
                invitee as u64
            }
            Action::AcceptFriendRequest | Action::RejectFriendRequest => {
                let inviter = self.graph.pick_inviter(socialite, horizon, chance)?;
                after = self.graph.last_write(socialite, inviter);
                inviter as u64
            }
            Action::ThawFriendship => {
                let friend = self.graph.pick_friend(socialite, horizon, chance)?;
                after = self.graph.last_write(socialite, friend);
                friend as u64
            }
            Action::ViewComments | Action::PostComment => {
                let owner = self.members.draw(chance);
                let resource =
                    self.initial.member(owner) * self.resources_per_member + chance.below(self.resources_per_member);
                if action == Action::PostComment {
                    comment = Some(self.comments.post(resource, session));
                }
                resource
            }
            Action::DeleteComment => {
                let first = self.initial.member(socialite) * self.resources_per_member;
                let place = self.comments.pick(first..first + self.resources_per_member, horizon, chance)?;
                self.comments.delete(place);
                comment = Some(place.comment.id);
                after = place.comment.posted;
                place.resource
            }
        };
        Some(Choice { operation: Operation { action, socialite: socialite as u64, target, comment }, after })
    }

    /// A member who is nothing to the socialite yet. A pair that was written
    /// lately is taken only when a second round finds no other.
    fn draw_invitee(&mut self, socialite: u32, horizon: Horizon) -> Option<u32> {
        let mut recent: Option<(u64, u32)> = None;
        for draw in 1..=2 * INVITEE_DRAWS {
            // Without any candidate there is no reason for a second round.
            if draw > INVITEE_DRAWS && recent.is_none() {
                break;
            }
            let other = self.members.draw(&mut self.chance);
            if other == socialite || self.graph.relation(socialite, other) != Relation::Strangers {
                continue;
            }
            match self.graph.last_write(socialite, other) {
                Some(last) if !horizon.is_settled(Some(last)) => {
                    recent = Some(recent.map_or((last, other), |best| best.min((last, other))));
                }
                _ => return Some(other),
            }
        }
        recent.map(|(_, other)| other)
    }

    /// Takes in what the operation changes, and gives it its ids.
    fn perform(&mut self, choice: Choice, session: u64) -> TraceRow {
        let Choice { mut operation, after } = choice;
        if operation.action.is_write() {
            self.graph.apply(&operation, session);
        }
        operation.socialite = self.initial.member(operation.socialite as u32);
        if !operation.action.targets_resource() {
            operation.target = self.initial.member(operation.target as u32);
        }
        TraceRow { session, step: 0, kind: 0, noops: 0, think_us: 0, due_us: None, after, operation }
    }
}

/// An action with a probability in proportion to its share; one share is above 0.
fn draw_action(mix: &[f64; Action::ALL.len()], chance: &mut Stream) -> Action {
    let mut left = chance.unit() * mix.iter().sum::<f64>();
    let mut last = Action::ViewProfile;
    for (action, share) in Action::ALL.into_iter().zip(mix) {
        if *share > 0.0 {
            last = action;
            if left < *share {
                break;
            }
            left -= share;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::share::sessions_by_fragment;

    const MEMBERS: usize = 2_000;
    const SESSIONS: u64 = 1_000_000;

    fn spec(fragments: u32) -> Spec {
        let text = format!(
            "name = 'chi'\nsessions = {SESSIONS}\nfragments = {fragments}\n\
             [data]\nmembers = {MEMBERS}\nfriends_per_member = 4\npending_per_member = 2\n\
             [mix]\nlist_friends = 90\ninvite_friend = 4\naccept_friend_request = 4\nthaw_friendship = 2\n"
        );
        Spec::parse(&text, "chi.toml").unwrap()
    }

    /// The value that chi-square exceeds by chance once in a thousand times
    /// (Wilson and Hilferty's approximation).
    fn critical(degrees: f64) -> f64 {
        let spread = 2.0 / (9.0 * degrees);
        degrees * (1.0 - spread + 3.0902 * spread.sqrt()).powi(3)
    }

    fn chi_square(counts: &[u64], probabilities: &[f64]) -> f64 {
        let total = counts.iter().sum::<u64>() as f64;
        counts.iter().zip(probabilities).map(|(n, p)| (*n as f64 - p * total).powi(2) / (p * total)).sum()
    }

    /// However many fragments there are, their sessions together refer to
    /// members by the one global distribution, as socialites and as targets.
    #[test]
    fn the_union_of_all_fragments_follows_the_global_distribution() {
        let one = Population::new(&spec(1)).unwrap();
        let probabilities = one.probabilities();
        for fragments in [1, 4, 16] {
            let spec = spec(fragments);
            let population = Population::new(&spec).unwrap();
            assert_eq!(population.probabilities(), probabilities);
            let (mut socialites, mut targets) = (vec![0; MEMBERS], vec![0; MEMBERS]);
            for (fragment, count) in (0..fragments).zip(sessions_by_fragment(&population.weights, SESSIONS)) {
                let mut sessions = Sessions::new(&spec, &population, fragment);
                for _ in 0..count {
                    let operation = sessions.next_session().operation;
                    socialites[operation.socialite as usize] += 1;
                    if operation.action == Action::ListFriends {
                        targets[operation.target as usize] += 1;
                    }
                }
            }
            for counts in [socialites, targets] {
                let found = chi_square(&counts, &probabilities);
                let limit = critical(MEMBERS as f64 - 1.0);
                assert!(found < limit, "{fragments} fragments: chi-square {found} above {limit}");
            }
        }
    }

    /// The test above would notice another exponent.
    #[test]
    fn chi_square_tells_another_distribution_apart() {
        let mut spec = spec(1);
        let probabilities = Population::new(&spec).unwrap().probabilities();
        spec.access.theta = 0.3;
        let population = Population::new(&spec).unwrap();
        let mut sessions = Sessions::new(&spec, &population, 0);
        let mut counts = vec![0; MEMBERS];
        for _ in 0..SESSIONS {
            counts[sessions.next_session().operation.socialite as usize] += 1;
        }
        assert!(chi_square(&counts, &probabilities) > critical(MEMBERS as f64 - 1.0));
    }
}
