//! The facts of a social network in the digest of a state.

use crate::digest::StateDigest;

impl StateDigest {
    /// A member with her attributes and images (empty when the store has none).
    pub fn member(&mut self, member: u64, attributes: &str, image: &[u8], thumbnail: &[u8]) {
        self.add(0, &[member], &[attributes.as_bytes(), image, thumbnail]);
    }

    /// A confirmed friendship; the order of the two does not matter.
    pub fn friendship(&mut self, a: u64, b: u64) {
        self.add(1, &[a.min(b), a.max(b)], &[]);
    }

    /// A pending invitation from `inviter` to `invitee`.
    pub fn invitation(&mut self, inviter: u64, invitee: u64) {
        self.add(2, &[inviter, invitee], &[]);
    }

    /// A resource.
    pub fn resource(&mut self, resource: u64, owner: u64, wall: u64, text: &str) {
        self.add(3, &[resource, owner, wall], &[text.as_bytes()]);
    }

    /// A comment.
    pub fn comment(&mut self, comment: u64, resource: u64, author: u64, text: &str) {
        self.add(4, &[comment, resource, author], &[text.as_bytes()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_content_does() {
        let (mut a, mut b, mut c) = (StateDigest::default(), StateDigest::default(), StateDigest::default());
        a.friendship(1, 2);
        a.invitation(3, 4);
        b.invitation(3, 4);
        b.friendship(2, 1);
        c.invitation(4, 3);
        c.friendship(1, 2);
        assert_eq!(a, b);
        assert_ne!(a, c);
        // A fact that is added twice changes the digest.
        let mut twice = a;
        twice.merge(b);
        assert_ne!(twice, a);
    }
}
