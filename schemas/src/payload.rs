//! Strings and images as a function of (seed, kind, id, length). They are in the store and never
//! in a trace set.
//!
//! The bytes are the output of BLAKE3 in extended mode over
//! `"encore payload 1" ‖ seed ‖ kind ‖ id` (little-endian, 8 bytes each but the
//! kind's one byte). Text maps each byte `b` to character `b & 63` of
//! `A-Z a-z 0-9 space .`, so that it is ASCII and survives every store.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .";

/// `length` bytes, the same on every platform.
pub fn bytes(seed: u64, kind: u8, id: u64, length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    if length > 0 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"encore payload 1");
        hasher.update(&seed.to_le_bytes());
        hasher.update(&[kind]);
        hasher.update(&id.to_le_bytes());
        hasher.finalize_xof().fill(&mut out);
    }
    out
}

/// `length` ASCII characters.
pub fn text(seed: u64, kind: u8, id: u64, length: usize) -> String {
    bytes(seed, kind, id, length).into_iter().map(|b| ALPHABET[(b & 63) as usize] as char).collect()
}
