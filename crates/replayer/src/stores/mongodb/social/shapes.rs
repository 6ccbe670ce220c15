//! Which parts of a document each read asks for.

use mongodb::bson::{Document, doc};

/// Which parts of a document each read asks for.
pub struct Shapes {
    /// The lengths of the arrays, not the arrays: BG's client of 2013 fetches and
    /// counts them, but a server that can count need not send them.
    pub(super) profile: Document,
    pub(super) own_profile: Document,
    pub(super) in_a_list: Document,
    pub(super) confirmed: Document,
    pub(super) pending: Document,
    pub(super) body: Document,
    pub(super) comments: Document,
}

impl Shapes {
    /// The projections, the same for all operations.
    pub fn new() -> Shapes {
        let friends = doc! { "$size": "$confirmedFriends" };
        let profile = doc! { "_id": 0, "attributes": 1, "image": 1, "friends": friends };
        let mut own_profile = profile.clone();
        own_profile.insert("pending", doc! { "$size": "$pendingFriends" });
        Shapes {
            profile,
            own_profile,
            in_a_list: doc! { "attributes": 1, "thumbnail": 1 },
            confirmed: doc! { "_id": 0, "confirmedFriends": 1 },
            pending: doc! { "_id": 0, "pendingFriends": 1 },
            body: doc! { "body": 1 },
            comments: doc! { "_id": 0, "comments": 1 },
        }
    }
}
