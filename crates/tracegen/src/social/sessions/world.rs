//! The social network of a fragment as the sessions so far leave it. It finds the member or
//! resource that each step targets.

use schemas::social::session::{Role, Step};
use schemas::social::{Action, Operation};
use schemas::spec::SpecOf;
use schemas::workload::social::SocialWorkload;

use crate::core::alias::AliasTable;
use crate::core::chance::Stream;
use crate::social::comments::Comments;
use crate::social::graph::{Graph, Horizon};
use crate::social::initial::Initial;
use crate::social::population::Population;
use crate::social::relation::Relation;
use crate::social::sessions::socialites::Socialites;
use crate::social::statistics::{References, SocialiteCounts};
use crate::social::top_fifth::TopFifth;
use crate::social::walls::Walls;

/// How many members are drawn in search of a stranger, in each of at most two rounds.
const STRANGER_DRAWS: u32 = 16;

/// The members and resources that the steps of one session target, as far as they are known.
/// Members are positions, resources are ids.
pub(crate) struct Cast {
    socialite: u32,
    horizon: Horizon,
    bound: [Option<u64>; Role::ALL.len()],
}

/// An operation that can be performed, and the session that it depends on. Members are positions in
/// it, resources are ids.
struct Choice {
    operation: Operation,
    after: Option<u64>,
}

/// The state of a fragment.
pub(crate) struct World<'a> {
    initial: &'a Initial,
    members: AliasTable,
    /// The weight of each member by id, as in [`Population::popularity`].
    popularity: &'a [f64],
    socialites: Socialites,
    in_top_fifth: Vec<bool>,
    graph: Graph<'a>,
    comments: Comments,
    /// Present only when a kind of session targets a resource on a wall.
    walls: Option<Walls>,
    resources_per_member: u64,
    dependency_window: u64,
    /// Decides which actions are done, and their targets.
    pub(crate) chance: Stream,
    /// The members drawn as targets so far.
    targets: References,
}

impl<'a> World<'a> {
    /// The state before the first session.
    pub(crate) fn new(
        spec: &SpecOf<SocialWorkload>,
        population: &'a Population,
        top: &TopFifth,
        fragment: u32,
    ) -> World<'a> {
        let initial = &population.initial[fragment as usize];
        let data = &spec.own.data;
        let stored_comments = data.members * data.resources_per_member * data.comments_per_resource;
        let asks_for_walls =
            spec.session_kinds().iter().any(|kind| kind.steps.iter().any(|step| step.role == Role::WallResource));
        World {
            initial,
            members: population.distribution(fragment),
            popularity: population.popularity(),
            socialites: Socialites::new(
                Stream::new(spec.common.seed, "socialites", fragment),
                population.unique_window(spec, fragment),
                initial.len(),
            ),
            in_top_fifth: initial.members().iter().map(|member| top.has(*member as u64)).collect(),
            graph: Graph::new(initial),
            // New ids alternate between the fragments, so that no fragment needs to know of the others.
            comments: Comments::new(
                data.comments_per_resource,
                stored_comments + fragment as u64,
                spec.common.fragments as u64,
            ),
            walls: asks_for_walls.then(|| Walls::new(spec, initial, fragment)),
            resources_per_member: data.resources_per_member,
            dependency_window: spec.own.access.dependency_window,
            chance: Stream::new(spec.common.seed, "sessions", fragment),
            targets: References::default(),
        }
    }

    /// Draws the socialite of a session.
    pub(crate) fn draw_socialite(&mut self) -> u32 {
        let (initial, popularity) = (self.initial, self.popularity);
        self.socialites.draw(&self.members, |position| popularity[initial.member(position) as usize])
    }

    /// Records that the session of a drawn socialite becomes part of the trace.
    pub(crate) fn act(&mut self, socialite: u32) {
        self.socialites.act(socialite);
    }

    /// How often members acted so far.
    pub(crate) fn socialites(&self) -> SocialiteCounts {
        SocialiteCounts::of(self.socialites.sessions(), &self.in_top_fifth)
    }

    /// The members drawn as targets so far.
    pub(crate) fn targets(&self) -> References {
        self.targets
    }

    /// The targets of a socialite's session that has not begun.
    pub(crate) fn cast(&self, socialite: u32, session: u64) -> Cast {
        let horizon = Horizon { session, window: self.dependency_window };
        Cast { socialite, horizon, bound: [None; Role::ALL.len()] }
    }

    /// Performs a step if it can be done: finds its target and applies its changes. Returns the
    /// operation, in ids, and the session whose write it depends on.
    pub(crate) fn perform(
        &mut self,
        step: Step,
        own_profile_share: Option<f64>,
        cast: &mut Cast,
    ) -> Option<(Operation, Option<u64>)> {
        let role = match own_profile_share {
            Some(share) if self.chance.unit() < share => Role::Me,
            _ => step.role,
        };
        let Choice { mut operation, after } = match step.action {
            Action::DeleteComment => self.choose_comment(cast)?,
            action => self.choose(action, role, cast)?,
        };
        if operation.action.is_write() {
            self.graph.apply(&operation, cast.horizon.session);
        }
        operation.socialite = self.initial.member(operation.socialite as u32);
        if !operation.action.targets_resource() {
            operation.target = self.initial.member(operation.target as u32);
        }
        Some((operation, after))
    }

    fn choose(&mut self, action: Action, role: Role, cast: &mut Cast) -> Option<Choice> {
        let me = cast.socialite;
        let target = match cast.bound[role as usize] {
            Some(target) if self.is_still_possible(action, me, target) => target,
            _ => {
                let target = self.find(role, cast)?;
                cast.bound[role as usize] = Some(target);
                target
            }
        };
        let (mut after, mut comment) = (None, None);
        if action == Action::PostComment {
            comment = Some(self.comments.post(target, cast.horizon.session));
        } else if action.is_write() {
            after = self.graph.last_write(me, target as u32);
        }
        Some(Choice { operation: Operation { action, socialite: me as u64, target, comment }, after })
    }

    /// Deletes a comment: from the resource that the session already targets, else from any of the
    /// socialite's own resources that have comments.
    fn choose_comment(&mut self, cast: &mut Cast) -> Option<Choice> {
        let resources = match cast.bound[Role::OwnResource as usize] {
            Some(resource) => resource..resource + 1,
            None => self.resources_of(cast.socialite),
        };
        let found = self.comments.pick(resources, cast.horizon, &mut self.chance)?;
        self.comments.delete(found);
        cast.bound[Role::OwnResource as usize] = Some(found.resource);
        let operation = Operation {
            action: Action::DeleteComment,
            socialite: cast.socialite as u64,
            target: found.resource,
            comment: Some(found.comment.id),
        };
        Some(Choice { operation, after: found.comment.posted })
    }

    /// Whether the action can still be done to a target that the session chose earlier. A read
    /// always can.
    fn is_still_possible(&self, action: Action, me: u32, target: u64) -> bool {
        let is = |relation| self.graph.relation(me, target as u32) == relation;
        match action {
            Action::InviteFriend => is(Relation::Strangers),
            Action::AcceptFriendRequest | Action::RejectFriendRequest => {
                is(Relation::Invited { inviter: target as u32 })
            }
            Action::ThawFriendship => is(Relation::Friends),
            _ => true,
        }
    }

    /// A member or resource for a role, if there is one.
    fn find(&mut self, role: Role, cast: &mut Cast) -> Option<u64> {
        let Cast { socialite, horizon, .. } = *cast;
        Some(match role {
            Role::Me => socialite as u64,
            Role::Member => self.draw_member() as u64,
            Role::Friend => self.graph.pick_friend(socialite, horizon, &mut self.chance)? as u64,
            Role::Stranger => self.draw_stranger(socialite, horizon)? as u64,
            Role::Inviter => self.graph.pick_inviter(socialite, horizon, &mut self.chance)? as u64,
            Role::Resource => {
                let owner = self.draw_member();
                self.draw_resource_of(owner)
            }
            Role::WallResource => {
                let member = match cast.bound[Role::Member as usize] {
                    Some(member) => member,
                    None => *cast.bound[Role::Member as usize].insert(self.draw_member() as u64),
                };
                let Some(walls) = &self.walls else { unreachable!("walls are known when a kind has this role") };
                let highest = walls.highest(member as u32);
                if highest.is_empty() {
                    return None;
                }
                highest[self.chance.below(highest.len() as u64) as usize]
            }
            Role::OwnResource => self.draw_resource_of(socialite),
        })
    }

    fn draw_member(&mut self) -> u32 {
        let member = self.members.draw(&mut self.chance);
        self.targets.add(self.in_top_fifth[member as usize]);
        member
    }

    fn resources_of(&self, owner: u32) -> std::ops::Range<u64> {
        let first = self.initial.member(owner) * self.resources_per_member;
        first..first + self.resources_per_member
    }

    fn draw_resource_of(&mut self, owner: u32) -> u64 {
        self.resources_of(owner).start + self.chance.below(self.resources_per_member)
    }

    /// A member who has no relation to the socialite. A pair that was written lately is taken only
    /// when a second round finds no other.
    fn draw_stranger(&mut self, socialite: u32, horizon: Horizon) -> Option<u32> {
        let mut recent: Option<(u64, u32)> = None;
        for draw in 1..=2 * STRANGER_DRAWS {
            // Without any candidate a second round is pointless.
            if draw > STRANGER_DRAWS && recent.is_none() {
                break;
            }
            // Only the member that is finally taken counts as a target.
            let other = self.members.draw(&mut self.chance);
            if other == socialite || self.graph.relation(socialite, other) != Relation::Strangers {
                continue;
            }
            match self.graph.last_write(socialite, other) {
                Some(last) if !horizon.is_settled(Some(last)) => {
                    recent = Some(recent.map_or((last, other), |best| best.min((last, other))));
                }
                _ => {
                    self.targets.add(self.in_top_fifth[other as usize]);
                    return Some(other);
                }
            }
        }
        let (_, other) = recent?;
        self.targets.add(self.in_top_fifth[other as usize]);
        Some(other)
    }
}
