//! The part of Cassandra's protocol that is needed to know whether a node is ready.
//!
//! A frame is a header of nine bytes, and a body ("CQL BINARY PROTOCOL v4", section 2).

use std::io::{Error, ErrorKind, Read, Result};

const HEADER_BYTES: usize = 9;
/// No answer to a question of this module is longer.
const BODY_BYTES_MAX: usize = 1 << 20;

const STARTUP: u8 = 0x01;
const QUERY: u8 = 0x07;
const SUPPORTED: u8 = 0x06;
const RESULT: u8 = 0x08;
/// The consistency level of a read that all replicas answer.
const ALL: [u8; 2] = [0, 5];

/// The question what the server supports; every server that serves clients answers it.
pub const OPTIONS: [u8; HEADER_BYTES] = [4, 0, 0, 0, 5, 0, 0, 0, 0];

/// The first frame of a client.
pub fn startup() -> Vec<u8> {
    let options = [&[0, 1][..], &text("CQL_VERSION"), &text("3.0.0")].concat();
    frame(STARTUP, &options)
}

/// A query at the consistency level ALL.
pub fn query_at_all(query: &str) -> Vec<u8> {
    let length = (query.len() as u32).to_be_bytes();
    frame(QUERY, &[&length[..], query.as_bytes(), &ALL, &[0]].concat())
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
}

fn frame(operation: u8, body: &[u8]) -> Vec<u8> {
    [&[4, 0, 0, 0, operation][..], &(body.len() as u32).to_be_bytes(), body].concat()
}

/// The kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer(u8);

impl Answer {
    /// Whether it says what the server supports.
    pub fn is_supported(self) -> bool {
        self.0 == SUPPORTED
    }

    /// Whether it is the result of a query, not an error.
    pub fn is_result(self) -> bool {
        self.0 == RESULT
    }
}

/// Reads an answer to its end.
pub fn read(stream: &mut impl Read) -> Result<Answer> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
    if header[0] != 0x84 || length > BODY_BYTES_MAX {
        return Err(Error::new(ErrorKind::InvalidData, "not an answer of Cassandra"));
    }
    stream.read_exact(&mut vec![0; length])?;
    Ok(Answer(header[4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_of_the_protocol() {
        let startup = startup();
        assert_eq!(startup[..11], [4, 0, 0, 0, 1, 0, 0, 0, 22, 0, 1]);
        assert_eq!(startup[11..], *b"\0\x0bCQL_VERSION\0\x053.0.0");
        assert_eq!(query_at_all("ab")[4..], [7, 0, 0, 0, 9, 0, 0, 0, 2, b'a', b'b', 0, 5, 0]);
    }

    #[test]
    fn answers_are_read_to_their_end() {
        let mut bytes = &[0x84, 0, 0, 0, 8, 0, 0, 0, 2, 1, 2, 0x84, 0, 0, 0, 0, 0, 0, 0, 0][..];
        let first = read(&mut bytes).expect("an answer");
        assert!(first.is_result() && !first.is_supported());
        assert!(!read(&mut bytes).expect("an answer").is_result() && bytes.is_empty());
        assert!(read(&mut &b"HTTP/1.1 400"[..]).is_err());
    }
}
