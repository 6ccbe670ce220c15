//! A model of the social network as plain sets. It follows the meaning of the actions, not the code
//! of the generator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::social;
use schemas::digest::StateDigest;
use schemas::manifest::Manifest;
use schemas::social::Action;
use schemas::social::TraceRow;
use schemas::workload::social::Payload;
use schemas::workload::social::dataset::Table;

/// Two writes of the same relation depend on each other: the second must wait for the first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    Pair(u64, u64),
    Comment(u64),
}

/// The state of one fragment.
#[derive(Default)]
pub struct Model {
    members: BTreeSet<u64>,
    friends: BTreeSet<(u64, u64)>,
    /// (inviter, invitee)
    invitations: BTreeSet<(u64, u64)>,
    /// The owner and the wall of each resource.
    resources: BTreeMap<u64, (u64, u64)>,
    /// The resource and the author of each comment.
    comments: BTreeMap<u64, (u64, u64)>,
    last_writes: BTreeMap<Relation, u64>,
}

fn pair(a: u64, b: u64) -> (u64, u64) {
    (a.min(b), a.max(b))
}

impl Model {
    /// Loads the state from a data set's tables, which must be well-formed.
    pub fn load(folder: &Path, fragment: u32) -> Model {
        let mut model = Model::default();
        let mut last = None;
        Table::Members
            .for_each(folder, fragment, |[member]| {
                assert!(last < Some(member));
                last = Some(member);
                model.members.insert(member);
            })
            .unwrap();
        let mut last = None;
        Table::Friendships
            .for_each(folder, fragment, |[a, b]| {
                assert!(a < b && last < Some((a, b)));
                last = Some((a, b));
                assert!(model.members.contains(&a) && model.members.contains(&b));
                model.friends.insert((a, b));
            })
            .unwrap();
        let mut last = None;
        Table::Invitations
            .for_each(folder, fragment, |[inviter, invitee]| {
                assert!(last < Some((invitee, inviter)));
                last = Some((invitee, inviter));
                assert!(model.members.contains(&inviter) && model.members.contains(&invitee));
                assert!(model.are_strangers(inviter, invitee), "{inviter} and {invitee} have two relations");
                model.invitations.insert((inviter, invitee));
            })
            .unwrap();
        let mut last = None;
        Table::Resources
            .for_each(folder, fragment, |[resource, owner, wall]| {
                assert!(last < Some(resource));
                last = Some(resource);
                assert!(model.members.contains(&owner) && model.members.contains(&wall));
                model.resources.insert(resource, (owner, wall));
            })
            .unwrap();
        let mut last = None;
        Table::Comments
            .for_each(folder, fragment, |[comment, resource, author]| {
                assert!(last < Some(comment));
                last = Some(comment);
                assert!(model.resources.contains_key(&resource) && model.members.contains(&author));
                model.comments.insert(comment, (resource, author));
            })
            .unwrap();
        model
    }

    /// The members.
    pub fn members(&self) -> impl Iterator<Item = u64> + '_ {
        self.members.iter().copied()
    }

    /// How many friends a member has.
    pub fn friend_count(&self, member: u64) -> u64 {
        self.friends.iter().filter(|(a, b)| *a == member || *b == member).count() as u64
    }

    /// How many invitations wait for a member.
    pub fn pending_count(&self, member: u64) -> u64 {
        self.invitations.iter().filter(|(_, invitee)| *invitee == member).count() as u64
    }

    /// Whether the two are friends.
    pub fn are_friends(&self, a: u64, b: u64) -> bool {
        self.friends.contains(&pair(a, b))
    }

    /// Whether an invitation waits.
    pub fn is_invited(&self, inviter: u64, invitee: u64) -> bool {
        self.invitations.contains(&(inviter, invitee))
    }

    /// The owner of a resource, and the member whose wall it is on.
    pub fn resource(&self, resource: u64) -> Option<(u64, u64)> {
        self.resources.get(&resource).copied()
    }

    /// The resources on a wall, by rising id.
    pub fn wall(&self, member: u64) -> Vec<u64> {
        self.resources.iter().filter(|(_, (_, wall))| *wall == member).map(|(resource, _)| *resource).collect()
    }

    /// How many comments are on the resources for which `fits` is true.
    pub fn comment_count(&self, fits: impl Fn(u64) -> bool) -> usize {
        self.comments.values().filter(|(resource, _)| fits(*resource)).count()
    }

    /// Whether the two are different members without a relation.
    pub fn are_strangers(&self, a: u64, b: u64) -> bool {
        a != b
            && !self.friends.contains(&pair(a, b))
            && !self.invitations.contains(&(a, b))
            && !self.invitations.contains(&(b, a))
    }

    /// Checks that each member has the numbers of friends, invitations and
    /// resources that the specification asks for.
    pub fn check_counts(&self, manifest: &Manifest) {
        let data = &social(&manifest.spec).data;
        for member in &self.members {
            let (friends, pending) = (self.friend_count(*member), self.pending_count(*member));
            let owned: Vec<u64> =
                self.resources.iter().filter(|(_, (owner, _))| owner == member).map(|(r, _)| *r).collect();
            assert_eq!((friends, pending), (data.friends_per_member, data.pending_per_member));
            let first = member * data.resources_per_member;
            assert_eq!(owned, (first..first + data.resources_per_member).collect::<Vec<_>>());
        }
        assert_eq!(self.comments.len() as u64, self.resources.len() as u64 * data.comments_per_resource);
    }

    /// Replays one operation, which must make sense in the current state.
    pub fn replay(&mut self, row: &TraceRow) {
        let op = row.operation;
        let (me, target) = (op.socialite, op.target);
        assert!(self.members.contains(&me), "{row:?}");
        match op.action {
            Action::ViewProfile | Action::ListFriends | Action::ViewTopKResources => {
                assert!(self.members.contains(&target), "{row:?}");
            }
            Action::ViewFriendRequests => assert_eq!(me, target, "{row:?}"),
            Action::InviteFriend => {
                assert!(self.members.contains(&target) && self.are_strangers(me, target), "{row:?}");
                self.invitations.insert((me, target));
            }
            Action::AcceptFriendRequest => {
                assert!(self.invitations.remove(&(target, me)), "{row:?}");
                self.friends.insert(pair(me, target));
            }
            Action::RejectFriendRequest => assert!(self.invitations.remove(&(target, me)), "{row:?}"),
            Action::ThawFriendship => assert!(self.friends.remove(&pair(me, target)), "{row:?}"),
            Action::ViewComments => assert!(self.resources.contains_key(&target), "{row:?}"),
            Action::PostComment => {
                assert!(self.resources.contains_key(&target), "{row:?}");
                let before = self.comments.insert(op.comment.unwrap(), (target, me));
                assert_eq!(before, None, "{row:?}");
            }
            Action::DeleteComment => {
                assert_eq!(self.resources[&target].0, me, "{row:?}");
                let (resource, _) = self.comments.remove(&op.comment.unwrap()).expect("the comment is there");
                assert_eq!(resource, target, "{row:?}");
            }
        }
        let written = match (op.action.is_write(), op.comment) {
            (false, comment) => {
                assert_eq!((comment, row.after), (None, None), "{row:?}");
                return;
            }
            (true, Some(comment)) => Relation::Comment(comment),
            (true, None) => Relation::Pair(me.min(target), me.max(target)),
        };
        assert_eq!(row.after, self.last_writes.insert(written, row.session), "{row:?}");
    }

    /// The digest of the state.
    pub fn digest(&self, manifest: &Manifest) -> StateDigest {
        let payload = Payload::new(manifest.spec.seed, social(&manifest.spec).data);
        let mut digest = StateDigest::default();
        for member in &self.members {
            payload.digest_member(&mut digest, *member);
        }
        for (a, b) in &self.friends {
            digest.friendship(*a, *b);
        }
        for (inviter, invitee) in &self.invitations {
            digest.invitation(*inviter, *invitee);
        }
        for (resource, (owner, wall)) in &self.resources {
            digest.resource(*resource, *owner, *wall, &payload.resource(*resource));
        }
        for (comment, (resource, author)) in &self.comments {
            digest.comment(*comment, *resource, *author, &payload.comment(*comment));
        }
        digest
    }
}
