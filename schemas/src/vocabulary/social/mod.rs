//! The vocabulary of the `social` family: BG's eleven actions, and what each of them changes and
//! observes (bg-2013, section C).
//!
//! The generator, the reference store and the analyzer all use this module, so that they cannot
//! disagree about an action.

mod columns;
pub mod session;

use serde::{Deserialize, Serialize};

use super::{OperationKind, Vocabulary};

/// The vocabulary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Social;

impl Vocabulary for Social {
    const NAME: &'static str = "social";
    const KINDS: &'static [OperationKind] = &Action::KINDS;
    type Operation = Operation;
    type Columns = columns::Columns;
    type Memory = ();
    type Request = Operation;

    #[inline(always)]
    fn request<'a>(
        operation: &'a Operation,
        _columns: &columns::Columns,
        _memory: &'a mut (),
    ) -> Result<&'a Operation, &'static str> {
        Ok(operation)
    }
}

/// An operation of a trace with its envelope. Its actor is the socialite.
pub type TraceRow = super::TraceRow<Operation>;

/// An action of a socialite. The discriminant is the code used in memory; files
/// carry the [name](Action::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Action {
    /// VP: the target member's attributes and counts. If she is the socialite herself, her
    /// pending count too.
    ViewProfile = 0,
    /// LF: the target member's friends.
    ListFriends = 1,
    /// VFR: the pending invitations to the socialite.
    ViewFriendRequests = 2,
    /// IF: the socialite invites the target member.
    InviteFriend = 3,
    /// AFR: the socialite accepts the target member's invitation.
    AcceptFriendRequest = 4,
    /// RFR: the socialite rejects the target member's invitation.
    RejectFriendRequest = 5,
    /// TF: the socialite ends her friendship with the target member.
    ThawFriendship = 6,
    /// VTR: the K resources with the highest ids on the target member's wall.
    ViewTopKResources = 7,
    /// VCR: the comments on the target resource.
    ViewComments = 8,
    /// PCR: the socialite posts a comment on the target resource.
    PostComment = 9,
    /// DCR: the socialite deletes a comment from the target resource, her own.
    DeleteComment = 10,
}

impl Action {
    /// Every action, in the order of their codes.
    pub const ALL: [Action; 11] = [
        Action::ViewProfile,
        Action::ListFriends,
        Action::ViewFriendRequests,
        Action::InviteFriend,
        Action::AcceptFriendRequest,
        Action::RejectFriendRequest,
        Action::ThawFriendship,
        Action::ViewTopKResources,
        Action::ViewComments,
        Action::PostComment,
        Action::DeleteComment,
    ];

    /// The actions as kinds of operations.
    const KINDS: [OperationKind; Action::ALL.len()] = {
        let mut kinds = [OperationKind { name: "", reads: false, writes: false }; Action::ALL.len()];
        let mut code = 0;
        while code < kinds.len() {
            let action = Action::ALL[code];
            kinds[code] = OperationKind { name: action.name(), reads: action.is_read(), writes: action.is_write() };
            code += 1;
        }
        kinds
    };

    /// The name used in specs, files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Action::ViewProfile => "view_profile",
            Action::ListFriends => "list_friends",
            Action::ViewFriendRequests => "view_friend_requests",
            Action::InviteFriend => "invite_friend",
            Action::AcceptFriendRequest => "accept_friend_request",
            Action::RejectFriendRequest => "reject_friend_request",
            Action::ThawFriendship => "thaw_friendship",
            Action::ViewTopKResources => "view_top_k_resources",
            Action::ViewComments => "view_comments",
            Action::PostComment => "post_comment",
            Action::DeleteComment => "delete_comment",
        }
    }

    /// The action with this name; None if there is none.
    pub fn from_name(name: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|a| a.name() == name)
    }

    /// The action with this code; None if there is none.
    pub fn from_code(code: u8) -> Option<Action> {
        Action::ALL.get(code as usize).copied()
    }

    /// Whether the action changes data.
    pub const fn is_write(self) -> bool {
        matches!(
            self,
            Action::InviteFriend
                | Action::AcceptFriendRequest
                | Action::RejectFriendRequest
                | Action::ThawFriendship
                | Action::PostComment
                | Action::DeleteComment
        )
    }

    /// Whether the action observes data.
    pub const fn is_read(self) -> bool {
        !self.is_write()
    }

    /// Whether the target of the action is a resource; otherwise it is a member.
    pub const fn targets_resource(self) -> bool {
        matches!(self, Action::ViewComments | Action::PostComment | Action::DeleteComment)
    }
}

/// One operation of the `social` family: an action and the ids it is about. Member, resource and
/// comment ids count from 0 over the whole data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The action.
    pub action: Action,
    /// The member who acts.
    pub socialite: u64,
    /// The member or resource it is about ([`Action::targets_resource`]).
    pub target: u64,
    /// The comment posted or deleted.
    pub comment: Option<u64>,
}

impl super::Operation for Operation {
    fn code(&self) -> u8 {
        self.action as u8
    }

    #[inline]
    fn reads(&self) -> bool {
        self.action.is_read()
    }

    #[inline]
    fn writes(&self) -> bool {
        self.action.is_write()
    }
}

/// A count that actions change by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountKind {
    /// How many friends a member has.
    FriendCount,
    /// How many invitations to a member are pending.
    PendingCount,
}

/// A list whose elements actions add and remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListKind {
    /// The friends of a member (element: a member).
    Friends,
    /// The members whose invitations to a member are pending (element: a member).
    Pending,
    /// The comments on a resource (element: a comment).
    Comments,
}

/// One effect of a write on one data item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A count of `owner` moves by `delta`, which is 1 or -1.
    Count {
        /// Which count.
        kind: CountKind,
        /// Whose count: a member.
        owner: u64,
        /// 1 or -1.
        delta: i8,
    },
    /// `element` is added to the list of `owner`, or removed from it.
    Element {
        /// Which list.
        kind: ListKind,
        /// Whose list: a member, or a resource for comments.
        owner: u64,
        /// The member or comment added or removed.
        element: u64,
        /// True for added.
        present: bool,
    },
}

/// What a part of a read's observed values stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// One value: a count that may change.
    Count {
        /// Which count.
        kind: CountKind,
        /// Whose count.
        owner: u64,
    },
    /// One value: the number of resources on a wall, which no action changes.
    ResourceCount {
        /// Whose wall.
        owner: u64,
    },
    /// All values, in any order: the elements of a list.
    List {
        /// Which list.
        kind: ListKind,
        /// Whose list.
        owner: u64,
    },
    /// All values, in this order: the K highest resource ids on a wall.
    TopK {
        /// Whose wall.
        owner: u64,
    },
}

/// Up to `N` values of one type without an allocation.
#[derive(Debug, Clone, Copy)]
pub struct Few<X, const N: usize> {
    items: [Option<X>; N],
    count: usize,
}

impl<X: Copy, const N: usize> Few<X, N> {
    fn of<const M: usize>(given: [X; M]) -> Self {
        let mut items = [None; N];
        for (slot, item) in items.iter_mut().zip(given) {
            *slot = Some(item);
        }
        Few { items, count: M.min(N) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = X> + '_ {
        self.items[..self.count].iter().flatten().copied()
    }
}

impl Operation {
    /// What the operation changes when it succeeds; nothing for a read.
    pub fn changes(&self) -> Few<Change, 6> {
        let (me, other) = (self.socialite, self.target);
        let count = |kind, owner, delta| Change::Count { kind, owner, delta };
        let element = |kind, owner, element, present| Change::Element { kind, owner, element, present };
        match self.action {
            Action::InviteFriend => {
                Few::of([count(CountKind::PendingCount, other, 1), element(ListKind::Pending, other, me, true)])
            }
            Action::AcceptFriendRequest => Few::of([
                count(CountKind::PendingCount, me, -1),
                element(ListKind::Pending, me, other, false),
                count(CountKind::FriendCount, me, 1),
                count(CountKind::FriendCount, other, 1),
                element(ListKind::Friends, me, other, true),
                element(ListKind::Friends, other, me, true),
            ]),
            Action::RejectFriendRequest => {
                Few::of([count(CountKind::PendingCount, me, -1), element(ListKind::Pending, me, other, false)])
            }
            Action::ThawFriendship => Few::of([
                count(CountKind::FriendCount, me, -1),
                count(CountKind::FriendCount, other, -1),
                element(ListKind::Friends, me, other, false),
                element(ListKind::Friends, other, me, false),
            ]),
            Action::PostComment => {
                Few::of([element(ListKind::Comments, other, self.comment.unwrap_or(u64::MAX), true)])
            }
            Action::DeleteComment => {
                Few::of([element(ListKind::Comments, other, self.comment.unwrap_or(u64::MAX), false)])
            }
            _ => Few::of([]),
        }
    }

    /// What the observed values of the operation stand for, in order; nothing
    /// for a write.
    ///
    /// View Profile logs one value for each of its two or three observations.
    /// Every other read has one observation, and all its values belong to it.
    pub fn observations(&self) -> Few<Observation, 3> {
        let owner = self.target;
        match self.action {
            Action::ViewProfile => {
                let friends = Observation::Count { kind: CountKind::FriendCount, owner };
                let resources = Observation::ResourceCount { owner };
                if self.socialite == self.target {
                    let pending = Observation::Count { kind: CountKind::PendingCount, owner };
                    Few::of([friends, resources, pending])
                } else {
                    Few::of([friends, resources])
                }
            }
            Action::ListFriends => Few::of([Observation::List { kind: ListKind::Friends, owner }]),
            Action::ViewFriendRequests => {
                Few::of([Observation::List { kind: ListKind::Pending, owner: self.socialite }])
            }
            Action::ViewTopKResources => Few::of([Observation::TopK { owner }]),
            Action::ViewComments => Few::of([Observation::List { kind: ListKind::Comments, owner }]),
            _ => Few::of([]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip() {
        for (code, action) in Action::ALL.into_iter().enumerate() {
            assert_eq!(Action::from_code(code as u8), Some(action));
            assert_eq!(Action::from_name(action.name()), Some(action));
            assert_eq!(serde_json::to_value(action).unwrap(), action.name());
        }
        assert_eq!(Action::from_code(11), None);
    }

    #[test]
    fn writes_change_and_reads_observe_and_none_does_both() {
        for action in Action::ALL {
            let op = Operation { action, socialite: 1, target: 2, comment: Some(9) };
            assert_eq!(action.is_write(), !op.changes().is_empty(), "{action:?}");
            assert_eq!(action.is_read(), !op.observations().is_empty(), "{action:?}");
        }
    }

    /// A member's count and her list must move together, else no store could
    /// satisfy both.
    #[test]
    fn counts_move_with_their_lists() {
        for action in Action::ALL {
            let op = Operation { action, socialite: 1, target: 2, comment: Some(9) };
            for (count_kind, list_kind) in
                [(CountKind::FriendCount, ListKind::Friends), (CountKind::PendingCount, ListKind::Pending)]
            {
                for member in [1, 2] {
                    let by_count: i64 = op
                        .changes()
                        .iter()
                        .map(|c| match c {
                            Change::Count { kind, owner, delta } if kind == count_kind && owner == member => {
                                delta as i64
                            }
                            _ => 0,
                        })
                        .sum();
                    let by_list: i64 = op
                        .changes()
                        .iter()
                        .map(|c| match c {
                            Change::Element { kind, owner, present, .. } if kind == list_kind && owner == member => {
                                if present {
                                    1
                                } else {
                                    -1
                                }
                            }
                            _ => 0,
                        })
                        .sum();
                    assert_eq!(by_count, by_list, "{action:?} {count_kind:?} of {member}");
                }
            }
        }
    }
}
