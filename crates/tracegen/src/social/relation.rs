//! How two members are related.

/// The relation of two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// They have no relation.
    Strangers,
    /// Confirmed friends.
    Friends,
    /// One of them has invited the other.
    Invited {
        /// The position of the inviter.
        inviter: u32,
    },
}
