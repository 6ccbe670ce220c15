//! What the items of the family are called, in tables and in sentences.

use schemas::social::{CountKind, ListKind};

use crate::family::{ItemIs, ItemWords};

/// The number of resources on a wall, which no operation changes.
pub(super) const RESOURCE_COUNT: &str = "resource_count";

/// A place in the top K resources of a wall, which no operation changes.
pub(super) const TOP_K: &str = "top_k";

/// A count.
pub(super) const fn count(kind: CountKind) -> &'static str {
    match kind {
        CountKind::FriendCount => "friend_count",
        CountKind::PendingCount => "pending_count",
    }
}

/// A list.
pub(super) const fn list(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Friends => "friends",
        ListKind::Pending => "pending",
        ListKind::Comments => "comments",
    }
}

/// The words for an item.
pub(super) fn words(item: &str) -> Option<ItemWords> {
    let of_member = |is| Some(ItemWords { owner: "member", is });
    match item {
        _ if item == count(CountKind::FriendCount) => of_member(ItemIs::Count("friends")),
        _ if item == count(CountKind::PendingCount) => of_member(ItemIs::Count("invitations")),
        _ if item == list(ListKind::Friends) || item == list(ListKind::Pending) => of_member(ItemIs::List("member")),
        _ if item == list(ListKind::Comments) => Some(ItemWords { owner: "resource", is: ItemIs::List("comment") }),
        RESOURCE_COUNT => of_member(ItemIs::Constant("resources")),
        TOP_K => of_member(ItemIs::Place("resource")),
        _ => None,
    }
}
