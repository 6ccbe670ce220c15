//! Rows in PostgreSQL's binary COPY format (PostgreSQL's manual, COPY, "Binary
//! Format").

use crate::stores::relational::contents::Value;

/// The header of a stream of rows: signature, no flags, no extension.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end of a stream of rows.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// Rows to be sent into a table.
#[derive(Debug)]
pub struct CopyBuffer {
    bytes: Vec<u8>,
}

impl CopyBuffer {
    /// The beginning of a stream.
    pub fn new() -> CopyBuffer {
        CopyBuffer { bytes: HEADER.to_vec() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[Value]) {
        // No table has more than a handful of columns.
        self.bytes.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for value in row {
            match value {
                Value::Integer(number) => self.field(&number.to_be_bytes()),
                Value::Text(text) => self.field(text.as_bytes()),
                Value::Bytes(bytes) => self.field(bytes),
            }
        }
    }

    fn field(&mut self, bytes: &[u8]) {
        // PostgreSQL's values are below 1 GiB.
        self.bytes.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// The end of the stream.
    pub fn finish(&mut self) {
        self.bytes.extend_from_slice(&TRAILER);
    }

    /// Takes the bytes, if there are at least this many.
    pub fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        (self.bytes.len() >= at_least.max(1)).then(|| std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a row are spelled out in PostgreSQL's manual.
    #[test]
    fn a_row_is_what_the_manual_says() {
        let mut buffer = CopyBuffer::new();
        buffer.push(&[Value::Integer(258), Value::Text("ab".into()), Value::Bytes(vec![])]);
        buffer.finish();
        assert_eq!(buffer.take(10_000), None);
        let bytes = buffer.take(0).unwrap();
        let row = [0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2, b'a', b'b', 0, 0, 0, 0, 0xff, 0xff];
        assert_eq!((&bytes[..19], &bytes[19..]), (HEADER.as_slice(), row.as_slice()));
        assert_eq!(buffer.take(0), None);
    }
}
