//! A client of Cassandra, in the few words of its protocol that tests need.

use std::io::{Read, Result, Write};

use servers::Server;

use crate::support::connect;

/// The request that every server answers that serves clients.
pub const OPTIONS: [u8; 9] = [4, 0, 0, 0, 5, 0, 0, 0, 0];

/// Consistency levels.
pub const ONE: u16 = 1;
pub const ALL: u16 = 5;

/// The body of the answer to a query; an error of the server is one of this function.
pub fn query(server: &Server, text: &str, level: u16) -> Result<Vec<u8>> {
    let mut stream = connect(&server.address())?;
    exchange(&mut stream, 1, b"\0\x01\0\x0bCQL_VERSION\0\x053.0.0")?;
    let length = (text.len() as u32).to_be_bytes();
    exchange(&mut stream, 7, &[&length[..], text.as_bytes(), &level.to_be_bytes(), &[0]].concat())
}

fn exchange(stream: &mut (impl Read + Write), operation: u8, body: &[u8]) -> Result<Vec<u8>> {
    let length = (body.len() as u32).to_be_bytes();
    stream.write_all(&[&[4, 0, 0, 0, operation][..], &length, body].concat())?;
    let mut header = [0; 9];
    stream.read_exact(&mut header)?;
    let mut answer = vec![0; u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize];
    stream.read_exact(&mut answer)?;
    match header[4] {
        0 => Err(std::io::Error::other(String::from_utf8_lossy(&answer).into_owned())),
        _ => Ok(answer),
    }
}

/// The only text in the answer to a query; empty without a row.
pub fn text(answer: &[u8]) -> String {
    // Kind of the answer, flags, number of columns; then keyspace, table and column, the type, the number of rows.
    let mut at = 12;
    for _ in 0..3 {
        at += 2 + u16::from_be_bytes([answer[at], answer[at + 1]]) as usize;
    }
    let rows = &answer[at + 2..];
    let text = if rows[..4] == [0; 4] { &[][..] } else { &rows[8..] };
    String::from_utf8_lossy(text).into_owned()
}
