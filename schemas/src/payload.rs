//! Strings and images as a function of (seed, kind, id, length): they are in
//! the store and never in a trace set.
//!
//! The bytes are the output of BLAKE3 in extended mode over
//! `"encore payload 1" ‖ seed ‖ kind ‖ id` (little-endian, 8 bytes each but the
//! kind's one byte). Text maps each byte `b` to character `b & 63` of
//! `A-Z a-z 0-9 space .`, so that it is ASCII and survives every store.

/// What a payload is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PayloadKind {
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

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .";

/// `length` bytes, the same on every platform.
pub fn bytes(seed: u64, kind: PayloadKind, id: u64, length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    if length > 0 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"encore payload 1");
        hasher.update(&seed.to_le_bytes());
        hasher.update(&[kind as u8]);
        hasher.update(&id.to_le_bytes());
        hasher.finalize_xof().fill(&mut out);
    }
    out
}

/// `length` ASCII characters.
pub fn text(seed: u64, kind: PayloadKind, id: u64, length: usize) -> String {
    bytes(seed, kind, id, length).into_iter().map(|b| ALPHABET[(b & 63) as usize] as char).collect()
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

    /// Stores keep these bytes: a change of the function is a change of format.
    #[test]
    fn the_function_is_pinned() {
        let pinned = blake3::hash(&bytes(42, PayloadKind::Image, 9, 1000)).to_hex();
        assert_eq!(&pinned[..16], "a1c9bf9ce35302e7");
    }
}
