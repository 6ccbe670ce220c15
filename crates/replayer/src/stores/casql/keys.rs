//! What is cached under which key, and which keys a write must invalidate (bg-2013, section C).
//!
//! [`Operation::changes`] says what a write changes. This module only says in which cached items
//! a changed count or list is found.

use std::fmt;

use schemas::social::{Action, Change, CountKind, ListKind, Operation};

/// A cached item: the whole answer of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// A member's profile as the member sees it, with the pending count.
    SelfProfile(u64),
    /// A member's profile as others see it.
    BrowseProfile(u64),
    /// A member's friends.
    Friends(u64),
    /// The invitations that wait for a member.
    Pending(u64),
    /// The first K resources on a member's wall.
    TopK(u64),
    /// The comments on a resource.
    Comments(u64),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, id) = match self {
            Item::SelfProfile(member) => ("self", member),
            Item::BrowseProfile(member) => ("browse", member),
            Item::Friends(member) => ("friends", member),
            Item::Pending(member) => ("pending", member),
            Item::TopK(member) => ("top-k", member),
            Item::Comments(resource) => ("comments", resource),
        };
        write!(f, "{name}:{id}")
    }
}

impl Item {
    /// The item that holds the answer of a read; none for a write.
    pub fn read_by(operation: &Operation) -> Option<Item> {
        let (me, target) = (operation.socialite, operation.target);
        match operation.action {
            Action::ViewProfile if me == target => Some(Item::SelfProfile(target)),
            Action::ViewProfile => Some(Item::BrowseProfile(target)),
            Action::ListFriends => Some(Item::Friends(target)),
            Action::ViewFriendRequests => Some(Item::Pending(me)),
            Action::ViewTopKResources => Some(Item::TopK(target)),
            Action::ViewComments => Some(Item::Comments(target)),
            _ => None,
        }
    }

    /// The items that a write makes stale, each once; none for a read.
    pub fn changed_by(operation: &Operation) -> Vec<Item> {
        let mut items: Vec<Item> = operation.changes().iter().flat_map(Item::holding).collect();
        items.sort_unstable();
        items.dedup();
        items
    }

    /// The items in which a change would be seen.
    fn holding(change: Change) -> Vec<Item> {
        match change {
            Change::Count { kind: CountKind::FriendCount, owner, .. } => {
                vec![Item::SelfProfile(owner), Item::BrowseProfile(owner)]
            }
            Change::Count { kind: CountKind::PendingCount, owner, .. } => vec![Item::SelfProfile(owner)],
            Change::Element { kind: ListKind::Friends, owner, .. } => vec![Item::Friends(owner)],
            Change::Element { kind: ListKind::Pending, owner, .. } => vec![Item::Pending(owner)],
            Change::Element { kind: ListKind::Comments, owner, .. } => vec![Item::Comments(owner)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(action: Action, expect: &[Item]) {
        let (me, target) = (1, 2);
        let mut expect = expect.to_vec();
        expect.sort_unstable();
        let operation = Operation { action, socialite: me, target, comment: Some(9) };
        assert_eq!(Item::changed_by(&operation), expect, "{action:?}");
    }

    /// The invalidations that bg-2013 lists in section C.
    #[test]
    fn each_write_owes_what_the_paper_says() {
        use Item::*;
        check(Action::InviteFriend, &[SelfProfile(2), Pending(2)]);
        check(
            Action::AcceptFriendRequest,
            &[SelfProfile(1), SelfProfile(2), BrowseProfile(1), BrowseProfile(2), Friends(1), Friends(2), Pending(1)],
        );
        check(Action::RejectFriendRequest, &[SelfProfile(1), Pending(1)]);
        check(
            Action::ThawFriendship,
            &[SelfProfile(1), SelfProfile(2), BrowseProfile(1), BrowseProfile(2), Friends(1), Friends(2)],
        );
        check(Action::PostComment, &[Comments(2)]);
        check(Action::DeleteComment, &[Comments(2)]);
    }

    #[test]
    fn each_read_has_its_item_and_no_write_has_one() {
        for action in Action::ALL {
            let operation = Operation { action, socialite: 1, target: 2, comment: Some(9) };
            assert_eq!(Item::read_by(&operation).is_some(), action.is_read(), "{action:?}");
            assert_eq!(Item::changed_by(&operation).is_empty(), action.is_read(), "{action:?}");
        }
        let own = Operation { action: Action::ViewProfile, socialite: 2, target: 2, comment: None };
        assert_eq!(Item::read_by(&own).unwrap().to_string(), "self:2");
    }
}
