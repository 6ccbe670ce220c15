//! The strings and images of a social network: functions of the id of what they belong to.

use super::Data;
use crate::digest::StateDigest;
use crate::payload;

/// What a payload is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum PayloadKind {
    /// A member's attributes, one text.
    Attributes = 0,
    /// A member's profile image.
    Image = 1,
    /// A member's thumbnail image.
    Thumbnail = 2,
    /// The text of a comment.
    Comment = 3,
    /// The text of a resource.
    Resource = 4,
}

fn bytes(seed: u64, kind: PayloadKind, id: u64, length: usize) -> Vec<u8> {
    payload::bytes(seed, kind as u8, id, length)
}

fn text(seed: u64, kind: PayloadKind, id: u64, length: usize) -> String {
    payload::text(seed, kind as u8, id, length)
}

/// The strings and images of a data set.
#[derive(Debug, Clone)]
pub struct Payload {
    seed: u64,
    data: Data,
}

impl Payload {
    /// Those of a data set with this seed.
    pub fn new(seed: u64, data: Data) -> Payload {
        Payload { seed, data }
    }

    /// A member's attributes.
    pub fn attributes(&self, member: u64) -> String {
        text(self.seed, PayloadKind::Attributes, member, self.data.attribute_bytes as usize)
    }

    /// A member's profile image; empty when the data set has none.
    pub fn image(&self, member: u64) -> Vec<u8> {
        bytes(self.seed, PayloadKind::Image, member, self.data.image_bytes as usize)
    }

    /// A member's thumbnail; empty when the data set has none.
    pub fn thumbnail(&self, member: u64) -> Vec<u8> {
        bytes(self.seed, PayloadKind::Thumbnail, member, self.data.thumbnail_bytes as usize)
    }

    /// A resource's text.
    pub fn resource(&self, resource: u64) -> String {
        text(self.seed, PayloadKind::Resource, resource, self.data.resource_bytes as usize)
    }

    /// A comment's text.
    pub fn comment(&self, comment: u64) -> String {
        text(self.seed, PayloadKind::Comment, comment, self.data.comment_bytes as usize)
    }

    /// Adds a member with the member's payload to a digest.
    pub fn digest_member(&self, digest: &mut StateDigest, member: u64) {
        digest.member(member, &self.attributes(member), &self.image(member), &self.thumbnail(member));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_payloads_start_with_the_shorter_ones() {
        assert_eq!(text(1, PayloadKind::Comment, 7, 40)[..8], text(1, PayloadKind::Comment, 7, 8));
        assert_ne!(bytes(1, PayloadKind::Image, 7, 8), bytes(2, PayloadKind::Image, 7, 8));
        assert_eq!(text(1, PayloadKind::Comment, 7, 0), "");
    }

    /// Loaded stores hold these bytes, so a change of the function is a change of format.
    #[test]
    fn the_function_is_pinned() {
        let pinned = blake3::hash(&bytes(42, PayloadKind::Image, 9, 1000)).to_hex();
        assert_eq!(&pinned[..16], "a1c9bf9ce35302e7");
    }
}
